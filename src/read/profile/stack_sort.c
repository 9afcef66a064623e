/* Codes are packed into words, as many as fit, the outermost one in the highest bits: ten frames in
 * a word if a program has sixty functions.  A radix sort by the first word leaves groups of equal
 * words.  These are sorted by their next word, and so on.  Groups wait in a list instead of on the
 * stack, since stacks may have thousands of words.  Zero is no code and fills up the last word, so
 * that a stack comes before the longer ones that begin with it. */
#include "profile/stacks.h"

#include "base/extremes.h"
#include "base/huge.h"
#include "base/vector.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { INSERTION_MAX = 24, COMPARISON_MAX = 384, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

void tally_stack_sort_init(struct tally_stack_sort *sort, uint32_t code_max)
{
	*sort = (struct tally_stack_sort){ .bits = 1 };
	if (code_max)
		sort->bits = 32 - (unsigned)__builtin_clz(code_max);
	sort->per_word = 64 / sort->bits;
}

void tally_stack_sort_release(struct tally_stack_sort *sort)
{
	tally_vector_release(&sort->words);
	tally_vector_release(&sort->stacks);
	tally_vector_release(&sort->roots);
	free(sort->keys);
	free(sort->scratch);
	sort->keys = sort->scratch = NULL;
	sort->room = 0;
}

int tally_stack_sort_reserve(struct tally_stack_sort *sort, size_t stacks, size_t frames)
{
	if (stacks > UINT32_MAX || tally_vector_reserve(&sort->stacks, stacks) < 0)
		return -ENOMEM;
	return tally_vector_reserve(&sort->words, frames / sort->per_word + stacks + 1);
}

int tally_stack_sort_root(struct tally_stack_sort *sort, uint32_t root)
{
	struct tally_packed_root start = { .root = root, .first = (uint32_t)sort->stacks.count };
	return tally_vector_push(&sort->roots, start);
}

int tally_stack_sort_begin(struct tally_stack_sort *sort, struct tally_stack_packer *packer,
			   size_t frames_max)
{
	size_t words = frames_max / sort->per_word + 2;
	if (frames_max > UINT32_MAX || sort->stacks.count >= UINT32_MAX ||
	    tally_vector_reserve(&sort->words, sort->words.count + words) < 0)
		return -ENOMEM;
	*packer = (struct tally_stack_packer){ .at = &sort->words.items[sort->words.count],
					       .shift = 64 };
	return 0;
}

int tally_stack_sort_end(struct tally_stack_sort *sort, const struct tally_stack_packer *packer,
			 uint32_t item)
{
	struct tally_packed_stack stack = { .at = sort->words.count,
					    .frames = packer->frames,
					    .item = item };
	uint64_t *at = packer->at;
	if (packer->shift < 64)
		*at++ = packer->word;
	sort->words.count = (size_t)(at - sort->words.items);
	return tally_vector_push(&sort->stacks, stack);
}

/* ---- by one word --------------------------------------------------------- */

static void insertion_sort(struct tally_sorted_word *keys, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct tally_sorted_word key = keys[i];
		size_t at = i;
		for (; at && keys[at - 1].word > key.word; at--)
			keys[at] = keys[at - 1];
		keys[at] = key;
	}
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t low = tally_min_u64(a, b), high = tally_max_u64(a, b);
	return tally_max_u64(low, tally_min_u64(c, high));
}

/* Quicksort, for few keys. */
static void comparison_sort(struct tally_sorted_word *keys, size_t count)
{
	while (count > INSERTION_MAX) {
		uint64_t pivot = median(keys[0].word, keys[count / 2].word, keys[count - 1].word);
		size_t low = 0, high = count - 1;
		for (;; low++, high--) {
			while (keys[low].word < pivot)
				low++;
			while (keys[high].word > pivot)
				high--;
			if (low >= high)
				break;
			struct tally_sorted_word kept = keys[low];
			keys[low] = keys[high];
			keys[high] = kept;
		}
		size_t left = high + 1;
		if (left < count - left) { /* recursion into the smaller part */
			comparison_sort(keys, left);
			keys += left;
			count -= left;
		} else {
			comparison_sort(keys + left, count - left);
			count = left;
		}
	}
	insertion_sort(keys, count);
}

