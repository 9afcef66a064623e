/* Unwinding: who called whom, from registers and a copy of the stack.
 *
 * A call pushes the address behind it onto the stack; the callee makes room below for what it keeps.  To find the
 * caller of a stopped function one must know how far above rsp its return address lies: a number that the
 * machine stores nowhere.  With frame pointers (rbp points at the saved rbp, the return address is above it) the
 * stack is a linked list; but compilers leave them out by default and use rbp for something else.
 *
 * What they write instead, since C++ exceptions need it as well, is a table: .eh_frame.  For each instruction of
 * a function it says where the caller's registers are, all of it relative to the CFA, the "canonical frame
 * address": the value that rsp had before the call pushed.  A function's rows, and what is done with them:
 *
 *     push %rbx          at entry:             CFA = rsp + 8,  rip saved at CFA − 8
 *     sub $32,%rsp       behind the push:      CFA = rsp + 16, …, rbx saved at CFA − 16
 *     call g             behind the sub:       CFA = rsp + 48, …
 *
 * To step from a frame to its caller: find the row of its ip; compute the CFA; read each saved register; rsp of the
 * caller is the CFA, its ip is the return address.  Repeat.  The table itself isn't stored, it would be larger
 * than the code: a small program per function (an FDE) describes how each row differs from the one before,
 * and programs share a prelude per object file (a CIE).  cfi.c reads these, cfi_program.c runs them.
 *
 * What makes it less than simple:
 *
 * - A return address is where the caller *goes on*.  After a call that never returns (abort) that may be the
 *   next function already.  So rules are looked up at ip − 1, inside the call, except for the leaf; and except for
 *   a frame that a signal interrupted: it did not call, its ip is exact.  Such frames lie behind the trampoline
 *   to which a signal handler returns; its CIE is marked "S", its rules fetch all registers from the context that the
 *   kernel pushed.
 * - Some code has no rules: compiled just in time, written in assembly, built without tables.  A frame of it is
 *   stepped over by its frame pointer, if rbp looks like one; then the rules take over again.  The registers that
 *   such a frame might have saved are unknown from there on.  A leaf that has not set up its frame yet, or
 *   left it already, is told by its code (code_spot.c).
 * - rbp or rbx of a caller are needed only when it has rules on them; a register that can't be had is not
 *   an error until a rule asks for it.
 * - The copy has an end.  A stack of a thousand frames doesn't fit into 8 KiB: the chain is then cut at its root end,
 *   and whoever draws it must know; hence the ends that tally_unwind_end tells apart.
 * - Everything is untrusted.  The rules come from files that anyone may have written; a wrong one must end the
 *   walk: the stack pointer never goes back (but across a signal, from the alternate stack), loops are bounded.
 *
 * Nothing here allocates or calls the system; a frame costs a search in the object's index and the run of one program.
 */
#include "unwind/unwind.h"

#include "object/object.h"
#include "unwind/code_spot.h"
#include "unwind/unwind_table.h"

#include <string.h>

enum { WORD = 8, ENTRY_BYTES = 48 };

/* Farther from rsp than any stack reaches: an address there is no sign of a copy that was too short. */
#define FAR_BYTES ((uint64_t)1 << 30)

/* A thread's stack as systems set it up: what is farther above rsp is not taken for a frame pointer. */
#define STACK_BYTES ((uint64_t)8 << 20)

struct walk {
	const struct tally_unwind_request *request;
	struct tally_unwind_frame frame;
	struct tally_unwind_place place;
	bool is_exact;      /* ip is that of an instruction about to run, not a return address */
	bool is_by_pointer; /* the step to here was by frame pointer: a guess */
	enum tally_unwind_end end;
	struct tally_cfi_program program;
};

