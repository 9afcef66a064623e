/* Shared by the files of counting.  Calls go down: counting.c, counting_cores.c,
 * counting_reason.c, counting_handles.c. */
#ifndef TALLY_COUNTING_INTERNAL_H
#define TALLY_COUNTING_INTERNAL_H

#include "counting/counting.h"

/* ---- counting_cores.c ---------------------------------------------------- */

/* A task's time on the types of cores, from the readings of its events. */
struct tally_core_times {
	uint64_t task_ns;   /* on all cores, ns */
	uint64_t seen_ns;   /* the sum of the types' longest running times, ns */
	uint64_t shared_ns; /* of those, the types whose events had to share counters, ns */
	bool has_all_types; /* events count on each type */
	bool is_whole;      /* seen_ns is task_ns: the time on each type is known */
};

/* True if the event counts a task on one of several types of cores. */
bool tally_cores_apply(const struct tally_count_handles *handles, size_t scope, size_t event);
/* Returns the times of a scope; `readings` are its events'. */
struct tally_core_times tally_core_times_of(const struct tally_count_handles *handles, size_t scope,
					    const struct tally_reading *readings);
/* Sets `reading`'s enabled time to the task's time on the event's cores.  Returns false if that time
 * is not known: it may be longer. */
bool tally_core_times_correct(const struct tally_count_handles *handles,
			      const struct tally_reading *readings,
			      const struct tally_core_times *times, size_t event,
			      struct tally_reading *reading);

/* ---- counting_reason.c --------------------------------------------------- */

/* Returns a short reason for the row, or a remark on its figure. */
const char *tally_count_reason(const struct tally_count_handles *handles, size_t event);
/* True if the event is refused and the kernel's own accounting is another figure: ticks of busy
 * time for the clock of whole CPUs, figures of the whole system for a list of CPUs.  The row is
 * withheld. */
bool tally_count_is_inexact(const struct tally_count_handles *handles, size_t event);
/* True if the event is refused and resource usage has the same figure. */
bool tally_count_is_substitutable(const struct tally_count_handles *handles, size_t event);

/* ---- counting_handles.c -------------------------------------------------- */

/* Opens the events' cgroups.  Release the handles even after a failure. */
int tally_count_handles_init(struct tally_count_handles *handles,
			     const struct tally_counting_options *options, struct tally_error *err);
/* Adds a scope, in which no event is open yet.  Returns 0 or -ENOMEM. */
int tally_count_handles_add(struct tally_count_handles *handles, pid_t pid, int cpu);
/* Opens the events in a scope.  `events` says why an event didn't open, `fatal` that no event
 * will. */
void tally_count_handles_open(struct tally_count_handles *handles, size_t scope);
/* Explains why opening failed with `code`: sets the message, and returns `code`. */
int tally_count_handles_explain(const struct tally_count_handles *handles, int code,
				struct tally_error *err);
/* Opens one event in one scope, in the group of the handle `group` (-1: none).  Returns a handle,
 * -errno, or TALLY_REFUSED_EMPTIED. */
int tally_count_handles_open_event(struct tally_count_handles *handles, size_t event,
				   struct tally_count_scope scope, int group, bool has_members);
/* Enable or disable: the groups of a scope; one event in all scopes. */
void tally_count_handles_switch(struct tally_count_handles *handles, size_t scope,
				enum tally_ioctl request);
void tally_count_handles_switch_event(struct tally_count_handles *handles, size_t event,
				      enum tally_ioctl request);
/* Reads all open handles into their slots. */
void tally_count_handles_read(struct tally_count_handles *handles);
/* Keeps what was counted on a CPU that went offline, and closes its handles. */
void tally_count_handles_go_offline(struct tally_count_handles *handles, size_t scope);
/* Closes all handles; the readings stay.  _last(): of a process that is about to end. */
void tally_count_handles_close(struct tally_count_handles *handles);
void tally_count_handles_close_last(struct tally_count_handles *handles);
void tally_count_handles_release(struct tally_count_handles *handles);

static inline struct tally_count_slot *tally_count_slot_of(
	const struct tally_count_handles *handles, size_t scope, size_t event)
{
	return &handles->slots[scope * handles->options->event_count + event];
}

#endif
