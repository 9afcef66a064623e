/* Reading counters from user pages: what the page says, and what happens when the kernel changes it
 * between any two loads of the reader. */
#include "test.h"

#include "tally/perf_event.h"

/* --- a CPU and a kernel that changes the pages ---------------------------- */

enum { EVENTS_MAX = 8, COUNTERS = 16, STEPS_MAX = 2 };

static struct {
	struct tally_user_page pages[EVENTS_MAX];
	uint64_t counters[COUNTERS];
	uint64_t clock;
	unsigned events, width;
	uint64_t epoch;              /* changes so far */
	unsigned step;               /* accesses so far */
	unsigned changes[STEPS_MAX]; /* the accesses before which the kernel comes; 0: never */
	unsigned leaves_at;          /* the change that takes the events off the CPU; 0: none */
} machine;

/* The kernel: the thread was away, counted something elsewhere, and is back on other counters.  In
 * epoch E, event i has counted E * 1000 * (i + 1), and the times are E * 7000 and E * 5000 ns. */
static void change(void)
{
	uint64_t mask = machine.width == 64 ? UINT64_MAX : ((uint64_t)1 << machine.width) - 1;
	machine.epoch++;
	for (unsigned i = 0; i < machine.events; i++) {
		struct tally_user_page *page = &machine.pages[i];
		unsigned number = (unsigned)(machine.epoch * 3 + i) % COUNTERS;
		uint64_t raw = (0x123456789abcdef * (machine.epoch + i)) & mask;
		unsigned unused = 64 - machine.width;
		int64_t extended = (int64_t)(raw << unused) >> unused;
		page->lock += 2;
		page->index = number + 1;
		if (machine.leaves_at && machine.epoch >= machine.leaves_at)
			page->index = 0;
		page->pmc_width = (uint16_t)machine.width;
		page->offset = (int64_t)(machine.epoch * 1000 * (i + 1)) - extended;
		page->time_enabled = machine.epoch * 7000;
		page->time_running = machine.epoch * 5000;
		machine.counters[number] = raw;
	}
}

static void step(void)
{
	machine.step++;
	for (unsigned i = 0; i < STEPS_MAX; i++)
		if (machine.changes[i] == machine.step)
			change();
}

#define TALLY_PAGE_LOAD(member) (step(), (member))
#include "library/user_counters.h"
#include "library/user_page.h"

static uint64_t read_counter(void *context, uint32_t number)
{
	(void)context;
	step();
	assert_true(number < COUNTERS);
	return machine.counters[number];
}

static uint64_t read_clock(void *context)
{
	(void)context;
	step();
	return machine.clock;
}

static bool is_any(uint32_t number)
{
	(void)number;
	return true;
}

static const struct tally_user_counters cpu = { is_any, read_counter, read_clock, NULL };

static void start(unsigned events, unsigned width)
{
	memset(&machine, 0, sizeof(machine));
	machine.events = events;
	machine.width = width;
	for (unsigned i = 0; i < events; i++) {
		machine.pages[i].capabilities = TALLY_CAP_BIT0_IS_DEPRECATED |
						TALLY_CAP_USER_RDPMC | TALLY_CAP_USER_TIME;
		machine.pages[i].time_mult = 1;
	}
	change();
}

static bool read_pages(uint64_t *values, struct tally_page_times *times)
{
	struct tally_user_page *pages[EVENTS_MAX];
	for (unsigned i = 0; i < machine.events; i++)
		pages[i] = &machine.pages[i];
	return tally_pages_read(pages, machine.events, &cpu, values, times);
}

/* --- one look ------------------------------------------------------------- */

static void counters_of_each_width_are_added_to_the_offset(void **state)
{
	static const unsigned widths[] = { 1, 31, 32, 40, 48, 63, 64 };
	(void)state;
	for (unsigned i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
		struct tally_page_times times;
		uint64_t value;
		start(1, widths[i]);
		for (unsigned epoch = 1; epoch < 50; epoch++, change()) {
			assert_true(read_pages(&value, &times));
			assert_int_equal(value, epoch * 1000);
		}
	}
}

static void a_counter_counts_up_from_below_zero(void **state)
{
	uint64_t value;
	struct tally_page_times times;
	(void)state;
	start(1, 48);
	/* as the kernel starts them: the period's negative, to overflow at its end */
	machine.pages[0].offset = 5000;
	machine.counters[machine.pages[0].index - 1] = ((uint64_t)1 << 48) - 5000;
	assert_true(read_pages(&value, &times));
	assert_int_equal(value, 0);
	machine.counters[machine.pages[0].index - 1] = ((uint64_t)1 << 48) - 1;
	assert_true(read_pages(&value, &times));
	assert_int_equal(value, 4999);
	machine.counters[machine.pages[0].index - 1] = 7;
	assert_true(read_pages(&value, &times));
	assert_int_equal(value, 5007);
}

