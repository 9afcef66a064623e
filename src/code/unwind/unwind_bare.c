/* Takes steps from code that has no rules: from the code itself, or by frame pointer. */
#include "unwind/unwind_internal.h"

#include "object/object.h"
#include "unwind/code_walk.h"
#include "unwind/unwind.h"

#include <string.h>

enum {
	WORD = TALLY_UNWIND_WORD,
	LOCALS_BYTES_MAX = 4096, /* of a method that HotSpot interprets */
};

/* The usual size of a thread's stack.  An address farther above sp is not taken for a frame
 * pointer. */
#define STACK_BYTES ((uint64_t)8 << 20)

/* True if sp points at arm64's signal frame.  The trampoline is in the vdso; when the stack comes
 * from another machine, there is no file of it.  But the data that the kernel pushed can be
 * recognised: behind the registers (and pstate) there are records with a type and a size each, and
 * the record of the vector registers comes first (asm/sigcontext.h: FPSIMD_MAGIC). */
static bool is_at_signal_frame(struct tally_unwind_walk *walk)
{
	enum { RECORDS_AT = 128 + 176 + 288 };
	const uint64_t vector_registers = 0x21046508001; /* 528 bytes */
	uint64_t sp = tally_unwind_get(walk, walk->layout->sp), record;
	return walk->layout->has_signed_returns && tally_unwind_knows(walk, walk->layout->sp) &&
	       tally_unwind_load(&walk->frame, sp + RECORDS_AT, WORD, &record) &&
	       record == vector_registers;
}

/* True if pc is in arm64's trampoline, or right behind it.  The trampoline is two instructions, and
 * the second one calls the kernel: until the kernel is done, pc is behind it. */
static bool is_within_sigreturn(struct tally_unwind_walk *walk, const struct tally_object *object,
				uint64_t address)
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

/* True if the code of the current frame has no file: it was made at run time. */
static bool is_made_code(struct tally_unwind_walk *walk)
{
	return tally_unwind_locate(walk) && (!walk->place.table || !walk->place.table->object);
}

/* Copies code of the current frame's kind, from a file or from memory.  Returns how many bytes
 * there are. */
static size_t read_code(struct tally_unwind_walk *walk, uint64_t address, uint8_t *out, size_t size)
{
	const struct tally_unwind_request *request = walk->request;
	if (is_made_code(walk)) {
		if (!request->read_code)
			return 0;
		return request->read_code(request->context, address, out, size);
	}
	if (!walk->has_place)
		return 0;
	size_t available = 0;
	uint64_t in_object = walk->place.address + (address - tally_unwind_lookup_address(walk));
	const uint8_t *code = tally_object_bytes_at(walk->place.table->object, in_object,
						    &available);
	if (!code)
		return 0;
	if (available < size)
		size = available;
	memcpy(out, code, size);
	return size;
}

/* Recognises i386 code.  Until the kernel has returned from a signal, pc is behind the trampoline,
 * of 7 or 8 bytes. */
static enum tally_code_spot recognise_i386(struct tally_unwind_walk *walk,
					   const struct tally_object *object, uint64_t address)
{
	enum { SHORTER = 7, LONGER = 8 };
	size_t available;
	const uint8_t *code;
	for (unsigned behind = SHORTER; walk->is_exact && behind <= LONGER; behind++) {
		code = tally_object_bytes_at(object, address - behind, &available);
		if (code && available >= behind &&
		    tally_code_recognise_i386(code, behind) == TALLY_CODE_SIGRETURN)
			return TALLY_CODE_SIGRETURN;
	}
	code = tally_object_bytes_at(object, address, &available);
	if (code)
		return tally_code_recognise_i386(code, available);
	return TALLY_CODE_OTHER;
}

/* Recognises the code at pc.  Returns TALLY_CODE_OTHER where it can't be read from its file. */
static enum tally_code_spot recognise(struct tally_unwind_walk *walk)
{
	if (!tally_unwind_locate(walk))
		return TALLY_CODE_OTHER;
	const struct tally_unwind_table *table = walk->place.table;
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
	if (walk->layout->word != WORD)
		return recognise_i386(walk, table->object, address);
	const uint8_t *previous = tally_object_bytes_at(table->object, address - 1, &before);
	return tally_code_recognise(code, available, previous ? *previous : 0);
}

bool tally_unwind_is_at_sigreturn(struct tally_unwind_walk *walk)
{
	return recognise(walk) == TALLY_CODE_SIGRETURN;
}

/* The same for i386 (asm/sigcontext.h: struct sigcontext_32).  The handler has popped its return
 * address.  A handler of SA_SIGINFO has three arguments at sp, then siginfo and ucontext; another
 * one has the signal's number, then the registers.  Until the kernel is done, pc is behind the
 * trampoline, which has popped the number. */
static bool step_over_signal_i386(struct tally_unwind_walk *walk)
{
	/* edi esi ebp esp ebx edx ecx eax; the trap's two words are behind them, then eip */
	static const uint8_t FIRST[] = { 7, 6, 5, 4, 3, 2, 1, 0 };
	enum { NARROW = 4, SEGMENTS = 16, INFO_AT = 12 + 128 + 20, TRAP = 8 };
	enum { INFO_BYTES = 7, MOV = 0xb8, SYS_RT_SIGRETURN = 173, POP = 0x58, BYTES = 8 };
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t registers[TALLY_UNWIND_REGISTERS] = { 0 };
	uint64_t pc = tally_unwind_get(walk, layout->pc), at = tally_unwind_get(walk, layout->sp);
	uint8_t code[BYTES] = { 0 };
	read_code(walk, pc, code, sizeof(code));
	bool is_info = code[0] == MOV && code[1] == SYS_RT_SIGRETURN, is_before = code[0] == POP;
	if (!is_info && !is_before) {
		read_code(walk, pc - INFO_BYTES, code, sizeof(code));
		is_info = code[0] == MOV && code[1] == SYS_RT_SIGRETURN;
	}
	at += SEGMENTS;
	if (is_info)
		at += INFO_AT;
	else if (is_before)
		at += NARROW;
	bool is_there = true;
	for (unsigned i = 0; i < sizeof(FIRST); i++, at += NARROW)
		is_there &= tally_unwind_load(&walk->frame, at, NARROW, &registers[FIRST[i]]);
	is_there &= tally_unwind_load(&walk->frame, at + TRAP, NARROW, &registers[layout->pc]);
	walk->is_by_pointer = false;
	if (is_there)
		return tally_unwind_enter(walk, registers, (1ull << layout->count) - 1, true);
	return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
}

