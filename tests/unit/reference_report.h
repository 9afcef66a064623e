/* A simple report: it walks each stack of the profile for each sum and each tree that the stack
 * belongs to.  profile/report_*.c must give the same result. */
#ifndef TALLY_TEST_REFERENCE_REPORT_H
#define TALLY_TEST_REFERENCE_REPORT_H

#include "base/vector.h"
#include "report/report_internal.h"

#include <stdlib.h>
#include <string.h>

struct reference_branch {
	uint32_t function;
	uint64_t weight;
	struct reference_branch *child, *sibling;
};

struct reference_entry {
	uint32_t key[TALLY_SORT_KEYS];
	uint64_t self, total, self_samples, total_samples;
	size_t seen; /* index of the last row counted, + 1 */
	size_t next; /* index + 1 of the next entry whose keys have the same hash */
	struct reference_branch *tree;
};

struct reference_report {
	const struct tally_profile *profile;
	const struct tally_report_options *options;
	struct { struct reference_entry *items; size_t count, capacity; } entries;
	/* functions of a stack, leaf first */
	struct { uint32_t *items; size_t count, capacity; } path;
	/* by frame of the path: its place, and its number among the place's frames */
	struct { uint32_t *items; size_t count, capacity; } places, numbers;
	uint32_t *symbols; /* by function: its name among those of all objects */
	uint64_t period, samples;
	size_t first_of[1024]; /* by hash of the keys: index of the entry + 1 */
};

static inline size_t reference_hash(const uint32_t key[TALLY_SORT_KEYS])
{
	uint64_t hash = 0;
	for (unsigned i = 0; i < TALLY_SORT_KEYS; i++)
		hash = (hash ^ key[i]) * 0x9e3779b97f4a7c15ull;
	return hash >> 54;
}

/* Returns the entry with these keys, or NULL. */
static inline struct reference_entry *reference_find(const struct reference_report *report,
						     const uint32_t key[TALLY_SORT_KEYS])
{
	for (size_t i = report->first_of[reference_hash(key)]; i;
	     i = report->entries.items[i - 1].next)
		if (!memcmp(report->entries.items[i - 1].key, key,
			    sizeof(report->entries.items[i - 1].key)))
			return &report->entries.items[i - 1];
	return NULL;
}

static inline const struct tally_function *reference_function(const struct reference_report *report,
							      uint32_t function)
{
	return &report->profile->recording->names.functions.items[function];
}

/* Returns a function's name, or its plain name if it has none: functions without a symbol differ
 * only by their start. */
static inline uint32_t reference_name(const struct tally_function *function)
{
	return function->name == TALLY_STRING_NONE ? function->plain : function->name;
}

/* Returns what a row by symbol shows: also the object if names are shared and it has no column. */
static inline uint32_t reference_symbol(const struct reference_report *report, uint32_t function)
{
	return report->options->by[TALLY_SORT_OBJECT]
		       ? reference_name(reference_function(report, function))
		       : report->symbols[function];
}

static inline bool reference_same(const struct reference_report *report, uint32_t a, uint32_t b)
{
	const struct tally_function *x = reference_function(report, a),
				    *y = reference_function(report, b);
	return reference_name(x) == reference_name(y) && x->object == y->object &&
	       (x->kind == TALLY_FRAME_INLINED) == (y->kind == TALLY_FRAME_INLINED);
}

static inline void reference_path(struct reference_report *report, size_t row)
{
	const uint8_t *end, *at = tally_row_stack(&report->profile->rows, row, &end);
	report->path.count = report->places.count = report->numbers.count = 0;
	while (at < end) {
		uint32_t place = tally_stack_next_place(&at);
		const struct tally_place_name *name = &report->profile->names[place];
		for (uint32_t i = 0; i < name->count; i++) {
			assert_int_equal(tally_vector_push(&report->path,
							   report->profile->recording->names.frames
								   .items[name->first + i]
								   .function),
					 0);
			assert_int_equal(tally_vector_push(&report->places, place), 0);
			assert_int_equal(tally_vector_push(&report->numbers, i), 0);
		}
	}
}

