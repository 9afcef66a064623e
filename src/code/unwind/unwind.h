/* Registers, stack bytes and objects → addresses. */
#ifndef TALLY_UNWIND_H
#define TALLY_UNWIND_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_code_memo;
struct tally_object;
struct tally_unwind_cache;
struct tally_unwind_chain;

/* Unwinds stacks: registers + copied stack + objects → return addresses, by .eh_frame.  For x86-64
 * and arm64, little-endian.
 *
 * Pure: objects come through a callback, and memory is the copied stack.  It makes no system call,
 * and allocates memory only for a function that it meets for the first time.  A table or a cache
 * may be used by one thread only.  unwind.c explains unwinding.
 */

/* The machine whose stack is unwound.  Rules from objects of other machines are not used. */
enum tally_unwind_machine {
	TALLY_UNWIND_HOST, /* the machine that tally runs on */
	TALLY_UNWIND_X86_64,
	TALLY_UNWIND_ARM64,
	TALLY_UNWIND_I386, /* also a 32-bit process on an x86-64 machine */
	TALLY_UNWIND_OTHER, /* one that tally can't unwind */
};

enum tally_unwind_machine tally_unwind_machine_of_elf(unsigned machine); /* e_machine */
/* Returns the machine of a name from uname(2) or a recording's HEADER_ARCH.  "" and NULL mean the
 * host. */
enum tally_unwind_machine tally_unwind_machine_named(const char *name);

/* Registers in DWARF's numbering.
 *
 *     x86-64 (System V ABI, figure 3.36): 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp,
 *                                         8–15 r8–r15, 16 return address (rip)
 *     arm64: 0–30 x0–x30, 31 sp, 32 pc
 *     i386 (System V ABI, figure 2.14): 0 eax, 1 ecx, 2 edx, 3 ebx, 4 esp, 5 ebp, 6 esi, 7 edi,
 *                                       8 return address (eip) */
enum { TALLY_UNWIND_REGISTERS = 33 };
enum { TALLY_UNWIND_RBP = 6, TALLY_UNWIND_RSP = 7, TALLY_UNWIND_RIP = 16 };
enum {
	TALLY_UNWIND_X29 = 29,
	TALLY_UNWIND_X30 = 30,
	TALLY_UNWIND_ARM64_SP = 31,
	TALLY_UNWIND_ARM64_PC = 32
};

/* The kernel's masks for PERF_SAMPLE_REGS_USER that select all of these registers.
 * tally_unwind_registers() converts back: it puts the words of a sample's regs (in mask order) into
 * DWARF's order, with 0 for registers that the mask lacks.  It returns false when the mask lacks IP
 * or SP. */
#define TALLY_UNWIND_REGS_MASK 0xff0fffull
#define TALLY_UNWIND_REGS_MASK_ARM64 0x1ffffffffull
/* Returns the machine of a sample's registers, by the abi field in front of them
 * (PERF_SAMPLE_REGS_ABI_*).  `machine` is the recorded one. */
enum tally_unwind_machine tally_unwind_machine_of_registers(enum tally_unwind_machine machine,
							    uint64_t abi);
unsigned tally_unwind_stack_pointer(enum tally_unwind_machine machine); /* DWARF's number of sp */
uint64_t tally_unwind_regs_mask(enum tally_unwind_machine machine); /* 0: can't unwind */
/* Returns the mask of the one register in which a call leaves the return address, or 0 where calls
 * push it. */
uint64_t tally_unwind_return_mask(enum tally_unwind_machine machine);
bool tally_unwind_registers(enum tally_unwind_machine machine, const uint64_t *words, uint64_t mask,
			    uint64_t registers[TALLY_UNWIND_REGISTERS]);

struct tally_unwind_table; /* the rules of one object */

/* Makes the table of an object's rules, from .eh_frame of the object, then .debug_frame of it and
 * of its debug file (`debug` may be NULL).  A later section is used where those before it have no
 * rules.  The table holds references to both objects.  Damaged rules are left out.  A table without
 * rules is not an error: objects of other machines and those built without unwind tables have one.
 *
 * If the linker left a sorted index, this reads no rules yet and takes 1 ns a function; else 0.1 to
 * 0.3 µs.  Returns 0 or -ENOMEM. */
int tally_unwind_table_new(struct tally_object *object, struct tally_object *debug,
			   struct tally_unwind_table **out, struct tally_error *err);
void tally_unwind_table_free(struct tally_unwind_table *table);
/* Returns the memory that the table takes by now, in bytes, without the objects' own. */
size_t tally_unwind_table_bytes(const struct tally_unwind_table *table);

