/* x86-64: finds the frame of code without rules, from the instructions around an address.
 *
 * Pure: takes bytes, returns a description.  code_frame.c explains which instructions it
 * recognises, and why the result is certain.
 */
#ifndef TALLY_UNWIND_CODE_FRAME_H
#define TALLY_UNWIND_CODE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets are in bytes, from the frame's base.  That is rsp, or what the code copied rsp to before
 * it aligned the stack: another register, or a word of the stack.  Registers have DWARF's
 * numbers. */
struct tally_code_frame {
	/* rbp points at the saved rbp, and the return address is above it.  If false, use the
	 * fields below. */
	bool is_linked;
	bool has_base;      /* `base` is not rsp */
	uint8_t base;
	bool is_loaded;     /* the base is the word at this register + loaded_at */
	int32_t loaded_at;
	int32_t return_at;  /* of the return address */
	bool saves_fp;      /* the caller's rbp is saved at fp_at; else rbp still holds it */
	bool fp_is_apart;   /* fp_at counts from the register fp_base */
	uint8_t fp_base;
	int32_t fp_at;
	uint16_t lost;      /* bit n: register n may no longer have the caller's value */
};

/* Follows the instructions at `code` to the function's `ret`.  Returns false when one of them does
 * anything other than leave the function. */
bool tally_code_frame_ahead(const uint8_t *code, size_t size, struct tally_code_frame *frame);

/* Finds the frame of a method that the HotSpot JVM compiled, from the method's beginning.  Searches
 * for the beginning in the `size` bytes before an address and the `more` bytes behind it; `code` is
 * the first byte of those before.  Returns false when it recognises no beginning. */
bool tally_code_frame_behind(const uint8_t *code, size_t size, size_t more,
			     struct tally_code_frame *frame);

/* True if the bytes end in a call: then the address behind them is a return address of that
 * call. */
bool tally_code_ends_in_call(const uint8_t *code, size_t size);

/* Finds the frame of code without rules where a few bytes of it suffice. */

enum tally_code_spot {
	TALLY_CODE_OTHER,
	TALLY_CODE_SIGRETURN,  /* a signal handler returns here; the kernel's ucontext is at sp */
	TALLY_CODE_EDGE,       /* the return address is at rsp, or in x30 */
	TALLY_CODE_PUSHED_RBP, /* rbp was just pushed, the return address is above it */
};

/* Recognises x86-64 code.  `code` runs next; `previous` is the byte before it. */
enum tally_code_spot tally_code_recognise(const uint8_t *code, size_t size, uint8_t previous);

/* Recognises i386 code: the trampolines of signal handlers, which musl's have no rules for, and a
 * function's edges. */
enum tally_code_spot tally_code_recognise_i386(const uint8_t *code, size_t size);

/* Recognises arm64 code by its next instruction (sigreturn: by two). */
enum tally_code_spot tally_code_recognise_arm64(const uint8_t *code, size_t size);

/* Remembers the frames of compiled methods that were found by their code.  Internal to this room,
 * except for tally_code_memo_new(), _free() and _clear(). */

enum { TALLY_CODE_MEMO_BYTES = 16 };

struct tally_code_memo;

struct tally_code_memo *tally_code_memo_new(void);       /* NULL: no memory */
void tally_code_memo_free(struct tally_code_memo *memo); /* NULL is fine */

/* Forgets everything.  To be called now and then, because code may be replaced by other code that
 * has the same bytes at an address. */
void tally_code_memo_clear(struct tally_code_memo *memo);

/* Looks up an address of a space (tally_unwind_request) with these TALLY_CODE_MEMO_BYTES of code.
 * Returns false when nothing is remembered.  Otherwise sets *is_found, and *frame if a frame was
 * found. */
bool tally_code_memo_get(const struct tally_code_memo *memo, uint64_t space, uint64_t address,
			 const uint8_t *code, bool *is_found, struct tally_code_frame *frame);
void tally_code_memo_put(struct tally_code_memo *memo, uint64_t space, uint64_t address,
			 const uint8_t *code, bool is_found, const struct tally_code_frame *frame);

/* The C functions that foreign code runs on (unwind_entered.c): the last TALLY_CODE_ENTRIES that
 * were found. */

enum { TALLY_CODE_ENTRIES = 32 };

struct tally_code_entry {
	uint64_t space;    /* 0: none */
	uint64_t slot_at;  /* bytes from rsp to the return address */
	uint64_t back;     /* the return address */
	uint64_t jump_end; /* of the jump to the foreign code; 0: the function is unknown */
	uint64_t room;     /* bytes that the foreign code took below the function's frame */
};

/* Returns an array of TALLY_CODE_ENTRIES. */
const struct tally_code_entry *tally_code_memo_entries(const struct tally_code_memo *memo);
void tally_code_memo_add_entry(struct tally_code_memo *memo, const struct tally_code_entry *entry);

/* The indirect jumps of a function of a file: one of each run of jumps with the same unwind rule. */
struct tally_code_jumps {
	uint64_t space, target; /* the function's address in that space */
	unsigned count;
	uint32_t ends[30]; /* of the jumps: bytes behind `target` */
};

/* Returns the place for a function's jumps, which the caller fills: its space and target are others
 * if it does not hold them yet. */
struct tally_code_jumps *tally_code_memo_jumps(struct tally_code_memo *memo, uint64_t space,
					       uint64_t target);

#endif
