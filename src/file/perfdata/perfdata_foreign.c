/* Recordings from another kind of machine or from an old recorder: their head, their features and
 * tools' records become this machine's. */
#include "abi/abi.h"
#include "base/extremes.h"
#include "perfdata/perfdata_internal.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Converts feature sections of the other byte order to this machine's. feature.c and perf's
 * tools/perf/util/header.c have the layouts. */

static void swap_event_desc(struct tally_swapper *swapper)
{
	uint32_t count = tally_swap_u32(swapper), attr_size = tally_swap_u32(swapper);
	for (uint32_t i = 0; i < count && swapper->at < swapper->end; i++) {
		size_t left = (size_t)(swapper->end - swapper->at);
		tally_attr_swap(swapper->at, tally_min_u64(attr_size, left));
		tally_swap_skip(swapper, attr_size);
		uint32_t id_count = tally_swap_u32(swapper);
		tally_swap_fields(swapper, "s");
		for (uint32_t k = 0; k < id_count && swapper->at < swapper->end; k++)
			tally_swap_u64(swapper);
	}
}

static void swap_build_ids(struct tally_swapper *swapper)
{
	while (swapper->at < swapper->end) {
		const uint8_t *start = swapper->at;
		tally_swap_fields(swapper, "42");
		uint16_t size = tally_swap_u16(swapper);
		tally_swap_fields(swapper, "4"); /* pid */
		size_t used = (size_t)(swapper->at - start);
		tally_swap_skip(swapper, tally_saturating_sub_u64(size, used));
	}
}

static void swap_cpu_topology(struct tally_swapper *swapper, uint32_t cpu_count)
{
	tally_swap_fields(swapper, "{s}{s}");
	for (uint32_t i = 0; i < cpu_count && swapper->at < swapper->end; i++)
		tally_swap_fields(swapper, "44"); /* core, package */
	tally_swap_fields(swapper, "{s}4*");      /* the die of each CPU */
}

/* Scheduling domains by CPU.  The domains have names from version 17 of the kernel's schedstat
 * on. */
static void swap_cpu_domains(struct tally_swapper *swapper)
{
	enum { WITH_NAMES = 17 };
	bool has_names = tally_swap_u32(swapper) >= WITH_NAMES;
	tally_swap_u32(swapper);
	while (swapper->at < swapper->end)
		tally_swap_fields(swapper, has_names ? "4{4sss}" : "4{4ss}");
}

static const char *const layouts[TALLY_FEATURE_MAX] = {
	[TALLY_FEATURE_HOSTNAME] = "s",
	[TALLY_FEATURE_OSRELEASE] = "s",
	[TALLY_FEATURE_VERSION] = "s",
	[TALLY_FEATURE_ARCH] = "s",
	[TALLY_FEATURE_NRCPUS] = "44",
	[TALLY_FEATURE_CPUDESC] = "s",
	[TALLY_FEATURE_CPUID] = "s",
	[TALLY_FEATURE_TOTAL_MEM] = "8",
	[TALLY_FEATURE_CMDLINE] = "{s}",
	[TALLY_FEATURE_NUMA_TOPOLOGY] = "{488s}",
	[TALLY_FEATURE_BRANCH_STACK] = "",
	[TALLY_FEATURE_PMU_MAPPINGS] = "{4s}",
	[TALLY_FEATURE_GROUP_DESC] = "{s44}",
	[TALLY_FEATURE_AUXTRACE] = "8*",
	[TALLY_FEATURE_STAT] = "",
	[TALLY_FEATURE_CACHE] = "4{4444sss}",
	[TALLY_FEATURE_SAMPLE_TIME] = "88",
	[TALLY_FEATURE_MEM_TOPOLOGY] = "8*",
	[TALLY_FEATURE_CLOCKID] = "8",
	[TALLY_FEATURE_DIR_FORMAT] = "8",
	[TALLY_FEATURE_COMPRESSED] = "4*",
	[TALLY_FEATURE_CPU_PMU_CAPS] = "{ss}",
	[TALLY_FEATURE_CLOCK_DATA] = "4488",
	[TALLY_FEATURE_HYBRID_TOPOLOGY] = "{ss}",
	[TALLY_FEATURE_PMU_CAPS] = "{{ss}s}",
	[TALLY_FEATURE_E_MACHINE] = "44",
	[TALLY_FEATURE_CLN_SIZE] = "4",
};

