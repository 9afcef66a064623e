/* Sorting makes the tree: stacks sorted by slot and then by their frames' ranks have their common beginnings next to
 * each other, so that one pass with the path at hand writes the nodes in preorder, siblings sorted by name.
 */
#include "output/flamegraph_tree.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ranked_frame {
	const struct tally_stacks *stacks;
	uint32_t id;
};

static int compare_frames(const void *a, const void *b)
{
	const struct ranked_frame *left = a, *right = b;
	const struct tally_stacks *stacks = left->stacks;
	const struct tally_frame *l = &stacks->frames.items[left->id], *r = &stacks->frames.items[right->id];
	int order = l->name == r->name ? 0 : strcmp(tally_strings_text(&stacks->strings, l->name),
						     tally_strings_text(&stacks->strings, r->name));
	if (!order && l->object != r->object)
		order = strcmp(tally_strings_text(&stacks->strings, l->object),
			       tally_strings_text(&stacks->strings, r->object));
	if (!order)
		order = (l->kind > r->kind) - (l->kind < r->kind);
	/* "" and no object at all. */
	return order ? order : (left->id > right->id) - (left->id < right->id);
}

static uint32_t *rank_frames(const struct tally_stacks *stacks)
{
	size_t count = stacks->frames.count;
	uint32_t *ranks = calloc(count + 1, sizeof(*ranks));
	struct ranked_frame *sorted = calloc(count + 1, sizeof(*sorted));
	for (size_t i = 0; ranks && sorted && i < count; i++)
		sorted[i] = (struct ranked_frame){ stacks, (uint32_t)i };
	if (ranks && sorted) {
		qsort(sorted, count, sizeof(*sorted), compare_frames);
		for (size_t i = 0; i < count; i++)
			ranks[sorted[i].id] = (uint32_t)i;
	} else {
		free(ranks);
		ranks = NULL;
	}
	free(sorted);
	return ranks;
}

/* A thread on its way to a slot. */
struct candidate {
	const struct tally_stacks *stacks;
	struct tally_flame_slot slot;
	uint32_t thread;
	uint64_t weight;
};

static int compare_weights(const void *a, const void *b)
{
	const struct candidate *l = a, *r = b;
	if (l->weight != r->weight)
		return l->weight < r->weight ? 1 : -1;
	return (l->thread > r->thread) - (l->thread < r->thread);
}

static int compare_slots(const struct tally_stacks *stacks, const struct tally_flame_slot *l,
			 const struct tally_flame_slot *r)
{
	if (l->comm != r->comm)
		return strcmp(tally_strings_text(&stacks->strings, l->comm),
			      tally_strings_text(&stacks->strings, r->comm));
	if (l->pid != r->pid)
		return l->pid < r->pid ? -1 : 1;
	return (l->tid > r->tid) - (l->tid < r->tid);
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *l = a, *r = b;
	int order = compare_slots(l->stacks, &l->slot, &r->slot);
	return order ? order : (l->thread > r->thread) - (l->thread < r->thread);
}

static uint64_t weight_of(const struct tally_stack *stack, bool by_samples)
{
	return by_samples ? stack->samples : stack->weight;
}

