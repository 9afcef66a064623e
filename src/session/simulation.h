/* A scenario, played and measured.
 *
 * The observer is a task of the simulated machine, named `tally`: it opens the events on the others
 * before they run, drains rings when it gets a CPU, reads at the end.  What it misses, it misses as
 * on a real machine.
 */
#ifndef TALLY_SESSION_SIMULATION_H
#define TALLY_SESSION_SIMULATION_H

#include "base/arena.h"
#include "counts/counts.h"
#include "event/event.h"
#include "sim/scenario_play.h"

struct tally_simulation_result {
	const struct scenario_part *part;
	const char *target;                 /* "task server", "cpu 1", "everything" */
	double elapsed_ns;                  /* of the machine */
	const struct tally_count *rows;     /* of a count */
	size_t row_count;
	const char *events;                 /* of samples: their names */
	uint64_t samples, lost, throttled;  /* lost: as the events themselves counted */
	uint64_t lost_told;                 /* by LOST records */
};

struct tally_simulation_options {
	const struct scenario *scenario;
	const char *scenario_name; /* for messages: its path */
	const char *output_path;   /* of the recording; NULL: none */
	int argc;                  /* the command line, for the recording */
	char **argv;
	/* Told, as it happens, at so many ns since the start.  NULL: nothing is. */
	void (*tell)(void *context, uint64_t ns, const char *text);
	/* Each part's result, in the scenario's order, when all is over; said lines too. */
	void (*result)(void *context, const struct tally_simulation_result *result);
	void *context;
};

/* What a recording came to. */
struct tally_simulation_summary {
	uint64_t samples, bytes;
	char object_path
		[4096]; /* the file with the functions' names, beside the recording; "" without one */
	double elapsed_ns;
	unsigned tasks, tasks_left, forks_refused;
};

/* 0, or -errno; -EINVAL with a position for what the scenario names and the machine doesn't
 * have. */
int tally_simulation_run(const struct tally_simulation_options *options,
			 struct tally_simulation_summary *summary, struct tally_error *err);

#endif
