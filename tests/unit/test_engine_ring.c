/* Rings, AUX areas, user pages of the engine on the fixture's machine: SPEC D1 to D5, C5's wake-ups.  The errnos are
 * those that Linux 6.18 gives. */
#include "test.h"

#include "engine/engine_state.h"
#include "engine/ring_buffer.h"
#include "engine_fixture.h"
#include "fixture_pmu.h"

enum { EPERM_ = 1, ENOMEM_ = 12, EBUSY_ = 16, EINVAL_ = 22, ENOSPC_ = 28, EOPNOTSUPP_ = 95, POLLIN_ = 1, POLLHUP_ = 16 };

struct world {
	struct engine_fixture fixture;
	struct fixture_pmu pmu;
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	fixture_init(&world->fixture, 2);
	*state = world;
	return fixture_start(&world->fixture) ? 0 : -1;
}

/* Page faults, each a sample of 16 bytes: header, pid, tid. */
static struct tally_attr faults(void)
{
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	attr.sample_period = 1;
	attr.sample_type = TALLY_SAMPLE_TID;
	return attr;
}

static int open_on(struct engine_fixture *fixture, const struct tally_attr *attr, int cpu)
{
	int fd = tally_engine_open(fixture->engine, attr, 0, cpu, -1, 0);
	assert_true(fd >= 0);
	return fd;
}

static int open_faults(struct engine_fixture *fixture)
{
	struct tally_attr attr = faults();
	return open_on(fixture, &attr, -1);
}

static int try_map(struct engine_fixture *fixture, int fd, size_t pages, void **address)
{
	return tally_engine_mmap(fixture->engine, fd, pages * FIXTURE_PAGE, true, true, 0, address);
}

static struct tally_user_page *map(struct engine_fixture *fixture, int fd, size_t pages)
{
	void *address = NULL;
	assert_int_equal(try_map(fixture, fd, pages, &address), 0);
	assert_non_null(address);
	return address;
}

static struct tally_user_page *map_read_only(struct engine_fixture *fixture, int fd, size_t pages)
{
	void *address = NULL;
	assert_int_equal(tally_engine_mmap(fixture->engine, fd, pages * FIXTURE_PAGE, false, true, 0, &address), 0);
	return address;
}

static int unmap_pages(struct engine_fixture *fixture, void *address, size_t pages)
{
	return tally_engine_munmap(fixture->engine, address, pages * FIXTURE_PAGE);
}

static long control(struct engine_fixture *fixture, int fd, unsigned long request, intptr_t argument)
{
	return tally_engine_ioctl(fixture->engine, fd, request, (uintptr_t)argument);
}

static void close_fd(struct engine_fixture *fixture, int fd)
{
	assert_int_equal(tally_engine_close(fixture->engine, fd), 0);
}

static void fault(struct engine_fixture *fixture, unsigned count)
{
	while (count--)
		fixture_hit(fixture, TALLY_SW_PAGE_FAULTS, 1);
}

static struct engine_event *event_of(struct engine_fixture *fixture, int fd)
{
	return engine_file(fixture->engine, fd)->event;
}

/* --- reading ------------------------------------------------------------------------------------------------------- */

struct record {
	struct tally_record_header header;
	uint64_t words[64];
};

static void copy_out(const struct tally_user_page *page, uint64_t at, void *to, size_t size)
{
	const uint8_t *data = (const uint8_t *)page + page->data_offset;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = data[(at + i) & (page->data_size - 1)];
}

/* The record at `at`; its size. */
static size_t record_at(const struct tally_user_page *page, uint64_t at, struct record *record)
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

/* Reads up to the head, and frees what it read. */
static struct told drain(struct tally_user_page *page)
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

/* --- D1: mapping ---------------------------------------------------------------------------------------------------- */

static void d1_sizes(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	void *address;

	for (size_t pages = 1; pages <= 70; pages++) {
		size_t data = pages - 1;
		bool fits = !(data & (data - 1));
		assert_int_equal(try_map(fixture, fd, pages, &address), fits ? 0 : -EINVAL_);
		if (fits)
			assert_int_equal(unmap_pages(fixture, address, pages), 0);
	}
	assert_int_equal(try_map(fixture, fd, 0, &address), -EINVAL_);
	/* mmap(2) takes whole pages. */
	assert_int_equal(tally_engine_mmap(fixture->engine, fd, FIXTURE_PAGE + 1, true, true, 0, &address), 0);
	assert_int_equal(tally_engine_munmap(fixture->engine, address, FIXTURE_PAGE + 1), 0);
	close_fd(fixture, fd);
}

