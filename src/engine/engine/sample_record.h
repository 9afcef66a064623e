/* Parts of records that sample.c, sideband.c and others share. */
#ifndef TALLY_ENGINE_SAMPLE_RECORD_H
#define TALLY_ENGINE_SAMPLE_RECORD_H

#include "engine/engine_state.h"

/* Returns the id that records have for an event: for an inherited event, that of its original. */
static inline uint64_t engine_primary_id(const struct engine_event *event)
{
	if (event->parent)
		return event->parent->id;
	return event->id;
}

/* Returns the time of the event's clock in ns: attr.clockid's, or the engine's. */
static inline uint64_t engine_event_clock(struct engine_event *event)
{
	if (event->clock)
		return event->clock(event);
	return engine_now(event->engine);
}

static inline struct tally_engine_task *engine_current_task(struct tally_engine *engine)
{
	return engine->host.current_task(engine->host.host);
}

/* Returns the bytes that a read gives by `read_format`, for a leader with `siblings` members. */
size_t engine_read_format_size(uint64_t read_format, unsigned siblings);
/* Writes them into the record.  Reads the other members' PMUs first. [hit] */
void engine_output_read_format(struct engine_output *output, struct engine_event *event,
			       unsigned siblings);

/* Writes a record about the event itself, with its trailer.  `size` is a multiple of 8. [hit] */
void engine_output_record(struct engine_event *event, uint32_t type, const void *body, size_t size);

#endif
