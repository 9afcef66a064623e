/* libtally's rings, built on the ring reader of `tally record`. */
#include "base/error.h"
#include "base/extremes.h"
#include "tally/ring.h"

#include "library/library_events.h"
#include "session/ring.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

enum { PAGES_DEFAULT = 64, FREQUENCY_DEFAULT = 1000 };

struct tally_event_ring {
	struct tally_library_events events;
	struct tally_ring ring;
	int handle;
	uint64_t lost;
};

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
	attr->flags |= TALLY_ATTR_SAMPLE_ID_ALL;
	if (options->disabled)
		attr->flags |= TALLY_ATTR_DISABLED;
	return 0;
}

/* Maps a ring of the requested size, or, if none is requested, as large as the limit of locked
 * memory permits. */
static int map_ring(struct tally_event_ring *ring, uint32_t asked, struct tally_error *err)
{
	int result = -EPERM;
	for (uint32_t pages = asked ? asked : PAGES_DEFAULT; pages && result == -EPERM;
	     pages /= 2) {
		result = tally_ring_open(&ring->ring, ring->events.provider, ring->handle, -1,
					 pages);
		if (asked)
			break;
	}
	if (!result)
		return 0;
	tally_error_set(err, result, "the ring can't be mapped: %s", tally_errno_text(result));
	if (result == -EPERM)
		tally_error_hint(
			err,
			"ask for fewer pages, or raise the limit of locked memory (ulimit -l)");
	return result;
}

static int open_ring(struct tally_event_ring *ring, const char *expression,
		     const struct tally_event_ring_options *options, struct tally_error *err)
{
	int result = tally_library_events_parse(&ring->events, expression, err);
	if (result < 0)
		return result;
	if (ring->events.list.count != 1)
		return tally_error_set(err, -EINVAL, "'%s' names %zu events; a ring samples one",
				       expression, ring->events.list.count);
	result = choose_attribute(&ring->events.list.items[0].attr, options, err);
	if (result < 0)
		return result;
	ring->handle = tally_library_events_open(&ring->events, 0, options->pid, -1, err);
	if (ring->handle < 0)
		return ring->handle;
	return map_ring(ring, options->pages, err);
}

struct tally_event_ring *tally_event_ring_open(const char *event,
					       const struct tally_event_ring_options *options,
					       char *error, size_t error_size)
{
	const struct tally_event_ring_options defaults = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_event_ring *ring = calloc(1, sizeof(*ring));
	if (!ring)
		return NULL;
	ring->handle = -1;
	int result = open_ring(ring, event, options ? options : &defaults, &err);
	if (!result)
		return ring;
	tally_event_ring_close(ring);
	tally_library_fail(result, &err, error, error_size);
	return NULL;
}

const struct tally_attr *tally_event_ring_attr(const struct tally_event_ring *ring)
{
	return &ring->events.list.items[0].attr;
}

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
	tally_ring_release_read(&ring->ring); /* otherwise the kernel would wait for us in turn */
	for (;;) {
		struct tally_wait_item item = { .handle = ring->handle };
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

const struct tally_record_header *tally_event_ring_next(struct tally_event_ring *ring)
{
	size_t size;
	const struct tally_record_header *header = tally_ring_next(&ring->ring, &size);
	if (!header) {
		tally_ring_release_read(&ring->ring);
		tally_ring_note(&ring->ring);
		header = tally_ring_next(&ring->ring, &size);
	}
	struct tally_record record;
	if (header && header->type == TALLY_RECORD_LOST &&
	    !tally_event_ring_decode(ring, header, &record))
		ring->lost += record.lost.lost;
	return header;
}

int tally_event_ring_decode(const struct tally_event_ring *ring,
			    const struct tally_record_header *header, struct tally_record *record)
{
	return tally_record_decode(tally_event_ring_attr(ring), header, header->size, record);
}

uint64_t tally_event_ring_lost(const struct tally_event_ring *ring)
{
	return ring->lost;
}

static int control(struct tally_event_ring *ring, enum tally_ioctl request)
{
	struct tally_provider *provider = ring->events.provider;
	return tally_library_result(provider->ops->ioctl(provider, ring->handle, request, NULL, 0));
}

int tally_event_ring_enable(struct tally_event_ring *ring)
{
	return control(ring, TALLY_IOCTL_ENABLE);
}

int tally_event_ring_disable(struct tally_event_ring *ring)
{
	return control(ring, TALLY_IOCTL_DISABLE);
}

void tally_event_ring_close(struct tally_event_ring *ring)
{
	if (!ring)
		return;
	tally_ring_close(&ring->ring);
	if (ring->handle >= 0)
		ring->events.provider->ops->close(ring->events.provider, ring->handle);
	tally_library_events_release(&ring->events);
	free(ring);
}