static void d1_private_and_inherited_are_refused(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	int fd = open_faults(fixture), inherited, bound;
	void *address;

	assert_int_equal(tally_engine_mmap(fixture->engine, fd, 2 * FIXTURE_PAGE, true, false, 0, &address), -EINVAL_);
	attr.flags |= TALLY_ATTR_INHERIT;
	inherited = open_on(fixture, &attr, -1);
	bound = open_on(fixture, &attr, 0);
	assert_int_equal(try_map(fixture, inherited, 2, &address), -EINVAL_);
	assert_int_equal(try_map(fixture, bound, 2, &address), 0);
	assert_int_equal(tally_engine_mmap(fixture->engine, 99, 2 * FIXTURE_PAGE, true, true, 0, &address), -9);
	/* An AUX area without a ring. */
	assert_int_equal(tally_engine_mmap(fixture->engine, fd, 2 * FIXTURE_PAGE, true, true, 3 * FIXTURE_PAGE, &address),
			 -EINVAL_);
}

static void d1_header_page_alone_takes_no_records(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture), other = open_faults(fixture);
	struct tally_user_page *page = map(fixture, fd, 1);
	void *address;

	fault(fixture, 3);
	assert_int_equal(page->data_head, 0);
	assert_int_equal(page->data_size, 0);
	assert_int_equal(control(fixture, fd, TALLY_IOC_PAUSE_OUTPUT, 1), -EINVAL_);
	assert_int_equal(control(fixture, other, TALLY_IOC_SET_OUTPUT, fd), 0);
	assert_int_equal(try_map(fixture, fd, 2, &address), -EINVAL_);
	assert_int_equal(tally_engine_poll(fixture->engine, fd, NULL), 0);
	assert_int_equal(event_of(fixture, fd)->lost_samples, 0);
}

static void d1_a_second_mapping_shares(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct tally_user_page *page = map_read_only(fixture, fd, 3), *again = map(fixture, fd, 3);
	size_t locked = fixture->engine->locked_pages;
	void *address;

	assert_ptr_equal(page, again);
	assert_int_equal(locked, 3); /* once */
	assert_int_equal(try_map(fixture, fd, 5, &address), -EINVAL_);
	assert_int_equal(try_map(fixture, fd, 1, &address), -EINVAL_);
	/* The ring is there until the second goes. */
	assert_int_equal(unmap_pages(fixture, page, 3), 0);
	fault(fixture, 1);
	assert_int_equal(again->data_head, 16);
	assert_int_equal(unmap_pages(fixture, again, 3), 0);
	assert_int_equal(unmap_pages(fixture, again, 3), -EINVAL_);
	assert_int_equal(fixture->engine->locked_pages, 0);
	assert_int_equal(tally_engine_poll(fixture->engine, fd, NULL), POLLHUP_);
}

static void d1_part_of_a_mapping_stays(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct tally_user_page *page = map(fixture, fd, 3);

	assert_int_equal(unmap_pages(fixture, page, 2), -EINVAL_);
	assert_int_equal(unmap_pages(fixture, (char *)page + FIXTURE_PAGE, 2), -EINVAL_);
	fault(fixture, 1);
	assert_int_equal(page->data_head, 16);
}

