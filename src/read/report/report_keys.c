/* The keys that rows are grouped by: of frames (a place's object, function, file and line), and of
 * whole samples (roots). */
#include "report/report_internal.h"

#include "base/vector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sources ------------------------------------------------------------- */

enum { SOURCE_BYTES = 4096 };

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (slash && slash[1])
		return slash + 1;
	return path;
}

uint32_t tally_report_source_file(const struct tally_profile *profile, uint32_t place,
				  uint32_t number)
{
	struct tally_names *names = &profile->recording->names;
	const struct tally_place_frame *frame =
		&names->frames.items[profile->names[place].first + number];
	bool known = frame->file != TALLY_STRING_NONE && frame->line;
	return tally_strings_intern(
		&names->strings,
		known ? last_part(tally_strings_text(&names->strings, frame->file)) : "[unknown]");
}

uint32_t tally_report_source_line(const struct tally_profile *profile, uint32_t place,
				  uint32_t number)
{
	struct tally_names *names = &profile->recording->names;
	const struct tally_place_name *name = &profile->names[place];
	const struct tally_place_frame *frame = &names->frames.items[name->first + number];
	char text[SOURCE_BYTES];
	if (frame->file != TALLY_STRING_NONE && frame->line)
		snprintf(text, sizeof(text), "%s:%" PRIu32,
			 last_part(tally_strings_text(&names->strings, frame->file)), frame->line);
	else if (names->functions.items[frame->function].name != TALLY_STRING_NONE)
		snprintf(text, sizeof(text), "%s+%" PRIu64,
			 tally_names_plain_text(names, frame->function), name->offset);
	else
		snprintf(text, sizeof(text), "%s[%" PRIx64 "]",
			 tally_names_short_object(names, frame->function),
			 profile->places.places.items[place].address);
	return tally_strings_intern(&names->strings, text);
}

/* ---- functions ----------------------------------------------------------- */

static const char *text_of(const struct tally_names *names, uint32_t string)
{
	if (string == TALLY_STRING_NONE)
		return "";
	return tally_strings_text(&names->strings, string);
}

static int compare_strings(const struct tally_names *names, uint32_t a, uint32_t b)
{
	int order = 0;
	if (a != b)
		order = strcmp(text_of(names, a), text_of(names, b));
	if (order)
		return order;
	return (a > b) - (a < b);
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
	int order = compare_strings(names, x->plain, y->plain);
	if (!order)
		order = compare_strings(names, x->object, y->object);
	if (order)
		return order;
	return (int)is_inlined(x) - (int)is_inlined(y);
}

/* Numbers functions in the order of their names.  Functions with the same name and object share one
 * code; inlined functions have codes of their own. */
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

static int make_symbols(struct tally_report_builder *builder)
{
	struct tally_names *names = &builder->profile->recording->names;
	builder->symbol_of_function = malloc((names->functions.count + 1) *
					     sizeof(*builder->symbol_of_function));
	if (builder->symbol_of_function)
		return tally_names_tell_objects_apart(names, builder->symbol_of_function);
	return -ENOMEM;
}

static int intern_key(struct tally_report_builder *builder, struct tally_map *index,
		      const struct tally_report_key *key, uint32_t *number)
{
	uint64_t hash = ((uint64_t)key->object << 32 | key->symbol) ^
			tally_hash64((uint64_t)key->file << 32 | key->line);
	bool added = false;
	uint64_t *slot;
	do {
		slot = tally_map_put(index, hash++, &added);
	} while (slot && !added && memcmp(&builder->keys.items[*slot], key, sizeof(*key)) != 0);
	if (!slot)
		return -ENOMEM;
	if (added)
		*slot = builder->keys.count;
	*number = (uint32_t)*slot;
	if (added)
		return tally_vector_push(&builder->keys, *key);
	return 0;
}

static uint32_t symbol_of(const struct tally_report_builder *builder, uint32_t function)
{
	const bool *by = builder->options->by;
	if (!by[TALLY_SORT_SYMBOL])
		return 0;
	if (by[TALLY_SORT_OBJECT])
		return builder->profile->recording->names.functions.items[function].plain;
	return builder->symbol_of_function[function];
}

static struct tally_report_key function_key(const struct tally_report_builder *builder,
					    uint32_t code)
{
	const struct tally_names *names = &builder->profile->recording->names;
	uint32_t function = builder->function_of_code[code];
	bool by_object = builder->options->by[TALLY_SORT_OBJECT];
	return (struct tally_report_key){
		.object = by_object ? names->functions.items[function].object : 0,
		.symbol = symbol_of(builder, function)
	};
}

static const struct tally_place_frame *frame_at(const struct tally_report_builder *builder,
						 uint32_t place, uint32_t number)
{
	return &builder->profile->recording->names.frames
			.items[builder->profile->names[place].first + number];
}

static uint32_t code_at(const struct tally_report_builder *builder, uint32_t place, uint32_t number)
{
	return builder->code_of_function[frame_at(builder, place, number)->function];
}