bool tally_unwind_is_signal_return(struct tally_unwind_walk *walk, uint64_t address)
{
	const struct tally_unwind_request *request = walk->request;
	struct tally_unwind_place place = { 0 };
	uint8_t code[16];
	size_t size = 0;
	if (!request->find(request->context, address, &place))
		return false;
	const uint8_t *bytes = code;
	if (place.table && place.table->object)
		bytes = tally_object_bytes_at(place.table->object, place.address, &size);
	else if (request->read_code)
		size = request->read_code(request->context, address, code, sizeof(code));
	if (!bytes || !size)
		return false;
	if (walk->layout->word == WORD)
		return tally_code_recognise(bytes, size, 0) == TALLY_CODE_SIGRETURN;
	return tally_code_recognise_i386(bytes, size) == TALLY_CODE_SIGRETURN;
}

/* Steps over a signal by the context that the kernel pushed at sp.  On x86-64 that is struct
 * ucontext (asm-generic/ucontext.h, asm/sigcontext.h), with the registers in its order from byte 40
 * on.  On arm64 it is struct rt_sigframe; the registers follow a siginfo of 128 bytes, 176 bytes of
 * the ucontext, and the fault's address. */
bool tally_unwind_step_over_signal(struct tally_unwind_walk *walk)
{
	static const uint8_t X86_64[] = {
		8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16
	};
	enum { X86_64_AT = 40, ARM64_AT = 128 + 176 + 8 };
	bool is_arm64 = walk->layout->has_signed_returns;
	uint64_t registers[TALLY_UNWIND_REGISTERS] = { 0 };
	if (walk->layout->word != WORD)
		return step_over_signal_i386(walk);
	uint64_t at = tally_unwind_get(walk, walk->layout->sp) + (is_arm64 ? ARM64_AT : X86_64_AT);
	for (size_t i = 0; i < walk->layout->count; i++)
		if (!tally_unwind_load(&walk->frame, at + i * WORD, WORD,
				       &registers[is_arm64 ? i : X86_64[i]]))
			return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	walk->is_by_pointer = false;
	return tally_unwind_enter(walk, registers, (1ull << walk->layout->count) - 1, true);
}

bool tally_unwind_is_left_by_call(struct tally_unwind_walk *walk, uint64_t address)
{
	enum { CALL_BYTES = 8 };
	const struct tally_unwind_request *request = walk->request;
	struct tally_unwind_place place = { 0 };
	uint8_t code[CALL_BYTES];
	size_t size = 0;
	if (!request->find(request->context, address - 1, &place))
		return false;
	if (place.table && place.table->object) {
		size_t available;
		const uint8_t *bytes = tally_object_bytes_at(
			place.table->object, place.address + 1 - CALL_BYTES, &available);
		return bytes && available >= CALL_BYTES &&
		       tally_code_ends_in_call(bytes, CALL_BYTES);
	}
	if (request->read_code)
		size = request->read_code(request->context, address - CALL_BYTES, code, CALL_BYTES);
	return size == CALL_BYTES && tally_code_ends_in_call(code, size);
}

bool tally_unwind_is_return_address(struct tally_unwind_walk *walk, uint64_t address)
{
	struct tally_unwind_place place = { 0 };
	uint64_t start, end;
	if (tally_unwind_is_left_by_call(walk, address))
		return true;
	if (!walk->request->find(walk->request->context, address, &place) || !place.table)
		return false;
	return (tally_unwind_table_function(place.table, place.address, &start, &end) &&
		start == place.address) ||
	       tally_unwind_table_function_kind(place.table, place.address - 1) ==
		       TALLY_UNWIND_STACK_START;
}

/* True if the frame pointer of code made at run time leads to another stack.  The task's memory, as
 * it is now, has a return address there. */
static bool leads_apart(struct tally_unwind_walk *walk)
{
	const struct tally_unwind_request *request = walk->request;
	uint64_t back, fp = tally_unwind_get(walk, walk->layout->fp);
	return walk->layout->word == WORD && tally_unwind_is_linked_apart(walk) &&
	       request->read_code &&
	       request->read_code(request->context, fp + WORD, &back, WORD) == WORD &&
	       tally_unwind_is_left_by_call(walk, back);
}

/* Takes a step by the frame pointer of code made at run time, which is on another stack: a function
 * of its runtime runs on the thread's stack, and the code has a stack of its own (Erlang). */
static bool step_apart(struct tally_unwind_walk *walk)
{
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t registers[TALLY_UNWIND_REGISTERS] = { 0 }, fp = tally_unwind_get(walk, layout->fp),
		 sp = tally_unwind_get(walk, layout->sp);
	tally_unwind_change_stack(walk, fp, sp, false);
	if (!tally_unwind_load(&walk->frame, fp, WORD, &registers[layout->fp]) ||
	    !tally_unwind_load(&walk->frame, fp + WORD, WORD, &registers[layout->pc]))
		return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	if (!tally_unwind_is_left_by_call(walk, registers[layout->pc]))
		return tally_unwind_stop(walk, TALLY_UNWIND_NO_RULES);
	registers[layout->sp] = fp + 2 * WORD;
	walk->is_by_pointer = true;
	return tally_unwind_enter(walk, registers,
				  1ull << layout->fp | 1ull << layout->pc | 1ull << layout->sp,
				  false);
}

/* Takes a step by the frame pointer.  `sp_slot` is the address where the caller's rsp is stored; 0:
 * the caller's rsp is right above the pair.  Unless the link is proven, a call must have left the
 * return address. */
