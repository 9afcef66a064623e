/* A ring: the user page, the data behind it, perhaps an AUX area; and its writers' state. */
#ifndef TALLY_ENGINE_RING_BUFFER_H
#define TALLY_ENGINE_RING_BUFFER_H

#include "engine/engine_state.h"

struct engine_aux;

struct engine_ring {
	struct engine_retired retired;
	struct tally_engine *engine;
	struct tally_user_page *page;
	uint8_t *data;     /* `size` bytes behind the page */
	size_t size;       /* bytes: a power of two, or 0 if there is only the user page */
	size_t pages;      /* number of pages with the user page */
	int cpu;           /* the only CPU that writes here, or -1 for any */
	bool overwrite;    /* flight recorder: the oldest data go, tail is ignored */
	bool backward;     /* written from the end to the beginning */
	size_t watermark;  /* bytes between wake-ups */

	/* The writers' words.  Positions run freely: see ring_buffer.c. */
	uintptr_t paused;
	uintptr_t head;    /* end of the reserved bytes */
	/* number of writers in progress on the CPU; each but the first has interrupted the previous
	 * one */
	uintptr_t nest;
	uintptr_t owner;   /* of a ring without a CPU: 1 + the CPU that writes now, or 0 */
	uintptr_t wakeup;  /* changes when a wake-up is due */
	uintptr_t samples; /* number of samples since the last wake-up by wakeup_events */
	uintptr_t lost;    /* number of records lost since the last LOST record */
	uintptr_t poll;    /* 1: poll has to report data, once */

	/* The surface's. */
	/* events that write here, linked by ring_link; under engine->ring_lock */
	struct engine_list events;
	/* the event whose mapping made it, and whose user page it has */
	struct engine_event *event;
	size_t locked, charged;     /* pages charged to mlock_kb, and to the host */
	struct engine_aux *aux;     /* atomic; NULL: no area */
};

/* The area for a PMU's own trace data, beside the ring. */
struct engine_aux {
	struct engine_retired retired;
	struct engine_ring *ring;
	void *area;
	size_t size, pages;
	uint64_t offset;      /* file offset that it was mapped at */
	bool overwrite;
	size_t watermark;
	uintptr_t head;       /* runs freely; in overwrite mode the PMU sets it */
	uintptr_t wakeup;     /* head at the last wake-up, rounded down to the watermark */
	uintptr_t busy;       /* 1 between begin and end */
	struct engine_event *event; /* the event whose PMU set it up */
	unsigned mapped;
	size_t locked, charged;
};

/* A mapping: on engine->mappings, under the engine lock. */
struct engine_mapping {
	struct engine_mapping *next;
	struct tally_engine_process *process;
	struct engine_event *event;
	struct engine_ring *ring;
	struct engine_aux *aux; /* NULL: a mapping of the ring */
	void *address;
	size_t size;
};

/* Returns the place for the whole record of `size` bytes that was just begun, to be written in
 * place; or NULL if it wraps at the ring's end, so that it must be copied. */
static inline void *engine_output_whole(struct engine_output *output, size_t size)
{
	const struct engine_ring *ring = output->ring;
	size_t at = (size_t)(output->offset & (ring->size - 1));
	if (size > ring->size - at)
		return NULL;
	output->offset += size;
	return ring->data + at;
}

#endif
