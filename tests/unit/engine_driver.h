/* Shared by the tests of the engine's samples: a PMU whose counters the test drives, and records
 * decoded as they arrive. */
#ifndef TALLY_TESTS_ENGINE_DRIVER_H
#define TALLY_TESTS_ENGINE_DRIVER_H

#include "engine_fixture.h"

#include "abi/abi.h"

enum { DRIVER_EVENTS = 16, DRIVER_RING_PAGES = 64, DRIVER_RECORDS = 4096 };

struct driver_pmu {
	struct tally_engine_pmu pmu;
	struct tally_pmu_event *active[DRIVER_EVENTS];
	unsigned stops, starts, reloads;
};

static int driver_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *event)
{
	return event->attr->type == pmu->type ? 0 : -2;
}

static void driver_start(struct tally_pmu_event *event, unsigned flags)
{
	struct driver_pmu *driver = event->pmu->driver;
	driver->starts++;
	if (flags & TALLY_EF_RELOAD) {
		driver->reloads++;
		tally_engine_period_elapsed(event);
	}
	event->state = 0;
}

static void driver_stop(struct tally_pmu_event *event, unsigned flags)
{
	(void)flags;
	((struct driver_pmu *)event->pmu->driver)->stops++;
	event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
}

static int driver_add(struct tally_pmu_event *event, unsigned flags)
{
	struct driver_pmu *driver = event->pmu->driver;
	for (unsigned i = 0; i < DRIVER_EVENTS; i++)
		if (!driver->active[i]) {
			driver->active[i] = event;
			event->index = (int)i;
			event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
			if (flags & TALLY_EF_START)
				driver_start(event, TALLY_EF_RELOAD);
			return 0;
		}
	return -11;
}

static void driver_del(struct tally_pmu_event *event, unsigned flags)
{
	struct driver_pmu *driver = event->pmu->driver;
	driver_stop(event, flags);
	driver->active[event->index] = NULL;
	event->index = -1;
}

static void driver_read(struct tally_pmu_event *event)
{
	(void)event;
}

static const struct tally_engine_pmu_ops driver_ops = {
	.event_init = driver_init, .add = driver_add, .del = driver_del,
	.start = driver_start, .stop = driver_stop, .read = driver_read,
};

/* Registers the PMU.  Call it after fixture_start(). */
static inline void driver_register(struct driver_pmu *driver, struct engine_fixture *fixture)
{
	*driver = (struct driver_pmu){ .pmu = { .name = "driver",
						.scope = TALLY_SCOPE_HARDWARE,
						.capabilities = TALLY_PMU_BRANCH_STACK,
						.ops = &driver_ops } };
	driver->pmu.driver = driver;
	assert(!tally_engine_pmu_register(fixture->engine, &driver->pmu));
}

/* Adds `more` to the event's count; if its period is over, overflows it with `hit`. */
static inline void driver_count(struct engine_fixture *fixture, struct tally_pmu_event *event,
				uint64_t more, struct tally_engine_hit hit,
				const struct tally_engine_regs *regs)
{
	if (!event || event->state & TALLY_HES_STOPPED)
		return;
	tally_engine_pmu_count(event, more);
	if (!tally_engine_period_elapsed(event))
		return;
	if (!hit.period)
		hit.period = event->last_period;
	if (tally_engine_overflow(event, &hit, regs))
		driver_stop(event, 0);
	if (fixture->level[fixture->cpu] == TALLY_LEVEL_TASK)
		fixture_run_pending(fixture);
}

/* --- records -------------------------------------------------------------- */

struct driver_ring {
	struct tally_user_page *page;
	struct tally_attr attr;
	uint8_t bytes[65536] __attribute__((aligned(8))); /* the record taken last */
};

static inline void driver_map(struct engine_fixture *fixture, int fd, const struct tally_attr *attr,
			      struct driver_ring *ring)
{
	void *address = NULL;
	assert(!tally_engine_mmap(fixture->engine, fd,
				  (1 + DRIVER_RING_PAGES) * (size_t)FIXTURE_PAGE, true, true, 0,
				  &address));
	ring->page = address;
	ring->attr = *attr;
}

/* Takes and decodes the next record.  Returns false if there is none. */
static inline bool driver_take(struct driver_ring *ring, struct tally_record *record)
{
	const uint8_t *data = (const uint8_t *)ring->page + ring->page->data_offset;
	uint64_t size = ring->page->data_size, tail = ring->page->data_tail;
	struct tally_record_header header;

	if (tail == ring->page->data_head)
		return false;
	for (size_t i = 0; i < sizeof(header); i++)
		ring->bytes[i] = data[(tail + i) % size];
	memcpy(&header, ring->bytes, sizeof(header));
	assert(header.size >= sizeof(header) && !(header.size % 8) &&
	       tail + header.size <= ring->page->data_head);
	for (size_t i = 0; i < header.size; i++)
		ring->bytes[i] = data[(tail + i) % size];
	ring->page->data_tail = tail + header.size;
	assert(!tally_record_decode(&ring->attr, ring->bytes, header.size, record));
	return true;
}

/* Takes all records.  Returns how many have this type. */
static inline unsigned driver_count_records(struct driver_ring *ring, uint32_t type)
{
	struct tally_record record;
	unsigned count = 0;
	while (driver_take(ring, &record))
		count += record.header.type == type;
	return count;
}

static inline uint64_t driver_id(struct engine_fixture *fixture, int fd)
{
	uint64_t id = 0;
	assert(!tally_engine_ioctl(fixture->engine, fd, TALLY_IOC_ID, (uintptr_t)&id));
	return id;
}

#endif
