/* The sources of metrics for stat and list: the built-in table, the user's file, perf's JSON files. */
#ifndef TALLY_COMMAND_METRIC_SOURCES_H
#define TALLY_COMMAND_METRIC_SOURCES_H

#include "command/command.h"
#include "event/event.h"
#include "metric/metric.h"
#include "provider/provider.h"

/* The options that stat and list share; NULL: the usual places. */
struct metric_sources {
	const char *file;   /* --metrics-file */
	const char *folder; /* --metrics-dir */
};

#define METRIC_SOURCE_OPTIONS(type, member) \
	{ 0, \
	  "metrics-file", \
	  TALLY_ARGUMENT_REQUIRED, \
	  "FILE", \
	  "metrics of your own: NAME = EXPRESSION  # UNIT, DESCRIPTION\n" \
	  "(default: ~/.config/tally/metrics)", \
	  TALLY_TEXT(type, member.file) }, \
	{ \
		0, "metrics-dir", TALLY_ARGUMENT_REQUIRED, "DIR", \
			"perf's JSON files of metrics: tools/perf/pmu-events of a\nLinux tree, or a folder " \
			"of such files", \
			TALLY_TEXT(type, member.folder) \
	}

/* Makes a set of all metrics: built-in ones, perf's from --metrics-dir or TALLY_METRICS_DIR, the
 * user's.  Returns 0 or -errno with a message; release the set in both cases. */
int metric_sources_load(const struct metric_sources *sources, struct tally_metric_set *set,
			struct tally_error *err);

/* Adds perf's metrics from a Linux tree in one of the usual places, if neither the option nor the
 * variable names a folder.  They come with `make perf` in the tree of the running kernel, so that
 * reading them is worth it only for a name that is unknown otherwise.  Returns true if there were
 * any. */
bool metric_sources_load_usual(const struct metric_sources *sources, struct tally_metric_set *set);

/* Reads what expressions ask about the machine.  `is_core_wide`: whole CPUs are counted. */
void metric_machine_read(struct tally_metric_machine *machine, bool is_core_wide,
			 struct tally_arena *arena);

/* The catalogue and provider that have the events of metrics. */
struct metric_places {
	struct tally_metric_set *set;
	struct tally_catalogue *catalogue;
	const struct tally_provider_ops *provider;
	struct tally_arena *arena;
};

/* The events of one metric.  By event of its plan: they are [first, first + count) in `events`. */
struct metric_events {
	struct tally_event_list events;
	struct tally_metric_rows *ranges;
};

/* Makes the plan of `use->name`, which is in the set, and parses its events.  An event that is
 * missing is no error: it makes the metric unavailable, and the reason is that of the first
 * definition.  Returns 0 or -errno with a message.  The caller releases plan and events. */
int metric_use_prepare(const struct metric_places *places, struct tally_metric_use *use,
		       struct metric_events *parsed, struct tally_error *err);

#endif
