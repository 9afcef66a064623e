/* What a differential flame graph shows of a box: how its share changed.  For flamegraph_*.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_CHANGE_H
#define TALLY_OUTPUT_FLAMEGRAPH_CHANGE_H

#include "flamegraph/flamegraph_tree.h"

#include "base/buffer.h"

enum { TALLY_FLAME_STEPS = 5 }; /* of colour on either side of none */

/* The other side, whose stacks have the same frames. */
struct tally_flame_old {
	const struct tally_stacks *stacks; /* NULL: nothing is compared */
	struct tally_flame_tree by_thread, by_comm;
	/* by node of the new side's by_comm: the old one's, or UINT32_MAX */
	uint32_t *others;
	double samples, new_samples;
	double largest;             /* change of a share among the nodes, 0…1 */
};

/* Pairs the nodes of two trees by what they are called.  0 or -ENOMEM. */
int tally_flame_old_pair(struct tally_flame_old *old, const struct tally_stacks *new,
			 const struct tally_flame_tree *new_tree);
void tally_flame_old_release(struct tally_flame_old *old);

/* The share that a node has of the old side's total. */
double tally_flame_old_share(const struct tally_flame_old *old, size_t node);

/* −TALLY_FLAME_STEPS (shrank most) to TALLY_FLAME_STEPS (grew most); 0: no change beyond what
 * sampling does. */
int tally_flame_step(const struct tally_flame_old *old, double old_share, double new_share);

/* Style rules for the picture's .dN, N being 0…2 × TALLY_FLAME_STEPS, and for the page's scale, in
 * both themes. */
void tally_flame_change_rules(struct tally_buffer *out);

/* The "change" member of the data. */
void tally_flame_change_json(const struct tally_flame_old *old, struct tally_buffer *out);

#endif
