#include "profile/report_model.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each frame of a stack may head a tree of all the frames below it: 8,000 frames in a record of 64 KiB, which nobody's
 * program has, would take 32 million branches. */
enum { BRANCHES_MAX = 4 << 20 };

struct builder {
	const struct tally_profile *profile;
	const struct tally_report_options *options;
	struct tally_report *report;
	struct { struct tally_report_entry *items; size_t count, capacity; } met; /* by number: as they were met */
	struct tally_map index; /* hash of an entry's key → number */
	uint32_t *seen;         /* by number: the last row (+ 1) that was counted in its total */
	size_t seen_capacity;
	size_t branches;
	size_t *place;          /* by number: where it stands in the report; SIZE_MAX: hidden */
};

static const struct tally_function *function_of(const struct builder *builder, uint32_t function)
{
	return &builder->profile->recording->names.functions.items[function];
}

static void make_key(const struct builder *builder, const struct tally_row *row, uint32_t function,
		     uint32_t key[TALLY_SORT_KEYS])
{
	const struct tally_thread *thread = &builder->profile->recording->tasks.threads.items[row->thread];
	const bool *by = builder->options->by;
	bool known = function != UINT32_MAX;
	key[TALLY_SORT_COMM] = by[TALLY_SORT_COMM] ? row->comm : 0;
	key[TALLY_SORT_PID] = by[TALLY_SORT_PID] ? thread->pid : 0;
	key[TALLY_SORT_TID] = by[TALLY_SORT_TID] ? thread->tid : 0;
	key[TALLY_SORT_CPU] = by[TALLY_SORT_CPU] ? row->cpu : 0;
	key[TALLY_SORT_OBJECT] = by[TALLY_SORT_OBJECT] && known ? function_of(builder, function)->object : 0;
	key[TALLY_SORT_SYMBOL] = by[TALLY_SORT_SYMBOL] && known ? function_of(builder, function)->name : 0;
}

/* Number of the entry for a function in a row, made when new; SIZE_MAX when memory is out. */
static size_t entry_of(struct builder *builder, const struct tally_row *row, uint32_t function)
{
	struct tally_report_entry fresh = { .function = function };
	make_key(builder, row, function, fresh.key);
	uint64_t hash = 0;
	for (unsigned i = 0; i < TALLY_SORT_KEYS; i++)
		hash = tally_hash64(hash + fresh.key[i] + 1);
	for (;; hash++) {
		bool added;
		uint64_t *slot = tally_map_put(&builder->index, hash, &added);
		if (!slot)
			return SIZE_MAX;
		if (!added) {
			if (!memcmp(builder->met.items[*slot].key, fresh.key, sizeof(fresh.key)))
				return *slot;
			continue;
		}
		*slot = fresh.number = builder->met.count;
		if (tally_vector_push(&builder->met, fresh) < 0 ||
		    (builder->met.count > builder->seen_capacity &&
		     tally_vector_reserve_((void **)&builder->seen, &builder->seen_capacity, builder->met.count,
					   sizeof(*builder->seen)) < 0))
			return SIZE_MAX;
		builder->seen[*slot] = 0;
		return *slot;
	}
}

static int sum_row(struct builder *builder, uint32_t row_number)
{
	const struct tally_row *row = &builder->profile->rows.items[row_number];
	const struct tally_node *nodes = builder->profile->nodes.items;
	uint32_t node = row->leaf;
	bool is_leaf = true;
	do {
		uint32_t function = node == TALLY_NODE_NONE ? UINT32_MAX : nodes[node].function;
		size_t at = entry_of(builder, row, function);
		if (at == SIZE_MAX)
			return -ENOMEM;
		struct tally_report_entry *entry = &builder->met.items[at];
		if (is_leaf) {
			entry->self += row->period;
			entry->self_samples += row->samples;
		}
		if (builder->seen[at] != row_number + 1) {
			builder->seen[at] = row_number + 1;
			entry->total += row->period;
			entry->total_samples += row->samples;
		}
		is_leaf = false;
		if (node != TALLY_NODE_NONE)
			node = nodes[node].caller;
	} while (builder->options->children && node != TALLY_NODE_NONE);
	return 0;
}

