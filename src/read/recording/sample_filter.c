/* Parses lists into ranges, finds the event that a name means, and tests samples against both.  An
 * event's name may be typed as any view shows it, as an earlier name or a number, or without its
 * modifiers or the tracepoint's system. */
#include "recording/recording.h"

#include "base/buffer.h"
#include "base/characters.h"
#include "base/vector.h"
#include "machine/machine.h"
#include "naming/naming.h"
#include "perfdata/perfdata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets of numbers ----------------------------------------------------- */

static const char *parse_number(const char *text, uint64_t *number)
{
	char *end;
	errno = 0;
	unsigned long value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || errno || value > UINT32_MAX)
		return NULL;
	*number = value;
	return end;
}

int tally_numbers_parse(struct tally_ranges *numbers, const char *text, struct tally_error *err)
{
	for (const char *at = text;;) {
		struct tally_range range;
		const char *end = parse_number(at, &range.first);
		range.last = range.first;
		if (end && *end == '-')
			end = parse_number(end + 1, &range.last);
		if (!end || (*end && *end != ',') || range.last < range.first)
			return tally_error_set(err, -EINVAL,
					       "'%s' is not a list of numbers like 3,8-11", text);
		if (tally_vector_push(numbers, range) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
		if (!*end)
			break;
		at = end + 1;
	}
	tally_ranges_join(numbers);
	return 0;
}

int tally_filter_cpus_parse(struct tally_ranges *cpus, const char *text, struct tally_error *err)
{
	struct tally_cpu_list list;
	int result = tally_cpu_list_asked(text, &list, err);
	for (size_t i = 0; !result && i < list.count; i++)
		if (tally_vector_push(cpus, (struct tally_range){ list.cpus[i], list.cpus[i] }) < 0)
			result = tally_error_set(err, -ENOMEM, "out of memory");
	tally_cpu_list_release(&list);
	tally_ranges_join(cpus);
	return result;
}

static bool is_object_listed(const struct tally_names *names, uint32_t function,
			     const char *objects)
{
	char map[TALLY_PERF_MAP_PATH_BYTES];
	const char *own = tally_names_file_path(names, function),
		   *mapped = tally_names_mapped_object(names, function, map);
	return tally_list_has(objects, tally_names_object(names, function)) ||
	       tally_list_has(objects, tally_names_short_object(names, function)) ||
	       tally_list_has(objects, mapped) ||
	       tally_list_has(objects, tally_object_short(mapped)) ||
	       tally_list_has(objects, own) || tally_list_has(objects, tally_object_short(own));
}

bool tally_function_passes(const struct tally_profile_filter *filter,
			   const struct tally_names *names, uint32_t function)
{
	const char *objects = filter->objects, *symbols = filter->symbols;
	if (function == UINT32_MAX)
		return false;
	return (!objects || is_object_listed(names, function, objects)) &&
	       (!symbols || tally_names_is_listed(names, function, symbols));
}

void tally_list_quote(const char *word, char *list)
{
	for (; *word; *list++ = *word++)
		if (strchr("*?,\\", *word))
			*list++ = '\\';
	*list = '\0';
}

/* ---- events -------------------------------------------------------------- */

/* True if some view shows `own` as `name`.  In place of a character that is not plain, text shows
 * '?', pages show U+FFFD and JSON the character; in place of other bytes they show '?' or U+FFFD. */
static bool is_shown_as(const char *own, const char *name)
{
	static const char stand_in[] = "\xef\xbf\xbd";
	while (*own && *name) {
		uint32_t character = 0;
		unsigned length = tally_character_decode(own, &character);
		bool is_plain = length && tally_character_is_plain(character);
		if (!length)
			length = 1;
		if (!strncmp(own, name, length))
			name += length;
		else if (!is_plain && *name == '?')
			name++;
		else if (!is_plain && !strncmp(name, stand_in, sizeof(stand_in) - 1))
			name += sizeof(stand_in) - 1;
		else
			return false;
		own += length;
	}
	return !*own && !*name;
}

static bool was_shown_as(const struct tally_recorded_event *event, const char *name)
{
	const struct tally_former_name *former = event->former;
	while (former && !is_shown_as(former->name, name))
		former = former->before;
	return former;
}

size_t tally_event_find(const struct tally_recorded_event *events, size_t count, const char *name)
{
	size_t length = strlen(name), found = count;
	uint64_t number;
	for (size_t i = 0; i < count; i++)
		if (is_shown_as(events[i].name, name))
			return i;
	for (size_t i = 0; i < count; i++)
		if (was_shown_as(&events[i], name))
			return i;
	const char *end = parse_number(name, &number);
	if (end && !*end && number < count)
		return number;
	for (size_t i = 0; i < count; i++)
		if (!strncmp(events[i].name, name, length) && events[i].name[length] == ':' &&
		    !strchr(name, ':'))
			return i;
	for (size_t i = 0; i < count; i++) {
		if (events[i].attr.type != TALLY_TYPE_TRACEPOINT)
			continue;
		const char *colon = strchr(events[i].name, ':');
		if (!colon || strncmp(colon + 1, name, length) ||
		    (colon[1 + length] && colon[1 + length] != ':'))
			continue;
		if (found != count)
			return count; /* several have it */
		found = i;
	}
	return found;
}

int tally_event_not_found(const struct tally_perfdata *data, const char *name,
			  struct tally_error *err)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	struct tally_buffer known = { 0 };
	for (size_t i = 0; i < count; i++)
		/* it has no samples */
		if (events[i].attr.type != TALLY_TYPE_SOFTWARE ||
		    events[i].attr.config != TALLY_SW_DUMMY)
			tally_buffer_printf(&known, "%s%s", known.length ? ", " : "",
					    events[i].name);
	tally_error_set(err, -ENOENT, "the recording has no event '%s'", name);
	if (known.length)
		tally_error_hint(err, "it has: %s", tally_buffer_string(&known));
	tally_buffer_release(&known);
	return -ENOENT;
}

