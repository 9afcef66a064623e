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
 * The targets of a jump through a table (a switch) are not in the code, but rsp is the same at the
 * jump and at its targets.  So if all such jumps of a function agree, code that nothing else
 * reaches is assumed to be a target of theirs.
 */
#include "unwind/code_walk.h"

#include <string.h>

enum { WORD = 8, SIZE_MAX_BYTES = 16 << 10, FRAME_BYTES_MAX = 1 << 20, WAYS_MAX = 256 };

/* The frame as it is known at an instruction.  Distances are in bytes, from the return address
 * downwards. */
struct state {
	int32_t depth;    /* of rsp */
	/* of the place where the caller's rbp is saved; 0: not saved, rbp still holds it */
	int32_t fp_depth;
	int32_t link;     /* of the word that rbp points at; 0: it does not point into the frame */
	bool is_lost;     /* rsp is unknown, unless rbp gives it */
	bool fp_is_lost;  /* rbp was overwritten, and the caller's value was not saved */
};

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
	bool is_plain;    /* tally_code_walk_plainly() */
	uint64_t address; /* of the code */
};

static int32_t read_32(const uint8_t *bytes)
{
	int32_t value;
	memcpy(&value, bytes, sizeof(value));
	return value;
}

static bool is_same(const struct state *a, const struct state *b)
{
	return a->depth == b->depth && a->fp_depth == b->fp_depth && a->link == b->link &&
	       a->is_lost == b->is_lost && a->fp_is_lost == b->fp_is_lost;
}

/* Returns a hash of the state, never 0. */
static uint32_t digest_of(const struct state *state)
{
	uint64_t digest = state->is_lost ? UINT32_MAX : (uint32_t)state->depth;
	digest = (digest << 32 | (uint32_t)state->fp_depth) * 0x9e3779b97f4a7c15;
	digest ^= digest >> 29 ^ (uint64_t)(uint32_t)state->link << 2 ^ state->fp_is_lost;
	digest *= 0xbf58476d1ce4e5b9;
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
	exploration->ways[exploration->count++] = (struct way){ (uint32_t)at, *state };
}

/* ---- what an instruction does to the frame ------------------------------- */

struct decoded {
	const uint8_t *bytes; /* behind the prefixes */
	size_t length;        /* of `bytes` */
	uint8_t rex;          /* 0: none */
	bool has_66, has_scalar, has_repeat; /* prefixes 66, f2, f3 */
};

static bool is_prefix(uint8_t byte)
{
	static const uint8_t PREFIXES[] = { 0x66, 0xf2, 0xf3, 0x3e, 0x2e, 0x64,
					    0x65, 0x67, 0xf0, 0x26, 0x36 };
	return memchr(PREFIXES, byte, sizeof(PREFIXES));
}

static struct decoded decode(const uint8_t *code, size_t length)
{
	struct decoded decoded = { .bytes = code, .length = length };
	while (decoded.length > 1 && is_prefix(*decoded.bytes)) {
		decoded.has_66 |= *decoded.bytes == 0x66;
		decoded.has_scalar |= *decoded.bytes == 0xf2;
		decoded.has_repeat |= *decoded.bytes == 0xf3;
		decoded.bytes++;
		decoded.length--;
	}
	if (decoded.length > 1 && (*decoded.bytes & 0xf0) == 0x40) {
		decoded.rex = *decoded.bytes++;
		decoded.length--;
	}
	return decoded;
}

enum { REX_W = 8, REX_R = 4, REX_X = 2, REX_B = 1, RSP = 4, RBP = 5 };

/* Sets the depth of rsp.  Outside of a frame's limits, rsp is lost. */
static void set_depth(struct state *state, int64_t depth)
{
	bool is_frame = depth >= 0 && depth <= FRAME_BYTES_MAX;
	bool is_dropped = is_frame && depth < state->fp_depth && state->depth >= state->fp_depth;
	if (is_dropped && !state->is_lost) { /* the saved rbp is no longer on the stack */
		state->fp_is_lost = true;
		state->fp_depth = state->link = 0;
	}
	state->is_lost |= !is_frame;
	state->depth = is_frame ? (int32_t)depth : 0;
}

static void push(struct state *state, bool is_rbp)
{
	set_depth(state, (int64_t)state->depth + WORD);
	if (is_rbp && !state->is_lost && !state->fp_depth && !state->link && !state->fp_is_lost)
		state->fp_depth = state->depth;
}

