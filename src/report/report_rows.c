/* Sums entries in one pass over the distinct stacks.  A key that a stack has several times counts
 * once in a total: each key notes the last row that was counted for it.  Which frames are
 * repetitions is nearly random, so the distinct keys of a stack are first listed without a branch,
 * and then counted.  In small programs, with one byte per place and at most 64 keys, the list is a
 * word of bits. */
#include "report/report_parts.h"

#include "base/vector.h"
#include "profile/wait_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The sums of one root's rows for a key. */
struct key_sums {
	uint64_t self, total, self_samples, total_samples, self_longest, total_longest;
	uint32_t root;  /* number of the root that the sums are for, + 1 */
	uint32_t entry; /* index in `met` */
};

struct summer {
	struct tally_report_builder *builder;
	struct key_sums *sums; /* by key */
	uint32_t *seen;        /* by key: the last row with it, + 1 */
	/* distinct keys of a row without the leaf's */
	struct { uint32_t *items; size_t count, capacity; } keys;
	/* a bit for the place's key; NULL: there are too many keys or places */
	uint64_t *bits_of_place;
	uint32_t root;
	uint64_t longest; /* longest wait of the current row */
};

/* Returns the first function in the row's stack that has the key. */
static uint32_t function_of_key(const struct tally_report_builder *builder, uint32_t row,
				uint32_t key)
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
		.entry.function = function_of_key(builder, row, key),
		.root = summer->root, .key = key, .shown = TALLY_REPORT_NONE,
	};
	memcpy(met.entry.key, root->key, sizeof(root->key));
	met.entry.key[TALLY_SORT_OBJECT] = names->object;
	met.entry.key[TALLY_SORT_SYMBOL] = names->symbol;
	met.entry.key[TALLY_SORT_SOURCE_FILE] = names->file;
	met.entry.key[TALLY_SORT_SOURCE_LINE] = names->line;
	summer->sums[key] = (struct key_sums){ .root = summer->root + 1,
					       .entry = (uint32_t)builder->met.count };
	return builder->met.count >= TALLY_REPORT_NONE ? -ENOMEM
						       : tally_vector_push(&builder->met, met);
}

static inline int count_key(struct summer *summer, const struct tally_row *row, uint32_t number,
			    uint32_t key)
{
	struct key_sums *sums = &summer->sums[key];
	if (sums->root != summer->root + 1 && meet(summer, key, number) < 0)
		return -ENOMEM;
	sums->total += row->period;
	sums->total_samples += row->samples;
	if (sums->total_longest < summer->longest)
		sums->total_longest = summer->longest;
	return 0;
}

/* Counts a row for its distinct keys, except for the leaf's. */
static inline int count_callers(struct summer *summer, const struct tally_row *row, uint32_t number,
				uint32_t leaf)
{
	const uint32_t *key_of_place = summer->builder->key_of_place;
	const uint8_t *end, *next = tally_row_stack(&summer->builder->profile->rows, number, &end);
	if (tally_vector_reserve(&summer->keys, (size_t)(end - next) + 1) < 0)
		return -ENOMEM;
	uint32_t *keys = summer->keys.items, *seen = summer->seen, stamp = number + 1;
	size_t count = 0;
	seen[leaf] = stamp;
	while (next < end) {
		uint32_t key = key_of_place[tally_stack_next_place(&next)];
		keys[count] = key;
		count += seen[key] != stamp;
		seen[key] = stamp;
	}
	int result = 0;
	for (size_t i = 0; !result && i < count; i++)
		result = count_key(summer, row, number, keys[i]);
	return result;
}

static inline int count_callers_bits(struct summer *summer, const struct tally_row *row,
				     uint32_t number, uint32_t leaf)
{
	const uint8_t *end, *next = tally_row_stack(&summer->builder->profile->rows, number, &end);
	uint64_t bits = 0;
	int result = 0;
	while (next < end)
		bits |= summer->bits_of_place[*next++];
	for (bits &= ~((uint64_t)1 << leaf); !result && bits; bits &= bits - 1)
		result = count_key(summer, row, number, (uint32_t)__builtin_ctzll(bits));
	return result;
}

static inline int sum_row(struct summer *summer, size_t at)
{
	struct tally_report_builder *builder = summer->builder;
	uint32_t number = builder->rows[at], key = 0; /* 0: no address */
	const struct tally_row *row = &builder->profile->rows.rows.items[number];
	const uint8_t *end, *next = tally_row_stack(&builder->profile->rows, number, &end);
	if (next < end)
		key = builder->key_of_place[tally_stack_next_place(&next)];
	summer->longest = tally_profile_longest(builder->profile, number);
	if (count_key(summer, row, number, key) < 0)
		return -ENOMEM;
	if (summer->sums[key].self_longest < summer->longest)
		summer->sums[key].self_longest = summer->longest;
	summer->sums[key].self += row->period;
	summer->sums[key].self_samples += row->samples;
	if (builder->leaf_entry)
		builder->leaf_entry[at] = summer->sums[key].entry;
	if (!builder->options->children)
		return 0;
	return summer->bits_of_place ? count_callers_bits(summer, row, number, key) :
				       count_callers(summer, row, number, key);
}

static int sum_root(struct summer *summer)
{
	struct tally_report_builder *builder = summer->builder;
	size_t first = builder->met.count;
	int result = 0;
	for (size_t at = builder->root_rows[summer->root];
	     !result && at < builder->root_rows[summer->root + 1]; at++)
		result = sum_row(summer, at);
	for (size_t i = first; i < builder->met.count; i++) {
		struct tally_report_entry *entry = &builder->met.items[i].entry;
		const struct key_sums *sums = &summer->sums[builder->met.items[i].key];
		entry->self = sums->self;
		entry->total = sums->total;
		entry->self_samples = sums->self_samples;
		entry->total_samples = sums->total_samples;
		entry->self_longest = sums->self_longest;
		entry->total_longest = sums->total_longest;
	}
	return result;
}

static int make_bits(struct summer *summer)
{
	const struct tally_report_builder *builder = summer->builder;
	size_t count = builder->profile->places.places.count;
	if (builder->keys.count > 64 || count > 0x80)
		return 0;
	summer->bits_of_place = malloc((count + 1) * sizeof(*summer->bits_of_place));
	for (size_t i = 0; summer->bits_of_place && i < count; i++)
		summer->bits_of_place[i] = (uint64_t)1 << builder->key_of_place[i];
	return summer->bits_of_place ? 0 : -ENOMEM;
}

int tally_report_sum_rows(struct tally_report_builder *builder)
{
	struct summer summer = {
		.builder = builder,
		.sums = calloc(builder->keys.count + 1, sizeof(*summer.sums)),
		.seen = calloc(builder->keys.count + 1, sizeof(*summer.seen)),
	};
	int result = summer.sums && summer.seen ? make_bits(&summer) : -ENOMEM;
	if (!result && builder->options->tree != TALLY_TREE_NONE && !builder->options->children) {
		builder->leaf_entry = malloc((builder->profile->rows.rows.count + 1) *
					     sizeof(*builder->leaf_entry));
		result = builder->leaf_entry ? 0 : -ENOMEM;
	}
	for (; !result && summer.root < builder->roots.count; summer.root++)
		result = sum_root(&summer);
	free(summer.sums);
	free(summer.seen);
	free(summer.bits_of_place);
	tally_vector_release(&summer.keys);
	return result;
}
