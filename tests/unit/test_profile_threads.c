/* Two threads read long recordings, with the same result as one. */
#include "test.h"

#include "profile/profile_internal.h"
#include "random_recording.h"

enum { RECORDINGS = 12, SAMPLES = 3600 };

static struct tally_profile *read_profile(const struct profile_fixture *fixture,
					  const struct tally_profile_options *options,
					  bool leaves_only)
{
	struct tally_recording *opened;
	struct tally_profile *profile;
	assert_int_equal(tally_recording_open_memory(fixture->bytes, fixture->size, &opened, NULL),
			 0);
	opened->options.leaves_only = leaves_only;
	assert_int_equal(tally_profile_new(opened, options, &profile, NULL), 0);
	return profile;
}

static void assert_same(const struct tally_profile *one, const struct tally_profile *two)
{
	assert_true(one->rows.rows.count > 10);
	assert_int_equal(one->rows.rows.count, two->rows.rows.count);
	assert_memory_equal(one->rows.rows.items, two->rows.rows.items,
			    one->rows.rows.count * sizeof(*one->rows.rows.items));
	assert_int_equal(one->rows.stacks.count, two->rows.stacks.count);
	assert_memory_equal(one->rows.stacks.items, two->rows.stacks.items, one->rows.stacks.count);
	assert_int_equal(one->places.places.count, two->places.places.count);
	for (size_t i = 0; i < one->places.places.count; i++) {
		assert_int_equal(one->places.places.items[i].address,
				 two->places.places.items[i].address);
		assert_int_equal(one->places.places.items[i].file,
				 two->places.places.items[i].file);
	}
	assert_int_equal(one->classes.count, two->classes.count);
	assert_memory_equal(one->classes.items, two->classes.items,
			    one->classes.count * sizeof(*one->classes.items));
}

static void compare(bool leaves_only)
{
	for (unsigned seed = 0; seed < RECORDINGS; seed++) {
		struct random_recording *recording = malloc(sizeof(*recording));
		struct tally_profile *profiles[2];
		random_recording_make(recording, seed + 1, SAMPLES);
		for (unsigned i = 0; i < 2; i++) {
			struct tally_profile_options options = {
				.merge_threads = seed & 1,
				.merge_cpus = seed & 2,
				.split_samples = i ? 1 + seed * 7 : UINT64_MAX,
			};
			profiles[i] = read_profile(&recording->fixture, &options, leaves_only);
		}
		assert_same(profiles[0], profiles[1]);
		tally_profile_free(profiles[0]);
		fixture_release(&recording->fixture, profiles[1]);
		free(recording);
	}
}

/* With a second thread, rows, places and classes have the same numbers. */
static void two_threads_make_what_one_makes(void **state)
{
	(void)state;
	compare(false);
}

/* One thread adds leaves at once, since the row of an address is remembered.  Two threads hash them
 * like chains. */
static void leaves_alone_have_the_rows_that_chains_of_one_would_have(void **state)
{
	(void)state;
	compare(true);
}

/* The tables' sizes are guessed from the beginning of a recording.  They also work for a recording
 * that goes on differently. */
static void tables_are_right_however_large_they_were_guessed(void **state)
{
	(void)state;
	struct tally_chain_table chains;
	struct tally_row_table rows = { 0 };
	assert_int_equal(tally_chain_table_init(&chains), 0);
	for (uint32_t i = 0; i < 5000; i++) {
		struct tally_chain_hash hash = { .key = tally_hash64(i / 2), .check = i };
		uint8_t stack[3] = { (uint8_t)i, (uint8_t)(i >> 8), 0 };
		uint32_t row_hash = tally_row_table_hash(i % 3, stack, sizeof(stack));
		if (i % 700 == 0) {
			assert_int_equal(tally_chain_table_reserve(&chains, i * (i % 1400 ? 9 : 1)),
					 0);
			assert_int_equal(tally_row_table_reserve(&rows, i * (i % 1400 ? 1 : 7), i),
					 0);
		}
		assert_int_equal(tally_chain_table_add(&chains, hash, i), 0);
		assert_int_equal(tally_row_table_put(&rows, row_hash, i % 3, stack, sizeof(stack)),
				 i);
	}
	for (uint32_t i = 0; i < 5000; i++) {
		uint8_t stack[3] = { (uint8_t)i, (uint8_t)(i >> 8), 0 };
		uint32_t row_hash = tally_row_table_hash(i % 3, stack, sizeof(stack));
		struct tally_chain_hash hash = { .key = tally_hash64(i / 2), .check = i };
		assert_int_equal(tally_chain_table_find(&chains, hash), i);
		assert_int_equal(tally_row_table_put(&rows, row_hash, i % 3, stack, sizeof(stack)),
				 i);
	}
	tally_chain_table_release(&chains);
	tally_row_table_release(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_threads_make_what_one_makes),
		cmocka_unit_test(leaves_alone_have_the_rows_that_chains_of_one_would_have),
		cmocka_unit_test(tables_are_right_however_large_they_were_guessed),
	};
	return cmocka_run_group_tests_name("profile_threads", tests, random_set_up_map,
					   fixture_tear_down_map);
}
