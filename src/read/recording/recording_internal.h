/* The parts of a recording being read: chains that come later, waits, ranges of time. */
#ifndef TALLY_RECORDING_INTERNAL_H
#define TALLY_RECORDING_INTERNAL_H

#include "base/error.h"
#include "perfdata/perfdata.h"
#include "tally/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_recording;

/* Samples whose user stack comes in a later record of their thread, CALLCHAIN_DEFERRED (attr.flags
 * DEFER_CALLCHAIN). */

struct tally_held_sample {
	struct tally_raw_record raw; /* `bytes` is a copy */
	uint32_t tid;
	uint64_t cookie;
	uint64_t *chain; /* the kernel part, then the user part once it came */
	uint64_t chain_length;
};

struct tally_deferred_chains {
	struct { struct tally_held_sample *items; size_t count, capacity; } held, ready;
	size_t given; /* number of `ready` samples that were given */
};

void tally_deferred_release(struct tally_deferred_chains *deferred);

/* True if the user part of the sample's chain is still to come. */
static inline bool tally_deferred_is_due(const struct tally_sample *sample)
{
	return sample->chain_length >= 2 &&
	       sample->chain[sample->chain_length - 2] == TALLY_CONTEXT_USER_DEFERRED;
}

/* Keeps a copy of the sample until its user stack comes.  Returns 0 or -ENOMEM. */
int tally_deferred_hold(struct tally_deferred_chains *deferred, const struct tally_raw_record *raw,
			const struct tally_sample *sample);

/* Takes a CALLCHAIN_DEFERRED record: all held samples of its thread become ready, and those with
 * its cookie get its addresses.  Returns 0 or -ENOMEM. */
int tally_deferred_complete(struct tally_deferred_chains *deferred,
			    const struct tally_record *record);

/* No more records will come: all held samples become ready without their user stacks.  Returns 0 or
 * -ENOMEM. */
int tally_deferred_give_up(struct tally_deferred_chains *deferred);

/* Returns the next ready sample, in the order in which they were held, or NULL.  It is valid until
 * the next call of _hold, _complete or _give_up. */
const struct tally_held_sample *tally_deferred_next(struct tally_deferred_chains *deferred);

/* How long tasks were off the CPU, and where: gives each sample of a recording's off-CPU event
 * (perfdata/perfdata.h) a period in ns.
 *
 * The kernel takes such a sample when a task leaves its CPU, before it is known for how long.
 * SWITCH records tell when the task came back.  So the file is read once beforehand, only for these
 * times: 8 bytes a switch.  A wait that the end of the recording cuts off lasts until then.  The
 * idle task doesn't wait.
 */

/* The end of a wait: the number of a stack of the event TALLY_WAKING_NAME, or one of these. */
enum { TALLY_WAKER_UNKNOWN = 0 };
/* the task was preempted: it could run, and waited only for a CPU */
#define TALLY_WAKER_NOBODY UINT32_MAX

struct tally_off_cpu {
	bool is_due;  /* must be measured before the first record is given */
	bool is_measured;
	/* ns, by number of the event's sample; 0: not known */
	struct { uint64_t *items; size_t count, capacity; } waits;
	size_t next;  /* index of the next sample's wait */

	bool has_wakings;  /* for files with off-CPU samples: wakings were recorded as well */
	/* set by callers that need wakers; filters then let all wakings through */
	bool wants_wakers;
	/* the ends of the waits, like `waits` by number of the off-CPU sample */
	struct { uint32_t *items; size_t count, capacity; } wakers;
	/* by number of the waking's sample: the number of its stack */
	struct { uint32_t *items; size_t count, capacity; } wakings;
	/* by number of the stack - 1: it ran in an interrupt */
	struct { bool *items; size_t count, capacity; } interrupts;
	size_t next_waking;
	/* for the sample given last: the end of its wait, or the waking's own number */
	uint32_t waker;
};

/* Notes whether the recording has off-CPU samples and is a file with switches. */
void tally_off_cpu_look(struct tally_recording *recording);

/* Reads the recording's file to measure its waits.  Returns 0, or -errno with a message. */
int tally_off_cpu_measure(struct tally_recording *recording, struct tally_error *err);

static inline bool tally_off_cpu_measured(const struct tally_off_cpu *off_cpu,
					  const struct tally_recorded_event *event)
{
	return off_cpu->is_measured && tally_is_off_cpu(&event->attr, event->name);
}

/* Sets the period of the event's next sample.  Returns false if the wait is not known; then the
 * sample is left out.  The event's waits must have been measured. */
bool tally_off_cpu_take(struct tally_off_cpu *off_cpu, struct tally_sample *sample);

static inline bool tally_off_cpu_is_waking(const struct tally_off_cpu *off_cpu,
					   const struct tally_recorded_event *event)
{
	return off_cpu->has_wakings && tally_is_waking(&event->attr, event->name);
}

/* True if the event was recorded only to find what ended waits; views show it only if it is
 * named. */
static inline bool tally_off_cpu_serves(const struct tally_off_cpu *off_cpu,
					const struct tally_recorded_event *event)
{
	return off_cpu->is_measured && tally_off_cpu_is_waking(off_cpu, event);
}

/* Sets `waker` to the number of the next waking sample. */
void tally_off_cpu_take_waking(struct tally_off_cpu *off_cpu);

/* True if the recording has off-CPU samples that only count switches, because nothing tells how
 * long the waits were. */
bool tally_off_cpu_is_unknown(const struct tally_recording *recording);

void tally_off_cpu_release(struct tally_off_cpu *off_cpu);

/* Time ranges of a recording, as text:
 *
 *     12.5,13.25          seconds of the recording's clock; either end may be left out
 *     12.5,13 20,         several ranges, separated by blanks
 *     10%-20%,50%-60%     shares of the time from the first sample to the last
 *     30%   10%/2         the first 30 %; the second tenth
 *
 * Pure.  Not thread-safe.
 */

/* A set of 64-bit numbers as ranges, which are added in any order, sorted and joined once, and then
 * searched.
 *
 *     tally_vector_push(&ranges, (struct tally_range){ 4, 7 });
 *     tally_ranges_join(&ranges);
 *     if (tally_ranges_have(&ranges, 5)) ...
 *     tally_vector_release(&ranges);
 *
 * Several threads may search it at once. */

/* Includes both ends. */
struct tally_range {
	uint64_t first, last;
};

struct tally_ranges {
	/* after joining: in order, and neither touching nor overlapping */
	struct tally_range *items;
	size_t count, capacity;
};

/* Sorts the ranges, and joins those that overlap or are adjacent. */
void tally_ranges_join(struct tally_ranges *ranges);

/* Returns true if one of the (joined) ranges has the number. */
bool tally_ranges_have(const struct tally_ranges *ranges, uint64_t number);

/* For a choice of the user: without any range, every number passes. */
static inline bool tally_ranges_pass(const struct tally_ranges *ranges, uint64_t number)
{
	return !ranges->count || tally_ranges_have(ranges, number);
}

/* True if the text has shares, which only a caller with the times of the first and the last sample
 * can parse. */
bool tally_time_is_share(const char *text);

/* Parses ranges, in ns, adds them to `ranges` and joins them.  The times of the first and the last
 * sample are only needed for shares.  Returns 0, -EINVAL or -ENOMEM. */
int tally_time_ranges_parse(struct tally_ranges *ranges, const char *text, uint64_t first_ns,
			    uint64_t last_ns, struct tally_error *err);

#endif
