/* Options and state of `tally top`, shared by its files. */
#ifndef TALLY_COMMAND_TOP_VIEW_H
#define TALLY_COMMAND_TOP_VIEW_H

#include "browse/browse.h"
#include "command/record_request.h"
#include "report/live_sums.h"
#include "recorder/recorder.h"

enum interface { INTERFACE_DEFAULT, INTERFACE_TEXT, INTERFACE_BROWSER };

struct top_request {
	struct record_request request; /* first: the options of `tally record` are stored in it */
	double delay_s, duration_s, percent_min; /* duration 0: until the user leaves */
	unsigned long long iterations;           /* 0: unlimited */
	size_t limit;
	enum interface interface;
	bool stdio; /* as text: requested, or without a terminal */
	bool stacks;
	uint32_t frames_max; /* frames kept of a stack; 0: all */
	bool no_totals; /* show no totals, even with stacks */
	bool shows_idle; /* show samples of idle CPUs */
	bool forgets; /* each view starts from zero */
	struct tally_name_sources sources; /* --full-names */
	bool by[TALLY_SORT_KEYS]; /* keys that group rows */
	bool is_narrowed; /* only the user's processes, since the kernel refused the whole system */
	struct tally_recorder *recorder;
	struct tally_signals signals;

	struct tally_names names;
	struct tally_live_sums sums;
	struct tally_report_options options;
	struct tally_report report;
	struct tally_recorder_status status, before; /* now, and at the last view */
	uint64_t taken; /* samples of the shown event since the last view */
	bool is_paused, is_hinted; /* the hint about unnamed code was given */
	struct tally_browser browser;
};

/* Callback tally_recorder_options.take_sample; `context` is a struct top_request. */
int top_take_sample(void *context, size_t event, const struct tally_record *sample);

/* Callback tally_recorder_options.say: prints to the terminal's last line, or to standard error. */
void top_say(void *context, const char *line);

/* Samples and shows views until the end. Returns 0 or -errno. */
int top_run(struct top_request *top, struct tally_error *err);

#endif