static void pop(struct state *state, bool is_rbp, bool is_rsp)
{
	if (is_rbp && !state->is_lost && state->fp_depth && state->depth == state->fp_depth) {
		state->fp_depth = 0; /* rbp is the caller's again */
		state->link = 0;
		state->fp_is_lost = false;
	} else if (is_rbp) {
		state->link = 0;
		state->fp_is_lost |= !state->fp_depth;
	}
	state->is_lost |= is_rsp;
	set_depth(state, (int64_t)state->depth - WORD);
}

/* Sets rsp to `below` bytes below the word that rbp points at. */
static void take_link(struct state *state, int64_t below)
{
	state->is_lost = !state->link;
	set_depth(state, state->link + below);
}

static void lose_fp(struct state *state)
{
	state->link = 0;
	state->fp_is_lost |= !state->fp_depth;
}

/* True if the operand is n(%rsp), in an instruction whose ModRM byte is bytes[1].  Sets *offset to
 * n. */
static bool is_at_sp(const struct decoded *decoded, int32_t *offset)
{
	const uint8_t *bytes = decoded->bytes;
	uint8_t mode = bytes[1] >> 6;
	if (mode == 3 || (bytes[1] & 7) != RSP || bytes[2] != 0x24 ||
	    decoded->rex & (REX_B | REX_X))
		return false;
	*offset = 0;
	if (mode)
		*offset = mode == 1 ? (int8_t)bytes[3] : read_32(bytes + 3);
	return true;
}

/* Applies add, sub, and, lea or mov with rsp as the result. */
static void change_sp(struct state *state, const struct decoded *decoded)
{
	const uint8_t *bytes = decoded->bytes;
	uint8_t opcode = bytes[0], modrm = bytes[1], mode = modrm >> 6, middle = modrm >> 3 & 7;
	bool is_immediate = (opcode == 0x83 || opcode == 0x81) && mode == 3 &&
			    (middle == 0 || middle == 5);
	int32_t offset;
	if (!(decoded->rex & REX_W)) {
		state->is_lost = true; /* overwrites half of rsp */
		return;
	}
	if (is_immediate) { /* add, sub */
		int64_t moved = opcode == 0x83 ? (int8_t)bytes[2] : read_32(bytes + 2);
		set_depth(state, state->depth + (middle == 5 ? moved : -moved));
		return;
	}
	if (opcode == 0x8d && is_at_sp(decoded, &offset)) {
		set_depth(state, (int64_t)state->depth - offset);
		return;
	}
	if (opcode == 0x8d && (mode == 1 || mode == 2) && (modrm & 7) == RBP &&
	    !(decoded->rex & REX_B)) {
		take_link(state, -(int64_t)(mode == 1 ? (int8_t)bytes[2] : read_32(bytes + 2)));
		return;
	}
	bool from_rbp = (opcode == 0x89 && mode == 3 && middle == RBP && !(decoded->rex & REX_R)) ||
			(opcode == 0x8b && mode == 3 && (modrm & 7) == RBP &&
			 !(decoded->rex & REX_B));
	if (from_rbp)
		take_link(state, 0);
	else
		state->is_lost = true;
}

/* The registers that an instruction's ModRM byte names; NEITHER where it names memory. */
enum { NEITHER = 99 };

static unsigned middle_register(const struct decoded *decoded, uint8_t modrm)
{
	return (modrm >> 3 & 7u) | (decoded->rex & REX_R ? 8u : 0u);
}

static unsigned operand_register(const struct decoded *decoded, uint8_t modrm)
{
	if (modrm >> 6 != 3)
		return NEITHER;
	return (modrm & 7u) | (decoded->rex & REX_B ? 8u : 0u);
}

/* Returns the register that an opcode behind 0f writes. */
static unsigned written_by_0f(const struct decoded *decoded)
{
	uint8_t opcode = decoded->bytes[1];
	if ((opcode & 0xf8) == 0xc8) /* bswap */
		return (opcode & 7u) | (decoded->rex & REX_B ? 8u : 0u);
	if (decoded->length < 3)
		return NEITHER;
	uint8_t modrm = decoded->bytes[2];
	/* lar, lsl; cvt to integers; movmskp; imul; popcnt, bsf, bsr; pextrw; pmovmskb */
	static const uint8_t MIDDLE[] = { 0x02, 0x03, 0x2c, 0x2d, 0x50, 0xaf,
					  0xb8, 0xbc, 0xbd, 0xc5, 0xd7 };
	/* movd from a vector; shld, shrd; bts, btr, btc; rdfsbase; cmpxchg, xadd; rdrand */
	static const uint8_t OPERAND[] = { 0x7e, 0xa4, 0xa5, 0xab, 0xac, 0xad, 0xae,
					   0xb1, 0xb3, 0xba, 0xbb, 0xc1, 0xc7 };
	bool is_moved = (opcode & 0xf0) == 0x40 || (opcode & 0xf6) == 0xb6; /* cmov, movzx, movsx */
	bool is_middle = is_moved || memchr(MIDDLE, opcode, sizeof(MIDDLE));
	bool is_operand = memchr(OPERAND, opcode, sizeof(OPERAND));
	if ((opcode & 0xfe) == 0x2c) /* otherwise it writes an MMX register */
		is_middle = decoded->has_repeat || decoded->has_scalar;
	/* f3 0f 7e moves between vectors; 0f ae writes a register only with f3 */
	if (opcode == 0x7e || opcode == 0xae)
		is_operand = (opcode == 0xae) == decoded->has_repeat;
	if (is_middle)
		return middle_register(decoded, modrm);
	return is_operand ? operand_register(decoded, modrm) : (unsigned)NEITHER;
}

