/* registers + copied stack + objects → return addresses, by .eh_frame.  x86-64 and arm64,
 * little-endian.
 *
 * Pure: objects come through a callback, memory is the copied stack.  No system call; memory is
 * allocated for a function that is met for the first time.  Tables and caches are one thread's.
 * unwind.c explains unwinding.
 */
#ifndef TALLY_UNWIND_UNWIND_H
#define TALLY_UNWIND_UNWIND_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_code_memo;
struct tally_object;

/* The machine that the stack is of.  Rules of another machine's object are not used. */
enum tally_unwind_machine {
	TALLY_UNWIND_HOST, /* the machine that this is */
	TALLY_UNWIND_X86_64,
	TALLY_UNWIND_ARM64,
	TALLY_UNWIND_OTHER, /* one that tally can't unwind */
};

enum tally_unwind_machine tally_unwind_machine_of_elf(unsigned machine); /* e_machine */
/* As uname(2) and a recording's HEADER_ARCH call it; "" and NULL: the host. */
enum tally_unwind_machine tally_unwind_machine_named(const char *name);

/* Registers in DWARF's numbering.  x86-64 (System V ABI, figure 3.36): 0 rax 1 rdx 2 rcx 3 rbx 4
 * rsi 5 rdi 6 rbp 7 rsp 8–15 r8–r15 16 the return address (rip).  arm64: 0–30 x0–x30 31 sp 32
 * pc. */
enum { TALLY_UNWIND_REGISTERS = 33 };
enum { TALLY_UNWIND_RBP = 6, TALLY_UNWIND_RSP = 7, TALLY_UNWIND_RIP = 16 };
enum {
	TALLY_UNWIND_X29 = 29,
	TALLY_UNWIND_X30 = 30,
	TALLY_UNWIND_ARM64_SP = 31,
	TALLY_UNWIND_ARM64_PC = 32
};

/* The kernel's mask for PERF_SAMPLE_REGS_USER that gives all of them, and the way back: words of a
 * sample's regs (in mask order) to DWARF order, 0 for those that the mask lacks.  False when that
 * is IP or SP. */
#define TALLY_UNWIND_REGS_MASK 0xff0fffull
#define TALLY_UNWIND_REGS_MASK_ARM64 0x1ffffffffull
unsigned tally_unwind_stack_pointer(enum tally_unwind_machine machine); /* DWARF's number of sp */
uint64_t tally_unwind_regs_mask(enum tally_unwind_machine machine); /* 0: no way to unwind there */
/* The mask for the register alone that a call leaves the return address in, 0 where calls push
 * it. */
uint64_t tally_unwind_return_mask(enum tally_unwind_machine machine);
bool tally_unwind_registers(enum tally_unwind_machine machine, const uint64_t *words, uint64_t mask,
			    uint64_t registers[TALLY_UNWIND_REGISTERS]);

struct tally_unwind_table; /* the rules of one object */

/* Takes up .eh_frame of an object, and .debug_frame of it and of its debug file (`debug` may be
 * NULL), which are asked where the one before has nothing.  A table without rules is not an error:
 * objects of other machines and those built without tables have one.  Damaged rules are left out.
 * Both objects are referenced by the table.  Where the linker left a sorted index this reads no
 * rules yet: 1 ns a function, else 0.1 to 0.3 µs. 0 or -ENOMEM. */
int tally_unwind_table_new(struct tally_object *object, struct tally_object *debug,
			   struct tally_unwind_table **out, struct tally_error *err);
void tally_unwind_table_free(struct tally_unwind_table *table);
/* The memory that it takes by now, without the object's own. */
size_t tally_unwind_table_bytes(const struct tally_unwind_table *table);

enum tally_unwind_function_kind {
	TALLY_UNWIND_NO_FUNCTION,
	TALLY_UNWIND_FUNCTION,
	/* calls on a stack of its runtime's, whose rules tell of the stack before */
	TALLY_UNWIND_STACK_SWITCH,
};

/* Tells the table where the function begins and ends that holds an address in the object.  It
 * follows the instructions of x86-64 code that has no rules from there (code_walk.h).  `context`
 * must outlive the table. */
void tally_unwind_table_use_functions(struct tally_unwind_table *table,
				      enum tally_unwind_function_kind (*find)(void *context,
									      uint64_t address,
									      uint64_t *start,
									      uint64_t *end),
				      void *context);

/* Where the function that holds an address begins and ends; false when no rules are of it. */
bool tally_unwind_table_function(struct tally_unwind_table *table, uint64_t address,
				 uint64_t *start, uint64_t *end);

/* Are there rules for an address that make sense? */
bool tally_unwind_table_has_rule(struct tally_unwind_table *table, uint64_t address);

/* The target of the direct call in front of a return address in the object (x86-64); false when
 * there is none. */
bool tally_unwind_table_call(const struct tally_unwind_table *table, uint64_t return_address,
			     uint64_t *target);

