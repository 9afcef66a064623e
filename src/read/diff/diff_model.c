/* One walk over the rows of each run.  In each row, every distinct entry of its frames (or only its
 * leaf's entry) gets the row's weight, in the column of the run.  Entries are found by command and
 * place; a place is the (object, symbol) of a frame, as far as these are keys.  The place of each
 * frame is computed once. */
#include "diff/diff.h"

#include "base/vector.h"
#include "base/weight_sum.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sums {
	uint64_t weight, samples;
};

struct maker {
	const struct tally_match *match;
	const struct tally_diff_options *options;
	struct tally_diff *diff;
	uint32_t *places;      /* by frame: its place; one more for stacks without frames */
	/* by place: the first frame with it */
	struct { uint32_t *items; size_t count, capacity; } place_frames;
	/* by place: bit 0: seen on the old side; bit 1: on the new */
	struct { uint8_t *items; size_t count, capacity; } sides;
	struct tally_map place_index, entry_index;
	struct { struct sums *items; size_t count, capacity; } sums; /* by entry × runs + run */
	/* by entry: the last row that counted for it, + 1 */
	struct { size_t *items; size_t count, capacity; } last_row;
	struct { uint32_t *items; size_t count, capacity; } entry_places;
	struct tally_share *totals; /* by run: whole, samples and spread */
	size_t row_number;
};

static uint64_t samples_of(const struct tally_stacks *stacks, const struct tally_row *row)
{
	/* text with a single number per stack: it counts samples */
	uint64_t counted;
	if (strcmp(stacks->unit, TALLY_MILLIONTHS))
		counted = row->period;
	else
		counted = row->period / 1000000;
	if (stacks->total_samples)
		return row->samples;
	return counted;
}

static int make_places(struct maker *maker)
{
	const struct tally_stacks *names = &maker->match->names;
	maker->places = malloc((names->frames.count + 1) * sizeof(*maker->places));
	if (!maker->places)
		return -ENOMEM;
	for (uint32_t i = 0; i <= names->frames.count; i++) {
		bool added, is_frame = i < names->frames.count;
		const struct tally_frame *frame = NULL;
		if (is_frame)
			frame = &names->frames.items[i];
		uint64_t object = TALLY_STRING_NONE;
		if (is_frame && maker->options->by_object)
			object = frame->object;
		uint64_t symbol = TALLY_STRING_NONE;
		if (is_frame && maker->options->by_symbol)
			symbol = frame->name;
		uint64_t *place = tally_map_put(&maker->place_index, object << 32 | symbol, &added);
		if (!place)
			return -ENOMEM;
		if (added) {
			*place = maker->place_frames.count;
			if (tally_vector_push(&maker->place_frames, i) < 0 ||
			    tally_vector_push(&maker->sides, (uint8_t)0) < 0)
				return -ENOMEM;
		}
		maker->places[i] = (uint32_t)*place;
	}
	return 0;
}

/* Returns the entry of a command (a thread of `names`) and a place; UINT32_MAX when memory is
 * out. */
static uint32_t entry_of(struct maker *maker, uint32_t comm, uint32_t place)
{
	bool added;
	uint64_t key = (uint64_t)(maker->options->by_comm ? comm : 0) << 32 | place;
	uint64_t *found = tally_map_put(&maker->entry_index, key, &added);
	if (!found)
		return UINT32_MAX;
	if (!added)
		return (uint32_t)*found;
	const struct tally_stacks *names = &maker->match->names;
	uint32_t first = maker->place_frames.items[place];
	const struct tally_frame *frame = NULL;
	if (first < names->frames.count)
		frame = &names->frames.items[first];
	struct tally_diff_entry entry = {
		.comm = TALLY_STRING_NONE,
		.object = TALLY_STRING_NONE,
		.symbol = TALLY_STRING_NONE,
		.full = TALLY_STRING_NONE,
		.was_object = TALLY_STRING_NONE,
		.was_symbol = TALLY_STRING_NONE,
	};
	if (maker->options->by_comm)
		entry.comm = names->threads.items[comm].comm;
	if (frame && maker->options->by_object)
		entry.object = frame->object;
	if (frame && maker->options->by_symbol) {
		entry.symbol = frame->name;
		entry.full = frame->full;
	}
	*found = maker->diff->entries.count;
	if (*found >= UINT32_MAX - 1 || tally_vector_push(&maker->diff->entries, entry) < 0 ||
	    tally_vector_push(&maker->last_row, (size_t)0) < 0 ||
	    tally_vector_push(&maker->entry_places, place) < 0)
		return UINT32_MAX;
	for (size_t run = 0; run < maker->match->count; run++)
		if (tally_vector_push(&maker->sums, (struct sums){ 0 }) < 0)
			return UINT32_MAX;
	return (uint32_t)*found;
}

