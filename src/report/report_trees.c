/* Call trees of a report's entries.
 *
 * Without totals, an entry has the stacks that end in it.  These stacks, sorted from the outermost
 * frame or from the innermost one, are its tree.
 *
 * With totals, an entry has the stacks that pass through it, so a stack is in the trees of all its
 * functions.  The tree of all calls is made once, and the places of each entry in it are found: the
 * outermost ones if trees go down to callees, the innermost ones if they go up to callers, so that
 * each stack counts once.  Then the branches below or above these places are merged
 * (report_branches.c).
 */
#include "report/report_parts.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- branches ------------------------------------------------------------ */

struct tally_branch_node *tally_report_add_branch(struct tally_report_builder *builder,
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
		struct tally_branch_node **heavier = a->weight >= b->weight ? &a : &b;
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

static int add_leaf_rows(struct tally_report_builder *builder, struct tally_report_packer *packer)
{
	size_t entries = builder->report->entries.count;
	size_t *starts = calloc(entries + 2, sizeof(*starts));
	size_t *sorted = starts ? sort_rows_by_entry(builder, starts) : NULL;
	bool from_leaf = builder->options->tree == TALLY_TREE_CALLEE;
	int result = sorted ? 0 : -ENOMEM;
	for (size_t i = 0; !result && i < entries; i++) {
		result = tally_stack_sort_root(&packer->sort, (uint32_t)i);
		for (size_t at = starts[i]; !result && at < starts[i + 1]; at++)
			result = tally_report_packer_add(packer, builder->rows[sorted[at]],
							 from_leaf);
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
		struct tally_branch_node **list =
			path.count ? &branches[path.items[path.count - 1]]->child
				   : &builder->report->entries.items[nodes[root].code].tree;
		branches[i] = builder->branches <= TALLY_BRANCHES_MAX
				      ? tally_report_add_branch(builder, list, nodes[i].code,
								nodes[i].total)
				      : NULL;
		if (!branches[i] && builder->branches > TALLY_BRANCHES_MAX) {
			builder->report->trees_cut = true;
			break;
		}
		result = branches[i] ? tally_vector_push(&path, i) : -ENOMEM;
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
	int result = branches ? 0 : -ENOMEM;
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
	struct tally_report_packer packer;
	struct tally_call_tree tree = { 0 };
	int result = tally_report_packer_init(&packer, builder, false);
	if (!result)
		result = add_leaf_rows(builder, &packer);
	if (!result)
		result = tally_call_tree_build(&tree, &packer.sort, builder->least);
	tally_report_packer_release(&packer);
	if (!result)
		result = copy_trees(builder, &tree);
	tally_call_tree_release(&tree);
	return result;
}

/* ---- with totals: an entry has the stacks that pass through it ----------- */

struct places {
	struct tally_report_place *items;
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
		struct tally_report_place place = { .node = node,
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
	struct tally_report_place place = { .node = node,
					    .end = finder->nodes[node].end,
					    .shown = finder->shown[key],
					    .weight = finder->nodes[node].total };
	struct open_place open = {
		.end = place.end, .key = key, .place = finder->places.count, .before = around
	};
	if (around != SIZE_MAX) /* stacks through this place have it as their innermost one */
		finder->places.items[finder->path.items[around].place].weight -= place.weight;
	finder->open[key] = finder->path.count;
	return tally_vector_push(&finder->path, open) < 0
		       ? -ENOMEM
		       : tally_vector_push(&finder->places, place);
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
	int result = list ? init_finder(finder) : -ENOMEM;
	for (uint32_t root = 0; !result && root < tree->nodes.count;
	     root = finder->nodes[root].end) {
		const struct tally_report_met **here = next;
		for (; next < list + entries && (*next)->root == finder->nodes[root].code; next++) {
			finder->shown[(*next)->key] = (*next)->shown;
			finder->until[(*next)->key] = 0;
		}
		if (next > here)
			result = downwards ? find_outermost(finder, root)
					   : find_innermost(finder, root);
		for (; here < next; here++)
			finder->shown[(*here)->key] = finder->until[(*here)->key] =
				TALLY_REPORT_NONE;
	}
	free(list);
	return result;
}

/* Sorts places by entry, and keeps their order within an entry. */
static struct tally_report_place *sort_places(const struct places *places, size_t entries,
					      size_t *starts)
{
	struct tally_report_place *sorted = malloc((places->count + 1) * sizeof(*sorted));
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
	struct tally_report_place *sorted = starts ? sort_places(places, entries, starts) : NULL;
	int result = sorted ? 0 : -ENOMEM;
	for (size_t i = 0; !result && i < entries; i++)
		if (starts[i + 1] > starts[i])
			result = tally_report_make_branches(builder, tree, callers,
							    sorted + starts[i],
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

static int add_all_rows(const struct tally_report_builder *builder,
			struct tally_report_packer *packer)
{
	int result = 0;
	for (uint32_t root = 0; !result && root < builder->roots.count; root++) {
		result = tally_stack_sort_root(&packer->sort, root);
		for (size_t at = builder->root_rows[root];
		     !result && at < builder->root_rows[root + 1]; at++)
			result = tally_report_packer_add(packer, builder->rows[at], false);
	}
	return result;
}

static int make_passing_trees(struct tally_report_builder *builder)
{
	struct tally_report_packer packer;
	struct tally_call_tree tree = { 0 };
	int result = tally_report_packer_init(&packer, builder, true);
	if (!result)
		result = add_all_rows(builder, &packer);
	if (!result)
		result = tally_call_tree_build(&tree, &packer.sort, 0);
	tally_report_packer_release(&packer);
	struct finder finder = { .builder = builder, .nodes = tree.nodes.items };
	if (!result)
		result = find_places(&finder, &tree);
	bool upwards = builder->options->tree == TALLY_TREE_CALLEE;
	uint32_t *callers = upwards && !result ? find_callers(&tree) : NULL;
	if (upwards && !callers)
		result = -ENOMEM;
	if (!result)
		result = make_all_branches(builder, &tree, callers, &finder.places);
	free(callers);
	release_finder(&finder);
	tally_call_tree_release(&tree);
	return result;
}

int tally_report_make_trees(struct tally_report_builder *builder)
{
	return builder->options->children ? make_passing_trees(builder) : make_leaf_trees(builder);
}
