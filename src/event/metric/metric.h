/* Metrics: formulas over events, such as instructions / cycles.
 *
 * One table of formulas (metric_table.c) serves the figures beside `stat`'s counts, `stat -M` and
 * `list metrics`.  A user's file and perf's JSON files add to it.
 *
 *     text ──metric_expression──▶ expression
 *     definitions ──metric_plan──▶ plan: events to count, steps to compute
 *     plan + counts ──metric_rows──▶ figure, or the reason why there is none
 *
 * Pure: nothing here opens, reads or prints. */
#ifndef TALLY_METRIC_H
#define TALLY_METRIC_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vector.h"
#include "counts/counts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- expressions ---------------------------------------------------------- */

/* The grammar is perf's (tools/perf/util/expr.y and expr.l), from the loosest to the tightest:
 *
 *     a if condition else b
 *     a | b
 *     a ^ b
 *     a & b
 *     a < b   a > b               1 or 0
 *     a + b   a - b
 *     a * b   a / b   a % b
 *     -a   !a
 *     1.5e9   (a)   min(a, b)   max(a, b)   d_ratio(a, b)   NAME   #CONSTANT
 *     has_event(NAME)   source_count(NAME)   strcmp_cpuid_str(TEXT)
 *
 * A name is letters, digits, '_', '.', ':', '?', and any character behind a backslash; '@' stands
 * for '/', as in cpu@event\=0x3c\,umask\=1@.  tally also accepts a name between quotes, as it is:
 * 'L1-dcache-loads', "cpu/event=0x3c/".
 *
 * Division by zero has no value; d_ratio() gives 0.  An operand without a value leaves the whole
 * expression without one, unless it is in the branch of an if that isn't taken. */
struct tally_metric_expression;

enum {
	TALLY_METRIC_DEPTH_MAX = 64,   /* of parentheses and of metrics in metrics */
	TALLY_METRIC_NODES_MAX = 4096, /* of one expression */
	TALLY_METRIC_EVENTS_MAX = 256, /* of one metric, with those in it */
	TALLY_METRIC_STEPS_MAX = 1024
};

/* Parses a NUL-terminated expression.  The result is in the arena.  Returns 0, -ENOMEM, -E2BIG for
 * one that is nested too deeply or too long, or -EINVAL; these have a position in `text`. */
int tally_metric_parse(const char *text, struct tally_arena *arena,
		       const struct tally_metric_expression **out, struct tally_error *err);

/* Returns the number of distinct names, and one of them.  Names are as -e takes them: without quotes
 * and backslashes. */
size_t tally_metric_name_count(const struct tally_metric_expression *expression);
const char *tally_metric_name(const struct tally_metric_expression *expression, size_t index);

/* The machine's numbers behind #CONSTANTs and functions.  NAN: unknown. */
struct tally_metric_machine {
	double cpus, cpus_online;     /* #num_cpus, #num_cpus_online */
	double cores, dies, packages; /* #num_cores, #num_dies, #num_packages */
	double smt_on, core_wide;     /* 1 or 0; #core_wide: all threads of each core are counted */
	double tsc_hz;                /* #system_tsc_freq */
	double slots;                 /* #slots: of Arm's PMU, per cycle */
	const char *cpuid;            /* as perf writes it: "GenuineIntel-6-8E-A"; "": unknown */
};

struct tally_metric_name_value {
	double value;          /* NAN: none */
	unsigned source_count; /* number of PMUs that were summed; 0: the event is not counted */
};

/* Returns the value; NAN if it has none, never an infinite one.  `values` has one for each name. */
double tally_metric_evaluate(const struct tally_metric_expression *expression,
			     const struct tally_metric_name_value *values,
			     const struct tally_metric_machine *machine);

/* --- definitions ---------------------------------------------------------- */

