/* Opens and closes a recording: a file, a pipe, a directory, or memory.
 *
 * A file that only this user and root can change is mapped.  Any other file is copied to memory:
 * its owner could truncate or change it while it is read. */
#include "base/error.h"
#include "base/extremes.h"
#include "base/file_copy.h"
#include "base/input_limits.h"
#include "base/lost_pages.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/unpack.h"
#include "perfdata/perfdata_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Recordings that are directories, made by perf record --threads and --kcore.  `data` is a
 * recording like any other. data.0, data.1 … have one file for each thread of the recorder: records
 * only, without a header, and each a separate stream of compressed data.
 *
 * They are read one after the other.  The records in one file don't tell whether another file is
 * complete up to their time, so order.c holds all records before it gives the first in time order.
 */

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
	if (*end || number >= PARTS_MAX)
		return -1;
	return number;
}

static int by_number(const void *a, const void *b)
{
	const struct tally_perfdata_part *x = a, *y = b;
	return tally_compare_i64(x->number, y->number);
}

/* Takes a regular file's content: maps or copies it.  Returns 0 with the bytes (NULL: the file is
 * empty), or -errno: -EFBIG above the limit, -ENODATA if the file shrinks meanwhile. */
static int take_file(struct tally_perfdata *data, int fd, const struct stat *status,
		     struct tally_file_bytes *file)
{
	uint64_t copied, most = tally_input_limit(TALLY_INPUT_RECORDING);
	*file = (struct tally_file_bytes){ .size = (size_t)status->st_size,
					   .is_copy = !tally_file_is_ours(status) };
	if (!file->size)
		return 0;
	if (file->is_copy) {
		most = tally_saturating_sub_u64(most, data->copied_bytes);
		/* Holes take no memory, but readers walk through them. */
		if (file->size > most)
			return -EFBIG;
		int result = tally_file_copy(fd, file->size, most, &file->bytes, &copied);
		if (!result)
			data->copied_bytes += file->size;
		return result;
	}
	void *mapping = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mapping == MAP_FAILED)
		return -errno;
	file->bytes = mapping;
	return 0;
}

static void release_file(struct tally_file_bytes *file)
{
	if (file->is_copy)
		tally_file_copy_free(file->bytes, file->size);
	else if (file->bytes)
		munmap(file->bytes, file->size);
	file->bytes = NULL;
}

static int cannot_take(struct tally_error *err, int result)
{
	if (result == -EFBIG)
		return tally_input_refuse(err, TALLY_INPUT_RECORDING,
					  tally_input_limit(TALLY_INPUT_RECORDING),
					  "another user can change it, so it must fit into memory, "
					  "and it is larger than");
	if (result == -ENODATA)
		return tally_error_set(err, result,
				       "can't read the recording: it shrank meanwhile");
	return tally_error_set(err, result, "can't read the recording: %s",
			       tally_errno_text(result));
}

/* Opens a file of the directory.  `data` and the others may be anything that someone put there: a
 * FIFO (O_NONBLOCK: don't wait for a writer), a device, a folder.  Returns the descriptor of a
 * regular file, or -errno with a message. */
static int open_part(int directory, const char *name, struct stat *status, struct tally_error *err)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int result = 0;
	if (fd < 0 || fstat(fd, status) < 0)
		result = -errno;
	/* a socket can't be opened at all */
	if (result == -ENXIO || (!result && !S_ISREG(status->st_mode)))
		result = tally_error_set(err, -EINVAL,
					 "'%s' in the directory is no regular file", name);
	else if (result)
		fail(err, name, result);
	if (result && fd >= 0)
		close(fd);
	if (result)
		return result;
	return fd;
}

static int take_part(struct tally_perfdata *data, int directory, const char *name,
		     struct tally_error *err)
{
	struct stat status;
	struct tally_perfdata_part part = { .number = part_number(name) };
	int fd = open_part(directory, name, &status, err);
	if (fd < 0)
		return fd;
	int result = take_file(data, fd, &status, &part.file);
	close(fd);
	if (result < 0)
		return cannot_take(err, result);
	if (part.file.bytes && tally_vector_push(&data->parts, part) < 0) {
		release_file(&part.file);
		return fail(err, name, -ENOMEM);
	}
	return 0;
}

static int take_parts(struct tally_perfdata *data, int directory, struct tally_error *err)
{
	int copy = fcntl(directory, F_DUPFD_CLOEXEC, 0), result = 0;
	DIR *entries = NULL;
	if (copy >= 0)
		entries = fdopendir(copy);
	if (!entries) {
		result = -errno;
		if (copy >= 0)
			close(copy);
		return fail(err, ".", result);
	}
	for (struct dirent *entry; !result && (entry = readdir(entries));)
		if (part_number(entry->d_name) >= 0)
			result = take_part(data, directory, entry->d_name, err);
	closedir(entries);
	if (!result && data->parts.count)
		qsort(data->parts.items, data->parts.count, sizeof(*data->parts.items), by_number);
	return result;
}