/* mlock_kb is 516, per CPU: 129 pages × 2; then what the host has. */
static void d1_budget(void **state)
{
	struct engine_fixture *fixture = *state;
	int first = open_faults(fixture), second = open_faults(fixture);
	struct tally_user_page *page;
	void *address;

	fixture->ipc_lock = false;
	fixture->locked_budget = 0;
	page = map(fixture, first, 129);
	assert_int_equal(fixture->locked_pages, 0);
	assert_int_equal(try_map(fixture, second, 257, &address), -EPERM_);
	assert_int_equal(try_map(fixture, second, 129, &address), 0); /* 258, the whole budget */
	assert_int_equal(unmap_pages(fixture, address, 129), 0);

	fixture->locked_budget = 128;
	assert_int_equal(try_map(fixture, second, 257, &address), 0); /* 129 of the engine's, 128 of the host's */
	assert_int_equal(fixture->locked_pages, 128);
	assert_int_equal(unmap_pages(fixture, address, 257), 0);
	assert_int_equal(fixture->locked_pages, 0);
	fixture->locked_budget = 127;
	assert_int_equal(try_map(fixture, second, 257, &address), -EPERM_);

	fixture->ipc_lock = true;
	assert_int_equal(try_map(fixture, second, 257, &address), 0);
	assert_int_equal(unmap_pages(fixture, address, 257), 0);
	fixture->ipc_lock = false;
	assert_int_equal(tally_engine_sysctl_set(fixture->engine, "perf_event_paranoid", -1), 0);
	assert_int_equal(try_map(fixture, second, 257, &address), 0);
	assert_int_equal(unmap_pages(fixture, address, 257), 0);
	assert_int_equal(unmap_pages(fixture, page, 129), 0);
	assert_int_equal(fixture->engine->locked_pages, 0);
}

static void d1_budget_grows_with_online_cpus(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	void *address;

	fixture->ipc_lock = false;
	fixture->locked_budget = 0;
	fixture->offline[1] = true;
	assert_int_equal(try_map(fixture, fd, 257, &address), -EPERM_);
	fixture->offline[1] = false;
	assert_int_equal(try_map(fixture, fd, 257, &address), 0);
}

static void d1_without_memory_nothing_is_left(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture), tries = 0;
	uint64_t before = fixture_bytes(fixture);
	void *address;

	for (;; tries++) {
		fixture->fail_at = (unsigned)tries + 1;
		int error = try_map(fixture, fd, 3, &address);
		fixture->fail_at = 0;
		if (!error)
			break;
		assert_int_equal(error, -ENOMEM_);
		assert_int_equal(fixture_bytes(fixture), before);
		assert_int_equal(fixture->engine->locked_pages, 0);
	}
	assert_true(tries >= 2);
}

static void d1_a_mapping_keeps_the_event(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct tally_user_page *page = map(fixture, fd, 2);

	close_fd(fixture, fd);
	fault(fixture, 2);
	assert_int_equal(page->data_head, 32);
	assert_int_equal(fixture_events(fixture), 1);
	assert_int_equal(unmap_pages(fixture, page, 2), 0);
	assert_int_equal(fixture_events(fixture), 0);
}

static void d1_exec_unmaps(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct tally_user_page *page = map(fixture, fd, 2);

	tally_engine_task_exec(fixture->task, "other");
	assert_int_equal(fixture->engine->locked_pages, 0);
	assert_int_equal(tally_engine_poll(fixture->engine, fd, NULL), POLLHUP_);
	assert_int_equal(unmap_pages(fixture, page, 2), -EINVAL_);
}

/* --- D2: records ------------------------------------------------------------------------------------------------------ */

static void d2_full_by_a_word_then_lost_is_exact(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	struct tally_user_page *page;
	struct record record;
	int fd;

	attr.sample_type = 0; /* samples of 8 bytes */
	fd = open_on(fixture, &attr, -1);
	page = map(fixture, fd, 2);
	fault(fixture, 1000);
	assert_int_equal(page->data_head, 4096 - 8); /* measured */
	page->data_tail = 16; /* no room for LOST and a sample */
	fault(fixture, 3);
	assert_int_equal(page->data_head, 4096 - 8);
	page->data_tail = 40;
	fault(fixture, 3);
	assert_int_equal(page->data_head, 4088 + 24 + 16);
	assert_int_equal(record_at(page, 4088, &record), 24);
	assert_int_equal(record.header.type, TALLY_RECORD_LOST);
	assert_int_equal(record.header.misc, 0);
	assert_int_equal(record.words[0], event_of(fixture, fd)->id);
	assert_int_equal(record.words[1], 1000 - 511 + 3);
	assert_int_equal(event_of(fixture, fd)->lost_samples, 1000 - 511 + 3 + 1);
}

