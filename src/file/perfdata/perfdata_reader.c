/* Reads a recording of any recorder, even a damaged one.
 *
 * The bytes are untrusted: each record must fit in what is left.  Damage ends the data, and is kept
 * for tally_perfdata_damage(), since everything before it is good.  A file that its recorder did
 * not finish has a data size of zero and is read to its end.
 *
 * Records are given in place when they are aligned, otherwise as a copy. tally's own records are
 * always aligned; perf's are not when they follow a COMPRESSED record of odd size.
 */
#include "abi/abi.h"
#include "base/extremes.h"
#include "base/lost_pages.h"
#include "base/reader.h"
#include "base/text.h"
#include "perfdata/perfdata_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tally_perfdata_note_damage(struct tally_perfdata *data, bool ends, uint64_t offset,
				const char *format, ...)
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
	tally_error_hint(&data->damage,
			 ends ? "everything before it was used" : "everything else was used");
	data->ended = data->ended || ends;
}

/* Finds an event by id, through a cache indexed by the low bits: ids of events are consecutive
 * numbers. */
static const struct tally_recorded_event *event_by_id(struct tally_perfdata *data, uint64_t id)
{
	uint32_t index;
	if (data->event_cache[id % TALLY_EVENT_ID_CACHE].id == id &&
	    data->event_cache[id % TALLY_EVENT_ID_CACHE].index_plus_1) {
		index = data->event_cache[id % TALLY_EVENT_ID_CACHE].index_plus_1 - 1;
	} else {
		const uint64_t *found = tally_map_get(&data->event_by_id, id);
		index = 0;
		if (found)
			index = (uint32_t)*found;
		data->event_cache[id % TALLY_EVENT_ID_CACHE].id = id;
		data->event_cache[id % TALLY_EVENT_ID_CACHE].index_plus_1 = index + 1;
	}
	return &data->events[index];
}

static const struct tally_recorded_event *event_of(struct tally_perfdata *data,
						   const uint8_t *bytes,
						   const struct tally_record_header *header,
						   bool swap)
{
	uint64_t id;
	if (data->event_count > 1 && header->type < TALLY_RECORD_USER_START &&
	    tally_field_of(&data->id_places, bytes, header, &id))
		return event_by_id(data, tally_disk_u64(id, swap));
	if (!data->event_count)
		return NULL;
	return &data->events[0];
}

const struct tally_recorded_event *tally_perfdata_event_of(struct tally_perfdata *data,
							   const void *bytes,
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
	uint64_t limit = tally_saturating_sub_u64(data->data_end, source->offset);
	size_t left = source->end - source->used;
	if (unpacker->has_input || data->ended || data->payload || !left || !limit)
		return (struct tally_span){ 0 };
	const uint8_t *at = source->window + source->used;
	return (struct tally_span){ .at = at, .end = at + tally_min_u64(left, limit),
				    .file_offset = source->offset, .block = source->block };
}

void tally_perfdata_advance(struct tally_perfdata *data, const struct tally_span *span,
			    const uint8_t *to)
{
	size_t size = (size_t)(to - span->at);
	if (span->unpacked) {
		data->unpacker.start += size;
	} else {
		data->source.used += size;
		data->source.offset += size;
	}
}

struct tally_span tally_perfdata_last(const struct tally_perfdata *data,
				      const struct tally_raw_record *record, bool *is_copy)
{
	const uint8_t *at = record->bytes;
	struct tally_span last = {
		.at = at,
		.end = at + record->size,
		.unpacked = data->last_unpacked,
		.file_offset = record->file_offset,
	};
	*is_copy = at == (const uint8_t *)data->aligned;
	if (*is_copy)
		return last;
	last.block = data->source.block;
	if (data->last_unpacked)
		last.block = data->unpacker.block;
	return last;
}

/* Copies a record into the reader's buffer, which has room for one. */
static uint8_t *copy_record(struct tally_perfdata *data, const uint8_t *bytes, size_t size)
{
	if (!data->aligned)
		data->aligned = malloc(TALLY_RECORD_SIZE_MAX + 1);
	if (data->aligned)
		memcpy(data->aligned, bytes, size);
	return (uint8_t *)data->aligned;
}

/* Returns the record in this machine's byte order, or NULL without memory. */
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

