/* Finds the C function whose frame foreign code runs on.
 *
 * Many runtimes keep the frames of their languages on a stack of their own, in the heap: GHC, Chez
 * Scheme, Guile, LuaJIT, PHP's JIT.  Others run code of a machine that they emulate: QEMU, PCRE2's
 * matcher.  Their code has neither rules nor frame pointers.  But it has no frames on the C stack
 * either: a C function, or some assembly of the runtime, jumped there, and rsp has stood still
 * since.  So the C stack below goes on with that function's frame:
 *
 *     schedule()          calls StgRun
 *     StgRun()            saves registers, makes room, jumps: jmp *%rdi
 *       foreign code      rsp is that of StgRun
 *
 * The search goes up the stack, to a return address whose call leads here: the function that it
 * calls has an indirect jump, and by the rules at that jump, with the current rsp, the return
 * address is in the very slot where it was found.  An older return address that lies about in
 * unused bytes of the frame doesn't pass this test.  The step then is one of that function at that
 * jump: its rules restore the registers that the foreign code has used for its own data.  Some
 * foreign code takes room for its own use first.
 *
 * If the call goes through a register, its target is unknown.  Then the return address must be
 * near, and from there the rules must lead to the start of the thread or to other foreign code.  A
 * return address in other foreign code ends the search: such code has frames.
 */
#include "unwind/unwind_internal.h"

#include "object/object.h"
#include "unwind/code_walk.h"
#include "unwind/unwind.h"

#include <string.h>

enum {
	WORD = TALLY_UNWIND_WORD,
	CALL_BYTES = 8,
	WORDS_MAX = 2112,    /* GHC's StgRun makes room for 16 KiB */
	ROOM_BYTES = 128,    /* that foreign code takes for its own use */
	NEAR_BYTES = 512,    /* to a return address whose call's target is unknown */
	ROOMY_BYTES = 4096,  /* to one with such room */
	FUNCTION_BYTES = 256 << 10,
	JUMPS_MAX = sizeof((struct tally_code_jumps){ 0 }.ends) / sizeof(uint32_t),
	PROLOGUE_BYTES = 256,
};

/* The first address behind those of programs. */
#define ADDRESSES_END ((uint64_t)1 << 47)

/* Reads code of an object or of the process. */
static size_t read_bytes(struct tally_unwind_walk *walk, uint64_t address, void *out, size_t size)
{
	const struct tally_unwind_request *request = walk->request;
	struct tally_unwind_place place = { 0 };
	size_t available;
	if (!request->find(request->context, address, &place))
		return 0;
	if (!place.table || !place.table->object) {
		if (!request->read_code)
			return 0;
		return request->read_code(request->context, address, out, size);
	}
	const uint8_t *code = tally_object_bytes_at(place.table->object, place.address, &available);
	if (!code)
		return 0;
	if (available < size)
		size = available;
	memcpy(out, code, size);
	return size;
}

static uint64_t read_pointer(struct tally_unwind_walk *walk, uint64_t address)
{
	const struct tally_unwind_request *request = walk->request;
	uint64_t value = 0;
	if (!request->read_code ||
	    request->read_code(request->context, address, &value, WORD) < WORD)
		return 0;
	return value;
}

static uint64_t relative(const uint8_t *code, uint64_t end)
{
	int32_t distance;
	memcpy(&distance, code, sizeof(distance));
	return end + (uint64_t)(int64_t)distance;
}

/* Follows an entry of the PLT: jmp *n(%rip), perhaps behind endbr64 and with a prefix. */
static uint64_t behind_plt(struct tally_unwind_walk *walk, uint64_t target)
{
	uint8_t code[11];
	size_t at = 0;
	if (read_bytes(walk, target, code, sizeof(code)) < sizeof(code))
		return target;
	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		at = 4;
	at += code[at] == 0xf2;
	if (code[at] != 0xff || code[at + 1] != 0x25 || at + 6 > sizeof(code))
		return target;
	return read_pointer(walk, relative(code + at + 2, target + at + 6));
}

