/* Reading a recording, whoever wrote it and whatever became of it.
 *
 * Nothing in the bytes is believed: each record must fit in what is left, and what is damaged ends the data there
 * and is kept for tally_perfdata_damage(), since all before it is good.  A file that its recorder did not finish
 * has a data size of zero and is read to its end.
 *
 * Records are handed out in place where they lie aligned (tally's own always do; perf's behind a COMPRESSED record
 * of odd size don't), else from a copy.
 */
#include "abi/byte_swap.h"
#include "base/reader.h"
#include "perfdata/perfdata_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_FILE_BYTES_MIN = 1 << 20, STACK_COPY_BYTES_MIN = 2048 };

void tally_perfdata_note_damage(struct tally_perfdata *data, bool ends, uint64_t offset, const char *format, ...)
{
	char what[256];
	va_list args;
	if (data->damage.code && (!ends || data->ended)) {
		data->ended = data->ended || ends;
		return;
	}
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	tally_error_set(&data->damage, -EBADMSG, "the recording is damaged at offset %llu: %s",
			(unsigned long long)offset, what);
	data->damage.position = offset <= INT_MAX ? (int)offset : TALLY_NO_POSITION;
	tally_error_hint(&data->damage, ends ? "everything before it was used" : "everything else was used");
	data->ended = data->ended || ends;
}

static int read_pipe_head(struct tally_perfdata *data)
{
	data->is_pipe = true;
	data->data_end = UINT64_MAX;
	tally_source_skip(&data->source, sizeof(struct tally_disk_pipe_header));
	return 0;
}

/* What a file that is no recording is, by its first bytes; NULL: no idea. */
static const char *foreign_kind(const uint8_t *bytes, size_t size)
{
	static const struct { const char *magic; size_t length; const char *kind; } kinds[] = {
		{ "\x7f" "ELF", 4, "an ELF file: a program or library" },
		{ "\x1f\x8b", 2, "compressed with gzip: unpack it first" },
		{ "\x28\xb5\x2f\xfd", 4, "compressed with zstd: unpack it first" },
		{ "\xfd" "7zXZ", 5, "compressed with xz: unpack it first" },
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
		printable += (bytes[i] >= ' ' && bytes[i] != 0x7f) || bytes[i] == '\n' || bytes[i] == '\t' || bytes[i] == '\r';
	return printable == size ? "text" : NULL;
}

static int not_a_recording(const uint8_t *bytes, size_t size, struct tally_error *err)
{
	const char *kind = foreign_kind(bytes, size);
	uint64_t magic = TALLY_PERFDATA_MAGIC;
	if (size < 16 && !memcmp(bytes, &magic, size < sizeof(magic) ? size : sizeof(magic)))
		return tally_error_set(err, -EBADMSG, "not a recording: only the first %zu bytes of one", size);
	if (kind)
		tally_error_set(err, -EBADMSG, "not a recording: it is %s", kind);
	else
		tally_error_set(err, -EBADMSG, "not a recording: it does not begin with PERFILE2");
	tally_error_hint(err, "recordings are made by tally record or perf record");
	return -EBADMSG;
}

/* What begins like a recording.  The magic number of the second format tells the byte order; the first format's is a
 * string, and its size does: nobody has a header of 4 GiB. */
static bool see_magic(struct tally_perfdata *data, struct tally_disk_pipe_header *header)
{
	bool is_first = !memcmp(&header->magic, TALLY_PERFDATA_MAGIC_1, sizeof(header->magic));
	data->swap = header->magic == TALLY_PERFDATA_MAGIC_SWAPPED || (is_first && header->size > UINT32_MAX);
	if (data->swap)
		header->size = __builtin_bswap64(header->size);
	data->place.version = !is_first;
	return is_first || data->swap || header->magic == TALLY_PERFDATA_MAGIC;
}

/* A seekable file's content down a pipe: taken whole, since its events stand behind what they describe. */
static int slurp(struct tally_perfdata *data, struct tally_error *err)
{
	struct tally_source *source = &data->source;
	size_t want = source->end + 1;
	while (tally_source_left(source, want) >= want)
		want = source->end + 1;
	if (source->failure)
		return tally_error_set(err, source->failure, "can't read the recording: %s",
				       tally_errno_text(source->failure));
	data->slurped = source->block;
	tally_block_hold(data->slurped);
	source->memory = source->window;
	source->memory_size = source->end;
	return 0;
}

static int read_any_head(struct tally_perfdata *data, struct tally_error *err)
{
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
	if (!see_magic(data, &header))
		return not_a_recording(bytes, sizeof(header), err);
	if (header.size == sizeof(header))
		return read_pipe_head(data);
	int result = data->source.memory ? 0 : slurp(data, err);
	return result ? result : tally_perfdata_read_head(data, err);
}

/* Puts the file's name in front of a message. */
static void name_file(const char *path, struct tally_error *err)
{
	char message[sizeof(err->message)];
	if (!err)
		return;
	memcpy(message, err->message, sizeof(message));
	snprintf(err->message, sizeof(err->message), "%.200s: %.500s", path, message);
}

static int open_source(struct tally_perfdata *data, const char *path, struct tally_error *err)
{
	struct stat status;
	bool is_stdin = strcmp(path, "-") == 0;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	int result = fd < 0 || fstat(fd, &status) < 0 ? -errno : 0;
	data->source.fd = fd;
	if (result) {
		tally_error_set(err, result, "can't open the recording: %s", tally_errno_text(result));
		if (result == -ENOENT)
			tally_error_hint(err, "make one with tally record, or name another with -i");
		return result;
	}
	if (S_ISDIR(status.st_mode)) {
		fd = tally_directory_open(data, fd, err);
		if (fd < 0)
			return fd;
		close(data->source.fd);
		data->source.fd = fd;
		if (fstat(fd, &status) < 0)
			return tally_error_set(err, -errno, "can't open the recording: %s", tally_errno_text(-errno));
	}
	if (!S_ISREG(status.st_mode))
		return 0;
	if (!status.st_size)
		return tally_error_set(err, -EBADMSG, "not a recording: the file is empty");
	data->mapping = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data->mapping == MAP_FAILED) {
		result = -errno;
		data->mapping = NULL;
		return tally_error_set(err, result, "can't map the recording: %s", tally_errno_text(result));
	}
	data->mapping_size = (size_t)status.st_size;
	data->source.memory = data->mapping;
	data->source.memory_size = (size_t)status.st_size;
	return 0;
}

