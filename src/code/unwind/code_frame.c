/* Finds the frame of code that was made at run time, from its instructions.
 *
 * Code that a program makes has no unwind rules that a profiler can find, and much of it keeps no
 * frame pointer: HotSpot's compiled methods, CPython's perf trampolines, the output of small JITs.
 * The instructions themselves are in the process's memory.  Two parts of a function tell where its
 * return address is:
 *
 * - The end.  If the instructions at an address only leave the function (add $8,%rsp; pop %rbp;
 *   ret), the CPU will run just these.  The sum of the bytes that they add to rsp gives the place
 *   of the return address, whichever compiler made the code.  This works for a trampoline, which
 *   ends right after its call, and for a leaf that was sampled in its last instructions.
 *
 * - The beginning, for HotSpot's methods.  Their frame has one size from the first instructions to
 *   the last, so the beginning tells the frame of every address inside.  A beginning is easy to
 *   find.  A method that makes calls first touches the stack far below, to detect an overflow
 *   early:
 *
 *       mov  %eax,-0x14000(%rsp)          the distance depends on the JVM's settings
 *       push %rbp
 *       [mov %rsp,%rbp]                   -XX:+PreserveFramePointer, and wrappers of native methods
 *       sub  $size,%rsp
 *
 *   A method without calls saves rbp without a push:
 *
 *       sub  $size,%rsp                   always with a 32-bit operand
 *       mov  %rbp,size-8(%rsp)
 *
 *   When HotSpot replaces a method, it writes a jump over the first five bytes; calls that are
 *   under way go on.  Bytes of hlt separate two pieces of compiled code and stop the search.
 *
 * The beginning of another function would give a wrong place.  So the caller of this module checks
 * that the place holds an address right behind a call (tally_code_ends_in_call()).
 */
#include "unwind/unwind.h"
#include "unwind/x86_instruction.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORD = 8,
	INSTRUCTIONS_MAX = 24,      /* of a function's end */
	FRAME_BYTES_MAX = 1 << 20,
	PADDING = 4,                /* bytes of hlt in a row */
	HLT = 0xf4,
	BANG_BYTES = 7,             /* mov %eax,disp32(%rsp) */
	SUB_BYTES = 7,              /* sub $imm32,%rsp */
	BANG_MIN = 0x1000, BANG_MAX = 0x200000,
};

/* ---- the end ------------------------------------------------------------- */

struct leaving {
	struct tally_code_frame frame;
	int32_t sp;       /* bytes from the frame's rsp up to the current one */
	bool is_over;     /* `frame` is known */
};

struct bytes {
	const uint8_t *at;
	size_t left;
};

static bool begins(const struct bytes *code, const char *pattern, size_t size)
{
	return code->left >= size && !memcmp(code->at, pattern, size);
}

#define BEGINS(code, text) begins(code, text, sizeof(text) - 1)

/* Takes add $n,%rsp or lea n(%rsp),%rsp.  Returns its length, or 0 for another instruction. */
static size_t raise_sp(const struct bytes *code, struct leaving *leaving)
{
	static const struct { char bytes[5]; uint8_t size, immediate; } forms[] = {
		{ "\x48\x83\xc4", 3, 1 }, { "\x48\x81\xc4", 3, 4 },
		{ "\x48\x8d\x64\x24", 4, 1 }, { "\x48\x8d\xa4\x24", 4, 4 },
	};
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		size_t whole = (size_t)forms[i].size + forms[i].immediate;
		if (!begins(code, forms[i].bytes, forms[i].size) || code->left < whole)
			continue;
		const uint8_t *operand = code->at + forms[i].size;
		int32_t bytes = tally_x86_immediate(operand, forms[i].immediate == 1);
		if (bytes < 0 || bytes > FRAME_BYTES_MAX)
			return 0;
		leaving->sp += bytes;
		return whole;
	}
	return 0;
}

/* Takes an instruction that restores rbp (pop, or mov n(%rsp),%rbp) or pops another register.
 * Returns its length, or 0. */
static size_t restore(const struct bytes *code, struct leaving *leaving)
{
	enum { POP = 0x58, POP_RBP = 0x5d, POP_RSP = 0x5c, REX_B = 0x41 };
	uint8_t opcode = code->at[0];
	if (BEGINS(code, "\x48\x8b\x6c\x24") && code->left > 4) {
		leaving->frame.saves_fp = true;
		leaving->frame.fp_at = leaving->sp + (int8_t)code->at[4];
		return 5;
	}
	bool is_extended = opcode == REX_B && code->left > 1 && (code->at[1] & 0xf8) == POP;
	if (!is_extended && ((opcode & 0xf8) != POP || opcode == POP_RSP))
		return 0;
	if (opcode == POP_RBP) {
		leaving->frame.saves_fp = true;
		leaving->frame.fp_at = leaving->sp;
	}
	leaving->sp += WORD;
	if (is_extended)
		return 2;
	return 1;
}

