/* Follows a function's instructions to find its frame.
 *
 * Code without unwind rules (musl's, assembly, -fno-asynchronous-unwind-tables) still moves rsp in
 * only a few ways: push, pop, sub, add, lea, leave.  At a function's first instruction the return
 * address is at rsp.  Following the instructions from there, through every branch, gives the
 * distance of rsp from it at each instruction that can be reached, and the place where rbp was
 * saved.  objtool makes the kernel's ORC tables in this way.
 *
 * A compiler gives a frame one size at each instruction, whichever way leads there.  If two ways
 * disagree, or if an instruction does something else to rsp, the answer is "unknown".
 *
 * Code for wide vectors aligns rsp (and $-64,%rsp), which drops an unknown number of bytes.  It
 * copies rsp to another register before, the *alias*, and often stores that in the aligned part,
 * in a *slot*.  So there are two scales then: depths below the return address, and depths below
 * the aligned address.  rsp and rbp tell the second scale; alias and slot lead back to the first.
 *
 * The targets of a jump through a table (a switch) are not in the code, but rsp is the same at the
 * jump and at its targets.  So if all such jumps of a function agree, code that nothing else
 * reaches is assumed to be a target of theirs.
 */
#include "unwind/code_walk.h"

#include "unwind/x86_instruction.h"

#include <string.h>

enum { WORD = 8, SIZE_MAX_BYTES = 64 << 10, FRAME_BYTES_MAX = 1 << 20, WAYS_MAX = 256 };

/* The frame as it is known at an instruction.  Distances are in bytes, from the return address
 * downwards. */
struct state {
	int32_t depth;    /* of rsp */
	/* of the place where the caller's rbp is saved; 0: not saved, rbp still holds it */
	int32_t fp_depth;
	int32_t link;     /* of the word that rbp points at; 0: it does not point into the frame */
	/* The same two, below the aligned address; 0: none. */
	int32_t fp_apart, link_apart;
	int32_t alias_depth;       /* the depth that the register `alias` points at */
	/* below the aligned address: the word that points at slot_depth; 0: none */
	int32_t slot, slot_depth;
	uint8_t alias;    /* number of a register; TALLY_X86_NONE: none */
	bool is_lost;     /* rsp is unknown, unless rbp gives it */
	bool is_apart;    /* is_lost, and `depth` counts from the aligned address */
	bool fp_is_lost;  /* rbp was overwritten, and the caller's value was not saved */
};

static const struct state AT_START = { .alias = TALLY_X86_NONE };

struct way {
	uint32_t at;
	struct state state;
};

struct exploration {
	const uint8_t *code;
	size_t size, target;
	/* by byte: 0, or digest_of() the state that reached the instruction there */
	uint32_t *seen;
	struct way ways[WAYS_MAX];
	size_t count;
	struct state jump; /* at jumps through tables */
	bool has_jump, jumps_differ, is_full;
	struct state found;
	bool is_found, is_ambiguous;
	unsigned changed; /* the registers that any instruction wrote, a bit for each */
	bool is_plain;    /* tally_code_walk_plainly() */
	bool ends_at_call; /* a call right before `target` doesn't go on */
	uint64_t address; /* of the code */
};

/* True if rbp is a frame pointer: it alone tells the frame.  Then ways may disagree about rsp:
 * some calls pop their arguments. */
static bool is_linked(const struct state *state)
{
	return state->link == WORD && state->fp_depth == WORD;
}

static bool is_same(const struct state *a, const struct state *b)
{
	if (is_linked(a) || is_linked(b))
		return is_linked(a) && is_linked(b);
	return a->depth == b->depth && a->fp_depth == b->fp_depth && a->link == b->link &&
	       a->is_lost == b->is_lost && a->fp_is_lost == b->fp_is_lost &&
	       (!a->is_lost || (a->is_apart == b->is_apart && a->fp_apart == b->fp_apart &&
				a->link_apart == b->link_apart && a->slot == b->slot &&
				a->slot_depth == b->slot_depth && a->alias == b->alias &&
				(a->alias == TALLY_X86_NONE || a->alias_depth == b->alias_depth)));
}

/* Returns a hash of the state, never 0. */
static uint32_t digest_of(const struct state *state)
{
	uint64_t digest = UINT32_MAX;
	if (!state->is_lost)
		digest = (uint32_t)state->depth;
	if (is_linked(state))
		return UINT32_MAX;
	digest = (digest << 32 | (uint32_t)state->fp_depth) * 0x9e3779b97f4a7c15;
	digest ^= digest >> 29 ^ (uint64_t)(uint32_t)state->link << 2 ^ state->fp_is_lost;
	digest *= 0xbf58476d1ce4e5b9;
	if (state->is_lost) {
		const int32_t apart[] = { state->is_apart ? state->depth : -1,
					  state->fp_apart,
					  state->link_apart,
					  state->slot,
					  state->slot_depth,
					  state->alias,
					  state->alias == TALLY_X86_NONE ? 0 : state->alias_depth };
		for (size_t i = 0; i < sizeof(apart) / sizeof(*apart); i++)
			digest = (digest ^ digest >> 31 ^ (uint32_t)apart[i]) * 0x9e3779b97f4a7c15;
	}
	return (uint32_t)(digest >> 32) | 1;
}

