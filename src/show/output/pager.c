/* Forks a shell that runs the pager, and puts a pipe to it in place of standard output.  The child
 * sets $LESS, so that less(1) passes colours and begins at the right line. */
#include "output/output_text.h"

#include "base/environment.h"
#include "base/terminal.h"
#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *pager_command(void)
{
	const char *names[] = { "TALLY_PAGER", "PAGER" };
	for (unsigned i = 0; i < 2; i++) {
		const char *command = tally_environment(names[i]);
		if (!command)
			continue;
		if (!*command || !strcmp(command, "cat"))
			return NULL;
		return command;
	}
	const char *path = tally_environment("PATH");
	if (path && tally_program_is_there(path, "less"))
		return "less";
	return NULL;
}

bool tally_pager_is_less(void)
{
	const char *command = pager_command();
	return command && strstr(command, "less");
}

/* Returns the line at the top of the screen, from 0, that shows `line` in the upper third. */
static size_t top_line(size_t line, size_t lines)
{
	struct winsize size = { 0 };
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	if (size.ws_row < 2)
		return 0;
	size_t rows = size.ws_row - 1u; /* the last one is less's own */
	if (line < rows)
		return 0;
	size_t top = line - rows / 3;
	if (top + rows > lines && lines > rows)
		return lines - rows;
	return top;
}

/* Sets $LESS: quit if the text fits on one screen; pass colours; cut long lines; begin at `top`.
 * The user's own options stay; a line is added to those that take no text. */
static void set_less(size_t top)
{
	static const char plain[] = "-ACEFGIKLMNQRSUVWXacefgimnqrsuw ";
	const char *set = tally_environment("LESS");
	char text[256];
	if (!set)
		set = "FRSX";
	if (top && strlen(set) < sizeof(text) / 2 && strspn(set, plain) == strlen(set))
		snprintf(text, sizeof(text), "%s +%zug", set, top + 1);
	else
		snprintf(text, sizeof(text), "%s", set);
	if (strlen(set) < sizeof(text))
		setenv("LESS", text, 1);
}

void tally_pager_measure(struct tally_pager *pager)
{
	*pager = (struct tally_pager){ .colours = tally_terminal_colours(STDOUT_FILENO) };
	if (isatty(STDOUT_FILENO))
		pager->columns = tally_terminal_columns(STDOUT_FILENO, 80);
}

void tally_pager_start(struct tally_pager *pager, bool wanted)
{
	tally_pager_measure(pager);
	tally_pager_start_at(pager, wanted, 0, 0);
}

void tally_pager_start_at(struct tally_pager *pager, bool wanted, size_t line, size_t lines)
{
	if (!pager->columns)
		return;
	size_t top = top_line(line, lines);
	const char *command = NULL;
	if (wanted && tally_terminal_knows_escapes(STDOUT_FILENO))
		command = pager_command();
	int pipe_fds[2];
	if (!command || pipe(pipe_fds) < 0)
		return;
	int pid = fork();
	if (!pid) {
		dup2(pipe_fds[0], STDIN_FILENO);
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		set_less(top);
		/* less can run programs, and edit and save files. */
		if (tally_environment_distrust())
			setenv("LESSSECURE", "1", 1);
		tally_environment_drop_rights();
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	if (pid > 0) {
		signal(SIGPIPE, SIG_IGN); /* quitting the pager early is not an error */
		/* Ctrl-C is for the pager: if it ended tally, the pager would lose its input. */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		dup2(pipe_fds[1], STDOUT_FILENO);
		pager->pid = pid;
	}
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

void tally_pager_finish(struct tally_pager *pager)
{
	if (!pager->pid)
		return;
	fflush(stdout);
	clearerr(stdout);
	close(STDOUT_FILENO);
	while (waitpid(pager->pid, NULL, 0) < 0 && errno == EINTR)
		;
	pager->pid = 0;
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
}
