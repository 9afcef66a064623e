/* Writes a flame graph's nodes from sorted stacks. For flamegraph_tree.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_WRITER_H
#define TALLY_OUTPUT_FLAMEGRAPH_WRITER_H

#include "flamegraph/flamegraph_tree.h"
#include "profile/stack_sort.h"

enum { TALLY_FLAME_BUCKETS = 496 };

/* Tracks which nodes are certainly not among the `nodes_max` heaviest. */
struct tally_flame_pruning {
	size_t nodes_max;
	uint64_t least; /* lighter nodes are left out */
	unsigned bucket;
	uint64_t above; /* nodes in the buckets above `bucket` */
	uint64_t counts[TALLY_FLAME_BUCKETS];
};

/* Sums over all nodes, left out or not, and the frames of the codes. */
struct tally_flame_sums {
	struct tally_flame_pruning pruning;
	const uint32_t *frame_of;  /* frame, by code − 1 */
	uint64_t *level_weights;   /* weight by depth, up to TALLY_FLAME_DEPTH_MAX */
	bool *used;                /* by frame: it has a node */
	uint32_t depth_max;
};

struct tally_flame_open {
	uint32_t node;
	/* the run directly before the next child; otherwise UINT32_MAX */
	uint32_t run;
	uint64_t frames; /* frames in the subtree, itself included */
};

/* The nodes of one slot; the first is the slot's own. */
struct tally_flame_writer {
	struct { struct tally_flame_node *items; size_t count, capacity; } nodes;
	struct { struct tally_flame_open *items; size_t count, capacity; } path;
	const struct tally_packed_stack *before;
	size_t stacks; /* number of stacks to come, if known */
};

void tally_flame_pruning_init(struct tally_flame_pruning *pruning, size_t nodes_max);

/* Adds the slot's next stack. Returns 0 or -ENOMEM. */
int tally_flame_writer_add(struct tally_flame_writer *writer, struct tally_flame_sums *sums,
			   uint32_t slot, const struct tally_stack_sort *sort,
			   const struct tally_packed_stack *stack, uint64_t weight);
/* Closes all nodes after the last stack. Returns 0 or -ENOMEM. */
int tally_flame_writer_end(struct tally_flame_writer *writer, struct tally_flame_sums *sums);
void tally_flame_writer_release(struct tally_flame_writer *writer);

#endif
