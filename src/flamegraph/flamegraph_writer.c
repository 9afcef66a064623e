/* Writes nodes in preorder, without those that are certainly too light for the file.
 *
 * A file holds some 300,000 of possibly millions of nodes: the heaviest. Which these are is known
 * only at the end, but many can be excluded early. Once 300,000 nodes have a total of more than 5,
 * those of 5 or less are out. So each node is counted by its total when it ends, in eight buckets
 * for each power of two. These counts raise the bound, and a node that ends below it is removed.
 *
 * The picture needs the positions of the remaining nodes and the size of the gaps. So neighbours
 * that are left out become one node, a run, with their weight and the number of their frames.
 */
#include "flamegraph/flamegraph_writer.h"

#include "base/vector.h"
#include "profile/call_tree.h"

#include <errno.h>

enum { EXACT = 16, PARTS = 8, EXACT_BITS = 4, PART_BITS = 3 };

static unsigned bucket_of(uint64_t total)
{
	if (total < EXACT)
		return (unsigned)total;
	unsigned power = 63 - (unsigned)__builtin_clzll(total);
	return EXACT + (power - EXACT_BITS) * PARTS +
	       (unsigned)(total >> (power - PART_BITS) & (PARTS - 1));
}

static uint64_t least_of_bucket(unsigned bucket)
{
	if (bucket < EXACT)
		return bucket;
	unsigned power = (bucket - EXACT) / PARTS + EXACT_BITS;
	return (PARTS + (uint64_t)(bucket - EXACT) % PARTS) << (power - PART_BITS);
}

void tally_flame_pruning_init(struct tally_flame_pruning *pruning, size_t nodes_max)
{
	*pruning = (struct tally_flame_pruning){ .nodes_max = nodes_max, .least = 1 };
}

static void count_node(struct tally_flame_pruning *pruning, uint64_t total)
{
	unsigned bucket = bucket_of(total);
	if (bucket <= pruning->bucket)
		return;
	pruning->counts[bucket]++;
	for (pruning->above++; pruning->above > pruning->nodes_max;) {
		/* More than nodes_max nodes weigh at least this bucket's least total: a node that
		 * weighs just that is not among the heaviest. */
		pruning->least = least_of_bucket(++pruning->bucket) + 1;
		pruning->above -= pruning->counts[pruning->bucket];
	}
}

static int open_node(struct tally_flame_writer *writer, uint32_t id)
{
	struct tally_flame_node node = { .id = id, .depth = (uint32_t)writer->path.count + 1 };
	struct tally_flame_open open = { .node = (uint32_t)writer->nodes.count,
					 .run = UINT32_MAX,
					 .frames = 1 };
	if (writer->nodes.count >= UINT32_MAX - 1 || tally_vector_push(&writer->path, open) < 0)
		return -ENOMEM;
	return tally_vector_push(&writer->nodes, node);
}

static int leave_out(struct tally_flame_writer *writer, const struct tally_flame_open *open)
{
	struct tally_flame_open *above = &writer->path.items[writer->path.count - 1];
	struct tally_flame_node node = writer->nodes.items[open->node];
	writer->nodes.count = open->node;
	if (above->run == UINT32_MAX) {
		struct tally_flame_node run = { .id = TALLY_FLAME_RUN,
						.depth = node.depth,
						.end = open->node + 1 };
		above->run = open->node;
		if (tally_vector_push(&writer->nodes, run) < 0)
			return -ENOMEM;
	}
	struct tally_flame_node *run = &writer->nodes.items[above->run];
	run->total += node.total;
	run->self += open->frames;
	return 0;
}

/* Ends the open nodes after the first `left`. */
static int close_nodes(struct tally_flame_writer *writer, struct tally_flame_sums *sums,
		       size_t left)
{
	while (writer->path.count > left) {
		struct tally_flame_open open = writer->path.items[--writer->path.count];
		struct tally_flame_node *node = &writer->nodes.items[open.node];
		node->end = (uint32_t)writer->nodes.count;
		sums->level_weights[node->depth] += node->total;
		if (!writer->path.count)
			return 0;
		struct tally_flame_open *above = &writer->path.items[writer->path.count - 1];
		struct tally_flame_node *parent = &writer->nodes.items[above->node];
		parent->total = tally_sum_capped(parent->total, node->total);
		above->frames += open.frames;
		count_node(&sums->pruning, node->total);
		if (node->total >= sums->pruning.least)
			above->run = UINT32_MAX;
		else if (leave_out(writer, &open) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Reserved memory that stays untouched costs nothing; growing an array does. */
static int make_room(struct tally_flame_writer *writer, const struct tally_flame_pruning *pruning)
{
	enum { A_STACK = 2, A_KEPT_NODE = 4 }; /* nodes */
	size_t most = pruning->nodes_max < SIZE_MAX / A_KEPT_NODE ? pruning->nodes_max * A_KEPT_NODE
								  : SIZE_MAX;
	size_t nodes = writer->stacks * A_STACK;
	return tally_vector_reserve(&writer->nodes, nodes < most ? nodes : most);
}

int tally_flame_writer_add(struct tally_flame_writer *writer, struct tally_flame_sums *sums,
			   uint32_t slot, const struct tally_stack_sort *sort,
			   const struct tally_packed_stack *stack, uint64_t weight)
{
	uint32_t common = writer->before ? tally_stack_sort_common(sort, writer->before, stack) : 0;
	if (!writer->before &&
	    (make_room(writer, &sums->pruning) < 0 || open_node(writer, slot) < 0))
		return -ENOMEM;
	writer->before = stack;
	if (close_nodes(writer, sums, common + 1u) < 0)
		return -ENOMEM;
	for (uint32_t at = common; at < stack->frames; at++) {
		uint32_t frame = sums->frame_of[tally_stack_sort_code(sort, stack, at) - 1];
		sums->used[frame] = true;
		if (open_node(writer, frame) < 0)
			return -ENOMEM;
	}
	if (writer->path.count > sums->depth_max)
		sums->depth_max = (uint32_t)writer->path.count;
	struct tally_flame_node *leaf =
		&writer->nodes.items[writer->path.items[writer->path.count - 1].node];
	leaf->self = tally_sum_capped(leaf->self, weight);
	leaf->total = tally_sum_capped(leaf->total, weight);
	return 0;
}

int tally_flame_writer_end(struct tally_flame_writer *writer, struct tally_flame_sums *sums)
{
	return close_nodes(writer, sums, 0);
}

void tally_flame_writer_release(struct tally_flame_writer *writer)
{
	tally_vector_release(&writer->nodes);
	tally_vector_release(&writer->path);
}
