#include "test.h"

#include "counts/counts.h"
#include "metric/metric.h"

#include <math.h>

#define HW(name_, value_, ...) \
	{ \
		.name = #name_, .unit = "", .scale = 1, .type = TALLY_TYPE_HARDWARE, \
		.config = TALLY_HW_##name_, .group = -1, .value = (value_), .source = "kernel", \
		__VA_ARGS__ \
	}
#define CACHE(level, result, value_) \
	{ \
		.name = #level, .unit = "", .scale = 1, .type = TALLY_TYPE_HW_CACHE, .group = -1, \
		.value = (value_), \
		.config = TALLY_CACHE_##level | (uint64_t)TALLY_CACHE_RESULT_##result << 16, \
		.source = "kernel" \
	}
#define CLOCK(ns) \
	{ \
		.name = "task-clock", .unit = "ns", .scale = 1, .type = TALLY_TYPE_SOFTWARE, \
		.config = TALLY_SW_TASK_CLOCK, .group = -1, .value = (ns), .source = "kernel" \
	}

static struct tally_count_table table_of(struct tally_event_count *rows, size_t count)
{
	return (struct tally_count_table){ .rows = rows, .count = count, .elapsed_ns = 1e9 };
}

#define TABLE(rows) table_of((rows), sizeof(rows) / sizeof((rows)[0]))

/* B6 */
static void estimate_is_value_times_enabled_over_running(void **state)
{
	(void)state;
	struct tally_total total = { 0 };
	double value;
	tally_total_add(&total, (struct tally_reading){ 630, 1000, 630 });
	assert_true(tally_total_value(&total, &value));
	assert_true(fabs(value - 1000) < 1e-9);
	assert_true(total.was_scaled);
}

static void unscaled_sums_are_exact(void **state)
{
	(void)state;
	struct tally_total total = { 0 };
	double value;
	tally_total_add(&total, (struct tally_reading){ (1ull << 52) + 1, 1000, 1000 });
	/* `running` was read a moment later */
	tally_total_add(&total, (struct tally_reading){ 2, 50, 51 });
	assert_true(tally_total_value(&total, &value));
	assert_true(value == (double)((1ull << 52) + 3));
	assert_false(total.was_scaled);
}

static void each_cpu_is_scaled_by_its_own_share(void **state)
{
	(void)state;
	struct tally_total total = { 0 };
	double value;
	tally_total_add(&total, (struct tally_reading){ 100, 1000, 1000 });
	tally_total_add(&total, (struct tally_reading){ 100, 1000, 100 });
	assert_true(tally_total_value(&total, &value));
	assert_true(fabs(value - 1100) < 1e-9); /* not 200 × 2000 / 1100 = 364 */
}

static void a_cpu_that_never_got_the_pmu_is_filled_in_at_the_others_rate(void **state)
{
	(void)state;
	struct tally_total total = { 0 };
	double value;
	tally_total_add(&total, (struct tally_reading){ 100, 1000, 1000 });
	tally_total_add(&total, (struct tally_reading){ 0, 1000, 0 });
	assert_true(tally_total_value(&total, &value));
	assert_true(fabs(value - 200) < 1e-9);
	assert_true(total.was_scaled);
}

static void never_running_has_no_value(void **state)
{
	(void)state;
	struct tally_total total = { 0 };
	double value;
	tally_total_add(&total, (struct tally_reading){ 0, 1000, 0 });
	assert_false(tally_total_value(&total, &value));
}

static void differences_never_go_below_zero(void **state)
{
	(void)state;
	struct tally_reading d = tally_reading_since((struct tally_reading){ 5, 10, 10 },
						     (struct tally_reading){ 7, 4, 4 });
	assert_int_equal(d.value, 0);
	assert_int_equal(d.enabled_ns, 6);
}

