/* The engine's rings: SPEC D1 to D3, and the wake-ups of C5. */
#include "engine_ring_fixture.h"

/* --- D1: mapping ---------------------------------------------------------- */

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
	/* mmap(2) maps whole pages only. */
	assert_int_equal(
		tally_engine_mmap(fixture->engine, fd, FIXTURE_PAGE + 1, true, true, 0, &address),
		0);
	assert_int_equal(tally_engine_munmap(fixture->engine, address, FIXTURE_PAGE + 1), 0);
	close_fd(fixture, fd);
}

static void d1_private_and_inherited_are_refused(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	int fd = open_faults(fixture), inherited, bound;
	void *address;

	assert_int_equal(
		tally_engine_mmap(fixture->engine, fd, 2 * FIXTURE_PAGE, true, false, 0, &address),
		-EINVAL_);
	attr.flags |= TALLY_ATTR_INHERIT;
	inherited = open_on(fixture, &attr, -1);
	bound = open_on(fixture, &attr, 0);
	assert_int_equal(try_map(fixture, inherited, 2, &address), -EINVAL_);
	assert_int_equal(try_map(fixture, bound, 2, &address), 0);
	assert_int_equal(
		tally_engine_mmap(fixture->engine, 99, 2 * FIXTURE_PAGE, true, true, 0, &address),
		-9);
	/* An AUX area without a ring. */
	assert_int_equal(tally_engine_mmap(fixture->engine, fd, 2 * FIXTURE_PAGE, true, true,
					   3 * FIXTURE_PAGE, &address),
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
	assert_int_equal(locked, 3); /* charged once */
	assert_int_equal(try_map(fixture, fd, 5, &address), -EINVAL_);
	assert_int_equal(try_map(fixture, fd, 1, &address), -EINVAL_);
	/* The ring exists until the second mapping goes away. */
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

/* The budget is mlock_kb, 516, for each CPU: 129 pages × 2; then the host's limit applies. */
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
	/* 129 from the engine's budget, 128 from the host's */
	assert_int_equal(try_map(fixture, second, 257, &address), 0);
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

/* --- D2: records ---------------------------------------------------------- */

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
	page->data_tail = 16; /* no room for LOST plus a sample */
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

	/* 40 bytes: does not divide 4096 */
	attr.sample_type |= TALLY_SAMPLE_TIME | TALLY_SAMPLE_ADDR | TALLY_SAMPLE_IP;
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

/* A user may write anything there, and damages only their own data. */
static void d2_the_tail_is_not_trusted(void **state)
{
	struct engine_fixture *fixture = *state;
	int fd = open_faults(fixture);
	struct tally_user_page *page = map(fixture, fd, 2);
	uint64_t seed = 1;

	for (unsigned i = 0; i < 5000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		page->data_tail = i % 3 ? seed : page->data_head + (seed >> 60) - 8;
		page->data_head = seed >> 7; /* the engine does not read it again */
		page->data_size = seed;
		page->data_offset = seed >> 3;
		page->lock = (uint32_t)seed;
		fault(fixture, 1);
		assert_int_equal(page->data_head % 8, 0);
	}
}

/* --- D2 as a property: random sizes, nesting, reader's speeds ------------- */

struct stream {
	struct engine_event *event;
	struct tally_user_page *page;
	uint64_t random, written, dropped, next_id, told_lost, read;
	uint64_t *order;  /* by position / 8: id + 1 of the newest record placed there */
	size_t order_size;
};

static unsigned random_below(struct stream *stream, unsigned limit)
{
	stream->random ^= stream->random << 13;
	stream->random ^= stream->random >> 7;
	stream->random ^= stream->random << 17;
	return (unsigned)((stream->random >> 11) % limit);
}

/* Writes a header, an id, then words that count up from it.  At any word, interrupts may write
 * records of their own. */
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
	uint64_t at = stream->page->data_tail, size = record_at(stream->page, at, &record),
		 id = record.words[0];

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
		struct stream stream = { .event = event_of(fixture, fd),
					 .page = map(fixture, fd, pages),
					 .random = 88172645463325252u + turn,
					 .order_size = 1 << 20 };
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
		assert_int_equal(stream.read + stream.told_lost + stream.event->ring->lost,
				 stream.next_id);
		assert_int_equal(stream.event->lost_samples, stream.dropped);
		free(stream.order);
		assert_int_equal(unmap_pages(fixture, stream.page, pages), 0);
		close_fd(fixture, fd);
	}
}

