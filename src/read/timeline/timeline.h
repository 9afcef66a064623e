/* A recording's activity over time: the intervals in which tasks were on CPUs, and events as marks
 * in time.
 *
 * Context switches tell exactly where tasks ran: SWITCH records (`record --switch-events`), else
 * the tracepoint sched:sched_switch.  Without either, samples stand for intervals.  A clock's
 * sample stands for the period before it.  A counter's sample stands for the distance at which
 * samples are meant to come (record -F), or do come (record -c, activity.c).  `source` says
 * which of these was used.  All intervals and marks are kept in memory, 32 bytes each.  Not
 * thread-safe.
 */
#ifndef TALLY_TIMELINE_H
#define TALLY_TIMELINE_H

#include "base/buffer.h"
#include "recording/recording.h"

struct tally_ran {
	uint64_t start, end; /* ns of the recording's clock */
	uint32_t thread;     /* index into the recording's tasks.threads */
	uint32_t cpu;        /* UINT32_MAX: not recorded */
	/* index into the recording's events: the sample's event; UINT32_MAX: a context switch */
	uint32_t event;
	bool preempted;      /* the kernel took the CPU away; false: the task gave it up */
};

struct tally_mark {
	uint64_t time;
	uint32_t thread, cpu; /* as above */
	uint32_t event;       /* index into the recording's events */
	/* text from `describe`, as an offset into `texts`; UINT32_MAX: none */
	uint32_t text;
};

enum tally_activity_source {
	TALLY_ACTIVITY_SWITCHES,
	TALLY_ACTIVITY_TRACEPOINT,
	TALLY_ACTIVITY_SAMPLES
};

struct tally_activity_options {
	/* Selects what is shown, after everything was read: by task, CPU and time.  `comms` matches
	 * the tasks' last names.  `event` selects marks and samples, but never switches. */
	struct tally_profile_filter filter;
	/* Appends the text of a tracepoint's sample.  NULL: marks get no texts. */
	void (*describe)(void *context, const struct tally_recorded_event *event, size_t index,
			 const struct tally_sample *sample, struct tally_buffer *out);
	void *context;
	void (*progress)(void *context, double share);
	void *progress_context;
};

struct tally_activity {
	struct tally_recording *recording;
	enum tally_activity_source source;
	/* sorted by end */
	struct { struct tally_ran *items; size_t count, capacity; } ran;
	struct { struct tally_mark *items; size_t count, capacity; } marks;
	struct tally_buffer texts; /* each text ends in NUL */
	uint64_t first, last; /* ns: the span of everything kept */
	uint64_t idle_samples; /* samples of the idle task, which are never drawn */
	uint32_t cpu_count;   /* highest CPU number seen, + 1 */
};

/* Reads the whole recording.  Takes ownership of `recording`, also when it fails; it is closed with
 * the activity.  Returns 0, -ENOENT when the recording has no times to show, or another -errno;
 * `err` has the message. */
int tally_activity_new(struct tally_recording *recording,
		       const struct tally_activity_options *options, struct tally_activity **out,
		       struct tally_error *err);
void tally_activity_free(struct tally_activity *activity);

/* Returns the last name of the thread's command. */
const char *tally_activity_comm(const struct tally_activity *activity, uint32_t thread);

#endif
