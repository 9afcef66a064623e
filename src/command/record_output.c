/* The output of `record`: a pipe, or a named file that takes the place of the last recording.  The
 * old files are renamed first, and get their names back if recording fails to start.  The second
 * half serves recordings that are split into several files. */
#include "command/record_request.h"

#include "base/safe_file.h"
#include "base/vector.h"
#include "perfdata/perfdata.h"

#include <errno.h>
#include <fcntl.h>
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

static int rename_in(const struct record_request *request, const char *from, const char *to)
{
	int folder = request->place.folder;
	if (renameat(folder, from, folder, to) < 0)
		return -errno;
	return 0;
}

static void remove_in(const struct record_request *request, const char *name)
{
	unlinkat(request->place.folder, name, 0);
}

/* Writes the path of a name in the output's folder. */
static const char *path_of(const struct record_request *request, const char *name,
			   char path[PATH_MAX + NAME_MAX])
{
	const char *slash = strrchr(request->output, '/');
	int length = 0;
	if (slash)
		length = (int)(slash + 1 - request->output);
	snprintf(path, PATH_MAX + NAME_MAX, "%.*s%s", length, request->output, name);
	return path;
}

/* A device, a directory or a FIFO must not be replaced by a file, nor may a file that is another
 * user's, or is no recording: a program that was named by mistake, or text that a user wrote. */
static int check_replaced(const struct record_request *request, const char *name,
			  struct tally_error *err)
{
	char path[PATH_MAX + NAME_MAX];
	struct stat there;
	int found = tally_output_path_look(&request->place, name, &there, err);
	if (found < 0)
		return found;
	if (!found || S_ISLNK(there.st_mode))
		return 0;
	if (!S_ISREG(there.st_mode)) {
		tally_error_set(err, -EEXIST,
				"the old %s can't be kept as %s, which is not a regular file",
				request->output, path_of(request, name, path));
		tally_error_hint(err, "name another file with -o");
		return -EEXIST;
	}
	if (request->forces || !there.st_size)
		return 0;
	int is_recording = tally_perfdata_is_file(request->place.folder, name);
	if (is_recording > 0)
		return 0;
	if (is_recording < 0) {
		tally_error_set(err, is_recording, "%s would be replaced, and can't be read: %s",
				path_of(request, name, path), tally_errno_text(is_recording));
		tally_error_hint(err, "name another file with -o, or replace it with --force");
		return is_recording;
	}
	tally_error_set(err, -EEXIST, "%s would be replaced, and is not a recording",
			path_of(request, name, path));
	tally_error_hint(err, "name another file with -o, or replace it with --force");
	return -EEXIST;
}

/* Keeps the last recording as FILE.old, as perf does. */
static int keep_old(struct record_request *request, struct tally_error *err)
{
	char *old = request->old_name, *older = request->older_name;
	const char *name = request->place.name;
	char path[PATH_MAX + NAME_MAX];
	/* If the recording fails to start, nothing may be lost, not even the old FILE.old. */
	snprintf(old, sizeof(request->old_name), "%s.old", name);
	snprintf(older, sizeof(request->older_name), "%s.old~", name);
	int result = check_replaced(request, old, err);
	if (!result)
		result = check_replaced(request, older, err);
	if (!result)
		result = check_replaced(request, name, err);
	if (result < 0) {
		*old = *older = '\0';
		return result;
	}
	if (rename_in(request, old, older) < 0)
		*older = '\0';
	int code = rename_in(request, name, old);
	if (!code)
		return 0;
	if (*older && !rename_in(request, older, old))
		*older = '\0';
	if (code != -EACCES && code != -EPERM)
		tally_error_set(err, code, "keeping the old %s as %s failed: %s", request->output,
				path_of(request, old, path), tally_errno_text(code));
	*old = '\0';
	/* the directory is not writable, but the file may be */
	if (code == -EACCES || code == -EPERM)
		return 0;
	return code;
}

/* Waits for a FIFO's reader, as a shell does. Signals that the recording handles must still end
 * tally here. O_RDWR would not wait, but would hide later that the reader has left. */
static int open_fifo(const struct record_request *request, const sigset_t *signals_before,
		     struct tally_error *err)
{
	sigset_t now;
	sigprocmask(SIG_SETMASK, signals_before, &now);
	int fd = tally_output_path_write(&request->place, O_WRONLY, 0, err);
	sigprocmask(SIG_SETMASK, &now, NULL);
	return fd;
}

static void restore_old(const struct record_request *request)
{
	const char *old = request->old_name, *older = request->older_name;
	char path[PATH_MAX + NAME_MAX];
	if (*old && rename_in(request, old, request->place.name) < 0)
		tally_say("hint: the last recording is in %s", path_of(request, old, path));
	else if (*older && rename_in(request, older, old) < 0)
		tally_say("hint: the recording before the last is in %s",
			  path_of(request, older, path));
}

static int open_file(struct record_request *request, struct tally_error *err)
{
	return tally_output_path_write(&request->place, O_RDWR | O_TRUNC, 0600, err);
}

