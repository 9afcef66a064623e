/* Unwinding: finds who called whom, from registers and a copy of the stack.
 *
 * A call pushes the address behind it onto the stack; the callee makes room below for its own data.
 * To find the caller of a stopped function, one must know how far above rsp its return address
 * lies.  The machine stores this number nowhere.  With frame pointers (rbp points at the saved rbp,
 * the return address is above it) the stack is a linked list; but compilers leave them out by
 * default and use rbp for something else.
 *
 * Instead, compilers write a table, .eh_frame; C++ exceptions need it as well.  For each
 * instruction of a function it says where the caller's registers are.  All of it is relative to the
 * CFA, the "canonical frame address": the value that rsp had before the call pushed.  A function
 * and its rows:
 *
 *     push %rbx          at entry:             CFA = rsp + 8,  rip saved at CFA − 8
 *     sub $32,%rsp       behind the push:      CFA = rsp + 16, …, rbx saved at CFA − 16
 *     call g             behind the sub:       CFA = rsp + 48, …
 *
 * To step from a frame to its caller: find the row of its ip; compute the CFA; read each saved
 * register.  The caller's rsp is the CFA, and its ip is the return address.  Repeat.  The table
 * itself isn't stored: it would be larger than the code.  A small program per function (an FDE)
 * describes how each row differs from the one before, and programs share a prelude per object file
 * (a CIE).  cfi.c reads these, cfi.c runs them, and unwind_row.c takes a step by the
 * resulting row.  On arm64 a call leaves the return address in x30, and the callee saves it.
 *
 * Several things make it harder:
 *
 * - A return address is where the caller *goes on*.  After a call that never returns (abort) that
 *   may be the next function already.  So the walk looks rules up at ip − 1, inside the call.  Two
 *   kinds of frames have an exact ip: the leaf, and a frame that a signal interrupted, because it
 *   made no call.  The signal's handler returns to a trampoline, and the interrupted frame follows.
 *   The trampoline's CIE is marked "S", and its rules fetch all registers from the context that the
 *   kernel pushed.
 * - Some code has no rules: it was compiled just in time, written in assembly, or built without
 *   tables.  On x86-64 its instructions tell the frame where that is certain (code_frame.c,
 *   code_frame.c, code_walk.c).  Otherwise the frame pointer leads to the caller, if rbp looks like
 *   one; then the rules take over again.  The registers that such a frame might have saved are
 *   unknown from there on.
 * - Not every return address was left by a call.  makecontext(3) puts the first byte of a function
 *   on a new stack, and Go calls from a goroutine's stack on a thread's.  The frame is then the
 *   outermost of its stack.
 * - A caller's rbp or rbx matters only if its rules use that register.  An unknown register is not
 *   an error until a rule needs it.
 * - The copy has an end.  A stack of a thousand frames doesn't fit into 8 KiB: the chain then lacks
 *   its outermost frames, and a view must be able to say so.  So enum tally_unwind_end tells the
 *   reasons apart.
 * - arm64 signs return addresses: the high bits are a signature, and are masked off.  Its frame
 *   pointer leads from one record {x29, x30} to the next.  A record may lie anywhere in its frame,
 *   so sp is unknown after such a step.
 * - Everything is untrusted.  Anyone may have written the files that the rules come from.  A wrong
 *   rule must end the walk: the stack pointer never goes back (except across a signal, from the
 *   alternate stack), and loops are bounded.
 *
 * Running a program for each frame takes a microsecond or two.  But programs are sampled at few
 * addresses, over and over.  So unwind_rule.c compiles the functions that are hit, and
 * unwind_internal.h remembers the rules of the code around each address.  A frame that was met before
 * costs a look into the cache, an addition, and a load for each saved word.
 */
#include "unwind/unwind.h"

#include "unwind/unwind_internal.h"

#include <string.h>

enum { WORD = TALLY_UNWIND_WORD, CACHE_LINE = 64, AHEAD = 1024 };

/* No stack reaches this far from sp: a word missed beyond it does not mean that the copy was too
 * short. */
#define FAR_BYTES ((uint64_t)1 << 30)

/* An address farther from sp than this is on another stack. */
#define APART_BYTES ((uint64_t)8 << 20)

/* ---- memory and registers ------------------------------------------------ */

