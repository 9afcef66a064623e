#include "report/report_parts.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions ----------------------------------------------------------- */

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
	int order = compare_strings(names, x->plain, y->plain);
	if (!order)
		order = compare_strings(names, x->object, y->object);
	return order ? order : (int)is_inlined(x) - (int)is_inlined(y);
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
	return builder->symbol_of_function
		       ? tally_names_tell_objects_apart(names, builder->symbol_of_function)
		       : -ENOMEM;
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
	return added ? tally_vector_push(&builder->keys, *key) : 0;
}

static uint32_t symbol_of(const struct tally_report_builder *builder, uint32_t function)
{
	const bool *by = builder->options->by;
	if (!by[TALLY_SORT_SYMBOL])
		return 0;
	return by[TALLY_SORT_OBJECT]
		       ? builder->profile->recording->names.functions.items[function].plain
		       : builder->symbol_of_function[function];
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

static int make_function_keys(struct tally_report_builder *builder, struct tally_map *index)
{
	const struct tally_names *names = &builder->profile->recording->names;
	int result = 0;
	for (uint32_t code = 1; !result && code <= builder->code_max; code++) {
		const struct tally_report_key key = function_key(builder, code);
		builder->key_of_code[code] = TALLY_REPORT_NONE;
		if (!is_inlined(&names->functions.items[builder->function_of_code[code]]))
			result = intern_key(builder, index, &key, &builder->key_of_code[code]);
	}
	for (uint32_t place = 0; !result && place < builder->profile->places.places.count;
	     place++) {
		uint32_t function = tally_profile_function(builder->profile, place);
		builder->key_of_place[place] =
			builder->key_of_code[builder->code_of_function[function]];
	}
	return result;
}

/* ---- with sources a function has several keys ---------------------------- */

static int add_source(const struct tally_report_builder *builder, uint32_t place,
		      struct tally_report_key *key)
{
	const bool *by = builder->options->by;
	key->file = by[TALLY_SORT_SOURCE_FILE] ? tally_report_source_file(builder->profile, place)
					       : 0;
	key->line = by[TALLY_SORT_SOURCE_LINE] ? tally_report_source_line(builder->profile, place)
					       : 0;
	return key->file == TALLY_STRING_NONE || key->line == TALLY_STRING_NONE ? -ENOMEM : 0;
}

/* Makes a code for each combination of function and key. */
static int make_source_keys(struct tally_report_builder *builder, struct tally_map *index)
{
	struct tally_map pairs = { 0 };
	int result = 0;
	for (uint32_t code = 1; code <= builder->code_max; code++) {
		builder->key_of_code[code] = TALLY_REPORT_NONE;
		builder->plain_of_code[code] = code;
	}
	for (uint32_t place = 0; !result && place < builder->profile->places.places.count;
	     place++) {
		uint32_t code = builder->code_of_function[tally_profile_function(builder->profile,
										 place)],
			 number = 0;
		struct tally_report_key key = function_key(builder, code);
		bool added = false;
		result = add_source(builder, place, &key);
		if (!result)
			result = intern_key(builder, index, &key, &number);
		uint64_t *head = result ? NULL
					: tally_map_put(&pairs, (uint64_t)code << 32 | number,
							&added);
		if (!head) {
			result = -ENOMEM;
			break;
		}
		if (added) {
			*head = ++builder->head_max;
			builder->key_of_code[*head] = number;
			builder->plain_of_code[*head] = code;
		}
		builder->key_of_place[place] = number;
		builder->head_of_place[place] = (uint32_t)*head;
	}
	tally_map_release(&pairs);
	return result;
}

static int make_frame_keys(struct tally_report_builder *builder)
{
	const bool *by = builder->options->by;
	bool sources = by[TALLY_SORT_SOURCE_FILE] || by[TALLY_SORT_SOURCE_LINE];
	size_t places = builder->profile->places.places.count,
	       codes = builder->code_max + (sources ? places : 0);
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
	builder->key_of_place = malloc((places + 1) * sizeof(*builder->key_of_place));
	if (sources) {
		builder->head_of_place = malloc((places + 1) * sizeof(*builder->head_of_place));
		builder->plain_of_code = malloc((codes + 1) * sizeof(*builder->plain_of_code));
	}
	if (!builder->key_of_code || !builder->key_of_place ||
	    (sources && (!builder->head_of_place || !builder->plain_of_code)))
		return -ENOMEM;
	int result = tally_vector_push(&builder->keys, none);
	if (!result)
		result = sources ? make_source_keys(builder, &index)
				 : make_function_keys(builder, &index);
	tally_map_release(&index);
	return result;
}

int tally_report_make_keys(struct tally_report_builder *builder)
{
	int result = make_codes(builder);
	if (!result)
		result = make_symbols(builder);
	return result ? result : make_frame_keys(builder);
}

void tally_report_release_keys(struct tally_report_builder *builder)
{
	free(builder->code_of_function);
	free(builder->function_of_code);
	free(builder->symbol_of_function);
	free(builder->key_of_code);
	free(builder->key_of_place);
	free(builder->head_of_place);
	free(builder->plain_of_code);
	tally_vector_release(&builder->keys);
}
