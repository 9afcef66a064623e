/* A recording's description: its events and features, and the records that describe them in a
 * pipe. */
#include "base/buffer.h"
#include "base/error.h"
#include "base/extremes.h"
#include "base/reader.h"
#include "event/event.h"
#include "perfdata/perfdata.h"
#include "perfdata/perfdata_internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one more event.  The old array stays in the arena for callers that hold its
 * events. */
static bool grow_events(struct tally_perfdata *data)
{
	if (data->event_count < data->event_capacity)
		return true;
	size_t capacity = data->event_capacity ? 2 * data->event_capacity : 8;
	struct tally_recorded_event *grown = tally_arena_array(&data->arena, capacity,
							       sizeof(*grown));
	if (!grown)
		return false;
	struct tally_field_places *places = tally_arena_array(&data->arena, capacity,
							      sizeof(*places));
	if (!places)
		return false;
	if (data->event_count) {
		memcpy(grown, data->events, data->event_count * sizeof(*grown));
		memcpy(places, data->time_places, data->event_count * sizeof(*places));
	}
	data->events = grown;
	data->time_places = places;
	data->event_capacity = capacity;
	return true;
}

static uint32_t words(uint64_t sample_type, uint64_t fields)
{
	return 8 * (uint32_t)__builtin_popcountll(sample_type & fields);
}

static struct tally_field_places places_at(const struct tally_attr *attr, uint32_t sample_at,
					   uint32_t behind)
{
	const uint32_t head = sizeof(struct tally_record_header);
	struct tally_field_places places = { head + sample_at, head + sample_at + 8, behind,
					     head + behind, (uint32_t)tally_sample_id_size(attr) };
	if (!(attr->flags & TALLY_ATTR_SAMPLE_ID_ALL))
		places.trailer_size_min = UINT32_MAX;
	return places;
}

static const struct tally_field_places nowhere = { .sample_size_min = UINT32_MAX,
						   .trailer_size_min = UINT32_MAX };

/* Returns the positions of the time in records. tally_record_decode() finds it by decoding. */
static struct tally_field_places time_places(const struct tally_attr *attr)
{
	uint64_t type = attr->sample_type;
	if (!(type & TALLY_SAMPLE_TIME))
		return nowhere;
	return places_at(attr,
			 words(type, TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID),
			 words(type, TALLY_SAMPLE_TIME | TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID |
					     TALLY_SAMPLE_CPU | TALLY_SAMPLE_IDENTIFIER));
}

/* Returns the positions of the id in records. tally_record_id() finds it by decoding. */
static struct tally_field_places id_places(const struct tally_attr *attr)
{
	uint64_t type = attr->sample_type;
	if (type & TALLY_SAMPLE_IDENTIFIER)
		return places_at(attr, 0, 8);
	if (!(type & TALLY_SAMPLE_ID))
		return nowhere;
	return places_at(attr,
			 words(type, TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
					     TALLY_SAMPLE_ADDR),
			 words(type, TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_CPU));
}

/* Returns where the event's records have their time.  A recorder's dummy event (for mappings and
 * forks) has no samples; it takes the places of the first event's samples, so that it can't make
 * the events disagree. */
static struct tally_field_places time_places_of(const struct tally_perfdata *data,
						const struct tally_attr *attr)
{
	struct tally_field_places places = time_places(attr);
	if (data->event_count && attr->type == TALLY_TYPE_SOFTWARE &&
	    attr->config == TALLY_SW_DUMMY) {
		places.sample_at = data->time_places[0].sample_at;
		places.sample_size_min = data->time_places[0].sample_size_min;
	}
	return places;
}

/* Names for events of recordings without EVENT_DESC: from old recorders, killed recorders and
 * simpleperf.
 *
 * The names, modifiers included, are those of perf's evsel__name(), so `script` prints the same as
 * perf script.  The attribute does not tell which modifiers the user typed: newer versions of perf
 * exclude guests for "cpu-clock:u", and the name becomes "cpu-clock:uH". */

enum { MODIFIERS_MAX = 16 };

static void put_modifier(char *out, size_t *length, bool is_meant, char letter)
{
	if (!is_meant)
		return;
	if (!*length)
		out[(*length)++] = ':';
	out[(*length)++] = letter;
}

