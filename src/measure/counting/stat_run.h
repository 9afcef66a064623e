/* A whole `stat`: runs, intervals, waiting, signals; produces reports. */
#ifndef TALLY_COUNTING_STAT_RUN_H
#define TALLY_COUNTING_STAT_RUN_H

#include "counting/counting.h"
#include "counts/counts.h"
#include "session/session.h"

enum { TALLY_STAT_NOTES_MAX = 12 };

/* Everything that a view shows. */
struct tally_stat_report {
	/* the first part's rows; elapsed and CPU times are means over the runs */
	struct tally_count_table table;
	unsigned long runs;             /* finished runs */
	unsigned long runs_wanted;
	struct tally_spread elapsed, user, system; /* ns, over the runs */
	enum tally_count_by by;
	const struct tally_count_part *parts; /* each has table.count rows in table.rows */
	size_t part_count;
	bool is_interval;
	bool is_summary;                /* after intervals: their sum */
	double timestamp_ns;            /* end of the interval, from the start */
	const char *provider;           /* the provider's name */
	const char *machine, *machine_short; /* the simulated CPU, or NULL */
	char target[4096];              /* text of the counted target: "'sleep 1'" */
	char **command;                 /* argv, or NULL */
	int exit_status;                /* of the command; −1: no command, or it has not ended */
	int end_signal;                 /* the signal that ended the command, 0: none */
	/* tally sent that signal: the requested time or intervals were over */
	bool was_limited;
	bool was_interrupted;           /* Ctrl-C or the like */
	const char *notes[TALLY_STAT_NOTES_MAX];
	size_t note_count;
};

struct tally_stat_options {
	struct tally_counting_options counting;
	struct tally_target *target;
	unsigned long runs;          /* at least 1; of each pass */
	unsigned interval_ms;        /* 0: none */
	unsigned long interval_count; /* stop after this many intervals; 0: no limit */
	unsigned long timeout_ms;    /* 0: none */
	/* with counting.passes: the runs may differ by this much, 0.05 is 5 %; 0: the defaults of
	 * pass_check.h */
	double max_difference;
	bool summary;                /* report the whole after the intervals */
	/* counting starts this long after the command; −1: when `control` says so */
	long delay_ms;
	struct tally_control *control; /* opened; NULL: none */
	const char *note;            /* one more for the report, or NULL */
	/* Optional: called in each run once counting has started; from then on Ctrl-C ends the run
	 * and keeps its counts. */
	void (*on_start)(void *context);
	/* Called with a line for the user, during the run. */
	void (*on_message)(void *context, const char *text);
	/* Called at each interval and at the end; without intervals once, with the means over the
	 * runs. */
	void (*on_report)(void *context, const struct tally_stat_report *report);
	void *context;
};

/* Runs a `stat`.  Returns 0 or -errno; sets `*exit_status` to the status for `tally stat`.  When
 * the command can't be executed, there is no report, and the status is a shell's 127 or 126. */
int tally_stat_run(const struct tally_stat_options *options, int *exit_status,
		   struct tally_error *err);

#endif
