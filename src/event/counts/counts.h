/* Counts as data: values and their spread, saved counts, comparisons. */
#ifndef TALLY_COUNTS_H
#define TALLY_COUNTS_H

#include "abi/abi.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/vector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts: the values read, how far they can be trusted, and what they say together.
 *
 * Each figure comes with its source, the share of the time for which it was counted, and, if there
 * is no figure, the reason.  Pure: nothing here opens, reads or prints. */

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

/* Slices of time of one event, for one task or CPU.  The error of a scaled count is estimated from
 * them (slices.c).  Zeroed: none. */
struct tally_slices {
	unsigned long count;
	double value, running, enabled;  /* sums; times in ns */
	double last_value, last_running; /* of the last slice */
	double vv, vr, rr; /* products of the differences between neighbours, summed */
};

enum { TALLY_SLICES_MIN = 8 }; /* fewer say nothing about the error */

/* Adds the next slice, with the count and the times since the slice before. */
void tally_slices_add(struct tally_slices *slices, struct tally_reading slice);
/* Joins later slices. */
void tally_slices_join(struct tally_slices *slices, const struct tally_slices *more);
/* Computes the variance of the count that is scaled to the whole time, 0 for one that ran all the
 * time.  Returns false if there are too few slices. */
bool tally_slices_variance(const struct tally_slices *slices, double *variance);

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
	/* the pass that it was counted in, if the events were counted in several runs; -1: in all */
	int pass;

	enum tally_count_state state;
	const char *source; /* source of the figure: "kernel", "wait4", "/proc", "scripted" */
	/* the value comes from resource usage (wait4, /proc), since the event can't be opened */
	bool is_substitute;
	const char *quality; /* "exact", "model" or "estimate" for a simulated event; or NULL */
	const char *reason;  /* why there is no figure, or a remark on the figure; or NULL */
	double value;        /* scaled; the mean of several runs */
	uint64_t raw, enabled_ns, running_ns; /* sums over tasks and CPUs (of the last run) */
	bool was_scaled;
	/* half the 95 % confidence interval of a scaled value, in its unit (of one run); negative:
	 * unknown */
	double scale_error;
	/* type of the PMU, if it counts on one of several types of cores; otherwise 0.  Then
	 * `enabled_ns` is the time on these cores, and `task_ns` the tasks' time on all cores (0:
	 * CPUs were counted). */
	uint32_t core;
	uint64_t task_ns;
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

/* Finds the row that counts (type, config) with the same excludes and in the same cgroup (NULL:
 * none), preferably in the same group.  Returns NULL if no such row has a figure. */
const struct tally_event_count *tally_count_find(const struct tally_count_table *table, uint32_t type,
					   uint64_t config, uint64_t excludes, int group,
					   const char *cgroup);

/* Returns the CPU time in ns by the table's clock event in that cgroup (NULL: none), or 0. */
double tally_count_clock_ns(const struct tally_count_table *table, const char *cgroup);

/* Compares two figures of the same quantity, before and after a change: how much they differ, and
 * whether chance explains it.
 *
 * A figure of several runs has a mean and its standard error.  Two such figures are compared by
 * Welch's test (B. L. Welch, The generalization of "Student's" problem when several different
 * population variances are involved, Biometrika 34, 1947), with the degrees of freedom of
 * Satterthwaite.  Figures that repeat to the last digit (the simulated PMU's counts) have no chance
 * in them: any difference is a change.  The spread of a single run is unknown: no interval, no
 * verdict.  Pure. */

struct tally_figure {
	double mean;
	/* standard deviation of the runs; if runs == 0, the standard error of the mean */
	double sigma;
	/* 0: unknown number, but `sigma` is valid; 1: the spread is unknown */
	unsigned long runs;
	bool has_no_spread; /* the mean of several runs whose spread is unknown */
	bool repeats;       /* not subject to chance */
};

