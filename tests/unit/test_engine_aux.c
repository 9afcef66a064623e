/* The engine's AUX areas: SPEC D4. */
#include "engine_ring_fixture.h"

static struct {
	unsigned setups, frees, stops;
	size_t pages;
	bool overwrite;
	int error;
} aux_calls;

static int aux_setup(struct tally_pmu_event *event, void *area, size_t pages, bool overwrite)
{
	(void)event;
	assert_non_null(area);
	if (aux_calls.error)
		return aux_calls.error;
	aux_calls.setups++;
	aux_calls.pages = pages;
	aux_calls.overwrite = overwrite;
	return 0;
}

static void aux_free(struct tally_pmu_event *event, void *area)
{
	(void)event, (void)area;
	aux_calls.frees++;
}

static void aux_stop(struct tally_pmu_event *event, unsigned flags)
{
	aux_calls.stops++;
	fixture_pmu_stop(event, flags);
}

static struct tally_engine_pmu_ops aux_ops;

/* Opens an event of a tracing PMU, mapped with 2 pages of data, and sets the place of its 4 pages
 * of AUX. */
static int open_tracer(struct world *world, uint32_t watermark, struct tally_user_page **page)
{
	struct tally_attr attr;
	int fd;

	memset(&aux_calls, 0, sizeof(aux_calls));
	if (!world->pmu.pmu.ops) {
		world->pmu.pmu.capabilities = TALLY_PMU_AUX;
		assert_int_equal(fixture_pmu_register(&world->pmu, &world->fixture, "trace", 2), 0);
		aux_ops = *world->pmu.pmu.ops;
		aux_ops.aux_setup = aux_setup;
		aux_ops.aux_free = aux_free;
		aux_ops.stop = aux_stop;
		world->pmu.pmu.ops = &aux_ops;
	}
	attr = fixture_attr(world->pmu.pmu.type, 0);
	attr.aux_watermark = watermark;
	fd = open_on(&world->fixture, &attr, -1);
	*page = map(&world->fixture, fd, 3);
	(*page)->aux_offset = 3 * FIXTURE_PAGE;
	(*page)->aux_size = 4 * FIXTURE_PAGE;
	return fd;
}

static int map_area(struct world *world, int fd, size_t pages, bool writable, size_t offset_pages,
		    void **area)
{
	return tally_engine_mmap(world->fixture.engine, fd, pages * FIXTURE_PAGE, writable, true,
				 offset_pages * FIXTURE_PAGE, area);
}

static void d4_area_is_where_the_page_says(void **state)
{
	struct world *world = *state;
	struct tally_user_page *page;
	int fd = open_tracer(world, 0, &page), soft = open_faults(&world->fixture);
	struct tally_user_page *soft_page = map(&world->fixture, soft, 3);
	void *area, *again;

	assert_int_equal(map_area(world, fd, 4, true, 4, &area), -EINVAL_);
	assert_int_equal(map_area(world, fd, 8, true, 3, &area), -EINVAL_);
	page->aux_offset = 2 * FIXTURE_PAGE; /* inside the ring */
	assert_int_equal(map_area(world, fd, 4, true, 2, &area), -EINVAL_);
	page->aux_offset = 3 * FIXTURE_PAGE;
	page->aux_size = 3 * FIXTURE_PAGE;
	assert_int_equal(map_area(world, fd, 3, true, 3, &area), -EINVAL_);
	page->aux_size = 4 * FIXTURE_PAGE;
	soft_page->aux_offset = 3 * FIXTURE_PAGE;
	soft_page->aux_size = 4 * FIXTURE_PAGE;
	assert_int_equal(map_area(world, soft, 4, true, 3, &area), -EOPNOTSUPP_);

	size_t before = world->fixture.engine->locked_pages;
	assert_int_equal(map_area(world, fd, 4, true, 3, &area), 0);
	assert_int_equal(world->fixture.engine->locked_pages, before + 4);
	assert_int_equal(map_area(world, fd, 4, true, 3, &again), 0);
	assert_ptr_equal(area, again);
	assert_int_equal(aux_calls.setups, 1);
	assert_int_equal(aux_calls.pages, 4);
	assert_false(aux_calls.overwrite);
	page->aux_offset = 7 * FIXTURE_PAGE;
	/* it has another place already */
	assert_int_equal(map_area(world, fd, 4, true, 7, &again), -EINVAL_);

	assert_int_equal(unmap_pages(&world->fixture, area, 4), 0);
	assert_int_equal(aux_calls.frees, 0);
	assert_int_equal(unmap_pages(&world->fixture, area, 4), 0);
	assert_int_equal(aux_calls.frees, 1);
	assert_int_equal(aux_calls.stops, 1); /* before the area was unmapped */
	assert_int_equal(world->fixture.engine->locked_pages, before);
}