static void add_way(struct exploration *exploration, int64_t at, const struct state *state)
{
	if (at < 0 || at >= (int64_t)exploration->size)
		return;
	if (exploration->count == WAYS_MAX) {
		exploration->is_full = true;
		return;
	}
	struct way *way = &exploration->ways[exploration->count++];
	*way = (struct way){ (uint32_t)at, *state };
	if (!state->is_lost) /* an alias is of use in straight code only */
		way->state.alias = TALLY_X86_NONE;
}

/* ---- what an instruction does to the frame ------------------------------- */

/* rsp is somewhere unknown. */
static void lose_sp(struct state *state)
{
	state->is_lost = true;
	state->is_apart = false;
	state->depth = 0;
}

/* Sets the depth of rsp, on the scale that it has.  Outside of a frame's limits, rsp is lost. */
static void set_depth(struct state *state, int64_t depth)
{
	bool is_frame = depth >= 0 && depth <= FRAME_BYTES_MAX;
	bool is_dropped = is_frame && depth < state->fp_depth && state->depth >= state->fp_depth;
	if (is_dropped && !state->is_lost) { /* the saved rbp is no longer on the stack */
		state->fp_is_lost = true;
		state->fp_depth = state->link = 0;
	}
	if (is_frame)
		state->depth = (int32_t)depth;
	else
		lose_sp(state);
}

/* Sets rsp to a depth below the return address. */
static void find_sp(struct state *state, int64_t depth)
{
	state->depth = FRAME_BYTES_MAX; /* whatever is below `depth` is dropped */
	state->is_lost = state->is_apart = false;
	state->fp_apart = state->link_apart = state->slot = 0;
	set_depth(state, depth);
}

/* Sets rsp to a depth below the aligned address. */
static void find_sp_apart(struct state *state, int64_t depth)
{
	state->is_lost = state->is_apart = true;
	set_depth(state, depth);
}

/* A call may change these: rax rcx rdx rsi rdi r8–r11. */
enum { LOST_BY_CALLS = 0xfc7, KEPT_BY_CALLS = 0xf008 };

/* Makes a register the alias, unless there is one that is as good. */
static void set_alias(struct state *state, unsigned reg, int64_t depth)
{
	bool has_better = state->alias != TALLY_X86_NONE &&
			  (!(LOST_BY_CALLS >> state->alias & 1) || LOST_BY_CALLS >> reg & 1);
	if (depth < -FRAME_BYTES_MAX || depth > FRAME_BYTES_MAX || reg > 15 ||
	    reg == TALLY_X86_RSP || has_better)
		return;
	state->alias = (uint8_t)reg;
	state->alias_depth = (int32_t)depth;
}

/* Stores the alias below the aligned address, where it stays while the function runs. */
static void fill_slot(struct state *state, int64_t slot)
{
	if (slot <= 0 || slot > FRAME_BYTES_MAX)
		return;
	state->slot = (int32_t)slot;
	state->slot_depth = state->alias_depth;
	state->alias = TALLY_X86_NONE;
}

static void lose_fp(struct state *state)
{
	state->link = state->link_apart = 0;
	state->fp_is_lost |= !state->fp_depth && !state->fp_apart;
}

/* Pushes a register, or TALLY_X86_NONE. */
static void push(struct state *state, unsigned reg)
{
	bool is_callers_fp = reg == TALLY_X86_RBP && !state->fp_depth && !state->fp_apart &&
			     !state->link && !state->fp_is_lost;
	set_depth(state, (int64_t)state->depth + WORD);
	if (is_callers_fp && !state->is_lost)
		state->fp_depth = state->depth;
	if (is_callers_fp && state->is_apart)
		state->fp_apart = state->depth;
	if (reg != TALLY_X86_NONE && reg == state->alias && state->is_apart)
		fill_slot(state, state->depth);
}

/* Pops to a register, or TALLY_X86_NONE. */
static void pop(struct state *state, unsigned reg)
{
	bool is_saved_fp = !state->is_lost && state->fp_depth && state->depth == state->fp_depth;
	is_saved_fp |= state->is_apart && state->fp_apart && state->depth == state->fp_apart;
	bool is_slot = state->is_apart && state->slot && state->depth == state->slot;
	if (reg == TALLY_X86_RBP && is_saved_fp) {
		state->fp_depth = state->fp_apart = 0; /* rbp is the caller's again */
		state->link = state->link_apart = 0;
		state->fp_is_lost = false;
	} else if (reg == TALLY_X86_RBP) {
		lose_fp(state);
	}
	if (reg == TALLY_X86_RSP && is_slot)
		find_sp(state, state->slot_depth);
	else if (reg == TALLY_X86_RSP)
		lose_sp(state);
	else
		set_depth(state, (int64_t)state->depth - WORD);
	if (is_slot)
		state->slot = 0;
	if (is_slot && reg != TALLY_X86_RSP)
		set_alias(state, reg, state->slot_depth);
	else if (reg == state->alias)
		state->alias = TALLY_X86_NONE;
}

