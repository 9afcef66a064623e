#include "command/record_request.h"

#include "base/safe_file.h"
#include "base/vector.h"
#include "perfdata/perfdata.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool is_standard_output(const char *name)
{
	return !strcmp(name, "-") || !strcmp(name, "/dev/stdout") || !strcmp(name, "/dev/fd/1") ||
	       !strcmp(name, "/proc/self/fd/1");
}

/* Uses standard output for the recording, and sends the command's standard output to standard
 * error. */
static int open_pipe(struct tally_error *err)
{
	if (isatty(STDOUT_FILENO))
		return tally_error_set(err, -EINVAL,
				       "a recording is binary: -o - needs a pipe, not a terminal");
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return tally_error_set(err, -errno, "standard output can't be written: %s",
				       tally_errno_text(errno));
	return fd;
}

/* If the output is a link to a regular file, writes and keeps that file. The link stays: it may be
 * /dev/stderr. */
static void follow_link(struct record_request *request)
{
	struct stat there;
	if (!lstat(request->output, &there) && S_ISLNK(there.st_mode) &&
	    realpath(request->output, request->linked_output) &&
	    !stat(request->linked_output, &there) && S_ISREG(there.st_mode))
		request->output = request->linked_output;
}

/* A device, a directory or a FIFO must not be replaced by a file. */
static int check_name(const char *name, const char *output, struct tally_error *err)
{
	struct stat there;
	if (lstat(name, &there) < 0 || S_ISREG(there.st_mode) || S_ISLNK(there.st_mode))
		return 0;
	tally_error_set(err, -EEXIST, "the old %s can't be kept as %s, which is not a regular file",
			output, name);
	tally_error_hint(err, "name another file with -o");
	return -EEXIST;
}

/* The file may be a program that was named by mistake, or text that a user wrote. */
static int check_is_recording(const struct record_request *request, const char *name,
			      struct tally_error *err)
{
	struct stat there;
	if (request->forces || stat(name, &there) < 0 || !S_ISREG(there.st_mode) ||
	    !there.st_size)
		return 0;
	int is_recording = tally_perfdata_is_file(name);
	if (is_recording > 0)
		return 0;
	if (is_recording < 0) {
		tally_error_set(err, is_recording, "%s would be replaced, and can't be read: %s",
				name, tally_errno_text(is_recording));
		tally_error_hint(err, "name another file with -o, or replace it with --force");
		return is_recording;
	}
	tally_error_set(err, -EEXIST, "%s would be replaced, and is not a recording", name);
	tally_error_hint(err, "name another file with -o, or replace it with --force");
	return -EEXIST;
}

/* Keeps the last recording as FILE.old, as perf does. */
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
	/* If the recording fails to start, nothing may be lost, not even the old FILE.old. */
	snprintf(older, sizeof(request->older_output), "%s~", old);
	int result = check_name(old, request->output, err);
	if (!result)
		result = check_name(older, request->output, err);
	if (!result)
		result = check_is_recording(request, request->output, err);
	if (!result)
		result = check_is_recording(request, old, err);
	if (!result)
		result = check_is_recording(request, older, err);
	if (result < 0) {
		*old = *older = '\0';
		return result;
	}
	if (rename(old, older) < 0)
		*older = '\0';
	if (!rename(request->output, old))
		return 0;
	int code = -errno;
	if (*older && !rename(older, old))
		*older = '\0';
	/* the directory is not writable, but the file may be */
	if (code == -EACCES || code == -EPERM) {
		*old = '\0';
		return 0;
	}
	tally_error_set(err, code, "keeping the old %s as %s failed: %s", request->output, old,
			tally_errno_text(code));
	*old = '\0';
	return code;
}

static bool is_fifo(const char *name)
{
	struct stat there;
	return !stat(name, &there) && S_ISFIFO(there.st_mode);
}

/* Waits for a FIFO's reader, as a shell does. Signals that the recording handles must still end
 * tally here. O_RDWR would not wait, but would hide later that the reader has left. */
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
		tally_say("hint: the last recording is in %s", request->old_output);
	else if (*request->older_output && rename(request->older_output, request->old_output) < 0)
		tally_say("hint: the recording before the last is in %s", request->older_output);
}

int record_output_open(struct record_request *request, const sigset_t *signals_before,
		       struct tally_error *err)
{
	request->pipe = true;
	if (is_standard_output(request->output))
		return open_pipe(err);
	bool fifo = is_fifo(request->output);
	follow_link(request);
	int result = fifo ? 0 : keep_old(request, err);
	if (result < 0)
		return result;
	int fd = fifo ? open_fifo(request->output, signals_before) :
			open(request->output, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd >= 0 && !fifo) /* a dangling link has a target now */
		follow_link(request);
	request->pipe = fd >= 0 && lseek(fd, 0, SEEK_CUR) < 0;
	if (fd >= 0 && !isatty(fd))
		return fd;
	if (fd >= 0) {
		close(fd);
		return tally_error_set(err, -EINVAL, "a recording is binary: %s is a terminal",
				       request->output);
	}
	int code = -errno;
	restore_old(request);
	tally_error_set(err, code, "%s can't be written: %s", request->output,
			tally_errno_text(code));
	tally_error_hint(err, "name another file with -o");
	return code;
}

