/* Writes a recording so that it is readable whatever happens.
 *
 * A file begins with its header, ids and attributes, written at once with a data size of zero.  A
 * reader then takes everything up to the end of the file, so that a killed recorder's file is
 * usable. finish() appends the feature sections and writes the header again.  All writes are at
 * explicit offsets.  `end` moves over whole records only, so the data still ends at a record after
 * a full disk: finish() cuts the torn rest off.  If the features don't fit then, the last of the
 * data makes room for them, since names and build-ids serve all the rest.  When that would cost
 * more than an eighth of the data, the largest features are left out instead.
 *
 * Records gather in `pending` until they make a chunk: recorders drain rings a few records at a
 * time, while write(2) and zstd work better on more.  A pipe's reader may be waiting, so the
 * recorder flushes after each pass.
 */
#include "base/buffer.h"
#include "base/extremes.h"
#include "base/vector.h"
#include "perfdata/perfdata.h"
#include "perfdata/perfdata_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

struct tally_perfdata_writer {
	int fd;
	bool is_pipe;
	const struct tally_recorded_event *events;
	size_t event_count;
	uint32_t attr_size;
	int failure;          /* -errno of the first write that failed; sticks */
	uint64_t data_offset; /* 0 in a pipe */
	size_t *head_ids;     /* by event: number of ids written before the data */
	/* file offset of all ids, when some came after the start; otherwise 0 */
	uint64_t late_ids_at;
	uint64_t end; /* offset of the next write, behind the last whole record */
	bool finished;
	uint64_t feature_bits[TALLY_FEATURE_MAX / 64]; /* features that were written */
	bool has_own;          /* has tally's own section, which has no bit */
	uint64_t features_end; /* end of the file once it is finished; 0: without features */
	/* Ends of records, every BOUNDARY_BYTES or so, where the data may be cut to make room for
	 * features. */
	TALLY_VECTOR(uint64_t) boundaries;

	struct tally_buffer features[TALLY_FEATURE_MAX];
	bool has_feature[TALLY_FEATURE_MAX];

	/* Whole records that are not yet written. */
	uint8_t *pending;
	size_t pending_size;

	/* Compression; `compressor` is NULL without. */
	ZSTD_CCtx *compressor;
	int level;
	uint8_t *packed;      /* one COMPRESSED record */
	size_t chunk_target;  /* uncompressed bytes that should fit in one COMPRESSED record */
	size_t chunk_largest; /* largest chunk so far, in uncompressed bytes */
	uint64_t bytes_in, bytes_out; /* of all chunks: before and after compression */
};

/* Capacity of `pending`, and the largest chunk. */
#define PENDING_MAX ((size_t)1 << 20)

/* Returns the length of the whole records at the start of `bytes` that end within `limit` bytes. */
static size_t records_whole(const void *bytes, size_t size, size_t limit)
{
	size_t at = 0, end = tally_min_u64(size, limit);
	struct tally_record_header header;
	while (end - at >= sizeof(header)) {
		memcpy(&header, (const uint8_t *)bytes + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > end - at)
			break;
		at += header.size;
	}
	return at;
}

/* Waits until a pipe has room.  Pipes may be non-blocking: the parent process decides. */
static void wait_for_room(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLOUT };
	poll(&pollfd, 1, -1);
}

/* Writes everything at an offset (a pipe: at its end), despite short writes and signals.  `done`
 * receives the number of bytes written.  Returns 0 or -errno. */
