/* Most samples have a stack that was seen before: they cost one look into the table of chains and
 * two additions.  Only a new chain is taken apart: its addresses become places, and its places
 * become the bytes of a row's stack.
 *
 * The tables are far larger than the CPU's caches.  So samples are handled in slices, and the
 * memory that a slice needs is prefetched.  Growing a table costs as much as filling it, so its
 * final size is guessed from the share of the recording that is read.
 *
 * The table of chains is only a cache.  Some recordings have many more chains than stacks:
 * thousands of short processes, each with its own addresses.  Then the table is emptied, so that
 * memory depends on the stacks.
 *
 * In places-only mode, rows have only the leaves.  A chain is walked from its leaf up to where it
 * joins the last chain of its process: most chains have nine of ten callers in common with it.
 * This is less work than hashing all of the chain's words.
 */
#include "profile/profile_internal.h"

#include "abi/abi.h"
#include "base/extremes.h"
#include "base/vector.h"
#include "profile/profile.h"
#include "task/task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHAINS_LEAST = 1 << 16, CHAINS_PER_ROW = 4,
	/* GUESS_FROM: chains needed for a guess of sizes; GUESS_TIMES: limit of growth */
	GUESS_FROM = 1 << 14, GUESS_TIMES = 16,
	LINE_WORDS = 8, LAST_CHAINS = 16, LEAVES = 4096,
};
static const uint32_t NO_ROW = UINT32_MAX, FILTERED = UINT32_MAX - 1;

/* The result for a sample of the slice. */
struct outcome {
	uint32_t row, row_hash;
	size_t stack, stack_bytes; /* for a new chain: its places, in maker->stack */
	bool is_new;
};

/* Places-only mode: the last chain that was taken apart.  A task's next chain has most of it in
 * common. */
struct last_chain {
	struct tally_last_chain chain;
	uint64_t user_maps, kernel_maps;
	uint32_t pid, class, row; /* row: of its leaf */
	bool is_kernel, is_late;
};

/* The row of an address that was seen before; all zero: none. */
struct known_leaf {
	uint64_t ip, maps;
	uint32_t pid, class, row; /* row: + 1 */
	bool is_kernel, is_late;
};

struct tally_row_maker {
	struct tally_profile *profile;
	const struct tally_profile_options *options;
	struct tally_chain_table chains;
	struct last_chain lasts[LAST_CHAINS]; /* by pid */
	struct known_leaf leaves[LEAVES]; /* by hash */
	struct outcome outcomes[TALLY_SLICE];
	/* bytes of the stacks that are being made */
	struct { uint8_t *items; size_t count, capacity; } stack;
};

/* ---- stacks -------------------------------------------------------------- */

/* Returns the function that the stack's leaf will show; without a filter by function, the symbol is
 * enough.  A wait's stack will be shown without the scheduler's frames, so they are skipped. */
static uint32_t leaf_function(const struct tally_row_maker *maker, uint32_t class, size_t stack)
{
	const struct tally_profile *profile = maker->profile;
	const struct tally_profile_options *options = maker->options;
	bool folds = options->arranges_waits && !options->shows_scheduler &&
		     tally_class_is_of_waits(profile, class);
	const uint8_t *at = maker->stack.items + stack,
		      *end = maker->stack.items + maker->stack.count;
	struct tally_names *names = &profile->recording->names;
	const struct tally_place *place;
	uint32_t symbol;
	do {
		place = &profile->places.places.items[tally_stack_next_place(&at)];
		symbol = tally_names_function(names, place, NULL);
	} while (folds && at < end && tally_function_is_scheduler(names, symbol));
	if (options->filter.symbols && symbol != UINT32_MAX)
		return tally_names_source_function(names, place);
	return symbol;
}

static bool leaf_passes(const struct tally_row_maker *maker, uint32_t class, size_t stack)
{
	const struct tally_profile_filter *filter = &maker->options->filter;
	struct tally_profile *profile = maker->profile;
	struct tally_names *names = &profile->recording->names;
	if (!filter->objects && !filter->symbols)
		return true;
	/* any task may wake one that passes */
	if (maker->options->with_wakers && !tally_class_is_of_waits(profile, class))
		return true;
	if (stack == maker->stack.count)
		return false;
	uint32_t function = leaf_function(maker, class, stack);
	bool passes = tally_function_passes(filter, names, function);
	if (!passes)
		tally_map_put(&profile->leaves_left_out, function, NULL);
	return passes;
}

