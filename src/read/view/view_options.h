/* Options to select samples, or parts of their stacks; every view of a recording has them. */
#ifndef TALLY_VIEW_OPTIONS_H
#define TALLY_VIEW_OPTIONS_H

#include "base/buffer.h"
#include "command/command.h"
#include "recording/sample_filter.h"

/* Rows of an option table. `member` is the request's struct tally_profile_filter. */
#define TALLY_FILTER_OPTIONS(type, member) \
	TALLY_FILTER_OPTIONS_BY(type, member, tally_filter_take_cpus)
#define TALLY_FILTER_OPTIONS_BY(type, member, take_cpus) \
	{ 0, "comm", TALLY_ARGUMENT_REQUIRED, "LIST", \
	  "only these commands; cc* matches any that begins with cc", \
	  TALLY_TEXT(type, member.comms) }, \
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples on these CPUs", \
	  TALLY_TEXT(type, member.cpus), TALLY_TAKE(take_cpus) }, \
	{ 0, "time", TALLY_ARGUMENT_REQUIRED, "RANGE", \
	  "only START,END in seconds as script prints them, or a share: 10%-20%, 10%/2", \
	  TALLY_TEXT(type, member.time), TALLY_TAKE(tally_filter_take_time) }

/* The names of the options for tasks, for commands where --pid means something else. */
#define TALLY_FILTER_TASK_OPTIONS(pid, tid, type, member) \
	{ 0, pid, TALLY_ARGUMENT_REQUIRED, "LIST", "only these processes", \
	  TALLY_TEXT(type, member.pids), TALLY_TAKE(tally_filter_take_numbers) }, \
	{ 0, tid, TALLY_ARGUMENT_REQUIRED, "LIST", "only these threads", \
	  TALLY_TEXT(type, member.tids), TALLY_TAKE(tally_filter_take_numbers) }

/* For views that name the functions of samples. */
#define TALLY_FILTER_LEAF_OPTIONS(type, member) \
	{ 0, "dso", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples in these objects (libc*)", \
	  TALLY_TEXT(type, member.objects) }, \
	{ 0, "symbol", TALLY_ARGUMENT_REQUIRED, "LIST", \
	  "only samples in these functions (std::*)", \
	  TALLY_TEXT(type, member.symbols) }

/* For views that show stacks. `member` is the number of frames. */
#define TALLY_FILTER_STACK_OPTION(type, member) \
	{ 0, "max-stack", TALLY_ARGUMENT_REQUIRED, "N", \
	  "only the innermost N frames of each stack", TALLY_FRAMES(type, member) }

/* For views that leave out the samples of idle CPUs. */
#define TALLY_IDLE_OPTION(type, member) \
	{ 0, "idle", TALLY_ARGUMENT_NONE, NULL, "include the samples of idle CPUs", \
	  TALLY_SET(type, member) }

/* For views of functions. */
#define TALLY_LANGUAGE_OPTION(type, member) \
	{ 0, "language-frames", TALLY_ARGUMENT_NONE, NULL, \
	  "an interpreter's samples count for the function that it runs\n" \
	  "(Python, JavaScript …, if the recording names their functions)", \
	  TALLY_SET(type, member) }

/* Check the syntax of these options, and store the text. */
tally_take_option tally_filter_take_numbers, tally_filter_take_cpus, tally_filter_take_time;

/* Appends the options that make this filter, "--comm cc1 --time 1.5,"; nothing if it passes all
 * samples. */
void tally_filter_text(const struct tally_profile_filter *filter, struct tally_buffer *out);

/* True if the filter excludes samples. */
bool tally_filter_is_set(const struct tally_profile_filter *filter);

/* True if the filter names commands, tasks or functions.  Then their samples are shown even if they
 * are of idle CPUs. */
bool tally_filter_means_idle(const struct tally_profile_filter *filter);

#endif
