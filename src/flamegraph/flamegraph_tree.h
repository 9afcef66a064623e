/* The call tree that a flame graph draws.  For flamegraph_*.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_TREE_H
#define TALLY_OUTPUT_FLAMEGRAPH_TREE_H

#include "profile/stacks.h"

#include <stdbool.h>

/* Nodes in preorder: a node's first child is the next node, its next sibling is at `end`.  Node 0
 * is the root, its children are threads or commands, theirs are frames; siblings are sorted by
 * name.
 *
 * Frames too light to be among as many nodes as anyone asks for may be left out: a run of such
 * neighbours, with all below them, is one node then, without children. */
struct tally_flame_node {
	/* of a frame in the stacks; at depth 1 of a slot; 0 for the root; TALLY_FLAME_RUN */
	uint32_t id;
	uint32_t depth; /* 0 for the root */
	uint32_t end;   /* behind the last descendant */
	uint64_t self;  /* of a run: how many frames it stands for */
	uint64_t total;
};

#define TALLY_FLAME_RUN UINT32_MAX

/* What stands at depth 1. */
struct tally_flame_slot {
	uint32_t comm; /* string id */
	uint32_t pid, tid;
	uint32_t threads; /* how many threads it stands for */
};

struct tally_flame_tree {
	struct { struct tally_flame_node *items; size_t count, capacity; } nodes;
	/* sorted as the nodes are */
	struct { struct tally_flame_slot *items; size_t count, capacity; } slots;
	uint32_t *frame_ranks; /* by frame id: place in the order of names */
	/* all weights below were divided by it: their greatest common divisor */
	uint64_t unit;
	bool unit_is_sample;   /* each sample weighs `unit`: weights are samples */
	uint32_t depth_max;
	uint64_t *level_weights; /* by depth, up to depth_max: of all nodes there */
	bool kinds[TALLY_FRAME_KINDS]; /* which kinds of frames there are */
	uint64_t least;          /* lighter frames may be in runs */
};

enum {
	/* the heaviest stand for themselves, others for their command */
	TALLY_FLAME_THREADS_MAX = 256,
	TALLY_FLAME_DEPTH_MAX = 2000,  /* deeper frames count as their ancestor's own weight */
};

/* How much is wanted of the trees. */
struct tally_flame_tree_options {
	bool by_samples;
	/* by thread, by command: these heaviest nodes are there in any case, others may be in
	 * runs */
	size_t nodes_max[2];
	/* so many stacks of a command are worth a second thread; 0: as many as are */
	size_t threads_from;
};

/* The tree whose slots are threads, and the one whose slots are commands.  Both are to be released,
 * whatever came of it. 0 or -ENOMEM. */
int tally_flame_trees_build(struct tally_flame_tree *by_thread, struct tally_flame_tree *by_comm,
			    const struct tally_stacks *stacks,
			    const struct tally_flame_tree_options *options);

/* How many frames the node at `index` has in it, itself included. */
uint64_t tally_flame_tree_frames(const struct tally_flame_tree *tree, size_t index);

/* The least total that a node must have for at most `nodes_max` nodes to have it; at least 1.
 * `nodes_max` is no larger than it was for building the tree. */
uint64_t tally_flame_tree_threshold(const struct tally_flame_tree *tree, size_t nodes_max);

void tally_flame_tree_release(struct tally_flame_tree *tree);

/* The box's name: a frame's, a command's, "all". */
const char *tally_flame_node_name(const struct tally_flame_tree *tree,
				  const struct tally_stacks *stacks,
				  const struct tally_flame_node *node);

/* Index into the palette: the frame's kind, TALLY_FRAME_KINDS for threads and the root. */
unsigned tally_flame_node_kind(const struct tally_stacks *stacks,
			       const struct tally_flame_node *node);

#endif