/* Gives a record, aligned.  Returns 1, 0 at damage, or -ENOMEM. */
static int give(struct tally_perfdata *data, const uint8_t *bytes, uint64_t offset,
		struct tally_raw_record *record)
{
	struct tally_record_header header;
	memcpy(&header, bytes, sizeof(header));
	if (!data->event_count && header.type < TALLY_RECORD_USER_START) {
		tally_perfdata_note_damage(data, true, offset,
					   "a record stands before any event is described");
		return 0;
	}
	if ((uintptr_t)bytes % 8)
		bytes = copy_record(data, bytes, header.size);
	if (!bytes)
		return -ENOMEM;
	*record = (struct tally_raw_record){ .bytes = bytes,
					     .size = header.size,
					     .file_offset = offset,
					     .event = tally_perfdata_event_of(data, bytes,
									      &header) };
	return 1;
}

/* Returns the next record as it lies in the source, or NULL at the end or at damage. */
static const uint8_t *next_whole(struct tally_perfdata *data, struct tally_record_header *header)
{
	struct tally_source *source = &data->source;
	uint64_t offset = source->offset;
	uint64_t limit = tally_saturating_sub_u64(data->data_end, offset);
	size_t left = 0;
	if (limit)
		left = tally_source_left(source, sizeof(*header));
	const char *ending = "it ends within a record";
	if (data->is_unfinished)
		ending = "its recorder did not finish it (was it killed?)";
	if (!left) {
		if (data->is_unfinished)
			tally_perfdata_note_damage(data, false, offset, "%s", ending);
		else if (limit && !data->is_pipe)
			tally_perfdata_note_damage(
				data, true, offset,
				"the file ends, %llu byte%s before its data does",
				(unsigned long long)limit, tally_plural(limit));
		return NULL;
	}
	const uint8_t *bytes = NULL;
	if (limit >= sizeof(*header))
		bytes = tally_source_peek(source, sizeof(*header));
	if (!bytes) {
		tally_perfdata_note_damage(data, true, offset, "%s", ending);
		return NULL;
	}
	*header = tally_header_at(bytes, data->swap);
	if (header->size < sizeof(*header)) {
		tally_perfdata_note_damage(data, true, offset, "a record claims a size of %u bytes",
					   header->size);
		return NULL;
	}
	bytes = NULL;
	if (limit >= header->size)
		bytes = tally_source_peek(source, header->size);
	if (!bytes)
		tally_perfdata_note_damage(data, true, offset, "%s: its %u bytes are not all there",
					   ending, header->size);
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
	if (header.type > TALLY_SIMPLEPERF_RECORD_START)
		return (uint64_t)header.misc << 16;
	uint64_t size = 0;
	if (header.type == TALLY_RECORD_HEADER_TRACING_DATA)
		size = tally_reader_u32(&reader);
	if (size <= tally_reader_left(&reader))
		return 0;
	return size;
}

/* Finds the tracing data: behind perf's record, inside simpleperf's.  NULL when it is too short. */
static const void *tracing_in(const uint8_t *bytes, size_t size,
			      const struct tally_record_header *header, bool swap, uint32_t *length)
{
	struct tally_reader reader;
	tally_reader_init(&reader, bytes, size, swap);
	tally_reader_seek(&reader, sizeof(*header));
	*length = tally_reader_u32(&reader);
	if (header->type == TALLY_RECORD_HEADER_TRACING_DATA && size > header->size)
		tally_reader_seek(&reader, header->size);
	return tally_reader_bytes(&reader, *length);
}

/* Handles the bytes behind a record that are no records.  Tracing data must be complete. */
static int take_payload(struct tally_perfdata *data, const struct tally_record_header *header,
			const uint8_t **bytes)
{
	uint64_t offset = data->source.offset;
	uint32_t length;
	data->payload = tally_record_payload(*bytes, data->swap);
	bool is_tracing = header->type == TALLY_RECORD_HEADER_TRACING_DATA ||
			  header->type == TALLY_SIMPLEPERF_RECORD_TRACING_DATA;
	if (!is_tracing || header->size < sizeof(struct tally_disk_tracing_record))
		return 0;
	const size_t size = (size_t)header->size + data->payload;
	const uint8_t *whole = tally_source_peek(&data->source, size);
	if (!whole) {
		tally_perfdata_note_damage(data, true, offset, "the tracing data ends early");
		*bytes = NULL;
		return 0;
	}
	*bytes = whole;
	const void *tracing = tracing_in(whole, size, header, data->swap, &length);
	if (!tracing)
		tally_perfdata_note_damage(data, false, offset,
					   "the tracing data is longer than its record");
	if (tracing && length)
		return tally_perfdata_apply_tracing(data, tracing, length, offset);
	return 0;
}

static int apply_and_give(struct tally_perfdata *data, const uint8_t *bytes, size_t size,
			  uint64_t offset, struct tally_raw_record *record)
{
	bytes = in_our_order(data, bytes);
	if (!bytes)
		return -ENOMEM;
	int result = tally_perfdata_apply_record(data, bytes, size, offset);
	if (result)
		return result;
	return give(data, bytes, offset, record);
}

