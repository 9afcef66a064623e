/* SPEC rows A3 and A4: which events can be counted, each by itself, and which can't. */
#include "counting.h"
#include "puppet.h"

#include <errno.h>

/* --- HARDWARE ------------------------------------------------------------- */

/* Returns the count over a loop of `iterations`, or -errno of the open. */
static int64_t count_loop(struct surface *surface, struct tally_attr attr, uint64_t iterations)
{
	attr.flags |= TALLY_ATTR_DISABLED;
	int fd = open_self(surface, &attr);
	if (fd < 0)
		return fd;
	enable(surface, fd);
	CALL(loop, iterations);
	disable(surface, fd);
	int64_t count = count_of(surface, fd);
	CALL(close, fd);
	return count;
}

/* An event that the CPU may lack counts or gives ENOENT. */
static int hardware_counts_or_enoent(struct surface *surface, enum tally_hw event)
{
	int64_t count = count_loop(surface, hardware_attr(surface, event), 1000000);
	if (count == -ENOENT)
		return 0;
	CHECK(count >= 0);
	return 0;
}

static int cycles(struct surface *surface)
{
	CHECK(count_loop(surface, hardware_attr(surface, TALLY_HW_CPU_CYCLES), 1000000) >= 100000);
	return 0;
}

static int instructions(struct surface *surface)
{
	struct tally_attr attr = hardware_attr(surface, TALLY_HW_INSTRUCTIONS);
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	int64_t count = count_loop(surface, attr, 1000000);
	/* two for each iteration; the calls around the loop add some */
	CHECK_BETWEEN(count, 2000000, 2020000);
	return 0;
}

static int branch_instructions(struct surface *surface)
{
	struct tally_attr attr = hardware_attr(surface, TALLY_HW_BRANCH_INSTRUCTIONS);
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	int64_t count = count_loop(surface, attr, 1000000);
	if (count != -ENOENT)
		CHECK_BETWEEN(count, 1000000, 1010000);
	return 0;
}

#define HARDWARE_CLAUSE(function, event) \
	static int function(struct surface *surface) \
	{ \
		return hardware_counts_or_enoent(surface, event); \
	}
HARDWARE_CLAUSE(cache_references, TALLY_HW_CACHE_REFERENCES)
HARDWARE_CLAUSE(cache_misses, TALLY_HW_CACHE_MISSES)
HARDWARE_CLAUSE(branch_misses, TALLY_HW_BRANCH_MISSES)
HARDWARE_CLAUSE(bus_cycles, TALLY_HW_BUS_CYCLES)
HARDWARE_CLAUSE(stalled_frontend, TALLY_HW_STALLED_CYCLES_FRONTEND)
HARDWARE_CLAUSE(stalled_backend, TALLY_HW_STALLED_CYCLES_BACKEND)
HARDWARE_CLAUSE(ref_cycles, TALLY_HW_REF_CPU_CYCLES)

static int hw_cache(struct surface *surface)
{
	for (uint64_t cache = 0; cache < TALLY_CACHE_MAX; cache++)
		for (uint64_t op = 0; op < TALLY_CACHE_OP_MAX; op++)
			for (uint64_t result = 0; result < TALLY_CACHE_RESULT_MAX; result++) {
				struct tally_attr attr = event_attr(surface, TALLY_TYPE_HW_CACHE,
								    cache | op << 8 | result << 16);
				int code = try_open(surface, &attr);
				CHECK(code == 0 || code == -ENOENT || code == -EINVAL);
			}
	return 0;
}

static int hw_cache_unknown(struct surface *surface)
{
	static const uint64_t configs[] = { TALLY_CACHE_MAX, TALLY_CACHE_OP_MAX << 8,
					    TALLY_CACHE_RESULT_MAX << 16 };
	for (unsigned i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		struct tally_attr attr = event_attr(surface, TALLY_TYPE_HW_CACHE, configs[i]);
		CHECK_ERROR(try_open(surface, &attr), EINVAL);
	}
	return 0;
}

static int raw(struct surface *surface)
{
	struct tally_attr attr = event_attr(surface, TALLY_TYPE_RAW, surface->raw_instructions);
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	CHECK_BETWEEN(count_loop(surface, attr, 1000000), 2000000, 2020000);
	return 0;
}