bool tally_unwind_load(struct tally_unwind_frame *frame, uint64_t address, unsigned size, uint64_t *value)
{
	uint64_t offset = address - frame->stack_address;
	if (offset > frame->stack_size || frame->stack_size - offset < size) {
		frame->missed = address;
		return false;
	}
	*value = 0;
	memcpy(value, frame->stack + offset, size); /* x86-64's byte order, as ours */
	return true;
}

static uint64_t get(const struct walk *walk, unsigned reg)
{
	return walk->frame.registers[reg];
}

static bool is_known(const struct walk *walk, unsigned reg)
{
	return walk->frame.known >> reg & 1;
}

static bool stop(struct walk *walk, enum tally_unwind_end end)
{
	walk->end = end;
	return false;
}

/* Why a word of the stack that the rules name could not be read. */
static bool stop_at_missed(struct walk *walk)
{
	uint64_t size = walk->frame.stack_size, end = walk->frame.stack_address + size;
	/* Just above the copy; or anywhere once a handler's own stack was left for one that was not copied. */
	bool is_beyond = walk->frame.missed + WORD - end < FAR_BYTES ||
			 get(walk, TALLY_UNWIND_RSP) - walk->frame.stack_address > size;
	return stop(walk, is_beyond ? TALLY_UNWIND_TRUNCATED : TALLY_UNWIND_BAD_RULES);
}

static bool locate(struct walk *walk)
{
	uint64_t address = get(walk, TALLY_UNWIND_RIP) - !walk->is_exact;
	walk->place = (struct tally_unwind_place){ 0 };
	if (!walk->request->find(walk->request->context, address, &walk->place))
		return false;
	walk->frame.bias = address - walk->place.address;
	return true;
}

/* Makes the registers of the caller the current ones. */
static bool enter(struct walk *walk, const uint64_t *registers, uint32_t known, bool is_exact)
{
	if (!(known >> TALLY_UNWIND_RSP & 1))
		return stop(walk, TALLY_UNWIND_BAD_RULES);
	if (registers[TALLY_UNWIND_RIP] == 0)
		return stop(walk, TALLY_UNWIND_COMPLETE);
	bool has_moved = registers[TALLY_UNWIND_RSP] > get(walk, TALLY_UNWIND_RSP);
	/* vfork keeps its return address in a register: CFA = rsp, and only ip changes. */
	if (registers[TALLY_UNWIND_RSP] == get(walk, TALLY_UNWIND_RSP))
		has_moved = registers[TALLY_UNWIND_RIP] != get(walk, TALLY_UNWIND_RIP);
	if (!has_moved && !is_exact)
		return stop(walk, TALLY_UNWIND_BAD_RULES);
	memcpy(walk->frame.registers, registers, sizeof(walk->frame.registers));
	walk->frame.known = known;
	walk->is_exact = is_exact;
	return true;
}

static enum tally_expression_result run_expression(struct walk *walk, const struct tally_cfi_rule *rule,
						   const uint64_t *initial, uint64_t *value)
{
	const struct tally_cfi_section *section = walk->program.row.section;
	return tally_expression_run(section->bytes + rule->value, rule->size, &walk->frame, initial, value);
}

static bool compute_cfa(struct walk *walk, uint64_t *cfa)
{
	const struct tally_cfi_rule *rule = &walk->program.row.cfa;
	enum tally_expression_result result = TALLY_EXPRESSION_BAD;
	if (rule->kind == TALLY_CFI_EXPRESSION) {
		result = run_expression(walk, rule, NULL, cfa);
	} else if (rule->kind == TALLY_CFI_REGISTER && is_known(walk, rule->reg)) {
		*cfa = get(walk, rule->reg) + (uint64_t)rule->value;
		result = TALLY_EXPRESSION_OK;
	}
	if (result == TALLY_EXPRESSION_UNREADABLE)
		return stop_at_missed(walk);
	return result == TALLY_EXPRESSION_OK || stop(walk, TALLY_UNWIND_BAD_RULES);
}

