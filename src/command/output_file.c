/* Writes through a new file where that can replace the old one, otherwise in place.  Other
 * functions keep inputs and recordings from being overwritten. */
#include "base/new_file.h"
#include "base/safe_file.h"
#include "command/output_file.h"
#include "perfdata/perfdata.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const struct tally_buffer *text)
{
	return tally_file_write(fd, tally_buffer_string(text), text->length);
}

static int failed_to_write(const char *path, int code, struct tally_error *err)
{
	return tally_error_set(err, code, "writing %s failed: %s", path, tally_errno_text(code));
}

/* Writes to a file that cannot be replaced: a terminal, a pipe, a device, or a file in a directory
 * without write permission. */
static int write_in_place(const struct tally_output_path *path, const struct tally_buffer *text,
			  struct tally_error *err)
{
	int fd = tally_output_path_write(path, O_WRONLY | O_TRUNC, 0666, err);
	if (fd < 0)
		return fd;
	int result = write_all(fd, text);
	if (!result)
		result = tally_file_sync(fd);
	if (close(fd) < 0 && !result)
		result = -errno;
	if (result < 0)
		return failed_to_write(path->path, result, err);
	return 0;
}

/* `old`: the file to replace, whose mode is kept, or -1. */
static int write_anew(const char *path, int old, const struct tally_buffer *text,
		      struct tally_error *err)
{
	struct tally_new_file file = TALLY_NEW_FILE_INIT;
	int result = tally_new_file_open(&file, path, err);
	if (!result) {
		mode_t mask = umask(077);
		umask(mask);
		if (fchmod(file.fd, 0666 & ~mask) < 0)
			result = -errno;
		else
			result = write_all(file.fd, text);
		if (result < 0)
			failed_to_write(path, result, err);
		else
			result = tally_new_file_keep(&file, old, err);
	}
	tally_new_file_release(&file);
	return result;
}

static int replace(const struct tally_output_path *path, const struct tally_buffer *text,
		   struct tally_error *err)
{
	/* Do not replace a file that is not writable, even if its directory would permit it. */
	int old = openat(path->folder, path->name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (old < 0)
		return tally_error_set(err, -errno, "%s can't be written: %s", path->path,
				       tally_errno_text(errno));
	int result = write_anew(path->path, tally_output_is_private() ? -1 : old, text, err);
	close(old);
	if (result == -EACCES || result == -EPERM)
		return write_in_place(path, text, err);
	return result;
}

static int write_file(const char *name, const struct tally_buffer *text, struct tally_error *err)
{
	struct tally_output_path path;
	struct stat there;
	int result = tally_output_path_open(&path, name, err);
	if (result < 0)
		return result;
	result = tally_output_path_look(&path, NULL, &there, err);
	if (!result)
		result = write_anew(name, -1, text, err);
	else if (result > 0 && (path.is_open_file || !S_ISREG(there.st_mode)))
		result = write_in_place(&path, text, err);
	else if (result > 0)
		result = replace(&path, text, err);
	tally_output_path_close(&path);
	return result;
}

int tally_output_write(const char *path, const struct tally_buffer *text, struct tally_error *err)
{
	if (path && strcmp(path, "-"))
		return write_file(path, text, err);
	bool failed = fwrite(tally_buffer_string(text), 1, text->length, stdout) != text->length ||
		      fflush(stdout);
	if (!failed)
		return 0;
	tally_error_set(err, -EIO, "writing to standard output failed: %s",
			tally_errno_text(errno));
	__fpurge(stdout); /* otherwise main() would report the error again */
	clearerr(stdout);
	return -EIO;
}

static bool is_same_file(const struct stat *file, const char *input)
{
	struct stat other;
	int result;
	if (strcmp(input, "-"))
		result = stat(input, &other);
	else
		result = fstat(STDIN_FILENO, &other);
	return !result && other.st_dev == file->st_dev && other.st_ino == file->st_ino;
}

/* Returns what must not be overwritten, or NULL. */
static const char *worth_keeping(const struct tally_output_path *path, const struct stat *file,
				 const char *const *inputs)
{
	if (!S_ISREG(file->st_mode))
		return NULL;
	for (; *inputs; inputs++)
		if (is_same_file(file, *inputs))
			return "also an input";
	if (tally_perfdata_is_file(path->folder, path->name) > 0)
		return "a recording";
	return NULL;
}

int tally_output_check(const char *name, const char *const *inputs, struct tally_error *err)
{
	struct tally_output_path path;
	struct stat file;
	if (!name || !strcmp(name, "-"))
		return 0;
	int result = tally_output_path_open(&path, name, err);
	if (result < 0)
		return result;
	result = tally_output_path_look(&path, NULL, &file, err);
	const char *what = NULL;
	if (result > 0)
		what = worth_keeping(&path, &file, inputs);
	tally_output_path_close(&path);
	if (result < 0)
		return result;
	if (!what)
		return 0;
	tally_error_set(err, -EEXIST, "%s is %s, and would be overwritten", name, what);
	tally_error_hint(err, "name another file with -o");
	return -EEXIST;
}

bool tally_output_ends_in(const char *path, const char *const *endings)
{
	if (!path)
		return false;
	size_t length = strlen(path);
	for (; *endings; endings++)
		if (length > strlen(*endings) &&
		    !strcasecmp(path + length - strlen(*endings), *endings))
			return true;
	return false;
}

bool tally_output_is_other_kind(const char *path, const char *const *known)
{
	static const char *const kinds[] = { ".svg", ".html", ".htm", ".json", ".csv", ".xml",
					     ".gz",  ".zst",  ".pb",  ".png",  ".jpg", ".jpeg",
					     ".gif", ".webp", ".pdf", NULL };
	return tally_output_ends_in(path, kinds) && !tally_output_ends_in(path, known);
}
