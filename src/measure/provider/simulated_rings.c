/* Rings: each simulated process writes a ring of its own; tally moves their records into the rings
 * that were mapped.
 *
 * A process's ring holds the records of all its events.  The id in a record says whose it is, and
 * that event's output says which of our rings it goes to.  Our rings are ordinary memory, which the
 * same thread writes here and reads where they are mapped.
 *
 * The contents of processes' rings are untrusted: Valgrind doesn't keep a program from its own
 * memory, so a stray store may hit the ring.  So a record is copied first and checked afterwards,
 * and a ring with invalid contents is emptied.  If our ring is full, the process's stays as it is,
 * and its writer waits: nothing is lost. */
#include "provider/provider_internal.h"

#include "abi/abi.h"
#include "base/extremes.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLICE_MS = 10 };

/* ---- ours ---------------------------------------------------------------- */

struct tally_user_page *simulated_map(struct tally_provider *provider, int handle,
				      size_t data_pages, int overwrite)
{
	struct simulated *simulated = simulated_of(provider);
	struct simulated_event *event = simulated_event_of(simulated, handle);
	if (!event || event->page || event->output != handle || overwrite || !data_pages ||
	    data_pages & (data_pages - 1) || simulated_plan_has_begun(simulated)) {
		errno = event ? EINVAL : EBADF;
		return NULL;
	}
	int code = simulated_plan_add_rings(simulated);
	if (code < 0) {
		errno = -code;
		return NULL;
	}
	void *map = mmap(NULL, (1 + data_pages) * VSIM_PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	event->page = map;
	event->data_pages = data_pages;
	event->page->data_offset = VSIM_PAGE;
	event->page->data_size = data_pages * VSIM_PAGE;
	simulated_plan_publish(simulated);
	return map;
}

void simulated_unmap(struct tally_provider *provider, struct tally_user_page *page,
		     size_t data_pages)
{
	struct simulated *simulated = simulated_of(provider);
	bool any = false;
	for (int i = 0; i < VSIM_EVENTS; i++) {
		struct simulated_event *event = &simulated->events[i];
		if (event->page == page)
			event->page = NULL;
		any |= event->page != NULL;
	}
	munmap(page, (1 + data_pages) * VSIM_PAGE);
	if (!any && simulated_plan_has_begun(simulated))
		simulated_plan_close(simulated);
}

static uint64_t room_in(const struct simulated_event *event)
{
	const struct tally_user_page *page = event->page;
	return event->data_pages * VSIM_PAGE -
	       (page->data_head - __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE));
}

static void put(struct simulated_event *event, const uint8_t *bytes, size_t size)
{
	uint8_t *data = (uint8_t *)event->page + VSIM_PAGE;
	size_t whole = event->data_pages * VSIM_PAGE, at = event->page->data_head & (whole - 1);
	size_t first = tally_min_u64(size, whole - at);
	memcpy(data + at, bytes, first);
	memcpy(data, bytes + first, size - first);
	__atomic_store_n(&event->page->data_head, event->page->data_head + size, __ATOMIC_RELEASE);
}

/* ---- theirs -------------------------------------------------------------- */

static struct tally_user_page *page_of(const struct simulated *simulated, unsigned ring)
{
	const struct vsim_plan *shared = simulated->plan.shared;
	return (void *)(simulated->plan.rings +
			(vsim_ring_offset(shared, ring) - shared->rings_offset));
}

static size_t ring_bytes(const struct simulated *simulated)
{
	return (size_t)simulated->plan.shared->ring_pages * VSIM_PAGE;
}

static void get(const struct simulated *simulated, unsigned ring, uint64_t at, uint8_t *out,
		size_t size)
{
	const uint8_t *data = (const uint8_t *)page_of(simulated, ring) + VSIM_PAGE;
	size_t whole = ring_bytes(simulated), offset = at & (whole - 1);
	size_t first = tally_min_u64(size, whole - offset);
	memcpy(out, data + offset, first);
	memcpy(out + first, data, size - first);
}

/* Returns the event whose ring a record goes to; NULL if there is none. */
static struct simulated_event *destination(struct simulated *simulated, const void *bytes,
					   size_t size)
{
	/* The layout that open() requires of all sampling events. */
	static const struct tally_attr with_ids = { .sample_type = TALLY_SAMPLE_IDENTIFIER,
						    .flags = TALLY_ATTR_SAMPLE_ID_ALL };
	uint64_t id;
	if (!tally_record_id(&with_ids, bytes, size, &id) || id > VSIM_EVENTS)
		return NULL;
	struct simulated_event *event = simulated_event_of(simulated, (int)id - 1);
	if (!event || !simulated->events[event->output].page)
		return NULL;
	return &simulated->events[event->output];
}

/* Copies the next record before `head` to simulated->record.  Returns its size, 0 if there is none,
 * or -EBADMSG if it can't be a record. */
