/* Entries with what was sampled in them: one pass over the distinct stacks.  A key that a stack has more than once
 * counts once in a total: the last row that was counted is noted with the key. */
#include "profile/report_parts.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>

struct key_state {
	uint32_t root;  /* + 1: whose entry it is */
	uint32_t entry; /* in `met` */
	uint32_t row;   /* + 1: the last one that was counted */
};

struct summer {
	struct tally_report_builder *builder;
	struct key_state *states; /* by key */
	uint32_t root;
};

static int meet(struct summer *summer, uint32_t key, uint32_t function)
{
	struct tally_report_builder *builder = summer->builder;
	const struct tally_report_root *root = &builder->roots.items[summer->root];
	const struct tally_report_key *names = &builder->keys.items[key];
	struct tally_report_met met = {
		.entry = { .key = { [TALLY_SORT_COMM] = root->comm, [TALLY_SORT_PID] = root->pid,
				    [TALLY_SORT_TID] = root->tid, [TALLY_SORT_CPU] = root->cpu,
				    [TALLY_SORT_OBJECT] = names->object, [TALLY_SORT_SYMBOL] = names->symbol },
			   .function = function },
		.root = summer->root, .key = key, .shown = TALLY_REPORT_NONE,
	};
	summer->states[key] = (struct key_state){ .root = summer->root + 1, .entry = (uint32_t)builder->met.count };
	return builder->met.count >= TALLY_REPORT_NONE ? -ENOMEM : tally_vector_push(&builder->met, met);
}

/* The entry of a key, which counts the row in its total; NULL when memory is out. */
static inline struct tally_report_entry *count_key(struct summer *summer, uint32_t key, uint32_t place,
						   const struct tally_row *row, uint32_t stamp)
{
	struct tally_report_builder *builder = summer->builder;
	struct key_state *state = &summer->states[key];
	if (state->root != summer->root + 1 &&
	    meet(summer, key, place == UINT32_MAX ? UINT32_MAX : tally_profile_function(builder->profile, place)) < 0)
		return NULL;
	struct tally_report_entry *entry = &builder->met.items[state->entry].entry;
	if (state->row != stamp) {
		state->row = stamp;
		entry->total += row->period;
		entry->total_samples += row->samples;
	}
	return entry;
}

static int sum_row(struct summer *summer, size_t at)
{
	struct tally_report_builder *builder = summer->builder;
	const struct tally_profile *profile = builder->profile;
	const struct tally_row *row = &profile->rows.rows.items[builder->rows[at]];
	const uint8_t *end, *next = tally_row_stack(&profile->rows, builder->rows[at], &end);
	uint32_t stamp = builder->rows[at] + 1, place = UINT32_MAX, key = 0;
	if (next < end) {
		place = tally_stack_next_place(&next);
		key = builder->key_of_place[place];
	}
	struct tally_report_entry *entry = count_key(summer, key, place, row, stamp);
	if (!entry)
		return -ENOMEM;
	entry->self += row->period;
	entry->self_samples += row->samples;
	if (builder->leaf_entry)
		builder->leaf_entry[at] = summer->states[key].entry;
	while (builder->options->children && next < end) {
		place = tally_stack_next_place(&next);
		key = builder->key_of_place[place];
		if (summer->states[key].row != stamp && !count_key(summer, key, place, row, stamp))
			return -ENOMEM;
	}
	return 0;
}

int tally_report_sum_rows(struct tally_report_builder *builder)
{
	struct summer summer = {
		.builder = builder,
		.states = calloc(builder->keys.count + 1, sizeof(*summer.states)),
	};
	int result = summer.states ? 0 : -ENOMEM;
	if (!result && builder->options->tree != TALLY_TREE_NONE && !builder->options->children) {
		builder->leaf_entry = malloc((builder->profile->rows.rows.count + 1) * sizeof(*builder->leaf_entry));
		result = builder->leaf_entry ? 0 : -ENOMEM;
	}
	for (; !result && summer.root < builder->roots.count; summer.root++)
		for (size_t at = builder->root_rows[summer.root]; !result && at < builder->root_rows[summer.root + 1]; at++)
			result = sum_row(&summer, at);
	free(summer.states);
	return result;
}
