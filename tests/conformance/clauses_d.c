/* D1, D2: mapping a ring, and records lost when it is full. */
#include "ring_walk.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { READ_WRITE = PROT_READ | PROT_WRITE };

/* Maps so many pages and unmaps them.  Returns 0 or -errno. */
static int map_pages(struct surface *surface, int fd, size_t pages, int flags, uint64_t offset)
{
	int error = 0;
	void *address = CALL(mmap, fd, pages * surface->page_size, READ_WRITE, flags, offset,
			     &error);
	return address ? CALL(munmap, address, pages * surface->page_size) : error;
}

static int open_plain(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	return CALL(open, &attr, 0, -1, -1, 0);
}

static int one_and_a_power_of_two_pages(struct surface *surface)
{
	int fd = open_plain(surface);
	CHECK(fd >= 0);
	for (size_t data = 1; data <= 64; data *= 2)
		CHECK_EQUAL(map_pages(surface, fd, 1 + data, MAP_SHARED, 0), 0);
	return 0;
}

static int other_sizes_einval(struct surface *surface)
{
	static const size_t sizes[] = { 3, 5, 6, 7, 9, 12, 63, 65, 96 };
	int fd = open_plain(surface);
	CHECK(fd >= 0);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		CHECK_ERROR(map_pages(surface, fd, 1 + sizes[i], MAP_SHARED, 0), EINVAL);
	return 0;
}

static int header_page_alone(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 0);
	ring_run_faults(surface, ring.fd, 10);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 10);
	CHECK_EQUAL(ring.page->data_size, 0);
	CHECK_EQUAL(ring_head(&ring), 0);
	return 0;
}

static int offset_einval(struct surface *surface)
{
	int fd = open_plain(surface);
	CHECK(fd >= 0);
	CHECK_ERROR(map_pages(surface, fd, 1, MAP_SHARED, surface->page_size), EINVAL);
	CHECK_ERROR(map_pages(surface, fd, 2, MAP_SHARED, 2 * surface->page_size), EINVAL);
	return 0;
}

static int private_einval(struct surface *surface)
{
	int fd = open_plain(surface);
	CHECK(fd >= 0);
	CHECK_ERROR(map_pages(surface, fd, 2, MAP_PRIVATE, 0), EINVAL);
	CHECK_ERROR(map_pages(surface, fd, 1, MAP_PRIVATE, 0), EINVAL);
	return 0;
}

static int inherited_of_any_cpu_einval(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	attr.flags |= TALLY_ATTR_INHERIT;
	int any = CALL(open, &attr, 0, -1, -1, 0),
	    one = CALL(open, &attr, 0, CALL(this_cpu), -1, 0);
	CHECK(any >= 0 && one >= 0);
	CHECK_ERROR(map_pages(surface, any, 2, MAP_SHARED, 0), EINVAL);
	CHECK_EQUAL(map_pages(surface, one, 2, MAP_SHARED, 0), 0);
	return 0;
}

static int second_mapping_is_the_same_ring(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring, second;
	CHECK_RING(&ring, surface, &attr, 0, -1, 2);
	CHECK_EQUAL(ring_map(&second, surface, &attr, ring.fd, 2), 0);
	ring_run_faults(surface, ring.fd, 5);
	CHECK_EQUAL(ring_head(&second), ring_head(&ring));
	CHECK_EQUAL(memcmp(ring_data(&ring), ring_data(&second), ring_head(&ring)), 0);
	/* With one mapping gone, the other keeps working. */
	CHECK_EQUAL(CALL(munmap, ring.page, ring.map_size), 0);
	ring_run_faults(surface, second.fd, 5);
	CHECK_EQUAL(ring_count(&second, TALLY_RECORD_SAMPLE), 10);
	return 0;
}

static int second_mapping_of_another_size_einval(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 8);
	CHECK_ERROR(map_pages(surface, ring.fd, 1 + 4, MAP_SHARED, 0), EINVAL);
	CHECK_ERROR(map_pages(surface, ring.fd, 1, MAP_SHARED, 0), EINVAL);
	CHECK_EQUAL(map_pages(surface, ring.fd, 1 + 8, MAP_SHARED, 0), 0);
	return 0;
}

