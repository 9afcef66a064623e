/* Sorted stacks, as a tree of calls in preorder. */
#ifndef TALLY_PROFILE_CALL_TREE_H
#define TALLY_PROFILE_CALL_TREE_H

#include "profile/stack_sort.h"

/* A node's first child is the next node, its next sibling is at `end`; siblings are in the order of
 * their codes. 16 bytes: there are five for each distinct stack of random calls. */
struct tally_call_node {
	uint64_t total; /* weight of all stacks that pass here, or end here; modulo 2^64 */
	uint32_t code;  /* of a root: its number */
	uint32_t end;   /* behind the last descendant */
};

/* Roots stand one behind the other, each with the trees of its stacks below. */
struct tally_call_tree {
	struct { struct tally_call_node *items; size_t count, capacity; } nodes;
};

/* Sums weigh no more than UINT64_MAX. */
static inline uint64_t tally_sum_capped(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Room for so many stacks with so many frames in all.  0 or -ENOMEM. */
int tally_call_tree_reserve(struct tally_stack_sort *sort, size_t stacks, size_t frames);

/* tally_stack_sort_begin() of a stack that has a weight: it stands in the word before the stack's
 * first, since who reads one needs the other, and each look elsewhere is a look into memory.  0 or
 * -ENOMEM. */
int tally_call_tree_begin(struct tally_stack_sort *sort, struct tally_stack_packer *packer,
			  size_t frames_max, uint64_t weight);

/* Sorts what was added, each with its weight, and makes a tree of it.  Nodes (not roots) whose
 * total is below `least` are left out; their weight is in that of those above.  0 or -ENOMEM. */
int tally_call_tree_build(struct tally_call_tree *tree, struct tally_stack_sort *sort,
			  uint64_t least);
void tally_call_tree_release(struct tally_call_tree *tree);

#endif
