/* Part F: arm64.  Counts by exception level, across guest entry and exit; counters that user code
 * reads.
 *
 * A loop has two instructions per iteration, so counts are known except for the few instructions of
 * the calls.  Events of one group start and stop together, so sums of their counts are exact. */
#include "hardware.h"

#include <errno.h>
#include <sys/mman.h>

enum {
	ARM = SURFACE_HARDWARE | SURFACE_ARM_PMU,
	HOST = ARM | SURFACE_VIRTUALISATION,
	USER_ACCESS = ARM | SURFACE_MAY_SET_SYSCTLS
};

enum {
	LOOP_ITERATIONS = 100000,
	GUEST_KERNEL_ITERATIONS = 100000,
	GUEST_USER_ITERATIONS = 300000,
	GUEST_KERNEL = 2 * GUEST_KERNEL_ITERATIONS,
	GUEST_USER = 2 * GUEST_USER_ITERATIONS,
	/* Instructions beyond the loops: a guest's kernel returning to user mode; a host's task
	 * around calls. */
	GUEST_SLACK = 64,
	TASK_SLACK = 20000
};

#define USER TALLY_ATTR_EXCLUDE_USER
#define KERNEL TALLY_ATTR_EXCLUDE_KERNEL
#define HV TALLY_ATTR_EXCLUDE_HV
#define HOST_SIDE TALLY_ATTR_EXCLUDE_HOST
#define GUEST_SIDE TALLY_ATTR_EXCLUDE_GUEST

#define MEASURE(values, work, ...) \
	do { \
		static const uint64_t flags_[] = { __VA_ARGS__ }; \
		CHECK_EQUAL(hardware_measure(surface, sizeof(flags_) / sizeof(flags_[0]), flags_, \
					     values, work), \
			    0); \
	} while (0)

#define ONLY_AT(level_) \
	do { if (!surface->ops->level || CALL(level) != (level_)) \
		     return CLAUSE_NOT_APPLICABLE + NA_OTHER_ARCHITECTURE; } while (0)

/* For events of the generic types.  With several core types, such events have no user access, or
 * only on some cores: see F4. */
#define USER_ACCESS_IS(value) \
	do { if (surface->features & SURFACE_HETEROGENEOUS) \
		     return CLAUSE_NOT_APPLICABLE + NA_OTHER_ARCHITECTURE; \
	     CHECK_EQUAL(CALL(set_sysctl, "perf_user_access", value), 0); } while (0)

static int work_loop(struct surface *surface)
{
	CALL(loop, LOOP_ITERATIONS);
	for (int i = 0; i < 100; i++)
		CALL(self); /* a system call, as work for the kernel */
	return 0;
}

static int work_guest(struct surface *surface)
{
	return CALL(run_guest, GUEST_KERNEL_ITERATIONS, GUEST_USER_ITERATIONS);
}

/* --- F1: each row of the table, without a guest --------------------------- */

static int exclude_user(struct surface *surface)
{
	uint64_t values[3];
	MEASURE(values, work_loop, HV, HV | USER, HV | KERNEL);
	CHECK_BETWEEN(values[2], 2 * LOOP_ITERATIONS, 2 * LOOP_ITERATIONS + TASK_SLACK);
	/* the difference is exactly user mode's part */
	CHECK_EQUAL(values[0] - values[1], values[2]);
	CHECK(values[1] > 0);
	return 0;
}

static int exclude_kernel(struct surface *surface)
{
	uint64_t values[3];
	MEASURE(values, work_loop, HV, HV | KERNEL, HV | USER);
	CHECK_EQUAL(values[0] - values[1], values[2]);
	CHECK(values[2] >= 100);
	return 0;
}

static int exclude_user_and_kernel(struct surface *surface)
{
	uint64_t value;
	MEASURE(&value, work_loop, HV | USER | KERNEL);
	CHECK_EQUAL(value, 0);
	return 0;
}

static int without_a_guest_exclude_guest(struct surface *surface)
{
	uint64_t values[2];
	MEASURE(values, work_loop, 0, GUEST_SIDE);
	CHECK_EQUAL(values[1], values[0]);
	CHECK(values[0] >= 2 * LOOP_ITERATIONS);
	return 0;
}