bool tally_unwind_load(struct tally_unwind_frame *frame, uint64_t address, unsigned size,
		       uint64_t *value)
{
	uint64_t offset = address - frame->stack_address;
	const uint8_t *bytes = frame->stack;
	if (offset > frame->stack_size || frame->stack_size - offset < size) {
		offset = address - frame->other.address;
		bytes = frame->other.bytes;
		if (offset > frame->other.size || frame->other.size - offset < size) {
			frame->missed = address;
			return false;
		}
	}
	*value = 0;
	memcpy(value, bytes + offset, size); /* little-endian, like the host */
	return true;
}

static inline bool load_word(struct tally_unwind_frame *frame, uint64_t address, uint64_t *value)
{
	uint64_t offset = address - frame->stack_address;
	if (offset > frame->stack_size || frame->stack_size - offset < WORD)
		return frame->other.size && tally_unwind_load(frame, address, WORD, value);
	memcpy(value, frame->stack + offset, WORD);
	return true;
}

bool tally_unwind_load_saved(struct tally_unwind_walk *walk, unsigned reg, uint64_t address,
			     uint64_t *value)
{
	if (tally_unwind_load(&walk->frame, address, walk->layout->word, value))
		return true;
	if (reg == walk->layout->pc || address >= tally_unwind_get(walk, walk->layout->sp) ||
	    !tally_unwind_knows(walk, reg))
		return false;
	*value = tally_unwind_get(walk, reg);
	return true;
}

bool tally_unwind_is_linked_apart(const struct tally_unwind_walk *walk)
{
	enum { LOWEST = 1 << 16, ALIGNMENT = 7 };
	uint64_t fp = tally_unwind_get(walk, walk->layout->fp),
		 sp = tally_unwind_get(walk, walk->layout->sp);
	return tally_unwind_knows(walk, walk->layout->fp) && walk->layout->top_of_pair &&
	       fp >= LOWEST && !(fp & ALIGNMENT) && fp >> 47 == 0 &&
	       fp - sp + APART_BYTES >= 2 * APART_BYTES;
}

/* True if the current frame's rules compute its CFA with the frame pointer. */
static bool is_cfa_by_pointer(const struct tally_unwind_walk *walk)
{
	const struct tally_unwind_rule *rule = walk->rule;
	if (rule && rule->kind == TALLY_RULE_ROW)
		return walk->row->cfa.kind == TALLY_CFI_REGISTER &&
		       walk->row->cfa.reg == walk->layout->fp;
	return rule && rule->kind == TALLY_RULE_SAVED && !rule->cfa_is_loaded &&
	       rule->cfa_register == walk->layout->fp;
}

bool tally_unwind_stop_at_missed(struct tally_unwind_walk *walk)
{
	enum { FRAME_BYTES = 256 };
	uint64_t fp = tally_unwind_get(walk, walk->layout->fp),
		 sp = tally_unwind_get(walk, walk->layout->sp);
	/* The frame pointer of code made at run time led to a function whose frame is elsewhere:
	 * SBCL's threads have a stack for Lisp.  Or the rules compute with a frame pointer that
	 * leads there: __morestack() calls a function on a new piece of stack (-fsplit-stack). */
	if ((walk->is_by_pointer || is_cfa_by_pointer(walk)) &&
	    tally_unwind_is_linked_apart(walk) &&
	    walk->frame.missed - fp + FRAME_BYTES < 2 * FRAME_BYTES) {
		tally_unwind_change_stack(walk, fp, sp, false);
		return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	}
	uint64_t size = walk->frame.stack_size, end = walk->frame.stack_address + size;
	/* Just above the copy; or anywhere, once the walk left a signal handler's own stack for one
	 * that was not copied. */
	bool is_beyond = walk->frame.missed + WORD - end < FAR_BYTES ||
			 tally_unwind_get(walk, walk->layout->sp) - walk->frame.stack_address >
				 size;
	return tally_unwind_stop(walk, is_beyond ? TALLY_UNWIND_TRUNCATED : TALLY_UNWIND_BAD_RULES);
}

static inline bool may_enter(struct tally_unwind_walk *walk, uint64_t sp, uint64_t pc,
			     bool is_exact)
{
	uint64_t old_sp = tally_unwind_get(walk, walk->layout->sp);
	if (pc == 0) {
		walk->is_at_zero = true;
		return tally_unwind_stop(walk, TALLY_UNWIND_COMPLETE);
	}
	/* sp need not move: leaves of arm64 leave it where it is, and x86-64's vfork keeps its
	 * return address in a register. */
	bool has_moved = sp > old_sp ||
			 (sp == old_sp && pc != tally_unwind_get(walk, walk->layout->pc));
	return has_moved || is_exact || tally_unwind_stop(walk, TALLY_UNWIND_BAD_RULES);
}

