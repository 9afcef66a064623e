/* The input of `fold` and `flamegraph`: a recording, folded text or `perf script` text. */
#ifndef TALLY_VIEW_STACKS_H
#define TALLY_VIEW_STACKS_H

#include "command/command.h"
#include "view/view_messages.h"
#include "naming/names.h"
#include "profile/stacks.h"
#include "recording/sample_filter.h"

#include <stdbool.h>

struct tally_stacks_input {
	const char *
		/* "-": standard input; NULL: the same if it is a pipe or file, else tally.data */
		path;
	const char *event; /* NULL: the first one with samples */
	struct tally_profile_filter filter; /* for a recording's samples */
	struct tally_name_sources names;
	bool no_inlines; /* leave out what was inlined */
	bool by_line, with_full_names; /* as in struct tally_stacks */
	/* keep samples of idle CPUs; otherwise they are left out with a message, unless
	 * tally_filter_means_idle() */
	bool shows_idle;
	bool joins_runtimes; /* as in struct tally_profile_options */
	bool arranges_waits, shows_scheduler, with_wakers; /* as in struct tally_profile_options */
	/* collects warnings and hints about one of several inputs; NULL: they are printed */
	struct tally_input_messages *messages;
};

/* Reads the input and detects its format from its first bytes. Warns about what was left out.
 * Returns 0 or -errno. */
int tally_load_stacks(const struct tally_command *command, const struct tally_stacks_input *input,
		      struct tally_stacks *stacks, struct tally_error *err);

/* Takes --weight into a bool, "by samples": "samples", "period" or "periods". */
tally_take_option tally_take_weight;

#endif
