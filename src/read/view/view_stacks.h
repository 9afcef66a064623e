/* The input of `fold`, `flamegraph` and `diff`: a recording, folded text or `perf script` text. */
#ifndef TALLY_VIEW_STACKS_H
#define TALLY_VIEW_STACKS_H

#include "profile/stacks.h"
#include "view/view_messages.h"
#include "view/view_options.h"

#include <stdbool.h>

struct tally_stacks_input {
	/* how a recording is opened; text has no names to look up.  `wants_lines` is as `by_line` in
	 * struct tally_stacks. */
	struct tally_view_options view;
	const char *event; /* NULL: the first one with samples */
	bool with_full_names; /* as in struct tally_stacks */
	bool arranges_waits, with_wakers; /* as in struct tally_profile_options */
	/* collects warnings and hints about one of several inputs; NULL: they are printed */
	struct tally_input_messages *messages;
};

/* Reads the input and detects its format from its first bytes. Warns about what was left out; the
 * messages name the subcommand, `command`.  Returns 0, or -errno with a message. */
int tally_load_stacks(const char *command, const struct tally_stacks_input *input,
		      struct tally_stacks *stacks, struct tally_error *err);

/* Takes --weight into a bool, "by samples": "samples", "period" or "periods". */
tally_take_option tally_take_weight;

#endif
