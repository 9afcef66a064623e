/* libtally: samples of an event as they happen, from the ring that the kernel writes them to.
 *
 *     struct tally_event_ring *ring = tally_event_ring_open("cpu-clock:u", NULL, error,
 *                                                           sizeof(error));
 *     while (tally_event_ring_wait(ring, 1000) > 0)
 *             while ((header = tally_event_ring_next(ring)))
 *                     if (!tally_event_ring_decode(ring, header, &record) &&
 *                         header->type == TALLY_RECORD_SAMPLE)
 *                             printf("%" PRIx64 "\n", record.sample.ip);
 *
 * Nothing is copied: a record stays in the kernel's ring until the next call of
 * tally_event_ring_next().  Only one thread at a time may use a ring; it need not be the sampled
 * thread. */
#ifndef TALLY_RING_H
#define TALLY_RING_H

#include "tally/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tally_event_ring; /* opaque */

/* Options.  Zero in a member selects its default. */
struct tally_event_ring_options {
	int32_t pid;        /* the thread to sample; 0: the calling one */
	uint64_t period;    /* take a sample after every `period` events, … */
	uint64_t frequency; /* … or take `frequency` samples a second; 0 in both: 1000 a second */
	/* pages of the ring, a power of two; 0: 64, or fewer if locked memory is short */
	uint32_t pages;
	/* TALLY_SAMPLE_… bits; 0: IP, TID, TIME, CPU, and PERIOD if it may vary */
	uint64_t fields;
	bool disabled;      /* sample nothing before tally_event_ring_enable() */
};

/* Opens one event by an expression of tally_counter_open(), and samples it from now on.  `options`
 * may be NULL.  Returns NULL, with a sentence in `error` (may be NULL) and errno set, if that
 * fails.  The caller owns the ring. */
struct tally_event_ring *tally_event_ring_open(const char *event,
					       const struct tally_event_ring_options *options,
					       char *error, size_t error_size);

/* Returns the attribute of the event as it was opened, which determines the layout of its records.
 * It lives as long as the ring. */
const struct tally_attr *tally_event_ring_attr(const struct tally_event_ring *ring);

/* Waits until the ring is half full, or for `timeout_ms` (-1: for ever).  Returns 1 if there are
 * records, 0 if none came in that time, or -1 with errno set: EINTR for a signal, EPIPE if the
 * sampled thread has ended and all records were read. */
int tally_event_ring_wait(struct tally_event_ring *ring, int timeout_ms);

/* Returns the next record, which is valid until the next call; NULL if all were read.  To poll,
 * call it without waiting. */
const struct tally_record_header *tally_event_ring_next(struct tally_event_ring *ring);

/* tally_record_decode() for a record of this ring. */
int tally_event_ring_decode(const struct tally_event_ring *ring,
			    const struct tally_record_header *header, struct tally_record *record);

/* Returns the number of samples that found no room in the ring, by the LOST records read so far. */
uint64_t tally_event_ring_lost(const struct tally_event_ring *ring);

/* Start and stop sampling.  Return 0, or -1 with errno set. */
int tally_event_ring_enable(struct tally_event_ring *ring);
int tally_event_ring_disable(struct tally_event_ring *ring);

/* Closes the ring.  NULL is allowed. */
void tally_event_ring_close(struct tally_event_ring *ring);

#ifdef __cplusplus
}
#endif

#endif
