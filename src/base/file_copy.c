/* Copies files into anonymous memory.  Only the ranges that SEEK_DATA and SEEK_HOLE report are
 * read; the other pages of the copy are never touched. */
#include "base/file_copy.h"

#include "base/extremes.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

bool tally_file_is_ours(const struct stat *status)
{
	bool others_write = status->st_mode & S_IWOTH ||
			    (status->st_mode & S_IWGRP && status->st_gid != getegid());
	return (status->st_uid == 0 || status->st_uid == geteuid()) && !others_write;
}

static int read_range(int fd, uint8_t *to, uint64_t from, uint64_t end)
{
	while (from < end) {
		ssize_t got = pread(fd, to + from, end - from, (off_t)from);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return -ENODATA;
		from += (uint64_t)got;
	}
	return 0;
}

/* Finds the next bytes that are no hole, at or behind `at`.  Returns false if there are none before
 * `size`. */
static bool next_data(int fd, uint64_t at, uint64_t size, uint64_t *start, uint64_t *end)
{
	off_t from = lseek(fd, (off_t)at, SEEK_DATA);
	if (from < 0 && errno == ENXIO)
		return false;
	*start = at;
	*end = size;
	if (from < 0) /* EINVAL: the file system knows no holes */
		return *start < size;
	off_t to = lseek(fd, from, SEEK_HOLE);
	*start = (uint64_t)from;
	if (to > from && (uint64_t)to < size)
		*end = (uint64_t)to;
	return *start < size;
}

static int copy_data(int fd, size_t size, uint64_t data_max, uint8_t *out, uint64_t *data)
{
	uint64_t start, end;
	struct stat status;
	*data = 0;
	for (uint64_t at = 0; at < size && next_data(fd, at, size, &start, &end); at = end) {
		if (end - start > data_max - *data)
			return -EFBIG;
		*data += end - start;
		int result = read_range(fd, out, start, end);
		if (result < 0)
			return result;
	}
	/* A file that was truncated meanwhile looks as if it ended in a hole. */
	if (fstat(fd, &status) < 0)
		return -errno;
	if (S_ISREG(status.st_mode) && (uint64_t)status.st_size < size)
		return -ENODATA;
	return 0;
}

int tally_file_copy(int fd, size_t size, uint64_t data_max, uint8_t **out, uint64_t *data)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	uint8_t *copy = mmap(NULL, tally_max_u64(size, 1), PROT_READ | PROT_WRITE, flags, -1, 0);
	if (copy == MAP_FAILED)
		return -ENOMEM;
	int result = copy_data(fd, size, data_max, copy, data);
	if (result < 0)
		tally_file_copy_free(copy, size);
	else
		*out = copy;
	return result;
}

void tally_file_copy_free(uint8_t *copy, size_t size)
{
	if (copy)
		munmap(copy, tally_max_u64(size, 1));
}