static int without_a_guest_exclude_host(struct surface *surface)
{
	uint64_t values[2];
	MEASURE(values, work_loop, 0, HOST_SIDE);
	CHECK_EQUAL(values[1], 0);
	CHECK(values[0] >= 2 * LOOP_ITERATIONS);
	return 0;
}

static int guest_exclude_hv(struct surface *surface)
{
	ONLY_AT(SURFACE_LEVEL_GUEST);
	uint64_t values[2];
	MEASURE(values, work_loop, 0, HV);
	CHECK_EQUAL(values[1], values[0]);
	CHECK(values[0] >= 2 * LOOP_ITERATIONS);
	return 0;
}

/* --- F1: a VHE host, that is at EL2 --------------------------------------- */

static int vhe_exclude_user(struct surface *surface)
{
	ONLY_AT(SURFACE_LEVEL_VHE_HOST);
	uint64_t values[3];
	MEASURE(values, work_guest, 0, USER, USER | HOST_SIDE);
	CHECK(values[0] - values[1] >= GUEST_USER);
	CHECK(values[0] - values[1] <= GUEST_USER + TASK_SLACK);
	CHECK_BETWEEN(values[2], GUEST_KERNEL, GUEST_KERNEL + GUEST_SLACK);
	return 0;
}

static int vhe_exclude_kernel(struct surface *surface)
{
	ONLY_AT(SURFACE_LEVEL_VHE_HOST);
	uint64_t values[2];
	MEASURE(values, work_guest, KERNEL, KERNEL | HOST_SIDE);
	/* includes neither EL1 nor EL2 */
	CHECK_BETWEEN(values[0], GUEST_USER, GUEST_USER + TASK_SLACK);
	CHECK_EQUAL(values[1], GUEST_USER);
	return 0;
}

static int vhe_exclude_hv(struct surface *surface)
{
	ONLY_AT(SURFACE_LEVEL_VHE_HOST);
	uint64_t values[2];
	MEASURE(values, work_guest, 0, HV);
	CHECK_EQUAL(values[1], values[0]);
	return 0;
}

/* --- F1: a non-VHE host, at EL1 ------------------------------------------- */

static int non_vhe_exclude_user(struct surface *surface)
{
	ONLY_AT(SURFACE_LEVEL_NON_VHE_HOST);
	uint64_t values[3];
	MEASURE(values, work_guest, HV, HV | USER, HV | USER | HOST_SIDE);
	CHECK(values[0] - values[1] >= GUEST_USER);
	CHECK(values[0] - values[1] <= GUEST_USER + TASK_SLACK);
	CHECK_BETWEEN(values[2], GUEST_KERNEL, GUEST_KERNEL + GUEST_SLACK);
	return 0;
}

static int non_vhe_exclude_kernel(struct surface *surface)
{
	ONLY_AT(SURFACE_LEVEL_NON_VHE_HOST);
	uint64_t values[3];
	MEASURE(values, work_guest, KERNEL, KERNEL | HV, KERNEL | HV | HOST_SIDE);
	CHECK_BETWEEN(values[1], GUEST_USER, GUEST_USER + TASK_SLACK);
	CHECK(values[0] > values[1]); /* EL2 does not count as kernel */
	CHECK_EQUAL(values[2], GUEST_USER);
	return 0;
}

static int non_vhe_exclude_hv(struct surface *surface)
{
	ONLY_AT(SURFACE_LEVEL_NON_VHE_HOST);
	uint64_t values[3];
	MEASURE(values, work_guest, 0, HV, USER | KERNEL | HV);
	CHECK(values[1] < values[0]); /* EL2 is excluded */
	CHECK(values[1] >= GUEST_KERNEL + GUEST_USER);
	CHECK_EQUAL(values[2], 0);
	return 0;
}

static int non_vhe_exclude_host_no_el2(struct surface *surface)
{
	ONLY_AT(SURFACE_LEVEL_NON_VHE_HOST);
	uint64_t values[2];
	MEASURE(values, work_guest, HOST_SIDE, HOST_SIDE | HV);
	CHECK_EQUAL(values[1], values[0]);
	return 0;
}

/* --- F1 and F2: entry and exit, on either host ---------------------------- */

