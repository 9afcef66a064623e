/* SPEC H5 and the counters of part F: the simulated machine's PMU models.  Constraints, fixed
 * counters, the state at an interrupt, chains of 32-bit counters, widths. */
#include "test.h"

#include "abi/abi.h"
#include "sim/sim.h"
#include "sim/sim_state.h"

enum {
	RAW_CYCLES = 0x3c,
	RAW_INSTRUCTIONS = 0xc0,
	RAW_BRANCHES = 0xc4,
	RAW_STALLED_BACKEND = 0x1a2,
	RAW_L1D_MISSES = 0x151,
	RAW_DTLB = 0x108,
	RAW_ITLB = 0x185,
	RAW_L1I = 0x283,
	RAW_REFERENCE = 0x300
};

static int opened(struct sim_machine *machine, uint32_t type, uint64_t config, uint64_t config1,
		  int group, uint64_t flags)
{
	const struct tally_attr attr = { .type = type,
					 .size = sizeof(attr),
					 .config = config,
					 .config1 = config1,
					 .flags = flags | TALLY_ATTR_EXCLUDE_KERNEL,
					 .read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED |
							TALLY_FORMAT_TOTAL_TIME_RUNNING };
	return tally_engine_open(sim_engine(machine), &attr, 0, -1, group, 0);
}

static int raw(struct sim_machine *machine, uint64_t config, int group)
{
	return opened(machine, TALLY_TYPE_RAW, config, 0, group, 0);
}

static void work(struct sim_machine *machine, uint64_t instructions)
{
	struct sim_phase phase = {
		.kind = SIM_WORK,
		.work = { .instructions = instructions,
			  .mode = TALLY_MODE_USER,
			  .address = 0x400000,
			  .code_size = 1 << 20,
			  .per_kilo = { [SIM_CYCLES] = 2000,
					[SIM_BRANCHES] = 100,
					[SIM_STALLED_BACKEND] = 30,
					[SIM_L1D_LOAD_MISSES] = 7,
					[SIM_DTLB_LOAD_MISSES] = 3,
					[SIM_ITLB_LOAD_MISSES] = 2,
					[SIM_L1I_LOAD_MISSES] = 5,
					[SIM_L1D_LOADS] = 300 } },
	};
	sim_do(machine, &phase);
}

static uint64_t counted(struct sim_machine *machine, int fd)
{
	uint64_t values[3] = { 0 };
	assert_int_equal(tally_engine_read(sim_engine(machine), fd, values, sizeof(values)), 24);
	assert_int_equal(values[1], values[2]); /* it was always on the PMU */
	return values[0];
}

static struct tally_user_page *page_of(struct sim_machine *machine, int fd)
{
	void *address = NULL;
	assert_int_equal(tally_engine_mmap(sim_engine(machine), fd, 4096, true, true, 0, &address),
			 0);
	return address;
}

static void run(const char *model, sim_body_function *body)
{
	/* Ticks are far apart: some tests run for simulated days. */
	struct sim_config config = { .cpus = 1, .model = model, .tick_ns = 1ull << 36 };
	struct sim_machine *machine = sim_new(&config);
	assert_non_null(machine);
	struct sim_task_spec spec = { .comm = "body",
				      .program = sim_body_program,
				      .data = sim_body_new(body, NULL),
				      .release = sim_body_release,
				      .cpu = 0 };
	assert_non_null(sim_spawn(machine, NULL, &spec));
	assert_int_equal(sim_run(machine, UINT64_MAX), 0);
	sim_free(machine);
}

/* --- x86: constraints ----------------------------------------------------- */

/* The counters, of four, that each event may use, by hand from the model's table; without fixed
 * ones. */
static const struct { uint64_t config; unsigned counters;
} constrained[] = {
	{ RAW_STALLED_BACKEND, 0x4 },
	{ RAW_L1D_MISSES, 0x3 },
	{ RAW_DTLB, 0x6 },
	{ RAW_ITLB, 0xa },
	{ RAW_L1I, 0xc },
	{ RAW_BRANCHES, 0xf },
};
enum { CONSTRAINED = sizeof(constrained) / sizeof(constrained[0]) };

/* The oracle: tries every placement. */
static bool fits(const unsigned *which, unsigned count, unsigned taken)
{
	if (!count)
		return true;
	for (unsigned counter = 0; counter < 4; counter++)
		if (constrained[which[0]].counters >> counter & 1 && !(taken >> counter & 1) &&
		    fits(which + 1, count - 1, taken | 1u << counter))
			return true;
	return false;
}

