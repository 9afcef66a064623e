/* Sorting makes the tree (profile/stack_sort.h): frames are sorted by their ranks in the order of names, under the slots
 * of their threads, so that siblings come sorted by name.
 */
#include "output/flamegraph_tree.h"

#include "base/vector.h"
#include "profile/call_tree.h"

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

/* Stacks on their way into the tree. */
struct stack_order {
	struct tally_flame_tree *tree;
	const struct tally_stacks *stacks;
	const uint32_t *slot_of; /* by thread */
	uint64_t *weights;       /* by stack, in the tree's unit */
	uint32_t *sorted;        /* stacks by slot */
	size_t *slot_ends;       /* by slot: the end of its stacks in `sorted` */
};

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* What weighs nothing has no place in the tree. */
static int weigh(struct stack_order *order, bool by_samples)
{
	const struct tally_stacks *stacks = order->stacks;
	struct tally_flame_tree *tree = order->tree;
	size_t count = stacks->stacks.count;
	order->weights = malloc((count + 1) * sizeof(*order->weights));
	if (!order->weights)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		order->weights[i] = weight_of(&stacks->stacks.items[i], by_samples);
		if (tree->unit != 1)
			tree->unit = common_divisor(order->weights[i], tree->unit);
	}
	if (!tree->unit)
		tree->unit = 1;
	for (size_t i = 0; i < count && tree->unit != 1; i++)
		order->weights[i] /= tree->unit;
	return 0;
}

