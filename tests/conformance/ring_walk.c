#include "ring_walk.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { RECORD_SIZE_MAX = 1 << 16, CLOCK_ID_MONOTONIC = 1 };

struct tally_attr ring_attr(uint32_t type, uint64_t config, uint64_t period, uint64_t sample_type)
{
	return (struct tally_attr){ .type = type,
				    .size = sizeof(struct tally_attr),
				    .config = config,
				    .sample_period = period,
				    .sample_type = sample_type,
				    .flags = TALLY_ATTR_DISABLED | TALLY_ATTR_EXCLUDE_KERNEL };
}

struct tally_attr ring_faults_attr(uint64_t period, uint64_t sample_type)
{
	return ring_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS, period, sample_type);
}

struct tally_attr ring_hits_attr(struct surface *surface, uint64_t period, uint64_t sample_type)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_TRACEPOINT, (uint64_t)CALL(tracepoint, "hit"),
					   period, sample_type);
	attr.flags &= ~TALLY_ATTR_EXCLUDE_KERNEL;
	return attr;
}

struct tally_attr ring_switch_attr(struct surface *surface, uint64_t period, uint64_t sample_type)
{
	struct tally_attr attr = ring_hits_attr(surface, period, sample_type);
	attr.config = (uint64_t)CALL(tracepoint, "sched:sched_switch");
	return attr;
}

struct tally_attr ring_sideband_attr(uint64_t flags)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_DUMMY, 0,
					   TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_ID |
						   TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_CPU |
						   TALLY_SAMPLE_IDENTIFIER);
	attr.flags |= flags | TALLY_ATTR_SAMPLE_ID_ALL | TALLY_ATTR_USE_CLOCKID;
	attr.clockid = CLOCK_ID_MONOTONIC;
	return attr;
}

int ring_map_as(struct ring *ring, struct surface *surface, const struct tally_attr *attr, int fd,
		size_t data_pages, int protection)
{
	int error = 0;
	*ring = (struct ring){ .surface = surface, .attr = *attr, .fd = fd };
	ring->map_size = (1 + data_pages) * surface->page_size;
	ring->page = CALL(mmap, fd, ring->map_size, protection, MAP_SHARED, 0, &error);
	if (!ring->page)
		return error;
	ring->keeps_tail = !(protection & PROT_WRITE);
	ring->bytes = CALL(shared, RECORD_SIZE_MAX);
	/* Touches all pages: the event would count the faults of first accesses, and of the user
	 * page's first write. */
	for (size_t at = 0; at < ring->map_size; at += surface->page_size)
		(void)((volatile uint8_t *)ring->page)[at];
	if (protection & PROT_WRITE)
		__atomic_store_n(&ring->page->data_tail, 0, __ATOMIC_RELEASE);
	return ring->bytes ? 0 : -ENOMEM;
}

int ring_map(struct ring *ring, struct surface *surface, const struct tally_attr *attr, int fd,
	     size_t data_pages)
{
	return ring_map_as(ring, surface, attr, fd, data_pages, PROT_READ | PROT_WRITE);
}

int ring_open(struct ring *ring, struct surface *surface, const struct tally_attr *attr, pid_t pid,
	      int cpu, size_t data_pages)
{
	int fd = CALL(open, attr, pid, cpu, -1, 0);
	if (fd < 0)
		return fd;
	int mapped = ring_map(ring, surface, attr, fd, data_pages);
	if (mapped)
		CALL(close, fd);
	return mapped ? mapped : fd;
}

