/* Call trees of a report's entries.
 *
 * Without totals, an entry has the stacks that end in it.  These stacks, sorted from the outermost
 * frame or from the innermost one, are its tree.
 *
 * With totals, an entry has the stacks that pass through it, so a stack is in the trees of all its
 * functions.  The tree of all calls is made once, and the places of each entry in it are found: the
 * outermost ones if trees go down to callees, the innermost ones if they go up to callers, so that
 * each stack counts once.  Then the branches below or above these places are merged.
 */
#include "report/report_internal.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each frame of a stack may head a tree of all the frames below it.  A record of 64 KiB could hold
 * 8,000 frames and need 32 million branches; no real program comes near. */
enum { BRANCHES_MAX = 4 << 20 };

/* ---- branches ------------------------------------------------------------ */

static struct tally_branch_node *add_branch(struct tally_report_builder *builder,
					    struct tally_branch_node **list, uint32_t code,
					    uint64_t weight)
{
	struct tally_branch_node *branch = tally_arena_alloc(&builder->report->arena,
							     sizeof(*branch));
	if (!branch)
		return NULL;
	*branch = (struct tally_branch_node){
		.function = builder->function_of_code[code], .weight = weight, .sibling = *list,
	};
	*list = branch;
	builder->branches++;
	return branch;
}

static struct tally_branch_node *merge(struct tally_branch_node *a, struct tally_branch_node *b)
{
	struct tally_branch_node *head = NULL, **link = &head;
	while (a && b) {
		struct tally_branch_node **heavier;
		if (a->weight >= b->weight)
			heavier = &a;
		else
			heavier = &b;
		*link = *heavier;
		link = &(*link)->sibling;
		*heavier = (*heavier)->sibling;
	}
	*link = a ? a : b;
	return head;
}

/* Sorts a list of siblings by merging. */
struct tally_branch_node *tally_report_sort_branches(struct tally_branch_node *first)
{
	if (!first || !first->sibling)
		return first;
	struct tally_branch_node *slow = first, *fast = first->sibling;
	while (fast && fast->sibling) {
		slow = slow->sibling;
		fast = fast->sibling->sibling;
	}
	struct tally_branch_node *half = slow->sibling;
	slow->sibling = NULL;
	return merge(tally_report_sort_branches(first), tally_report_sort_branches(half));
}

/* ---- packed stacks ------------------------------------------------------- */

/* Packs the stacks of the profile's rows for sorting (stacks.h): the codes of frames go
 * directly into words.  For trees that go down from the outermost frame, a stack is read from its
 * end: only the last byte of a place is below 0x80. */
struct packer {
	const struct tally_report_builder *builder;
	struct tally_stack_sort sort;
	uint32_t *code_of_place; /* code of a place's only frame; 0: it has several */
	uint32_t frames_max;     /* maximum number of frames in a place */
	bool heads;              /* frames have the codes of entries */
};

/* Returns the code of a frame of a place. */
static uint32_t frame_code(const struct packer *packer, uint32_t place, uint32_t frame)
{
	uint32_t code = tally_report_frame_head(packer->builder, place, frame);
	if (packer->heads)
		return code;
	return tally_report_plain_code(packer->builder, code);
}

static int init_packer(struct packer *packer, const struct tally_report_builder *builder,
		       bool heads)
{
	const struct tally_profile *profile = builder->profile;
	size_t count = profile->places.places.count;
	*packer = (struct packer){
		.builder = builder,
		.code_of_place = malloc((count + 1) * sizeof(*packer->code_of_place)),
		.frames_max = 1,
		.heads = heads,
	};
	tally_stack_sort_init(&packer->sort, heads ? builder->head_max : builder->code_max);
	if (!packer->code_of_place)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct tally_place_name *name = &profile->names[i];
		if (name->count == 1)
			packer->code_of_place[i] = frame_code(packer, (uint32_t)i, 0);
		else
			packer->code_of_place[i] = 0;
		if (name->count > packer->frames_max)
			packer->frames_max = name->count;
	}
	/* enough if every place is one frame and one byte, as most are */
	return tally_call_tree_reserve(&packer->sort, profile->rows.rows.count,
				       profile->rows.stacks.count);
}

