/* An interrupt waits until the instruction that runs has ended.  It then finds the address of the
 * next one.  So a slow load, division or store is sampled one instruction too late: in a loop over
 * an array, at the addition behind the load, or even at the head of the loop.
 *
 * The instruction before is the one above in the code, unless other ways lead here:
 *
 * - A loop's head is reached from the jump at the loop's end, once for each round.  That jump is
 *   charged.  The code above the loop runs only once.
 * - Where a conditional jump and the code above meet, either may have taken the time.  An
 *   instruction that touches no memory and takes a cycle can't, so the jump is charged.
 *   Otherwise the instruction above is.
 * - Where only jumps lead, the nearest one is charged.  The targets of a jump through a table are
 *   not in the code; all code that nothing else reaches is assumed to be a target.
 * - Behind a call, the callee's return ended last, and behind a system call the kernel's.  Neither
 *   the call nor any instruction of this function can be charged: the address stays.
 *
 * A mispredicted jump costs time in front of the first instruction at its target.  Some CPUs (seen
 * on AMD's) take the interrupt only when that instruction has ended, so the sample is at the second
 * one.  If the first instruction of such a block takes a cycle and touches no memory, the jump
 * that leads there is charged.  The jump may also close a loop, and short loops have samples
 * anywhere.  So for a jump backwards there must be samples on its other side, too: these are few
 * behind a loop.  The same holds behind instructions that let no other begin (mfence).
 *
 * CPUs end several instructions at once.  So a sample may be behind a counter's step that follows a
 * slow load.  The step waits for nothing, and so can't have taken time: if it doesn't use the
 * loaded register, the load is charged.
 *
 * A repeated string instruction is interrupted between its rounds: then it is itself the next one,
 * and keeps its samples.
 *
 * CPUs join a comparison and the conditional jump behind it.  Then no sample lies between them, and
 * the jump is charged for both; they nearly always have the same line.
 */
#include "unwind/unwind.h"

#include "unwind/code_walk.h"
#include "unwind/x86_instruction.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	OTHER,
	QUICK,       /* takes a cycle, and touches no memory but the stack */
	REPEAT,      /* a string instruction, which is interrupted between its rounds */
	FENCE,       /* no instruction begins before it has ended */
	CONDITIONAL, /* a jump that may not be taken */
	JUMP,
	TABLE,       /* a jump whose target is not in the code */
	CALL,        /* also of the system */
	END,         /* a return, or no instruction */
};

enum { TABLES_MAX = 2 };

static const uint32_t NONE = UINT32_MAX;

enum { NO_REGISTER = 254, UNKNOWN = 255 };

struct instruction {
	uint32_t at;      /* offset in the code */
	uint32_t size;
	enum kind kind;
	bool is_nop;
	/* register that gets the result of a load, a multiplication or the like, whose kind is
	 * OTHER; NO_REGISTER: none that counts; UNKNOWN */
	uint8_t result;
	uint8_t counter;  /* register that a constant is added to; UNKNOWN: something else */
	uint32_t target;  /* offset of a jump's target; NONE: outside of the function */
};

/* The jumps that lead to an instruction, as indices; NONE: there is no such jump. */
struct ways {
	uint32_t back;       /* conditional, from behind: the last one */
	uint32_t plain_back; /* not conditional, from behind: the last one */
	uint32_t forward;    /* conditional, from before: the last one */
	uint32_t plain;      /* not conditional, from before: the last one */
};

struct function {
	const uint8_t *code;
	size_t size;
	struct instruction *instructions;
	struct ways *ways; /* by instruction */
	uint32_t count;
	/* jumps through tables: number, and the first of them.  There may be two, one in front of a
	 * loop.  An interpreter has more, one for each of its instructions: then their targets are
	 * not known. */
	uint32_t tables, table[TABLES_MAX];
	const struct tally_code_sample *samples;
	size_t sample_count;
};

/* ---- x86-64 -------------------------------------------------------------- */

/* True if the operand of ModRM is a register, or memory of the stack (`is_load`: the instruction
 * only reads it).  rbp is taken for a frame pointer if the distance is negative. */