/* Of records that are mostly copies of stacks little is looked at. */
static bool is_worth_reading(const struct tally_perfdata *data)
{
	if (!data->mapping || data->source.memory_size < READ_FILE_BYTES_MIN)
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
		data->source = (struct tally_source){ .blocks = &data->blocks, .fd = -1 };
	return data;
}

int tally_perfdata_open(const char *path, struct tally_perfdata **out, struct tally_error *err)
{
	struct tally_error unseen;
	struct tally_perfdata *data = new_reader(err);
	*out = NULL;
	if (!data)
		return -ENOMEM;
	err = err ? err : &unseen;
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

int tally_perfdata_open_memory(const void *bytes, size_t size, struct tally_perfdata **out, struct tally_error *err)
{
	struct tally_error unseen;
	struct tally_perfdata *data = new_reader(err);
	*out = NULL;
	if (!data)
		return -ENOMEM;
	err = err ? err : &unseen;
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

/* Ids follow one another, so that their low bits tell them apart. */
static const struct tally_recorded_event *event_by_id(struct tally_perfdata *data, uint64_t id)
{
	uint32_t index;
	if (data->event_cache[id % TALLY_EVENT_CACHE].id == id && data->event_cache[id % TALLY_EVENT_CACHE].index_plus_1) {
		index = data->event_cache[id % TALLY_EVENT_CACHE].index_plus_1 - 1;
	} else {
		const uint64_t *found = tally_map_get(&data->event_by_id, id);
		index = found ? (uint32_t)*found : 0;
		data->event_cache[id % TALLY_EVENT_CACHE].id = id;
		data->event_cache[id % TALLY_EVENT_CACHE].index_plus_1 = index + 1;
	}
	return &data->events[index];
}

static const struct tally_recorded_event *event_of(struct tally_perfdata *data, const uint8_t *bytes,
						   const struct tally_record_header *header, bool swap)
{
	uint64_t id;
	if (data->event_count > 1 && header->type < TALLY_RECORD_USER_START &&
	    tally_field_of(&data->id_places, bytes, header, &id))
		return event_by_id(data, swap ? __builtin_bswap64(id) : id);
	return data->event_count ? &data->events[0] : NULL;
}

const struct tally_recorded_event *tally_perfdata_event_of(struct tally_perfdata *data, const void *bytes,
							   const struct tally_record_header *header)
{
	return event_of(data, bytes, header, false);
}

struct tally_span tally_perfdata_span(const struct tally_perfdata *data)
{
	const struct tally_unpacker *unpacker = &data->unpacker;
	const struct tally_source *source = &data->source;
	if (!data->event_count || data->swap)
		return (struct tally_span){ 0 };
	if (unpacker->start < unpacker->end)
		return (struct tally_span){ .at = unpacker->block->bytes + unpacker->start,
					    .end = unpacker->block->bytes + unpacker->end,
					    .unpacked = true,
					    .file_offset = unpacker->offset,
					    .block = unpacker->block };
	uint64_t limit = data->data_end > source->offset ? data->data_end - source->offset : 0;
	size_t left = source->end - source->used;
	if (unpacker->has_input || data->ended || data->payload || !left || !limit)
		return (struct tally_span){ 0 };
	const uint8_t *at = source->window + source->used;
	return (struct tally_span){ .at = at, .end = at + (left < limit ? left : (size_t)limit),
				    .file_offset = source->offset, .block = source->block };
}

void tally_perfdata_advance(struct tally_perfdata *data, const struct tally_span *span, const uint8_t *to)
{
	size_t size = (size_t)(to - span->at);
	if (span->unpacked) {
		data->unpacker.start += size;
	} else {
		data->source.used += size;
		data->source.offset += size;
	}
}

struct tally_span tally_perfdata_last(const struct tally_perfdata *data, const struct tally_raw_record *record,
				      bool *is_copy)
{
	const uint8_t *at = record->bytes;
	*is_copy = at == (const uint8_t *)data->aligned;
	return (struct tally_span){
		.at = at,
		.end = at + record->size,
		.unpacked = data->last_unpacked,
		.file_offset = record->file_offset,
		.block = *is_copy ? NULL : data->last_unpacked ? data->unpacker.block : data->source.block,
	};
}

/* A copy of the record, for which there is room once. */
static uint8_t *copy_record(struct tally_perfdata *data, const uint8_t *bytes, size_t size)
{
	if (!data->aligned)
		data->aligned = malloc(TALLY_RECORD_SIZE_MAX + 1);
	if (data->aligned)
		memcpy(data->aligned, bytes, size);
	return (uint8_t *)data->aligned;
}

/* The record in this machine's byte order; NULL without memory. */
static const uint8_t *in_our_order(struct tally_perfdata *data, const uint8_t *bytes)
{
	if (!data->swap)
		return bytes;
	const struct tally_record_header header = tally_header_at(bytes, true);
	const struct tally_recorded_event *event = event_of(data, bytes, &header, true);
	uint8_t *copy = copy_record(data, bytes, header.size);
	if (!copy)
		return NULL;
	memcpy(copy, &header, sizeof(header));
	if (header.type >= TALLY_RECORD_USER_START)
		tally_tool_record_swap(copy, tally_perfdata_cpus(data));
	else if (event)
		tally_record_swap(&event->attr, copy);
	return copy;
}

/* Hands a record out, aligned. */
static int give(struct tally_perfdata *data, const uint8_t *bytes, uint64_t offset, struct tally_raw_record *record)
{
	struct tally_record_header header;
	memcpy(&header, bytes, sizeof(header));
	if (!data->event_count && header.type < TALLY_RECORD_USER_START) {
		tally_perfdata_note_damage(data, true, offset, "a record stands before any event is described");
		return 0;
	}
	if ((uintptr_t)bytes % 8)
		bytes = copy_record(data, bytes, header.size);
	if (!bytes)
		return -ENOMEM;
	*record = (struct tally_raw_record){ .bytes = bytes, .size = header.size, .file_offset = offset,
					     .event = tally_perfdata_event_of(data, bytes, &header) };
	return 1;
}

/* The next record as it lies in the source, NULL at the end or at damage. */
static const uint8_t *next_whole(struct tally_perfdata *data, struct tally_record_header *header)
{
	struct tally_source *source = &data->source;
	uint64_t offset = source->offset;
	uint64_t limit = data->data_end > offset ? data->data_end - offset : 0;
	size_t left = limit ? tally_source_left(source, sizeof(*header)) : 0;
	const char *ending = data->is_unfinished ? "its recorder did not finish it" : "it ends within a record";
	if (!left) {
		if (data->is_unfinished)
			tally_perfdata_note_damage(data, false, offset, "%s", ending);
		else if (limit && !data->is_pipe)
			tally_perfdata_note_damage(data, true, offset, "the file ends, %llu bytes before its data does",
						   (unsigned long long)limit);
		return NULL;
	}
	const uint8_t *bytes = limit < sizeof(*header) ? NULL : tally_source_peek(source, sizeof(*header));
	if (!bytes) {
		tally_perfdata_note_damage(data, true, offset, "%s", ending);
		return NULL;
	}
	*header = tally_header_at(bytes, data->swap);
	if (header->size < sizeof(*header)) {
		tally_perfdata_note_damage(data, true, offset, "a record claims a size of %u bytes", header->size);
		return NULL;
	}
	bytes = limit < header->size ? NULL : tally_source_peek(source, header->size);
	if (!bytes)
		tally_perfdata_note_damage(data, true, offset, "%s: its %u bytes are not all there", ending,
					   header->size);
	return bytes;
}

uint64_t tally_record_payload(const uint8_t *record, bool swap)
{
	const struct tally_record_header header = tally_header_at(record, swap);
	struct tally_reader reader;
	tally_reader_init(&reader, record, header.size, swap);
	tally_reader_seek(&reader, sizeof(header));
	if (header.type == TALLY_RECORD_AUXTRACE)
		return tally_reader_u64(&reader);
	return header.type == TALLY_RECORD_HEADER_TRACING_DATA ? tally_reader_u32(&reader) : 0;
}

/* Bytes that follow a record and are none; they must be there. */
static int take_payload(struct tally_perfdata *data, const struct tally_record_header *header,
			const uint8_t **bytes)
{
	uint64_t offset = data->source.offset;
	data->payload = tally_record_payload(*bytes, data->swap);
	if (header->type != TALLY_RECORD_HEADER_TRACING_DATA || header->size < 12)
		return 0;
	const uint8_t *whole = tally_source_peek(&data->source, (size_t)header->size + data->payload);
	if (!whole) {
		tally_perfdata_note_damage(data, true, offset, "the tracing data ends early");
		*bytes = NULL;
		return 0;
	}
	*bytes = whole;
	return tally_perfdata_apply_tracing(data, whole + header->size, data->payload, offset);
}

static int apply_and_give(struct tally_perfdata *data, const uint8_t *bytes, size_t size, uint64_t offset,
			  struct tally_raw_record *record)
{
	bytes = in_our_order(data, bytes);
	if (!bytes)
		return -ENOMEM;
	int result = tally_perfdata_apply_record(data, bytes, size, offset);
	return result ? result : give(data, bytes, offset, record);
}

/* One step on: 1 a record, 0 the end, -EAGAIN to be called again. */
static int step(struct tally_perfdata *data, struct tally_raw_record *record)
{
	const uint8_t *bytes;
	struct tally_record_header header;
	int result = tally_unpacker_next(data, &bytes);
	if (result > 0) {
		header = tally_header_at(bytes, data->swap);
		if (tally_record_is_compressed(&header)) {
			tally_perfdata_note_damage(data, true, data->unpacker.offset, "compressed data in compressed data");
			data->unpacker.start = data->unpacker.end;
			data->unpacker.has_input = false;
			return 0;
		}
		data->last_unpacked = true;
		return apply_and_give(data, bytes, header.size, data->unpacker.offset, record);
	}
	if (result < 0 || data->ended)
		return result;
	uint64_t offset = data->source.offset, payload = data->payload;
	data->payload = 0;
	if (payload && (payload > data->data_end - offset || !tally_source_skip(&data->source, payload))) {
		tally_perfdata_note_damage(data, true, offset, "%llu bytes of a trace are not all there",
					   (unsigned long long)payload);
		return 0;
	}
	offset = data->source.offset;
	if (offset >= data->data_end && tally_directory_next(data))
		return -EAGAIN;
	bytes = next_whole(data, &header);
	if (!bytes) {
		if (!data->ended && data->unpacker.start < data->unpacker.end)
			tally_perfdata_note_damage(data, true, data->unpacker.offset,
						   "compressed data ends within a record");
		return 0;
	}
	result = take_payload(data, &header, &bytes);
	if (result || !bytes)
		return result;
	tally_source_skip(&data->source, header.size);
	if (tally_record_is_compressed(&header)) {
		result = tally_unpacker_feed(data, bytes, offset);
		return result ? result : -EAGAIN;
	}
	data->last_unpacked = false;
	return apply_and_give(data, bytes, header.size, offset, record);
}

int tally_perfdata_next(struct tally_perfdata *data, struct tally_raw_record *record, struct tally_error *err)
{
	int result = -EAGAIN;
	while (result == -EAGAIN)
		result = step(data, record);
	if (result == 0 && data->source.failure)
		result = data->source.failure;
	if (result == -ENOMEM)
		return tally_error_set(err, result, "no memory to read the recording");
	if (result < 0)
		return tally_error_set(err, -EIO, "can't read the recording: %s", tally_errno_text(result));
	return result;
}

const struct tally_recorded_event *tally_perfdata_events(const struct tally_perfdata *data, size_t *count)
{
	*count = data->event_count;
	return data->events;
}

const struct tally_recorded_event *tally_perfdata_event_of_id(const struct tally_perfdata *data, uint64_t id)
{
	const uint64_t *index = tally_map_get(&data->event_by_id, id);
	return index ? &data->events[*index] : NULL;
}

struct tally_feature_bytes tally_perfdata_feature(const struct tally_perfdata *data, unsigned feature)
{
	return feature < TALLY_FEATURE_MAX ? data->features[feature] : (struct tally_feature_bytes){ 0 };
}

const char *tally_perfdata_feature_text(const struct tally_perfdata *data, unsigned feature)
{
	struct tally_feature_bytes bytes = tally_perfdata_feature(data, feature);
	uint32_t length;
	if (!bytes.bytes || bytes.size < sizeof(length))
		return NULL;
	memcpy(&length, bytes.bytes, sizeof(length));
	if (length > bytes.size - sizeof(length) || !memchr(bytes.bytes + sizeof(length), 0, length))
		return NULL;
	return (const char *)bytes.bytes + sizeof(length);
}

const struct tally_recorded_build_id *tally_perfdata_build_ids(const struct tally_perfdata *data, size_t *count)
{
	*count = data->build_ids.count;
	return data->build_ids.items;
}

bool tally_perfdata_tracepoint_format(const struct tally_perfdata *data, uint64_t event_id, const char **format,
				      size_t *length)
{
	const uint64_t *index = tally_map_get(&data->tracepoint_by_id, event_id);
	if (!index)
		return false;
	*format = data->tracepoints.items[*index].text;
	*length = data->tracepoints.items[*index].length;
	return true;
}

bool tally_perfdata_is_pipe(const struct tally_perfdata *data)
{
	return data->is_pipe;
}

struct tally_perfdata_place tally_perfdata_place(const struct tally_perfdata *data)
{
	return data->place;
}

uint64_t tally_perfdata_size(const struct tally_perfdata *data)
{
	return data->is_pipe ? 0 : data->source.memory_size;
}

const struct tally_error *tally_perfdata_damage(const struct tally_perfdata *data)
{
	return data->damage.code ? &data->damage : NULL;
}

void tally_perfdata_close(struct tally_perfdata *data)
{
	if (!data)
		return;
	tally_unpacker_release(data); /* its thread reads the mapping */
	if (data->mapping)
		munmap(data->mapping, data->mapping_size);
	if (data->source.fd > STDERR_FILENO)
		close(data->source.fd);
	tally_directory_release(data);
	tally_source_release(&data->source);
	tally_block_drop(&data->blocks, data->slurped);
	tally_blocks_release(&data->blocks);
	tally_map_release(&data->event_by_id);
	tally_map_release(&data->tracepoint_by_id);
	tally_vector_release(&data->build_ids);
	tally_vector_release(&data->tracepoints);
	tally_arena_release(&data->arena);
	free(data->aligned);
	free(data);
}
