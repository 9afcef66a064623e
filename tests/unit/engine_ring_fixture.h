/* Events of the engine with rings: opens, maps, hits and reads them on the fixture's machine.  The
 * errnos are those of Linux 6.18. */
#ifndef TALLY_TEST_ENGINE_RING_FIXTURE_H
#define TALLY_TEST_ENGINE_RING_FIXTURE_H

#include "test.h"

#include "engine/engine_state.h"
#include "engine/ring_buffer.h"
#include "engine_fixture.h"
#include "fixture_pmu.h"

enum {
	EPERM_ = 1,
	ENOMEM_ = 12,
	EBUSY_ = 16,
	EINVAL_ = 22,
	ENOSPC_ = 28,
	EOPNOTSUPP_ = 95,
	POLLIN_ = 1,
	POLLHUP_ = 16
};

struct world {
	struct engine_fixture fixture;
	struct fixture_pmu pmu;
};

static inline int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	fixture_init(&world->fixture, 2);
	*state = world;
	return fixture_start(&world->fixture) ? 0 : -1;
}

/* Counts page faults; each makes a sample of 16 bytes: header, pid, tid. */
static inline struct tally_attr faults(void)
{
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	attr.sample_period = 1;
	attr.sample_type = TALLY_SAMPLE_TID;
	return attr;
}

static inline int open_on(struct engine_fixture *fixture, const struct tally_attr *attr, int cpu)
{
	int fd = tally_engine_open(fixture->engine, attr, 0, cpu, -1, 0);
	assert_true(fd >= 0);
	return fd;
}

static inline int open_faults(struct engine_fixture *fixture)
{
	struct tally_attr attr = faults();
	return open_on(fixture, &attr, -1);
}

static inline int try_map(struct engine_fixture *fixture, int fd, size_t pages, void **address)
{
	return tally_engine_mmap(fixture->engine, fd, pages * FIXTURE_PAGE, true, true, 0, address);
}

static inline struct tally_user_page *map(struct engine_fixture *fixture, int fd, size_t pages)
{
	void *address = NULL;
	assert_int_equal(try_map(fixture, fd, pages, &address), 0);
	assert_non_null(address);
	return address;
}

static inline struct tally_user_page *map_read_only(struct engine_fixture *fixture, int fd,
						    size_t pages)
{
	void *address = NULL;
	assert_int_equal(tally_engine_mmap(fixture->engine, fd, pages * FIXTURE_PAGE, false, true,
					   0, &address),
			 0);
	return address;
}

static inline int unmap_pages(struct engine_fixture *fixture, void *address, size_t pages)
{
	return tally_engine_munmap(fixture->engine, address, pages * FIXTURE_PAGE);
}

static inline long control(struct engine_fixture *fixture, int fd, unsigned long request,
			   intptr_t argument)
{
	return tally_engine_ioctl(fixture->engine, fd, request, (uintptr_t)argument);
}

static inline void close_fd(struct engine_fixture *fixture, int fd)
{
	assert_int_equal(tally_engine_close(fixture->engine, fd), 0);
}

static inline void fault(struct engine_fixture *fixture, unsigned count)
{
	while (count--)
		fixture_hit(fixture, TALLY_SW_PAGE_FAULTS, 1);
}

static inline struct engine_event *event_of(struct engine_fixture *fixture, int fd)
{
	return engine_file(fixture->engine, fd)->event;
}

/* --- reading -------------------------------------------------------------- */

struct record {
	struct tally_record_header header;
	uint64_t words[64];
};

static inline void copy_out(const struct tally_user_page *page, uint64_t at, void *to, size_t size)
{
	const uint8_t *data = (const uint8_t *)page + page->data_offset;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = data[(at + i) & (page->data_size - 1)];
}

/* Reads the record at `at`.  Returns its size. */
static inline size_t record_at(const struct tally_user_page *page, uint64_t at,
			       struct record *record)
{
	copy_out(page, at, &record->header, sizeof(record->header));
	assert_in_range(record->header.size, 8, 8 + sizeof(record->words));
	assert_int_equal(record->header.size % 8, 0);
	copy_out(page, at, record, record->header.size);
	return record->header.size;
}

struct told {
	uint64_t samples, lost, records;
};

/* Reads up to the head, and frees the space. */
static inline struct told drain(struct tally_user_page *page)
{
	struct told told = { 0 };
	struct record record;
	while (page->data_tail != page->data_head) {
		uint64_t size = record_at(page, page->data_tail, &record);
		assert_true(page->data_head - page->data_tail >= size);
		page->data_tail += size;
		told.records++;
		told.samples += record.header.type == TALLY_RECORD_SAMPLE;
		if (record.header.type == TALLY_RECORD_LOST)
			told.lost += record.words[1];
	}
	return told;
}

#define RING_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_tear_down)

#endif
