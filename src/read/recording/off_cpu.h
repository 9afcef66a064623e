/* How long tasks were off the CPU, and where: gives each sample of a recording's off-CPU event
 * (perfdata/off_cpu_event.h) a period in ns.
 *
 * The kernel takes such a sample when a task leaves its CPU, before it is known for how long.
 * SWITCH records tell when the task came back.  So the file is read once beforehand, only for these
 * times: 8 bytes a switch.  A wait that the end of the recording cuts off lasts until then.  The
 * idle task doesn't wait.
 */
#ifndef TALLY_RECORDING_OFF_CPU_H
#define TALLY_RECORDING_OFF_CPU_H

#include "perfdata/off_cpu_event.h"
#include "perfdata/perfdata.h"
#include "tally/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_recording;

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

#endif