static bool is_near(const struct tally_x86_instruction *decoded, size_t modrm_at, bool is_load)
{
	const uint8_t *modrm = decoded->bytes + modrm_at;
	if (decoded->length <= modrm_at)
		return false;
	unsigned mode = *modrm >> 6, base = *modrm & 7;
	if (mode == 3)
		return true;
	if (!is_load || decoded->rex & TALLY_X86_REX_B || decoded->length < modrm_at + 2)
		return false;
	if (base == TALLY_X86_RSP)
		return (modrm[1] & 7) == TALLY_X86_RSP && modrm[1] >> 3 == TALLY_X86_RSP;
	if (base != TALLY_X86_RBP || mode == 0)
		return false;
	if (mode == 1)
		return modrm[1] >> 7;
	return decoded->length >= modrm_at + 5 && modrm[4] >> 7;
}

static bool is_quick_0f(const struct tally_x86_instruction *decoded)
{
	uint8_t opcode = 0;
	if (decoded->length > 1)
		opcode = decoded->bytes[1];
	bool is_extension = (opcode & 0xf6) == 0xb6; /* movzx, movsx */
	if (opcode == 0x1e || opcode == 0x1f || (opcode & 0xf8) == 0xc8) /* nop, bswap */
		return true;
	bool has_modrm = (opcode & 0xf0) == 0x40 || (opcode & 0xf0) == 0x90 || is_extension ||
			 opcode == 0xa3 || opcode == 0xab || opcode == 0xb3 || opcode == 0xba ||
			 opcode == 0xbb;
	return has_modrm && is_near(decoded, 2, is_extension);
}

static bool is_repeated(const struct tally_x86_instruction *decoded)
{
	return decoded->has_f2 || decoded->has_f3;
}

static bool is_quick_x86(const struct tally_x86_instruction *decoded)
{
	uint8_t opcode = decoded->bytes[0];
	unsigned middle = 0;
	if (decoded->length > 1)
		middle = decoded->bytes[1] >> 3 & 7;
	if (decoded->has_lock)
		return false;
	if (opcode == 0x0f)
		return is_quick_0f(decoded);
	if (opcode < 0x40) /* add … cmp */
		return (opcode & 7) >= 4 || is_near(decoded, 1, false);
	if (opcode == 0x8d || opcode == 0x98 || opcode == 0x99 || opcode == 0xa8 ||
	    opcode == 0xa9 || (opcode & 0xf0) == 0xb0)
		return true;
	if (opcode == 0x90)
		return !is_repeated(decoded); /* else pause */
	if (opcode == 0x8a || opcode == 0x8b || opcode == 0x63)
		return is_near(decoded, 1, true);
	if ((opcode & 0xfe) == 0xf6)
		return middle < 4 && is_near(decoded, 1, false); /* test, not, neg */
	if ((opcode & 0xfe) == 0xfe)
		return middle < 2 && is_near(decoded, 1, false); /* inc, dec */
	bool has_modrm = opcode == 0x80 || opcode == 0x81 || opcode == 0x83 ||
			 (opcode & 0xfc) == 0x84 || (opcode & 0xfe) == 0x88 ||
			 (opcode & 0xfe) == 0xc0 || (opcode & 0xfe) == 0xc6 ||
			 (opcode & 0xfc) == 0xd0;
	return has_modrm && (opcode & 0xfe) != 0x86 && is_near(decoded, 1, false);
}

/* Returns the register that a slow instruction's ModRM byte names as its result. */
static uint8_t result_of_x86(const struct tally_x86_instruction *decoded)
{
	/* loads, arithmetic with memory, imul, cmov, cvt to integers, bit scans, popcnt */
	static const uint8_t PLAIN[] = { 0x8b, 0x63, 0x03, 0x0b, 0x13, 0x1b, 0x23, 0x2b, 0x33 };
	static const uint8_t BEHIND_0F[] = { 0xb6, 0xb7, 0xbe, 0xbf, 0xaf,
					     0x2c, 0x2d, 0xbc, 0xbd, 0xb8 };
	const uint8_t *bytes = decoded->bytes;
	bool is_0f = bytes[0] == 0x0f;
	if (decoded->length < 2u + is_0f || decoded->has_lock)
		return UNKNOWN;
	bool is_loaded = memchr(PLAIN, bytes[0], sizeof(PLAIN));
	if (is_0f)
		is_loaded = memchr(BEHIND_0F, bytes[1], sizeof(BEHIND_0F));
	if (is_loaded)
		return (uint8_t)tally_x86_middle(decoded, bytes[1 + is_0f]);
	bool is_vector = is_0f && ((bytes[1] & 0xf0) == 0x10 || (bytes[1] & 0xf0) == 0x50 ||
				   bytes[1] == 0x28 || bytes[1] == 0x29 || bytes[1] == 0x6f);
	bool is_store = bytes[0] == 0x89 || bytes[0] == 0x88 || bytes[0] == 0xc7;
	if (is_vector || is_store)
		return NO_REGISTER;
	return UNKNOWN;
}