static bool step_by_link(struct tally_unwind_walk *walk, uint64_t sp_slot, bool is_proven)
{
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t registers[TALLY_UNWIND_REGISTERS] = { 0 },
		 known = 1ull << layout->fp | 1ull << layout->pc;
	unsigned word = layout->word;
	uint64_t fp = tally_unwind_get(walk, layout->fp), sp = tally_unwind_get(walk, layout->sp);
	/* A chain of frame pointers ends with zero (System V ABI for x86-64, 3.4.1).  Elsewhere rbp
	 * may be zero by chance. */
	if (tally_unwind_knows(walk, layout->fp) && !fp && walk->is_by_pointer)
		return tally_unwind_stop(walk, TALLY_UNWIND_COMPLETE);
	if (!walk->is_exact && is_made_code(walk) && leads_apart(walk))
		return step_apart(walk);
	if (!tally_unwind_knows(walk, layout->fp) || fp < sp || fp - sp >= STACK_BYTES ||
	    fp % word != 0)
		return tally_unwind_stop(walk, TALLY_UNWIND_NO_RULES);
	if (!tally_unwind_load(&walk->frame, fp, word, &registers[layout->fp]) ||
	    !tally_unwind_load(&walk->frame, fp + word, word, &registers[layout->pc]))
		return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	if (!is_proven && !tally_unwind_is_left_by_call(walk, registers[layout->pc]))
		return tally_unwind_stop(walk, TALLY_UNWIND_NO_RULES);
	registers[layout->pc] &= walk->return_mask;
	/* arm64's pair may lie anywhere in its frame: the caller's sp is somewhere above it, and
	 * unknown. */
	registers[layout->sp] = fp + 2 * word;
	if (layout->top_of_pair)
		known |= 1ull << layout->sp;
	if (sp_slot && !tally_unwind_load(&walk->frame, sp_slot, WORD, &registers[layout->sp]))
		return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	walk->is_by_pointer = true;
	return tally_unwind_enter(walk, registers, known, false);
}

bool tally_unwind_step_by_frame_pointer(struct tally_unwind_walk *walk)
{
	return step_by_link(walk, 0, true);
}

/* Steps from a function's first two instructions, or from its last.  There the frame pointer is
 * still, or again, the caller's. */
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
	if (has_pushed_fp) {
		if (!tally_unwind_load(&walk->frame, sp, layout->word, &registers[layout->fp]))
			return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
		sp += layout->word;
	}
	if (!tally_unwind_load(&walk->frame, sp, layout->word, &registers[layout->pc]))
		return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	registers[layout->sp] = sp + layout->word;
	return tally_unwind_enter(walk, registers, walk->frame.known, false);
}

bool tally_unwind_is_entry_point(struct tally_unwind_walk *walk)
{
	return tally_unwind_locate(walk) && walk->place.table &&
	       tally_unwind_table_is_entry(walk->place.table, walk->place.address);
}

/* True if HotSpot's interpreter has its frame at `fp`, for a method whose callee's frame ends at
 * `sp`.  The interpreter puts a method's locals between its frame and the caller's.  Below its
 * saved rbp it stores rsp as it was before the frame, and as it was before the call (frame_x86.hpp:
 * interpreter_frame_sender_sp_offset, interpreter_frame_last_sp_offset). */
static bool is_interpreter_frame(struct tally_unwind_walk *walk, uint64_t fp, uint64_t sp)
{
	uint64_t sender, last;
	if (fp < sp || fp - sp >= STACK_BYTES ||
	    !tally_unwind_load(&walk->frame, fp - WORD, WORD, &sender) ||
	    !tally_unwind_load(&walk->frame, fp - 2 * WORD, WORD, &last))
		return false;
	bool has_called = !walk->is_exact || last;
	return sender >= fp + 2 * WORD && sender - fp <= LOCALS_BYTES_MAX && sender % WORD == 0 &&
	       (!has_called || (last >= sp && last <= fp));
}

/* Finds the frame of a method that HotSpot compiled.  Most methods are short; the longest have some
 * ten KiB. */
static bool find_hotspot_frame(struct tally_unwind_walk *walk, struct tally_code_frame *frame)
{
	enum { BEHIND = 32, WINDOWS = 2 };
	static const uint32_t windows[WINDOWS] = { 4 << 10, 64 << 10 };
	uint8_t code[(64 << 10) + BEHIND];
	uint64_t pc = tally_unwind_get(walk, walk->layout->pc);
	for (unsigned i = 0; i < WINDOWS; i++) {
		/* Pages before pc may be unmapped: read as many as there are. */
		for (uint32_t before = windows[i]; before >= BEHIND; before /= 2) {
			size_t got = read_code(walk, pc - before, code, before + BEHIND);
			if (got <= before)
				continue;
			if (tally_code_frame_behind(code, before, got - before, frame))
				return true;
			break;
		}
	}
	return false;
}

/* Computes the address of the frame's return address.  Sets *base to the frame's base.  Returns
 * false when a register is unknown or the copy lacks a word. */
static bool find_return_slot(struct tally_unwind_walk *walk, const struct tally_code_frame *frame,
			     uint64_t *base, uint64_t *slot)
{
	unsigned reg = walk->layout->sp;
	if (frame->has_base)
		reg = frame->base;
	*base = tally_unwind_get(walk, reg);
	if (!tally_unwind_knows(walk, reg) ||
	    (frame->is_loaded &&
	     !tally_unwind_load(&walk->frame, *base + (uint64_t)(int64_t)frame->loaded_at, WORD,
				base)))
		return false;
	*slot = *base + (uint64_t)(int64_t)frame->return_at;
	return true;
}