static void release_packer(struct packer *packer)
{
	tally_stack_sort_release(&packer->sort);
	free(packer->code_of_place);
	packer->code_of_place = NULL;
}

/* Puts the frames of a place with inlined functions, the outermost one first. */
static void put_inlined(const struct packer *packer, struct tally_stack_packer *stack,
			uint32_t place)
{
	for (uint32_t left = packer->builder->profile->names[place].count; left; left--)
		tally_stack_sort_put(&packer->sort, stack, frame_code(packer, place, left - 1));
}

/* Puts the frames of a place that are around the first `skipped` ones, the innermost one first. */
static inline void put_callers(const struct packer *packer, struct tally_stack_packer *stack,
			       uint32_t place, uint32_t skipped)
{
	for (uint32_t i = skipped; i < packer->builder->profile->names[place].count; i++)
		tally_stack_sort_put(&packer->sort, stack, frame_code(packer, place, i));
}

static inline uint32_t previous_place(const uint8_t *start, const uint8_t **end)
{
	uint32_t place = *--*end;
	while (*end > start && (*end)[-1] >= 0x80)
		place = place << 7 | (*--*end & 0x7f);
	return place;
}

/* tally_stack_sort_put() for the last places that have one frame each, with everything in
 * registers.  Returns the end of the places that are left. */
static inline const uint8_t *put_simple(const struct packer *packer,
					struct tally_stack_packer *stack, const uint8_t *start,
					const uint8_t *end)
{
	const uint32_t *code_of_place = packer->code_of_place;
	const unsigned bits = packer->sort.bits;
	unsigned shift = stack->shift;
	uint64_t word = stack->word, *at = stack->at;
	uint32_t frames = stack->frames;
	while (end > start) {
		const uint8_t *before = end;
		uint32_t code = code_of_place[previous_place(start, &before)];
		if (__builtin_expect(!code, 0))
			break;
		end = before;
		frames++;
		shift -= bits;
		word |= (uint64_t)code << shift;
		if (shift < bits) {
			*at++ = word;
			word = 0;
			shift = 64;
		}
	}
	*stack = (struct tally_stack_packer){
		.at = at, .word = word, .shift = shift, .frames = frames
	};
	return end;
}

static void put_downwards(const struct packer *packer, struct tally_stack_packer *stack,
			  const uint8_t *start, const uint8_t *end)
{
	while ((end = put_simple(packer, stack, start, end)) > start)
		put_inlined(packer, stack, previous_place(start, &end));
}

static void put_upwards(const struct packer *packer, struct tally_stack_packer *stack,
			const uint8_t *next, const uint8_t *end)
{
	if (next < end)
		put_callers(packer, stack, tally_stack_next_place(&next), 1);
	while (next < end)
		put_callers(packer, stack, tally_stack_next_place(&next), 0);
}

static int pack_row(struct packer *packer, uint32_t row, bool from_leaf)
{
	const struct tally_row_table *rows = &packer->builder->profile->rows;
	const uint8_t *end, *start = tally_row_stack(rows, row, &end);
	size_t frames_max = (size_t)(end - start) * packer->frames_max;
	struct tally_stack_packer stack;
	if (tally_call_tree_begin(&packer->sort, &stack, frames_max, rows->rows.items[row].period) <
	    0)
		return -ENOMEM;
	if (from_leaf)
		put_upwards(packer, &stack, start, end);
	else
		put_downwards(packer, &stack, start, end);
	return tally_stack_sort_end(&packer->sort, &stack, row);
}

/* ---- without totals: each entry has the stacks that end in it ------------ */

