/* Makes the call tree of an entry that is in many places of the tree of all calls: merges the
 * branches of these places.
 *
 * A group stands for one branch: the nodes of one function that are reached from the entry's places
 * by the same path.  The children of its nodes (or their callers, if the tree goes up) are sorted
 * into groups by function.  Only groups that weigh enough to be shown are followed: a group weighs
 * no more than the one above it, so nothing is missed.  This bounds the work in large trees: a
 * group that is too light is visited only once, however many nodes are below it.
 */
#include "report/report_parts.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>

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
	size_t next;    /* index for the next member */
};

struct merger {
	struct tally_report_builder *builder;
	const struct tally_call_node *nodes;
	const uint32_t *callers;
	struct { struct group *items; size_t count, capacity; } groups;
	struct { struct member *items; size_t count, capacity; } members;
	struct { struct found *items; size_t count, capacity; } found;
	struct bucket *buckets; /* by code; zero between groups */
	/* codes whose buckets are in use */
	struct { uint32_t *items; size_t count, capacity; } codes;
};

/* `leads_on`: the node has to be followed. */
static inline int find_one(struct merger *merger, struct member member, uint32_t code,
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
static int find_children(struct merger *merger, size_t first)
{
	enum { TURNS = 16 };
	struct { uint32_t child, end; } turns[TURNS] = { 0 };
	const struct tally_call_node *nodes = merger->nodes;
	const struct member *members = merger->members.items;
	size_t left = merger->members.count - first, idle = 0;
	int result = 0;
	for (unsigned turn = 0; !result && idle < TURNS; turn = (turn + 1) % TURNS) {
		uint32_t child = turns[turn].child, end = turns[turn].end;
		if (child < end) {
			uint32_t next = nodes[child].end;
			result = find_one(
				merger, (struct member){ .node = child, .end = next },
				tally_report_plain_code(merger->builder, nodes[child].code),
				nodes[child].total, next > child + 1);
			child = next;
		}
		idle = child < end || left ? 0 : idle + 1;
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
static int find_caller(struct merger *merger, const struct member *member)
{
	uint32_t caller = merger->callers[member->node];
	/* a root is not a frame */
	if (caller == TALLY_REPORT_NONE || merger->callers[caller] == TALLY_REPORT_NONE)
		return 0;
	struct found *last = merger->found.count ? &merger->found.items[merger->found.count - 1]
						 : NULL;
	if (!last || last->member.node != caller)
		return find_one(
			merger, (struct member){ .node = caller, .weight = member->weight },
			tally_report_plain_code(merger->builder, merger->nodes[caller].code),
			member->weight, true);
	last->member.weight += member->weight;
	merger->buckets[last->code].weight += member->weight;
	return 0;
}

static int find_callers(struct merger *merger, size_t first)
{
	enum { AHEAD = 16 };
	const struct member *members = merger->members.items;
	const uint32_t *callers = merger->callers;
	size_t count = merger->members.count;
	int result = 0;
	for (size_t i = first; !result && i < count; i++) {
		if (i + 2 * AHEAD < count)
			__builtin_prefetch(&callers[members[i + 2 * AHEAD].node]);
		uint32_t ahead = i + AHEAD < count ? callers[members[i + AHEAD].node]
						   : TALLY_REPORT_NONE;
		if (ahead != TALLY_REPORT_NONE) {
			__builtin_prefetch(&callers[ahead]);
			__builtin_prefetch(&merger->nodes[ahead]);
		}
		result = find_caller(merger, &members[i]);
	}
	return result;
}

static int by_code_backwards(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x < y) - (x > y);
}

/* Makes branches of the functions that weigh enough, and groups to follow. */
static int make_branches(struct merger *merger, struct tally_branch_node **list, size_t first)
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
		struct tally_branch_node *branch = tally_report_add_branch(
			builder, list, merger->codes.items[i], bucket->weight);
		struct group group = { .list = branch ? &branch->child : NULL, .first = next };
		if (!branch || tally_vector_push(&merger->groups, group) < 0)
			return -ENOMEM;
		bucket->is_heavy = true;
		bucket->next = next;
		next += bucket->count;
	}
	*list = tally_report_sort_branches(*list);
	return tally_vector_reserve(&merger->members, next + 1) ? -ENOMEM : 0;
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

static int run(struct merger *merger)
{
	int result = 0;
	while (!result && merger->groups.count) {
		struct group group = merger->groups.items[--merger->groups.count];
		if (merger->builder->branches > TALLY_BRANCHES_MAX) {
			merger->builder->report->trees_cut = true;
			break;
		}
		result = merger->callers ? find_callers(merger, group.first)
					 : find_children(merger, group.first);
		if (!result)
			result = make_branches(merger, group.list, group.first);
		if (!result)
			move_found(merger, group.first);
	}
	return result;
}

int tally_report_make_branches(struct tally_report_builder *builder,
			       const struct tally_call_tree *tree, const uint32_t *callers,
			       const struct tally_report_place *places, size_t count)
{
	struct merger merger = {
		.builder = builder, .nodes = tree->nodes.items, .callers = callers,
		.buckets = calloc((size_t)builder->code_max + 1, sizeof(*merger.buckets)),
	};
	int result = merger.buckets && count ? 0 : -ENOMEM;
	for (size_t i = 0; !result && i < count; i++)
		if (places[i].weight)
			result = tally_vector_push(&merger.members,
						   (struct member){ .node = places[i].node,
								    .end = places[i].end,
								    .weight = places[i].weight });
	struct group all = { .list = count ? &builder->report->entries.items[places[0].shown].tree
					   : NULL };
	if (!result)
		result = tally_vector_push(&merger.groups, all);
	if (!result)
		result = run(&merger);
	free(merger.buckets);
	tally_vector_release(&merger.groups);
	tally_vector_release(&merger.members);
	tally_vector_release(&merger.found);
	tally_vector_release(&merger.codes);
	return result;
}
