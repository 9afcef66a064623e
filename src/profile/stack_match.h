/* The frames and commands of two sides, old and new, as one: what the new side calls them, and
 * which old ones are the same.
 *
 * A function is the same when its name and its object's name are: paths and build-ids differ, as
 * they must between two versions.  What is left over then is matched further, as long as there is
 * but one on each side that fits:
 *
 *   - the same name in another object: the program is called ./old and ./new, a library has another version;
 *   - the same name but for what the compiler adds (".constprop.0", ".isra.0", ".part.1", ".cold") or for its parameters.
 *
 * A recording shows a function as short as its own names allow: where one side has calc(int) and
 * the other calc(double), both say "calc".  So recordings' frames are matched by their whole names,
 * and shown as short as both sides allow.
 *
 * The heaviest command that only the old side has is that of the new, where both are half of their
 * sides.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_STACK_MATCH_H
#define TALLY_PROFILE_STACK_MATCH_H

#include "profile/stacks.h"

/* One recording or text. */
struct tally_match_run {
	const struct tally_stacks *stacks;
	bool is_new;
	uint32_t *frames, *comms; /* by its own ids of frames and threads: ids in `names` */
};

struct tally_match {
	/* no rows; frames and threads of both sides, threads being commands */
	struct tally_stacks names;
	struct tally_match_run *runs; /* the old side's first */
	size_t count, old_count;
	bool has_full_names; /* of all frames of all runs: matched by these */
	/* By frame of `names`: the old side's frame that it was matched with though names differ,
	 * else UINT32_MAX. */
	uint32_t *formerly;
	uint32_t comm_formerly, comm_now; /* threads that were matched, else UINT32_MAX */
};

/* The stacks stay the caller's, and live as long.  0 or -ENOMEM; to be released in either case. */
int tally_match_stacks(const struct tally_stacks *old, size_t old_count,
		       const struct tally_stacks *new, size_t new_count, struct tally_match *out);
void tally_match_release(struct tally_match *match);

/* The stacks of one side's runs together, whose frames are those of `names`, into `out`, which has
 * none.  0 or -ENOMEM. */
int tally_match_side(const struct tally_match *match, bool is_new, struct tally_stacks *out);

#endif
