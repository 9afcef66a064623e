/* libtally's counters and groups, built on the same parts as `tally stat`.  Both are read from user
 * pages where that is possible (user_page.h), otherwise by read(2). */
#include "tally/counter.h"
#include "base/error.h"
#include "library/library_events.h"
#include "library/page_reader.h"
#include "library/user_counters.h"
#include "tally/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Opens an event of the calling thread so that user code can read it, where there is a choice.
 * Returns a handle or -errno. */
static int open_readable(struct tally_library_events *events, size_t index, int leader,
			 struct tally_error *err)
{
	struct tally_attr *attr = &events->list.items[index].attr;
	const struct tally_attr plain = *attr;
	for (unsigned strength = 2; strength; strength--) {
		struct tally_error ignored = TALLY_ERROR_NONE;
		*attr = plain;
		if (!tally_page_reader_ask(attr, &events->catalogue, strength))
			break;
		int handle = tally_library_events_open(events, index, 0, leader, &ignored);
		if (handle >= 0)
			return handle;
	}
	*attr = plain;
	return tally_library_events_open(events, index, 0, leader, err);
}

/* Describes the way of reading: WAY_TEXT bytes. */
static const char *describe_way(const struct tally_page_reader *reader, char *text, size_t size)
{
	const char *reason = tally_page_reader_why_not(reader, false);
	if (reason)
		snprintf(text, size, "read(2): %s", reason);
	else if (tally_page_reader_why_not(reader, true))
		snprintf(text, size, "user page (%s); times by read(2)", TALLY_USER_COUNTERS);
	else
		snprintf(text, size, "user page (%s)", TALLY_USER_COUNTERS);
	return text;
}

enum { WAY_TEXT = 200 };

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Returns the ns of one call, the median of batches. */
static double measure(int (*read_once)(void *counter), void *counter)
{
	enum { BATCHES = 9, BATCH = 100 };
	uint64_t ns[BATCHES];
	for (unsigned i = 0; i < BATCHES; i++) {
		uint64_t start = now_ns();
		for (unsigned n = 0; n < BATCH; n++)
			read_once(counter);
		ns[i] = now_ns() - start;
	}
	qsort(ns, BATCHES, sizeof(*ns), compare_ns);
	return (double)ns[BATCHES / 2] / BATCH;
}

/* ---- counters ------------------------------------------------------------ */

struct tally_counter {
	struct tally_library_events events;
	struct tally_page_reader pages;
	int handle;
	char way[WAY_TEXT];
};

static int open_event(struct tally_counter *counter, const char *expression,
		      const struct tally_counter_options *options, struct tally_error *err)
{
	int result = tally_library_events_parse(&counter->events, expression, err);
	if (result < 0)
		return result;
	if (counter->events.list.count != 1)
		return tally_error_set(err, -EINVAL, "'%s' names %zu events; a counter counts one",
				       expression, counter->events.list.count);
	struct tally_attr *attr = &counter->events.list.items[0].attr;
	attr->read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	if (!options->this_thread_only) {
		attr->flags |= TALLY_ATTR_INHERIT;
		counter->pages.reason = "the threads and processes that the thread starts are "
					"counted, too";
		counter->handle = tally_library_events_open(&counter->events, 0, 0, -1, err);
		return tally_error_of(counter->handle);
	}
	counter->handle = open_readable(&counter->events, 0, -1, err);
	if (counter->handle < 0)
		return counter->handle;
	tally_page_reader_open(&counter->pages, counter->events.provider,
			       counter->events.list.items, &counter->handle, 1);
	return 0;
}

struct tally_counter *tally_counter_open_with(const char *event,
					      const struct tally_counter_options *options,
					      char *error, size_t error_size)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_counter_options chosen = { 0 };
	int result = tally_library_options(&chosen, sizeof(chosen), options, &err);
	struct tally_counter *counter = NULL;
	if (!result)
		counter = calloc(1, sizeof(*counter));
	if (!result && !counter)
		result = tally_error_set(&err, -ENOMEM, "out of memory");
	if (!result) {
		counter->handle = -1;
		result = open_event(counter, event, &chosen, &err);
	}
	if (!result)
		return counter;
	tally_counter_close(counter);
	tally_library_fail(result, &err, error, error_size);
	return NULL;
}

struct tally_counter *tally_counter_open(const char *event, char *error, size_t error_size)
{
	return tally_counter_open_with(event, NULL, error, error_size);
}

const char *tally_counter_name(const struct tally_counter *counter)
{
	return counter->events.list.items[0].name;
}

