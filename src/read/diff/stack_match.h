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
#ifndef TALLY_DIFF_STACK_MATCH_H
#define TALLY_DIFF_STACK_MATCH_H

#include "profile/stacks.h"

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

#endif
