#include "report/report_parts.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys of facts ------------------------------------------------------- */

/* Returns one of the functions that are shown as one. */
static uint32_t function_of(const struct tally_report_builder *builder, uint32_t place)
{
	return builder->function_of_code[builder->code_of_function[tally_profile_function(
		builder->profile, place)]];
}

/* Returns a key's value; facts of a branch's objects, functions and lines are places. */
static uint32_t value_of_fact(const struct tally_report_builder *builder, enum tally_sort_kind kind,
			      uint32_t fact)
{
	const struct tally_names *names = &builder->profile->recording->names;
	switch (kind) {
	case TALLY_KIND_OBJECT:
		return names->functions.items[function_of(builder, fact)].object;
	case TALLY_KIND_FUNCTION:
		return function_of(builder, fact);
	case TALLY_KIND_LINE:
		return tally_report_source_line(builder->profile, fact);
	default:
		return fact;
	}
}

/* Sets the keys of a root that come from facts; `number` is that of a class's facts.  Returns 0 or
 * -ENOMEM. */
static int set_facts(const struct tally_report_builder *builder, uint32_t number,
		     struct tally_report_root *root)
{
	if (!number)
		return 0;
	struct tally_sample_facts *facts = &builder->profile->facts.facts.items[number - 1];
	for (unsigned key = TALLY_SORT_BRANCHES_START; key < TALLY_SORT_FRAMES_START; key++) {
		enum tally_sort_kind kind = tally_sort_row(key)->kind;
		if (!builder->options->by[key])
			continue;
		root->key[key] = value_of_fact(builder, kind, *tally_fact(facts, key));
		if (kind == TALLY_KIND_LINE && root->key[key] == TALLY_STRING_NONE)
			return -ENOMEM;
	}
	return 0;
}

/* ---- roots --------------------------------------------------------------- */

static struct tally_report_root root_of(const struct tally_report_builder *builder,
					const struct tally_class *class)
{
	const struct tally_tasks *tasks = &builder->profile->recording->tasks;
	const bool *by = builder->options->by;
	struct tally_report_root root = { .key = {
		[TALLY_SORT_COMM] = by[TALLY_SORT_COMM] ? class->comm : 0,
		[TALLY_SORT_CPU] = by[TALLY_SORT_CPU] ? class->cpu : 0,
		[TALLY_SORT_CGROUP] = by[TALLY_SORT_CGROUP] ? class->cgroup : 0,
		[TALLY_SORT_CGROUP_ID] = by[TALLY_SORT_CGROUP_ID] ? class->cgroup_id : 0,
	} };
	if (class->thread < tasks->threads.count) {
		root.key[TALLY_SORT_PID] = by[TALLY_SORT_PID]
						   ? tasks->threads.items[class->thread].pid
						   : 0;
		root.key[TALLY_SORT_TID] = by[TALLY_SORT_TID]
						   ? tasks->threads.items[class->thread].tid
						   : 0;
	}
	return root;
}

static uint64_t hash_root(const struct tally_report_root *root)
{
	uint64_t hash = 0;
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
		hash = tally_hash64(hash ^ root->key[key]);
	return hash;
}

static int make_roots(struct tally_report_builder *builder)
{
	const struct tally_profile *profile = builder->profile;
	struct tally_map index = { 0 };
	int result = 0;
	builder->root_of_class = malloc((profile->classes.count + 1) *
					sizeof(*builder->root_of_class));
	if (!builder->root_of_class)
		return -ENOMEM;
	for (size_t i = 0; !result && i < profile->classes.count; i++) {
		const struct tally_class *class = &profile->classes.items[i];
		bool added = false;
		uint64_t *slot;
		builder->root_of_class[i] = TALLY_REPORT_NONE;
		if (class->event != builder->options->event)
			continue;
		struct tally_report_root root = root_of(builder, class);
		result = set_facts(builder, class->facts, &root);
		if (result)
			break;
		uint64_t key = hash_root(&root);
		do {
			slot = tally_map_put(&index, key++, &added);
		} while (slot && !added &&
			 memcmp(&builder->roots.items[*slot], &root, sizeof(root)) != 0);
		result = slot ? 0 : -ENOMEM;
		if (added) {
			*slot = builder->roots.count;
			result = tally_vector_push(&builder->roots, root);
		}
		if (!result)
			builder->root_of_class[i] = (uint32_t)*slot;
	}
	tally_map_release(&index);
	return result;
}

static int sort_rows_by_root(struct tally_report_builder *builder)
{
	const struct tally_profile *profile = builder->profile;
	size_t count = profile->rows.rows.count;
	builder->root_rows = calloc(builder->roots.count + 2, sizeof(*builder->root_rows));
	builder->rows = malloc((count + 1) * sizeof(*builder->rows));
	if (!builder->root_rows || !builder->rows)
		return -ENOMEM;
	/* by root: index for the next row; in the end, the end of its rows */
	size_t *next = builder->root_rows + 1;
	for (size_t i = 0; i < count; i++) {
		uint32_t root = builder->root_of_class[profile->rows.rows.items[i].class];
		if (root != TALLY_REPORT_NONE)
			next[root]++;
	}
	size_t sum = 0;
	for (size_t root = 0; root < builder->roots.count; root++) {
		size_t here = next[root];
		next[root] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t root = builder->root_of_class[profile->rows.rows.items[i].class];
		if (root != TALLY_REPORT_NONE)
			builder->rows[next[root]++] = (uint32_t)i;
	}
	return 0;
}

int tally_report_make_roots(struct tally_report_builder *builder)
{
	int result = make_roots(builder);
	return result ? result : sort_rows_by_root(builder);
}

void tally_report_release_roots(struct tally_report_builder *builder)
{
	free(builder->root_of_class);
	free(builder->rows);
	free(builder->root_rows);
	tally_vector_release(&builder->roots);
}