/* Returns the register that an instruction with VEX writes.  The payload has the map, the bits of
 * REX (inverted), and vvvv: one more register. */
static unsigned written_by_vex(const struct decoded *decoded)
{
	enum { VEX_3 = 0xc4 };
	const uint8_t *bytes = decoded->bytes;
	bool is_long = bytes[0] == VEX_3;
	if (decoded->length < (is_long ? 5 : 4))
		return NEITHER;
	unsigned map = is_long ? bytes[1] & 0x1f : 1, last = is_long ? bytes[2] : bytes[1];
	uint8_t opcode = bytes[is_long ? 3 : 2], modrm = bytes[is_long ? 4 : 3];
	struct decoded plain = { .has_66 = (last & 3) == 1, .has_repeat = (last & 3) == 2,
				 .has_scalar = (last & 3) == 3 };
	plain.rex = (bytes[1] & 0x80 ? 0 : REX_R) | (is_long && !(bytes[1] & 0x20) ? REX_B : 0);
	const uint8_t like_0f[] = { 0x0f, opcode, modrm };
	plain.bytes = like_0f;
	plain.length = sizeof(like_0f);
	static const uint8_t MAP_1[] = { 0x2c, 0x2d, 0x50, 0x7e, 0xc5, 0xd7 };
	if (map == 1)
		return memchr(MAP_1, opcode, sizeof(MAP_1)) ? written_by_0f(&plain)
							    : (unsigned)NEITHER;
	bool is_pair = map == 2 && (opcode == 0xf3 || opcode == 0xf6); /* blsr …; mulx writes two */
	unsigned other = ~last >> 3 & 15;
	if (is_pair && (opcode == 0xf3 || other == RBP || other == RSP))
		return other;
	if ((map == 2 && opcode >= 0xf2 && opcode <= 0xf7) || (map == 3 && opcode == 0xf0))
		return middle_register(&plain, modrm);
	bool is_extracted = map == 3 && opcode >= 0x14 && opcode <= 0x17; /* vpextr */
	return is_extracted ? operand_register(&plain, modrm) : (unsigned)NEITHER;
}

/* Returns which of rsp and rbp an instruction writes; 0: neither. */
static unsigned written(const struct decoded *decoded)
{
	uint8_t opcode = decoded->bytes[0];
	unsigned result = NEITHER;
	if (decoded->length < 2)
		return 0;
	uint8_t modrm = decoded->bytes[1], group = modrm >> 3 & 7;
	unsigned middle = middle_register(decoded, modrm),
		 operand = operand_register(decoded, modrm);
	bool is_arithmetic = opcode < 0x38 && (opcode & 7) < 4; /* cmp, 38 to 3b, writes nothing */
	if (is_arithmetic && !(opcode & 1) &&
	    !decoded->rex) /* ah … dh have rsp's and rbp's numbers */
		return 0;
	if (is_arithmetic)
		result = opcode & 2 ? middle : operand;
	else if (opcode == 0x8b || opcode == 0x8d || opcode == 0x63 || opcode == 0x69 ||
		 opcode == 0x6b)
		result = middle;
	else if (opcode == 0x89 || opcode == 0xc7 || opcode == 0xc1 || opcode == 0xd1 ||
		 opcode == 0xd3)
		result = operand;
	else if ((opcode == 0x83 || opcode == 0x81) && group != 7)
		result = operand;
	else if ((opcode == 0xf7 && (group == 2 || group == 3)) || (opcode == 0xff && group < 2) ||
		 (opcode == 0x8f && !group))
		result = operand;
	else if (opcode == 0x87)
		result = middle == RBP || middle == RSP ? middle : operand;
	else if (opcode == 0x0f)
		result = written_by_0f(decoded);
	else if (opcode == 0xc4 || opcode == 0xc5)
		result = written_by_vex(decoded);
	return result == RSP || result == RBP ? result : 0;
}

