/* The events of regions: which can be counted here, in which groups, and reading them. */
#include "base/error.h"
#include "base/terminal.h"
#include "base/text.h"
#include "library/library_events.h"
#include "library/region_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The events of `tally stat`.  Events whose ratio is shown are counted together. */
#define USUAL_EVENTS \
	"task-clock,context-switches,cpu-migrations,page-faults,{cycles,instructions}," \
	"{branches,branch-misses}"
#define CPU_TIME "cpu-time"

static bool add_event(struct region_plan *plan, const char *name, bool is_time, int group)
{
	struct region_event *event = &plan->events[plan->event_count];
	if (plan->event_count == REGION_EVENTS_MAX)
		return false;
	*event = (struct region_event){ .name = strdup(name), .is_time = is_time, .group = group };
	if (!event->name)
		return false;
	if (!strcmp(name, CPU_TIME)) { /* it is task-clock in ratios */
		event->type = TALLY_TYPE_SOFTWARE;
		event->config = TALLY_SW_TASK_CLOCK;
	}
	plan->event_count++;
	return true;
}

/* Adds names to the list of missing events, and keeps the first reason.  A reason with a caret line
 * becomes one line. */
static void add_missing(struct region_plan *plan, const char *names, const char *reason)
{
	size_t length = strlen(plan->missing_names);
	const char *caret = strstr(reason, "^");
	const char *comma = length ? ", " : "";
	char *at = plan->missing_names + length;
	snprintf(at, sizeof(plan->missing_names) - length, "%s%s", comma, names);
	if (length)
		return;
	snprintf(plan->missing_reason, sizeof(plan->missing_reason), "%.*s%s",
		 (int)strcspn(reason, "\n"), reason, caret ? caret + 1 : "");
}

/* Fills in type, config and excludes of a group's events.  On failure they stay 0, and the events have no
 * ratios. */
static void describe(struct region_plan *plan, const char *expression, unsigned first)
{
	struct tally_library_events events = { 0 };
	if (!tally_library_events_parse(&events, expression, NULL))
		for (size_t i = 0; i < events.list.count && first + i < plan->event_count; i++) {
			const struct tally_attr *attr = &events.list.items[i].attr;
			struct region_event *event = &plan->events[first + i];
			event->type = attr->type;
			event->config = attr->config;
			event->excludes = attr->flags &
					  (TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL);
			event->is_time = attr->type == TALLY_TYPE_SOFTWARE &&
					 attr->config <= TALLY_SW_TASK_CLOCK;
		}
	tally_library_events_release(&events);
}

/* True if an event occurs only in the kernel, but is to be counted in user mode: it would be 0. */
static bool has_false_zeros(const char *expression)
{
	struct tally_library_events events = { 0 };
	bool result = false;
	if (!tally_library_events_parse(&events, expression, NULL))
		for (size_t i = 0; i < events.list.count; i++) {
			const struct tally_attr *attr = &events.list.items[i].attr;
			result |= attr->type == TALLY_TYPE_SOFTWARE &&
				  attr->flags & TALLY_ATTR_EXCLUDE_KERNEL &&
				  (attr->config == TALLY_SW_CONTEXT_SWITCHES ||
				   attr->config == TALLY_SW_CPU_MIGRATIONS ||
				   attr->config == TALLY_SW_CGROUP_SWITCHES);
		}
	tally_library_events_release(&events);
	return result;
}

/* Adds a group if this thread can open it.  Returns 0, or -errno with a message. */
static int try_group(struct region_plan *plan, const char *expression, char *error, size_t size)
{
	if (has_false_zeros(expression)) {
		snprintf(error, size, "it occurs only in the kernel: name it without ':u'");
		return -EINVAL;
	}
	struct tally_group *group = tally_group_open(expression, error, size);
	if (!group)
		return -errno;
	size_t count = tally_group_size(group);
	unsigned first = plan->event_count, number = plan->group_count;
	char *copy = strdup(expression);
	int result = 0;
	if (!copy || number == REGION_GROUPS_MAX || first + count > REGION_EVENTS_MAX) {
		snprintf(error, size, "too many events; choose at most %d by TALLY_EVENTS",
			 REGION_EVENTS_MAX - 1);
		result = -E2BIG;
	}
	for (size_t i = 0; !result && i < count; i++)
		if (!add_event(plan, tally_group_name(group, i), false, (int)number))
			result = -ENOMEM;
	tally_group_close(group);
	if (result) {
		while (plan->event_count > first)
			free(plan->events[--plan->event_count].name);
		free(copy);
		return result;
	}
	plan->groups[number] = copy;
	plan->first_event[number] = first;
	plan->group_size[number] = (unsigned)count;
	plan->group_count++;
	describe(plan, expression, first);
	return 0;
}

