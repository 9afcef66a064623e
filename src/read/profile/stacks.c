/* Interning: equal frames and threads are found by a 64-bit hash in a map; stacks are in a
 * stacks.h.
 *
 * Unequal things may have the same hash, so the item that the map points to is compared.  If it
 * differs, the next key to try is the hash of the hash.
 */
#include "profile/stacks.h"

#include "base/vector.h"
#include "base/weight_sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_pair(uint64_t seed, uint64_t a, uint64_t b)
{
	return tally_hash64(tally_hash64(seed ^ a) + b);
}

uint32_t tally_stacks_frame(struct tally_stacks *stacks, const char *name, const char *object,
			    enum tally_frame_kind kind)
{
	struct tally_frame frame = {
		.name = tally_strings_intern(&stacks->strings, name),
		.object = TALLY_STRING_NONE,
		.full = TALLY_STRING_NONE,
		.kind = kind,
	};
	if (object)
		frame.object = tally_strings_intern(&stacks->strings, object);
	if (frame.name == TALLY_STRING_NONE || (object && frame.object == TALLY_STRING_NONE))
		return UINT32_MAX;
	uint64_t key = hash_pair(kind, frame.name, frame.object);
	for (;; key = tally_hash64(key + 1)) {
		bool added;
		uint64_t *place = tally_map_put(&stacks->frame_index, key, &added);
		if (!place)
			return UINT32_MAX;
		if (added) {
			*place = stacks->frames.count;
			if (*place >= UINT32_MAX || tally_vector_push(&stacks->frames, frame) < 0) {
				/* a slot can't be removed; this one matches nothing */
				*place = UINT32_MAX;
				return UINT32_MAX;
			}
			return (uint32_t)*place;
		}
		if (*place >= stacks->frames.count)
			continue;
		const struct tally_frame *there = &stacks->frames.items[*place];
		if (there->name == frame.name && there->object == frame.object &&
		    there->kind == kind)
			return (uint32_t)*place;
	}
}

static int count_thread(struct tally_stacks *stacks, uint32_t tid)
{
	bool is_new = true;
	if (tid && !tally_map_put(&stacks->tids, tid, &is_new))
		return -ENOMEM;
	stacks->thread_count += is_new;
	return 0;
}

uint32_t tally_stacks_thread(struct tally_stacks *stacks, const char *comm, uint32_t pid,
			     uint32_t tid)
{
	struct tally_thread_label label = {
		.comm = tally_strings_intern(&stacks->strings, *comm ? comm : "[unknown]"),
		.pid = pid,
		.tid = tid,
	};
	if (label.comm == TALLY_STRING_NONE)
		return UINT32_MAX;
	uint64_t key = hash_pair(label.comm, pid, tid);
	for (;; key = tally_hash64(key + 1)) {
		bool added;
		uint64_t *place = tally_map_put(&stacks->thread_index, key, &added);
		if (!place)
			return UINT32_MAX;
		if (added) {
			*place = stacks->threads.count;
			if (*place >= UINT32_MAX ||
			    tally_vector_push(&stacks->threads, label) < 0 ||
			    count_thread(stacks, tid) < 0) {
				*place = UINT32_MAX;
				return UINT32_MAX;
			}
			return (uint32_t)*place;
		}
		if (*place >= stacks->threads.count)
			continue;
		const struct tally_thread_label *there = &stacks->threads.items[*place];
		if (there->comm == label.comm && there->pid == pid && there->tid == tid)
			return (uint32_t)*place;
	}
}

int tally_stacks_add(struct tally_stacks *stacks, uint32_t thread, const uint32_t *frames,
		     size_t count, uint64_t weight, uint64_t samples)
{
	uint8_t few[64 * TALLY_PLACE_BYTES_MAX] = { 0 }, *bytes = few, *end = few;
	if (count > sizeof(few) / TALLY_PLACE_BYTES_MAX)
		bytes = end = malloc(count * TALLY_PLACE_BYTES_MAX);
	if (!bytes)
		return -ENOMEM;
	for (size_t i = count; i--;)
		end = tally_stack_put_place(end, frames[i]);
	size_t size = (size_t)(end - bytes);
	uint32_t row = tally_row_table_put(&stacks->rows, tally_row_table_hash(thread, bytes, size),
					   thread, bytes, size);
	if (bytes != few)
		free(bytes);
	if (row == UINT32_MAX)
		return -ENOMEM;
	struct tally_row *stack = &stacks->rows.rows.items[row];
	struct tally_weight_sum total = { .sum = stacks->total_weight, .cut = stacks->weights_cut };
	stack->period += tally_weight_sum_add(&total, weight, UINT64_MAX);
	stack->samples += samples;
	stacks->total_weight = total.sum;
	stacks->weights_cut = total.cut;
	stacks->total_samples += samples;
	return 0;
}

int tally_stacks_frames(const struct tally_stacks *stacks, size_t row,
			struct tally_frame_list *frames)
{
	const uint8_t *end, *start = tally_row_stack(&stacks->rows, row, &end);
	frames->count = 0;
	while (end > start) {
		uint32_t number = tally_stack_last_place(start, &end);
		if (!stacks->steps.count) {
			if (tally_vector_push(frames, number) < 0)
				return -ENOMEM;
			continue;
		}
		const struct tally_step *step = &stacks->steps.items[number];
		uint32_t count = step->count;
		if (tally_vector_reserve(frames, frames->count + count) < 0)
			return -ENOMEM;
		while (count--)
			frames->items[frames->count++] =
				stacks->step_frames.items[step->first + count];
	}
	return 0;
}

void tally_stacks_release(struct tally_stacks *stacks)
{
	tally_strings_release(&stacks->strings);
	tally_vector_release(&stacks->frames);
	tally_vector_release(&stacks->threads);
	tally_row_table_release(&stacks->rows);
	tally_vector_release(&stacks->steps);
	tally_vector_release(&stacks->step_frames);
	tally_map_release(&stacks->frame_index);
	tally_map_release(&stacks->thread_index);
	tally_map_release(&stacks->tids);
	*stacks = (struct tally_stacks){ 0 };
}