static int registered_pmu(struct surface *surface)
{
	int type = CALL(pmu, "hardware");
	CHECK(type >= TALLY_TYPE_RAW);
	struct tally_attr attr = event_attr(surface, (uint32_t)type, surface->raw_instructions);
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	CHECK_BETWEEN(count_loop(surface, attr, 1000000), 2000000, 2020000);
	return 0;
}

/* --- SOFTWARE ------------------------------------------------------------- */

/* Both clocks stand still while the task sleeps. */
static int clock_counts(struct surface *surface, enum tally_sw event)
{
	struct tally_attr attr = software_attr(surface, event);
	uint64_t start = CALL(now);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(burn, 5000000);
	int64_t busy = count_of(surface, fd);
	CHECK(busy >= 5000000);
	CALL(sleep, 20000000);
	int64_t count = count_of(surface, fd);
	uint64_t passed = CALL(now) - start;
	CHECK_BETWEEN(count, (uint64_t)busy, passed - 20000000 + 1000000);
	return 0;
}

static int cpu_clock(struct surface *surface)
{
	return clock_counts(surface, TALLY_SW_CPU_CLOCK);
}

static int task_clock(struct surface *surface)
{
	return clock_counts(surface, TALLY_SW_TASK_CLOCK);
}

static int faults_of(struct surface *surface, enum tally_sw event, unsigned wanted)
{
	struct tally_attr attr = software_attr(surface, event);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	int64_t before = count_of(surface, fd);
	CALL(fault, 100);
	CHECK_EQUAL(count_of(surface, fd) - before, wanted);
	return 0;
}

static int page_faults(struct surface *surface)
{
	return faults_of(surface, TALLY_SW_PAGE_FAULTS, 100);
}

static int minor_faults(struct surface *surface)
{
	return faults_of(surface, TALLY_SW_PAGE_FAULTS_MIN, 100);
}

static int minor_faults_are_not_major(struct surface *surface)
{
	return faults_of(surface, TALLY_SW_PAGE_FAULTS_MAJ, 0);
}

static int major_faults(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS_MAJ);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	attr.config = TALLY_SW_PAGE_FAULTS;
	int all = open_self(surface, &attr);
	CHECK_OPENS(all);
	int64_t before = count_of(surface, all);
	if (CALL(make, TALLY_SW_PAGE_FAULTS_MAJ, 4) < 0)
		/* this file system is in memory: the page cache keeps its pages */
		SKIP(NA_NEEDS_VFS);
	CHECK_EQUAL(count_of(surface, fd), 4);
	CHECK(count_of(surface, all) - before >= 4);
	return 0;
}

static int context_switches(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_CONTEXT_SWITCHES);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(make, TALLY_SW_CONTEXT_SWITCHES, 5);
	CHECK(count_of(surface, fd) >= 5);
	return 0;
}

static int cpu_migrations(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_CPU_MIGRATIONS);
	CHECK_EQUAL(CALL(pin, 0), 0);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK_EQUAL(CALL(make, TALLY_SW_CPU_MIGRATIONS, 4), 0);
	CHECK_EQUAL(count_of(surface, fd), 4);
	return 0;
}

/* Checks an event that no ordinary program causes: it opens, and faults of other kinds don't
 * count. */
static int rare_fault(struct surface *surface, enum tally_sw event)
{
	struct tally_attr attr = software_attr(surface, event);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(fault, 10);
	CHECK_EQUAL(count_of(surface, fd), 0);
	if (CALL(make, event, 3) == 0)
		CHECK_EQUAL(count_of(surface, fd), 3);
	return 0;
}

static int alignment_faults(struct surface *surface)
{
	return rare_fault(surface, TALLY_SW_ALIGNMENT_FAULTS);
}

static int emulation_faults(struct surface *surface)
{
	return rare_fault(surface, TALLY_SW_EMULATION_FAULTS);
}

