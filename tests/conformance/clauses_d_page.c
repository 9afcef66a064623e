/* D5: the user page. */
#include "ring_walk.h"

#include <errno.h>

#define MILLISECOND 1000000ull

/* Returns a consistent copy: the kernel may change the words during a read. */
static struct tally_user_page page_of(const struct ring *ring)
{
	const volatile struct tally_user_page *page = ring->page;
	struct tally_user_page copy;
	uint32_t lock;
	do {
		lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		copy.index = page->index;
		copy.offset = page->offset;
		copy.time_enabled = page->time_enabled;
		copy.time_running = page->time_running;
		copy.capabilities = page->capabilities;
		copy.pmc_width = page->pmc_width;
		copy.time_shift = page->time_shift;
		copy.time_mult = page->time_mult;
		copy.time_offset = page->time_offset;
		copy.time_zero = page->time_zero;
		copy.time_cycles = page->time_cycles;
		copy.time_mask = page->time_mask;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		copy.lock = lock;
	} while (lock != page->lock || lock & 1);
	return copy;
}

static int open_page(struct surface *surface, struct ring *ring)
{
	struct tally_attr attr = ring_faults_attr(0, 0);
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	CHECK_RING(ring, surface, &attr, 0, -1, 1);
	return 0;
}

#define OPEN_PAGE(ring) \
	do { int opened_ = open_page(surface, ring); \
	     if (opened_) \
		     return opened_; } while (0)

static int versions_are_zero(struct surface *surface)
{
	struct ring ring;
	OPEN_PAGE(&ring);
	CHECK_EQUAL(ring.page->version, 0);
	CHECK_EQUAL(ring.page->compat_version, 0);
	return 0;
}

static int size_is_what_is_defined(struct surface *surface)
{
	struct ring ring;
	OPEN_PAGE(&ring);
	if (ring.page->size < offsetof(struct tally_user_page, reserved) &&
	    ring_kernel_is_old(surface))
		return CLAUSE_NOT_APPLICABLE + NA_OLD_KERNEL;
	CHECK_EQUAL(ring.page->size, offsetof(struct tally_user_page, reserved));
	return 0;
}

static int lock_is_even_at_rest(struct surface *surface)
{
	struct ring ring;
	OPEN_PAGE(&ring);
	for (unsigned i = 0; i < 5; i++) {
		CHECK_EQUAL(ring.page->lock & 1, 0);
		CALL(ioctl, ring.fd, i & 1 ? TALLY_IOC_DISABLE : TALLY_IOC_ENABLE, 0);
		CALL(fault, 1);
	}
	return 0;
}

static int lock_moves_with_each_change(struct surface *surface)
{
	struct ring ring;
	OPEN_PAGE(&ring);
	uint32_t before = ring.page->lock;
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	uint32_t enabled = ring.page->lock;
	CHECK(enabled != before);
	CALL(ioctl, ring.fd, TALLY_IOC_RESET, 0);
	CHECK(ring.page->lock != enabled);
	return 0;
}

static int index_of_a_software_event_is_zero(struct surface *surface)
{
	struct ring ring;
	OPEN_PAGE(&ring);
	CHECK_EQUAL(ring.page->index, 0);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(fault, 3);
	CHECK_EQUAL(ring.page->index, 0);
	CHECK_EQUAL(ring.page->capabilities & TALLY_CAP_USER_RDPMC, 0);
	return 0;
}

/* The kernel updates the page when it schedules the event in, not at each hit. */
static int offset_is_the_count_at_scheduling_in(struct surface *surface)
{
	struct ring ring;
	OPEN_PAGE(&ring);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(fault, 10);
	CALL(sleep, MILLISECOND);
	struct tally_user_page page = page_of(&ring);
	CHECK_EQUAL(page.offset, 10);
	return 0;
}

