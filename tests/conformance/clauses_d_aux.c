/* D4: tracing PMUs and the AUX area, and the records that such a PMU writes (C4).
 *
 * The simulated machine's tracer writes each branch's running number as 8 bytes.  loop() makes as
 * many branches as it has iterations, and no other user-mode code branches. */
#include "ring_walk.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

enum { WORD = 8, TRUNCATED = 1, OVERWRITE = 2, PARTIAL = 4, READ_WRITE = PROT_READ | PROT_WRITE };

struct tracer {
	struct ring ring;
	const uint64_t *area;
	size_t size;
	uint64_t at; /* bytes of the trace read so far */
};

static struct tally_attr tracer_attr(struct surface *surface)
{
	return ring_attr((uint32_t)CALL(pmu, "trace"), 0, 0, TALLY_SAMPLE_TID);
}

/* Maps the area where the user page's words say.  Returns 0 or -errno. */
static int map_area_as(struct tracer *tracer, size_t pages, int protection)
{
	struct surface *surface = tracer->ring.surface;
	int error = 0;
	tracer->size = pages * surface->page_size;
	tracer->ring.page->aux_offset = tracer->ring.map_size;
	tracer->ring.page->aux_size = tracer->size;
	tracer->area = CALL(mmap, tracer->ring.fd, tracer->size, protection, MAP_SHARED,
			    tracer->ring.map_size, &error);
	return tracer->area ? 0 : error;
}

static int open_tracer(struct tracer *tracer, struct surface *surface,
		       const struct tally_attr *attr, size_t aux_pages, int protection)
{
	memset(tracer, 0, sizeof(*tracer));
	int fd = ring_open(&tracer->ring, surface, attr, 0, -1, 4);
	return fd < 0 ? fd : map_area_as(tracer, aux_pages, protection);
}
#define CHECK_TRACER(...) CHECK_EQUAL(open_tracer(__VA_ARGS__), 0)

static void trace_branches(struct tracer *tracer, uint64_t count)
{
	struct surface *surface = tracer->ring.surface;
	CALL(ioctl, tracer->ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, count);
	CALL(ioctl, tracer->ring.fd, TALLY_IOC_DISABLE, 0);
}

static uint64_t head_of(const struct tracer *tracer)
{
	return __atomic_load_n(&tracer->ring.page->aux_head, __ATOMIC_ACQUIRE);
}

static uint64_t word_at(const struct tracer *tracer, uint64_t position)
{
	return tracer->area[position % tracer->size / WORD];
}

/* Reads `count` words and gives the space back.  Returns false unless they are the branches from
 * `number` on. */
static bool read_words(struct tracer *tracer, uint64_t number, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++, tracer->at += WORD)
		if (tracer->at >= head_of(tracer) || word_at(tracer, tracer->at) != number + i)
			return false;
	__atomic_store_n(&tracer->ring.page->aux_tail, tracer->at, __ATOMIC_RELEASE);
	return true;
}

static int poll_of(struct tracer *tracer)
{
	struct surface *surface = tracer->ring.surface;
	struct pollfd ready = { .fd = tracer->ring.fd, .events = POLLIN };
	CALL(poll, &ready, 1, 0);
	return ready.revents;
}

/* --- the mapping ---------------------------------------------------------- */

static int area_is_where_the_page_says(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	struct tracer tracer;
	CHECK_TRACER(&tracer, surface, &attr, 4, READ_WRITE);
	CHECK_EQUAL(head_of(&tracer), 0);
	CHECK_EQUAL(tracer.ring.page->aux_tail, 0);
	const uint64_t *first = tracer.area;
	CHECK_EQUAL(map_area_as(&tracer, 4, READ_WRITE), 0);
	trace_branches(&tracer, 10);
	CHECK_EQUAL(memcmp(first, tracer.area, 10 * sizeof(*first)), 0);
	CHECK_EQUAL(read_words(&tracer, 1, 10), true);
	return 0;
}