/* tally_unwind_table_new() of bytes of .eh_frame that lie at an address, as a JIT leaves them; they
 * must outlive the table. */
int tally_unwind_table_new_from_frames(const void *eh_frame, size_t size, uint64_t address,
				       enum tally_unwind_machine machine,
				       struct tally_unwind_table **out);

/* Where an address of the process lies. */
struct tally_unwind_place {
	struct tally_unwind_table *table; /* NULL: mapped, but no rules known (JIT, [stack], …) */
	uint64_t address;                 /* in the object */
	/* So many bytes before it and behind it lie in the same piece of the object; 0 is always
	 * true. */
	uint64_t below, above;
	bool is_brief; /* this holds for the walk alone: it must not be remembered */
};

enum tally_unwind_end {
	/* reached the outermost frame: rip undefined, return address 0, or the entry point */
	TALLY_UNWIND_COMPLETE,
	TALLY_UNWIND_TRUNCATED,  /* the copied stack ended, or a signal handler's own did */
	TALLY_UNWIND_NO_MAP,     /* an address that no mapping holds */
	TALLY_UNWIND_NO_RULES,   /* no rules, and frame pointers led nowhere either */
	TALLY_UNWIND_BAD_RULES,  /* rules that contradict themselves or the stack */
	TALLY_UNWIND_LIMIT,      /* as many frames as there was room for */
};

/* Remembers the rules of addresses: of 8 MiB of code, in 2 MiB. */
struct tally_unwind_cache;
struct tally_unwind_cache *tally_unwind_cache_new(void); /* NULL: no memory */
/* Before a table goes whose rules it may remember. */
void tally_unwind_cache_clear(struct tally_unwind_cache *cache);
/* before the tables; NULL is fine */
void tally_unwind_cache_free(struct tally_unwind_cache *cache);

/* Remembers the outer part of the last stack that was walked to its end, and ends the next walk
 * where it meets it: what comes out is what the whole walk would give (unwind_chain.c).  x86-64
 * alone.  Best one for each thread. */
struct tally_unwind_chain;
struct tally_unwind_chain *tally_unwind_chain_new(void); /* NULL: no memory */
void tally_unwind_chain_free(struct tally_unwind_chain *chain); /* NULL is fine */

/* How far up the stack a walk went, and what it lacked. */
struct tally_unwind_extent {
	uint64_t reached; /* sp of the outermost frame that was found */
	uint64_t missed;  /* the address of the word that the copy lacked, 0: nothing was missing */
};

struct tally_unwind_request {
	enum tally_unwind_machine machine;
	uint64_t registers[TALLY_UNWIND_REGISTERS];
	uint64_t unknown;     /* bit n: the value of register n isn't there */
	const uint8_t *stack; /* bytes from sp up */
	size_t stack_size;
	/* Bytes of another stack, which a signal interrupted, from an address on; size 0: none. */
	struct tally_unwind_memory {
		const uint8_t *bytes;
		size_t size;
		uint64_t address;
	} other;
	/* Finds the object at an address; false: nothing is mapped there. */
	bool (*find)(void *context, uint64_t address, struct tally_unwind_place *place);
	/* NULL, or copies code that find() knows no rules of, and returns how many bytes there
	 * are. */
	size_t (*read_code)(void *context, uint64_t address, void *out, size_t size);
	/* optional: remembers frames found by such code, while `space` is the same */
	struct tally_code_memo *memo;
	/* the process is a HotSpot JVM: code without a file is what that compiled */
	bool has_hotspot;
	void *context;
	/* NULL, or what remembers find()'s answers and the rules.  They are taken to hold for as
	 * long as `space` is the same: a number of its own for each set of mappings that ever
	 * was. */
	struct tally_unwind_cache *cache;
	uint64_t space;
	struct tally_unwind_chain *chain; /* NULL, or one of which `space` is true likewise */
	/* run the rules' programs at each frame: the slow reference, for tests */
	bool is_interpreted;
	struct tally_unwind_extent *extent; /* NULL, or filled in */
	/* NULL, or an array of `limit`: set for frames that did not call, but were interrupted */
	bool *is_exact;
	uint64_t *stack_pointers; /* NULL, or an array of `limit`: each frame's sp */
};

/* Writes at most `limit` addresses, leaf first: the leaf is the sampled ip, the others raw return
 * addresses (resolved at ip − 1 by the reader, but for frames interrupted by a signal).  Returns
 * their number.  A frame without rules is told by its code where that is certain (code_spot.h,
 * code_frame.h), else it is stepped over by frame pointer where rbp (x29) points into the stack.
 * An address that no mapping holds is written only if it is the sampled ip.  `end` may be NULL. */
size_t tally_unwind(const struct tally_unwind_request *request, uint64_t *addresses, size_t limit,
		    enum tally_unwind_end *end);

const char *tally_unwind_end_text(enum tally_unwind_end end);

#endif