/* Sorts indices into builder->rows by the entry that shows them. */
static size_t *sort_rows_by_entry(const struct tally_report_builder *builder, size_t *starts)
{
	size_t count = builder->root_rows[builder->roots.count], sum = 0;
	size_t *sorted = malloc((count + 1) * sizeof(*sorted));
	for (size_t at = 0; sorted && at < count; at++) {
		uint32_t shown = builder->met.items[builder->leaf_entry[at]].shown;
		if (shown != TALLY_REPORT_NONE)
			starts[shown + 1]++;
	}
	for (size_t i = 0; i <= builder->report->entries.count; i++) {
		size_t here = starts[i + 1];
		starts[i + 1] = sum;
		sum += here;
	}
	for (size_t at = 0; sorted && at < count; at++) {
		uint32_t shown = builder->met.items[builder->leaf_entry[at]].shown;
		if (shown != TALLY_REPORT_NONE)
			sorted[starts[shown + 1]++] = at;
	}
	return sorted;
}

static int add_leaf_rows(struct tally_report_builder *builder, struct packer *packer)
{
	size_t entries = builder->report->entries.count;
	size_t *starts = calloc(entries + 2, sizeof(*starts));
	size_t *sorted = NULL;
	if (starts)
		sorted = sort_rows_by_entry(builder, starts);
	bool from_leaf = builder->options->tree == TALLY_TREE_CALLEE;
	int result = 0;
	if (!sorted)
		result = -ENOMEM;
	for (size_t i = 0; !result && i < entries; i++) {
		result = tally_stack_sort_root(&packer->sort, (uint32_t)i);
		for (size_t at = starts[i]; !result && at < starts[i + 1]; at++)
			result = pack_row(packer, builder->rows[sorted[at]], from_leaf);
	}
	free(sorted);
	free(starts);
	return result;
}

/* Copies the branches below an entry's root. */
static int copy_tree(struct tally_report_builder *builder, const struct tally_call_tree *tree,
		     uint32_t root, struct tally_branch_node **branches)
{
	const struct tally_call_node *nodes = tree->nodes.items;
	struct { uint32_t *items; size_t count, capacity; } path = { 0 }; /* open nodes */
	int result = 0;
	/* branches are put first in their lists, which end up reversed: reverse_branches() restores
	 * the order of codes */
	for (uint32_t i = root + 1; !result && i < nodes[root].end; i++) {
		while (path.count && nodes[path.items[path.count - 1]].end <= i)
			path.count--;
		struct tally_branch_node **list;
		if (path.count)
			list = &branches[path.items[path.count - 1]]->child;
		else
			list = &builder->report->entries.items[nodes[root].code].tree;
		if (builder->branches <= BRANCHES_MAX)
			branches[i] = add_branch(builder, list, nodes[i].code, nodes[i].total);
		else
			branches[i] = NULL;
		if (!branches[i] && builder->branches > BRANCHES_MAX) {
			builder->report->trees_cut = true;
			break;
		}
		if (branches[i])
			result = tally_vector_push(&path, i);
		else
			result = -ENOMEM;
	}
	tally_vector_release(&path);
	return result;
}

static struct tally_branch_node *reverse_branches(struct tally_branch_node *first)
{
	struct tally_branch_node *reversed = NULL;
	while (first) {
		struct tally_branch_node *next = first->sibling;
		first->sibling = reversed;
		reversed = first;
		first = next;
	}
	return reversed;
}

static int copy_trees(struct tally_report_builder *builder, const struct tally_call_tree *tree)
{
	const struct tally_call_node *nodes = tree->nodes.items;
	struct tally_branch_node **branches = calloc(tree->nodes.count + 1,
						     sizeof(struct tally_branch_node *));
	int result = 0;
	if (!branches)
		result = -ENOMEM;
	for (uint32_t root = 0; !result && root < tree->nodes.count; root = nodes[root].end)
		result = copy_tree(builder, tree, root, branches);
	for (size_t i = 0; !result && i < tree->nodes.count; i++)
		if (branches[i])
			branches[i]->child = tally_report_sort_branches(
				reverse_branches(branches[i]->child));
	for (size_t i = 0; !result && i < builder->report->entries.count; i++) {
		struct tally_report_entry *entry = &builder->report->entries.items[i];
		entry->tree = tally_report_sort_branches(reverse_branches(entry->tree));
	}
	free(branches);
	return result;
}