static int offset_follows_reset(struct surface *surface)
{
	struct ring ring;
	OPEN_PAGE(&ring);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(fault, 10);
	CALL(sleep, MILLISECOND);
	CALL(ioctl, ring.fd, TALLY_IOC_RESET, 0);
	CHECK_EQUAL(page_of(&ring).offset, 0);
	return 0;
}

static int times_are_those_of_read(struct surface *surface)
{
	struct ring ring;
	uint64_t before[3], after[3];
	OPEN_PAGE(&ring);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, MILLISECOND);
	CHECK_EQUAL(CALL(read, ring.fd, before, sizeof(before)), sizeof(before));
	CALL(sleep, MILLISECOND);
	CHECK_EQUAL(CALL(read, ring.fd, after, sizeof(after)), sizeof(after));
	/* If the task were preempted after the second read, the page would be newer than that
	 * read. */
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	struct tally_user_page page = page_of(&ring);
	CHECK_EQUAL(CALL(read, ring.fd, after, sizeof(after)), sizeof(after));
	CHECK_BETWEEN(page.time_enabled, before[1], after[1]);
	CHECK_BETWEEN(page.time_running, before[2], after[2]);
	return 0;
}

static int old_capability_bits_say_so(struct surface *surface)
{
	struct ring ring;
	OPEN_PAGE(&ring);
	CHECK_EQUAL(ring.page->capabilities & 3, TALLY_CAP_BIT0_IS_DEPRECATED);
	return 0;
}

static int places_of_data(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 4);
	CHECK_EQUAL(ring.page->data_offset, surface->page_size);
	CHECK_EQUAL(ring.page->data_size, 4 * surface->page_size);
	CHECK_EQUAL(ring.page->data_head, 0);
	CHECK_EQUAL(ring.page->data_tail, 0);
	return 0;
}

static int aux_fields_are_zero_without_aux(struct surface *surface)
{
	struct ring ring;
	OPEN_PAGE(&ring);
	CHECK_EQUAL(ring.page->aux_head, 0);
	CHECK_EQUAL(ring.page->aux_tail, 0);
	CHECK_EQUAL(ring.page->aux_offset, 0);
	CHECK_EQUAL(ring.page->aux_size, 0);
	return 0;
}

static int time_fields_hold_when_their_capability_is_set(struct surface *surface)
{
	struct ring ring;
	OPEN_PAGE(&ring);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	struct tally_user_page page = page_of(&ring);
	CHECK_EQUAL(!!(page.capabilities & TALLY_CAP_USER_TIME), page.time_mult != 0);
	if (page.capabilities & TALLY_CAP_USER_TIME_ZERO)
		CHECK(page.capabilities & TALLY_CAP_USER_TIME);
	if (page.capabilities & TALLY_CAP_USER_TIME_SHORT)
		CHECK(page.time_mask != 0);
	return 0;
}

/* --- Self-monitoring of hardware ------------------------------------------ */

/* Opens an event whose counter user code may read (on arm64, config1 requests that). */
static int open_self_monitored(struct surface *surface, struct ring *ring)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_HARDWARE, TALLY_HW_CPU_CYCLES, 0, 0);
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	if (surface->features & SURFACE_ARM_PMU) {
		if (CALL(sysctl, "perf_user_access") != 1 &&
		    CALL(set_sysctl, "perf_user_access", 1))
			return CLAUSE_NOT_APPLICABLE + NA_CHANGES_HOST;
		attr.config1 = 2;
	}
	CHECK_RING(ring, surface, &attr, 0, -1, 0);
	CALL(ioctl, ring->fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, 1000);
	if (!(page_of(ring).capabilities & TALLY_CAP_USER_RDPMC) || !page_of(ring).index)
		return CLAUSE_NOT_APPLICABLE + NA_CHANGES_HOST;
	return 0;
}

#define SELF_MONITORED(ring) \
	do { int opened_ = open_self_monitored(surface, ring); \
	     if (opened_) \
		     return opened_; } while (0)

