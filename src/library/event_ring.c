/* libtally's rings, built on the ring reader of `tally record`.
 *
 * A sample of a fixed period does not contain its period (tally_attr_honour_period()), so a ring
 * remembers where in its stream the period changed, and keeps the attribute at the period of the
 * record that was read last.
 *
 * Once a ring is open, nothing here allocates or locks: handlers of signals may read it. */
#include "library/event_ring.h"

#include "base/error.h"
#include "base/extremes.h"
#include "library/library_events.h"
#include "library/page_reader.h"
#include "session/ring.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGES_DEFAULT = 64, FREQUENCY_DEFAULT = 1000, CHANGES_MAX = 16 };

/* The period of the records from a position of the ring's stream on. */
struct period_change {
	uint64_t from, period;
};

struct tally_event_ring {
	struct tally_library_events events;
	struct tally_ring ring;
	int *handles; /* one for each open event; the sampled one's is the first */
	size_t open;
	unsigned process; /* tally_page_reader_this_process() when it was opened */
	int signo;        /* of tally_event_ring_signal() */
	uint64_t lost;
	struct period_change changes[CHANGES_MAX]; /* changes behind the last read record */
	unsigned change_count;
	/* a read(2) of all events: HEAD_WORDS, then value and lost samples of each */
	uint64_t *words;
};

enum { HEAD_WORDS = 3 /* number of events, time enabled, time running */ };

static struct tally_attr *attr_of(const struct tally_event_ring *ring)
{
	return &ring->events.list.items[0].attr;
}

/* --- opening --------------------------------------------------------------- */

static int choose_attribute(struct tally_attr *attr, const struct tally_event_ring_options *options,
			    struct tally_error *err)
{
	const uint64_t fields = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
				TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD;
	if (options->period && options->frequency)
		return tally_error_set(err, -EINVAL, "either a period or a frequency, not both");
	if (options->pages & (options->pages - 1))
		return tally_error_set(err, -EINVAL, "%u pages are no power of two",
				       options->pages);
	if (options->period) {
		attr->sample_period = options->period;
	} else {
		attr->sample_period = options->frequency ? options->frequency : FREQUENCY_DEFAULT;
		attr->flags |= TALLY_ATTR_FREQ;
	}
	attr->sample_type = fields;
	tally_attr_honour_period(attr);
	if (options->fields)
		attr->sample_type = options->fields;
	if (options->chain)
		attr->sample_type |= TALLY_SAMPLE_CALLCHAIN;
	if (attr->sample_type & TALLY_SAMPLE_CALLCHAIN)
		attr->sample_max_stack = options->chain_max;
	attr->wakeup_events = options->wakeup_samples;
	attr->flags |= TALLY_ATTR_SAMPLE_ID_ALL | TALLY_ATTR_DISABLED;
	return 0;
}

/* Opens all events with this read_format; the first leads. */
static int open_events(struct tally_event_ring *ring, int pid, uint64_t format,
		       struct tally_error *err)
{
	const struct tally_event_list *list = &ring->events.list;
	for (ring->open = 0; ring->open < list->count; ring->open++) {
		int leader = ring->open ? ring->handles[0] : -1;
		list->items[ring->open].attr.read_format = format;
		int handle = tally_library_events_open(&ring->events, ring->open, pid, leader, err);
		if (handle < 0)
			return handle;
		ring->handles[ring->open] = handle;
	}
	return 0;
}

static void close_events(struct tally_event_ring *ring)
{
	struct tally_provider *provider = ring->events.provider;
	while (ring->open) /* close members before their leader */
		provider->ops->close(provider, ring->handles[--ring->open]);
}

/* Linux before 6.0 refuses PERF_FORMAT_LOST. */
static int open_with_lost(struct tally_event_ring *ring, int pid, uint64_t format,
			  struct tally_error *err)
{
	struct tally_error ignored = TALLY_ERROR_NONE;
	if (!open_events(ring, pid, format | TALLY_FORMAT_LOST, &ignored))
		return 0;
	close_events(ring);
	return open_events(ring, pid, format, err);
}

/* Maps a ring of the requested size, or, if none is requested, as large as the limit of locked
 * memory permits. */