/* Checks an event that counts nothing, but is enabled and runs. */
static int counts_nothing(struct surface *surface, enum tally_sw event)
{
	struct tally_attr attr = software_attr(surface, event);
	uint64_t words[3];
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CALL(fault, 10);
	CALL(burn, 1000000);
	CHECK_EQUAL(read_words(surface, fd, words, sizeof(words)), 3);
	CHECK_EQUAL(words[0], 0);
	CHECK(words[1] >= 1000000);
	CHECK_EQUAL(words[2], words[1]);
	return 0;
}

static int dummy(struct surface *surface)
{
	return counts_nothing(surface, TALLY_SW_DUMMY);
}

static int bpf_output(struct surface *surface)
{
	return counts_nothing(surface, TALLY_SW_BPF_OUTPUT);
}

static int cgroup_switches(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_CGROUP_SWITCHES);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	CHECK(count_of(surface, fd) >= 0);
	return 0;
}

/* --- TRACEPOINT, BREAKPOINT ----------------------------------------------- */

static int tracepoint(struct surface *surface)
{
	struct tally_attr attr = hit_attr(surface);
	int fd = open_self(surface, &attr);
	CHECK_OPENS(fd);
	int64_t before = count_of(surface, fd);
	CALL(hit, 25);
	CHECK_EQUAL(count_of(surface, fd) - before, 25);
	return 0;
}

static int unknown_tracepoint(struct surface *surface)
{
	struct tally_attr attr = event_attr(surface, TALLY_TYPE_TRACEPOINT, 0);
	CHECK_ERROR(try_open(surface, &attr), EINVAL);
	attr.config = 1ull << 40;
	CHECK_ERROR(try_open(surface, &attr), EINVAL);
	return 0;
}

/* Opens a breakpoint on `armed` and makes accesses of kind `touched`.  Returns the count, or
 * -errno. */
static int64_t breakpoint_counts(struct surface *surface, unsigned armed, unsigned touched)
{
	struct tally_attr attr = breakpoint_attr(surface, armed);
	int fd = open_self(surface, &attr);
	if (fd < 0)
		return fd;
	CALL(touch, touched, 10);
	int64_t count = count_of(surface, fd);
	CALL(close, fd);
	return count;
}

static int breakpoint_write(struct surface *surface)
{
	CHECK_EQUAL(breakpoint_counts(surface, TALLY_BREAKPOINT_W, TALLY_BREAKPOINT_W), 10);
	CHECK_EQUAL(breakpoint_counts(surface, TALLY_BREAKPOINT_W, TALLY_BREAKPOINT_R), 0);
	return 0;
}

static int breakpoint_read_write(struct surface *surface)
{
	unsigned both = TALLY_BREAKPOINT_R | TALLY_BREAKPOINT_W;
	CHECK_EQUAL(breakpoint_counts(surface, both, TALLY_BREAKPOINT_R), 10);
	CHECK_EQUAL(breakpoint_counts(surface, both, TALLY_BREAKPOINT_W), 10);
	return 0;
}

/* x86 can't watch reads without writes: EINVAL there. */
static int breakpoint_read(struct surface *surface)
{
	int64_t count = breakpoint_counts(surface, TALLY_BREAKPOINT_R, TALLY_BREAKPOINT_R);
	CHECK(count == 10 || count == -EINVAL);
	return 0;
}

static int breakpoint_execute(struct surface *surface)
{
	CHECK_EQUAL(breakpoint_counts(surface, TALLY_BREAKPOINT_X, TALLY_BREAKPOINT_X), 10);
	return 0;
}

static int breakpoint_lengths(struct surface *surface)
{
	for (uint64_t length = 1; length <= 8; length *= 2) {
		struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
		attr.config2 = length;
		CHECK_EQUAL(try_open(surface, &attr), 0);
	}
	return 0;
}

static int breakpoint_bad_length(struct surface *surface)
{
	static const uint64_t lengths[] = { 0, 9, 100 };
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
		attr.config2 = lengths[i];
		CHECK_ERROR(try_open(surface, &attr), EINVAL);
	}
	return 0;
}

static int breakpoint_of_no_type(struct surface *surface)
{
	static const unsigned types[] = { 0, 8, TALLY_BREAKPOINT_X | TALLY_BREAKPOINT_W };
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
		attr.bp_type = types[i];
		CHECK_ERROR(try_open(surface, &attr), EINVAL);
	}
	return 0;
}