struct tally_metric_definition {
	const char *name;
	const char *expression;
	const char *unit;        /* "" if there is none */
	const char *description; /* "" if there is none */
	const char *group;       /* perf's MetricGroup or tally's own group; "" if there is none */
	const char *source;      /* of the formula: a document, a file */
	double scale;            /* the figure is the expression × scale */
	int decimals;            /* shown; −1: as the value's size suggests */
	/* the event beside whose count `stat` shows the figure; NULL: none */
	const char *beside;
	bool unit_first; /* "CPI 0.43" */
	/* perf's regular expression on the CPU's id (strcmp_cpuid_str()) that must match; NULL: any */
	const char *cpus;
	/* the machine lacks what it needs: another definition of the name is used */
	bool is_passed_over;
};

/* Returns the built-in metrics.  One name may have several definitions: the first one whose events
 * the machine has is used. */
const struct tally_metric_definition *tally_metric_table(size_t *count);

/* An event that perf's JSON files describe: its name there, and in terms of a PMU. */
struct tally_metric_event {
	const char *name, *expression;
};

/* A set of metrics, to look names up.  Of definitions with one name, the last one has
 * precedence. */
struct tally_metric_set {
	struct tally_arena arena;
	TALLY_VECTOR(struct tally_metric_definition) definitions;
	TALLY_VECTOR(struct tally_metric_event) events;
	bool is_sorted; /* the events are, by name */
};

/* Makes a set of the built-in metrics for the CPU with this id ("": unknown).  Returns 0 or -ENOMEM;
 * release it in both cases. */
int tally_metric_set_init(struct tally_metric_set *set, const char *cpuid);
void tally_metric_set_release(struct tally_metric_set *set);

/* Adds the metrics of a user's file, whose name is `path` in messages:
 *
 *     # comment
 *     NAME = EXPRESSION  # UNIT, DESCRIPTION
 *
 * Names are letters, digits, '_', '-' and '.', and begin with a letter or '_'.  A '#' with a blank
 * behind it begins the comment.  Every expression is parsed.  Returns 0, -ENOMEM, or -errno with
 * path and line. */
int tally_metric_set_add_file(struct tally_metric_set *set, const char *path, const char *text,
			      size_t length, struct tally_error *err);

/* Adds the metrics and events of one of perf's JSON files (tools/perf/pmu-events/README).  Other
 * objects are skipped.  Returns 0 or -errno with a message. */
int tally_metric_set_add_json(struct tally_metric_set *set, const char *path, const char *text,
			      size_t length, struct tally_error *err);

/* Finds the folder of the CPU in a mapfile.csv of perf.  Writes it to `out`.  Returns 0, or -ENOENT
 * if no line has the CPU. */
int tally_metric_map_find(const char *text, size_t length, const char *cpuid, char *out,
			  size_t size);

/* True if perf's regular expression matches the CPU's id. */
bool tally_metric_cpu_matches(const char *pattern, const char *cpuid);

/* Returns the index of the definition that has precedence and is not passed over, below `before`
 * (SIZE_MAX: all); SIZE_MAX if there is none.  Upper and lower case are the same, as in perf. */
size_t tally_metric_set_find(const struct tally_metric_set *set, const char *name, size_t before);

/* Returns the -e expression of an event that a JSON file describes, or `name` itself.  Terms and
 * modifiers around such a name stay.  NULL: out of memory. */
const char *tally_metric_set_event(struct tally_metric_set *set, const char *name);

/* --- plans ---------------------------------------------------------------- */

/* One expression of a plan.  Its names are events of the plan, or earlier steps. */
struct tally_metric_step {
	const struct tally_metric_expression *expression;
	size_t definition; /* in the set */
	double scale;      /* of the definition */
	size_t *operands; /* by name: index of the event; or, with TALLY_METRIC_IS_STEP, of the step */
};

#define TALLY_METRIC_IS_STEP ((size_t)1 << 32)

/* A metric with all metrics in it: which events it needs, and in which order it is computed. */
struct tally_metric_plan {
	const struct tally_metric_definition *definition;
	TALLY_VECTOR(struct tally_metric_step) steps; /* the last one is the metric */
	TALLY_VECTOR(const char *) events;            /* as the expressions have them; distinct */
};

