/* The engine's user page: SPEC D5. */
#include "engine_ring_fixture.h"

static void d5_fields_at_mapping(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct tally_user_page *page;

	fault(fixture, 9);
	fixture_advance(fixture, 1000);
	page = map(fixture, fd, 3);
	assert_int_equal(page->version, 0);
	assert_int_equal(page->compat_version, 0);
	assert_int_equal(page->lock, 2);
	assert_int_equal(page->index, 0);
	assert_int_equal(page->offset, 9);
	assert_int_equal(page->time_enabled, 1000);
	assert_int_equal(page->time_running, 1000);
	assert_int_equal(page->capabilities, TALLY_CAP_BIT0_IS_DEPRECATED);
	assert_int_equal(page->size, 96);
	assert_int_equal(page->data_offset, FIXTURE_PAGE);
	assert_int_equal(page->data_size, 2 * FIXTURE_PAGE);
	assert_int_equal(page->aux_offset, 0);
}

/* Returns the count as the loop of a self-monitoring program reads it from the page. */
static uint64_t read_by_page(const struct world *world, const struct tally_user_page *page)
{
	assert_int_equal(page->lock % 2, 0);
	uint64_t count = (uint64_t)page->offset;
	if (page->index)
		count += world->pmu.raw[world->fixture.cpu][page->index - 1];
	return count;
}

static void d5_page_gives_what_read_gives(void **state)
{
	struct world *world = *state;
	struct engine_fixture *fixture = &world->fixture;
	struct tally_attr attr;
	struct tally_user_page *page;
	int fd, other;

	assert_int_equal(fixture_pmu_register(&world->pmu, fixture, "cpu", 2), 0);
	fixture_pmu_happen(&world->pmu, 12345); /* the counter does not start at 0 */
	attr = fixture_attr(world->pmu.pmu.type, 0);
	attr.sample_period = 1000; /* overflows fold the count now and then */
	fd = open_on(fixture, &attr, -1);
	other = open_on(fixture, &attr, -1);
	page = map(fixture, fd, 3);
	for (unsigned i = 1; i < 200; i++) {
		fixture_pmu_happen(&world->pmu, i);
		if (i % 5 == 0) {
			fixture_switch(fixture, NULL);
			assert_int_equal(page->index, 0);
			fixture_pmu_happen(&world->pmu, 77);
			fixture_on(fixture, i / 5 % 2);
			fixture->current[!fixture->cpu] = NULL;
			fixture_switch(fixture, fixture->task);
		}
		if (i == 50)
			close_fd(fixture, other);
		assert_int_not_equal(page->index, 0);
		uint64_t by_page = read_by_page(world, page);
		assert_int_equal(by_page, fixture_value(fixture, fd));
	}
	assert_int_equal(control(fixture, fd, TALLY_IOC_DISABLE, 0), 0);
	assert_int_equal(page->index, 0);
	assert_int_equal(page->offset, fixture_value(fixture, fd));
	assert_int_equal(control(fixture, fd, TALLY_IOC_RESET, 0), 0);
	assert_int_equal(page->offset, 0);
	fixture_switch(fixture, NULL);
	fixture_on(fixture, 0);
	assert_int_equal(unmap_pages(fixture, page, 3), -EINVAL_); /* it is not mapped any more */
}

static void user_clock(void *host, struct tally_user_page *page)
{
	(void)host;
	page->capabilities |= TALLY_CAP_USER_TIME | TALLY_CAP_USER_TIME_ZERO;
	page->time_mult = 3;
	page->time_shift = 1;
	page->time_zero = 500;
}

static void d5_clock_of_the_page(void **state)
{
	struct engine_fixture *fixture = calloc(1, sizeof(*fixture));
	struct tally_user_page *page;

	(void)state;
	fixture_init(fixture, 1);
	fixture->host.user_clock = user_clock;
	assert_true(fixture_start(fixture));
	page = map(fixture, open_faults(fixture), 1);
	fixture->now_ns += 4000;
	/* cycles × mult >> shift + time_zero is the current time; with time_offset, the time since
	 * the page was written. */
	uint64_t cycles = (fixture->now_ns - 500) * 2 / 3;
	assert_in_range(cycles * 3 / 2 + page->time_offset, 3998, 4000);
	assert_int_equal(page->capabilities, TALLY_CAP_BIT0_IS_DEPRECATED | TALLY_CAP_USER_TIME |
						     TALLY_CAP_USER_TIME_ZERO);
	fixture_end(fixture);
	free(fixture);
}

static void d5_a_spoilt_lock_is_mended(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct tally_user_page *page = map(fixture, fd, 1);

	page->lock = 0xffffffff;
	page->offset = 1;
	fault(fixture, 3);
	assert_int_equal(control(fixture, fd, TALLY_IOC_DISABLE, 0), 0);
	assert_int_equal(page->lock % 2, 0);
	assert_int_equal(page->offset, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RING_TEST(d5_fields_at_mapping),
		RING_TEST(d5_page_gives_what_read_gives),
		cmocka_unit_test(d5_clock_of_the_page),
		RING_TEST(d5_a_spoilt_lock_is_mended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
