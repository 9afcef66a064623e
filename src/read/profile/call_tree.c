/* Each stack opens nodes for those of its frames that it doesn't share with the stack before it.
 * An opening node notes the weight of all stacks so far, and subtracts it from the weight when it
 * closes: nothing is summed from node to node. */
#include "profile/stacks.h"

#include "base/vector.h"

#include <errno.h>
#include <stdbool.h>

int tally_call_tree_reserve(struct tally_stack_sort *sort, size_t stacks, size_t frames)
{
	if (tally_stack_sort_reserve(sort, stacks, frames) < 0)
		return -ENOMEM;
	return tally_vector_reserve(&sort->words, frames / sort->per_word + 2 * stacks + 1);
}

int tally_call_tree_begin(struct tally_stack_sort *sort, struct tally_stack_packer *packer,
			  size_t frames_max, uint64_t weight)
{
	if (tally_vector_push(&sort->words, weight) < 0)
		return -ENOMEM;
	return tally_stack_sort_begin(sort, packer, frames_max);
}

struct writer {
	struct tally_call_tree *tree;
	const struct tally_stack_sort *sort;
	uint64_t least;
	uint64_t sum; /* weight of the stacks so far */
	struct { uint32_t *items; size_t count, capacity; } path; /* open nodes, the root's first */
};

/* Closes all open nodes except the first `left`. */
static inline void close_nodes(struct writer *writer, size_t left)
{
	struct tally_call_node *nodes = writer->tree->nodes.items;
	const uint32_t *path = writer->path.items;
	uint32_t end = (uint32_t)writer->tree->nodes.count;
	uint64_t sum = writer->sum;
	size_t depth = writer->path.count;
	for (; depth > left; depth--) {
		struct tally_call_node *node = &nodes[path[depth - 1]];
		node->total = sum - node->total;
		node->end = end;
		if (node->total < writer->least && depth > 1)
			end = path[depth - 1];
	}
	writer->tree->nodes.count = end;
	writer->path.count = depth;
}

/* Makes room for `count` more nodes, all of them open. */
static inline int reserve_nodes(struct writer *writer, size_t count)
{
	struct tally_call_tree *tree = writer->tree;
	if (tree->nodes.count + count > UINT32_MAX ||
	    tally_vector_reserve(&tree->nodes, tree->nodes.count + count) < 0 ||
	    tally_vector_reserve(&writer->path, writer->path.count + count) < 0)
		return -ENOMEM;
	return 0;
}

static inline int open_root(struct writer *writer, uint32_t root)
{
	if (reserve_nodes(writer, 1) < 0)
		return -ENOMEM;
	writer->path.items[writer->path.count++] = (uint32_t)writer->tree->nodes.count;
	writer->tree->nodes.items[writer->tree->nodes.count++] =
		(struct tally_call_node){ .total = writer->sum, .code = root };
	return 0;
}

/* Opens a stack's nodes, beginning with frame `from`. */
static inline int open_nodes(struct writer *writer, const struct tally_packed_stack *stack,
			     uint32_t from)
{
	const struct tally_stack_sort *sort = writer->sort;
	if (reserve_nodes(writer, stack->frames - from) < 0)
		return -ENOMEM;
	const uint64_t *words = &sort->words.items[stack->at + from / sort->per_word];
	const unsigned bits = sort->bits, down = 64 - bits;
	unsigned left = sort->per_word - from % sort->per_word; /* codes left in this word */
	uint64_t word = *words << (from % sort->per_word * bits), sum = writer->sum;
	uint32_t *path = writer->path.items + writer->path.count,
		 at = (uint32_t)writer->tree->nodes.count;
	struct tally_call_node *nodes = writer->tree->nodes.items;
	for (uint32_t frame = from; frame < stack->frames; frame++) {
		if (!left) {
			word = *++words;
			left = sort->per_word;
		}
		*path++ = at;
		nodes[at++] = (struct tally_call_node){ .total = sum,
							.code = (uint32_t)(word >> down) };
		word <<= bits;
		left--;
	}
	writer->path.count += stack->frames - from;
	writer->tree->nodes.count = at;
	return 0;
}

static inline int add_stack(struct writer *writer, const struct tally_packed_stack *stack,
			    uint32_t common)
{
	close_nodes(writer, common + 1u);
	int result = 0;
	if (common < stack->frames)
		result = open_nodes(writer, stack, common);
	writer->sum += writer->sort->words.items[stack->at - 1];
	return result;
}

/* Must be inlined: gcc takes a function that only prefetches for one without effect, and drops the
 * calls. */
__attribute__((always_inline)) static inline void prefetch(const struct writer *writer, size_t at,
							   size_t count)
{
	enum { AHEAD = 12 };
	const struct tally_stack_sort *sort = writer->sort;
	if (at + 2 * AHEAD < count)
		__builtin_prefetch(&sort->stacks.items[sort->keys[at + 2 * AHEAD].stack]);
	if (at + AHEAD >= count)
		return;
	__builtin_prefetch(
		&sort->words.items[sort->stacks.items[sort->keys[at + AHEAD].stack].at - 1]);
}

static int add_root(struct writer *writer, uint32_t root, size_t count)
{
	const struct tally_stack_sort *sort = writer->sort;
	const struct tally_packed_stack *before = NULL;
	int result = open_root(writer, root);
	for (size_t i = 0; !result && i < count; i++) {
		prefetch(writer, i, count);
		const struct tally_packed_stack *stack = &sort->stacks.items[sort->keys[i].stack];
		result = add_stack(writer, stack,
				   before ? tally_stack_sort_common(sort, before, stack) : 0);
		before = stack;
	}
	close_nodes(writer, 0);
	return result;
}

/* Reserves a node for each frame, to save the copies that growing makes.  Memory is only used as
 * far as nodes are written.  If the reservation fails, the vector grows as needed. */
static void reserve_most(struct writer *writer)
{
	const struct tally_stack_sort *sort = writer->sort;
	size_t frames = sort->roots.count;
	for (size_t i = 0; i < sort->stacks.count; i++)
		frames += sort->stacks.items[i].frames;
	if (!writer->least && frames < UINT32_MAX)
		(void)tally_vector_reserve(&writer->tree->nodes, frames);
}

int tally_call_tree_build(struct tally_call_tree *tree, struct tally_stack_sort *sort,
			  uint64_t least)
{
	struct writer writer = { .tree = tree, .sort = sort, .least = least };
	int result = 0;
	*tree = (struct tally_call_tree){ 0 };
	reserve_most(&writer);
	for (size_t i = 0; !result && i < sort->roots.count; i++) {
		bool is_last = i + 1 == sort->roots.count;
		size_t first = sort->roots.items[i].first;
		size_t count = (is_last ? sort->stacks.count : sort->roots.items[i + 1].first) -
			       first;
		result = tally_stack_sort_run(sort, first, count);
		if (!result)
			result = add_root(&writer, sort->roots.items[i].root, count);
	}
	tally_vector_release(&writer.path);
	return result;
}

void tally_call_tree_release(struct tally_call_tree *tree)
{
	tally_vector_release(&tree->nodes);
}