/* Skips an instruction that changes neither rsp nor rbp.  JVMs put some before the ret, to ask
 * whether the thread must stop.  Returns its length, or 0. */
static size_t pass(const struct bytes *code)
{
	static const struct { char bytes[5]; uint8_t size, whole; } forms[] = {
		{ "\x49\x3b\x67", 3, 4 },       /* cmp n(%r15),%rsp */
		{ "\x49\x3b\xa7", 3, 7 },
		{ "\x0f\x87", 2, 6 },           /* ja: to the code that stops */
		{ "\x4d\x8b\x97", 3, 7 },       /* mov n(%r15),%r10 */
		{ "\x41\x85\x02", 3, 3 },       /* test %eax,(%r10) */
		{ "\xc5\xf8\x77", 3, 3 },       /* vzeroupper */
		{ "\xf3\x0f\x1e\xfa", 4, 4 },   /* endbr64 */
		{ "\x66\x90", 2, 2 }, { "\x90", 1, 1 },
	};
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (begins(code, forms[i].bytes, forms[i].size) && code->left >= forms[i].whole)
			return forms[i].whole;
	return 0;
}

/* Takes a ret, or the instructions that release the whole frame by rbp.  Returns true when the
 * frame is known. */
static bool leave(const struct bytes *code, struct leaving *leaving)
{
	struct tally_code_frame *frame = &leaving->frame;
	if (BEGINS(code, "\xc3") || BEGINS(code, "\xf3\xc3") || BEGINS(code, "\xc2")) {
		frame->return_at = leaving->sp;
		leaving->is_over = true;
	} else if (frame->saves_fp) {
		return false; /* rbp holds the caller's value by now */
	} else if (BEGINS(code, "\xc9") || BEGINS(code, "\x48\x89\xec\x5d") ||
		   BEGINS(code, "\x48\x8b\xe5\x5d")) {
		*frame = (struct tally_code_frame){ .is_linked = true };
		leaving->is_over = true;
	}
	return leaving->is_over;
}

bool tally_code_frame_ahead(const uint8_t *code, size_t size, struct tally_code_frame *frame)
{
	struct bytes bytes = { code, size };
	struct leaving leaving = { 0 };
	for (unsigned i = 0; i < INSTRUCTIONS_MAX && bytes.left && !leave(&bytes, &leaving); i++) {
		size_t length = raise_sp(&bytes, &leaving);
		if (!length)
			length = restore(&bytes, &leaving);
		if (!length)
			length = pass(&bytes);
		if (!length || leaving.sp > FRAME_BYTES_MAX)
			return false;
		bytes.at += length;
		bytes.left -= length;
	}
	*frame = leaving.frame;
	return leaving.is_over;
}

/* ---- the beginning ------------------------------------------------------- */

/* A function's first instructions.  The ones before pc have run. */
struct entering {
	const uint8_t *at, *pc, *end;
	int32_t size; /* bytes that have been put on the stack at pc */
	bool is_linked;
};

static bool is_next(const struct entering *entering, const char *pattern, size_t size)
{
	return (size_t)(entering->end - entering->at) >= size &&
	       !memcmp(entering->at, pattern, size);
}

#define IS_NEXT(entering, text) is_next(entering, text, sizeof(text) - 1)

/* Takes sub $n,%rsp, and counts its bytes if it has run.  Returns false for another instruction. */
static bool enter_sub(struct entering *entering)
{
	bool is_short = IS_NEXT(entering, "\x48\x83\xec");
	size_t whole = 7;
	if (is_short)
		whole = 4;
	if ((!is_short && !IS_NEXT(entering, "\x48\x81\xec")) ||
	    (size_t)(entering->end - entering->at) < whole)
		return false;
	int32_t bytes = tally_x86_immediate(entering->at + 3, is_short);
	if (bytes < 0 || bytes > FRAME_BYTES_MAX)
		return false;
	entering->at += whole;
	if (entering->at <= entering->pc)
		entering->size += bytes;
	return true;
}