uint64_t ring_head(const struct ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

const uint8_t *ring_data(const struct ring *ring)
{
	return (const uint8_t *)ring->page + ring->page->data_offset;
}

size_t ring_data_size(const struct ring *ring)
{
	return ring->page->data_size;
}

static void copy_out(const struct ring *ring, uint64_t at, void *out, size_t size)
{
	size_t mask = ring_data_size(ring) - 1, start = at & mask;
	size_t first = size < ring_data_size(ring) - start ? size : ring_data_size(ring) - start;
	memcpy(out, ring_data(ring) + start, first);
	memcpy((uint8_t *)out + first, ring_data(ring), size - first);
}

int ring_next(struct ring *ring, struct tally_record *record)
{
	return ring_next_up_to(ring, ring_head(ring), record);
}

int ring_next_up_to(struct ring *ring, uint64_t head, struct tally_record *record)
{
	struct tally_record_header header;
	if (ring->at == head)
		return 0;
	copy_out(ring, ring->at, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size & 7 || header.size > head - ring->at)
		return -EBADMSG;
	copy_out(ring, ring->at, ring->bytes, header.size);
	ring->at += header.size;
	if (!ring->keeps_tail)
		__atomic_store_n(&ring->page->data_tail, ring->at, __ATOMIC_RELEASE);
	int decoded = tally_record_decode(&ring->attr, ring->bytes, header.size, record);
	return decoded ? decoded : 1;
}

int ring_find(struct ring *ring, uint32_t type, struct tally_record *record)
{
	for (;;) {
		int got = ring_next(ring, record);
		if (got != 1 || record->header.type == type)
			return got;
	}
}

long ring_count(struct ring *ring, uint32_t type)
{
	struct tally_record record;
	long count = 0;
	int got;
	while ((got = ring_next(ring, &record)) == 1)
		count += !type || record.header.type == type;
	return got ? got : count;
}

void ring_run_faults(struct surface *surface, int fd, unsigned count)
{
	CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
	CALL(fault, 1);
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CALL(fault, count);
	CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
}

void ring_run_hits(struct surface *surface, int fd, unsigned count)
{
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CALL(hit, count);
	CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
}

void ring_run_switch(struct surface *surface, int fd)
{
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CALL(sleep, 100000);
	CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
}

int ring_keep_contexts_apart(struct surface *surface)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_DUMMY, 0, 0);
	return CALL(open, &attr, 0, -1, -1, 0);
}

uint64_t ring_event_id(struct surface *surface, int fd)
{
	uint64_t id = 0;
	return CALL(ioctl, fd, TALLY_IOC_ID, (uintptr_t)&id) ? 0 : id;
}

uint64_t ring_event_count(struct surface *surface, int fd)
{
	uint64_t words[16] = { 0 };
	return CALL(read, fd, words, sizeof(words)) < 8 ? UINT64_MAX : words[0];
}

bool ring_kernel_is_old(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(0, 0);
	attr.size = 4097; /* too large, so the kernel writes back the size that it knows */
	CALL(open, &attr, 0, -1, -1, 0);
	return attr.size < TALLY_ATTR_SIZE_VER8;
}

static int child_body(struct surface *surface, void *argument)
{
	struct ring_child *child = argument;
	CALL(wait_while, &child->go, 0);
	if (child->work)
		child->work(surface);
	CALL(post, &child->done, 1);
	if (child->stays)
		CALL(wait_while, &child->leave, 0);
	return 0;
}

struct ring_child *ring_child_new(struct surface *surface, enum surface_task_kind kind,
				  void (*work)(struct surface *surface))
{
	struct ring_child *child = CALL(shared, sizeof(*child));
	if (!child)
		return NULL;
	child->work = work;
	child->task = CALL(spawn, kind, child_body, child);
	return child->task > 0 ? child : NULL;
}

void ring_child_go(struct surface *surface, struct ring_child *child)
{
	CALL(post, &child->go, 1);
	CALL(wait_while, &child->done, 0);
}

int ring_child_leave(struct surface *surface, struct ring_child *child)
{
	CALL(post, &child->go, 1);
	CALL(post, &child->leave, 1);
	return CALL(wait, child->task);
}

int ring_burns_until_told(struct surface *surface, void *argument)
{
	volatile uint32_t *stop = argument;
	while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE))
		CALL(burn, 1000000);
	return 0;
}

int ring_sample_faults(struct surface *surface, struct ring *ring, struct tally_attr attr)
{
	attr.flags |= TALLY_ATTR_USE_CLOCKID;
	attr.clockid = CLOCK_ID_MONOTONIC;
	CHECK_RING(ring, surface, &attr, 0, -1, 64);
	ring_run_faults(surface, ring->fd, RING_FAULTS);
	return 0;
}
