#include "profile/call_tree.h"

#include "base/vector.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct writer {
	struct tally_call_tree *tree;
	const struct tally_stack_sort *sort;
	const char *weights;
	size_t stride;
	uint64_t least;
	struct { uint32_t *items; size_t count, capacity; } path; /* open nodes: the root's first */
};

static int open_node(struct writer *writer, uint32_t code)
{
	struct tally_call_node node = { .code = code };
	if (writer->tree->nodes.count >= UINT32_MAX ||
	    tally_vector_push(&writer->path, (uint32_t)writer->tree->nodes.count) < 0)
		return -ENOMEM;
	return tally_vector_push(&writer->tree->nodes, node);
}

/* Ends the open nodes but for the first `left`. */
static void close_nodes(struct writer *writer, size_t left)
{
	struct tally_call_tree *tree = writer->tree;
	while (writer->path.count > left) {
		uint32_t at = writer->path.items[--writer->path.count];
		struct tally_call_node *node = &tree->nodes.items[at];
		node->end = (uint32_t)tree->nodes.count;
		if (!writer->path.count)
			return;
		struct tally_call_node *above = &tree->nodes.items[writer->path.items[writer->path.count - 1]];
		above->total = tally_sum_capped(above->total, node->total);
		if (node->total < writer->least)
			tree->nodes.count = at;
	}
}

static int add_stack(struct writer *writer, const struct tally_packed_stack *stack, uint32_t common)
{
	uint64_t weight;
	memcpy(&weight, writer->weights + (size_t)stack->item * writer->stride, sizeof(weight));
	close_nodes(writer, common + 1u);
	for (uint32_t frame = common; frame < stack->frames; frame++)
		if (open_node(writer, tally_stack_sort_code(writer->sort, stack, frame)) < 0)
			return -ENOMEM;
	struct tally_call_node *leaf = &writer->tree->nodes.items[writer->path.items[writer->path.count - 1]];
	leaf->self = tally_sum_capped(leaf->self, weight);
	leaf->total = tally_sum_capped(leaf->total, weight);
	return 0;
}

/* Inlined always: gcc takes a function that does nothing else for one that does nothing, and drops its calls. */
__attribute__((always_inline)) static inline void prefetch(const struct writer *writer, size_t at, size_t count)
{
	enum { AHEAD = 12 };
	const struct tally_stack_sort *sort = writer->sort;
	if (at + 2 * AHEAD < count)
		__builtin_prefetch(&sort->stacks.items[sort->keys[at + 2 * AHEAD].stack]);
	if (at + AHEAD >= count)
		return;
	const struct tally_packed_stack *stack = &sort->stacks.items[sort->keys[at + AHEAD].stack];
	__builtin_prefetch(&sort->words.items[stack->at]);
	__builtin_prefetch(writer->weights + (size_t)stack->item * writer->stride);
}

static int add_root(struct writer *writer, uint32_t root, size_t count)
{
	const struct tally_stack_sort *sort = writer->sort;
	const struct tally_packed_stack *before = NULL;
	int result = open_node(writer, root);
	for (size_t i = 0; !result && i < count; i++) {
		prefetch(writer, i, count);
		const struct tally_packed_stack *stack = &sort->stacks.items[sort->keys[i].stack];
		result = add_stack(writer, stack, before ? tally_stack_sort_common(sort, before, stack) : 0);
		before = stack;
	}
	close_nodes(writer, 0);
	return result;
}

int tally_call_tree_build(struct tally_call_tree *tree, struct tally_stack_sort *sort, const void *weights,
			  size_t stride, uint64_t least)
{
	struct writer writer = {
		.tree = tree, .sort = sort, .weights = weights, .stride = stride, .least = least,
	};
	int result = 0;
	*tree = (struct tally_call_tree){ 0 };
	for (size_t i = 0; !result && i < sort->roots.count; i++) {
		bool is_last = i + 1 == sort->roots.count;
		size_t first = sort->roots.items[i].first;
		size_t count = (is_last ? sort->stacks.count : sort->roots.items[i + 1].first) - first;
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
