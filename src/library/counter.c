/* libtally's counters, over the same rooms that `tally stat` uses. */
#include "tally/counter.h"

#include "event/event.h"
#include "provider/advice.h"
#include "provider/kernel_catalogue.h"
#include "provider/provider.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct tally_counter {
	struct tally_provider *provider;
	struct tally_catalogue catalogue;
	struct tally_arena arena;
	struct tally_event_list events;
	int handle;
};

static int open_event(struct tally_counter *counter, const char *expression, struct tally_error *err)
{
	int result = tally_catalogue_init(&counter->catalogue);
	if (result < 0)
		return tally_error_set(err, result, "out of memory");
	result = tally_kernel_catalogue(&counter->catalogue, err);
	if (result < 0)
		return result;
	result = tally_event_parse(expression, &counter->catalogue, &counter->arena, &counter->events, err);
	if (result < 0)
		return result;
	if (counter->events.count != 1)
		return tally_error_set(err, -EINVAL, "'%s' names %zu events; a counter counts one", expression,
				       counter->events.count);
	struct tally_event *event = &counter->events.items[0];
	event->attr.size = sizeof(event->attr);
	event->attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	event->attr.flags |= TALLY_ATTR_INHERIT;
	counter->handle = counter->provider->ops->open(counter->provider, &event->attr, 0, -1, -1, 0);
	if (counter->handle < 0)
		tally_provider_open_error(event, counter->handle, 0, -1, err);
	return counter->handle < 0 ? counter->handle : 0;
}

struct tally_counter *tally_counter_open(const char *event, char *error, size_t error_size)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_counter *counter = calloc(1, sizeof(*counter));
	if (!counter)
		return NULL;
	counter->provider = tally_provider_kernel();
	counter->handle = -1;
	int result = open_event(counter, event, &err);
	if (!result)
		return counter;
	if (error && error_size)
		snprintf(error, error_size, "%s%s%s", err.message, err.hint[0] ? "; " : "", err.hint);
	tally_counter_close(counter);
	errno = -result;
	return NULL;
}

const char *tally_counter_name(const struct tally_counter *counter)
{
	return counter->events.items[0].name;
}

static int fail_as_libc(int result)
{
	if (result >= 0)
		return 0;
	errno = -result;
	return -1;
}

int tally_counter_read(struct tally_counter *counter, struct tally_count *count)
{
	uint64_t words[3];
	ssize_t got = counter->provider->ops->read(counter->provider, counter->handle, words, sizeof(words));
	if (got != sizeof(words))
		return fail_as_libc(got < 0 ? (int)got : -EIO);
	*count = (struct tally_count){ words[0], words[0], words[1], words[2] };
	if (words[2] && words[2] < words[1])
		count->value = (uint64_t)((double)words[0] * (double)words[1] / (double)words[2]);
	return 0;
}

static int control(struct tally_counter *counter, enum tally_ioctl request)
{
	return fail_as_libc(counter->provider->ops->ioctl(counter->provider, counter->handle, request, NULL, 0));
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
		counter->provider->ops->close(counter->provider, counter->handle);
	tally_event_list_release(&counter->events);
	tally_catalogue_release(&counter->catalogue);
	tally_arena_release(&counter->arena);
	free(counter);
}