static int sort_by_slot(struct stack_order *order)
{
	size_t count = order->stacks->stacks.count, slots = order->tree->slots.count, sum = 0;
	const struct tally_stack *stacks = order->stacks->stacks.items;
	order->sorted = malloc((count + 1) * sizeof(*order->sorted));
	order->slot_ends = calloc(slots + 1, sizeof(*order->slot_ends));
	if (!order->sorted || !order->slot_ends)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order->slot_ends[order->slot_of[stacks[i].thread]]++;
	for (size_t slot = 0; slot < slots; slot++) {
		size_t here = order->slot_ends[slot];
		order->slot_ends[slot] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		order->sorted[order->slot_ends[order->slot_of[stacks[i].thread]]++] = (uint32_t)i;
	return 0;
}

static int add_stacks(const struct stack_order *order, struct tally_stack_sort *sort)
{
	const struct tally_stacks *stacks = order->stacks;
	uint32_t codes[TALLY_FLAME_DEPTH_MAX];
	int status = 0;
	for (size_t slot = 0, i = 0; !status && slot < order->tree->slots.count; slot++) {
		status = tally_stack_sort_root(sort, (uint32_t)slot);
		for (; !status && i < order->slot_ends[slot]; i++) {
			const struct tally_stack *stack = &stacks->stacks.items[order->sorted[i]];
			const uint32_t *frames = stacks->frame_ids.items + stack->first_frame;
			uint32_t depth = stack->frame_count;
			if (!order->weights[order->sorted[i]])
				continue;
			if (depth > TALLY_FLAME_DEPTH_MAX - 1)
				depth = TALLY_FLAME_DEPTH_MAX - 1;
			for (uint32_t frame = 0; frame < depth; frame++)
				codes[frame] = order->tree->frame_ranks[frames[frame]] + 1;
			status = tally_stack_sort_add(sort, codes, depth, order->sorted[i]);
		}
	}
	return status;
}

/* Puts the root above the slots' trees, and frames for their ranks. */
static int copy_nodes(struct tally_flame_tree *tree, const struct tally_call_tree *calls, const uint32_t *frame_of)
{
	size_t count = calls->nodes.count, ends[TALLY_FLAME_DEPTH_MAX + 2];
	struct tally_flame_node all = { .end = 1 };
	uint32_t depth = 0;
	if (tally_vector_reserve(&tree->nodes, count + 1) < 0)
		return -ENOMEM;
	tree->nodes.items[tree->nodes.count++] = all;
	for (size_t i = 0; i < count; i++) {
		const struct tally_call_node *call = &calls->nodes.items[i];
		while (depth && ends[depth - 1] <= i)
			depth--;
		ends[depth++] = call->end;
		if (depth == 1 && !call->total) /* a slot of weightless stacks */
			continue;
		struct tally_flame_node node = { .id = depth == 1 ? call->code : frame_of[call->code - 1], .depth = depth,
						 .end = tree->nodes.count + call->end - i, .self = call->self,
						 .total = call->total };
		tree->depth_max = depth > tree->depth_max ? depth : tree->depth_max;
		tree->nodes.items[0].total = sum_capped(tree->nodes.items[0].total, depth == 1 ? call->total : 0);
		tree->nodes.items[tree->nodes.count++] = node;
	}
	tree->nodes.items[0].end = tree->nodes.count;
	return 0;
}

static int make_nodes(const struct stack_order *order)
{
	size_t frames = order->stacks->frames.count;
	uint32_t *frame_of = malloc((frames + 1) * sizeof(*frame_of)); /* by rank */
	struct tally_stack_sort sort;
	struct tally_call_tree calls = { 0 };
	for (uint32_t i = 0; frame_of && i < frames; i++)
		frame_of[order->tree->frame_ranks[i]] = i;
	tally_stack_sort_init(&sort, (uint32_t)frames);
	int status = frame_of ? add_stacks(order, &sort) : -ENOMEM;
	if (!status)
		status = tally_call_tree_build(&calls, &sort, order->weights, sizeof(*order->weights), 0);
	tally_stack_sort_release(&sort);
	if (!status)
		status = copy_nodes(order->tree, &calls, frame_of);
	tally_call_tree_release(&calls);
	free(frame_of);
	return status;
}

int tally_flame_tree_build(struct tally_flame_tree *tree, const struct tally_stacks *stacks, bool by_thread,
			   bool by_samples)
{
	uint32_t *slot_of = calloc(stacks->threads.count + 1, sizeof(*slot_of));
	struct stack_order order = { .tree = tree, .stacks = stacks, .slot_of = slot_of };
	by_samples = by_samples && stacks->total_samples;
	tree->frame_ranks = rank_frames(stacks);
	int status = slot_of && tree->frame_ranks ? 0 : -ENOMEM;
	if (!status)
		status = make_slots(tree, stacks, by_thread, by_samples, slot_of);
	if (!status)
		status = weigh(&order, by_samples);
	if (!status)
		status = sort_by_slot(&order);
	if (!status)
		status = make_nodes(&order);
	tree->unit_is_sample = !status && stacks->total_samples &&
			       tree->nodes.items[0].total == stacks->total_samples;
	free(order.weights);
	free(order.sorted);
	free(order.slot_ends);
	free(slot_of);
	return status;
}

/* The total that `rank` nodes, or a few less where several have it, exceed: byte by byte from the highest one, the
 * nodes that agree with what is known of it are counted by their next byte. */
static uint64_t total_of_rank(const struct tally_flame_tree *tree, size_t rank)
{
	uint64_t known = 0;
	for (int shift = 56; shift >= 0; shift -= 8) {
		size_t counts[256] = { 0 };
		unsigned byte = 255;
		for (size_t i = 0; i < tree->nodes.count; i++) {
			uint64_t total = tree->nodes.items[i].total;
			counts[total >> shift & 255] += shift == 56 || total >> (shift + 8) == known >> (shift + 8);
		}
		for (; counts[byte] <= rank; byte--)
			rank -= counts[byte];
		known |= (uint64_t)byte << shift;
	}
	return known;
}

uint64_t tally_flame_tree_threshold(const struct tally_flame_tree *tree, size_t nodes_max)
{
	return tree->nodes.count <= nodes_max ? 1 : sum_capped(total_of_rank(tree, nodes_max), 1);
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
