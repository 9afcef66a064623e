/* A whole `stat`: runs, intervals, waiting, signals; gives reports. */
#ifndef TALLY_SESSION_STAT_RUN_H
#define TALLY_SESSION_STAT_RUN_H

#include "base/arena.h"
#include "counts/counts.h"
#include "session/control_fifo.h"
#include "session/counting.h"

enum { TALLY_STAT_NOTES_MAX = 12 };

/* Everything that a view shows. */
struct tally_stat_report {
	/* of the first part; elapsed and CPU times: means over the runs */
	struct tally_count_table table;
	unsigned long runs;             /* finished ones */
	unsigned long runs_wanted;
	struct tally_spread elapsed, user, system; /* ns, over the runs */
	enum tally_count_by by;
	const struct tally_count_part *parts; /* table.rows has table.count rows for each */
	size_t part_count;
	bool is_interval;
	bool is_summary;                /* behind intervals: the sum of them all */
	double timestamp_ns;            /* end of the interval, from the start */
	const char *provider;           /* the provider's name */
	const char *machine, *machine_short; /* the CPU that was simulated, or NULL */
	char target[4096];              /* what was counted: "'sleep 1'" */
	char **command;                 /* argv, or NULL */
	int exit_status;                /* of the command; −1: there is none, or it did not end */
	int end_signal;                 /* the signal that ended the command, 0: none */
	/* that signal was tally's own: the time or the intervals asked for were over */
	bool was_limited;
	bool was_interrupted;           /* Ctrl-C or the like */
	const char *notes[TALLY_STAT_NOTES_MAX];
	size_t note_count;
};

struct tally_stat_options {
	struct tally_counting_options counting;
	struct tally_target *target;
	unsigned long runs;          /* at least 1 */
	unsigned interval_ms;        /* 0: none */
	unsigned long interval_count; /* stop after so many; 0: no limit */
	unsigned long timeout_ms;    /* 0: none */
	bool summary;                /* after intervals, the whole */
	/* counting starts so long after the command; −1: when `control` says so */
	long delay_ms;
	struct tally_control *control; /* opened; NULL: none */
	/* Called at each run when it counts and Ctrl-C ends it with its counts, not before; NULL:
	 * nothing is. */
	void (*on_start)(void *context);
	/* What is to be told meanwhile, a line. */
	void (*on_message)(void *context, const char *text);
	/* Called at each interval and at the end; without intervals once, with the runs' means. */
	void (*on_report)(void *context, const struct tally_stat_report *report);
	void *context;
};

/* 0, or -errno; `*exit_status` is what `tally stat` should exit with.  When the command can't be
 * run, nothing is reported, and the status is a shell's 127 or 126. */
int tally_stat_run(const struct tally_stat_options *options, int *exit_status,
		   struct tally_error *err);

#endif