static int make_leaf_trees(struct tally_report_builder *builder)
{
	struct packer packer;
	struct tally_call_tree tree = { 0 };
	int result = init_packer(&packer, builder, false);
	if (!result)
		result = add_leaf_rows(builder, &packer);
	if (!result)
		result = tally_call_tree_build(&tree, &packer.sort, builder->least);
	release_packer(&packer);
	if (result)
		goto out;
	result = copy_trees(builder, &tree);
out:
	tally_call_tree_release(&tree);
	return result;
}

/* ---- merged branches ----------------------------------------------------- */

/* A node that heads an entry's tree, or one of several whose branches are merged. */
struct found_place {
	uint32_t node, end; /* end: nodes[node].end */
	uint32_t shown;     /* the entry's index in the report */
	uint64_t weight;
};

/* Makes the call tree of an entry that is in many places of the tree of all calls: merges the
 * branches of these places.
 *
 * A group stands for one branch: the nodes of one function that are reached from the entry's places
 * by the same path.  The children of its nodes (or their callers, if the tree goes up) are sorted
 * into groups by function.  Only groups that weigh enough to be shown are followed: a group weighs
 * no more than the one above it, so nothing is missed.  This bounds the work in large trees: a
 * group that is too light is visited only once, however many nodes are below it.
 */
/* A node of a group. */
struct member {
	uint32_t node;
	uint32_t end;    /* if the tree goes down: nodes[node].end */
	uint64_t weight; /* if the tree goes up */
};

struct found {
	struct member member;
	uint32_t code;
};

/* A group to be followed.  Its members are the last ones, except for those of groups that were
 * added later. */
struct group {
	struct tally_branch_node **list; /* list that its branches are added to */
	size_t first;
};

/* The nodes that were found for one function. */
struct bucket {
	uint64_t weight;
	uint32_t count; /* number of nodes to follow */
	bool is_used, is_heavy;
	size_t next; /* index for the next member */
};

struct merger {
	struct tally_report_builder *builder;
	const struct tally_call_node *nodes;
	const uint32_t *callers;
	struct {
		struct group *items;
		size_t count, capacity;
	} groups;
	struct {
		struct member *items;
		size_t count, capacity;
	} members;
	struct {
		struct found *items;
		size_t count, capacity;
	} found;
	struct bucket *buckets; /* by code; zero between groups */
	/* codes whose buckets are in use */
	struct {
		uint32_t *items;
		size_t count, capacity;
	} codes;
};

/* `leads_on`: the node has to be followed. */
static inline int gather(struct merger *merger, struct member member, uint32_t code,
			 uint64_t weight, bool leads_on)
{
	struct bucket *bucket = &merger->buckets[code];
	if ((!bucket->is_used && tally_vector_push(&merger->codes, code) < 0) ||
	    tally_vector_reserve(&merger->found, merger->found.count + 1) < 0)
		return -ENOMEM;
	bucket->is_used = true;
	bucket->weight += weight;
	bucket->count += leads_on;
	merger->found.items[merger->found.count] = (struct found){ member, code };
	merger->found.count += leads_on;
	return 0;
}

/* Members and their children are all over the tree, and each child tells where the next one is.  So
 * the loop visits many members in turns, and prefetches memory one turn ahead. */
