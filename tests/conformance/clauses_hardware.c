/* Clauses of parts B and D for hardware events.  Counters are few, so groups wait for room and take
 * turns.
 *
 * Groups here count one event, instructions.  So they fit as many members as the PMU has counters,
 * whatever its constraints, and equal values show that two members ran together. */
#include "hardware.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>

#define MILLISECOND 1000000ull
#define USER_ONLY (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV)

enum { EVENTS_MAX = 64, FIXED_MAX = 4 /* fixed counters that may take an event in addition */ };

/* --- B1, B8 --------------------------------------------------------------- */

/* Returns the event's count of a loop, from ENABLE to DISABLE. */
static int count_loop(struct surface *surface, int fd, uint64_t iterations, uint64_t *value)
{
	struct hardware_values before, after;
	int result = hardware_read(surface, fd, &before);
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, iterations);
	CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
	if (result == 0)
		result = hardware_read(surface, fd, &after);
	*value = after.value - before.value;
	return result;
}

static int instructions_are_exact(struct surface *surface)
{
	int fd = hardware_open(surface, TALLY_HW_INSTRUCTIONS, USER_ONLY | TALLY_ATTR_DISABLED, -1);
	CHECK(fd >= 0);
	uint64_t first, value;
	CHECK_EQUAL(count_loop(surface, fd, 1000, &first), 0);
	CHECK_BETWEEN(first, 2000, 3000);
	for (uint64_t i = 2; i <= 10; i++) {
		CHECK_EQUAL(count_loop(surface, fd, 1000 * i, &value), 0);
		CHECK_EQUAL(value - first, 2000 * (i - 1));
	}
	return 0;
}

static int branches_are_exact(struct surface *surface)
{
	int fd = hardware_open(surface, TALLY_HW_BRANCH_INSTRUCTIONS,
			       USER_ONLY | TALLY_ATTR_DISABLED, -1);
	if (fd == -ENOENT)
		return CLAUSE_NOT_APPLICABLE + NA_OTHER_ARCHITECTURE; /* this PMU lacks the event */
	CHECK(fd >= 0);
	uint64_t first, value;
	CHECK_EQUAL(count_loop(surface, fd, 1000, &first), 0);
	CHECK_EQUAL(count_loop(surface, fd, 51000, &value), 0);
	CHECK_EQUAL(value - first, 50000);
	return 0;
}

static int work_loop(struct surface *surface)
{
	CALL(loop, 100000);
	for (int i = 0; i < 100; i++)
		CALL(self);
	return 0;
}

static int exclusions_add_up(struct surface *surface)
{
	static const uint64_t flags[] = { TALLY_ATTR_EXCLUDE_HV,
					  TALLY_ATTR_EXCLUDE_HV | TALLY_ATTR_EXCLUDE_USER,
					  TALLY_ATTR_EXCLUDE_HV | TALLY_ATTR_EXCLUDE_KERNEL };
	uint64_t values[3];
	CHECK_EQUAL(hardware_measure(surface, 3, flags, values, work_loop), 0);
	CHECK_EQUAL(values[0], values[1] + values[2]);
	CHECK_BETWEEN(values[2], 200000, 220000);
	CHECK(values[1] >= 100);
	return 0;
}

static int child_loop(struct surface *surface, void *unused)
{
	(void)unused;
	CALL(loop, 5000000);
	return 0;
}

static int child_counts_fold(struct surface *surface)
{
	for (unsigned inherit = 0; inherit < 2; inherit++) {
		struct hardware_values values;
		int fd = hardware_open(surface, TALLY_HW_INSTRUCTIONS,
				       USER_ONLY | (inherit ? TALLY_ATTR_INHERIT : 0), -1);
		CHECK(fd >= 0);
		pid_t child = CALL(spawn, SURFACE_PROCESS, child_loop, NULL);
		CHECK(child > 0);
		CHECK_EQUAL(CALL(wait, child), 0);
		CHECK_EQUAL(hardware_read(surface, fd, &values), 0);
		if (inherit)
			CHECK(values.value >= 10000000);
		else
			CHECK(values.value < 10000000);
	}
	return 0;
}

/* --- B5 ------------------------------------------------------------------- */

/* Opens a leader and `count - 1` members.  Returns how many opened, or -errno of the first
 * refused. */