bool tally_unwind_enter(struct tally_unwind_walk *walk, const uint64_t *registers, uint64_t known,
			bool is_exact)
{
	if (!may_enter(walk, registers[walk->layout->sp], registers[walk->layout->pc], is_exact))
		return false;
	memcpy(walk->frame.registers, registers, sizeof(walk->frame.registers));
	walk->frame.known = known;
	walk->has_interrupted |= is_exact && walk->is_exact;
	walk->is_exact = is_exact;
	return true;
}

/* ---- a step by a compiled rule ------------------------------------------- */

/* Takes the step if the CFA's register is unknown: by frame pointer where that register is sp, else
 * the walk ends. */
static bool step_without_cfa(struct tally_unwind_walk *walk, const struct tally_unwind_rule *rule)
{
	bool is_sp = rule->cfa_register == walk->layout->sp && !rule->cfa_is_loaded &&
		     (rule->kind == TALLY_RULE_SAVED || rule->kind == TALLY_RULE_CODE);
	if (is_sp)
		return tally_unwind_step_by_frame_pointer(walk);
	return tally_unwind_stop(walk, TALLY_UNWIND_BAD_RULES);
}

/* Restores the saved registers.  If a word can't be read, a register saved below sp was popped
 * already and keeps its value; the others become unknown. */
static inline void restore_saved(struct tally_unwind_walk *walk,
				 const struct tally_unwind_rule *rule, uint64_t cfa)
{
	struct tally_unwind_frame *frame = &walk->frame;
	uint64_t base = cfa, sp = tally_unwind_get(walk, walk->layout->sp), known = frame->known;
	bool has_base = true;
	if (rule->base_register != TALLY_RULE_BASE_IS_CFA) {
		base = tally_unwind_get(walk, rule->base_register);
		has_base = tally_unwind_knows(walk, rule->base_register);
	}
	for (unsigned i = 0; i < rule->saved_count; i++) {
		unsigned reg = rule->saved_register[i];
		uint64_t address = base + (uint64_t)(rule->saved_word[i] * WORD);
		if (has_base && load_word(frame, address, &frame->registers[reg]))
			known |= 1ull << reg;
		else if (!has_base || address >= sp)
			known &= ~(1ull << reg);
	}
	frame->known = known;
}

/* Prefetches the first lines of the copy.  It is read once, and another CPU has just written it.
 * fetch_ahead() prefetches the lines where later frames probably lie, while this frame is worked
 * on.  (Without both, unwinding takes a fifth longer.) */
static inline void fetch_first(const struct tally_unwind_request *request)
{
	for (size_t line = 0; line < AHEAD && line < request->stack_size; line += CACHE_LINE)
		__builtin_prefetch(request->stack + line);
}

static inline void fetch_ahead(const struct tally_unwind_frame *frame, uint64_t cfa)
{
	uint64_t offset = cfa - frame->stack_address;
	if (frame->stack_size > AHEAD && offset < frame->stack_size - AHEAD)
		for (unsigned line = AHEAD / 2; line < AHEAD; line += CACHE_LINE)
			__builtin_prefetch(frame->stack + offset + line);
}

