/* The shop's tracepoints in an engine of the test's own, for the tests of SPEC part E. */
#ifndef TALLY_TESTS_SHOP_FIXTURE_H
#define TALLY_TESTS_SHOP_FIXTURE_H

#include "test.h"

#include "engine_fixture.h"
#include "targets/shop_tracepoints.h"

#include <errno.h>

enum { RING_PAGES = 8, RING_SIZE = (1 + RING_PAGES) * FIXTURE_PAGE };

struct shop {
	struct engine_fixture fixture;
	struct tally_engine *engine;
};

static inline void start(struct shop *shop, unsigned cpus)
{
	fixture_init(&shop->fixture, cpus);
	assert_true(fixture_start(&shop->fixture));
	shop->engine = shop->fixture.engine;
	assert_int_equal(tally_trace_register(shop->engine, &tally_trace_group_shop), 0);
}

/* Ends the test.  All listeners have gone, so the events can be unregistered. */
static inline void end(struct shop *shop)
{
	assert_int_equal(tally_trace_unregister(shop->engine, &tally_trace_group_shop), 0);
	fixture_end(&shop->fixture);
}

static inline struct tally_attr attr_of(const struct tally_trace_event *event)
{
	return fixture_attr(TALLY_TYPE_TRACEPOINT, event->id);
}

static inline int open_on(struct shop *shop, const struct tally_trace_event *event)
{
	struct tally_attr attr = attr_of(event);
	int fd = fixture_open(&shop->fixture, &attr, -1);
	assert_true(fd >= 0);
	return fd;
}

static inline uint64_t value(struct shop *shop, int fd)
{
	return fixture_value(&shop->fixture, fd);
}

static inline void close_fd(struct shop *shop, int fd)
{
	assert_int_equal(tally_engine_close(shop->engine, fd), 0);
}

struct sampled {
	int fd;
	struct tally_user_page *page;
	uint64_t tail;
};

/* Samples each hit with these fields, on pid 0 and any CPU. */
static inline struct sampled sample(struct shop *shop, const struct tally_trace_event *event,
				    uint64_t sample_type)
{
	struct tally_attr attr = attr_of(event);
	struct sampled sampled = { 0 };
	void *memory;
	attr.sample_period = 1;
	attr.sample_type = sample_type;
	sampled.fd = fixture_open(&shop->fixture, &attr, -1);
	assert_true(sampled.fd >= 0);
	assert_int_equal(
		tally_engine_mmap(shop->engine, sampled.fd, RING_SIZE, true, true, 0, &memory), 0);
	sampled.page = memory;
	return sampled;
}

/* Returns the next record's payload, or NULL if there is none.  The rings here don't wrap. */
static inline const uint8_t *next(struct sampled *sampled, uint16_t *size)
{
	const uint8_t *data = (const uint8_t *)sampled->page + FIXTURE_PAGE;
	struct tally_record_header header;
	if (sampled->tail == sampled->page->data_head)
		return NULL;
	memcpy(&header, data + sampled->tail, sizeof(header));
	assert_int_equal(header.type, 9);
	const uint8_t *payload = data + sampled->tail + sizeof(header);
	sampled->tail += header.size;
	assert_true(sampled->tail <= RING_PAGES * FIXTURE_PAGE);
	*size = (uint16_t)(header.size - sizeof(header));
	return payload;
}

/* Returns the raw record of the next sample, whose only field is RAW. */
static inline const void *next_raw(struct sampled *sampled, uint32_t *raw_size)
{
	uint16_t size = 0;
	const uint8_t *payload = next(sampled, &size);
	if (!payload)
		return NULL;
	memcpy(raw_size, payload, 4);
	assert_int_equal(*raw_size + 4, size);
	return payload + 4;
}

static inline void finish(struct shop *shop, struct sampled *sampled)
{
	assert_int_equal(tally_engine_munmap(shop->engine, sampled->page, RING_SIZE), 0);
	close_fd(shop, sampled->fd);
}

static const uint64_t parts[] = { 11, 22, 0x3300000000 };

static __attribute__((noinline, unused)) void place_order(uint64_t id)
{
	TALLY_TRACE(order_placed, id, -5, "blue pen", parts, 3);
}

/* --- text listeners ------------------------------------------------------- */

struct lines {
	char text[64][512];
	unsigned count;
};

static inline void keep_line(void *data, const struct tally_trace_line *line)
{
	struct lines *lines = data;
	assert_int_equal(strlen(line->text), line->length);
	if (lines->count < 64)
		snprintf(lines->text[lines->count], sizeof(lines->text[0]), "%s", line->text);
	lines->count++;
}

#endif