static void what_the_page_does_not_permit_is_left_to_read(void **state)
{
	struct tally_user_page *page = &machine.pages[0];
	struct tally_page_times times;
	uint64_t value;
	(void)state;
	start(1, 48);
	page->index = 0;
	assert_false(read_pages(&value, &times));
	start(1, 48);
	page->capabilities &= ~TALLY_CAP_USER_RDPMC;
	assert_false(read_pages(&value, &times));
	start(1, 48);
	/* Linux before 3.12: bit 0 had two meanings */
	page->capabilities = 1 | TALLY_CAP_USER_RDPMC | TALLY_CAP_USER_TIME;
	assert_false(read_pages(&value, &times));
	start(1, 48);
	page->pmc_width = 0;
	assert_false(read_pages(&value, &times));
	page->pmc_width = 65;
	assert_false(read_pages(&value, &times));
	start(1, 48);
	page->lock |= 1; /* the kernel is writing, on another CPU */
	assert_false(read_pages(&value, &times));
	start(1, 48);
	page->capabilities &= ~TALLY_CAP_USER_TIME;
	assert_false(read_pages(&value, &times));
	page->time_running = page->time_enabled;
	assert_true(read_pages(&value, NULL)); /* the value needs no times */
	assert_int_equal(value, 1000);
	start(3, 48);
	machine.pages[2].index = 0; /* a software event in the group */
	assert_false(read_pages((uint64_t[3]){ 0 }, &times));
}

/* The only counter is the one that the page named. */
struct one_counter {
	uint32_t number;
	uint64_t value;
	unsigned reads;
};

static uint64_t read_one(void *context, uint32_t number)
{
	struct one_counter *one = context;
	assert_int_equal(number, one->number);
	one->reads++;
	return one->value;
}

/* Pages as the kernels of the three architectures write them. */
static void each_architecture_has_its_numbers(void **state)
{
	enum { FIXED = 1 << 30, METRICS = 1 << 29 };
	static const struct {
		bool (*is_counter)(uint32_t number);
		uint32_t number;
		unsigned width;
		bool is_read;
	} rows[] = {
		{ tally_x86_64_is_counter, 0, 48, true },
		{ tally_x86_64_is_counter, 7, 48, true },
		{ tally_x86_64_is_counter, 64, 48, false },
		{ tally_x86_64_is_counter, FIXED, 48, true },
		{ tally_x86_64_is_counter, FIXED + 2, 48, true },
		{ tally_x86_64_is_counter, FIXED + 3, 48, false }, /* slots */
		{ tally_x86_64_is_counter, FIXED + 4, 48, true },
		{ tally_x86_64_is_counter, FIXED + 16, 48, false },
		{ tally_x86_64_is_counter, METRICS, 48, false },
		{ tally_arm64_is_counter, 0, 32, true },
		{ tally_arm64_is_counter, 30, 64, true },
		{ tally_arm64_is_counter, 31, 64, true }, /* cycles */
		{ tally_arm64_is_counter, 32, 64, false },
		{ tally_riscv64_is_counter, 0, 64, true },  /* cycle */
		{ tally_riscv64_is_counter, 1, 64, false }, /* time */
		{ tally_riscv64_is_counter, 2, 64, true },  /* instret */
		{ tally_riscv64_is_counter, 31, 40, true },
		{ tally_riscv64_is_counter, 32, 64, false },
		{ tally_riscv64_is_counter, UINT32_MAX, 64, false },
	};
	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tally_user_page page = {
			.index = rows[i].number + 1,
			.pmc_width = (uint16_t)rows[i].width,
			.offset = 1000,
			.capabilities = TALLY_CAP_BIT0_IS_DEPRECATED | TALLY_CAP_USER_RDPMC,
		};
		struct tally_user_page *pages[] = { &page };
		struct one_counter one = { rows[i].number, UINT64_MAX >> (64 - rows[i].width), 0 };
		const struct tally_user_counters its = { rows[i].is_counter, read_one, read_clock,
							 &one };
		uint64_t value = 0;
		assert_int_equal(tally_pages_read(pages, 1, &its, &value, NULL), rows[i].is_read);
		assert_int_equal(one.reads, rows[i].is_read);
		if (rows[i].is_read)
			assert_int_equal(value, 999);
	}
}

static void a_page_that_is_half_written_names_no_counter(void **state)
{
	struct tally_user_page page = { .lock = 3,
					.index = 5,
					.pmc_width = 48,
					.capabilities = TALLY_CAP_BIT0_IS_DEPRECATED |
							TALLY_CAP_USER_RDPMC };
	struct tally_user_page *pages[] = { &page };
	struct one_counter one = { 4, 77, 0 };
	const struct tally_user_counters its = { is_any, read_one, read_clock, &one };
	uint64_t value;
	(void)state;
	assert_false(tally_pages_read(pages, 1, &its, &value, NULL));
	assert_int_equal(one.reads, 0);
	page.lock++;
	assert_true(tally_pages_read(pages, 1, &its, &value, NULL));
	assert_int_equal(one.reads, 1);
	assert_int_equal(value, 77);
}