static void d2_lost_has_the_trailer(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	struct tally_user_page *page;
	struct record record;
	uint64_t full;
	int fd;

	attr.flags |= TALLY_ATTR_SAMPLE_ID_ALL;
	attr.sample_type |= TALLY_SAMPLE_TIME | TALLY_SAMPLE_IDENTIFIER;
	fd = open_on(fixture, &attr, -1);
	page = map(fixture, fd, 2);
	fault(fixture, 300);
	full = page->data_head;
	page->data_tail = full;
	fixture->now_ns += 5;
	fault(fixture, 1);
	assert_int_equal(record_at(page, full, &record), 24 + 24);
	assert_int_equal(record.header.type, TALLY_RECORD_LOST);
	assert_int_equal(record.words[1], 300 - full / 32);
	assert_int_equal(record.words[3], fixture->now_ns);
	assert_int_equal(record.words[4], event_of(fixture, fd)->id);
}

static void d2_records_wrap(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	struct tally_user_page *page;
	uint64_t samples = 0;
	int fd;

	attr.sample_type |= TALLY_SAMPLE_TIME | TALLY_SAMPLE_ADDR | TALLY_SAMPLE_IP; /* 40 bytes: no divisor of 4096 */
	fd = open_on(fixture, &attr, -1);
	page = map(fixture, fd, 2);
	for (unsigned i = 0; i < 1000; i++) {
		fault(fixture, 1);
		struct record record;
		assert_int_equal(record_at(page, page->data_tail, &record), 40);
		assert_int_equal(record.words[0], 0x401000);
		assert_int_equal(record.words[3], 0x7000);
		samples += drain(page).samples;
	}
	assert_int_equal(samples, 1000);
	assert_int_equal(page->data_head, 40000);
}

/* Whatever a user writes there, nothing but its data can suffer. */
static void d2_the_tail_is_not_trusted(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct tally_user_page *page = map(fixture, fd, 2);
	uint64_t seed = 1;

	for (unsigned i = 0; i < 5000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		page->data_tail = i % 3 ? seed : page->data_head + (seed >> 60) - 8;
		page->data_head = seed >> 7; /* it is not read again */
		page->data_size = seed;
		page->data_offset = seed >> 3;
		page->lock = (uint32_t)seed;
		fault(fixture, 1);
		assert_int_equal(page->data_head % 8, 0);
	}
}

/* --- D2 as a property: random sizes, nesting, reader's speeds --------------------------------------------------------------- */

struct stream {
	struct engine_event *event;
	struct tally_user_page *page;
	uint64_t random, written, dropped, next_id, told_lost, read;
	uint64_t *order;  /* id + 1 by position / 8, of the newest that was placed there */
	size_t order_size;
};

static unsigned random_below(struct stream *stream, unsigned limit)
{
	stream->random ^= stream->random << 13;
	stream->random ^= stream->random >> 7;
	stream->random ^= stream->random << 17;
	return (unsigned)((stream->random >> 11) % limit);
}

/* Header, id, then so many words that count up from it; at any word interrupts may write records of their own. */
static void write_nested(struct stream *stream, unsigned level)
{
	struct engine_output output;
	uint64_t id = stream->next_id++, words = random_below(stream, 24);
	uint16_t size = (uint16_t)(16 + words * 8);
	struct tally_record_header header = { .type = TALLY_RECORD_SAMPLE, .size = size };

	if (engine_output_begin(&output, stream->event, size)) {
		stream->dropped++;
		return;
	}
	stream->order[output.offset / 8 % stream->order_size] = id + 1;
	engine_output_copy(&output, &header, sizeof(header));
	engine_output_copy(&output, &id, sizeof(id));
	for (uint64_t i = 0; i < words; i++) {
		uint64_t word = id + i;
		if (level < 3 && random_below(stream, 20) == 0)
			write_nested(stream, level + 1);
		if (i + 1 == words)
			engine_output_skip(&output, 8);
		else
			engine_output_copy(&output, &word, sizeof(word));
	}
	engine_output_end(&output);
	stream->written++;
}

static void read_one(struct stream *stream)
{
	struct record record;
	uint64_t at = stream->page->data_tail, size = record_at(stream->page, at, &record), id = record.words[0];

	assert_true(stream->page->data_head - at >= size);
	stream->page->data_tail += size;
	if (record.header.type == TALLY_RECORD_LOST) {
		assert_int_equal(size, 24);
		stream->told_lost += record.words[1];
		return;
	}
	assert_int_equal(record.header.type, TALLY_RECORD_SAMPLE);
	assert_int_equal(stream->order[at / 8 % stream->order_size], id + 1);
	for (uint64_t i = 1; i < (size - 8) / 8; i++)
		assert_int_equal(record.words[i], i + 1 == (size - 8) / 8 ? 0 : id + i - 1);
	stream->read++;
}

