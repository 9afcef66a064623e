/* Reads a mapped ring: perf_event_open(2), "MMAP layout"; the protocol of
 * kernel/events/ring_buffer.c.
 *
 * The kernel releases data_head after writing its data (barrier B); we acquire it before reading
 * (C).  We release data_tail once the data is copied (D), which the kernel's control dependency (A)
 * pairs with.  A ring has only one reader.
 */
#ifndef TALLY_SESSION_RING_H
#define TALLY_SESSION_RING_H

#include "abi/abi.h"
#include "provider/provider.h"

struct tally_ring {
	struct tally_provider *provider;
	struct tally_user_page *page; /* NULL: not mapped */
	const uint8_t *data;
	size_t data_pages;
	uint64_t mask; /* bytes of data − 1 */
	uint64_t tail; /* first unread byte */
	uint64_t noted; /* data_head at the last tally_ring_note() */
	int handle;
	int cpu;
	/* written from its end downwards and never full: see recorder_files.c; `tail` is where the
	 * last dump began */
	bool is_backward;
	void *bounce; /* holds a record that wraps, in one piece; 64 KiB, allocated on first use */
};

/* Maps `data_pages` (a power of two) of the event's ring.  Returns 0; -EPERM: beyond the mlock
 * budget; -ENOMEM. */
int tally_ring_open(struct tally_ring *ring, struct tally_provider *provider, int handle, int cpu,
		    size_t data_pages);
/* The same for events with WRITE_BACKWARD; new records overwrite the oldest. */
int tally_ring_open_backward(struct tally_ring *ring, struct tally_provider *provider, int handle,
			     int cpu, size_t data_pages);
/* Allocates the bounce buffer now, so that reading never allocates.  Returns 0 or -ENOMEM. */
int tally_ring_reserve(struct tally_ring *ring);
void tally_ring_close(struct tally_ring *ring);

/* Notes how far the kernel has written; tally_ring_next() reads up to there. */
void tally_ring_note(struct tally_ring *ring);

/* Returns the next record up to the noted head, or NULL, and sets *size to its bytes.  The record
 * is in place, or in the bounce buffer when it wraps.  It is valid until the record behind it is
 * peeked at, or until its space is released.  A record with an impossible size (the kernel writes
 * none) empties the ring: returns NULL, and everything noted counts as read. */
const void *tally_ring_peek(struct tally_ring *ring, size_t *size);

/* Moves behind the record that was peeked at. */
static inline void tally_ring_advance(struct tally_ring *ring, size_t size)
{
	ring->tail += size;
}

/* Peeks at a record and moves behind it. */
static inline const void *tally_ring_next(struct tally_ring *ring, size_t *size)
{
	const void *record = tally_ring_peek(ring, size);
	if (record)
		tally_ring_advance(ring, *size);
	return record;
}

/* Returns the record at position `at`, whole by its header; in place, or in the bounce buffer when
 * it wraps.  NULL without memory. */
const void *tally_ring_at(struct tally_ring *ring, uint64_t at);

/* Returns the unread bytes that are in one piece: up to the noted head, or to the end of the ring's
 * memory.  For callers that walk over many records at once and then advance behind the whole
 * ones. */
const void *tally_ring_piece(const struct tally_ring *ring, size_t *size);

/* Releases the space of everything read to the kernel. */
void tally_ring_release_read(struct tally_ring *ring);

#endif