static int gather_children(struct merger *merger, size_t first)
{
	enum { TURNS = 16 };
	struct {
		uint32_t child, end;
	} turns[TURNS] = { 0 };
	const struct tally_call_node *nodes = merger->nodes;
	const struct member *members = merger->members.items;
	size_t left = merger->members.count - first, idle = 0;
	int result = 0;
	for (unsigned turn = 0; !result && idle < TURNS; turn = (turn + 1) % TURNS) {
		uint32_t child = turns[turn].child, end = turns[turn].end;
		if (child < end) {
			uint32_t next = nodes[child].end;
			result = gather(merger, (struct member){ .node = child, .end = next },
					tally_report_plain_code(merger->builder, nodes[child].code),
					nodes[child].total, next > child + 1);
			child = next;
		}
		if (child < end || left)
			idle = 0;
		else
			idle = idle + 1;
		if (child >= end && left) {
			const struct member *member = &members[first++];
			child = member->node + 1;
			end = member->end;
			left--;
		}
		turns[turn].child = child;
		turns[turn].end = end;
		__builtin_prefetch(&nodes[child]);
	}
	return result;
}

/* Two nodes with the same caller are merged into one member. */
static int gather_caller(struct merger *merger, const struct member *member)
{
	uint32_t caller = merger->callers[member->node];
	/* a root is not a frame */
	if (caller == TALLY_REPORT_NONE || merger->callers[caller] == TALLY_REPORT_NONE)
		return 0;
	struct found *last = NULL;
	if (merger->found.count)
		last = &merger->found.items[merger->found.count - 1];
	if (!last || last->member.node != caller)
		return gather(merger, (struct member){ .node = caller, .weight = member->weight },
			      tally_report_plain_code(merger->builder, merger->nodes[caller].code),
			      member->weight, true);
	last->member.weight += member->weight;
	merger->buckets[last->code].weight += member->weight;
	return 0;
}

static int gather_callers(struct merger *merger, size_t first)
{
	enum { AHEAD = 16 };
	const struct member *members = merger->members.items;
	const uint32_t *callers = merger->callers;
	size_t count = merger->members.count;
	int result = 0;
	for (size_t i = first; !result && i < count; i++) {
		if (i + 2 * AHEAD < count)
			__builtin_prefetch(&callers[members[i + 2 * AHEAD].node]);
		uint32_t ahead = TALLY_REPORT_NONE;
		if (i + AHEAD < count)
			ahead = callers[members[i + AHEAD].node];
		if (ahead != TALLY_REPORT_NONE) {
			__builtin_prefetch(&callers[ahead]);
			__builtin_prefetch(&merger->nodes[ahead]);
		}
		result = gather_caller(merger, &members[i]);
	}
	return result;
}

static int by_code_backwards(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x < y) - (x > y);
}

/* Makes branches of the functions that weigh enough, and groups to follow. */
static int add_heavy(struct merger *merger, struct tally_branch_node **list, size_t first)
{
	struct tally_report_builder *builder = merger->builder;
	size_t next = first;
	if (merger->codes.count)
		qsort(merger->codes.items, merger->codes.count, sizeof(*merger->codes.items),
		      by_code_backwards);
	for (size_t i = 0; i < merger->codes.count; i++) {
		struct bucket *bucket = &merger->buckets[merger->codes.items[i]];
		if (bucket->weight < builder->least)
			continue;
		struct tally_branch_node *branch = add_branch(builder, list, merger->codes.items[i],
							      bucket->weight);
		struct group group = { .list = branch ? &branch->child : NULL, .first = next };
		if (!branch || tally_vector_push(&merger->groups, group) < 0)
			return -ENOMEM;
		bucket->is_heavy = true;
		bucket->next = next;
		next += bucket->count;
	}
	*list = tally_report_sort_branches(*list);
	if (tally_vector_reserve(&merger->members, next + 1))
		return -ENOMEM;
	return 0;
}