/* Returns the descriptor of the directory's `data` and puts its other files
 * into data->parts; or -errno. */
static int tally_directory_open(struct tally_perfdata *data, int directory, struct tally_error *err)
{
	struct stat status;
	int fd = open_part(directory, "data", &status, err);
	if (fd == -ENOENT) {
		tally_error_set(err, -EISDIR,
				"is a directory without a recording: there is no 'data' in it");
		tally_error_hint(
			err,
			"perf record --threads makes directories that are recordings; name a file "
			"with -i");
		return -EISDIR;
	}
	if (fd < 0)
		return fd;
	int result = take_parts(data, directory, err);
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
	data->source.memory = part->file.bytes;
	data->source.memory_size = part->file.size;
	data->source.reads = false;
	data->data_end = part->file.size;
	data->is_unfinished = false;
	tally_source_seek(&data->source, 0);
	return true;
}

static void tally_directory_release(struct tally_perfdata *data)
{
	for (size_t i = 0; i < data->parts.count; i++)
		release_file(&data->parts.items[i].file);
	tally_vector_release(&data->parts);
}

enum { READ_FILE_BYTES_MIN = 1 << 20, STACK_COPY_BYTES_MIN = 2048 };

static int read_pipe_head(struct tally_perfdata *data)
{
	data->is_pipe = true;
	data->data_end = UINT64_MAX;
	tally_source_skip(&data->source, sizeof(struct tally_disk_pipe_header));
	return 0;
}

const char *tally_perfdata_foreign_kind(const void *begin, size_t size)
{
	const uint8_t *bytes = begin;
	static const struct { const char *magic; size_t length; const char *kind; } kinds[] = {
		{ "\x7f" "ELF", 4, "an ELF file: a program or library" },
		{ "\x1f\x8b", 2, "compressed twice" },
		{ "\x28\xb5\x2f\xfd", 4, "compressed twice" },
		{ "\xfd" "7zXZ", 5, "compressed twice" },
		{ "BZh", 3, "compressed with bzip2: unpack it first" },
		{ "PK\3\4", 4, "a zip archive" },
		{ "\x17\x08\x44tracing", 10, "of trace-cmd" },
		{ "{", 1, "JSON" },
		{ "<?xml", 5, "XML" },
		{ "<svg", 4, "SVG" },
	};
	size_t printable = 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (size >= kinds[i].length && !memcmp(bytes, kinds[i].magic, kinds[i].length))
			return kinds[i].kind;
	for (size_t i = 0; i < size; i++)
		printable += (bytes[i] >= ' ' && bytes[i] != 0x7f) || bytes[i] == '\n' ||
			     bytes[i] == '\t' || bytes[i] == '\r';
	if (printable == size)
		return "text";
	return NULL;
}

static int not_a_recording(const uint8_t *bytes, size_t size, struct tally_error *err)
{
	const char *kind = tally_perfdata_foreign_kind(bytes, size);
	uint64_t magic = TALLY_PERFDATA_MAGIC;
	if (size < 16 && !memcmp(bytes, &magic, tally_min_u64(size, sizeof(magic))))
		return tally_error_set(err, -EBADMSG,
				       "not a recording: only the first %zu byte%s of one", size,
				       tally_plural(size));
	if (kind)
		tally_error_set(err, -EBADMSG, "not a recording: it is %s", kind);
	else
		tally_error_set(err, -EBADMSG, "not a recording: it does not begin with PERFILE2");
	tally_error_hint(err, "recordings are made by tally record or perf record");
	return -EBADMSG;
}

bool tally_perfdata_begins(const void *bytes, size_t size)
{
	uint64_t magic;
	if (size < sizeof(magic))
		return false;
	memcpy(&magic, bytes, sizeof(magic));
	return magic == TALLY_PERFDATA_MAGIC || magic == TALLY_PERFDATA_MAGIC_SWAPPED ||
	       !memcmp(bytes, TALLY_PERFDATA_MAGIC_1, sizeof(magic));
}

int tally_perfdata_is_file(int directory_fd, const char *path)
{
	struct stat file;
	uint8_t bytes[8];
	ssize_t got = 0;
	int fd = openat(directory_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &file) && S_ISREG(file.st_mode))
		got = read(fd, bytes, sizeof(bytes));
	int code = tally_errno_of((int)got);
	close(fd);
	if (code)
		return code;
	return got == sizeof(bytes) && tally_perfdata_begins(bytes, sizeof(bytes));
}

