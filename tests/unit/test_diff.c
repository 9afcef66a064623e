/* Comparing two sides with tally diff: intervals against simulated truth, what counts as chance,
 * and which functions match. */
#include "diff/diff.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TRIALS = 2000 };

/* splitmix64: the same numbers everywhere. */
static double draw(uint64_t *seed)
{
	return (double)(tally_hash64(*seed += 0x9e3779b97f4a7c15ull) >> 11) * 0x1p-53;
}

/* Simulates a recording of `samples` samples with a part of true share p.  Each sample weighs 1, or
 * 1 to 3 if `uneven`. */
static struct tally_share record(uint64_t *seed, unsigned samples, double p, bool uneven)
{
	struct tally_share share = { .samples = samples };
	double squares = 0;
	for (unsigned i = 0; i < samples; i++) {
		double weight = uneven ? 1 + 2 * draw(seed) : 1;
		bool is_in = draw(seed) < p;
		share.part += is_in ? weight : 0;
		share.part_samples += is_in;
		share.whole += weight;
		squares += weight * weight;
	}
	share.spread = samples * squares / (share.whole * share.whole);
	return share;
}

static void intervals_hold_the_true_change_in_93_of_100_trials(void **state)
{
	static const struct {
		unsigned old_samples, new_samples;
		double old, new;
		bool uneven;
	} cases[] = {
		{ 1000, 1000, 0.10, 0.20, false }, { 1000, 3000, 0.30, 0.25, false },
		{ 500, 500, 0.01, 0.03, false },   { 400, 400, 0.002, 0.02, false },
		{ 2000, 300, 0.95, 0.90, false },  { 1000, 1000, 0.05, 0.05, false },
		{ 1000, 1000, 0.10, 0.20, true },  { 300, 300, 0.02, 0.05, true },
		{ 200, 200, 0, 0.03, false },
	};
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		uint64_t seed = 1000 + c;
		unsigned held = 0, agreed = 0;
		for (int i = 0; i < TRIALS; i++) {
			struct tally_share old = record(&seed, cases[c].old_samples, cases[c].old,
							cases[c].uneven);
			struct tally_share new = record(&seed, cases[c].new_samples, cases[c].new,
							cases[c].uneven);
			struct tally_share_difference difference;
			double truth = 100 * (cases[c].new - cases[c].old);
			tally_share_difference(&old, 1, &new, 1, TALLY_MEASURE_SHARE, &difference);
			held += difference.low <= truth && truth <= difference.high;
			agreed += (difference.p < 0.05) ==
				  (difference.low > 0 || difference.high < 0);
		}
		if (held < TRIALS * 93 / 100 || held > TRIALS * 995 / 1000)
			fail_msg("case %zu: %u of %d intervals hold the truth", c, held, TRIALS);
		assert_int_equal(agreed, TRIALS);
	}
}

/* Returns the sum of twelve uniform numbers, less six. */
static double normal(uint64_t *seed)
{
	double sum = -6;
	for (int i = 0; i < 12; i++)
		sum += draw(seed);
	return sum;
}

static void runs_that_differ_widen_the_interval(void **state)
{
	enum { RUNS = 4, SAMPLES = 1000 };
	uint64_t seed = 77;
	unsigned held = 0, held_alone = 0;
	(void)state;
	for (int i = 0; i < TRIALS; i++) {
		struct tally_share old[RUNS], new[RUNS];
		struct tally_share_difference runs, alone;
		/* Runs differ by 3 points; sampling explains 1.3. */
		for (int r = 0; r < RUNS; r++) {
			old[r] = record(&seed, SAMPLES, 0.20 + 0.03 * normal(&seed), false);
			new[r] = record(&seed, SAMPLES, 0.25 + 0.03 * normal(&seed), false);
		}
		tally_share_difference(old, RUNS, new, RUNS, TALLY_MEASURE_SHARE, &runs);
		tally_share_difference(old, 1, new, 1, TALLY_MEASURE_SHARE, &alone);
		held += runs.low <= 5 && 5 <= runs.high;
		held_alone += alone.low <= 5 && 5 <= alone.high;
	}
	assert_true(held >= TRIALS * 93 / 100);
	assert_true(held_alone < TRIALS * 80 / 100); /* one run on each side can't show that */
}

