/* A ring: the user page, the data behind it, perhaps an AUX area; and who writes there. */
#ifndef TALLY_ENGINE_RING_BUFFER_H
#define TALLY_ENGINE_RING_BUFFER_H

#include "engine/engine_state.h"

struct engine_aux;

struct engine_ring {
	struct engine_retired retired;
	struct tally_engine *engine;
	struct tally_user_page *page;
	uint8_t *data;     /* behind the page; `size` bytes */
	size_t size;       /* a power of two, or 0: the header page alone */
	size_t pages;      /* with the header page */
	int cpu;           /* the only one that writes here, or -1 */
	bool overwrite;    /* nobody reads along: the oldest goes, tail is not looked at */
	bool backward;     /* from the end to the beginning */
	size_t watermark;  /* bytes between wake-ups */

	/* Writers', free-running positions: see ring_buffer.c. */
	uintptr_t paused;
	uintptr_t head;    /* what has been reserved up to */
	/* writers under way on the CPU: each but the first has interrupted the one before */
	uintptr_t nest;
	uintptr_t owner;   /* of a ring without a CPU: 1 + the CPU that writes now, or 0 */
	uintptr_t wakeup;  /* moves when a wake-up is due */
	uintptr_t samples; /* since the last wake-up by wakeup_events */
	uintptr_t lost;    /* records since the last LOST record */
	uintptr_t poll;    /* 1: poll has to tell of it, once */

	/* The surface's. */
	struct engine_list events;  /* that write here: ring_link. Under engine->ring_lock */
	struct engine_event *event; /* whose mapping made it, and whose page it is */
	size_t locked, charged;     /* pages under mlock_kb, and with the host */
	struct engine_aux *aux;     /* atomic; NULL: no area */
};

/* Trace data of a PMU's own, beside the ring. */
struct engine_aux {
	struct engine_retired retired;
	struct engine_ring *ring;
	void *area;
	size_t size, pages;
	uint64_t offset;      /* that it was mapped at */
	bool overwrite;
	size_t watermark;
	uintptr_t head;       /* free-running; in overwrite mode as the PMU has it */
	uintptr_t wakeup;     /* head at the last wake-up, rounded down to the watermark */
	uintptr_t busy;       /* between begin and end */
	struct engine_event *event; /* whose PMU set it up */
	unsigned mapped;
	size_t locked, charged;
};

/* What has been mapped: engine->mappings, under the engine lock. */
struct engine_mapping {
	struct engine_mapping *next;
	struct tally_engine_process *process;
	struct engine_event *event;
	struct engine_ring *ring;
	struct engine_aux *aux; /* NULL: the ring */
	void *address;
	size_t size;
};

/* All of the record of `size` bytes that was just begun, to be written in place; NULL: the ring's
 * end is within, and it must be copied. */
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