static int host_exclude_host(struct surface *surface)
{
	uint64_t values[3];
	MEASURE(values, work_guest, HOST_SIDE, HOST_SIDE | USER, HOST_SIDE | KERNEL);
	CHECK_BETWEEN(values[0], GUEST_KERNEL + GUEST_USER,
		      GUEST_KERNEL + GUEST_USER + GUEST_SLACK);
	CHECK_BETWEEN(values[1], GUEST_KERNEL, GUEST_KERNEL + GUEST_SLACK);
	CHECK_EQUAL(values[2], GUEST_USER);
	return 0;
}

static int host_exclude_guest(struct surface *surface)
{
	uint64_t values[3];
	MEASURE(values, work_guest, HV, HV | GUEST_SIDE, HV | GUEST_SIDE | KERNEL);
	CHECK(values[0] - values[1] >= GUEST_KERNEL + GUEST_USER);
	CHECK(values[0] - values[1] <= GUEST_KERNEL + GUEST_USER + GUEST_SLACK);
	CHECK(values[2] < TASK_SLACK);
	return 0;
}

static int host_and_guest_excluded(struct surface *surface)
{
	uint64_t values[2];
	MEASURE(values, work_guest, HOST_SIDE | GUEST_SIDE, 0);
	CHECK_EQUAL(values[0], 0);
	CHECK(values[1] >= GUEST_KERNEL + GUEST_USER);
	return 0;
}

static int non_vhe_blackout(struct surface *surface)
{
	ONLY_AT(SURFACE_LEVEL_NON_VHE_HOST);
	uint64_t values[3];
	MEASURE(values, work_guest, 0, GUEST_SIDE, HOST_SIDE);
	CHECK(values[1] + values[2] < values[0]);
	return 0;
}

static int non_vhe_no_blackout_without_el2(struct surface *surface)
{
	ONLY_AT(SURFACE_LEVEL_NON_VHE_HOST);
	uint64_t values[3];
	MEASURE(values, work_guest, HV, HV | GUEST_SIDE, HV | HOST_SIDE);
	CHECK_EQUAL(values[1] + values[2], values[0]);
	return 0;
}

static int vhe_no_blackout(struct surface *surface)
{
	ONLY_AT(SURFACE_LEVEL_VHE_HOST);
	uint64_t values[3];
	MEASURE(values, work_guest, 0, GUEST_SIDE, HOST_SIDE);
	CHECK_EQUAL(values[1] + values[2], values[0]);
	return 0;
}

/* --- F3 ------------------------------------------------------------------- */

static int open_arm(struct surface *surface, enum tally_hw event, uint64_t config1, pid_t pid,
		    int cpu)
{
	struct tally_attr attr = hardware_event(event, KERNEL);
	attr.config1 = config1;
	return CALL(open, &attr, pid, cpu, -1, 0);
}

static int counters_are_64_bits(struct surface *surface)
{
	int fd = open_arm(surface, TALLY_HW_INSTRUCTIONS, ARM_LONG | ARM_USER_ACCESS, 0, -1);
	if (fd >= 0)
		CALL(close, fd);
	return fd >= 0;
}

static int index_zero_while_off(struct surface *surface)
{
	USER_ACCESS_IS(0);
	int fd = open_arm(surface, TALLY_HW_CPU_CYCLES, ARM_USER_ACCESS, 0, -1);
	CHECK(fd >= 0);
	struct tally_user_page *page = hardware_user_page(surface, fd);
	CHECK(page);
	CHECK_EQUAL(page->index, 0);
	uint64_t value;
	CHECK(CALL(read_counter, 31, &value) < 0);
	return 0;
}

static int index_zero_unless_asked(struct surface *surface)
{
	USER_ACCESS_IS(1);
	int fd = open_arm(surface, TALLY_HW_CPU_CYCLES, 0, 0, -1);
	CHECK(fd >= 0);
	struct tally_user_page *page = hardware_user_page(surface, fd);
	CHECK(page);
	CHECK_EQUAL(page->index, 0);
	return 0;
}

static int access_follows_config1(struct surface *surface)
{
	USER_ACCESS_IS(1);
	int fd = open_arm(surface, TALLY_HW_CPU_CYCLES, ARM_USER_ACCESS, 0, -1);
	CHECK(fd >= 0);
	struct tally_user_page *page = hardware_user_page(surface, fd);
	CHECK(page);
	CHECK(page->index != 0);
	CHECK(page->capabilities & TALLY_CAP_USER_RDPMC);
	uint64_t value;
	CHECK_EQUAL(CALL(read_counter, page->index - 1, &value), 0);
	return 0;
}