static int map_ring(struct tally_event_ring *ring, uint32_t asked, struct tally_error *err)
{
	int result = -EPERM;
	for (uint32_t pages = asked ? asked : PAGES_DEFAULT; pages && result == -EPERM;
	     pages /= 2) {
		result = tally_ring_open(&ring->ring, ring->events.provider, ring->handles[0], -1,
					 pages);
		if (asked)
			break;
	}
	if (!result)
		result = tally_ring_reserve(&ring->ring);
	if (!result)
		return 0;
	tally_error_set(err, result, "the ring can't be mapped: %s", tally_errno_text(result));
	if (result == -EPERM)
		tally_error_hint(
			err,
			"ask for fewer pages, or raise the limit of locked memory (ulimit -l)");
	return result;
}

static int control(struct tally_event_ring *ring, enum tally_ioctl request, void *argument)
{
	struct tally_provider *provider = ring->events.provider;
	if (ring->process != tally_page_reader_this_process())
		return -ECHILD;
	return provider->ops->ioctl(provider, ring->handles[0], request, argument, 0);
}

static int open_ring(struct tally_event_ring *ring, const char *expression,
		     const struct tally_event_ring_options *options, struct tally_error *err)
{
	uint64_t format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	int result = tally_library_events_parse(&ring->events, expression, err);
	if (result < 0)
		return result;
	size_t count = ring->events.list.count;
	if (!count)
		return tally_error_set(err, -EINVAL, "'%s' names no event", expression);
	ring->handles = malloc(count * sizeof(*ring->handles));
	ring->words = malloc((HEAD_WORDS + 2 * count) * sizeof(*ring->words));
	if (!ring->handles || !ring->words)
		return tally_error_set(err, -ENOMEM, "out of memory");
	result = choose_attribute(attr_of(ring), options, err);
	if (result < 0)
		return result;
	if (count > 1) {
		attr_of(ring)->sample_type |= TALLY_SAMPLE_READ;
		format |= TALLY_FORMAT_GROUP;
	}
	result = open_with_lost(ring, options->pid, format, err);
	if (!result)
		result = map_ring(ring, options->pages, err);
	if (result < 0 || options->disabled)
		return result;
	result = control(ring, TALLY_IOCTL_ENABLE, NULL);
	if (result < 0)
		tally_error_set(err, result, "sampling can't be started: %s",
				tally_errno_text(result));
	return result;
}

struct tally_event_ring *tally_event_ring_open_from(struct tally_provider *provider,
						    const char *event,
						    const struct tally_event_ring_options *options,
						    char *error, size_t error_size)
{
	struct tally_event_ring_options chosen = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_event_ring *ring = NULL;
	int result = tally_library_options(&chosen, sizeof(chosen), options, &err);
	if (!result) {
		ring = calloc(1, sizeof(*ring));
		if (!ring)
			result = tally_error_set(&err, -ENOMEM, "out of memory");
	}
	if (ring) {
		ring->events.provider = provider;
		ring->process = tally_page_reader_number_process();
		result = open_ring(ring, event, &chosen, &err);
	}
	if (!result)
		return ring;
	tally_event_ring_close(ring);
	tally_library_fail(result, &err, error, error_size);
	return NULL;
}

struct tally_event_ring *tally_event_ring_open(const char *event,
					       const struct tally_event_ring_options *options,
					       char *error, size_t error_size)
{
	return tally_event_ring_open_from(NULL, event, options, error, error_size);
}

size_t tally_event_ring_size(const struct tally_event_ring *ring)
{
	return ring->open;
}

const char *tally_event_ring_name(const struct tally_event_ring *ring, size_t index)
{
	if (index < ring->open)
		return ring->events.list.items[index].name;
	return NULL;
}

const struct tally_attr *tally_event_ring_attr(const struct tally_event_ring *ring)
{
	return attr_of(ring);
}

void tally_event_ring_close(struct tally_event_ring *ring)
{
	if (!ring)
		return;
	/* A forked child does not have the ring: something else may be at its address. */
	if (ring->process != tally_page_reader_this_process())
		ring->ring.page = NULL;
	tally_ring_close(&ring->ring);
	close_events(ring);
	tally_library_events_release(&ring->events);
	free(ring->handles);
	free(ring->words);
	free(ring);
}