/* Makes one step.  Returns 1 for a record, 0 at the end, -EAGAIN to be called again. */
static int step(struct tally_perfdata *data, struct tally_raw_record *record)
{
	const uint8_t *bytes;
	struct tally_record_header header;
	int result = tally_unpacker_next(data, &bytes);
	if (result > 0) {
		header = tally_header_at(bytes, data->swap);
		if (tally_record_is_compressed(&header)) {
			tally_perfdata_note_damage(data, true, data->unpacker.offset,
						   "compressed data in compressed data");
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
	if (payload &&
	    (payload > data->data_end - offset || !tally_source_skip(&data->source, payload))) {
		tally_perfdata_note_damage(data, true, offset,
					   "%llu bytes of a trace are not all there",
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
		if (result)
			return result;
		return -EAGAIN;
	}
	data->last_unpacked = false;
	return apply_and_give(data, bytes, header.size, offset, record);
}

int tally_perfdata_next(struct tally_perfdata *data, struct tally_raw_record *record,
			struct tally_error *err)
{
	int result = -EAGAIN;
	const char *lost;
	while (result == -EAGAIN)
		result = step(data, record);
	if (result == 0 && data->source.failure)
		result = data->source.failure;
	if (result == 0 && tally_lost_pages(&lost) != data->lost_before) {
		tally_lost_pages_report();
		return tally_error_set(err, -EIO, "can't read %s: it was truncated meanwhile, or its "
						  "disk fails", lost);
	}
	if (result == -ENOMEM)
		return tally_error_set(err, result, "no memory to read the recording");
	if (result < 0)
		return tally_error_set(err, -EIO, "can't read the recording: %s",
				       tally_errno_text(result));
	return result;
}

const struct tally_recorded_event *tally_perfdata_events(const struct tally_perfdata *data,
							 size_t *count)
{
	*count = data->event_count;
	return data->events;
}

uint64_t tally_perfdata_names_known(const struct tally_perfdata *data)
{
	return data->names_known;
}

const struct tally_recorded_event *tally_perfdata_event_of_id(const struct tally_perfdata *data,
							      uint64_t id)
{
	const uint64_t *index = tally_map_get(&data->event_by_id, id);
	if (!index)
		return NULL;
	return &data->events[*index];
}

struct tally_feature_bytes tally_perfdata_feature(const struct tally_perfdata *data,
						  unsigned feature)
{
	if (feature < TALLY_FEATURE_MAX)
		return data->features[feature];
	return (struct tally_feature_bytes){ 0 };
}

const char *tally_perfdata_feature_text(const struct tally_perfdata *data, unsigned feature)
{
	struct tally_feature_bytes bytes = tally_perfdata_feature(data, feature);
	uint32_t length;
	if (!bytes.bytes || bytes.size < sizeof(length))
		return NULL;
	memcpy(&length, bytes.bytes, sizeof(length));
	if (length > bytes.size - sizeof(length) ||
	    !memchr(bytes.bytes + sizeof(length), 0, length))
		return NULL;
	return (const char *)bytes.bytes + sizeof(length);
}

bool tally_perfdata_has_pmu(const struct tally_perfdata *data, const char *name, uint32_t type)
{
	struct tally_reader reader = tally_feature_reader(data, TALLY_FEATURE_PMU_MAPPINGS);
	struct tally_feature_pmu pmu;
	for (uint32_t left = tally_reader_u32(&reader);
	     left && tally_feature_read_pmu(&reader, &pmu); left--)
		if (!strcmp(pmu.name, name) && (type == UINT32_MAX || type == pmu.type))
			return true;
	return false;
}

const struct tally_recorded_build_id *tally_perfdata_build_ids(const struct tally_perfdata *data,
							       size_t *count)
{
	*count = data->build_ids.count;
	return data->build_ids.items;
}

bool tally_perfdata_tracepoint_format(const struct tally_perfdata *data, uint64_t event_id,
				      const char **format, size_t *length)
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

bool tally_perfdata_is_unfinished(const struct tally_perfdata *data)
{
	return data->is_unfinished;
}

struct tally_perfdata_place tally_perfdata_place(const struct tally_perfdata *data)
{
	return data->place;
}

uint64_t tally_perfdata_size(const struct tally_perfdata *data)
{
	if (data->is_pipe)
		return 0;
	return data->source.memory_size;
}

const struct tally_error *tally_perfdata_damage(const struct tally_perfdata *data)
{
	if (!data->damage.code)
		return NULL;
	return &data->damage;
}