/* --- D3: overwriting, backward, paused, redirected ------------------------ */

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
	/* and LOST, 24 bytes */
	assert_int_equal(engine_output_begin(&output, event_of(fixture, fd), 4064), 0);
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
	int owner = open_faults(fixture), guest = open_faults(fixture),
	    third = open_faults(fixture);
	struct tally_user_page *page = map(fixture, owner, 3);
	void *address;

	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, guest), -EINVAL_);
	/* the ring is not mapped */
	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, third), -EINVAL_);
	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, 99), -9);
	/* not while it is mapped */
	assert_int_equal(control(fixture, owner, TALLY_IOC_SET_OUTPUT, -1), -EINVAL_);
	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, -1), 0);
	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, owner), 0);
	fault(fixture, 1);
	assert_int_equal(page->data_head, 32);
	assert_int_equal(try_map(fixture, guest, 3, &address), -EBUSY_);
	assert_int_equal(try_map(fixture, guest, 2, &address), -EINVAL_);
	/* it then writes where `guest` writes */
	assert_int_equal(control(fixture, third, TALLY_IOC_SET_OUTPUT, guest), 0);
	fault(fixture, 1);
	assert_int_equal(page->data_head, 80);
	assert_int_equal(control(fixture, guest, TALLY_IOC_SET_OUTPUT, -1), 0);
	fault(fixture, 1);
	assert_int_equal(page->data_head, 112);

	assert_int_equal(unmap_pages(fixture, page, 3), 0);
	/* the event has no ring any more */
	assert_int_equal(control(fixture, third, TALLY_IOC_PAUSE_OUTPUT, 0), -EINVAL_);
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
	other = tally_engine_open(fixture->engine, &attr, tally_engine_task_identity(stranger)->tid,
				  -1, -1, 0);
	assert_true(other >= 0);
	assert_int_equal(control(fixture, other, TALLY_IOC_SET_OUTPUT, owner), -EINVAL_);
}

static void d3_fd_output_at_open(void **state)
{
	struct engine_fixture *fixture = *state;
	struct tally_attr attr = faults();
	int owner = open_faults(fixture), guest;
	struct tally_user_page *page;

	guest = tally_engine_open(fixture->engine, &attr, 0, -1, owner,
				  TALLY_FLAG_FD_OUTPUT | TALLY_FLAG_FD_NO_GROUP);
	assert_int_equal(guest, -EINVAL_); /* not mapped */
	page = map(fixture, owner, 2);
	guest = tally_engine_open(fixture->engine, &attr, 0, -1, owner,
				  TALLY_FLAG_FD_OUTPUT | TALLY_FLAG_FD_NO_GROUP);
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

/* The kernel allows redirecting an inherited event to a ring without a CPU; then several CPUs write
 * to it. */
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
	/* comes after the LOST record about the other write */
	assert_int_equal(engine_output_begin(&there, event, 16), 0);
	engine_output_skip(&there, 16);
	engine_output_end(&there);
	fixture_on(fixture, 0);
	assert_int_equal(page->data_head, 48 + 24);
	assert_int_equal(event->lost_samples, 1);
}

/* --- C5: wake-ups --------------------------------------------------------- */

/* Returns how many records it takes until poll reports data; poll reports it once. */
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
	/* in bytes: record 7 passes 100, record 13 passes 200, record 19 passes 300 */
	attr.wakeup_events = 100;
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
	attr.sample_period = 0; /* it writes nothing itself */
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