static int push_address(struct tally_row_maker *maker, const struct tally_hashed_sample *sample,
			bool kernel, uint64_t address, enum tally_address_aim aim, uint8_t **at)
{
	struct tally_profile *profile = maker->profile;
	uint64_t maps = kernel ? sample->kernel_maps : sample->user_maps;
	uint32_t place = tally_place_table_find(&profile->places, &profile->recording->tasks,
						sample->pid, kernel, maps, address, aim);
	if (place == UINT32_MAX)
		return -ENOMEM;
	*at = tally_stack_put_place(*at, place);
	return 0;
}

static enum tally_address_aim aim_of(const struct tally_hashed_sample *sample, bool is_return,
				     bool is_leaf)
{
	if (is_return)
		return TALLY_ADDRESS_OF_RETURN;
	if (is_leaf && sample->is_late)
		return TALLY_ADDRESS_LATE;
	return TALLY_ADDRESS_EXACT;
}

/* Puts the outermost frame of a stack that was cut. */
static uint8_t *put_cut(struct tally_row_maker *maker, uint8_t *at)
{
	const struct tally_place cut = { .file = TALLY_FILE_NONE, .address = TALLY_PLACE_CUT };
	uint32_t place = tally_place_table_intern(&maker->profile->places, &cut);
	if (place == UINT32_MAX)
		return NULL;
	return tally_stack_put_place(at, place);
}

static int make_stack(struct tally_row_maker *maker, const struct tally_hashed_sample *sample,
		      struct outcome *outcome)
{
	struct tally_chain_walk walk = {
		.at = sample->words,
		.end = sample->words + sample->count,
		.kernel = sample->is_kernel,
	};
	uint64_t address;
	outcome->stack = maker->stack.count;
	if (tally_vector_reserve(&maker->stack,
				 maker->stack.count +
					 ((size_t)sample->count + 1) * TALLY_PLACE_BYTES_MAX) < 0)
		return -ENOMEM;
	uint8_t *at = maker->stack.items + maker->stack.count;
	const uint8_t *begin = at;
	if (sample->is_ip && push_address(maker, sample, sample->is_kernel, sample->ip,
					  aim_of(sample, false, true), &at) < 0)
		return -ENOMEM;
	while (!sample->is_ip && tally_chain_walk_next(&walk, &address))
		if (push_address(maker, sample, walk.kernel, address,
				 aim_of(sample, walk.is_return && address, at == begin), &at) < 0)
			return -ENOMEM;
	if (sample->is_cut && !(at = put_cut(maker, at)))
		return -ENOMEM;
	maker->stack.count = (size_t)(at - maker->stack.items);
	return 0;
}

/* Hashes the stack that was made last, unless its leaf is filtered out. */
static void end_stack(struct tally_row_maker *maker, uint32_t class, struct outcome *outcome)
{
	const uint8_t *stack = maker->stack.items + outcome->stack;
	outcome->stack_bytes = maker->stack.count - outcome->stack;
	if (!leaf_passes(maker, class, outcome->stack)) {
		outcome->row = FILTERED;
		return;
	}
	outcome->row_hash = tally_row_table_hash(class, stack, outcome->stack_bytes);
	tally_row_table_prefetch(&maker->profile->rows, outcome->row_hash);
}

/* ---- rows ---------------------------------------------------------------- */

static int note_longest(struct tally_profile *profile, uint32_t row, uint64_t period)
{
	while (profile->longest.count <= row)
		if (tally_vector_push(&profile->longest, 0) < 0)
			return -ENOMEM;
	if (profile->longest.items[row] < period)
		profile->longest.items[row] = period;
	return 0;
}

static int add_to_row(struct tally_row_maker *maker, uint32_t row, uint64_t period)
{
	if (row == NO_ROW)
		return -ENOMEM;
	if (row == FILTERED) {
		maker->profile->filtered++;
		return 0;
	}
	struct tally_row *there = &maker->profile->rows.rows.items[row];
	there->samples++;
	there->period += period;
	if (maker->profile->notes_longest)
		return note_longest(maker->profile, row, period);
	return 0;
}

