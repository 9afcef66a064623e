/* A call tree in preorder, made from sorted stacks. */
#ifndef TALLY_PROFILE_CALL_TREE_H
#define TALLY_PROFILE_CALL_TREE_H

#include "profile/stack_sort.h"

/* A node's first child is the next node; its next sibling is at `end`.  Siblings are in the order
 * of their codes.  16 bytes, since there are many: five for each distinct stack of random calls. */
struct tally_call_node {
	uint64_t total; /* weight of all stacks that pass through here or end here */
	uint32_t code;  /* the frame's code; for a root: its number */
	uint32_t end;   /* index after the last descendant */
};

/* Roots follow one another, each with the tree of its stacks below it. */
struct tally_call_tree {
	struct { struct tally_call_node *items; size_t count, capacity; } nodes;
};

/* Makes room for this many stacks with this many frames in all.  Returns 0 or -ENOMEM. */
int tally_call_tree_reserve(struct tally_stack_sort *sort, size_t stacks, size_t frames);

/* tally_stack_sort_begin() for a stack with a weight.  The weight goes into the word before the
 * stack's first one: both are read together, and anywhere else it would be one more cache miss.
 * Returns 0 or -ENOMEM. */
int tally_call_tree_begin(struct tally_stack_sort *sort, struct tally_stack_packer *packer,
			  size_t frames_max, uint64_t weight);

/* Sorts the stacks that were added with weights, and makes a tree of them.  Leaves out nodes (not
 * roots) whose total is below `least`; their weight stays in the nodes above them.  Returns 0 or
 * -ENOMEM. */
int tally_call_tree_build(struct tally_call_tree *tree, struct tally_stack_sort *sort,
			  uint64_t least);
void tally_call_tree_release(struct tally_call_tree *tree);

#endif
