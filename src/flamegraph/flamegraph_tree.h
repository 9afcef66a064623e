/* The call tree of a flame graph. For flamegraph_*.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_TREE_H
#define TALLY_OUTPUT_FLAMEGRAPH_TREE_H

#include "profile/stacks.h"

#include <stdbool.h>

/* Nodes are in preorder: a node's first child is the next node, its next sibling is at `end`. Node
 * 0 is the root, its children are threads or commands, and all nodes below are frames. Siblings are
 * sorted by name.
 *
 * Frames that are too light for the largest `nodes_max` may be left out. A run of such neighbours,
 * with everything below them, is then one node without children.
 */
struct tally_flame_node {
	/* id of a frame; at depth 1, of a slot; 0 for the root; or TALLY_FLAME_RUN */
	uint32_t id;
	uint32_t depth; /* 0 for the root */
	uint32_t end;   /* index after the last descendant */
	uint64_t self;  /* of a run: the number of frames in it */
	uint64_t total;
};

#define TALLY_FLAME_RUN UINT32_MAX

/* A node at depth 1: a thread or a command. */
struct tally_flame_slot {
	uint32_t comm; /* string id */
	uint32_t pid, tid;
	uint32_t threads; /* threads in this slot */
};

struct tally_flame_tree {
	struct { struct tally_flame_node *items; size_t count, capacity; } nodes;
	/* in the nodes' order */
	struct { struct tally_flame_slot *items; size_t count, capacity; } slots;
	uint32_t *frame_ranks; /* by frame id: rank in the order of names */
	/* greatest common divisor of the weights; all weights below were divided by it */
	uint64_t unit;
	bool unit_is_sample;   /* each sample weighs `unit`, so weights count samples */
	uint32_t depth_max;
	uint64_t *level_weights; /* total of all nodes, by depth up to depth_max */
	bool kinds[TALLY_FRAME_KINDS]; /* kinds of frames in the tree */
	uint64_t least;          /* frames lighter than this may be in runs */
};

enum {
	/* the heaviest threads have slots of their own; others share their command's */
	TALLY_FLAME_THREADS_MAX = 256,
	TALLY_FLAME_DEPTH_MAX = 2000,  /* deeper frames count as self weight of their ancestor */
};

/* Limits of the trees to build. */
struct tally_flame_tree_options {
	bool by_samples;
	/* For the tree by thread and by command: the heaviest nodes that are kept; others may be in
	 * runs. */
	size_t nodes_max[2];
	/* minimum stacks of a command to use a second thread; 0: default */
	size_t threads_from;
};

/* Builds the tree of threads and the tree of commands. The caller releases both, also after an
 * error. Returns 0 or -ENOMEM. */
int tally_flame_trees_build(struct tally_flame_tree *by_thread, struct tally_flame_tree *by_comm,
			    const struct tally_stacks *stacks,
			    const struct tally_flame_tree_options *options);

/* Returns the number of frames in the node's subtree, itself included. */
uint64_t tally_flame_tree_frames(const struct tally_flame_tree *tree, size_t index);

/* Returns the smallest total, at least 1, that at most `nodes_max` nodes reach. `nodes_max` must
 * not exceed the value that the tree was built with. */
uint64_t tally_flame_tree_threshold(const struct tally_flame_tree *tree, size_t nodes_max);

void tally_flame_tree_release(struct tally_flame_tree *tree);

/* Returns the box's name: a frame's, a command's, or "all". */
const char *tally_flame_node_name(const struct tally_flame_tree *tree,
				  const struct tally_stacks *stacks,
				  const struct tally_flame_node *node);

/* Returns the index into the palette: the frame's kind, or TALLY_FRAME_KINDS for threads and the
 * root. */
unsigned tally_flame_node_kind(const struct tally_stacks *stacks,
			       const struct tally_flame_node *node);

#endif