static void d2_streams_are_legal_and_losses_exact(void **state)
{
	struct engine_fixture *fixture = *state;

	for (unsigned turn = 0; turn < 60; turn++) {
		int fd = open_faults(fixture);
		size_t pages = 1 + ((size_t)1 << turn % 3);
		struct stream stream = { .event = event_of(fixture, fd), .page = map(fixture, fd, pages),
					 .random = 88172645463325252u + turn, .order_size = 1 << 20 };
		unsigned greed = 1 + turn % 7, patience = 1 + turn / 7;
		stream.order = calloc(stream.order_size, sizeof(*stream.order));
		for (unsigned i = 0; i < 3000; i++) {
			write_nested(&stream, 0);
			if (random_below(&stream, patience) == 0)
				for (unsigned r = random_below(&stream, 2 * greed);
				     r-- && stream.page->data_tail != stream.page->data_head;)
					read_one(&stream);
		}
		while (stream.page->data_tail != stream.page->data_head)
			read_one(&stream);
		assert_int_equal(stream.read, stream.written);
		assert_int_equal(stream.read + stream.told_lost + stream.event->ring->lost, stream.next_id);
		assert_int_equal(stream.event->lost_samples, stream.dropped);
		free(stream.order);
		assert_int_equal(unmap_pages(fixture, stream.page, pages), 0);
		close_fd(fixture, fd);
	}
}

/* --- D3: overwriting, backward, paused, redirected ---------------------------------------------------------------------------- */

static void d3_read_only_overwrites(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct tally_user_page *page = map_read_only(fixture, fd, 2);
	struct record record;

	fault(fixture, 1000);
	assert_int_equal(page->data_head, 16000);
	for (uint64_t at = 16000 - 4096; at < 16000; at += 16) {
		assert_int_equal(record_at(page, at, &record), 16);
		assert_int_equal(record.header.type, TALLY_RECORD_SAMPLE);
	}
	assert_int_equal(event_of(fixture, fd)->lost_samples, 0);
}

static void d3_a_record_larger_than_the_ring_is_lost(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct engine_output output;

	map_read_only(fixture, fd, 2);
	assert_int_equal(engine_output_begin(&output, event_of(fixture, fd), 4104), -ENOSPC_);
	assert_int_equal(engine_output_begin(&output, event_of(fixture, fd), 4064), 0); /* and LOST, 24 */
	engine_output_skip(&output, 4064);
	engine_output_end(&output);
}

static void d3_backward(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	struct tally_user_page *page;
	struct record record;
	int fd;

	attr.flags |= TALLY_ATTR_WRITE_BACKWARD;
	attr.sample_type = TALLY_SAMPLE_TIME;
	fd = open_on(fixture, &attr, -1);
	page = map_read_only(fixture, fd, 2);
	for (unsigned i = 1; i <= 300; i++) {
		fixture->now_ns = 1000000000 + i;
		fault(fixture, 1);
		assert_int_equal(page->data_head, 0 - (uint64_t)i * 16);
	}
	/* Newest first. */
	for (unsigned i = 0; i < 256; i++) {
		assert_int_equal(record_at(page, page->data_head + i * 16, &record), 16);
		assert_int_equal(record.words[0], 1000000300 - i);
	}
}

static void d3_backward_with_a_reader_fills(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	struct tally_user_page *page;
	int fd;

	attr.flags |= TALLY_ATTR_WRITE_BACKWARD;
	fd = open_on(fixture, &attr, -1);
	page = map(fixture, fd, 2);
	fault(fixture, 300);
	assert_int_equal(page->data_head, 0 - (uint64_t)255 * 16);
	assert_int_equal(event_of(fixture, fd)->lost_samples, 45);
	page->data_tail = page->data_head;
	fault(fixture, 1);
	assert_int_equal(page->data_head, 0 - (uint64_t)(256 * 16 + 24));
}

static void d3_paused_loses(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct tally_user_page *page;
	struct told told;

	assert_int_equal(control(fixture, fd, TALLY_IOC_PAUSE_OUTPUT, 1), -EINVAL_);
	page = map(fixture, fd, 2);
	fault(fixture, 1);
	assert_int_equal(control(fixture, fd, TALLY_IOC_PAUSE_OUTPUT, 1), 0);
	fault(fixture, 5);
	assert_int_equal(page->data_head, 16);
	assert_int_equal(control(fixture, fd, TALLY_IOC_PAUSE_OUTPUT, 0), 0);
	fault(fixture, 1);
	told = drain(page);
	assert_int_equal(told.samples, 2);
	assert_int_equal(told.lost, 5);
}