static void intervals_of_shares_end_at_100_points(void **state)
{
	struct tally_share none[2], all[2];
	struct tally_share_difference change;
	(void)state;
	for (int i = 0; i < 2; i++) {
		none[i] = (struct tally_share){ .part = 40.0 * i,
						.whole = 100,
						.part_samples = 40 * (unsigned)i,
						.samples = 100 };
		all[i] = (struct tally_share){ .part = 100 - 40.0 * i,
					       .whole = 100,
					       .part_samples = 100 - 40 * (unsigned)i,
					       .samples = 100 };
	}
	tally_share_difference(none, 2, all, 2, TALLY_MEASURE_SHARE, &change);
	assert_true(change.difference == 60 && change.low < 0 && change.low >= -100 &&
		    change.high == 100);
	tally_share_difference(all, 2, none, 2, TALLY_MEASURE_SHARE, &change);
	assert_true(change.difference == -60 && change.low == -100 && change.high <= 100);
	tally_share_difference(none, 1, all, 1, TALLY_MEASURE_SHARE, &change);
	assert_true(change.difference == 100 && change.low > 90 && change.high <= 100);
}

/* --- of stacks ------------------------------------------------------------ */

static void read(struct tally_stacks *stacks, const char *text)
{
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_stacks_read_text(stacks, text, strlen(text), &err), 0);
}

static void add(struct tally_stacks *stacks, const char *comm, const char *name, const char *object,
		uint64_t weight)
{
	uint32_t frame = tally_stacks_frame(stacks, name, object, TALLY_FRAME_PROGRAM);
	assert_int_equal(tally_stacks_add(stacks, tally_stacks_thread(stacks, comm, 1, 1), &frame,
					  1, weight, weight),
			 0);
}

static void diff_of(struct tally_stacks *old, struct tally_stacks *new,
		    const struct tally_diff_options *options, struct tally_match *match,
		    struct tally_diff *diff)
{
	assert_int_equal(tally_match_stacks(old, 1, new, 1, match), 0);
	assert_int_equal(tally_diff_build(match, options, diff), 0);
}

static const struct tally_diff_entry *entry_named(const struct tally_match *match,
						  const struct tally_diff *diff, const char *name)
{
	for (size_t i = 0; i < diff->entries.count; i++)
		if (!strcmp(tally_strings_text(&match->names.strings,
					       diff->entries.items[i].symbol),
			    name))
			return &diff->entries.items[i];
	return NULL;
}

static const char *text_of(const struct tally_match *match, uint32_t string)
{
	return string == TALLY_STRING_NONE ? "" : tally_strings_text(&match->names.strings, string);
}

static const struct tally_diff_options by_function = { .by_object = true,
						       .by_symbol = true,
						       .noise_limit = SIZE_MAX };

/* Makes sixty functions from 10 % down, and a few hundred that appear once or twice. */
static void synthetic(struct tally_stacks *stacks, uint64_t *seed, unsigned samples)
{
	for (unsigned i = 0; i < samples; i++) {
		char name[32];
		double at = draw(seed);
		int function = (int)(at * at * 300);
		snprintf(name, sizeof(name), "f%d", function);
		add(stacks, "p", name, "p", 1);
	}
}

static void the_same_program_twice_has_no_changes_in_19_of_20_comparisons(void **state)
{
	enum { COMPARISONS = 400 };
	uint64_t seed = 4;
	unsigned quiet = 0;
	(void)state;
	for (int i = 0; i < COMPARISONS; i++) {
		struct tally_stacks old = { 0 }, new = { 0 };
		struct tally_match match;
		struct tally_diff diff;
		synthetic(&old, &seed, 1500);
		synthetic(&new, &seed, i % 2 ? 1500 : 4000);
		diff_of(&old, &new, &by_function, &match, &diff);
		quiet += !diff.changes;
		tally_diff_release(&diff);
		tally_match_release(&match);
		tally_stacks_release(&old);
		tally_stacks_release(&new);
	}
	if (quiet < COMPARISONS * 95 / 100)
		fail_msg("only %u of %d comparisons were quiet", quiet, COMPARISONS);
}

