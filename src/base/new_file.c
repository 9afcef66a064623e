/* The new file has no name until it is complete, if the file system supports that; otherwise it has
 * a temporary one.  The final step is the same: rename a temporary name over the target. */
#include "base/new_file.h"

#include "base/safe_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY_PREFIX ".tally-"
#define TEMPORARY_SUFFIX ".new"

static int fail(const struct tally_new_file *file, int code, struct tally_error *err)
{
	tally_error_set(err, code, "%s can't be written: %s", file->path.path,
			tally_errno_text(code));
	if (code == -EACCES || code == -EPERM || code == -EROFS)
		tally_error_hint(err, "name another file with -o");
	return code;
}

static void put_self(char out[40], int fd)
{
	snprintf(out, 40, "/proc/self/fd/%d", fd);
}

/* A file without a name gets one through /proc, which may not be mounted. */
static bool can_be_named(int fd)
{
	char self[40];
	put_self(self, fd);
	return !access(self, F_OK);
}

int tally_new_file_open(struct tally_new_file *file, const char *path, struct tally_error *err)
{
	struct stat there;
	*file = (struct tally_new_file)TALLY_NEW_FILE_INIT;
	int result = tally_output_path_open(&file->path, path, err);
	if (!result)
		result = tally_output_path_look(&file->path, NULL, &there, err);
	if (result < 0)
		return result;
	/* Root could replace /dev/null by a file. */
	if (file->path.is_open_file || (result && !S_ISREG(there.st_mode))) {
		tally_error_set(err, -EINVAL, "%s can't be written: it is not a regular file",
				file->path.path);
		tally_error_hint(err, "name another file with -o");
		return -EINVAL;
	}
	/* If the file system supports O_TMPFILE, the file has no name until it is complete. */
	file->fd = openat(file->path.folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (file->fd >= 0 && can_be_named(file->fd))
		return 0;
	if (file->fd >= 0)
		close(file->fd);
	file->fd = tally_output_path_temporary(file->path.folder, TEMPORARY_PREFIX,
					       TEMPORARY_SUFFIX, file->temporary);
	if (file->fd >= 0)
		return 0;
	*file->temporary = '\0';
	return fail(file, file->fd, err);
}

static int give_name(struct tally_new_file *file)
{
	char self[40];
	if (*file->temporary)
		return 0;
	tally_output_path_random(TEMPORARY_PREFIX, TEMPORARY_SUFFIX, file->temporary);
	put_self(self, file->fd);
	if (!linkat(AT_FDCWD, self, file->path.folder, file->temporary, AT_SYMLINK_FOLLOW))
		return 0;
	*file->temporary = '\0';
	return -errno;
}

static void look_like(int fd, int like)
{
	struct stat there;
	if (like < 0 || fstat(like, &there) < 0 || there.st_uid != geteuid())
		return;
	/* A group that the file can't have may not get its rights. */
	mode_t mode = there.st_mode & 0777;
	if (fchown(fd, (uid_t)-1, there.st_gid) < 0)
		mode &= ~(mode_t)S_IRWXG;
	int ignored = fchmod(fd, mode);
	(void)ignored;
}

int tally_new_file_keep(struct tally_new_file *file, int like, struct tally_error *err)
{
	int folder = file->path.folder;
	look_like(file->fd, like);
	int result = tally_file_sync(file->fd);
	if (result < 0)
		return fail(file, result, err);
	result = give_name(file);
	if (result < 0)
		return fail(file, result, err);
	if (renameat(folder, file->temporary, folder, file->path.name) < 0)
		return fail(file, -errno, err);
	*file->temporary = '\0';
	tally_folder_sync(folder);
	return 0;
}

void tally_new_file_release(struct tally_new_file *file)
{
	if (*file->temporary)
		unlinkat(file->path.folder, file->temporary, 0);
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	tally_output_path_close(&file->path);
}