/* Finds the target of the call in front of a return address: of a direct call, and of one through a
 * variable.  Returns 0 where it is unknown. */
static uint64_t target_of(struct tally_unwind_walk *walk, uint64_t back)
{
	enum { BEFORE = 24, MOV_BYTES = 7 };
	uint8_t code[BEFORE];
	size_t at = BEFORE;
	if (read_bytes(walk, back - BEFORE, code, BEFORE) < BEFORE)
		return 0;
	if (code[BEFORE - 5] == 0xe8)
		return behind_plt(walk, relative(code + BEFORE - 4, back));
	if (code[BEFORE - 6] == 0xff && code[BEFORE - 5] == 0x15)
		return read_pointer(walk, relative(code + BEFORE - 4, back));
	/* mov n(%rip),%reg … call *%reg, or call *(%reg) */
	uint8_t form = code[BEFORE - 1];
	bool is_register = code[BEFORE - 2] == 0xff && (form & 0xf8) == 0xd0,
	     is_memory = code[BEFORE - 2] == 0xff && (form & 0xf8) == 0x10;
	if ((!is_register && !is_memory) || code[BEFORE - 3] == 0x41)
		return 0;
	for (at = BEFORE - 2; at-- > MOV_BYTES - 1;) {
		const uint8_t *mov = code + at - (MOV_BYTES - 1);
		if (mov[0] != 0x48 || mov[1] != 0x8b || mov[2] != (0x05 | (form & 7) << 3))
			continue;
		uint64_t variable = relative(mov + 3, back - BEFORE + at + 1);
		uint64_t target = read_pointer(walk, variable);
		if (is_memory && target)
			return read_pointer(walk, target);
		return target;
	}
	return 0;
}

/* True for jmp through a register or memory, with prefixes. */
static bool is_indirect_jump(const uint8_t *code, size_t length)
{
	size_t at = 0;
	while (at + 1 < length &&
	       (code[at] == 0x3e || code[at] == 0xf2 || (code[at] & 0xf8) == 0x40))
		at++;
	return at + 1 < length && code[at] == 0xff && (code[at + 1] >> 3 & 7) == 4;
}

/* True if the rules at a jump lead to the return address, when rsp there is `room` bytes above the
 * current one. */
static bool leads_back(const struct tally_unwind_walk *walk, const struct tally_code_entry *entered)
{
	struct tally_unwind_walk trial;
	memcpy(&trial, walk, offsetof(struct tally_unwind_walk, program));
	trial.frame.registers[walk->layout->pc] = entered->jump_end;
	trial.frame.registers[walk->layout->sp] += entered->room;
	trial.is_exact = trial.has_place = false;
	return tally_unwind_step_by_rules(&trial) &&
	       tally_unwind_get(&trial, walk->layout->pc) == entered->back &&
	       tally_unwind_get(&trial, walk->layout->sp) ==
		       tally_unwind_get(walk, walk->layout->sp) + entered->slot_at + WORD;
}

/* Finds the function's indirect jumps.  Returns false where it can't be read. */
static bool find_jumps(const struct tally_unwind_place *place, struct tally_code_jumps *jumps)
{
	uint64_t start, end, at;
	size_t available, length;
	struct tally_rule_range range;
	const struct tally_unwind_rule *rule, *last = NULL;
	if (!tally_unwind_table_function(place->table, place->address, &start, &end) ||
	    end - start > FUNCTION_BYTES)
		return false;
	start = place->address;
	const uint8_t *code = tally_object_bytes_at(place->table->object, start, &available);
	if (!code || available < end - start)
		return false;
	for (at = 0; at < end - start && jumps->count < JUMPS_MAX; at += length ? length : 1) {
		length = tally_code_length(code + at, (size_t)(end - start - at));
		if (!length || !is_indirect_jump(code + at, length))
			continue;
		rule = tally_unwind_table_rule(place->table, start + at, &range);
		if (rule != last) /* an interpreter's loop has a thousand jumps with one rule */
			jumps->ends[jumps->count++] = (uint32_t)(at + length);
		last = rule;
	}
	return true;
}