static void d4_the_area_outlives_the_mapping_of_the_ring(void **state)
{
	struct world *world = *state;
	struct tally_user_page *page;
	int fd = open_tracer(world, 0, &page);
	struct tally_engine_aux aux;
	void *area;

	assert_int_equal(map_area(world, fd, 4, true, 3, &area), 0);
	assert_int_equal(unmap_pages(&world->fixture, page, 3), 0);
	assert_int_equal(tally_engine_aux_begin(&event_of(&world->fixture, fd)->hw, &aux), 0);
	tally_engine_aux_end(&event_of(&world->fixture, fd)->hw, &aux, 8, 0);
	assert_int_equal(unmap_pages(&world->fixture, area, 4), 0);
	assert_int_equal(aux_calls.frees, 1);
	assert_int_equal(tally_engine_aux_begin(&event_of(&world->fixture, fd)->hw, &aux),
			 -EINVAL_);
}

static void d4_setup_may_fail(void **state)
{
	struct world *world = *state;
	struct tally_user_page *page;
	int fd = open_tracer(world, 0, &page);
	size_t locked = world->fixture.engine->locked_pages;
	uint64_t bytes = fixture_bytes(&world->fixture);
	void *area;

	aux_calls.error = -EBUSY_;
	assert_int_equal(map_area(world, fd, 4, true, 3, &area), -EBUSY_);
	assert_int_equal(world->fixture.engine->locked_pages, locked);
	assert_int_equal(fixture_bytes(&world->fixture), bytes);
	world->fixture.ipc_lock = false;
	world->fixture.locked_budget = 0;
	page->aux_size = 256 * FIXTURE_PAGE;
	assert_int_equal(map_area(world, fd, 256, true, 3, &area), -EPERM_);
	world->fixture.locked_budget = 1 << 20;
}

static void aux_record(const struct tally_user_page *page, uint64_t at, uint64_t offset,
		       uint64_t size, uint64_t flags)
{
	struct record record;
	assert_int_equal(record_at(page, at, &record), 32);
	assert_int_equal(record.header.type, TALLY_RECORD_AUX);
	assert_int_equal(record.words[0], offset);
	assert_int_equal(record.words[1], size);
	assert_int_equal(record.words[2], flags);
}

static void d4_records_tell_what_was_written(void **state)
{
	struct world *world = *state;
	struct tally_user_page *page;
	int fd = open_tracer(world, 0, &page);
	struct tally_pmu_event *event = &event_of(&world->fixture, fd)->hw;
	struct tally_engine_aux aux, nested;
	void *area;

	assert_int_equal(tally_engine_aux_begin(event, &aux), -EINVAL_);
	assert_int_equal(map_area(world, fd, 4, true, 3, &area), 0);
	assert_int_equal(tally_engine_aux_begin(event, &aux), 0);
	assert_ptr_equal(aux.area, area);
	assert_int_equal(aux.head, 0);
	assert_int_equal(aux.room, 4 * FIXTURE_PAGE - 1);
	assert_int_equal(tally_engine_aux_begin(event, &nested), -EBUSY_);
	tally_engine_aux_end(event, &aux, 1000, 4); /* PARTIAL */
	aux_record(page, 0, 0, 1000, 4);
	assert_int_equal(page->aux_head, 1000);

	assert_int_equal(tally_engine_aux_begin(event, &aux), 0);
	assert_int_equal(aux.head, 1000);
	assert_int_equal(aux.room, 4 * FIXTURE_PAGE - 1001);
	tally_engine_aux_end(event, &aux, 0, 2); /* no bytes: no record */
	assert_int_equal(page->data_head, 32);
	assert_int_equal(tally_engine_aux_begin(event, &aux), 0);
	tally_engine_aux_end(event, &aux, 0, 8); /* COLLISION */
	aux_record(page, 32, 1000, 0, 8);
	assert_int_equal(tally_engine_aux_begin(event, &aux), 0);
	tally_engine_aux_end(event, &aux, aux.room, 0);

	page->aux_tail = 500;
	assert_int_equal(tally_engine_aux_begin(event, &aux), 0);
	assert_int_equal(aux.room, 500);
	tally_engine_aux_end(event, &aux, 500, 1); /* TRUNCATED */
	aux_record(page, 96, 4 * FIXTURE_PAGE - 1, 500, 1);
	fixture_run_pending(&world->fixture);
	assert_int_equal(event_of(&world->fixture, fd)->state, ENGINE_EVENT_OFF);
}

