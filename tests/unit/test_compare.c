/* Comparing two series with tally compare: the arithmetic against published tables, conditions,
 * saved files. */
#include "base/arena.h"
#include "counts/counts.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void near(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance))
		fail_msg("%.8g is not within %g of %.8g", value, tolerance, expected);
}

/* Two-sided quantiles, as in every statistics book's table. */
static void student_s_quantiles_are_those_of_the_tables(void **state)
{
	static const struct {
		double freedom, p05, p01;
	} table[] = {
		{ 1, 12.706, 63.657 }, { 2, 4.303, 9.925 },   { 3, 3.182, 5.841 },
		{ 4, 2.776, 4.604 },   { 5, 2.571, 4.032 },   { 9, 2.262, 3.250 },
		{ 10, 2.228, 3.169 },  { 30, 2.042, 2.750 },  { 60, 2.000, 2.660 },
		{ 120, 1.980, 2.617 }, { 1e9, 1.960, 2.576 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		near(tally_student_t(0.05, table[i].freedom), table[i].p05, 0.003);
		near(tally_student_t(0.01, table[i].freedom), table[i].p01, 0.006);
	}
}

/* Integrates the density by Simpson's rule, for any degrees of freedom. */
static double p_by_integration(double t, double freedom)
{
	enum { STEPS = 20000 };
	double sum = 0, h = fabs(t) / STEPS;
	double front = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) /
		       sqrt(freedom * acos(-1));
	for (int i = 0; i <= STEPS; i++) {
		double x = i * h, density = front * pow(1 + x * x / freedom, -(freedom + 1) / 2);
		int weight = i % 2 ? 4 : 2;
		if (i == 0 || i == STEPS)
			weight = 1;
		sum += density * weight;
	}
	return 1 - 2 * sum * h / 3;
}

static void student_s_p_equals_the_integral_of_the_density(void **state)
{
	static const double t[] = { 0.01, 0.3, 1, 1.96, 2.5, 4, 12 },
			    whole[] = { 1, 2, 3, 4, 7, 12, 33, 250 },
			    broken[] = { 2.1, 2.5, 3.9, 6.5, 17.3 };
	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		for (size_t j = 0; j < sizeof(whole) / sizeof(whole[0]); j++)
			near(tally_student_p(t[i], whole[j]), p_by_integration(t[i], whole[j]),
			     1e-9);
		for (size_t j = 0; j < sizeof(broken) / sizeof(broken[0]); j++) {
			double p = p_by_integration(t[i], broken[j]);
			near(tally_student_p(t[i], broken[j]), p, (t[i] > 4 ? 0.25 : 0.02) * p);
		}
	}
}

/* Welch's test by hand: n 10 and 20, variances 4 and 9, so t = 1 / √(0.4 + 0.45) and ν = 0.85² /
 * (0.4²/9 + 0.45²/19). */
static void a_change_is_judged_by_welch_s_test(void **state)
{
	const struct tally_figure old = { .mean = 20, .sigma = 2, .runs = 10 },
				  new = { .mean = 21, .sigma = 3, .runs = 20 };
	struct tally_change change;
	(void)state;
	tally_change_of(&old, &new, &change);
	near(change.difference, 1, 0);
	near(change.relative, 0.05, 1e-12);
	near(change.p, p_by_integration(1 / sqrt(0.85), 0.85 * 0.85 / (0.16 / 9 + 0.2025 / 19)),
	     0.003);
	assert_int_equal(change.significance, TALLY_CHANGE_NOISE);
	assert_true(change.has_interval && change.low < 0 && change.high > 0.05);
}

/* Fieller's by hand, t = 2.776 for 4 degrees of freedom: old 100, new 50, errors of the mean 10 and
 * 0: 100·50 / (100² − 27.76²) ± 27.76·50 / (100² − 27.76²). */
static void an_interval_has_both_means_errors(void **state)
{
	const struct tally_figure old = { .mean = 100, .sigma = sqrt(500), .runs = 5 },
				  new = { .mean = 50, .runs = 5 };
	struct tally_change change;
	(void)state;
	tally_change_of(&old, &new, &change);
	assert_true(change.has_interval);
	near(change.low, (5000 - 1388) / (10000 - 770.6) - 1, 0.001);
	near(change.high, (5000 + 1388) / (10000 - 770.6) - 1, 0.001);
	const struct tally_figure unsure = { .mean = 1, .sigma = 2, .runs = 5 },
				  none = { .mean = 0, .runs = 5 };
	tally_change_of(&unsure, &none, &change);
	assert_int_equal(change.significance, TALLY_CHANGE_NOISE);
	assert_true(!change.has_interval && change.p > 0.05);
}