/* A group opens if and only if there is a placement; then all its events always count. */
static int every_group_of_up_to_four(struct sim_machine *machine, void *unused)
{
	(void)unused;
	unsigned accepted = 0, refused = 0;
	for (unsigned code = 0; code < CONSTRAINED * CONSTRAINED * CONSTRAINED * CONSTRAINED;
	     code++) {
		unsigned which[4], rest = code, open_now = 0;
		int fds[4];
		for (unsigned i = 0; i < 4; i++, rest /= CONSTRAINED)
			which[i] = rest % CONSTRAINED;
		bool all = true;
		for (unsigned i = 0; i < 4; i++) {
			int fd = raw(machine, constrained[which[i]].config, i ? fds[0] : -1);
			bool possible = fits(which, i + 1, 0);
			assert_int_equal(fd >= 0 ? 0 : fd, possible ? 0 : -22 /* EINVAL */);
			all = all && possible;
			if (fd < 0)
				break;
			fds[open_now++] = fd;
		}
		if (all && code % 7 == 0) {
			work(machine, 100000);
			for (unsigned i = 0; i < 4; i++)
				counted(machine, fds[i]);
		}
		accepted += all;
		refused += !all;
		while (open_now)
			assert_int_equal(tally_engine_close(sim_engine(machine), fds[--open_now]),
					 0);
	}
	assert_true(accepted > 100 && refused > 100);
	return 0;
}

static void h5_a_group_opens_if_there_is_a_placement(void **state)
{
	(void)state;
	run("x86", every_group_of_up_to_four);
}

/* A new event may move the present ones; their counts stay. */
static int late_ones_move_others(struct sim_machine *machine, void *unused)
{
	(void)unused;
	int first = raw(machine, RAW_BRANCHES, -1), second = raw(machine, RAW_BRANCHES, -1);
	int third = raw(machine, RAW_BRANCHES, -1);
	work(machine, 100000);
	int picky = raw(machine, RAW_STALLED_BACKEND, -1); /* only counter 2 */
	work(machine, 100000);
	assert_int_equal(counted(machine, first), 20000);
	assert_int_equal(counted(machine, second), 20000);
	assert_int_equal(counted(machine, third), 20000);
	assert_int_equal(counted(machine, picky), 3000);
	return 0;
}

static void h5_placing_one_may_move_others(void **state)
{
	(void)state;
	run("x86", late_ones_move_others);
}

/* --- x86: fixed counters and the user page's index ------------------------ */

static int fixed_counters(struct sim_machine *machine, void *unused)
{
	(void)unused;
	static const struct { uint64_t config; uint32_t index; } fixed[] = {
		{ RAW_INSTRUCTIONS, (1u << 30 | 0) + 1 }, { RAW_CYCLES, (1u << 30 | 1) + 1 },
		{ RAW_REFERENCE, (1u << 30 | 2) + 1 },
	};
	for (unsigned i = 0; i < 3; i++) {
		int fd = raw(machine, fixed[i].config, -1);
		assert_true(fd >= 0);
		struct tally_user_page *page = page_of(machine, fd);
		work(machine, 1000);
		assert_int_equal(page->index, fixed[i].index);
		assert_int_equal(page->pmc_width, 48);
	}
	/* The fixed counter is taken, so a general one serves. */
	int again = raw(machine, RAW_INSTRUCTIONS, -1);
	struct tally_user_page *page = page_of(machine, again);
	work(machine, 1000);
	assert_in_range(page->index, 1, 4);
	/* Reference cycles need the fixed counter. */
	int second = raw(machine, RAW_REFERENCE, -1);
	assert_true(second >= 0);
	work(machine, 100000);
	uint64_t values[3];
	assert_int_equal(tally_engine_read(sim_engine(machine), second, values, sizeof(values)),
			 24);
	assert_true(values[2] < values[1]);
	return 0;
}

static void h5_fixed_counters_have_their_index(void **state)
{
	(void)state;
	run("x86", fixed_counters);
}

/* --- x86: the interrupt --------------------------------------------------- */

struct overflows {
	unsigned count;
	uint64_t periods, last_ip;
	bool exact;
};

static void on_overflow(struct tally_pmu_event *event, const struct tally_engine_hit *hit,
			const struct tally_engine_regs *regs, void *data)
{
	struct overflows *overflows = data;
	(void)event;
	overflows->count++;
	overflows->periods += hit->period;
	overflows->last_ip = hit->has_exact_ip ? hit->exact_ip : regs->ip;
	overflows->exact = hit->has_exact_ip;
}

static int sampled(struct sim_machine *machine, uint64_t config, uint64_t period, unsigned precise,
		   struct overflows *overflows)
{
	struct tally_attr attr = { .type = TALLY_TYPE_RAW,
				   .size = sizeof(attr),
				   .config = config,
				   .sample_period = period,
				   .flags = TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_DISABLED |
					    (uint64_t)precise << TALLY_ATTR_PRECISE_IP_SHIFT };
	int fd = tally_engine_open(sim_engine(machine), &attr, 0, -1, -1, 0);
	assert_true(fd >= 0);
	assert_int_equal(
		tally_engine_set_overflow_handler(sim_engine(machine), fd, on_overflow, overflows),
		0);
	assert_int_equal(tally_engine_ioctl(sim_engine(machine), fd, TALLY_IOC_ENABLE, 0), 0);
	return fd;
}

/* Two counters overflow at different times and at the same instruction: each event gets its own
 * overflows. */