/* Makes the plan of a definition of the set.  Returns 0, -ENOMEM, -EINVAL for an expression that is
 * wrong, -ELOOP for metrics that are defined by each other, or -E2BIG.  Release the plan in all
 * cases; its memory besides the vectors is the arena's. */
int tally_metric_plan_make(struct tally_metric_set *set, size_t definition,
			   struct tally_arena *arena, struct tally_metric_plan *plan,
			   struct tally_error *err);
void tally_metric_plan_release(struct tally_metric_plan *plan);

/* Passes over the definition that needs this event of the plan, if its name has another definition.
 * Returns true if so: the plan must be made again. */
bool tally_metric_plan_pass_over(struct tally_metric_set *set, const struct tally_metric_plan *plan,
				 size_t event);

/* Returns the figure, NAN if there is none.  `values` has one for each event. */
double tally_metric_plan_evaluate(const struct tally_metric_plan *plan,
				  const struct tally_metric_name_value *values,
				  const struct tally_metric_machine *machine);

/* --- figures -------------------------------------------------------------- */

/* A metric of -M, with the rows of its events in a table of counts. */
struct tally_metric_use {
	const char *name;
	const char *label; /* as shown: with the type of cores, if there are several */
	struct tally_metric_plan plan;
	/* by event of the plan: its rows are [first, first + count) */
	struct tally_metric_rows {
		size_t first, count;
	} * rows;
	const char *unavailable; /* why it can't be computed here, with the event; NULL: it can */
};

/* The metrics of a `stat`. */
struct tally_metric_uses {
	struct tally_metric_use *items;
	size_t count;
	struct tally_metric_machine machine;
	/* number of rows of one cgroup if all events are repeated for each; otherwise of all */
	size_t stride;
};

/* A metric's figure in one table. */
struct tally_metric_figure {
	const struct tally_metric_definition *definition;
	const char *label; /* the use's */
	double value;      /* NAN: there is none */
	/* why there is none, or a remark on the figure, or NULL; it may be in `text`, so a figure
	 * must not be copied */
	const char *note;
	bool is_mixed;  /* its events were counted at different times, and estimated */
	bool is_scaled; /* its events were counted for a part of the time, the same one */
	const char *cgroup;
	char text[512];
};

/* Computes metric `index` from the table's rows, for the cgroup of number `turn` (0 without
 * repeated events).  `first_part` is the rows of the first part, which have the times
 * (duration_time). */
void tally_metric_figure_of(const struct tally_metric_uses *uses, size_t index,
			    const struct tally_count_table *table,
			    const struct tally_event_count *first_part, size_t turn,
			    struct tally_metric_figure *out);

/* Returns the number of decimals that suits the value, from its size: four digits. */
int tally_metric_decimals(const struct tally_metric_definition *definition, double value);

/* --- figures beside counts ------------------------------------------------ */

/* A figure computed from others: "2.31 insn per cycle". */
struct tally_metric {
	double value;
	const char *unit;
	int decimals;
	bool unit_first; /* "CPI 0.43" */
	/* its two counts were taken at different times: in turns, or in different runs */
	bool is_apart;
};

enum { TALLY_METRICS_MAX = 2 };

/* Computes the metrics beside row `index` from it and other rows, the most informative first.
 * Returns their number. */
unsigned tally_metrics_of(const struct tally_count_table *table, size_t index,
			  struct tally_metric out[TALLY_METRICS_MAX]);

/* Computes the built-in metric of this name from rows that count what `row` counts: the same modes,
 * preferably the same group.  Returns NAN if there is no figure. */
double tally_metric_beside(const struct tally_count_table *table, const char *name,
			   const struct tally_event_count *row);

/* Writes one sentence that interprets the table ("memory bound: …").  Returns false if there is
 * nothing to say. */
bool tally_count_verdict(const struct tally_count_table *table, char *out, size_t size);

#endif