static void an_interval_holds_0_where_the_change_is_noise_and_only_there(void **state)
{
	unsigned noise = 0, real = 0;
	(void)state;
	for (int n = 2; n < 7; n++)
		for (int sign = -1; sign <= 1; sign += 2)
			for (int mean = -40; mean <= 300; mean += 20)
				for (int sigma = 0; sigma < 5; sigma++) {
					const struct tally_figure old = { .mean = sign * 100,
									  .sigma = 10 * sigma,
									  .runs = (unsigned)n },
								  new = { .mean = sign * mean,
									  .sigma = 30 - 6 * sigma,
									  .runs = 5 };
					struct tally_change change;
					tally_change_of(&old, &new, &change);
					if (!change.has_interval)
						continue;
					assert_true(change.low <= change.relative &&
						    change.relative <= change.high);
					assert_int_equal(change.low <= 0 && change.high >= 0,
							 change.significance == TALLY_CHANGE_NOISE);
					noise += change.significance == TALLY_CHANGE_NOISE;
					real += change.significance == TALLY_CHANGE_REAL;
				}
	assert_true(noise > 50 && real > 50);
}

/* Draws from a normal distribution, with a mean of 0 and a sigma of 1, by a fixed generator. */
static double draw(uint64_t *seed)
{
	double sum = 0;
	for (int i = 0; i < 12; i++) {
		*seed = *seed * 6364136223846793005u + 1442695040888963407u;
		sum += (double)(*seed >> 11) / 9007199254740992.0;
	}
	return sum - 6;
}

/* Compares two series of `runs` draws around 100, whose means are `shift` apart. */
static struct tally_change change_of_draws(double shift, int runs, uint64_t *seed,
					   double (*draw_one)(uint64_t *))
{
	struct tally_figure figures[2];
	struct tally_change change;
	for (int side = 0; side < 2; side++) {
		double base = 100 + side * shift;
		figures[side] = (struct tally_figure){ .mean = base + draw_one(seed), .runs = 1 };
		for (int run = 1; run < runs; run++) {
			const struct tally_figure more = { .mean = base + draw_one(seed),
							   .runs = 1 };
			tally_figure_join(&figures[side], &more);
		}
	}
	tally_change_of(&figures[0], &figures[1], &change);
	return change;
}

/* Returns the share of pairs of series that are called different. */
static double share_found(double shift, int runs, uint64_t seed, double (*draw_one)(uint64_t *))
{
	enum { TRIALS = 4000 };
	unsigned real = 0;
	for (unsigned trial = 0; trial < TRIALS; trial++)
		real += change_of_draws(shift, runs, &seed, draw_one).significance ==
			TALLY_CHANGE_REAL;
	return (double)real / TRIALS;
}

static double share_called_real(double shift, uint64_t seed, double (*draw_one)(uint64_t *))
{
	return share_found(shift, 12, seed, draw_one);
}

static void chance_is_called_real_in_one_case_of_twenty(void **state)
{
	(void)state;
	near(share_called_real(0, 7, draw), 0.05, 0.012);
	assert_true(share_called_real(2, 9, draw) > 0.97);
}

/* Times of programs are no normal distribution: some runs are late, others meet a cold cache. */
static double draw_skewed(uint64_t *seed)
{
	double z = draw(seed);
	return exp(z);
}

static double draw_bimodal(uint64_t *seed)
{
	double z = draw(seed);
	return draw(seed) > 0 ? 5 + z : -5 + z;
}

static void of_skewed_and_bimodal_values_no_more_are_called_real(void **state)
{
	double skewed = share_called_real(0, 3, draw_skewed);
	double bimodal = share_called_real(0, 5, draw_bimodal);
	(void)state;
	print_message("# of 4,000 comparisons of equal programs, skewed %.3f and bimodal %.3f are "
		      "called real\n",
		      skewed, bimodal);
	assert_true(skewed > 0.005 && skewed < 0.062);
	assert_true(bimodal > 0.03 && bimodal < 0.062);
	assert_true(share_called_real(12, 11, draw_bimodal) > 0.97);
}

/* Times of a program whose runs vary by 3 %. */
static double draw_time(uint64_t *seed)
{
	return 3 * draw(seed);
}