static int area_elsewhere_einval(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	struct tracer tracer = { .size = 0 };
	size_t page = surface->page_size;
	int error = 0, fd = ring_open(&tracer.ring, surface, &attr, 0, -1, 4);
	CHECK(fd >= 0);
	struct tally_user_page *words = tracer.ring.page;
	const struct { uint64_t said_offset, said_size, offset, size; } places[] = {
		{ 0, 0, 5, 4 },                          /* the page gives no place */
		{ 5, 4, 6, 4 }, { 5, 4, 5, 2 },          /* the call and the page differ */
		{ 4, 4, 4, 4 },                          /* the place of the data */
		{ 5, 3, 5, 3 },                          /* not a power of two */
	};
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		words->aux_offset = places[i].said_offset * page;
		words->aux_size = places[i].said_size * page;
		CHECK(!CALL(mmap, fd, places[i].size * page, READ_WRITE, MAP_SHARED,
			    places[i].offset * page, &error));
		CHECK_ERROR(error, EINVAL);
	}
	CHECK_EQUAL(map_area_as(&tracer, 4, READ_WRITE), 0);
	words->aux_size = 2 * page; /* it has 4 pages already */
	CHECK(!CALL(mmap, fd, 2 * page, READ_WRITE, MAP_SHARED, 5 * page, &error));
	CHECK_ERROR(error, EINVAL);
	return 0;
}

static int area_without_a_ring_einval(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	int error = 0, fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK(!CALL(mmap, fd, 4 * surface->page_size, READ_WRITE, MAP_SHARED,
		    5 * surface->page_size, &error));
	CHECK_ERROR(error, EINVAL);
	return 0;
}

static int maps_too_much(struct surface *surface, void *argument)
{
	struct tally_attr attr = tracer_attr(surface);
	struct tracer tracer;
	(void)argument;
	if (CALL(drop_privileges))
		return 2;
	int error = open_tracer(&tracer, surface, &attr, ((size_t)1 << 30) / surface->page_size,
				READ_WRITE);
	return error == -EPERM ? 0 : 1;
}

static int area_past_the_mlock_budget_eperm(struct surface *surface)
{
	pid_t child = CALL(spawn, SURFACE_PROCESS, maps_too_much, NULL);
	CHECK(child > 0);
	CHECK_EQUAL(CALL(wait, child), 0);
	return 0;
}

static int unmapping_ends_the_trace(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	struct tracer tracer;
	struct tally_record record;
	CHECK_TRACER(&tracer, surface, &attr, 4, READ_WRITE);
	CALL(ioctl, tracer.ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, 100);
	CHECK_EQUAL(CALL(munmap, (void *)(uintptr_t)tracer.area, tracer.size), 0);
	CHECK_FOUND(&tracer.ring, TALLY_RECORD_AUX, &record); /* the trace so far */
	CHECK_EQUAL(record.aux.size, 100 * WORD);
	CALL(loop, 100);
	CALL(sleep, 1000000);
	CHECK_EQUAL(ring_count(&tracer.ring, TALLY_RECORD_AUX), 0);
	/* the next area may have another size */
	CHECK_EQUAL(map_area_as(&tracer, 2, READ_WRITE), 0);
	return 0;
}

/* --- AUX records ---------------------------------------------------------- */

static int records_tell_what_came(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	struct tracer tracer;
	struct tally_record record;
	attr.flags |= TALLY_ATTR_SAMPLE_ID_ALL;
	CHECK_TRACER(&tracer, surface, &attr, 4, READ_WRITE);
	for (unsigned i = 0; i < 3; i++) {
		trace_branches(&tracer, 100);
		CHECK_FOUND(&tracer.ring, TALLY_RECORD_AUX, &record);
		CHECK_EQUAL(record.header.size, 8 + 3 * 8 + 8);
		CHECK_EQUAL(record.header.misc, 0);
		CHECK_EQUAL(record.aux.offset, i * 100 * WORD);
		CHECK_EQUAL(record.aux.size, 100 * WORD);
		CHECK_EQUAL(record.aux.flags, 0);
		CHECK_EQUAL(record.sample_id.tid, CALL(self));
		CHECK_EQUAL(head_of(&tracer), (i + 1) * 100 * WORD);
		CHECK_EQUAL(read_words(&tracer, 1 + 100 * i, 100), true);
	}
	CHECK_EQUAL(ring_event_count(surface, tracer.ring.fd), 300);
	return 0;
}