/* Sorts by the digits in which keys differ, least significant first. */
static void radix_sort(struct tally_sorted_word *keys, struct tally_sorted_word *scratch,
		       size_t count, uint64_t differ)
{
	struct tally_sorted_word *from = keys, *to = scratch;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		uint32_t starts[DIGITS] = { 0 }, sum = 0;
		if (!(differ >> shift & (DIGITS - 1)))
			continue;
		for (size_t i = 0; i < count; i++)
			starts[from[i].word >> shift & (DIGITS - 1)]++;
		for (unsigned digit = 0; digit < DIGITS; digit++) {
			uint32_t here = starts[digit];
			starts[digit] = sum;
			sum += here;
		}
		for (size_t i = 0; i < count; i++)
			to[starts[from[i].word >> shift & (DIGITS - 1)]++] = from[i];
		struct tally_sorted_word *sorted = to;
		to = from;
		from = sorted;
	}
	if (from != keys)
		memcpy(keys, from, count * sizeof(*keys));
}

/* ---- word by word -------------------------------------------------------- */

struct group {
	uint32_t first, count, word;
};

/* Loads the group's words.  Returns the bits in which they differ; goes_on: some stack has another
 * word. */
static uint64_t load_words(struct tally_stack_sort *sort, const struct group *group, bool *goes_on)
{
	enum { AHEAD = 16 };
	struct tally_sorted_word *keys = &sort->keys[group->first];
	uint64_t at = (uint64_t)group->word * sort->per_word, differ = 0;
	*goes_on = false;
	for (uint32_t i = 0; i < group->count; i++) {
		if (i + 2 * AHEAD < group->count)
			__builtin_prefetch(&sort->stacks.items[keys[i + 2 * AHEAD].stack]);
		if (i + AHEAD < group->count)
			__builtin_prefetch(
				&sort->words.items[sort->stacks.items[keys[i + AHEAD].stack].at +
						   group->word]);
		const struct tally_packed_stack *stack = &sort->stacks.items[keys[i].stack];
		keys[i].word = at < stack->frames ? sort->words.items[stack->at + group->word] : 0;
		differ |= keys[i].word ^ keys[0].word;
		*goes_on |= at + sort->per_word < stack->frames;
	}
	return differ;
}

struct group_list {
	struct group *items;
	size_t count, capacity;
};

static int push_equal_runs(const struct tally_stack_sort *sort, const struct group *group,
			   struct group_list *groups)
{
	const struct tally_sorted_word *keys = &sort->keys[group->first];
	for (uint32_t i = 0, next; i < group->count; i = next) {
		for (next = i + 1; next < group->count && keys[next].word == keys[i].word; next++)
			;
		struct group run = { group->first + i, next - i, group->word + 1 };
		if (run.count > 1 && keys[i].word && tally_vector_push(groups, run) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int sort_group(struct tally_stack_sort *sort, const struct group *group,
		      struct group_list *groups)
{
	struct tally_sorted_word *keys = &sort->keys[group->first];
	bool goes_on;
	uint64_t differ = load_words(sort, group, &goes_on);
	if (differ && group->count <= INSERTION_MAX)
		insertion_sort(keys, group->count);
	else if (differ && group->count <= COMPARISON_MAX)
		comparison_sort(keys, group->count);
	else if (differ)
		radix_sort(keys, sort->scratch, group->count, differ);
	if (goes_on)
		return push_equal_runs(sort, group, groups);
	return 0;
}

int tally_stack_sort_run(struct tally_stack_sort *sort, size_t first, size_t count)
{
	struct group_list groups = { 0 };
	struct group all = { .count = (uint32_t)count };
	if (count > sort->room) {
		free(sort->keys);
		free(sort->scratch);
		sort->keys = tally_huge_alloc(count * sizeof(*sort->keys));
		sort->scratch = tally_huge_alloc(count * sizeof(*sort->scratch));
		sort->room = 0;
		if (!sort->keys || !sort->scratch)
			return -ENOMEM;
		sort->room = count;
	}
	for (size_t i = 0; i < count; i++)
		sort->keys[i].stack = (uint32_t)(first + i);
	int result = 0;
	if (count)
		result = sort_group(sort, &all, &groups);
	while (!result && groups.count) {
		struct group next = groups.items[--groups.count];
		result = sort_group(sort, &next, &groups);
	}
	tally_vector_release(&groups);
	return result;
}
