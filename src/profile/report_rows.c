/* Entries with what was sampled in them: one pass over the distinct stacks.  A key that a stack has more than once
 * counts once in a total: the last row that was counted is noted with the key.  Which frames are repetitions is as good
 * as random, so the distinct keys of a stack are listed without a branch, and then counted.
 */
#include "profile/report_parts.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>

/* What a root's rows come to. */
struct key_sums {
	uint64_t self, total, self_samples, total_samples;
	uint32_t root;  /* + 1: whose sums they are */
	uint32_t entry; /* in `met` */
};

struct summer {
	struct tally_report_builder *builder;
	struct key_sums *sums; /* by key */
	uint32_t *seen;        /* by key: the last row (+ 1) that has it */
	struct { uint32_t *items; size_t count, capacity; } keys; /* distinct ones of a row; the leaf's first */
	uint32_t root;
};

/* The function by which a row comes to a key. */
static uint32_t function_of_key(const struct tally_report_builder *builder, uint32_t row, uint32_t key)
{
	const uint8_t *end, *next = tally_row_stack(&builder->profile->rows, row, &end);
	while (next < end) {
		uint32_t place = tally_stack_next_place(&next);
		if (builder->key_of_place[place] == key)
			return tally_profile_function(builder->profile, place);
	}
	return UINT32_MAX;
}

static int meet(struct summer *summer, uint32_t key, uint32_t row)
{
	struct tally_report_builder *builder = summer->builder;
	const struct tally_report_root *root = &builder->roots.items[summer->root];
	const struct tally_report_key *names = &builder->keys.items[key];
	struct tally_report_met met = {
		.entry = { .key = { [TALLY_SORT_COMM] = root->comm, [TALLY_SORT_PID] = root->pid,
				    [TALLY_SORT_TID] = root->tid, [TALLY_SORT_CPU] = root->cpu,
				    [TALLY_SORT_OBJECT] = names->object, [TALLY_SORT_SYMBOL] = names->symbol },
			   .function = function_of_key(builder, row, key) },
		.root = summer->root, .key = key, .shown = TALLY_REPORT_NONE,
	};
	summer->sums[key] = (struct key_sums){ .root = summer->root + 1, .entry = (uint32_t)builder->met.count };
	return builder->met.count >= TALLY_REPORT_NONE ? -ENOMEM : tally_vector_push(&builder->met, met);
}

/* Lists the keys of a row that count: all, or the leaf's. */
static inline int list_keys(struct summer *summer, uint32_t row)
{
	const struct tally_report_builder *builder = summer->builder;
	const uint32_t *key_of_place = builder->key_of_place;
	const uint8_t *end, *next = tally_row_stack(&builder->profile->rows, row, &end);
	if (tally_vector_reserve(&summer->keys, (size_t)(end - next) + 1) < 0)
		return -ENOMEM;
	uint32_t *keys = summer->keys.items, *seen = summer->seen, stamp = row + 1;
	size_t count = 1;
	keys[0] = next < end ? key_of_place[tally_stack_next_place(&next)] : 0; /* 0: no address */
	seen[keys[0]] = stamp;
	if (builder->options->children)
		while (next < end) {
			uint32_t key = key_of_place[tally_stack_next_place(&next)];
			keys[count] = key;
			count += seen[key] != stamp;
			seen[key] = stamp;
		}
	summer->keys.count = count;
	return 0;
}

static inline int sum_row(struct summer *summer, size_t at)
{
	struct tally_report_builder *builder = summer->builder;
	const struct tally_row *row = &builder->profile->rows.rows.items[builder->rows[at]];
	if (list_keys(summer, builder->rows[at]) < 0)
		return -ENOMEM;
	const uint32_t *keys = summer->keys.items;
	for (size_t i = 0; i < summer->keys.count; i++) {
		struct key_sums *sums = &summer->sums[keys[i]];
		if (sums->root != summer->root + 1 && meet(summer, keys[i], builder->rows[at]) < 0)
			return -ENOMEM;
		sums->total += row->period;
		sums->total_samples += row->samples;
	}
	struct key_sums *leaf = &summer->sums[keys[0]];
	leaf->self += row->period;
	leaf->self_samples += row->samples;
	if (builder->leaf_entry)
		builder->leaf_entry[at] = leaf->entry;
	return 0;
}

static int sum_root(struct summer *summer)
{
	struct tally_report_builder *builder = summer->builder;
	size_t first = builder->met.count;
	int result = 0;
	for (size_t at = builder->root_rows[summer->root]; !result && at < builder->root_rows[summer->root + 1]; at++)
		result = sum_row(summer, at);
	for (size_t i = first; i < builder->met.count; i++) {
		struct tally_report_entry *entry = &builder->met.items[i].entry;
		const struct key_sums *sums = &summer->sums[builder->met.items[i].key];
		entry->self = sums->self;
		entry->total = sums->total;
		entry->self_samples = sums->self_samples;
		entry->total_samples = sums->total_samples;
	}
	return result;
}

int tally_report_sum_rows(struct tally_report_builder *builder)
{
	struct summer summer = {
		.builder = builder,
		.sums = calloc(builder->keys.count + 1, sizeof(*summer.sums)),
		.seen = calloc(builder->keys.count + 1, sizeof(*summer.seen)),
	};
	int result = summer.sums && summer.seen ? 0 : -ENOMEM;
	if (!result && builder->options->tree != TALLY_TREE_NONE && !builder->options->children) {
		builder->leaf_entry = malloc((builder->profile->rows.rows.count + 1) * sizeof(*builder->leaf_entry));
		result = builder->leaf_entry ? 0 : -ENOMEM;
	}
	for (; !result && summer.root < builder->roots.count; summer.root++)
		result = sum_root(&summer);
	free(summer.sums);
	free(summer.seen);
	tally_vector_release(&summer.keys);
	return result;
}