static int open_group(struct surface *surface, unsigned count, uint64_t flags, int *fds)
{
	for (unsigned i = 0; i < count; i++) {
		fds[i] = hardware_open(surface, TALLY_HW_INSTRUCTIONS, USER_ONLY | (i ? 0 : flags),
				       i ? fds[0] : -1);
		if (fds[i] < 0)
			return fds[i];
	}
	return (int)count;
}

static int group_is_whole_or_not_at_all(struct surface *surface)
{
	unsigned size = surface->hardware_counters / 2 + 2;
	int fds[2][EVENTS_MAX];
	struct hardware_values leaders[2], member;
	for (unsigned group = 0; group < 2; group++)
		CHECK_EQUAL(open_group(surface, size, TALLY_ATTR_DISABLED, fds[group]), size);
	for (unsigned group = 0; group < 2; group++)
		CHECK_EQUAL(CALL(ioctl, fds[group][0], TALLY_IOC_ENABLE, 0), 0);
	CALL(burn, 100 * MILLISECOND);
	/* the first group is still enabled while the second is */
	for (unsigned group = 2; group-- > 0;)
		CHECK_EQUAL(CALL(ioctl, fds[group][0], TALLY_IOC_DISABLE, 0), 0);
	for (unsigned group = 0; group < 2; group++) {
		CHECK_EQUAL(hardware_read(surface, fds[group][0], &leaders[group]), 0);
		CHECK(leaders[group].time_running > 0);
		for (unsigned i = 1; i < size; i++) {
			CHECK_EQUAL(hardware_read(surface, fds[group][i], &member), 0);
			CHECK_EQUAL(member.value, leaders[group].value);
			CHECK_EQUAL(member.time_running, leaders[group].time_running);
		}
	}
	/* The groups never run at the same time: there is no room for both. */
	CHECK(leaders[0].time_running + leaders[1].time_running <= leaders[0].time_enabled);
	return 0;
}

static int group_values_are_comparable(struct surface *surface)
{
	int fds[3];
	struct hardware_values values[3];
	CHECK_EQUAL(open_group(surface, 3, TALLY_ATTR_DISABLED, fds), 3);
	for (unsigned round = 1; round < 5; round++) {
		CALL(ioctl, fds[0], TALLY_IOC_ENABLE, 0);
		CALL(loop, 10000 * round);
		CALL(sleep, 100000);
		CALL(ioctl, fds[0], TALLY_IOC_DISABLE, 0);
		for (unsigned i = 0; i < 3; i++)
			CHECK_EQUAL(hardware_read(surface, fds[i], &values[i]), 0);
		CHECK_EQUAL(values[1].value, values[0].value);
		CHECK_EQUAL(values[2].value, values[0].value);
		CHECK_EQUAL(values[1].time_running, values[0].time_running);
	}
	return 0;
}

static int group_read_is_coherent(struct surface *surface)
{
	struct tally_attr attr = hardware_event(TALLY_HW_INSTRUCTIONS, USER_ONLY);
	attr.read_format |= TALLY_FORMAT_GROUP;
	int fds[3];
	for (unsigned i = 0; i < 3; i++) {
		attr.flags = USER_ONLY | (i ? 0 : TALLY_ATTR_DISABLED);
		fds[i] = CALL(open, &attr, 0, -1, i ? fds[0] : -1, 0);
		CHECK(fds[i] >= 0);
	}
	CALL(ioctl, fds[0], TALLY_IOC_ENABLE, 0);
	for (unsigned round = 0; round < 10; round++) {
		/* nr, enabled, running, and three values: all three events count */
		uint64_t words[6] = { 0 };
		CALL(loop, 1000);
		CHECK_EQUAL(CALL(read, fds[0], words, sizeof(words)), sizeof(words));
		CHECK_EQUAL(words[0], 3);
		CHECK_EQUAL(words[1], words[2]);
		CHECK(words[3] > 0);
		CHECK_EQUAL(words[4], words[3]);
		CHECK_EQUAL(words[5], words[3]);
	}
	return 0;
}

