/* Shared by the files of `tally stat`. */
#ifndef TALLY_COMMAND_STAT_COMMAND_H
#define TALLY_COMMAND_STAT_COMMAND_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/output_path.h"
#include "command/command.h"
#include "command/metric_sources.h"
#include "command/provider_choice.h"
#include "command/simulated_options.h"
#include "counting/stat_run.h"
#include "event/event.h"
#include "provider/provider.h"
#include "stat/stat.h"

#include <stdio.h>

/* -e and -G in their order: a cgroup applies to the events before it. */
struct stat_expression {
	enum { STAT_EVENTS, STAT_CGROUPS } kind;
	const char *text;
	const char *filter; /* for the tracepoints, or NULL */
};

/* Whether the table shows 1,234,567 or 1234567.  perf mode groups by the locale. */
enum stat_digits {
	STAT_DIGITS_FOR_READERS, /* grouped as tally_terminal_groups_digits() says */
	STAT_DIGITS_GROUPED,
	STAT_DIGITS_PLAIN
};

struct stat_command {
	const struct tally_command *command;
	struct tally_arena arena;
	struct tally_catalogue catalogue;
	bool has_catalogue;
	struct tally_event_list events;
	struct tally_target target;
	struct provider_choice choice;
	const struct tally_provider_ops *provider_ops; /* of the chosen one */
	struct tally_provider *provider;
	struct tally_stat_options options;
	struct stat_expression expressions[64];
	size_t expression_count, event_expressions; /* all expressions; expressions of events */
	/* perf mode (perf_mode.c): perf's events, texts and files */
	bool is_perf;
	unsigned detail; /* how many -d */
	bool counts_nothing, appends;
	int log_fd; /* negative: none */
	const char *each_cgroup, *output_path, *provider_name, *control_spec;
	const char *metric_names; /* -M: NULL or a list */
	struct metric_sources metric_sources;
	struct tally_metric_set metric_set;
	struct tally_metric_uses metrics;
	struct tally_control control;
	struct tally_simulated_options simulated;
	enum stat_digits digits;
	FILE *output;
	struct tally_output_path place; /* of output_path */
	struct tally_buffer text;
	struct tally_stat_view view;
	const struct tally_stat_view_ops *ops;
	double min_running; /* percent: --min-running */
	double max_difference; /* percent: --max-difference; 0: not given */
	bool is_unscaled;      /* --no-multiplex */
	bool splits_groups;
	struct tally_count_passes passes; /* with is_unscaled */
	bool is_misused;
	bool has_begun;  /* counts were written, in place of the file's old ones */
	int write_error; /* -errno from writing the output */
};

/* stat_events.c: fills stat->events; sets is_misused if an expression is wrong. */
int stat_parse_events(struct stat_command *stat, struct tally_error *err);
/* stat_metrics.c: finds the metrics of -M, and adds their events to stat->events.  A metric that this
 * machine lacks events for is no error: its figure says why. */
int stat_add_metrics(struct stat_command *stat, struct tally_error *err);
void stat_release_metrics(struct stat_command *stat);
/* Finds which CPUs each event's PMU counts on: an uncore PMU opened on every CPU would count
 * repeatedly. */
int stat_find_event_cpus(struct stat_command *stat, struct tally_error *err);
/* stat_fit.c: finds the groups that don't fit the counters before the command runs, says so, and
 * splits them if the user wants that; finds the passes of --no-multiplex. */
int stat_fit_events(struct stat_command *stat, struct tally_error *err);

#endif
