/* Places-only mode gives the places of the rows: when only leaves are named (profile/row_maker.c),
 * the result is the same as with whole stacks. */
#include "test.h"

#include "base/buffer.h"

#include "profile_fixture.h"

#include <stdlib.h>
#include <string.h>

/* Adds chains with the same end, some with markers: a marker changes the meaning of the words after
 * it. */
static void put_related_chains(struct profile_fixture *fixture, uint64_t seed)
{
	static const uint64_t words[] = {
		LEAF + 8,           LOOP + 8,
		WORK + 8,           MAIN + 8,
		LEAF + 9,           TALLY_CONTEXT_KERNEL,
		TALLY_CONTEXT_USER, TALLY_CONTEXT_USER_DEFERRED,
		(uint64_t)-56,
	};
	enum { DEPTH = 12, CHAINS = 400, WORDS = sizeof(words) / sizeof(words[0]) };
	uint64_t stack[DEPTH] = { 0 };
	size_t depth = DEPTH;
	fixture_comm(fixture, fixture_pid(), "alpha");
	fixture_map(fixture);
	for (uint64_t i = 0; i < CHAINS; i++) {
		uint64_t chance = tally_hash64(seed * CHAINS + i);
		size_t kept = chance % (depth + 1), next = kept + chance / 64 % (DEPTH - kept + 1);
		next = next ? next : 1;
		memmove(stack + next - (kept < next ? kept : next), stack + depth - kept,
			(kept < next ? kept : next) * 8);
		for (size_t at = 0; at + kept < next; at++)
			stack[at] = words[tally_hash64(chance + at) % (i % 3 ? WORDS : 5)];
		depth = next;
		fixture_sample(fixture, 1, fixture_pid() + (uint32_t)(chance >> 60 == 1), 0, 1,
			       stack, depth);
	}
	fixture_finish(fixture, 0, 0);
}

static struct tally_profile *read_places(const struct profile_fixture *fixture, bool only_places)
{
	struct tally_profile_options options = { .only_places = only_places,
						 .merge_unknown = only_places };
	struct tally_recording *recording;
	struct tally_profile *profile;
	assert_int_equal(
		tally_recording_open_memory(fixture->bytes, fixture->size, &recording, NULL), 0);
	/* names don't matter, so don't read the kernel's */
	tally_names_set_kernel(&recording->names, NULL, true);
	assert_int_equal(tally_profile_new(recording, &options, &profile, NULL), 0);
	return profile;
}

/* Sums the samples and period of a leaf, with its number in `table`. */
static void sum_leaf(const struct tally_profile *profile, struct tally_place_table *table,
		     uint32_t leaf, uint64_t *samples, uint64_t *period)
{
	*samples = *period = 0;
	for (size_t i = 0; i < profile->rows.rows.count; i++) {
		const uint8_t *end, *at = tally_row_stack(&profile->rows, i, &end);
		uint32_t place = at == end ? UINT32_MAX
					   : tally_place_table_intern(
						     table,
						     &profile->places.places
							      .items[tally_stack_next_place(&at)]);
		if (place == leaf) {
			*samples += profile->rows.rows.items[i].samples;
			*period += profile->rows.rows.items[i].period;
		}
	}
}

static void assert_same_leaves(struct tally_profile *whole, struct tally_profile *leaves)
{
	for (size_t i = 0; i <= leaves->places.places.count; i++) {
		uint32_t leaf = i ? (uint32_t)i - 1 : UINT32_MAX;
		uint64_t samples, period, leaf_samples, leaf_period;
		sum_leaf(whole, &leaves->places, leaf, &samples, &period);
		sum_leaf(leaves, &leaves->places, leaf, &leaf_samples, &leaf_period);
		assert_int_equal(samples, leaf_samples);
		assert_int_equal(period, leaf_period);
	}
}

