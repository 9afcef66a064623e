/* Appends numbers in the host's byte order, and strings with their length in front.  A string's
 * length includes the zeros that pad it to a multiple of TALLY_PERFDATA_NAME_ALIGN. */
#include "perfdata/perfdata.h"

#include "base/extremes.h"
#include "base/text.h"
#include "perfdata/perfdata_internal.h"

#include <string.h>

static void put_u32(struct tally_buffer *out, uint32_t value)
{
	tally_buffer_append(out, &value, sizeof(value));
}

static void put_zeros(struct tally_buffer *out, size_t count)
{
	static const char zeros[TALLY_PERFDATA_NAME_ALIGN];
	for (size_t part; count; count -= part) {
		part = tally_min_u64(count, sizeof(zeros));
		tally_buffer_append(out, zeros, part);
	}
}

static size_t name_room(const char *text)
{
	return (strlen(text) + TALLY_PERFDATA_NAME_ALIGN) &
	       ~(size_t)(TALLY_PERFDATA_NAME_ALIGN - 1);
}

void tally_feature_string(struct tally_buffer *out, const char *text)
{
	size_t room = name_room(text);
	put_u32(out, (uint32_t)room);
	tally_buffer_text(out, text);
	put_zeros(out, room - strlen(text));
}

static void put_strings(struct tally_buffer *out, const char *const *texts, size_t count)
{
	put_u32(out, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		tally_feature_string(out, texts[i]);
}

void tally_feature_string_list(struct tally_buffer *out, const char *const *texts, size_t count)
{
	put_strings(out, texts, count);
}

void tally_feature_nrcpus(struct tally_buffer *out, uint32_t available, uint32_t online)
{
	put_u32(out, available);
	put_u32(out, online);
}

void tally_feature_u64(struct tally_buffer *out, uint64_t value)
{
	tally_buffer_append(out, &value, sizeof(value));
}

void tally_feature_event_desc(struct tally_buffer *out, const struct tally_recorded_event *events,
			      size_t count)
{
	uint32_t size = TALLY_ATTR_SIZE_VER0;
	for (size_t i = 0; i < count; i++) {
		uint32_t needed = tally_attr_size_needed(&events[i].attr);
		if (needed > size)
			size = needed;
	}
	put_u32(out, (uint32_t)count);
	put_u32(out, size);
	for (size_t i = 0; i < count; i++) {
		struct tally_attr attr = events[i].attr;
		attr.size = size;
		tally_buffer_append(out, &attr, size);
		put_u32(out, (uint32_t)events[i].id_count);
		tally_feature_string(out, tally_text_or(events[i].name, ""));
		tally_buffer_append(out, events[i].ids, 8 * events[i].id_count);
	}
}

void tally_feature_build_id(struct tally_buffer *out,
			    const struct tally_recorded_build_id *build_id)
{
	size_t room = name_room(build_id->filename);
	struct tally_disk_build_id record = {
		.header = { .type = TALLY_RECORD_HEADER_BUILD_ID,
			    .misc = build_id->misc | TALLY_MISC_BUILD_ID_SIZE,
			    .size = (uint16_t)(sizeof(record) + 4 + room) },
		.pid = build_id->pid,
		.size = build_id->size,
	};
	if (build_id->size > sizeof(record.bytes) ||
	    room > TALLY_RECORD_SIZE_ALIGNED - sizeof(record) - 4)
		return;
	memcpy(record.bytes, build_id->bytes, build_id->size);
	tally_buffer_append(out, &record, sizeof(record));
	tally_buffer_text(out, build_id->filename);
	/* record is 36 bytes: 4 more align the next */
	put_zeros(out, room - strlen(build_id->filename) + 4);
}

void tally_feature_sample_time(struct tally_buffer *out, uint64_t first_ns, uint64_t last_ns)
{
	tally_feature_u64(out, first_ns);
	tally_feature_u64(out, last_ns);
}

void tally_feature_clock_data(struct tally_buffer *out, uint32_t clockid, uint64_t wall_ns,
			      uint64_t clock_ns)
{
	put_u32(out, 1); /* version */
	put_u32(out, clockid);
	tally_feature_u64(out, wall_ns);
	tally_feature_u64(out, clock_ns);
}

void tally_feature_pmu_mappings(struct tally_buffer *out, const struct tally_feature_pmu *pmus,
				size_t count)
{
	put_u32(out, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		put_u32(out, pmus[i].type);
		tally_feature_string(out, pmus[i].name);
	}
}

void tally_feature_group_desc(struct tally_buffer *out, const struct tally_feature_group *groups,
			      size_t count)
{
	put_u32(out, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		tally_feature_string(out, groups[i].name);
		put_u32(out, groups[i].leader_index);
		put_u32(out, groups[i].member_count);
	}
}

void tally_feature_cpu_topology(struct tally_buffer *out,
				const struct tally_feature_topology *topology)
{
	put_strings(out, topology->packages, topology->package_count);
	put_strings(out, topology->threads, topology->thread_count);
	for (size_t i = 0; i < topology->cpu_count; i++) {
		put_u32(out, topology->cpus[i].core);
		put_u32(out, topology->cpus[i].package);
	}
	if (!topology->die_count)
		return;
	put_strings(out, topology->dies, topology->die_count);
	for (size_t i = 0; i < topology->cpu_count; i++)
		put_u32(out, topology->cpus[i].die);
}

void tally_feature_cache_head(struct tally_buffer *out, uint32_t count)
{
	put_u32(out, 1); /* version */
	put_u32(out, count);
}

void tally_feature_cache(struct tally_buffer *out, const uint32_t words[4], const char *type,
			 const char *size, const char *cpus)
{
	tally_buffer_append(out, words, 4 * sizeof(words[0]));
	tally_feature_string(out, type);
	tally_feature_string(out, size);
	tally_feature_string(out, cpus);
}

void tally_feature_numa_head(struct tally_buffer *out, uint32_t count)
{
	put_u32(out, count);
}

void tally_feature_numa(struct tally_buffer *out, uint32_t node, uint64_t total_kib,
			uint64_t free_kib, const char *cpus)
{
	put_u32(out, node);
	tally_feature_u64(out, total_kib);
	tally_feature_u64(out, free_kib);
	tally_feature_string(out, cpus);
}

void tally_feature_memory_head(struct tally_buffer *out, uint64_t block_bytes, uint64_t count)
{
	tally_feature_u64(out, 1); /* version */
	tally_feature_u64(out, block_bytes);
	tally_feature_u64(out, count);
}

void tally_feature_memory(struct tally_buffer *out, uint64_t node, const uint64_t *blocks,
			  size_t bits)
{
	tally_feature_u64(out, node);
	tally_feature_u64(out, bits);
	tally_feature_u64(out, bits); /* the bitmap's own count of bits */
	tally_buffer_append(out, blocks, (bits + 63) / 64 * sizeof(*blocks));
}

void tally_feature_compressed(struct tally_buffer *out, uint32_t level, uint32_t ratio,
			      uint32_t chunk_bytes_max)
{
	put_u32(out, 1); /* version */
	put_u32(out, 1); /* zstd */
	put_u32(out, level);
	put_u32(out, ratio);
	put_u32(out, chunk_bytes_max);
}