/* Looks for the jump in a function of an object, from `target` on.  Sets jump_end and room. */
static bool jumps_from_object(struct tally_unwind_walk *walk, uint64_t target,
			      const struct tally_unwind_place *place,
			      struct tally_code_entry *entered)
{
	uint64_t space = walk->request->space;
	struct tally_code_jumps found, *jumps = &found;
	if (walk->request->memo)
		jumps = tally_code_memo_jumps(walk->request->memo, space, target);
	if (jumps == &found || jumps->space != space || jumps->target != target) {
		*jumps = (struct tally_code_jumps){ .space = space, .target = target };
		if (!find_jumps(place, jumps))
			jumps->count = 0;
	}
	for (unsigned i = 0; i < jumps->count; i++) {
		entered->jump_end = target + jumps->ends[i];
		for (entered->room = 0; entered->room <= ROOM_BYTES; entered->room += WORD)
			if (leads_back(walk, entered))
				return true;
	}
	return false;
}

/* The same for code that was made at run time: there is no frame of rules, but a frame of code. */
static bool jumps_from_made(struct tally_unwind_walk *walk, uint64_t target,
			    const struct tally_code_entry *entered)
{
	uint8_t code[PROLOGUE_BYTES];
	struct tally_code_frame frame;
	size_t size = read_bytes(walk, target, code, sizeof(code)), length = 0;
	for (size_t at = 0; at < size; at += length) {
		length = tally_code_length(code + at, size - at);
		if (!length)
			return false;
		if (!is_indirect_jump(code + at, length) ||
		    !tally_code_walk(code, size, at, &frame) || frame.is_linked)
			continue;
		return entered->slot_at - (uint64_t)frame.return_at <= ROOM_BYTES;
	}
	return false;
}

/* True if the function that the call in front of `entered->back` called has jumped here. */
static bool is_entered(struct tally_unwind_walk *walk, uint64_t target,
		       struct tally_code_entry *entered)
{
	const struct tally_unwind_request *request = walk->request;
	struct tally_unwind_place place = { 0 };
	if (!request->find(request->context, target, &place))
		return false;
	if (place.table && place.table->object)
		return jumps_from_object(walk, target, &place, entered);
	return jumps_from_made(walk, target, entered);
}

static bool enter(struct tally_unwind_walk *walk, const struct tally_code_entry *entered)
{
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t registers[TALLY_UNWIND_REGISTERS], known = 1ull << layout->sp | 1ull << layout->pc;
	memcpy(registers, walk->frame.registers, sizeof(registers));
	walk->is_by_pointer = false;
	if (entered->jump_end) {
		registers[layout->pc] = entered->jump_end;
		registers[layout->sp] += entered->room;
		return tally_unwind_enter(walk, registers, walk->frame.known, false);
	}
	registers[layout->pc] = entered->back;
	registers[layout->sp] += entered->slot_at + WORD;
	return tally_unwind_enter(walk, registers, known, false);
}

/* True if the rules lead from the return address to the start of the thread, or to other foreign
 * code. */
static bool leads_out(const struct tally_unwind_walk *walk, const struct tally_code_entry *entered)
{
	enum { STEPS_MAX = 512, STEPS_MIN = 2 };
	struct tally_unwind_walk trial;
	unsigned steps = 0;
	memcpy(&trial, walk, offsetof(struct tally_unwind_walk, program));
	trial.end = TALLY_UNWIND_LIMIT;
	trial.has_place = false;
	if (!enter(&trial, entered))
		return false;
	while (steps < STEPS_MAX && tally_unwind_step_by_rules(&trial))
		steps++;
	if (trial.end != TALLY_UNWIND_LIMIT)
		return trial.end == TALLY_UNWIND_COMPLETE;
	trial.has_place = false;
	return steps >= STEPS_MIN && tally_unwind_locate(&trial) &&
	       (!trial.place.table || !trial.place.table->object) &&
	       tally_unwind_is_left_by_call(&trial, tally_unwind_get(&trial, walk->layout->pc));
}

