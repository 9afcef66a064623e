/* Walks all stacks, and checks each distinct pair of neighbouring places once.  A pair passes if
 * its code is unknown, or if the called function may have jumped on to the callee. */
#include "profile/profile.h"

#include "base/extremes.h"
#include "base/map.h"
#include "object/object.h"
#include "task/task.h"
#include "unwind/code_walk.h"
#include "unwind/unwind.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* A place in the code of a file. */
struct spot {
	struct tally_object_entry *entry;
	uint64_t address; /* in the object, of the frame's look-up */
	uint64_t back;    /* the return address */
};

static bool find_spot(struct tally_profile *profile, uint32_t number, struct spot *spot)
{
	struct tally_names *names = &profile->recording->names;
	const struct tally_place *place = &profile->places.places.items[number];
	if (place->file == TALLY_FILE_NONE || place->file == TALLY_FILE_KERNEL ||
	    place->file >= names->tasks->files.count ||
	    names->tasks->files.items[place->file].is_kernel)
		return false;
	spot->entry = tally_objects_get(&names->objects, names->tasks, place->file);
	if (!spot->entry || !spot->entry->object)
		return false;
	unsigned machine = tally_object_machine(spot->entry->object);
	if ((machine != EM_X86_64 && machine != EM_386) ||
	    !tally_object_address_of_offset(spot->entry->object, place->address, &spot->address))
		return false;
	spot->back = spot->address + place->before;
	return true;
}

/* Finds the beginning of the function that holds an address, by its rules. */
static bool find_start(struct spot *spot, uint64_t address, uint64_t *start)
{
	uint64_t end;
	struct tally_unwind_table *table = tally_objects_unwind(spot->entry);
	return table && tally_unwind_table_function(table, address, start, &end);
}

/* True if the code, at `address`, calls a function first of all, as __morestack() is called: it
 * enters the function anew, with its caller's return address. */
static bool begins_with_call(const uint8_t *code, size_t size, uint64_t address, uint64_t function)
{
	enum { CALL = 0xe8, CALL_BYTES = 5, FIRST_BYTES = 64 };
	size = tally_min_u64(size, FIRST_BYTES);
	for (size_t at = 0; at + CALL_BYTES <= size; at++) {
		int32_t distance;
		memcpy(&distance, code + at + 1, sizeof(distance));
		if (code[at] == CALL &&
		    address + at + CALL_BYTES + (uint64_t)(int64_t)distance == function)
			return true;
	}
	return false;
}

/* True if the function that a call goes to may have handed the call on to the callee, because it
 * leaves by a jump. */
static bool may_hand_on(struct spot *spot, uint64_t target, uint64_t callee)
{
	enum { BYTES_MAX = 64 << 10 };
	uint64_t start, end;
	size_t available;
	struct tally_unwind_table *table = tally_objects_unwind(spot->entry);
	if (!table || !tally_unwind_table_function(table, target, &start, &end) ||
	    start != target || end - start > BYTES_MAX)
		return true;
	const uint8_t *code = tally_object_bytes_at(spot->entry->object, start, &available);
	if (!code || available < end - start ||
	    tally_object_machine(spot->entry->object) != EM_X86_64)
		return true;
	size_t size = (size_t)(end - start);
	return tally_code_jumps_out(code, size) || begins_with_call(code, size, start, callee);
}

static bool is_call_behind(struct spot *spot)
{
	enum { CALL_BYTES = 8 };
	size_t available;
	const uint8_t *code = tally_object_bytes_at(spot->entry->object, spot->back - CALL_BYTES,
						    &available);
	/* without the code, nothing is known */
	return !code || available < CALL_BYTES || tally_code_ends_in_call(code, CALL_BYTES);
}

/* Finds the target of the direct call in front of the return address. */
static bool find_target(struct spot *spot, uint64_t *target)
{
	enum { CALL = 0xe8, CALL_BYTES = 5 };
	int32_t distance;
	size_t available;
	const uint8_t *code = tally_object_bytes_at(spot->entry->object, spot->back - CALL_BYTES,
						    &available);
	if (!code || available < CALL_BYTES || code[0] != CALL)
		return false;
	memcpy(&distance, code + 1, sizeof(distance));
	*target = spot->back + (uint64_t)(int64_t)distance;
	return true;
}

/* Checks that the caller calls the callee.  No call left the outermost frame's address if code set
 * up the stack to begin there. */
static void check_pair(struct tally_profile *profile, uint32_t callee, uint32_t caller,
		       bool is_outermost, struct tally_call_check *out)
{
	struct spot from, to;
	uint64_t target, start, called;
	/* an interrupted frame made no call */
	if (!profile->places.places.items[caller].before || !find_spot(profile, caller, &from))
		return;
	bool has_failed = false;
	if (!is_call_behind(&from)) {
		if (is_outermost)
			return;
		has_failed = true;
		out->behind_no_call++;
	} else if (find_target(&from, &target) && find_spot(profile, callee, &to) &&
		   to.entry == from.entry && find_start(&to, to.address, &start) &&
		   start != target && find_start(&from, target, &called) && called == target &&
		   !may_hand_on(&from, target, start)) {
		has_failed = true;
		out->to_another++;
	}
	out->checked++;
	if (has_failed && out->behind_no_call + out->to_another == 1)
		out->failed = profile->places.places.items[caller];
}

int tally_call_check_profile(struct tally_profile *profile, struct tally_call_check *out)
{
	struct tally_map seen = { 0 };
	int result = 0;
	*out = (struct tally_call_check){ 0 };
	for (size_t row = 0; !result && row < profile->rows.rows.count; row++) {
		const uint8_t *end, *at = tally_row_stack(&profile->rows, row, &end);
		uint32_t callee = UINT32_MAX;
		while (at < end && !result) {
			bool added = false;
			uint32_t place = tally_stack_next_place(&at);
			uint64_t key = (uint64_t)callee << 32 | place;
			if (callee != UINT32_MAX && !tally_map_put(&seen, key, &added))
				result = -ENOMEM;
			if (added)
				check_pair(profile, callee, place, at == end, out);
			callee = place;
		}
	}
	tally_map_release(&seen);
	return result;
}
