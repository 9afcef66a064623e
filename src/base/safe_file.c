/* Thin wrappers of write(2) and fsync(2).  A descriptor that can't be synced counts as synced. */
#include "base/safe_file.h"

#include "base/extremes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

int tally_file_write(int fd, const void *bytes, size_t size)
{
	const char *at = bytes, *end = at + size;
	while (at < end) {
		ssize_t written = write(fd, at, (size_t)(end - at));
		if (written < 0 && errno != EINTR)
			return -errno;
		if (!written)
			return -ENOSPC;
		at += tally_max_i64(written, 0);
	}
	return 0;
}

int tally_file_sync(int fd)
{
	/* Pipes, devices and some file systems can't be synced. */
	bool is_synced = !fsync(fd) || errno == EINVAL || errno == ENOSYS || errno == EROFS ||
			 errno == EOPNOTSUPP;
	if (is_synced)
		return 0;
	return -errno;
}

void tally_folder_sync(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}