static void places_alone_are_those_of_the_rows(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 40; seed++) {
		struct profile_fixture fixture = { 0 };
		put_related_chains(&fixture, seed);
		struct tally_profile *whole = read_places(&fixture, false),
				     *places = read_places(&fixture, true);
		assert_true(whole->places.places.count > 5);
		assert_true(places->rows.rows.count <= places->places.places.count + 1);
		assert_same_leaves(whole, places);
		size_t unknown = 0, count = places->places.places.count;
		for (size_t i = 0; i < whole->places.places.count; i++) {
			unknown += whole->places.places.items[i].file == TALLY_FILE_NONE;
			assert_true(tally_place_table_intern(&places->places,
							     &whole->places.places.items[i]) <
				    count);
		}
		/* Places outside of any file have no names to tell them apart. */
		assert_int_equal(places->places.places.count,
				 whole->places.places.count - (unknown ? unknown - 1 : 0));
		tally_profile_free(places);
		fixture_release(&fixture, whole);
	}
}

static void put_mapping(struct profile_fixture *fixture, uint32_t pid, const char *path)
{
	uint64_t words[11] = { fixture_ids_of(pid, pid), CODE, 0x1000, 0, 0, 0, 0,
			       fixture_ids_of(pid, pid), ++fixture->time_ns, 0, 1 };
	memcpy(&words[4], path, strlen(path));
	fixture_put_words(fixture, TALLY_RECORD_MMAP, TALLY_MISC_USER, words, 11);
}

/* Adds equal chains many times, of events and processes in turn; some of their numbers have the
 * same remainder.  Their meaning changes with a mapping, and with the mode where no marker says
 * it. */
static void put_equal_chains(struct profile_fixture *fixture, uint64_t seed)
{
	static const uint64_t chains[][4] = {
		{ LEAF + 8, WORK + 8, MAIN + 8 },
		{ TALLY_CONTEXT_USER, LEAF + 8, MAIN + 8 },
		{ TALLY_CONTEXT_USER },
		{ 0 },
	};
	static const unsigned lengths[] = { 3, 3, 1, 0 };
	uint64_t chance = 0;
	for (uint64_t i = 0; i < 600; i++) {
		uint64_t next = tally_hash64(seed * 600 + i), changed = next % 8;
		chance = i ? chance : next;
		if (changed < 4) /* otherwise everything stays as it was */
			chance ^= (chance ^ next) & UINT64_C(3) << (8 + 2 * changed);
		uint32_t pid = fixture_pid() + (uint32_t)(chance >> 8 & 3) * 8;
		uint64_t chain = chance >> 10 & 3;
		uint64_t words[12] = { 1 + (chance >> 12 & 1), LEAF + 9, fixture_ids_of(pid, pid),
				       ++fixture->time_ns,     0,        1 + i,
				       lengths[chain] };
		memcpy(&words[7], chains[chain], lengths[chain] * 8);
		if (changed == 7)
			put_mapping(fixture, pid,
				    next >> 20 & 1 ? "/nowhere/one.so" : "/nowhere/two.so");
		fixture_put_words(fixture, TALLY_RECORD_SAMPLE,
				  chance >> 14 & 1 ? TALLY_MISC_KERNEL : TALLY_MISC_USER, words,
				  7 + lengths[chain]);
	}
	fixture_finish(fixture, 0, 0);
}

static uint64_t period_of_event(const struct tally_profile *profile, uint32_t event)
{
	uint64_t period = 0;
	for (size_t i = 0; i < profile->rows.rows.count; i++)
		if (profile->classes.items[profile->rows.rows.items[i].class].event == event)
			period += profile->rows.rows.items[i].period;
	return period;
}

static void a_chain_that_comes_again_means_what_it_means_now(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 20; seed++) {
		struct profile_fixture fixture = { 0 };
		put_equal_chains(&fixture, seed);
		struct tally_profile *whole = read_places(&fixture, false),
				     *places = read_places(&fixture, true);
		assert_same_leaves(whole, places);
		for (uint32_t event = 0; event < 2; event++)
			assert_int_equal(period_of_event(whole, event),
					 period_of_event(places, event));
		assert_int_equal(period_of_event(places, 0) + period_of_event(places, 1),
				 600 * 601 / 2);
		tally_profile_free(places);
		fixture_release(&fixture, whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_alone_are_those_of_the_rows),
		cmocka_unit_test(a_chain_that_comes_again_means_what_it_means_now),
	};
	return cmocka_run_group_tests_name("profile_places", tests, fixture_set_up_map,
					   fixture_tear_down_map);
}
