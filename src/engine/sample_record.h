/* Parts of records that sample.c and sideband.c share. */
#ifndef TALLY_ENGINE_SAMPLE_RECORD_H
#define TALLY_ENGINE_SAMPLE_RECORD_H

#include "engine/engine_state.h"

/* The id that records carry for an event: an inherited one's is its original's. */
static inline uint64_t engine_primary_id(const struct engine_event *event)
{
	return event->parent ? event->parent->id : event->id;
}

/* The event's clock: attr.clockid's, or the engine's. */
static inline uint64_t engine_event_clock(struct engine_event *event)
{
	return event->clock ? event->clock(event) : engine_now(event->engine);
}

static inline struct tally_engine_task *engine_current_task(struct tally_engine *engine)
{
	return engine->host.current_task(engine->host.host);
}

/* Bytes of what read_format gives for a leader with `siblings` members. */
size_t engine_read_format_size(uint64_t read_format, unsigned siblings);
/* Writes it; the other members are brought up to date first. [hit] */
void engine_output_read_format(struct engine_output *output, struct engine_event *event,
			       unsigned siblings);

/* A record of an event's own, with its trailer. `body` of whole words. [hit] */
void engine_output_record(struct engine_event *event, uint32_t type, const void *body, size_t size);

#endif
