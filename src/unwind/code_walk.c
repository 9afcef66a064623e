/* Following a function's instructions.
 *
 * Code that was built without unwind rules (musl's, assembly, -fno-asynchronous-unwind-tables) still moves rsp in few
 * ways: push, pop, sub, add, lea, leave.  At a function's first instruction the return address is at rsp.  Following
 * the instructions from there, through every branch, gives rsp's distance from it at each instruction that can be
 * reached, and where rbp was saved; objtool makes the kernel's ORC tables that way.
 *
 * A compiler's frame has one size at an instruction, whatever way led there.  Where two ways differ, or something is done to
 * rsp that isn't understood, nothing is known.
 *
 * Where a jump goes through a table (a switch) can't be told from the code, only that rsp is there what it is at the
 * jump.  So what has not been reached, behind an instruction that doesn't go on, is taken to be reached from there, if
 * all such jumps of the function agree.
 */
#include "unwind/code_walk.h"

#include <string.h>

enum { WORD = 8, SIZE_MAX_BYTES = 16 << 10, FRAME_BYTES_MAX = 1 << 20, WAYS_MAX = 256 };

/* What is known of a frame at an instruction.  Distances are from the return address downwards. */
struct state {
	int32_t depth;    /* of rsp */
	int32_t fp_depth; /* of the place where the caller's rbp is saved; 0: nowhere, rbp is the caller's */
	int32_t link;     /* of what rbp points at; 0: it does not point into the frame */
	bool is_lost;     /* rsp is not known, but by rbp */
	bool fp_is_lost;  /* rbp has another value, and the caller's was not saved */
};

struct way {
	uint32_t at;
	struct state state;
};

struct exploration {
	const uint8_t *code;
	size_t size, target;
	int32_t *seen; /* by byte: 0, or rsp's depth at the instruction that was reached there, + 1 */
	struct way ways[WAYS_MAX];
	size_t count;
	struct state jump; /* at jumps through tables */
	bool has_jump, jumps_differ, is_full;
	struct state found;
	bool is_found, is_ambiguous;
};

static int32_t read_32(const uint8_t *bytes)
{
	int32_t value;
	memcpy(&value, bytes, sizeof(value));
	return value;
}