static int open_named(struct record_request *request, const sigset_t *signals_before,
		      struct tally_error *err)
{
	struct stat there = { 0 };
	int found = tally_output_path_look(&request->place, NULL, &there, err);
	if (found < 0)
		return found;
	if (found && S_ISFIFO(there.st_mode))
		return open_fifo(request, signals_before, err);
	/* The target of a link is written and kept; the link stays. */
	if (!request->place.is_open_file && (!found || S_ISREG(there.st_mode)))
		request->output = request->place.path;
	bool is_kept = found && S_ISREG(there.st_mode) && there.st_size;
	if (is_kept && !request->place.is_open_file) {
		int result = keep_old(request, err);
		if (result < 0)
			return result;
	}
	return open_file(request, err);
}

int record_output_open(struct record_request *request, const sigset_t *signals_before,
		       struct tally_error *err)
{
	request->pipe = true;
	if (is_standard_output(request->output))
		return open_pipe(err);
	int fd = tally_output_path_open(&request->place, request->output, err);
	if (fd < 0)
		return fd;
	fd = open_named(request, signals_before, err);
	request->pipe = fd >= 0 && lseek(fd, 0, SEEK_CUR) < 0;
	if (fd >= 0 && isatty(fd)) {
		close(fd);
		fd = tally_error_set(err, -EINVAL, "a recording is binary: %s is a terminal",
				     request->output);
	}
	if (fd < 0)
		restore_old(request);
	return fd;
}

/* If the recording did not begin, removes its file and restores the last recording. */
void record_output_close(struct record_request *request, bool began)
{
	int fd = request->output_fd;
	struct stat there;
	bool is_named = fd >= 0 && request->place.folder >= 0 && !request->place.is_open_file;
	if (is_named && !began && !request->pipe && !fstat(fd, &there) && S_ISREG(there.st_mode)) {
		remove_in(request, request->place.name);
		restore_old(request);
	} else if (is_named && *request->older_name) {
		remove_in(request, request->older_name);
	}
	if (fd >= 0)
		close(fd);
	request->output_fd = -1;
	for (size_t i = 0; i < request->files.count; i++)
		free(request->files.items[i]);
	tally_vector_release(&request->files);
	tally_output_path_close(&request->place);
}

/* perf's format: year to second, then hundredths of a second. */
static int name_by_time(const struct record_request *request, char name[NAME_MAX + 1])
{
	const char *output = request->place.name;
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
		    snprintf(name, NAME_MAX + 1, "%s.%s%02u", output, second, hundredth) > NAME_MAX)
			return -ENAMETOOLONG;
		if (fstatat(request->place.folder, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
	}
}

int record_output_name(struct record_request *request, struct tally_error *err)
{
	char *named = request->named_output, name[NAME_MAX + 1];
	struct stat there;
	if (!fstat(request->output_fd, &there) && !there.st_size && request->files.count) {
		/* the disk had no room even for its header */
		remove_in(request, request->place.name);
		path_of(request, request->files.items[request->files.count - 1], named);
		return 0;
	}
	int result = name_by_time(request, name);
	if (!result)
		result = rename_in(request, request->place.name, name);
	if (result < 0)
		return tally_error_set(err, result, "%s can't be renamed: %s", request->output,
				       tally_errno_text(result));
	path_of(request, name, named);
	return 0;
}

/* Deletes the oldest files beyond the limit. */
static int keep_last(struct record_request *request)
{
	const char *slash = strrchr(request->named_output, '/');
	char *name = strdup(slash ? slash + 1 : request->named_output);
	if (!name || tally_vector_push(&request->files, name) < 0) {
		free(name);
		return -ENOMEM;
	}
	/* The limit includes the file that begins now. */
	while (request->max_files && request->files.count >= request->max_files) {
		remove_in(request, request->files.items[0]);
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
	if (result < 0)
		return result;
	record_say_file(request, status, request->named_output);
	if (keep_last(request) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	close(request->output_fd);
	*fd = request->output_fd = open_file(request, err);
	if (*fd < 0)
		return *fd;
	request->named_output[0] = '\0';
	return 0;
}

const char *record_output_file(const struct record_request *request, size_t i,
			       char path[PATH_MAX + NAME_MAX])
{
	return path_of(request, request->files.items[i], path);
}

const char *record_output_path(const struct record_request *request)
{
	if (*request->named_output)
		return request->named_output;
	return request->output;
}

/* A file that was moved meanwhile is synced where it is, or not at all. */
static int sync_file(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return -errno;
	int result = tally_file_sync(fd);
	close(fd);
	return result;
}

int record_output_sync(const struct record_request *request, struct tally_error *err)
{
	const char *path = record_output_path(request);
	char other[PATH_MAX + NAME_MAX];
	if (request->pipe)
		return 0;
	int result = 0;
	if (request->output_fd >= 0)
		result = tally_file_sync(request->output_fd);
	for (size_t i = 0; !result && i < request->files.count; i++) {
		path = record_output_file(request, i, other);
		result = sync_file(request->place.folder, request->files.items[i]);
	}
	if (result < 0) {
		tally_error_set(err, result, "%s is not safe on the disk: %s", path,
				tally_errno_text(result));
		tally_error_hint(err, "parts of it may be lost: record to another disk with -o");
		return result;
	}
	tally_folder_sync(request->place.folder);
	return 0;
}