/* By the power of Welch's test, 60 runs see 2 % at a σ of 3 % in 95 of 100 comparisons. */
static void a_difference_of_two_percent_is_found(void **state)
{
	(void)state;
	double alike = share_found(0, 60, 21, draw_time), apart = share_found(2, 60, 22, draw_time);
	double late = share_found(2, 60, 23, draw_skewed);
	print_message("# 60 runs, sigma 3 %%: %.3f of equal, %.3f of 2 %% apart; skewed %.3f\n",
		      alike, apart, late);
	near(alike, 0.05, 0.012);
	assert_true(apart > 0.93 && late > 0.93);
}

/* The example of Benjamini and Hochberg, section 3.2: four of the fifteen are discoveries. */
static void false_discoveries_are_controlled_as_in_the_paper(void **state)
{
	static const double p[] = { 0.0201, 0.0001, 1.0,    0.0095, 0.0004, 0.7590, 0.0278, 0.0019,
				    0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528 };
	enum { COUNT = sizeof(p) / sizeof(p[0]) };
	struct tally_change changes[COUNT + 1], *pointers[COUNT + 1];
	unsigned found = 0, doubtful = 0;
	(void)state;
	for (int i = 0; i <= COUNT; i++) {
		changes[i] = (struct tally_change){ .p = NAN, .adjusted_p = NAN };
		if (i < COUNT) {
			changes[i].p = p[i];
			changes[i].significance = p[i] < 0.05 ? TALLY_CHANGE_REAL
							      : TALLY_CHANGE_NOISE;
		}
		pointers[COUNT - i] = &changes[i];
	}
	changes[COUNT].significance = TALLY_CHANGE_REAL; /* without p: certain */
	tally_changes_adjust(pointers, COUNT + 1);
	for (int i = 0; i < COUNT; i++) {
		found += changes[i].adjusted_p < 0.05;
		doubtful += tally_change_is_doubtful(&changes[i]);
		assert_true(changes[i].adjusted_p >= changes[i].p && changes[i].adjusted_p <= 1);
	}
	assert_int_equal(found, 4);
	assert_int_equal(doubtful, 5);
	near(changes[3].adjusted_p, 0.0095 * 15 / 4, 1e-12);
	assert_true(isnan(changes[COUNT].adjusted_p));
	assert_false(tally_change_is_doubtful(&changes[COUNT]));
	tally_changes_adjust(NULL, 0);
}

/* Nine events of equal commands: any of them is called a change in at most one comparison of twenty. */
static void of_many_events_no_more_are_called_real(void **state)
{
	enum { TRIALS = 3000, EVENTS = 9, RUNS = 10 };
	unsigned any = 0, any_alone = 0;
	uint64_t seed = 31;
	(void)state;
	for (int trial = 0; trial < TRIALS; trial++) {
		struct tally_change changes[EVENTS], *pointers[EVENTS];
		bool is_real = false, is_alone = false;
		for (int i = 0; i < EVENTS; i++) {
			changes[i] = change_of_draws(0, RUNS, &seed, draw);
			is_alone |= changes[i].significance == TALLY_CHANGE_REAL;
			pointers[i] = &changes[i];
		}
		tally_changes_adjust(pointers, EVENTS);
		for (int i = 0; i < EVENTS; i++)
			is_real |= changes[i].significance == TALLY_CHANGE_REAL &&
				   !tally_change_is_doubtful(&changes[i]);
		any += is_real;
		any_alone += is_alone;
	}
	print_message("# of %d comparisons of 9 equal events, %.3f show a change; %.3f without the "
		      "adjustment\n",
		      TRIALS, (double)any / TRIALS, (double)any_alone / TRIALS);
	assert_true((double)any / TRIALS < 0.062 && (double)any_alone / TRIALS > 0.3);
}

static void equal_runs_prove_something_if_they_are_many(void **state)
{
	/* the least p that n runs of each side can give: 2 / C(2n, n) */
	static const struct {
		unsigned long runs;
		double p;
		bool is_real;
	} cases[] = { { 2, 2.0 / 6, false },
		      { 3, 2.0 / 20, false },
		      { 4, 2.0 / 70, true },
		      { 10, 2.0 / 184756, true } };
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct tally_figure old = { .mean = 1, .runs = cases[i].runs },
					  new = { .mean = 2, .runs = cases[i].runs };
		struct tally_change change;
		tally_change_of(&old, &new, &change);
		near(change.p, cases[i].p, 1e-9);
		assert_int_equal(change.significance == TALLY_CHANGE_REAL, cases[i].is_real);
		tally_change_of(&old, &old, &change);
		assert_int_equal(change.significance, TALLY_CHANGE_NOISE);
	}
}