/* A saved word; below rsp it is gone from the copy, but then the function's end has popped it already, and the
 * register holds it again (compilers don't say so in the rules: any moment now they won't matter). */
static enum tally_expression_result load_saved(struct walk *walk, unsigned reg, uint64_t address, uint64_t *value)
{
	if (tally_unwind_load(&walk->frame, address, WORD, value))
		return TALLY_EXPRESSION_OK;
	if (reg == TALLY_UNWIND_RIP || address >= get(walk, TALLY_UNWIND_RSP) || !is_known(walk, reg))
		return TALLY_EXPRESSION_UNREADABLE;
	*value = get(walk, reg);
	return TALLY_EXPRESSION_OK;
}

/* The caller's value of a register. */
static enum tally_expression_result apply_rule(struct walk *walk, unsigned reg, uint64_t cfa, uint64_t *value)
{
	const struct tally_cfi_rule *rule = &walk->program.row.registers[reg];
	enum tally_expression_result result;
	uint64_t address;
	unsigned from = rule->kind == TALLY_CFI_REGISTER ? rule->reg : reg;
	switch (rule->kind) {
	case TALLY_CFI_UNSPECIFIED:
		if (reg == TALLY_UNWIND_RSP) {
			*value = cfa;
			return TALLY_EXPRESSION_OK;
		}
		/* fall through */
	case TALLY_CFI_SAME_VALUE:
	case TALLY_CFI_REGISTER:
		*value = get(walk, from);
		return is_known(walk, from) ? TALLY_EXPRESSION_OK : TALLY_EXPRESSION_BAD;
	case TALLY_CFI_OFFSET:
		return load_saved(walk, reg, cfa + (uint64_t)rule->value, value);
	case TALLY_CFI_VAL_OFFSET:
		*value = cfa + (uint64_t)rule->value;
		return TALLY_EXPRESSION_OK;
	case TALLY_CFI_EXPRESSION:
		result = run_expression(walk, rule, &cfa, &address);
		return result == TALLY_EXPRESSION_OK ? load_saved(walk, reg, address, value) : result;
	case TALLY_CFI_VAL_EXPRESSION:
		return run_expression(walk, rule, &cfa, value);
	}
	return TALLY_EXPRESSION_BAD; /* undefined: can't be had */
}

static bool step_by_rules(struct walk *walk)
{
	const struct tally_cfi_row *row = &walk->program.row;
	uint64_t cfa, registers[TALLY_UNWIND_REGISTERS] = { 0 };
	uint32_t known = 0;
	unsigned column = row->return_register;
	if (row->registers[column].kind == TALLY_CFI_UNDEFINED)
		return stop(walk, TALLY_UNWIND_COMPLETE);
	if (!compute_cfa(walk, &cfa))
		return false;
	switch (apply_rule(walk, column, cfa, &registers[column])) {
	case TALLY_EXPRESSION_OK:
		break;
	case TALLY_EXPRESSION_UNREADABLE:
		return stop_at_missed(walk);
	default:
		return stop(walk, TALLY_UNWIND_BAD_RULES);
	}
	for (unsigned reg = 0; reg < TALLY_UNWIND_REGISTERS; reg++)
		if (apply_rule(walk, reg, cfa, &registers[reg]) == TALLY_EXPRESSION_OK)
			known |= 1u << reg;
	registers[TALLY_UNWIND_RIP] = registers[column];
	known |= 1u << TALLY_UNWIND_RIP;
	walk->is_by_pointer = false;
	return enter(walk, registers, known, row->is_signal_frame);
}

/* What the code at ip tells, where it can be read from its file. */
static enum tally_code_spot recognise(struct walk *walk)
{
	const struct tally_unwind_table *table = walk->place.table;
	if (!table || !table->object)
		return TALLY_CODE_OTHER;
	size_t available, before;
	uint64_t address = walk->place.address + !walk->is_exact;
	const uint8_t *code = tally_object_bytes_at(table->object, address, &available);
	if (!code)
		return TALLY_CODE_OTHER;
	const uint8_t *previous = tally_object_bytes_at(table->object, address - 1, &before);
	return tally_code_recognise(code, available, previous ? *previous : 0);
}

