/* Sums a profile's rows by key, and selects and sorts the entries.  tally_report_build() runs all
 * steps; other files of this room make the keys, the roots and the call trees. */
#include "report/report_internal.h"

#include "base/vector.h"
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- sums ---------------------------------------------------------------- */

/* Sums entries in one pass over the distinct stacks.  A key that a stack has several times counts
 * once in a total: each key notes the last row that was counted for it.  Which frames are
 * repetitions is nearly random, so the distinct keys of a stack are first listed without a branch,
 * and then counted.  In small programs, with one byte per place and at most 64 keys, the list is a
 * word of bits. */

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
	uint32_t keys_of_place_max; /* maximum number of keys of a place */
	uint32_t root;
	uint64_t longest; /* longest wait of the current row */
};

/* Returns the first function in the row's stack that has the key. */
static uint32_t first_function(const struct tally_report_builder *builder, uint32_t row,
			       uint32_t key)
{
	const struct tally_profile *profile = builder->profile;
	const uint8_t *end, *next = tally_row_stack(&profile->rows, row, &end);
	while (next < end) {
		uint32_t place = tally_stack_next_place(&next);
		const struct tally_place_name *name = &profile->names[place];
		for (uint32_t i = 0; i < name->count; i++)
			if (tally_report_frame_key(builder, place, i) == key)
				return profile->recording->names.frames.items[name->first + i]
					.function;
	}
	return UINT32_MAX;
}

/* Sets the entry's function, which is a symbol if one has the key, and whether it was inlined. */
static void set_function(const struct tally_report_builder *builder, uint32_t row, uint32_t key,
			 struct tally_report_entry *entry)
{
	entry->function = first_function(builder, row, key);
	if (builder->options->by[TALLY_SORT_SYMBOL])
		tally_report_set_inlining(entry, &builder->functions_of_key[key]);
}