/* Writes the modifiers: "", ":u", ":ppH". */
static void put_modifiers(const struct tally_attr *attr, char out[MODIFIERS_MAX])
{
	const uint64_t flags = attr->flags;
	const bool has_modes = flags & (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_USER |
					TALLY_ATTR_EXCLUDE_HV);
	const unsigned precise = tally_attr_precise(attr);
	const bool guests_out = flags & TALLY_ATTR_EXCLUDE_GUEST, usual = has_modes || precise;
	const bool has_machines = flags & TALLY_ATTR_EXCLUDE_HOST || guests_out == usual;
	size_t length = 0;
	put_modifier(out, &length, has_modes && !(flags & TALLY_ATTR_EXCLUDE_KERNEL), 'k');
	put_modifier(out, &length, has_modes && !(flags & TALLY_ATTR_EXCLUDE_USER), 'u');
	put_modifier(out, &length, has_modes && !(flags & TALLY_ATTR_EXCLUDE_HV), 'h');
	for (unsigned i = 0; i < precise; i++)
		put_modifier(out, &length, true, 'p');
	put_modifier(out, &length, has_machines && !(flags & TALLY_ATTR_EXCLUDE_HOST), 'H');
	put_modifier(out, &length, has_machines && !guests_out, 'G');
	out[length] = '\0';
}

static const char *plain_name(const struct tally_attr *attr, struct tally_arena *arena)
{
	unsigned long long config = attr->config;
	if (attr->type == TALLY_TYPE_RAW)
		return tally_arena_printf(arena, "raw 0x%llx", config);
	if (attr->type == TALLY_TYPE_BREAKPOINT)
		return tally_arena_printf(arena, "mem:0x%llx:%s%s%s",
					  (unsigned long long)attr->config1,
					  attr->bp_type & TALLY_BREAKPOINT_R ? "r" : "",
					  attr->bp_type & TALLY_BREAKPOINT_W ? "w" : "",
					  attr->bp_type & TALLY_BREAKPOINT_X ? "x" : "");
	return tally_event_name_of(attr, NULL, arena);
}

/* Returns perf's name for an event with this attribute, for recordings without names;
 * NULL without memory. */
static const char *made_name(const struct tally_attr *attr, struct tally_arena *arena)
{
	char modifiers[MODIFIERS_MAX];
	if (attr->type == TALLY_TYPE_TRACEPOINT)
		return tally_arena_printf(arena, "tracepoint %llu",
					  (unsigned long long)attr->config);
	const char *name = plain_name(attr, arena);
	put_modifiers(attr, modifiers);
	if (name && *modifiers && attr->type < TALLY_TYPE_MAX)
		return tally_arena_printf(arena, "%s%s", name, modifiers);
	return name;
}

int tally_perfdata_add_event(struct tally_perfdata *data, const void *attr, size_t attr_bytes,
			     const void *ids, size_t id_count)
{
	struct tally_recorded_event event = { .id_count = id_count };
	uint64_t *copy = tally_arena_array(&data->arena, id_count + 1, sizeof(*copy));
	attr_bytes = tally_min_u64(attr_bytes, sizeof(event.attr));
	memcpy(&event.attr, attr, attr_bytes);
	event.attr.size = (uint32_t)attr_bytes;
	tally_sample_layout_init(&event.layout, &event.attr);
	event.name = made_name(&event.attr, &data->arena);
	event.ids = copy;
	if (!copy || !event.name || !grow_events(data))
		return -ENOMEM;
	if (id_count)
		memcpy(copy, ids, id_count * sizeof(*copy));
	for (size_t i = 0; i < id_count; i++) {
		uint64_t *index = tally_map_put(&data->event_by_id, copy[i], NULL);
		if (!index)
			return -ENOMEM;
		*index = data->event_count;
	}
	data->names_known++;
	if (event.attr.type == TALLY_TYPE_TRACEPOINT) {
		uint64_t *last = tally_map_put(&data->unnamed_tracepoints, event.attr.config, NULL);
		if (!last)
			return -ENOMEM;
		event.alike = (uint32_t)*last;
		*last = data->event_count + 1;
	}
	memset(data->event_cache, 0, sizeof(data->event_cache));
	data->time_places[data->event_count] = time_places_of(data, &event.attr);
	if (!data->event_count)
		data->id_places = id_places(&event.attr);
	data->times_agree = !data->event_count ||
			    (data->times_agree &&
			     !memcmp(&data->time_places[0], &data->time_places[data->event_count],
				     sizeof(data->time_places[0])));
	data->events[data->event_count++] = event;
	return 0;
}