static uint32_t put_row(struct tally_row_maker *maker, uint32_t class,
			const struct outcome *outcome)
{
	if (outcome->row == FILTERED)
		return FILTERED;
	return tally_row_table_put(&maker->profile->rows, outcome->row_hash, class,
				   maker->stack.items + outcome->stack, outcome->stack_bytes);
}

/* Returns the row of a chain that was new when the slice began.  An equal chain may have come
 * earlier in the slice. */
static uint32_t learn_chain(struct tally_row_maker *maker, const struct tally_hashed_sample *sample,
			    const struct outcome *outcome)
{
	uint32_t row = tally_chain_table_find(&maker->chains, sample->hash);
	if (row != NO_ROW)
		return row;
	row = put_row(maker, sample->class, outcome);
	if (maker->chains.count > CHAINS_LEAST + CHAINS_PER_ROW * maker->profile->rows.rows.count)
		tally_chain_table_clear(&maker->chains);
	if (row != NO_ROW && tally_chain_table_add(&maker->chains, sample->hash, row) < 0)
		return NO_ROW;
	return row;
}

/* ---- slices -------------------------------------------------------------- */

static void prefetch_slice(const struct tally_row_maker *maker,
			   const struct tally_hashed_sample *samples, size_t count)
{
	for (size_t i = 0; i < count && i < TALLY_SLICE; i++)
		tally_chain_table_prefetch(&maker->chains, samples[i].hash);
}

/* Looks up the chains: finds their rows, and notes which ones are new. */
static void look_up(struct tally_row_maker *maker, const struct tally_hashed_sample *samples,
		    size_t count)
{
	const struct tally_row *rows = maker->profile->rows.rows.items;
	for (size_t i = 0; i < count; i++) {
		struct outcome *outcome = &maker->outcomes[i];
		outcome->row = tally_chain_table_find(&maker->chains, samples[i].hash);
		outcome->is_new = outcome->row == NO_ROW;
		if (outcome->row < FILTERED)
			__builtin_prefetch(&rows[outcome->row], 1);
		for (uint32_t word = 0; outcome->is_new && word < samples[i].count;
		     word += LINE_WORDS)
			__builtin_prefetch(&samples[i].words[word]);
	}
}

static int add_slice(struct tally_row_maker *maker, const struct tally_hashed_sample *samples,
		     size_t count)
{
	int result = 0;
	look_up(maker, samples, count);
	maker->stack.count = 0;
	for (size_t i = 0; i < count; i++) {
		if (!maker->outcomes[i].is_new)
			continue;
		if (make_stack(maker, &samples[i], &maker->outcomes[i]) < 0)
			return -ENOMEM;
		end_stack(maker, samples[i].class, &maker->outcomes[i]);
	}
	for (size_t i = 0; !result && i < count; i++) {
		const struct outcome *outcome = &maker->outcomes[i];
		uint32_t row = outcome->row;
		if (outcome->is_new)
			row = learn_chain(maker, &samples[i], outcome);
		result = add_to_row(maker, row, samples[i].period);
	}
	return result;
}

/* ---- places alone -------------------------------------------------------- */

/* In another task, or with other maps, the addresses mean something else. */
static void forget_others(struct last_chain *last, const struct tally_hashed_sample *sample)
{
	if (last->pid == sample->pid && last->user_maps == sample->user_maps &&
	    last->kernel_maps == sample->kernel_maps)
		return;
	last->chain.words.count = 0;
	last->pid = sample->pid;
	last->user_maps = sample->user_maps;
	last->kernel_maps = sample->kernel_maps;
}

/* Finds the places of the new part of a chain.  The leaf's place is put at `*leaf`, which then
 * points behind it; if the chain has no address, nothing is put. */