/* Sets rsp to `below` bytes below the word that rbp points at. */
static void take_link(struct state *state, int64_t below)
{
	if (state->link)
		find_sp(state, state->link + below);
	else if (state->link_apart)
		find_sp_apart(state, state->link_apart + below);
	else
		lose_sp(state);
}

/* The scale on which an address n(register) is a place in the frame. */
enum scale { NOWHERE, BELOW_RETURN, BELOW_ALIGNED };

/* Finds the place of n(register) in the frame.  Sets *depth on the scale that it returns. */
static enum scale place_of(const struct state *state, unsigned reg, int32_t offset, int64_t *depth)
{
	enum scale scale = NOWHERE;
	*depth = 0;
	if (reg == TALLY_X86_RSP) {
		if (!state->is_lost)
			scale = BELOW_RETURN;
		else if (state->is_apart)
			scale = BELOW_ALIGNED;
		*depth = state->depth;
	} else if (reg == TALLY_X86_RBP && state->link) {
		scale = BELOW_RETURN;
		*depth = state->link;
	} else if (reg == TALLY_X86_RBP && state->link_apart) {
		scale = BELOW_ALIGNED;
		*depth = state->link_apart;
	} else if (reg != TALLY_X86_NONE && reg == state->alias) {
		scale = BELOW_RETURN;
		*depth = state->alias_depth;
	}
	*depth -= offset;
	return scale;
}

/* The same for an instruction's operand in memory. */
static enum scale place_of_operand(const struct state *state,
				   const struct tally_x86_instruction *decoded, int64_t *depth)
{
	int32_t offset = 0;
	unsigned base = tally_x86_base(decoded, &offset);
	return place_of(state, base, offset, depth);
}

/* Finds the place in the frame whose address an instruction puts into a register. */
static enum scale address_taken(const struct state *state,
				const struct tally_x86_instruction *decoded, int64_t *depth)
{
	unsigned from, to;
	if (tally_x86_is_move(decoded, &from, &to))
		return place_of(state, from, 0, depth);
	bool is_lea = decoded->bytes[0] == 0x8d && decoded->rex & TALLY_X86_REX_W;
	if (is_lea)
		return place_of_operand(state, decoded, depth);
	return NOWHERE;
}

/* True for mov n(…),%reg, whole, of a place in the frame. */
static enum scale loaded_from(const struct state *state,
			      const struct tally_x86_instruction *decoded, int64_t *depth)
{
	bool is_load = decoded->bytes[0] == 0x8b && decoded->rex & TALLY_X86_REX_W;
	if (is_load)
		return place_of_operand(state, decoded, depth);
	return NOWHERE;
}

/* Applies an instruction with rsp as the result. */
static void change_sp(struct state *state, const struct tally_x86_instruction *decoded)
{
	const uint8_t *bytes = decoded->bytes;
	if (decoded->length < 2) { /* xchg %rax,%rsp */
		lose_sp(state);
		return;
	}
	uint8_t opcode = bytes[0], mode = bytes[1] >> 6, middle = bytes[1] >> 3 & 7;
	bool is_immediate = (opcode == 0x83 || opcode == 0x81) && mode == 3 &&
			    decoded->rex & TALLY_X86_REX_W;
	int64_t depth, moved = 0;
	if (is_immediate)
		moved = tally_x86_immediate(bytes + 2, opcode == 0x83);
	if (is_immediate && (middle == 0 || middle == 5)) { /* add, sub */
		set_depth(state, state->depth + (middle == 5 ? moved : -moved));
		return;
	}
	if (is_immediate && middle == 4 && moved < 0) { /* and: aligns */
		state->slot = 0;
		find_sp_apart(state, 0);
		return;
	}
	enum scale loaded = loaded_from(state, decoded, &depth);
	if (loaded == BELOW_ALIGNED && state->slot && depth == state->slot) {
		find_sp(state, state->slot_depth);
		return;
	}
	enum scale scale = address_taken(state, decoded, &depth);
	if (scale == BELOW_RETURN)
		find_sp(state, depth);
	else if (scale == BELOW_ALIGNED)
		find_sp_apart(state, depth);
	else
		lose_sp(state);
}

static void change_fp(struct state *state, const struct tally_x86_instruction *decoded)
{
	int64_t depth;
	enum scale scale = loaded_from(state, decoded, &depth);
	if ((scale == BELOW_RETURN && state->fp_depth && depth == state->fp_depth) ||
	    (scale == BELOW_ALIGNED && state->fp_apart && depth == state->fp_apart)) {
		state->fp_depth = state->fp_apart = 0; /* rbp is the caller's again */
		state->link = state->link_apart = 0;
		return;
	}
	scale = address_taken(state, decoded, &depth);
	lose_fp(state);
	/* lea also makes plain pointers into the frame */
	int32_t fp_depth = scale == BELOW_RETURN ? state->fp_depth : state->fp_apart;
	bool is_pointer = decoded->bytes[0] == 0x8d && depth != fp_depth;
	bool is_frame = depth > 0 && depth <= FRAME_BYTES_MAX && !is_pointer;
	if (scale == BELOW_RETURN && is_frame && !state->fp_is_lost)
		state->link = (int32_t)depth;
	if (scale == BELOW_ALIGNED && is_frame && !state->fp_is_lost)
		state->link_apart = (int32_t)depth;
}