static int make_function_keys(struct tally_report_builder *builder, struct tally_map *index)
{
	int result = 0;
	for (uint32_t code = 1; !result && code <= builder->code_max; code++) {
		const struct tally_report_key key = function_key(builder, code);
		result = intern_key(builder, index, &key, &builder->key_of_code[code]);
	}
	return result;
}

/* ---- with sources a function has several keys ---------------------------- */

/* Finds the code of a frame's function and source; it is added, with its key, when new. */
static int code_of_source(struct tally_report_builder *builder, struct tally_map *index,
			  struct tally_map *pairs, uint32_t place, uint32_t number, uint32_t *head)
{
	const bool *by = builder->options->by;
	uint32_t code = code_at(builder, place, number), key_number = 0;
	struct tally_report_key key = function_key(builder, code);
	bool added = false;
	if (by[TALLY_SORT_SOURCE_FILE])
		key.file = tally_report_source_file(builder->profile, place, number);
	if (by[TALLY_SORT_SOURCE_LINE])
		key.line = tally_report_source_line(builder->profile, place, number);
	if (key.file == TALLY_STRING_NONE || key.line == TALLY_STRING_NONE ||
	    intern_key(builder, index, &key, &key_number) < 0)
		return -ENOMEM;
	uint64_t *slot = tally_map_put(pairs, (uint64_t)code << 32 | key_number, &added);
	if (!slot)
		return -ENOMEM;
	if (added) {
		*slot = ++builder->head_max;
		builder->key_of_code[*slot] = key_number;
		builder->plain_of_code[*slot] = code;
	}
	*head = (uint32_t)*slot;
	return 0;
}

/* Makes a code for each combination of function and source. */
static int make_source_keys(struct tally_report_builder *builder, struct tally_map *index)
{
	const struct tally_profile *profile = builder->profile;
	struct tally_map pairs = { 0 };
	int result = 0;
	for (uint32_t code = 1; code <= builder->code_max; code++) {
		builder->key_of_code[code] = TALLY_REPORT_NONE;
		builder->plain_of_code[code] = code;
	}
	for (uint32_t place = 0; !result && place < profile->places.places.count; place++) {
		const struct tally_place_name *name = &profile->names[place];
		for (uint32_t i = 0; !result && i < name->count; i++)
			result = code_of_source(builder, index, &pairs, place, i,
						&builder->head_of_frame[name->first + i]);
	}
	tally_map_release(&pairs);
	return result;
}

static int make_frame_keys(struct tally_report_builder *builder)
{
	const bool *by = builder->options->by;
	bool sources = by[TALLY_SORT_SOURCE_FILE] || by[TALLY_SORT_SOURCE_LINE];
	size_t frames = builder->profile->recording->names.frames.count,
	       codes = builder->code_max + (sources ? frames : 0);
	struct tally_map index = { 0 };
	const uint32_t missing = TALLY_REPORT_NONE - 1;
	const struct tally_report_key none = {
		.object = by[TALLY_SORT_OBJECT] ? missing : 0,
		.symbol = by[TALLY_SORT_SYMBOL] ? missing : 0,
		.file = by[TALLY_SORT_SOURCE_FILE] ? missing : 0,
		.line = by[TALLY_SORT_SOURCE_LINE] ? missing : 0,
	};
	builder->head_max = builder->code_max;
	builder->key_of_code = malloc((codes + 1) * sizeof(*builder->key_of_code));
	if (sources) {
		builder->head_of_frame = malloc((frames + 1) * sizeof(*builder->head_of_frame));
		builder->plain_of_code = malloc((codes + 1) * sizeof(*builder->plain_of_code));
	}
	if (!builder->key_of_code ||
	    (sources && (!builder->head_of_frame || !builder->plain_of_code)))
		return -ENOMEM;
	int result = tally_vector_push(&builder->keys, none);
	if (!result && sources)
		result = make_source_keys(builder, &index);
	else if (!result)
		result = make_function_keys(builder, &index);
	tally_map_release(&index);
	return result;
}

/* ---- the keys of places -------------------------------------------------- */

/* Adds the key to the list that began at `first`, unless it has it. */
static int add_to_list(struct tally_report_builder *builder, size_t first, uint32_t key)
{
	for (size_t i = first; i < builder->key_lists.count; i++)
		if (builder->key_lists.items[i] == key)
			return 0;
	return tally_vector_push(&builder->key_lists, key);
}

/* Sets the keys of a place, and notes which functions of its keys are inlined here. */
static int set_place_keys(struct tally_report_builder *builder, uint32_t place)
{
	const struct tally_place_name *name = &builder->profile->names[place];
	size_t first = builder->key_lists.count;
	int result = 0;
	for (uint32_t i = 0; !result && i < name->count; i++) {
		uint32_t key = tally_report_frame_key(builder, place, i);
		bool is_own = i + 1 == name->count;
		uint32_t *function = &builder->functions_of_key[key].own;
		if (!is_own)
			function = &builder->functions_of_key[key].inlined;
		if (*function == TALLY_REPORT_NONE)
			*function = frame_at(builder, place, i)->function;
		result = add_to_list(builder, first, key);
	}
	if (result)
		return result;
	size_t count = builder->key_lists.count - first;
	builder->keys_of_place[place] = (struct tally_place_keys){
		.leaf = builder->key_lists.items[first],
		.list = count > 1 ? (uint32_t)first + 1 : 0,
		.more = (uint32_t)count - 1,
	};
	if (count == 1)
		builder->key_lists.count = first;
	if (builder->key_lists.count >= TALLY_REPORT_NONE)
		return -ENOMEM;
	return 0;
}