static int breakpoint_slots_run_out(struct surface *surface)
{
	enum { SLOTS_MAX = 64 };
	struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
	int fd = 0, last = -1, opened = 0;
	for (; opened < SLOTS_MAX && (fd = open_self(surface, &attr)) >= 0; opened++)
		last = fd;
	CHECK_ERROR(fd, ENOSPC);
	CHECK(opened >= 1);
	CALL(close, last);
	CHECK_OPENS(open_self(surface, &attr));
	return 0;
}

/* --- A4 ------------------------------------------------------------------- */

static int unknown_software(struct surface *surface)
{
	static const uint64_t configs[] = { TALLY_SW_MAX, TALLY_SW_MAX + 1, 1ull << 32,
					    UINT64_MAX };
	for (unsigned i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		struct tally_attr attr = event_attr(surface, TALLY_TYPE_SOFTWARE, configs[i]);
		CHECK_ERROR(try_open(surface, &attr), ENOENT);
	}
	return 0;
}

static int unknown_type(struct surface *surface)
{
	static const uint32_t types[] = { 1000, INT32_MAX, UINT32_MAX };
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct tally_attr attr = event_attr(surface, types[i], 0);
		CHECK_ERROR(try_open(surface, &attr), ENOENT);
	}
	return 0;
}

static int no_hardware_enoent(struct surface *surface)
{
	static const uint32_t types[] = { TALLY_TYPE_HARDWARE, TALLY_TYPE_HW_CACHE,
					  TALLY_TYPE_RAW };
	if (surface->features & SURFACE_HARDWARE)
		SKIP(NA_OTHER_ARCHITECTURE);
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct tally_attr attr = event_attr(surface, types[i], 0);
		CHECK_ERROR(try_open(surface, &attr), ENOENT);
	}
	return 0;
}

static int unknown_hardware(struct surface *surface)
{
	struct tally_attr attr = hardware_attr(surface, TALLY_HW_MAX);
	int code = try_open(surface, &attr);
	CHECK(code == -EINVAL || code == -ENOENT);
	return 0;
}

static int branch_stack_of_software(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	attr.sample_period = 1;
	attr.sample_type = TALLY_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = 1u << 3 | 1u << 0; /* all branches in user mode */
	CHECK_ERROR(try_open(surface, &attr), EOPNOTSUPP);
	return 0;
}

static int aux_of_software(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	attr.flags |= TALLY_ATTR_AUX_OUTPUT;
	CHECK_ERROR(try_open(surface, &attr), EOPNOTSUPP);
	return 0;
}

