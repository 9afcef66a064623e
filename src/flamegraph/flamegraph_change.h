/* Differential flame graphs: how a box's share changed. For flamegraph_*.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_CHANGE_H
#define TALLY_OUTPUT_FLAMEGRAPH_CHANGE_H

#include "flamegraph/flamegraph_tree.h"

#include "base/buffer.h"

enum { TALLY_FLAME_STEPS = 5 }; /* colours for growth, and as many for shrinking */

/* The old side; its stacks have the same frames as the new side's. */
struct tally_flame_old {
	const struct tally_stacks *stacks; /* NULL: no comparison */
	struct tally_flame_tree by_thread, by_comm;
	/* by node of the new side's by_comm: the old side's node, or UINT32_MAX */
	uint32_t *others;
	double samples, new_samples;
	double largest;             /* largest change of a node's share, 0 to 1 */
};

/* Pairs the nodes of two trees by their names. Returns 0 or -ENOMEM. */
int tally_flame_old_pair(struct tally_flame_old *old, const struct tally_stacks *new,
			 const struct tally_flame_tree *new_tree);
void tally_flame_old_release(struct tally_flame_old *old);

/* Returns the node's share of the old side's total. */
double tally_flame_old_share(const struct tally_flame_old *old, size_t node);

/* Returns −TALLY_FLAME_STEPS (shrank most) to TALLY_FLAME_STEPS (grew most); 0: the change is
 * within the sampling error. */
int tally_flame_step(const struct tally_flame_old *old, double old_share, double new_share);

/* Writes style rules, for both themes: .dN of the picture, N from 0 to 2 × TALLY_FLAME_STEPS, and
 * the page's scale. */
void tally_flame_change_rules(struct tally_buffer *out);

/* Writes the "change" member of the data. */
void tally_flame_change_json(const struct tally_flame_old *old, struct tally_buffer *out);

#endif