static int make_place_keys(struct tally_report_builder *builder)
{
	size_t places = builder->profile->places.places.count;
	builder->keys_of_place = malloc((places + 1) * sizeof(*builder->keys_of_place));
	builder->functions_of_key = malloc((builder->keys.count + 1) *
					   sizeof(*builder->functions_of_key));
	if (!builder->keys_of_place || !builder->functions_of_key)
		return -ENOMEM;
	memset(builder->functions_of_key, 0xff,
	       builder->keys.count * sizeof(*builder->functions_of_key));
	for (uint32_t place = 0; place < places; place++) {
		int result = set_place_keys(builder, place);
		if (result)
			return result;
	}
	return 0;
}

int tally_report_make_keys(struct tally_report_builder *builder)
{
	int result = make_codes(builder);
	if (result)
		return result;
	result = make_symbols(builder);
	if (result)
		return result;
	result = make_frame_keys(builder);
	if (result)
		return result;
	return make_place_keys(builder);
}

void tally_report_release_keys(struct tally_report_builder *builder)
{
	free(builder->code_of_function);
	free(builder->function_of_code);
	free(builder->symbol_of_function);
	free(builder->key_of_code);
	free(builder->head_of_frame);
	free(builder->plain_of_code);
	free(builder->keys_of_place);
	free(builder->functions_of_key);
	tally_vector_release(&builder->key_lists);
	tally_vector_release(&builder->keys);
}

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
		return tally_report_source_line(builder->profile, fact, 0);
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
	struct tally_report_root root = { 0 };
	if (by[TALLY_SORT_COMM])
		root.key[TALLY_SORT_COMM] = class->comm;
	if (by[TALLY_SORT_CPU])
		root.key[TALLY_SORT_CPU] = class->cpu;
	if (by[TALLY_SORT_CGROUP])
		root.key[TALLY_SORT_CGROUP] = class->cgroup;
	if (by[TALLY_SORT_CGROUP_ID])
		root.key[TALLY_SORT_CGROUP_ID] = class->cgroup_id;
	if (class->thread < tasks->threads.count) {
		if (by[TALLY_SORT_PID])
			root.key[TALLY_SORT_PID] = tasks->threads.items[class->thread].pid;
		if (by[TALLY_SORT_TID])
			root.key[TALLY_SORT_TID] = tasks->threads.items[class->thread].tid;
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
	struct tally_numbers classes = tally_event_classes(&profile->by_event,
							   builder->options->event);
	builder->root_of_class = malloc((classes.count + 1) * sizeof(*builder->root_of_class));
	if (!builder->root_of_class)
		return -ENOMEM;
	for (size_t i = 0; !result && i < classes.count; i++) {
		const struct tally_class *class = &profile->classes.items[classes.items[i]];
		bool added = false;
		uint64_t *slot;
		struct tally_report_root root = root_of(builder, class);
		result = set_facts(builder, class->facts, &root);
		if (result)
			break;
		uint64_t key = hash_root(&root);
		do {
			slot = tally_map_put(&index, key++, &added);
		} while (slot && !added &&
			 memcmp(&builder->roots.items[*slot], &root, sizeof(root)) != 0);
		if (slot)
			result = 0;
		else
			result = -ENOMEM;
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
	struct tally_numbers rows = tally_event_rows(&profile->by_event, builder->options->event);
	const uint32_t *positions = profile->by_event.positions;
	builder->root_rows = calloc(builder->roots.count + 2, sizeof(*builder->root_rows));
	builder->rows = malloc((rows.count + 1) * sizeof(*builder->rows));
	if (!builder->root_rows || !builder->rows)
		return -ENOMEM;
	/* by root: index for the next row; in the end, the end of its rows */
	size_t *next = builder->root_rows + 1;
	for (size_t i = 0; i < rows.count; i++) {
		uint32_t class = profile->rows.rows.items[rows.items[i]].class;
		next[builder->root_of_class[positions[class]]]++;
	}
	size_t sum = 0;
	for (size_t root = 0; root < builder->roots.count; root++) {
		size_t here = next[root];
		next[root] = sum;
		sum += here;
	}
	for (size_t i = 0; i < rows.count; i++) {
		uint32_t class = profile->rows.rows.items[rows.items[i]].class;
		uint32_t root = builder->root_of_class[positions[class]];
		builder->rows[next[root]++] = rows.items[i];
	}
	return 0;
}

int tally_report_make_roots(struct tally_report_builder *builder)
{
	int result = make_roots(builder);
	if (result)
		return result;
	return sort_rows_by_root(builder);
}

void tally_report_release_roots(struct tally_report_builder *builder)
{
	free(builder->root_of_class);
	free(builder->rows);
	free(builder->root_rows);
	tally_vector_release(&builder->roots);
}
