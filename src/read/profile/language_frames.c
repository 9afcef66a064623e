/* A first pass over a profile's rows collects the runtimes.  A second pass rewrites each stack in
 * place without their frames, and applies the filters of objects and symbols to the leaf that
 * remains. */
#include "profile/profile.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions ----------------------------------------------------------- */

/* Parts of a runtime that it made itself, and that a map names beside the program's functions. */
static bool is_stub(const char *name)
{
	static const char *const kinds[] = { "Builtin:", "BytecodeHandler:", "Handler:", "Stub:",
					     "StubRoutines", "call_stub", "vtable stub",
					     "itable stub" };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(name, kinds[i], strlen(kinds[i])))
			return true;
	return false;
}

static const struct tally_function *function_at(const struct tally_runtimes *runtimes,
						uint32_t function)
{
	return &runtimes->names->functions.items[function];
}

static bool is_of_language(const struct tally_runtimes *runtimes, uint32_t number)
{
	const struct tally_function *function = function_at(runtimes, number);
	return function->kind == TALLY_FRAME_JIT && function->name != TALLY_STRING_NONE &&
	       !is_stub(tally_names_text(runtimes->names, number));
}

/* True if the function may be a runtime's: the code of a program or library. */
static bool is_in_file(const struct tally_runtimes *runtimes, uint32_t number)
{
	const struct tally_function *function = function_at(runtimes, number);
	return function->kind != TALLY_FRAME_JIT && function->kind != TALLY_FRAME_KERNEL &&
	       tally_strings_text(&runtimes->names->strings, function->object)[0] != '[';
}

/* ---- stacks -------------------------------------------------------------- */

int tally_runtimes_note(struct tally_runtimes *runtimes, const uint32_t *functions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t around = i + 1;
		if (!is_of_language(runtimes, functions[i]))
			continue;
		while (around < count &&
		       function_at(runtimes, functions[around])->kind == TALLY_FRAME_JIT)
			around++;
		if (around < count && is_in_file(runtimes, functions[around]) &&
		    !tally_map_put(&runtimes->objects,
				   function_at(runtimes, functions[around])->object, NULL))
			return -ENOMEM;
		i = around - 1;
	}
	return 0;
}

static bool is_of_runtime(const struct tally_runtimes *runtimes, uint32_t number)
{
	const struct tally_function *function = function_at(runtimes, number);
	if (function->kind == TALLY_FRAME_JIT)
		return function->name != TALLY_STRING_NONE &&
		       is_stub(tally_names_text(runtimes->names, number));
	return is_in_file(runtimes, number) && tally_map_get(&runtimes->objects, function->object);
}

void tally_runtimes_choose(const struct tally_runtimes *runtimes, const uint32_t *functions,
			   size_t count, bool *left_out)
{
	bool is_inside = false;
	for (size_t i = count; i--;) {
		bool is_language = is_of_language(runtimes, functions[i]);
		left_out[i] = is_inside && !is_language && is_of_runtime(runtimes, functions[i]);
		is_inside |= is_language;
	}
}

void tally_runtimes_release(struct tally_runtimes *runtimes)
{
	tally_map_release(&runtimes->objects);
}

/* ---- profiles ------------------------------------------------------------ */

struct joiner {
	const struct tally_profile *profile;
	const struct tally_profile_filter *filter;
	struct tally_runtimes runtimes;
	/* of the current row, leaf first */
	struct { uint32_t *items; size_t count, capacity; } places, functions;
	struct { bool *items; size_t count, capacity; } left_out;
};

static int read_row(struct joiner *joiner, size_t row)
{
	const uint8_t *end, *at = tally_row_stack(&joiner->profile->rows, row, &end);
	joiner->places.count = joiner->functions.count = 0;
	while (at && at < end) {
		uint32_t place = tally_stack_next_place(&at);
		if (tally_vector_push(&joiner->places, place) < 0 ||
		    tally_vector_push(&joiner->functions,
				      tally_profile_symbol(joiner->profile, place)) < 0)
			return -ENOMEM;
	}
	return tally_vector_reserve(&joiner->left_out, joiner->places.count + 1);
}

