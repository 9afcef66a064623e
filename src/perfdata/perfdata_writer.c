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
#include "perfdata/feature.h"
#include "perfdata/perfdata_writer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t tally_records_whole(const void *bytes, size_t size, size_t limit)
{
	size_t at = 0, end = size < limit ? size : limit;
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

int tally_writer_put_at(const struct tally_perfdata_writer *writer, const void *bytes, size_t size,
			uint64_t offset, size_t *done)
{
	for (*done = 0; *done < size;) {
		const uint8_t *at = (const uint8_t *)bytes + *done;
		ssize_t wrote = writer->is_pipe ? write(writer->fd, at, size - *done)
						: pwrite(writer->fd, at, size - *done,
							 (off_t)(offset + *done));
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

int tally_writer_put(struct tally_perfdata_writer *writer, const void *bytes, size_t size)
{
	size_t done;
	if (writer->failure)
		return writer->failure;
	writer->failure = tally_writer_put_at(writer, bytes, size, writer->end, &done);
	if (!writer->failure) {
		note_boundary(writer, writer->end);
		writer->end += size;
	}
	return writer->failure;
}

int tally_writer_put_records(struct tally_perfdata_writer *writer, const void *bytes, size_t size)
{
	size_t done;
	if (writer->failure)
		return writer->failure;
	writer->failure = tally_writer_put_at(writer, bytes, size, writer->end, &done);
	size = writer->failure ? tally_records_whole(bytes, size, done) : size;
	for (size_t at = 0, part; at < size; at += part) {
		part = tally_records_whole((const uint8_t *)bytes + at, size - at, BOUNDARY_BYTES);
		note_boundary(writer, writer->end);
		writer->end += part;
	}
	return writer->failure;
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
			"the first %llu bytes are kept; record to another disk with -o, or sample less often",
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
		size = needed > size ? needed : size;
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
	int result = level ? tally_writer_compress_init(writer, level, err) : 0;
	if (result)
		return result;
	result = tally_writer_put_head(writer, NULL, 0);
	writer->end = writer->data_offset;
	return result ? write_error(writer, result, err) : 0;
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
	writer->pending = malloc(TALLY_WRITER_PENDING_MAX);
	writer->head_ids = calloc(event_count + 1, sizeof(*writer->head_ids));
	for (size_t i = 0; writer->head_ids && i < event_count; i++)
		writer->head_ids[i] = events[i].id_count;
	int result;
	if (!writer->pending || !writer->head_ids) {
		result = tally_error_set(err, -ENOMEM, "no memory for the recording's buffer");
	} else if (options->pipe) {
		result = tally_writer_pipe_head(writer);
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
		return tally_writer_put_compressed(writer, bytes, size);
	return tally_writer_put_records(writer, bytes, size);
}

static int flush(struct tally_perfdata_writer *writer)
{
	size_t size = writer->pending_size;
	writer->pending_size = 0;
	return size ? put_chunk(writer, writer->pending, size) : writer->failure;
}

size_t tally_perfdata_writer_wants(const struct tally_perfdata_writer *writer)
{
	return writer->compressor ? writer->chunk_target : TALLY_WRITER_PENDING_MAX;
}

int tally_perfdata_write(struct tally_perfdata_writer *writer, const void *records, size_t size,
			 struct tally_error *err)
{
	if (tally_records_whole(records, size, size) != size)
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
	if (is_large || size > TALLY_WRITER_PENDING_MAX - writer->pending_size)
		result = flush(writer);
	if (!result && is_large) {
		result = put_chunk(writer, records, size);
	} else if (!result && size) {
		memcpy(writer->pending + writer->pending_size, records, size);
		writer->pending_size += size;
	}
	return result ? write_error(writer, result, err) : 0;
}

int tally_perfdata_flush(struct tally_perfdata_writer *writer, struct tally_error *err)
{
	int result = writer->failure ? writer->failure : flush(writer);
	return result ? write_error(writer, result, err) : 0;
}

int tally_perfdata_write_feature(struct tally_perfdata_writer *writer, unsigned feature,
				 const void *bytes, size_t size, struct tally_error *err)
{
	if (!feature || feature >= TALLY_FEATURE_MAX || feature == TALLY_FEATURE_TALLY)
		return tally_error_set(err, -EINVAL, "there is no feature section %u", feature);
	if (writer->is_pipe) {
		int result = flush(writer);
		if (!result)
			result = tally_writer_pipe_feature(writer, feature, bytes, size);
		return result ? write_error(writer, result, err) : 0;
	}
	struct tally_buffer *kept = &writer->features[feature];
	tally_buffer_clear(kept);
	tally_buffer_append(kept, bytes, size);
	writer->has_feature[feature] = !kept->failed;
	return kept->failed
		       ? tally_error_set(err, -ENOMEM, "no memory for feature section %u", feature)
		       : 0;
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
			 (writer->bytes_out ? writer->bytes_out : 1);
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
	for (unsigned i = 0; i < TALLY_FEATURE_MAX && !result; i++) {
		if (!writer->has_feature[i])
			continue;
		const struct tally_buffer *feature = &writer->features[i];
		struct tally_disk_section section = { at, feature->length };
		bits[i / 64] |= 1ull << i % 64;
		tally_buffer_append(&table, &section, sizeof(section));
		result = tally_writer_put_at(writer, feature->bytes, feature->length, at, &done);
		at += feature->length;
	}
	if (!result && table.failed)
		result = -ENOMEM;
	if (!result)
		result = tally_writer_put_at(writer, table.bytes, table.length, writer->end, &done);
	tally_buffer_release(&table);
	writer->features_end = result ? 0 : at;
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
		writer->failure = writer->failure ? writer->failure : result;
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
		result = tally_writer_put_late_ids(writer);
	head = tally_writer_put_head(writer, writer->feature_bits,
				     writer->end - writer->data_offset);
	if (!writer->failure)
		writer->failure = result ? result : head;
	return writer->failure;
}

int tally_perfdata_finish(struct tally_perfdata_writer *writer, struct tally_error *err)
{
	if (!writer->finished && !writer->is_pipe)
		finish_file(writer);
	else if (!writer->finished && !writer->failure)
		flush(writer);
	writer->finished = true;
	return writer->failure ? write_error(writer, writer->failure, err) : 0;
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