/* Converts a feature to this machine's byte order; CPU_TOPOLOGY needs NRCPUS's number of CPUs.
 * Returns false when the feature's layout is unknown. */
static bool tally_feature_swap(unsigned feature, void *bytes, size_t size, uint32_t cpu_count)
{
	struct tally_swapper swapper = { bytes, (uint8_t *)bytes + size };
	if (feature == TALLY_FEATURE_EVENT_DESC)
		swap_event_desc(&swapper);
	else if (feature == TALLY_FEATURE_BUILD_ID)
		swap_build_ids(&swapper);
	else if (feature == TALLY_FEATURE_CPU_TOPOLOGY)
		swap_cpu_topology(&swapper, cpu_count);
	else if (feature == TALLY_FEATURE_CPU_DOMAIN_INFO)
		swap_cpu_domains(&swapper);
	else if (feature < TALLY_FEATURE_MAX && layouts[feature])
		tally_swap_fields(&swapper, layouts[feature]);
	else
		return false;
	return true;
}

/* Converts tools' records (types from 64 on) of the other byte order to this machine's: perf's
 * tools/lib/perf/include/perf/event.h. */

static void swap_attr(struct tally_swapper *swapper)
{
	uint32_t size = 0;
	size_t left = (size_t)(swapper->end - swapper->at);
	if (left >= TALLY_ATTR_SIZE_VER0)
		memcpy(&size, swapper->at + offsetof(struct tally_attr, size), sizeof(size));
	size = size ? __builtin_bswap32(size) : TALLY_ATTR_SIZE_VER0;
	if (size > left)
		return; /* too short: readers will not accept it as an attribute */
	tally_attr_swap(swapper->at, size);
	tally_swap_skip(swapper, size);
	tally_swap_fields(swapper, "8*");
}

static void swap_cpu_map(struct tally_swapper *swapper)
{
	enum { LIST, MASK, RANGE };
	uint16_t type = tally_swap_u16(swapper);
	if (type == LIST) {
		tally_swap_fields(swapper, "22*");
	} else if (type == MASK) {
		tally_swap_u16(swapper);
		bool is_64 = tally_swap_u16(swapper) == 8;
		if (is_64)
			tally_swap_skip(swapper, 2); /* padding that aligns the words */
		tally_swap_fields(swapper, is_64 ? "8*" : "4*");
	} else if (type == RANGE) {
		tally_swap_skip(swapper, 2);
		tally_swap_fields(swapper, "22");
	}
}

static void swap_event_update(struct tally_swapper *swapper)
{
	enum { UNIT, SCALE, NAME, CPUS };
	uint64_t type = tally_swap_u64(swapper);
	tally_swap_u64(swapper);
	if (type == SCALE)
		tally_swap_u64(swapper);
	else if (type == CPUS)
		swap_cpu_map(swapper);
}

static void swap_thread_map(struct tally_swapper *swapper)
{
	enum { COMM_BYTES = 16 };
	tally_swap_u64(swapper);
	while (swapper->at < swapper->end) {
		tally_swap_u64(swapper);
		tally_swap_skip(swapper, COMM_BYTES);
	}
}

static void swap_auxtrace_error(struct tally_swapper *swapper)
{
	enum { MESSAGE_BYTES = 64 };
	tally_swap_fields(swapper, "44444488");
	tally_swap_skip(swapper, MESSAGE_BYTES);
	tally_swap_fields(swapper, "44");
}

