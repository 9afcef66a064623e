/* Counts: opens events on a target's tasks or CPUs, reads them, and makes rows with values, sources
 * and reasons.
 *
 * An event that can't be counted does not affect others; its row says why.  See the comment at the
 * top of counting.c.  Events of kind TOOL are never opened; the caller fills their rows.
 */
#ifndef TALLY_COUNTING_H
#define TALLY_COUNTING_H

#include "base/arena.h"
#include "base/error.h"
#include "counting/counter_fit.h"
#include "counts/counts.h"
#include "event/event.h"
#include "machine/machine.h"
#include "provider/provider.h"
#include "session/session.h"

#include <stdbool.h>

struct tally_counting_options {
	struct tally_provider *provider;
	const struct tally_event *events; /* must outlive the counting, with their strings */
	size_t event_count;
	/* by event: the CPUs that its PMU counts on, or NULL; NULL: no event has such a list */
	const char *const *event_cpus;
	/* by event: the type of the PMU if it counts on one of several types of cores, or 0; NULL: 0
	 * for all */
	const uint32_t *event_cores;
	size_t core_types;                 /* number of types of cores, if there are several */
	const struct tally_target *target; /* resolved */
	/* events are opened on this process and enabled by its exec; 0: opened on the target */
	pid_t command_pid;
	bool no_inherit;
	bool starts_disabled;          /* even the command's exec does not enable events */
	/* withhold scaled figures of events that had a counter for a smaller part of the time, 0…1 */
	double share_min;
	enum tally_count_by by;
	/* counts only the events of `pass` and those in every pass; NULL: all events */
	const struct tally_count_passes *passes;
	int pass;
};

/* True if the event is counted in the options' pass. */
static inline bool tally_counting_is_in_pass(const struct tally_counting_options *options,
					     size_t event)
{
	int pass = options->pass;
	if (options->passes)
		pass = options->passes->pass_of[event];
	return pass == options->pass || pass == TALLY_IN_EVERY_PASS;
}

/* Reasons why an event has no handle, besides -errno. */
enum {
	TALLY_REFUSED_EMPTIED = -10000, /* restricted to user mode it would read 0 */
	TALLY_REFUSED_GROUP = -10001    /* it opens alone, but its group has no room for it */
};

/* What a handle counts, as perf_event_open(2) takes it. */
struct tally_count_scope {
	pid_t pid;
	int cpu;
	size_t part;
	bool is_offline;
};

struct tally_count_slot { /* one event in one scope */
	int handle; /* −1: none */
	size_t leader; /* index of the event that leads its group; its own index without a group */
	struct tally_reading last, now; /* `now`: everything since it was first opened */
	/* from handles that were closed when their CPU went offline */
	struct tally_reading kept;
	struct tally_reading sliced;            /* the reading at the end of the last slice */
	struct tally_slices slices, all_slices; /* since `last`; before that */
	bool reads_group; /* a read of it also returns the members' values */
	bool was_read;
	bool was_open;
};

struct tally_count_opening { /* one event, in all scopes */
	int cgroup;          /* its cgroup's descriptor, −1: none */
	int refusal;         /* why it didn't open, 0: it did */
	bool user_only;      /* opened without the kernel's part, which was refused */
	bool was_open;       /* in any scope */
};

/* The events' handles, by scope. */
struct tally_count_handles {
	const struct tally_counting_options *options;
	struct tally_count_opening *events; /* by event */
	struct tally_count_scope *scopes;
	struct tally_count_slot *slots; /* [scope][event] */
	size_t scope_count, scope_capacity;
	/* the kernel's part is refused: open all events without it */
	bool is_user_only;
	/* −errno that no event caused: too few descriptors, … */
	int fatal;
	/* the event whose filter caused `fatal`; NULL: no filter did */
	const struct tally_event *misfiltered;
};

struct tally_counting {
	const struct tally_counting_options *options;
	struct tally_count_handles handles;
	/* [part][event]; without parts, one row per event */
	struct tally_event_count *rows;
	struct tally_count_part *parts;
	size_t part_count, part_capacity;
	struct tally_arena arena; /* the rows' and parts' names */
	bool was_enabled;         /* by tally_counting_enable(), not by exec */
	bool is_enabled;          /* by tally_counting_enable(), and not disabled since */
	bool was_read;
	struct tally_cpu_list went_offline, came_online; /* during the counting */
	/* share of the command's CPU time that the events covered; 1 unless checked */
	double coverage;
};

/* Opens the events.  Fails without memory or descriptors, and when a cgroup doesn't exist; an event
 * that can't be opened is reported in its row. */
int tally_counting_open(const struct tally_counting_options *options,
			struct tally_counting *counting, struct tally_error *err);

/* Opens the events on new threads of the target. */
int tally_counting_follow(struct tally_counting *counting);

void tally_counting_enable(struct tally_counting *counting);
void tally_counting_disable(struct tally_counting *counting);

/* Enables or disables the events with this name, with or without modifiers.  Returns how many it
 * found. */
size_t tally_counting_control_named(struct tally_counting *counting, const char *name, bool enable);

/* Takes the list of CPUs that are online now.  Keeps the counts of CPUs that went offline, and
 * starts counting on those that came online (with a list of CPUs, only on the listed ones).
 * Returns true if anything changed. */
bool tally_counting_set_online(struct tally_counting *counting,
			       const struct tally_cpu_list *online);

/* Reads everything and fills the rows with counts since the last read.  `usage` has the tasks'
 * resource usage in that time, for events without another source; NULL if
 * tally_counting_needs_usage() is false. */
void tally_counting_read(struct tally_counting *counting, const struct tally_resource_usage *usage);

/* Ends a slice of time, for the errors of scaled counts.  Returns true if an event shares its counter
 * so far: only then are further slices of use. */
bool tally_counting_slice(struct tally_counting *counting);

/* Fills the rows with counts since the start, from the last reading.  `usage` covers the same
 * time. */
void tally_counting_total(struct tally_counting *counting,
			  const struct tally_resource_usage *usage);

/* Compares the events' times with the command's CPU time, which `usage` has.  Call it after the
 * last read.  If the events covered less than half of the CPU time (exec of a set-user-ID program
 * drops them), replaces or withholds their figures. */
void tally_counting_check_coverage(struct tally_counting *counting,
				   const struct tally_resource_usage *usage);

/* True if an event is refused whose figure the resource usage has. */
bool tally_counting_needs_usage(const struct tally_counting *counting);

/* Makes the lines below the table, which name missing figures and how to get them.  They live in
 * `arena`; at most `maximum`.  Returns how many. */
size_t tally_counting_notes(const struct tally_counting *counting, struct tally_arena *arena,
			    const char **notes, size_t maximum);

/* Closes the events; the rows stay. */
void tally_counting_close(struct tally_counting *counting);
void tally_counting_release(struct tally_counting *counting);
/* The same for a process that is about to end: does not wait for a slow kernel (session.h). */
void tally_counting_release_last(struct tally_counting *counting);

/* True if the kernel reads 0 for this event in user mode, since it counts it in kernel mode. */
bool tally_counting_is_emptied(const struct tally_attr *attr);

#endif