static int take_row(struct maker *maker, size_t r, size_t index, struct tally_frame_list *frames)
{
	const struct tally_match_run *run = &maker->match->runs[r];
	const struct tally_row *row = &run->stacks->rows.rows.items[index];
	uint32_t comm = run->comms[row->class];
	if (tally_stacks_frames(run->stacks, index, frames) < 0)
		return -ENOMEM;
	maker->row_number++;
	for (size_t f = frames->count ? frames->count : 1; f--;) {
		uint32_t frame;
		if (frames->count)
			frame = run->frames[frames->items[f]];
		else
			frame = (uint32_t)maker->match->names.frames.count;
		uint32_t place = maker->places[frame];
		maker->sides.items[place] |= run->is_new ? 2 : 1;
		if (!maker->options->children && f + 1 < frames->count)
			continue;
		uint32_t entry = entry_of(maker, comm, place);
		if (entry == UINT32_MAX)
			return -ENOMEM;
		if (maker->last_row.items[entry] == maker->row_number)
			continue;
		maker->last_row.items[entry] = maker->row_number;
		struct sums *sums = &maker->sums.items[entry * maker->match->count + r];
		sums->weight += row->period;
		sums->samples += samples_of(run->stacks, row);
	}
	return 0;
}

/* The spread of weights is estimated from the stacks' mean weights. */
static int take_run(struct maker *maker, size_t r)
{
	const struct tally_stacks *stacks = maker->match->runs[r].stacks;
	struct tally_frame_list frames = { 0 };
	struct tally_share *total = &maker->totals[r];
	double squares = 0;
	int result = 0;
	for (size_t i = 0; !result && i < stacks->rows.rows.count; i++) {
		const struct tally_row *row = &stacks->rows.rows.items[i];
		uint64_t samples = samples_of(stacks, row);
		total->whole += (double)row->period;
		total->samples += samples;
		if (samples)
			squares += (double)row->period * (double)row->period / (double)samples;
		result = take_row(maker, r, i, &frames);
	}
	if (total->whole > 0)
		total->spread = (double)total->samples * squares / (total->whole * total->whole);
	else
		total->spread = 1;
	tally_vector_release(&frames);
	return result;
}

/* --- what an entry shows ------------------------------------------------- */

	static void add_former_name(const struct maker *maker, size_t index,
				    struct tally_diff_entry *entry)
{
	uint32_t frame = maker->place_frames.items[maker->entry_places.items[index]];
	uint32_t before = UINT32_MAX;
	if (frame < maker->match->names.frames.count)
		before = maker->match->formerly[frame];
	if (before == UINT32_MAX)
		return;
	const struct tally_frame *was = &maker->match->names.frames.items[before];
	if (entry->object != TALLY_STRING_NONE && was->object != entry->object)
		entry->was_object = was->object;
	if (entry->symbol != TALLY_STRING_NONE && was->name != entry->symbol)
		entry->was_symbol = was->name;
}

static uint64_t sum_samples(const struct tally_share *shares, size_t count)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum = tally_sum_capped(sum, shares[i].part_samples);
	return sum;
}

static void compare(struct maker *maker, size_t index, struct tally_share *shares, double *p_least)
{
	struct tally_diff *diff = maker->diff;
	struct tally_diff_entry *entry = &diff->entries.items[index];
	size_t runs = maker->match->count, old = maker->match->old_count;
	for (size_t r = 0; r < runs; r++) {
		const struct sums *sums = &maker->sums.items[index * runs + r];
		shares[r] = maker->totals[r];
		shares[r].part = (double)sums->weight;
		shares[r].part_samples = sums->samples;
	}
	struct tally_share_difference share;
	tally_share_difference(shares, old, shares + old, runs - old, TALLY_MEASURE_SHARE, &share);
	entry->old_percent = share.old;
	entry->new_percent = share.new;
	entry->change = share;
	if (diff->has_weight)
		tally_share_difference(shares, old, shares + old, runs - old, TALLY_MEASURE_WEIGHT,
				       &entry->weight);
	if (maker->options->measure == TALLY_MEASURE_WEIGHT)
		entry->change = entry->weight;
	else if (maker->options->measure == TALLY_MEASURE_SAMPLES)
		tally_share_difference(shares, old, shares + old, runs - old, TALLY_MEASURE_SAMPLES,
				       &entry->change);
	*p_least = tally_share_p_least(shares, old, shares + old, runs - old);
	entry->old_samples = sum_samples(shares, old);
	entry->new_samples = sum_samples(shares + old, runs - old);
	unsigned sides = maker->sides.items[maker->entry_places.items[index]];
	entry->presence = TALLY_DIFF_BOTH;
	if (sides != 3)
		entry->presence = sides == 1 ? TALLY_DIFF_ONLY_OLD : TALLY_DIFF_ONLY_NEW;
	add_former_name(maker, index, entry);
}

