/* libtally's counters and groups, built on the same parts as `tally stat`. */
#include "tally/counter.h"
#include "base/error.h"
#include "library/library_events.h"
#include "tally/group.h"

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
	return tally_error_of(counter->handle);
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
	if (got < 0)
		return tally_library_result((int)got);
	if (got != sizeof(words))
		return tally_library_result(-EIO);
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

/* libtally's groups: events that the kernel schedules together and reads at once. */

struct tally_group {
	struct tally_library_events events;
	int *handles; /* one for each open event; the leader's is the first */
	uint64_t *words; /* the result of a read: HEAD_WORDS, then a value for each event */
	size_t size; /* number of open events */
};

enum { HEAD_WORDS = 3 /* number of events, time enabled, time running */ };

static int open_events(struct tally_group *group, const char *expression, struct tally_error *err)
{
	int result = tally_library_events_parse(&group->events, expression, err);
	if (result < 0)
		return result;
	size_t count = group->events.list.count;
	group->handles = malloc((count + 1) * sizeof(*group->handles));
	group->words = malloc((HEAD_WORDS + count) * sizeof(*group->words));
	if (!group->handles || !group->words)
		return tally_error_set(err, -ENOMEM, "out of memory");
	for (; group->size < count; group->size++) {
		struct tally_attr *attr = &group->events.list.items[group->size].attr;
		attr->read_format = TALLY_FORMAT_GROUP | TALLY_FORMAT_TOTAL_TIME_ENABLED |
				    TALLY_FORMAT_TOTAL_TIME_RUNNING;
		/* all start together, with the leader */
		int leader = -1;
		if (group->size)
			leader = group->handles[0];
		else
			attr->flags |= TALLY_ATTR_DISABLED;
		int handle = tally_library_events_open(&group->events, group->size, 0, leader, err);
		if (handle < 0)
			return handle;
		group->handles[group->size] = handle;
	}
	if (count)
		return 0;
	return tally_error_set(err, -EINVAL, "'%s' names no event", expression);
}

struct tally_group *tally_group_open(const char *events, char *error, size_t error_size)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_group *group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	int result = open_events(group, events, &err);
	if (!result && tally_group_enable(group) < 0)
		result = tally_error_set(&err, -errno, "the group can't be enabled: %s",
					 tally_errno_text(errno));
	if (!result)
		return group;
	tally_group_close(group);
	tally_library_fail(result, &err, error, error_size);
	return NULL;
}

size_t tally_group_size(const struct tally_group *group)
{
	return group->size;
}

const char *tally_group_name(const struct tally_group *group, size_t index)
{
	if (index < group->size)
		return group->events.list.items[index].name;
	return NULL;
}

long tally_group_read(struct tally_group *group, struct tally_count *counts, size_t size)
{
	struct tally_provider *provider = group->events.provider;
	size_t bytes = (HEAD_WORDS + group->size) * sizeof(uint64_t);
	ssize_t got = provider->ops->read(provider, group->handles[0], group->words, bytes);
	if (got < 0)
		return tally_library_result((int)got);
	if (got != (ssize_t)bytes || group->words[0] != group->size)
		return tally_library_result(-EIO);
	for (size_t i = 0; i < group->size && i < size; i++)
		counts[i] = tally_library_count(group->words[HEAD_WORDS + i], group->words[1],
						group->words[2]);
	return (long)group->size;
}

static int control_all(struct tally_group *group, enum tally_ioctl request)
{
	struct tally_provider *provider = group->events.provider;
	return tally_library_result(
		provider->ops->ioctl(provider, group->handles[0], request, NULL, 1));
}

int tally_group_reset(struct tally_group *group)
{
	return control_all(group, TALLY_IOCTL_RESET);
}

int tally_group_enable(struct tally_group *group)
{
	return control_all(group, TALLY_IOCTL_ENABLE);
}

int tally_group_disable(struct tally_group *group)
{
	return control_all(group, TALLY_IOCTL_DISABLE);
}

void tally_group_close(struct tally_group *group)
{
	if (!group)
		return;
	while (group->size) /* close members before their leader */
		group->events.provider->ops->close(group->events.provider,
						   group->handles[--group->size]);
	tally_library_events_release(&group->events);
	free(group->handles);
	free(group->words);
	free(group);
}