static int too_large_group_is_refused(struct surface *surface)
{
	int fds[EVENTS_MAX], result = 0;
	unsigned count = 0;
	for (; count < EVENTS_MAX; count++) {
		result = hardware_open(surface, TALLY_HW_INSTRUCTIONS, USER_ONLY,
				       count ? fds[0] : -1);
		if (result < 0)
			break;
		fds[count] = result;
	}
	CHECK_ERROR(result, EINVAL);
	CHECK_BETWEEN(count, surface->hardware_counters, surface->hardware_counters + FIXED_MAX);
	/* The group is unchanged and counts. */
	struct hardware_values before, after;
	CHECK_EQUAL(hardware_read(surface, fds[0], &before), 0);
	CALL(loop, 1000);
	CHECK_EQUAL(hardware_read(surface, fds[0], &after), 0);
	CHECK(after.value - before.value >= 2000);
	CHECK_EQUAL(after.time_running, after.time_enabled);
	/* Closing a member makes room. */
	CHECK_EQUAL(CALL(close, fds[count - 1]), 0);
	CHECK(hardware_open(surface, TALLY_HW_INSTRUCTIONS, USER_ONLY, fds[0]) >= 0);
	return 0;
}

static int software_leader_takes_hardware_members(struct surface *surface)
{
	struct tally_attr attr = hardware_event(0, USER_ONLY | TALLY_ATTR_DISABLED);
	attr.type = TALLY_TYPE_SOFTWARE;
	attr.config = TALLY_SW_TASK_CLOCK;
	int leader = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(leader >= 0);
	int member = hardware_open(surface, TALLY_HW_INSTRUCTIONS, USER_ONLY, leader);
	CHECK(member >= 0);
	CALL(ioctl, leader, TALLY_IOC_ENABLE, 0);
	CALL(loop, 100000);
	CALL(ioctl, leader, TALLY_IOC_DISABLE, 0);
	struct hardware_values clock, instructions;
	CHECK_EQUAL(hardware_read(surface, leader, &clock), 0);
	CHECK_EQUAL(hardware_read(surface, member, &instructions), 0);
	CHECK(clock.value > 0);
	CHECK_BETWEEN(instructions.value, 200000, 201000);
	CHECK_EQUAL(instructions.time_running, clock.time_running);
	return 0;
}

/* --- B6 ------------------------------------------------------------------- */

/* A pinned event, which always counts, and twice as many others as counters, over a steady load. */
struct crowd {
	struct hardware_values pinned, others[EVENTS_MAX];
	unsigned count;
};

static int run_crowd(struct surface *surface, struct crowd *crowd)
{
	int pinned = hardware_open(surface, TALLY_HW_INSTRUCTIONS,
				   USER_ONLY | TALLY_ATTR_PINNED | TALLY_ATTR_DISABLED, -1),
	    fds[EVENTS_MAX];
	CHECK(pinned >= 0);
	crowd->count = 2 * (surface->hardware_counters + FIXED_MAX);
	CHECK(crowd->count <= EVENTS_MAX);
	for (unsigned i = 0; i < crowd->count; i++) {
		fds[i] = hardware_open(surface, TALLY_HW_INSTRUCTIONS,
				       USER_ONLY | TALLY_ATTR_DISABLED, -1);
		CHECK(fds[i] >= 0);
	}
	CALL(ioctl, pinned, TALLY_IOC_ENABLE, 0);
	for (unsigned i = 0; i < crowd->count; i++)
		CALL(ioctl, fds[i], TALLY_IOC_ENABLE, 0);
	CALL(burn, 400 * MILLISECOND);
	for (unsigned i = 0; i < crowd->count; i++)
		CALL(ioctl, fds[i], TALLY_IOC_DISABLE, 0);
	CALL(ioctl, pinned, TALLY_IOC_DISABLE, 0);
	CHECK_EQUAL(hardware_read(surface, pinned, &crowd->pinned), 0);
	for (unsigned i = 0; i < crowd->count; i++)
		CHECK_EQUAL(hardware_read(surface, fds[i], &crowd->others[i]), 0);
	return 0;
}

