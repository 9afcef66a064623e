/* Takes bytes as machine code without rules (unwind/unwind.h,
 * unwind/code_walk.h).
 *
 * Bytes 0 and 1: the offset of pc in the code.  The rest is the code, on the heap, so that ASan
 * sees a read behind it.  An instruction must end inside the code, and a frame must be inside its
 * bounds. */
#include "fuzz.h"

#include "unwind/code_walk.h"
#include "unwind/unwind.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_BYTES_MAX = 2 << 20, LENGTH_MAX = 15, REGISTERS = 16 };

static void check_frame(const struct tally_code_frame *frame)
{
	if (frame->is_linked)
		return;
	int32_t least = frame->has_base ? -FRAME_BYTES_MAX : 0;
	require(frame->return_at >= least && frame->return_at <= FRAME_BYTES_MAX);
	require(!frame->has_base || frame->base < REGISTERS);
	require(!frame->is_loaded ||
		(frame->loaded_at >= -FRAME_BYTES_MAX && frame->loaded_at <= FRAME_BYTES_MAX));
	require(!frame->saves_fp ||
		(frame->fp_at >= -FRAME_BYTES_MAX && frame->fp_at <= FRAME_BYTES_MAX));
}

static void find_starts(const uint8_t *code, size_t size, size_t at)
{
	const uint64_t address = 0x1000;
	struct tally_code_starts starts;
	uint64_t start, end;
	if (tally_code_starts_find(code, size, address, &starts) < 0)
		return;
	if (tally_code_starts_around(&starts, address + at, size, &start, &end))
		require(start >= address && start <= address + at && end > address + at &&
			end <= address + size);
	if (tally_code_starts_likely(&starts, address + at, size, &start, &end))
		require(start >= address && start <= address + at && end > address + at &&
			end <= address + size);
	tally_code_starts_release(&starts);
}

static void find_causes(const uint8_t *code, size_t size, size_t at)
{
	struct tally_code_sample samples[] = { { .offset = 0, .heat = 4 },
					       { .offset = at / 2 },
					       { .offset = at, .heat = 2 } };
	enum { COUNT = sizeof(samples) / sizeof(samples[0]) };
	if (!tally_code_causes(EM_X86_64, code, size, samples, COUNT))
		for (size_t i = 0; i < COUNT; i++)
			require(samples[i].cause < size);
	if (!tally_code_causes(EM_AARCH64, code, size, samples, COUNT))
		for (size_t i = 0; i < COUNT; i++)
			require(samples[i].cause < size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_code_frame frame;
	int64_t distance;
	bool is_edge;
	if (size < 3)
		return 0;
	size -= 2;
	uint8_t *code = malloc(size);
	if (!code)
		return 0;
	memcpy(code, data + 2, size);
	size_t at = (data[0] | (size_t)data[1] << 8) % size;
	require(tally_code_length(code + at, size - at) <=
		(size - at < LENGTH_MAX ? size - at : LENGTH_MAX));
	if (tally_code_frame_ahead(code + at, size - at, &frame))
		check_frame(&frame);
	if (tally_code_frame_behind(code, at, size - at, &frame))
		check_frame(&frame);
	if (tally_code_walk(code, size, at, &frame))
		check_frame(&frame);
	if (tally_code_walk_plainly(code, size, data[0], at, &frame))
		check_frame(&frame);
	find_starts(code, size, at);
	find_causes(code, size, at);
	tally_code_ends_in_call(code, at);
	tally_code_ends_in_call(code, size);
	tally_code_exits(code + at, size - at);
	tally_code_tail(code + at, size - at, &distance);
	for (int passes_calls = 0; passes_calls < 2; passes_calls++)
		if (tally_code_onward(code + at, size - at, passes_calls, &frame, &is_edge))
			check_frame(&frame);
	if (at) /* the byte behind must be there */
		tally_code_way_to(code, at);
	tally_code_ends_stack(code + at, size - at);
	tally_code_leads_to(code, size, at);
	tally_code_jumps_out(code, size);
	tally_code_recognise_i386(code + at, size - at);
	free(code);
	return 0;
}