static void a_value_that_needs_scaling_is_not_read_alone(void **state)
{
	uint64_t value;
	(void)state;
	start(1, 48);
	assert_false(read_pages(&value, NULL));
	machine.pages[0].time_running = machine.pages[0].time_enabled;
	assert_true(read_pages(&value, NULL));
	assert_int_equal(value, 1000);
}

static void times_follow_the_clock(void **state)
{
	struct tally_user_page *page = &machine.pages[0];
	struct tally_page_times times;
	uint64_t value;
	(void)state;
	start(1, 48);
	/* 2.5 GHz: 0.4 ns a cycle */
	page->time_shift = 10;
	page->time_mult = 410;
	machine.clock = 1000000000007;
	uint64_t ns = (machine.clock >> 10) * 410 + ((machine.clock & 1023) * 410 >> 10);
	page->time_offset = (uint64_t)0 - ns + 250; /* written 250 ns ago */
	assert_true(read_pages(&value, &times));
	assert_int_equal(times.enabled_ns, 7250);
	assert_int_equal(times.running_ns, 5250);
	page->time_offset -= 300; /* another CPU's clock is behind */
	assert_true(read_pages(&value, &times));
	assert_int_equal(times.enabled_ns, 7000);
	page->time_shift = 64;
	assert_false(read_pages(&value, &times));
}

static void a_short_clock_may_wrap(void **state)
{
	struct tally_user_page *page = &machine.pages[0];
	struct tally_page_times times;
	uint64_t value;
	(void)state;
	start(1, 48);
	page->capabilities |= TALLY_CAP_USER_TIME_SHORT;
	page->time_mask = ((uint64_t)1 << 56) - 1;
	page->time_cycles = ((uint64_t)3 << 56) - 10; /* the clock wrapped twice before */
	page->time_offset = 10 - ((uint64_t)3 << 56);
	machine.clock = 15;
	assert_true(read_pages(&value, &times));
	assert_int_equal(times.enabled_ns, 7025);
}

/* --- between any two loads ------------------------------------------------ */

static void check_read(bool with_times)
{
	uint64_t values[EVENTS_MAX];
	struct tally_page_times times = { 0 };
	uint64_t before = machine.epoch;
	bool got = read_pages(values, with_times ? &times : NULL);
	if (!got) {
		/* The times differ from epoch 1 on; or the events went away. */
		assert_true(!with_times || machine.leaves_at);
		return;
	}
	uint64_t epoch = values[0] / 1000;
	assert_in_range(epoch, before, machine.epoch);
	for (unsigned i = 0; i < machine.events; i++)
		assert_int_equal(values[i], epoch * 1000 * (i + 1));
	if (with_times) {
		assert_int_equal(times.enabled_ns, epoch * 7000);
		assert_int_equal(times.running_ns, epoch * 5000);
	}
}

/* Tries each pair of accesses before which the kernel comes.  Returns the number of trials. */
static unsigned interrupt_everywhere(unsigned events, bool with_times, unsigned leaves_at)
{
	unsigned trials = 0, length;
	start(events, 40);
	machine.step = 0;
	check_read(with_times);
	length = machine.step;
	for (unsigned first = 1; first <= length + 1; first++)
		for (unsigned second = first + 1; second <= 3 * length; second++, trials++) {
			start(events, 40);
			machine.step = 0;
			machine.leaves_at = leaves_at;
			machine.changes[0] = first;
			machine.changes[1] = second;
			check_read(with_times);
		}
	return trials;
}

static void values_of_a_read_are_of_one_moment(void **state)
{
	unsigned trials = 0;
	(void)state;
	for (unsigned events = 1; events <= EVENTS_MAX; events++) {
		trials += interrupt_everywhere(events, true, 0);
		trials += interrupt_everywhere(events, true, 2); /* gone at the first change */
		trials += interrupt_everywhere(events, true, 3); /* at the second */
	}
	print_message("# %u reads were interrupted twice\n", trials);
	assert_true(trials > 10000);
}

static void a_reader_that_is_always_interrupted_gives_up(void **state)
{
	struct tally_page_times times;
	uint64_t value;
	(void)state;
	start(1, 48);
	for (unsigned i = 0; i < 100; i++) {
		/* The lock changes at each pass: it looks odd at every second load. */
		machine.pages[0].lock = 1;
		assert_false(read_pages(&value, &times));
	}
	assert_true(machine.step <= 100 * TALLY_PAGE_TRIES * 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_of_each_width_are_added_to_the_offset),
		cmocka_unit_test(a_counter_counts_up_from_below_zero),
		cmocka_unit_test(what_the_page_does_not_permit_is_left_to_read),
		cmocka_unit_test(each_architecture_has_its_numbers),
		cmocka_unit_test(a_page_that_is_half_written_names_no_counter),
		cmocka_unit_test(a_value_that_needs_scaling_is_not_read_alone),
		cmocka_unit_test(times_follow_the_clock),
		cmocka_unit_test(a_short_clock_may_wrap),
		cmocka_unit_test(values_of_a_read_are_of_one_moment),
		cmocka_unit_test(a_reader_that_is_always_interrupted_gives_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
