/* libtally: samples of an event as they happen, out of the ring that the kernel writes them to.
 *
 *     struct tally_event_ring *ring = tally_event_ring_open("cpu-clock:u", NULL, error, sizeof(error));
 *     while (tally_event_ring_wait(ring, 1000) > 0)
 *             while ((header = tally_event_ring_next(ring)))
 *                     if (!tally_event_ring_decode(ring, header, &record) && header->type == TALLY_RECORD_SAMPLE)
 *                             printf("%" PRIx64 "\n", record.sample.ip);
 *
 * Nothing is copied: a record lies in the kernel's ring until the next one is asked for.  A ring is
 * used by one thread at a time, which may be another than the sampled one.
 */
#ifndef TALLY_RING_H
#define TALLY_RING_H

#include "tally/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tally_event_ring; /* opaque */

/* Zero-initialised: the defaults. */
struct tally_event_ring_options {
	int32_t pid;        /* the thread to sample; 0: the calling one */
	uint64_t period;    /* a sample each so many events … */
	uint64_t frequency; /* … or so many samples a second; 0 both: 1000 a second */
	/* of the ring: a power of two; 0: 64, or fewer where locked memory is short */
	uint32_t pages;
	/* TALLY_SAMPLE_… bits; 0: IP, TID, TIME, CPU, and PERIOD where it may differ */
	uint64_t fields;
	bool disabled;      /* nothing is sampled before tally_event_ring_enable() */
};

/* Opens one event by an expression as tally_counter_open() takes it, sampling from now on.
 * `options` may be NULL.  NULL with a sentence in `error` (may be NULL) and errno set.  Owned by
 * the caller. */
struct tally_event_ring *tally_event_ring_open(const char *event,
					       const struct tally_event_ring_options *options,
					       char *error, size_t error_size);

/* The event as it was opened: what tells the layout of its records.  Lives as long as the ring. */
const struct tally_attr *tally_event_ring_attr(const struct tally_event_ring *ring);

/* Waits until the ring is half full, or for so many ms (-1: for ever).  1: there are records; 0:
 * none within the time; -1 with errno set (EINTR: a signal), also where the sampled thread has
 * ended and all was read (EPIPE). */
int tally_event_ring_wait(struct tally_event_ring *ring, int timeout_ms);

/* The next record, valid until the next call; NULL when all were read.  To poll, call it without
 * waiting. */
const struct tally_record_header *tally_event_ring_next(struct tally_event_ring *ring);

/* tally_record_decode() of a record of this ring. */
int tally_event_ring_decode(const struct tally_event_ring *ring,
			    const struct tally_record_header *header, struct tally_record *record);

/* Samples that found no room in the ring: those of the LOST records read so far. */
uint64_t tally_event_ring_lost(const struct tally_event_ring *ring);

/* 0, or -1 with errno set. */
int tally_event_ring_enable(struct tally_event_ring *ring);
int tally_event_ring_disable(struct tally_event_ring *ring);

/* NULL is fine. */
void tally_event_ring_close(struct tally_event_ring *ring);

#ifdef __cplusplus
}
#endif

#endif