static void a_change_among_many_functions_is_found(void **state)
{
	uint64_t seed = 9;
	struct tally_stacks old = { 0 }, new = { 0 };
	struct tally_match match;
	struct tally_diff diff;
	(void)state;
	synthetic(&old, &seed, 3000);
	synthetic(&new, &seed, 3000);
	add(&old, "p", "changed", "p", 90);
	add(&new, "p", "changed", "p", 180);
	diff_of(&old, &new, &by_function, &match, &diff);
	assert_int_equal(diff.changes, 1);
	assert_string_equal(text_of(&match, diff.entries.items[0].symbol), "changed");
	tally_diff_release(&diff);
	tally_match_release(&match);
	tally_stacks_release(&old);
	tally_stacks_release(&new);
}

static void what_has_another_name_is_matched_and_told(void **state)
{
	struct tally_stacks old = { 0 }, new = { 0 };
	struct tally_match match;
	struct tally_diff diff;
	(void)state;
	add(&old, "old", "kept", "libx.so.1", 10);
	add(&old, "old", "main", "old", 20);
	add(&old, "old", "work.isra.0", "old", 30);
	add(&old, "old", "parse(int)", "old", 40);
	add(&old, "old", "gone", "old", 50);
	add(&old, "old", "operator()(int)", "old", 1);
	add(&new, "new", "kept", "libx.so.1", 10);
	add(&new, "new", "main", "new", 20);
	add(&new, "new", "work", "new", 30);
	add(&new, "new", "parse(long)", "new", 40);
	add(&new, "new", "come", "new", 50);
	add(&new, "new", "operator()(long)", "new", 1);
	struct tally_diff_options options = by_function;
	options.by_comm = true;
	diff_of(&old, &new, &options, &match, &diff);
	const struct tally_diff_entry *entry = entry_named(&match, &diff, "kept");
	assert_string_equal(text_of(&match, entry->comm), "new");
	assert_int_equal(entry->was_object, TALLY_STRING_NONE);
	entry = entry_named(&match, &diff, "main");
	assert_string_equal(text_of(&match, entry->was_object), "old");
	entry = entry_named(&match, &diff, "work");
	assert_string_equal(text_of(&match, entry->was_symbol), "work.isra.0");
	assert_int_equal(entry->old_samples, 30);
	entry = entry_named(&match, &diff, "parse(long)");
	assert_string_equal(text_of(&match, entry->was_symbol), "parse(int)");
	assert_int_equal(entry_named(&match, &diff, "gone")->presence, TALLY_DIFF_ONLY_OLD);
	assert_int_equal(entry_named(&match, &diff, "come")->presence, TALLY_DIFF_ONLY_NEW);
	assert_int_equal(entry_named(&match, &diff, "operator()(long)")->presence,
			 TALLY_DIFF_ONLY_NEW);
	assert_int_equal(diff.entries.count, 8);
	tally_diff_release(&diff);
	tally_match_release(&match);
	tally_stacks_release(&old);
	tally_stacks_release(&new);
}

static void recursion_counts_once_in_totals(void **state)
{
	struct tally_stacks old = { 0 }, new = { 0 };
	struct tally_match match;
	struct tally_diff diff;
	struct tally_diff_options options = by_function;
	(void)state;
	options.children = true;
	read(&old, "p;a;b;a 60\np;c 40\n");
	read(&new, "p;a;b;a 30\np;c 70\n");
	diff_of(&old, &new, &options, &match, &diff);
	const struct tally_diff_entry *a = entry_named(&match, &diff, "a"),
				      *b = entry_named(&match, &diff, "b");
	assert_int_equal(a->old_samples, 60);
	assert_int_equal(b->new_samples, 30);
	assert_true(fabs(a->change.difference + 30) < 1e-9);
	assert_true(a->is_change && b->is_change);
	tally_diff_release(&diff);
	tally_match_release(&match);
	tally_stacks_release(&old);
	tally_stacks_release(&new);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_hold_the_true_change_in_93_of_100_trials),
		cmocka_unit_test(runs_that_differ_widen_the_interval),
		cmocka_unit_test(intervals_of_shares_end_at_100_points),
		cmocka_unit_test(the_same_program_twice_has_no_changes_in_19_of_20_comparisons),
		cmocka_unit_test(a_change_among_many_functions_is_found),
		cmocka_unit_test(what_has_another_name_is_matched_and_told),
		cmocka_unit_test(recursion_counts_once_in_totals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