void tally_perfdata_rename(struct tally_perfdata *data, struct tally_recorded_event *event,
			   const char *name)
{
	struct tally_former_name *former = NULL;
	if (strcmp(event->name, name) && event->former_count < TALLY_FORMER_NAMES_MAX)
		former = tally_arena_alloc(&data->arena, sizeof(*former));
	if (former) {
		event->former_count++;
		*former = (struct tally_former_name){ .name = event->name,
						      .before = event->former };
		event->former = former;
	}
	event->name = name;
	data->names_known++;
}

static int apply_event_desc(struct tally_perfdata *data, struct tally_reader *reader)
{
	uint32_t count = tally_reader_u32(reader), attr_size = tally_reader_u32(reader);
	for (uint32_t i = 0; i < count && !reader->failed; i++) {
		tally_reader_skip(reader, attr_size);
		uint32_t id_count = tally_reader_u32(reader);
		const char *name = tally_reader_padded_string(reader, tally_reader_u32(reader));
		const void *ids = tally_reader_bytes(reader, (size_t)id_count * 8);
		if (reader->failed)
			break;
		uint64_t index = i;
		if (id_count) {
			uint64_t first_id;
			memcpy(&first_id, ids, sizeof(first_id));
			const uint64_t *by_id = tally_map_get(&data->event_by_id, first_id);
			if (by_id)
				index = *by_id;
		}
		if (index < data->event_count && *name) {
			tally_perfdata_rename(data, &data->events[index], name);
			data->events[index].is_named = true;
		}
	}
	return 0;
}

/* Returns the length of a build-id that is padded with zeros to 20 bytes: perf before 5.12 and
 * simpleperf don't store the length.  Linkers make 8, 16 and 20 bytes.  Assumes that no hash ends
 * in four zeros. */
static uint8_t padded_size(const uint8_t bytes[20])
{
	uint8_t size = 20;
	while (size && !(bytes[size - 1] | bytes[size - 2] | bytes[size - 3] | bytes[size - 4]))
		size -= 4;
	return size;
}

static int add_build_id(struct tally_perfdata *data, const uint8_t *bytes,
			const struct tally_record_header *header)
{
	struct tally_disk_build_id disk;
	struct tally_recorded_build_id build_id;
	if (header->size <= sizeof(disk))
		return -EBADMSG;
	memcpy(&disk, bytes, sizeof(disk));
	bool has_size = header->misc & TALLY_MISC_BUILD_ID_SIZE;
	const char *filename = (const char *)bytes + sizeof(disk);
	if ((has_size && disk.size > sizeof(disk.bytes)) ||
	    !memchr(filename, 0, header->size - sizeof(disk)))
		return -EBADMSG;
	build_id = (struct tally_recorded_build_id){
		.pid = disk.pid,
		.misc = header->misc & TALLY_MISC_CPUMODE_MASK,
		.size = has_size ? disk.size : padded_size(disk.bytes),
		.filename = tally_arena_string(&data->arena, filename),
	};
	memcpy(build_id.bytes, disk.bytes, sizeof(disk.bytes));
	if (!build_id.filename)
		return -ENOMEM;
	return tally_vector_push(&data->build_ids, build_id);
}

static int apply_build_ids(struct tally_perfdata *data, struct tally_reader *reader)
{
	int result = 0;
	while (tally_reader_left(reader) && !result) {
		struct tally_record_header header;
		const uint8_t *bytes = reader->at;
		if (!tally_reader_bytes(reader, sizeof(header)))
			return -EBADMSG;
		memcpy(&header, bytes, sizeof(header));
		if (header.size < sizeof(header) ||
		    !tally_reader_bytes(reader, header.size - sizeof(header)))
			return -EBADMSG;
		result = add_build_id(data, bytes, &header);
	}
	return result;
}

