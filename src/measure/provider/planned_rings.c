/* Rings: each writer (plan/plan.h) has a ring of its own; tally moves their records into the rings
 * that were mapped.
 *
 * A writer's ring holds the records of all its events.  The id in a record says whose it is, and
 * that event's output says which of our rings it goes to.  Our rings are ordinary memory, which the
 * same thread writes here and reads where they are mapped.
 *
 * The contents of writers' rings are untrusted: they are in the program's own memory, so a stray
 * store may hit them.  So a record is copied first and checked afterwards, and a ring with invalid
 * contents is emptied.  If our ring is full, the writer's stays as it is.  A writer that waits for
 * room loses nothing. */
#include "provider/planned.h"

#include "abi/abi.h"
#include "base/extremes.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SHORTEST_SLICE_MS = 1, LONGEST_SLICE_MS = 10, REAP_MS = 500 };

/* ---- ours ---------------------------------------------------------------- */

struct tally_user_page *planned_map(struct tally_provider *provider, int handle, size_t data_pages,
				    int overwrite)
{
	struct planned *planned = planned_of(provider);
	struct planned_event *event = planned_event_of(planned, handle);
	if (!event || event->page || event->output != handle || overwrite || !data_pages ||
	    data_pages & (data_pages - 1) || planned_has_begun(planned)) {
		errno = event ? EINVAL : EBADF;
		return NULL;
	}
	int code = planned_add_rings(planned, data_pages);
	if (code < 0) {
		errno = -code;
		return NULL;
	}
	void *map = mmap(NULL, (1 + data_pages) * TALLY_PLAN_PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	event->page = map;
	event->data_pages = data_pages;
	event->page->data_offset = TALLY_PLAN_PAGE;
	event->page->data_size = data_pages * TALLY_PLAN_PAGE;
	planned_publish(planned);
	return map;
}

void planned_unmap(struct tally_provider *provider, struct tally_user_page *page, size_t data_pages)
{
	struct planned *planned = planned_of(provider);
	bool any = false;
	for (int i = 0; i < TALLY_PLAN_EVENTS; i++) {
		struct planned_event *event = &planned->events[i];
		if (event->page == page)
			event->page = NULL;
		any |= event->page != NULL;
	}
	munmap(page, (1 + data_pages) * TALLY_PLAN_PAGE);
	if (!any && planned_has_begun(planned))
		planned_stop(planned);
}

static uint64_t room_in(const struct planned_event *event)
{
	const struct tally_user_page *page = event->page;
	return event->data_pages * TALLY_PLAN_PAGE -
	       (page->data_head - __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE));
}

static void put(struct planned_event *event, const uint8_t *bytes, size_t size)
{
	uint8_t *data = (uint8_t *)event->page + TALLY_PLAN_PAGE;
	size_t whole = event->data_pages * TALLY_PLAN_PAGE,
	       at = event->page->data_head & (whole - 1);
	size_t first = tally_min_u64(size, whole - at);
	memcpy(data + at, bytes, first);
	memcpy(data, bytes + first, size - first);
	__atomic_store_n(&event->page->data_head, event->page->data_head + size, __ATOMIC_RELEASE);
}

/* ---- theirs -------------------------------------------------------------- */

static struct tally_user_page *page_of(const struct planned *planned, unsigned ring)
{
	const struct tally_plan *shared = planned->file.shared;
	return (void *)(planned->file.rings +
			(tally_plan_ring_offset(shared, ring) - shared->rings_offset));
}

static size_t ring_bytes(const struct planned *planned)
{
	return (size_t)planned->file.shared->ring_pages * TALLY_PLAN_PAGE;
}

static void get(const struct planned *planned, unsigned ring, uint64_t at, uint8_t *out,
		size_t size)
{
	const uint8_t *data = (const uint8_t *)page_of(planned, ring) + TALLY_PLAN_PAGE;
	size_t whole = ring_bytes(planned), offset = at & (whole - 1);
	size_t first = tally_min_u64(size, whole - offset);
	memcpy(out, data + offset, first);
	memcpy(out + first, data, size - first);
}