/* A pipe announces its events and their names one by one, so the search is repeated when there are
 * more.  An event that was found stays the one, even if it gets another name. */
static bool is_event(struct tally_sample_filter *filter, const struct tally_perfdata *data,
		     const struct tally_recorded_event *event)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	uint64_t names = tally_perfdata_names_known(data);
	if (filter->event_index == SIZE_MAX && names != filter->names_seen) {
		size_t found = tally_event_find(events, count, filter->event);
		filter->event_index = SIZE_MAX;
		if (found < count)
			filter->event_index = found;
		filter->names_seen = names;
	}
	return (size_t)(event - events) == filter->event_index;
}

/* ---- the filter ---------------------------------------------------------- */

bool tally_recorded_times(const struct tally_perfdata *data, uint64_t *first_ns, uint64_t *last_ns)
{
	struct tally_reader reader = tally_feature_reader(data, TALLY_FEATURE_SAMPLE_TIME);
	return tally_feature_read_sample_time(&reader, first_ns, last_ns) && *last_ns &&
	       *first_ns <= *last_ns;
}

static uint64_t later(uint64_t time_ns, uint64_t by_ns)
{
	if (time_ns >= UINT64_MAX - by_ns)
		return UINT64_MAX;
	return time_ns + by_ns;
}

static int no_times(const char *text, bool is_share, bool is_pipe, struct tally_error *err)
{
	const char *kind = "time", *of = "since its start", *without = "without --reltime ";
	const char *from = "", *how = "perf record --timestamp-boundary keeps these times";
	if (is_share) {
		kind = "share";
		of = "of the time";
		without = "";
	}
	if (is_pipe) {
		from = " (it came from a pipe)";
		how = "or record to a file";
	}
	tally_error_set(
		err, -ENODATA,
		"no %s '%s' %s: the recording lacks the times of its first and last sample%s", kind,
		text, of, from);
	tally_error_hint(err,
			 "%sgive START,END in seconds, as 'tally script -F time' prints them; %s",
			 without, how);
	return -ENODATA;
}

static int parse_times(struct tally_sample_filter *filter, const struct tally_profile_filter *asked,
		       const struct tally_perfdata *data, struct tally_error *err)
{
	bool is_share = tally_time_is_share(asked->time),
	     is_since_first = asked->time_since_first && !is_share;
	uint64_t first_ns = 0, last_ns = 0;
	if ((is_share || is_since_first) && !tally_recorded_times(data, &first_ns, &last_ns))
		return no_times(asked->time, is_share, tally_perfdata_is_pipe(data), err);
	int result = tally_time_ranges_parse(&filter->times, asked->time, first_ns, last_ns, err);
	for (size_t i = 0; is_since_first && i < filter->times.count; i++) {
		filter->times.items[i].first = later(filter->times.items[i].first, first_ns);
		filter->times.items[i].last = later(filter->times.items[i].last, first_ns);
	}
	if (!result) {
		filter->time_start_ns = filter->times.items[0].first;
		filter->time_end_ns = filter->times.items[filter->times.count - 1].last;
	}
	return result;
}