static void d4_without_room_the_event_stops(void **state)
{
	struct world *world = *state;
	struct tally_user_page *page;
	int fd = open_tracer(world, 0, &page);
	struct tally_pmu_event *event = &event_of(&world->fixture, fd)->hw;
	struct tally_engine_aux aux;
	void *area;

	assert_int_equal(map_area(world, fd, 4, true, 3, &area), 0);
	assert_int_equal(tally_engine_aux_begin(event, &aux), 0);
	tally_engine_aux_end(event, &aux, aux.room, 0);
	fixture_run_pending(&world->fixture);
	assert_int_equal(tally_engine_poll(world->fixture.engine, fd, NULL), POLLIN_);
	assert_int_equal(tally_engine_aux_begin(event, &aux), -ENOSPC_);
	fixture_run_pending(&world->fixture);
	assert_int_equal(event_of(&world->fixture, fd)->state, ENGINE_EVENT_OFF);
	assert_int_equal(tally_engine_poll(world->fixture.engine, fd, NULL), POLLIN_);
	page->aux_tail = page->aux_head;
	assert_int_equal(control(&world->fixture, fd, TALLY_IOC_ENABLE, 0), 0);
	assert_int_equal(tally_engine_aux_begin(event, &aux), 0);
	assert_int_equal(aux.room, 4 * FIXTURE_PAGE - 1);
	tally_engine_aux_end(event, &aux, 1, 0);
}

static void d4_watermark(void **state)
{
	struct world *world = *state;
	struct tally_user_page *page;
	int fd = open_tracer(world, 1000, &page);
	struct tally_pmu_event *event = &event_of(&world->fixture, fd)->hw;
	struct tally_engine_aux aux;
	unsigned woken_at[4], count = 0;
	void *area;

	assert_int_equal(map_area(world, fd, 4, true, 3, &area), 0);
	for (unsigned head = 300; head <= 3900; head += 300) {
		unsigned before = world->fixture.wakes;
		assert_int_equal(tally_engine_aux_begin(event, &aux), 0);
		tally_engine_aux_end(event, &aux, 300, 0);
		fixture_run_pending(&world->fixture);
		if (world->fixture.wakes != before)
			woken_at[count++] = head;
	}
	assert_int_equal(count, 3);
	assert_int_equal(woken_at[0], 1200);
	assert_int_equal(woken_at[1], 2100);
	assert_int_equal(woken_at[2], 3000);
}

static void d4_snapshot(void **state)
{
	struct world *world = *state;
	struct tally_user_page *page;
	int fd = open_tracer(world, 100, &page);
	struct tally_pmu_event *event = &event_of(&world->fixture, fd)->hw;
	struct tally_engine_aux aux;
	void *area;

	assert_int_equal(map_area(world, fd, 4, false, 3, &area), 0);
	assert_true(aux_calls.overwrite);
	assert_int_equal(tally_engine_aux_begin(event, &aux), 0);
	assert_true(aux.overwrite);
	assert_int_equal(aux.room, 4 * FIXTURE_PAGE);
	aux.head = 50000; /* wraps several times */
	tally_engine_aux_end(event, &aux, 0, 0);
	assert_int_equal(page->aux_head, 50000);
	assert_int_equal(page->data_head, 0); /* an overwrite by itself makes no record */
	assert_int_equal(tally_engine_aux_begin(event, &aux), 0);
	assert_int_equal(aux.head, 50000);
	aux.head = 50100;
	tally_engine_aux_end(event, &aux, 100, 1);
	aux_record(page, 0, 50100, 100, 1 | 2);
}

static void d4_set_output_between_tracers(void **state)
{
	struct world *world = *state;
	struct tally_user_page *page;
	int fd = open_tracer(world, 0, &page);
	struct fixture_pmu second = { .pmu.capabilities = TALLY_PMU_AUX };
	struct tally_attr attr;
	int other;

	assert_int_equal(fixture_pmu_register(&second, &world->fixture, "trace2", 2), 0);
	attr = fixture_attr(second.pmu.type, 0);
	other = open_on(&world->fixture, &attr, -1);
	assert_int_equal(control(&world->fixture, other, TALLY_IOC_SET_OUTPUT, fd), -EINVAL_);
	close_fd(&world->fixture, other);
	assert_int_equal(tally_engine_pmu_unregister(world->fixture.engine, &second.pmu), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RING_TEST(d4_area_is_where_the_page_says),
		RING_TEST(d4_the_area_outlives_the_mapping_of_the_ring),
		RING_TEST(d4_setup_may_fail),
		RING_TEST(d4_records_tell_what_was_written),
		RING_TEST(d4_without_room_the_event_stops),
		RING_TEST(d4_watermark),
		RING_TEST(d4_snapshot),
		RING_TEST(d4_set_output_between_tracers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