static int keep_tracepoint(void *context, const char *system, const char *text, size_t length)
{
	struct tally_perfdata *data = context;
	uint64_t id;
	if (!tally_tracing_format_id(text, length, &id))
		return 0;
	tally_perfdata_name_tracepoint(data, id, system, text, length);
	uint64_t *index = tally_map_put(&data->tracepoint_by_id, id, NULL);
	if (!index)
		return -ENOMEM;
	*index = data->tracepoints.count;
	return tally_vector_push(&data->tracepoints,
				 (struct tally_tracepoint_text){ text, length });
}

int tally_perfdata_apply_feature(struct tally_perfdata *data, unsigned feature, const void *bytes,
				 size_t size, uint64_t offset)
{
	struct tally_reader reader;
	int result = 0;
	if (!feature || feature >= TALLY_FEATURE_MAX)
		return 0;
	tally_reader_init(&reader, bytes, size, false);
	data->features[feature] = (struct tally_feature_bytes){ bytes, size };
	if (feature == TALLY_FEATURE_EVENT_DESC)
		result = apply_event_desc(data, &reader);
	else if (feature == TALLY_FEATURE_BUILD_ID)
		result = apply_build_ids(data, &reader);
	else if (feature == TALLY_FEATURE_TRACING_DATA)
		result = tally_tracing_data_walk(bytes, size, keep_tracepoint, data);
	if (result == -ENOMEM)
		return result;
	if (result || reader.failed)
		tally_perfdata_note_damage(data, false, offset, "feature section %u is cut short",
					   feature);
	return 0;
}

static bool fits(const struct tally_perfdata *data, const struct tally_disk_section *section)
{
	uint64_t size = data->source.memory_size;
	return section->offset <= size && section->size <= size - section->offset;
}

static int read_attrs(struct tally_perfdata *data, const struct tally_disk_header *header,
		      struct tally_error *err)
{
	const uint8_t *file = data->source.memory;
	uint64_t entry = header->attr_size, ids_left = data->source.memory_size / 8;
	struct tally_disk_section ids;
	if (!header->attrs.size && !header->data.size)
		return tally_error_set(err, -EBADMSG,
				       "it has no events: its recorder did not finish");
	if (entry < TALLY_ATTR_SIZE_VER0 + sizeof(ids) || entry > 4096 + sizeof(ids) ||
	    !fits(data, &header->attrs) || header->attrs.size < entry)
		return tally_error_set(
			err, -EBADMSG,
			"damaged at offset 16: its events (%llu bytes of %llu each at "
			"offset %llu) are not in the file",
			(unsigned long long)header->attrs.size, (unsigned long long)entry,
			(unsigned long long)header->attrs.offset);
	for (uint64_t at = 0; header->attrs.size - at >= entry; at += entry) {
		const uint8_t *attr = tally_perfdata_attr_at(data, file + header->attrs.offset + at,
							     entry - sizeof(ids));
		uint32_t size;
		if (!attr)
			return tally_error_set(err, -ENOMEM,
					       "no memory for the recording's events");
		memcpy(&size, attr + offsetof(struct tally_attr, size), sizeof(size));
		ids = tally_perfdata_section_at(data, file + header->attrs.offset + at + entry -
							      sizeof(ids));
		if (!size)
			size = TALLY_ATTR_SIZE_VER0;
		if (!fits(data, &ids) || ids.size / 8 > ids_left) {
			tally_perfdata_note_damage(data, false, header->attrs.offset + at,
						   "an event's ids are not there");
			ids = (struct tally_disk_section){ 0 };
		}
		ids_left -= ids.size / 8;
		uint64_t most = entry - sizeof(ids);
		const uint8_t *list = tally_perfdata_ids_at(data, file + ids.offset, ids.size / 8);
		if (!list || tally_perfdata_add_event(data, attr, tally_min_u64(size, most), list,
						      ids.size / 8))
			return tally_error_set(err, -ENOMEM,
					       "no memory for the recording's events");
	}
	return 0;
}

/* Reads the names of tracepoints, which old recordings have here. */
static void read_event_types(struct tally_perfdata *data, const struct tally_disk_header *header)
{
	const size_t entry = sizeof(struct tally_disk_event_type);
	if (!fits(data, &header->event_types))
		return;
	for (uint64_t at = 0; header->event_types.size - at >= entry; at += entry)
		tally_perfdata_apply_event_type(
			data, data->source.memory + header->event_types.offset + at, data->swap);
}