static inline bool step_by_rule(struct tally_unwind_walk *walk,
				const struct tally_unwind_rule *rule)
{
	const struct tally_unwind_layout *layout = walk->layout;
	struct tally_unwind_frame *frame = &walk->frame;
	unsigned column = layout->return_register;
	if (!tally_unwind_knows(walk, rule->cfa_register))
		return step_without_cfa(walk, rule);
	uint64_t cfa = tally_unwind_get(walk, rule->cfa_register) +
		       (uint64_t)(int64_t)rule->cfa_offset;
	if (rule->kind == TALLY_RULE_PLT &&
	    (tally_unwind_get(walk, layout->pc) & 15) >= rule->plt_from)
		cfa += WORD;
	if (rule->cfa_is_loaded) {
		if (!tally_unwind_load(frame, cfa, WORD, &cfa))
			return tally_unwind_stop_at_missed(walk);
		cfa += (uint64_t)(int64_t)rule->cfa_added;
	}
	uint64_t back = tally_unwind_get(walk, column);
	if (rule->return_word != TALLY_RULE_RETURN_IN_REGISTER) {
		uint64_t address = cfa + (uint64_t)(rule->return_word * WORD);
		if (!load_word(frame, address, &back) &&
		    !tally_unwind_load_saved(walk, column, address, &back))
			return tally_unwind_stop_at_missed(walk);
	} else if (!tally_unwind_knows(walk, column)) {
		return tally_unwind_stop(walk, TALLY_UNWIND_BAD_RULES);
	}
	if (!may_enter(walk, cfa, back & walk->return_mask, false))
		return false;
	if (!walk->is_fetched)
		fetch_ahead(frame, cfa);
	restore_saved(walk, rule, cfa);
	frame->registers[column] = back;
	frame->registers[layout->pc] = back & walk->return_mask;
	frame->registers[layout->sp] = cfa;
	frame->known &= ~(uint64_t)rule->lost;
	frame->known |= 1ull << layout->sp | 1ull << layout->pc | 1ull << column;
	walk->is_exact = walk->is_by_pointer = false;
	return true;
}

/* ---- from frame to frame ------------------------------------------------- */

bool tally_unwind_locate(struct tally_unwind_walk *walk)
{
	if (!walk->has_place) {
		const struct tally_unwind_request *request = walk->request;
		walk->place = (struct tally_unwind_place){ 0 };
		walk->has_place = request->find(request->context, tally_unwind_lookup_address(walk),
						&walk->place);
	}
	return walk->has_place;
}

/* Returns a rule made from the code, or `rule` where the code doesn't tell.  The entry point keeps
 * `rule`: it has no caller. */
static const struct tally_unwind_rule *rule_of_code(struct tally_unwind_walk *walk,
						    const struct tally_unwind_rule *rule)
{
	const struct tally_unwind_place *place = &walk->place;
	const struct tally_unwind_rule *made = NULL;
	if (!tally_unwind_is_entry_point(walk))
		made = tally_unwind_table_code_rule(place->table, place->address);
	if (made)
		return made;
	return rule;
}

static const struct tally_unwind_rule *interpret(struct tally_unwind_walk *walk)
{
	static const struct tally_unwind_rule NONE = { .kind = TALLY_RULE_NONE },
					      BAD = { .kind = TALLY_RULE_BAD },
					      ROW = { .kind = TALLY_RULE_ROW };
	switch (tally_unwind_table_lookup(walk->place.table, walk->place.address, &walk->program)) {
	case TALLY_UNWIND_FOUND: return &ROW;
	case TALLY_UNWIND_NOT_FOUND: return rule_of_code(walk, &NONE);
	default: return &BAD;
	}
}

/* Finds a rule that lives as long as its table.  Returns NULL where the program must be
 * interpreted: the request says so, or memory is out.  Sets *range if the rule is a function's. */
static const struct tally_unwind_rule *find_rule(struct tally_unwind_walk *walk,
						 struct tally_rule_range *range)
{
	static const struct tally_unwind_rule UNMAPPED = { .kind = TALLY_RULE_UNMAPPED },
					      NO_TABLE = { .kind = TALLY_RULE_NO_TABLE },
					      OUTERMOST = { .kind = TALLY_RULE_OUTERMOST },
					      SWITCHED = { .kind = TALLY_RULE_SWITCHED },
				      GO_TO_C = { .kind = TALLY_RULE_GO_TO_C },
				      C_TO_GO = { .kind = TALLY_RULE_C_TO_GO };
	if (!tally_unwind_locate(walk))
		return &UNMAPPED;
	struct tally_unwind_table *table = walk->place.table;
	if (!table || tally_unwind_layout(table->machine) != walk->layout)
		return &NO_TABLE;
	walk->is_made_up = tally_unwind_is_made_up(walk);
	enum tally_unwind_function_kind kind = TALLY_UNWIND_NO_FUNCTION;
	if (!walk->is_made_up && !walk->is_exact)
		kind = tally_unwind_table_function_kind(table, walk->place.address);
	if (walk->is_made_up || kind == TALLY_UNWIND_STACK_START)
		return &OUTERMOST;
	if (kind == TALLY_UNWIND_STACK_SWITCH)
		return &SWITCHED;
	switch (tally_unwind_go_switch(walk)) {
	case TALLY_RULE_GO_TO_C: return &GO_TO_C;
	case TALLY_RULE_C_TO_GO: return &C_TO_GO;
	default: break;
	}
	if (walk->request->is_interpreted)
		return NULL;
	const struct tally_unwind_rule *rule = tally_unwind_table_rule(table, walk->place.address,
								       range);
	if (rule && rule->kind == TALLY_RULE_NONE)
		return rule_of_code(walk, rule);
	return rule;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	if (a < b)
		return a;
	return b;
}