/* Applies an instruction that writes neither rsp nor rbp to the alias and its slot. */
static void change_alias(struct state *state, const struct tally_x86_instruction *decoded,
			 unsigned changed)
{
	int64_t depth, place;
	if (!changed)
		return;
	unsigned reg = (unsigned)__builtin_ctz(changed);
	bool is_slot = loaded_from(state, decoded, &place) == BELOW_ALIGNED && state->slot &&
		       place == state->slot;
	bool is_copy = address_taken(state, decoded, &depth) == BELOW_RETURN;
	if (state->alias != TALLY_X86_NONE && changed >> state->alias & 1)
		state->alias = TALLY_X86_NONE;
	if (is_slot || is_copy)
		set_alias(state, reg, is_slot ? state->slot_depth : depth);
}

/* Applies mov %reg,n(…): saves the caller's rbp, or stores the alias. */
static void store(struct state *state, const struct tally_x86_instruction *decoded)
{
	int64_t depth;
	if (decoded->bytes[0] != 0x89 || !(decoded->rex & TALLY_X86_REX_W))
		return;
	unsigned reg = tally_x86_middle(decoded, decoded->bytes[1]);
	enum scale scale = place_of_operand(state, decoded, &depth);
	bool is_frame = depth > 0 && depth <= FRAME_BYTES_MAX;
	bool is_callers_fp = reg == TALLY_X86_RBP && !state->fp_depth && !state->fp_apart &&
			     !state->link && !state->link_apart && !state->fp_is_lost;
	if (scale == BELOW_RETURN && is_frame && is_callers_fp)
		state->fp_depth = (int32_t)depth;
	if (scale == BELOW_ALIGNED && is_frame && is_callers_fp)
		state->fp_apart = (int32_t)depth;
	if (scale == BELOW_ALIGNED && reg == state->alias)
		fill_slot(state, depth);
	else if (scale == BELOW_ALIGNED && depth == state->slot)
		state->slot = 0;
}

static void forget_called(struct state *state)
{
	if (state->alias != TALLY_X86_NONE && LOST_BY_CALLS >> state->alias & 1)
		state->alias = TALLY_X86_NONE;
}

/* Applies an instruction.  Adds the registers that it writes to *changed, but not those that it
 * pops: a pop restores the caller's value. */
static void apply(struct state *state, const uint8_t *code, size_t length, unsigned *changed)
{
	struct tally_x86_instruction decoded = tally_x86_decode(code, length);
	uint8_t opcode = decoded.bytes[0];
	unsigned low = tally_x86_register(&decoded, opcode & 7u, TALLY_X86_REX_B);
	bool pops_operand = opcode == 0x8f && !(decoded.bytes[1] >> 3 & 7); /* else AMD's XOP */
	bool pushes_operand = opcode == 0xff && (decoded.bytes[1] >> 3 & 7) == 6;
	bool moves_word = (opcode & 0xf0) == 0x50 || (opcode & 0xfd) == 0x68 ||
			  (opcode & 0xfe) == 0x9c || opcode == 0xc9 || pops_operand ||
			  pushes_operand;
	if ((moves_word && decoded.has_66) || opcode == 0xc8) { /* 16 bits; enter */
		lose_sp(state);
		lose_fp(state);
	} else if ((opcode & 0xf8) == 0x50) {
		push(state, low);
	} else if ((opcode & 0xf8) == 0x58) {
		pop(state, low);
	} else if (opcode == 0x68 || opcode == 0x6a || opcode == 0x9c || pushes_operand) {
		push(state, TALLY_X86_NONE); /* an immediate, the flags, memory */
	} else if (opcode == 0x9d || pops_operand) {
		pop(state,
		    pops_operand ? tally_x86_operand(&decoded, decoded.bytes[1]) : TALLY_X86_NONE);
	} else if (opcode == 0xc9) { /* leave */
		take_link(state, 0);
		pop(state, TALLY_X86_RBP);
	} else if (tally_x86_is_call(&decoded)) {
		forget_called(state);
	} else {
		unsigned now = tally_x86_written(&decoded);
		*changed |= now;
		store(state, &decoded);
		if (now & tally_x86_bit(TALLY_X86_RSP) && now & tally_x86_bit(TALLY_X86_RBP))
			lose_fp(state); /* xchg */
		if (now & tally_x86_bit(TALLY_X86_RSP))
			change_sp(state, &decoded);
		else if (now & tally_x86_bit(TALLY_X86_RBP))
			change_fp(state, &decoded);
		else
			change_alias(state, &decoded, now);
	}
}

/* ---- ways ---------------------------------------------------------------- */

/* True for an instruction that compilers put first in a function with a frame: push; endbr64; sub
 * from rsp. */
static bool begins_function(const uint8_t *bytes)
{
	static const uint8_t ENDBR64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned at = bytes[0] == 0x41;
	return (bytes[at] & 0xf8) == 0x50 || !memcmp(bytes, ENDBR64, sizeof(ENDBR64)) ||
	       (bytes[0] == 0x48 && (bytes[1] == 0x83 || bytes[1] == 0x81) && bytes[2] == 0xec);
}