static void change_fp(struct state *state, const struct decoded *decoded)
{
	const uint8_t *bytes = decoded->bytes;
	bool from_sp = (bytes[0] == 0x89 && bytes[1] == 0xe5 && !(decoded->rex & REX_R)) ||
		       (bytes[0] == 0x8b && bytes[1] == 0xec && !(decoded->rex & REX_B));
	bool is_wide = decoded->rex & REX_W;
	int32_t offset;
	bool is_restored = bytes[0] == 0x8b && is_wide && is_at_sp(decoded, &offset) &&
			   !state->is_lost && state->fp_depth &&
			   (int64_t)state->depth - offset == state->fp_depth;
	if (from_sp && is_wide && !state->is_lost && state->fp_depth)
		state->link = state->depth;
	else if (is_restored)
		state->fp_depth = state->link = 0;
	else
		lose_fp(state);
}

/* True for mov %rbp,n(%rsp) that saves the caller's rbp.  Sets *at to the depth of its place. */
static bool saves_fp(const struct state *state, const struct decoded *decoded, int32_t *at)
{
	int32_t offset;
	if (decoded->bytes[0] != 0x89 || !(decoded->rex & REX_W) || decoded->rex & REX_R ||
	    state->fp_depth || state->link || state->fp_is_lost || state->is_lost ||
	    (decoded->bytes[1] >> 3 & 7) != RBP || !is_at_sp(decoded, &offset))
		return false;
	int64_t depth = (int64_t)state->depth - offset;
	*at = depth > 0 && depth <= FRAME_BYTES_MAX ? (int32_t)depth : 0;
	return *at > 0;
}

static void apply(struct state *state, const uint8_t *code, size_t length)
{
	struct decoded decoded = decode(code, length);
	uint8_t opcode = decoded.bytes[0];
	bool is_plain = !(decoded.rex & REX_B);
	int32_t depth;
	bool pops_operand = opcode == 0x8f && !(decoded.bytes[1] >> 3 & 7); /* else AMD's XOP */
	bool pushes_operand = opcode == 0xff && (decoded.bytes[1] >> 3 & 7) == 6;
	bool moves_word = (opcode & 0xf0) == 0x50 || (opcode & 0xfd) == 0x68 ||
			  (opcode & 0xfe) == 0x9c || opcode == 0xc9 || pops_operand ||
			  pushes_operand;
	if ((moves_word && decoded.has_66) || opcode == 0xc8) { /* 16 bits; enter */
		state->is_lost = true;
		lose_fp(state);
	} else if ((opcode & 0xf8) == 0x50) {
		push(state, opcode == 0x50 + RBP && is_plain);
	} else if ((opcode & 0xf8) == 0x58) {
		pop(state, opcode == 0x58 + RBP && is_plain, opcode == 0x58 + RSP && is_plain);
	} else if (opcode == 0x68 || opcode == 0x6a || opcode == 0x9c || pushes_operand) {
		push(state, false); /* an immediate, the flags, memory */
	} else if (opcode == 0x9d || pops_operand) {
		unsigned reg = pops_operand ? written(&decoded) : 0;
		pop(state, reg == RBP, reg == RSP);
	} else if (opcode == 0xc9) { /* leave */
		take_link(state, 0);
		pop(state, true, false);
	} else if (is_plain && (opcode == 0xb8 + RSP || opcode == 0x90 + RSP)) { /* mov, xchg */
		state->is_lost = true;
	} else if (is_plain && (opcode == 0xb8 + RBP || opcode == 0x90 + RBP)) {
		lose_fp(state);
	} else if (saves_fp(state, &decoded, &depth)) {
		state->fp_depth = depth;
	} else {
		unsigned reg = written(&decoded);
		if (reg == RSP)
			change_sp(state, &decoded);
		else if (reg == RBP)
			change_fp(state, &decoded);
	}
}

/* ---- where an instruction goes ------------------------------------------- */

enum flow {
	FLOW_ON,
	FLOW_BRANCH,   /* on, or to the target */
	FLOW_JUMP,     /* to the target */
	FLOW_INDIRECT, /* through a register or memory */
	FLOW_CALL,
	FLOW_END,
};

/* Returns where an instruction goes.  Sets *distance to the target's distance from behind the
 * instruction. */
