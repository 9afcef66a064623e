/* Counting: events opened on a target's tasks or CPUs, read, and turned into rows that tell their own story.
 *
 * One event that can't be counted drags no other down: its row says why.  See counting.c's essay.
 */
#ifndef TALLY_SESSION_COUNTING_H
#define TALLY_SESSION_COUNTING_H

#include "base/arena.h"
#include "base/error.h"
#include "counts/counts.h"
#include "event/event.h"
#include "provider/provider.h"
#include "provider/resource_usage.h"
#include "session/target.h"

#include <stdbool.h>

struct tally_counting_options {
	struct tally_provider *provider;
	const struct tally_event *events; /* outlive the counting, strings too */
	size_t event_count;
	const char *const *event_cpus; /* per event: the CPUs that its PMU counts on, or NULL; NULL: none has any */
	const struct tally_target *target; /* resolved */
	pid_t command_pid;             /* events are opened on it, enabled by its exec; 0: opened on the target */
	bool no_inherit;
};

/* Why an event has no handle: -errno, or one of these. */
enum {
	TALLY_REFUSED_EMPTIED = -10000, /* a user-only restriction would make it read 0 */
	TALLY_REFUSED_GROUP = -10001    /* alone it opens, its group has no room for it */
};

struct tally_count_place {
	pid_t pid;
	int cpu;
};

struct tally_count_slot { /* one event in one place */
	int handle; /* −1: none */
	size_t leader; /* event index; its own for a leader or a single */
	struct tally_reading last, now;
	bool reads_group; /* its read gives the members' values too */
	bool was_read;
};

struct tally_counting {
	const struct tally_counting_options *options;
	struct tally_arena arena;
	struct tally_count *rows;        /* one per event, in order */
	int *refusals;                   /* per event: why it didn't open, 0 */
	bool *user_only;                 /* per event: the kernel's part was left out, since it is refused */
	struct tally_count_place *places;
	size_t place_count, place_capacity;
	struct tally_count_slot *slots;  /* [place][event] */
	bool is_user_only;               /* the kernel's part is refused: events are opened without it */
	bool has_hardware;               /* a hardware event opened */
	bool was_enabled;                /* by enable(), not by exec */
	unsigned long reads;
	double coverage;                 /* share of the command's CPU time in which events were there; 1 unless told */
};

/* Fails only for want of memory; what can't be opened is told on its row. */
int tally_counting_open(const struct tally_counting_options *options, struct tally_counting *counting,
			struct tally_error *err);

/* Opens the events on threads that the target has gained. */
int tally_counting_follow(struct tally_counting *counting);

void tally_counting_enable(struct tally_counting *counting);
void tally_counting_disable(struct tally_counting *counting);

/* Reads everything and fills the rows with what happened since the last read.  `usage` is what tasks used in that
 * time, for events that have no other source; NULL where tally_counting_needs_usage() is false. */
void tally_counting_read(struct tally_counting *counting, const struct tally_resource_usage *usage);

/* After the last read of a command that used `usage`: where the events were there for less than half of its CPU time
 * (exec of a set-user-ID program drops them), their figures are replaced or withheld. */
void tally_counting_check_coverage(struct tally_counting *counting, const struct tally_resource_usage *usage);

/* Refused, and what the kernel accounts is not the event: ticks of busy time for the clock of whole CPUs, figures of
 * the whole system for a list of CPUs.  The row is withheld. */
bool tally_counting_is_inexact(const struct tally_counting *counting, size_t event);

bool tally_counting_needs_usage(const struct tally_counting *counting);

/* The one code with which perf events are refused altogether, or 0: something opened, or it fails for other
 * reasons. */
int tally_counting_refusal(const struct tally_counting *counting);

/* Lines for below the table: what was left out and how to get more.  In `arena`; at most `maximum`. */
size_t tally_counting_notes(const struct tally_counting *counting, struct tally_arena *arena, const char **notes,
			    size_t maximum);

void tally_counting_release(struct tally_counting *counting);

/* In counting_reason.c: the few words on a row, and the note on perf events being refused. */
const char *tally_counting_reason(const struct tally_counting *counting, size_t event);

/* True when a user-only restriction makes the kernel read 0 for this event (software.c counts it in kernel mode). */
bool tally_counting_is_emptied(const struct tally_attr *attr);
bool tally_counting_is_clock(const struct tally_attr *attr);

#endif