/* True if a function seems to begin behind a call: the call may be of one that does not return. */
static bool may_end_at(const struct exploration *exploration, size_t behind)
{
	enum { ALIGNMENT = 16, NOP = 0x90, TRAP = 0xcc, CS = 0x2e, NARROW = 0x66 };
	const uint8_t *bytes = exploration->code + behind;
	if (behind + 4 > exploration->size)
		return true;
	if ((exploration->address + behind) % ALIGNMENT == 0 && begins_function(bytes))
		return true;
	return bytes[0] == NOP || bytes[0] == TRAP || bytes[0] == CS ||
	       (bytes[0] == NARROW &&
		(bytes[1] == NOP || bytes[1] == CS || bytes[1] == 0x0f || bytes[1] == NARROW)) ||
	       (bytes[0] == 0x0f && bytes[1] == 0x1f);
}

/* Adds the other places that the instruction at `at` goes to.  Returns false where it doesn't go on
 * to the next one. */
static bool follow(struct exploration *exploration, size_t at, size_t length,
		   const struct state *state)
{
	struct tally_x86_instruction decoded = tally_x86_decode(exploration->code + at, length);
	int64_t distance = 0;
	enum tally_x86_flow flow = tally_x86_flow(&decoded, &distance);
	if (flow == TALLY_X86_BRANCH || flow == TALLY_X86_JUMP)
		add_way(exploration, (int64_t)(at + length) + distance, state);
	if (flow == TALLY_X86_INDIRECT) {
		exploration->jumps_differ |= exploration->has_jump &&
					     !is_same(&exploration->jump, state);
		exploration->jump = *state;
		exploration->has_jump = true;
	}
	if (flow == TALLY_X86_CALL && exploration->is_plain && may_end_at(exploration, at + length))
		return false;
	if (flow == TALLY_X86_CALL && exploration->ends_at_call &&
	    at + length == exploration->target)
		return false;
	return flow == TALLY_X86_ON || flow == TALLY_X86_BRANCH || flow == TALLY_X86_CALL;
}

static void walk_way(struct exploration *exploration, struct way way)
{
	size_t at = way.at;
	struct state *state = &way.state;
	while (at < exploration->size) {
		uint32_t digest = digest_of(state);
		size_t length = tally_code_length(exploration->code + at, exploration->size - at);
		if (exploration->target - at < (length ? length : 1)) {
			exploration->is_ambiguous |= exploration->is_found &&
						     !is_same(&exploration->found, state);
			exploration->found = *state;
			if (exploration->target > at) /* a call that is under way */
				forget_called(&exploration->found);
			exploration->is_found = true;
		}
		/* Ways also disagree where a call that doesn't return seems to go on into code with
		 * another frame. */
		exploration->is_ambiguous |= exploration->seen[at] &&
					     exploration->seen[at] != digest;
		if (exploration->seen[at])
			return;
		exploration->seen[at] = digest;
		if (!length)
			return;
		if (!follow(exploration, at, length, state))
			return;
		apply(state, exploration->code + at, length, &exploration->changed);
		at += length;
	}
}

static void walk_all(struct exploration *exploration)
{
	while (exploration->count)
		walk_way(exploration, exploration->ways[--exploration->count]);
}

/* Walks the targets of jumps through tables: code that no way has reached, behind instructions that
 * don't go on. */
static void walk_tables(struct exploration *exploration)
{
	/* a copy: cases may end in jumps to other functions, with another frame */
	const struct state jump = exploration->jump;
	if (!exploration->has_jump)
		return;
	for (size_t at = 0;
	     at < exploration->size && !exploration->is_found && !exploration->jumps_differ;) {
		if (!exploration->seen[at]) {
			add_way(exploration, (int64_t)at, &jump);
			walk_all(exploration);
		}
		size_t length = tally_code_length(exploration->code + at, exploration->size - at);
		at += length ? length : 1;
	}
}

/* DWARF's number of a register. */
static uint8_t dwarf_of(unsigned reg)
{
	static const uint8_t NUMBERS[] = { 0, 2, 1, 3, 7, 6, 4, 5 };
	if (reg < sizeof(NUMBERS))
		return NUMBERS[reg];
	return (uint8_t)reg;
}

/* Describes the frame of a state in which rsp is unknown, or on the scale of the aligned stack.
 * Returns false when nothing leads to the return address. */
static bool describe_apart(const struct state *state, struct tally_code_frame *frame)
{
	bool by_link = state->link_apart;
	int32_t base_depth = by_link ? state->link_apart : state->depth;
	uint8_t base = dwarf_of(by_link ? TALLY_X86_RBP : TALLY_X86_RSP);
	bool has_scale = by_link || state->is_apart;
	int32_t depth = state->link;
	*frame = (struct tally_code_frame){ .has_base = true, .base = dwarf_of(TALLY_X86_RBP) };
	if (!state->link && state->alias != TALLY_X86_NONE) {
		frame->base = dwarf_of(state->alias);
		depth = state->alias_depth;
	} else if (!state->link) {
		if (!state->slot || !has_scale)
			return false;
		frame->is_loaded = true;
		frame->base = base;
		frame->loaded_at = base_depth - state->slot;
		depth = state->slot_depth;
	}
	frame->return_at = depth;
	frame->saves_fp = state->fp_depth || state->fp_apart;
	frame->fp_at = depth - state->fp_depth;
	if (!state->fp_apart)
		return true;
	frame->fp_is_apart = true;
	frame->fp_base = base;
	frame->fp_at = base_depth - state->fp_apart;
	return has_scale;
}

