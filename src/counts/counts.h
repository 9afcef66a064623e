/* Counts: what was read, how far it can be trusted, and what it says next to the others.
 *
 * A figure never stands without its story: where it came from, for how much of the time it was
 * counted, and, when there is none, why.  Pure: nothing here opens, reads or prints.
 */
#ifndef TALLY_COUNTS_COUNTS_H
#define TALLY_COUNTS_COUNTS_H

#include "abi/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One read of one event in one place (a task or a CPU): perf_event_open(2), "Reading results". */
struct tally_reading {
	uint64_t value;
	uint64_t enabled_ns, running_ns;
};

/* now − before, never below zero. */
struct tally_reading tally_reading_since(struct tally_reading now, struct tally_reading before);

/* Sums readings of one event over its places.  Each place is scaled by its own enabled / running,
 * since CPUs and tasks get the PMU for different shares; places that never got it are filled in at
 * the others' rate. */
struct tally_total {
	uint64_t raw;
	uint64_t enabled_ns, running_ns;
	double scaled;       /* of the places that ran */
	uint64_t covered_ns; /* enabled time of the places that ran */
	bool was_scaled;
};

void tally_total_add(struct tally_total *total, struct tally_reading reading);

/* The estimate; false when the event was never on the PMU.  Exact (the raw sum) where nothing was
 * scaled. */
bool tally_total_value(const struct tally_total *total, double *value);

/* Mean and deviation of a series, in one pass and without cancellation (Welford 1962). */
struct tally_spread {
	unsigned long count;
	double mean, squares; /* squares: sum of squared distances from the mean */
	double minimum, maximum;
};

void tally_spread_add(struct tally_spread *spread, double value);
/* σ of the sample (n − 1); 0 for fewer than two. */
double tally_spread_sigma(const struct tally_spread *spread);
/* σ in percent of the mean; 0 when the mean is 0. */
double tally_spread_percent(const struct tally_spread *spread);

enum tally_count_state {
	TALLY_COUNT_OK,
	TALLY_COUNT_NOT_COUNTED,   /* opened, but never on the PMU */
	TALLY_COUNT_NOT_SUPPORTED, /* could not be opened: `reason` */
	TALLY_COUNT_WITHHELD       /* a figure could be had, but it would be a lie: `reason` */
};

/* attr.flags that say whose work is counted: figures are comparable when these agree.  Not
 * exclude_guest, which is set or not as the PMU accepts it. */
#define TALLY_ATTR_EXCLUDES \
	(TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV | \
	 TALLY_ATTR_EXCLUDE_IDLE | TALLY_ATTR_EXCLUDE_HOST)

/* One event's figure.  Strings belong to who filled it in. */
struct tally_count {
	const char *name; /* as shown, with the modifiers that were used */
	const char *unit; /* "" or "Joules" …; clocks are "ns" */
	double scale;     /* value × scale is in the unit */
	uint32_t type;
	uint64_t config;
	uint64_t excludes; /* TALLY_ATTR_EXCLUDES of what was really opened */
	int group;         /* −1: none */
	const char *cgroup; /* counted in it alone; NULL: everywhere */

	enum tally_count_state state;
	const char *source; /* "kernel", "wait4", "/proc", "scripted": where the figure came from */
	/* it is not the event that was asked for, but the nearest that could be had */
	bool is_substitute;
	const char *quality; /* "exact", "model", "estimate" of what was simulated; or NULL */
	const char *reason;  /* why there is no figure, or a remark on the one there is; or NULL */
	double value;        /* scaled; with several runs their mean */
	uint64_t raw, enabled_ns, running_ns; /* sums over tasks and CPUs (of the last run) */
	bool was_scaled;
	struct tally_spread spread; /* over runs */
};

/* How counts are summed: over everything, or over the tasks or CPUs of a part each. */
enum tally_count_by {
	TALLY_COUNT_BY_NOTHING,
	TALLY_COUNT_BY_CPU,
	TALLY_COUNT_BY_CORE,
	TALLY_COUNT_BY_DIE,
	TALLY_COUNT_BY_SOCKET,
	TALLY_COUNT_BY_NODE,
	TALLY_COUNT_BY_THREAD
};

/* A part, called as perf calls it: "CPU3", "S0-D0-C1", "S0", "N0", "make-1234". */
struct tally_count_part {
	const char *label; /* "" of the whole */
	/* how many of the CPUs that are counted are in it; 0: tasks are counted */
	unsigned cpus;
};

/* Share of the enabled time in which the event was counted, 0…1. */
double tally_count_share(const struct tally_count *count);

/* All counts of one run or interval. */
struct tally_count_table {
	struct tally_count *rows;
	size_t count;
	double elapsed_ns;
	/* times are the simulation's: they say nothing of the command's own */
	bool is_simulated;
	bool has_cpu_times;        /* user_ns and system_ns are known */
	double user_ns, system_ns; /* of the command and its children */
	double switches, preemptions; /* of the command and its children; with has_cpu_times */
	unsigned cpu_count;        /* CPUs counted, 0 when tasks were */
};

/* A figure made of figures: "2.31 insn per cycle". */
struct tally_metric {
	double value;
	const char *unit;
	int decimals;
	bool unit_first; /* "CPI 0.43" */
};

enum { TALLY_METRICS_MAX = 2 };

/* What row `index` says next to the others; most telling first.  How many were written to `out`. */
unsigned tally_metrics_of(const struct tally_count_table *table, size_t index,
			  struct tally_metric out[TALLY_METRICS_MAX]);

/* The row that counts (type, config) with the same excludes, in the same cgroup (NULL: none); the
 * same group first; NULL when there is none that has a figure. */
const struct tally_count *tally_count_find(const struct tally_count_table *table, uint32_t type,
					   uint64_t config, uint64_t excludes, int group,
					   const char *cgroup);

/* Nanoseconds of CPU time by the table's clock event in that cgroup (NULL: none), or 0. */
double tally_count_clock_ns(const struct tally_count_table *table, const char *cgroup);

/* One sentence that reads the table ("memory bound: …"); false when it says nothing worth a
 * line. */
bool tally_count_verdict(const struct tally_count_table *table, char *out, size_t size);

#endif