static int cycle_counter_is_32(struct surface *surface)
{
	USER_ACCESS_IS(1);
	int fd = open_arm(surface, TALLY_HW_CPU_CYCLES, ARM_USER_ACCESS, 0, -1);
	CHECK(fd >= 0);
	struct tally_user_page *page = hardware_user_page(surface, fd);
	CHECK(page);
	CHECK_EQUAL(page->index, 32);
	return 0;
}

static int programmable_counter_is_n_plus_1(struct surface *surface)
{
	USER_ACCESS_IS(1);
	uint32_t seen = 0;
	for (unsigned i = 0; i < surface->hardware_counters; i++) {
		int fd = open_arm(surface, TALLY_HW_INSTRUCTIONS, ARM_USER_ACCESS, 0, -1);
		CHECK(fd >= 0);
		struct tally_user_page *page = hardware_user_page(surface, fd);
		CHECK(page);
		CHECK_BETWEEN(page->index, 1, 31);
		CHECK(!(seen & 1u << page->index)); /* each event has a counter of its own */
		seen |= 1u << page->index;
	}
	return 0;
}

static int width_is_32(struct surface *surface)
{
	USER_ACCESS_IS(1);
	static const enum tally_hw events[] = { TALLY_HW_CPU_CYCLES, TALLY_HW_INSTRUCTIONS };
	for (unsigned i = 0; i < 2; i++) {
		int fd = open_arm(surface, events[i], ARM_USER_ACCESS, 0, -1);
		CHECK(fd >= 0);
		struct tally_user_page *page = hardware_user_page(surface, fd);
		CHECK(page);
		CHECK_EQUAL(page->pmc_width, 32);
	}
	return 0;
}

static int width_is_64_if_asked(struct surface *surface)
{
	USER_ACCESS_IS(1);
	int fd = open_arm(surface, TALLY_HW_CPU_CYCLES, ARM_LONG | ARM_USER_ACCESS, 0, -1);
	CHECK(fd >= 0);
	struct tally_user_page *page = hardware_user_page(surface, fd);
	CHECK(page);
	CHECK_EQUAL(page->pmc_width, 64);
	if (!counters_are_64_bits(surface))
		return 0; /* only the cycle counter has 64 bits */
	fd = open_arm(surface, TALLY_HW_INSTRUCTIONS, ARM_LONG | ARM_USER_ACCESS, 0, -1);
	CHECK(fd >= 0);
	page = hardware_user_page(surface, fd);
	CHECK(page);
	CHECK_EQUAL(page->pmc_width, 64);
	return 0;
}

static int long_on_32_bits_eopnotsupp(struct surface *surface)
{
	USER_ACCESS_IS(1);
	if (counters_are_64_bits(surface))
		return CLAUSE_NOT_APPLICABLE + NA_OTHER_ARCHITECTURE;
	CHECK_ERROR(open_arm(surface, TALLY_HW_INSTRUCTIONS, ARM_LONG | ARM_USER_ACCESS, 0, -1),
		    EOPNOTSUPP);
	CHECK(open_arm(surface, TALLY_HW_CPU_CYCLES, ARM_LONG | ARM_USER_ACCESS, 0, -1) >= 0);
	return 0;
}

/* Without user access, two 32-bit counters form one of 64 bits, so each event takes two. */
static int no_chained_with_user_access(struct surface *surface)
{
	USER_ACCESS_IS(1);
	if (counters_are_64_bits(surface))
		return CLAUSE_NOT_APPLICABLE + NA_OTHER_ARCHITECTURE;
	for (unsigned access = 0; access < 2; access++) {
		struct tally_attr attr = hardware_event(TALLY_HW_INSTRUCTIONS, KERNEL);
		attr.config1 = access ? ARM_USER_ACCESS : ARM_LONG;
		int leader = CALL(open, &attr, 0, -1, -1, 0), fds[64], result = leader;
		unsigned members = 0;
		CHECK(leader >= 0);
		for (; result >= 0 && members < 63; members++)
			result = fds[members] = CALL(open, &attr, 0, -1, leader, 0);
		CHECK_ERROR(result, EINVAL);
		CHECK_EQUAL(members,
			    access ? surface->hardware_counters : surface->hardware_counters / 2);
		while (--members)
			CALL(close, fds[members - 1]);
		CALL(close, leader);
	}
	return 0;
}

