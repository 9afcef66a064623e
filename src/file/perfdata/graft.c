/* Copies a perf.data file and adds tally's own section.
 *
 * The section table stands right behind the data and leaves no room for our section's mark, so
 * everything behind the data gets new positions.  The kernel copies everything before it; some file
 * systems do that without moving a byte.  In that part, only the header's bitmap refers to the
 * sections behind the data.  The bits of two kinds of sections are cleared: of sections that the
 * file lacks, and of our own section, which once had a bit.  The file may be of the other byte
 * order. */
#include "perfdata/perfdata.h"

#include "base/buffer.h"
#include "base/extremes.h"
#include "perfdata/perfdata_internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 20, ATTR_BYTES_MAX = 4096 };

struct graft {
	int from, to;
	uint64_t size; /* bytes of the file */
	struct tally_disk_header header; /* in this machine's byte order, except the features */
	bool swap;
	/* features are words of 32 bits: the file is from a big-endian 32-bit machine */
	bool narrow;
	uint64_t data_end;
};

static uint64_t ours(const struct graft *graft, uint64_t value)
{
	return tally_disk_u64(value, graft->swap);
}

static struct tally_disk_section our_section(const struct graft *graft,
					     struct tally_disk_section section)
{
	return (struct tally_disk_section){ ours(graft, section.offset),
					    ours(graft, section.size) };
}

/* ---- bytes --------------------------------------------------------------- */

static int read_at(int fd, void *out, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = pread(fd, (char *)out + done, size - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return -EIO;
		done += (size_t)got;
	}
	return 0;
}

static int write_at(int fd, const void *bytes, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		ssize_t wrote = pwrite(fd, (const char *)bytes + done, size - done,
				       (off_t)(offset + done));
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		if (!wrote)
			return -ENOSPC;
		done += (size_t)wrote;
	}
	return 0;
}

/* For copies that the kernel refuses: between file systems, or from some of them. */
static int copy_by_hand(const struct graft *graft, uint64_t from, uint64_t to, uint64_t size)
{
	char *bytes = malloc(COPY_BYTES);
	int result = 0;
	if (!bytes)
		return -ENOMEM;
	for (uint64_t done = 0; !result && done < size;) {
		size_t part = tally_min_u64(size - done, COPY_BYTES);
		result = read_at(graft->from, bytes, part, from + done);
		if (!result)
			result = write_at(graft->to, bytes, part, to + done);
		done += part;
	}
	free(bytes);
	return result;
}