/* The kernel's struct ucontext (asm-generic/ucontext.h, asm/sigcontext.h) is at rsp by then: its registers in
 * their order, from byte 40 on. */
static bool step_over_signal(struct walk *walk)
{
	static const uint8_t ORDER[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16 };
	uint64_t registers[TALLY_UNWIND_REGISTERS], at = get(walk, TALLY_UNWIND_RSP) + 40;
	for (size_t i = 0; i < sizeof(ORDER); i++)
		if (!tally_unwind_load(&walk->frame, at + i * WORD, WORD, &registers[ORDER[i]]))
			return stop(walk, TALLY_UNWIND_TRUNCATED);
	walk->is_by_pointer = false;
	return enter(walk, registers, (1u << TALLY_UNWIND_REGISTERS) - 1, true);
}

static bool step_by_frame_pointer(struct walk *walk)
{
	uint64_t rbp = get(walk, TALLY_UNWIND_RBP), registers[TALLY_UNWIND_REGISTERS] = { 0 };
	uint64_t rsp = get(walk, TALLY_UNWIND_RSP);
	if (!is_known(walk, TALLY_UNWIND_RBP) || rbp < rsp || rbp - rsp >= STACK_BYTES || rbp % WORD != 0)
		return stop(walk, TALLY_UNWIND_NO_RULES);
	if (!tally_unwind_load(&walk->frame, rbp, WORD, &registers[TALLY_UNWIND_RBP]) ||
	    !tally_unwind_load(&walk->frame, rbp + WORD, WORD, &registers[TALLY_UNWIND_RIP]))
		return stop(walk, TALLY_UNWIND_TRUNCATED);
	registers[TALLY_UNWIND_RSP] = rbp + 2 * WORD;
	walk->is_by_pointer = true;
	return enter(walk, registers,
		     1u << TALLY_UNWIND_RBP | 1u << TALLY_UNWIND_RSP | 1u << TALLY_UNWIND_RIP, false);
}

/* In a function's first two instructions, or its last, the frame pointer is the caller's still or again. */
static bool step_from_edge(struct walk *walk, bool has_pushed_rbp)
{
	uint64_t registers[TALLY_UNWIND_REGISTERS], rsp = get(walk, TALLY_UNWIND_RSP);
	memcpy(registers, walk->frame.registers, sizeof(registers));
	if (has_pushed_rbp && !tally_unwind_load(&walk->frame, rsp, WORD, &registers[TALLY_UNWIND_RBP]))
		return stop(walk, TALLY_UNWIND_TRUNCATED);
	rsp += has_pushed_rbp ? WORD : 0;
	if (!tally_unwind_load(&walk->frame, rsp, WORD, &registers[TALLY_UNWIND_RIP]))
		return stop(walk, TALLY_UNWIND_TRUNCATED);
	registers[TALLY_UNWIND_RSP] = rsp + WORD;
	walk->is_by_pointer = false;
	return enter(walk, registers, walk->frame.known, false);
}

/* The dynamic linker's first instructions have no rules.  Some assembly, a call, and never anything below. */
static bool is_entry_point(const struct walk *walk)
{
	const struct tally_unwind_table *table = walk->place.table;
	return table && table->entry_point && walk->place.address - table->entry_point < ENTRY_BYTES;
}

static bool step_without_rules(struct walk *walk)
{
	if (is_entry_point(walk))
		return stop(walk, TALLY_UNWIND_COMPLETE);
	enum tally_code_spot spot = recognise(walk);
	if (spot == TALLY_CODE_SIGRETURN)
		return step_over_signal(walk);
	if (walk->is_exact && spot != TALLY_CODE_OTHER)
		return step_from_edge(walk, spot == TALLY_CODE_PUSHED_RBP);
	return step_by_frame_pointer(walk);
}