static void d3_set_output(void **state)
{
	struct engine_fixture *fixture = *state;
	int owner = open_faults(fixture), guest = open_faults(fixture), third = open_faults(fixture);
	struct tally_user_page *page = map(fixture, owner, 3);
	void *address;

	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, guest), -EINVAL_);
	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, third), -EINVAL_); /* not mapped */
	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, 99), -9);
	assert_int_equal(control(fixture, owner, TALLY_IOC_SET_OUTPUT, -1), -EINVAL_); /* while it is mapped */
	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, -1), 0);
	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, owner), 0);
	fault(fixture, 1);
	assert_int_equal(page->data_head, 32);
	assert_int_equal(try_map(fixture, guest, 3, &address), -EBUSY_);
	assert_int_equal(try_map(fixture, guest, 2, &address), -EINVAL_);
	assert_int_equal(control(fixture, third, TALLY_IOC_SET_OUTPUT, guest), 0); /* where that one writes */
	fault(fixture, 1);
	assert_int_equal(page->data_head, 80);
	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, -1), 0);
	fault(fixture, 1);
	assert_int_equal(page->data_head, 112);

	assert_int_equal(unmap_pages(fixture, page, 3), 0);
	assert_int_equal(control(fixture, third, TALLY_IOC_PAUSE_OUTPUT, 0), -EINVAL_); /* no ring any more */
	assert_int_equal(try_map(fixture, third, 2, &address), 0);
}

static void d3_set_output_refuses_what_cannot_share(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	int owner = open_faults(fixture), bound = open_on(fixture, &attr, 0), other;

	map(fixture, owner, 2);
	assert_int_equal(control(fixture, bound, TALLY_IOC_SET_OUTPUT, owner), -EINVAL_);
	attr.flags = TALLY_ATTR_USE_CLOCKID;
	attr.clockid = 1;
	other = open_on(fixture, &attr, -1);
	assert_int_equal(control(fixture, other, TALLY_IOC_SET_OUTPUT, owner), -EINVAL_);
	attr.flags = TALLY_ATTR_WRITE_BACKWARD;
	other = open_on(fixture, &attr, -1);
	assert_int_equal(control(fixture, other, TALLY_IOC_SET_OUTPUT, owner), -EINVAL_);
	attr = faults();
	struct tally_engine_task *stranger = fixture_stranger(fixture, "stranger");
	other = tally_engine_open(fixture->engine, &attr, tally_engine_task_identity(stranger)->tid, -1, -1, 0);
	assert_true(other >= 0);
	assert_int_equal(control(fixture, other, TALLY_IOC_SET_OUTPUT, owner), -EINVAL_);
}

static void d3_fd_output_at_open(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	int owner = open_faults(fixture), guest;
	struct tally_user_page *page;

	guest = tally_engine_open(fixture->engine, &attr, 0, -1, owner, TALLY_FLAG_FD_OUTPUT | TALLY_FLAG_FD_NO_GROUP);
	assert_int_equal(guest, -EINVAL_); /* not mapped */
	page = map(fixture, owner, 2);
	guest = tally_engine_open(fixture->engine, &attr, 0, -1, owner, TALLY_FLAG_FD_OUTPUT | TALLY_FLAG_FD_NO_GROUP);
	assert_true(guest >= 0);
	fault(fixture, 1);
	assert_int_equal(page->data_head, 32);
}

static void d3_children_write_to_their_parents_ring(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	struct tally_user_page *page;
	struct tally_engine_task *child;
	struct record record;
	int fd;

	attr.flags |= TALLY_ATTR_INHERIT;
	fd = open_on(fixture, &attr, 0);
	page = map(fixture, fd, 2);
	child = fixture_fork(fixture, false);
	assert_non_null(child);
	fixture_switch(fixture, child);
	fault(fixture, 2);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(page->data_head, 32);
	record_at(page, 16, &record);
	assert_int_equal(record.words[0] >> 32, tally_engine_task_identity(child)->tid);
}

