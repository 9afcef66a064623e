/* Finds where functions begin, from the code alone.
 *
 * It reads the code instruction by instruction from its first byte (a sweep).  Compilers put only
 * instructions there.  Behind bytes that are no instruction, the sweep soon falls into step again.
 * It looks for two things:
 *
 * - The target of a direct call is a beginning.
 * - An address that an instruction takes (lea, mov) may be a beginning: some functions are called
 *   by pointer, as main is.  It may also be a label's address.  So it counts only where the code
 *   before it doesn't go on: behind ret, jmp, ud2 or hlt, or behind a call and padding.
 *
 * Both must be instructions of the sweep.  A function whose address is only in tables is not found.
 *
 * Names need less certainty than unwinding, but must not run on into the next function.  So there
 * are likely beginnings, too: an instruction behind code that doesn't go on, where no jump leads
 * that stays in a function (a conditional or a near one).  Behind a jump through a table these may
 * be cases of a switch.
 */
#include "unwind/code_walk.h"
#include "unwind/x86_instruction.h"

#include <errno.h>
#include <stdlib.h>

enum { BITS = 64, ALIGNMENT = 16 };

struct sweep {
	const uint8_t *code;
	size_t size;
	uint64_t address;
	uint64_t *instructions; /* bits of bytes where an instruction begins */
	uint64_t *behind_ends;  /* the instruction before doesn't go on */
	uint64_t *called, *taken, *jumped;
	uint64_t *cases; /* behind a jump, and not aligned: rather a part of a function */
	/* of the last instruction that is no padding */
	bool has_ended, has_jumped, has_called;
	bool is_padded;             /* padding follows it */
};

static void set(uint64_t *bits, size_t at)
{
	bits[at / BITS] |= 1ull << at % BITS;
}

static void note(struct sweep *sweep, uint64_t *bits, uint64_t target)
{
	if (target - sweep->address < sweep->size)
		set(bits, (size_t)(target - sweep->address));
}

static bool is_padding(const uint8_t *bytes, size_t length)
{
	while (length > 1 && (bytes[0] == 0x66 || bytes[0] == 0x2e)) {
		bytes++;
		length--;
	}
	return bytes[0] == 0x90 || bytes[0] == 0xcc ||
	       (length > 2 && bytes[0] == 0x0f && bytes[1] == 0x1f);
}

static bool is_end(const uint8_t *bytes, size_t length)
{
	if (length > 1 && (bytes[0] == 0xf3 || bytes[0] == 0xf2 || bytes[0] == 0x3e)) {
		bytes++;
		length--;
	}
	return bytes[0] == 0xc3 || bytes[0] == 0xc2 || bytes[0] == 0xe9 || bytes[0] == 0xeb ||
	       bytes[0] == 0xf4 || (length > 1 && bytes[0] == 0x0f && bytes[1] == 0x0b) ||
	       (length > 1 && bytes[0] == 0xff && (bytes[1] >> 3 & 7) == 4);
}

/* Of an instruction that doesn't go on: true if it is no jump. */
static bool is_return(const uint8_t *bytes, size_t length)
{
	bool is_prefixed = length > 1 && (bytes[0] == 0xf3 || bytes[0] == 0xf2);
	uint8_t code = bytes[is_prefixed];
	return code == 0xc3 || code == 0xc2 || code == 0xf4 || code == 0x0f;
}

static void note_targets(struct sweep *sweep, const uint8_t *bytes, size_t length, uint64_t behind)
{
	enum { NEAR_CALL = 5, SHORT_MOV = 5, LEA = 7, MOV = 7 };
	bool is_wide = (bytes[0] & 0xf8) == 0x48;
	if (bytes[length - NEAR_CALL] == 0xe8 &&
	    (length == NEAR_CALL ||
	     (length == NEAR_CALL + 1 && (bytes[0] == 0x67 || bytes[0] == 0xf2))))
		note(sweep, sweep->called,
		     behind + (uint64_t)(int64_t)tally_x86_immediate(bytes + length - 4, false));
	else if (length == LEA && is_wide && bytes[1] == 0x8d && (bytes[2] & 0xc7) == 0x05)
		note(sweep, sweep->taken,
		     behind + (uint64_t)(int64_t)tally_x86_immediate(bytes + 3, false));
	else if ((length == SHORT_MOV && (bytes[0] & 0xf8) == 0xb8) ||
		 (length >= MOV && is_wide && bytes[1] == 0xc7))
		note(sweep, sweep->taken, (uint32_t)tally_x86_immediate(bytes + length - 4, false));
}

/* Notes the target of a jump that stays in its function: conditional, or not far. */
static void note_jump(struct sweep *sweep, const uint8_t *bytes, size_t length, uint64_t behind)
{
	enum { NEAR = 2048 };
	int64_t distance = NEAR + 1;
	if (length && (bytes[0] == 0x2e || bytes[0] == 0x3e || bytes[0] == 0xf2)) {
		bytes++; /* branch hints; bnd */
		length--;
	}
	bool is_conditional = length == 6 && bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80;
	if (length == 2 && ((bytes[0] & 0xf0) == 0x70 || bytes[0] == 0xeb ||
			    (bytes[0] & 0xfc) == 0xe0))
		distance = (int8_t)bytes[1];
	else if (is_conditional || (length == 5 && bytes[0] == 0xe9))
		distance = tally_x86_immediate(bytes + length - 4, false);
	if (is_conditional || (distance <= NEAR && distance >= -NEAR))
		note(sweep, sweep->jumped, behind + (uint64_t)distance);
}

