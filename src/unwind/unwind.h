/* registers + copied stack + objects → return addresses, by .eh_frame.
 *
 * Pure: objects come through a callback, memory is the copied stack.  No system call and no allocation but in
 * making a table.  Tables are immutable: threads may share one.  unwind.c explains unwinding.
 */
#ifndef TALLY_UNWIND_UNWIND_H
#define TALLY_UNWIND_UNWIND_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_object;

/* x86-64 registers in DWARF's numbering (System V ABI, figure 3.36): 0 rax 1 rdx 2 rcx 3 rbx 4 rsi 5 rdi 6 rbp
 * 7 rsp 8–15 r8–r15 16 the return address (rip). */
enum { TALLY_UNWIND_REGISTERS = 17, TALLY_UNWIND_RBP = 6, TALLY_UNWIND_RSP = 7, TALLY_UNWIND_RIP = 16 };

/* The kernel's mask for PERF_SAMPLE_REGS_USER that gives all of them, and the way back: words of a sample's
 * regs (in mask order) to DWARF order, 0 for those that the mask lacks.  False when that is IP or SP. */
#define TALLY_UNWIND_REGS_MASK 0xff0fffull
bool tally_unwind_registers(const uint64_t *words, uint64_t mask, uint64_t registers[TALLY_UNWIND_REGISTERS]);

struct tally_unwind_table; /* the rules of one object */

/* Indexes .eh_frame of an object, and .debug_frame of it and of its debug file (`debug` may be NULL), which are asked
 * where the one before has nothing.  A table without rules is not an error: objects for other machines than x86-64
 * and those built without tables have one.  Damaged rules are left out.  Both objects are referenced by the table.
 * 0 or -ENOMEM. */
int tally_unwind_table_new(struct tally_object *object, struct tally_object *debug,
			   struct tally_unwind_table **out, struct tally_error *err);
void tally_unwind_table_free(struct tally_unwind_table *table);

/* Does the object keep frame pointers?  What record asks of the target's executable to choose its call graph.
 *
 * `functions` counts those that have a frame at some point: which push or make room on the stack.  Leaves without
 * one, PLT, cold parts split off from their function, signal trampolines and the entry point are no evidence
 * and don't count.  `with_frame_pointer` of them set rbp up as `push %rbp; mov %rsp,%rbp` does: CFA = rbp + 16 with
 * rbp saved at CFA − 16; or they realign their stack with rbp saved where rbp points.  True when those are nine
 * tenths or more.  With functions == 0 (no tables: -fno-asynchronous-unwind-tables, another machine) the
 * answer is false and means "not known".  Runs all rules: 0.2 to 0.5 µs a function.  The pointers may be NULL. */
bool tally_unwind_table_uses_frame_pointers(const struct tally_unwind_table *table, size_t *functions,
					    size_t *with_frame_pointer);

/* Where an address of the process lies. */
struct tally_unwind_place {
	const struct tally_unwind_table *table; /* NULL: mapped, but no rules known (JIT, [stack], …) */
	uint64_t address;                       /* in the object */
};

enum tally_unwind_end {
	TALLY_UNWIND_COMPLETE,   /* reached the outermost frame: rip undefined, return address 0, or the entry point */
	TALLY_UNWIND_TRUNCATED,  /* the copied stack ended, or a signal handler's own did */
	TALLY_UNWIND_NO_MAP,     /* an address that no mapping holds */
	TALLY_UNWIND_NO_RULES,   /* no rules, and frame pointers led nowhere either */
	TALLY_UNWIND_BAD_RULES,  /* rules that contradict themselves or the stack */
	TALLY_UNWIND_LIMIT,      /* as many frames as there was room for */
};

struct tally_unwind_request {
	uint64_t registers[TALLY_UNWIND_REGISTERS];
	const uint8_t *stack; /* bytes from registers[RSP] up */
	size_t stack_size;
	/* Finds the object at an address; false: nothing is mapped there. */
	bool (*find)(void *context, uint64_t address, struct tally_unwind_place *place);
	void *context;
	bool *is_exact; /* NULL, or an array of `limit`: set for frames that did not call, but were interrupted */
};

/* Writes at most `limit` addresses, leaf first: the leaf is the sampled ip, the others raw return addresses
 * (resolved at ip − 1 by the reader, but for frames interrupted by a signal).  Returns their number.
 * A frame without rules is stepped over by frame pointer where rbp points into the stack; a leaf without rules
 * that stands at its function's first or last instruction is told by its code.  An address that no mapping holds
 * is written only if it is the sampled ip.  `end` may be NULL. */
size_t tally_unwind(const struct tally_unwind_request *request, uint64_t *addresses, size_t limit,
		    enum tally_unwind_end *end);

const char *tally_unwind_end_text(enum tally_unwind_end end);

#endif