static int cpu_wide_einval(struct surface *surface)
{
	USER_ACCESS_IS(1);
	CHECK_ERROR(open_arm(surface, TALLY_HW_CPU_CYCLES, ARM_USER_ACCESS, -1, 0), EINVAL);
	CHECK_ERROR(open_arm(surface, TALLY_HW_INSTRUCTIONS, ARM_USER_ACCESS, -1, 0), EINVAL);
	CHECK(open_arm(surface, TALLY_HW_CPU_CYCLES, 0, -1, 0) >= 0);
	return 0;
}

/* The count read by mrs lies between two counts by read(2), on the cycle counter and a programmable
 * one. */
static int user_read(struct surface *surface, uint64_t config1)
{
	USER_ACCESS_IS(1);
	static const enum tally_hw events[] = { TALLY_HW_CPU_CYCLES, TALLY_HW_INSTRUCTIONS };
	for (unsigned i = 0; i < 2; i++) {
		int fd = open_arm(surface, events[i], config1, 0, -1);
		if (fd == -EOPNOTSUPP)
			continue; /* see F3.long_on_32_bits_eopnotsupp */
		CHECK(fd >= 0);
		struct tally_user_page *page = hardware_user_page(surface, fd);
		CHECK(page);
		for (unsigned round = 1; round <= 20; round++) {
			struct hardware_values before, after;
			uint64_t value;
			CALL(loop, 1000 * round);
			if (round % 5 == 0)
				CALL(sleep, 100000); /* the event leaves the PMU and returns */
			CHECK_EQUAL(hardware_read(surface, fd, &before), 0);
			CHECK_EQUAL(hardware_user_read(surface, page, &value), 0);
			CHECK_EQUAL(hardware_read(surface, fd, &after), 0);
			CHECK_BETWEEN(value, before.value, after.value);
		}
	}
	return 0;
}

static int user_read_64(struct surface *surface)
{
	return user_read(surface, ARM_LONG | ARM_USER_ACCESS);
}

static int user_read_masked(struct surface *surface)
{
	return user_read(surface, ARM_USER_ACCESS);
}

static int pmselr_zeroed(struct surface *surface)
{
	USER_ACCESS_IS(1);
	int fd = open_arm(surface, TALLY_HW_CPU_CYCLES, ARM_USER_ACCESS, 0, -1);
	CHECK(fd >= 0);
	struct tally_user_page *page = hardware_user_page(surface, fd);
	CHECK(page);
	uint64_t set = 3, value;
	uint32_t sequence = page->lock;
	CHECK_EQUAL(CALL(counter_selector, &set, &value), 0);
	CALL(sleep, 100000);
	CHECK(page->lock != sequence);
	CHECK_EQUAL(CALL(counter_selector, NULL, &value), 0);
	if (value == set)
		return CLAUSE_NOT_APPLICABLE + NA_KERNEL_QUIRK;
	CHECK_EQUAL(value, 0);
	return 0;
}

/* --- F4 ------------------------------------------------------------------- */

static const char *const core_types[] = { "armv8_cortex_a53", "armv8_cortex_a72" };

static int open_on_core_type(struct surface *surface, unsigned type, pid_t pid, int cpu,
			     uint64_t config1)
{
	struct tally_attr attr = hardware_event(TALLY_HW_CPU_CYCLES, KERNEL);
	int number = CALL(pmu, core_types[type]);
	if (number < 0)
		return number;
	attr.type = (uint32_t)number;
	attr.config = 0x11; /* CPU_CYCLES of PMUv3 */
	attr.config1 = config1;
	return CALL(open, &attr, pid, cpu, -1, 0);
}

/* Returns the first CPU whose core has this type, or a negative number. */
static int cpu_of_type(struct surface *surface, unsigned type)
{
	for (int cpu = 0; cpu < CALL(cpus); cpu++) {
		int fd = open_on_core_type(surface, type, -1, cpu, 0);
		if (fd >= 0) {
			CALL(close, fd);
			return cpu;
		}
	}
	return -ENOENT;
}