/* Reads on behind the instruction that touches the stack.  Returns false when this is no
 * beginning. */
static bool enter_touching(struct entering *entering, struct tally_code_frame *frame)
{
	if (!IS_NEXT(entering, "\x55"))
		return false;
	entering->at++;
	bool has_pushed = entering->at <= entering->pc;
	if (IS_NEXT(entering, "\x48\x89\xe5") || IS_NEXT(entering, "\x48\x8b\xec")) {
		entering->at += 3;
		entering->is_linked = entering->at <= entering->pc;
	}
	if (!entering->is_linked)
		enter_sub(entering); /* the smallest methods need no room */
	*frame = (struct tally_code_frame){ .is_linked = entering->is_linked,
					    .saves_fp = has_pushed,
					    .fp_at = entering->size,
					    .return_at = entering->size + (has_pushed ? WORD : 0) };
	return true;
}

/* True if HotSpot has closed the method: a jump replaces the first five bytes, so that no call
 * enters it any more. */
static bool is_closed(const uint8_t *code, const uint8_t *end)
{
	enum { JMP = 0xe9 };
	return end - code > BANG_BYTES && code[0] == JMP;
}

/* Reads the beginning of a method without calls: sub $n,%rsp; mov %rbp,n-8(%rsp).  Returns false
 * when this is none. */
static bool enter_small(struct entering *entering, struct tally_code_frame *frame)
{
	const uint8_t *start = entering->at;
	bool was_closed = is_closed(start, entering->end);
	int32_t size = tally_x86_immediate(start + 3, false), saved_at;
	if (!was_closed && !enter_sub(entering))
		return false;
	if (was_closed)
		entering->at += SUB_BYTES; /* the jump replaced the sub */
	if (IS_NEXT(entering, "\x48\x89\x6c\x24") && entering->end - entering->at > 4) {
		saved_at = (int8_t)entering->at[4];
		entering->at += 5;
	} else if (IS_NEXT(entering, "\x48\x89\xac\x24") && entering->end - entering->at > 7) {
		saved_at = tally_x86_immediate(entering->at + 4, false);
		entering->at += 8;
	} else {
		return false;
	}
	if (saved_at < 0 || saved_at > FRAME_BYTES_MAX)
		return false;
	if (was_closed)
		size = saved_at + WORD;
	if (was_closed && entering->pc > start)
		entering->size = size; /* at the start, nothing has run yet */
	if (saved_at != size - WORD)
		return false;
	*frame = (struct tally_code_frame){ .saves_fp = entering->at <= entering->pc,
					    .fp_at = saved_at,
					    .return_at = entering->size };
	return true;
}

static bool is_touching(const uint8_t *code, const uint8_t *end)
{
	if (is_closed(code, end))
		return code[BANG_BYTES - 2] >= 0xe0 && code[BANG_BYTES - 1] == 0xff &&
		       code[BANG_BYTES] == 0x55;
	if (end - code < BANG_BYTES || code[0] != 0x89 || code[1] != 0x84 || code[2] != 0x24)
		return false;
	int64_t below = -(int64_t)tally_x86_immediate(code + 3, false);
	return below >= BANG_MIN && below <= BANG_MAX;
}

bool tally_code_frame_behind(const uint8_t *code, size_t size, size_t more,
			     struct tally_code_frame *frame)
{
	const uint8_t *pc = code + size, *end = pc + more;
	unsigned padding = 0;
	for (const uint8_t *at = pc; at >= code && padding < PADDING; at--) {
		struct entering entering = { .at = at, .pc = pc, .end = end };
		if (at == end)
			continue;
		padding++;
		if (*at != HLT || at == pc)
			padding = 0;
		if (is_touching(at, end)) {
			entering.at += BANG_BYTES;
			return enter_touching(&entering, frame);
		}
		bool is_small = end - at >= SUB_BYTES && at[0] == 0x48 && at[1] == 0x81 &&
				at[2] == 0xec;
		bool was_small = is_closed(at, end) && !at[SUB_BYTES - 2] && !at[SUB_BYTES - 1];
		if ((is_small || was_small) && enter_small(&entering, frame))
			return true;
	}
	return false;
}

/* ---- calls --------------------------------------------------------------- */

/* True if the bytes are a call through a register or memory: ff, then a byte whose middle three
 * bits are 2. */