/* The kernel lets an inherited event be redirected to a ring without a CPU: then several CPUs come. */
static void d3_two_cpus_do_not_write_at_once(void **state)
{
	struct engine_fixture *fixture = *state;
	int owner = open_faults(fixture);
	struct tally_user_page *page = map(fixture, owner, 2);
	struct engine_event *event = event_of(fixture, owner);
	struct engine_output here, there, nested;

	assert_int_equal(engine_output_begin(&here, event, 16), 0);
	fixture_on(fixture, 1);
	assert_int_equal(engine_output_begin(&there, event, 16), -ENOSPC_);
	fixture_on(fixture, 0);
	assert_int_equal(engine_output_begin(&nested, event, 16), 0);
	engine_output_skip(&nested, 16);
	engine_output_end(&nested);
	engine_output_skip(&here, 16);
	engine_output_end(&here);
	fixture_on(fixture, 1);
	assert_int_equal(engine_output_begin(&there, event, 16), 0); /* after the LOST that tells of the other */
	engine_output_skip(&there, 16);
	engine_output_end(&there);
	fixture_on(fixture, 0);
	assert_int_equal(page->data_head, 48 + 24);
	assert_int_equal(event->lost_samples, 1);
}

/* --- C5: wake-ups ----------------------------------------------------------------------------------------------------------- */

/* How many records it takes until poll has something to tell, which it tells once. */
static unsigned until_woken(struct engine_fixture *fixture, int fd)
{
	unsigned count = 0, before = fixture->wakes;
	while (fixture->wakes == before) {
		assert_int_equal(tally_engine_poll(fixture->engine, fd, NULL), 0);
		assert_true(++count < 10000);
		fault(fixture, 1);
	}
	assert_int_equal(tally_engine_poll(fixture->engine, fd, NULL), POLLIN_);
	assert_int_equal(tally_engine_poll(fixture->engine, fd, NULL), 0);
	return count;
}

static void c5_wakes_at_half_the_buffer(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);

	map_read_only(fixture, fd, 3);
	assert_int_equal(until_woken(fixture, fd), 4096 / 16 + 1);
	assert_int_equal(until_woken(fixture, fd), 4096 / 16);
}

static void c5_wakes_by_events(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	int fd;

	attr.wakeup_events = 10;
	fd = open_on(fixture, &attr, -1);
	map_read_only(fixture, fd, 3);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(until_woken(fixture, fd), 10);
}

static void c5_wakes_by_watermark(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	int fd;

	attr.flags |= TALLY_ATTR_WATERMARK;
	attr.wakeup_events = 100; /* bytes: passed by the 7th record, 200 by the 13th, 300 by the 19th */
	fd = open_on(fixture, &attr, -1);
	map_read_only(fixture, fd, 3);
	assert_int_equal(until_woken(fixture, fd), 7);
	assert_int_equal(until_woken(fixture, fd), 6);
	assert_int_equal(until_woken(fixture, fd), 6);
}

static void c5_every_event_of_a_ring_is_woken(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	int owner, guest;

	attr.wakeup_events = 1;
	owner = open_on(fixture, &attr, -1);
	map(fixture, owner, 2);
	attr.sample_period = 0; /* writes nothing itself */
	guest = open_on(fixture, &attr, -1);
	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, owner), 0);
	fault(fixture, 1);
	assert_int_equal(fixture->wakes, 2);
	close_fd(fixture, guest);
	fault(fixture, 1);
	assert_int_equal(fixture->wakes, 3);
}

static void c5_lost_records_wake_too(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct tally_user_page *page = map(fixture, fd, 2);
	unsigned wakes;

	fault(fixture, 1000);
	wakes = fixture->wakes;
	assert_true(wakes);
	page->data_tail = page->data_head;
	fault(fixture, 200);
	assert_true(fixture->wakes > wakes);
}

/* --- D4: AUX --------------------------------------------------------------------------------------------------------------------- */

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

/* An event of a PMU that traces, mapped with 2 pages of data, and where its 4 pages of AUX are to be. */
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

