/* Writes the nodes of a flame graph from sorted stacks.  For flamegraph_tree.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_WRITER_H
#define TALLY_OUTPUT_FLAMEGRAPH_WRITER_H

#include "flamegraph/flamegraph_tree.h"
#include "profile/stack_sort.h"

enum { TALLY_FLAME_BUCKETS = 496 };

/* What is too light to be among the `nodes_max` heaviest nodes, as far as it is known yet. */
struct tally_flame_pruning {
	size_t nodes_max;
	uint64_t least; /* what is lighter is left out */
	unsigned bucket;
	uint64_t above; /* nodes of the buckets above */
	uint64_t counts[TALLY_FLAME_BUCKETS];
};

/* What is told of all nodes, whether they are left out or not; and what they are of. */
struct tally_flame_sums {
	struct tally_flame_pruning pruning;
	const uint32_t *frame_of;  /* by code - 1 */
	uint64_t *level_weights;   /* by depth, up to TALLY_FLAME_DEPTH_MAX */
	bool *used;                /* by frame */
	uint32_t depth_max;
};

struct tally_flame_open {
	uint32_t node;
	/* the node before which its next child comes, if that is a run; else UINT32_MAX */
	uint32_t run;
	uint64_t frames; /* in it, it included */
};

/* The nodes of one slot; the slot's is the first. */
struct tally_flame_writer {
	struct { struct tally_flame_node *items; size_t count, capacity; } nodes;
	struct { struct tally_flame_open *items; size_t count, capacity; } path;
	const struct tally_packed_stack *before;
	size_t stacks; /* that it will be given, where that is known */
};

void tally_flame_pruning_init(struct tally_flame_pruning *pruning, size_t nodes_max);

/* Adds the slot's next stack.  0 or -ENOMEM. */
int tally_flame_writer_add(struct tally_flame_writer *writer, struct tally_flame_sums *sums,
			   uint32_t slot, const struct tally_stack_sort *sort,
			   const struct tally_packed_stack *stack, uint64_t weight);
/* Behind the last stack. */
int tally_flame_writer_end(struct tally_flame_writer *writer, struct tally_flame_sums *sums);
void tally_flame_writer_release(struct tally_flame_writer *writer);

#endif