static int type_per_core_type(struct surface *surface)
{
	int first = CALL(pmu, core_types[0]), second = CALL(pmu, core_types[1]);
	CHECK(first >= TALLY_TYPE_MAX);
	CHECK(second >= TALLY_TYPE_MAX);
	CHECK(first != second);
	return 0;
}

static int mask_of_cpus(struct surface *surface)
{
	unsigned of[2] = { 0 };
	for (int cpu = 0; cpu < CALL(cpus); cpu++) {
		unsigned opened = 0;
		for (unsigned type = 0; type < 2; type++) {
			int fd = open_on_core_type(surface, type, -1, cpu, 0);
			if (fd >= 0) {
				opened++;
				of[type]++;
				CALL(close, fd);
			} else {
				CHECK_ERROR(fd, ENOENT);
			}
		}
		CHECK_EQUAL(opened, 1); /* each CPU is in exactly one mask */
	}
	CHECK(of[0] > 0 && of[1] > 0);
	return 0;
}

static int counts_on_its_cores_alone(struct surface *surface)
{
	for (unsigned type = 0; type < 2; type++) {
		struct hardware_values values;
		int fd = open_on_core_type(surface, type, 0, -1, 0);
		CHECK(fd >= 0);
		CHECK_EQUAL(CALL(pin, cpu_of_type(surface, !type)), 0);
		CHECK_EQUAL(CALL(ioctl, fd, TALLY_IOC_RESET, 0), 0);
		CHECK_EQUAL(hardware_read(surface, fd, &values), 0);
		uint64_t running = values.time_running, enabled = values.time_enabled;
		CALL(loop, LOOP_ITERATIONS);
		CHECK_EQUAL(hardware_read(surface, fd, &values), 0);
		CHECK_EQUAL(values.value, 0);
		CHECK_EQUAL(values.time_running, running);
		CHECK(values.time_enabled > enabled);
		CHECK_EQUAL(CALL(pin, cpu_of_type(surface, type)), 0);
		CALL(loop, LOOP_ITERATIONS);
		CHECK_EQUAL(hardware_read(surface, fd, &values), 0);
		CHECK(values.value > 0);
		CHECK(values.time_running > running);
	}
	return 0;
}

static int user_access_pinned(struct surface *surface)
{
	CHECK_EQUAL(CALL(set_sysctl, "perf_user_access", 1), 0);
	for (unsigned type = 0; type < 2; type++) {
		CHECK_EQUAL(CALL(pin, cpu_of_type(surface, type)), 0);
		int fd = open_on_core_type(surface, type, 0, -1, ARM_USER_ACCESS);
		CHECK(fd >= 0);
		struct tally_user_page *page = hardware_user_page(surface, fd);
		CHECK(page);
		uint64_t value;
		CHECK_EQUAL(page->index, 32);
		CHECK_EQUAL(hardware_user_read(surface, page, &value), 0);
		CHECK_EQUAL(CALL(pin, cpu_of_type(surface, !type)), 0);
		CHECK_EQUAL(page->index, 0); /* a core of another type than the event's */
	}
	return 0;
}