/* Returns the register that add, sub, inc, dec or lea adds a constant to. */
static uint8_t counter_of_x86(const struct tally_x86_instruction *decoded)
{
	const uint8_t *bytes = decoded->bytes;
	if (decoded->length < 2)
		return UNKNOWN;
	if (bytes[0] == 0x05 || bytes[0] == 0x2d)
		return 0; /* rax */
	unsigned mode = bytes[1] >> 6, middle = bytes[1] >> 3 & 7, operand = bytes[1] & 7;
	unsigned number = tally_x86_register(decoded, operand, TALLY_X86_REX_B);
	bool is_sum = (bytes[0] == 0x83 || bytes[0] == 0x81) && (middle == 0 || middle == 5),
	     is_step = bytes[0] == 0xff && middle < 2,
	     is_lea = bytes[0] == 0x8d && (mode == 1 || mode == 2) && operand != TALLY_X86_RSP &&
		      number == tally_x86_register(decoded, middle, TALLY_X86_REX_R);
	if (is_lea || (mode == 3 && (is_sum || is_step)))
		return (uint8_t)number;
	return UNKNOWN;
}

static bool is_nop_x86(const struct tally_x86_instruction *decoded)
{
	return (decoded->bytes[0] == 0x90 && !is_repeated(decoded)) ||
	       (decoded->length > 1 && decoded->bytes[0] == 0x0f && decoded->bytes[1] == 0x1f);
}

static enum kind kind_of_0f(const struct tally_x86_instruction *decoded)
{
	uint8_t opcode = 0;
	if (decoded->length > 1)
		opcode = decoded->bytes[1];
	unsigned middle = 0;
	if (decoded->length > 2)
		middle = decoded->bytes[2] >> 3 & 7;
	if ((opcode & 0xf0) == 0x80)
		return CONDITIONAL;
	if (opcode == 0x05 || opcode == 0x34)
		return CALL;
	if (opcode == 0x0b || opcode == 0xb9 || opcode == 0xff)
		return END;
	if (opcode == 0xa2 || (opcode == 0xae && (middle == 5 || middle == 6)))
		return FENCE; /* cpuid, lfence, mfence */
	if (is_quick_x86(decoded))
		return QUICK;
	return OTHER;
}

static enum kind kind_of_x86(const struct tally_x86_instruction *decoded)
{
	uint8_t opcode = decoded->bytes[0];
	unsigned middle = 0;
	if (decoded->length > 1)
		middle = decoded->bytes[1] >> 3 & 7;
	if (opcode == 0x0f)
		return kind_of_0f(decoded);
	if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0)
		return CONDITIONAL;
	if (opcode == 0xe9 || opcode == 0xeb)
		return JUMP;
	if (opcode == 0xff && (middle == 4 || middle == 5))
		return TABLE;
	if (opcode == 0xe8 || opcode == 0xcd ||
	    (opcode == 0xff && (middle == 2 || middle == 3)))
		return CALL;
	if ((opcode & 0xf6) == 0xc2 || opcode == 0xcf || opcode == 0xcc || opcode == 0xf4)
		return END;
	if (opcode == 0x90 && is_repeated(decoded))
		return FENCE; /* pause */
	bool is_string = (opcode & 0xfc) == 0xa4 || (opcode >= 0xaa && opcode <= 0xaf) ||
			 (opcode & 0xfc) == 0x6c;
	if (is_string && is_repeated(decoded))
		return REPEAT;
	if (is_quick_x86(decoded))
		return QUICK;
	return OTHER;
}

