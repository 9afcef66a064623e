/* The rows of two profiles, matched, and how certain the difference is. */
#ifndef TALLY_DIFF_H
#define TALLY_DIFF_H

#include "base/error.h"
#include "counts/counts.h"
#include "diff/diff_internal.h"
#include "profile/stacks.h"

/* Gives two sides, old and new, one set of frames and commands: the names are the new side's, and
 * each old frame is matched with a new one where both are the same.
 *
 * A function is the same if its name and its object's name are the same.  Paths and build-ids
 * differ, as they must between two versions.  The functions left over are matched further, if
 * exactly one on each side fits:
 *
 * - the same name in another object: the program is called ./old and ./new, or a library has
 *   another version;
 * - the same name without the compiler's endings (".constprop.0", ".isra.0", ".part.1", ".cold"),
 *   or without its parameters.
 *
 * A recording shows a function as short as its own names allow: if one side has calc(int) and the
 * other one calc(double), both show "calc".  So frames of recordings are matched by their whole
 * names, and shown as short as both sides allow.
 *
 * The heaviest command that only the old side has is matched with the new side's, if both have more
 * than half of their side's weight.  Not thread-safe.
 */

/* One recording or text. */
struct tally_match_run {
	const struct tally_stacks *stacks;
	bool is_new;
	uint32_t *frames, *comms; /* by the run's own ids of frames and threads: ids in `names` */
};

struct tally_match {
	/* frames and threads of both sides, without rows; the threads are commands */
	struct tally_stacks names;
	struct tally_match_run *runs; /* the old side's runs first */
	size_t count, old_count;
	bool has_full_names; /* all frames of all runs have full names, and are matched by these */
	/* By frame of `names`: the old side's frame that it was matched with although names differ,
	 * else UINT32_MAX. */
	uint32_t *formerly;
	/* threads that were matched with each other, else UINT32_MAX */
	uint32_t comm_formerly, comm_now;
};

/* Matches the stacks, which stay the caller's and must live as long as `out`.  Returns 0 or
 * -ENOMEM.  Release `out` in both cases. */
int tally_match_stacks(const struct tally_stacks *old, size_t old_count,
		       const struct tally_stacks *new, size_t new_count, struct tally_match *out);
void tally_match_release(struct tally_match *match);

/* Puts the stacks of one side's runs together, with the frames of `names`, into `out`, which must
 * have no rows.  Returns 0 or -ENOMEM. */
int tally_match_side(const struct tally_match *match, bool is_new, struct tally_stacks *out);

/* The rows of `tally diff`: the changes between two sides' stacks. */

struct tally_diff_options {
	bool by_comm, by_object, by_symbol;
	/* totals: a sample counts once for each row in its stack; false: only for its leaf's row */
	bool children;
	enum tally_share_measure measure;
	double percent_min; /* rows with both shares below this are left out and counted */
	/* maximum number of rows; 0: all changes, and noise_limit of the others */
	size_t limit;
	size_t noise_limit;
};

enum tally_diff_presence { TALLY_DIFF_BOTH, TALLY_DIFF_ONLY_OLD, TALLY_DIFF_ONLY_NEW };

struct tally_diff_entry {
	/* string ids of the match's names; TALLY_STRING_NONE: not a key, or not known */
	uint32_t comm, object, symbol;
	/* string id of the symbol's whole name; TALLY_STRING_NONE: not known, or read from text */
	uint32_t full;
	/* string ids of the names on the old side if these differ, else TALLY_STRING_NONE */
	uint32_t was_object, was_symbol;
	enum tally_diff_presence presence;
	uint64_t old_samples, new_samples; /* sums over all runs */
	double old_percent, new_percent;
	struct tally_share_difference change;
	struct tally_share_difference weight; /* the change of the weight; only with `has_weight` */
	/* The change is significant: without any real change, 95 of 100 comparisons mark no row. */
	bool is_change;
};

struct tally_diff_side {
	size_t runs;
	uint64_t weight, samples; /* sums over all runs */
	bool is_saturated;        /* the weights add up to more (base/weight_sum.h) */
	const char *event, *unit, *title; /* of the first run */
};

struct tally_diff {
	/* changes first, then by size of the difference */
	struct { struct tally_diff_entry *items; size_t count, capacity; } entries;
	struct tally_diff_side old, new;
	/* both sides have the same event and unit, so weights can be compared */
	bool has_weight;
	size_t compared;     /* number of rows before any were left out */
	size_t changes;      /* number of these that are changes */
	/* rows left out: by percent_min, by noise_limit, by limit */
	size_t below, noise, beyond;
	size_t below_changes;        /* changes among the rows in `below` */
};

/* Compares the two sides.  Returns 0, -ENOMEM, or -EINVAL when the measure is the weight and
 * weights can't be compared. */
int tally_diff_build(const struct tally_match *match, const struct tally_diff_options *options,
		     struct tally_diff *out);
void tally_diff_release(struct tally_diff *diff);

/* Conditions on the change between two sides' stacks, so that scripts can fail: `FUNCTION > +2`, in
 * the syntax of counts/counts.h.
 *
 * The name is that of a function (or of an object or command where rows are by these), or * for
 * any.  The figure is the compared measure: percent, with differences in points, or times, or
 * samples.
 */

struct tally_diff_verdict {
	struct tally_condition condition;
	enum tally_condition_result result;
	/* the name of the row that decided, owned by the match; NULL: no row has the typed name, or
	 * no row passes the limit */
	const char *name;
	double old, new;  /* figures of the row that decided */
};

/* Judges each verdict's condition over all rows, including those that the options hide.  With
 * `past_noise`, a change that chance may have made fails as well.  Returns 0, an error of
 * tally_diff_build(), or -ENOENT with a message when no row has a condition's name; the verdict is
 * TALLY_CONDITION_UNKNOWN then. */
int tally_diff_judge(const struct tally_match *match, const struct tally_diff_options *options,
		     bool past_noise, struct tally_diff_verdict *verdicts, size_t count,
		     struct tally_error *err);

#endif