static bool describe(const struct state *state, struct tally_code_frame *frame)
{
	if (state->fp_is_lost)
		return false; /* without the caller's rbp, its frame can't be found */
	if (state->is_lost && !is_linked(state))
		return describe_apart(state, frame);
	*frame = (struct tally_code_frame){ .is_linked = is_linked(state),
					    .return_at = state->depth,
					    .saves_fp = state->fp_depth,
					    .fp_at = state->depth - state->fp_depth };
	return true;
}

enum tally_code_way tally_code_way_to(const uint8_t *code, size_t size)
{
	uint32_t seen[SIZE_MAX_BYTES + 1];
	if (size > SIZE_MAX_BYTES)
		return TALLY_CODE_NO_WAY;
	memset(seen, 0, (size + 1) * sizeof(*seen));
	/* the byte behind is read as the target only */
	struct exploration exploration = { .code = code,
					   .size = size + 1,
					   .target = size,
					   .seen = seen,
					   .ends_at_call = true };
	add_way(&exploration, 0, &AT_START);
	walk_all(&exploration);
	if (!exploration.is_found || !seen[size])
		return TALLY_CODE_NO_WAY;
	if (is_same(&exploration.found, &AT_START))
		return TALLY_CODE_WAY;
	return TALLY_CODE_WAY_INSIDE;
}

bool tally_code_leads_to(const uint8_t *code, size_t size, size_t at)
{
	uint32_t seen[SIZE_MAX_BYTES];
	if (size > SIZE_MAX_BYTES)
		size = SIZE_MAX_BYTES;
	if (at >= size)
		return false;
	memset(seen, 0, size * sizeof(*seen));
	struct exploration exploration = {
		.code = code, .size = size, .target = at, .seen = seen, .is_plain = true
	};
	add_way(&exploration, 0, &AT_START);
	walk_all(&exploration);
	return exploration.is_found;
}

bool tally_code_walk_to_jump(const uint8_t *code, size_t size, struct tally_code_frame *frame)
{
	uint32_t seen[SIZE_MAX_BYTES];
	if (size > SIZE_MAX_BYTES)
		size = SIZE_MAX_BYTES;
	memset(seen, 0, size * sizeof(*seen));
	struct exploration exploration = {
		.code = code, .size = size, .target = size, .seen = seen, .is_plain = true
	};
	add_way(&exploration, 0, &AT_START);
	walk_all(&exploration);
	return exploration.has_jump && !exploration.jumps_differ && !exploration.is_full &&
	       describe(&exploration.jump, frame);
}

static bool walk_to(const uint8_t *code, size_t size, uint64_t address, size_t at, bool is_plain,
		    struct tally_code_frame *frame)
{
	uint32_t seen[SIZE_MAX_BYTES];
	if (size > SIZE_MAX_BYTES)
		size = SIZE_MAX_BYTES;
	if (at >= size)
		return false;
	memset(seen, 0, size * sizeof(*seen));
	struct exploration exploration = { .code = code,
					   .size = size,
					   .target = at,
					   .seen = seen,
					   .is_plain = is_plain,
					   .address = address };
	add_way(&exploration, 0, &AT_START);
	walk_all(&exploration);
	if (!is_plain)
		walk_tables(&exploration);
	if (!exploration.is_found || exploration.is_ambiguous || exploration.is_full ||
	    !describe(&exploration.found, frame))
		return false;
	/* rbx and r12 to r15 are the caller's.  The code saves those that it writes somewhere. */
	frame->lost = (uint16_t)(exploration.changed & KEPT_BY_CALLS &
				 ~tally_x86_bit(TALLY_X86_RBX));
	if (exploration.changed & tally_x86_bit(TALLY_X86_RBX))
		frame->lost |= (uint16_t)(1u << dwarf_of(TALLY_X86_RBX));
	return true;
}

bool tally_code_walk(const uint8_t *code, size_t size, size_t at, struct tally_code_frame *frame)
{
	return walk_to(code, size, 0, at, false, frame);
}

bool tally_code_walk_plainly(const uint8_t *code, size_t size, uint64_t address, size_t at,
			     struct tally_code_frame *frame)
{
	return walk_to(code, size, address, at, true, frame);
}

/* ---- onward to the end --------------------------------------------------- */

/* The function's beginning is unknown, and so are the depths of rsp and of the word that rbp points
 * at.  They get numbers that are so far apart that the last depth tells which of them led there. */
enum {
	ONWARD_SP = FRAME_BYTES_MAX / 2,
	ONWARD_FP = ONWARD_SP / 2,
	ONWARD_NEAR = ONWARD_FP / 2,
	ONWARD_BYTES_MAX = 4 << 10,
	ONWARD_INSTRUCTIONS = 512,
};

