/* The parts of regions: the events that are counted, the sums of each thread, and the report.
 *
 * The thread that owns sums writes them without a lock.  Other threads read them for reports.  So all
 * are accessed by region_get() and region_put(), which are relaxed atomic accesses, and a sequence
 * number lets readers see the sums of one moment. */
#ifndef TALLY_LIBRARY_REGION_INTERNAL_H
#define TALLY_LIBRARY_REGION_INTERNAL_H

#include "base/buffer.h"
#include "library/histogram.h"
#include "tally/group.h"
#include "tally/region.h"

enum {
	REGION_EVENTS_MAX = 16, /* with wall time, which is event 0 */
	REGION_GROUPS_MAX = 8,
	REGION_NAMES_MAX = 256, /* the last one is that of the other regions */
	REGION_OPEN_MAX = 512,  /* open regions of a thread */
	REGION_WALL = 0
};

#define region_get(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define region_put(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
/* for words that only the calling thread writes */
#define region_add(word, value) region_put(word, region_get(word) + (value))

/* ---- region_events.c: the events --------------------------------------------- */

enum { REGION_IS_CLOCK = -1 }; /* `group` of times that are read without perf_event_open(2) */

struct region_event {
	char *name;
	bool is_time; /* ns */
	int group;    /* index of the group, or REGION_IS_CLOCK */
	/* of perf_event_attr, for ratios */
	uint32_t type;
	uint64_t config, excludes;
	uint64_t empty, pair; /* overhead: see struct tally_region_figures */
};

/* The events of the process.  The first thread that uses regions decides them, and they never
 * change until the process forks. */
struct region_plan {
	struct region_event events[REGION_EVENTS_MAX];
	unsigned event_count;
	char *groups[REGION_GROUPS_MAX];         /* expressions */
	unsigned first_event[REGION_GROUPS_MAX]; /* the group's events are adjacent */
	unsigned group_size[REGION_GROUPS_MAX];
	unsigned group_count;
	char missing[1024]; /* names and why, one line, or "" */
	char missing_names[256], missing_reason[512];
};

#define REGION_UNREAD UINT64_MAX

/* The counters of one thread at one time. */
struct region_reading {
	uint64_t values[REGION_EVENTS_MAX];
	uint64_t enabled_ns[REGION_GROUPS_MAX], running_ns[REGION_GROUPS_MAX];
};

/* Decides the events by opening them: the events of `expression`, or the usual ones (NULL). */
void region_plan_make(struct region_plan *plan, const char *expression);

/* Opens the plan's groups for the calling thread; a group that fails is NULL.  Returns the number of
 * failures. */
unsigned region_groups_open(const struct region_plan *plan, struct tally_group **groups);
void region_groups_close(const struct region_plan *plan, struct tally_group **groups);

/* Read all events: the clock last at the beginning of a region and first at its end, so that it has
 * the least overhead. */
void region_read_begin(const struct region_plan *plan, struct tally_group *const *groups,
		       struct region_reading *reading);
void region_read_end(const struct region_plan *plan, struct tally_group *const *groups,
		     struct region_reading *reading);

/* ---- region.c: the figures ---------------------------------------------------- */

/* One event of one region on one thread. */
struct region_sum {
	uint64_t measured, scaled;
	uint64_t total, self, max;
	uint64_t square_low, square_high; /* the sum of squares, 128 bits */
	uint64_t enabled_ns, running_ns;
};

/* One region on one thread, in memory of its own. */
struct region_sums {
	const char *name;
	unsigned index;    /* of the name */
	unsigned open;     /* calls that have begun; the owner's */
	unsigned sequence; /* odd: the sums are being changed */
	uint64_t calls, recursive;
	struct region_sum events[REGION_EVENTS_MAX];
	uint64_t histograms[][TALLY_HISTOGRAM_BUCKETS]; /* one for each event */
};

/* A region's sums over all threads. */
struct region_all {
	unsigned index;
	const char *name;
	uint64_t calls, recursive, open;
	struct region_sum events[REGION_EVENTS_MAX];
};

/* Mistakes of the program, and figures that are lost, summed over all threads. */
struct region_mistakes {
	uint64_t unknown_ends; /* ends whose region was not open */
	uint64_t left_open; /* regions that were open when an outer one, or their thread, ended */
	uint64_t too_deep;
	uint64_t in_handlers; /* calls in a signal handler that interrupted another one */
	uint64_t no_memory;
	uint64_t without_events; /* threads that could not open the counters */
};

/* Return what the process measures; NULL: no region has begun. */
const struct region_plan *region_plan_get(void);
/* Returns the number of names.  They never change. */
unsigned region_names(void);
const char *region_name_at(unsigned index);
/* Returns the number of threads that have used regions. */
uint64_t region_threads(struct region_mistakes *mistakes);
/* Returns the name of the first unknown end, cleaned; NULL: there was none. */
const char *region_first_unknown(void);
bool region_subtracts(void);

/* Sums up one region over all threads. */
void region_sum_up(unsigned index, struct region_all *all);
/* Computes the figures of one event from the sums of its region; the percentiles are of this
 * moment. */
void region_figures(const struct region_all *all, unsigned event, struct tally_region_figures *out);

/* ---- region_report.c -------------------------------------------------------- */

/* Decides the report's place at exit.  Called when the first region begins. */
void region_report_prepare(const char *setting);
/* Appends a report; `format` is "table" or "json".  Returns 0 or -errno. */
int region_report_append(struct tally_buffer *out, const char *format);
/* Writes the prepared report, if there is one. */
void region_report_at_exit(void);

#endif