static int put_at(const struct tally_perfdata_writer *writer, const void *bytes, size_t size,
		  uint64_t offset, size_t *done)
{
	for (*done = 0; *done < size;) {
		const uint8_t *at = (const uint8_t *)bytes + *done;
		ssize_t wrote;
		if (writer->is_pipe)
			wrote = write(writer->fd, at, size - *done);
		else
			wrote = pwrite(writer->fd, at, size - *done, (off_t)(offset + *done));
		if (wrote < 0 && errno == EAGAIN)
			wait_for_room(writer->fd);
		if (wrote < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (wrote < 0)
			return -errno;
		if (wrote == 0)
			return -ENOSPC;
		*done += (size_t)wrote;
	}
	return 0;
}

enum { BOUNDARY_BYTES = 64 << 10 };

/* Without memory for it, a boundary is not noted; there is then one place fewer where the data can
 * be cut. */
static void note_boundary(struct tally_perfdata_writer *writer, uint64_t end)
{
	size_t count = writer->boundaries.count;
	if (!writer->is_pipe &&
	    (!count || end - writer->boundaries.items[count - 1] >= BOUNDARY_BYTES))
		(void)tally_vector_push(&writer->boundaries, end);
}

/* Appends to the file or pipe at `end`.  A partial write does not move `end`.  -errno sticks. */
static int put(struct tally_perfdata_writer *writer, const void *bytes, size_t size)
{
	size_t done;
	if (writer->failure)
		return writer->failure;
	writer->failure = put_at(writer, bytes, size, writer->end, &done);
	if (!writer->failure) {
		note_boundary(writer, writer->end);
		writer->end += size;
	}
	return writer->failure;
}

/* Appends whole records uncompressed.  Records written before a failure count. */
static int put_records(struct tally_perfdata_writer *writer, const void *bytes, size_t size)
{
	size_t done;
	if (writer->failure)
		return writer->failure;
	writer->failure = put_at(writer, bytes, size, writer->end, &done);
	if (writer->failure)
		size = records_whole(bytes, size, done);
	for (size_t at = 0, part; at < size; at += part) {
		part = records_whole((const uint8_t *)bytes + at, size - at, BOUNDARY_BYTES);
		note_boundary(writer, writer->end);
		writer->end += part;
	}
	return writer->failure;
}

/* The parts before the data: header, ids, attributes. */

/* Returns how many of the event's ids its section in the attributes has. */
static size_t ids_in_section(const struct tally_perfdata_writer *writer, size_t event)
{
	if (writer->late_ids_at)
		return writer->events[event].id_count;
	return writer->head_ids[event];
}

static uint64_t head_ids_bytes(const struct tally_perfdata_writer *writer)
{
	uint64_t count = 0;
	for (size_t i = 0; i < writer->event_count; i++)
		count += writer->head_ids[i];
	return count * 8;
}

/* Writes the header, attributes and ids, with the given size of the data. */
static int put_head(struct tally_perfdata_writer *writer, const uint64_t *feature_bits,
		    uint64_t data_size)
{
	struct tally_buffer head = { 0 };
	uint64_t entry_bytes = writer->attr_size + sizeof(struct tally_disk_section),
		 ids = head_ids_bytes(writer);
	struct tally_disk_header header = {
		.magic = TALLY_PERFDATA_MAGIC,
		.size = sizeof(header),
		.attr_size = entry_bytes,
		.attrs = { sizeof(header) + ids, writer->event_count * entry_bytes },
		.data = { sizeof(header) + ids + writer->event_count * entry_bytes, data_size },
	};
	if (feature_bits)
		memcpy(header.features, feature_bits, sizeof(header.features));
	tally_buffer_append(&head, &header, sizeof(header));
	for (size_t i = 0; i < writer->event_count; i++)
		tally_buffer_append(&head, writer->events[i].ids, 8 * writer->head_ids[i]);
	uint64_t ids_at = writer->late_ids_at ? writer->late_ids_at : sizeof(header);
	for (size_t i = 0; i < writer->event_count; i++) {
		struct tally_attr attr = writer->events[i].attr;
		struct tally_disk_section section = { ids_at, 8 * ids_in_section(writer, i) };
		attr.size = writer->attr_size;
		ids_at += section.size;
		tally_buffer_append(&head, &attr, writer->attr_size);
		tally_buffer_append(&head, &section, sizeof(section));
	}
	int result = -ENOMEM;
	size_t done;
	if (!head.failed)
		result = put_at(writer, head.bytes, head.length, 0, &done);
	if (!result)
		writer->data_offset = header.data.offset;
	tally_buffer_release(&head);
	return result;
}

/* Writes all ids behind the features when some ids came after the start, since there is no room for
 * them before the data.  Write the head after this. */
static int put_late_ids(struct tally_perfdata_writer *writer)
{
	struct tally_buffer ids = { 0 };
	bool any = false;
	size_t done;
	for (size_t i = 0; i < writer->event_count; i++) {
		any |= writer->events[i].id_count > writer->head_ids[i];
		tally_buffer_append(&ids, writer->events[i].ids, 8 * writer->events[i].id_count);
	}
	int result = ids.failed ? -ENOMEM : 0;
	if (any && !result)
		result = put_at(writer, ids.bytes, ids.length, writer->features_end, &done);
	if (any && !result) {
		writer->late_ids_at = writer->features_end;
		writer->features_end += ids.length;
	}
	tally_buffer_release(&ids);
	return result;
}

/* Writes a recording to a pipe: records before the data replace a file's header. */

static void put_padded(struct tally_buffer *out, const void *bytes, size_t size)
{
	static const char zeros[8];
	tally_buffer_append(out, bytes, size);
	tally_buffer_append(out, zeros, -size & 7);
}

static void put_attr(struct tally_buffer *out, const struct tally_recorded_event *event,
		     uint32_t attr_size)
{
	struct tally_attr attr = event->attr;
	struct tally_record_header header = { .type = TALLY_RECORD_HEADER_ATTR };
	size_t size = sizeof(header) + attr_size + 8 * event->id_count;
	/* The format limits a record to some 8,000 ids.  Further ids are left out; readers
	 * attribute their records to the first event. */
	if (size > TALLY_RECORD_SIZE_ALIGNED)
		size = TALLY_RECORD_SIZE_ALIGNED;
	header.size = (uint16_t)size;
	attr.size = attr_size;
	tally_buffer_append(out, &header, sizeof(header));
	tally_buffer_append(out, &attr, attr_size);
	tally_buffer_append(out, event->ids, size - sizeof(header) - attr_size);
}

static void put_name(struct tally_buffer *out, const struct tally_recorded_event *event)
{
	struct tally_disk_event_update update = { .header = { .type = TALLY_RECORD_EVENT_UPDATE },
						  .type = TALLY_EVENT_UPDATE_NAME };
	if (!event->name || !event->id_count)
		return;
	size_t length = strlen(event->name) + 1;
	if (length > TALLY_RECORD_SIZE_ALIGNED - sizeof(update))
		return;
	update.id = event->ids[0];
	update.header.size = (uint16_t)((sizeof(update) + length + 7) & ~(size_t)7);
	tally_buffer_append(out, &update, sizeof(update));
	put_padded(out, event->name, length);
}

static int pipe_head(struct tally_perfdata_writer *writer)
{
	struct tally_buffer out = { 0 };
	struct tally_disk_pipe_header header = { TALLY_PERFDATA_MAGIC, sizeof(header) };
	tally_buffer_append(&out, &header, sizeof(header));
	for (size_t i = 0; i < writer->event_count; i++)
		put_attr(&out, &writer->events[i], writer->attr_size);
	for (size_t i = 0; i < writer->event_count; i++)
		put_name(&out, &writer->events[i]);
	int result = -ENOMEM;
	if (!out.failed)
		result = put(writer, out.bytes, out.length);
	tally_buffer_release(&out);
	return result;
}

static void put_tracing_data(struct tally_buffer *out, const void *bytes, size_t size)
{
	struct tally_disk_tracing_record record = {
		.header = { .type = TALLY_RECORD_HEADER_TRACING_DATA, .size = sizeof(record) },
		.size = (uint32_t)((size + 7) & ~(size_t)7),
	};
	tally_buffer_append(out, &record, sizeof(record));
	put_padded(out, bytes, size);
}

static void put_feature_record(struct tally_buffer *out, unsigned feature, const void *bytes,
			       size_t size)
{
	struct tally_disk_feature_record record = {
		.header = { .type = TALLY_RECORD_HEADER_FEATURE }, .feature = feature
	};
	if (size > TALLY_RECORD_SIZE_ALIGNED - sizeof(record))
		return;
	record.header.size = (uint16_t)((sizeof(record) + size + 7) & ~(size_t)7);
	tally_buffer_append(out, &record, sizeof(record));
	put_padded(out, bytes, size);
}

/* perf gives up on a feature that it doesn't know: Linux 6.1's ends at PMU_CAPS. */
static bool is_known_to_perf(unsigned feature)
{
	return feature <= TALLY_FEATURE_PMU_CAPS;
}

static int pipe_feature(struct tally_perfdata_writer *writer, unsigned feature, const void *bytes,
			size_t size)
{
	struct tally_buffer out = { 0 };
	if (feature == TALLY_FEATURE_TRACING_DATA)
		put_tracing_data(&out, bytes, size);
	else if (feature == TALLY_FEATURE_BUILD_ID) /* made of records already */
		tally_buffer_append(&out, bytes, size);
	else if (is_known_to_perf(feature))
		put_feature_record(&out, feature, bytes, size);
	int result = out.failed ? -ENOMEM : writer->failure;
	if (!result && out.length)
		result = put(writer, out.bytes, out.length);
	tally_buffer_release(&out);
	return result;
}

/* COMPRESSED records: each contains one whole zstd frame of whole records.
 *
 * perf's own recorder runs one zstd stream through all of them.  Separate frames compress slightly
 * worse, but a reader can unpack them in any order and on any thread, and can go on behind a
 * damaged one.
 *
 * A record is smaller than 64 KiB.  The writer guesses from the last chunk's ratio how much to
 * compress, and halves the guess when the result doesn't fit. zstd gives up as soon as the output
 * is full, so a wrong guess costs little.
 *
 * If needed, a skippable frame in front makes the record's size a multiple of 8.  Then the records
 * behind it stay aligned and are read in place.  (It can't stand behind: perf 6.1's
 * zstd_decompress_stream() misplaces its output when more data follows the frame that wrote
 * output.)
 */

enum {
	CHUNK_START = 256 << 10,
	CHUNK_MIN = 16 << 10,
	SKIPPABLE_HEADER = 8,
	PADDING_MAX = SKIPPABLE_HEADER + 7,
	HEADER = sizeof(struct tally_record_header),
	FRAME_MAX = TALLY_RECORD_SIZE_ALIGNED - HEADER - PADDING_MAX,
};

static int compress_init(struct tally_perfdata_writer *writer, int level, struct tally_error *err)
{
	if (level < 1 || level > ZSTD_maxCLevel())
		return tally_error_set(err, -EINVAL,
				       "there is no compression level %d; levels are 0 to %d",
				       level, ZSTD_maxCLevel());
	writer->compressor = ZSTD_createCCtx();
	writer->packed = malloc(TALLY_RECORD_SIZE_MAX);
	if (!writer->compressor || !writer->packed ||
	    ZSTD_isError(
		    ZSTD_CCtx_setParameter(writer->compressor, ZSTD_c_compressionLevel, level)))
		return tally_error_set(err, -ENOMEM, "no memory for the compressor");
	writer->level = level;
	writer->chunk_target = CHUNK_START;
	return 0;
}

/* Returns the packed record of `packed_size` bytes, or NULL when the frame doesn't fit in one
 * record. */
static const uint8_t *pack(struct tally_perfdata_writer *writer, const void *bytes, size_t size,
			   size_t *packed_size)
{
	uint8_t *frame = writer->packed + HEADER + PADDING_MAX;
	size_t length = ZSTD_compress2(writer->compressor, frame, FRAME_MAX, bytes, size);
	if (ZSTD_isError(length))
		return NULL;
	size_t padding = 0;
	if (length % 8)
		padding = SKIPPABLE_HEADER + 8 - length % 8;
	uint8_t *start = frame - padding - HEADER;
	*packed_size = HEADER + padding + length;
	struct tally_record_header header = { .type = TALLY_RECORD_COMPRESSED,
					      .size = (uint16_t)*packed_size };
	memcpy(start, &header, sizeof(header));
	if (padding) {
		uint32_t skippable[2] = { ZSTD_MAGIC_SKIPPABLE_START,
					  (uint32_t)(padding - SKIPPABLE_HEADER) };
		memset(start + HEADER, 0, padding);
		memcpy(start + HEADER, skippable, sizeof(skippable));
	}
	return start;
}

/* Returns the next chunk's size, which fills nine tenths of a record at this chunk's ratio. */
static size_t next_target(size_t size, size_t packed_size)
{
	size_t target = size * (FRAME_MAX - FRAME_MAX / 10) / packed_size;
	target = tally_min_u64(target, tally_min_u64(2 * size, PENDING_MAX));
	return tally_max_u64(target, CHUNK_MIN);
}

/* Writes one chunk of `size` bytes as a COMPRESSED record, or plain when that is no longer.  Sets
 * `done` to 0 when the chunk must be halved. */
static int put_frame(struct tally_perfdata_writer *writer, const uint8_t *bytes, size_t size,
		     size_t *done)
{
	size_t packed_size = 0;
	const uint8_t *packed = pack(writer, bytes, size, &packed_size);
	*done = size;
	if (packed && packed_size < size) {
		writer->chunk_target = next_target(size, packed_size);
		writer->chunk_largest = tally_max_u64(size, writer->chunk_largest);
		writer->bytes_in += size;
		writer->bytes_out += packed_size;
		return put(writer, packed, packed_size);
	}
	if (packed || size <= CHUNK_MIN)
		return put_records(writer, bytes, size);
	*done = 0;
	return 0;
}

/* Appends whole records compressed. */
static int put_compressed(struct tally_perfdata_writer *writer, const void *bytes, size_t size)
{
	const uint8_t *at = bytes, *end = at + size;
	while (at < end && !writer->failure) {
		size_t done, limit = writer->chunk_target;
		size_t left = (size_t)(end - at), chunk = left;
		if (left > limit)
			chunk = records_whole(at, left, limit);
		if (!chunk) /* one record larger than the target */
			chunk = records_whole(at, left, TALLY_RECORD_SIZE_MAX);
		if (put_frame(writer, at, chunk, &done) == 0 && !done && chunk > limit)
			put_records(writer, at, done = chunk);
		else if (!done)
			writer->chunk_target = tally_max_u64(limit / 2, CHUNK_MIN);
		at += done;
	}
	return writer->failure;
}

/* Returns the offset of our section's mark: right behind the section table. */
static uint64_t mark_offset(const struct tally_perfdata_writer *writer)
{
	uint64_t entries = 0;
	for (unsigned i = 0; i < TALLY_FEATURE_MAX / 64; i++)
		entries += (uint64_t)__builtin_popcountll(writer->feature_bits[i]);
	return writer->end + entries * sizeof(struct tally_disk_section);
}

int tally_perfdata_add_own(struct tally_perfdata_writer *writer, const void *bytes, size_t size,
			   struct tally_error *err)
{
	struct tally_disk_own own = { .section = { writer->features_end, size } };
	size_t done;
	memcpy(own.mark, TALLY_DISK_OWN_MARK, sizeof(own.mark));
	if (writer->is_pipe || !writer->finished || !writer->features_end || writer->has_own)
		return tally_error_set(err, -EINVAL,
				       "a recording that isn't finished can't be added to");
	int result = put_at(writer, bytes, size, own.section.offset, &done);
	if (!result)
		result = put_at(writer, &own, sizeof(own), mark_offset(writer), &done);
	writer->has_own = !result;
	if (!result)
		return 0;
	int cut = ftruncate(writer->fd, (off_t)writer->features_end);
	(void)cut; /* readers ignore bytes behind the end of the features */
	return tally_error_set(err, result, "a section can't be added to the recording: %s",
			       tally_errno_text(result));
}

static bool is_full(int code)
{
	return code == -ENOSPC || code == -EFBIG || code == -EDQUOT;
}

static int write_error(const struct tally_perfdata_writer *writer, int code,
		       struct tally_error *err)
{
	tally_error_set(err, code, "can't write the recording: %s", tally_errno_text(code));
	if (is_full(code) && !writer->end)
		tally_error_hint(err, "record to another disk with -o");
	else if (is_full(code))
		tally_error_hint(
			err,
			"the first %llu bytes are kept; record to another disk with -o, or sample "
			"less often",
			(unsigned long long)writer->end);
	else if (code == -EPIPE)
		tally_error_hint(err, "the program that reads the pipe has ended");
	else if (code == -ESPIPE)
		tally_error_hint(err, "a recording that is piped is written with -o -");
	return code;
}

static uint32_t common_attr_size(const struct tally_perfdata_writer *writer)
{
	/* Before Linux 6.3, readers of pipes expect the ids right behind an attribute of the
	 * reader's own size. */
	uint32_t size = writer->is_pipe ? TALLY_ATTR_SIZE_VER7 : TALLY_ATTR_SIZE_VER0;
	for (size_t i = 0; i < writer->event_count; i++) {
		uint32_t needed = tally_attr_size_needed(&writer->events[i].attr);
		if (needed > size)
			size = needed;
	}
	return size;
}

/* Cuts off torn records and earlier contents.  Devices can't be cut. */
static void cut_at_end(const struct tally_perfdata_writer *writer)
{
	if (ftruncate(writer->fd, (off_t)writer->end) < 0)
		return;
}

static int start_file(struct tally_perfdata_writer *writer, int level, struct tally_error *err)
{
	if (lseek(writer->fd, 0, SEEK_CUR) < 0)
		return write_error(writer, -errno, err);
	cut_at_end(writer);
	int result = 0;
	if (level)
		result = compress_init(writer, level, err);
	if (result)
		return result;
	result = put_head(writer, NULL, 0);
	writer->end = writer->data_offset;
	if (result)
		return write_error(writer, result, err);
	return 0;
}

int tally_perfdata_writer_new(int fd, const struct tally_recorded_event *events, size_t event_count,
			      const struct tally_perfdata_options *options,
			      struct tally_perfdata_writer **out, struct tally_error *err)
{
	struct tally_perfdata_writer *writer = calloc(1, sizeof(*writer));
	*out = NULL;
	if (!writer)
		return tally_error_set(err, -ENOMEM, "no memory for a recording");
	writer->fd = fd;
	writer->is_pipe = options->pipe;
	writer->events = events;
	writer->event_count = event_count;
	writer->attr_size = common_attr_size(writer);
	writer->pending = malloc(PENDING_MAX);
	writer->head_ids = calloc(event_count + 1, sizeof(*writer->head_ids));
	for (size_t i = 0; writer->head_ids && i < event_count; i++)
		writer->head_ids[i] = events[i].id_count;
	int result;
	if (!writer->pending || !writer->head_ids) {
		result = tally_error_set(err, -ENOMEM, "no memory for the recording's buffer");
	} else if (options->pipe) {
		result = pipe_head(writer);
		if (result)
			write_error(writer, result, err);
	} else {
		result = start_file(writer, options->compression_level, err);
	}
	if (result) {
		tally_perfdata_writer_free(writer);
		return result;
	}
	*out = writer;
	return 0;
}

static int put_chunk(struct tally_perfdata_writer *writer, const void *bytes, size_t size)
{
	if (writer->compressor)
		return put_compressed(writer, bytes, size);
	return put_records(writer, bytes, size);
}

static int flush(struct tally_perfdata_writer *writer)
{
	size_t size = writer->pending_size;
	writer->pending_size = 0;
	if (size)
		return put_chunk(writer, writer->pending, size);
	return writer->failure;
}

size_t tally_perfdata_writer_wants(const struct tally_perfdata_writer *writer)
{
	if (writer->compressor)
		return writer->chunk_target;
	return PENDING_MAX;
}

int tally_perfdata_write(struct tally_perfdata_writer *writer, const void *records, size_t size,
			 struct tally_error *err)
{
	if (records_whole(records, size, size) != size)
		return tally_error_set(err, -EINVAL, "records to be written are cut short");
	return tally_perfdata_write_walked(writer, records, size, err);
}

int tally_perfdata_write_walked(struct tally_perfdata_writer *writer, const void *records,
				size_t size, struct tally_error *err)
{
	bool is_large = size >= tally_perfdata_writer_wants(writer) / 2;
	int result = writer->failure;
	if (result)
		return write_error(writer, result, err);
	if (is_large || size > PENDING_MAX - writer->pending_size)
		result = flush(writer);
	if (result)
		return write_error(writer, result, err);
	if (is_large) {
		result = put_chunk(writer, records, size);
	} else if (size) {
		memcpy(writer->pending + writer->pending_size, records, size);
		writer->pending_size += size;
	}
	if (result)
		return write_error(writer, result, err);
	return 0;
}

int tally_perfdata_flush(struct tally_perfdata_writer *writer, struct tally_error *err)
{
	int result = writer->failure;
	if (!result)
		result = flush(writer);
	if (result)
		return write_error(writer, result, err);
	return 0;
}

int tally_perfdata_write_feature(struct tally_perfdata_writer *writer, unsigned feature,
				 const void *bytes, size_t size, struct tally_error *err)
{
	if (!feature || feature >= TALLY_FEATURE_MAX || feature == TALLY_FEATURE_TALLY)
		return tally_error_set(err, -EINVAL, "there is no feature section %u", feature);
	if (writer->is_pipe) {
		int result = flush(writer);
		if (!result)
			result = pipe_feature(writer, feature, bytes, size);
		if (result)
			return write_error(writer, result, err);
		return 0;
	}
	struct tally_buffer *kept = &writer->features[feature];
	tally_buffer_clear(kept);
	tally_buffer_append(kept, bytes, size);
	writer->has_feature[feature] = !kept->failed;
	if (kept->failed)
		return tally_error_set(err, -ENOMEM, "no memory for feature section %u", feature);
	return 0;
}

uint64_t tally_perfdata_writer_bytes(const struct tally_perfdata_writer *writer)
{
	return writer->end + writer->pending_size;
}

static void keep_compressed_feature(struct tally_perfdata_writer *writer)
{
	if (!writer->compressor || !writer->bytes_in)
		return;
	struct tally_buffer *out = &writer->features[TALLY_FEATURE_COMPRESSED];
	/* perf maps this many bytes for each COMPRESSED record: whole pages. */
	uint32_t largest = (uint32_t)((writer->chunk_largest + 4095) & ~(size_t)4095);
	uint64_t ratio = (writer->bytes_in + writer->bytes_out / 2) /
			 tally_max_u64(writer->bytes_out, 1);
	tally_buffer_clear(out);
	tally_feature_compressed(out, (uint32_t)writer->level, (uint32_t)ratio, largest);
	writer->has_feature[TALLY_FEATURE_COMPRESSED] = !out->failed;
}

/* Writes the section table and the sections behind the data. */
static int put_features(struct tally_perfdata_writer *writer)
{
	struct tally_buffer table = { 0 };
	uint64_t *bits = writer->feature_bits;
	size_t count = 0, done;
	int result = 0;
	memset(bits, 0, TALLY_FEATURE_MAX / 8);
	for (unsigned i = 0; i < TALLY_FEATURE_MAX; i++)
		count += writer->has_feature[i];
	/* Reserves space for the mark of our own section, which may come later. */
	uint64_t at = writer->end + count * sizeof(struct tally_disk_section) +
		      sizeof(struct tally_disk_own);
	writer->features_end = 0;
	for (unsigned i = 0; i < TALLY_FEATURE_MAX; i++) {
		if (!writer->has_feature[i])
			continue;
		const struct tally_buffer *feature = &writer->features[i];
		struct tally_disk_section section = { at, feature->length };
		bits[i / 64] |= 1ull << i % 64;
		tally_buffer_append(&table, &section, sizeof(section));
		result = put_at(writer, feature->bytes, feature->length, at, &done);
		if (result)
			goto out;
		at += feature->length;
	}
	if (table.failed) {
		result = -ENOMEM;
		goto out;
	}
	result = put_at(writer, table.bytes, table.length, writer->end, &done);
	if (!result)
		writer->features_end = at;
out:
	tally_buffer_release(&table);
	return result;
}

/* Returns the largest feature that can be dropped, or 0.  COMPRESSED can't: readers need it to read
 * compressed data. */
static unsigned dispensable_feature(const struct tally_perfdata_writer *writer)
{
	unsigned largest = 0;
	for (unsigned i = 0; i < TALLY_FEATURE_MAX; i++)
		if (writer->has_feature[i] && i != TALLY_FEATURE_COMPRESSED &&
		    (!largest || writer->features[i].length > writer->features[largest].length))
			largest = i;
	return largest;
}

/* Cuts the data so that the features fit.  Returns false when that would cost too much of the
 * data. */
static bool give_up_tail(struct tally_perfdata_writer *writer)
{
	uint64_t need = 16 << 10; /* for partly used blocks, and for the file system itself */
	for (unsigned i = 0; i < TALLY_FEATURE_MAX; i++)
		if (writer->has_feature[i])
			need += writer->features[i].length + sizeof(struct tally_disk_section);
	if (need > (writer->end - writer->data_offset) / 8)
		return false;
	for (size_t i = writer->boundaries.count; i-- > 0;) {
		if (writer->boundaries.items[i] > writer->end - need)
			continue;
		writer->end = writer->boundaries.items[i];
		return writer->end > writer->data_offset;
	}
	return false;
}

static int finish_file(struct tally_perfdata_writer *writer)
{
	int result, head;
	bool has_cut = false;
	if (!writer->failure)
		flush(writer);
	keep_compressed_feature(writer);
	for (;;) {
		cut_at_end(writer);
		result = put_features(writer);
		if (!result)
			break;
		if (!writer->failure)
			writer->failure = result;
		bool was_cut = has_cut;
		has_cut = true;
		if (!was_cut && is_full(result) && give_up_tail(writer))
			continue;
		unsigned drop = dispensable_feature(writer);
		if (!drop)
			break;
		writer->has_feature[drop] = false;
	}
	if (result) {
		memset(writer->feature_bits, 0, sizeof(writer->feature_bits));
		cut_at_end(writer);
	}
	if (!result)
		result = put_late_ids(writer);
	head = put_head(writer, writer->feature_bits, writer->end - writer->data_offset);
	if (!result)
		result = head;
	if (!writer->failure)
		writer->failure = result;
	return writer->failure;
}

int tally_perfdata_finish(struct tally_perfdata_writer *writer, struct tally_error *err)
{
	if (!writer->finished && !writer->is_pipe)
		finish_file(writer);
	else if (!writer->finished && !writer->failure)
		flush(writer);
	writer->finished = true;
	if (writer->failure)
		return write_error(writer, writer->failure, err);
	return 0;
}

void tally_perfdata_writer_free(struct tally_perfdata_writer *writer)
{
	if (!writer)
		return;
	for (unsigned i = 0; i < TALLY_FEATURE_MAX; i++)
		tally_buffer_release(&writer->features[i]);
	ZSTD_freeCCtx(writer->compressor);
	tally_vector_release(&writer->boundaries);
	free(writer->packed);
	free(writer->pending);
	free(writer->head_ids);
	free(writer);
}
