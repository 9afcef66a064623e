/* The ring that records are written to: reserve, fill, commit.
 *
 * One CPU writes, one reader elsewhere reads.  At any instruction another writer of the same ring
 * may interrupt the writer (a hit in an interrupt or in an NMI), and it must not wait for it: so
 * there are no locks, and no writer spins.
 *
 *   head   end of the reserved bytes. Moved by compare-exchange, so that writers that interrupt
 *          one another get bytes of their own.
 *   nest   number of writers in progress. An interrupt ends before the code that it interrupted
 *          goes on. So the writer that brings nest back to 0 is the first that came, and all others
 *          have ended by then: all that is reserved has been written. Only this writer moves
 *          page->data_head, the limit for readers.
 *   tail   page->data_tail, the reader's: it has read up to here. A record that would pass it is
 *          dropped and counted in `lost`. The next record that finds room has a LOST record before
 *          it, which takes the count by an exchange, so that each loss is reported exactly once.
 *          The user may write anything into the tail: offsets are masked, so only the user's own
 *          data can be spoilt.
 *
 * Committing takes care.  The first writer reads head, publishes it, sets nest to 0, and reads head
 * again.  An interrupt that comes before nest is 0 leaves publishing to us: the second look finds
 * what it reserved.  An interrupt that comes later is itself a first writer, and publishes.  If
 * nest were set to 0 before publishing, an interrupt between the two would publish a newer head,
 * which we would then take back: a reader would see data_head move backwards.
 *
 * Order against the reader, on machines that reorder (the letters are those of the kernel's own
 * explanation):
 *
 *       writer                                  reader
 *       load data_tail                          load data_head
 *           A                                       C
 *       store the record's bytes                load the record's bytes
 *           B                                       D
 *       store data_head                         store data_tail
 *
 *   A pairs with D: bytes are not overwritten before the reader is done with them. The kernel
 *     relies on the control dependency alone: the stores happen only if the loaded tail leaves
 *     room, and no CPU makes a speculated store visible. C11 has no control dependencies and a
 *     compiler may break them, so here it is an acquire load: free on x86, ldar on arm64, one
 *     fence r,rw on riscv64.
 *   B pairs with C: a reader that sees the head sees the bytes. A release store: stlr on arm64,
 *     fence rw,w on riscv64.
 *   C, D: the reader's acquire load of data_head and release store of data_tail. The loads before
 *     D are those of the record: release orders earlier loads as well.
 *
 * Among writers of one CPU only the compiler must be held back: a CPU sees its own accesses in
 * program order, and an interrupt is a point in that order.  So relaxed accesses and
 * engine_interrupt_fence() are enough.
 *
 * Several CPUs.  Events that share a ring (SET_OUTPUT, inherited children) are bound to one CPU and
 * write there.  The ring of an event that follows its task is written on several CPUs, one after
 * the other: switching the task from one CPU to the other orders the writes.  One case is left,
 * which the kernel does not handle: an inherited event that was redirected to a ring without a CPU,
 * whose children write on several CPUs at the same time.  So a ring without a CPU is owned while it
 * is written, by the CPU that moves `owner` from 0.  A writer that finds another CPU as the owner
 * does not wait: its record is dropped and counted.  Taking ownership acquires what the previous
 * owner released.  The owner is the writer that took the ring, not one that interrupted it.  It
 * lets go when its commit is done; an interrupt just before that still finds the ring owned by its
 * own CPU.
 *
 * The host guarantees that a hit neither moves to another CPU half-way nor is preempted by another
 * task ([hit] in tally/engine.h). */
#include "engine/ring_buffer.h"

#include "engine/ring_access.h"

#define LOST_SIZE 24u

/* Returns the size of a LOST record of this event. */
static uint32_t lost_record_size(const struct engine_event *event)
{
	if (engine_event_flag(event, TALLY_ATTR_SAMPLE_ID_ALL))
		return LOST_SIZE + event->id_header_size;
	return LOST_SIZE;
}

/* True if `size` bytes fit.  One byte always stays free, since head == tail means empty.  As
 * records are multiples of 8, a full ring has 8 unused bytes, as in the kernel.  In overwrite mode,
 * records up to the size of the ring fit. */
static bool has_room(const struct engine_ring *ring, uintptr_t head, uintptr_t tail, uint32_t size)
{
	if (ring->overwrite)
		return size <= ring->size;
	uintptr_t room = tail - head - 1;
	if (ring->backward)
		room = head - tail - 1;
	return (room & (ring->size - 1)) >= size;
}

/* Returns false if another CPU is writing. */
static bool ring_enter(struct engine_ring *ring, struct engine_output *output)
{
	output->owned = false;
	if (ring->cpu < 0) {
		uintptr_t owner = 0,
			  me = 1 + (uintptr_t)ring->engine->host.this_cpu(ring->engine->host.host);

		output->owned = engine_shared_compare_exchange_acquire(&ring->owner, &owner, me);
		if (!output->owned && owner != me)
			return false;
	}
	/* Read before nest: an interrupt after nest leaves the wake-up to us.  (The kernel reads it
	 * after nest, and loses the wake-up of an interrupt that comes between the two.) */
	output->wakeup = engine_shared_load(&ring->wakeup);
	engine_interrupt_fence();
	/* Two accesses: an interrupt between them leaves nest as it found it. */
	engine_shared_store(&ring->nest, engine_shared_load(&ring->nest) + 1);
	engine_interrupt_fence();
	return true;
}

static inline __attribute__((always_inline)) void ring_commit(struct engine_ring *ring,
							      struct engine_output *output)
{
	uintptr_t nest = engine_shared_load(&ring->nest);
	uintptr_t head;

