/* The call tree that a flame graph draws.  For flamegraph_*.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_TREE_H
#define TALLY_OUTPUT_FLAMEGRAPH_TREE_H

#include "profile/stacks.h"

#include <stdbool.h>

/* Nodes in preorder: a node's first child is the next node, its next sibling is at `end`.  Node 0 is the root, its
 * children are threads or commands, theirs are frames; siblings are sorted by name. */
struct tally_flame_node {
	uint32_t id;    /* of a frame in the stacks; at depth 1 of a slot; 0 for the root */
	uint32_t depth; /* 0 for the root */
	size_t end;     /* behind the last descendant */
	uint64_t self, total;
};

/* What stands at depth 1. */
struct tally_flame_slot {
	uint32_t comm; /* string id */
	uint32_t pid, tid;
	uint32_t threads; /* how many threads it stands for */
};

struct tally_flame_tree {
	struct { struct tally_flame_node *items; size_t count, capacity; } nodes;
	struct { struct tally_flame_slot *items; size_t count, capacity; } slots; /* sorted as the nodes are */
	uint32_t *frame_ranks; /* by frame id: place in the order of names */
	uint64_t unit;         /* all weights below were divided by it: their greatest common divisor */
	bool unit_is_sample;   /* each sample weighs `unit`: weights are samples */
	uint32_t depth_max;
};

enum {
	TALLY_FLAME_THREADS_MAX = 256, /* the heaviest stand for themselves, others for their command */
	TALLY_FLAME_DEPTH_MAX = 2000,  /* deeper frames count as their ancestor's own weight */
};

/* `by_thread`: slots are threads; else commands.  0 or -ENOMEM. */
int tally_flame_tree_build(struct tally_flame_tree *tree, const struct tally_stacks *stacks, bool by_thread,
			   bool by_samples);

/* The least total that a node must have for at most `nodes_max` nodes to have it; at least 1. */
uint64_t tally_flame_tree_threshold(const struct tally_flame_tree *tree, size_t nodes_max);

void tally_flame_tree_release(struct tally_flame_tree *tree);

/* The box's name: a frame's, a command's, "all". */
const char *tally_flame_node_name(const struct tally_flame_tree *tree, const struct tally_stacks *stacks,
				  const struct tally_flame_node *node);

/* Index into the palette: the frame's kind, TALLY_FRAME_KINDS for threads and the root. */
unsigned tally_flame_node_kind(const struct tally_stacks *stacks, const struct tally_flame_node *node);

#endif