static void resolve_anew(struct tally_unwind_walk *walk, uint64_t address)
{
	const struct tally_unwind_request *request = walk->request;
	struct tally_rule_range range = { 0 };
	walk->rule = find_rule(walk, &range);
	if (!walk->rule) {
		walk->rule = interpret(walk);
	} else if (request->cache && !walk->place.is_brief &&
		   !walk->is_made_up) { /* its look-up hit the function before */
		const struct tally_unwind_place *place = &walk->place;
		uint64_t below = 0, above = 0;
		if (range.end) {
			below = smaller(place->address - range.start, place->below);
			above = smaller(range.end - 1 - place->address, place->above);
		}
		tally_unwind_cache_put(request->cache, address, request->space, walk->rule, below,
				       above);
	}
}

/* Finds the rule of the current frame.  Returns false when nothing is mapped there. */
static inline bool resolve(struct tally_unwind_walk *walk)
{
	const struct tally_unwind_request *request = walk->request;
	uint64_t address = tally_unwind_lookup_address(walk);
	walk->has_place = false;
	walk->rule = NULL;
	if (request->cache)
		walk->rule = tally_unwind_cache_get(request->cache, address, request->space);
	if (!walk->rule)
		resolve_anew(walk, address);
	return walk->rule->kind != TALLY_RULE_UNMAPPED;
}

/* Takes a step from code without rules: by its instructions or the frame pointer, if that leads to
 * a return address, else as foreign code. */
static bool step_without(struct tally_unwind_walk *walk, bool has_table)
{
	if (tally_unwind_step_entered_before(walk))
		return true;
	const struct tally_unwind_frame before = walk->frame;
	const bool was_exact = walk->is_exact, was_by_pointer = walk->is_by_pointer;
	bool is_done;
	if (has_table)
		is_done = tally_unwind_step_without_rules(walk);
	else
		is_done = tally_unwind_step_without_table(walk);
	if (is_done && (walk->is_exact ||
			tally_unwind_is_return_address(walk, tally_unwind_get(
								     walk, walk->layout->pc))))
		return true;
	if (!is_done && walk->end != TALLY_UNWIND_NO_RULES && walk->end != TALLY_UNWIND_BAD_RULES)
		return false;
	const struct tally_unwind_frame after = walk->frame;
	const bool is_by_pointer = walk->is_by_pointer;
	walk->frame = before;
	walk->is_exact = was_exact;
	walk->is_by_pointer = was_by_pointer;
	walk->has_place = false;
	if (tally_unwind_step_entered(walk))
		return true;
	if (!is_done)
		return false;
	walk->frame = after;
	walk->is_exact = false;
	walk->is_by_pointer = is_by_pointer;
	return true;
}

/* Takes the step by a rule that was made from the code, if it leads to a return address.  The
 * registers of foreign code mean something else. */
static bool step_by_code_rule(struct tally_unwind_walk *walk, const struct tally_unwind_rule *rule)
{
	uint64_t cfa = tally_unwind_get(walk, rule->cfa_register) +
		       (uint64_t)(int64_t)rule->cfa_offset, back;
	bool is_wrong = !rule->cfa_is_loaded && tally_unwind_knows(walk, rule->cfa_register) &&
			tally_unwind_load(&walk->frame, cfa + (uint64_t)(rule->return_word * WORD),
					  WORD, &back) &&
			!tally_unwind_is_return_address(walk, back);
	if (is_wrong)
		return step_without(walk, true);
	return step_by_rule(walk, rule);
}

