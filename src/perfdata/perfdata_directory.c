/* Recordings that are directories, made by perf record --threads and --kcore.  `data` is a
 * recording like any other. data.0, data.1 … have one file for each thread of the recorder: records
 * only, without a header, and each a separate stream of compressed data.
 *
 * They are read one after the other.  The records in one file don't tell whether another file is
 * complete up to their time, so order.c holds all records before it gives the first in time order.
 */
#include "perfdata/perfdata_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARTS_MAX = 65536 };

static int fail(struct tally_error *err, const char *name, int result)
{
	return tally_error_set(err, result, "can't read '%s' in the directory: %s", name,
			       tally_errno_text(result));
}

/* Returns the number N of "data.N", or -1. */
static long part_number(const char *name)
{
	char *end;
	if (strncmp(name, "data.", 5) || name[5] < '0' || name[5] > '9')
		return -1;
	long number = strtol(name + 5, &end, 10);
	return *end || number >= PARTS_MAX ? -1 : number;
}

static int by_number(const void *a, const void *b)
{
	const struct tally_perfdata_part *x = a, *y = b;
	return x->number > y->number ? 1 : x->number < y->number ? -1 : 0;
}

static int map_part(struct tally_perfdata *data, int directory, const char *name,
		    struct tally_error *err)
{
	struct stat status;
	struct tally_perfdata_part part = { .number = part_number(name) };
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int result = fd < 0 || fstat(fd, &status) < 0 ? -errno
		     : !S_ISREG(status.st_mode)       ? -EINVAL
						      : 0;
	if (!result && status.st_size) {
		part.size = (size_t)status.st_size;
		part.bytes = mmap(NULL, part.size, PROT_READ, MAP_PRIVATE, fd, 0);
		result = part.bytes == MAP_FAILED ? -errno : 0;
	}
	if (!result && part.size && tally_vector_push(&data->parts, part) < 0) {
		munmap(part.bytes, part.size);
		result = -ENOMEM;
	}
	if (fd >= 0)
		close(fd);
	return result ? fail(err, name, result) : 0;
}

static int map_parts(struct tally_perfdata *data, int directory, struct tally_error *err)
{
	int copy = fcntl(directory, F_DUPFD_CLOEXEC, 0), result = 0;
	DIR *entries = copy < 0 ? NULL : fdopendir(copy);
	if (!entries) {
		result = -errno;
		if (copy >= 0)
			close(copy);
		return fail(err, ".", result);
	}
	for (struct dirent *entry; !result && (entry = readdir(entries));)
		if (part_number(entry->d_name) >= 0)
			result = map_part(data, directory, entry->d_name, err);
	closedir(entries);
	if (!result && data->parts.count)
		qsort(data->parts.items, data->parts.count, sizeof(*data->parts.items), by_number);
	return result;
}

int tally_directory_open(struct tally_perfdata *data, int directory, struct tally_error *err)
{
	int fd = openat(directory, "data", O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		tally_error_set(err, -EISDIR,
				"is a directory without a recording: there is no 'data' in it");
		tally_error_hint(
			err,
			"perf record --threads makes directories that are recordings; name a file with -i");
		return -EISDIR;
	}
	if (fd < 0)
		return fail(err, "data", -errno);
	int result = map_parts(data, directory, err);
	if (result) {
		close(fd);
		return result;
	}
	data->is_directory = true;
	/* its blocks are held to the end, when the thread is already gone */
	data->unpacker.ahead_tried = true;
	return fd;
}

bool tally_directory_next(struct tally_perfdata *data)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	if (data->part == data->parts.count)
		return false;
	const struct tally_perfdata_part *part = &data->parts.items[data->part++];
	if (unpacker->start < unpacker->end)
		tally_perfdata_note_damage(data, false, unpacker->offset,
					   "compressed data ends within a record");
	unpacker->start = unpacker->end;
	if (unpacker->stream)
		ZSTD_DCtx_reset(unpacker->stream, ZSTD_reset_session_only);
	data->source.memory = part->bytes;
	data->source.memory_size = part->size;
	data->source.reads = false;
	data->data_end = part->size;
	data->is_unfinished = false;
	tally_source_seek(&data->source, 0);
	return true;
}

void tally_directory_release(struct tally_perfdata *data)
{
	for (size_t i = 0; i < data->parts.count; i++)
		munmap(data->parts.items[i].bytes, data->parts.items[i].size);
	tally_vector_release(&data->parts);
}