static void sigma_is_the_samples(void **state)
{
	(void)state;
	struct tally_spread spread = { 0 };
	static const double values[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
	assert_true(tally_spread_sigma(&spread) == 0);
	for (size_t i = 0; i < 8; i++)
		tally_spread_add(&spread, values[i]);
	assert_true(fabs(spread.mean - 5) < 1e-12);
	assert_true(fabs(tally_spread_sigma(&spread) - sqrt(32.0 / 7)) < 1e-12);
	assert_true(spread.minimum == 2 && spread.maximum == 9);
}

static void sigma_does_not_cancel_at_large_means(void **state)
{
	(void)state;
	struct tally_spread spread = { 0 };
	for (int i = 0; i < 3; i++)
		tally_spread_add(&spread, 1e15 + i);
	assert_true(fabs(tally_spread_sigma(&spread) - 1) < 1e-6);
}

/* G2 */
static void instructions_show_ipc_and_cpi(void **state)
{
	(void)state;
	struct tally_event_count rows[] = { HW(CPU_CYCLES, 1000), HW(INSTRUCTIONS, 2310) };
	struct tally_count_table table = TABLE(rows);
	struct tally_metric m[TALLY_METRICS_MAX];
	assert_int_equal(tally_metrics_of(&table, 1, m), 2);
	assert_string_equal(m[0].unit, "insn per cycle");
	assert_true(fabs(m[0].value - 2.31) < 1e-9);
	assert_string_equal(m[1].unit, "CPI");
	assert_true(fabs(m[1].value - 1 / 2.31) < 1e-9);
}

static void misses_show_their_share_of_accesses(void **state)
{
	(void)state;
	struct tally_event_count rows[] = { CACHE(L1D, ACCESS, 1000), CACHE(L1D, MISS, 50),
				      HW(INSTRUCTIONS, 4000), CACHE(LL, ACCESS, 50),
				      CACHE(LL, MISS, 10) };
	struct tally_count_table table = TABLE(rows);
	struct tally_metric m[TALLY_METRICS_MAX];
	assert_int_equal(tally_metrics_of(&table, 1, m), 2);
	assert_string_equal(m[0].unit, "% of all L1-dcache accesses");
	assert_true(fabs(m[0].value - 5) < 1e-9);
	assert_string_equal(m[1].unit, "per 1000 insn");
	assert_true(fabs(m[1].value - 12.5) < 1e-9);
	assert_int_equal(tally_metrics_of(&table, 4, m), 2);
	assert_true(fabs(m[0].value - 20) < 1e-9);
}

static void user_cycles_are_not_compared_with_all_instructions(void **state)
{
	(void)state;
	struct tally_event_count rows[] = { HW(CPU_CYCLES, 1000, .excludes = TALLY_ATTR_EXCLUDE_KERNEL),
				      HW(INSTRUCTIONS, 2310), CLOCK(1e6) };
	struct tally_count_table table = TABLE(rows);
	struct tally_metric m[TALLY_METRICS_MAX];
	assert_int_equal(tally_metrics_of(&table, 1, m), 1);
	assert_string_equal(m[0].unit, "M/sec");
	/* user-mode cycles over total time are not a frequency */
	assert_int_equal(tally_metrics_of(&table, 0, m), 0);
}

/* Two types of cores, with the PMU's type in the upper half of the config. */
static void ratios_and_rates_are_of_one_type_of_cores(void **state)
{
	enum { BIG = 8, LITTLE = 9 };
	(void)state;
	struct tally_event_count rows[] = {
		HW(CPU_CYCLES, 3000, .core = BIG, .enabled_ns = 1000),
		HW(INSTRUCTIONS, 6000, .core = BIG, .enabled_ns = 1000),
		HW(CPU_CYCLES, 4000, .core = LITTLE, .enabled_ns = 4000),
		HW(INSTRUCTIONS, 2000, .core = LITTLE, .enabled_ns = 4000),
		HW(BRANCH_MISSES, 7, .core = LITTLE, .enabled_ns = 4000),
		CLOCK(5000),
	};
	for (size_t i = 0; i < 5; i++)
		rows[i].config |= (uint64_t)rows[i].core << 32;
	struct tally_count_table table = TABLE(rows);
	struct tally_metric m[TALLY_METRICS_MAX];
	assert_int_equal(tally_metrics_of(&table, 0, m), 1);
	assert_string_equal(m[0].unit, "GHz");
	assert_true(fabs(m[0].value - 3) < 1e-9);
	assert_true(tally_metrics_of(&table, 1, m) > 0);
	assert_true(fabs(m[0].value - 2) < 1e-9);
	assert_true(tally_metrics_of(&table, 2, m) > 0);
	assert_true(fabs(m[0].value - 1) < 1e-9);
	assert_true(tally_metrics_of(&table, 3, m) > 0);
	assert_true(fabs(m[0].value - 0.5) < 1e-9);
	assert_true(tally_metrics_of(&table, 4, m) > 0);
	assert_string_equal(m[0].unit, "per 1000 insn");
	assert_true(fabs(m[0].value - 3.5) < 1e-9);
	rows[3].state = TALLY_COUNT_NOT_COUNTED;
	assert_true(tally_metrics_of(&table, 4, m) > 0);
	assert_string_equal(m[0].unit, "M/sec");
}

static void ratios_prefer_the_same_group(void **state)
{
	(void)state;
	struct tally_event_count rows[] = { HW(CPU_CYCLES, 1), HW(CPU_CYCLES, 1000),
				      HW(INSTRUCTIONS, 2000) };
	rows[1].group = rows[2].group = 3;
	struct tally_count_table table = TABLE(rows);
	struct tally_metric m[TALLY_METRICS_MAX];
	tally_metrics_of(&table, 2, m);
	assert_true(fabs(m[0].value - 2) < 1e-9);
}

static void an_uncounted_event_is_no_denominator(void **state)
{
	(void)state;
	struct tally_event_count rows[] = { HW(CPU_CYCLES, 1000, .state = TALLY_COUNT_NOT_COUNTED),
				      HW(INSTRUCTIONS, 2000) };
	struct tally_count_table table = TABLE(rows);
	struct tally_metric m[TALLY_METRICS_MAX];
	assert_int_equal(tally_metrics_of(&table, 1, m), 0);
	assert_int_equal(tally_metrics_of(&table, 0, m), 0);
}

static void clocks_show_utilization_of_tasks_but_not_of_cpus(void **state)
{
	(void)state;
	struct tally_event_count rows[] = { CLOCK(5e8) };
	struct tally_count_table table = TABLE(rows);
	struct tally_metric m[TALLY_METRICS_MAX];
	assert_int_equal(tally_metrics_of(&table, 0, m), 1);
	assert_string_equal(m[0].unit, "CPUs utilized");
	assert_true(fabs(m[0].value - 0.5) < 1e-9);
	table.cpu_count = 2;
	tally_metrics_of(&table, 0, m);
	assert_string_equal(m[0].unit, "CPUs counted");
}

static void cycles_show_gigahertz(void **state)
{
	(void)state;
	struct tally_event_count rows[] = { CLOCK(1e6), HW(CPU_CYCLES, 3.2e6),
				      HW(BRANCH_INSTRUCTIONS, 5e5) };
	struct tally_count_table table = TABLE(rows);
	struct tally_metric m[TALLY_METRICS_MAX];
	tally_metrics_of(&table, 1, m);
	assert_string_equal(m[0].unit, "GHz");
	assert_true(fabs(m[0].value - 3.2) < 1e-9);
	tally_metrics_of(&table, 2, m);
	assert_string_equal(m[0].unit, "M/sec");
	assert_true(fabs(m[0].value - 500) < 1e-9);
}

static void verdict_is(struct tally_count_table table, const char *beginning)
{
	char text[256];
	assert_true(tally_count_verdict(&table, text, sizeof(text)));
	assert_memory_equal(text, beginning, strlen(beginning));
}

/* G7 */
static void low_ipc_with_many_llc_misses_reads_as_memory_bound(void **state)
{
	(void)state;
	struct tally_event_count rows[] = { CLOCK(1e9), HW(CPU_CYCLES, 3e9), HW(INSTRUCTIONS, 1e9),
				      CACHE(LL, MISS, 2e7) };
	verdict_is(TABLE(rows), "memory bound: 0.33 insn per cycle with 20.0 last-level");
	rows[3].value = 0;
	rows[3].config = TALLY_CACHE_DTLB | TALLY_CACHE_RESULT_MISS << 16;
	rows[3].value = 2e7;
	verdict_is(TABLE(rows), "address translation");
	struct tally_event_count bare[] = { CLOCK(1e9), HW(CPU_CYCLES, 3e9), HW(INSTRUCTIONS, 1e9) };
	verdict_is(TABLE(bare), "the pipeline mostly waits: 0.33 insn per cycle; -d shows");
	struct tally_event_count branchy[] = { CLOCK(1e9), HW(CPU_CYCLES, 3e9), HW(INSTRUCTIONS, 3e9),
					 HW(BRANCH_MISSES, 6e7) };
	verdict_is(TABLE(branchy), "bad speculation: 20.0");
	struct tally_event_count busy[] = { CLOCK(1e9), HW(CPU_CYCLES, 3e9), HW(INSTRUCTIONS, 9e9) };
	verdict_is(TABLE(busy), "the pipeline is well used: 3.00");
}

static void an_idle_program_reads_as_waiting(void **state)
{
	(void)state;
	struct tally_event_count rows[] = { CLOCK(1e7) };
	verdict_is(TABLE(rows), "mostly waiting, not computing: 1 %");
}

static void a_preempted_program_reads_as_preempted(void **state)
{
	(void)state;
	struct tally_event_count rows[] = { CLOCK(33e7) };
	struct tally_count_table table = TABLE(rows);
	table.has_cpu_times = true;
	table.user_ns = 33e7;
	table.switches = 100;
	table.preemptions = 90;
	verdict_is(table, "had 33 % of one CPU: it was preempted 90 times");
	table.preemptions = 40; /* most of its waits were voluntary */
	verdict_is(table, "mostly waiting, not computing: 33 %");
	table.switches = 7; /* too few switches for so long a wait */
	table.preemptions = 6;
	verdict_is(table, "mostly waiting, not computing: 33 %");
}

/* There are no cycles, so the verdict weighs the cost of the misses. */
static void simulated_counts_are_read_by_their_misses(void **state)
{
	(void)state;
	char text[256];
	struct tally_event_count rows[] = { HW(INSTRUCTIONS, 100e6), HW(BRANCH_MISSES, 9e5),
				      CACHE(L1D, MISS, 4e6), CACHE(LL, MISS, 6e5),
				      CACHE(DTLB, MISS, 0) };
	struct tally_count_table table = TABLE(rows);
	table.is_simulated = true;
	verdict_is(table, "memory bound: 6.0 accesses per 1000 instructions go to memory");
	rows[3].value = 4e5;
	verdict_is(table, "cache bound: 40 L1-dcache misses");
	rows[1].value = 5e6;
	verdict_is(table, "branch bound: 50.0 branches");
	rows[1].value = rows[2].value = rows[3].value = 1000;
	verdict_is(table, "neither caches nor branches hold it up");
	table.count = 2;
	assert_false(tally_count_verdict(&table, text, sizeof(text)));
	rows[0].value = 1e6;
	rows[1].value = 5e5;
	assert_false(tally_count_verdict(&table, text, sizeof(text)));
}

static void short_runs_get_no_verdict(void **state)
{
	(void)state;
	struct tally_event_count rows[] = { CLOCK(1e6), HW(CPU_CYCLES, 3e6), HW(INSTRUCTIONS, 1e6) };
	struct tally_count_table table = TABLE(rows);
	char text[256];
	table.elapsed_ns = 1e6;
	assert_false(tally_count_verdict(&table, text, sizeof(text)));
}

/* Counters near the end of their 64 bits, on several CPUs. */
static void sums_beyond_64_bits_end_and_say_so(void **state)
{
	(void)state;
	struct tally_total total = { 0 };
	const struct tally_reading half = { 1ull << 63, 10, 10 };
	double value = 0;
	tally_total_add(&total, half);
	assert_true(total.raw == 1ull << 63 && !total.is_saturated);
	tally_total_add(&total, half);
	assert_true(total.raw == UINT64_MAX && total.is_saturated && !total.was_scaled);
	assert_true(tally_total_value(&total, &value));
	assert_true(value == 0x1p64);
	/* scaled, too: it ran for half of the time */
	tally_total_add(&total, (struct tally_reading){ 1ull << 63, 10, 5 });
	assert_true(total.raw == UINT64_MAX && total.is_saturated && total.was_scaled);
	assert_true(tally_total_value(&total, &value));
	assert_true(value == 0x1p65);
	/* times end as well */
	total = (struct tally_total){ 0 };
	for (unsigned i = 0; i < 3; i++)
		tally_total_add(&total, (struct tally_reading){ 1, UINT64_MAX, UINT64_MAX });
	assert_true(total.enabled_ns == UINT64_MAX && total.running_ns == UINT64_MAX);
	assert_true(tally_total_value(&total, &value) && value == 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_beyond_64_bits_end_and_say_so),
		cmocka_unit_test(estimate_is_value_times_enabled_over_running),
		cmocka_unit_test(unscaled_sums_are_exact),
		cmocka_unit_test(each_cpu_is_scaled_by_its_own_share),
		cmocka_unit_test(a_cpu_that_never_got_the_pmu_is_filled_in_at_the_others_rate),
		cmocka_unit_test(never_running_has_no_value),
		cmocka_unit_test(differences_never_go_below_zero),
		cmocka_unit_test(sigma_is_the_samples),
		cmocka_unit_test(sigma_does_not_cancel_at_large_means),
		cmocka_unit_test(instructions_show_ipc_and_cpi),
		cmocka_unit_test(misses_show_their_share_of_accesses),
		cmocka_unit_test(user_cycles_are_not_compared_with_all_instructions),
		cmocka_unit_test(ratios_and_rates_are_of_one_type_of_cores),
		cmocka_unit_test(ratios_prefer_the_same_group),
		cmocka_unit_test(an_uncounted_event_is_no_denominator),
		cmocka_unit_test(clocks_show_utilization_of_tasks_but_not_of_cpus),
		cmocka_unit_test(cycles_show_gigahertz),
		cmocka_unit_test(low_ipc_with_many_llc_misses_reads_as_memory_bound),
		cmocka_unit_test(an_idle_program_reads_as_waiting),
		cmocka_unit_test(a_preempted_program_reads_as_preempted),
		cmocka_unit_test(simulated_counts_are_read_by_their_misses),
		cmocka_unit_test(short_runs_get_no_verdict),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