static bool step(struct walk *walk)
{
	enum tally_unwind_lookup lookup = TALLY_UNWIND_NOT_FOUND;
	if (walk->place.table)
		lookup = tally_unwind_table_lookup(walk->place.table, walk->place.address, &walk->program);
	switch (lookup) {
	case TALLY_UNWIND_FOUND:
		return step_by_rules(walk);
	case TALLY_UNWIND_MALFORMED:
		return stop(walk, TALLY_UNWIND_BAD_RULES);
	default:
		return step_without_rules(walk);
	}
}

static void put_frame(const struct walk *walk, uint64_t *addresses, size_t at)
{
	addresses[at] = get(walk, TALLY_UNWIND_RIP);
	if (walk->request->is_exact)
		walk->request->is_exact[at] = walk->is_exact;
}

size_t tally_unwind(const struct tally_unwind_request *request, uint64_t *addresses, size_t limit,
		    enum tally_unwind_end *end)
{
	struct walk walk;
	memset(&walk, 0, offsetof(struct walk, program)); /* the program is large, and set up by whoever runs it */
	walk.request = request;
	walk.is_exact = true;
	walk.frame.stack = request->stack;
	walk.frame.stack_size = request->stack_size;
	walk.frame.stack_address = request->registers[TALLY_UNWIND_RSP];
	walk.frame.known = (1u << TALLY_UNWIND_REGISTERS) - 1;
	memcpy(walk.frame.registers, request->registers, sizeof(walk.frame.registers));
	size_t count = 0;
	walk.end = TALLY_UNWIND_LIMIT;
	if (limit > 0)
		put_frame(&walk, addresses, count++);
	if (count > 0 && !locate(&walk))
		walk.end = TALLY_UNWIND_NO_MAP;
	while (count > 0 && walk.end == TALLY_UNWIND_LIMIT && step(&walk)) {
		if (!locate(&walk))
			walk.end = walk.is_by_pointer ? TALLY_UNWIND_NO_RULES : TALLY_UNWIND_NO_MAP;
		else if (count < limit)
			put_frame(&walk, addresses, count++);
		else
			break;
	}
	if (end)
		*end = walk.end;
	return count;
}

bool tally_unwind_registers(const uint64_t *words, uint64_t mask, uint64_t registers[TALLY_UNWIND_REGISTERS])
{
	/* asm/perf_regs.h: ax bx cx dx si di bp sp ip, then flags and segments, r8–r15 from bit 16. */
	static const uint8_t DWARF[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16 };
	enum { PERF_SP = 7, PERF_IP = 8, PERF_R8 = 16, PERF_R15 = 23 };
	memset(registers, 0, TALLY_UNWIND_REGISTERS * sizeof(*registers));
	for (unsigned bit = 0; bit < 64; bit++) {
		if (!(mask >> bit & 1))
			continue;
		uint64_t word = *words++;
		if (bit <= PERF_IP)
			registers[DWARF[bit]] = word;
		else if (bit >= PERF_R8 && bit <= PERF_R15)
			registers[bit - PERF_R8 + 8] = word;
	}
	return (mask >> PERF_SP & 1) && (mask >> PERF_IP & 1);
}

const char *tally_unwind_end_text(enum tally_unwind_end end)
{
	switch (end) {
	case TALLY_UNWIND_COMPLETE: return "complete";
	case TALLY_UNWIND_TRUNCATED: return "the copied stack ended";
	case TALLY_UNWIND_NO_MAP: return "an address outside of every mapping";
	case TALLY_UNWIND_NO_RULES: return "no unwind rules and no frame pointer";
	case TALLY_UNWIND_BAD_RULES: return "unwind rules that make no sense";
	case TALLY_UNWIND_LIMIT: return "more frames than there was room for";
	}
	return "unknown";
}
