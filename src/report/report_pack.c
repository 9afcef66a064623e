/* Packs the stacks of the profile's rows for sorting (stack_sort.h): the codes of frames go
 * directly into words.  For trees that go down from the outermost frame, a stack is read from its
 * end: only the last byte of a place is below 0x80. */
#include "report/report_parts.h"

#include <errno.h>
#include <stdlib.h>

/* Returns the code of a frame of a place. */
static uint32_t frame_code(const struct tally_report_packer *packer, uint32_t place, uint32_t frame)
{
	const struct tally_report_builder *builder = packer->builder;
	const struct tally_place_name *name = &builder->profile->names[place];
	if (packer->heads && builder->head_of_place && frame == name->count - 1)
		return builder->head_of_place[place];
	return builder->code_of_function
		[builder->profile->recording->names.frames.items[name->first + frame].function];
}

int tally_report_packer_init(struct tally_report_packer *packer,
			     const struct tally_report_builder *builder, bool heads)
{
	const struct tally_profile *profile = builder->profile;
	size_t count = profile->places.places.count;
	*packer = (struct tally_report_packer){
		.builder = builder,
		.code_of_place = malloc((count + 1) * sizeof(*packer->code_of_place)),
		.frames_max = 1,
		.heads = heads,
	};
	tally_stack_sort_init(&packer->sort, heads ? builder->head_max : builder->code_max);
	if (!packer->code_of_place)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct tally_place_name *name = &profile->names[i];
		packer->code_of_place[i] = name->count == 1 ? frame_code(packer, (uint32_t)i, 0)
							    : 0;
		if (name->count > packer->frames_max)
			packer->frames_max = name->count;
	}
	/* enough if every place is one frame and one byte, as most are */
	return tally_call_tree_reserve(&packer->sort, profile->rows.rows.count,
				       profile->rows.stacks.count);
}

void tally_report_packer_release(struct tally_report_packer *packer)
{
	tally_stack_sort_release(&packer->sort);
	free(packer->code_of_place);
	packer->code_of_place = NULL;
}

/* Puts the frames of a place with inlined functions. */
static void put_inlined(const struct tally_report_packer *packer, struct tally_stack_packer *stack,
			uint32_t place, bool outermost_first)
{
	uint32_t count = packer->builder->profile->names[place].count;
	for (uint32_t i = 0; i < count; i++)
		tally_stack_sort_put(
			&packer->sort, stack,
			frame_code(packer, place, outermost_first ? count - 1 - i : i));
}

static inline void put_place(const struct tally_report_packer *packer,
			     struct tally_stack_packer *stack, uint32_t place, bool outermost_first)
{
	uint32_t code = packer->code_of_place[place];
	if (code)
		tally_stack_sort_put(&packer->sort, stack, code);
	else
		put_inlined(packer, stack, place, outermost_first);
}

static inline uint32_t previous_place(const uint8_t *start, const uint8_t **end)
{
	uint32_t place = *--*end;
	while (*end > start && (*end)[-1] >= 0x80)
		place = place << 7 | (*--*end & 0x7f);
	return place;
}

/* tally_stack_sort_put() for the last places that have one frame each, with everything in
 * registers.  Returns the end of the places that are left. */
static inline const uint8_t *put_simple(const struct tally_report_packer *packer,
					struct tally_stack_packer *stack, const uint8_t *start,
					const uint8_t *end)
{
	const uint32_t *code_of_place = packer->code_of_place;
	const unsigned bits = packer->sort.bits;
	unsigned shift = stack->shift;
	uint64_t word = stack->word, *at = stack->at;
	uint32_t frames = stack->frames;
	while (end > start) {
		const uint8_t *before = end;
		uint32_t code = code_of_place[previous_place(start, &before)];
		if (__builtin_expect(!code, 0))
			break;
		end = before;
		frames++;
		shift -= bits;
		word |= (uint64_t)code << shift;
		if (shift < bits) {
			*at++ = word;
			word = 0;
			shift = 64;
		}
	}
	*stack = (struct tally_stack_packer){
		.at = at, .word = word, .shift = shift, .frames = frames
	};
	return end;
}

static void put_downwards(const struct tally_report_packer *packer,
			  struct tally_stack_packer *stack, const uint8_t *start,
			  const uint8_t *end)
{
	while ((end = put_simple(packer, stack, start, end)) > start)
		put_inlined(packer, stack, previous_place(start, &end), true);
}

static void put_upwards(const struct tally_report_packer *packer, struct tally_stack_packer *stack,
			const uint8_t *next, const uint8_t *end)
{
	if (next < end)
		tally_stack_next_place(&next);
	while (next < end)
		put_place(packer, stack, tally_stack_next_place(&next), false);
}

int tally_report_packer_add(struct tally_report_packer *packer, uint32_t row, bool from_leaf)
{
	const struct tally_row_table *rows = &packer->builder->profile->rows;
	const uint8_t *end, *start = tally_row_stack(rows, row, &end);
	size_t frames_max = (size_t)(end - start) * packer->frames_max;
	struct tally_stack_packer stack;
	if (tally_call_tree_begin(&packer->sort, &stack, frames_max, rows->rows.items[row].period) <
	    0)
		return -ENOMEM;
	if (from_leaf)
		put_upwards(packer, &stack, start, end);
	else
		put_downwards(packer, &stack, start, end);
	return tally_stack_sort_end(&packer->sort, &stack, row);
}