static void take(struct sweep *sweep, size_t at, size_t length)
{
	const uint8_t *bytes = sweep->code + at;
	set(sweep->instructions, at);
	if (is_padding(bytes, length)) {
		sweep->is_padded = true;
		return;
	}
	bool is_aligned = (sweep->address + at) % ALIGNMENT == 0;
	if (!at || sweep->has_ended || (sweep->has_called && sweep->is_padded && is_aligned))
		set(sweep->behind_ends, at);
	if (sweep->has_jumped && !is_aligned)
		set(sweep->cases, at);
	sweep->has_ended = is_end(bytes, length);
	sweep->has_called = bytes[0] == 0xe8;
	sweep->has_jumped = sweep->has_ended && !is_return(bytes, length);
	sweep->is_padded = false;
	note_jump(sweep, bytes, length, sweep->address + at + length);
	if (length >= 5)
		note_targets(sweep, bytes, length, sweep->address + at + length);
}

int tally_code_starts_find(const uint8_t *code, size_t size, uint64_t address,
			   struct tally_code_starts *out)
{
	size_t words = size / BITS + 1;
	uint64_t *bits = calloc(words * 6, sizeof(*bits));
	*out = (struct tally_code_starts){ .address = address, .size = size };
	if (!bits)
		return -ENOMEM;
	struct sweep sweep = { .code = code,
			       .size = size,
			       .address = address,
			       .instructions = bits,
			       .behind_ends = bits + words,
			       .called = bits + 2 * words,
			       .taken = bits + 3 * words,
			       .jumped = bits + 4 * words,
			       .cases = bits + 5 * words };
	for (size_t at = 0; at < size;) {
		size_t length = tally_code_length(code + at, size - at);
		if (length)
			take(&sweep, at, length);
		else
			sweep.has_ended = sweep.has_called = false;
		at += length ? length : 1;
	}
	for (size_t i = 0; i < words; i++) {
		bits[i] &= sweep.called[i] | (sweep.taken[i] & sweep.behind_ends[i]);
		sweep.behind_ends[i] =
			bits[i] | (sweep.behind_ends[i] & ~sweep.jumped[i] & ~sweep.cases[i]);
	}
	uint64_t *less = realloc(bits, 2 * words * sizeof(*bits));
	out->bits = less ? less : bits;
	out->likely = out->bits + words;
	return 0;
}

void tally_code_starts_release(struct tally_code_starts *starts)
{
	free(starts->bits);
	*starts = (struct tally_code_starts){ 0 };
}

/* Finds the last set bit in [first, at]; SIZE_MAX: there is none. */
static size_t last_set(const uint64_t *bits, size_t first, size_t at)
{
	size_t word = at / BITS;
	uint64_t set = bits[word] & (~0ull >> (BITS - 1 - at % BITS));
	while (!set && word > first / BITS)
		set = bits[--word];
	if (!set)
		return SIZE_MAX;
	at = word * BITS + (BITS - 1) - (unsigned)__builtin_clzll(set);
	if (at < first)
		return SIZE_MAX;
	return at;
}

/* Finds the first set bit in [at, end); `end`: there is none. */
static size_t next_set(const uint64_t *bits, size_t at, size_t end)
{
	if (at >= end)
		return end;
	size_t word = at / BITS, last = (end - 1) / BITS;
	uint64_t set = bits[word] & (~0ull << at % BITS);
	while (!set && word < last)
		set = bits[++word];
	if (!set)
		return end;
	at = word * BITS + (unsigned)__builtin_ctzll(set);
	if (at > end)
		return end;
	return at;
}

static bool find_around(const struct tally_code_starts *starts, const uint64_t *bits,
			uint64_t address, size_t reach, uint64_t *start, uint64_t *end)
{
	uint64_t at = address - starts->address;
	if (at >= starts->size)
		return false;
	size_t found = last_set(bits, at > reach ? (size_t)at - reach : 0, (size_t)at);
	if (found == SIZE_MAX)
		return false;
	size_t most = starts->size - found > 2 * reach ? found + 2 * reach : starts->size;
	*start = starts->address + found;
	*end = starts->address + next_set(bits, (size_t)at + 1, most);
	return true;
}

bool tally_code_starts_around(const struct tally_code_starts *starts, uint64_t address,
			      size_t reach, uint64_t *start, uint64_t *end)
{
	return find_around(starts, starts->bits, address, reach, start, end);
}

bool tally_code_starts_likely(const struct tally_code_starts *starts, uint64_t address,
			      size_t reach, uint64_t *start, uint64_t *end)
{
	return find_around(starts, starts->likely, address, reach, start, end);
}