static int unmapped_ring_is_gone(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 8);
	ring_run_faults(surface, ring.fd, 5);
	CHECK_EQUAL(CALL(munmap, ring.page, ring.map_size), 0);
	ring_run_faults(surface, ring.fd, 5);
	CHECK_EQUAL(ring_map(&ring, surface, &attr, ring.fd, 4), 0);
	CHECK_EQUAL(ring_head(&ring), 0);
	ring_run_faults(surface, ring.fd, 5);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 5);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 15);
	return 0;
}

static int mapping_keeps_the_event(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CHECK_EQUAL(CALL(close, ring.fd), 0);
	CALL(fault, 10);
	CHECK_BETWEEN(ring_count(&ring, TALLY_RECORD_SAMPLE), 10, 20);
	return 0;
}

struct heir {
	struct ring *ring;
	uint32_t *stay;
};

static int looks_for_a_mapping(struct surface *surface, void *argument)
{
	struct heir *heir = argument;
	CALL(wait_while, heir->stay, 0);
	if (surface->features & SURFACE_VFS &&
	    !(msync(heir->ring->page, surface->page_size, MS_ASYNC) < 0 && errno == ENOMEM))
		return 1;
	/* Unmaps a range that may be empty.  mmap(2) decides whether that is an error, not this
	 * suite. */
	CALL(munmap, heir->ring->page, heir->ring->map_size);
	return 0;
}

static int fork_does_not_copy_the_mapping(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring *ring = CALL(shared, sizeof(*ring));
	struct heir *heir = CALL(shared, sizeof(*heir));
	CHECK_RING(ring, surface, &attr, 0, -1, 1);
	*heir = (struct heir){ ring, CALL(shared, sizeof(*heir->stay)) };
	pid_t first = CALL(spawn, SURFACE_PROCESS, looks_for_a_mapping, heir);
	CHECK(first > 0);
	CALL(post, heir->stay, 1);
	CHECK_EQUAL(CALL(wait, first), 0);
	ring_run_faults(surface, ring->fd, 5);
	CHECK_EQUAL(ring_count(ring, TALLY_RECORD_SAMPLE), 5); /* the ring is still ours */

	CALL(post, heir->stay, 0);
	pid_t second = CALL(spawn, SURFACE_PROCESS, looks_for_a_mapping, heir);
	CHECK(second > 0);
	CHECK_EQUAL(CALL(munmap, ring->page, ring->map_size), 0);
	/* the old ring has no user any more */
	CHECK_EQUAL(map_pages(surface, ring->fd, 1 + 4, MAP_SHARED, 0), 0);
	CALL(post, heir->stay, 1);
	CHECK_EQUAL(CALL(wait, second), 0);
	return 0;
}

static int executable_eperm(struct surface *surface)
{
	int fd = open_plain(surface), error = 0;
	CHECK(fd >= 0);
	void *address = CALL(mmap, fd, 2 * surface->page_size, READ_WRITE | PROT_EXEC, MAP_SHARED,
			     0, &error);
	if (address && ring_kernel_is_old(surface))
		return CLAUSE_NOT_APPLICABLE + NA_OLD_KERNEL; /* 6.1 allows the mapping */
	CHECK(!address);
	CHECK_ERROR(error, EPERM);
	return 0;
}

/* Far above perf_event_mlock_kb and any usual RLIMIT_MEMLOCK together; the pages are never
 * allocated. */
static int maps_too_much(struct surface *surface, void *argument)
{
	(void)argument;
	if (CALL(drop_privileges))
		return 2;
	int fd = open_plain(surface);
	if (fd < 0)
		return 3;
	size_t pages = ((size_t)1 << 30) / surface->page_size;
	int large = map_pages(surface, fd, 1 + pages, MAP_SHARED, 0);
	int small = map_pages(surface, fd, 1 + 1, MAP_SHARED, 0);
	return large == -EPERM && small == 0 ? 0 : 1;
}

static int past_the_mlock_budget_eperm(struct surface *surface)
{
	long paranoid = CALL(sysctl, "perf_event_paranoid");
	if (paranoid < 0)
		return CLAUSE_NOT_APPLICABLE + NA_NOT_PRIVILEGED; /* -1: no limit for any user */
	pid_t child = CALL(spawn, SURFACE_PROCESS, maps_too_much, NULL);
	CHECK(child > 0);
	CHECK_EQUAL(CALL(wait, child), 0);
	return 0;
}