static int compare(uint64_t first_x, uint64_t first_y, uint64_t then_x, uint64_t then_y)
{
	if (first_x != first_y)
		return first_x < first_y ? 1 : -1;
	return then_x == then_y ? 0 : then_x < then_y ? 1 : -1;
}

static int by_total(const void *a, const void *b)
{
	const struct tally_report_entry *x = a, *y = b;
	int order = compare(x->total, y->total, x->self, y->self);
	return order ? order : memcmp(x->key, y->key, sizeof(x->key));
}

static int by_self(const void *a, const void *b)
{
	const struct tally_report_entry *x = a, *y = b;
	int order = compare(x->self, y->self, x->total, y->total);
	return order ? order : memcmp(x->key, y->key, sizeof(x->key));
}

/* The report's entries: those worth showing, sorted. */
static int keep_heaviest(struct builder *builder)
{
	const struct tally_report_options *options = builder->options;
	struct tally_report *report = builder->report;
	double least = options->percent_min / 100 * (double)report->period;
	for (size_t i = 0; i < builder->met.count; i++)
		if ((double)(options->by_self ? builder->met.items[i].self : builder->met.items[i].total) >= least &&
		    tally_vector_push(&report->entries, builder->met.items[i]) < 0)
			return -ENOMEM;
	if (report->entries.count)
		qsort(report->entries.items, report->entries.count, sizeof(*report->entries.items),
		      options->by_self ? by_self : by_total);
	if (options->limit && report->entries.count > options->limit)
		report->entries.count = options->limit;
	report->hidden = builder->met.count - report->entries.count;
	return 0;
}

/* ---- call trees ---------------------------------------------------------------------------------------- */

static bool same_function(const struct builder *builder, uint32_t a, uint32_t b)
{
	const struct tally_function *x = function_of(builder, a), *y = function_of(builder, b);
	return a == b || (x->name == y->name && x->object == y->object);
}

static struct tally_branch_node *branch_for(struct builder *builder, struct tally_branch_node **first,
					    uint32_t function, uint64_t weight)
{
	struct tally_branch_node **link = first;
	while (*link && !same_function(builder, (*link)->function, function))
		link = &(*link)->sibling;
	if (!*link) {
		builder->branches++;
		*link = tally_arena_alloc(&builder->report->arena, sizeof(**link));
		if (!*link)
			return NULL;
		(*link)->function = function;
	}
	(*link)->weight += weight;
	return *link;
}

/* Adds one stack's frames [from, to] (indices into `path`, leaf at 0; from may be above to) below an entry. */
static int add_path(struct builder *builder, struct tally_report_entry *entry, const uint32_t *path, long from,
		    long to, uint64_t weight)
{
	struct tally_branch_node **level = &entry->tree;
	long step = from <= to ? 1 : -1;
	for (long i = from;; i += step) {
		if (builder->branches > BRANCHES_MAX) {
			builder->report->trees_cut = true;
			return 0;
		}
		struct tally_branch_node *branch = branch_for(builder, level, path[i], weight);
		if (!branch)
			return -ENOMEM;
		level = &branch->child;
		if (i == to)
			return 0;
	}
}

/* Adds one stack below the entry of its frame `at`. */
static int add_frame(struct builder *builder, struct tally_report_entry *entry, const uint32_t *path, long at,
		     long depth, uint64_t weight)
{
	if (builder->options->tree == TALLY_TREE_CALLEE)
		return at + 1 < depth ? add_path(builder, entry, path, at + 1, depth - 1, weight) : 0;
	if (!builder->options->children)
		return add_path(builder, entry, path, depth - 1, 0, weight);
	return at > 0 ? add_path(builder, entry, path, at - 1, 0, weight) : 0;
}

/* Adds one stack below each shown entry in it, once: at the outermost of an entry's frames where the tree goes down
 * to callees, at the innermost where it goes up to callers. */