static int read_section(struct tally_perfdata *data, unsigned feature, uint64_t entry)
{
	struct tally_disk_section section = tally_perfdata_section_at(data,
								      data->source.memory + entry);
	if (!fits(data, &section)) {
		tally_perfdata_note_damage(data, false, entry, "feature section %u is not there",
					   feature);
		return 0;
	}
	/* Sections that lie in each other would cost more than the file's bytes. */
	data->section_bytes += section.size;
	if (data->section_bytes > data->source.memory_size) {
		tally_perfdata_note_damage(data, false, entry, "feature section %u overlaps others",
					   feature);
		return 0;
	}
	return tally_perfdata_take_feature(data, feature, data->source.memory + section.offset,
					   section.size, section.offset);
}

static int read_features(struct tally_perfdata *data, const struct tally_disk_header *header)
{
	uint64_t at = header->data.offset + header->data.size;
	for (unsigned feature = 0; feature < TALLY_FEATURE_MAX; feature++) {
		struct tally_disk_section entry = { at, sizeof(entry) };
		if (!(header->features[feature / 64] >> feature % 64 & 1))
			continue;
		if (!fits(data, &entry)) {
			tally_perfdata_note_damage(data, false, at,
						   "the table of feature sections is not there");
			return 0;
		}
		int result = read_section(data, feature, at);
		if (result)
			return result;
		at += sizeof(entry);
	}
	const struct tally_disk_section own = { at, sizeof(struct tally_disk_own) };
	if (fits(data, &own) &&
	    !memcmp(data->source.memory + at, TALLY_DISK_OWN_MARK, sizeof(TALLY_DISK_OWN_MARK) - 1))
		return read_section(data, TALLY_FEATURE_TALLY,
				    at + offsetof(struct tally_disk_own, section));
	return 0;
}

/* Recorders write the data's size last. perf writes the features' bits before it.  In such a file
 * the section table is not where it should be: a record stands there, and reads as an offset of
 * 2^51 or more. */
static bool is_unfinished(const struct tally_perfdata *data, const struct tally_disk_header *header)
{
	bool has_features = false;
	struct tally_disk_section entry = { header->data.offset, sizeof(entry) };
	for (unsigned i = 0; i < TALLY_FEATURE_MAX / 64; i++)
		has_features |= header->features[i] != 0;
	if (header->data.size || (!has_features && data->source.memory_size <= header->data.offset))
		return false;
	if (!has_features || !fits(data, &entry))
		return true;
	entry = tally_perfdata_section_at(data, data->source.memory + entry.offset);
	return !fits(data, &entry);
}

int tally_perfdata_read_head(struct tally_perfdata *data, struct tally_error *err)
{
	struct tally_disk_header header = { 0 };
	const size_t without_features = offsetof(struct tally_disk_header, features);
	size_t left = tally_source_left(&data->source, sizeof(header));
	memcpy(&header, data->source.memory, tally_min_u64(left, without_features));
	if (data->swap)
		tally_disk_header_swap(&header);
	if (left < without_features || header.size < without_features || header.size > left)
		return tally_error_set(err, -EBADMSG,
				       "damaged at offset 8: a header of %llu bytes can't be",
				       (unsigned long long)header.size);
	size_t size = tally_min_u64(header.size, sizeof(header));
	memcpy(&header, data->source.memory, size);
	if (data->swap)
		tally_disk_header_swap(&header);
	int result = read_attrs(data, &header, err);
	if (result)
		return result;
	read_event_types(data, &header);
	data->is_unfinished = is_unfinished(data, &header);
	data->place.data_offset = header.data.offset;
	data->place.data_size = header.data.size;
	data->place.features_offset = header.data.offset + header.data.size;
	tally_source_seek(&data->source, header.data.offset);
	data->data_end = data->source.memory_size;
	if (!data->is_unfinished)
		data->data_end = header.data.offset + header.data.size;
	if (header.data.offset > data->source.memory_size || data->data_end < header.data.offset)
		return tally_error_set(err, -EBADMSG,
				       "damaged at offset 40: its data can't be at offset %llu",
				       (unsigned long long)header.data.offset);
	if (!data->is_unfinished && read_features(data, &header))
		return tally_error_set(err, -ENOMEM, "no memory for the recording's features");
	return 0;
}