static bool step_by_code(struct tally_unwind_walk *walk, const struct tally_code_frame *frame,
			 bool is_certain)
{
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t registers[TALLY_UNWIND_REGISTERS], base, slot,
		known = walk->frame.known & ~(uint64_t)frame->lost;
	memcpy(registers, walk->frame.registers, sizeof(registers));
	if (!find_return_slot(walk, frame, &base, &slot) ||
	    !tally_unwind_load(&walk->frame, slot, WORD, &registers[layout->pc]))
		return tally_unwind_stop_at_missed(walk);
	uint64_t fp_base = base;
	if (frame->fp_is_apart)
		fp_base = tally_unwind_get(walk, frame->fp_base);
	if (frame->saves_fp)
		known |= 1ull << layout->fp;
	if (frame->saves_fp &&
	    !tally_unwind_load(&walk->frame, fp_base + (uint64_t)(int64_t)frame->fp_at, WORD,
			       &registers[layout->fp]))
		known &= ~(1ull << layout->fp);
	registers[layout->sp] = slot + WORD;
	if (!is_certain && !tally_unwind_is_left_by_call(walk, registers[layout->pc]) &&
	    !is_interpreter_frame(walk, registers[layout->fp], registers[layout->sp]))
		return tally_unwind_stop(walk, TALLY_UNWIND_NO_RULES);
	walk->is_by_pointer = false;
	return tally_unwind_enter(walk, registers, known, false);
}

static bool step_by_frame(struct tally_unwind_walk *walk, const struct tally_code_frame *frame,
			  bool is_certain)
{
	if (frame->is_linked)
		return step_by_link(walk, 0, true);
	return step_by_code(walk, frame, is_certain);
}

/* Like find_hotspot_frame(), but remembers the answers.  `code` is the code at pc. */
static bool recall_hotspot_frame(struct tally_unwind_walk *walk, const uint8_t *code, size_t size,
				 struct tally_code_frame *frame)
{
	struct tally_code_memo *memo = NULL;
	if (size >= TALLY_CODE_MEMO_BYTES)
		memo = walk->request->memo;
	uint64_t pc = tally_unwind_get(walk, walk->layout->pc), space = walk->request->space;
	bool is_found;
	if (memo && tally_code_memo_get(memo, space, pc, code, &is_found, frame))
		return is_found;
	is_found = find_hotspot_frame(walk, frame);
	if (memo)
		tally_code_memo_put(memo, space, pc, code, is_found, frame);
	return is_found;
}

/* Takes a step in code that a HotSpot JVM made: of a compiled method, the interpreter, or a
 * stub. */
static bool step_by_hotspot(struct tally_unwind_walk *walk, const uint8_t *code, size_t size)
{
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t fp = tally_unwind_get(walk, layout->fp);
	struct tally_code_frame frame;
	if (recall_hotspot_frame(walk, code, size, &frame))
		return step_by_frame(walk, &frame, false);
	bool is_interpreted = tally_unwind_knows(walk, layout->fp) &&
			      is_interpreter_frame(walk, fp, tally_unwind_get(walk, layout->sp));
	return step_by_link(walk, is_interpreted ? fp - WORD : 0, is_interpreted);
}

/* Returns the target of the direct call in front of the address; 0 if there is none. */
static uint64_t called_from(struct tally_unwind_walk *walk, uint64_t address)
{
	enum { CALL = 0xe8, CALL_BYTES = 5 };
	const struct tally_unwind_request *request = walk->request;
	struct tally_unwind_place place = { 0 };
	uint8_t code[CALL_BYTES];
	uint64_t target;
	int32_t distance;
	if (!request->find(request->context, address - 1, &place))
		return 0;
	if (place.table && place.table->object)
		return tally_unwind_table_call(place.table, place.address + 1, &target) ?
			       target + (address - 1 - place.address) :
			       0;
	if (!request->read_code ||
	    request->read_code(request->context, address - CALL_BYTES, code, CALL_BYTES) <
		    CALL_BYTES ||
	    code[0] != CALL)
		return 0;
	memcpy(&distance, code + 1, sizeof(distance));
	return address + (uint64_t)(int64_t)distance;
}

/* Finds the frame at pc of the function that begins at `start`, or of one that it hands its call on
 * to.  Returns false when that function does not lead to pc. */
static bool find_frame_from(struct tally_unwind_walk *walk, uint64_t start,
			    struct tally_code_frame *frame)
{
	enum { CODE_BYTES_MAX = 8 << 10, AHEAD_BYTES = 4 << 10, TAIL_BYTES = 64 };
	uint8_t code[CODE_BYTES_MAX + AHEAD_BYTES];
	uint64_t pc = tally_unwind_lookup_address(walk);
	int64_t distance;
	size_t size = read_code(walk, start, code, TAIL_BYTES);
	if (tally_code_tail(code, size, &distance))
		start += (uint64_t)distance;
	if (start > pc || pc - start >= CODE_BYTES_MAX)
		return false;
	/* A stack has hundreds of words from calls of functions before pc: following each of them
	 * anew would take most of the recorder's time (Erlang). */
	struct tally_code_memo *memo = NULL;
	if (is_made_code(walk))
		memo = walk->request->memo;
	uint64_t space = walk->request->space ^ start * 0x9e3779b97f4a7c15ull;
	uint8_t here[TALLY_CODE_MEMO_BYTES];
	bool is_found;
	if (read_code(walk, pc, here, sizeof(here)) < sizeof(here))
		memo = NULL;
	if (memo && tally_code_memo_get(memo, space, pc, here, &is_found, frame))
		return is_found;
	size = read_code(walk, start, code, pc - start + AHEAD_BYTES);
	is_found = tally_code_walk(code, size, (size_t)(pc - start), frame);
	if (memo)
		tally_code_memo_put(memo, space, pc, here, is_found, frame);
	return is_found;
}

/* True if the function that begins at `start` leads to pc, with its return address at `slot`. */
static bool leads_to(struct tally_unwind_walk *walk, uint64_t start, uint64_t slot,
		     struct tally_code_frame *frame)
{
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t base, at;
	if (!find_frame_from(walk, start, frame))
		return false;
	if (frame->is_linked)
		return tally_unwind_knows(walk, layout->fp) &&
		       tally_unwind_get(walk, layout->fp) + WORD == slot;
	return find_return_slot(walk, frame, &base, &at) && at == slot;
}

