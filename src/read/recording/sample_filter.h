/* Selects samples by event, thread, CPU, command and time, before their stacks are read.  Also
 * limits the frames of a stack.
 *
 * The lists, given as text, are parsed once into sets.  A recording with a filter gives only the
 * selected samples (tally_recording_filter() in recording.h).  Filters by object and symbol need
 * the leaf's name, so profile.h applies them.  Not thread-safe.
 */
#ifndef TALLY_RECORDING_SAMPLE_FILTER_H
#define TALLY_RECORDING_SAMPLE_FILTER_H

#include "base/word_list.h"
#include "base/error.h"
#include "perfdata/perfdata.h"
#include "recording/time_ranges.h"
#include "task/tasks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_names;

/* Zero-initialised, it selects all samples.  Lists are comma-separated; NULL: any.  Numbers may be
 * ranges ("0,4-7"); CPUs are as in cpu.h. */
struct tally_profile_filter {
	const char *event; /* name or number */
	const char *comms, *pids, *tids, *cpus;
	const char *time; /* as in time_ranges.h */
	bool time_since_first; /* seconds in `time` are counted from the recording's first sample */
	const char *objects, *symbols; /* of the leaf: see tally_profile_new() */
	uint32_t frames_max; /* number of innermost frames to keep of each stack; 0: all */
};

struct tally_sample_filter {
	struct tally_ranges pids, tids, cpus, times; /* empty: any; times in ns */
	const char *comms, *event;
	/* from the first range to the last; 0 and UINT64_MAX: no limit */
	uint64_t time_start_ns, time_end_ns;
	/* number of names when `event` was searched among them (tally_perfdata_names_known()) */
	uint64_t names_seen;
	size_t event_index;    /* SIZE_MAX: not found yet */
	bool takes_all;
};

/* Parses the lists; keeps references to the texts.  Returns 0, -EINVAL with a message that names
 * the malformed number, -ENODATA if times are relative to the recording's start or length and these
 * are not known, or -ENOMEM. */
int tally_sample_filter_init(struct tally_sample_filter *filter,
			     const struct tally_profile_filter *asked,
			     const struct tally_perfdata *data, struct tally_error *err);
void tally_sample_filter_release(struct tally_sample_filter *filter);

/* True if the filter selects the sample.  `tasks` must be as they are at its time; `event` is one
 * of `data`'s. */
bool tally_sample_filter_passes(struct tally_sample_filter *filter,
				const struct tally_perfdata *data, const struct tally_tasks *tasks,
				const struct tally_recorded_event *event,
				const struct tally_sample *sample);

/* Parses "0,4-7" and adds the numbers to a set.  Returns 0, -EINVAL or -ENOMEM. */
int tally_numbers_parse(struct tally_ranges *numbers, const char *text, struct tally_error *err);
/* The same for a list of CPUs. */
int tally_filter_cpus_parse(struct tally_ranges *cpus, const char *text, struct tally_error *err);

/* True if the filter's objects and symbols select a function of the names.  UINT32_MAX (memory was
 * out) is never selected. */
bool tally_function_passes(const struct tally_profile_filter *filter,
			   const struct tally_names *names, uint32_t function);

/* Writes a list that matches only this word.  `list` has room for twice the word's bytes and a
 * NUL. */
void tally_list_quote(const char *word, char *list);

/* Finds an event by its name, as any view shows it, or by its number; returns `count` if there is
 * none.  "page-faults" also means "page-faults:u", which it became if the kernel's part was not permitted.  "sched_switch" means
 * the tracepoint of that name if there is only one. */
size_t tally_event_find(const struct tally_recorded_event *events, size_t count, const char *name);

/* Sets an error with a list of the existing events.  Returns -ENOENT. */
int tally_event_not_found(const struct tally_perfdata *data, const char *name,
			  struct tally_error *err);

/* Gets the times of the first and the last sample.  Returns false if the recording does not have
 * them: from a pipe, or from perf without build-ids. */
bool tally_recorded_times(const struct tally_perfdata *data, uint64_t *first_ns, uint64_t *last_ns);

#endif