/* Moves what was found to the new groups, after the `first` members that are already waiting. */
static void move_found(struct merger *merger, size_t first)
{
	merger->members.count = first;
	for (size_t i = 0; i < merger->found.count; i++) {
		const struct found *found = &merger->found.items[i];
		struct bucket *bucket = &merger->buckets[found->code];
		if (!bucket->is_heavy)
			continue;
		merger->members.items[bucket->next++] = found->member;
		merger->members.count++;
	}
	for (size_t i = 0; i < merger->codes.count; i++)
		merger->buckets[merger->codes.items[i]] = (struct bucket){ 0 };
	merger->codes.count = merger->found.count = 0;
}

static int follow_groups(struct merger *merger)
{
	while (merger->groups.count) {
		int result;
		struct group group = merger->groups.items[--merger->groups.count];
		if (merger->builder->branches > BRANCHES_MAX) {
			merger->builder->report->trees_cut = true;
			break;
		}
		if (merger->callers)
			result = gather_callers(merger, group.first);
		else
			result = gather_children(merger, group.first);
		if (result)
			return result;
		result = add_heavy(merger, group.list, group.first);
		if (result)
			return result;
		move_found(merger, group.first);
	}
	return 0;
}

static int make_branches_of_entry(struct tally_report_builder *builder,
				  const struct tally_call_tree *tree, const uint32_t *callers,
				  const struct found_place *places, size_t count)
{
	struct merger merger = {
		.builder = builder,
		.nodes = tree->nodes.items,
		.callers = callers,
		.buckets = calloc((size_t)builder->code_max + 1, sizeof(*merger.buckets)),
	};
	int result = -ENOMEM;
	if (!merger.buckets || !count)
		goto out;
	for (size_t i = 0; i < count; i++) {
		const struct member member = { .node = places[i].node,
					       .end = places[i].end,
					       .weight = places[i].weight };
		if (member.weight && tally_vector_push(&merger.members, member) < 0)
			goto out;
	}
	const struct group all = { .list = &builder->report->entries.items[places[0].shown].tree };
	if (tally_vector_push(&merger.groups, all) < 0)
		goto out;
	result = follow_groups(&merger);
out:
	free(merger.buckets);
	tally_vector_release(&merger.groups);
	tally_vector_release(&merger.members);
	tally_vector_release(&merger.found);
	tally_vector_release(&merger.codes);
	return result;
}

/* ---- with totals: an entry has the stacks that pass through it ----------- */

struct places {
	struct found_place *items;
	size_t count, capacity;
};

/* A place that contains the current node. */
struct open_place {
	uint32_t end, key;
	size_t place;
	size_t before; /* index of the open place with the same key around it; SIZE_MAX: none */
};

struct finder {
	const struct tally_report_builder *builder;
	const struct tally_call_node *nodes;
	uint32_t *shown; /* by key, in this root: the entry; TALLY_REPORT_NONE: not shown */
	/* for trees that go down, by key: the end of its last place; UINT32_MAX: not shown */
	uint32_t *until;
	/* for trees that go up, by key: index in `path` of the innermost open place; SIZE_MAX:
	 * none */
	size_t *open;
	struct { struct open_place *items; size_t count, capacity; } path;
	struct places places;
};

/* Finds the outermost places: another node of the same key is either within the last place or after
 * it. */