/* Finds the frame of code without rules and symbols, by a call on the stack.  A word of the stack
 * is the return address if the call in front of that address goes to a function that leads to pc
 * with as many bytes on the stack as are below the word.  With `up_to_link`, searches up to the
 * frame pointer's link only, and sets *has_between if another call left a word below it. */
static bool find_called_frame(struct tally_unwind_walk *walk, bool up_to_link,
			      struct tally_code_frame *frame, bool *has_between)
{
	enum { WORDS_MAX = 2048 };
	const uint64_t CALL_REACH = (uint64_t)1 << 31, NEAR = 16 << 20;
	uint64_t sp = tally_unwind_get(walk, walk->layout->sp),
		 fp = tally_unwind_get(walk, walk->layout->fp),
		 pc = tally_unwind_lookup_address(walk), word;
	for (unsigned i = 0;
	     i < WORDS_MAX && tally_unwind_load(&walk->frame, sp + i * WORD, WORD, &word); i++) {
		uint64_t slot = sp + i * WORD;
		if (up_to_link && slot > fp + WORD)
			return false;
		bool is_near = (word - pc + CALL_REACH) >> 32 == 0; /* a direct call has 32 bits */
		uint64_t start = 0;
		if (is_near)
			start = called_from(walk, word);
		if (start && start - pc + NEAR < 2 * NEAR && leads_to(walk, start, slot, frame))
			return true;
		if (up_to_link && slot < fp && tally_unwind_is_left_by_call(walk, word))
			*has_between = true;
	}
	*has_between = true; /* not all was searched */
	return false;
}

/* Finds the frame of code without rules and symbols, by where its function begins.  The word in the
 * place of the return address must come from a call of that function, or from a call through a
 * pointer. */
static bool find_begun_frame(struct tally_unwind_walk *walk, struct tally_code_frame *frame)
{
	uint64_t start, word, top, base, slot, sp = tally_unwind_get(walk, walk->layout->sp);
	if (!tally_unwind_locate(walk))
		return false;
	struct tally_unwind_table *table = walk->place.table;
	if (!table || !table->object ||
	    !tally_unwind_table_begun_frame(table, walk->place.address, &start, frame))
		return false;
	if (frame->is_linked)
		slot = tally_unwind_get(walk, walk->layout->fp) + WORD;
	else if (!find_return_slot(walk, frame, &base, &slot))
		return false;
	if (!tally_unwind_load(&walk->frame, slot, WORD, &word) ||
	    !tally_unwind_is_left_by_call(walk, word))
		return false;
	/* This may be a leaf behind a function that doesn't return, taken for that function's
	 * end. */
	if (walk->is_exact && slot != sp && tally_unwind_load(&walk->frame, sp, WORD, &top) &&
	    tally_unwind_is_left_by_call(walk, top))
		return false;
	uint64_t target = called_from(walk, word),
		 bias = tally_unwind_lookup_address(walk) - walk->place.address;
	return !target || target == start + bias;
}

/* True if the return address is in the first code of a program or a thread. */
static bool returns_to_start(struct tally_unwind_walk *walk, uint64_t address)
{
	const struct tally_unwind_request *request = walk->request;
	struct tally_unwind_place place = { 0 };
	size_t size;
	if (!request->find(request->context, address - 1, &place) || !place.table ||
	    !place.table->object)
		return false;
	if (tally_unwind_table_is_entry(place.table, place.address))
		return true;
	const uint8_t *code = tally_object_bytes_at(place.table->object, place.address + 1, &size);
	return code && tally_code_exits(code, size);
}

/* Finds the frame of a C library's start routine, which the first code of a program or a thread
 * calls.  The first word of the stack that a call left must be in that code: another caller in
 * between would have left its return address there. */
static bool find_started_frame(struct tally_unwind_walk *walk, struct tally_code_frame *frame)
{
	enum { WORDS_MAX = 64 };
	uint64_t sp = tally_unwind_get(walk, walk->layout->sp), word;
	for (unsigned i = 0;
	     i < WORDS_MAX && tally_unwind_load(&walk->frame, sp + i * WORD, WORD, &word); i++) {
		*frame = (struct tally_code_frame){ .return_at = (int32_t)(i * WORD) };
		if (tally_unwind_is_left_by_call(walk, word))
			return returns_to_start(walk, word);
	}
	return false;
}

/* The first instructions of a function that keeps a frame pointer. */
static bool is_prologue(const uint8_t *code)
{
	static const uint8_t PUSH_MOV[] = { 0x55, 0x48, 0x89, 0xe5 },
			     PUSH_MOV_TOO[] = { 0x55, 0x48, 0x8b, 0xec };
	return !memcmp(code, PUSH_MOV, sizeof(PUSH_MOV)) ||
	       !memcmp(code, PUSH_MOV_TOO, sizeof(PUSH_MOV_TOO));
}

enum { BEFORE_BYTES = 12 << 10, AHEAD_BYTES = 4 << 10, PROLOGUE_BYTES = 4 };

/* The code around pc. */
struct surroundings {
	uint64_t address;    /* of the first byte */
	size_t size, before; /* bytes; those before pc */
	uint8_t code[BEFORE_BYTES + AHEAD_BYTES];
};

/* Reads from `address` on, and returns true if the code reaches beyond pc. */
static bool read_from(struct tally_unwind_walk *walk, uint64_t address, uint64_t pc,
		      struct surroundings *around)
{
	around->address = address;
	around->before = (size_t)(pc - address);
	around->size = read_code(walk, address, around->code, around->before + AHEAD_BYTES);
	return around->size > around->before;
}

/* Reads as much of the code before pc as there is.  A mapping begins with a page; a file's segment may
 * begin within one. */
