/* Steps from code that has no rules: by frame pointer, and by what the code itself tells. */
#include "unwind/unwind_walk.h"

#include "object/object.h"
#include "unwind/code_spot.h"

#include <string.h>

enum { WORD = TALLY_UNWIND_WORD, ENTRY_BYTES = 48 };

/* A thread's stack as systems set it up: what is farther above sp is not taken for a frame pointer. */
#define STACK_BYTES ((uint64_t)8 << 20)

/* arm64's trampoline is in the vdso, which nobody has a file of when the stack is another machine's.  But what the kernel
 * pushed is known by itself: behind the registers (and pstate) are records with a type and a size each, of which that of
 * the vector registers comes first (asm/sigcontext.h: FPSIMD_MAGIC). */
static bool is_at_signal_frame(struct tally_unwind_walk *walk)
{
	enum { RECORDS_AT = 128 + 176 + 288 };
	const uint64_t vector_registers = 0x21046508001; /* 528 bytes */
	uint64_t sp = tally_unwind_get(walk, walk->layout->sp), record;
	return walk->layout->has_signed_returns && tally_unwind_knows(walk, walk->layout->sp) &&
	       tally_unwind_load(&walk->frame, sp + RECORDS_AT, WORD, &record) && record == vector_registers;
}

/* arm64's trampoline is two instructions, the second of which calls the kernel: pc is behind it until that is done. */
static bool is_within_sigreturn(struct tally_unwind_walk *walk, const struct tally_object *object, uint64_t address)
{
	enum { INSTRUCTION = 4, TRAMPOLINE = 8 };
	if (!walk->is_exact || !is_at_signal_frame(walk))
		return false;
	for (unsigned behind = INSTRUCTION; behind <= TRAMPOLINE; behind += INSTRUCTION) {
		size_t available;
		const uint8_t *code = tally_object_bytes_at(object, address - behind, &available);
		if (code && tally_code_recognise_arm64(code, available) == TALLY_CODE_SIGRETURN)
			return true;
	}
	return false;
}

/* What the code at pc tells, where it can be read from its file. */
static enum tally_code_spot recognise(struct tally_unwind_walk *walk)
{
	const struct tally_unwind_table *table = tally_unwind_locate(walk) ? walk->place.table : NULL;
	if (!table || !table->object)
		return TALLY_CODE_OTHER;
	size_t available, before;
	uint64_t address = walk->place.address + !walk->is_exact;
	const uint8_t *code = tally_object_bytes_at(table->object, address, &available);
	if (walk->layout->has_signed_returns && is_within_sigreturn(walk, table->object, address))
		return TALLY_CODE_SIGRETURN;
	if (!code)
		return TALLY_CODE_OTHER;
	if (walk->layout->has_signed_returns)
		return tally_code_recognise_arm64(code, available);
	const uint8_t *previous = tally_object_bytes_at(table->object, address - 1, &before);
	return tally_code_recognise(code, available, previous ? *previous : 0);
}

bool tally_unwind_is_at_sigreturn(struct tally_unwind_walk *walk)
{
	return recognise(walk) == TALLY_CODE_SIGRETURN;
}

/* What the kernel pushed is at sp by then: x86-64's struct ucontext (asm-generic/ucontext.h, asm/sigcontext.h) with
 * the registers in their order from byte 40 on; arm64's struct rt_sigframe, where they follow on a siginfo of 128
 * bytes, 176 of the ucontext and the fault's address. */
bool tally_unwind_step_over_signal(struct tally_unwind_walk *walk)
{
	static const uint8_t X86_64[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16 };
	enum { X86_64_AT = 40, ARM64_AT = 128 + 176 + 8 };
	bool is_arm64 = walk->layout->has_signed_returns;
	uint64_t registers[TALLY_UNWIND_REGISTERS] = { 0 };
	uint64_t at = tally_unwind_get(walk, walk->layout->sp) + (is_arm64 ? ARM64_AT : X86_64_AT);
	for (size_t i = 0; i < walk->layout->count; i++)
		if (!tally_unwind_load(&walk->frame, at + i * WORD, WORD, &registers[is_arm64 ? i : X86_64[i]]))
			return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	walk->is_by_pointer = false;
	return tally_unwind_enter(walk, registers, (1ull << walk->layout->count) - 1, true);
}

bool tally_unwind_step_without_table(struct tally_unwind_walk *walk)
{
	return is_at_signal_frame(walk) ? tally_unwind_step_over_signal(walk) : tally_unwind_step_by_frame_pointer(walk);
}

bool tally_unwind_step_by_frame_pointer(struct tally_unwind_walk *walk)
{
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t registers[TALLY_UNWIND_REGISTERS] = { 0 }, known = 1ull << layout->fp | 1ull << layout->pc;
	uint64_t fp = tally_unwind_get(walk, layout->fp), sp = tally_unwind_get(walk, layout->sp);
	if (!tally_unwind_knows(walk, layout->fp) || fp < sp || fp - sp >= STACK_BYTES || fp % WORD != 0)
		return tally_unwind_stop(walk, TALLY_UNWIND_NO_RULES);
	if (!tally_unwind_load(&walk->frame, fp, WORD, &registers[layout->fp]) ||
	    !tally_unwind_load(&walk->frame, fp + WORD, WORD, &registers[layout->pc]))
		return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	registers[layout->pc] &= walk->return_mask;
	/* arm64's pair may lie anywhere in its frame: sp is at least behind it, and not known. */
	registers[layout->sp] = fp + 2 * WORD;
	if (layout->top_of_pair)
		known |= 1ull << layout->sp;
	walk->is_by_pointer = true;
	return tally_unwind_enter(walk, registers, known, false);
}

/* In a function's first two instructions, or its last, the frame pointer is the caller's still or again. */
static bool step_from_edge(struct tally_unwind_walk *walk, bool has_pushed_fp)
{
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t registers[TALLY_UNWIND_REGISTERS], sp = tally_unwind_get(walk, layout->sp);
	memcpy(registers, walk->frame.registers, sizeof(registers));
	walk->is_by_pointer = false;
	if (layout->return_register != layout->pc) {
		registers[layout->pc] = registers[layout->return_register] & walk->return_mask;
		return tally_unwind_enter(walk, registers, walk->frame.known, false);
	}
	if (has_pushed_fp && !tally_unwind_load(&walk->frame, sp, WORD, &registers[layout->fp]))
		return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	sp += has_pushed_fp ? WORD : 0;
	if (!tally_unwind_load(&walk->frame, sp, WORD, &registers[layout->pc]))
		return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	registers[layout->sp] = sp + WORD;
	return tally_unwind_enter(walk, registers, walk->frame.known, false);
}

/* The dynamic linker's first instructions have no rules.  Some assembly, a call, and never anything below. */
static bool is_entry_point(struct tally_unwind_walk *walk)
{
	const struct tally_unwind_table *table = tally_unwind_locate(walk) ? walk->place.table : NULL;
	return table && table->entry_point && walk->place.address - table->entry_point < ENTRY_BYTES;
}

bool tally_unwind_step_without_rules(struct tally_unwind_walk *walk)
{
	if (is_entry_point(walk))
		return tally_unwind_stop(walk, TALLY_UNWIND_COMPLETE);
	enum tally_code_spot spot = recognise(walk);
	if (spot == TALLY_CODE_SIGRETURN)
		return tally_unwind_step_over_signal(walk);
	if (walk->is_exact && spot != TALLY_CODE_OTHER)
		return step_from_edge(walk, spot == TALLY_CODE_PUSHED_RBP);
	return tally_unwind_step_by_frame_pointer(walk);
}