/* --- D2 ------------------------------------------------------------------- */

static int head_follows_the_records(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP | TALLY_SAMPLE_ADDR);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CHECK_EQUAL(ring_head(&ring), 0);
	for (unsigned i = 1; i <= 5; i++) {
		ring_run_faults(surface, ring.fd, 2);
		CHECK_EQUAL(ring_head(&ring), i * 2 * 24);
	}
	return 0;
}

static int tail_is_the_readers(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 5);
	__atomic_store_n(&ring.page->data_tail, 48, __ATOMIC_RELEASE);
	ring_run_faults(surface, ring.fd, 5);
	CHECK_EQUAL(ring.page->data_tail, 48);
	return 0;
}

/* Records of 24 bytes don't divide a page, so some lie across the end. */
static int records_wrap(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_ADDR | TALLY_SAMPLE_READ);
	struct ring ring;
	struct tally_record record;
	unsigned across = 0;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	for (unsigned round = 0; round < 50; round++) {
		ring_run_faults(surface, ring.fd, 20);
		for (unsigned i = 0; i < 20; i++) {
			size_t start = ring.at % surface->page_size;
			across += start + 24 > surface->page_size;
			CHECK_EQUAL(ring_next(&ring, &record), 1);
			CHECK_EQUAL(record.header.type, TALLY_RECORD_SAMPLE);
			CHECK_EQUAL(record.sample.addr, CALL(fault_address, i));
			CHECK_EQUAL(record.sample.read.values[0], round * 20 + i + 1);
		}
		CHECK_EQUAL(ring_next(&ring, &record), 0);
	}
	CHECK_EQUAL(ring_head(&ring), 24 * 1000);
	CHECK_BETWEEN(across, surface->page_size > 4096 ? 0 : 3, 10);
	return 0;
}

static int full_ring_keeps_what_it_has(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_READ);
	struct ring ring;
	struct tally_record record;
	unsigned fit = (unsigned)(surface->page_size / 16 - 1); /* head never reaches tail */
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, fit + 100);
	CHECK_EQUAL(ring_head(&ring), 16 * fit);
	for (unsigned i = 1; i <= fit; i++) {
		CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
		CHECK_EQUAL(record.sample.read.values[0], i);
	}
	CHECK_EQUAL(ring_event_count(surface, ring.fd), fit + 100);
	return 0;
}

static int fill(struct surface *surface, struct ring *ring, unsigned more)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	CHECK_RING(ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring->fd, (unsigned)(surface->page_size / 16 - 1) + more);
	return 0;
}

static int lost_count_is_exact(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	CHECK_EQUAL(fill(surface, &ring, 77), 0);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_LOST), 0);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_EQUAL(ring_next(&ring, &record), 1);
	CHECK_EQUAL(record.header.type, TALLY_RECORD_LOST);
	CHECK_EQUAL(record.lost.lost, 77);
	CHECK_EQUAL(ring_next(&ring, &record), 1);
	CHECK_EQUAL(record.header.type, TALLY_RECORD_SAMPLE);
	CHECK_EQUAL(ring_next(&ring, &record), 0);
	return 0;
}

static int lost_counts_each_gap_by_itself(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	unsigned fit = (unsigned)(surface->page_size / 16 - 1);
	CHECK_EQUAL(fill(surface, &ring, 10), 0);
	for (unsigned gap = 20; gap <= 40; gap += 10) {
		ring_count(&ring, 0);
		ring_run_faults(surface, ring.fd, 1);
		CHECK_EQUAL(ring_next(&ring, &record), 1);
		CHECK_EQUAL(record.header.type, TALLY_RECORD_LOST);
		CHECK_EQUAL(record.lost.lost, gap - 10);
		CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 1);
		ring_run_faults(surface, ring.fd, fit + gap);
	}
	return 0;
}

static int nothing_lost_no_record(struct surface *surface)
{
	struct ring ring;
	CHECK_EQUAL(fill(surface, &ring, 0), 0);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), surface->page_size / 16 - 1);
	ring_run_faults(surface, ring.fd, 50);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_LOST), 0);
	return 0;
}

