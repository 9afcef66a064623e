#include "command/record_request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_standard_output(const char *name)
{
	return !strcmp(name, "-") || !strcmp(name, "/dev/stdout") || !strcmp(name, "/dev/fd/1") ||
	       !strcmp(name, "/proc/self/fd/1");
}

/* The recording takes standard output for itself; what the command prints there goes to standard error. */
static int open_pipe(struct tally_error *err)
{
	if (isatty(STDOUT_FILENO))
		return tally_error_set(err, -EINVAL, "a recording is no text: -o - wants a pipe, not a terminal");
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return tally_error_set(err, -errno, "standard output can't be written: %s", tally_errno_text(errno));
	return fd;
}

/* The last recording stays as FILE.old, as with perf. */
static int keep_old(struct record_request *request, struct tally_error *err)
{
	struct stat there;
	char *old = request->old_output;
	size_t size = sizeof(request->old_output);
	char *older = request->older_output;
	bool keep = !stat(request->output, &there) && S_ISREG(there.st_mode) && there.st_size;
	if (!keep || snprintf(old, size, "%s.old", request->output) >= (int)size) {
		*old = '\0';
		return 0;
	}
	/* A recording that never begins must cost nothing, not even the last but one. */
	snprintf(older, sizeof(request->older_output), "%s~", old);
	if (rename(old, older) < 0)
		*older = '\0';
	if (!rename(request->output, old))
		return 0;
	int code = -errno;
	if (*older && !rename(older, old))
		*older = '\0';
	if (code == -EACCES || code == -EPERM) { /* the folder isn't ours, the file may be */
		*old = '\0';
		return 0;
	}
	tally_error_set(err, code, "keeping the old %s as %s failed: %s", request->output, old, tally_errno_text(code));
	*old = '\0';
	return code;
}

static bool is_fifo(const char *name)
{
	struct stat there;
	return !stat(name, &there) && S_ISFIFO(there.st_mode);
}

/* Waits for a FIFO's reader, as a shell does: the signals that are kept for the recording still end us here.  Opened
 * for reading, too, it would not tell later that the reader is gone. */
static int open_fifo(const char *name, const sigset_t *signals_before)
{
	sigset_t now;
	sigprocmask(SIG_SETMASK, signals_before, &now);
	int fd = open(name, O_WRONLY | O_CLOEXEC), code = errno;
	sigprocmask(SIG_SETMASK, &now, NULL);
	errno = code;
	return fd;
}

static void restore_old(const struct record_request *request)
{
	if (*request->old_output && rename(request->old_output, request->output) < 0)
		fprintf(stderr, "hint: the last recording is in %s\n", request->old_output);
	else if (*request->older_output && rename(request->older_output, request->old_output) < 0)
		fprintf(stderr, "hint: the last recording but one is in %s\n", request->older_output);
}

int record_output_open(struct record_request *request, const sigset_t *signals_before, struct tally_error *err)
{
	request->pipe = true;
	if (is_standard_output(request->output))
		return open_pipe(err);
	bool fifo = is_fifo(request->output);
	int result = fifo ? 0 : keep_old(request, err);
	if (result < 0)
		return result;
	int fd = fifo ? open_fifo(request->output, signals_before) :
			open(request->output, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	request->pipe = fd >= 0 && lseek(fd, 0, SEEK_CUR) < 0;
	if (fd >= 0 && !isatty(fd))
		return fd;
	if (fd >= 0) {
		close(fd);
		return tally_error_set(err, -EINVAL, "a recording is no text: %s is a terminal", request->output);
	}
	int code = -errno;
	restore_old(request);
	tally_error_set(err, code, "%s can't be written: %s", request->output, tally_errno_text(code));
	tally_error_hint(err, "-o names another file");
	return code;
}

/* What never began leaves no file, and the last recording where it was. */
void record_output_close(const struct record_request *request, int fd, bool began)
{
	struct stat there;
	if (!began && !request->pipe && !fstat(fd, &there) && S_ISREG(there.st_mode)) {
		unlink(request->output);
		restore_old(request);
	} else if (*request->older_output) {
		unlink(request->older_output);
	}
	close(fd);
}