static int events_take_turns(struct surface *surface)
{
	struct crowd crowd;
	CHECK_EQUAL(run_crowd(surface, &crowd), 0);
	uint64_t running = 0;
	for (unsigned i = 0; i < crowd.count; i++) {
		CHECK(crowd.others[i].time_running > 0);
		CHECK(crowd.others[i].time_running < crowd.others[i].time_enabled);
		running += crowd.others[i].time_running;
	}
	/* As many events run at a time as there are counters, and no more. */
	uint64_t enabled = crowd.others[0].time_enabled;
	CHECK_BETWEEN(running, enabled * (surface->hardware_counters - 1) * 8 / 10,
		      enabled * (surface->hardware_counters - 1 + FIXED_MAX) * 11 / 10);
	return 0;
}

static int scaled_values_estimate(struct surface *surface)
{
	struct crowd crowd;
	CHECK_EQUAL(run_crowd(surface, &crowd), 0);
	for (unsigned i = 0; i < crowd.count; i++) {
		const struct hardware_values *seen = &crowd.others[i];
		double scaled = (double)seen->value * (double)seen->time_enabled /
				(double)seen->time_running;
		CHECK_BETWEEN((uint64_t)scaled, crowd.pinned.value / 10 * 8,
			      crowd.pinned.value / 10 * 12);
	}
	return 0;
}

static int pinned_stays_on(struct surface *surface)
{
	struct crowd crowd;
	CHECK_EQUAL(run_crowd(surface, &crowd), 0);
	CHECK_EQUAL(crowd.pinned.time_running, crowd.pinned.time_enabled);
	return 0;
}

static int with_room_all_run(struct surface *surface)
{
	int fds[EVENTS_MAX];
	struct hardware_values values;
	for (unsigned i = 0; i < surface->hardware_counters; i++) {
		fds[i] = hardware_open(surface, TALLY_HW_INSTRUCTIONS, USER_ONLY, -1);
		CHECK(fds[i] >= 0);
	}
	CALL(burn, 20 * MILLISECOND);
	for (unsigned i = 0; i < surface->hardware_counters; i++) {
		CHECK_EQUAL(hardware_read(surface, fds[i], &values), 0);
		CHECK_EQUAL(values.time_running, values.time_enabled);
	}
	return 0;
}

/* --- B7 ------------------------------------------------------------------- */

/* Opens pinned events until one gets no counter.  Returns their number; the last is in ERROR. */
static int open_pinned(struct surface *surface, int *fds)
{
	struct hardware_values values;
	for (int i = 0; i < EVENTS_MAX; i++) {
		fds[i] = hardware_open(surface, TALLY_HW_INSTRUCTIONS,
				       USER_ONLY | TALLY_ATTR_PINNED, -1);
		if (fds[i] < 0)
			return fds[i];
		CALL(loop, 1000);
		if (hardware_read(surface, fds[i], &values) == -ENODATA)
			return i + 1;
	}
	return -E2BIG;
}

static int pinned_without_room_is_in_error(struct surface *surface)
{
	int fds[EVENTS_MAX], count = open_pinned(surface, fds);
	struct hardware_values values;
	CHECK_BETWEEN(count, surface->hardware_counters + 1,
		      surface->hardware_counters + FIXED_MAX + 1);
	CHECK_EQUAL(CALL(read, fds[count - 1], &values, sizeof(values)), 0);
	struct pollfd ready = { .fd = fds[count - 1], .events = POLLIN };
	CHECK_EQUAL(CALL(poll, &ready, 1, 0), 1);
	CHECK(ready.revents & POLLHUP);
	for (int i = 0; i < count - 1; i++) { /* the earlier ones keep counting */
		CHECK_EQUAL(hardware_read(surface, fds[i], &values), 0);
		CHECK_EQUAL(values.time_running, values.time_enabled);
	}
	return 0;
}

static int enable_recovers(struct surface *surface)
{
	int fds[EVENTS_MAX], count = open_pinned(surface, fds);
	struct hardware_values values;
	CHECK(count > 1);
	CHECK_EQUAL(CALL(ioctl, fds[count - 1], TALLY_IOC_ENABLE, 0), 0);
	/* there is still no room, so it is in ERROR again */
	CHECK_EQUAL(CALL(read, fds[count - 1], &values, sizeof(values)), 0);
	CHECK_EQUAL(CALL(close, fds[0]), 0);
	CALL(loop, 1000);
	/* it does not recover by itself */
	CHECK_EQUAL(CALL(read, fds[count - 1], &values, sizeof(values)), 0);
	CHECK_EQUAL(CALL(ioctl, fds[count - 1], TALLY_IOC_ENABLE, 0), 0);
	CALL(loop, 1000);
	CHECK_EQUAL(hardware_read(surface, fds[count - 1], &values), 0);
	CHECK(values.value >= 2000);
	return 0;
}