static int meet(struct summer *summer, uint32_t key, uint32_t row)
{
	struct tally_report_builder *builder = summer->builder;
	const struct tally_report_root *root = &builder->roots.items[summer->root];
	const struct tally_report_key *names = &builder->keys.items[key];
	struct tally_report_met met = {
		.root = summer->root, .key = key, .shown = TALLY_REPORT_NONE
	};
	set_function(builder, row, key, &met.entry);
	memcpy(met.entry.key, root->key, sizeof(root->key));
	met.entry.key[TALLY_SORT_OBJECT] = names->object;
	met.entry.key[TALLY_SORT_SYMBOL] = names->symbol;
	met.entry.key[TALLY_SORT_SOURCE_FILE] = names->file;
	met.entry.key[TALLY_SORT_SOURCE_LINE] = names->line;
	summer->sums[key] = (struct key_sums){ .root = summer->root + 1,
					       .entry = (uint32_t)builder->met.count };
	if (builder->met.count >= TALLY_REPORT_NONE)
		return -ENOMEM;
	return tally_vector_push(&builder->met, met);
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
	const struct tally_place_keys *keys_of_place = summer->builder->keys_of_place;
	const uint8_t *end, *next = tally_row_stack(&summer->builder->profile->rows, number, &end);
	size_t keys_max = (size_t)(end - next) * summer->keys_of_place_max + 1;
	if (tally_vector_reserve(&summer->keys, keys_max) < 0)
		return -ENOMEM;
	uint32_t *keys = summer->keys.items, *seen = summer->seen, stamp = number + 1;
	size_t count = 0;
	seen[leaf] = stamp;
	while (next < end) {
		struct tally_place_keys of_place = keys_of_place[tally_stack_next_place(&next)];
		keys[count] = of_place.leaf;
		count += seen[of_place.leaf] != stamp;
		seen[of_place.leaf] = stamp;
		const uint32_t *more = summer->builder->key_lists.items + of_place.list;
		for (uint32_t i = 0; i < of_place.more; i++) {
			keys[count] = more[i];
			count += seen[more[i]] != stamp;
			seen[more[i]] = stamp;
		}
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
	while (next < end)
		bits |= summer->bits_of_place[*next++];
	for (bits &= ~((uint64_t)1 << leaf); bits; bits &= bits - 1) {
		int result = count_key(summer, row, number, (uint32_t)__builtin_ctzll(bits));
		if (result)
			return result;
	}
	return 0;
}

static inline int sum_row(struct summer *summer, size_t at)
{
	struct tally_report_builder *builder = summer->builder;
	uint32_t number = builder->rows[at], key = 0; /* 0: no address */
	const struct tally_row *row = &builder->profile->rows.rows.items[number];
	const uint8_t *end, *next = tally_row_stack(&builder->profile->rows, number, &end);
	if (next < end)
		key = builder->keys_of_place[tally_stack_next_place(&next)].leaf;
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
	if (summer->bits_of_place)
		return count_callers_bits(summer, row, number, key);
	return count_callers(summer, row, number, key);
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
	for (uint32_t i = 0; summer->bits_of_place && i < count; i++) {
		const struct tally_place_keys *keys = &builder->keys_of_place[i];
		summer->bits_of_place[i] = (uint64_t)1 << keys->leaf;
		for (uint32_t k = 0; k < keys->more; k++)
			summer->bits_of_place[i] |= (uint64_t)1
						    << builder->key_lists.items[keys->list + k];
	}
	if (summer->bits_of_place)
		return 0;
	return -ENOMEM;
}

/* Fills `met`.  Returns 0 or -ENOMEM. */
static int sum_rows(struct tally_report_builder *builder)
{
	struct summer summer = {
		.builder = builder,
		.sums = calloc(builder->keys.count + 1, sizeof(*summer.sums)),
		.seen = calloc(builder->keys.count + 1, sizeof(*summer.seen)),
	};
	int result = -ENOMEM;
	if (summer.sums && summer.seen)
		result = make_bits(&summer);
	for (size_t i = 0; i < builder->profile->places.places.count; i++)
		if (builder->keys_of_place[i].more >= summer.keys_of_place_max)
			summer.keys_of_place_max = builder->keys_of_place[i].more + 1;
	if (!result && builder->options->tree != TALLY_TREE_NONE && !builder->options->children) {
		builder->leaf_entry = malloc((builder->profile->rows.rows.count + 1) *
					     sizeof(*builder->leaf_entry));
		if (builder->leaf_entry)
			result = 0;
		else
			result = -ENOMEM;
	}
	for (; !result && summer.root < builder->roots.count; summer.root++)
		result = sum_root(&summer);
	free(summer.sums);
	free(summer.seen);
	free(summer.bits_of_place);
	tally_vector_release(&summer.keys);
	return result;
}

/* ---- the order of entries ------------------------------------------------ */

static int compare_weights(uint64_t first_x, uint64_t first_y, uint64_t then_x, uint64_t then_y)
{
	if (first_x != first_y)
		return first_x < first_y ? 1 : -1;
	return (then_x < then_y) - (then_x > then_y);
}

static int compare_texts(const struct tally_strings *strings, uint32_t a, uint32_t b)
{
	int order = 0;
	if (a != b)
		order = strcmp(tally_strings_text(strings, a), tally_strings_text(strings, b));
	if (order)
		return order;
	return (a > b) - (a < b);
}

/* Compares the lengths of decimal numbers in text form. */
static int compare_lengths(const struct tally_strings *strings, uint32_t a, uint32_t b)
{
	size_t x = strlen(tally_strings_text(strings, a)),
	       y = strlen(tally_strings_text(strings, b));
	return (x > y) - (x < y);
}

static int compare_key(const struct tally_recording *recording, enum tally_sort_key key, uint32_t a,
		       uint32_t b)
{
	const struct tally_function *functions = recording->names.functions.items;
	int order;
	switch (tally_sort_row(key)->kind) {
	case TALLY_KIND_TASK_TEXT: return compare_texts(&recording->tasks.strings, a, b);
	case TALLY_KIND_FUNCTION:
		order = compare_texts(&recording->names.strings, functions[a].plain,
				      functions[b].plain);
		if (order)
			return order;
		return compare_texts(&recording->names.strings, functions[a].object,
				     functions[b].object);
	case TALLY_KIND_NUMBER: return (a > b) - (a < b);
	case TALLY_KIND_DIGITS:
	case TALLY_KIND_EACH:
		order = compare_lengths(&recording->names.strings, a, b);
		if (order)
			return order;
		return compare_texts(&recording->names.strings, a, b);
	default: return compare_texts(&recording->names.strings, a, b);
	}
}

/* Orders entries of equal weight by their visible keys. */
static int compare_keys(const struct tally_recording *recording, const uint32_t *a,
			const uint32_t *b)
{
	int order = 0;
	for (unsigned key = 0; !order && key < TALLY_SORT_KEYS; key++)
		if (a[key] != b[key])
			order = compare_key(recording, key, a[key], b[key]);
	return order;
}

static int compare_entries(const void *a, const void *b, void *context)
{
	const struct tally_report_builder *builder = context;
	const struct tally_report_entry *x = &builder->met.items[*(const uint32_t *)a].entry;
	const struct tally_report_entry *y = &builder->met.items[*(const uint32_t *)b].entry;
	int order;
	if (builder->options->by_self)
		order = compare_weights(x->self, y->self, x->total, y->total);
	else
		order = compare_weights(x->total, y->total, x->self, y->self);
	if (order)
		return order;
	return compare_keys(builder->profile->recording, x->key, y->key);
}

/* Selects and sorts the entries to show. */
static int keep_heaviest(struct tally_report_builder *builder)
{
	const struct tally_report_options *options = builder->options;
	struct tally_report *report = builder->report;
	double least = options->percent_min / 100 * (double)report->period;
	uint32_t *kept = malloc((builder->met.count + 1) * sizeof(*kept));
	size_t count = 0;
	int result = 0;
	if (!kept)
		result = -ENOMEM;
	for (size_t i = 0; kept && i < builder->met.count; i++) {
		const struct tally_report_entry *entry = &builder->met.items[i].entry;
		if ((double)(options->children ? entry->total : entry->self) >= least)
			kept[count++] = (uint32_t)i;
	}
	if (count)
		qsort_r(kept, count, sizeof(*kept), compare_entries, builder);
	if (options->limit && count > options->limit)
		count = options->limit;
	for (size_t i = 0; !result && i < count; i++) {
		builder->met.items[kept[i]].shown = (uint32_t)i;
		result = tally_vector_push(&report->entries, builder->met.items[kept[i]].entry);
	}
	report->hidden = builder->met.count - count;
	free(kept);
	return result;
}

int tally_report_build(const struct tally_profile *profile,
		       const struct tally_report_options *options, struct tally_report *report)
{
	struct tally_report_builder builder = { .profile = profile,
						.options = options,
						.report = report };
	size_t events;
	const struct tally_recorded_event *recorded = tally_perfdata_events(
		profile->recording->data, &events);
	*report = (struct tally_report){ 0 };
	report->of_waits = profile->notes_longest && options->event < events &&
			   tally_off_cpu_measured(&profile->recording->off_cpu,
						  &recorded[options->event]);
	tally_profile_totals(profile, options->event, &report->samples, &report->period);
	report->is_saturated = tally_recording_is_saturated(profile->recording, options->event);
	report->idle = tally_profile_idle(profile, options->event);
	report->spread = tally_profile_spread(profile, options->event);
	/* Printed figures are rounded; a lighter branch would not be printed. */
	builder.least = tally_whole_number(options->tree_percent_min / 100 *
					   (double)report->period);
	int result = tally_profile_count_tasks(profile, options->event, &report->comms,
					       &report->threads);
	if (result)
		goto out;
	result = tally_report_make_keys(&builder);
	if (result)
		goto out;
	result = tally_report_make_roots(&builder);
	if (result)
		goto out;
	result = sum_rows(&builder);
	if (result)
		goto out;
	result = keep_heaviest(&builder);
	if (result)
		goto out;
	if (options->tree != TALLY_TREE_NONE)
		result = tally_report_make_trees(&builder);
out:
	tally_report_release_keys(&builder);
	tally_report_release_roots(&builder);
	free(builder.leaf_entry);
	tally_vector_release(&builder.met);
	if (result < 0)
		tally_report_release(report);
	return result;
}

void tally_report_release(struct tally_report *report)
{
	tally_arena_release(&report->arena);
	tally_vector_release(&report->entries);
}