static uint64_t sum_capped(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Fills tree->slots, sorted, and slot_of (by thread). */
static int make_slots(struct tally_flame_tree *tree, const struct tally_stacks *stacks, bool by_thread,
		      bool by_samples, uint32_t *slot_of)
{
	size_t count = stacks->threads.count;
	struct candidate *threads = calloc(count + 1, sizeof(*threads));
	int status = threads ? 0 : -ENOMEM;
	for (size_t i = 0; threads && i < count; i++) {
		const struct tally_thread_label *label = &stacks->threads.items[i];
		threads[i] = (struct candidate){ .stacks = stacks, .thread = (uint32_t)i,
						 .slot = { label->comm, label->pid, label->tid, 0 } };
	}
	for (size_t i = 0; threads && i < stacks->stacks.count; i++) {
		struct candidate *thread = &threads[stacks->stacks.items[i].thread];
		thread->weight = sum_capped(thread->weight, weight_of(&stacks->stacks.items[i], by_samples));
	}
	if (threads)
		qsort(threads, count, sizeof(*threads), compare_weights);
	for (size_t i = by_thread ? TALLY_FLAME_THREADS_MAX : 0; threads && i < count; i++)
		threads[i].slot.pid = threads[i].slot.tid = 0;
	if (threads)
		qsort(threads, count, sizeof(*threads), compare_candidates);
	for (size_t i = 0; !status && i < count; i++) {
		size_t last = tree->slots.count;
		if (!last || compare_slots(stacks, &tree->slots.items[last - 1], &threads[i].slot))
			status = tally_vector_push(&tree->slots, threads[i].slot);
		if (!status) {
			tree->slots.items[tree->slots.count - 1].threads++;
			slot_of[threads[i].thread] = (uint32_t)tree->slots.count - 1;
		}
	}
	free(threads);
	return status;
}

struct sorted_stack {
	const struct tally_stacks *stacks;
	const uint32_t *ranks;
	const uint32_t *frames;
	uint32_t count, slot;
	uint64_t weight;
};

static int compare_stacks(const void *a, const void *b)
{
	const struct sorted_stack *l = a, *r = b;
	if (l->slot != r->slot)
		return l->slot < r->slot ? -1 : 1;
	uint32_t count = l->count < r->count ? l->count : r->count;
	for (uint32_t i = 0; i < count; i++)
		if (l->frames[i] != r->frames[i])
			return l->ranks[l->frames[i]] < l->ranks[r->frames[i]] ? -1 : 1;
	return (l->count > r->count) - (l->count < r->count);
}

/* The node at each depth of the stack that was added last. */
struct path {
	size_t nodes[TALLY_FLAME_DEPTH_MAX + 2];
	uint32_t depth;
};

static int push_node(struct tally_flame_tree *tree, struct path *path, uint32_t id, uint32_t depth)
{
	struct tally_flame_node node = { .id = id, .depth = depth };
	int status = tally_vector_push(&tree->nodes, node);
	if (status < 0)
		return status;
	path->nodes[depth] = tree->nodes.count - 1;
	path->depth = depth;
	if (depth > tree->depth_max)
		tree->depth_max = depth;
	return 0;
}

static int add_stack(struct tally_flame_tree *tree, struct path *path, const struct sorted_stack *stack)
{
	uint32_t levels = stack->count + 1, depth = 0;
	if (levels > TALLY_FLAME_DEPTH_MAX)
		levels = TALLY_FLAME_DEPTH_MAX;
	while (depth < levels && depth < path->depth) {
		uint32_t id = depth ? stack->frames[depth - 1] : stack->slot;
		if (tree->nodes.items[path->nodes[depth + 1]].id != id)
			break;
		depth++;
	}
	path->depth = depth;
	for (; depth < levels; depth++) {
		uint32_t id = depth ? stack->frames[depth - 1] : stack->slot;
		int status = push_node(tree, path, id, depth + 1);
		if (status < 0)
			return status;
	}
	struct tally_flame_node *leaf = &tree->nodes.items[path->nodes[levels]];
	leaf->self = sum_capped(leaf->self, stack->weight);
	return 0;
}

/* Totals and ends: children come behind their parents, so backwards each node is complete when it is met. */
static int finish_nodes(struct tally_flame_tree *tree)
{
	struct path *path = calloc(1, sizeof(*path));
	if (!path)
		return -ENOMEM;
	size_t count = tree->nodes.count;
	size_t *end_at = path->nodes; /* by depth: where the next node of that depth or less begins */
	uint64_t *sums = calloc(TALLY_FLAME_DEPTH_MAX + 2, sizeof(*sums));
	for (size_t i = count; sums && i-- > 0;) {
		struct tally_flame_node *node = &tree->nodes.items[i];
		node->total = sum_capped(node->self, sums[node->depth + 1]);
		sums[node->depth + 1] = 0;
		sums[node->depth] = sum_capped(sums[node->depth], node->total);
	}
	for (unsigned depth = 0; depth < TALLY_FLAME_DEPTH_MAX + 2; depth++)
		end_at[depth] = count;
	uint32_t below = 0; /* the depth of the node behind */
	for (size_t i = count; i-- > 0;) {
		struct tally_flame_node *node = &tree->nodes.items[i];
		/* Nodes behind that are less deep end all that is deeper. */
		for (uint32_t depth = below + 1; i + 1 < count && depth <= node->depth; depth++)
			end_at[depth] = i + 1;
		node->end = end_at[node->depth];
		end_at[node->depth] = i;
		below = node->depth;
	}
	bool failed = !sums;
	free(sums);
	free(path);
	return failed ? -ENOMEM : 0;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

static int add_stacks(struct tally_flame_tree *tree, struct sorted_stack *sorted, size_t count)
{
	struct path *path = calloc(1, sizeof(*path));
	int status = path ? push_node(tree, path, 0, 0) : -ENOMEM;
	for (size_t i = 0; !status && i < count; i++)
		tree->unit = common_divisor(sorted[i].weight, tree->unit);
	if (!tree->unit)
		tree->unit = 1;
	if (!status)
		qsort(sorted, count, sizeof(*sorted), compare_stacks);
	for (size_t i = 0; !status && i < count; i++) {
		sorted[i].weight /= tree->unit;
		if (sorted[i].weight)
			status = add_stack(tree, path, &sorted[i]);
	}
	free(path);
	return status ? status : finish_nodes(tree);
}

int tally_flame_tree_build(struct tally_flame_tree *tree, const struct tally_stacks *stacks, bool by_thread,
			   bool by_samples)
{
	size_t count = stacks->stacks.count;
	uint32_t *slot_of = calloc(stacks->threads.count + 1, sizeof(*slot_of));
	struct sorted_stack *sorted = calloc(count + 1, sizeof(*sorted));
	by_samples = by_samples && stacks->total_samples;
	tree->frame_ranks = rank_frames(stacks);
	int status = slot_of && sorted && tree->frame_ranks ? 0 : -ENOMEM;
	if (!status)
		status = make_slots(tree, stacks, by_thread, by_samples, slot_of);
	for (size_t i = 0; !status && i < count; i++) {
		const struct tally_stack *stack = &stacks->stacks.items[i];
		sorted[i] = (struct sorted_stack){
			.stacks = stacks, .ranks = tree->frame_ranks,
			.frames = stacks->frame_ids.items + stack->first_frame, .count = stack->frame_count,
			.slot = slot_of[stack->thread], .weight = weight_of(stack, by_samples),
		};
	}
	if (!status)
		status = add_stacks(tree, sorted, count);
	tree->unit_is_sample = !status && stacks->total_samples &&
			       tree->nodes.items[0].total == stacks->total_samples;
	free(sorted);
	free(slot_of);
	return status;
}

static int compare_totals(const void *a, const void *b)
{
	uint64_t l = *(const uint64_t *)a, r = *(const uint64_t *)b;
	return (l < r) - (l > r);
}

uint64_t tally_flame_tree_threshold(const struct tally_flame_tree *tree, size_t nodes_max)
{
	size_t count = tree->nodes.count;
	if (count <= nodes_max)
		return 1;
	uint64_t *totals = calloc(count, sizeof(*totals));
	if (!totals)
		return 0;
	for (size_t i = 0; i < count; i++)
		totals[i] = tree->nodes.items[i].total;
	qsort(totals, count, sizeof(*totals), compare_totals);
	uint64_t threshold = sum_capped(totals[nodes_max], 1);
	free(totals);
	return threshold;
}

void tally_flame_tree_release(struct tally_flame_tree *tree)
{
	tally_vector_release(&tree->nodes);
	tally_vector_release(&tree->slots);
	free(tree->frame_ranks);
	*tree = (struct tally_flame_tree){ 0 };
}

const char *tally_flame_node_name(const struct tally_flame_tree *tree, const struct tally_stacks *stacks,
				  const struct tally_flame_node *node)
{
	if (node->depth == 0)
		return "all";
	if (node->depth == 1)
		return tally_strings_text(&stacks->strings, tree->slots.items[node->id].comm);
	return tally_strings_text(&stacks->strings, stacks->frames.items[node->id].name);
}

unsigned tally_flame_node_kind(const struct tally_stacks *stacks, const struct tally_flame_node *node)
{
	return node->depth < 2 ? TALLY_FRAME_KINDS : stacks->frames.items[node->id].kind;
}
