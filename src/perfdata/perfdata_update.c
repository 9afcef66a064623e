/* Updates of events that were already described: names, units, CPUs. */
#include "base/buffer.h"
#include "perfdata/cpu_map.h"
#include "perfdata/perfdata_reader.h"

#include <errno.h>
#include <string.h>

static int set_text(struct tally_perfdata *data, const char **field, const uint8_t *bytes,
		    size_t room)
{
	size_t length = strnlen((const char *)bytes, room);
	char *copy = length ? tally_arena_copy(&data->arena, (const char *)bytes, length) : NULL;
	if (copy)
		*field = copy;
	return length && !copy ? -ENOMEM : 0;
}

static int set_cpus(struct tally_perfdata *data, const char **field, const uint8_t *bytes,
		    size_t size)
{
	struct tally_reader reader;
	struct tally_buffer text = { 0 };
	tally_reader_init(&reader, bytes, size, false);
	tally_cpu_map_text(&reader, &text);
	int result = reader.failed ? 0
		     : text.failed
			     ? -ENOMEM
			     : set_text(data, field, (const uint8_t *)tally_buffer_string(&text),
					text.length);
	tally_buffer_release(&text);
	return result;
}

int tally_perfdata_apply_event_update(struct tally_perfdata *data, const uint8_t *bytes,
				      size_t size)
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
	case TALLY_EVENT_UPDATE_UNIT: return set_text(data, &event->unit, value, room);
	case TALLY_EVENT_UPDATE_NAME:
		event->is_named |= *value != 0;
		return set_text(data, &event->name, value, room);
	case TALLY_EVENT_UPDATE_CPUS: return set_cpus(data, &event->cpus, value, room);
	case TALLY_EVENT_UPDATE_SCALE:
		if (room >= sizeof(event->scale))
			memcpy(&event->scale, value, sizeof(event->scale));
		return 0;
	default: return 0;
	}
}