static bool is_same(const struct state *a, const struct state *b)
{
	return a->depth == b->depth && a->fp_depth == b->fp_depth && a->link == b->link && a->is_lost == b->is_lost &&
	       a->fp_is_lost == b->fp_is_lost;
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

/* ---- what an instruction does to the frame ---------------------------------------------------------------- */

struct decoded {
	const uint8_t *bytes; /* behind prefixes 66, f2, f3 and REX */
	size_t length;        /* of these */
	uint8_t rex;          /* 0: none */
};

static struct decoded decode(const uint8_t *code, size_t length)
{
	struct decoded decoded = { code, length, 0 };
	while (decoded.length > 1 && (*decoded.bytes == 0x66 || *decoded.bytes == 0xf2 || *decoded.bytes == 0xf3)) {
		decoded.bytes++;
		decoded.length--;
	}
	if (decoded.length > 1 && (*decoded.bytes & 0xf0) == 0x40) {
		decoded.rex = *decoded.bytes++;
		decoded.length--;
	}
	return decoded;
}

enum { REX_W = 8, REX_R = 4, REX_B = 1, RSP = 4, RBP = 5 };

static void push(struct state *state, bool is_rbp)
{
	state->depth += WORD;
	if (is_rbp && !state->fp_depth && !state->link && !state->fp_is_lost)
		state->fp_depth = state->depth;
}

static void pop(struct state *state, bool is_rbp, bool is_rsp)
{
	if (is_rbp && state->depth == state->fp_depth) {
		state->fp_depth = 0; /* the caller's again */
		state->link = 0;
		state->fp_is_lost = false;
	} else if (is_rbp) {
		state->link = 0;
		state->fp_is_lost |= !state->fp_depth;
	}
	state->is_lost |= is_rsp;
	state->depth -= WORD;
}

/* rsp is as rbp says, and `below` further down. */
static void take_link(struct state *state, int32_t below)
{
	state->is_lost = !state->link;
	state->depth = state->link + below;
}

static void lose_fp(struct state *state)
{
	state->link = 0;
	state->fp_is_lost |= !state->fp_depth;
}

/* add, sub, and, lea, mov with rsp for their result. */
static void change_sp(struct state *state, const struct decoded *decoded)
{
	const uint8_t *bytes = decoded->bytes;
	uint8_t opcode = bytes[0], modrm = bytes[1], mode = modrm >> 6, middle = modrm >> 3 & 7;
	bool is_immediate = opcode == 0x83 || opcode == 0x81;
	if (is_immediate && mode == 3 && (middle == 0 || middle == 5)) { /* add, sub */
		int32_t bytes_moved = opcode == 0x83 ? (int8_t)bytes[2] : read_32(bytes + 2);
		state->depth += middle == 5 ? bytes_moved : -bytes_moved;
		return;
	}
	bool from_sp = opcode == 0x8d && mode && (modrm & 7) == 4 && bytes[2] == 0x24;
	if (from_sp) {
		state->depth -= mode == 1 ? (int8_t)bytes[3] : read_32(bytes + 3);
		return;
	}
	if (opcode == 0x8d && mode && (modrm & 7) == RBP && !(decoded->rex & REX_B)) {
		take_link(state, -(mode == 1 ? (int8_t)bytes[2] : read_32(bytes + 2)));
		return;
	}
	bool from_rbp = (opcode == 0x89 && mode == 3 && middle == RBP) ||
			(opcode == 0x8b && mode == 3 && (modrm & 7) == RBP && !(decoded->rex & REX_B));
	if (from_rbp)
		take_link(state, 0);
	else
		state->is_lost = true;
}

/* Which register an instruction with a ModRM byte writes, of those that matter; 0: neither. */
static unsigned written(const struct decoded *decoded)
{
	uint8_t opcode = decoded->bytes[0];
	if (decoded->length < 2)
		return 0;
	uint8_t modrm = decoded->bytes[1];
	unsigned middle = (modrm >> 3 & 7) | (decoded->rex & REX_R ? 8 : 0);
	unsigned memory = modrm >> 6 == 3 ? (modrm & 7u) | (decoded->rex & REX_B ? 8u : 0u) : 99;
	unsigned result = 99;
	bool is_arithmetic = opcode < 0x40 && (opcode & 7) < 4;
	if (is_arithmetic && (opcode & 0x38) != 0x38) /* cmp writes nothing */
		result = opcode & 2 ? middle : memory;
	else if (opcode == 0x8b || opcode == 0x8d || opcode == 0x63 || opcode == 0x69 || opcode == 0x6b)
		result = middle;
	else if (opcode == 0x89 || opcode == 0xc7 || opcode == 0xc1 || opcode == 0xd1 || opcode == 0xd3)
		result = memory;
	else if ((opcode == 0x83 || opcode == 0x81) && (modrm >> 3 & 7) != 7)
		result = memory;
	else if ((opcode == 0xf7 && (modrm >> 3 & 7) >= 2 && (modrm >> 3 & 7) < 4) || (opcode == 0xff && (modrm >> 3 & 7) < 2))
		result = memory;
	else if (opcode == 0x87)
		result = middle == RBP || middle == RSP ? middle : memory;
	else if (opcode == 0x0f && decoded->length > 2)
		result = (decoded->bytes[2] >> 3 & 7) | (decoded->rex & REX_R ? 8u : 0u);
	if (opcode == 0x0f) { /* cmov, movzx, movsx, imul, bsf, bsr */
		bool is_general = (modrm & 0xf0) == 0x40 || modrm == 0xaf || (modrm & 0xf6) == 0xb6 || modrm == 0xbc ||
				  modrm == 0xbd || modrm == 0xb8;
		result = is_general ? result : 99;
	}
	return result == RSP || result == RBP ? result : 0;
}

static void change_fp(struct state *state, const struct decoded *decoded)
{
	const uint8_t *bytes = decoded->bytes;
	bool from_sp = (bytes[0] == 0x89 && bytes[1] == 0xe5) || (bytes[0] == 0x8b && bytes[1] == 0xec);
	bool is_wide = decoded->rex & REX_W;
	bool is_restored = bytes[0] == 0x8b && (bytes[1] == 0x6c || bytes[1] == 0xac) && bytes[2] == 0x24 && is_wide;
	int32_t offset = 0;
	if (is_restored)
		offset = bytes[1] == 0x6c ? (int8_t)bytes[3] : read_32(bytes + 3);
	if (from_sp && is_wide && !state->is_lost && state->fp_depth) {
		state->link = state->depth;
	} else if (is_restored && state->fp_depth && state->depth - offset == state->fp_depth) {
		state->fp_depth = state->link = 0;
	} else {
		lose_fp(state);
	}
}

/* mov %rbp,n(%rsp) */
static bool saves_fp(const struct state *state, const struct decoded *decoded, int32_t *depth)
{
	const uint8_t *bytes = decoded->bytes;
	if (bytes[0] != 0x89 || decoded->length < 3 || !(decoded->rex & REX_W) || decoded->rex & REX_R ||
	    state->fp_depth || state->link || state->fp_is_lost || state->is_lost || bytes[2] != 0x24)
		return false;
	if (bytes[1] != 0x6c && bytes[1] != 0xac && bytes[1] != 0x2c)
		return false;
	*depth = state->depth;
	if (bytes[1] != 0x2c)
		*depth -= bytes[1] == 0x6c ? (int8_t)bytes[3] : read_32(bytes + 3);
	return *depth > 0;
}

static void apply(struct state *state, const uint8_t *code, size_t length)
{
	struct decoded decoded = decode(code, length);
	uint8_t opcode = decoded.bytes[0];
	bool is_plain = !(decoded.rex & REX_B);
	int32_t depth;
	if ((opcode & 0xf8) == 0x50) {
		push(state, opcode == 0x50 + RBP && is_plain);
	} else if ((opcode & 0xf8) == 0x58) {
		pop(state, opcode == 0x58 + RBP && is_plain, opcode == 0x58 + RSP && is_plain);
	} else if (opcode == 0x68 || opcode == 0x6a || opcode == 0x9c || (opcode == 0xff && (decoded.bytes[1] >> 3 & 7) == 6)) {
		push(state, false); /* an immediate, the flags, memory */
	} else if (opcode == 0x9d || opcode == 0x8f) {
		pop(state, false, false);
	} else if (opcode == 0xc9) { /* leave */
		take_link(state, 0);
		pop(state, true, false);
	} else if ((opcode & 0xf8) == 0xb8 && is_plain && (opcode == 0xb8 + RBP || opcode == 0xb8 + RSP)) {
		lose_fp(state);
		state->is_lost |= opcode == 0xb8 + RSP;
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

/* ---- where an instruction goes ----------------------------------------------------------------------------- */

/* Adds where else it goes; false where it doesn't go on. */
static bool follow(struct exploration *exploration, size_t at, size_t length, const struct state *state)
{
	struct decoded decoded = decode(exploration->code + at, length);
	const uint8_t *bytes = decoded.bytes, opcode = bytes[0];
	int64_t next = (int64_t)(at + length);
	if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0) {
		add_way(exploration, next + (int8_t)bytes[1], state);
	} else if (opcode == 0x0f && (bytes[1] & 0xf0) == 0x80) {
		add_way(exploration, next + read_32(bytes + 2), state);
	} else if (opcode == 0xeb) {
		add_way(exploration, next + (int8_t)bytes[1], state);
		return false;
	} else if (opcode == 0xe9) {
		add_way(exploration, next + read_32(bytes + 1), state);
		return false;
	} else if (opcode == 0xff && (bytes[1] >> 3 & 6) == 4) { /* jmp through a register or memory */
		exploration->jumps_differ |= exploration->has_jump && !is_same(&exploration->jump, state);
		exploration->jump = *state;
		exploration->has_jump = true;
		return false;
	}
	bool is_end = opcode == 0xc3 || opcode == 0xc2 || opcode == 0xf4 || opcode == 0xcc ||
		      (opcode == 0x0f && bytes[1] == 0x0b);
	return !is_end;
}

static void walk_way(struct exploration *exploration, struct way way)
{
	size_t at = way.at;
	struct state *state = &way.state;
	while (at < exploration->size) {
		int32_t depth = state->is_lost ? INT32_MAX : state->depth + 1;
		size_t length = tally_code_length(exploration->code + at, exploration->size - at);
		if (exploration->target - at < (length ? length : 1)) {
			exploration->is_ambiguous |= exploration->is_found && !is_same(&exploration->found, state);
			exploration->found = *state;
			exploration->is_found = true;
		}
		/* Also where a call that doesn't return is taken to go on in another frame. */
		exploration->is_ambiguous |= exploration->seen[at] && exploration->seen[at] != depth;
		if (exploration->seen[at])
			return;
		exploration->seen[at] = depth;
		if (!length)
			return;
		if (!follow(exploration, at, length, state))
			return;
		apply(state, exploration->code + at, length);
		if (state->depth < 0 || state->depth > FRAME_BYTES_MAX)
			state->is_lost = true;
		at += length;
	}
}

static void walk_all(struct exploration *exploration)
{
	while (exploration->count)
		walk_way(exploration, exploration->ways[--exploration->count]);
}

/* What jumps through tables reach: it lies behind instructions that don't go on, unseen. */
static void walk_tables(struct exploration *exploration)
{
	if (!exploration->has_jump || exploration->jumps_differ || exploration->is_found)
		return;
	for (size_t at = 0; at < exploration->size && !exploration->is_found;) {
		if (!exploration->seen[at]) {
			add_way(exploration, (int64_t)at, &exploration->jump);
			walk_all(exploration);
		}
		size_t length = tally_code_length(exploration->code + at, exploration->size - at);
		at += length ? length : 1;
	}
}

static bool describe(const struct state *state, struct tally_code_frame *frame)
{
	if (state->is_lost && !state->link)
		return false;
	*frame = (struct tally_code_frame){ .is_linked = state->link == WORD && state->fp_depth == WORD,
					    .return_at = state->depth, .saves_fp = state->fp_depth,
					    .fp_at = state->depth - state->fp_depth };
	return frame->is_linked || !state->is_lost;
}

bool tally_code_walk(const uint8_t *code, size_t size, size_t at, struct tally_code_frame *frame)
{
	int32_t seen[SIZE_MAX_BYTES];
	size = size < SIZE_MAX_BYTES ? size : SIZE_MAX_BYTES;
	if (at >= size)
		return false;
	memset(seen, 0, size * sizeof(*seen));
	struct exploration exploration = { .code = code, .size = size, .target = at, .seen = seen };
	add_way(&exploration, 0, &(struct state){ 0 });
	walk_all(&exploration);
	walk_tables(&exploration);
	return exploration.is_found && !exploration.is_ambiguous && !exploration.is_full &&
	       describe(&exploration.found, frame);
}

bool tally_code_tail(const uint8_t *code, size_t size, int64_t *distance)
{
	enum { INSTRUCTIONS_MAX = 16, JMP = 0xe9, JMP_BYTES = 5 };
	struct state state = { 0 };
	size_t at = 0;
	for (unsigned i = 0; i < INSTRUCTIONS_MAX && at < size; i++) {
		size_t length = tally_code_length(code + at, size - at);
		if (length == JMP_BYTES && code[at] == JMP) {
			*distance = (int64_t)(at + JMP_BYTES) + read_32(code + at + 1);
			return true;
		}
		bool is_end = !length || code[at] == 0xe8 || code[at] == 0xc3 || (code[at] & 0xf0) == 0x70;
		if (is_end)
			return false;
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
		bool is_branch = code[at] == 0xe8 || code[at] == 0xe9 || code[at] == 0xeb || code[at] == 0xc3 ||
				 (code[at] & 0xf0) == 0x70;
		if (!length || is_branch)
			return false;
		at += length;
	}
	return false;
}