static bool is_indirect(const uint8_t *code, size_t length)
{
	enum { BY_REGISTER = 3, SIB = 4, NO_BASE = 5 };
	if (code[0] != 0xff || (code[1] >> 3 & 7) != 2)
		return false;
	unsigned mode = code[1] >> 6, memory = code[1] & 7;
	bool has_sib = mode != BY_REGISTER && memory == SIB;
	if (has_sib && length < 3)
		return false;
	unsigned base = memory;
	if (has_sib)
		base = code[2] & 7;
	size_t whole = 2 + has_sib;
	if (mode == 1)
		whole++;
	else if (mode == 2 || (mode == 0 && base == NO_BASE))
		whole += 4;
	return whole == length;
}

bool tally_code_ends_in_call(const uint8_t *code, size_t size)
{
	enum { CALL = 0xe8, CALL_BYTES = 5, INDIRECT_MAX = 7 };
	if (size >= CALL_BYTES && code[size - CALL_BYTES] == CALL)
		return true;
	for (size_t length = 2; length <= INDIRECT_MAX && length <= size; length++)
		if (is_indirect(code + size - length, length))
			return true;
	return false;
}

struct pattern {
	uint8_t bytes[9];
	uint8_t size;
	enum tally_code_spot spot;
};

/* Each pattern is certain in any function, except `mov %rsp,%rbp`, which needs its push before
 * it. */
static const struct pattern PATTERNS[] = {
	/* mov $15,%rax; syscall: rt_sigreturn.  The trampolines of musl and of other languages'
	 * runtimes have no rules. */
	{ { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 }, 9, TALLY_CODE_SIGRETURN },
	/* jmp *x(%rip): an entry of the PLT, or a tail call.  The PLT of static programs has no
	 * rules. */
	{ { 0xff, 0x25 }, 2, TALLY_CODE_EDGE },
	{ { 0xf2, 0xff, 0x25 }, 3, TALLY_CODE_EDGE },
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25 }, 6, TALLY_CODE_EDGE }, /* behind endbr64 */
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25 }, 7, TALLY_CODE_EDGE },
	{ { 0xc3 }, 1, TALLY_CODE_EDGE },
	{ { 0xf3, 0xc3 }, 2, TALLY_CODE_EDGE },
	{ { 0xf2, 0xc3 }, 2, TALLY_CODE_EDGE },
	/* push %rbp; mov %rsp,%rbp, in both encodings */
	{ { 0x55, 0x48, 0x89, 0xe5 }, 4, TALLY_CODE_EDGE },
	{ { 0x55, 0x48, 0x8b, 0xec }, 4, TALLY_CODE_EDGE },
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5 }, 8, TALLY_CODE_EDGE },
	{ { 0x48, 0x89, 0xe5 }, 3, TALLY_CODE_PUSHED_RBP },
	{ { 0x48, 0x8b, 0xec }, 3, TALLY_CODE_PUSHED_RBP },
};

enum { PUSH_RBP = 0x55 };

enum tally_code_spot tally_code_recognise(const uint8_t *code, size_t size, uint8_t previous)
{
	for (size_t i = 0; i < sizeof(PATTERNS) / sizeof(*PATTERNS); i++) {
		const struct pattern *pattern = &PATTERNS[i];
		bool is_here = size >= pattern->size &&
			       memcmp(code, pattern->bytes, pattern->size) == 0;
		if (is_here && (pattern->spot != TALLY_CODE_PUSHED_RBP || previous == PUSH_RBP))
			return pattern->spot;
	}
	return TALLY_CODE_OTHER;
}

enum tally_code_spot tally_code_recognise_i386(const uint8_t *code, size_t size)
{
	static const struct pattern I386[] = {
		/* mov $173,%eax; int $0x80: rt_sigreturn; pop %eax; mov $119,%eax; int $0x80 */
		{ { 0xb8, 0xad, 0, 0, 0, 0xcd, 0x80 }, 7, TALLY_CODE_SIGRETURN },
		{ { 0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80 }, 8, TALLY_CODE_SIGRETURN },
		{ { 0xc3 }, 1, TALLY_CODE_EDGE },
		{ { 0x55, 0x89, 0xe5 }, 3, TALLY_CODE_EDGE }, /* push %ebp; mov %esp,%ebp */
		{ { 0xff, 0x25 }, 2, TALLY_CODE_EDGE },       /* jmp *x: an entry of the PLT */
		{ { 0xff, 0xa3 }, 2, TALLY_CODE_EDGE },       /* jmp *n(%ebx) */
	};
	for (size_t i = 0; i < sizeof(I386) / sizeof(*I386); i++)
		if (size >= I386[i].size && !memcmp(code, I386[i].bytes, I386[i].size))
			return I386[i].spot;
	return TALLY_CODE_OTHER;
}

