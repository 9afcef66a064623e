/* How long tasks were off the CPUs, and where: a period for each sample of a recording's off-CPU
 * event (perfdata/off_cpu_event.h), in ns.
 *
 * The kernel takes such a sample when a task leaves its CPU, when nobody can know for how long.
 * The SWITCH records tell when it came back; so the file is read once before, for these times
 * alone: 8 bytes a switch.  Waits that the recording's end cut off last up to that.  The idle task
 * doesn't wait.
 */
#ifndef TALLY_PROFILE_OFF_CPU_H
#define TALLY_PROFILE_OFF_CPU_H

#include "perfdata/off_cpu_event.h"
#include "perfdata/perfdata.h"
#include "tally/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_recording;

/* Who ended a wait: the number of a stack of the event TALLY_WAKING_NAME, or one of these. */
enum { TALLY_WAKER_UNKNOWN = 0 };
#define TALLY_WAKER_NOBODY UINT32_MAX /* its task could have gone on, and waited for a CPU alone */

struct tally_off_cpu {
	bool is_due;  /* to be measured before the first record is given */
	bool is_measured;
	/* ns, by samples in their order; 0: not known */
	struct { uint64_t *items; size_t count, capacity; } waits;
	size_t next;  /* of these: the next sample's */

	bool has_wakings;  /* of a file with off-CPU samples: those who wake are recorded, too */
	bool wants_wakers; /* set by who wants to know them: filters then leave no waking out */
	/* by samples of waits, as `waits` */
	struct { uint32_t *items; size_t count, capacity; } wakers;
	/* by samples of wakings: their numbers */
	struct { uint32_t *items; size_t count, capacity; } wakings;
	/* by number - 1: was it an interrupt's? */
	struct { bool *items; size_t count, capacity; } interrupts;
	size_t next_waking;
	uint32_t waker; /* of the sample given last: its wait's, or its own number */
};

/* Looks whether the recording has such an event, and is a file that tells of switches. */
void tally_off_cpu_look(struct tally_recording *recording);

/* Reads the recording's file for its waits.  0, or -errno with a message. */
int tally_off_cpu_measure(struct tally_recording *recording, struct tally_error *err);

static inline bool tally_off_cpu_measured(const struct tally_off_cpu *off_cpu,
					  const struct tally_recorded_event *event)
{
	return off_cpu->is_measured && tally_is_off_cpu(&event->attr, event->name);
}

/* Gives the next sample of the event its period; false: it has none, and is left out.  The event's
 * waits were measured. */
bool tally_off_cpu_take(struct tally_off_cpu *off_cpu, struct tally_sample *sample);

static inline bool tally_off_cpu_is_waking(const struct tally_off_cpu *off_cpu,
					   const struct tally_recorded_event *event)
{
	return off_cpu->has_wakings && tally_is_waking(&event->attr, event->name);
}

/* Whether the event was recorded for this alone: views show it where it is named. */
static inline bool tally_off_cpu_serves(const struct tally_off_cpu *off_cpu,
					const struct tally_recorded_event *event)
{
	return off_cpu->is_measured && tally_off_cpu_is_waking(off_cpu, event);
}

/* Notes the number of the next sample of a waking. */
void tally_off_cpu_take_waking(struct tally_off_cpu *off_cpu);

/* A recording has the event, and its samples were given as counts of switches: nobody knows for how
 * long. */
bool tally_off_cpu_is_unknown(const struct tally_recording *recording);

void tally_off_cpu_release(struct tally_off_cpu *off_cpu);

#endif