static int find_outermost(struct finder *finder, uint32_t root)
{
	const struct tally_call_node *nodes = finder->nodes;
	const uint32_t *key_of_code = finder->builder->key_of_code;
	uint32_t *until = finder->until;
	for (uint32_t node = root + 1, last = nodes[root].end; node < last; node++) {
		uint32_t key = key_of_code[nodes[node].code];
		if (key == TALLY_REPORT_NONE || node < until[key])
			continue;
		struct found_place place = { .node = node,
					     .end = nodes[node].end,
					     .shown = finder->shown[key],
					     .weight = nodes[node].total };
		until[key] = place.end;
		if (place.end > node + 1 && tally_vector_push(&finder->places, place) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void close_places(struct finder *finder, uint32_t node)
{
	while (finder->path.count && finder->path.items[finder->path.count - 1].end <= node) {
		const struct open_place *last = &finder->path.items[--finder->path.count];
		finder->open[last->key] = last->before;
	}
}

static int add_innermost(struct finder *finder, uint32_t node, uint32_t key)
{
	size_t around = finder->open[key];
	struct found_place place = { .node = node,
				     .end = finder->nodes[node].end,
				     .shown = finder->shown[key],
				     .weight = finder->nodes[node].total };
	struct open_place open = {
		.end = place.end, .key = key, .place = finder->places.count, .before = around
	};
	if (around != SIZE_MAX) /* stacks through this place have it as their innermost one */
		finder->places.items[finder->path.items[around].place].weight -= place.weight;
	finder->open[key] = finder->path.count;
	if (tally_vector_push(&finder->path, open) < 0)
		return -ENOMEM;
	return tally_vector_push(&finder->places, place);
}

static int find_innermost(struct finder *finder, uint32_t root)
{
	uint32_t end = finder->nodes[root].end;
	int result = 0;
	for (uint32_t node = root + 1; !result && node < end; node++) {
		uint32_t key = finder->builder->key_of_code[finder->nodes[node].code];
		if (key == TALLY_REPORT_NONE || finder->shown[key] == TALLY_REPORT_NONE)
			continue;
		close_places(finder, node);
		result = add_innermost(finder, node, key);
	}
	close_places(finder, UINT32_MAX);
	return result;
}

static int by_root(const void *a, const void *b)
{
	const struct tally_report_met *x = *(const struct tally_report_met *const *)a;
	const struct tally_report_met *y = *(const struct tally_report_met *const *)b;
	return (x->root > y->root) - (x->root < y->root);
}

/* Returns the entries that are shown, by root; NULL when memory is out. */
static const struct tally_report_met **list_shown(const struct tally_report_builder *builder)
{
	const struct tally_report_met **list = malloc((builder->report->entries.count + 1) *
						      sizeof(*list));
	size_t count = 0;
	for (size_t i = 0; list && i < builder->met.count; i++)
		if (builder->met.items[i].shown != TALLY_REPORT_NONE)
			list[count++] = &builder->met.items[i];
	if (list)
		qsort(list, count, sizeof(*list), by_root);
	return list;
}

static int init_finder(struct finder *finder)
{
	size_t keys = finder->builder->keys.count;
	finder->shown = malloc((keys + 1) * sizeof(*finder->shown));
	finder->until = malloc((keys + 1) * sizeof(*finder->until));
	finder->open = malloc((keys + 1) * sizeof(*finder->open));
	if (!finder->shown || !finder->until || !finder->open)
		return -ENOMEM;
	memset(finder->shown, 0xff, (keys + 1) * sizeof(*finder->shown));
	memset(finder->until, 0xff, (keys + 1) * sizeof(*finder->until));
	memset(finder->open, 0xff, (keys + 1) * sizeof(*finder->open));
	return 0;
}

static void release_finder(struct finder *finder)
{
	free(finder->shown);
	free(finder->until);
	free(finder->open);
	tally_vector_release(&finder->path);
	tally_vector_release(&finder->places);
}

static int find_places(struct finder *finder, const struct tally_call_tree *tree)
{
	const struct tally_report_builder *builder = finder->builder;
	const struct tally_report_met **list = list_shown(builder), **next = list;
	size_t entries = builder->report->entries.count;
	bool downwards = builder->options->tree == TALLY_TREE_CALLER;
	int result = -ENOMEM;
	if (list)
		result = init_finder(finder);
	for (uint32_t root = 0; !result && root < tree->nodes.count;
	     root = finder->nodes[root].end) {
		const struct tally_report_met **here = next;
		for (; next < list + entries && (*next)->root == finder->nodes[root].code; next++) {
			finder->shown[(*next)->key] = (*next)->shown;
			finder->until[(*next)->key] = 0;
		}
		if (next > here && downwards)
			result = find_outermost(finder, root);
		else if (next > here)
			result = find_innermost(finder, root);
		for (; here < next; here++)
			finder->shown[(*here)->key] = finder->until[(*here)->key] =
				TALLY_REPORT_NONE;
	}
	free(list);
	return result;
}

/* Sorts places by entry, and keeps their order within an entry. */
static struct found_place *sort_places(const struct places *places, size_t entries, size_t *starts)
{
	struct found_place *sorted = malloc((places->count + 1) * sizeof(*sorted));
	size_t sum = 0;
	for (size_t i = 0; i < places->count; i++)
		starts[places->items[i].shown + 1]++;
	for (size_t i = 0; i <= entries; i++) {
		size_t here = starts[i + 1];
		starts[i + 1] = sum;
		sum += here;
	}
	for (size_t i = 0; sorted && i < places->count; i++)
		sorted[starts[places->items[i].shown + 1]++] = places->items[i];
	return sorted;
}

static int make_all_branches(struct tally_report_builder *builder,
			     const struct tally_call_tree *tree, const uint32_t *callers,
			     const struct places *places)
{
	size_t entries = builder->report->entries.count;
	size_t *starts = calloc(entries + 2, sizeof(*starts));
	struct found_place *sorted = NULL;
	if (starts)
		sorted = sort_places(places, entries, starts);
	int result = 0;
	if (!sorted)
		result = -ENOMEM;
	for (size_t i = 0; !result && i < entries; i++)
		if (starts[i + 1] > starts[i])
			result = make_branches_of_entry(builder, tree, callers, sorted + starts[i],
							starts[i + 1] - starts[i]);
	free(sorted);
	free(starts);
	return result;
}

/* Returns an array by node: the node above; TALLY_REPORT_NONE for a root. */
static uint32_t *find_callers(const struct tally_call_tree *tree)
{
	const struct tally_call_node *nodes = tree->nodes.items;
	uint32_t *callers = malloc((tree->nodes.count + 1) * sizeof(*callers));
	for (uint32_t root = 0; callers && root < tree->nodes.count; root = nodes[root].end)
		callers[root] = TALLY_REPORT_NONE;
	for (uint32_t node = 0; callers && node < tree->nodes.count; node++)
		for (uint32_t child = node + 1; child < nodes[node].end; child = nodes[child].end)
			callers[child] = node;
	return callers;
}

static int add_all_rows(const struct tally_report_builder *builder, struct packer *packer)
{
	int result = 0;
	for (uint32_t root = 0; !result && root < builder->roots.count; root++) {
		result = tally_stack_sort_root(&packer->sort, root);
		for (size_t at = builder->root_rows[root];
		     !result && at < builder->root_rows[root + 1]; at++)
			result = pack_row(packer, builder->rows[at], false);
	}
	return result;
}

static int make_passing_trees(struct tally_report_builder *builder)
{
	struct packer packer;
	struct tally_call_tree tree = { 0 };
	struct finder finder = { .builder = builder };
	uint32_t *callers = NULL;
	int result = init_packer(&packer, builder, true);
	if (!result)
		result = add_all_rows(builder, &packer);
	if (!result)
		result = tally_call_tree_build(&tree, &packer.sort, 0);
	release_packer(&packer);
	if (result)
		goto out;
	finder.nodes = tree.nodes.items;
	result = find_places(&finder, &tree);
	if (result)
		goto out;
	if (builder->options->tree == TALLY_TREE_CALLEE) {
		callers = find_callers(&tree);
		if (callers)
			result = 0;
		else
			result = -ENOMEM;
	}
	if (!result)
		result = make_all_branches(builder, &tree, callers, &finder.places);
out:
	free(callers);
	release_finder(&finder);
	tally_call_tree_release(&tree);
	return result;
}

int tally_report_make_trees(struct tally_report_builder *builder)
{
	if (builder->options->children)
		return make_passing_trees(builder);
	return make_leaf_trees(builder);
}