/* Checks the magic number and sets the byte order.  The second format's magic number tells the
 * order.  The first format's is a string; there the header's size tells it, which is never 4 GiB or
 * more. */
static bool check_magic(struct tally_perfdata *data, struct tally_disk_pipe_header *header)
{
	bool is_first = !memcmp(&header->magic, TALLY_PERFDATA_MAGIC_1, sizeof(header->magic));
	data->swap = header->magic == TALLY_PERFDATA_MAGIC_SWAPPED ||
		     (is_first && header->size > UINT32_MAX);
	if (data->swap)
		header->size = __builtin_bswap64(header->size);
	data->place.version = !is_first;
	return tally_perfdata_begins(&header->magic, sizeof(header->magic));
}

/* Reads a seekable file's content from a pipe to its end, because the features that describe the
 * events stand behind the data. */
static int slurp(struct tally_perfdata *data, struct tally_error *err)
{
	struct tally_source *source = &data->source;
	uint64_t most = tally_input_limit(TALLY_INPUT_RECORDING);
	size_t want = source->end + 1;
	while (tally_source_left(source, want) >= want) {
		want = source->end + 1;
		if (want > most)
			return tally_input_refuse(err, TALLY_INPUT_RECORDING, most,
						  "it comes through a pipe, so it must fit into "
						  "memory, and it is larger than");
	}
	if (source->failure)
		return tally_error_set(err, source->failure, "can't read the recording: %s",
				       tally_errno_text(source->failure));
	data->slurped = source->block;
	tally_block_hold(data->slurped);
	source->memory = source->window;
	source->memory_size = source->end;
	return 0;
}

int tally_perfdata_unpack(const void *bytes, size_t size, uint8_t **out, size_t *out_size,
			  struct tally_error *err)
{
	uint64_t most = tally_input_limit(TALLY_INPUT_UNPACKED);
	int result = tally_unpack(bytes, size, (size_t)most, out, out_size);
	if (result == -ENOPKG)
		return tally_error_set(err, result,
				       "unpacking it needs liblzma5 (xz) or zlib1g (gzip)");
	if (result == -ENOMEM)
		return tally_error_set(err, result, "out of memory while unpacking it");
	if (result == -EFBIG)
		return tally_input_refuse(err, TALLY_INPUT_UNPACKED, most,
					  "it is compressed, and unpacks to more than");
	if (result < 0)
		return tally_error_set(err, result, "it is damaged: it can't be unpacked");
	return 0;
}

/* If the whole file is compressed, unpacks it to memory.  Returns 0, or -errno with a message. */
static int unpack(struct tally_perfdata *data, struct tally_error *err)
{
	struct tally_source *source = &data->source;
	size_t left = tally_source_left(source, 16);
	if (!left || !tally_is_packed(tally_source_peek(source, left), left))
		return 0;
	int result = 0;
	if (!source->memory)
		result = slurp(data, err);
	size_t size;
	if (!result)
		result = tally_perfdata_unpack(source->memory, source->memory_size, &data->unpacked,
					       &size, err);
	if (result < 0)
		return result;
	source->memory = data->unpacked;
	source->memory_size = size;
	tally_source_seek(source, 0);
	return 0;
}

static int read_any_head(struct tally_perfdata *data, struct tally_error *err)
{
	int unpacked = unpack(data, err);
	if (unpacked < 0)
		return unpacked;
	struct tally_disk_pipe_header header;
	const uint8_t *bytes = tally_source_peek(&data->source, sizeof(header));
	if (!bytes && data->source.failure)
		return tally_error_set(err, data->source.failure, "can't read the recording: %s",
				       tally_errno_text(data->source.failure));
	size_t left = tally_source_left(&data->source, sizeof(header));
	if (!bytes && !left)
		return tally_error_set(err, -EBADMSG, "not a recording: the input is empty");
	if (!bytes)
		return not_a_recording(tally_source_peek(&data->source, left), left, err);
	memcpy(&header, bytes, sizeof(header));
	if (!check_magic(data, &header))
		return not_a_recording(bytes, sizeof(header), err);
	if (header.size == sizeof(header))
		return read_pipe_head(data);
	int result = 0;
	if (!data->source.memory)
		result = slurp(data, err);
	if (result)
		return result;
	return tally_perfdata_read_head(data, err);
}

/* Puts the file's name in front of the message. */
static void name_file(const char *path, struct tally_error *err)
{
	char message[sizeof(err->message)], name[200];
	if (!err)
		return;
	memcpy(message, err->message, sizeof(message));
	tally_terminal_clean_name(path, name, sizeof(name));
	snprintf(err->message, sizeof(err->message), "%s: %.500s", name, message);
}