static int disable_does_not_recover(struct surface *surface)
{
	int fds[EVENTS_MAX], count = open_pinned(surface, fds);
	struct hardware_values values;
	CHECK(count > 1);
	for (int i = 0; i < count - 1; i++)
		CHECK_EQUAL(CALL(close, fds[i]), 0);
	CHECK_EQUAL(CALL(ioctl, fds[count - 1], TALLY_IOC_DISABLE, 0), 0);
	CALL(loop, 1000);
	CHECK_EQUAL(CALL(read, fds[count - 1], &values, sizeof(values)), 0);
	return 0;
}

static int exclusive_is_alone(struct surface *surface)
{
	int exclusive = hardware_open(surface, TALLY_HW_INSTRUCTIONS,
				      USER_ONLY | TALLY_ATTR_EXCLUSIVE | TALLY_ATTR_DISABLED, -1);
	int other = hardware_open(surface, TALLY_HW_INSTRUCTIONS, USER_ONLY | TALLY_ATTR_DISABLED,
				  -1);
	CHECK(exclusive >= 0 && other >= 0);
	CALL(ioctl, exclusive, TALLY_IOC_ENABLE, 0);
	CALL(ioctl, other, TALLY_IOC_ENABLE, 0);
	CALL(burn, 100 * MILLISECOND);
	CALL(ioctl, other, TALLY_IOC_DISABLE, 0);
	CALL(ioctl, exclusive, TALLY_IOC_DISABLE, 0);
	struct hardware_values values[2];
	CHECK_EQUAL(hardware_read(surface, exclusive, &values[0]), 0);
	CHECK_EQUAL(hardware_read(surface, other, &values[1]), 0);
	CHECK(values[0].time_running > 0 && values[1].time_running > 0);
	CHECK(values[0].time_running + values[1].time_running <= values[0].time_enabled);
	return 0;
}

/* --- B11 ------------------------------------------------------------------ */

/* A CPU-wide event whose CPU goes offline keeps its count for good. */
static int unplugged_cpu_freezes_its_counts(struct surface *surface)
{
	struct tally_attr attr = hardware_event(TALLY_HW_CPU_CYCLES, 0);
	struct hardware_values before, after;
	int cpu = CALL(cpus) - 1;
	CHECK_EQUAL(CALL(pin, cpu), 0);
	int fd = CALL(open, &attr, -1, cpu, -1, 0);
	CHECK(fd >= 0);
	CALL(loop, 100000);
	CHECK_EQUAL(CALL(pin, 0), 0);
	CHECK_EQUAL(CALL(set_online, cpu, false), 0);
	CHECK_EQUAL(hardware_read(surface, fd, &before), 0);
	CHECK(before.value > 0);
	CHECK_ERROR(CALL(open, &attr, -1, cpu, -1, 0), ENODEV);
	CALL(sleep, 5 * MILLISECOND);
	CHECK_EQUAL(hardware_read(surface, fd, &after), 0);
	CHECK_EQUAL(after.value, before.value);
	CHECK_EQUAL(after.time_running, before.time_running);
	CHECK_EQUAL(CALL(set_online, cpu, true), 0);
	CALL(sleep, 5 * MILLISECOND);
	CHECK_EQUAL(hardware_read(surface, fd, &after), 0);
	CHECK_EQUAL(after.value, before.value);
	int again = CALL(open, &attr, -1, cpu, -1, 0);
	CHECK(again >= 0);
	return 0;
}

/* --- D5 ------------------------------------------------------------------- */

/* On arm64, user code may read counters if the sysctl allows it; on x86, from the event's first
 * mapping. */
static int open_readable_page(struct surface *surface, enum tally_hw event, uint64_t flags, int *fd,
			      struct tally_user_page **page)
{
	if (surface->features & SURFACE_ARM_PMU && CALL(set_sysctl, "perf_user_access", 1) < 0)
		return -EPERM;
	*fd = hardware_open_readable(surface, event, flags);
	*page = *fd < 0 ? NULL : hardware_user_page(surface, *fd);
	return *page ? 0 : -EINVAL;
}