static int find_places(struct tally_row_maker *maker, struct last_chain *last,
		       const struct tally_hashed_sample *sample, uint8_t **leaf)
{
	struct tally_chain_news news = tally_chain_news_of(&last->chain, sample->words,
							   sample->count, sample->is_kernel);
	uint8_t ignored[TALLY_PLACE_BYTES_MAX], *begin = *leaf;
	uint64_t address;
	while (tally_chain_news_next(&news, &last->chain, &address)) {
		uint8_t *put = ignored;
		bool is_leaf = *leaf == begin;
		if (push_address(maker, sample, news.walk.kernel, address,
				 aim_of(sample, news.walk.is_return && address, is_leaf),
				 is_leaf ? leaf : &put) < 0)
			return -ENOMEM;
	}
	return tally_last_chain_set(&last->chain, &news, sample->words, sample->count);
}

/* Returns the row of a stack that has only the leaf. */
static uint32_t leaf_row(struct tally_row_maker *maker, uint32_t class, const uint8_t *stack,
			 const uint8_t *end)
{
	size_t bytes = (size_t)(end - stack);
	return tally_row_table_put(&maker->profile->rows, tally_row_table_hash(class, stack, bytes),
				   class, stack, bytes);
}

static int add_chain(struct tally_row_maker *maker, const struct tally_hashed_sample *sample)
{
	struct last_chain *last = &maker->lasts[sample->pid % LAST_CHAINS];
	forget_others(last, sample);
	bool is_same = last->chain.words.count == sample->count && last->class == sample->class &&
		       last->is_kernel == sample->is_kernel && last->is_late == sample->is_late &&
		       tally_last_chain_common(&last->chain, sample->words, sample->count) ==
			       sample->count;
	if (!is_same) {
		uint8_t leaf[TALLY_PLACE_BYTES_MAX], *end = leaf;
		if (find_places(maker, last, sample, &end) < 0)
			return -ENOMEM;
		last->row = leaf_row(maker, sample->class, leaf, end);
		last->is_late = sample->is_late;
		last->class = sample->class;
		last->is_kernel = sample->is_kernel;
	}
	return add_to_row(maker, last->row, sample->period);
}

int tally_row_maker_add_places(struct tally_row_maker *maker,
			       const struct tally_hashed_sample *sample)
{
	const uint8_t none[1] = { 0 };
	if (sample->count)
		return add_chain(maker, sample);
	return add_to_row(maker, leaf_row(maker, sample->class, none, none), sample->period);
}

/* ---- leaves alone -------------------------------------------------------- */

static int learn_leaf(struct tally_row_maker *maker, const struct tally_leaf_sample *sample,
		      struct known_leaf *known)
{
	struct tally_profile *profile = maker->profile;
	struct outcome outcome = { 0 };
	enum tally_address_aim aim = sample->is_late ? TALLY_ADDRESS_LATE : TALLY_ADDRESS_EXACT;
	uint32_t place = tally_place_table_find(&profile->places, &profile->recording->tasks,
						sample->pid, sample->is_kernel, sample->maps,
						sample->ip, aim);
	if (place == UINT32_MAX || tally_vector_reserve(&maker->stack, TALLY_PLACE_BYTES_MAX) < 0)
		return -ENOMEM;
	maker->stack.count = (size_t)(tally_stack_put_place(maker->stack.items, place) -
				      maker->stack.items);
	end_stack(maker, sample->class, &outcome);
	*known = (struct known_leaf){
		.ip = sample->ip,
		.maps = sample->maps,
		.pid = sample->pid,
		.class = sample->class,
		.is_kernel = sample->is_kernel,
		.is_late = sample->is_late,
		.row = put_row(maker, sample->class, &outcome) + 1,
	};
	return 0;
}

int tally_row_maker_add_leaf(struct tally_row_maker *maker, const struct tally_leaf_sample *sample)
{
	uint64_t hash = (sample->ip ^ (uint64_t)sample->class << 32 ^ sample->pid) *
			0x9e3779b97f4a7c15u;
	struct known_leaf *known = &maker->leaves[hash >> 32 & (LEAVES - 1)];
	bool is_known = known->ip == sample->ip && known->maps == sample->maps &&
			known->pid == sample->pid && known->class == sample->class &&
			known->is_kernel == sample->is_kernel &&
			known->is_late == sample->is_late && known->row;
	if (!is_known && learn_leaf(maker, sample, known) < 0)
		return -ENOMEM;
	return add_to_row(maker, known->row - 1, sample->period);
}