static int nothing_traced_no_record(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	struct tracer tracer;
	CHECK_TRACER(&tracer, surface, &attr, 4, READ_WRITE);
	trace_branches(&tracer, 0);
	CHECK_EQUAL(ring_count(&tracer.ring, TALLY_RECORD_AUX), 0);
	CHECK_EQUAL(head_of(&tracer), 0);
	return 0;
}

/* Traces 300 words at a time into an area of 512. */
static int trace_wraps_behind_the_tail(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	struct tracer tracer;
	struct tally_record record;
	uint64_t told = 0;
	int got;
	CHECK_TRACER(&tracer, surface, &attr, 1, READ_WRITE);
	for (unsigned i = 0; i < 20; i++) {
		trace_branches(&tracer, 300);
		CHECK_EQUAL(read_words(&tracer, 1 + 300 * i, 300), true);
	}
	while ((got = ring_next(&tracer.ring, &record)) == 1) {
		if (record.header.type != TALLY_RECORD_AUX)
			continue;
		CHECK_EQUAL(record.aux.offset, told);
		CHECK_EQUAL(record.aux.flags, 0);
		told += record.aux.size;
	}
	CHECK_EQUAL(got, 0);
	CHECK_EQUAL(told, 6000 * WORD);
	CHECK_EQUAL(head_of(&tracer), told);
	return 0;
}

/* Returns the flags of the last AUX record; ~0: there was no record. */
static uint64_t last_flags(struct tracer *tracer)
{
	struct tally_record record;
	uint64_t flags = ~0ull;
	while (ring_find(&tracer->ring, TALLY_RECORD_AUX, &record) == 1)
		flags = record.aux.flags;
	return flags;
}

static int full_area_truncates_and_disables(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	/* head never reaches tail */
	uint64_t first[2], second[2], fit = surface->page_size / WORD - 1;
	struct tracer tracer;
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED;
	CHECK_TRACER(&tracer, surface, &attr, 1, READ_WRITE);
	CALL(ioctl, tracer.ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, fit + 100);
	CHECK_EQUAL(head_of(&tracer), fit * WORD);
	CHECK_EQUAL(last_flags(&tracer), TRUNCATED);
	CHECK_EQUAL(poll_of(&tracer), POLLIN);
	CHECK_EQUAL(CALL(read, tracer.ring.fd, first, sizeof(first)), sizeof(first));
	CALL(loop, 1000);
	CHECK_EQUAL(CALL(read, tracer.ring.fd, second, sizeof(second)), sizeof(second));
	CHECK_EQUAL(second[1], first[1]); /* the event is off */
	CHECK_EQUAL(second[0], first[0]);
	CHECK_EQUAL(read_words(&tracer, 1, fit), true);
	trace_branches(&tracer, 50);
	CHECK_EQUAL(last_flags(&tracer), 0);
	CHECK_EQUAL(head_of(&tracer), (fit + 50) * WORD);
	return 0;
}

static int gaps_are_partial(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	struct tracer tracer;
	struct tally_record record;
	attr.config = 10; /* the tracer's own queue overflows at each eleventh branch */
	CHECK_TRACER(&tracer, surface, &attr, 4, READ_WRITE);
	trace_branches(&tracer, 100);
	CHECK_FOUND(&tracer.ring, TALLY_RECORD_AUX, &record);
	CHECK_EQUAL(record.aux.flags, PARTIAL);
	CHECK_EQUAL(record.aux.size, (100 - 9) * WORD);
	CHECK_EQUAL(read_words(&tracer, 1, 10), true);
	CHECK_EQUAL(read_words(&tracer, 12, 10), true);
	return 0;
}

/* --- watermarks, snapshots, ITRACE_START ---------------------------------- */