/* Part F4 has these clauses for machines with several core types. */
#define OPEN_READABLE(event, flags) \
	do { if (surface->features & SURFACE_HETEROGENEOUS) \
		     return CLAUSE_NOT_APPLICABLE + NA_OTHER_ARCHITECTURE; \
	     CHECK_EQUAL(open_readable_page(surface, event, flags, &fd, &page), 0); } while (0)

static int user_reads_equal_read(struct surface *surface)
{
	static const enum tally_hw events[] = { TALLY_HW_CPU_CYCLES, TALLY_HW_INSTRUCTIONS };
	for (unsigned i = 0; i < 2; i++) {
		struct tally_user_page *page;
		int fd;
		OPEN_READABLE(events[i], USER_ONLY);
		for (unsigned round = 1; round <= 20; round++) {
			struct hardware_values before, after;
			uint64_t value = 0;
			CALL(loop, 1000 * round);
			if (round % 5 == 0)
				CALL(sleep, 100000);
			CHECK_EQUAL(hardware_read(surface, fd, &before), 0);
			CHECK_EQUAL(hardware_user_read(surface, page, &value), 0);
			CHECK_EQUAL(hardware_read(surface, fd, &after), 0);
			CHECK_BETWEEN(value, before.value, after.value);
		}
	}
	return 0;
}

static int index_is_zero_off_the_pmu(struct surface *surface)
{
	struct tally_user_page *page;
	struct hardware_values values;
	uint64_t value = 0;
	int fd;
	OPEN_READABLE(TALLY_HW_INSTRUCTIONS, USER_ONLY | TALLY_ATTR_DISABLED);
	CHECK_EQUAL(page->index, 0);
	for (unsigned round = 0; round < 3; round++) {
		CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
		CHECK(page->index != 0);
		CHECK(page->capabilities & TALLY_CAP_USER_RDPMC);
		CALL(loop, 1000);
		CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
		CHECK_EQUAL(page->index, 0);
		CHECK_EQUAL(hardware_user_read(surface, page, &value), -EAGAIN);
		CHECK_EQUAL(hardware_read(surface, fd, &values), 0);
		CHECK_EQUAL(value, values.value); /* `offset` by itself is the count */
	}
	return 0;
}

static int lock_tells_of_changes(struct surface *surface)
{
	struct tally_user_page *page;
	int fd;
	OPEN_READABLE(TALLY_HW_INSTRUCTIONS, USER_ONLY);
	uint32_t sequence = page->lock;
	CHECK_EQUAL(sequence % 2, 0);
	CALL(sleep, 100000);
	CHECK(page->lock != sequence);
	CHECK_EQUAL(page->lock % 2, 0);
	sequence = page->lock;
	CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
	CHECK(page->lock != sequence);
	return 0;
}

static int times_are_those_of_read(struct surface *surface)
{
	const uint64_t slack = MILLISECOND / 20;
	struct tally_user_page *page;
	struct hardware_values values;
	int fd;
	OPEN_READABLE(TALLY_HW_INSTRUCTIONS, USER_ONLY | TALLY_ATTR_DISABLED);
	for (unsigned round = 0; round < 3; round++) {
		CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
		CALL(burn, MILLISECOND);
		CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
		CHECK_EQUAL(hardware_read(surface, fd, &values), 0);
		CHECK(values.time_enabled >= MILLISECOND);
		/* The page is written some instructions before or after the times stop. */
		CHECK_BETWEEN(page->time_enabled + slack, values.time_enabled,
			      values.time_enabled + 2 * slack);
		CHECK_BETWEEN(page->time_running + slack, values.time_running,
			      values.time_running + 2 * slack);
	}
	return 0;
}

static int width_is_the_counters(struct surface *surface)
{
	struct tally_user_page *page;
	int fd;
	OPEN_READABLE(TALLY_HW_INSTRUCTIONS, USER_ONLY);
	CHECK_BETWEEN(page->pmc_width, 32, 64);
	uint64_t raw;
	CHECK_EQUAL(CALL(read_counter, page->index - 1, &raw), 0);
	if (surface->features & SURFACE_X86_PMU)
		CHECK_EQUAL(page->pmc_width < 64 ? raw >> page->pmc_width : 0, 0);
	return 0;
}