static int map_area(struct world *world, int fd, size_t pages, bool writable, size_t offset_pages, void **area)
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
	page->aux_offset = 2 * FIXTURE_PAGE; /* within the ring */
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
	assert_int_equal(map_area(world, fd, 4, true, 7, &again), -EINVAL_); /* it is elsewhere already */

	assert_int_equal(unmap_pages(&world->fixture, area, 4), 0);
	assert_int_equal(aux_calls.frees, 0);
	assert_int_equal(unmap_pages(&world->fixture, area, 4), 0);
	assert_int_equal(aux_calls.frees, 1);
	assert_int_equal(aux_calls.stops, 1); /* before the area went */
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
	assert_int_equal(tally_engine_aux_begin(&event_of(&world->fixture, fd)->hw, &aux), -EINVAL_);
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

static void aux_record(const struct tally_user_page *page, uint64_t at, uint64_t offset, uint64_t size, uint64_t flags)
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
	tally_engine_aux_end(event, &aux, 0, 2); /* nothing came: no record */
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
	aux.head = 50000; /* round and round */
	tally_engine_aux_end(event, &aux, 0, 0);
	assert_int_equal(page->aux_head, 50000);
	assert_int_equal(page->data_head, 0); /* that it was overwritten alone is no news */
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

/* --- D5: the user page ----------------------------------------------------------------------------------------------------------- */

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

/* What the loop of self-monitoring programs makes of the page. */
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
	fixture_pmu_happen(&world->pmu, 12345); /* counters do not start at 0 */
	attr = fixture_attr(world->pmu.pmu.type, 0);
	attr.sample_period = 1000; /* folds now and then */
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
	assert_int_equal(unmap_pages(fixture, page, 3), -EINVAL_); /* by nobody */
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
	/* cycles × mult >> shift + time_zero is now; with time_offset, the time since the page was written. */
	uint64_t cycles = (fixture->now_ns - 500) * 2 / 3;
	assert_in_range(cycles * 3 / 2 + page->time_offset, 3998, 4000);
	assert_int_equal(page->capabilities, TALLY_CAP_BIT0_IS_DEPRECATED | TALLY_CAP_USER_TIME | TALLY_CAP_USER_TIME_ZERO);
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

#define RING_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RING_TEST(d1_sizes),
		RING_TEST(d1_private_and_inherited_are_refused),
		RING_TEST(d1_header_page_alone_takes_no_records),
		RING_TEST(d1_a_second_mapping_shares),
		RING_TEST(d1_part_of_a_mapping_stays),
		RING_TEST(d1_budget),
		RING_TEST(d1_budget_grows_with_online_cpus),
		RING_TEST(d1_without_memory_nothing_is_left),
		RING_TEST(d1_a_mapping_keeps_the_event),
		RING_TEST(d1_exec_unmaps),
		RING_TEST(d2_full_by_a_word_then_lost_is_exact),
		RING_TEST(d2_lost_has_the_trailer),
		RING_TEST(d2_records_wrap),
		RING_TEST(d2_the_tail_is_not_trusted),
		RING_TEST(d2_streams_are_legal_and_losses_exact),
		RING_TEST(d3_read_only_overwrites),
		RING_TEST(d3_a_record_larger_than_the_ring_is_lost),
		RING_TEST(d3_backward),
		RING_TEST(d3_backward_with_a_reader_fills),
		RING_TEST(d3_paused_loses),
		RING_TEST(d3_set_output),
		RING_TEST(d3_set_output_refuses_what_cannot_share),
		RING_TEST(d3_fd_output_at_open),
		RING_TEST(d3_children_write_to_their_parents_ring),
		RING_TEST(d3_two_cpus_do_not_write_at_once),
		RING_TEST(c5_wakes_at_half_the_buffer),
		RING_TEST(c5_wakes_by_events),
		RING_TEST(c5_wakes_by_watermark),
		RING_TEST(c5_every_event_of_a_ring_is_woken),
		RING_TEST(c5_lost_records_wake_too),
		RING_TEST(d4_area_is_where_the_page_says),
		RING_TEST(d4_the_area_outlives_the_mapping_of_the_ring),
		RING_TEST(d4_setup_may_fail),
		RING_TEST(d4_records_tell_what_was_written),
		RING_TEST(d4_without_room_the_event_stops),
		RING_TEST(d4_watermark),
		RING_TEST(d4_snapshot),
		RING_TEST(d4_set_output_between_tracers),
		RING_TEST(d5_fields_at_mapping),
		RING_TEST(d5_page_gives_what_read_gives),
		cmocka_unit_test(d5_clock_of_the_page),
		RING_TEST(d5_a_spoilt_lock_is_mended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