static inline struct reference_entry *reference_entry(struct reference_report *report,
						      const struct tally_row *row, size_t frame)
{
	const struct tally_profile *profile = report->profile;
	bool known = frame < report->path.count;
	uint32_t function = known ? report->path.items[frame] : UINT32_MAX;
	const struct tally_class *class = &profile->classes.items[row->class];
	const bool *by = report->options->by;
	uint32_t number = known ? report->numbers.items[frame] : 0;
	struct reference_entry fresh = { 0 };
	fresh.key[TALLY_SORT_COMM] = by[TALLY_SORT_COMM] ? class->comm : 0;
	if (by[TALLY_SORT_PID])
		fresh.key[TALLY_SORT_PID] =
			profile->recording->tasks.threads.items[class->thread].pid;
	if (by[TALLY_SORT_TID])
		fresh.key[TALLY_SORT_TID] =
			profile->recording->tasks.threads.items[class->thread].tid;
	fresh.key[TALLY_SORT_CPU] = by[TALLY_SORT_CPU] ? class->cpu : 0;
	fresh.key[TALLY_SORT_CGROUP] = by[TALLY_SORT_CGROUP] ? class->cgroup : 0;
	if (by[TALLY_SORT_OBJECT])
		fresh.key[TALLY_SORT_OBJECT] = known ? reference_function(report, function)->object
						     : UINT32_MAX - 1;
	if (by[TALLY_SORT_SYMBOL])
		fresh.key[TALLY_SORT_SYMBOL] = known ? reference_symbol(report, function)
						     : UINT32_MAX - 1;
	if (by[TALLY_SORT_SOURCE_FILE])
		fresh.key[TALLY_SORT_SOURCE_FILE] = known ? tally_report_source_file(
								    profile,
								    report->places.items[frame],
								    number)
							  : UINT32_MAX - 1;
	if (by[TALLY_SORT_SOURCE_LINE])
		fresh.key[TALLY_SORT_SOURCE_LINE] = known ? tally_report_source_line(
								    profile,
								    report->places.items[frame],
								    number)
							  : UINT32_MAX - 1;
	struct reference_entry *there = reference_find(report, fresh.key);
	if (there)
		return there;
	size_t *first = &report->first_of[reference_hash(fresh.key)];
	fresh.next = *first;
	assert_int_equal(tally_vector_push(&report->entries, fresh), 0);
	*first = report->entries.count;
	return &report->entries.items[report->entries.count - 1];
}

static inline struct reference_branch *reference_branch(const struct reference_report *report,
							struct reference_branch **list,
							uint32_t function)
{
	while (*list && !reference_same(report, (*list)->function, function))
		list = &(*list)->sibling;
	if (!*list) {
		*list = calloc(1, sizeof(**list));
		assert_non_null(*list);
		(*list)->function = function;
	}
	return *list;
}

/* Adds frames [from, to] of the path below an entry, in either direction. */
static inline void reference_add_path(const struct reference_report *report,
				      struct reference_entry *entry, long from, long to,
				      uint64_t weight)
{
	struct reference_branch **list = &entry->tree;
	for (long i = from, step = from <= to ? 1 : -1;; i += step) {
		struct reference_branch *branch = reference_branch(report, list,
								   report->path.items[i]);
		branch->weight += weight;
		list = &branch->child;
		if (i == to)
			return;
	}
}

static inline void reference_add_trees(struct reference_report *report, const struct tally_row *row,
				       size_t stamp)
{
	long depth = (long)report->path.count;
	bool down = report->options->tree == TALLY_TREE_CALLER;
	for (long i = 0; i < depth; i++) {
		long at = down ? depth - 1 - i : i;
		if (!report->options->children && at)
			continue;
		struct reference_entry *entry = reference_entry(report, row, (size_t)at);
		if (entry->seen == stamp)
			continue;
		entry->seen = stamp;
		if (down && !report->options->children)
			reference_add_path(report, entry, depth - 1, 0, row->period);
		else if (down && at)
			reference_add_path(report, entry, at - 1, 0, row->period);
		else if (!down && at + 1 < depth)
			reference_add_path(report, entry, at + 1, depth - 1, row->period);
	}
}

static inline void reference_sum(struct reference_report *report, const struct tally_row *row,
				 size_t stamp)
{
	bool is_leaf = true;
	report->samples += row->samples;
	report->period += row->period;
	for (size_t i = 0; i < report->path.count || (is_leaf && !report->path.count); i++) {
		if (!is_leaf && !report->options->children)
			break;
		struct reference_entry *entry = reference_entry(report, row, i);
		if (is_leaf) {
			entry->self += row->period;
			entry->self_samples += row->samples;
		}
		if (entry->seen != stamp) {
			entry->total += row->period;
			entry->total_samples += row->samples;
		}
		entry->seen = stamp;
		is_leaf = false;
		if (!report->path.count)
			break;
	}
}

static inline void reference_build(struct reference_report *report,
				   const struct tally_profile *profile,
				   const struct tally_report_options *options)
{
	size_t count = profile->rows.rows.count;
	*report = (struct reference_report){ .profile = profile, .options = options };
	struct tally_names *names = &profile->recording->names;
	report->symbols = malloc((names->functions.count + 1) * sizeof(*report->symbols));
	assert_non_null(report->symbols);
	assert_int_equal(tally_names_tell_objects_apart(names, report->symbols), 0);
	for (size_t pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < count; i++) {
			const struct tally_row *row = &profile->rows.rows.items[i];
			if (profile->classes.items[row->class].event != options->event)
				continue;
			reference_path(report, i);
			if (!pass)
				reference_sum(report, row, i + 1);
			else if (options->tree != TALLY_TREE_NONE)
				reference_add_trees(report, row, count + i + 1);
		}
}

static inline void reference_free_branches(struct reference_branch *first)
{
	while (first) {
		struct reference_branch *next = first->sibling;
		reference_free_branches(first->child);
		free(first);
		first = next;
	}
}

static inline void reference_release(struct reference_report *report)
{
	for (size_t i = 0; i < report->entries.count; i++)
		reference_free_branches(report->entries.items[i].tree);
	tally_vector_release(&report->entries);
	tally_vector_release(&report->path);
	tally_vector_release(&report->places);
	tally_vector_release(&report->numbers);
	free(report->symbols);
}

#endif