static int watermark_wakes(struct surface *surface)
{
	static const uint32_t marks[] = { 128 * WORD, 0 };
	for (unsigned i = 0; i < 2; i++) {
		struct tally_attr attr = tracer_attr(surface);
		/* default: half the area */
		uint64_t mark = marks[i] ? marks[i] : 2 * surface->page_size;
		struct tracer tracer;
		attr.aux_watermark = marks[i];
		CHECK_TRACER(&tracer, surface, &attr, 4, READ_WRITE);
		CHECK_EQUAL(poll_of(&tracer), 0);
		trace_branches(&tracer, mark / WORD - 10);
		CHECK_EQUAL(poll_of(&tracer), 0);
		trace_branches(&tracer, 20);
		CHECK_EQUAL(poll_of(&tracer), POLLIN);
		CHECK_EQUAL(poll_of(&tracer), 0);
	}
	return 0;
}

/* The trace runs on: passing the watermark writes the records. */
static int watermark_ends_a_stretch(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	struct tracer tracer;
	attr.aux_watermark = 64 * WORD;
	CHECK_TRACER(&tracer, surface, &attr, 4, READ_WRITE);
	CALL(ioctl, tracer.ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, 200);
	CHECK_EQUAL(head_of(&tracer), 3 * 64 * WORD);
	CHECK_EQUAL(ring_count(&tracer.ring, TALLY_RECORD_AUX), 3);
	CHECK_EQUAL(poll_of(&tracer), POLLIN);
	CALL(ioctl, tracer.ring.fd, TALLY_IOC_DISABLE, 0);
	CHECK_EQUAL(head_of(&tracer), 200 * WORD);
	return 0;
}

static int snapshot_keeps_the_newest(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	struct tracer tracer;
	struct tally_record record;
	uint64_t fit = surface->page_size / WORD;
	attr.aux_watermark = 64 * WORD;
	CHECK_TRACER(&tracer, surface, &attr, 1, PROT_READ);
	trace_branches(&tracer, 2000);
	CHECK_FOUND(&tracer.ring, TALLY_RECORD_AUX, &record);
	CHECK_EQUAL(record.aux.flags, OVERWRITE);
	/* the offset is the end: the beginning was overwritten */
	CHECK_EQUAL(record.aux.offset, head_of(&tracer));
	CHECK_EQUAL(record.aux.size, tracer.size);
	CHECK_EQUAL(ring_count(&tracer.ring, TALLY_RECORD_AUX), 0);
	CHECK_EQUAL(poll_of(&tracer), 0); /* an overwritten area does not wake readers */
	for (uint64_t back = 1; back <= fit; back++)
		CHECK_EQUAL(word_at(&tracer, head_of(&tracer) - back * WORD), 2000 - back + 1);
	trace_branches(&tracer, 10);
	CHECK_EQUAL(word_at(&tracer, head_of(&tracer) - WORD), 2010);
	return 0;
}

static int itrace_start_comes_first(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface);
	struct tracer tracer;
	struct tally_record record;
	CHECK_TRACER(&tracer, surface, &attr, 4, READ_WRITE);
	trace_branches(&tracer, 10);
	CHECK_EQUAL(ring_next(&tracer.ring, &record), 1);
	CHECK_EQUAL(record.header.type, TALLY_RECORD_ITRACE_START);
	CHECK_EQUAL(record.itrace_start.pid, CALL(process));
	CHECK_EQUAL(record.itrace_start.tid, CALL(self));
	CHECK_EQUAL(ring_next(&tracer.ring, &record), 1);
	CHECK_EQUAL(record.header.type, TALLY_RECORD_AUX);
	trace_branches(&tracer, 10);
	CHECK_EQUAL(ring_count(&tracer.ring, TALLY_RECORD_ITRACE_START), 0);
	return 0;
}

static int others_write_to_the_tracers_ring(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface),
			  faults = ring_faults_attr(1, TALLY_SAMPLE_TID);
	struct tracer tracer;
	CHECK_TRACER(&tracer, surface, &attr, 4, READ_WRITE);
	int fd = CALL(open, &faults, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_EQUAL(CALL(ioctl, fd, TALLY_IOC_SET_OUTPUT, (uintptr_t)tracer.ring.fd), 0);
	trace_branches(&tracer, 10);
	ring_run_faults(surface, fd, 5);
	CHECK_EQUAL(ring_count(&tracer.ring, 0), 1 + 1 + 5); /* ITRACE_START, AUX, samples */
	return 0;
}

