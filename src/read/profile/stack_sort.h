/* Sorts stacks, so that a call tree can be made from them.
 *
 * A stack is a sequence of codes, outermost frame first; codes are 1 … code_max.  Sorted stacks
 * have their common beginnings next to each other, so that call_tree.h can read the nodes in
 * preorder, with siblings in the order of their codes.  Stacks are grouped under roots (threads,
 * commands, entries of a report), and only sorted within a root.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_STACK_SORT_H
#define TALLY_PROFILE_STACK_SORT_H

#include <stddef.h>
#include <stdint.h>

struct tally_packed_stack {
	uint64_t at;     /* index of its first word */
	uint32_t frames;
	uint32_t item;   /* the caller's number for it */
};

struct tally_sorted_word {
	uint64_t word;
	uint32_t stack;
};

struct tally_packed_root {
	uint32_t root;
	uint32_t first; /* index of its first stack */
};

struct tally_stack_sort {
	unsigned bits, per_word; /* bits of a code; codes in a word */
	struct { uint64_t *items; size_t count, capacity; } words;
	struct { struct tally_packed_stack *items; size_t count, capacity; } stacks;
	struct { struct tally_packed_root *items; size_t count, capacity; } roots;
	struct tally_sorted_word *keys, *scratch; /* used by tally_stack_sort_run() */
	size_t room;
};

void tally_stack_sort_init(struct tally_stack_sort *sort, uint32_t code_max);
void tally_stack_sort_release(struct tally_stack_sort *sort);

/* Makes room for this many stacks with this many frames in all, so that adding them copies nothing.
 * Returns 0 or -ENOMEM. */
int tally_stack_sort_reserve(struct tally_stack_sort *sort, size_t stacks, size_t frames);

/* Begins a root: stacks added from now on belong to it.  Each root may come only once.  Returns 0
 * or -ENOMEM. */
int tally_stack_sort_root(struct tally_stack_sort *sort, uint32_t root);

/* Adds a stack under the last root, one code at a time: at most `frames_max` calls of _put between
 * _begin (returns 0 or -ENOMEM) and _end (the same). */
struct tally_stack_packer {
	uint64_t *at, word;
	unsigned shift; /* bit position of the last code in `word` */
	uint32_t frames;
};

int tally_stack_sort_begin(struct tally_stack_sort *sort, struct tally_stack_packer *packer,
			   size_t frames_max);

static inline void tally_stack_sort_put(const struct tally_stack_sort *sort,
					struct tally_stack_packer *packer, uint32_t code)
{
	packer->shift -= sort->bits;
	packer->word |= (uint64_t)code << packer->shift;
	packer->frames++;
	if (packer->shift >= sort->bits)
		return;
	*packer->at++ = packer->word;
	packer->word = 0;
	packer->shift = 64;
}

int tally_stack_sort_end(struct tally_stack_sort *sort, const struct tally_stack_packer *packer,
			 uint32_t item);

/* Sorts the stacks [first, first + count): sort->keys has them in order.  Returns 0 or -ENOMEM. */
int tally_stack_sort_run(struct tally_stack_sort *sort, size_t first, size_t count);

/* Returns the number of outermost frames that two stacks have in common. */
static inline uint32_t tally_stack_sort_common(const struct tally_stack_sort *sort,
					       const struct tally_packed_stack *a,
					       const struct tally_packed_stack *b)
{
	const uint64_t *x = &sort->words.items[a->at], *y = &sort->words.items[b->at];
	uint32_t frames = a->frames < b->frames ? a->frames : b->frames;
	uint32_t words = (frames + sort->per_word - 1) / sort->per_word, i = 0;
	while (i < words && x[i] == y[i])
		i++;
	if (i == words)
		return frames;
	uint32_t common = i * sort->per_word + (unsigned)__builtin_clzll(x[i] ^ y[i]) / sort->bits;
	return common < frames ? common : frames;
}

static inline uint32_t tally_stack_sort_code(const struct tally_stack_sort *sort,
					     const struct tally_packed_stack *stack, uint32_t frame)
{
	uint64_t word = sort->words.items[stack->at + frame / sort->per_word];
	unsigned above = frame % sort->per_word * sort->bits;
	return (uint32_t)(word << above >> (64 - sort->bits));
}

#endif