/* ---- rows of many -------------------------------------------------------- */

/* Before a table grows: reserves the size that it will have at the end, if the recording goes on as
 * it began. */
static void guess_sizes(struct tally_row_maker *maker, size_t more, double share)
{
	struct tally_row_table *rows = &maker->profile->rows;
	if (maker->chains.count < GUESS_FROM || !(share > 0))
		return;
	double factor = tally_min_double(1.05 / share, GUESS_TIMES);
	if (factor <= 1)
		return;
	/* If this fails, the tables grow as needed. */
	if (tally_chain_table_is_full(&maker->chains, more))
		tally_chain_table_reserve(&maker->chains,
					  (size_t)(factor * (double)maker->chains.count));
	if (tally_row_table_is_full(rows, more))
		tally_row_table_reserve(rows, (size_t)(factor * (double)rows->rows.count),
					(size_t)(factor * (double)rows->stacks.count));
}

int tally_row_maker_add(struct tally_row_maker *maker, const struct tally_hashed_sample *samples,
			size_t count, double share)
{
	int result = 0;
	guess_sizes(maker, count, share);
	prefetch_slice(maker, samples, count);
	for (size_t at = 0; !result && at < count; at += TALLY_SLICE) {
		size_t left = count - at;
		if (left > TALLY_SLICE)
			prefetch_slice(maker, &samples[at + TALLY_SLICE], left - TALLY_SLICE);
		result = add_slice(maker, &samples[at], tally_min_u64(left, TALLY_SLICE));
	}
	return result;
}

int tally_row_maker_add_unwound(struct tally_row_maker *maker, uint32_t class, uint64_t period)
{
	const struct tally_recording *recording = maker->profile->recording;
	struct outcome outcome = { 0 };
	size_t count = recording->chain.count;
	if (tally_vector_reserve(&maker->stack, count * TALLY_PLACE_BYTES_MAX) < 0)
		return -ENOMEM;
	uint8_t *at = maker->stack.items, *leaf_end = at;
	for (size_t i = 0; i < count; i++) {
		uint32_t place = tally_place_table_intern(&maker->profile->places,
							  &recording->chain.items[i].place);
		if (place == UINT32_MAX)
			return -ENOMEM;
		at = tally_stack_put_place(at, place);
		if (!i)
			leaf_end = at;
	}
	maker->stack.count = count ? (size_t)(at - maker->stack.items) : 0;
	if (maker->options->only_places)
		return add_to_row(maker, leaf_row(maker, class, maker->stack.items, leaf_end),
				  period);
	end_stack(maker, class, &outcome);
	return add_to_row(maker, put_row(maker, class, &outcome), period);
}

int tally_row_maker_add_place(struct tally_row_maker *maker, uint32_t class, uint32_t place,
			      uint64_t period)
{
	struct outcome outcome = { 0 };
	if (tally_vector_reserve(&maker->stack, TALLY_PLACE_BYTES_MAX) < 0)
		return -ENOMEM;
	maker->stack.count = (size_t)(tally_stack_put_place(maker->stack.items, place) -
				      maker->stack.items);
	end_stack(maker, class, &outcome);
	return add_to_row(maker, put_row(maker, class, &outcome), period);
}

/* ---- its life ------------------------------------------------------------ */

const struct tally_chain_table *tally_row_maker_chains(const struct tally_row_maker *maker)
{
	return &maker->chains;
}

struct tally_row_maker *tally_row_maker_new(struct tally_profile *profile,
					    const struct tally_profile_options *options)
{
	struct tally_row_maker *maker = calloc(1, sizeof(*maker));
	if (!maker)
		return NULL;
	if (tally_chain_table_init(&maker->chains) < 0) {
		free(maker);
		return NULL;
	}
	maker->profile = profile;
	maker->options = options;
	return maker;
}

void tally_row_maker_free(struct tally_row_maker *maker)
{
	if (!maker)
		return;
	tally_chain_table_release(&maker->chains);
	tally_vector_release(&maker->stack);
	for (unsigned i = 0; i < LAST_CHAINS; i++)
		tally_vector_release(&maker->lasts[i].chain.words);
	free(maker);
}
