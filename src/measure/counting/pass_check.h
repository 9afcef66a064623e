/* Whether the passes of one command did the same work, so that their counts belong together. */
#ifndef TALLY_COUNTING_PASS_CHECK_H
#define TALLY_COUNTING_PASS_CHECK_H

#include "counting/counting.h"

/* How much the passes may differ in their common figure unless the user says otherwise, as a part
 * of it.  Times of the same work differ with the CPU's frequency and its neighbours. */
#define TALLY_PASS_DIFFERENCE_COUNT 0.05
#define TALLY_PASS_DIFFERENCE_TIME 0.25
/* Differences of times below this are never too large: short commands spend it on their start. */
enum { TALLY_PASS_DIFFERENCE_NS = 5000000 };

struct tally_pass_check {
	/* [pass][event], and one more for the CPU time, in ns; NULL: there is one pass */
	struct tally_spread *figures;
	size_t passes, width;
	/* set by judging */
	const char *name; /* the common figure; NULL: there is none */
	double low, high; /* its smallest and largest mean of a pass */
	bool is_time;     /* it is in ns */
};

/* Returns 0 or -ENOMEM. */
int tally_pass_check_init(struct tally_pass_check *check,
			  const struct tally_counting_options *options, struct tally_error *err);
void tally_pass_check_release(struct tally_pass_check *check);

/* Adds a run of the options' pass: its rows, and the command's CPU time in ns, negative if it is
 * unknown. */
void tally_pass_check_add(struct tally_pass_check *check,
			  const struct tally_counting_options *options,
			  const struct tally_event_count *rows, double cpu_ns);

/* Compares the passes in the figure that they have in common: instructions, or else the clock, or
 * else the CPU time.  Returns 0, or -EILSEQ with a message if the largest and the smallest mean of
 * a pass differ by more than `maximum` (0: the defaults above) and, if each pass ran several times,
 * by more than chance explains (Welch's test at 5 %, divided by the number of pairs). */
int tally_pass_check_judge(struct tally_pass_check *check,
			   const struct tally_counting_options *options, double maximum,
			   struct tally_error *err);

/* Makes a line for the user about the passes, after judging.  Returns 1; 0 with one pass or without
 * memory. */
size_t tally_pass_check_note(const struct tally_pass_check *check,
			     const struct tally_counting_options *options,
			     struct tally_arena *arena, const char **note);

#endif
