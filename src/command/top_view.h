/* What `tally top` was asked for and shows; shared by its files. */
#ifndef TALLY_COMMAND_TOP_VIEW_H
#define TALLY_COMMAND_TOP_VIEW_H

#include "browse/browse.h"
#include "report/live_sums.h"
#include "recorder/recorder.h"

struct top_request {
	double delay_s, duration_s, percent_min; /* duration 0: until the user leaves */
	unsigned long long iterations;           /* 0: any number */
	size_t limit;
	bool stdio, tui, stacks;
	uint32_t frames_max; /* of a stack; 0: all */
	bool no_totals; /* nor of stacks */
	bool shows_idle; /* samples of idle CPUs */
	bool forgets; /* each view begins from nothing */
	bool full_names;          /* parameters in any case */
	bool by[TALLY_SORT_KEYS]; /* what rows are told apart by */
	bool is_narrowed; /* to the user's own processes, since the kernel refused the system */
	const struct tally_event_list *events;
	const struct tally_target *target;
	struct tally_recorder *recorder;
	struct tally_signals signals;

	struct tally_names names;
	struct tally_live_sums sums;
	struct tally_report_options options;
	struct tally_report report;
	struct tally_record_status status, before; /* now, and when the last view was made */
	uint64_t taken; /* samples of the event that is shown, since the last view */
	bool is_paused, is_hinted; /* the hint at unnamed code is given once */
	struct tally_browser browser;
};

/* tally_record_options.take_sample; `context` is a struct top_request. */
int top_take_sample(void *context, size_t event, const struct tally_record *sample);

/* tally_record_options.say: on the terminal's last line, or standard error. */
void top_say(void *context, const char *line);

/* Samples and shows until the end.  0 or -errno. */
int top_run(struct top_request *top, struct tally_error *err);

#endif