/* Returns where a jump leads, from the function's start. */
static int64_t target_of_x86(const struct tally_x86_instruction *decoded, uint32_t end)
{
	int32_t distance;
	uint8_t opcode = decoded->bytes[0];
	size_t skipped = 1;
	if (opcode == 0x0f)
		skipped = 2;
	if ((opcode != 0x0f && opcode != 0xe9) || decoded->length < skipped + sizeof(distance))
		return (int64_t)end + (int8_t)decoded->bytes[decoded->length - 1];
	memcpy(&distance, decoded->bytes + skipped, sizeof(distance));
	return (int64_t)end + distance;
}

static int64_t read_x86(const uint8_t *code, size_t size, struct instruction *out)
{
	size_t length = tally_code_length(code, size);
	if (!length) { /* data, or damaged */
		out->size = 1;
		out->kind = END;
		return -1;
	}
	const struct tally_x86_instruction decoded = tally_x86_decode(code, length);
	out->size = (uint32_t)length;
	out->kind = kind_of_x86(&decoded);
	out->is_nop = is_nop_x86(&decoded);
	if (out->kind == OTHER)
		out->result = result_of_x86(&decoded);
	else if (out->kind == QUICK)
		out->counter = counter_of_x86(&decoded);
	if (out->kind == CONDITIONAL || out->kind == JUMP)
		return target_of_x86(&decoded, out->at + out->size);
	return -1;
}

/* ---- arm64 --------------------------------------------------------------- */

static bool is_quick_arm64(uint32_t word)
{
	bool is_immediate = (word & 0x1c000000) == 0x10000000,
	     is_register = (word & 0x0e000000) == 0x0a000000,
	     is_multiply = (word & 0x1f000000) == 0x1b000000,
	     is_divide = (word & 0x5fe0f800) == 0x1ac00800,
	     is_stack_load = (word & 0x3b4003e0) == 0x394003e0,
	     is_hint = (word & 0xfffff01f) == 0xd503201f;
	unsigned hint = word >> 5 & 0x7f;
	if (is_hint)
		return !hint || hint >= 24; /* nop, paciasp, bti; not yield, wfe … */
	return is_immediate || is_stack_load || (is_register && !is_multiply && !is_divide);
}

static int64_t distance_of(uint32_t word, unsigned bits, unsigned shift)
{
	uint64_t field = (uint64_t)(word >> shift) << (64 - bits);
	return (int64_t)field >> (64 - bits) << 2;
}

static int64_t read_arm64(const uint8_t *code, size_t size, struct instruction *out)
{
	uint32_t word;
	out->size = (uint32_t)size;
	out->kind = END;
	if (size < sizeof(word))
		return -1;
	out->size = sizeof(word);
	memcpy(&word, code, sizeof(word));
	unsigned register_branch = word >> 21 & 7;
	if ((word & 0xfc000000) == 0x14000000) {
		out->kind = JUMP;
		return out->at + distance_of(word, 26, 0);
	}
	bool is_short = (word & 0xff000000) == 0x54000000 || (word & 0x7e000000) == 0x34000000,
	     is_test = (word & 0x7e000000) == 0x36000000;
	if (is_short || is_test) {
		out->kind = CONDITIONAL;
		return out->at + distance_of(word, is_test ? 14 : 19, 5);
	}
	if ((word & 0xfc000000) == 0x94000000 || (word & 0xffe00000) == 0xd4000000)
		out->kind = CALL; /* bl; svc, hvc, smc */
	else if ((word & 0xfe000000) == 0xd6000000 && register_branch < 2)
		out->kind = register_branch ? CALL : TABLE;
	else if ((word & 0xfffff01f) == 0xd503301f)
		out->kind = FENCE; /* dsb, dmb, isb */
	else if ((word & 0xfe000000) != 0xd6000000 && (word & 0xff000000) != 0xd4000000 &&
		 word >> 16)
		out->kind = is_quick_arm64(word) ? QUICK : OTHER;
	out->is_nop = word == 0xd503201f;
	bool is_access = (word & 0x3a000000) == 0x38000000, /* of one register */
	     is_vector = word & 1u << 26;
	if (out->kind == OTHER && is_access)
		out->result = is_vector ? NO_REGISTER : word & 31;
	if (out->kind == QUICK && (word & 0x1f000000) == 0x11000000 &&
	    (word & 31) == (word >> 5 & 31))
		out->counter = word & 31;
	return -1;
}