static int add_row_to_trees(struct builder *builder, uint32_t row_number, const uint32_t *path, long depth)
{
	const struct tally_row *row = &builder->profile->rows.items[row_number];
	bool outermost_first = builder->options->tree == TALLY_TREE_CALLER;
	long frames = builder->options->children ? depth : 1;
	for (long i = 0; i < frames; i++) {
		long at = outermost_first ? frames - 1 - i : i;
		size_t number = entry_of(builder, row, path[at]);
		if (number == SIZE_MAX)
			return -ENOMEM;
		if (builder->place[number] == SIZE_MAX || builder->seen[number] == row_number + 1)
			continue;
		builder->seen[number] = row_number + 1;
		struct tally_report_entry *entry = &builder->report->entries.items[builder->place[number]];
		if (add_frame(builder, entry, path, at, depth, row->period) < 0)
			return -ENOMEM;
	}
	return 0;
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

/* Merge sort of a list of siblings. */
static struct tally_branch_node *sort_siblings(struct tally_branch_node *first)
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
	return merge(sort_siblings(first), sort_siblings(half));
}

static struct tally_branch_node *sort_tree(struct tally_branch_node *first)
{
	first = sort_siblings(first);
	for (struct tally_branch_node *branch = first; branch; branch = branch->sibling)
		branch->child = sort_tree(branch->child);
	return first;
}

static int build_trees(struct builder *builder)
{
	const struct tally_profile *profile = builder->profile;
	TALLY_VECTOR(uint32_t) path = { 0 };
	size_t met = builder->met.count;
	int result = 0;
	builder->place = malloc((met + 1) * sizeof(*builder->place));
	if (!builder->place)
		return -ENOMEM;
	memset(builder->place, 0xff, met * sizeof(*builder->place));
	for (size_t i = 0; i < builder->report->entries.count; i++)
		builder->place[builder->report->entries.items[i].number] = i;
	if (met)
		memset(builder->seen, 0, met * sizeof(*builder->seen));
	for (uint32_t i = 0; !result && i < profile->rows.count; i++) {
		const struct tally_row *row = &profile->rows.items[i];
		if (row->event != builder->options->event)
			continue;
		path.count = 0;
		for (uint32_t node = row->leaf; !result && node != TALLY_NODE_NONE;
		     node = profile->nodes.items[node].caller)
			result = tally_vector_push(&path, profile->nodes.items[node].function);
		if (!result && path.count)
			result = add_row_to_trees(builder, i, path.items, (long)path.count);
	}
	for (size_t i = 0; i < builder->report->entries.count; i++)
		builder->report->entries.items[i].tree = sort_tree(builder->report->entries.items[i].tree);
	tally_vector_release(&path);
	return result;
}

static int count_tasks(struct builder *builder)
{
	struct tally_map comms = { 0 }, threads = { 0 };
	int result = 0;
	for (size_t i = 0; i < builder->profile->rows.count; i++) {
		const struct tally_row *row = &builder->profile->rows.items[i];
		if (row->event == builder->options->event &&
		    (!tally_map_put(&comms, row->comm, NULL) || !tally_map_put(&threads, row->thread, NULL)))
			result = -ENOMEM;
	}
	builder->report->comms = comms.count;
	builder->report->threads = threads.count;
	tally_map_release(&comms);
	tally_map_release(&threads);
	return result;
}

int tally_report_build(const struct tally_profile *profile, const struct tally_report_options *options,
		       struct tally_report *report)
{
	struct builder builder = { .profile = profile, .options = options, .report = report };
	*report = (struct tally_report){ 0 };
	tally_profile_totals(profile, options->event, &report->samples, &report->period);
	int result = count_tasks(&builder);
	for (size_t i = 0; !result && i < profile->rows.count; i++)
		if (profile->rows.items[i].event == options->event)
			result = sum_row(&builder, (uint32_t)i);
	if (!result)
		result = keep_heaviest(&builder);
	if (!result && options->tree != TALLY_TREE_NONE)
		result = build_trees(&builder);
	tally_vector_release(&builder.met);
	tally_map_release(&builder.index);
	free(builder.seen);
	free(builder.place);
	if (result < 0)
		tally_report_release(report);
	return result;
}

void tally_report_release(struct tally_report *report)
{
	tally_arena_release(&report->arena);
	tally_vector_release(&report->entries);
}
