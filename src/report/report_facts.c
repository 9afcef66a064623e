/* Sort keys from samples' facts: branches and values. */
#include "report/report_parts.h"

#include <errno.h>

/* Returns one of the functions that are shown as one. */
static uint32_t function_of(const struct tally_report_builder *builder, uint32_t place)
{
	return builder->function_of_code[builder->code_of_function[tally_profile_function(
		builder->profile, place)]];
}

static uint32_t word(const struct tally_report_builder *builder, const char *text)
{
	return tally_strings_intern(&builder->profile->recording->names.strings, text);
}

/* Sets the keys of one end of a branch: function, object and line, as far as the report is sorted
 * by them. */
static void set_end(const struct tally_report_builder *builder, uint32_t place,
		    enum tally_sort_key object, enum tally_sort_key symbol,
		    enum tally_sort_key line, uint32_t *key)
{
	const struct tally_names *names = &builder->profile->recording->names;
	const bool *by = builder->options->by;
	if (by[object])
		key[object] = names->functions.items[function_of(builder, place)].object;
	if (by[symbol])
		key[symbol] = function_of(builder, place);
	if (by[line])
		key[line] = tally_report_source_line(builder->profile, place);
}

static void set_flags(const struct tally_report_builder *builder, uint32_t flags, uint32_t *key)
{
	const bool *by = builder->options->by;
	uint32_t cycles = flags >> TALLY_BRANCH_CYCLES_SHIFT & 0xffff;
	if (by[TALLY_SORT_MISPREDICT])
		key[TALLY_SORT_MISPREDICT] = word(builder, flags & TALLY_BRANCH_PREDICTED ? "N"
							   : flags & TALLY_BRANCH_MISPREDICTED
								   ? "Y"
								   : "N/A");
	if (by[TALLY_SORT_IN_TRANSACTION])
		key[TALLY_SORT_IN_TRANSACTION] = word(builder,
						      flags & TALLY_BRANCH_TRANSACTION ? "T" : ".");
	if (by[TALLY_SORT_ABORT])
		key[TALLY_SORT_ABORT] = word(builder, flags & TALLY_BRANCH_ABORTED ? "A" : ".");
	if (by[TALLY_SORT_CYCLES])
		key[TALLY_SORT_CYCLES] = cycles ? cycles : UINT32_MAX;
}

int tally_report_set_facts(const struct tally_report_builder *builder, uint32_t number,
			   struct tally_report_root *root)
{
	if (!number)
		return 0;
	const struct tally_sample_facts *facts = &builder->profile->facts.facts.items[number - 1];
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++) {
		unsigned values = builder->options->by[key]
					  ? tally_fact_values(tally_sort_key_words(key)->facts)
					  : 0;
		if (values)
			root->key[key] = facts->values[__builtin_ctz(values)];
	}
	if (facts->to == UINT32_MAX) /* not a branch */
		return 0;
	if (facts->from != UINT32_MAX)
		set_end(builder, facts->from, TALLY_SORT_OBJECT_FROM, TALLY_SORT_SYMBOL_FROM,
			TALLY_SORT_LINE_FROM, root->key);
	set_end(builder, facts->to, TALLY_SORT_OBJECT_TO, TALLY_SORT_SYMBOL_TO, TALLY_SORT_LINE_TO,
		root->key);
	set_flags(builder, facts->branch_flags, root->key);
	/* memory was out for an interned string */
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
		if (tally_sort_key_words(key)->kind == TALLY_KEY_TEXT &&
		    root->key[key] == TALLY_STRING_NONE)
			return -ENOMEM;
	return 0;
}
