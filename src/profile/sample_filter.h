/* Which samples count, told before their stacks are looked at: by event, thread, CPU, command and
 * time; and how much of a stack.
 *
 * What was asked for (lists as text) is parsed once into sets; a recording with a filter gives no
 * other samples (tally_recording_filter in recording.h).  Objects and symbols are of the leaf,
 * which has to be named: they are profile.h's to look at.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_SAMPLE_FILTER_H
#define TALLY_PROFILE_SAMPLE_FILTER_H

#include "base/error.h"
#include "perfdata/perfdata.h"
#include "profile/time_ranges.h"
#include "task/tasks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_names;

/* Zero-initialised takes all.  Lists are comma-separated, NULL for any; numbers may be ranges
 * ("0,4-7"), CPUs as cpu.h has it. */
struct tally_profile_filter {
	const char *event; /* a name, or a number */
	const char *comms, *pids, *tids, *cpus;
	const char *time; /* as time_ranges.h has it */
	bool time_since_first; /* its seconds are counted from the recording's first sample */
	const char *objects, *symbols; /* of the leaf: see tally_profile_new() */
	uint32_t frames_max; /* of each stack the innermost; 0: all */
};

struct tally_sample_filter {
	struct tally_ranges pids, tids, cpus, times; /* none: any; times in ns */
	const char *comms, *event;
	/* from the first range to the last; 0 and UINT64_MAX: open */
	uint64_t time_start_ns, time_end_ns;
	/* how many events there were when `event` was looked up among them */
	size_t events_seen;
	size_t event_index;    /* SIZE_MAX: not found yet */
	bool takes_all;
};

/* Texts are kept by reference.  -EINVAL with a message that names what is no number; -ENODATA where
 * a share of the time or a time since its start was asked for, and the recording doesn't tell when
 * it began and ended; -ENOMEM. */
int tally_sample_filter_init(struct tally_sample_filter *filter,
			     const struct tally_profile_filter *asked,
			     const struct tally_perfdata *data, struct tally_error *err);
void tally_sample_filter_release(struct tally_sample_filter *filter);

/* Whether the sample counts; `tasks` as they are at its time, `event` one of `data`'s. */
bool tally_sample_filter_passes(struct tally_sample_filter *filter,
				const struct tally_perfdata *data, const struct tally_tasks *tasks,
				const struct tally_recorded_event *event,
				const struct tally_sample *sample);

/* Parses "0,4-7" and adds its numbers to a set.  -EINVAL, -ENOMEM. */
int tally_numbers_parse(struct tally_ranges *numbers, const char *text, struct tally_error *err);
/* The same of a list of CPUs. */
int tally_filter_cpus_parse(struct tally_ranges *cpus, const char *text, struct tally_error *err);

/* Whether a comma-separated list has a word, or a pattern that it fits: `*` is anything, `?` one
 * character; these, a comma and a backslash stand for themselves behind a backslash. */
bool tally_list_has(const char *list, const char *word);

/* Whether the filter's objects and symbols take a function of the names; UINT32_MAX (memory was
 * out) passes none. */
bool tally_function_passes(const struct tally_profile_filter *filter,
			   const struct tally_names *names, uint32_t function);

/* The list that has this word alone, into twice the word's bytes and one. */
void tally_list_quote(const char *word, char *list);

/* The event of a name — also "page-faults" for the "page-faults:u" that it became where the
 * kernel's part was not to be had, and "sched_switch" for the one tracepoint that is called so — or
 * of a number; `count` when there is none. */
size_t tally_event_find(const struct tally_recorded_event *events, size_t count, const char *name);

/* -ENOENT with the list of the events that there are. */
int tally_event_not_found(const struct tally_perfdata *data, const char *name,
			  struct tally_error *err);

/* When the first and the last sample were taken; a pipe tells nothing of it, and perf not without
 * build-ids. */
bool tally_recorded_times(const struct tally_perfdata *data, uint64_t *first_ns, uint64_t *last_ns);

#endif