static long copy_record(struct simulated *simulated, unsigned ring, uint64_t head)
{
	struct tally_record_header header;
	uint64_t tail = simulated->plan.tails[ring], left = head - tail;
	if (!left)
		return 0;
	if (left > ring_bytes(simulated) || left < sizeof(header) || tail & 7)
		return -EBADMSG;
	get(simulated, ring, tail, (uint8_t *)&header, sizeof(header));
	if (header.size < sizeof(header) || header.size > left || header.size & 7)
		return -EBADMSG;
	get(simulated, ring, tail, simulated->record, header.size);
	/* the header that was checked: the other may have changed since */
	memcpy(simulated->record, &header, sizeof(header));
	return header.size;
}

static void give_back(struct simulated *simulated, unsigned ring)
{
	uint32_t *wanted = &simulated->plan.shared->rings[ring].room_wanted;
	__atomic_store_n(&page_of(simulated, ring)->data_tail, simulated->plan.tails[ring],
			 __ATOMIC_RELEASE);
	if (__atomic_exchange_n(wanted, 0, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, wanted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Moves the records up to `head` out of a ring.  Returns false if our ring is full. */
static bool move_ring(struct simulated *simulated, unsigned ring, uint64_t head, ssize_t *moved)
{
	uint64_t *tail = &simulated->plan.tails[ring];
	bool has_room = true;
	long size;
	while ((size = copy_record(simulated, ring, head)) > 0) {
		struct simulated_event *to = destination(simulated, simulated->record,
							 (size_t)size);
		has_room = !to || room_in(to) >= (uint64_t)size;
		if (!has_room)
			break;
		if (to)
			put(to, simulated->record, (size_t)size);
		*tail += (uint64_t)size;
		*moved += size;
	}
	if (size < 0) {
		simulated->damaged++;
		*tail = head;
	}
	give_back(simulated, ring);
	return has_room;
}

/* Resets the ring for the next process. */
static void free_ring(struct simulated *simulated, unsigned ring)
{
	struct tally_user_page *page = page_of(simulated, ring);
	simulated->plan.tails[ring] = 0;
	__atomic_store_n(&page->data_tail, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&page->data_head, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&simulated->plan.shared->rings[ring].state, VSIM_RING_FREE,
			 __ATOMIC_SEQ_CST);
}

/* All heads are noted before any record is moved.  The cause of a record is written before the
 * record itself, so the causes of records older than this moment are included; younger records come
 * in the next round. */
ssize_t simulated_gather(struct tally_provider *provider)
{
	struct simulated *simulated = simulated_of(provider);
	struct vsim_plan *shared = simulated->plan.shared;
	uint64_t heads[VSIM_RINGS];
	uint32_t states[VSIM_RINGS];
	ssize_t moved = 0;
	if (!simulated->plan.rings)
		return 0;
	simulated->plan.news = __atomic_load_n(&shared->news, __ATOMIC_SEQ_CST);
	simulated->plan.has_leftovers = false;
	for (unsigned i = 0; i < VSIM_RINGS; i++) {
		states[i] = __atomic_load_n(&shared->rings[i].state, __ATOMIC_ACQUIRE);
		heads[i] = 0;
		if (states[i] != VSIM_RING_FREE)
			heads[i] = __atomic_load_n(&page_of(simulated, i)->data_head,
						   __ATOMIC_ACQUIRE);
	}
	for (unsigned i = 0; i < VSIM_RINGS; i++) {
		if (states[i] != VSIM_RING_TAKEN && states[i] != VSIM_RING_FINISHED)
			continue;
		bool emptied = move_ring(simulated, i, heads[i], &moved);
		simulated->plan.has_leftovers |= !emptied;
		if (emptied && states[i] == VSIM_RING_FINISHED)
			free_ring(simulated, i);
	}
	return moved;
}

/* ---- waiting ------------------------------------------------------------- */

static bool has_news(const struct simulated *simulated)
{
	const struct vsim_plan *shared = simulated->plan.shared;
	return simulated->plan.has_leftovers ||
	       (shared && __atomic_load_n(&shared->news, __ATOMIC_SEQ_CST) != simulated->plan.news);
}

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waiting for a futex and a descriptor at once is not possible.  So this waits for the descriptor
 * in slices, and checks for news between them.  A writer reports when its ring is half full, so a
 * slice delays no writer. */
int simulated_wait(struct tally_provider *provider, struct tally_wait_item *items, size_t count,
		   int extra_fd, int timeout_ms)
{
	struct simulated *simulated = simulated_of(provider);
	struct pollfd extra = { .fd = extra_fd, .events = POLLIN };
	int64_t end = now_ms() + timeout_ms;
	int ready = 0, polled = 0;
	for (bool news = has_news(simulated); !polled && !news; news = has_news(simulated)) {
		int64_t left = SLICE_MS;
		if (timeout_ms >= 0)
			left = tally_max_i64(end - now_ms(), 0);
		polled = poll(&extra, 1, (int)tally_min_i64(left, SLICE_MS));
		if (polled < 0)
			return -errno;
		if (timeout_ms >= 0 && left <= 0)
			break;
	}
	for (size_t i = 0; i < count; i++) {
		struct simulated_event *event = simulated_event_of(simulated, items[i].handle);
		bool has_data = event && event->page &&
				room_in(event) < event->data_pages * VSIM_PAGE;
		items[i].revents = 0;
		if (!event || (!has_data && !has_news(simulated)))
			continue;
		items[i].revents = POLLIN;
		ready++;
	}
	return ready + (polled > 0);
}