static int open_source(struct tally_perfdata *data, const char *path, struct tally_error *err)
{
	struct stat status;
	bool is_stdin = strcmp(path, "-") == 0;
	int fd = STDIN_FILENO, result = 0;
	if (!is_stdin)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0)
		result = -errno;
	data->source.fd = fd;
	if (result) {
		tally_error_set(err, result, "can't open the recording: %s",
				tally_errno_text(result));
		if (result == -ENOENT)
			tally_error_hint(err,
					 "make one with tally record, or name another with -i");
		return result;
	}
	if (S_ISDIR(status.st_mode)) {
		fd = tally_directory_open(data, fd, err);
		if (fd < 0)
			return fd;
		close(data->source.fd);
		data->source.fd = fd;
		if (fstat(fd, &status) < 0)
			return tally_error_set(err, -errno, "can't open the recording: %s",
					       tally_errno_text(-errno));
	}
	if (!S_ISREG(status.st_mode))
		return 0;
	if (!status.st_size)
		return tally_error_set(err, -EBADMSG, "not a recording: the file is empty");
	result = take_file(data, fd, &status, &data->file);
	if (result < 0)
		return cannot_take(err, result);
	data->source.memory = data->file.bytes;
	data->source.memory_size = data->file.size;
	return 0;
}

/* True if the file should be read into blocks rather than walked in its mapping.  Small files are
 * not worth it.  Neither are records with copied stacks, since most of a copy is never read. */
static bool is_worth_reading(const struct tally_perfdata *data)
{
	if (!data->file.bytes || data->file.is_copy || data->unpacked ||
	    data->source.memory_size < READ_FILE_BYTES_MIN)
		return false;
	for (size_t i = 0; i < data->event_count; i++)
		if (data->events[i].attr.sample_type & TALLY_SAMPLE_STACK_USER &&
		    data->events[i].attr.sample_stack_user >= STACK_COPY_BYTES_MIN)
			return false;
	return true;
}

static struct tally_perfdata *new_reader(struct tally_error *err)
{
	struct tally_perfdata *data = calloc(1, sizeof(*data));
	if (!data)
		tally_error_set(err, -ENOMEM, "no memory for the recording");
	else
		*data = (struct tally_perfdata){
			.source = { .blocks = &data->blocks, .fd = -1 },
			.lost_before = tally_lost_pages(NULL),
		};
	return data;
}

int tally_perfdata_open(const char *path, struct tally_perfdata **out, struct tally_error *err)
{
	struct tally_error ignored;
	struct tally_perfdata *data = new_reader(err);
	*out = NULL;
	if (!data)
		return -ENOMEM;
	if (!err)
		err = &ignored;
	int result = open_source(data, path, err);
	if (!result)
		result = read_any_head(data, err);
	if (result) {
		name_file(strcmp(path, "-") ? path : "standard input", err);
		tally_perfdata_close(data);
		return result;
	}
	data->source.reads = is_worth_reading(data);
	*out = data;
	return 0;
}

int tally_perfdata_open_memory(const void *bytes, size_t size, struct tally_perfdata **out,
			       struct tally_error *err)
{
	struct tally_error ignored;
	struct tally_perfdata *data = new_reader(err);
	*out = NULL;
	if (!data)
		return -ENOMEM;
	if (!err)
		err = &ignored;
	data->source.memory = bytes ? bytes : (const void *)"";
	data->source.memory_size = size;
	int result = read_any_head(data, err);
	if (result) {
		tally_perfdata_close(data);
		return result;
	}
	*out = data;
	return 0;
}

void tally_perfdata_replace_data(struct tally_perfdata *data, const void *records, size_t size)
{
	struct tally_source *source = &data->source;
	source->memory = records;
	source->memory_size = data->data_end = size;
	source->reads = false;
	tally_source_seek(source, 0);
	data->is_unfinished = false;
}

void tally_perfdata_close(struct tally_perfdata *data)
{
	if (!data)
		return;
	tally_unpacker_release(data); /* first, because its thread reads the mapping */
	release_file(&data->file);
	if (data->source.fd > STDERR_FILENO)
		close(data->source.fd);
	tally_directory_release(data);
	tally_source_release(&data->source);
	tally_block_drop(&data->blocks, data->slurped);
	tally_blocks_release(&data->blocks);
	tally_map_release(&data->event_by_id);
	tally_map_release(&data->unnamed_tracepoints);
	tally_map_release(&data->tracepoint_by_id);
	tally_vector_release(&data->build_ids);
	tally_vector_release(&data->tracepoints);
	tally_arena_release(&data->arena);
	free(data->unpacked);
	free(data->aligned);
	free(data);
}