/* --- waiting --------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int tally_event_ring_wait(struct tally_event_ring *ring, int timeout_ms)
{
	struct tally_provider *provider = ring->events.provider;
	int64_t end_ms = now_ms() + timeout_ms;
	size_t size;
	if (ring->process != tally_page_reader_this_process())
		return tally_library_result(-ECHILD);
	tally_ring_release_read(&ring->ring); /* otherwise the kernel would wait for us in turn */
	for (;;) {
		struct tally_wait_item item = { .handle = ring->handles[0] };
		int64_t left = -1;
		if (timeout_ms >= 0)
			left = tally_max_i64(end_ms - now_ms(), 0);
		int result = provider->ops->wait(provider, &item, 1, -1, (int)left);
		tally_ring_note(&ring->ring);
		if (tally_ring_peek(&ring->ring, &size))
			return 1;
		if (result > 0 && item.revents & (POLLHUP | POLLERR))
			result = -EPIPE;
		/* A wake-up may belong to records that were read before. */
		if (result < 0 || (timeout_ms >= 0 && now_ms() >= end_ms))
			return tally_library_result(tally_error_of(result));
	}
}

int tally_event_ring_fd(const struct tally_event_ring *ring)
{
	if (ring->process != tally_page_reader_this_process())
		return tally_library_result(-ECHILD);
	if (!tally_provider_can(ring->events.provider, TALLY_PROVIDER_DESCRIPTORS))
		return tally_library_result(-ENOTSUP);
	return ring->handles[0];
}

int tally_event_ring_signal(struct tally_event_ring *ring, int signo)
{
	struct tally_provider *provider = ring->events.provider;
	if (ring->process != tally_page_reader_this_process())
		return tally_library_result(-ECHILD);
	if (!provider->ops->signal)
		return tally_library_result(-ENOTSUP);
	if (signo < 0)
		return tally_library_result(-EINVAL);
	/* A handler may ask for the reason before the call has returned. */
	if (signo)
		ring->signo = signo;
	return tally_library_result(provider->ops->signal(provider, ring->handles[0], signo));
}

/* Signals with codes of their own (SIGTRAP, SIGCHLD, …) have the code SI_SIGIO; si_band says the
 * same as poll(2) in each case (send_sigio_to_task() in fs/fcntl.c). */
enum tally_event_ring_reason tally_event_ring_reason(const struct tally_event_ring *ring,
						     const void *info)
{
	const siginfo_t *signal = info;
	if (!ring->signo || signal->si_signo != ring->signo ||
	    (signal->si_code != SI_SIGIO &&
	     (signal->si_code < POLL_IN || signal->si_code > POLL_HUP)) ||
	    signal->si_fd != ring->handles[0])
		return TALLY_EVENT_RING_NONE;
	if (signal->si_code == POLL_HUP || signal->si_band & POLLHUP)
		return TALLY_EVENT_RING_END;
	return TALLY_EVENT_RING_SAMPLE;
}

/* --- reading --------------------------------------------------------------- */

/* Takes the period that was in force at the position of a record. */
static void apply_changes(struct tally_event_ring *ring, uint64_t position)
{
	unsigned passed = 0;
	while (passed < ring->change_count && ring->changes[passed].from <= position)
		attr_of(ring)->sample_period = ring->changes[passed++].period;
	if (!passed)
		return;
	ring->change_count -= passed;
	memmove(ring->changes, ring->changes + passed, ring->change_count * sizeof(*ring->changes));
}

const struct tally_record_header *tally_event_ring_next(struct tally_event_ring *ring)
{
	size_t size;
	if (ring->process != tally_page_reader_this_process())
		return NULL;
	const struct tally_record_header *header = tally_ring_next(&ring->ring, &size);
	if (!header) {
		tally_ring_release_read(&ring->ring);
		tally_ring_note(&ring->ring);
		header = tally_ring_next(&ring->ring, &size);
	}
	if (!header)
		return NULL;
	apply_changes(ring, ring->ring.tail - size);
	struct tally_record record;
	if (header->type == TALLY_RECORD_LOST && !tally_event_ring_decode(ring, header, &record))
		ring->lost += record.lost.lost;
	return header;
}