/* Returns the event whose ring a record goes to; NULL if there is none. */
static struct planned_event *destination(struct planned *planned, const void *bytes, size_t size)
{
	/* The layout that open() requires of all sampling events. */
	static const struct tally_attr with_ids = { .sample_type = TALLY_SAMPLE_IDENTIFIER,
						    .flags = TALLY_ATTR_SAMPLE_ID_ALL };
	uint64_t id;
	if (!tally_record_id(&with_ids, bytes, size, &id) || id > TALLY_PLAN_EVENTS)
		return NULL;
	struct planned_event *event = planned_event_of(planned, (int)id - 1);
	if (!event || !planned->events[event->output].page)
		return NULL;
	return &planned->events[event->output];
}

/* Copies the next record before `head` to planned->record.  Returns its size, 0 if there is none,
 * or -EBADMSG if it can't be a record. */
static long copy_record(struct planned *planned, unsigned ring, uint64_t head)
{
	struct tally_record_header header;
	uint64_t tail = planned->file.tails[ring], left = head - tail;
	if (!left)
		return 0;
	if (left > ring_bytes(planned) || left < sizeof(header) || tail & 7)
		return -EBADMSG;
	get(planned, ring, tail, (uint8_t *)&header, sizeof(header));
	if (header.size < sizeof(header) || header.size > left || header.size & 7)
		return -EBADMSG;
	get(planned, ring, tail, planned->record, header.size);
	/* the header that was checked: the other may have changed since */
	memcpy(planned->record, &header, sizeof(header));
	return header.size;
}

