/* The user page: all that a program needs to read its own counters without a system call (SPEC D5).
 *
 *     do {
 *             seq = page->lock;                            // acquire
 *             index = page->index; count = page->offset; … times, clock
 *             if (index) count += sign-extended counter index - 1
 *     } while (page->lock != seq || seq & 1);              // after the loads
 *
 * The kernel's lock is made for a reader on the CPU where the event counts, which the writer
 * interrupts.  Here readers may be on other CPUs as well (a thread of the same process that draws a
 * live display), so the writer orders its stores for other CPUs: lock odd, store fence, fields,
 * release of an even lock.
 *
 * Another writer may interrupt the writer: an overflow while the context puts the event on its PMU.
 * Then the values that the first writer has computed may be old, and must not be the last ones that
 * are written.  So the lock's true value is kept in the event, out of the user's reach.  An
 * interrupting writer finds it odd, adds 2 (it stays odd: the page is not consistent), writes the
 * page and leaves.  The first writer sees that the lock has moved and computes again.  It repeats
 * once for each interrupt that wrote; readers can't make it repeat.
 *
 * Writers of one event are never on two CPUs at once: the page is updated on the CPU where the
 * event is active, or with its context locked. */
#include "engine/ring_access.h"
#include "engine/ring_buffer.h"

void engine_user_page_init(struct engine_event *event, struct tally_user_page *page,
			   uint64_t data_size)
{
	page->capabilities = TALLY_CAP_BIT0_IS_DEPRECATED;
	page->size = (uint32_t)offsetof(struct tally_user_page, reserved);
	page->data_offset = event->engine->host.page_size;
	page->data_size = data_size;
}

/* Returns the number + 1 of the counter that user code may read, or 0. */
static uint32_t user_index(const struct engine_event *event)
{
	const struct tally_engine_pmu_ops *ops = event->hw.pmu->ops;
	int index;

	if (event->state != ENGINE_EVENT_ACTIVE || (event->hw.state & TALLY_HES_STOPPED) ||
	    !ops->user_index)
		return 0;
	index = ops->user_index(&event->hw);
	if (index < 0)
		return 0;
	return (uint32_t)index + 1;
}

/* Returns the count without what the counter holds since it was last folded in.  An interrupt may
 * fold between the two loads, so the count is good only between two equal values of `previous`. */
static uint64_t offset_of_counter(struct engine_event *event)
{
	uint64_t previous = engine_load64(&event->hw.previous), count;

	for (;;) {
		uint64_t seen = previous;

		engine_interrupt_fence();
		count = engine_event_count(event);
		engine_interrupt_fence();
		previous = engine_load64(&event->hw.previous);
		if (previous == seen)
			return count - previous;
	}
}

static void write_fields(struct engine_event *event, struct tally_user_page *page)
{
	const struct tally_engine_host *host = &event->engine->host;
	uint32_t index = user_index(event);
	uint64_t now, enabled, running;

	engine_event_times(event, &now, &enabled, &running);
	engine_shared_store32(&page->index, index);
	engine_page_store64((uint64_t *)&page->offset,
			    index ? offset_of_counter(event) : engine_event_count(event));
	engine_page_store64(&page->time_enabled,
			    enabled + engine_load64(&event->child_time_enabled));
	engine_page_store64(&page->time_running,
			    running + engine_load64(&event->child_time_running));
	page->capabilities = TALLY_CAP_BIT0_IS_DEPRECATED;
	if (host->user_clock) {
		host->user_clock(host->host, page);
		/* relative to the time at which the page's times were taken */
		if (page->capabilities & TALLY_CAP_USER_TIME)
			page->time_offset = page->time_zero - now;
	}
	/* time_zero leads to the clock of samples, which attr.clockid has changed */
	if (engine_event_flag(event, TALLY_ATTR_USE_CLOCKID))
		page->capabilities &= ~TALLY_CAP_USER_TIME_ZERO;
	if (event->hw.pmu->ops->user_page)
		event->hw.pmu->ops->user_page(&event->hw, page);
}

void engine_user_page_update(struct engine_event *event)
{
	struct engine_ring *ring;
	struct tally_user_page *page;
	uint32_t before, lock;
	bool first;

	if (!__atomic_load_n(&event->mapped, __ATOMIC_ACQUIRE))
		return;
	ring = __atomic_load_n(&event->ring, __ATOMIC_ACQUIRE);
	if (!ring)
		return;
	page = ring->page;

	before = engine_shared_load32(&event->page_lock);
	do {
		first = !(before & 1);
		lock = before + (first ? 1 : 2);
	} while (!engine_shared_compare_exchange32(&event->page_lock, &before, lock));
	engine_shared_store32(&page->lock, lock);
	/* lock odd before the fields; pairs with the acquire between the reader's loads of the
	 * fields and its second load of the lock */
	engine_store_fence();

	for (;;) {
		write_fields(event, page);
		engine_interrupt_fence();
		if (engine_shared_load32(&event->page_lock) == lock)
			break;
		lock = engine_shared_load32(&event->page_lock);
	}
	if (!first)
		return; /* the writer that we interrupted writes once more, and ends the update */
	/* An interrupt from here on still finds it odd, and writes newer values than ours: nothing
	 * is lost. */
	lock = (lock | 1) + 1;
	engine_shared_store32(&event->page_lock, lock);
	engine_shared_store32_release(&page->lock, lock);
}

void tally_engine_user_page_changed(struct tally_pmu_event *hw)
{
	engine_user_page_update(engine_event_of(hw));
}