enum tally_unwind_function_kind {
	TALLY_UNWIND_NO_FUNCTION,
	TALLY_UNWIND_FUNCTION,
	TALLY_UNWIND_LABEL, /* a function, or a label inside of one */
	/* calls on its runtime's own stack; its rules describe the stack before the switch */
	TALLY_UNWIND_STACK_SWITCH,
	TALLY_UNWIND_STACK_START, /* a stack's outermost frame is in it */
};

/* Gives the table a callback that finds the beginning and the end of the function that holds an
 * address in the object.  The table then follows the instructions of x86-64 code without rules from
 * the function's beginning (code_walk.h).  `context` must outlive the table. */
void tally_unwind_table_use_functions(struct tally_unwind_table *table,
				      enum tally_unwind_function_kind (*find)(void *context,
									      uint64_t address,
									      uint64_t *start,
									      uint64_t *end),
				      void *context);

/* Finds the beginning and the end of the function that holds an address.  Returns false when the
 * table has no rules there. */
bool tally_unwind_table_function(struct tally_unwind_table *table, uint64_t address,
				 uint64_t *start, uint64_t *end);

/* Finds the beginning and the end of the function that holds an address: by its rules, or else by
 * the code between functions with rules (x86-64).  The latter is likely, not certain: good for
 * names, not for unwinding.  Returns false when the function is not known. */
bool tally_unwind_table_extent(struct tally_unwind_table *table, uint64_t address,
			       uint64_t *start, uint64_t *end);

/* True if the table has valid rules for an address. */
bool tally_unwind_table_has_rule(struct tally_unwind_table *table, uint64_t address);

/* Tells whether a call that is under way at the address may be on another stack than the rules
 * describe: TALLY_UNWIND_STACK_SWITCH, _START.  Only for Go's objects. */
enum tally_unwind_function_kind tally_unwind_table_function_kind(struct tally_unwind_table *table,
								 uint64_t address);

/* True if Go's linker made the object. */
bool tally_unwind_table_is_go(const struct tally_unwind_table *table);

/* True if C code calls Go by the call in front of the return address in the object: the functions
 * outside of it are on another stack. */
bool tally_unwind_table_calls_go(const struct tally_unwind_table *table, uint64_t return_address);

/* Finds the target of the direct call in front of a return address in the object (x86-64).  Returns
 * false when there is none. */
bool tally_unwind_table_call(const struct tally_unwind_table *table, uint64_t return_address,
			     uint64_t *target);

/* Makes a table from bytes of .eh_frame that lie at an address, as a JIT leaves them.  The bytes
 * must outlive the table.  Returns 0 or -ENOMEM. */
int tally_unwind_table_new_from_frames(const void *eh_frame, size_t size, uint64_t address,
				       enum tally_unwind_machine machine,
				       struct tally_unwind_table **out);

/* An address of the process, as an address in an object. */
struct tally_unwind_place {
	struct tally_unwind_table *table; /* NULL: mapped, but no rules known (JIT, [stack], …) */
	uint64_t address;                 /* in the object */
	/* This many bytes before and behind the address lie in the same piece of the object.  0 is
	 * always correct. */
	uint64_t below, above;
	bool is_brief; /* valid for this walk only: must not be remembered */
	/* each function of this code keeps a frame pointer, as SBCL's compiler makes them */
	bool has_links;
};

enum tally_unwind_end {
	/* reached the outermost frame: rip undefined, return address 0, or the entry point */
	TALLY_UNWIND_COMPLETE,
	TALLY_UNWIND_TRUNCATED,  /* the copied stack ended, or a signal handler's own stack did */
	TALLY_UNWIND_NO_MAP,     /* an address that no mapping holds */
	TALLY_UNWIND_NO_RULES,   /* no rules, and the frame pointer did not lead to a caller */
	TALLY_UNWIND_BAD_RULES,  /* rules that contradict themselves or the stack */
	/* the outermost frame's caller is on another stack: Go's runtime.systemstack */
	TALLY_UNWIND_SWITCHED,
	TALLY_UNWIND_LIMIT,      /* as many frames as there was room for */
};

/* Remembers the rules of addresses: for up to 16 MiB of code, in 2 MiB of memory. */
struct tally_unwind_cache *tally_unwind_cache_new(void); /* NULL: no memory */
/* Forgets everything.  Call this before you free a table whose rules the cache may remember. */
void tally_unwind_cache_clear(struct tally_unwind_cache *cache);
/* call this before you free the tables; NULL is fine */
void tally_unwind_cache_free(struct tally_unwind_cache *cache);

/* Remembers the outer part of the last stack that was walked to its end, and ends the next walk
 * where it meets that part.  The result is what the whole walk would give (unwind_chain.c).  x86-64
 * only.  Works best with one chain for each thread. */