struct onward_state {
	struct state state;
	/* of the caller's rbp, if the code has put it back from there; 0: it has not */
	int32_t restored_depth;
	bool fp_is_changed;
};

struct onward {
	const uint8_t *code;
	size_t size, instructions;
	int32_t seen[ONWARD_BYTES_MAX]; /* by byte: 0, or the depth of rsp at the instruction */
	struct { uint32_t at; struct onward_state state; } ways[WAYS_MAX];
	size_t count;
	struct tally_code_frame frame;
	bool is_found, differs, is_edge, passes_calls;
};

static void add_onward(struct onward *onward, int64_t at, const struct onward_state *state)
{
	if (at < 0 || at >= (int64_t)onward->size || onward->count == WAYS_MAX)
		return;
	onward->ways[onward->count].at = (uint32_t)at;
	onward->ways[onward->count++].state = *state;
}

static bool is_near(int32_t depth, int32_t to)
{
	return depth > to - ONWARD_NEAR && depth < to + ONWARD_NEAR;
}

/* Takes a ret. */
static void conclude(struct onward *onward, const struct onward_state *last)
{
	const struct state *state = &last->state;
	struct tally_code_frame frame = { 0 };
	if (state->is_lost)
		return;
	if (state->depth == ONWARD_FP - WORD && last->restored_depth == ONWARD_FP)
		frame.is_linked = true;
	else if (is_near(state->depth, ONWARD_SP) && state->depth <= ONWARD_SP)
		frame.return_at = ONWARD_SP - state->depth;
	else
		return;
	if (!frame.is_linked && last->fp_is_changed) {
		if (!last->restored_depth || !is_near(last->restored_depth, ONWARD_SP))
			return;
		/* below rsp: the code saved it on the way, and rbp has it now */
		frame.saves_fp = last->restored_depth <= ONWARD_SP;
		frame.fp_at = frame.saves_fp ? ONWARD_SP - last->restored_depth : 0;
	}
	onward->differs |= onward->is_found &&
			   (onward->frame.is_linked != frame.is_linked ||
			    onward->frame.return_at != frame.return_at ||
			    onward->frame.saves_fp != frame.saves_fp ||
			    onward->frame.fp_at != frame.fp_at);
	onward->frame = frame;
	onward->is_found = true;
}

/* Applies an instruction, and notes what it does to the caller's rbp. */
static void apply_onward(struct onward_state *state, const uint8_t *code, size_t length)
{
	enum { POP_RBP = 0x5d, LEAVE = 0xc9 };
	struct tally_x86_instruction decoded = tally_x86_decode(code, length);
	uint8_t opcode = decoded.bytes[0];
	int64_t depth;
	unsigned changed = 0;
	bool is_pop = opcode == POP_RBP && !(decoded.rex & TALLY_X86_REX_B);
	bool is_load = loaded_from(&state->state, &decoded, &depth) == BELOW_RETURN &&
		       tally_x86_written(&decoded) & tally_x86_bit(TALLY_X86_RBP);
	if (is_pop && !state->state.is_lost)
		state->restored_depth = state->state.depth;
	else if (is_load)
		state->restored_depth = (int32_t)depth;
	else if (opcode == LEAVE)
		state->restored_depth = state->state.link;
	else if (tally_x86_written(&decoded) & tally_x86_bit(TALLY_X86_RBP))
		state->restored_depth = 0;
	state->fp_is_changed |= is_pop || opcode == LEAVE ||
				tally_x86_written(&decoded) & tally_x86_bit(TALLY_X86_RBP);
	apply(&state->state, code, length, &changed);
}

/* True if code that has left the stack alone so far begins a function with a frame pointer, or
 * leaves for other code. */
static bool is_edge(const struct onward *onward, size_t at, enum tally_x86_flow flow,
		    int64_t target)
{
	static const uint8_t PUSH_MOV[] = { 0x55, 0x48, 0x89, 0xe5 },
			     PUSH_MOV_TOO[] = { 0x55, 0x48, 0x8b, 0xec };
	bool is_prologue = onward->size - at >= sizeof(PUSH_MOV) &&
			   (!memcmp(onward->code + at, PUSH_MOV, sizeof(PUSH_MOV)) ||
			    !memcmp(onward->code + at, PUSH_MOV_TOO, sizeof(PUSH_MOV_TOO)));
	bool is_far = flow == TALLY_X86_JUMP && (target < 0 || target >= (int64_t)onward->size);
	return is_prologue || is_far || flow == TALLY_X86_INDIRECT;
}

