/* Folded text in the format of the stackcollapse scripts: "comm;root;…;leaf WEIGHT", sorted by
 * bytes. */
#ifndef TALLY_OUTPUT_FOLDED_H
#define TALLY_OUTPUT_FOLDED_H

#include "base/buffer.h"
#include "base/error.h"
#include "profile/stacks.h"

#include <stdbool.h>

struct tally_folded_options {
	bool with_pid, with_tid; /* "comm-PID", "comm-PID/TID"; '?' for an unknown pid */
	bool suffix_kernel, suffix_jit, suffix_inlined; /* _[k] _[j] _[i] */
	/* Keep quotes and all parameter lists. Otherwise quotes are dropped, and parameter lists
	 * where the name stays unique, as stackcollapse-perf.pl does. */
	bool full_names;
	bool by_samples; /* weigh by samples instead of periods, where samples are counted */
};

/* Appends to `out`; equal lines are merged. Returns 0 or -ENOMEM. */
int tally_folded_write(const struct tally_stacks *stacks,
		       const struct tally_folded_options *options, struct tally_buffer *out,
		       struct tally_error *err);

#endif
