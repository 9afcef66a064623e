/* libtally's counters, built on the same parts as `tally stat`. */
#include "tally/counter.h"

#include "library/library_count.h"
#include "library/library_events.h"

#include <errno.h>
#include <stdlib.h>

struct tally_counter {
	struct tally_library_events events;
	int handle;
};

static int open_event(struct tally_counter *counter, const char *expression,
		      struct tally_error *err)
{
	int result = tally_library_events_parse(&counter->events, expression, err);
	if (result < 0)
		return result;
	if (counter->events.list.count != 1)
		return tally_error_set(err, -EINVAL, "'%s' names %zu events; a counter counts one",
				       expression, counter->events.list.count);
	struct tally_attr *attr = &counter->events.list.items[0].attr;
	attr->read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	attr->flags |= TALLY_ATTR_INHERIT;
	counter->handle = tally_library_events_open(&counter->events, 0, 0, -1, err);
	return counter->handle < 0 ? counter->handle : 0;
}

struct tally_counter *tally_counter_open(const char *event, char *error, size_t error_size)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_counter *counter = calloc(1, sizeof(*counter));
	if (!counter)
		return NULL;
	counter->handle = -1;
	int result = open_event(counter, event, &err);
	if (!result)
		return counter;
	tally_counter_close(counter);
	tally_library_fail(result, &err, error, error_size);
	return NULL;
}

const char *tally_counter_name(const struct tally_counter *counter)
{
	return counter->events.list.items[0].name;
}

int tally_counter_read(struct tally_counter *counter, struct tally_count *count)
{
	struct tally_provider *provider = counter->events.provider;
	uint64_t words[3];
	ssize_t got = provider->ops->read(provider, counter->handle, words, sizeof(words));
	if (got != sizeof(words))
		return tally_library_result(got < 0 ? (int)got : -EIO);
	*count = tally_library_count(words[0], words[1], words[2]);
	return 0;
}

static int control(struct tally_counter *counter, enum tally_ioctl request)
{
	struct tally_provider *provider = counter->events.provider;
	return tally_library_result(
		provider->ops->ioctl(provider, counter->handle, request, NULL, 0));
}

int tally_counter_reset(struct tally_counter *counter)
{
	return control(counter, TALLY_IOCTL_RESET);
}

int tally_counter_enable(struct tally_counter *counter)
{
	return control(counter, TALLY_IOCTL_ENABLE);
}

int tally_counter_disable(struct tally_counter *counter)
{
	return control(counter, TALLY_IOCTL_DISABLE);
}

void tally_counter_close(struct tally_counter *counter)
{
	if (!counter)
		return;
	if (counter->handle >= 0)
		counter->events.provider->ops->close(counter->events.provider, counter->handle);
	tally_library_events_release(&counter->events);
	free(counter);
}
