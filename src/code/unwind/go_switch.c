/* Steps between the stack of a goroutine and that of its thread.
 *
 * C code needs a large stack, so Go runs it on the thread's stack, and code that C calls back on
 * the goroutine's again (runtime/asm_amd64.s):
 *
 *     goroutine's stack                       thread's stack
 *       runtime.main … cgocall
 *         └ asmcgocall() changes rsp ───────▶ asmcgocall  [the goroutine, the depth of its stack]
 *                                               └ C functions … crosscall2
 *       cgocallback  ◀─ changes rsp back ────────  └ cgocallback [saved rbp]
 *         └ cgocallbackg … Go functions
 *
 * asmcgocall keeps the goroutine g and the distance from its rsp to the end of its stack.  It must
 * find its way back as well, so the instructions behind its call of C say where these are:
 *
 *     mov  n(%rsp),%rdi; mov 8(%rdi),%rsi; sub m(%rsp),%rsi     rsi is the rsp that it had
 *     mov  n(%rsp),%rsi; mov %rsi,%rsp                          it was on the thread's stack
 *
 * cgocallback leaves rbp as it was on the thread's stack, and the function that it calls saves it
 * first.  So the two words below the frame lead there.  The instructions behind its call compute
 * the frame's size:
 *
 *     lea  n(%rsp),%rax; sub %rsp,%rax
 *
 * The copied stack is one of the two.  The other one's words come with the request, or the walk
 * ends with TALLY_UNWIND_TRUNCATED and tells where they are needed.
 */
#include "unwind/unwind_internal.h"

#include "object/object.h"

#include <string.h>

enum { WORD = TALLY_UNWIND_WORD, CODE_BYTES = 14, LINK_BYTES = 512 };

/* What the code behind the call says: offsets from rsp, in bytes. */
struct go_switch {
	enum tally_unwind_rule_kind kind; /* TALLY_RULE_NONE: no switch */
	int goroutine, depth; /* GO_TO_C */
	bool is_on_thread; /* GO_TO_C: Go was on the thread's stack; its rsp is at `depth` */
	int end;           /* C_TO_GO: of the frame */
};

/* Reads the displacement of n(%rsp): one byte, or none.  `code` points at the ModRM byte.  Returns
 * its length with the ModRM and SIB bytes; 0: it is another operand. */
static size_t read_offset(const uint8_t *code, uint8_t reg, int *offset)
{
	enum { SIB_RSP = 0x24, BYTE = 0x44, PLAIN = 0x04 };
	if (code[1] != SIB_RSP || (code[0] != (BYTE | reg) && code[0] != (PLAIN | reg)))
		return 0;
	*offset = 0;
	if (code[0] == (PLAIN | reg))
		return 2;
	*offset = code[2];
	return 3;
}

/* `code` has CODE_BYTES. */
static struct go_switch decode(const uint8_t *code)
{
	enum { RAX = 0 << 3, RSI = 6 << 3, RDI = 7 << 3 };
	struct go_switch found = { .kind = TALLY_RULE_NONE };
	size_t at;
	if (!memcmp(code, "\x48\x8d", 2) && (at = read_offset(code + 2, RAX, &found.end)) &&
	    !memcmp(code + 2 + at, "\x48\x29\xe0", 3)) {
		found.kind = TALLY_RULE_C_TO_GO;
	} else if (!memcmp(code, "\x48\x8b", 2) &&
		   (at = read_offset(code + 2, RSI, &found.depth)) &&
		   !memcmp(code + 2 + at, "\x48\x89\xf4", 3)) {
		found.kind = TALLY_RULE_GO_TO_C;
		found.is_on_thread = true;
	} else if (!memcmp(code, "\x48\x8b", 2) &&
		   (at = read_offset(code + 2, RDI, &found.goroutine)) &&
		   !memcmp(code + 2 + at, "\x48\x8b\x77\x08\x48\x2b", 6) &&
		   read_offset(code + 8 + at, RSI, &found.depth)) {
		found.kind = TALLY_RULE_GO_TO_C;
	}
	return found;
}

static struct go_switch switch_behind(const struct tally_unwind_table *table,
				      uint64_t return_address)
{
	const struct go_switch none = { .kind = TALLY_RULE_NONE };
	size_t size;
	if (!tally_unwind_table_is_go(table))
		return none;
	const uint8_t *code = tally_object_bytes_at(table->object, return_address, &size);
	if (code && size >= CODE_BYTES)
		return decode(code);
	return none;
}