static void outliers_are_far_from_the_median(void **state)
{
	static const double values[] = { 10, 10.1, 9.9, 10.2, 30, 9.8, 10, 1 };
	static const double equal[] = { 5, 5, 5, 5, 5, 900 };
	bool is_outlier[8];
	double median = 0;
	(void)state;
	assert_int_equal(tally_outliers_mark(values, 8, is_outlier, &median), 2);
	assert_true(is_outlier[4] && is_outlier[7] && !is_outlier[3]);
	near(median, 10, 1e-9);
	assert_int_equal(tally_outliers_mark(values, 4, is_outlier, &median), 0);
	assert_int_equal(tally_outliers_mark(equal, 6, is_outlier, &median), 0);
}

static void runs_join_as_if_they_were_one_series(void **state)
{
	static const double values[] = { 3, 8, 1, 9, 4.5, 4.5, 100 };
	struct tally_figure all = { .mean = values[0], .runs = 1 };
	double mean = 0, squares = 0;
	(void)state;
	for (size_t i = 1; i < 7; i++)
		tally_figure_join(&all, &(struct tally_figure){ .mean = values[i], .runs = 1 });
	for (size_t i = 0; i < 7; i++)
		mean += values[i] / 7;
	for (size_t i = 0; i < 7; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	near(all.mean, mean, 1e-9);
	near(all.sigma, sqrt(squares / 6), 1e-9);
	assert_int_equal(all.runs, 7);
}

static void what_repeats_has_no_noise_and_one_run_no_verdict(void **state)
{
	struct tally_figure old = { .mean = 1000000, .runs = 1, .repeats = true },
			    new = { .mean = 1000001, .runs = 1, .repeats = true };
	struct tally_change change;
	(void)state;
	tally_change_of(&old, &new, &change);
	assert_int_equal(change.significance, TALLY_CHANGE_REAL);
	tally_change_of(&old, &old, &change);
	assert_int_equal(change.significance, TALLY_CHANGE_NONE);
	old.repeats = new.repeats = false;
	tally_change_of(&old, &new, &change);
	assert_int_equal(change.significance, TALLY_CHANGE_UNKNOWN);
	old = new = (struct tally_figure){ .mean = 5, .runs = 3, .has_no_spread = true };
	tally_change_of(&old, &new, &change);
	assert_int_equal(change.significance, TALLY_CHANGE_UNKNOWN);
	old = (struct tally_figure){ .runs = 2 };
	tally_change_of(&old, &new, &change);
	assert_true(isinf(change.relative));
}

/* --- conditions ----------------------------------------------------------- */

static void conditions_are_read(void **state)
{
	static const struct {
		const char *text, *name;
		bool is_above, or_equal;
		enum tally_limit_kind kind;
		double limit;
	} cases[] = {
		{ "instructions > +1%", "instructions", true, false, TALLY_LIMIT_RELATIVE, 0.01 },
		{ "vsim/branch-misses/>=-2.5%", "vsim/branch-misses/", true, true,
		  TALLY_LIMIT_RELATIVE, -0.025 },
		{ " elapsed < 2.5 ", "elapsed", false, false, TALLY_LIMIT_VALUE, 2.5 },
		{ "sched:sched_switch <= -10", "sched:sched_switch", false, true,
		  TALLY_LIMIT_DIFFERENCE, -10 },
		{ "page-faults > 3K", "page-faults", true, false, TALLY_LIMIT_VALUE, 3000 },
		{ "instructions > 1%", "instructions", true, false, TALLY_LIMIT_RELATIVE, 0.01 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tally_condition condition;
		assert_int_equal(tally_condition_parse(cases[i].text, &condition, NULL), 0);
		assert_string_equal(condition.name, cases[i].name);
		assert_int_equal(condition.is_above, cases[i].is_above);
		assert_int_equal(condition.or_equal, cases[i].or_equal);
		assert_int_equal(condition.kind, cases[i].kind);
		near(condition.limit, cases[i].limit, 1e-12);
	}
}

static void wrong_conditions_are_refused_with_a_place(void **state)
{
	static const struct {
		const char *text;
		int position;
	} cases[] = {
		{ "", 0 },        { "instructions", 0 },
		{ "> 5", 0 },     { "a > ", 4 },
		{ "a > +", 5 },   { "a > 1 2", 6 },
		{ "a > 1%%", 6 }, { "a > 1x", 5 },
		{ "a > .", 4 },   { "a > 1234567890123456789", 4 },
		{ "a == 5", 0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tally_condition condition;
		struct tally_error err = TALLY_ERROR_NONE;
		assert_true(tally_condition_parse(cases[i].text, &condition, &err) < 0);
		assert_int_equal(err.position, cases[i].position);
		assert_true(err.hint[0]);
	}
}

/* --- files ---------------------------------------------------------------- */

#define HEAD(runs) \
	"{\"schema\":\"tally-stat\",\"version\":1,\"command\":[\"a\",\"b c\"]," \
	"\"provider\":\"simulated\",\"runs\":" #runs ",\"interval_end_ns\":null," \
	"\"elapsed_ns\":2e9,\"elapsed_sigma_ns\":null,\"user_ns\":1e9,\"events\":["
#define EVENT(name, value, more) \
	"{\"name\":\"" name "\",\"state\":\"counted\",\"value\":" #value more "}"
#define END "]}\n"

static int read_text(const char *text, struct tally_arena *arena, struct tally_saved_counts *out)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int result = tally_saved_counts_read("file", text, strlen(text), arena, out, &err);
	if (result < 0) {
		assert_non_null(strstr(err.message, "file: "));
		assert_true(err.hint[0]);
	}
	return result;
}

static void appended_documents_are_runs_of_one_series(void **state)
{
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_saved_counts counts;
	(void)state;
	assert_int_equal(read_text(HEAD(1) EVENT("x:u", 10, ",\"quality\":\"exact\"") END HEAD(1)
					   EVENT("x:u", 14, ",\"quality\":\"exact\"") END,
				   &arena, &counts),
			 0);
	assert_int_equal(counts.runs, 2);
	assert_string_equal(counts.command, "a b c");
	const struct tally_saved_row *row = tally_saved_counts_find(&counts, "x");
	assert_non_null(row);
	near(row->figure.mean, 12, 0);
	near(row->figure.sigma, sqrt(8), 1e-9);
	assert_false(row->figure.repeats); /* two runs differed */
	row = tally_saved_counts_find(&counts, "elapsed");
	near(row->figure.mean, 2, 0);
	tally_saved_counts_release(&counts);
	tally_arena_release(&arena);
}

static void perf_s_lines_are_read(void **state)
{
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_saved_counts counts;
	(void)state;
	assert_int_equal(
		read_text("# started on a day\n\n"
			  "{\"counter-value\" : \"0.5\", \"unit\" : \"msec\", \"event\" : "
			  "\"task-clock\", \"variance\" : 8.0, \"pcnt-running\" : 100.00}\n"
			  "{\"counter-value\" : \"<not supported>\", \"unit\" : \"\", \"event\" : "
			  "\"cycles\"}\n",
			  &arena, &counts),
		0);
	const struct tally_saved_row *row = tally_saved_counts_find(&counts, "task-clock");
	near(row->figure.mean, 500000, 1e-6);
	near(row->figure.sigma, 40000, 1e-6);
	assert_string_equal(row->unit, "ns");
	assert_string_equal(tally_saved_counts_find(&counts, "cycles")->missing, "<not supported>");
	tally_saved_counts_release(&counts);
	tally_arena_release(&arena);
}

static void other_files_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"  \n",
		"# nothing\n",
		"{",
		"[]",
		"{}",
		"12",
		"{\"schema\":\"tally-stat\",\"version\":2}",
		"{\"schema\":\"tally-stat\",\"version\":1,\"interval_end_ns\":5}",
		"\177ELF",
		"event,1,2\n",
		("{\"counter-value\":\"1\",\"event\":\"a\"}\n"
		 "{\"counter-value\":\"1\",\"event\":\"a\"}"),
	};
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct tally_arena arena = TALLY_ARENA_INIT;
		struct tally_saved_counts counts;
		assert_int_equal(read_text(texts[i], &arena, &counts), -EINVAL);
		tally_arena_release(&arena);
	}
}