enum tally_significance {
	TALLY_CHANGE_NONE,    /* exactly equal, and not subject to chance */
	/* chance alone does this in less than 5 % of cases, or has no part in it */
	TALLY_CHANGE_REAL,
	TALLY_CHANGE_NOISE,   /* chance may do this */
	/* a single run of a figure that varies, or means of unknown spread */
	TALLY_CHANGE_UNKNOWN
};

struct tally_change {
	double difference;      /* new − old */
	double relative;        /* difference / |old|; ±∞ if only `old` is 0, 0 if both are 0 */
	bool has_interval;
	/* 95 % confidence interval of `relative`, or NaN. It contains 0 if and only if the change
	 * is noise */
	double low, high;
	/* probability that chance alone does as much; NaN if unknown */
	double p;
	/* p, or what tally_changes_adjust() made of it */
	double adjusted_p;
	enum tally_significance significance;
};

void tally_change_of(const struct tally_figure *old, const struct tally_figure *new,
		     struct tally_change *out);

/* Adjusts p for a comparison of many quantities: of the changes with `adjusted_p` < 0.05 at most 5 %
 * are expected to be chance (Y. Benjamini, Y. Hochberg, Controlling the False Discovery Rate, JRSS B
 * 57, 1995).  If nothing changed, at most 5 % of comparisons show such a change.  The quantities must
 * be independent or positively dependent (Y. Benjamini, D. Yekutieli, Annals of Statistics 29, 2001):
 * times and counts of the same runs mostly are.  Changes without p are left alone and not counted.
 * Sorts the pointers. */
void tally_changes_adjust(struct tally_change **changes, size_t count);

/* Is the change significant by its p, but not by the adjusted one? */
bool tally_change_is_doubtful(const struct tally_change *change);

/* Marks the values that are far from the median: more than 3.5 times the median distance, in units of
 * a normal distribution's σ (B. Iglewicz, D. Hoaglin, How to Detect and Handle Outliers, 1993).
 * Returns their number; 0 for fewer than 5 values, and if half of them are equal.  -ENOMEM. */
int tally_outliers_mark(const double *values, size_t count, bool *is_outlier, double *median);

/* Joins the runs of `more` to those of `figure`, as if they were one series. */
void tally_figure_join(struct tally_figure *figure, const struct tally_figure *more);

/* Returns P(|T| > t) of Student's distribution with `freedom` > 0 degrees of freedom, which need
 * not be whole.  Infinite `freedom` gives the normal distribution. */
double tally_student_p(double t, double freedom);
/* Returns t with P(|T| > t) = p, for 0 < p < 1. */
double tally_student_t(double p, double freedom);

/* Conditions on changes, for scripts: `instructions > +1%`.
 *
 *     NAME OP LIMIT     OP: > >= < <=
 *     LIMIT             +1%, -1%, 1%: the change relative to the old figure; +1000, -1000: the
 *                       change itself; 1000: the new figure. K, M, G, T: thousands, millions, …;
 *                       clocks in milliseconds, elapsed, user, system in seconds, as they are shown
 * Pure. */

enum tally_limit_kind { TALLY_LIMIT_RELATIVE, TALLY_LIMIT_DIFFERENCE, TALLY_LIMIT_VALUE };

struct tally_condition {
	const char *text;   /* as given; the caller's */
	/* of the event, or "elapsed", "user", "system"; for diff, of the function */
	char name[512];
	bool is_above, or_equal;
	enum tally_limit_kind kind;
	double limit;       /* RELATIVE: 0.01 for 1 % */
};

/* Parses a condition.  Returns 0, or -EINVAL with a position in `text`. */
int tally_condition_parse(const char *text, struct tally_condition *out, struct tally_error *err);

enum tally_condition_result {
	TALLY_CONDITION_FALSE,
	TALLY_CONDITION_TRUE,
	TALLY_CONDITION_NOISE, /* the figures fulfil it, but chance may do as much */
	TALLY_CONDITION_UNKNOWN /* a figure is missing */
};