/* --- events whose overflows go into the trace ----------------------------- */

#define ITEM (1ull << 63) /* marks a word that is not a branch */

static struct tally_attr output_attr(uint64_t period)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_HARDWARE, TALLY_HW_INSTRUCTIONS, period,
					   TALLY_SAMPLE_IP);
	attr.flags = (attr.flags & ~TALLY_ATTR_DISABLED) | TALLY_ATTR_AUX_OUTPUT;
	return attr;
}

static int aux_output_goes_into_the_trace(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface), output = output_attr(50);
	struct tracer tracer;
	struct tally_record record;
	unsigned items = 0;
	CHECK_TRACER(&tracer, surface, &attr, 4, READ_WRITE);
	int fd = CALL(open, &output, 0, -1, tracer.ring.fd, TALLY_FLAG_FD_OUTPUT);
	CHECK(fd >= 0);
	trace_branches(&tracer, 100);
	CHECK_FOUND(&tracer.ring, TALLY_RECORD_AUX_OUTPUT_HW_ID, &record);
	uint64_t id = record.hw_id;
	CHECK_EQUAL(ring_count(&tracer.ring, TALLY_RECORD_SAMPLE), 0);
	CHECK_EQUAL(head_of(&tracer), (100 + 4) * WORD);
	for (uint64_t at = 0; at < head_of(&tracer); at += WORD) {
		if (!(word_at(&tracer, at) & ITEM))
			continue;
		items++;
		CHECK_EQUAL(word_at(&tracer, at), ITEM | id);
		/* 2 instructions and 1 branch in each iteration */
		CHECK_EQUAL(word_at(&tracer, at - WORD), 25 * items);
	}
	CHECK_EQUAL(items, 4);
	return 0;
}

static int aux_output_wants_a_tracer(struct surface *surface)
{
	struct tally_attr attr = output_attr(50), plain = ring_faults_attr(1, TALLY_SAMPLE_IP);
	int leader = CALL(open, &plain, 0, -1, -1, 0);
	CHECK(leader >= 0);
	CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EINVAL);
	CHECK_ERROR(CALL(open, &attr, 0, -1, leader, 0), EINVAL);
	return 0;
}

static int aux_output_ends_with_the_tracer(struct surface *surface)
{
	struct tally_attr attr = tracer_attr(surface), output = output_attr(50);
	struct tracer tracer;
	uint64_t count;
	CHECK_TRACER(&tracer, surface, &attr, 4, READ_WRITE);
	int fd = CALL(open, &output, 0, -1, tracer.ring.fd, 0);
	CHECK_EQUAL(CALL(read, fd, &count, sizeof(count)), sizeof(count));
	CHECK_EQUAL(CALL(munmap, (void *)(uintptr_t)tracer.area, tracer.size), 0);
	CHECK_EQUAL(CALL(munmap, tracer.ring.page, tracer.ring.map_size), 0);
	CHECK_EQUAL(CALL(close, tracer.ring.fd), 0);
	/* end of file: the event is in ERROR */
	CHECK_EQUAL(CALL(read, fd, &count, sizeof(count)), 0);
	return 0;
}

/* Two precise counters overflow with the same instruction: the hardware's record belongs to
 * neither. */