const struct clause clauses_a_events[] = {
	{ "A3.cycles", "CPU cycles count", SURFACE_HARDWARE, cycles },
	{ "A3.instructions", "instructions count, to the one", SURFACE_HARDWARE, instructions },
	{ "A3.cache_references", "cache references count or aren't there", SURFACE_HARDWARE,
	  cache_references },
	{ "A3.cache_misses", "cache misses count or aren't there", SURFACE_HARDWARE, cache_misses },
	{ "A3.branch_instructions", "branches count, to the one, or aren't there", SURFACE_HARDWARE,
	  branch_instructions },
	{ "A3.branch_misses", "branch misses count or aren't there", SURFACE_HARDWARE,
	  branch_misses },
	{ "A3.bus_cycles", "bus cycles count or aren't there", SURFACE_HARDWARE, bus_cycles },
	{ "A3.stalled_cycles_frontend", "stalls in the front end count or aren't there",
	  SURFACE_HARDWARE, stalled_frontend },
	{ "A3.stalled_cycles_backend", "stalls in the back end count or aren't there",
	  SURFACE_HARDWARE, stalled_backend },
	{ "A3.ref_cycles", "reference cycles count or aren't there", SURFACE_HARDWARE, ref_cycles },
	{ "A3.cpu_clock", "cpu-clock counts time on a CPU, not sleep", 0, cpu_clock },
	{ "A3.task_clock", "task-clock counts the task's time on a CPU", 0, task_clock },
	{ "A3.page_faults", "each page fault counts", 0, page_faults },
	{ "A3.minor_faults", "each fault that needs no reading counts as minor", 0, minor_faults },
	{ "A3.minor_is_not_major", "a minor fault is no major fault", 0,
	  minor_faults_are_not_major },
	{ "A3.major_faults", "each fault that is read from a disk counts as major", 0,
	  major_faults },
	{ "A3.context_switches", "each sleep counts as a context switch", SURFACE_PRIVILEGED,
	  context_switches },
	{ "A3.cpu_migrations", "each move to another CPU counts",
	  SURFACE_TWO_CPUS | SURFACE_PRIVILEGED, cpu_migrations },
	{ "A3.alignment_faults", "alignment-faults opens and counts no other faults", 0,
	  alignment_faults },
	{ "A3.emulation_faults", "emulation-faults opens and counts no other faults", 0,
	  emulation_faults },
	{ "A3.dummy", "dummy runs and counts nothing", 0, dummy },
	{ "A3.bpf_output", "bpf-output runs and counts nothing of itself", 0, bpf_output },
	{ "A3.cgroup_switches", "cgroup-switches opens", 0, cgroup_switches },
	{ "A3.tracepoint", "each hit of a tracepoint counts",
	  SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED, tracepoint },
	{ "A3.hw_cache", "each cache, operation and result opens or isn't there", SURFACE_HARDWARE,
	  hw_cache },
	{ "A3.hw_cache_unknown_einval", "a cache, operation or result beyond the last gives EINVAL",
	  SURFACE_HARDWARE, hw_cache_unknown },
	{ "A3.raw", "RAW counts the CPU's own event numbers", SURFACE_HARDWARE, raw },
	{ "A3.breakpoint_write", "each write of a watched variable counts, and no read",
	  SURFACE_BREAKPOINTS, breakpoint_write },
	{ "A3.breakpoint_read_write", "each access of a watched variable counts",
	  SURFACE_BREAKPOINTS, breakpoint_read_write },
	{ "A3.breakpoint_read", "each read counts, or the CPU can't watch reads alone",
	  SURFACE_BREAKPOINTS, breakpoint_read },
	{ "A3.breakpoint_execute", "each run of a watched instruction counts", SURFACE_BREAKPOINTS,
	  breakpoint_execute },
	{ "A3.breakpoint_lengths", "1, 2, 4 and 8 bytes can be watched", SURFACE_BREAKPOINTS,
	  breakpoint_lengths },
	{ "A3.breakpoint_bad_length_einval",
	  "no length, or one beyond 8 that is no power of two, gives EINVAL", SURFACE_BREAKPOINTS,
	  breakpoint_bad_length },
	{ "A3.breakpoint_no_type_einval",
	  "no type, an unknown one, or execution with access: EINVAL", SURFACE_BREAKPOINTS,
	  breakpoint_of_no_type },
	{ "A3.breakpoint_slots_enospc",
	  "more breakpoints than the CPU has give ENOSPC; a closed one makes room",
	  SURFACE_BREAKPOINTS, breakpoint_slots_run_out },
	{ "A3.registered_pmu", "a PMU registered at run time counts under its own type number",
	  SURFACE_HARDWARE, registered_pmu },

	{ "A4.unknown_software_enoent", "a software event beyond the last gives ENOENT", 0,
	  unknown_software },
	{ "A4.unknown_type_enoent", "a type that no PMU has gives ENOENT", 0, unknown_type },
	{ "A4.no_hardware_enoent", "without a PMU, HARDWARE, HW_CACHE and RAW give ENOENT", 0,
	  no_hardware_enoent },
	{ "A4.unknown_hardware", "a hardware event beyond the last gives EINVAL or ENOENT",
	  SURFACE_HARDWARE, unknown_hardware },
	{ "A4.unknown_tracepoint_einval", "a tracepoint that isn't there gives EINVAL",
	  SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED, unknown_tracepoint },
	{ "A4.branch_stack_eopnotsupp", "a branch stack on a software event gives EOPNOTSUPP", 0,
	  branch_stack_of_software },
	{ "A4.aux_output_eopnotsupp", "aux_output on a software event gives EOPNOTSUPP", 0,
	  aux_of_software },
	{ NULL, NULL, 0, NULL }
};
