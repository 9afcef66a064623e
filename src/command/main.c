/* Prepares the process for any command (standard descriptors, environment, signals, locale), finds
 * the command and runs it.  At the end, output that was not written turns into a failure. */
#include "base/environment.h"
#include "base/input_limits.h"
#include "base/lost_pages.h"
#include "base/threads.h"
#include "command/command.h"
#include "command/command_end.h"
#include "command/late_libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* If descriptors 0, 1 or 2 are closed, the next file that is opened would get their number, and
 * messages would be written into it.  They are held by descriptors that can't be read or written,
 * so losing an output is an error as before.  Commands that tally starts don't inherit them. */
static void hold_standard_descriptors(void)
{
	if (fcntl(STDIN_FILENO, F_GETFD) < 0)
		open("/dev/null", O_PATH | O_CLOEXEC);
	/* A folder: /dev/stdout can't be opened for writing either. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) != fd)
			_exit(TALLY_EXIT_FAILURE);
}

/* Returns the exit status: output that standard output didn't take is a failure.  Some file systems
 * report a full disk only when the file is closed. */
static int finish(const char *name, int status)
{
	bool failed = fflush(stdout) || ferror(stdout);
	/* EBADF: the pager has ended, and its pipe is closed already. */
	if (!failed && (!fclose(stdout) || errno == EBADF))
		return status;
	fprintf(stderr, "tally %s: writing to standard output failed: %m\n", name);
	if (status)
		return status;
	return TALLY_EXIT_FAILURE;
}

static void note_file_limit(int number)
{
	(void)number;
}

/* Lets a write beyond the limit of a file's size (ulimit -f) fail with EFBIG, which commands report.
 * The signal's default action would end tally without a word.  It is in force again in started
 * programs: execve(2) resets handlers. */
static void survive_file_limit(void)
{
	struct sigaction before, action = { .sa_handler = note_file_limit, .sa_flags = SA_RESTART };
	if (!sigaction(SIGXFSZ, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaction(SIGXFSZ, &action, NULL);
}

struct call {
	const struct tally_command *command;
	int argc;
	char **argv;
	int status;
};

static void run(void *argument)
{
	struct call *call = argument;
	call->status = call->command->run(call->command, call->argc, call->argv);
}

/* True if tally was started by the name perf. */
static bool is_perf(const char *program)
{
	const char *slash = strrchr(program, '/');
	return !strcmp(slash ? slash + 1 : program, "perf");
}

/* perf has a command and -v for it, too. */
static bool is_version(const char *name)
{
	return !strcmp(name, "--version") || !strcmp(name, "-V") || !strcmp(name, "-v") ||
	       !strcmp(name, "version");
}

static int run_command(const struct tally_command *command, int argc, char **argv)
{
	struct call call = { .command = command, .argc = argc, .argv = argv };
	if (!tally_call_with_stack(run, &call))
		return call.status;
	fprintf(stderr, "tally %s: no memory for a stack\n", command->name);
	return TALLY_EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	hold_standard_descriptors();
	tally_environment_begin();
	survive_file_limit();
	const char *name = argc > 1 ? argv[1] : "help";
	bool is_in_perfs_place = argc > 0 && is_perf(argv[0]);
	if (is_in_perfs_place)
		name = "perf";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	if (is_version(name)) {
		printf("tally %s\n", TALLY_VERSION);
		return finish(name, TALLY_EXIT_OK);
	}
	const struct tally_command *command = tally_command_find(name);
	if (!command)
		return TALLY_EXIT_USAGE;
	if (argc < 2 && !is_in_perfs_place) {
		run_command(command, 1, argv);
		return TALLY_EXIT_USAGE;
	}
	struct tally_error err = TALLY_ERROR_NONE;
	tally_lost_pages_survive();
	if (tally_input_limits_check(&err) < 0)
		return tally_command_fail(command, &err);
	if (!command->rarely_reads_files)
		tally_late_libraries_load();
	int taken = is_in_perfs_place ? 0 : 1; /* arguments before the command's own */
	int status = run_command(command, argc - taken, argv + taken);
	return finish(name, tally_command_end(command, status));
}