static int dropped_by_the_hardware(struct surface *surface)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_HARDWARE, TALLY_HW_INSTRUCTIONS, 1000,
					   TALLY_SAMPLE_IP);
	struct ring rings[2];
	struct tally_record record;
	attr.flags |= 2ull << TALLY_ATTR_PRECISE_IP_SHIFT;
	CHECK_RING(&rings[0], surface, &attr, 0, -1, 1);
	attr.sample_period = 3000;
	CHECK_RING(&rings[1], surface, &attr, 0, -1, 1);
	CALL(ioctl, rings[1].fd, TALLY_IOC_ENABLE, 0); /* between the calls no user code runs */
	CALL(ioctl, rings[0].fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, 3000);
	CALL(ioctl, rings[0].fd, TALLY_IOC_DISABLE, 0);
	for (unsigned i = 0; i < 6; i++) {
		CHECK_EQUAL(ring_next(&rings[0], &record), 1);
		CHECK_EQUAL(record.header.type,
			    i % 3 == 2 ? TALLY_RECORD_LOST_SAMPLES : TALLY_RECORD_SAMPLE);
		CHECK_EQUAL(i % 3 == 2 ? record.lost.lost : 1, 1);
	}
	CHECK_EQUAL(ring_next(&rings[0], &record), 0);
	CHECK_EQUAL(ring_count(&rings[1], TALLY_RECORD_LOST_SAMPLES), 2);
	return 0;
}

#define X86_TRACER (SURFACE_AUX | SURFACE_HARDWARE | SURFACE_X86_PMU)

const struct clause clauses_d_aux[] = {
	{ "D4.area", "The AUX area is where the user page's words say.", SURFACE_AUX,
	  area_is_where_the_page_says },
	{ "D4.area_elsewhere_einval",
	  "An area elsewhere, of another size, no power of two: EINVAL.", SURFACE_AUX,
	  area_elsewhere_einval },
	{ "D4.area_without_a_ring_einval", "An area without a ring: EINVAL.", SURFACE_AUX,
	  area_without_a_ring_einval },
	{ "D4.area_past_the_mlock_budget_eperm", "An area larger than may be locked: EPERM.",
	  SURFACE_AUX, area_past_the_mlock_budget_eperm },
	{ "D4.unmapping_ends_the_trace", "Unmapping the area ends the trace.", SURFACE_AUX,
	  unmapping_ends_the_trace },
	{ "D4.records", "AUX records tell where the trace went on and how far.", SURFACE_AUX,
	  records_tell_what_came },
	{ "D4.nothing_traced_no_record", "Where nothing was traced there is no AUX record.",
	  SURFACE_AUX, nothing_traced_no_record },
	{ "D4.tail", "The trace wraps, and never passes aux_tail.", SURFACE_AUX,
	  trace_wraps_behind_the_tail },
	{ "D4.truncated", "A full area: TRUNCATED, and the event is disabled.", SURFACE_AUX,
	  full_area_truncates_and_disables },
	{ "D4.partial", "A trace with gaps is PARTIAL.", SURFACE_AUX, gaps_are_partial },
	{ "D4.watermark", "poll wakes per aux_watermark, without one at half the area.",
	  SURFACE_AUX, watermark_wakes },
	{ "D4.watermark_ends_a_stretch", "A trace that nobody stops is told of per watermark.",
	  SURFACE_AUX, watermark_ends_a_stretch },
	{ "D4.snapshot",
	  "An area mapped read-only is overwritten: the newest is there, marked OVERWRITE.",
	  SURFACE_AUX, snapshot_keeps_the_newest },
	{ "D4.set_output", "Other events can write to a tracer's ring.", SURFACE_AUX,
	  others_write_to_the_tracers_ring },
	{ "C4.itrace_start", "ITRACE_START comes before the trace, once.", SURFACE_AUX,
	  itrace_start_comes_first },
	{ "C4.aux_output_hw_id",
	  "AUX_OUTPUT_HW_ID tells what stands for an event in the trace that it writes to.",
	  X86_TRACER, aux_output_goes_into_the_trace },
	{ "D4.aux_output_einval", "aux_output without a tracer as leader: EINVAL.", X86_TRACER,
	  aux_output_wants_a_tracer },
	{ "D4.aux_output_error", "aux_output without its tracer any more: in ERROR.", X86_TRACER,
	  aux_output_ends_with_the_tracer },
	{ "C4.lost_samples", "LOST_SAMPLES tells how many the hardware dropped.", X86_TRACER,
	  dropped_by_the_hardware },
	{ NULL, NULL, 0, NULL },
};