static int apply_attr(struct tally_perfdata *data, const uint8_t *bytes, size_t size,
		      uint64_t offset)
{
	const size_t head = sizeof(struct tally_record_header);
	uint32_t attr_size = 0;
	if (size >= head + TALLY_ATTR_SIZE_VER0)
		memcpy(&attr_size, bytes + head + offsetof(struct tally_attr, size),
		       sizeof(attr_size));
	if (!attr_size)
		attr_size = TALLY_ATTR_SIZE_VER0;
	if (attr_size < TALLY_ATTR_SIZE_VER0 || size < head || attr_size > size - head) {
		tally_perfdata_note_damage(data, false, offset,
					   "an event's attribute of %u bytes can't be", attr_size);
		return 0;
	}
	return tally_perfdata_add_event(data, bytes + head, attr_size, bytes + head + attr_size,
					(size - head - attr_size) / 8);
}

static int apply_feature_record(struct tally_perfdata *data, const uint8_t *bytes, size_t size,
				uint64_t offset)
{
	struct tally_disk_feature_record record;
	if (size < sizeof(record))
		return 0;
	memcpy(&record, bytes, sizeof(record));
	if (!record.feature || record.feature >= TALLY_FEATURE_MAX)
		return 0;
	void *copy = tally_arena_copy(&data->arena, (const char *)bytes + sizeof(record),
				      size - sizeof(record));
	if (!copy)
		return -ENOMEM;
	/* Build-ids come as records of their own.  The padding of this payload would look like a
	 * torn one. */
	if (record.feature == TALLY_FEATURE_BUILD_ID)
		return 0;
	return tally_perfdata_apply_feature(data, (unsigned)record.feature, copy,
					    size - sizeof(record), offset);
}

int tally_perfdata_apply_tracing(struct tally_perfdata *data, const void *bytes, size_t size,
				 uint64_t offset)
{
	char *copy = tally_arena_copy(&data->arena, bytes, size);
	if (!copy)
		return -ENOMEM;
	return tally_perfdata_apply_feature(data, TALLY_FEATURE_TRACING_DATA, copy, size, offset);
}

enum { LIST, MASK, RANGE };

struct run {
	long first, last; /* first > last: empty */
	bool any;
	struct tally_buffer *out;
};

static void end_run(struct run *run)
{
	if (run->first > run->last)
		return;
	tally_buffer_printf(run->out, "%s%ld", run->any ? "," : "", run->first);
	if (run->last > run->first)
		tally_buffer_printf(run->out, "-%ld", run->last);
	run->any = true;
}

static void add(struct run *run, long cpu)
{
	if (run->first <= run->last && cpu == run->last + 1) {
		run->last = cpu;
		return;
	}
	end_run(run);
	run->first = run->last = cpu;
}

static void add_mask(struct tally_reader *reader, struct run *run)
{
	unsigned words = tally_reader_u16(reader), size = tally_reader_u16(reader);
	if (size == 8)
		tally_reader_u16(reader); /* padding that aligns the words */
	else if (size != 4)
		tally_reader_fail(reader);
	for (unsigned i = 0; i < words && !reader->failed; i++) {
		uint64_t word;
		if (size == 8)
			word = tally_reader_u64(reader);
		else
			word = tally_reader_u32(reader);
		for (; word; word &= word - 1)
			add(run, (long)i * 8 * (long)size + __builtin_ctzll(word));
	}
}

void tally_cpu_map_text(struct tally_reader *reader, struct tally_buffer *out)
{
	struct run run = { .first = 0, .last = -2, .out = out };
	unsigned type = tally_reader_u16(reader);
	if (type == LIST) {
		for (unsigned left = tally_reader_u16(reader); left && !reader->failed; left--) {
			long cpu = (int16_t)tally_reader_u16(reader);
			if (!reader->failed)
				add(&run, cpu);
		}
	} else if (type == MASK) {
		add_mask(reader, &run);
	} else if (type == RANGE) {
		bool has_any = tally_reader_u8(reader);
		tally_reader_u8(reader);
		long first = tally_reader_u16(reader), last = tally_reader_u16(reader);
		if (has_any && !reader->failed)
			add(&run, -1);
		if (first <= last && !reader->failed) {
			add(&run, first);
			run.last = last;
		}
	} else {
		tally_reader_fail(reader);
	}
	end_run(&run);
}