/* ---- a function ---------------------------------------------------------- */

/* Returns the index of the instruction that begins at an offset; NONE: none does. */
static uint32_t index_at(const struct function *function, uint64_t offset)
{
	uint32_t low = 0, high = function->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (function->instructions[middle].at < offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < function->count && function->instructions[low].at == offset)
		return low;
	return NONE;
}

/* True if the instruction at the index is followed by the next one. */
static bool goes_on(const struct function *function, uint32_t index)
{
	enum kind kind = function->instructions[index].kind;
	return kind == OTHER || kind == QUICK || kind == REPEAT || kind == FENCE ||
	       kind == CONDITIONAL;
}

static bool is_jump(const struct instruction *instruction)
{
	return instruction->kind == CONDITIONAL || instruction->kind == JUMP ||
	       instruction->kind == TABLE;
}

static void read_all(struct function *function, unsigned machine)
{
	for (uint32_t at = 0; at < function->size;) {
		struct instruction one = { .at = at, .result = UNKNOWN, .counter = UNKNOWN };
		const uint8_t *code = function->code + at;
		int64_t target;
		if (machine == EM_AARCH64)
			target = read_arm64(code, function->size - at, &one);
		else
			target = read_x86(code, function->size - at, &one);
		one.target = NONE;
		if (target >= 0 && target < (int64_t)function->size)
			one.target = (uint32_t)target;
		if (one.kind == TABLE && function->tables++ < TABLES_MAX)
			function->table[function->tables - 1] = function->count;
		/* behind a jump it only fills up the line */
		if (one.is_nop && function->count && !goes_on(function, function->count - 1) &&
		    function->instructions[function->count - 1].kind != CALL)
			one.kind = END;
		function->instructions[function->count++] = one;
		at += one.size;
	}
}

static void find_ways(struct function *function)
{
	for (uint32_t i = 0; i < function->count; i++)
		function->ways[i] = (struct ways){ NONE, NONE, NONE, NONE };
	for (uint32_t i = 0; i < function->count; i++) {
		const struct instruction *from = &function->instructions[i];
		uint32_t to = NONE;
		if (from->target != NONE)
			to = index_at(function, from->target);
		if (to == NONE)
			continue;
		struct ways *ways = &function->ways[to];
		bool is_conditional = from->kind == CONDITIONAL;
		if (to <= i && is_conditional)
			ways->back = i;
		else if (to <= i)
			ways->plain_back = i;
		else if (is_conditional)
			ways->forward = i;
		else
			ways->plain = i;
	}
}

/* Returns the jump through a table that leads to an instruction which nothing else reaches; NONE:
 * not known. */
static uint32_t table_to(const struct function *function, uint32_t index)
{
	if (!function->tables || function->tables > TABLES_MAX)
		return NONE;
	bool is_last = function->tables > 1 && function->table[function->tables - 1] < index;
	return function->table[is_last ? function->tables - 1 : 0];
}