bool tally_unwind_table_calls_go(const struct tally_unwind_table *table, uint64_t return_address)
{
	return switch_behind(table, return_address).kind == TALLY_RULE_C_TO_GO;
}

static struct go_switch switch_at(struct tally_unwind_walk *walk)
{
	const struct go_switch none = { .kind = TALLY_RULE_NONE };
	if (!walk->is_exact && tally_unwind_locate(walk) && walk->place.table)
		return switch_behind(walk->place.table, walk->place.address + 1);
	return none;
}

enum tally_unwind_rule_kind tally_unwind_go_switch(struct tally_unwind_walk *walk)
{
	return switch_at(walk).kind;
}

void tally_unwind_change_stack(struct tally_unwind_walk *walk, uint64_t sp, uint64_t switched_at,
			 bool is_in_go)
{
	walk->frame.registers[walk->layout->sp] = sp;
	walk->switched_at = switched_at;
	walk->is_in_go = is_in_go;
}

/* Goes on behind the return address at `slot`, with the frame pointer `fp`.  If `is_call`, a call
 * must have left that address. */
static bool enter_by(struct tally_unwind_walk *walk, uint64_t slot, uint64_t fp, bool is_call)
{
	const struct tally_unwind_layout *layout = walk->layout;
	uint64_t registers[TALLY_UNWIND_REGISTERS];
	memcpy(registers, walk->frame.registers, sizeof(registers));
	if (!tally_unwind_load(&walk->frame, slot, WORD, &registers[layout->pc]))
		return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	if (is_call && !tally_unwind_is_left_by_call(walk, registers[layout->pc]))
		return tally_unwind_stop(walk, TALLY_UNWIND_BAD_RULES);
	registers[layout->sp] = slot + WORD;
	registers[layout->fp] = fp;
	walk->is_by_pointer = false;
	return tally_unwind_enter(walk, registers,
				  1ull << layout->sp | 1ull << layout->pc | 1ull << layout->fp,
				  false);
}

bool tally_unwind_step_from_c_to_go(struct tally_unwind_walk *walk)
{
	const struct tally_unwind_request *request = walk->request;
	struct go_switch found = switch_at(walk);
	uint64_t sp = tally_unwind_get(walk, walk->layout->sp), goroutine, depth, end;
	int first = found.goroutine < found.depth ? found.goroutine : found.depth;
	if (!tally_unwind_load(&walk->frame, sp + (uint64_t)found.goroutine, WORD, &goroutine) ||
	    !tally_unwind_load(&walk->frame, sp + (uint64_t)found.depth, WORD, &depth))
		return tally_unwind_stop_at_missed(walk);
	if (found.is_on_thread)
		return enter_by(walk, depth, tally_unwind_get(walk, walk->layout->fp), true);
	/* g.stack.hi; only the task's memory has it */
	if (!request->read_code || request->read_code(request->context, goroutine + WORD, &end,
						      WORD) < WORD || depth > end)
		return tally_unwind_stop(walk, TALLY_UNWIND_SWITCHED);
	tally_unwind_change_stack(walk, end - depth, sp + (uint64_t)first, false);
	return enter_by(walk, end - depth, tally_unwind_get(walk, walk->layout->fp), true);
}

bool tally_unwind_step_from_go_to_c(struct tally_unwind_walk *walk)
{
	struct go_switch found = switch_at(walk);
	uint64_t sp = tally_unwind_get(walk, walk->layout->sp), end = sp + (uint64_t)found.end,
		 link, outer, fp;
	if (!tally_unwind_load(&walk->frame, sp - 2 * WORD, WORD, &link))
		return tally_unwind_stop_at_missed(walk);
	if (walk->request->skips_c) {
		/* The word below the frame's end is a made-up return address; the goroutine's own
		 * rsp was the frame's end. */
		bool has_caller = tally_unwind_load(&walk->frame, end, WORD, &outer) &&
				  tally_unwind_is_left_by_call(walk, outer);
		return enter_by(walk, has_caller ? end : end - WORD,
				tally_unwind_get(walk, walk->layout->fp), has_caller);
	}
	tally_unwind_change_stack(walk, link, sp, true);
	if (!tally_unwind_load(&walk->frame, link, WORD, &outer))
		return tally_unwind_stop(walk, TALLY_UNWIND_TRUNCATED);
	/* crosscall2() saves C's rbp where its own rbp points. */
	if (outer <= link || outer - link > LINK_BYTES ||
	    !tally_unwind_load(&walk->frame, outer, WORD, &fp))
		fp = outer;
	return enter_by(walk, link + WORD, fp, true);
}