static int which_overflowed(struct sim_machine *machine, void *unused)
{
	(void)unused;
	struct overflows instructions = { 0 }, branches = { 0 }, both = { 0 };
	sampled(machine, RAW_INSTRUCTIONS, 1000, 0, &instructions);
	sampled(machine, RAW_BRANCHES, 130, 0, &branches);
	/* edge: needs a general counter, in step with the first */
	sampled(machine, RAW_INSTRUCTIONS | 1 << 18, 2000, 0, &both);
	work(machine, 100000);
	assert_int_equal(instructions.count, 100);
	assert_int_equal(branches.count, 10000 / 130);
	assert_int_equal(both.count, 50);
	assert_int_equal(instructions.periods, 100 * 1000);
	return 0;
}

static void h5_the_interrupt_finds_which_overflowed(void **state)
{
	(void)state;
	run("x86", which_overflowed);
}

static int skid_or_precise(struct sim_machine *machine, void *unused)
{
	(void)unused;
	struct overflows late = { 0 }, exact = { 0 };
	int fd = sampled(machine, RAW_INSTRUCTIONS, 5000, 0, &late);
	work(machine, 5000);
	assert_int_equal(late.count, 1);
	assert_true(late.last_ip > 0x400000 + 4 * 5000 && !late.exact);
	assert_int_equal(tally_engine_close(sim_engine(machine), fd), 0);
	sampled(machine, RAW_INSTRUCTIONS, 5000, 2, &exact);
	work(machine, 5000);
	assert_int_equal(exact.count, 1);
	assert_true(exact.exact);
	assert_int_equal(exact.last_ip, 0x400000 + 4 * 5000);
	return 0;
}

static void h5_interrupts_skid_or_are_precise(void **state)
{
	(void)state;
	run("x86", skid_or_precise);
}

static int wide_counts(struct sim_machine *machine, void *unused)
{
	(void)unused;
	int fd = raw(machine, RAW_CYCLES, -1);
	for (unsigned i = 0; i < 5; i++)
		work(machine, 1ull << 47);
	assert_int_equal(counted(machine, fd), 10ull << 47); /* 2^50.3: past 48 bits */
	return 0;
}

static void b1_values_are_wider_than_the_counter(void **state)
{
	(void)state;
	run("x86", wide_counts);
	run("x86-8", wide_counts);
}

/* --- arm64 ---------------------------------------------------------------- */

enum { ARM_INSTRUCTIONS = 0x08, ARM_CYCLES = 0x11, ARM_LONG = 1, ARM_USER = 2 };

static int arm(struct sim_machine *machine, uint64_t config, uint64_t config1, int group)
{
	return opened(machine, TALLY_TYPE_RAW, config, config1, group, 0);
}

/* 64 bits take two 32-bit counters: three events fit, beside cycles on the cycle counter. */
static int chains(struct sim_machine *machine, void *unused)
{
	(void)unused;
	int leader = arm(machine, ARM_CYCLES, ARM_LONG, -1), members[3];
	for (unsigned i = 0; i < 3; i++)
		assert_true((members[i] = arm(machine, ARM_INSTRUCTIONS, ARM_LONG, leader)) >= 0);
	assert_int_equal(arm(machine, ARM_INSTRUCTIONS, ARM_LONG, leader), -22 /* EINVAL */);
	assert_int_equal(arm(machine, ARM_INSTRUCTIONS, 0, leader), -22);
	work(machine, 3ull << 32);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(counted(machine, members[i]), 3ull << 32);
	assert_int_equal(counted(machine, leader), 6ull << 32);
	return 0;
}

static void f_chained_counters_take_two(void **state)
{
	(void)state;
	run("arm64-32", chains);
}

static int long_counters(struct sim_machine *machine, void *unused)
{
	(void)unused;
	int leader = arm(machine, ARM_CYCLES, 0, -1);
	for (unsigned i = 0; i < 6; i++)
		assert_true(arm(machine, ARM_INSTRUCTIONS, ARM_LONG, leader) >= 0);
	assert_int_equal(arm(machine, ARM_INSTRUCTIONS, ARM_LONG, leader), -22);
	return 0;
}

static void f_long_counters_take_one(void **state)
{
	(void)state;
	run("arm64", long_counters);
}

/* A 32-bit counter wraps every 4 thousand million; the event sees each wrap. */
static int wraps(struct sim_machine *machine, void *unused)
{
	(void)unused;
	int fd = arm(machine, ARM_INSTRUCTIONS, 0, -1);
	work(machine, 5ull << 32);
	assert_int_equal(counted(machine, fd), 5ull << 32);
	return 0;
}

static void b1_short_counters_wrap_unseen(void **state)
{
	(void)state;
	run("arm64-32", wraps);
	run("arm64", wraps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h5_a_group_opens_if_there_is_a_placement),
		cmocka_unit_test(h5_placing_one_may_move_others),
		cmocka_unit_test(h5_fixed_counters_have_their_index),
		cmocka_unit_test(h5_the_interrupt_finds_which_overflowed),
		cmocka_unit_test(h5_interrupts_skid_or_are_precise),
		cmocka_unit_test(b1_values_are_wider_than_the_counter),
		cmocka_unit_test(f_chained_counters_take_two),
		cmocka_unit_test(f_long_counters_take_one),
		cmocka_unit_test(b1_short_counters_wrap_unseen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