/* Returns the heat of a sample at an instruction; -1: it was not sampled. */
static int heat_at(const struct function *function, uint32_t index)
{
	size_t low = 0, high = function->sample_count;
	if (index >= function->count)
		return -1;
	uint64_t offset = function->instructions[index].at;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (function->samples[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low >= function->sample_count || function->samples[low].offset != offset)
		return -1;
	return function->samples[low].heat;
}

/* Returns the heat at the beginning of a block, where a jump's misprediction shows. */
static int heat_of_block(const struct function *function, uint32_t index)
{
	int first = heat_at(function, index), second = heat_at(function, index + 1);
	if (first > second)
		return first;
	return second;
}

/* True if both sides of a conditional jump have samples, one at least an eighth of the other. */
static bool has_two_sides(const struct function *function, uint32_t jump, uint32_t target)
{
	enum { EIGHTH = 3 };
	int taken = heat_of_block(function, target), not_taken = heat_of_block(function, jump + 1);
	return taken >= 0 && not_taken >= 0 && abs(taken - not_taken) <= EIGHTH;
}

/* Returns the instruction before a quick one that explains its samples: a jump that was probably
 * mispredicted, or a fence; NONE: there is none. */
static uint32_t held_up_by(const struct function *function, uint32_t index)
{
	const struct ways *ways = &function->ways[index];
	enum kind above = END;
	if (index)
		above = function->instructions[index - 1].kind;
	if (ways->back != NONE)
		return has_two_sides(function, ways->back, index) ? ways->back : NONE;
	if (above == CONDITIONAL || above == FENCE)
		return index - 1;
	if (!index || ways->forward != NONE || goes_on(function, index - 1) || above == CALL)
		return ways->forward;
	if (ways->plain == NONE && ways->plain_back == NONE)
		return table_to(function, index);
	return NONE;
}

/* Returns the slow instruction in front of counters' steps that don't use its result; NONE: there
 * is none. */
static uint32_t before_counters(const struct function *function, uint32_t index)
{
	enum { COUNTERS_MAX = 3 };
	uint8_t counters[COUNTERS_MAX];
	unsigned count = 0;
	for (;; index--) {
		const struct instruction *one = &function->instructions[index];
		const struct ways *ways = &function->ways[index];
		if (one->kind == OTHER && one->result != UNKNOWN)
			return count && !memchr(counters, one->result, count) ? index : NONE;
		bool is_entered = ways->back != NONE || ways->plain_back != NONE ||
				  ways->forward != NONE || ways->plain != NONE;
		if (one->counter == UNKNOWN || is_entered || count == COUNTERS_MAX || !index)
			return NONE;
		counters[count++] = one->counter;
	}
}

/* Returns the jump that leads to an instruction that the code above doesn't reach; NONE: not
 * known. */
static uint32_t only_jump(const struct function *function, uint32_t index)
{
	const struct ways *ways = &function->ways[index];
	const uint32_t jumps[] = { ways->forward, ways->plain_back, ways->plain };
	for (unsigned i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++)
		if (jumps[i] != NONE)
			return jumps[i];
	if (index)
		return table_to(function, index);
	return NONE;
}

/* Returns the instruction that ended before the one at the index; NONE: not known. */
static uint32_t ended_before(const struct function *function, uint32_t index)
{
	const struct ways *ways = &function->ways[index];
	enum kind above = END;
	if (index)
		above = function->instructions[index - 1].kind;
	if (function->instructions[index].kind == REPEAT)
		return index;
	if (ways->back != NONE)
		return ways->back;
	if (above == CALL)
		return ways->forward;
	if (!index || !goes_on(function, index - 1))
		return only_jump(function, index);
	if (above != QUICK)
		return index - 1;
	if (ways->plain_back != NONE)
		return ways->plain_back;
	if (ways->forward != NONE)
		return ways->forward;
	uint32_t held = held_up_by(function, index - 1),
		 slow = before_counters(function, index - 1);
	if (slow != NONE)
		return slow;
	if (held == NONE)
		return index - 1;
	return held;
}

bool tally_code_has_causes(unsigned machine, bool is_big_endian)
{
	return !is_big_endian && (machine == EM_X86_64 || machine == EM_AARCH64);
}

int tally_code_causes(unsigned machine, const uint8_t *code, size_t size,
		      struct tally_code_sample *samples, size_t count)
{
	size_t most = size;
	if (machine == EM_AARCH64)
		most = size / 4 + 1;
	struct function function = {
		.code = code,
		.size = size < UINT32_MAX ? size : UINT32_MAX - 1,
		.instructions = malloc((most + 1) * sizeof(*function.instructions)),
		.samples = samples,
		.sample_count = count,
	};
	if (function.instructions)
		read_all(&function, machine);
	function.ways = malloc((function.count + 1) * sizeof(*function.ways));
	int result = -ENOMEM;
	if (!function.instructions || !function.ways)
		goto out;
	result = 0;
	find_ways(&function);
	for (size_t i = 0; i < count; i++) {
		uint32_t index = index_at(&function, samples[i].offset), cause = NONE;
		if (index != NONE)
			cause = ended_before(&function, index);
		samples[i].cause = samples[i].offset;
		samples[i].is_jump = false;
		if (cause != NONE) {
			samples[i].cause = function.instructions[cause].at;
			samples[i].is_jump = is_jump(&function.instructions[cause]);
		}
	}
out:
	free(function.instructions);
	free(function.ways);
	return result;
}
