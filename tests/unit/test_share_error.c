/* Checks that intervals cover the truth as often as promised, by simulating recordings whose truth
 * is known. */
#include "test.h"

#include "profile/profile.h"

#include <math.h>
#include <stdbool.h>

enum { TRIALS = 2000 };

/* splitmix64: the same numbers on each machine. */
static double draw(uint64_t *seed)
{
	uint64_t x = *seed += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (double)((x ^ x >> 31) >> 11) / 9007199254740992.0;
}

enum weights { EQUAL, SPREAD, HEAVY_PART, LIGHT_PART, HEAVY_TAIL };

/* Returns a sample's period. */
static double draw_weight(enum weights weights, bool in_part, uint64_t *seed)
{
	double random = draw(seed);
	switch (weights) {
	case EQUAL: return 250000;
	case SPREAD: return 1 + 9 * random;
	case HEAVY_PART: return (in_part ? 4 : 1) * (1 + random);
	case LIGHT_PART: return (in_part ? 1 : 4) * (1 + random);
	/* like the samples while a frequency is being adjusted */
	case HEAVY_TAIL: return random < 0.05 ? 20 : 1;
	}
	return 1;
}

static const double mean_of[][2] = { /* mean by weights: outside, inside of the part */
	{ 250000, 250000 }, { 5.5, 5.5 }, { 1.5, 6 }, { 6, 1.5 }, { 1.95, 1.95 },
};

static struct tally_share draw_share(enum weights weights, double chance, uint64_t samples,
				     uint64_t *seed)
{
	struct tally_share share = { .samples = samples };
	double squares = 0;
	for (uint64_t i = 0; i < samples; i++) {
		bool in_part = draw(seed) < chance;
		double weight = draw_weight(weights, in_part, seed);
		share.part += in_part ? weight : 0;
		share.part_samples += in_part;
		share.whole += weight;
		squares += weight * weight;
	}
	share.spread = (double)samples * squares / (share.whole * share.whole);
	return share;
}

/* Returns the share of trials whose "percent ± error" contains the truth. */
static double coverage(enum weights weights, double chance, uint64_t samples)
{
	uint64_t seed = samples * 1000 + weights;
	double inside = chance * mean_of[weights][1], outside = (1 - chance) * mean_of[weights][0];
	double truth = 100 * inside / (inside + outside);
	unsigned held = 0;
	for (unsigned trial = 0; trial < TRIALS; trial++) {
		struct tally_share share = draw_share(weights, chance, samples, &seed);
		held += fabs(100 * share.part / share.whole - truth) <= tally_share_error(&share);
	}
	return 100.0 * held / TRIALS;
}

static void truth_is_within_the_error_in_95_of_100_recordings(void **state)
{
	static const double chances[] = { 0.002, 0.01, 0.1, 0.5, 0.9 };
	static const uint64_t samples[] = { 20, 100, 1000 };
	(void)state;
	for (unsigned i = 0; i < 5; i++)
		for (unsigned k = 0; k < 3; k++) {
			double covered = coverage(EQUAL, chances[i], samples[k]);
			if (covered < 93)
				fail_msg("%.1f %% of trials, share %g, %u samples", covered,
					 chances[i], (unsigned)samples[k]);
		}
}

static void truth_is_within_the_error_where_weights_differ(void **state)
{
	static const double chances[] = { 0.05, 0.3, 0.7 };
	static const uint64_t samples[] = { 300, 1000 };
	(void)state;
	for (enum weights weights = SPREAD; weights <= HEAVY_TAIL; weights++)
		for (unsigned i = 0; i < 3; i++)
			for (unsigned k = 0; k < 2; k++) {
				double covered = coverage(weights, chances[i], samples[k]);
				if (covered < 93)
					fail_msg(
						"%.1f %% of trials, weights %u, share %g, %u "
						"samples",
						covered, weights, chances[i], (unsigned)samples[k]);
			}
}

/* An error that is always large would cover everything, so errors must not be too large either. */
static void errors_are_no_larger_than_they_have_to_be(void **state)
{
	(void)state;
	for (enum weights weights = EQUAL; weights <= HEAVY_TAIL; weights++) {
		double covered = coverage(weights, 0.3, 1000);
		if (covered > 97.5)
			fail_msg("%.1f %% of trials, weights %u", covered, weights);
	}
}

static void figures_are_wilsons(void **state)
{
	(void)state;
	/* 10 of 100: 5.52 % to 17.44 %, as in textbooks */
	struct tally_share share = { .part = 10, .whole = 100, .part_samples = 10, .samples = 100 };
	struct tally_share_interval interval = tally_share_interval(&share);
	assert_true(fabs(interval.low - 5.5229) < 0.001 && fabs(interval.high - 17.4366) < 0.001);
	assert_true(fabs(tally_share_error(&share) - 7.4366) < 0.001);
	assert_true(fabs(tally_share_effective_samples(&share) - 100) < 1e-9);
}

static void what_was_never_sampled_may_still_be_there(void **state)
{
	(void)state;
	struct tally_share none = { .whole = 1000, .samples = 1000 };
	struct tally_share all = {
		.part = 1000, .whole = 1000, .part_samples = 1000, .samples = 1000
	};
	struct tally_share nothing = { 0 };
	assert_true(tally_share_interval(&none).low == 0 &&
		    fabs(tally_share_interval(&none).high - 0.3827) < 0.001);
	assert_true(tally_share_interval(&all).high == 100 &&
		    fabs(tally_share_error(&all) - 0.3827) < 0.001);
	assert_true(tally_share_error(&nothing) == 100);
}

static void spread_weights_tell_less(void **state)
{
	(void)state;
	struct tally_share share = {
		.part = 100, .whole = 1000, .part_samples = 100, .samples = 1000, .spread = 4
	};
	assert_true(fabs(tally_share_effective_samples(&share) - 250) < 1e-6);
	/* One heavy sample is half of the total weight: then almost nothing is known. */
	share = (struct tally_share){
		.part = 999, .whole = 1998, .part_samples = 1, .samples = 1000
	};
	assert_true(tally_share_effective_samples(&share) < 5 && tally_share_error(&share) > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truth_is_within_the_error_in_95_of_100_recordings),
		cmocka_unit_test(truth_is_within_the_error_where_weights_differ),
		cmocka_unit_test(errors_are_no_larger_than_they_have_to_be),
		cmocka_unit_test(figures_are_wilsons),
		cmocka_unit_test(what_was_never_sampled_may_still_be_there),
		cmocka_unit_test(spread_weights_tell_less),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