static int compare_all(struct maker *maker)
{
	struct tally_diff *diff = maker->diff;
	struct tally_share *shares = calloc(maker->match->count, sizeof(*shares));
	double *p_least = calloc(diff->entries.count + 1, sizeof(*p_least));
	if (shares && p_least) {
		for (size_t i = 0; i < diff->entries.count; i++)
			compare(maker, i, shares, &p_least[i]);
		double limit = tally_share_p_limit(p_least, diff->entries.count);
		for (size_t i = 0; i < diff->entries.count; i++) {
			struct tally_diff_entry *entry = &diff->entries.items[i];
			entry->is_change = entry->change.difference != 0 && entry->change.p < limit;
			diff->changes += entry->is_change;
		}
	}
	int result = -ENOMEM;
	if (shares && p_least)
		result = 0;
	free(shares);
	free(p_least);
	return result;
}

/* --- order and limits ----------------------------------------------------- */

static int compare_entries(const void *a, const void *b)
{
	const struct tally_diff_entry *one = a, *other = b;
	double d = fabs(one->change.difference), e = fabs(other->change.difference);
	if (one->is_change != other->is_change)
		return one->is_change ? -1 : 1;
	if (d != e)
		return d > e ? -1 : 1;
	if (one->symbol != other->symbol)
		return one->symbol < other->symbol ? -1 : 1;
	if (one->object != other->object)
		return one->object < other->object ? -1 : 1;
	return (one->comm > other->comm) - (one->comm < other->comm);
}

static void leave_out(const struct tally_diff_options *options, struct tally_diff *diff)
{
	size_t kept = 0, noise = 0;
	for (size_t i = 0; i < diff->entries.count; i++) {
		struct tally_diff_entry entry = diff->entries.items[i];
		if (entry.old_percent < options->percent_min &&
		    entry.new_percent < options->percent_min) {
			diff->below++;
			diff->below_changes += entry.is_change;
		} else if (options->limit && kept >= options->limit) {
			diff->beyond++;
		} else if (!options->limit && !entry.is_change && noise >= options->noise_limit) {
			diff->noise++;
		} else {
			noise += !entry.is_change;
			diff->entries.items[kept++] = entry;
		}
	}
	diff->entries.count = kept;
}

static void describe_side(const struct tally_match *match, const struct tally_share *totals,
			  size_t first, size_t count, struct tally_diff_side *side)
{
	const struct tally_stacks *stacks = match->runs[first].stacks;
	*side = (struct tally_diff_side){
		.runs = count, .event = stacks->event, .unit = stacks->unit, .title = stacks->title
	};
	struct tally_weight_sum sum = { 0 };
	for (size_t i = 0; i < count; i++) {
		tally_weight_sum_add(&sum, match->runs[first + i].stacks->total_weight,
				     UINT64_MAX);
		side->samples = tally_sum_capped(side->samples, totals[first + i].samples);
		side->is_saturated |= match->runs[first + i].stacks->weights_cut != 0;
	}
	side->weight = sum.sum;
	side->is_saturated |= sum.cut != 0;
}

static bool weights_compare(const struct tally_match *match)
{
	const struct tally_stacks *first = match->runs[0].stacks;
	for (size_t i = 1; i < match->count; i++)
		if (strcmp(match->runs[i].stacks->unit, first->unit) ||
		    strcmp(match->runs[i].stacks->event, first->event))
			return false;
	return true;
}

int tally_diff_build(const struct tally_match *match, const struct tally_diff_options *options,
		     struct tally_diff *out)
{
	struct maker maker = { .match = match, .options = options, .diff = out };
	*out = (struct tally_diff){ .has_weight = weights_compare(match) };
	if (options->measure == TALLY_MEASURE_WEIGHT && !out->has_weight)
		return -EINVAL;
	int result = -ENOMEM;
	maker.totals = calloc(match->count, sizeof(*maker.totals));
	if (!maker.totals)
		goto out;
	result = make_places(&maker);
	if (result)
		goto out;
	for (size_t r = 0; r < match->count; r++) {
		result = take_run(&maker, r);
		if (result)
			goto out;
	}
	out->compared = out->entries.count;
	result = compare_all(&maker);
	if (result)
		goto out;
	describe_side(match, maker.totals, 0, match->old_count, &out->old);
	describe_side(match, maker.totals, match->old_count, match->count - match->old_count,
		      &out->new);
	if (out->entries.count)
		qsort(out->entries.items, out->entries.count, sizeof(*out->entries.items),
		      compare_entries);
	leave_out(options, out);
out:
	free(maker.totals);
	free(maker.places);
	tally_vector_release(&maker.place_frames);
	tally_vector_release(&maker.sides);
	tally_vector_release(&maker.sums);
	tally_vector_release(&maker.last_row);
	tally_vector_release(&maker.entry_places);
	tally_map_release(&maker.place_index);
	tally_map_release(&maker.entry_index);
	return result;
}

void tally_diff_release(struct tally_diff *diff)
{
	tally_vector_release(&diff->entries);
	*diff = (struct tally_diff){ 0 };
}