static void read_surroundings(struct tally_unwind_walk *walk, struct surroundings *around)
{
	enum { PAGE = 4096 };
	uint64_t pc = tally_unwind_lookup_address(walk), unreadable = pc - BEFORE_BYTES,
		 readable = pc;
	for (uint64_t at = unreadable; at < pc; at = (at / PAGE + 1) * PAGE) {
		if (read_from(walk, at, pc, around))
			return;
		unreadable = at;
	}
	while (readable - unreadable > 1) {
		uint64_t middle = unreadable + (readable - unreadable) / 2;
		if (read_from(walk, middle, pc, around))
			readable = middle;
		else
			unreadable = middle;
	}
	if (!read_from(walk, readable, pc, around))
		around->size = around->before = 0;
}

/* True for sub $n,%rsp where compilers put a function: at a multiple of 16. */
static bool makes_room(const uint8_t *code, uint64_t address)
{
	enum { ALIGNMENT = 16 };
	return address % ALIGNMENT == 0 && code[0] == 0x48 && (code[1] == 0x83 || code[1] == 0x81) &&
	       code[2] == 0xec;
}

/* Moves *at to the last beginning of a function below it: of one that keeps a frame pointer, or else
 * of one that makes room.  Returns false when there is none. */
static bool find_beginning(const struct surroundings *around, bool has_link, size_t *at)
{
	while (*at > 0) {
		const uint8_t *code = around->code + --*at;
		if (*at + PROLOGUE_BYTES > around->size)
			continue;
		if (has_link && is_prologue(code))
			return true;
		if (!has_link && makes_room(code, around->address + *at))
			return true;
	}
	return false;
}

/* Finds the frame from the last beginnings of functions before pc. */
static bool find_frame_before(struct tally_unwind_walk *walk, bool has_link,
			      struct tally_code_frame *frame)
{
	enum { TRIES = 4 };
	struct surroundings around;
	read_surroundings(walk, &around);
	size_t at = 0;
	if (around.size)
		at = around.before + 1;
	for (unsigned i = 0; i < TRIES && find_beginning(&around, has_link, &at); i++)
		if (tally_code_walk_plainly(around.code + at, around.size - at,
					    around.address + at, around.before - at, frame))
			return true;
	return false;
}

static bool find_prologue_frame(struct tally_unwind_walk *walk, struct tally_code_frame *frame)
{
	return find_frame_before(walk, true, frame);
}

static bool find_roomy_frame(struct tally_unwind_walk *walk, struct tally_code_frame *frame)
{
	return find_frame_before(walk, false, frame);
}

/* Finds the frame that the last function with a frame pointer before pc has where it jumps through
 * a register, perhaps to here: code that MoarVM makes begins with such a jump. */
static bool find_jump_frame(struct tally_unwind_walk *walk, struct tally_code_frame *frame)
{
	struct surroundings around;
	read_surroundings(walk, &around);
	size_t at = 0;
	if (around.size)
		at = around.before;
	return find_beginning(&around, true, &at) &&
	       tally_code_walk_to_jump(around.code + at, around.before - at, frame);
}

/* Finds the frame by how the code goes on: to the function's end. */
static bool find_onward_frame(struct tally_unwind_walk *walk, struct tally_code_frame *frame)
{
	enum { BYTES = 4 << 10 };
	uint8_t code[BYTES];
	size_t size = read_code(walk, tally_unwind_get(walk, walk->layout->pc), code, sizeof(code));
	bool is_edge;
	return tally_code_onward(code, size, false, frame, &is_edge);
}

/* True if the code is the edge of a function: nothing is on the stack yet, or any more.  A call
 * must have left the word there. */
static bool find_edge_frame(struct tally_unwind_walk *walk, struct tally_code_frame *frame)
{
	enum { BYTES = 4 << 10 };
	uint8_t code[BYTES];
	uint64_t word, sp = tally_unwind_get(walk, walk->layout->sp);
	size_t size = read_code(walk, tally_unwind_get(walk, walk->layout->pc), code, sizeof(code));
	bool is_edge;
	tally_code_onward(code, size, false, frame, &is_edge);
	*frame = (struct tally_code_frame){ 0 };
	return is_edge && tally_unwind_load(&walk->frame, sp, WORD, &word) &&
	       tally_unwind_is_left_by_call(walk, word);
}

/* The same where the way leads through calls.  One that does not return leads to another function;
 * in code made at run time, one may pop its arguments.  The caller checks the return address. */
static bool find_passing_frame(struct tally_unwind_walk *walk, struct tally_code_frame *frame)
{
	enum { BYTES = 4 << 10 };
	uint8_t code[BYTES];
	size_t size = read_code(walk, tally_unwind_get(walk, walk->layout->pc), code, sizeof(code));
	bool is_edge;
	return tally_code_onward(code, size, true, frame, &is_edge);
}

/* Calls a function that reads nothing but the code, and remembers the answers.  `code` is the code at pc. */
static bool recall_frame(struct tally_unwind_walk *walk, const uint8_t *code, size_t size,
			 bool (*find)(struct tally_unwind_walk *walk,
				      struct tally_code_frame *frame),
			 struct tally_code_frame *frame)
{
	struct tally_code_memo *memo = NULL;
	if (size >= TALLY_CODE_MEMO_BYTES)
		memo = walk->request->memo;
	uint64_t pc = tally_unwind_get(walk, walk->layout->pc), space = walk->request->space;
	bool is_found;
	if (find == find_prologue_frame)
		space ^= 1ull << 63;
	if (find == find_passing_frame)
		space ^= 1ull << 62;
	if (find == find_jump_frame)
		space ^= 1ull << 61;
	if (find == find_roomy_frame)
		space ^= 1ull << 60;
	if (memo && tally_code_memo_get(memo, space, pc, code, &is_found, frame))
		return is_found;
	is_found = find(walk, frame);
	if (memo)
		tally_code_memo_put(memo, space, pc, code, is_found, frame);
	return is_found;
}

/* True if the call in front of the address is a direct one of a function in a file: it did not call
 * code that was made at run time. */
static bool calls_file(struct tally_unwind_walk *walk, uint64_t address)
{
	const struct tally_unwind_request *request = walk->request;
	struct tally_unwind_place place = { 0 };
	uint64_t target = called_from(walk, address);
	return target && request->find(request->context, target, &place) && place.table &&
	       place.table->object;
}

