/* Parent and child talk over a pair of sockets.  The parent sends a byte to start the child.  The
 * child answers with a report before exec, and with another one if exec fails. */
#include "session/session.h"

#include "base/environment.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct report {
	int code; /* 0: about to exec, `used` is set; otherwise exec's errno */
	struct rusage used;
};

static ssize_t read_whole(int fd, void *bytes, size_t size)
{
	size_t got = 0;
	while (got < size) {
		ssize_t n = read(fd, (char *)bytes + got, size - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static int look_at(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) || access(path, X_OK) < 0 ? -EACCES : 0;
}

/* A file that is not executable is reported only when nothing else is found.  Unlike execvp(3), a
 * folder that can't be searched is not reported. */
int tally_spawn_find(const char *name, char *path, size_t size)
{
	const char *at = tally_environment_of_caller("PATH");
	int result = -ENOENT;
	if (strchr(name, '/') || !*name) {
		if (snprintf(path, size, "%s", name) >= (int)size)
			return -ENAMETOOLONG;
		return look_at(path);
	}
	for (at = tally_text_or(at, "/bin:/usr/bin"); result; at++) {
		int length = (int)strcspn(at, ":"), need, code = -ENOENT;
		if (length) /* an empty entry is the working folder */
			need = snprintf(path, size, "%.*s/%s", length, at, name);
		else
			need = snprintf(path, size, "./%s", name);
		if (need < (int)size)
			code = look_at(path);
		if (!code || (code == -EACCES && !access(path, F_OK)))
			result = code;
		at += length;
		if (!*at)
			break;
	}
	return result;
}

static int exec_error(const char *name, int code)
{
	char path[PATH_MAX];
	if (code == -EACCES && tally_spawn_find(name, path, sizeof(path)) == -ENOENT)
		return -ENOENT;
	return code;
}

static void child_run(int control_fd, struct tally_provider *provider, char **command,
		      const sigset_t *mask)
{
	struct report report = { 0 };
	char go;
	/* The read fails when the parent has died or given up. */
	if (read_whole(control_fd, &go, 1) != 1)
		_exit(TALLY_EXIT_NOT_FOUND);
	sigprocmask(SIG_SETMASK, mask, NULL);
	getrusage(RUSAGE_SELF, &report.used);
	if (write(control_fd, &report, sizeof(report)) < 0)
		_exit(TALLY_EXIT_NOT_FOUND);
	tally_environment_give_back();
	if (provider && provider->ops->before_exec)
		report.code = provider->ops->before_exec(provider);
	if (!report.code) {
		execvp(command[0], command);
		report.code = exec_error(command[0], -errno);
	}
	if (write(control_fd, &report, sizeof(report)) < 0)
		_exit(TALLY_EXIT_NOT_FOUND);
	_exit(tally_spawn_failure_status(report.code));
}

int tally_spawn_prepare(struct tally_spawn *spawn, struct tally_provider *provider, char **command,
			const sigset_t *mask, struct tally_error *err)
{
	int ends[2];
	*spawn = (struct tally_spawn)TALLY_SPAWN_INIT;
	/* A socket: writing to it raises no SIGPIPE (with MSG_NOSIGNAL) if the child was killed
	 * meanwhile. */
	pid_t pid = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) >= 0) {
		pid = fork();
		if (!pid) {
			close(ends[0]);
			child_run(ends[1], provider, command, mask);
		}
		int code = errno;
		close(ends[1]);
		if (pid < 0)
			close(ends[0]);
		errno = code;
	}
	if (pid < 0)
		return tally_error_set(err, -errno, "starting a process: %s",
				       tally_errno_text(-errno));
	spawn->pid = pid;
	spawn->control_fd = ends[0];
	return 0;
}

static int not_in_path(const char *name, struct tally_error *err)
{
	struct stat st;
	tally_error_set(err, -ENOENT, "there is no command '%s' in PATH", name);
	if (!stat(name, &st) && S_ISREG(st.st_mode))
		tally_error_hint(err, "there is a file of that name here: ./%s", name);
	return -ENOENT;
}

/* Explains exec's errno for this name.  execvp(3) searches PATH only for names without a slash. */
static int explain(const char *name, int code, struct tally_error *err)
{
	struct stat st;
	bool is_path = strchr(name, '/');
	bool exists = is_path && !stat(name, &st);
	if (code == -ENOENT && exists)
		tally_error_set(err, code, "'%s' exists, but its interpreter does not", name);
	else if (code == -ENOENT && is_path)
		tally_error_set(err, code, "there is no file '%s'", name);
	else if (code == -ENOENT)
		return not_in_path(name, err);
	else if (code == -EACCES && exists && S_ISDIR(st.st_mode))
		tally_error_set(err, code, "'%s' is a directory", name);
	else if (code == -EACCES)
		tally_error_set(err, code, "no permission to execute '%s'", name);
	else if (code == -ENOEXEC)
		tally_error_set(err, code, "'%s' has no executable format", name);
	else
		tally_error_set(err, code, "'%s' can't be executed: %s", name,
				tally_errno_text(code));
	return code;
}

int tally_spawn_command(struct tally_provider *provider, char **command, char ***out,
			struct tally_error *err)
{
	char path[PATH_MAX];
	*out = command;
	if (!provider->ops->command)
		return 0;
	int code = tally_spawn_find(command[0], path, sizeof(path));
	if (code < 0)
		return explain(command[0], code, err);
	return provider->ops->command(provider, path, command, out, err);
}

int tally_spawn_go(struct tally_spawn *spawn, char **command, struct tally_error *err)
{
	struct report report = { 0 };
	ssize_t said = send(spawn->control_fd, "", 1, MSG_NOSIGNAL);
	ssize_t got = said == 1 ? read_whole(spawn->control_fd, &report, sizeof(report)) : 0;
	spawn->before = report.used;
	if (got == sizeof(report))
		got = read_whole(spawn->control_fd, &report, sizeof(report));
	else
		report.code = -ECHILD;
	close(spawn->control_fd);
	spawn->control_fd = -1;
	if (!got && !report.code)
		return 0;
	waitpid(spawn->pid, NULL, 0);
	spawn->pid = 0;
	if (report.code == -ECHILD)
		return tally_error_set(err, -ECHILD, "the child ended before it could start '%s'",
				       command[0]);
	return explain(command[0], report.code, err);
}

int tally_spawn_failure_status(int code)
{
	return code == -ENOENT ? TALLY_EXIT_NOT_FOUND : TALLY_EXIT_NOT_EXECUTABLE;
}

int tally_spawn_exit_status(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void tally_spawn_release(struct tally_spawn *spawn)
{
	if (spawn->control_fd < 0)
		return;
	close(spawn->control_fd); /* ends the child's read, and so the child */
	spawn->control_fd = -1;
	if (spawn->pid)
		waitpid(spawn->pid, NULL, 0);
	spawn->pid = 0;
}
