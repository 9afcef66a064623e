/* The state of a running `stat`, shared by its files. */
#ifndef TALLY_SESSION_STAT_STATE_H
#define TALLY_SESSION_STAT_STATE_H

#include "base/vector.h"
#include "session/signals.h"
#include "session/spawn.h"
#include "counting/stat_run.h"

#include <poll.h>
#include <sys/resource.h>

struct tally_stat_state {
	const struct tally_stat_options *options;
	struct tally_signals signals;
	struct tally_spawn spawn;
	struct tally_counting_options counting_options; /* with this run's command */
	struct tally_counting counting;
	struct tally_stat_report report;
	TALLY_VECTOR(struct pollfd) waits; /* TALLY_STAT_WAIT_…, then the tasks' */
	int hotplug_fd;       /* −1: none */
	size_t unwatched;     /* attached threads without a pidfd */
	size_t tasks_left;    /* attached tasks that are watched and have not ended */
	int64_t start_ns, end_ns; /* start: of counting */
	int64_t enable_at_ns; /* INT64_MAX: not by time */
	bool has_ended;       /* the command, or all attached tasks */
	bool should_stop;     /* interrupted, time over, or all intervals done */
	/* tally told the command to end, because the requested time or intervals are over */
	bool was_limited;
	bool failed_to_exec;
	int wait_status;
	struct rusage rusage; /* of the ended command */
	struct tally_resource_usage usage_first, usage_last;
	/* of the tasks or the command, for user_time and system_time */
	struct tally_resource_usage tools_first, tools_last;
	double switches, preemptions; /* of the ended commands, summed over all runs */
	unsigned long intervals; /* intervals that are over */
	unsigned long interval_reports;
	bool has_all_intervals;
	double reported_ns;   /* time of the last report, from the start */
};

enum {
	TALLY_STAT_WAIT_SIGNALS,
	TALLY_STAT_WAIT_CONTROL,
	TALLY_STAT_WAIT_HOTPLUG,
	TALLY_STAT_WAIT_TASKS
};

int64_t tally_stat_now_ns(void);

/* stat_run.c */
void tally_stat_interval(struct tally_stat_state *run); /* reads and reports */

/* Returns what the attached tasks, or otherwise the command, have used since they started. */
struct tally_resource_usage tally_stat_usage_of_tasks(const struct tally_stat_state *run);

/* stat_tools.c */
/* Begins counting.  Usage up to `first` is not counted; NULL: up to now. */
void tally_stat_begin_tools(struct tally_stat_state *run, const struct rusage *first);
/* Fills the rows of tool events, which reading has left out, with the time since the last call. */
void tally_stat_read_tools(struct tally_stat_state *run, double elapsed_ns);
/* The same since the start. */
void tally_stat_total_tools(struct tally_stat_state *run, double elapsed_ns);

/* stat_wait.c */
int tally_stat_open_waits(struct tally_stat_state *run);
void tally_stat_close_waits(struct tally_stat_state *run);
/* Sleeps until something happens or the deadline comes, and handles what happened. */
void tally_stat_wait(struct tally_stat_state *run, int64_t deadline_ns);
void tally_stat_take_events(struct tally_stat_state *run);
/* Handles CPUs that came online or went offline since the last call. */
void tally_stat_check_online(struct tally_stat_state *run);

#endif
