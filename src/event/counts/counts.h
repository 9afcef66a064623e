/* Counts: the values read, how far they can be trusted, and what they say together.
 *
 * Each figure comes with its source, the share of the time for which it was counted, and, if there
 * is no figure, the reason.  Pure: nothing here opens, reads or prints. */
#ifndef TALLY_COUNTS_H
#define TALLY_COUNTS_H

#include "abi/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One read of one event for one task or CPU: perf_event_open(2), "Reading results". */
struct tally_reading {
	uint64_t value;
	uint64_t enabled_ns, running_ns;
};

/* Returns now − before, never below zero. */
struct tally_reading tally_reading_since(struct tally_reading now, struct tally_reading before);

/* Sums the readings of one event over tasks or CPUs.  Each of them is scaled by its own enabled /
 * running, since CPUs and tasks get the PMU for different shares of the time.  Those that never got
 * it are filled in at the rate of the others. */
struct tally_total {
	uint64_t raw; /* at most UINT64_MAX; `is_saturated` if the sum is larger */
	uint64_t enabled_ns, running_ns;
	double scaled;       /* sum over the tasks or CPUs that had the PMU */
	uint64_t covered_ns; /* enabled time of those, in ns */
	bool was_scaled, is_saturated;
};

void tally_total_add(struct tally_total *total, struct tally_reading reading);

/* Computes the estimate; it is exact (the raw sum) if nothing was scaled or saturated.  Returns false if the
 * event was never on the PMU. */
bool tally_total_value(const struct tally_total *total, double *value);

/* Mean and deviation of a series, in one pass and without cancellation (Welford 1962). */
struct tally_spread {
	unsigned long count;
	double mean, squares; /* squares: sum of squared distances from the mean */
	double minimum, maximum;
};

void tally_spread_add(struct tally_spread *spread, double value);
/* Returns σ of the sample (n − 1); 0 for fewer than two values. */
double tally_spread_sigma(const struct tally_spread *spread);
/* Returns σ in percent of the mean; 0 if the mean is 0. */
double tally_spread_percent(const struct tally_spread *spread);

enum tally_count_state {
	TALLY_COUNT_OK,
	TALLY_COUNT_NOT_COUNTED,   /* opened, but never on the PMU */
	TALLY_COUNT_NOT_SUPPORTED, /* could not be opened: see `reason` */
	TALLY_COUNT_WITHHELD       /* there is a figure, but it would mislead: see `reason` */
};

/* attr.flags that say whose work is counted.  Figures are comparable if these agree.  exclude_guest
 * is not among them: it is set or not as the PMU accepts it. */
#define TALLY_ATTR_EXCLUDES \
	(TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV | \
	 TALLY_ATTR_EXCLUDE_IDLE | TALLY_ATTR_EXCLUDE_HOST)

/* The figure of one event.  The code that fills it in owns the strings. */
struct tally_event_count {
	const char *name; /* as shown, with the modifiers in use */
	const char *unit; /* "" or "Joules" …; clocks are "ns" */
	double scale;     /* value × scale is in the unit */
	uint32_t type;
	uint64_t config;
	uint64_t excludes; /* TALLY_ATTR_EXCLUDES of the event that was really opened */
	int group;         /* group number; −1: none */
	const char *cgroup; /* the only cgroup counted; NULL: all */

	enum tally_count_state state;
	const char *source; /* source of the figure: "kernel", "wait4", "/proc", "scripted" */
	/* the value comes from resource usage (wait4, /proc), since the event can't be opened */
	bool is_substitute;
	const char *quality; /* "exact", "model" or "estimate" for a simulated event; or NULL */
	const char *reason;  /* why there is no figure, or a remark on the figure; or NULL */
	double value;        /* scaled; the mean of several runs */
	uint64_t raw, enabled_ns, running_ns; /* sums over tasks and CPUs (of the last run) */
	bool was_scaled;
	struct tally_spread spread; /* over runs */
};

/* How counts are summed: over everything, or separately for each CPU, core, … or task. */
enum tally_count_by {
	TALLY_COUNT_BY_NOTHING,
	TALLY_COUNT_BY_CPU,
	TALLY_COUNT_BY_CORE,
	TALLY_COUNT_BY_DIE,
	TALLY_COUNT_BY_SOCKET,
	TALLY_COUNT_BY_NODE,
	TALLY_COUNT_BY_THREAD
};

/* A part of the counts, named as in perf: "CPU3", "S0-D0-C1", "S0", "N0", "make-1234". */
struct tally_count_part {
	const char *label; /* "" for the whole */
	/* number of counted CPUs in the part; 0 if tasks are counted */
	unsigned cpus;
};

/* Returns the share of the enabled time in which the event was counted, 0…1. */
double tally_count_share(const struct tally_event_count *count);

/* All counts of one run or interval. */
struct tally_count_table {
	struct tally_event_count *rows;
	size_t count;
	double elapsed_ns;
	/* times are simulated, and say nothing about the command's own */
	bool is_simulated;
	bool has_cpu_times;        /* user_ns and system_ns are known */
	double user_ns, system_ns; /* of the command and its children */
	double switches, preemptions; /* of the command and its children; with has_cpu_times */
	unsigned cpu_count;        /* number of CPUs counted; 0 if tasks were counted */
};

/* A figure computed from others: "2.31 insn per cycle". */
struct tally_metric {
	double value;
	const char *unit;
	int decimals;
	bool unit_first; /* "CPI 0.43" */
};

enum { TALLY_METRICS_MAX = 2 };

/* Computes the metrics of row `index` from it and other rows, the most informative first.  Returns
 * their number. */
unsigned tally_metrics_of(const struct tally_count_table *table, size_t index,
			  struct tally_metric out[TALLY_METRICS_MAX]);

/* Finds the row that counts (type, config) with the same excludes and in the same cgroup (NULL:
 * none), preferably in the same group.  Returns NULL if no such row has a figure. */
const struct tally_event_count *tally_count_find(const struct tally_count_table *table, uint32_t type,
					   uint64_t config, uint64_t excludes, int group,
					   const char *cgroup);

/* Returns the CPU time in ns by the table's clock event in that cgroup (NULL: none), or 0. */
double tally_count_clock_ns(const struct tally_count_table *table, const char *cgroup);

/* Writes one sentence that interprets the table ("memory bound: …").  Returns false if there is
 * nothing to say. */
bool tally_count_verdict(const struct tally_count_table *table, char *out, size_t size);

#endif