int tally_event_ring_decode(const struct tally_event_ring *ring,
			    const struct tally_record_header *header, struct tally_record *record)
{
	return tally_record_decode(tally_event_ring_attr(ring), header, header->size, record);
}

long tally_event_ring_each(struct tally_event_ring *ring, tally_event_ring_function *function,
			   void *context)
{
	const struct tally_record_header *header;
	struct tally_record record;
	long calls = 0;
	if (ring->process != tally_page_reader_this_process())
		return tally_library_result(-ECHILD);
	while ((header = tally_event_ring_next(ring))) {
		int result = tally_event_ring_decode(ring, header, &record);
		if (result == -ENOTSUP)
			continue;
		if (result < 0)
			return tally_library_result(result);
		calls++;
		if (!function(context, &record))
			break;
	}
	return calls;
}

uint64_t tally_event_ring_lost(const struct tally_event_ring *ring)
{
	return ring->lost;
}

int tally_event_ring_lost_now(struct tally_event_ring *ring, uint64_t *lost)
{
	struct tally_provider *provider = ring->events.provider;
	uint64_t format = attr_of(ring)->read_format;
	if (ring->process != tally_page_reader_this_process())
		return tally_library_result(-ECHILD);
	if (!(format & TALLY_FORMAT_LOST))
		return tally_library_result(-ENOTSUP);
	ssize_t got = provider->ops->read(provider, ring->handles[0], ring->words,
					  (HEAD_WORDS + 2 * ring->open) * sizeof(*ring->words));
	if (got < 0)
		return tally_library_result((int)got);
	/* number of events, times, value, lost; or value, times, lost */
	size_t at = HEAD_WORDS;
	if (format & TALLY_FORMAT_GROUP)
		at++;
	if ((size_t)got < (at + 1) * sizeof(*ring->words))
		return tally_library_result(-EIO);
	*lost = ring->words[at];
	return 0;
}

/* --- control --------------------------------------------------------------- */

int tally_event_ring_enable(struct tally_event_ring *ring)
{
	return tally_library_result(control(ring, TALLY_IOCTL_ENABLE, NULL));
}

int tally_event_ring_disable(struct tally_event_ring *ring)
{
	return tally_library_result(control(ring, TALLY_IOCTL_DISABLE, NULL));
}

int tally_event_ring_refresh(struct tally_event_ring *ring, uint32_t samples)
{
	if (!samples || samples > INT32_MAX)
		return tally_library_result(-EINVAL);
	return tally_library_result(control(ring, TALLY_IOCTL_REFRESH, (void *)(uintptr_t)samples));
}

/* True if each hit is a sample, whose period is the hit's weight: tally_attr_honour_period(). */
static bool has_weights(const struct tally_attr *attr)
{
	return attr->sample_type & TALLY_SAMPLE_PERIOD && !tally_attr_is_clock(attr) &&
	       (attr->type == TALLY_TYPE_SOFTWARE || attr->type == TALLY_TYPE_TRACEPOINT ||
		attr->type == TALLY_TYPE_BREAKPOINT);
}

/* Changes a fixed period.  The output pauses meanwhile, so that the head of the ring divides the
 * samples of both periods. */
static int change_period(struct tally_event_ring *ring, uint64_t period)
{
	if (ring->change_count == CHANGES_MAX)
		return -EAGAIN;
	int result = control(ring, TALLY_IOCTL_PAUSE_OUTPUT, (void *)1);
	if (result < 0)
		return result;
	result = control(ring, TALLY_IOCTL_PERIOD, &period);
	if (!result) {
		tally_ring_note(&ring->ring);
		ring->changes[ring->change_count++] = (struct period_change){ ring->ring.noted,
									      period };
	}
	int resumed = control(ring, TALLY_IOCTL_PAUSE_OUTPUT, NULL);
	return result < 0 ? result : resumed;
}

int tally_event_ring_set_period(struct tally_event_ring *ring, uint64_t period)
{
	if (!period)
		return tally_library_result(-EINVAL);
	if (attr_of(ring)->flags & TALLY_ATTR_FREQ)
		return tally_library_result(control(ring, TALLY_IOCTL_PERIOD, &period));
	if (has_weights(attr_of(ring)))
		return tally_library_result(-ENOTSUP);
	return tally_library_result(change_period(ring, period));
}