/* ---- the expression's parts ---------------------------------------------------- */

/* Returns the length of the first part of an expression: up to a comma outside braces and slashes. */
static size_t part_length(const char *text)
{
	unsigned braces = 0;
	bool in_slashes = false;
	size_t i = 0;
	for (; text[i]; i++) {
		if (text[i] == '/')
			in_slashes = !in_slashes;
		else if (text[i] == '{')
			braces++;
		else if (text[i] == '}' && braces)
			braces--;
		else if (text[i] == ',' && !braces && !in_slashes)
			break;
	}
	return i;
}

/* True if the kernel counts it without a hardware counter. */
static bool is_software(const char *name)
{
	struct tally_library_events events = { 0 };
	bool result = false;
	if (!tally_library_events_parse(&events, name, NULL) && events.list.count)
		result = events.list.items[0].kind == TALLY_EVENT_SOFTWARE ||
			 events.list.items[0].kind == TALLY_EVENT_TRACEPOINT;
	tally_library_events_release(&events);
	return result;
}

/* ---- with fewer rights --------------------------------------------------------- */

/* In user mode, these count nothing: the kernel switches and moves threads. */
static bool is_of_the_kernel(const char *name)
{
	static const char *const names[] = { "context-switches", "cs", "cpu-migrations",
					     "migrations", "cgroup-switches" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Appends the names of a list with ":u", which needs fewer rights.  Leaves out those that count nothing
 * then, and adds them to `missing`, with `reason`.  Returns false if a name has modifiers already. */
static bool append_user_names(struct tally_buffer *user, const char *list,
			      struct region_plan *missing, const char *reason)
{
	char name[128];
	if (strpbrk(list, ":/"))
		return false;
	for (; *list; list += *list == ',') {
		size_t length = strcspn(list, ",");
		snprintf(name, sizeof(name), "%.*s", (int)length, list);
		list += length;
		if (is_of_the_kernel(name))
			add_missing(missing, name, reason);
		else
			tally_buffer_printf(user, "%s%s:u", user->length ? "," : "", name);
	}
	return true;
}

/* Adds a group, or what is left of it in user mode if that needs more rights.  `expression` has no
 * braces. */
static int try_group_anywhere(struct region_plan *plan, const char *expression, char *error,
			      size_t size)
{
	int result = try_group(plan, expression, error, size);
	if (result != -EACCES && result != -EPERM)
		return result;
	struct tally_buffer user = { 0 };
	struct region_plan missing = *plan;
	bool is_possible = append_user_names(&user, expression, &missing, error);
	if (is_possible && user.length && !user.failed)
		result = try_group(plan, tally_buffer_string(&user), error, size);
	if (!result) {
		memcpy(plan->missing_names, missing.missing_names, sizeof(missing.missing_names));
		memcpy(plan->missing_reason, missing.missing_reason,
		       sizeof(missing.missing_reason));
		result = 0;
	}
	tally_buffer_release(&user);
	return result;
}

/* Adds events that may be together; one by one, if that fails. */
static void add_together(struct region_plan *plan, struct tally_buffer *names)
{
	char error[512];
	const char *all = tally_buffer_string(names);
	if (!*all || !try_group_anywhere(plan, all, error, sizeof(error)))
		return;
	for (size_t length; *all; all += length + (all[length] == ',')) {
		length = part_length(all);
		char *name = strndup(all, length);
		int result = -ENOMEM;
		if (name)
			result = try_group_anywhere(plan, name, error, sizeof(error));
		if (name && result)
			add_missing(plan, name, error);
		free(name);
	}
}

/* Adds a group in braces as a whole, or not at all. */
static void add_braces(struct region_plan *plan, const char *part)
{
	char error[512];
	size_t length = strlen(part);
	char *inside = NULL;
	/* with modifiers behind the braces it stays as it is */
	if (part[length - 1] == '}')
		inside = strndup(part + 1, length - 2);
	if (try_group_anywhere(plan, tally_text_or(inside, part), error, sizeof(error)))
		add_missing(plan, tally_text_or(inside, part), error);
	free(inside);
}

static void add_part(struct region_plan *plan, const char *part, struct tally_buffer *software,
		     struct tally_buffer *hardware)
{
	if (!*part || !strcmp(part, "wall"))
		return;
	if (!strcmp(part, CPU_TIME)) {
		add_event(plan, CPU_TIME, true, REGION_IS_CLOCK);
		return;
	}
	if (*part == '{') {
		add_braces(plan, part);
		return;
	}
	struct tally_buffer *others = is_software(part) ? software : hardware;
	tally_buffer_printf(others, "%s%s", others->length ? "," : "", part);
}

void region_plan_make(struct region_plan *plan, const char *expression)
{
	struct tally_buffer software = { 0 }, hardware = { 0 };
	const char *text = expression;
	if (!text)
		text = USUAL_EVENTS;
	add_event(plan, "wall", true, REGION_IS_CLOCK);
	for (size_t length; *text; text += length + (text[length] == ',')) {
		length = part_length(text);
		char *part = strndup(text, length);
		if (part)
			add_part(plan, part, &software, &hardware);
		free(part);
	}
	add_together(plan, &software);
	add_together(plan, &hardware);
	tally_buffer_release(&software);
	tally_buffer_release(&hardware);
	if (!expression) {
		bool has_clock = false;
		for (unsigned i = 1; i < plan->event_count; i++)
			has_clock |= plan->events[i].is_time;
		if (!has_clock)
			add_event(plan, CPU_TIME, true, REGION_IS_CLOCK);
	}
	if (!*plan->missing_names)
		return;
	snprintf(plan->missing, sizeof(plan->missing), "%s: %s", plan->missing_names,
		 plan->missing_reason);
	tally_terminal_clean_name(plan->missing, plan->missing, sizeof(plan->missing));
}

/* ---- a thread's counters ----------------------------------------------------- */

unsigned region_groups_open(const struct region_plan *plan, struct tally_group **groups)
{
	unsigned failures = 0;
	for (unsigned i = 0; i < plan->group_count; i++) {
		groups[i] = tally_group_open(plan->groups[i], NULL, 0);
		failures += !groups[i];
	}
	return failures;
}

void region_groups_close(const struct region_plan *plan, struct tally_group **groups)
{
	for (unsigned i = 0; i < plan->group_count; i++) {
		tally_group_close(groups[i]);
		groups[i] = NULL;
	}
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Reads all but wall time.  A group that can't be read has REGION_UNREAD as its time. */
static void read_events(const struct region_plan *plan, struct tally_group *const *groups,
			struct region_reading *reading)
{
	struct tally_count counts[REGION_EVENTS_MAX];
	for (unsigned i = 0; i < plan->group_count; i++) {
		uint64_t *values = reading->values + plan->first_event[i];
		reading->enabled_ns[i] = REGION_UNREAD;
		if (!groups[i] ||
		    tally_group_read(groups[i], counts, REGION_EVENTS_MAX) != plan->group_size[i])
			continue;
		for (unsigned n = 0; n < plan->group_size[i]; n++)
			values[n] = counts[n].raw;
		reading->enabled_ns[i] = counts[0].enabled_ns;
		reading->running_ns[i] = counts[0].running_ns;
	}
	for (unsigned i = 1; i < plan->event_count; i++)
		if (plan->events[i].group == REGION_IS_CLOCK)
			reading->values[i] = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void region_read_begin(const struct region_plan *plan, struct tally_group *const *groups,
		       struct region_reading *reading)
{
	read_events(plan, groups, reading);
	reading->values[REGION_WALL] = clock_ns(CLOCK_MONOTONIC);
}

void region_read_end(const struct region_plan *plan, struct tally_group *const *groups,
		     struct region_reading *reading)
{
	reading->values[REGION_WALL] = clock_ns(CLOCK_MONOTONIC);
	read_events(plan, groups, reading);
}