static int parse_lists(struct tally_sample_filter *filter, const struct tally_profile_filter *asked,
		       const struct tally_perfdata *data, struct tally_error *err)
{
	int result = 0;
	if (asked->pids)
		result = tally_numbers_parse(&filter->pids, asked->pids, err);
	if (result)
		return result;
	if (asked->tids)
		result = tally_numbers_parse(&filter->tids, asked->tids, err);
	if (result)
		return result;
	if (asked->cpus)
		result = tally_filter_cpus_parse(&filter->cpus, asked->cpus, err);
	if (result)
		return result;
	if (asked->time)
		return parse_times(filter, asked, data, err);
	return 0;
}

/* The field of samples that a filter reads.  Samples without it don't pass: a field that was not
 * recorded is no 0. */
struct need {
	uint64_t bit;     /* of the sample type; 0: the filter is not set */
	const char *what, *advice;
};

enum { NEEDS = 3 };

static void list_needs(const struct tally_profile_filter *asked, struct need needs[NEEDS])
{
	bool has_tasks = asked->pids || asked->tids || asked->comms;
	needs[0] = (struct need){ asked->cpus ? TALLY_SAMPLE_CPU : 0, "CPUs",
				  "tally record does; perf record with --sample-cpu, -a or -C" };
	needs[1] = (struct need){ has_tasks ? TALLY_SAMPLE_TID : 0, "tasks",
				  "tally record and perf record do" };
	needs[2] = (struct need){ asked->time ? TALLY_SAMPLE_TIME : 0, "times",
				  "tally record does; perf record with -T" };
}

static bool is_recorded(uint64_t bit, const struct tally_recorded_event *events, size_t count)
{
	bool is_there = !bit || !count; /* a pipe may tell its events later */
	for (size_t i = 0; i < count; i++)
		is_there |= events[i].attr.sample_type & bit;
	return is_there;
}

/* Refuses a filter by a field that no sample of the recording has. */
static int check_needs(const struct need needs[NEEDS], const struct tally_perfdata *data,
		       struct tally_error *err)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	for (unsigned i = 0; i < NEEDS; i++)
		if (!is_recorded(needs[i].bit, events, count)) {
			tally_error_set(err, -ENODATA,
					"samples can't be chosen by their %s: the recording has "
					"none",
					needs[i].what);
			tally_error_hint(err, "record them: %s", needs[i].advice);
			return -ENODATA;
		}
	return 0;
}

int tally_sample_filter_init(struct tally_sample_filter *filter,
			     const struct tally_profile_filter *asked,
			     const struct tally_perfdata *data, struct tally_error *err)
{
	*filter = (struct tally_sample_filter){
		.comms = asked->comms,
		.event = asked->event,
		.time_end_ns = UINT64_MAX,
		.event_index = SIZE_MAX,
		.names_seen = UINT64_MAX,
	};
	struct need needs[NEEDS];
	list_needs(asked, needs);
	for (unsigned i = 0; i < NEEDS; i++)
		filter->needed |= needs[i].bit;
	int result = check_needs(needs, data, err);
	if (!result)
		result = parse_lists(filter, asked, data, err);
	if (result)
		tally_sample_filter_release(filter);
	filter->takes_all = !asked->pids && !asked->tids && !asked->cpus && !asked->comms &&
			    !asked->event && !asked->time;
	return result;
}

void tally_sample_filter_release(struct tally_sample_filter *filter)
{
	tally_vector_release(&filter->pids);
	tally_vector_release(&filter->tids);
	tally_vector_release(&filter->cpus);
	tally_vector_release(&filter->times);
}

bool tally_sample_filter_passes(struct tally_sample_filter *filter,
				const struct tally_perfdata *data, const struct tally_tasks *tasks,
				const struct tally_recorded_event *event,
				const struct tally_sample *sample)
{
	char buffer[16];
	if (filter->takes_all)
		return true;
	if (filter->needed & ~sample->type)
		return false;
	if (!tally_ranges_pass(&filter->times, sample->time))
		return false;
	if (!tally_ranges_pass(&filter->pids, sample->pid))
		return false;
	if (!tally_ranges_pass(&filter->tids, sample->tid))
		return false;
	if (!tally_ranges_pass(&filter->cpus, sample->cpu))
		return false;
	if (filter->event && !is_event(filter, data, event))
		return false;
	return !filter->comms ||
	       tally_list_has(filter->comms,
			      tally_tasks_comm(tasks, sample->pid, sample->tid, buffer));
}