/* Updates of events that were already described: names, units, CPUs. */

static int set_text(struct tally_perfdata *data, const char **field, const uint8_t *bytes,
		    size_t room)
{
	size_t length = strnlen((const char *)bytes, room);
	if (!length)
		return 0;
	char *copy = tally_arena_copy(&data->arena, (const char *)bytes, length);
	if (!copy)
		return -ENOMEM;
	*field = copy;
	return 0;
}

static int set_name(struct tally_perfdata *data, struct tally_recorded_event *event,
		    const uint8_t *bytes, size_t room)
{
	const char *name = NULL;
	int result = set_text(data, &name, bytes, room);
	if (name)
		tally_perfdata_rename(data, event, name);
	return result;
}

static int set_cpus(struct tally_perfdata *data, const char **field, const uint8_t *bytes,
		    size_t size)
{
	struct tally_reader reader;
	struct tally_buffer text = { 0 };
	tally_reader_init(&reader, bytes, size, false);
	tally_cpu_map_text(&reader, &text);
	int result = 0;
	if (!reader.failed && text.failed)
		result = -ENOMEM;
	else if (!reader.failed)
		result = set_text(data, field, (const uint8_t *)tally_buffer_string(&text),
				  text.length);
	tally_buffer_release(&text);
	return result;
}

/* Applies EVENT_UPDATE.  Returns 0 or -ENOMEM. */
static int apply_event_update(struct tally_perfdata *data, const uint8_t *bytes, size_t size)
{
	struct tally_disk_event_update update;
	if (size <= sizeof(update))
		return 0;
	memcpy(&update, bytes, sizeof(update));
	const uint64_t *index = tally_map_get(&data->event_by_id, update.id);
	const uint8_t *value = bytes + sizeof(update);
	size_t room = size - sizeof(update);
	if (!index)
		return 0;
	struct tally_recorded_event *event = &data->events[*index];
	switch (update.type) {
	case TALLY_EVENT_UPDATE_UNIT:
		return set_text(data, &event->unit, value, room);
	case TALLY_EVENT_UPDATE_NAME:
		event->is_named |= *value != 0;
		return set_name(data, event, value, room);
	case TALLY_EVENT_UPDATE_CPUS:
		return set_cpus(data, &event->cpus, value, room);
	case TALLY_EVENT_UPDATE_SCALE:
		if (room >= sizeof(event->scale))
			memcpy(&event->scale, value, sizeof(event->scale));
		return 0;
	default:
		return 0;
	}
}

int tally_perfdata_apply_record(struct tally_perfdata *data, const void *bytes, size_t size,
				uint64_t offset)
{
	struct tally_record_header header;
	int result = 0;
	memcpy(&header, bytes, sizeof(header));
	if (header.type < TALLY_RECORD_USER_START)
		return 0;
	/* Limits memory: a few compressed bytes can repeat such records without end. */
	const uint64_t free_bytes = 16 << 20;
	if (data->applied_bytes + size > data->source.offset + free_bytes)
		return 0;
	if (header.type == TALLY_RECORD_HEADER_ATTR)
		result = apply_attr(data, bytes, size, offset);
	else if (header.type == TALLY_RECORD_HEADER_EVENT_TYPE &&
		 size >= sizeof(header) + sizeof(struct tally_disk_event_type))
		tally_perfdata_apply_event_type(data, (const uint8_t *)bytes + sizeof(header),
						false);
	else if (header.type == TALLY_RECORD_EVENT_UPDATE)
		result = apply_event_update(data, bytes, size);
	else if (header.type == TALLY_RECORD_HEADER_FEATURE)
		result = apply_feature_record(data, bytes, size, offset);
	else if (header.type == TALLY_RECORD_HEADER_BUILD_ID)
		result = add_build_id(data, bytes, &header);
	else
		return 0;
	data->applied_bytes += size;
	if (result == -EBADMSG)
		tally_perfdata_note_damage(data, false, offset, "a build-id is cut short");
	return tally_only_enomem(result);
}