struct tally_unwind_chain *tally_unwind_chain_new(void); /* NULL: no memory */
void tally_unwind_chain_free(struct tally_unwind_chain *chain); /* NULL is fine */

enum { TALLY_UNWIND_SWITCH_BYTES = 16 };

/* How far up the stack a walk went, and what it lacked. */
struct tally_unwind_extent {
	uint64_t reached; /* sp of the outermost frame that was found */
	uint64_t missed;  /* address of the word that the copy lacked; 0: nothing was missing */
	/* The walk left the copied stack for another one: of a goroutine or its thread
	 * (go_switch.c), or one that the frame pointer of code made at run time leads to.  This is
	 * the address of TALLY_UNWIND_SWITCH_BYTES on the copied stack that differ from call to
	 * call; 0: it did not. */
	uint64_t switched_at;
	bool is_in_go; /* that switch was a call of Go from C */
};

struct tally_unwind_request {
	enum tally_unwind_machine machine;
	uint64_t registers[TALLY_UNWIND_REGISTERS];
	uint64_t unknown;     /* bit n: the value of register n is unknown */
	const uint8_t *stack; /* bytes from sp up */
	size_t stack_size;
	/* Bytes of another stack, which a signal interrupted; `address` is that of the first byte.
	 * Size 0: none. */
	struct tally_unwind_memory {
		const uint8_t *bytes;
		size_t size;
		uint64_t address;
	} other;
	/* Finds the place of an address.  Returns false when nothing is mapped there. */
	bool (*find)(void *context, uint64_t address, struct tally_unwind_place *place);
	/* Optional (may be NULL): copies code that find() has no rules for.  Returns how many bytes
	 * there are. */
	size_t (*read_code)(void *context, uint64_t address, void *out, size_t size);
	/* optional: remembers the frames found by such code, as long as `space` is the same */
	struct tally_code_memo *memo;
	/* the process is a HotSpot JVM: code without a file was compiled by it */
	bool has_hotspot;
	/* where C calls Go, go on with the Go functions that called C, without the C functions */
	bool skips_c;
	void *context;
	/* Optional (may be NULL): remembers find()'s answers and the rules.  They must hold as long
	 * as `space` is the same, so `space` needs a number of its own for each set of mappings
	 * that ever existed. */
	struct tally_unwind_cache *cache;
	uint64_t space;
	/* optional (may be NULL); relies on `space` like the cache */
	struct tally_unwind_chain *chain;
	/* run the rules' programs at each frame: the slow reference, for tests */
	bool is_interpreted;
	struct tally_unwind_extent *extent; /* NULL, or filled in */
	/* NULL, or an array of `limit`: true for frames that made no call but were interrupted */
	bool *is_exact;
	uint64_t *stack_pointers; /* NULL, or an array of `limit`: each frame's sp */
};

/* Writes at most `limit` addresses, leaf first, and returns their number.  The leaf is the sampled
 * ip.  The others are raw return addresses; readers resolve them at ip − 1, except for frames that
 * a signal interrupted.  A frame without rules is found from its code where that is certain
 * (code_frame.c), else by frame pointer where rbp (x29) points into the stack.  An
 * address that no mapping holds is written only if it is the sampled ip.  `end` may be NULL. */
size_t tally_unwind(const struct tally_unwind_request *request, uint64_t *addresses, size_t limit,
		    enum tally_unwind_end *end);

const char *tally_unwind_end_text(enum tally_unwind_end end);

/* x86-64: finds the frame of code without rules, from the instructions around an address.
 *
 * Pure: takes bytes, returns a description.  code_frame.c explains which instructions it
 * recognises, and why the result is certain.
 */

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

/* Finds which instruction took the time that a late sample tells of.  Pure.
 *
 * An interrupt is taken between two instructions, so a sample has the address of the next one to
 * run.  The time went to the one that ended before it. */

/* True if tally_code_causes() knows the machine's instructions (`machine`: e_machine). */
bool tally_code_has_causes(unsigned machine, bool is_big_endian);

/* A sampled instruction. */
struct tally_code_sample {
	uint64_t offset; /* from the function's first instruction */
	uint8_t heat;    /* binary logarithm of the samples' weight */
	/* result: the offset of the instruction that is charged; `offset` itself where none before
	 * it can be blamed, or where no instruction begins */
	uint64_t cause;
	bool is_jump;    /* result: that is a jump */
};

/* `code` is a whole function of `size` bytes.  Sets the causes of the samples, which are in
 * ascending order.  Returns 0 or -ENOMEM. */
int tally_code_causes(unsigned machine, const uint8_t *code, size_t size,
		      struct tally_code_sample *samples, size_t count);

#endif