	engine_interrupt_fence(); /* orders the record before nest */
	if (nest > 1) {
		engine_shared_store(&ring->nest, nest - 1);
		return;
	}
	for (;;) {
		head = engine_shared_load(&ring->head);
		/* B: pairs with the reader's C */
		engine_page_store_release(&ring->page->data_head, head);
		engine_interrupt_fence();
		engine_shared_store(&ring->nest, 0);
		engine_interrupt_fence();
		if (engine_shared_load(&ring->head) == head)
			break;
		/* An interrupt reserved bytes after we looked, and may have left the publishing to
		 * us. */
		engine_shared_store(&ring->nest, 1);
		engine_interrupt_fence();
	}
	if (output->wakeup != engine_shared_load(&ring->wakeup)) {
		engine_shared_store_release(&ring->poll, 1);
		engine_event_pend(output->event, ENGINE_PENDING_WAKEUP);
	}
	if (output->owned)
		engine_shared_store_release(&ring->owner, 0);
}

static __attribute__((noinline, cold)) int drop(struct engine_ring *ring,
						struct engine_event *event)
{
	engine_shared_add(&ring->lost, 1);
	engine_add64(&event->lost_samples, 1);
	return -ENGINE_ENOSPC;
}

static void write_lost(struct engine_output *output, struct engine_event *event, uint32_t size)
{
	struct {
		struct tally_record_header header;
		uint64_t id, lost;
	} record = {
		.header = { .type = TALLY_RECORD_LOST, .size = (uint16_t)size },
		.id = event->id,
		/* 0 if an interrupt has reported them since we looked */
		.lost = engine_shared_exchange(&output->ring->lost, 0),
	};
	uint8_t trailer[48] = { 0 };

	engine_output_copy(output, &record, sizeof(record));
	if (size > sizeof(record)) {
		engine_sample_id(event, trailer);
		engine_output_copy(output, trailer, size - sizeof(record));
	}
}

/* Moves `wakeup` on when the position has passed the watermark.  An interrupt that reserved after
 * us may have moved `wakeup` past our position: so the difference is signed, and the move is an
 * exchange.  If it fails, the move has been made.  (The kernel's difference is unsigned and its
 * move an addition: `wakeup` may overtake the head, and from then on every record wakes.) */
static void wake_by_bytes(struct engine_ring *ring, uintptr_t position)
{
	uintptr_t wakeup = engine_shared_load(&ring->wakeup);

	if ((intptr_t)(position - wakeup) > (intptr_t)ring->watermark)
		engine_shared_compare_exchange(&ring->wakeup, &wakeup, wakeup + ring->watermark);
}

int engine_output_begin(struct engine_output *output, struct engine_event *event, uint32_t size)
{
	struct engine_ring *ring;
	uintptr_t head, next;
	uint32_t lost_size = 0;

	if (event->parent)
		event = event->parent;
	/* pairs with the release in ring_map.c */
	ring = __atomic_load_n(&event->ring, __ATOMIC_ACQUIRE);
	if (!ring || !ring->size)
		return -ENGINE_ENOSPC;
	if (engine_shared_load(&ring->paused))
		return drop(ring, event);
	output->ring = ring;
	output->event = event;
	if (!ring_enter(ring, output))
		return drop(ring, event);
	if (engine_shared_load(&ring->lost))
		lost_size = lost_record_size(event);
	size += lost_size;

	head = engine_shared_load(&ring->head);
	do {
		/* A: pairs with the reader's D */
		uintptr_t tail = engine_page_load_acquire(&ring->page->data_tail);

		if (!has_room(ring, head, tail, size)) {
			drop(ring, event);
			engine_output_end(output);
			return -ENGINE_ENOSPC;
		}
		next = ring->backward ? head - size : head + size;
	} while (!engine_shared_compare_exchange(&ring->head, &head, next));
	engine_interrupt_fence();

	output->offset = ring->backward ? next : head;
	wake_by_bytes(ring, ring->backward ? 0 - next : next);
	if (lost_size)
		write_lost(output, event, lost_size);
	return 0;
}

static size_t until_wrap(const struct engine_output *output, size_t size)
{
	const struct engine_ring *ring = output->ring;
	size_t left = ring->size - (size_t)(output->offset & (ring->size - 1));

	if (size < left)
		return size;
	return left;
}

void engine_output_copy(struct engine_output *output, const void *bytes, size_t size)
{
	const struct engine_ring *ring = output->ring;
	const uint8_t *from = bytes;

	while (size) {
		size_t part = until_wrap(output, size);

		engine_ring_write(ring->data + (output->offset & (ring->size - 1)), from, part);
		output->offset += part;
		from += part;
		size -= part;
	}
}

void engine_output_skip(struct engine_output *output, size_t size)
{
	const struct engine_ring *ring = output->ring;

	while (size) {
		size_t part = until_wrap(output, size);

		engine_ring_zero(ring->data + (output->offset & (ring->size - 1)), part);
		output->offset += part;
		size -= part;
	}
}

void engine_output_sampled(struct engine_output *output)
{
	struct engine_ring *ring = output->ring;
	const struct tally_attr *attr = &output->event->attr;
	uintptr_t count, next;

	if ((attr->flags & TALLY_ATTR_WATERMARK) || !attr->wakeup_events)
		return;
	count = engine_shared_load(&ring->samples);
	do {
		next = count + 1 >= attr->wakeup_events ? 0 : count + 1;
	} while (!engine_shared_compare_exchange(&ring->samples, &count, next));
	if (!next)
		engine_shared_add(&ring->wakeup, 1);
}

void engine_output_end(struct engine_output *output)
{
	ring_commit(output->ring, output);
}