static void an_event_is_found_by_its_bare_name_when_it_is_the_only_one(void **state)
{
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_saved_counts counts;
	(void)state;
	assert_int_equal(read_text(HEAD(1) EVENT("vsim/instructions,counters=4/u", 1, "") "," EVENT(
					   "cycles:u", 2,
					   "") "," EVENT("cycles:k", 3,
							 "") "," EVENT("sched:sched_switch", 4, "")
					   END,
				   &arena, &counts),
			 0);
	assert_non_null(tally_saved_counts_find(&counts, "instructions"));
	assert_non_null(tally_saved_counts_find(&counts, "instructions:u"));
	assert_null(tally_saved_counts_find(&counts, "cycles"));
	near(tally_saved_counts_find(&counts, "cycles:k")->figure.mean, 3, 0);
	assert_null(tally_saved_counts_find(&counts, "sched:sched_wakeup"));
	assert_null(tally_saved_counts_find(&counts, "instr"));
	tally_saved_counts_release(&counts);
	tally_arena_release(&arena);
}

static int judge(const char *old_text, const char *new_text, const char *condition_text,
		 bool past_noise)
{
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_saved_counts old, new;
	struct tally_saved_comparison comparison;
	struct tally_condition condition;
	assert_int_equal(read_text(old_text, &arena, &old) | read_text(new_text, &arena, &new), 0);
	assert_int_equal(tally_saved_compare(&old, &new, &arena, &comparison), 0);
	assert_int_equal(tally_condition_parse(condition_text, &condition, NULL), 0);
	int result = tally_saved_compare_judge(&comparison, &condition, past_noise, NULL);
	result = result < 0 ? result : comparison.has_failed;
	tally_saved_comparison_release(&comparison);
	tally_saved_counts_release(&old);
	tally_saved_counts_release(&new);
	tally_arena_release(&arena);
	return result;
}

