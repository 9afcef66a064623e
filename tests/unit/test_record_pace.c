/* After a loss, the recorder looks when a quarter of a ring is full, for a longer time after each
 * further loss.  Without a loss it sleeps until it is woken (recorder/recorder_waits.c). */
#include "test.h"

#include "recorder/recorder_waits.h"

enum { MS = 1000000, SECOND = 1000 * MS, RING = 4 << 20 };

static void without_a_loss_it_waits(void **state)
{
	struct tally_recorder_pace pace = { 0 };
	(void)state;
	for (uint64_t i = 1; i < 1000; i++)
		assert_int_equal(tally_recorder_pace_ms(&pace, i * MS, 0, RING, RING), -1);
}

static void a_quarter_of_the_ring_is_timed(void **state)
{
	struct tally_recorder_pace pace = { 0 };
	(void)state;
	tally_recorder_pace_ms(&pace, 10 * MS, 0, 0, RING);
	assert_int_equal(tally_recorder_pace_ms(&pace, 30 * MS, 7, RING / 2, RING), 10);
	assert_int_equal(tally_recorder_pace_ms(&pace, 40 * MS, 7, RING / 2, RING), 5);
	/* the shortest possible wait */
	assert_int_equal(tally_recorder_pace_ms(&pace, 41 * MS, 7, RING, RING), 1);
	assert_int_equal(tally_recorder_pace_ms(&pace, 42 * MS, 7, 0, RING), -1);
	/* nearly idle: it is woken in time */
	assert_int_equal(tally_recorder_pace_ms(&pace, 43 * MS, 7, 8, RING), -1);
}

static void the_time_doubles_with_each_loss(void **state)
{
	struct tally_recorder_pace pace = { 0 };
	uint64_t now = MS, lost = 0;
	(void)state;
	tally_recorder_pace_ms(&pace, now, lost, RING, RING);
	for (uint64_t span = SECOND; span <= 8ull * SECOND; span *= 2) {
		assert_int_equal(tally_recorder_pace_ms(&pace, now += MS, ++lost, RING, RING), 1);
		/* Losses during this time prolong it, but don't double it. */
		assert_int_equal(tally_recorder_pace_ms(&pace, now += MS, ++lost, RING, RING), 1);
		for (uint64_t left = span - MS; left; left -= MS)
			assert_int_equal(tally_recorder_pace_ms(&pace, now += MS, lost, RING, RING),
					 1);
		assert_int_equal(tally_recorder_pace_ms(&pace, now += MS, lost, RING, RING), -1);
	}
}

static void a_week_of_losses_does_no_harm(void **state)
{
	struct tally_recorder_pace pace = { 0 };
	uint64_t now = 0;
	(void)state;
	for (uint64_t lost = 1; lost < 200; lost++)
		tally_recorder_pace_ms(&pace, now += 3600ull * SECOND, lost, RING, RING);
	assert_int_equal(tally_recorder_pace_ms(&pace, now += MS, 200, RING, RING), 1);
	assert_int_equal(tally_recorder_pace_ms(&pace, now += 3600ull * SECOND, 200, RING, RING),
			 -1);
}

/* A ring fills in 4 ms and wakes at half; the recorder stood still for this long before the
 * loss. */
static int after_standing_still(uint64_t still_ns)
{
	struct tally_recorder_pace pace = { 0 };
	uint64_t now = SECOND;
	for (int i = 0; i < 10; i++)
		assert_int_equal(tally_recorder_pace_ms(&pace, now += 2 * MS, 0, RING / 2, RING),
				 -1);
	assert_int_equal(tally_recorder_pace_ms(&pace, now += still_ns, 0, RING, RING), -1);
	return tally_recorder_pace_ms(&pace, now += 2 * MS, 20, RING / 2, RING);
}

static void what_no_earlier_look_would_have_saved_changes_nothing(void **state)
{
	(void)state;
	assert_int_equal(after_standing_still(4500000), 1);
	assert_int_equal(after_standing_still(4999999), 1);
	assert_int_equal(after_standing_still(5000001), -1);
	assert_int_equal(after_standing_still(20 * MS), -1);
}

/* The clock doesn't start with the recording.  So the first pass's wait is unknown, and does not
 * affect the second's. */
static void a_loss_at_once_counts(void **state)
{
	struct tally_recorder_pace pace = { 0 };
	const uint64_t now = 3600ull * SECOND;
	(void)state;
	assert_int_equal(tally_recorder_pace_ms(&pace, now, 0, RING, RING), -1);
	assert_int_equal(tally_recorder_pace_ms(&pace, now + 4 * MS, 9, RING / 2, RING), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_loss_it_waits),
		cmocka_unit_test(a_quarter_of_the_ring_is_timed),
		cmocka_unit_test(the_time_doubles_with_each_loss),
		cmocka_unit_test(what_no_earlier_look_would_have_saved_changes_nothing),
		cmocka_unit_test(a_loss_at_once_counts),
		cmocka_unit_test(a_week_of_losses_does_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
