/* registers + copied stack + objects → return addresses, by .eh_frame.
 *
 * Pure: objects come through a callback, memory is the copied stack (and the objects' own bytes).
 * No system call; the rules of an object are parsed once, on first use.
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
 * regs (in mask order) to DWARF order.  False when the mask lacks IP or SP. */
#define TALLY_UNWIND_REGS_MASK 0xff0fffull
bool tally_unwind_registers(const uint64_t *words, uint64_t mask, uint64_t registers[TALLY_UNWIND_REGISTERS]);

struct tally_unwind_table; /* the rules of one object */

/* Parses .eh_frame (or .debug_frame of `debug`) of an object.  A table without rules is not an error.
 * The object is referenced by the table. */
int tally_unwind_table_new(struct tally_object *object, struct tally_object *debug,
			   struct tally_unwind_table **out, struct tally_error *err);
void tally_unwind_table_free(struct tally_unwind_table *table);

/* True when the rules of the function at `address` (in the object) keep a frame pointer: its CFA becomes
 * rbp-based, or it is entry/PLT code.  What record probes to choose its call graph. */
bool tally_unwind_table_uses_frame_pointers(const struct tally_unwind_table *table, size_t *functions,
					    size_t *with_frame_pointer);

/* Where an address of the process lies. */
struct tally_unwind_place {
	const struct tally_unwind_table *table; /* NULL: mapped, but no rules known (JIT, [stack], …) */
	uint64_t address;                       /* in the object */
};

enum tally_unwind_end {
	TALLY_UNWIND_COMPLETE,   /* reached the outermost frame: rip undefined, or return address 0 */
	TALLY_UNWIND_TRUNCATED,  /* the copied stack ended */
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
};

/* Writes at most `limit` addresses, leaf first: the leaf is the sampled ip, the others raw return addresses
 * (resolved at ip − 1 by the reader, but for frames interrupted by a signal).  Returns their number.
 * A frame without rules is stepped over by frame pointer where rbp points into the stack. */
size_t tally_unwind(const struct tally_unwind_request *request, uint64_t *addresses, size_t limit,
		    enum tally_unwind_end *end);

const char *tally_unwind_end_text(enum tally_unwind_end end);

#endif