static const char *fields_of_record(uint32_t type)
{
	switch (type) {
	case TALLY_RECORD_HEADER_EVENT_TYPE:
		return "8";
	case TALLY_RECORD_HEADER_TRACING_DATA:
		return "4";
	case TALLY_RECORD_HEADER_BUILD_ID:
		return "4";
	case TALLY_RECORD_ID_INDEX:
		return "8*";
	case TALLY_RECORD_AUXTRACE_INFO:
		return "448*";
	case TALLY_RECORD_AUXTRACE:
		return "8884444";
	case TALLY_RECORD_STAT_CONFIG:
		return "8*";
	case TALLY_RECORD_STAT:
		return "844888";
	case TALLY_RECORD_STAT_ROUND:
		return "88";
	case TALLY_RECORD_TIME_CONV:
		return "88888";
	case TALLY_RECORD_COMPRESSED2:
		return "8";
	default:
		return "";
	}
}

void tally_tool_record_swap(void *record, uint32_t cpu_count)
{
	struct tally_record_header header;
	memcpy(&header, record, sizeof(header));
	struct tally_swapper swapper = { (uint8_t *)record + sizeof(header),
					 (uint8_t *)record + header.size };
	if (header.type == TALLY_RECORD_HEADER_ATTR) {
		swap_attr(&swapper);
	} else if (header.type == TALLY_RECORD_CPU_MAP) {
		swap_cpu_map(&swapper);
	} else if (header.type == TALLY_RECORD_EVENT_UPDATE) {
		swap_event_update(&swapper);
	} else if (header.type == TALLY_RECORD_THREAD_MAP) {
		swap_thread_map(&swapper);
	} else if (header.type == TALLY_RECORD_AUXTRACE_ERROR) {
		swap_auxtrace_error(&swapper);
	} else if (header.type == TALLY_RECORD_HEADER_FEATURE) {
		uint64_t feature = tally_swap_u64(&swapper);
		if (feature < TALLY_FEATURE_MAX)
			tally_feature_swap((unsigned)feature, swapper.at,
					   (size_t)(swapper.end - swapper.at), cpu_count);
	} else {
		tally_swap_fields(&swapper, fields_of_record(header.type));
	}
}

bool tally_perfdata_is_swapped(const struct tally_perfdata *data)
{
	return data->swap;
}

uint32_t tally_perfdata_cpus(const struct tally_perfdata *data)
{
	const struct tally_feature_bytes *feature = &data->features[TALLY_FEATURE_NRCPUS];
	uint32_t count = 0;
	if (feature->bytes && feature->size >= sizeof(count))
		memcpy(&count, feature->bytes, sizeof(count));
	return count;
}

const uint8_t *tally_perfdata_attr_at(struct tally_perfdata *data, const uint8_t *at, size_t size)
{
	if (!data->swap)
		return at;
	char *copy = tally_arena_copy(&data->arena, (const char *)at, size);
	if (copy)
		tally_attr_swap(copy, size);
	return (const uint8_t *)copy;
}

const uint8_t *tally_perfdata_ids_at(struct tally_perfdata *data, const uint8_t *at, size_t count)
{
	if (!data->swap)
		return at;
	uint8_t *copy = (uint8_t *)tally_arena_copy(&data->arena, (const char *)at,
						    count * sizeof(uint64_t));
	struct tally_swapper swapper = { copy, copy + count * sizeof(uint64_t) };
	if (copy)
		tally_swap_fields(&swapper, "8*");
	return copy;
}

struct tally_disk_section tally_perfdata_section_at(const struct tally_perfdata *data,
						    const uint8_t *at)
{
	struct tally_disk_section section;
	memcpy(&section, at, sizeof(section));
	if (data->swap)
		section = (struct tally_disk_section){ __builtin_bswap64(section.offset),
						       __builtin_bswap64(section.size) };
	return section;
}