const struct clause clauses_f[] = {
	{ "F1.exclude_user", "exclude_user leaves out EL0, and nothing else", ARM, exclude_user },
	{ "F1.exclude_kernel", "exclude_kernel leaves out the kernel's level, and nothing else",
	  ARM, exclude_kernel },
	{ "F1.exclude_user_and_kernel", "with both and exclude_hv nothing is counted", ARM,
	  exclude_user_and_kernel },
	{ "F1.without_a_guest_exclude_guest",
	  "with no guest entered exclude_guest leaves out nothing", ARM,
	  without_a_guest_exclude_guest },
	{ "F1.without_a_guest_exclude_host", "with no guest entered exclude_host leaves nothing",
	  ARM, without_a_guest_exclude_host },
	{ "F1.guest_exclude_hv", "in a guest exclude_hv has no effect", ARM, guest_exclude_hv },
	{ "F1.vhe_exclude_user", "on a VHE host exclude_user leaves out EL0, the guest's too", HOST,
	  vhe_exclude_user },
	{ "F1.vhe_exclude_kernel", "on a VHE host exclude_kernel leaves out EL1 and EL2", HOST,
	  vhe_exclude_kernel },
	{ "F1.vhe_exclude_hv", "on a VHE host exclude_hv leaves out nothing", HOST,
	  vhe_exclude_hv },
	{ "F1.non_vhe_exclude_user",
	  "on a non-VHE host exclude_user leaves out EL0, the guest's too", HOST,
	  non_vhe_exclude_user },
	{ "F1.non_vhe_exclude_kernel", "on a non-VHE host exclude_kernel leaves out EL1, not EL2",
	  HOST, non_vhe_exclude_kernel },
	{ "F1.non_vhe_exclude_hv", "on a non-VHE host exclude_hv leaves out EL2", HOST,
	  non_vhe_exclude_hv },
	{ "F1.non_vhe_exclude_host_no_el2", "on a non-VHE host exclude_host leaves out EL2", HOST,
	  non_vhe_exclude_host_no_el2 },
	{ "F1.host_exclude_host", "exclude_host counts the guest alone, from entry to exit", HOST,
	  host_exclude_host },
	{ "F1.host_exclude_guest", "exclude_guest counts all but the guest", HOST,
	  host_exclude_guest },
	{ "F1.host_and_guest_excluded", "with both excluded nothing is counted", HOST,
	  host_and_guest_excluded },
	{ "F2.non_vhe_blackout", "a non-VHE host that counts EL2 loses some at entry and exit",
	  HOST, non_vhe_blackout },
	{ "F2.non_vhe_no_blackout_without_el2",
	  "with exclude_hv host and guest add up to the whole", HOST,
	  non_vhe_no_blackout_without_el2 },
	{ "F2.vhe_no_blackout", "on a VHE host host and guest add up to the whole", HOST,
	  vhe_no_blackout },
	{ "F3.index_zero_while_off", "with perf_user_access 0 the index is 0 and reading traps",
	  USER_ACCESS, index_zero_while_off },
	{ "F3.index_zero_unless_asked", "without config1 bit 1 the index is 0", USER_ACCESS,
	  index_zero_unless_asked },
	{ "F3.access_follows_config1", "config1 bit 1 makes the counter readable", USER_ACCESS,
	  access_follows_config1 },
	{ "F3.cycle_counter_is_32", "the cycle counter has index 32", USER_ACCESS,
	  cycle_counter_is_32 },
	{ "F3.programmable_counter_is_n_plus_1", "counter n has index n + 1", USER_ACCESS,
	  programmable_counter_is_n_plus_1 },
	{ "F3.width_is_32", "without config1 bit 0 the width is 32 bits", USER_ACCESS,
	  width_is_32 },
	{ "F3.width_is_64_if_asked", "config1 bit 0 gives 64 bits", USER_ACCESS,
	  width_is_64_if_asked },
	{ "F3.long_on_32_bits_eopnotsupp",
	  "64 bits on 32-bit counters with user access: EOPNOTSUPP", USER_ACCESS,
	  long_on_32_bits_eopnotsupp },
	{ "F3.no_chained_with_user_access", "no counters are chained with user access", USER_ACCESS,
	  no_chained_with_user_access },
	{ "F3.cpu_wide_einval", "user access to a CPU's event: EINVAL",
	  USER_ACCESS | SURFACE_PRIVILEGED, cpu_wide_einval },
	{ "F3.user_read_64", "64 bits read by mrs are what read() gives", USER_ACCESS,
	  user_read_64 },
	{ "F3.user_read_masked", "32 bits, masked by pmc_width, are what read() gives", USER_ACCESS,
	  user_read_masked },
	{ "F3.pmselr_zeroed", "PMSELR_EL0 is zero after the page's lock changed", USER_ACCESS,
	  pmselr_zeroed },
	{ "F4.type_per_core_type", "each core type has a PMU with a number of its own",
	  ARM | SURFACE_HETEROGENEOUS, type_per_core_type },
	{ "F4.mask_of_cpus", "each CPU belongs to one of the PMUs, others answer ENOENT",
	  ARM | SURFACE_HETEROGENEOUS, mask_of_cpus },
	{ "F4.counts_on_its_cores_alone", "a task's event counts on cores of its type alone",
	  ARM | SURFACE_HETEROGENEOUS, counts_on_its_cores_alone },
	{ "F4.user_access_pinned", "user access works on cores of the event's type alone",
	  USER_ACCESS | SURFACE_HETEROGENEOUS, user_access_pinned },
	{ 0 }
};
