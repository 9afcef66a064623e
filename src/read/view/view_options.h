/* The options that views of a recording share: which recording, which samples, how they are named.
 *
 * A view is what a command shows of a recording.  Its options are complete before the recording is
 * opened (view_open.h), so that nothing about it is set later.
 */
#ifndef TALLY_VIEW_OPTIONS_H
#define TALLY_VIEW_OPTIONS_H

#include "base/buffer.h"
#include "base/option_row.h"
#include "naming/names.h"
#include "recording/sample_filter.h"

#include <stdbool.h>

/* Which samples have stacks. */
enum tally_view_stacks {
	TALLY_VIEW_STACKS,             /* all that were recorded with one */
	TALLY_VIEW_LEAVES,             /* none: stacks are not read */
	TALLY_VIEW_LEAVES_UNLESS_WAITS /* none, unless the recording has waits */
};

/* Zero-initialised is valid.  The texts must outlive what was opened with them. */
struct tally_view_options {
	const char *input; /* the recording; "-": standard input; NULL: tally_view_path() chooses */
	struct tally_profile_filter filter;
	struct tally_name_sources names;
	bool shows_idle;      /* keep samples of idle CPUs */
	bool joins_runtimes;  /* as in struct tally_profile_options */
	bool shows_scheduler; /* the same */
	bool keep_mangled, no_inlines; /* as in struct tally_names */

	/* set by the command */
	enum tally_view_stacks stacks;
	bool names_nothing;           /* the view has no functions: their names are not prepared */
	bool wants_lines, real_paths; /* as in struct tally_names */
	bool wants_code;              /* keep the code of JITs */
	bool keep_groups;             /* as in struct tally_recording */
	bool has_signed_sums;         /* the same */
};

/* Tables for TALLY_INCLUDE(); their request is a struct tally_view_options.  Those of one row have
 * its name. */
extern const struct tally_option tally_view_input_option[];
extern const struct tally_option tally_view_task_options[];   /* --pid, --tid */
extern const struct tally_option tally_view_tasks_options[];  /* the same as --pids, --tids */
extern const struct tally_option tally_view_filter_options[]; /* --comm, --cpu, --time */
extern const struct tally_option tally_view_comm_option[];    /* two of these alone */
extern const struct tally_option tally_view_time_option[];
extern const struct tally_option tally_view_leaf_options[];   /* --dso, --symbol */
extern const struct tally_option tally_view_max_stack_option[];
extern const struct tally_option tally_view_name_options[];   /* --symfs … --verbose */
/* the same, but --vmlinux has no letter: the command has another -k */
extern const struct tally_option tally_view_name_options_without_k[];
extern const struct tally_option tally_view_raw_addresses_option[];
extern const struct tally_option tally_view_full_names_option[];
extern const struct tally_option tally_view_idle_option[];
extern const struct tally_option tally_view_language_option[];
extern const struct tally_option tally_view_scheduler_option[];
extern const struct tally_option tally_view_no_demangle_option[];
extern const struct tally_option tally_view_no_inline_option[]; /* leaves frames out */
extern const struct tally_option tally_view_symbols_option[];   /* --no-inline, for rows */

/* Checks a list of CPUs, and stores the text. */
tally_take_option tally_view_take_cpus;

/* Appends the options that make this filter, "--comm cc1 --time 1.5,"; nothing if it passes all
 * samples. */
void tally_filter_text(const struct tally_profile_filter *filter, struct tally_buffer *out);

/* True if the filter excludes samples. */
bool tally_filter_is_set(const struct tally_profile_filter *filter);

/* True if the filter names commands, tasks or functions.  Then their samples are shown even if they
 * are of idle CPUs. */
bool tally_filter_means_idle(const struct tally_profile_filter *filter);

#endif