static void walk_onward(struct onward *onward, size_t at, struct onward_state state)
{
	while (at < onward->size && onward->instructions++ < ONWARD_INSTRUCTIONS) {
		size_t length = tally_code_length(onward->code + at, onward->size - at);
		int64_t distance = 0;
		int32_t depth = -1;
		if (!state.state.is_lost)
			depth = state.state.depth;
		onward->differs |= onward->seen[at] && onward->seen[at] != depth;
		if (onward->seen[at] || !length)
			return;
		onward->seen[at] = depth ? depth : -1;
		struct tally_x86_instruction decoded = tally_x86_decode(onward->code + at, length);
		enum tally_x86_flow flow = tally_x86_flow(&decoded, &distance);
		if (flow == TALLY_X86_END && tally_x86_is_return(&decoded))
			conclude(onward, &state);
		bool is_untouched = !state.state.is_lost && state.state.depth == ONWARD_SP &&
				    !state.fp_is_changed;
		onward->is_edge |= is_untouched && is_edge(onward, at, flow,
							   (int64_t)(at + length) + distance);
		if (flow == TALLY_X86_BRANCH || flow == TALLY_X86_JUMP)
			add_onward(onward, (int64_t)(at + length) + distance, &state);
		bool goes_on = flow == TALLY_X86_ON || flow == TALLY_X86_BRANCH ||
			       (flow == TALLY_X86_CALL && onward->passes_calls);
		if (!goes_on)
			return;
		apply_onward(&state, onward->code + at, length);
		at += length;
	}
}

bool tally_code_onward(const uint8_t *code, size_t size, bool passes_calls,
		       struct tally_code_frame *frame, bool *is_edge)
{
	struct onward onward = { .code = code,
				 .passes_calls = passes_calls,
				 .size = size < ONWARD_BYTES_MAX ? size : ONWARD_BYTES_MAX };
	const struct onward_state first = {
		.state = { .depth = ONWARD_SP,
			   .link = ONWARD_FP,
			   .fp_depth = ONWARD_FP,
			   .alias = TALLY_X86_NONE },
	};
	add_onward(&onward, 0, &first);
	while (onward.count) {
		onward.count--;
		walk_onward(&onward, onward.ways[onward.count].at,
			    onward.ways[onward.count].state);
	}
	*frame = onward.frame;
	*is_edge = onward.is_edge;
	return onward.is_found && !onward.differs;
}

bool tally_code_tail(const uint8_t *code, size_t size, int64_t *distance)
{
	enum { INSTRUCTIONS_MAX = 16 };
	struct state state = AT_START;
	unsigned changed = 0;
	size_t at = 0;
	for (unsigned i = 0; i < INSTRUCTIONS_MAX && at < size; i++) {
		size_t length = tally_code_length(code + at, size - at);
		if (!length)
			return false;
		struct tally_x86_instruction decoded = tally_x86_decode(code + at, length);
		int64_t from_next = 0;
		enum tally_x86_flow flow = tally_x86_flow(&decoded, &from_next);
		if (flow == TALLY_X86_JUMP)
			*distance = (int64_t)(at + length) + from_next;
		if (flow != TALLY_X86_ON)
			return flow == TALLY_X86_JUMP;
		apply(&state, code + at, length, &changed);
		if (state.depth || state.is_lost)
			return false;
		at += length;
	}
	return false;
}

bool tally_code_ends_stack(const uint8_t *code, size_t size)
{
	enum { INSTRUCTIONS_MAX = 6, HLT = 0xf4, ESCAPE = 0x0f, UD2 = 0x0b };
	size_t at = 0;
	for (unsigned i = 0; i < INSTRUCTIONS_MAX && at < size; i++) {
		size_t length = tally_code_length(code + at, size - at);
		struct tally_x86_instruction decoded = tally_x86_decode(code + at, length);
		int64_t distance;
		enum tally_x86_flow flow = TALLY_X86_END;
		if (length)
			flow = tally_x86_flow(&decoded, &distance);
		at += length;
		if (flow == TALLY_X86_CALL)
			return (at < size && code[at] == HLT) ||
			       (at + 1 < size && code[at] == ESCAPE && code[at + 1] == UD2);
		if (flow != TALLY_X86_ON)
			return false;
	}
	return false;
}

bool tally_code_jumps_out(const uint8_t *code, size_t size)
{
	for (size_t at = 0; at < size;) {
		size_t length = tally_code_length(code + at, size - at);
		if (!length)
			return true;
		struct tally_x86_instruction decoded = tally_x86_decode(code + at, length);
		int64_t distance = 0;
		enum tally_x86_flow flow = tally_x86_flow(&decoded, &distance);
		int64_t target = (int64_t)(at + length) + distance;
		if (flow == TALLY_X86_INDIRECT ||
		    ((flow == TALLY_X86_JUMP || flow == TALLY_X86_BRANCH) &&
		     (target < 0 || target >= (int64_t)size)))
			return true;
		at += length;
	}
	return false;
}

bool tally_code_exits(const uint8_t *code, size_t size)
{
	enum { INSTRUCTIONS_MAX = 6 };
	static const uint8_t LAST[] = { 0x0f, 0x05, 0xf4 }; /* syscall; hlt */
	size_t at = 0;
	for (unsigned i = 0; i < INSTRUCTIONS_MAX && at < size; i++) {
		if (size - at >= sizeof(LAST) && !memcmp(code + at, LAST, sizeof(LAST)))
			return true;
		size_t length = tally_code_length(code + at, size - at);
		struct tally_x86_instruction decoded = tally_x86_decode(code + at, length);
		int64_t distance;
		if (!length || tally_x86_flow(&decoded, &distance) != TALLY_X86_ON)
			return false;
		at += length;
	}
	return false;
}