static void give_back(struct planned *planned, unsigned ring)
{
	uint32_t *wanted = &planned->file.shared->rings[ring].room_wanted;
	__atomic_store_n(&page_of(planned, ring)->data_tail, planned->file.tails[ring],
			 __ATOMIC_RELEASE);
	if (__atomic_exchange_n(wanted, 0, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, wanted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Moves the records up to `head` out of a ring.  Returns false if our ring is full. */
static bool move_ring(struct planned *planned, unsigned ring, uint64_t head, ssize_t *moved)
{
	uint64_t *tail = &planned->file.tails[ring];
	bool has_room = true;
	long size;
	while ((size = copy_record(planned, ring, head)) > 0) {
		struct planned_event *to = destination(planned, planned->record, (size_t)size);
		has_room = !to || room_in(to) >= (uint64_t)size;
		if (!has_room)
			break;
		if (to)
			put(to, planned->record, (size_t)size);
		*tail += (uint64_t)size;
		*moved += size;
	}
	if (size < 0) {
		planned->damaged++;
		*tail = head;
	}
	give_back(planned, ring);
	return has_room;
}

/* Resets the ring for the next writer. */
static void free_ring(struct planned *planned, unsigned ring)
{
	planned->file.tails[ring] = 0;
	planned_drop_ring(planned, ring);
	/* is_abandoned() knows the next writer only once that has written this */
	__atomic_store_n(&planned->file.shared->rings[ring].task, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&planned->file.shared->rings[ring].state, TALLY_PLAN_RING_FREE,
			 __ATOMIC_SEQ_CST);
}

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns the inode number of this process's PID namespace; 0: unknown. */
static uint32_t own_namespace(void)
{
	struct stat about;
	if (stat("/proc/self/ns/pid", &about) < 0)
		return 0;
	return (uint32_t)about.st_ino;
}

/* True if the writer was killed and so could not mark its ring as finished. */
static bool is_abandoned(struct tally_plan_ring *ring, uint32_t namespace)
{
	int32_t task = __atomic_load_n(&ring->task, __ATOMIC_SEQ_CST);
	return namespace && task > 0 &&
	       __atomic_load_n(&ring->pid_namespace, __ATOMIC_SEQ_CST) == namespace &&
	       kill(task, 0) < 0 && errno == ESRCH;
}

/* Marks the rings of killed writers as finished. */
static void reap(struct planned *planned)
{
	struct tally_plan *shared = planned->file.shared;
	int64_t now = now_ms();
	if (now < planned->file.reap_at_ms)
		return;
	planned->file.reap_at_ms = now + REAP_MS;
	uint32_t namespace = own_namespace();
	for (unsigned i = 0; i < TALLY_PLAN_RINGS; i++) {
		uint32_t taken = TALLY_PLAN_RING_TAKEN;
		if (__atomic_load_n(&shared->rings[i].state, __ATOMIC_SEQ_CST) == taken &&
		    is_abandoned(&shared->rings[i], namespace))
			__atomic_compare_exchange_n(&shared->rings[i].state, &taken,
						    TALLY_PLAN_RING_FINISHED, false,
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
}

static bool has_news(const struct planned *planned)
{
	const struct tally_plan *shared = planned->file.shared;
	return planned->file.has_leftovers ||
	       (shared && __atomic_load_n(&shared->news, __ATOMIC_SEQ_CST) != planned->file.news);
}

/* All heads are noted before any record is moved.  The cause of a record is written before the
 * record itself, so the causes of records older than this moment are included; younger records come
 * in the next round. */
ssize_t planned_gather(struct tally_provider *provider)
{
	struct planned *planned = planned_of(provider);
	struct tally_plan *shared = planned->file.shared;
	uint64_t heads[TALLY_PLAN_RINGS];
	uint32_t states[TALLY_PLAN_RINGS];
	ssize_t moved = 0;
	if (!planned->file.rings)
		return 0;
	reap(planned);
	if (has_news(planned))
		planned->file.slice_ms = SHORTEST_SLICE_MS;
	planned->file.news = __atomic_load_n(&shared->news, __ATOMIC_SEQ_CST);
	planned->file.has_leftovers = false;
	for (unsigned i = 0; i < TALLY_PLAN_RINGS; i++) {
		states[i] = __atomic_load_n(&shared->rings[i].state, __ATOMIC_ACQUIRE);
		heads[i] = 0;
		if (states[i] != TALLY_PLAN_RING_FREE)
			heads[i] = __atomic_load_n(&page_of(planned, i)->data_head,
						   __ATOMIC_ACQUIRE);
	}
	for (unsigned i = 0; i < TALLY_PLAN_RINGS; i++) {
		if (states[i] != TALLY_PLAN_RING_TAKEN && states[i] != TALLY_PLAN_RING_FINISHED)
			continue;
		bool emptied = move_ring(planned, i, heads[i], &moved);
		planned->file.has_leftovers |= !emptied;
		if (emptied && states[i] == TALLY_PLAN_RING_FINISHED)
			free_ring(planned, i);
	}
	return moved;
}

/* ---- waiting ------------------------------------------------------------- */

/* Waiting for a futex and a descriptor at once is not possible.  So this waits for the descriptor in
 * slices, and checks for news between them.  A writer reports when its ring is half full.  Large
 * samples at a high rate fill the other half in a few milliseconds, so slices are short as long as
 * there are news. */
int planned_wait(struct tally_provider *provider, struct tally_wait_item *items, size_t count,
		 int extra_fd, int timeout_ms)
{
	struct planned *planned = planned_of(provider);
	struct pollfd extra = { .fd = extra_fd, .events = POLLIN };
	int64_t end = now_ms() + timeout_ms;
	int ready = 0, polled = 0;
	for (bool news = has_news(planned); !polled && !news; news = has_news(planned)) {
		int *slice = &planned->file.slice_ms;
		int64_t left = *slice;
		if (timeout_ms >= 0)
			left = tally_max_i64(end - now_ms(), 0);
		polled = poll(&extra, 1, (int)tally_min_i64(left, *slice));
		if (polled < 0)
			return -errno;
		*slice = (int)tally_min_i64(2 * *slice, LONGEST_SLICE_MS);
		if (timeout_ms >= 0 && left <= 0)
			break;
	}
	for (size_t i = 0; i < count; i++) {
		struct planned_event *event = planned_event_of(planned, items[i].handle);
		bool has_data = event && event->page &&
				room_in(event) < event->data_pages * TALLY_PLAN_PAGE;
		items[i].revents = 0;
		if (!event || (!has_data && !has_news(planned)))
			continue;
		items[i].revents = POLLIN;
		ready++;
	}
	return ready + (polled > 0);
}
