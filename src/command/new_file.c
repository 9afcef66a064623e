#include "command/new_file.h"

#include "base/safe_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const struct tally_new_file *file, int code, struct tally_error *err)
{
	tally_error_set(err, code, "%s can't be written: %s", file->path, tally_errno_text(code));
	if (code == -EACCES || code == -EPERM || code == -EROFS)
		tally_error_hint(err, "name another file with -o");
	return code;
}

static int name_temporary(struct tally_new_file *file)
{
	uint32_t random = 0;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint32_t)getpid();
	int length = snprintf(file->temporary, sizeof(file->temporary), "%s/.tally-%08x.new",
			      file->folder, random);
	return length < (int)sizeof(file->temporary) ? 0 : -ENAMETOOLONG;
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
	char real[PATH_MAX];
	struct stat there;
	*file = (struct tally_new_file){ .fd = -1 };
	const char *target = realpath(path, real) ? real : path;
	if (snprintf(file->path, sizeof(file->path), "%s", target) >= (int)sizeof(file->path))
		return fail(file, -ENAMETOOLONG, err);
	/* Root could replace /dev/null by a file. */
	if (!stat(file->path, &there) && !S_ISREG(there.st_mode)) {
		tally_error_set(err, -EINVAL, "%s can't be written: it is not a regular file",
				file->path);
		tally_error_hint(err, "name another file with -o");
		return -EINVAL;
	}
	strcpy(real, file->path);
	snprintf(file->folder, sizeof(file->folder), "%s", dirname(real));
	/* If the file system supports O_TMPFILE, the file has no name until it is complete. */
	file->fd = open(file->folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (file->fd >= 0 && can_be_named(file->fd))
		return 0;
	if (file->fd >= 0)
		close(file->fd);
	if (name_temporary(file) < 0)
		return fail(file, -ENAMETOOLONG, err);
	file->fd = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int code = -errno;
	if (file->fd < 0)
		*file->temporary = '\0';
	return file->fd < 0 ? fail(file, code, err) : 0;
}

static int give_name(struct tally_new_file *file)
{
	char self[40];
	if (*file->temporary)
		return 0;
	int result = name_temporary(file);
	put_self(self, file->fd);
	if (!result && linkat(AT_FDCWD, self, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) < 0)
		result = -errno;
	if (result < 0)
		*file->temporary = '\0';
	return result;
}

static void look_like(int fd, int like)
{
	struct stat there;
	if (like < 0 || fstat(like, &there) < 0)
		return;
	int ignored = fchown(fd, there.st_uid, there.st_gid);
	ignored = fchmod(fd, there.st_mode & 0777);
	(void)ignored;
}

int tally_new_file_keep(struct tally_new_file *file, int like, struct tally_error *err)
{
	look_like(file->fd, like);
	int result = tally_file_sync(file->fd);
	if (!result)
		result = give_name(file);
	if (!result && rename(file->temporary, file->path) < 0)
		result = -errno;
	if (result < 0)
		return fail(file, result, err);
	*file->temporary = '\0';
	tally_folder_sync(file->folder);
	return 0;
}

void tally_new_file_release(struct tally_new_file *file)
{
	if (*file->temporary)
		unlink(file->temporary);
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}