/* The loop of perf_event_open(2); it sign-extends the counter from its width. */
static int self_read(const struct ring *ring, uint64_t *count)
{
	struct surface *surface = ring->surface;
	const volatile struct tally_user_page *page = ring->page;
	uint32_t lock;
	do {
		lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		uint32_t index = page->index;
		*count = (uint64_t)page->offset;
		if (index) {
			uint64_t counter = 0;
			unsigned width = page->pmc_width;
			int failed = CALL(read_counter, index - 1, &counter);
			if (failed)
				return failed;
			*count += (uint64_t)((int64_t)(counter << (64 - width)) >> (64 - width));
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (lock != page->lock);
	return 0;
}

static int self_monitoring_gives_what_read_gives(struct surface *surface)
{
	struct ring ring;
	SELF_MONITORED(&ring);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t before[3], own, after[3];
		CHECK_EQUAL(CALL(read, ring.fd, before, sizeof(before)), sizeof(before));
		CHECK_EQUAL(self_read(&ring, &own), 0);
		CHECK_EQUAL(CALL(read, ring.fd, after, sizeof(after)), sizeof(after));
		CHECK_BETWEEN(own, before[0], after[0]);
		CALL(loop, 10000);
	}
	return 0;
}

static int pmc_width_is_a_counters(struct surface *surface)
{
	struct ring ring;
	SELF_MONITORED(&ring);
	CHECK_BETWEEN(page_of(&ring).pmc_width, 16, 64);
	return 0;
}

static int index_is_zero_off_the_pmu(struct surface *surface)
{
	struct ring ring;
	uint64_t words[3];
	SELF_MONITORED(&ring);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	CHECK_EQUAL(page_of(&ring).index, 0);
	CHECK_EQUAL(CALL(read, ring.fd, words, sizeof(words)), sizeof(words));
	CHECK_EQUAL(page_of(&ring).offset, words[0]);
	return 0;
}

const struct clause clauses_d_page[] = {
	{ "D5.versions", "version and compat_version are 0.", 0, versions_are_zero },
	{ "D5.size", "size is that of the fields before the reserved ones.", 0,
	  size_is_what_is_defined },
	{ "D5.lock_is_even_at_rest", "lock is even when nobody writes.", 0, lock_is_even_at_rest },
	{ "D5.lock_moves", "lock moves with each change.", 0, lock_moves_with_each_change },
	{ "D5.index_of_a_software_event",
	  "A software event's index is 0, and no user read is offered.", 0,
	  index_of_a_software_event_is_zero },
	{ "D5.offset", "offset is the count when the event was last scheduled in.", 0,
	  offset_is_the_count_at_scheduling_in },
	{ "D5.offset_after_reset", "RESET zeroes offset at once.", 0, offset_follows_reset },
	{ "D5.times", "time_enabled and time_running are read()'s when it was last scheduled in.",
	  0, times_are_those_of_read },
	{ "D5.bit0_is_deprecated", "cap_bit0 is 0 and cap_bit0_is_deprecated 1.", 0,
	  old_capability_bits_say_so },
	{ "D5.data_fields",
	  "data_offset and data_size tell where the data is; head and tail begin at 0.", 0,
	  places_of_data },
	{ "D5.aux_fields", "The aux fields are 0 without an AUX area.", 0,
	  aux_fields_are_zero_without_aux },
	{ "D5.time_fields", "time_mult and time_mask hold when their capability is set.", 0,
	  time_fields_hold_when_their_capability_is_set },
	{ "D5.self_monitoring", "The self-monitoring loop gives what read() gives.",
	  SURFACE_HARDWARE, self_monitoring_gives_what_read_gives },
	{ "D5.pmc_width", "pmc_width is the counter's width.", SURFACE_HARDWARE,
	  pmc_width_is_a_counters },
	{ "D5.index_off_the_pmu", "Off the PMU index is 0 and offset the count.", SURFACE_HARDWARE,
	  index_is_zero_off_the_pmu },
	{ NULL, NULL, 0, NULL },
};