/* The bitmap is an array of unsigned long, so a 32-bit machine has the halves of these words
 * swapped.  Every recorder writes the HOSTNAME feature; the position of its bit tells the size of
 * the words. perf decides the same way. */
static void swap_features(uint64_t features[TALLY_FEATURE_MAX / 64])
{
	const uint64_t hostname = 1ull << TALLY_FEATURE_HOSTNAME;
	const unsigned words = TALLY_FEATURE_MAX / 64;
	for (unsigned i = 0; i < words; i++)
		features[i] = __builtin_bswap64(features[i]);
	if (features[0] & hostname || !(features[0] >> 32 & hostname))
		return;
	for (unsigned i = 0; i < words; i++)
		features[i] = features[i] << 32 | features[i] >> 32;
}

void tally_disk_header_swap(struct tally_disk_header *header)
{
	struct tally_swapper swapper = { (uint8_t *)header, (uint8_t *)header->features };
	tally_swap_fields(&swapper, "8*");
	swap_features(header->features);
}

int tally_perfdata_take_feature(struct tally_perfdata *data, unsigned feature, const uint8_t *bytes,
				size_t size, uint64_t offset)
{
	/* TRACING_DATA states its own byte order; TALLY is always little-endian. */
	if (!data->swap || feature == TALLY_FEATURE_TRACING_DATA || feature == TALLY_FEATURE_TALLY)
		return tally_perfdata_apply_feature(data, feature, bytes, size, offset);
	char *copy = tally_arena_copy(&data->arena, (const char *)bytes, size);
	if (!copy)
		return -ENOMEM;
	/* BPF features contain structures of the kernel, which we cannot convert: ignore them.
	 * Unknown features stay as they are. */
	bool is_bpf = feature == TALLY_FEATURE_BPF_PROG_INFO || feature == TALLY_FEATURE_BPF_BTF;
	if (!tally_feature_swap(feature, copy, size, tally_perfdata_cpus(data)) && is_bpf)
		return 0;
	return tally_perfdata_apply_feature(data, feature, copy, size, offset);
}

static struct tally_recorded_event *unnamed_tracepoint(struct tally_perfdata *data, uint64_t id)
{
	uint64_t *last = tally_map_get(&data->unnamed_tracepoints, id);
	while (last && *last && data->events[*last - 1].is_named)
		*last = data->events[*last - 1].alike;
	if (last && *last)
		return &data->events[*last - 1];
	return NULL;
}

/* Without memory for the name, an event keeps the name made from its attribute. */
static void name_tracepoints(struct tally_perfdata *data, uint64_t id, const char *name)
{
	struct tally_recorded_event *event;
	while (name && (event = unnamed_tracepoint(data, id))) {
		tally_perfdata_rename(data, event, name);
		event->is_named = true;
	}
}

void tally_perfdata_apply_event_type(struct tally_perfdata *data, const uint8_t *bytes, bool swap)
{
	struct tally_disk_event_type type;
	memcpy(&type, bytes, sizeof(type));
	uint64_t id = tally_disk_u64(type.event_id, swap);
	size_t length = strnlen(type.name, sizeof(type.name));
	if (length && unnamed_tracepoint(data, id))
		name_tracepoints(data, id, tally_arena_copy(&data->arena, type.name, length));
}

void tally_perfdata_name_tracepoint(struct tally_perfdata *data, uint64_t id, const char *system,
				    const char *format, size_t length)
{
	static const char head[] = "name: ";
	const char *name = format + sizeof(head) - 1;
	if (!unnamed_tracepoint(data, id) || length < sizeof(head) ||
	    memcmp(format, head, sizeof(head) - 1) != 0)
		return;
	const char *end = memchr(name, '\n', length - (sizeof(head) - 1));
	if (end)
		name_tracepoints(data, id,
				 tally_arena_printf(&data->arena, "%s:%.*s", system,
						    (int)(end - name), name));
}