struct instruction {
	uint32_t mask, value;
};

/* Instructions at which x30 holds the return address and sp is the caller's: a function's first
 * instruction, its last, and those of PLT stubs (the linker writes no rules for stubs). */
static const struct instruction ARM64_EDGES[] = {
	{ 0xffffffff, 0xd65f03c0 }, /* ret */
	{ 0xfffffbff, 0xd65f0bff }, /* retaa, retab */
	{ 0xffc07fff, 0xa9807bfd }, /* stp x29,x30,[sp,#-n]! */
	{ 0xffffffbf, 0xd503233f }, /* paciasp, pacibsp */
	{ 0xffffff3f, 0xd503241f }, /* bti */
	{ 0x9f00001f, 0x90000010 }, /* adrp x16,… */
	{ 0xffc003ff, 0xf9400211 }, /* ldr x17,[x16,…] */
	{ 0xffc003ff, 0x91000210 }, /* add x16,x16,… */
	{ 0xffffffff, 0xd61f0220 }, /* br x17 */
};

enum tally_code_spot tally_code_recognise_arm64(const uint8_t *code, size_t size)
{
	/* mov x8,#139; svc #0 */
	static const uint8_t SIGRETURN[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };
	uint32_t instruction;
	if (size >= sizeof(SIGRETURN) && memcmp(code, SIGRETURN, sizeof(SIGRETURN)) == 0)
		return TALLY_CODE_SIGRETURN;
	if (size < sizeof(instruction))
		return TALLY_CODE_OTHER;
	memcpy(&instruction, code, sizeof(instruction));
	for (size_t i = 0; i < sizeof(ARM64_EDGES) / sizeof(*ARM64_EDGES); i++)
		if ((instruction & ARM64_EDGES[i].mask) == ARM64_EDGES[i].value)
			return TALLY_CODE_EDGE;
	return TALLY_CODE_OTHER;
}

enum { ENTRIES = 2048, JUMPS = 64 };

struct entry {
	uint64_t space, address; /* address 0: free */
	uint8_t code[TALLY_CODE_MEMO_BYTES];
	bool is_found;
	struct tally_code_frame frame;
};

struct tally_code_memo {
	struct entry entries[ENTRIES];
	struct tally_code_entry entered[TALLY_CODE_ENTRIES];
	unsigned next_entered;
	struct tally_code_jumps jumps[JUMPS];
};

struct tally_code_memo *tally_code_memo_new(void)
{
	return calloc(1, sizeof(struct tally_code_memo));
}

void tally_code_memo_free(struct tally_code_memo *memo)
{
	free(memo);
}

void tally_code_memo_clear(struct tally_code_memo *memo)
{
	memset(memo, 0, sizeof(*memo));
}

static size_t index_of(uint64_t space, uint64_t address)
{
	return ((address + space * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull >> 40) % ENTRIES;
}

bool tally_code_memo_get(const struct tally_code_memo *memo, uint64_t space, uint64_t address,
			 const uint8_t *code, bool *is_found, struct tally_code_frame *frame)
{
	const struct entry *entry = &memo->entries[index_of(space, address)];
	if (!address || entry->address != address || entry->space != space ||
	    memcmp(entry->code, code, sizeof(entry->code)) != 0)
		return false;
	*is_found = entry->is_found;
	*frame = entry->frame;
	return true;
}

void tally_code_memo_put(struct tally_code_memo *memo, uint64_t space, uint64_t address,
			 const uint8_t *code, bool is_found, const struct tally_code_frame *frame)
{
	struct entry *entry = &memo->entries[index_of(space, address)];
	*entry = (struct entry){ .space = space, .address = address, .is_found = is_found };
	memcpy(entry->code, code, sizeof(entry->code));
	if (is_found)
		entry->frame = *frame;
}

const struct tally_code_entry *tally_code_memo_entries(const struct tally_code_memo *memo)
{
	return memo->entered;
}

void tally_code_memo_add_entry(struct tally_code_memo *memo, const struct tally_code_entry *entry)
{
	memo->entered[memo->next_entered++ % TALLY_CODE_ENTRIES] = *entry;
}

struct tally_code_jumps *tally_code_memo_jumps(struct tally_code_memo *memo, uint64_t space,
					       uint64_t target)
{
	return &memo->jumps[index_of(space, target) % JUMPS];
}