static int copy(const struct graft *graft, uint64_t from, uint64_t to, uint64_t size)
{
	while (size) {
		off_t in = (off_t)from, out = (off_t)to;
		size_t part = tally_min_u64(size, 1 << 30);
		ssize_t copied = copy_file_range(graft->from, &in, graft->to, &out, part, 0);
		if (copied < 0 && errno == EINTR)
			continue;
		if (copied < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
			return -errno;
		if (copied <= 0)
			return copy_by_hand(graft, from, to, size);
		from += (uint64_t)copied;
		to += (uint64_t)copied;
		size -= (uint64_t)copied;
	}
	return 0;
}

/* ---- features ------------------------------------------------------------ */

static bool has_bit(const struct graft *graft, unsigned feature)
{
	const uint64_t *words = graft->header.features;
	if (!graft->narrow)
		return ours(graft, words[feature / 64]) >> feature % 64 & 1;
	uint32_t word;
	memcpy(&word, (const char *)words + feature / 32 * 4, sizeof(word));
	return __builtin_bswap32(word) >> feature % 32 & 1;
}

static void clear_bit(struct graft *graft, unsigned feature)
{
	if (!graft->narrow) {
		graft->header.features[feature / 64] &= ~ours(graft, 1ull << feature % 64);
		return;
	}
	uint32_t word;
	char *at = (char *)graft->header.features + feature / 32 * 4;
	memcpy(&word, at, sizeof(word));
	word &= ~__builtin_bswap32(1u << feature % 32);
	memcpy(at, &word, sizeof(word));
}

static bool fits(struct tally_disk_section section, uint64_t end)
{
	return section.offset <= end && section.size <= end - section.offset;
}

/* Copies the feature sections, without those that are not wholly in the file, and writes our
 * section behind them.  Appends the entries of the new section table to `table`.  Returns 0 or
 * -errno. */
static int copy_features(struct graft *graft, const void *bytes, size_t size,
			 struct tally_buffer *table)
{
	uint64_t at = graft->data_end + sizeof(struct tally_disk_own), entry = graft->data_end;
	for (unsigned i = 0; i < TALLY_FEATURE_MAX; i++)
		if (has_bit(graft, i))
			at += sizeof(struct tally_disk_section);
	for (unsigned i = 0; i < TALLY_FEATURE_MAX; i++) {
		struct tally_disk_section section;
		if (!has_bit(graft, i))
			continue;
		if (read_at(graft->from, &section, sizeof(section), entry) < 0)
			return -ENOTSUP;
		entry += sizeof(section);
		section = our_section(graft, section);
		if (i == TALLY_FEATURE_TALLY || !fits(section, graft->size)) {
			clear_bit(graft, i);
			continue;
		}
		int result = copy(graft, section.offset, at, section.size);
		if (result < 0)
			return result;
		struct tally_disk_section moved = our_section(
			graft, (struct tally_disk_section){ at, section.size });
		tally_buffer_append(table, &moved, sizeof(moved));
		at += section.size;
	}
	struct tally_disk_own own = { .section = our_section(
					      graft, (struct tally_disk_section){ at, size }) };
	memcpy(own.mark, TALLY_DISK_OWN_MARK, sizeof(own.mark));
	tally_buffer_append(table, &own, sizeof(own));
	if (table->failed)
		return -ENOMEM;
	return write_at(graft->to, bytes, size, at);
}

/* ---- the whole ----------------------------------------------------------- */

/* True if the attributes and their ids lie before the data. */
static bool are_ids_before(const struct graft *graft)
{
	uint64_t entry = graft->header.attr_size;
	struct tally_disk_section ids;
	if (entry < sizeof(ids) || entry > ATTR_BYTES_MAX ||
	    !fits(graft->header.attrs, graft->header.data.offset))
		return false;
	for (uint64_t at = entry; at <= graft->header.attrs.size; at += entry)
		if (read_at(graft->from, &ids, sizeof(ids),
			    graft->header.attrs.offset + at - sizeof(ids)) < 0 ||
		    !fits(our_section(graft, ids), graft->header.data.offset))
			return false;
	return true;
}

/* Returns false when the file has another layout than perf's. */
static bool read_header(struct graft *graft)
{
	struct tally_disk_header *header = &graft->header;
	struct stat file;
	if (fstat(graft->from, &file) < 0 || !S_ISREG(file.st_mode) ||
	    read_at(graft->from, header, sizeof(*header), 0) < 0)
		return false;
	graft->size = (uint64_t)file.st_size;
	graft->swap = header->magic == TALLY_PERFDATA_MAGIC_SWAPPED;
	header->size = ours(graft, header->size);
	header->attr_size = ours(graft, header->attr_size);
	header->attrs = our_section(graft, header->attrs);
	header->data = our_section(graft, header->data);
	graft->data_end = header->data.offset + header->data.size;
	/* 64-bit recorders always set the HOSTNAME bit, so without it the words must be of 32
	 * bits. */
	graft->narrow = graft->swap && !has_bit(graft, TALLY_FEATURE_HOSTNAME);
	return (header->magic == TALLY_PERFDATA_MAGIC || graft->swap) &&
	       header->size == sizeof(*header) && header->data.size &&
	       fits(header->data, graft->size) && are_ids_before(graft);
}

int tally_perfdata_graft(int from, int to, const void *bytes, size_t size, struct tally_error *err)
{
	struct graft graft = { .from = from, .to = to };
	struct tally_buffer table = { 0 };
	if (!read_header(&graft))
		return -ENOTSUP;
	int result = copy_features(&graft, bytes, size, &table);
	if (result)
		goto out;
	result = copy(&graft, 0, 0, graft.data_end);
	if (result)
		goto out;
	result = write_at(to, table.bytes, table.length, graft.data_end);
	if (result)
		goto out;
	result = write_at(to, graft.header.features, sizeof(graft.header.features),
			  offsetof(struct tally_disk_header, features));
out:
	tally_buffer_release(&table);
	if (result < 0 && result != -ENOTSUP)
		return tally_error_set(err, result, "copying the recording failed: %s",
				       tally_errno_text(result));
	return result;
}

/* Rewrites a recording record by record.  A pipe's stream becomes a file. */

/* True for records that describe the recording.  A file has this in its head or its features
 * instead. */
static bool is_description(uint32_t type)
{
	return type == TALLY_RECORD_HEADER_ATTR || type == TALLY_RECORD_HEADER_EVENT_TYPE ||
	       type == TALLY_RECORD_HEADER_TRACING_DATA || type == TALLY_RECORD_HEADER_BUILD_ID ||
	       type == TALLY_RECORD_HEADER_FEATURE || type == TALLY_RECORD_EVENT_UPDATE;
}

/* Reads everything before anything is written: a pipe may describe events anywhere in the
 * stream. */
static int read_to_the_end(struct tally_perfdata *data, struct tally_error *err)
{
	struct tally_raw_record record;
	int result;
	while ((result = tally_perfdata_next(data, &record, err)) > 0)
		;
	return result;
}

static int copy_records(const char *path, struct tally_perfdata_writer *writer,
			struct tally_error *err)
{
	struct tally_perfdata *data;
	struct tally_raw_record record;
	struct tally_record_header header;
	int result = tally_perfdata_open(path, &data, err);
	if (result < 0)
		return result;
	while ((result = tally_perfdata_next(data, &record, err)) > 0) {
		memcpy(&header, record.bytes, sizeof(header));
		bool has_payload = header.type == TALLY_RECORD_AUXTRACE ||
				   header.type > TALLY_SIMPLEPERF_RECORD_START;
		if (is_description(header.type) || has_payload)
			continue;
		result = tally_perfdata_write(writer, record.bytes, record.size, err);
		if (result < 0)
			break;
	}
	tally_perfdata_close(data);
	return result;
}

static int copy_feature(const struct tally_perfdata *data, struct tally_perfdata_writer *writer,
			unsigned feature, struct tally_error *err)
{
	struct tally_feature_bytes bytes = tally_perfdata_feature(data, feature);
	struct tally_buffer made = { 0 };
	size_t count;
	if (feature == TALLY_FEATURE_BUILD_ID) {
		const struct tally_recorded_build_id *ids = tally_perfdata_build_ids(data, &count);
		for (size_t i = 0; i < count; i++)
			tally_feature_build_id(&made, &ids[i]);
	} else if (feature == TALLY_FEATURE_EVENT_DESC) {
		const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
		tally_feature_event_desc(&made, events, count);
	} else if (feature != TALLY_FEATURE_COMPRESSED && feature != TALLY_FEATURE_AUXTRACE &&
		   bytes.bytes) {
		tally_buffer_append(&made, bytes.bytes, bytes.size);
	}
	int result = 0;
	if (made.failed)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	else if (made.length)
		result = tally_perfdata_write_feature(writer, feature, made.bytes, made.length,
						      err);
	tally_buffer_release(&made);
	return result;
}

int tally_perfdata_rewrite(const char *path, int to, int level, const void *bytes, size_t size,
			   struct tally_error *err)
{
	const struct tally_perfdata_options options = { .compression_level = level };
	struct tally_perfdata_writer *writer = NULL;
	struct tally_perfdata *data;
	size_t count;
	int result = tally_perfdata_open(path, &data, err);
	if (result < 0)
		return result;
	result = read_to_the_end(data, err);
	if (result)
		goto out;
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	result = tally_perfdata_writer_new(to, events, count, &options, &writer, err);
	if (result)
		goto out;
	result = copy_records(path, writer, err);
	if (result)
		goto out;
	for (unsigned i = 1; i < TALLY_FEATURE_MAX; i++) {
		if (i != TALLY_FEATURE_TALLY)
			result = copy_feature(data, writer, i, err);
		if (result)
			goto out;
	}
	result = tally_perfdata_finish(writer, err);
	if (!result)
		result = tally_perfdata_add_own(writer, bytes, size, err);
out:
	tally_perfdata_writer_free(writer);
	tally_perfdata_close(data);
	return result;
}
