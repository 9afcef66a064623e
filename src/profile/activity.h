/* What ran when, and what happened: the intervals in which tasks were on CPUs, and events as marks
 * in time.
 *
 * Where tasks ran is told exactly by context switches: SWITCH records (`record --switch-events`),
 * else the tracepoint sched:sched_switch.  Without either a sample of a clock stands for the period
 * before it, and one of a counter for as long as its samples are meant to be apart, or are
 * (activity_spans.h): `source` says which.  All of it is kept, 32 bytes each.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_ACTIVITY_H
#define TALLY_PROFILE_ACTIVITY_H

#include "base/buffer.h"
#include "base/map.h"
#include "profile/recording.h"

struct tally_ran {
	uint64_t start, end; /* ns of the recording's clock */
	uint32_t thread;     /* of the recording's tasks.threads */
	uint32_t cpu;        /* UINT32_MAX: not recorded */
	/* of the recording's events, of whose sample it is; UINT32_MAX: of a switch */
	uint32_t event;
	bool preempted;      /* it was taken from the CPU, rather than gave it up */
};

struct tally_mark {
	uint64_t time;
	uint32_t thread, cpu; /* as above */
	uint32_t event;       /* of the recording's events */
	uint32_t text;        /* what `describe` said: an offset in `texts`; UINT32_MAX: nothing */
};

enum tally_activity_source {
	TALLY_ACTIVITY_SWITCHES,
	TALLY_ACTIVITY_TRACEPOINT,
	TALLY_ACTIVITY_SAMPLES
};

struct tally_activity_options {
	/* Of the tasks, CPUs and times shown, once all is read; `comms` by tasks' last names,
	 * `event` of marks and of samples, not of switches. */
	struct tally_profile_filter filter;
	/* Appends what a tracepoint's sample says; NULL: nobody asks. */
	void (*describe)(void *context, const struct tally_recorded_event *event, size_t index,
			 const struct tally_sample *sample, struct tally_buffer *out);
	void *context;
	void (*progress)(void *context, double share);
	void *progress_context;
};

struct tally_activity {
	struct tally_recording *recording;
	enum tally_activity_source source;
	/* in order of their ends */
	struct { struct tally_ran *items; size_t count, capacity; } ran;
	struct { struct tally_mark *items; size_t count, capacity; } marks;
	struct tally_buffer texts; /* NUL behind each */
	uint64_t first, last; /* ns: of everything kept */
	uint32_t cpu_count;   /* highest CPU seen, + 1 */
};

/* Reads the whole recording.  Takes it over: released with the activity.  -ENOENT where it tells of
 * no time. */
int tally_activity_new(struct tally_recording *recording,
		       const struct tally_activity_options *options, struct tally_activity **out,
		       struct tally_error *err);
void tally_activity_free(struct tally_activity *activity);

/* The thread's command, as it was called last. */
const char *tally_activity_comm(const struct tally_activity *activity, uint32_t thread);

#endif