/* If the recording did not begin, removes its file and restores the last recording. */
void record_output_close(struct record_request *request, bool began)
{
	int fd = request->output_fd;
	struct stat there;
	if (fd >= 0 && !began && !request->pipe && !fstat(fd, &there) && S_ISREG(there.st_mode)) {
		unlink(request->output);
		restore_old(request);
	} else if (fd >= 0 && *request->older_output) {
		unlink(request->older_output);
	}
	if (fd >= 0)
		close(fd);
	request->output_fd = -1;
	for (size_t i = 0; i < request->files.count; i++)
		free(request->files.items[i]);
	tally_vector_release(&request->files);
}

/* perf's format: year to second, then hundredths of a second. */
static int name_by_time(const struct record_request *request, char *out, size_t size)
{
	struct timespec now;
	struct tm local;
	struct stat there;
	clock_gettime(CLOCK_REALTIME, &now);
	/* if the name exists, try the next hundredth */
	for (unsigned hundredth = (unsigned)(now.tv_nsec / 10000000);; hundredth++) {
		char second[32];
		if (hundredth == 100) {
			now.tv_sec++;
			hundredth = 0;
		}
		if (!localtime_r(&now.tv_sec, &local) ||
		    !strftime(second, sizeof(second), "%Y%m%d%H%M%S", &local) ||
		    snprintf(out, size, "%s.%s%02u", request->output, second, hundredth) >=
			    (int)size)
			return -ENAMETOOLONG;
		if (lstat(out, &there) < 0)
			return 0;
	}
}

int record_output_name(struct record_request *request, struct tally_error *err)
{
	char *named = request->named_output;
	struct stat there;
	if (!stat(request->output, &there) && !there.st_size && request->files.count) {
		unlink(request->output); /* the disk had no room even for its header */
		snprintf(named, sizeof(request->named_output), "%s",
			 request->files.items[request->files.count - 1]);
		return 0;
	}
	int result = name_by_time(request, named, sizeof(request->named_output));
	if (!result && rename(request->output, named) < 0)
		result = -errno;
	if (result < 0)
		*named = '\0';
	return result < 0 ? tally_error_set(err, result, "%s can't be renamed: %s", request->output,
					    tally_errno_text(result)) : 0;
}

/* Deletes the oldest files beyond the limit. */
static int keep_last(struct record_request *request)
{
	char *name = strdup(request->named_output);
	if (!name || tally_vector_push(&request->files, name) < 0) {
		free(name);
		return -ENOMEM;
	}
	/* The limit includes the file that begins now. */
	while (request->max_files && request->files.count >= request->max_files) {
		unlink(request->files.items[0]);
		free(request->files.items[0]);
		request->files.count--;
		memmove(request->files.items, request->files.items + 1,
			request->files.count * sizeof(*request->files.items));
	}
	return 0;
}

int record_output_next(struct record_request *request, const struct tally_recorder_status *status,
		       int *fd, struct tally_error *err)
{
	int result = record_output_name(request, err);
	if (!result)
		record_say_file(request, status, request->named_output);
	if (!result && keep_last(request) < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	if (result < 0)
		return result;
	close(request->output_fd);
	*fd = request->output_fd = open(request->output, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
					0600);
	if (*fd < 0)
		return tally_error_set(err, -errno, "%s can't be written: %s", request->output,
				       tally_errno_text(errno));
	request->named_output[0] = '\0';
	return 0;
}

const char *record_output_path(const struct record_request *request)
{
	return *request->named_output ? request->named_output : request->output;
}

/* A file that was moved meanwhile is synced where it is, or not at all. */
static int sync_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	int result = tally_file_sync(fd);
	close(fd);
	return result;
}

int record_output_sync(const struct record_request *request, struct tally_error *err)
{
	const char *path = record_output_path(request);
	char folder[sizeof(request->named_output)];
	if (request->pipe)
		return 0;
	int result = request->output_fd >= 0 ? tally_file_sync(request->output_fd) : 0;
	for (size_t i = 0; !result && i < request->files.count; i++) {
		path = request->files.items[i];
		result = sync_file(path);
	}
	if (result < 0) {
		tally_error_set(err, result, "%s is not safe on the disk: %s", path,
				tally_errno_text(result));
		tally_error_hint(err, "parts of it may be lost: record to another disk with -o");
		return result;
	}
	snprintf(folder, sizeof(folder), "%s", path);
	tally_folder_sync(dirname(folder));
	return 0;
}
