/* Stacks of the profile's rows, packed for sorting (stack_sort.h): the codes of frames go into words as they come.
 * Going down from the outermost frame, a stack is read from its end: a place's last byte is the only one below 0x80.
 */
#include "profile/report_parts.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>

int tally_report_packer_init(struct tally_report_packer *packer, const struct tally_report_builder *builder)
{
	const struct tally_profile *profile = builder->profile;
	const struct tally_place_frame *frames = profile->recording->names.frames.items;
	size_t count = profile->places.places.count;
	*packer = (struct tally_report_packer){
		.builder = builder, .code_of_place = malloc((count + 1) * sizeof(*packer->code_of_place)), .frames_max = 1,
	};
	tally_stack_sort_init(&packer->sort, builder->code_max);
	if (!packer->code_of_place)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct tally_place_name *name = &profile->names[i];
		packer->code_of_place[i] = name->count == 1 ? builder->code_of_function[frames[name->first].function] : 0;
		if (name->count > packer->frames_max)
			packer->frames_max = name->count;
	}
	/* Were all places a frame and a byte, as they mostly are. */
	return tally_stack_sort_reserve(&packer->sort, profile->rows.rows.count, profile->rows.stacks.count);
}

void tally_report_packer_release(struct tally_report_packer *packer)
{
	tally_stack_sort_release(&packer->sort);
	free(packer->code_of_place);
	packer->code_of_place = NULL;
}

/* Words as they fill. */
struct filling {
	uint64_t *next, word;
	unsigned bits, per_word, left; /* left: codes that the word has room for */
	uint32_t full;                 /* words */
};

static inline void put_code(struct filling *filling, uint32_t code)
{
	filling->word = filling->word << filling->bits | code;
	if (--filling->left)
		return;
	filling->next[filling->full++] = filling->word << (64 - filling->bits * filling->per_word);
	filling->word = 0;
	filling->left = filling->per_word;
}

/* The frames of a place where something was inlined. */
static void put_inlined(const struct tally_report_packer *packer, struct filling *filling, uint32_t place,
			bool outermost_first)
{
	const struct tally_report_builder *builder = packer->builder;
	const struct tally_place_name *name = &builder->profile->names[place];
	const struct tally_place_frame *frames = &builder->profile->recording->names.frames.items[name->first];
	for (uint32_t i = 0; i < name->count; i++)
		put_code(filling, builder->code_of_function[frames[outermost_first ? name->count - 1 - i : i].function]);
}

static inline void put_place(const struct tally_report_packer *packer, struct filling *filling, uint32_t place,
			     bool outermost_first)
{
	uint32_t code = packer->code_of_place[place];
	if (code)
		put_code(filling, code);
	else
		put_inlined(packer, filling, place, outermost_first);
}

static inline void put_downwards(const struct tally_report_packer *packer, struct filling *filling,
				 const uint8_t *start, const uint8_t *end)
{
	while (end > start) {
		uint32_t place = *--end;
		while (end > start && end[-1] >= 0x80)
			place = place << 7 | (*--end & 0x7f);
		put_place(packer, filling, place, true);
	}
}

static void put_upwards(const struct tally_report_packer *packer, struct filling *filling, const uint8_t *next,
			const uint8_t *end)
{
	if (next < end)
		tally_stack_next_place(&next);
	while (next < end)
		put_place(packer, filling, tally_stack_next_place(&next), false);
}

int tally_report_packer_add(struct tally_report_packer *packer, uint32_t row, bool from_leaf)
{
	struct tally_stack_sort *sort = &packer->sort;
	const uint8_t *end, *start = tally_row_stack(&packer->builder->profile->rows, row, &end);
	size_t frames_max = (size_t)(end - start) * packer->frames_max;
	struct filling filling = { .bits = sort->bits, .per_word = sort->per_word, .left = sort->per_word };
	struct tally_packed_stack stack = { .at = sort->words.count, .item = row };
	if (frames_max > UINT32_MAX || sort->stacks.count >= UINT32_MAX ||
	    tally_vector_reserve(&sort->words, sort->words.count + frames_max / sort->per_word + 1) < 0)
		return -ENOMEM;
	filling.next = &sort->words.items[sort->words.count];
	if (from_leaf)
		put_upwards(packer, &filling, start, end);
	else
		put_downwards(packer, &filling, start, end);
	unsigned used = filling.per_word - filling.left;
	stack.frames = filling.full * filling.per_word + used;
	if (used)
		filling.next[filling.full++] = filling.word << (64 - filling.bits * used);
	sort->words.count += filling.full;
	return tally_vector_push(&sort->stacks, stack);
}
