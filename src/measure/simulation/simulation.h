/* Plays and measures a scenario.
 *
 * The observer is a task of the simulated machine, named `tally`.  It opens the events on the other
 * tasks before they run, drains rings when it gets a CPU, and reads the counts at the end.  It
 * misses what it would miss on a real machine.
 */
#ifndef TALLY_SIMULATION_H
#define TALLY_SIMULATION_H

#include "counts/counts.h"
#include "event/event.h"
#include "sim/scenario_play.h"

struct tally_simulation_result {
	const struct scenario_part *part;
	const char *target;                 /* "task server", "cpu 1", "everything" */
	double elapsed_ns;                  /* the machine's time */
	const struct tally_event_count *rows;     /* for counts */
	size_t row_count;
	const char *events;                 /* for samples: the events' names */
	uint64_t samples, lost, throttled;  /* lost: as the events counted */
	uint64_t lost_reported;                 /* lost according to LOST records */
};

struct tally_simulation_options {
	const struct scenario *scenario;
	const char *scenario_name; /* its path, for messages */
	const char *output_path;   /* path of the recording; NULL: none */
	int argc;                  /* argc, argv: the command line, for the recording */
	char **argv;
	/* Optional: called for each message, with the ns since the start. */
	void (*on_message)(void *context, uint64_t ns, const char *text);
	/* Called for each part, in the scenario's order, when all is over; SCENARIO_SAY parts
	 * included. */
	void (*result)(void *context, const struct tally_simulation_result *result);
	void *context;
};

/* The figures of a recording. */
struct tally_simulation_summary {
	uint64_t samples, bytes;
	char object_path
		[4096]; /* file with the functions' names, beside the recording; "": none */
	double elapsed_ns;
	unsigned tasks, tasks_left, forks_refused;
};

/* Plays a scenario.  Returns 0 or -errno; -EINVAL with a position when the scenario names something
 * that the machine doesn't have. */
int tally_simulation_run(const struct tally_simulation_options *options,
			 struct tally_simulation_summary *summary, struct tally_error *err);

#endif
