/* Builds the trees by sorting (profile/stacks.h). Stacks are sorted under their commands by the
 * ranks of their frames, so that siblings come sorted by name. The stacks of each thread are then
 * in order as well, so that one sort serves both trees. Each thread's nodes are written to an array
 * of their own. Large inputs use one CPU thread for each tree. */
#include "base/extremes.h"
#include "flamegraph/flamegraph_internal.h"

#include "base/threads.h"
#include "base/vector.h"
#include "base/weight_sum.h"
#include "profile/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { THREAD_WORTH = 1 << 16 /* stacks that justify a second CPU thread */ };
static const uint32_t NO_RUN = UINT32_MAX;

struct ranked_frame {
	const struct tally_stacks *stacks;
	uint32_t id;
};

static int compare_frames(const void *a, const void *b)
{
	const struct ranked_frame *left = a, *right = b;
	const struct tally_stacks *stacks = left->stacks;
	const struct tally_frame *l = &stacks->frames.items[left->id],
				 *r = &stacks->frames.items[right->id];
	int order = 0;
	if (l->name != r->name)
		order = strcmp(tally_strings_text(&stacks->strings, l->name),
			       tally_strings_text(&stacks->strings, r->name));
	if (!order && l->object != r->object)
		order = strcmp(tally_strings_text(&stacks->strings, l->object),
			       tally_strings_text(&stacks->strings, r->object));
	if (!order)
		order = tally_compare_u64(l->kind, r->kind);
	/* An empty object name and no object compare equal above: ids decide. */
	if (order)
		return order;
	return tally_compare_u64(left->id, right->id);
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

/* --- writing nodes -------------------------------------------------------- */

/* Writes nodes in preorder, without those that are certainly too light for the file.
 *
 * A file holds some 300,000 of possibly millions of nodes: the heaviest. Which these are is known
 * only at the end, but many can be excluded early. Once 300,000 nodes have a total of more than 5,
 * those of 5 or less are out. So each node is counted by its total when it ends, in eight buckets
 * for each power of two. These counts raise the bound, and a node that ends below it is removed.
 *
 * The picture needs the positions of the remaining nodes and the size of the gaps. So neighbours
 * that are left out become one node, a run, with their weight and the number of their frames. */

enum { BUCKETS = 496, EXACT = 16, PARTS = 8, EXACT_BITS = 4, PART_BITS = 3 };

/* Tracks which nodes are certainly not among the `nodes_max` heaviest. */
struct flame_pruning {
	size_t nodes_max;
	uint64_t least; /* lighter nodes are left out */
	unsigned bucket;
	uint64_t above; /* nodes in the buckets above `bucket` */
	uint64_t counts[BUCKETS];
};

/* Sums over all nodes, left out or not, and the frames of the codes. */
struct flame_sums {
	struct flame_pruning pruning;
	const uint32_t *frame_of; /* frame, by code − 1 */
	uint64_t *level_weights;  /* weight by depth, up to TALLY_FLAME_DEPTH_MAX */
	bool *used;               /* by frame: it has a node */
	uint32_t depth_max;
};

struct flame_open {
	uint32_t node;
	/* the run directly before the next child; otherwise NO_RUN */
	uint32_t run;
	uint64_t frames; /* frames in the subtree, itself included */
};

/* The nodes of one slot; the first is the slot's own. */
struct flame_writer {
	struct {
		struct tally_flame_node *items;
		size_t count, capacity;
	} nodes;
	struct {
		struct flame_open *items;
		size_t count, capacity;
	} path;
	const struct tally_packed_stack *before;
	size_t stacks; /* number of stacks to come, if known */
};

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

static void pruning_init(struct flame_pruning *pruning, size_t nodes_max)
{
	*pruning = (struct flame_pruning){ .nodes_max = nodes_max, .least = 1 };
}

static void count_node(struct flame_pruning *pruning, uint64_t total)
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

static int open_node(struct flame_writer *writer, uint32_t id)
{
	struct tally_flame_node node = { .id = id, .depth = (uint32_t)writer->path.count + 1 };
	struct flame_open open = { .node = (uint32_t)writer->nodes.count,
				   .run = NO_RUN,
				   .frames = 1 };
	if (writer->nodes.count >= UINT32_MAX - 1 || tally_vector_push(&writer->path, open) < 0)
		return -ENOMEM;
	return tally_vector_push(&writer->nodes, node);
}

static int leave_out(struct flame_writer *writer, const struct flame_open *open)
{
	struct flame_open *above = &writer->path.items[writer->path.count - 1];
	struct tally_flame_node node = writer->nodes.items[open->node];
	writer->nodes.count = open->node;
	if (above->run == NO_RUN) {
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
static int close_nodes(struct flame_writer *writer, struct flame_sums *sums, size_t left)
{
	while (writer->path.count > left) {
		struct flame_open open = writer->path.items[--writer->path.count];
		struct tally_flame_node *node = &writer->nodes.items[open.node];
		node->end = (uint32_t)writer->nodes.count;
		sums->level_weights[node->depth] += node->total;
		if (!writer->path.count)
			return 0;
		struct flame_open *above = &writer->path.items[writer->path.count - 1];
		struct tally_flame_node *parent = &writer->nodes.items[above->node];
		parent->total += node->total;
		above->frames += open.frames;
		count_node(&sums->pruning, node->total);
		if (node->total >= sums->pruning.least)
			above->run = NO_RUN;
		else if (leave_out(writer, &open) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Reserved memory that stays untouched costs nothing; growing an array does. */
static int make_room(struct flame_writer *writer, const struct flame_pruning *pruning)
{
	enum { A_STACK = 2, A_KEPT_NODE = 4 }; /* nodes */
	uint64_t most = tally_product_capped(pruning->nodes_max, A_KEPT_NODE);
	size_t nodes = tally_min_u64(writer->stacks * A_STACK, most);
	return tally_vector_reserve(&writer->nodes, nodes);
}

/* Adds the slot's next stack. Returns 0 or -ENOMEM. */
static int writer_add(struct flame_writer *writer, struct flame_sums *sums, uint32_t slot,
		      const struct tally_stack_sort *sort, const struct tally_packed_stack *stack,
		      uint64_t weight)
{
	uint32_t common = 0;
	if (writer->before)
		common = tally_stack_sort_common(sort, writer->before, stack);
	else if (make_room(writer, &sums->pruning) < 0 || open_node(writer, slot) < 0)
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
	leaf->self += weight;
	leaf->total += weight;
	return 0;
}

/* Closes all nodes after the last stack. Returns 0 or -ENOMEM. */
static void writer_release(struct flame_writer *writer)
{
	tally_vector_release(&writer->nodes);
	tally_vector_release(&writer->path);
}

/* --- slots ---------------------------------------------------------------- */

/* A thread while slots are assigned. */
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
		return tally_compare_u64(r->weight, l->weight);
	return tally_compare_u64(l->thread, r->thread);
}

static int compare_slots(const struct tally_stacks *stacks, const struct tally_flame_slot *l,
			 const struct tally_flame_slot *r)
{
	if (l->comm != r->comm)
		return strcmp(tally_strings_text(&stacks->strings, l->comm),
			      tally_strings_text(&stacks->strings, r->comm));
	if (l->pid != r->pid)
		return tally_compare_u64(l->pid, r->pid);
	return tally_compare_u64(l->tid, r->tid);
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *l = a, *r = b;
	int order = compare_slots(l->stacks, &l->slot, &r->slot);
	if (order)
		return order;
	return tally_compare_u64(l->thread, r->thread);
}

static uint64_t weight_of(const struct tally_row *stack, bool by_samples)
{
	if (by_samples)
		return stack->samples;
	return stack->period;
}

/* Fills tree->slots, sorted, and slot_of (slot by thread). */
static int make_slots(struct tally_flame_tree *tree, const struct tally_stacks *stacks,
		      bool by_thread, bool by_samples, uint32_t *slot_of)
{
	size_t count = stacks->threads.count;
	struct candidate *threads = calloc(count + 1, sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct tally_thread_label *label = &stacks->threads.items[i];
		threads[i] = (struct candidate){ .stacks = stacks,
						 .thread = (uint32_t)i,
						 .slot = { label->comm, label->pid, label->tid,
							   0 } };
	}
	for (size_t i = 0; i < stacks->rows.rows.count; i++) {
		struct candidate *thread = &threads[stacks->rows.rows.items[i].class];
		thread->weight += weight_of(&stacks->rows.rows.items[i], by_samples);
	}
	qsort(threads, count, sizeof(*threads), compare_weights);
	for (size_t i = by_thread ? TALLY_FLAME_THREADS_MAX : 0; i < count; i++)
		threads[i].slot.pid = threads[i].slot.tid = 0;
	qsort(threads, count, sizeof(*threads), compare_candidates);
	int status = 0;
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

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Returns the greatest common divisor of all stacks' weights. */
static uint64_t find_unit(const struct tally_stacks *stacks, bool by_samples)
{
	uint64_t unit = 0, last = 0;
	for (size_t i = 0; i < stacks->rows.rows.count && unit != 1; i++) {
		uint64_t weight = weight_of(&stacks->rows.rows.items[i], by_samples);
		if (weight != last)
			unit = common_divisor(weight, unit);
		last = weight;
	}
	if (unit)
		return unit;
	return 1;
}

/* ---- stacks → nodes ------------------------------------------------------ */

/* One of the two trees under construction. */
struct tree_maker {
	struct tally_flame_tree *tree;
	uint32_t *slot_of; /* slot by thread */
	struct flame_writer *writers; /* by slot */
	struct flame_sums sums;
};

struct maker {
	const struct tally_stacks *stacks;
	const struct tally_flame_tree_options *options;
	bool by_samples, two_threads;
	uint64_t unit;
	uint32_t *ranks;    /* by frame: its rank in the order of names */
	uint32_t *frame_of; /* frame by rank */
	/* by step (stacks.h): its sort code; 0 if it is not exactly one frame */
	uint32_t *codes;
	uint32_t *sorted;   /* stacks, grouped by command */
	size_t *ends;       /* by command: end of its stacks in `sorted` */
	struct tree_maker trees[2]; /* by command; by thread */
	unsigned tree_count; /* 1: each command has one thread, so the trees are equal */
};

static int start_tree(struct maker *maker, struct tree_maker *one, struct tally_flame_tree *tree,
		      bool by_thread)
{
	const struct tally_stacks *stacks = maker->stacks;
	one->tree = tree;
	one->slot_of = calloc(stacks->threads.count + 1, sizeof(*one->slot_of));
	one->sums.used = calloc(stacks->frames.count + 1, sizeof(*one->sums.used));
	one->sums.level_weights = tree->level_weights = calloc(TALLY_FLAME_DEPTH_MAX + 2,
							       sizeof(*tree->level_weights));
	one->sums.frame_of = maker->frame_of;
	if (!one->slot_of || !one->sums.used || !tree->level_weights ||
	    make_slots(tree, stacks, by_thread, maker->by_samples, one->slot_of) < 0)
		return -ENOMEM;
	one->writers = calloc(tree->slots.count + 1, sizeof(*one->writers));
	for (size_t i = 0; one->writers && i < stacks->rows.rows.count; i++)
		one->writers[one->slot_of[stacks->rows.rows.items[i].class]].stacks++;
	if (one->writers)
		return 0;
	return -ENOMEM;
}

static int sort_by_command(struct maker *maker)
{
	size_t count = maker->stacks->rows.rows.count, commands = maker->trees[0].tree->slots.count,
	       sum = 0;
	const struct tally_row *stacks = maker->stacks->rows.rows.items;
	const uint32_t *slot_of = maker->trees[0].slot_of;
	maker->sorted = malloc((count + 1) * sizeof(*maker->sorted));
	maker->ends = calloc(commands + 1, sizeof(*maker->ends));
	if (!maker->sorted || !maker->ends)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		maker->ends[slot_of[stacks[i].class]]++;
	for (size_t slot = 0; slot < commands; slot++) {
		size_t here = maker->ends[slot];
		maker->ends[slot] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		maker->sorted[maker->ends[slot_of[stacks[i].class]]++] = (uint32_t)i;
	return 0;
}

static int make_codes(struct maker *maker)
{
	const struct tally_stacks *stacks = maker->stacks;
	size_t steps = stacks->steps.count, frames = stacks->frames.count;
	size_t count = steps ? steps : frames;
	maker->codes = calloc(count + 1, sizeof(*maker->codes));
	if (!maker->codes)
		return -ENOMEM;
	for (size_t i = 0; i < steps; i++)
		if (stacks->steps.items[i].count == 1)
			maker->codes[i] =
				maker->ranks[stacks->step_frames
						     .items[stacks->steps.items[i].first]] +
				1;
	for (size_t i = 0; !steps && i < frames; i++)
		maker->codes[i] = maker->ranks[i] + 1;
	return 0;
}

/* Packs the frames of a step, the outermost of the inlined ones first. */
static void pack_inlined(const struct maker *maker, const struct tally_stack_sort *sort,
			 uint32_t number, uint32_t room, struct tally_stack_packer *packer)
{
	const struct tally_stacks *stacks = maker->stacks;
	const struct tally_step *step = &stacks->steps.items[number];
	for (uint32_t i = step->count; i && room; room--)
		tally_stack_sort_put(sort, packer,
				     maker->ranks[stacks->step_frames.items[step->first + --i]] +
					     1);
}

static int pack_stack(const struct maker *maker, struct tally_stack_sort *sort, uint32_t row)
{
	enum { FRAMES_MAX = TALLY_FLAME_DEPTH_MAX - 1 };
	const uint8_t *end, *start = tally_row_stack(&maker->stacks->rows, row, &end);
	struct tally_stack_packer packer;
	if (tally_stack_sort_begin(sort, &packer, FRAMES_MAX) < 0)
		return -ENOMEM;
	while (end > start && packer.frames < FRAMES_MAX) {
		uint32_t step = tally_stack_last_place(start, &end), code = maker->codes[step];
		if (__builtin_expect(code != 0, 1))
			tally_stack_sort_put(sort, &packer, code);
		else
			pack_inlined(maker, sort, step, FRAMES_MAX - packer.frames, &packer);
	}
	return tally_stack_sort_end(sort, &packer, row);
}

/* Stacks without weight are left out. */
static int add_command(const struct maker *maker, struct tally_stack_sort *sort, uint32_t command)
{
	const struct tally_row *rows = maker->stacks->rows.rows.items;
	int status = tally_stack_sort_root(sort, command);
	size_t i = 0;
	if (command)
		i = maker->ends[command - 1];
	for (; !status && i < maker->ends[command]; i++)
		if (weight_of(&rows[maker->sorted[i]], maker->by_samples))
			status = pack_stack(maker, sort, maker->sorted[i]);
	return status;
}

/* always_inline, because gcc takes a function that only prefetches for one without effect and drops
 * its calls. */
__attribute__((always_inline)) static inline void prefetch(const struct maker *maker,
							   const struct tally_stack_sort *sort,
							   size_t at, size_t count)
{
	enum { AHEAD = 12 };
	if (at + 2 * AHEAD < count)
		__builtin_prefetch(&sort->stacks.items[sort->keys[at + 2 * AHEAD].stack]);
	if (at + AHEAD >= count)
		return;
	const struct tally_packed_stack *stack = &sort->stacks.items[sort->keys[at + AHEAD].stack];
	__builtin_prefetch(&sort->words.items[stack->at]);
	__builtin_prefetch(&maker->stacks->rows.rows.items[stack->item]);
}

/* Writes the nodes of sorted stacks, for one of the trees. */
struct writing {
	struct maker *maker;
	struct tree_maker *one;
	const struct tally_stack_sort *sort;
	size_t count;
	int status;
};

static void *write_nodes(void *argument)
{
	struct writing *writing = argument;
	const struct maker *maker = writing->maker;
	const struct tally_stack_sort *sort = writing->sort;
	struct tree_maker *one = writing->one;
	for (size_t i = 0; !writing->status && i < writing->count; i++) {
		prefetch(maker, sort, i, writing->count);
		const struct tally_packed_stack *packed = &sort->stacks.items[sort->keys[i].stack];
		const struct tally_row *stack = &maker->stacks->rows.rows.items[packed->item];
		uint64_t weight = weight_of(stack, maker->by_samples);
		uint32_t slot = one->slot_of[stack->class];
		if (maker->unit != 1)
			weight /= maker->unit;
		writing->status = writer_add(&one->writers[slot], &one->sums, slot, sort, packed,
					     weight);
	}
	return NULL;
}

static int write_command(struct maker *maker, struct tally_stack_sort *sort, size_t first,
			 size_t count)
{
	struct writing writings[2];
	pthread_t thread;
	int status = tally_stack_sort_run(sort, first, count);
	if (status)
		return status;
	for (unsigned i = 0; i < maker->tree_count; i++)
		writings[i] = (struct writing){
			.maker = maker, .one = &maker->trees[i], .sort = sort, .count = count
		};
	size_t worth = THREAD_WORTH;
	if (maker->options->threads_from)
		worth = maker->options->threads_from;
	bool has_thread = maker->two_threads && maker->tree_count == 2 && count >= worth &&
			  !tally_thread_start(&thread, write_nodes, &writings[1]);
	for (unsigned i = 0; i < maker->tree_count; i++)
		if (!i || !has_thread)
			write_nodes(&writings[i]);
	if (has_thread)
		pthread_join(thread, NULL);
	if (writings[0].status || maker->tree_count < 2)
		return writings[0].status;
	return writings[1].status;
}

static int write_trees(struct maker *maker)
{
	struct tally_stack_sort sort;
	tally_stack_sort_init(&sort, (uint32_t)maker->stacks->frames.count);
	int status = tally_stack_sort_reserve(&sort, maker->stacks->rows.rows.count,
					      maker->stacks->rows.stacks.count);
	for (uint32_t command = 0; !status && command < maker->trees[0].tree->slots.count;
	     command++)
		status = add_command(maker, &sort, command);
	for (size_t i = 0; !status && i < sort.roots.count; i++) {
		size_t first = sort.roots.items[i].first;
		size_t end = sort.stacks.count;
		if (i + 1 < sort.roots.count)
			end = sort.roots.items[i + 1].first;
		status = write_command(maker, &sort, first, end - first);
	}
	tally_stack_sort_release(&sort);
	return status;
}

/* A node of the tree whose end is not known yet. */
struct joined {
	size_t end; /* its end in the slot's nodes */
	/* In the tree's nodes. `run`: the run directly before the next child, or NO_RUN. */
	uint32_t node, run;
};

/* Appends a slot's nodes to the tree. Leaves out nodes that were kept when they ended but are too
 * light now that `least` is final. */
static int join_slot(struct tally_flame_tree *tree, const struct flame_writer *writer,
		     uint64_t least)
{
	const struct tally_flame_tree from = { .nodes = { .items = writer->nodes.items,
							  .count = writer->nodes.count } };
	struct joined path[TALLY_FLAME_DEPTH_MAX + 2];
	size_t depth = 0;
	for (size_t i = 0; i < from.nodes.count;) {
		struct tally_flame_node node = from.nodes.items[i];
		while (depth && path[depth - 1].end <= i)
			tree->nodes.items[path[--depth].node].end = (uint32_t)tree->nodes.count;
		struct joined *above = NULL;
		if (depth)
			above = &path[depth - 1];
		bool is_run = node.id == TALLY_FLAME_RUN,
		     is_kept = !above || (!is_run && node.total >= least);
		size_t end = node.end;
		if (!is_kept && above->run != NO_RUN) {
			struct tally_flame_node *run = &tree->nodes.items[above->run];
			run->total += node.total;
			run->self += tally_flame_tree_frames(&from, i);
			i = end;
			continue;
		}
		uint32_t place = (uint32_t)tree->nodes.count;
		if (place >= UINT32_MAX - 1)
			return -ENOMEM;
		if (is_kept) {
			path[depth++] = (struct joined){ .end = end, .node = place, .run = NO_RUN };
		} else {
			node.self = tally_flame_tree_frames(&from, i);
			node.id = TALLY_FLAME_RUN;
			node.end = place + 1;
		}
		if (above)
			above->run = is_kept ? NO_RUN : place;
		if (tally_vector_push(&tree->nodes, node) < 0)
			return -ENOMEM;
		i = is_kept ? i + 1 : end;
	}
	while (depth)
		tree->nodes.items[path[--depth].node].end = (uint32_t)tree->nodes.count;
	return 0;
}

/* Puts the root above the nodes of all slots. */
static int join_slots(const struct maker *maker, struct tree_maker *one)
{
	struct tally_flame_tree *tree = one->tree;
	struct tally_flame_node all = { 0 };
	for (size_t slot = 0; slot < tree->slots.count; slot++)
		if (close_nodes(&one->writers[slot], &one->sums, 0) < 0)
			return -ENOMEM;
	tree->least = one->sums.pruning.least;
	if (tally_vector_push(&tree->nodes, all) < 0)
		return -ENOMEM;
	for (size_t slot = 0; slot < tree->slots.count; slot++) {
		struct flame_writer *writer = &one->writers[slot];
		if (join_slot(tree, writer, tree->least) < 0)
			return -ENOMEM;
		if (writer->nodes.count)
			all.total += writer->nodes.items[0].total;
		writer_release(writer);
	}
	all.end = (uint32_t)tree->nodes.count;
	tree->nodes.items[0] = all;
	tree->level_weights[0] = all.total;
	tree->depth_max = one->sums.depth_max;
	for (size_t i = 0; i < maker->stacks->frames.count; i++)
		if (one->sums.used[i])
			tree->kinds[maker->stacks->frames.items[i].kind] = true;
	return 0;
}

static int copy_tree(struct tally_flame_tree *tree, const struct tally_flame_tree *from)
{
	if (tally_vector_reserve(&tree->nodes, from->nodes.count) < 0)
		return -ENOMEM;
	memcpy(tree->nodes.items, from->nodes.items,
	       from->nodes.count * sizeof(*tree->nodes.items));
	memcpy(tree->level_weights, from->level_weights,
	       (TALLY_FLAME_DEPTH_MAX + 2) * sizeof(*tree->level_weights));
	memcpy(tree->kinds, from->kinds, sizeof(tree->kinds));
	tree->nodes.count = from->nodes.count;
	tree->depth_max = from->depth_max;
	tree->least = from->least;
	return 0;
}

static int make_trees(struct maker *maker, struct tally_flame_tree *by_thread,
		      struct tally_flame_tree *by_comm)
{
	const size_t *nodes_max = maker->options->nodes_max;
	const struct tally_stacks *stacks = maker->stacks;
	size_t frames = stacks->frames.count;
	maker->ranks = rank_frames(stacks);
	maker->frame_of = malloc((frames + 1) * sizeof(*maker->frame_of));
	if (!maker->ranks || !maker->frame_of || make_codes(maker) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < frames; i++)
		maker->frame_of[maker->ranks[i]] = i;
	if (start_tree(maker, &maker->trees[0], by_comm, false) < 0 ||
	    start_tree(maker, &maker->trees[1], by_thread, true) < 0)
		return -ENOMEM;
	maker->tree_count = by_comm->slots.count == by_thread->slots.count ? 1 : 2;
	maker->unit = find_unit(stacks, maker->by_samples);
	/* If the trees are equal, one serves as both. */
	size_t comm_max = nodes_max[1];
	if (maker->tree_count == 1)
		comm_max = tally_max_u64(nodes_max[0], nodes_max[1]);
	pruning_init(&maker->trees[0].sums.pruning, comm_max);
	pruning_init(&maker->trees[1].sums.pruning, nodes_max[0]);
	if (sort_by_command(maker) < 0 || write_trees(maker) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < maker->tree_count; i++)
		if (join_slots(maker, &maker->trees[i]) < 0)
			return -ENOMEM;
	if (maker->tree_count == 1)
		return copy_tree(by_thread, by_comm);
	return 0;
}

int tally_flame_trees_build(struct tally_flame_tree *by_thread, struct tally_flame_tree *by_comm,
			    const struct tally_stacks *stacks,
			    const struct tally_flame_tree_options *options)
{
	struct maker maker = {
		.stacks = stacks,
		.options = options,
		.by_samples = options->by_samples && stacks->total_samples,
		.two_threads = tally_cpus_allowed() > 1,
	};
	int status = make_trees(&maker, by_thread, by_comm);
	by_thread->unit = by_comm->unit = maker.unit;
	by_thread->frame_ranks = maker.ranks;
	by_thread->unit_is_sample = by_comm->unit_is_sample = !status && stacks->total_samples &&
							      by_comm->nodes.items[0].total ==
								      stacks->total_samples;
	for (unsigned i = 0; i < 2; i++) {
		struct tree_maker *one = &maker.trees[i];
		for (size_t slot = 0; one->writers && slot < one->tree->slots.count; slot++)
			writer_release(&one->writers[slot]);
		free(one->writers);
		free(one->slot_of);
		free(one->sums.used);
	}
	free(maker.frame_of);
	free(maker.codes);
	free(maker.sorted);
	free(maker.ends);
	return status;
}

/* ---- which nodes are drawn ----------------------------------------------- */

uint64_t tally_flame_tree_frames(const struct tally_flame_tree *tree, size_t index)
{
	const struct tally_flame_node *nodes = tree->nodes.items;
	uint64_t frames = 0;
	for (size_t i = index; i < nodes[index].end; i++) {
		if (nodes[i].id == TALLY_FLAME_RUN)
			frames += nodes[i].self;
		else
			frames += 1;
	}
	return frames;
}

/* Returns the total that at most `rank` nodes exceed. A radix select: from the highest byte on, it
 * counts the nodes that agree with the bytes known so far by their next byte. */
static uint64_t total_of_rank(const struct tally_flame_tree *tree, size_t rank)
{
	uint64_t known = 0, all = tree->nodes.items[0].total;
	for (int shift = all ? (63 - __builtin_clzll(all)) / 8 * 8 : 0; shift >= 0; shift -= 8) {
		size_t counts[256] = { 0 };
		unsigned byte = 255;
		for (size_t i = 0; i < tree->nodes.count; i++) {
			uint64_t total = tree->nodes.items[i].total;
			counts[total >> shift & 255] +=
				tree->nodes.items[i].id != TALLY_FLAME_RUN &&
				(shift == 56 || total >> (shift + 8) == known >> (shift + 8));
		}
		for (; counts[byte] <= rank; byte--)
			rank -= counts[byte];
		known |= (uint64_t)byte << shift;
	}
	return known;
}

uint64_t tally_flame_tree_threshold(const struct tally_flame_tree *tree, size_t nodes_max)
{
	size_t count = 0;
	for (size_t i = 0; i < tree->nodes.count; i++)
		count += tree->nodes.items[i].id != TALLY_FLAME_RUN;
	uint64_t least = 1;
	if (count > nodes_max)
		least = tally_sum_capped(total_of_rank(tree, nodes_max), 1);
	return tally_max_u64(least, tree->least);
}

void tally_flame_tree_release(struct tally_flame_tree *tree)
{
	tally_vector_release(&tree->nodes);
	tally_vector_release(&tree->slots);
	free(tree->frame_ranks);
	free(tree->level_weights);
	*tree = (struct tally_flame_tree){ 0 };
}

const char *tally_flame_node_name(const struct tally_flame_tree *tree,
				  const struct tally_stacks *stacks,
				  const struct tally_flame_node *node)
{
	if (node->depth == 0)
		return "all";
	if (node->depth == 1)
		return tally_strings_text(&stacks->strings, tree->slots.items[node->id].comm);
	return tally_strings_text(&stacks->strings, stacks->frames.items[node->id].name);
}

unsigned tally_flame_node_kind(const struct tally_stacks *stacks,
			       const struct tally_flame_node *node)
{
	if (node->depth < 2)
		return TALLY_FRAME_KINDS;
	return tally_flame_frame_kind(stacks, node->id);
}

unsigned tally_flame_frame_kind(const struct tally_stacks *stacks, uint32_t frame)
{
	const struct tally_frame *one = &stacks->frames.items[frame];
	const char *name = tally_strings_text(&stacks->strings, one->name);
	if (strncmp(name, "[woken by ", 10))
		return one->kind;
	return TALLY_FRAME_KINDS;
}