/* LOST is written together with the record after it, so both must fit. */
static int lost_waits_for_room(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	CHECK_EQUAL(fill(surface, &ring, 5), 0);
	uint64_t head = ring_head(&ring);
	__atomic_store_n(&ring.page->data_tail, 16, __ATOMIC_RELEASE);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_EQUAL(ring_head(&ring), head);
	__atomic_store_n(&ring.page->data_tail, 48, __ATOMIC_RELEASE);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_EQUAL(ring_head(&ring), head + 24 + 16);
	ring.at = 48;
	CHECK_FOUND(&ring, TALLY_RECORD_LOST, &record);
	CHECK_EQUAL(record.lost.lost, 6);
	return 0;
}

static int format_lost_counts_all(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	uint64_t words[2];
	unsigned fit = (unsigned)(surface->page_size / 16 - 1);
	attr.read_format = TALLY_FORMAT_LOST;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, fit + 12);
	CHECK_EQUAL(CALL(read, ring.fd, words, sizeof(words)), sizeof(words));
	CHECK_EQUAL(words[0], fit + 12);
	CHECK_EQUAL(words[1], 12);
	ring_count(&ring, 0);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_EQUAL(CALL(read, ring.fd, words, sizeof(words)), sizeof(words));
	CHECK_EQUAL(words[1], 12);
	return 0;
}

const struct clause clauses_d[] = {
	{ "D1.one_and_a_power_of_two_pages", "1 + 2^n pages can be mapped.", 0,
	  one_and_a_power_of_two_pages },
	{ "D1.other_sizes_einval", "Other numbers of pages: EINVAL.", 0, other_sizes_einval },
	{ "D1.header_page_alone", "The header page alone can be mapped; no records then.", 0,
	  header_page_alone },
	{ "D1.offset_einval", "An offset that no AUX area has: EINVAL.", 0, offset_einval },
	{ "D1.private_einval", "MAP_PRIVATE: EINVAL.", 0, private_einval },
	{ "D1.executable_eperm", "PROT_EXEC: EPERM.", SURFACE_VFS, executable_eperm },
	{ "D1.inherited_of_any_cpu_einval",
	  "An inherited event with cpu -1: EINVAL; of one CPU: mapped.", 0,
	  inherited_of_any_cpu_einval },
	{ "D1.second_mapping", "A second mapping of the same size is the same ring.", 0,
	  second_mapping_is_the_same_ring },
	{ "D1.second_mapping_of_another_size_einval", "A second mapping of another size: EINVAL.",
	  0, second_mapping_of_another_size_einval },
	{ "D1.unmapped_ring_is_gone", "A ring ends when it is unmapped; a new one is empty.", 0,
	  unmapped_ring_is_gone },
	{ "D1.mapping_keeps_the_event", "A mapping keeps its event when the descriptor is closed.",
	  0, mapping_keeps_the_event },
	{ "D1.fork_does_not_copy_the_mapping", "A child doesn't have its parent's mapping.", 0,
	  fork_does_not_copy_the_mapping },
	{ "D1.past_the_mlock_budget_eperm", "More than may be locked: EPERM without privilege.", 0,
	  past_the_mlock_budget_eperm },
	{ "D2.head_follows_the_records", "data_head grows by each record's size.", 0,
	  head_follows_the_records },
	{ "D2.tail_is_the_readers", "data_tail is the reader's alone.", 0, tail_is_the_readers },
	{ "D2.records_wrap", "Records wrap at the buffer's end, in the middle of one too.", 0,
	  records_wrap },
	{ "D2.full_ring_keeps_what_it_has", "A full buffer drops what comes and counts on.", 0,
	  full_ring_keeps_what_it_has },
	{ "D2.lost_count_is_exact", "LOST has the exact number, before the next record.", 0,
	  lost_count_is_exact },
	{ "D2.lost_counts_each_gap", "LOST counts each gap by itself.", 0,
	  lost_counts_each_gap_by_itself },
	{ "D2.nothing_lost_no_record", "A full buffer that nothing came to writes no LOST.", 0,
	  nothing_lost_no_record },
	{ "D2.lost_waits_for_room", "LOST waits until it fits with a record after it.", 0,
	  lost_waits_for_room },
	{ "D2.format_lost", "read()'s LOST counts all that was lost.", 0, format_lost_counts_all },
	{ NULL, NULL, 0, NULL },
};