/* True if the function that the call in front of the address calls takes its return address from
 * the stack at once, as in sljit's code: it has no frame. */
static bool is_popped(struct tally_unwind_walk *walk, uint64_t back)
{
	uint64_t target = target_of(walk, back);
	uint8_t code[2];
	if (!target || read_bytes(walk, target, code, sizeof(code)) < sizeof(code))
		return false;
	return (code[0] & 0xf8) == 0x58 || code[0] == 0x8f ||
	       (code[0] == 0x41 && (code[1] & 0xf8) == 0x58);
}

/* Searches the stack for the return address.  Sets *has_missed if the copy was too short. */
static struct tally_code_entry search(struct tally_unwind_walk *walk, bool *has_missed)
{
	const struct tally_unwind_request *request = walk->request;
	struct tally_code_entry best = { 0 };
	uint64_t sp = tally_unwind_get(walk, walk->layout->sp), word;
	uint64_t last = walk->frame.stack_address + walk->frame.stack_size;
	for (unsigned i = 0; i < WORDS_MAX; i++) {
		uint64_t slot = sp + i * WORD;
		struct tally_unwind_place place = { 0 };
		if (!tally_unwind_load(&walk->frame, slot, WORD, &word)) {
			*has_missed = true;
			break;
		}
		if (word < CALL_BYTES || word >= ADDRESSES_END ||
		    (word >= walk->frame.stack_address && word < last) ||
		    !request->find(request->context, word - 1, &place) ||
		    !tally_unwind_is_left_by_call(walk, word))
			continue;
		struct tally_code_entry found = {
			.space = request->space, .slot_at = slot - sp, .back = word
		};
		bool has_object = place.table && place.table->object,
		     is_known = has_object &&
				tally_unwind_table_has_rule(place.table, place.address);
		if (!has_object && !best.space && !is_popped(walk, word))
			break; /* foreign code that has frames */
		uint64_t target = 0;
		if (is_known)
			target = target_of(walk, word);
		if (target && is_entered(walk, target, &found)) {
			if (!found.room)
				return found;
			if (found.slot_at < ROOMY_BYTES && !best.jump_end)
				best = found;
		} else if (is_known && !target && found.slot_at < NEAR_BYTES && !best.space &&
			   leads_out(walk, &found)) {
			best = found;
		}
	}
	return best;
}

/* Tries what was found for other samples.  A return address in the same place is enough. */
static const struct tally_code_entry *recall(struct tally_unwind_walk *walk)
{
	const struct tally_code_memo *memo = walk->request->memo;
	uint64_t sp = tally_unwind_get(walk, walk->layout->sp), word;
	const struct tally_code_entry *entries = NULL;
	if (memo)
		entries = tally_code_memo_entries(memo);
	for (unsigned i = 0; entries && i < TALLY_CODE_ENTRIES; i++)
		if (entries[i].space && entries[i].space == walk->request->space &&
		    tally_unwind_load(&walk->frame, sp + entries[i].slot_at, WORD, &word) &&
		    word == entries[i].back)
			return &entries[i];
	return NULL;
}

bool tally_unwind_step_entered_before(struct tally_unwind_walk *walk)
{
	if (walk->layout->has_signed_returns || !tally_unwind_knows(walk, walk->layout->sp))
		return false;
	const struct tally_code_entry *known = recall(walk);
	return known && enter(walk, known);
}

bool tally_unwind_step_entered(struct tally_unwind_walk *walk)
{
	if (walk->layout->has_signed_returns || !tally_unwind_knows(walk, walk->layout->sp))
		return false;
	bool has_missed = false;
	struct tally_code_entry found = search(walk, &has_missed);
	if (found.back && walk->request->memo)
		tally_code_memo_add_entry(walk->request->memo, &found);
	/* The kernel does not copy pages that were never touched; GHC's room has some. */
	if (!found.back && has_missed && tally_unwind_locate(walk) && walk->place.table &&
	    walk->place.table->is_ghc)
		return tally_unwind_stop_at_missed(walk);
	return found.back && enter(walk, &found);
}