/* Judges a condition.  The figures times `scale` are in the limit's unit. */
enum tally_condition_result tally_condition_judge(const struct tally_condition *condition,
						  const struct tally_figure *new,
						  const struct tally_change *change, double scale);

/* Counts that `stat` has saved: tally's JSON (docs/stat-output.md), and perf's (`perf stat -j`).
 *
 * A file may hold several documents one after another, as `--append` writes them: they are runs of
 * one series.  No I/O; the text is untrusted. */

struct tally_saved_row {
	const char *name, *unit; /* "" if there is none */
	const char *missing; /* why there is no figure: "not-supported", …; NULL: there is one */
	const char *source;      /* "kernel", "simulated", …; "": unknown */
	struct tally_figure figure;
	/* The figures of the runs, in their order.  Empty unless each run is known by itself, and for
	 * more than 10,000 runs. */
	TALLY_VECTOR(double) values;
	bool is_scaled, is_substitute, is_user_only;
};

struct tally_saved_counts {
	const char *path;     /* the caller's */
	bool is_measured;     /* made for this comparison: the commands differ on purpose */
	const char *command;  /* as one line; "": unknown */
	const char *provider; /* "": unknown */
	const char *machine;  /* the simulated machine; "" if none */
	/* how an unfinished command ended: "signal 6", "an interruption"; "" otherwise */
	const char *ended;
	TALLY_VECTOR(const char *) notes; /* as saved, in the arena */
	unsigned long runs;   /* 0: unknown */
	/* Events in the file's order, then "elapsed", "user", "system" in seconds, as far as they
	 * are known. */
	TALLY_VECTOR(struct tally_saved_row) rows;
};

/* Reads `length` bytes.  Strings are in the arena.  Returns 0, or -errno with a message that names
 * `path`. */
int tally_saved_counts_read(const char *path, const char *text, size_t length,
			    struct tally_arena *arena, struct tally_saved_counts *out,
			    struct tally_error *err);
void tally_saved_counts_release(struct tally_saved_counts *counts);

/* Finds a row by name: the one with exactly that name, or else the only one that is the same event
 * without its modifiers or its PMU ("instructions" finds "instructions:u" and
 * "vsim/instructions/").  Returns NULL if there is none. */
const struct tally_saved_row *tally_saved_counts_find(const struct tally_saved_counts *counts,
						      const char *name);

/* Compares two saved results event by event, and judges conditions on them. */

struct tally_compared_row {
	const char *name;
	/* one is NULL if only the other side has the row */
	const struct tally_saved_row *old, *new;
	bool has_change; /* both sides have a figure */
	struct tally_change change;
};

struct tally_judged_condition {
	struct tally_condition condition;
	const struct tally_compared_row *row; /* NULL: UNKNOWN, there is no such event */
	double scale; /* the row's figures times `scale` are in the limit's unit */
	enum tally_condition_result result;
};

struct tally_saved_comparison {
	const struct tally_saved_counts *old, *new;
	/* in the order of the new file, then those that only the old one has */
	TALLY_VECTOR(struct tally_compared_row) rows;
	TALLY_VECTOR(struct tally_judged_condition) conditions;
	TALLY_VECTOR(const char *) notes; /* how the two sides differ, and outliers; in the arena */
	bool has_failed;                  /* a condition is TRUE */
};

/* Compares two results.  Returns 0 or -ENOMEM. */
int tally_saved_compare(const struct tally_saved_counts *old, const struct tally_saved_counts *new,
			struct tally_arena *arena, struct tally_saved_comparison *out);
/* Judges one more condition.  With `past_noise`, NOISE counts as TRUE.  Returns 0 or -ENOMEM; or
 * -ENOENT with a message, and the result UNKNOWN, if a side has no figure for it or its command was
 * killed: a condition must not pass because nothing was counted. */
int tally_saved_compare_judge(struct tally_saved_comparison *comparison,
			      const struct tally_condition *condition, bool past_noise,
			      struct tally_error *err);
void tally_saved_comparison_release(struct tally_saved_comparison *comparison);

#endif