/* True if code made at run time has the frame of find_jump_frame(): the frame pointer is as far above
 * rsp as it was at the jump. */
static bool has_frame_of_jump(struct tally_unwind_walk *walk, const uint8_t *code, size_t size)
{
	struct tally_code_frame frame;
	return is_made_code(walk) && recall_frame(walk, code, size, find_jump_frame, &frame) &&
	       frame.is_linked &&
	       tally_unwind_get(walk, walk->layout->fp) + WORD ==
		       tally_unwind_get(walk, walk->layout->sp) + (uint64_t)frame.return_at;
}

/* Finds the frame of code made at run time by where a function begins that makes room for its frame,
 * as Mono's methods do.  A call through a pointer must have left the word in the place of the return
 * address: find_called_frame() has tried the direct calls. */
static bool find_made_frame(struct tally_unwind_walk *walk, const uint8_t *code, size_t size,
			    struct tally_code_frame *frame)
{
	uint64_t word, base, slot;
	return is_made_code(walk) && recall_frame(walk, code, size, find_roomy_frame, frame) &&
	       !frame->is_linked && find_return_slot(walk, frame, &base, &slot) &&
	       tally_unwind_load(&walk->frame, slot, WORD, &word) &&
	       tally_unwind_is_left_by_call(walk, word) && !called_from(walk, word);
}

/* Finds the frame by how the code goes on, through calls.  A call must have left the word in the
 * place of the return address; in code made at run time, none must have left one below it. */
static bool find_later_frame(struct tally_unwind_walk *walk, const uint8_t *code, size_t size,
			     struct tally_code_frame *frame)
{
	enum { WORDS_MAX = 512 };
	uint64_t word, slot, base, fp = tally_unwind_get(walk, walk->layout->fp),
				   at = tally_unwind_get(walk, walk->layout->sp);
	if (!recall_frame(walk, code, size, find_passing_frame, frame) ||
	    (frame->is_linked && !tally_unwind_knows(walk, walk->layout->fp)))
		return false;
	slot = fp + WORD;
	if ((!frame->is_linked && !find_return_slot(walk, frame, &base, &slot)) ||
	    !tally_unwind_load(&walk->frame, slot, WORD, &word) ||
	    !tally_unwind_is_left_by_call(walk, word))
		return false;
	if (!is_made_code(walk))
		return true;
	if (calls_file(walk, word))
		return false;
	for (; at < slot && slot - at < WORDS_MAX * WORD; at += WORD)
		if (tally_unwind_load(&walk->frame, at, WORD, &word) &&
		    tally_unwind_is_left_by_call(walk, word))
			return false;
	return at == slot;
}

/* True if the frame pointer of code made at run time leads to other such code, though not behind a
 * call: a runtime begins its stacks with the address of code that ends them (Erlang). */
static bool is_linked_to_made_code(struct tally_unwind_walk *walk)
{
	uint64_t fp = tally_unwind_get(walk, walk->layout->fp), address;
	uint64_t sp = tally_unwind_get(walk, walk->layout->sp);
	struct tally_unwind_place place = { 0 };
	uint8_t code;
	return is_made_code(walk) && tally_unwind_knows(walk, walk->layout->fp) && fp >= sp &&
	       fp - sp < STACK_BYTES && walk->request->read_code &&
	       tally_unwind_load(&walk->frame, fp + WORD, WORD, &address) &&
	       walk->request->find(walk->request->context, address, &place) &&
	       (!place.table || !place.table->object) &&
	       walk->request->read_code(walk->request->context, address, &code, 1) == 1;
}

/* True if the frame pointer leads to an address that a call left. */
static bool is_linked_by_call(struct tally_unwind_walk *walk)
{
	uint64_t fp = tally_unwind_get(walk, walk->layout->fp), address;
	uint64_t sp = tally_unwind_get(walk, walk->layout->sp);
	return tally_unwind_knows(walk, walk->layout->fp) && fp >= sp && fp - sp < STACK_BYTES &&
	       tally_unwind_load(&walk->frame, fp + WORD, WORD, &address) &&
	       tally_unwind_is_left_by_call(walk, address);
}

/* Takes a step from code that can be read, but has neither rules nor a known beginning.
 *
 * The frame pointer may be an outer function's: the frames between would be lost without a word.
 * Each of them left a return address below the link.  If the stack has none there, there are no
 * such frames.  If it has one, the code must prove that its function keeps the frame pointer, or
 * that the address is its own. */
static bool step_by_proof(struct tally_unwind_walk *walk, const uint8_t *code, size_t size)
{
	struct tally_code_frame frame;
	bool has_between = false, is_called = is_linked_by_call(walk);
	bool is_linked = is_called || is_linked_to_made_code(walk);
	/* Go's functions keep a frame pointer, but for small ones, whose code tells the frame. */
	if (is_called && tally_unwind_locate(walk) &&
	    (walk->place.has_links ||
	     (walk->place.table && tally_unwind_table_is_go(walk->place.table))))
		return step_by_link(walk, 0, true);
	if (walk->is_exact && recall_frame(walk, code, size, find_onward_frame, &frame))
		return step_by_frame(walk, &frame, true);
	if (!is_linked && find_begun_frame(walk, &frame))
		return step_by_frame(walk, &frame, true);
	if (find_called_frame(walk, is_linked, &frame, &has_between))
		return step_by_frame(walk, &frame, true);
	if (is_linked && !has_between)
		return step_by_link(walk, 0, true);
	if (recall_frame(walk, code, size, find_prologue_frame, &frame))
		return step_by_frame(walk, &frame, false);
	if (is_called && has_frame_of_jump(walk, code, size))
		return step_by_link(walk, 0, true);
	if ((walk->is_exact && find_edge_frame(walk, &frame)) ||
	    (is_linked && (find_begun_frame(walk, &frame) ||
			   find_called_frame(walk, false, &frame, &has_between))) ||
	    find_later_frame(walk, code, size, &frame) ||
	    find_made_frame(walk, code, size, &frame) || find_started_frame(walk, &frame))
		return step_by_frame(walk, &frame, true);
	if (is_called)
		return tally_unwind_stop(walk, TALLY_UNWIND_NO_RULES);
	return step_by_link(walk, 0, false);
}