enum {
	HARDWARE = SURFACE_HARDWARE,
	USER_COUNTERS = SURFACE_HARDWARE | SURFACE_USER_COUNTERS | SURFACE_MAY_SET_SYSCTLS
};

const struct clause clauses_hardware[] = {
	{ "B1.hardware_instructions_are_exact",
	  "a loop of n iterations counts 2 n instructions more", HARDWARE, instructions_are_exact },
	{ "B1.hardware_branches_are_exact", "a loop of n iterations counts n branches more",
	  HARDWARE, branches_are_exact },
	{ "B8.hardware_exclusions_add_up", "user and kernel add up to the whole",
	  HARDWARE | SURFACE_PRIVILEGED, exclusions_add_up },
	{ "B9.hardware_child_counts_fold",
	  "an inheriting event counts what children do, another doesn't", HARDWARE,
	  child_counts_fold },
	{ "B5.hardware_group_is_whole_or_not_at_all",
	  "two groups that don't fit together run in turn, each as a whole", HARDWARE,
	  group_is_whole_or_not_at_all },
	{ "B5.hardware_group_values_are_comparable", "members count over exactly the same time",
	  HARDWARE, group_values_are_comparable },
	{ "B5.hardware_group_read_is_coherent", "a GROUP read of running members gives one moment",
	  HARDWARE, group_read_is_coherent },
	{ "B5.hardware_too_large_group_einval",
	  "a member for which there is no counter is refused at open", HARDWARE,
	  too_large_group_is_refused },
	{ "B5.software_leader_takes_hardware_members",
	  "a software leader's group moves to the hardware", HARDWARE,
	  software_leader_takes_hardware_members },
	{ "B6.events_take_turns", "more events than counters rotate, all counters in use", HARDWARE,
	  events_take_turns },
	{ "B6.scaled_values_estimate", "value x enabled / running estimates the count", HARDWARE,
	  scaled_values_estimate },
	{ "B6.with_room_all_run", "as many events as counters run all the time", HARDWARE,
	  with_room_all_run },
	{ "B7.hardware_pinned_stays_on", "a pinned event isn't rotated away", HARDWARE,
	  pinned_stays_on },
	{ "B7.hardware_pinned_without_room_is_in_error",
	  "a pinned event without a counter: read gives 0 bytes, poll POLLHUP", HARDWARE,
	  pinned_without_room_is_in_error },
	{ "B7.hardware_enable_recovers", "ENABLE leaves the error state once there is room",
	  HARDWARE, enable_recovers },
	{ "B7.hardware_disable_does_not_recover", "DISABLE doesn't leave the error state", HARDWARE,
	  disable_does_not_recover },
	{ "B7.hardware_exclusive_is_alone", "an exclusive event never runs beside another",
	  HARDWARE, exclusive_is_alone },
	{ "B11.unplugged_cpu_freezes_its_counts", "a CPU's count stays when the CPU goes",
	  HARDWARE | SURFACE_PRIVILEGED | SURFACE_TWO_CPUS | SURFACE_HOTPLUG,
	  unplugged_cpu_freezes_its_counts },
	{ "D5.hardware_user_reads_equal_read",
	  "the loop without a system call gives what read() gives", USER_COUNTERS,
	  user_reads_equal_read },
	{ "D5.hardware_index_is_zero_off_the_pmu",
	  "index is 0 while the event isn't on the PMU; offset is the count then", USER_COUNTERS,
	  index_is_zero_off_the_pmu },
	{ "D5.hardware_lock_tells_of_changes",
	  "lock is even and changes with every move of the event",
	  HARDWARE | SURFACE_MAY_SET_SYSCTLS, lock_tells_of_changes },
	{ "D5.hardware_times_are_those_of_read",
	  "the page's time_enabled and time_running are read()'s",
	  HARDWARE | SURFACE_MAY_SET_SYSCTLS, times_are_those_of_read },
	{ "D5.hardware_width", "pmc_width covers what the counter holds", USER_COUNTERS,
	  width_is_the_counters },
	{ 0 }
};