static void a_gate_fails_for_what_got_worse_alone(void **state)
{
	static const char old[] = HEAD(1)
		EVENT("i", 1000000, ",\"quality\":\"exact\"") "," EVENT("gone", 5, "") END;
	static const char new[] = HEAD(1)
		EVENT("i", 1010001,
		      ",\"quality\":\"exact\"") ","
						"{\"name\":\"gone\",\"state\":\"not-counted\","
						"\"value\":null}" END;
	static const char noisy[] = HEAD(3) EVENT("t", 100, ",\"sigma\":10") END,
			  noisier[] = HEAD(3) EVENT("t", 105, ",\"sigma\":10") END;
	(void)state;
	assert_int_equal(judge(old, new, "i > +1%", false), 1);
	assert_int_equal(judge(old, new, "i > +1.001%", false), 0);
	assert_int_equal(judge(old, new, "i > +10000", false), 1);
	assert_int_equal(judge(old, new, "i > 1010000", false), 1);
	assert_int_equal(judge(old, new, "i < 0%", false), 0);
	assert_int_equal(judge(old, new, "gone > +1%", false), -ENOENT);
	assert_int_equal(judge(new, old, "gone > +1%", false), -ENOENT);
	assert_int_equal(judge(old, new, "never > +1%", false), -ENOENT);
	assert_int_equal(judge(noisy, noisier, "t > +1%", false), 0);
	assert_int_equal(judge(noisy, noisier, "t > +1%", true), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(student_s_quantiles_are_those_of_the_tables),
		cmocka_unit_test(student_s_p_equals_the_integral_of_the_density),
		cmocka_unit_test(a_change_is_judged_by_welch_s_test),
		cmocka_unit_test(an_interval_has_both_means_errors),
		cmocka_unit_test(an_interval_holds_0_where_the_change_is_noise_and_only_there),
		cmocka_unit_test(chance_is_called_real_in_one_case_of_twenty),
		cmocka_unit_test(of_skewed_and_bimodal_values_no_more_are_called_real),
		cmocka_unit_test(a_difference_of_two_percent_is_found),
		cmocka_unit_test(false_discoveries_are_controlled_as_in_the_paper),
		cmocka_unit_test(of_many_events_no_more_are_called_real),
		cmocka_unit_test(equal_runs_prove_something_if_they_are_many),
		cmocka_unit_test(outliers_are_far_from_the_median),
		cmocka_unit_test(runs_join_as_if_they_were_one_series),
		cmocka_unit_test(what_repeats_has_no_noise_and_one_run_no_verdict),
		cmocka_unit_test(conditions_are_read),
		cmocka_unit_test(wrong_conditions_are_refused_with_a_place),
		cmocka_unit_test(appended_documents_are_runs_of_one_series),
		cmocka_unit_test(perf_s_lines_are_read),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(an_event_is_found_by_its_bare_name_when_it_is_the_only_one),
		cmocka_unit_test(a_gate_fails_for_what_got_worse_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