/* Takes a step from x86-64 code itself, if it tells the frame, else by frame pointer. */
static bool step_by_code_or_pointer(struct tally_unwind_walk *walk)
{
	enum { CODE_BYTES = 64 };
	uint8_t code[CODE_BYTES];
	struct tally_code_frame frame;
	if (walk->layout->has_signed_returns || !tally_unwind_knows(walk, walk->layout->sp))
		return step_by_link(walk, 0, true);
	if (walk->layout->word != WORD) /* the rest of this function reads x86-64 code */
		return step_by_link(walk, 0, false);
	size_t size = read_code(walk, tally_unwind_get(walk, walk->layout->pc), code, sizeof(code));
	if (!walk->is_exact && tally_code_exits(code, size))
		return tally_unwind_stop(walk, TALLY_UNWIND_COMPLETE);
	if (tally_code_frame_ahead(code, size, &frame))
		return step_by_frame(walk, &frame, true);
	if (size && walk->request->has_hotspot && is_made_code(walk))
		return step_by_hotspot(walk, code, size);
	if (size)
		return step_by_proof(walk, code, size);
	return step_by_link(walk, 0, true);
}

/* i386: takes the first word of the stack that a call left, a few words up. */
static bool step_by_near_call(struct tally_unwind_walk *walk)
{
	enum { WORDS_MAX = 16 };
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t sp = tally_unwind_get(walk, layout->sp), word;
	for (unsigned i = 0; i < WORDS_MAX; i++, sp += layout->word) {
		if (!tally_unwind_load(&walk->frame, sp, layout->word, &word))
			return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
		if (!tally_unwind_is_left_by_call(walk, word))
			continue;
		uint64_t registers[TALLY_UNWIND_REGISTERS];
		memcpy(registers, walk->frame.registers, sizeof(registers));
		registers[layout->pc] = word;
		registers[layout->sp] = sp + layout->word;
		return tally_unwind_enter(walk, registers, walk->frame.known, false);
	}
	return tally_unwind_stop(walk, TALLY_UNWIND_BAD_RULES);
}

bool tally_unwind_step_by_evidence(struct tally_unwind_walk *walk)
{
	enum { CODE_BYTES = 64 };
	uint8_t code[CODE_BYTES];
	if (walk->layout->word != WORD)
		return step_by_near_call(walk);
	size_t size = read_code(walk, tally_unwind_get(walk, walk->layout->pc), code, sizeof(code));
	if (size)
		return step_by_proof(walk, code, size);
	return tally_unwind_stop(walk, TALLY_UNWIND_BAD_RULES);
}

/* Recognises the code at pc if it was made at run time. */
static enum tally_code_spot recognise_made(struct tally_unwind_walk *walk)
{
	enum { CODE_BYTES = 16 };
	uint8_t code[CODE_BYTES + 1];
	uint64_t pc = tally_unwind_get(walk, walk->layout->pc);
	if (walk->layout->has_signed_returns || walk->layout->word != WORD)
		return TALLY_CODE_OTHER;
	size_t size = read_code(walk, pc - 1, code, sizeof(code));
	if (size > 1)
		return tally_code_recognise(code + 1, size - 1, code[0]);
	return TALLY_CODE_OTHER;
}

static bool step_by_spot(struct tally_unwind_walk *walk, enum tally_code_spot spot)
{
	if (spot == TALLY_CODE_SIGRETURN)
		return tally_unwind_step_over_signal(walk);
	if (walk->is_exact && spot != TALLY_CODE_OTHER)
		return step_from_edge(walk, spot == TALLY_CODE_PUSHED_RBP);
	return step_by_code_or_pointer(walk);
}

/* True if the address is the first byte of a function. */
static bool is_beginning(struct tally_unwind_table *table, uint64_t address)
{
	uint64_t start, end;
	if (tally_unwind_table_function(table, address, &start, &end))
		return start == address;
	return table->find_function &&
	       table->find_function(table->functions, address, &start, &end) ==
		       TALLY_UNWIND_FUNCTION &&
	       start == address;
}

bool tally_unwind_is_made_up(struct tally_unwind_walk *walk)
{
	enum { CALL_BYTES = 8 };
	struct tally_unwind_table *table = walk->place.table;
	uint64_t address = walk->place.address + 1;
	size_t before, size;
	/* After a guess, the address may be any word that points at code. */
	if (walk->is_exact || walk->is_by_pointer || walk->layout->has_signed_returns ||
	    !table->object)
		return false;
	const uint8_t *code = tally_object_bytes_at(table->object, address - CALL_BYTES, &before);
	if (!code || before < CALL_BYTES || tally_code_ends_in_call(code, CALL_BYTES))
		return false;
	code = tally_object_bytes_at(table->object, address, &size);
	bool is_narrow = walk->layout->word != WORD;
	return code && tally_code_recognise(code, size, 0) != TALLY_CODE_SIGRETURN &&
	       (!is_narrow || tally_code_recognise_i386(code, size) != TALLY_CODE_SIGRETURN) &&
	       (is_beginning(table, address) || (!is_narrow && tally_code_ends_stack(code, size)));
}

bool tally_unwind_step_without_table(struct tally_unwind_walk *walk)
{
	if (is_at_signal_frame(walk))
		return tally_unwind_step_over_signal(walk);
	return step_by_spot(walk, recognise_made(walk));
}

bool tally_unwind_step_without_rules(struct tally_unwind_walk *walk)
{
	if (tally_unwind_is_entry_point(walk))
		return tally_unwind_stop(walk, TALLY_UNWIND_COMPLETE);
	return step_by_spot(walk, is_made_code(walk) ? recognise_made(walk) : recognise(walk));
}
