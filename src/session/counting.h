/* Counting: events opened on a target's tasks or CPUs, read, and turned into rows that tell their
 * own story.
 *
 * One event that can't be counted drags no other down: its row says why.  See counting.c's essay.
 * Events of kind TOOL are never opened, and their rows are left to who asked for them.
 */
#ifndef TALLY_SESSION_COUNTING_H
#define TALLY_SESSION_COUNTING_H

#include "base/arena.h"
#include "base/error.h"
#include "counts/counts.h"
#include "event/event.h"
#include "machine/cpu.h"
#include "provider/provider.h"
#include "provider/resource_usage.h"
#include "session/target.h"

#include <stdbool.h>

struct tally_counting_options {
	struct tally_provider *provider;
	const struct tally_event *events; /* outlive the counting, strings too */
	size_t event_count;
	/* per event: the CPUs that its PMU counts on, or NULL; NULL: none has any */
	const char *const *event_cpus;
	const struct tally_target *target; /* resolved */
	/* events are opened on it, enabled by its exec; 0: opened on the target */
	pid_t command_pid;
	bool no_inherit;
	bool starts_disabled;          /* not even the command's exec enables them */
	enum tally_count_by by;
};

/* Why an event has no handle: -errno, or one of these. */
enum {
	TALLY_REFUSED_EMPTIED = -10000, /* a user-only restriction would make it read 0 */
	TALLY_REFUSED_GROUP = -10001    /* alone it opens, its group has no room for it */
};

struct tally_count_place {
	pid_t pid;
	int cpu;
	size_t part;
	bool is_offline;
};

struct tally_count_slot { /* one event in one place */
	int handle; /* −1: none */
	size_t leader; /* event index; its own for a leader or a single */
	struct tally_reading last, now; /* now: all since it was first opened */
	/* of handles that were closed since, as their CPU went offline */
	struct tally_reading kept;
	bool reads_group; /* its read gives the members' values too */
	bool was_read;
	bool was_open;
};

struct tally_counting {
	const struct tally_counting_options *options;
	struct tally_arena arena;
	/* [part][event]; of a whole that is not taken apart one per event */
	struct tally_count *rows;
	struct tally_count_part *parts;
	size_t part_count, part_capacity;
	int *cgroups;                    /* per event: its cgroup's descriptor, −1: none */
	int *refusals;                   /* per event: why it didn't open, 0 */
	/* per event: the kernel's part was left out, since it is refused */
	bool *user_only;
	struct tally_count_place *places;
	size_t place_count, place_capacity;
	struct tally_count_slot *slots;  /* [place][event] */
	/* the kernel's part is refused: events are opened without it */
	bool is_user_only;
	bool has_hardware;               /* a hardware event opened */
	bool was_enabled;                /* by enable(), not by exec */
	bool is_enabled;                 /* the same, and not disabled since */
	/* −errno that is no event's fault, as of too few descriptors, … */
	int fatal;
	/* … but for this one's, whose filter is wrong; or NULL */
	const struct tally_event *misfiltered;
	struct tally_cpu_list went_offline, came_online; /* while they were counted */
	unsigned long reads;
	/* share of the command's CPU time in which events were there; 1 unless told */
	double coverage;
};

/* Fails for want of memory or descriptors, and where a cgroup is not there; what can't be opened is
 * told on its row. */
int tally_counting_open(const struct tally_counting_options *options,
			struct tally_counting *counting, struct tally_error *err);

/* Opens the events on threads that the target has gained. */
int tally_counting_follow(struct tally_counting *counting);

void tally_counting_enable(struct tally_counting *counting);
void tally_counting_disable(struct tally_counting *counting);

/* The events that are called so, or whose names without modifiers are: how many. */
size_t tally_counting_control_named(struct tally_counting *counting, const char *name, bool enable);

/* The CPUs that are online now: of those that have gone the counts are kept, those that came are
 * counted from now on (of a list that was asked for only its own).  True when there was a
 * change. */
bool tally_counting_set_online(struct tally_counting *counting,
			       const struct tally_cpu_list *online);

/* Reads everything and fills the rows with what happened since the last read.  `usage` is what
 * tasks used in that time, for events that have no other source; NULL where
 * tally_counting_needs_usage() is false. */
void tally_counting_read(struct tally_counting *counting, const struct tally_resource_usage *usage);

/* Fills the rows with what happened since the start instead: no more reading, and `usage` is since
 * then, too. */
void tally_counting_total(struct tally_counting *counting,
			  const struct tally_resource_usage *usage);

/* After the last read of a command that used `usage`: where the events were there for less than
 * half of its CPU time (exec of a set-user-ID program drops them), their figures are replaced or
 * withheld. */
void tally_counting_check_coverage(struct tally_counting *counting,
				   const struct tally_resource_usage *usage);

/* Refused, and what the kernel accounts is not the event: ticks of busy time for the clock of whole
 * CPUs, figures of the whole system for a list of CPUs.  The row is withheld. */
bool tally_counting_is_inexact(const struct tally_counting *counting, size_t event);

bool tally_counting_needs_usage(const struct tally_counting *counting);

/* The one code with which perf events are refused altogether, or 0: something opened, or it fails
 * for other reasons. */
int tally_counting_refusal(const struct tally_counting *counting);

/* Lines for below the table: what was left out and how to get more.  In `arena`; at most
 * `maximum`. */
size_t tally_counting_notes(const struct tally_counting *counting, struct tally_arena *arena,
			    const char **notes, size_t maximum);

void tally_counting_release(struct tally_counting *counting);
/* The same for a process that is about to end: where it takes the kernel long, nobody waits
 * (close_apart.h). */
void tally_counting_release_last(struct tally_counting *counting);

/* In counting_reason.c: the few words on a row, and the note on perf events being refused. */
const char *tally_counting_reason(const struct tally_counting *counting, size_t event);

/* True when a user-only restriction makes the kernel read 0 for this event (software.c counts it in
 * kernel mode). */
bool tally_counting_is_emptied(const struct tally_attr *attr);

#endif