/* Writes the stack without what is left out.  It is at most as long as it was.  Returns its end. */
static uint8_t *write_stack(const struct joiner *joiner, uint8_t *at)
{
	for (size_t i = 0; i < joiner->places.count; i++)
		if (!joiner->left_out.items[i])
			at = tally_stack_put_place(at, joiner->places.items[i]);
	return at;
}

static bool passes(struct joiner *joiner, struct tally_profile *profile)
{
	const struct tally_profile_filter *filter = joiner->filter;
	size_t leaf = 0;
	if (!filter->objects && !filter->symbols)
		return true;
	while (leaf < joiner->places.count && joiner->left_out.items[leaf])
		leaf++;
	if (leaf == joiner->places.count)
		return false;
	uint32_t function = tally_profile_function(profile, joiner->places.items[leaf]);
	bool is_selected = tally_function_passes(filter, &profile->recording->names, function);
	if (!is_selected)
		tally_map_put(&profile->leaves_left_out, function, NULL);
	return is_selected;
}

/* Reads a row, and chooses what to leave out. */
static int choose_in_row(struct joiner *joiner, size_t row)
{
	if (read_row(joiner, row) < 0)
		return -ENOMEM;
	tally_runtimes_choose(&joiner->runtimes, joiner->functions.items, joiner->functions.count,
			      joiner->left_out.items);
	return 0;
}

static int join_rows(struct joiner *joiner, struct tally_profile *profile)
{
	struct tally_row_table *table = &profile->rows;
	size_t kept = 0, bytes = 0;
	for (size_t i = 0; i < table->rows.count; i++) {
		struct tally_row row = table->rows.items[i];
		if (choose_in_row(joiner, i) < 0)
			return -ENOMEM;
		if (!passes(joiner, profile)) {
			profile->filtered += row.samples;
			continue;
		}
		row.stack = bytes & ((1ull << 40) - 1);
		if (joiner->places.count)
			bytes = (size_t)(write_stack(joiner, table->stacks.items + bytes) -
					 table->stacks.items);
		if (i < profile->longest.count)
			profile->longest.items[kept] = profile->longest.items[i];
		table->rows.items[kept++] = row;
	}
	table->rows.count = kept;
	table->stacks.count = bytes;
	return 0;
}

static int find_runtimes(struct joiner *joiner)
{
	int result = 0;
	for (size_t i = 0; !result && i < joiner->profile->rows.rows.count; i++) {
		result = read_row(joiner, i);
		if (!result)
			result = tally_runtimes_note(&joiner->runtimes, joiner->functions.items,
						     joiner->functions.count);
	}
	return result;
}

static void release(struct joiner *joiner)
{
	tally_runtimes_release(&joiner->runtimes);
	tally_vector_release(&joiner->places);
	tally_vector_release(&joiner->functions);
	tally_vector_release(&joiner->left_out);
}

int tally_profile_join_runtimes(struct tally_profile *profile,
				const struct tally_profile_filter *filter)
{
	struct joiner joiner = {
		.profile = profile,
		.filter = filter,
		.runtimes.names = &profile->recording->names,
	};
	int result = find_runtimes(&joiner);
	if (!result)
		result = join_rows(&joiner, profile);
	release(&joiner);
	return result;
}

int tally_profile_count_runtimes(const struct tally_profile *profile, uint32_t event,
				 uint64_t *samples)
{
	struct joiner joiner = { .profile = profile,
				 .runtimes.names = &profile->recording->names };
	bool has_language = false;
	int result = 0;
	*samples = 0;
	for (uint32_t i = 0; !has_language && i < joiner.runtimes.names->functions.count; i++)
		has_language = is_of_language(&joiner.runtimes, i);
	if (has_language)
		result = find_runtimes(&joiner);
	for (size_t i = 0; !result && joiner.runtimes.objects.count && i < profile->rows.rows.count;
	     i++) {
		const struct tally_row *row = &profile->rows.rows.items[i];
		if (profile->classes.items[row->class].event != event)
			continue;
		result = choose_in_row(&joiner, i);
		if (!result && joiner.places.count && joiner.left_out.items[0])
			*samples += row->samples;
	}
	release(&joiner);
	return result;
}