static inline bool step(struct tally_unwind_walk *walk)
{
	const struct tally_unwind_rule *rule = walk->rule;
	switch (rule->kind) {
	case TALLY_RULE_SAVED:
	case TALLY_RULE_PLT:
		return step_by_rule(walk, rule);
	case TALLY_RULE_CODE:
		return step_by_code_rule(walk, rule);
	case TALLY_RULE_OUTERMOST:
		return tally_unwind_stop(walk, TALLY_UNWIND_COMPLETE);
	case TALLY_RULE_SWITCHED:
		return tally_unwind_stop(walk, TALLY_UNWIND_SWITCHED);
	case TALLY_RULE_GO_TO_C:
		return tally_unwind_step_from_c_to_go(walk);
	case TALLY_RULE_C_TO_GO:
		return tally_unwind_step_from_go_to_c(walk);
	case TALLY_RULE_ROW:
		walk->row = rule->row ? rule->row : &walk->program.row;
		return tally_unwind_step_by_row(walk);
	case TALLY_RULE_NONE:
		return step_without(walk, true);
	case TALLY_RULE_NO_TABLE:
		return step_without(walk, false);
	}
	return tally_unwind_stop(walk, TALLY_UNWIND_BAD_RULES);
}

bool tally_unwind_step_by_rules(struct tally_unwind_walk *walk)
{
	if (!resolve(walk))
		return false;
	switch (walk->rule->kind) {
	case TALLY_RULE_SAVED:
	case TALLY_RULE_ROW:
	case TALLY_RULE_OUTERMOST:
		return step(walk);
	default:
		return false;
	}
}

static void put_frame(const struct tally_unwind_walk *walk, uint64_t *addresses, size_t at)
{
	/* put_met() does the same.  Readers look up a return address one byte before it.  A made-up one is a function's first
	 * byte: add one. */
	addresses[at] = tally_unwind_get(walk, walk->layout->pc) + walk->is_made_up;
	if (walk->request->is_exact)
		walk->request->is_exact[at] = walk->is_exact;
	if (walk->request->stack_pointers)
		walk->request->stack_pointers[at] = tally_unwind_get(walk, walk->layout->sp);
}

/* Linux gives user space 48 bits of address on arm64, or 52 to programs that request them.  The
 * higher bits of a return address are its signature. */
static uint64_t return_mask(const struct tally_unwind_layout *layout, uint64_t sp)
{
	if (!layout->has_signed_returns)
		return UINT64_MAX;
	if (sp >> 48)
		return (1ull << 52) - 1;
	return (1ull << 48) - 1;
}

static bool start(struct tally_unwind_walk *walk, const struct tally_unwind_request *request)
{
	fetch_first(request);
	memset(walk, 0, offsetof(struct tally_unwind_walk, program));
	walk->request = request;
	walk->layout = tally_unwind_layout(request->machine);
	walk->is_exact = true;
	walk->frame.stack = request->stack;
	walk->frame.stack_size = request->stack_size;
	walk->frame.other = request->other;
	walk->frame.word = walk->layout->word;
	walk->frame.stack_address = request->registers[walk->layout->sp];
	walk->frame.known = ((1ull << walk->layout->count) - 1) & ~request->unknown;
	walk->return_mask = return_mask(walk->layout, walk->frame.stack_address);
	memcpy(walk->frame.registers, request->registers, sizeof(walk->frame.registers));
	walk->end = walk->layout->count ? TALLY_UNWIND_LIMIT : TALLY_UNWIND_NO_RULES;
	return walk->layout->count;
}

/* Writes the chain's first `met` frames, which are the rest of the walk.  Returns the number of all
 * frames. */
static size_t put_met(struct tally_unwind_walk *walk, const struct tally_unwind_chain *chain,
		      size_t met, uint64_t *addresses, size_t count)
{
	const struct tally_unwind_request *request = walk->request;
	for (size_t i = met; i-- > 0; count++) {
		addresses[count] = chain->frames[i].pc + chain->frames[i].is_made_up;
		if (request->is_exact)
			request->is_exact[count] = false;
		if (request->stack_pointers)
			request->stack_pointers[count] = chain->frames[i].sp;
	}
	walk->frame.registers[walk->layout->sp] = chain->frames[0].sp;
	walk->end = TALLY_UNWIND_COMPLETE;
	return count;
}

static bool step_from_mistrusted(struct tally_unwind_walk *walk)
{
	walk->rule = NULL; /* nothing must look at it */
	return tally_unwind_step_by_evidence(walk);
}

/* Walks from the leaf to the end.  Takes the leaf's step by its code if its rules are mistrusted.
 * Returns the number of frames. */
