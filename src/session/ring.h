/* Reading a mapped ring: perf_event_open(2), "MMAP layout"; the protocol of
 * kernel/events/ring_buffer.c.
 *
 * The kernel releases data_head behind its data (barrier B); we acquire it before ours (C), and
 * release data_tail once what was read is copied (D), which the kernel's control dependency (A)
 * pairs with.  One reader to a ring.
 */
#ifndef TALLY_SESSION_RING_H
#define TALLY_SESSION_RING_H

#include "abi/record.h"
#include "provider/provider.h"

struct tally_ring {
	struct tally_provider *provider;
	struct tally_user_page *page; /* NULL: not mapped */
	const uint8_t *data;
	size_t data_pages;
	uint64_t mask; /* bytes of data − 1 */
	uint64_t tail; /* first byte not read yet */
	uint64_t noted; /* head at the last tally_ring_note() */
	int handle;
	int cpu;
	/* written from its end on, never full: see record_flight.c; `tail` is where the last dump
	 * began */
	bool is_backward;
	void *bounce; /* a record that wraps, in one piece; 64 KiB, made on first need */
};

/* Maps `data_pages` (a power of two) of the event's ring.  -EPERM: past the mlock budget;
 * -ENOMEM. */
int tally_ring_open(struct tally_ring *ring, struct tally_provider *provider, int handle, int cpu,
		    size_t data_pages);
/* The same for events with WRITE_BACKWARD, mapped so that the oldest records give way. */
int tally_ring_open_backward(struct tally_ring *ring, struct tally_provider *provider, int handle,
			     int cpu, size_t data_pages);
void tally_ring_close(struct tally_ring *ring);

/* Notes how far the kernel has written: what tally_ring_next() reads up to. */
void tally_ring_note(struct tally_ring *ring);

/* The next record up to the noted head, or NULL; in place, or in the bounce buffer when it wraps.
 * Valid until the one behind it is peeked at or the room is given back.  *size gets its bytes.  A
 * record whose size makes no sense (no kernel writes one) empties the ring: NULL, and everything
 * noted counts as read. */
const void *tally_ring_peek(struct tally_ring *ring, size_t *size);

/* Moves behind the record that was peeked at. */
static inline void tally_ring_advance(struct tally_ring *ring, size_t size)
{
	ring->tail += size;
}

/* Both. */
static inline const void *tally_ring_next(struct tally_ring *ring, size_t *size)
{
	const void *record = tally_ring_peek(ring, size);
	if (record)
		tally_ring_advance(ring, *size);
	return record;
}

/* The record that stands `at` a place, whole as its header says; in place, or in the bounce buffer
 * when it wraps.  NULL where memory is out. */
const void *tally_ring_at(struct tally_ring *ring, uint64_t at);

/* What lies in one piece from the first unread byte on: up to the noted head, or to where the
 * ring's memory ends and goes on at its start.  For who walks over many records at once, and then
 * advances behind the whole ones. */
const void *tally_ring_piece(const struct tally_ring *ring, size_t *size);

/* Gives back to the kernel what was read. */
void tally_ring_release_read(struct tally_ring *ring);

#endif