int tally_counter_read(struct tally_counter *counter, struct tally_count *count)
{
	struct tally_page_times times;
	uint64_t words[3];
	if (tally_page_reader_usable(&counter->pages) &&
	    tally_pages_read(counter->pages.pages, 1, &tally_this_cpu, words, &times)) {
		*count = tally_library_count(words[0], times.enabled_ns, times.running_ns);
		return 0;
	}
	struct tally_provider *provider = counter->events.provider;
	ssize_t got = provider->ops->read(provider, counter->handle, words, sizeof(words));
	if (got < 0)
		return tally_library_result((int)got);
	if (got != sizeof(words))
		return tally_library_result(-EIO);
	*count = tally_library_count(words[0], words[1], words[2]);
	return 0;
}

int tally_counter_value(struct tally_counter *counter, uint64_t *value)
{
	struct tally_count count;
	if (tally_page_reader_usable(&counter->pages) &&
	    tally_pages_read(counter->pages.pages, 1, &tally_this_cpu, value, NULL))
		return 0;
	int result = tally_counter_read(counter, &count);
	if (!result)
		*value = count.value;
	return result;
}

static int read_counter(void *counter)
{
	uint64_t value;
	return tally_counter_value(counter, &value);
}

const char *tally_counter_read_way(struct tally_counter *counter, double *ns)
{
	if (ns)
		*ns = measure(read_counter, counter);
	return describe_way(&counter->pages, counter->way, sizeof(counter->way));
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
	tally_page_reader_close(&counter->pages);
	if (counter->handle >= 0)
		counter->events.provider->ops->close(counter->events.provider, counter->handle);
	tally_library_events_release(&counter->events);
	free(counter);
}

/* ---- groups: events that the kernel schedules together and reads at once --- */

struct tally_group {
	struct tally_library_events events;
	struct tally_page_reader pages;
	int *handles;    /* one for each open event; the leader's is the first */
	uint64_t *words; /* the result of a read: HEAD_WORDS, then a value for each event */
	size_t size;     /* number of open events */
	char way[WAY_TEXT];
};

enum { HEAD_WORDS = 3 /* number of events, time enabled, time running */ };

static int open_events(struct tally_group *group, const char *expression, struct tally_error *err)
{
	int result = tally_library_events_parse(&group->events, expression, err);
	if (result < 0)
		return result;
	size_t count = group->events.list.count;
	if (!count)
		return tally_error_set(err, -EINVAL, "'%s' names no event", expression);
	group->handles = malloc(count * sizeof(*group->handles));
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
		int handle = open_readable(&group->events, group->size, leader, err);
		if (handle < 0)
			return handle;
		group->handles[group->size] = handle;
	}
	tally_page_reader_open(&group->pages, group->events.provider, group->events.list.items,
			       group->handles, count);
	return 0;
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

/* Reads values and times into `words`. */
static int read_words(struct tally_group *group)
{
	struct tally_page_times times;
	if (tally_page_reader_usable(&group->pages) &&
	    tally_pages_read(group->pages.pages, group->pages.count, &tally_this_cpu,
			     group->words + HEAD_WORDS, &times)) {
		group->words[1] = times.enabled_ns;
		group->words[2] = times.running_ns;
		return 0;
	}
	struct tally_provider *provider = group->events.provider;
	size_t bytes = (HEAD_WORDS + group->size) * sizeof(uint64_t);
	ssize_t got = provider->ops->read(provider, group->handles[0], group->words, bytes);
	if (got < 0)
		return (int)got;
	if (got != (ssize_t)bytes || group->words[0] != group->size)
		return -EIO;
	return 0;
}

long tally_group_read(struct tally_group *group, struct tally_count *counts, size_t size)
{
	int result = read_words(group);
	if (result < 0)
		return tally_library_result(result);
	for (size_t i = 0; i < group->size && i < size; i++)
		counts[i] = tally_library_count(group->words[HEAD_WORDS + i], group->words[1],
						group->words[2]);
	return (long)group->size;
}

long tally_group_values(struct tally_group *group, uint64_t *values, size_t size)
{
	uint64_t *words = group->words + HEAD_WORDS;
	if (size > group->size)
		size = group->size;
	if (tally_page_reader_usable(&group->pages) &&
	    tally_pages_read(group->pages.pages, group->pages.count, &tally_this_cpu, words,
			     NULL)) {
		memcpy(values, words, size * sizeof(*values));
		return (long)group->size;
	}
	int result = read_words(group);
	if (result < 0)
		return tally_library_result(result);
	for (size_t i = 0; i < size; i++)
		values[i] = tally_library_count(words[i], group->words[1], group->words[2]).value;
	return (long)group->size;
}

static int read_group(void *group)
{
	uint64_t first;
	return tally_group_values(group, &first, 1) < 0;
}

const char *tally_group_read_way(struct tally_group *group, double *ns)
{
	if (ns)
		*ns = measure(read_group, group);
	return describe_way(&group->pages, group->way, sizeof(group->way));
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
	tally_page_reader_close(&group->pages);
	while (group->size) /* close members before their leader */
		group->events.provider->ops->close(group->events.provider,
						   group->handles[--group->size]);
	tally_library_events_release(&group->events);
	free(group->handles);
	free(group->words);
	free(group);
}