static size_t climb(struct tally_unwind_walk *walk, uint64_t *addresses, size_t limit)
{
	struct tally_unwind_chain *chain = tally_unwind_chain_begin(walk);
	size_t count = 0, met = 0;
	walk->is_fetched = chain && chain->at;
	do {
		met = chain && count ? tally_unwind_chain_meet(chain, walk) : 0;
		if (met && met <= limit - count)
			break;
		met = 0;
		if (!resolve(walk)) {
			walk->end = TALLY_UNWIND_NO_MAP;
			if (walk->is_by_pointer)
				walk->end = TALLY_UNWIND_NO_RULES;
			if (!count) /* the sampled ip is written, wherever it is */
				put_frame(walk, addresses, count++);
			return count;
		}
		if (count == limit)
			return count;
		if (chain)
			tally_unwind_chain_note(chain, walk, count);
		put_frame(walk, addresses, count++);
	} while (walk->is_leaf_mistrusted && count == 1 ? step_from_mistrusted(walk) : step(walk));
	size_t stepped = count;
	if (met)
		count = put_met(walk, chain, met, addresses, count);
	if (chain && walk->end == TALLY_UNWIND_COMPLETE)
		tally_unwind_chain_learn(chain, walk, stepped, met);
	return count;
}

/* True if the leaf's rules are perhaps wrong, as they are in some assembly: they lead to an address
 * that no call left, and the walk ended without reaching a start; or they lead to a 0. */
static bool is_leaf_doubtful(struct tally_unwind_walk *walk, const uint64_t *addresses,
			     size_t count)
{
	const struct tally_unwind_request *request = walk->request;
	struct tally_unwind_place place = { 0 };
	bool is_whole = walk->end == TALLY_UNWIND_COMPLETE;
	if (!count || (is_whole && (count > 1 || !walk->is_at_zero)) ||
	    walk->end == TALLY_UNWIND_LIMIT || walk->end == TALLY_UNWIND_SWITCHED ||
	    (count == 1 && walk->end == TALLY_UNWIND_TRUNCATED) || walk->has_interrupted ||
	    walk->layout->has_signed_returns ||
	    !request->find(request->context, addresses[0], &place) || !place.table ||
	    !place.table->object || !tally_unwind_table_has_rule(place.table, place.address))
		return false;
	return count == 1 || (!tally_unwind_is_left_by_call(walk, addresses[1]) &&
			      !tally_unwind_is_signal_return(walk, addresses[1]));
}

/* Walks.  If the leaf's rules are doubtful, walks again by the leaf's code. */
static size_t climb_well(struct tally_unwind_walk *walk, uint64_t *addresses, size_t limit)
{
	const struct tally_unwind_request *request = walk->request;
	size_t count = climb(walk, addresses, limit);
	if (!is_leaf_doubtful(walk, addresses, count))
		return count;
	start(walk, request);
	walk->is_leaf_mistrusted = true;
	return climb(walk, addresses, limit);
}

size_t tally_unwind(const struct tally_unwind_request *request, uint64_t *addresses, size_t limit,
		    enum tally_unwind_end *end)
{
	struct tally_unwind_walk walk;
	size_t count = 0;
	if (start(&walk, request) && limit > 0)
		count = climb_well(&walk, addresses, limit);
	if (request->extent)
		*request->extent = (struct tally_unwind_extent){
			.reached = tally_unwind_get(&walk, walk.layout->sp),
			.missed = walk.end == TALLY_UNWIND_TRUNCATED ? walk.frame.missed : 0,
			.switched_at = walk.switched_at,
			.is_in_go = walk.is_in_go,
		};
	if (end)
		*end = walk.end;
	return count;
}

const char *tally_unwind_end_text(enum tally_unwind_end end)
{
	switch (end) {
	case TALLY_UNWIND_COMPLETE: return "complete";
	case TALLY_UNWIND_TRUNCATED: return "the copied stack ended";
	case TALLY_UNWIND_NO_MAP: return "an address outside of every mapping";
	case TALLY_UNWIND_NO_RULES: return "no unwind rules and no frame pointer";
	case TALLY_UNWIND_BAD_RULES: return "unwind rules that make no sense";
	case TALLY_UNWIND_SWITCHED: return "the caller is on another stack";
	case TALLY_UNWIND_LIMIT: return "more frames than there was room for";
	}
	return "unknown";
}
