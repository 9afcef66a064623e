/* The head of a file from another kind of machine or from an old recorder. */
#include "abi/byte_swap.h"
#include "perfdata/perfdata_reader.h"

#include <errno.h>
#include <string.h>

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
	for (size_t i = 0; i < data->event_count; i++) {
		struct tally_recorded_event *event = &data->events[i];
		if (event->attr.type == TALLY_TYPE_TRACEPOINT && event->attr.config == id &&
		    !event->is_named)
			return event;
	}
	return NULL;
}

/* Without memory for the name, an event keeps the name made from its attribute. */
static void name_tracepoints(struct tally_perfdata *data, uint64_t id, const char *name)
{
	struct tally_recorded_event *event;
	while (name && (event = unnamed_tracepoint(data, id))) {
		event->name = name;
		event->is_named = true;
	}
}

void tally_perfdata_apply_event_type(struct tally_perfdata *data, const uint8_t *bytes, bool swap)
{
	struct tally_disk_event_type type;
	memcpy(&type, bytes, sizeof(type));
	uint64_t id = swap ? __builtin_bswap64(type.event_id) : type.event_id;
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
