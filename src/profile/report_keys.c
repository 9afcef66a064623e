#include "profile/report_parts.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions ----------------------------------------------------------------------------------------- */

static const char *text_of(const struct tally_names *names, uint32_t string)
{
	return string == TALLY_STRING_NONE ? "" : tally_strings_text(&names->strings, string);
}

static int compare_strings(const struct tally_names *names, uint32_t a, uint32_t b)
{
	int order = a == b ? 0 : strcmp(text_of(names, a), text_of(names, b));
	return order ? order : (a > b) - (a < b);
}

static bool is_inlined(const struct tally_function *function)
{
	return function->kind == TALLY_FRAME_INLINED;
}

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct tally_names *names = context;
	const struct tally_function *x = &names->functions.items[*(const uint32_t *)a];
	const struct tally_function *y = &names->functions.items[*(const uint32_t *)b];
	int order = compare_strings(names, x->name, y->name);
	if (!order)
		order = compare_strings(names, x->object, y->object);
	return order ? order : (int)is_inlined(x) - (int)is_inlined(y);
}

/* Numbers functions by their names; those that can't be told apart have one code. */
static int make_codes(struct tally_report_builder *builder)
{
	struct tally_names *names = &builder->profile->recording->names;
	size_t count = names->functions.count;
	uint32_t *sorted = malloc((count + 1) * sizeof(*sorted));
	builder->code_of_function = malloc((count + 1) * sizeof(*builder->code_of_function));
	builder->function_of_code = malloc((count + 2) * sizeof(*builder->function_of_code));
	if (!sorted || !builder->code_of_function || !builder->function_of_code) {
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		sorted[i] = (uint32_t)i;
	qsort_r(sorted, count, sizeof(*sorted), compare_functions, names);
	for (size_t i = 0; i < count; i++) {
		if (!i || compare_functions(&sorted[i - 1], &sorted[i], names))
			builder->function_of_code[++builder->code_max] = sorted[i];
		builder->code_of_function[sorted[i]] = builder->code_max;
	}
	free(sorted);
	return 0;
}

static int make_function_keys(struct tally_report_builder *builder)
{
	const struct tally_names *names = &builder->profile->recording->names;
	const bool *by = builder->options->by;
	struct tally_map index = { 0 };
	struct tally_report_key none = { by[TALLY_SORT_OBJECT] ? TALLY_REPORT_NONE - 1 : 0,
					 by[TALLY_SORT_SYMBOL] ? TALLY_REPORT_NONE - 1 : 0 };
	builder->key_of_code = malloc(((size_t)builder->code_max + 1) * sizeof(*builder->key_of_code));
	int result = builder->key_of_code ? tally_vector_push(&builder->keys, none) : -ENOMEM;
	for (uint32_t code = 1; !result && code <= builder->code_max; code++) {
		const struct tally_function *function = &names->functions.items[builder->function_of_code[code]];
		struct tally_report_key key = { by[TALLY_SORT_OBJECT] ? function->object : 0,
						by[TALLY_SORT_SYMBOL] ? function->name : 0 };
		bool added = false;
		builder->key_of_code[code] = TALLY_REPORT_NONE;
		if (is_inlined(function))
			continue;
		uint64_t *slot = tally_map_put(&index, (uint64_t)key.object << 32 | key.symbol, &added);
		result = slot ? 0 : -ENOMEM;
		if (added) {
			*slot = builder->keys.count;
			result = tally_vector_push(&builder->keys, key);
		}
		if (!result)
			builder->key_of_code[code] = (uint32_t)*slot;
	}
	tally_map_release(&index);
	return result;
}

static int make_place_keys(struct tally_report_builder *builder)
{
	size_t count = builder->profile->places.places.count;
	builder->key_of_place = malloc((count + 1) * sizeof(*builder->key_of_place));
	if (!builder->key_of_place)
		return -ENOMEM;
	for (uint32_t place = 0; place < count; place++) {
		uint32_t function = tally_profile_function(builder->profile, place);
		builder->key_of_place[place] = builder->key_of_code[builder->code_of_function[function]];
	}
	return 0;
}

/* ---- roots --------------------------------------------------------------------------------------------- */

static struct tally_report_root root_of(const struct tally_report_builder *builder, const struct tally_class *class)
{
	const struct tally_tasks *tasks = &builder->profile->recording->tasks;
	const bool *by = builder->options->by;
	struct tally_report_root root = {
		.comm = by[TALLY_SORT_COMM] ? class->comm : 0,
		.cpu = by[TALLY_SORT_CPU] ? class->cpu : 0,
		.cgroup = by[TALLY_SORT_CGROUP] ? class->cgroup : 0,
		.cgroup_id = by[TALLY_SORT_CGROUP_ID] ? class->cgroup_id : 0,
	};
	if (class->thread < tasks->threads.count) {
		root.pid = by[TALLY_SORT_PID] ? tasks->threads.items[class->thread].pid : 0;
		root.tid = by[TALLY_SORT_TID] ? tasks->threads.items[class->thread].tid : 0;
	}
	return root;
}

static int make_roots(struct tally_report_builder *builder)
{
	const struct tally_profile *profile = builder->profile;
	struct tally_map index = { 0 };
	int result = 0;
	builder->root_of_class = malloc((profile->classes.count + 1) * sizeof(*builder->root_of_class));
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
		uint64_t key = tally_hash64((uint64_t)root.pid << 32 | root.tid) ^ ((uint64_t)root.comm << 32 | root.cpu) ^
			       tally_hash64((uint64_t)root.cgroup_id << 32 | (root.cgroup + 1));
		do {
			slot = tally_map_put(&index, key++, &added);
		} while (slot && !added && memcmp(&builder->roots.items[*slot], &root, sizeof(root)));
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
	size_t *next = builder->root_rows + 1; /* by root: where the next row goes; the end, when all are there */
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

int tally_report_make_keys(struct tally_report_builder *builder)
{
	int result = make_codes(builder);
	if (!result)
		result = make_function_keys(builder);
	if (!result)
		result = make_place_keys(builder);
	if (!result)
		result = make_roots(builder);
	return result ? result : sort_rows_by_root(builder);
}

void tally_report_release_keys(struct tally_report_builder *builder)
{
	free(builder->code_of_function);
	free(builder->function_of_code);
	free(builder->key_of_code);
	free(builder->key_of_place);
	free(builder->root_of_class);
	free(builder->rows);
	free(builder->root_rows);
	free(builder->leaf_entry);
	tally_vector_release(&builder->keys);
	tally_vector_release(&builder->roots);
	tally_vector_release(&builder->met);
}
