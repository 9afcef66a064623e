/* Stacks as text, folded or perf's.  The weights add up; the folded text reads back to the same
 * weight; and no name can break out of the markup of a picture. */
#include "fuzz.h"

#include "base/vector.h"
#include "flamegraph/flamegraph.h"
#include "output/output.h"
#include "profile/stacks.h"

#include <stdlib.h>
#include <string.h>

static void check_sums(const struct tally_stacks *stacks)
{
	uint64_t weight = 0;
	struct tally_frame_list frames = { 0 };
	for (size_t i = 0; i < stacks->rows.rows.count; i++) {
		const struct tally_row *stack = &stacks->rows.rows.items[i];
		if (__builtin_add_overflow(weight, stack->period, &weight))
			weight = UINT64_MAX;
		if (stack->class >= stacks->threads.count ||
		    tally_stacks_frames(stacks, i, &frames) < 0)
			abort();
		for (size_t f = 0; f < frames.count; f++)
			if (frames.items[f] >= stacks->frames.count)
				abort();
	}
	tally_vector_release(&frames);
	if (weight != stacks->total_weight)
		abort();
}

static void check_folding(const struct tally_stacks *stacks)
{
	const struct tally_folded_options options = { .full_names = true, .suffix_kernel = true };
	struct tally_stacks again = { 0 };
	struct tally_buffer text = { 0 };
	if (tally_folded_write(stacks, &options, &text, NULL) < 0)
		abort();
	for (size_t i = 0; i < text.length; i++)
		if ((unsigned char)text.bytes[i] < 0x20 && text.bytes[i] != '\n')
			abort();
	/* Weights at the limit of 64 bits may be summed in another order. */
	if (text.length && text.bytes[0] != '#' && stacks->total_weight < UINT64_MAX &&
	    tally_stacks_read_folded(&again, text.bytes, text.length, NULL) == 0 &&
	    again.total_weight > stacks->total_weight)
		abort();
	tally_buffer_release(&text);
	tally_stacks_release(&again);
}

static unsigned count_of(const char *text, const char *part)
{
	unsigned count = 0;
	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

static void check_drawing(const struct tally_stacks *stacks, bool html)
{
	const struct tally_flamegraph_options options = { .nodes_max = 500 };
	struct tally_buffer file = { 0 };
	int status = (html ? tally_flamegraph_html : tally_flamegraph_svg)(stacks, &options, &file,
									   NULL);
	if (status && stacks->total_weight)
		abort();
	const char *text = tally_buffer_string(&file);
	if (!status && (strlen(text) != file.length || count_of(text, "<script") != 2 ||
			count_of(text, "</script") != 2 || count_of(text, "]]>") != (html ? 0 : 2)))
		abort();
	tally_buffer_release(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_stacks stacks = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	int status = tally_stacks_read_text(&stacks, (const char *)data, size, &err);
	if (status && !err.message[0])
		abort();
	check_sums(&stacks);
	check_folding(&stacks);
	check_drawing(&stacks, size & 1);
	tally_stacks_release(&stacks);
	return 0;
}
