/* Folded text, as the stackcollapse scripts write it: "comm;root;…;leaf WEIGHT", sorted
 * bytewise. */
#ifndef TALLY_OUTPUT_FOLDED_H
#define TALLY_OUTPUT_FOLDED_H

#include "base/buffer.h"
#include "base/error.h"
#include "profile/stacks.h"

#include <stdbool.h>

struct tally_folded_options {
	bool with_pid, with_tid; /* "comm-PID", "comm-PID/TID"; '?' for a pid that isn't known */
	bool suffix_kernel, suffix_jit, suffix_inlined; /* _[k] _[j] _[i] */
	bool full_names; /* keep quotes, and parameter lists where nothing else has the name
			  * without: stackcollapse-perf.pl drops both */
	bool by_samples; /* weigh by samples where their number is known, not by periods */
};

/* Appends to `out`: equal lines are one line with their sum.  0 or -ENOMEM. */
int tally_folded_write(const struct tally_stacks *stacks,
		       const struct tally_folded_options *options, struct tally_buffer *out,
		       struct tally_error *err);

#endif