static enum flow flow_of(const struct decoded *decoded, int64_t *distance)
{
	const uint8_t *bytes = decoded->bytes, opcode = bytes[0];
	uint8_t second = decoded->length > 1 ? bytes[1] : 0, middle = second >> 3 & 7;
	if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0 || opcode == 0xeb)
		*distance = (int8_t)second;
	if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0)
		return FLOW_BRANCH;
	if (opcode == 0x0f && (second & 0xf0) == 0x80) {
		*distance = read_32(bytes + 2);
		return FLOW_BRANCH;
	}
	if (opcode == 0xe9)
		*distance = read_32(bytes + 1);
	if (opcode == 0xe9 || opcode == 0xeb)
		return FLOW_JUMP;
	if (opcode == 0xe8 || (opcode == 0xff && (middle == 2 || middle == 3)))
		return FLOW_CALL;
	if (opcode == 0xff && (middle == 4 || middle == 5))
		return FLOW_INDIRECT;
	/* ret, lret, int3, iret, hlt; ud2, ud1, ud0 */
	static const uint8_t ENDS[] = { 0xc2, 0xc3, 0xca, 0xcb, 0xcc, 0xcf, 0xf4 };
	bool is_undefined = opcode == 0x0f && (second == 0x0b || second == 0xb9 || second == 0xff);
	bool is_end = is_undefined || memchr(ENDS, opcode, sizeof(ENDS));
	return is_end ? FLOW_END : FLOW_ON;
}

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
	struct decoded decoded = decode(exploration->code + at, length);
	int64_t distance = 0;
	enum flow flow = flow_of(&decoded, &distance);
	if (flow == FLOW_BRANCH || flow == FLOW_JUMP)
		add_way(exploration, (int64_t)(at + length) + distance, state);
	if (flow == FLOW_INDIRECT) {
		exploration->jumps_differ |= exploration->has_jump &&
					     !is_same(&exploration->jump, state);
		exploration->jump = *state;
		exploration->has_jump = true;
	}
	if (flow == FLOW_CALL && exploration->is_plain && may_end_at(exploration, at + length))
		return false;
	return flow == FLOW_ON || flow == FLOW_BRANCH || flow == FLOW_CALL;
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
		apply(state, exploration->code + at, length);
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

static bool describe(const struct state *state, struct tally_code_frame *frame)
{
	if ((state->is_lost && !state->link) || state->fp_is_lost)
		return false; /* without the caller's rbp, its frame can't be found */
	*frame = (struct tally_code_frame){ .is_linked = state->link == WORD &&
							 state->fp_depth == WORD,
					    .return_at = state->depth,
					    .saves_fp = state->fp_depth,
					    .fp_at = state->depth - state->fp_depth };
	return frame->is_linked || !state->is_lost;
}

static bool walk_to(const uint8_t *code, size_t size, uint64_t address, size_t at, bool is_plain,
		    struct tally_code_frame *frame)
{
	uint32_t seen[SIZE_MAX_BYTES];
	size = size < SIZE_MAX_BYTES ? size : SIZE_MAX_BYTES;
	if (at >= size)
		return false;
	memset(seen, 0, size * sizeof(*seen));
	struct exploration exploration = { .code = code,
					   .size = size,
					   .target = at,
					   .seen = seen,
					   .is_plain = is_plain,
					   .address = address };
	add_way(&exploration, 0, &(struct state){ 0 });
	walk_all(&exploration);
	if (!is_plain)
		walk_tables(&exploration);
	return exploration.is_found && !exploration.is_ambiguous && !exploration.is_full &&
	       describe(&exploration.found, frame);
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

bool tally_code_tail(const uint8_t *code, size_t size, int64_t *distance)
{
	enum { INSTRUCTIONS_MAX = 16 };
	struct state state = { 0 };
	size_t at = 0;
	for (unsigned i = 0; i < INSTRUCTIONS_MAX && at < size; i++) {
		size_t length = tally_code_length(code + at, size - at);
		if (!length)
			return false;
		struct decoded decoded = decode(code + at, length);
		int64_t from_next = 0;
		enum flow flow = flow_of(&decoded, &from_next);
		if (flow == FLOW_JUMP)
			*distance = (int64_t)(at + length) + from_next;
		if (flow != FLOW_ON)
			return flow == FLOW_JUMP;
		apply(&state, code + at, length);
		if (state.depth || state.is_lost)
			return false;
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
		struct decoded decoded = decode(code + at, length);
		int64_t distance;
		if (!length || flow_of(&decoded, &distance) != FLOW_ON)
			return false;
		at += length;
	}
	return false;
}
