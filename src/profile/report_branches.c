/* Call trees of an entry that stands in many places of the tree of all calls: the branches of its places are merged.
 *
 * A group is what one branch stands for: nodes of one function, reached from the entry's places by the same way.
 * Its nodes' children (or callers, where the tree goes up) are sorted into groups by function, and only those that
 * weigh enough to be shown are gone into: a group weighs no more than the one above, so nothing is missed.  That
 * bounds the work where trees are large: a thousandth of the weight takes one look, however many nodes it has.
 */
#include "profile/report_parts.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>

struct found {
	uint32_t node, code;
	uint64_t weight;
};

struct member {
	uint32_t node;
	uint64_t weight;
};

/* Waiting to be gone into; its members are the last of all but for those of groups that came later. */
struct group {
	struct tally_branch_node **list; /* where its branches go */
	size_t first;
};

/* What was found of a function. */
struct bucket {
	uint64_t weight;
	size_t count;     /* then: where its next member goes */
	bool is_heavy;
};

struct merger {
	struct tally_report_builder *builder;
	const struct tally_call_node *nodes;
	const uint32_t *callers;
	struct { struct group *items; size_t count, capacity; } groups;
	struct { struct member *items; size_t count, capacity; } members;
	struct { struct found *items; size_t count, capacity; } found;
	struct bucket *buckets; /* by code; zero between groups */
	struct { uint32_t *items; size_t count, capacity; } codes; /* whose buckets are in use */
};

static int find_one(struct merger *merger, uint32_t node, uint64_t weight)
{
	struct found found = { .node = node, .code = merger->nodes[node].code, .weight = weight };
	struct bucket *bucket = &merger->buckets[found.code];
	if (!bucket->count && tally_vector_push(&merger->codes, found.code) < 0)
		return -ENOMEM;
	bucket->count++;
	bucket->weight += weight;
	return tally_vector_push(&merger->found, found);
}

/* Two nodes that have one caller are one from there on. */
static int find_caller(struct merger *merger, const struct member *member)
{
	uint32_t caller = merger->callers[member->node];
	if (caller == TALLY_REPORT_NONE || merger->callers[caller] == TALLY_REPORT_NONE) /* a root is no frame */
		return 0;
	struct found *last = merger->found.count ? &merger->found.items[merger->found.count - 1] : NULL;
	if (!last || last->node != caller)
		return find_one(merger, caller, member->weight);
	last->weight += member->weight;
	merger->buckets[last->code].weight += member->weight;
	return 0;
}

static int find_next(struct merger *merger, size_t first)
{
	int result = 0;
	for (size_t i = first; !result && i < merger->members.count; i++) {
		const struct member *member = &merger->members.items[i];
		uint32_t end = merger->nodes[member->node].end;
		if (merger->callers)
			result = find_caller(merger, member);
		else
			for (uint32_t child = member->node + 1; !result && child < end; child = merger->nodes[child].end)
				result = find_one(merger, child, merger->nodes[child].total);
	}
	return result;
}

static int by_code_backwards(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x < y) - (x > y);
}

/* Makes branches of what weighs enough, and groups of theirs that wait. */
static int make_branches(struct merger *merger, struct tally_branch_node **list, size_t first)
{
	struct tally_report_builder *builder = merger->builder;
	size_t next = first;
	if (merger->codes.count)
		qsort(merger->codes.items, merger->codes.count, sizeof(*merger->codes.items), by_code_backwards);
	for (size_t i = 0; i < merger->codes.count; i++) {
		struct bucket *bucket = &merger->buckets[merger->codes.items[i]];
		size_t count = bucket->count;
		if (bucket->weight < builder->least)
			continue;
		struct tally_branch_node *branch =
			tally_report_add_branch(builder, list, merger->codes.items[i], bucket->weight);
		struct group group = { .list = branch ? &branch->child : NULL, .first = next };
		if (!branch || tally_vector_push(&merger->groups, group) < 0)
			return -ENOMEM;
		bucket->is_heavy = true;
		bucket->count = next;
		next += count;
	}
	*list = tally_report_sort_branches(*list);
	return tally_vector_reserve(&merger->members, next + 1) ? -ENOMEM : 0;
}

/* Moves what was found into its groups, behind the `first` members that wait already. */
static void move_found(struct merger *merger, size_t first)
{
	merger->members.count = first;
	for (size_t i = 0; i < merger->found.count; i++) {
		const struct found *found = &merger->found.items[i];
		struct bucket *bucket = &merger->buckets[found->code];
		if (!bucket->is_heavy)
			continue;
		merger->members.items[bucket->count++] = (struct member){ found->node, found->weight };
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
		result = find_next(merger, group.first);
		if (!result)
			result = make_branches(merger, group.list, group.first);
		if (!result)
			move_found(merger, group.first);
	}
	return result;
}

int tally_report_make_branches(struct tally_report_builder *builder, const struct tally_call_tree *tree,
			       const uint32_t *callers, const struct tally_report_place *places, size_t count)
{
	struct merger merger = {
		.builder = builder, .nodes = tree->nodes.items, .callers = callers,
		.buckets = calloc((size_t)builder->code_max + 1, sizeof(*merger.buckets)),
	};
	int result = merger.buckets && count ? 0 : -ENOMEM;
	for (size_t i = 0; !result && i < count; i++)
		if (places[i].weight)
			result = tally_vector_push(&merger.members,
						   (struct member){ places[i].node, places[i].weight });
	struct group all = { .list = count ? &builder->report->entries.items[places[0].shown].tree : NULL };
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
