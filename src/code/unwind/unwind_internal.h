/* The parts of the unwinder: rules, tables, the walk over frames, what is remembered. */
#ifndef TALLY_UNWIND_INTERNAL_H
#define TALLY_UNWIND_INTERNAL_H

#include "base/arena.h"
#include "base/map.h"
#include "base/reader.h"
#include "base/vector.h"
#include "unwind/code_walk.h"
#include "unwind/unwind.h"

/* Reads call frame information: .eh_frame and .debug_frame bytes → entries → rules.  Internal to
 * src/unwind.
 *
 * Follows DWARF 5 section 6.4, and the Linux Standard Base 5.0 ("Exception Frames") where .eh_frame
 * differs.  Nothing here allocates memory.  Every read stays within the section, and every loop
 * ends with the section's bytes.  Addresses are little-endian, with 8 bytes; i386's have 4.
 */

/* A section's bytes, owned by the caller.  A section has at most TALLY_CFI_SECTION_MAX bytes,
 * because offsets have 32 bits. */
#define TALLY_CFI_SECTION_MAX 0xffffff00u

struct tally_cfi_section {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;      /* of the first byte, in the object */
	/* bases of DW_EH_PE_textrel and _datarel pointers; 0: unknown */
	uint64_t text_address;
	uint64_t data_address;
	enum tally_unwind_machine machine; /* defines the register numbers in the rules */
	bool is_debug_frame;
	/* `size` is only an upper bound: an entry of length zero ends the section */
	bool ends_at_zero;
};

enum tally_cfi_kind { TALLY_CFI_CIE, TALLY_CFI_FDE, TALLY_CFI_NOTHING };

/* The header that CIEs and FDEs share: a length, then a mark (CIE) or the offset of the CIE (FDE).
 * Offsets are in bytes from the section's start. */
struct tally_cfi_entry {
	enum tally_cfi_kind kind;
	uint32_t offset; /* of the entry */
	uint32_t body;   /* of the bytes behind the id */
	uint32_t end;    /* behind the entry, where the next one begins */
	uint32_t cie;    /* of an FDE's CIE */
};

/* Common information entry (CIE): the fields that the functions of one object file share. */
struct tally_cfi_cie {
	uint32_t offset;
	uint32_t instructions, instructions_end;
	uint32_t return_register;
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding;     /* DW_EH_PE of the FDEs' addresses */
	uint8_t segment_size; /* bytes of a segment selector before an FDE's address */
	bool has_augmentation_data;
	/* augmentation "S": a signal interrupted the caller's frame, which made no call */
	bool is_signal_frame;
};

/* Frame description entry (FDE): one function's address range and instructions. */
struct tally_cfi_fde {
	uint64_t start, end;
	uint32_t instructions, instructions_end;
};

/* How the caller's value of a register is found. */
enum tally_cfi_rule_kind {
	TALLY_CFI_UNSPECIFIED, /* treated as SAME_VALUE; for sp: the CFA */
	TALLY_CFI_UNDEFINED,
	TALLY_CFI_SAME_VALUE,
	TALLY_CFI_OFFSET,         /* saved at CFA + value */
	TALLY_CFI_VAL_OFFSET,     /* is CFA + value */
	TALLY_CFI_REGISTER,       /* is in another register; for a CFA rule: register + value */
	TALLY_CFI_EXPRESSION,     /* saved at the expression's result; for a CFA rule: is it */
	TALLY_CFI_VAL_EXPRESSION, /* is the expression's result */
};

struct tally_cfi_rule {
	uint8_t kind;
	uint8_t reg;
	uint32_t size; /* bytes of the expression, which begins at section offset `value` */
	int64_t value;
};

/* The rules for one range of addresses: a row of the table that DWARF defines.  Plain data: may be
 * copied. */
struct tally_cfi_row {
	struct tally_cfi_rule cfa;
	struct tally_cfi_rule registers[TALLY_UNWIND_REGISTERS];
	/* bit n: register n may have a rule; all others are TALLY_CFI_UNSPECIFIED */
	uint64_t ruled;
	const struct tally_cfi_section *section; /* holds the bytes of expressions */
	uint8_t return_register;
	bool is_signal_frame;
};

/* Reads the entry at `offset`.  Returns false at the section's end, and where an entry's length is
 * invalid. */
bool tally_cfi_entry_read(const struct tally_cfi_section *section, size_t offset,
			  struct tally_cfi_entry *entry);

/* Read a CIE or an FDE.  Return false when the entry is malformed, or of a kind or version that is
 * not known. */
bool tally_cfi_cie_read(const struct tally_cfi_section *section,
			const struct tally_cfi_entry *entry, struct tally_cfi_cie *cie);
bool tally_cfi_fde_read(const struct tally_cfi_section *section,
			const struct tally_cfi_entry *entry, const struct tally_cfi_cie *cie,
			struct tally_cfi_fde *fde);

/* Reads a pointer in DW_EH_PE encoding.  `reader` must have been made over the section's bytes.
 * Indirect pointers, unknown encodings and unknown bases set reader->failed. */
uint64_t tally_cfi_pointer_read(const struct tally_cfi_section *section,
				struct tally_reader *reader, uint8_t encoding);

/* Runs a function's instructions, one row at a time. */
enum { TALLY_CFI_REMEMBER_MAX = 16 };

struct tally_cfi_program {
	const struct tally_cfi_section *section;
	struct tally_cfi_cie cie;
	struct tally_reader reader;
	uint32_t register_count;
	uint32_t steps_left;
	uint32_t remembered;
	bool bad;           /* the instructions are malformed */
	uint64_t row_start; /* `row` holds for [row_start, row_end) */
	uint64_t row_end;
	uint64_t function_end;
	struct tally_cfi_row row;
	struct tally_cfi_row initial;
	struct tally_cfi_row stack[TALLY_CFI_REMEMBER_MAX];
};

/* Prepares the program of a function and runs its CIE's instructions.  Returns false when they are
 * malformed. */
bool tally_cfi_program_start(struct tally_cfi_program *program,
			     const struct tally_cfi_section *section,
			     const struct tally_cfi_cie *cie, const struct tally_cfi_fde *fde);

/* Runs to the next row.  Returns false at the end of the function, and when instructions are
 * malformed; then it sets `bad`. */
bool tally_cfi_program_next(struct tally_cfi_program *program);

/* A frame as expressions and rules see it. */
struct tally_unwind_frame {
	uint64_t registers[TALLY_UNWIND_REGISTERS];
	uint64_t known; /* bit n: register n's value is known */
	uint64_t bias;  /* address in the process − address in the object */
	const uint8_t *stack;
	size_t stack_size;
	uint64_t stack_address; /* of stack[0] */
	struct tally_unwind_memory other; /* a stack that a signal interrupted */
	uint64_t missed;        /* the last address that tally_unwind_load could not read */
	uint8_t word;           /* bytes of an address */
};

/* Reads 1, 2, 4 or 8 bytes of the copied stack.  Returns false, and sets frame->missed, when they
 * are not in the copy. */
bool tally_unwind_load(struct tally_unwind_frame *frame, uint64_t address, unsigned size,
		       uint64_t *value);

enum tally_expression_result {
	TALLY_EXPRESSION_OK,
	TALLY_EXPRESSION_BAD,
	TALLY_EXPRESSION_UNREADABLE, /* needs memory outside of the copied stack: frame->missed */
};

/* Evaluates a DWARF expression of CFI.  Pushes *initial (the CFA) first, unless `initial` is NULL.
 * Stores the result in *value. */
enum tally_expression_result tally_expression_run(const uint8_t *bytes, size_t size,
						  struct tally_unwind_frame *frame,
						  const uint64_t *initial, uint64_t *value);

/* Finds the function of an object that holds an address, and its call frame information.  Internal
 * to src/unwind.
 *
 * The linker writes an index into .eh_frame_hdr: a sorted table of pairs (a function's start, its
 * FDE).  It saves reading the whole section: an object with half a million functions costs nothing
 * until one of them is hit.  The table repeats what the section says, and may be wrong.  So its
 * order is checked when the index is made; each entry is checked against its FDE when it is used;
 * and the number of entries is checked against the section's FDEs when an address is in none of
 * them.  If a check fails, or there is no table (.debug_frame has none), the header of every FDE is
 * read, once.
 */

/* A function keeps only this.  Everything else is read from the section again: a copy would be
 * larger, and no faster to reach. */
struct tally_unwind_function {
	uint64_t start;
	uint32_t size;
	uint32_t entry; /* offset of the FDE in the section */
};

struct tally_function_index {
	struct tally_cfi_section section;
	/* the linker's table: pairs of 32-bit offsets from its address; NULL: `functions` is
	 * used */
	const uint8_t *linker;
	uint64_t linker_address;
	bool linker_is_complete; /* the section is known to have no more FDEs than the table */
	size_t count;
	TALLY_VECTOR(struct tally_unwind_function) functions; /* sorted by start */
};

/* Makes an index over a section, with the bytes of its .eh_frame_hdr (NULL: none).  The bytes of
 * both must outlive it.  Returns 0 or -ENOMEM. */
int tally_function_index_init(struct tally_function_index *index,
			      const struct tally_cfi_section *section,
			      const struct tally_cfi_section *linker);
void tally_function_index_release(struct tally_function_index *index);

/* Reads the function at a position (below `count`).  Returns false when the linker's table is wrong
 * about it. */
bool tally_function_index_at(const struct tally_function_index *index, size_t position,
			     struct tally_unwind_function *function);

/* Finds the last function that starts at or below an address: its position and its start.  Returns
 * false when there is none.  Does not check that the function reaches up to the address. */
bool tally_function_index_below(const struct tally_function_index *index, uint64_t address,
				size_t *position, uint64_t *start);

/* Returns the start of the next function behind a position, or UINT64_MAX behind the last one. */
uint64_t tally_function_index_next(const struct tally_function_index *index, size_t position);

/* Finds the function that holds an address.  If it finds that the linker's table is wrong, it reads
 * the section instead and sets *is_anew: `count` and the meaning of positions have changed. */
bool tally_function_index_find(struct tally_function_index *index, uint64_t address,
			       size_t *position, struct tally_unwind_function *function,
			       bool *is_anew);

/* Starts the program of a function in the index.  Returns false when its rules are malformed. */
bool tally_function_index_start(const struct tally_function_index *index,
				const struct tally_unwind_function *function,
				struct tally_cfi_program *program);

/* Rules in the form that a step needs, and the functions compiled to them.  Internal to
 * src/unwind. */

enum tally_unwind_rule_kind {
	TALLY_RULE_UNMAPPED,  /* nothing is mapped there */
	/* mapped, but its file is not known or not an object of this machine */
	TALLY_RULE_NO_TABLE,
	TALLY_RULE_NONE,      /* the object has no rules there */
	TALLY_RULE_BAD,       /* the rules are malformed */
	TALLY_RULE_OUTERMOST, /* the frame has no caller */
	TALLY_RULE_SWITCHED,  /* the frame's caller is on another stack */
	TALLY_RULE_GO_TO_C,   /* Go calls C: the caller is on the goroutine's stack */
	TALLY_RULE_C_TO_GO,   /* C calls Go: the caller is on the thread's stack */
	TALLY_RULE_SAVED,     /* CFA, return address, saved registers */
	TALLY_RULE_CODE,      /* the same, made from the code: true if a call left the address */
	/* the same, with a CFA that is 8 bytes higher in the second half of the PLT's entry */
	TALLY_RULE_PLT,
	TALLY_RULE_ROW,       /* the forms above can't express it: `row` */
};

/* More than any compiler saves: rbx rbp r12–r15; x19–x30. */
enum { TALLY_RULE_SAVED_MAX = 12 };

/* Values that name no register or word: saved words count from the CFA; the return address is still
 * in its register. */
enum { TALLY_RULE_BASE_IS_CFA = 0xff, TALLY_RULE_RETURN_IN_REGISTER = INT16_MIN };

/* A register that is not listed keeps its value.  Words are 8 bytes. */
struct tally_unwind_rule {
	uint8_t kind;
	uint8_t cfa_register;
	/* the CFA is the word stored at register + offset, + cfa_added */
	bool cfa_is_loaded;
	/* TALLY_RULE_PLT: from this offset in a 16-byte entry on, the CFA is 8 bytes higher */
	uint8_t plt_from;
	int32_t cfa_offset;
	/* the return address is at CFA + 8 × this, or TALLY_RULE_RETURN_IN_REGISTER */
	int16_t return_word;
	/* saved_word counts from the CFA, or from a register (rbp in a realigned stack) */
	uint8_t base_register;
	uint8_t saved_count;
	int16_t cfa_added; /* to a loaded CFA, in bytes */
	uint16_t lost;     /* bit n: the caller's value of register n is unknown */
	union {
		struct {
			uint8_t saved_register[TALLY_RULE_SAVED_MAX];
			int16_t saved_word[TALLY_RULE_SAVED_MAX];
		};
		const struct tally_cfi_row *row;
	};
};

/* A compiled function: `count` rows, from `first` on.  `count` is 0 while it is not compiled. */
struct tally_compiled_function {
	uint32_t first, count;
	uint32_t size; /* of the function, in bytes */
};

struct tally_compiled_row {
	uint32_t start; /* offset from the function's start, in bytes */
	uint32_t rule;
};

/* The functions of one index that were hit, compiled.  Rules never move: pointers to them stay
 * valid. */
struct tally_unwind_rules {
	/* by position in the index; NULL: none compiled yet */
	struct tally_compiled_function *functions;
	TALLY_VECTOR(struct tally_compiled_row) rows;
	/* distinct, except for TALLY_RULE_ROW */
	TALLY_VECTOR(const struct tally_unwind_rule *) rules;
	struct tally_map known;                               /* hash → rule */
	struct tally_arena arena;
};

/* Addresses in the object that share one rule: [start, end). */
struct tally_rule_range {
	uint64_t start, end;
};

/* Finds the rule at an address in the object, and sets *range to the addresses around it that the
 * rule holds for.  Compiles the function on its first use.  Returns NULL, and leaves *range as it
 * is, when the index has no function there or when memory is out; in the second case it sets
 * *is_failed. */
const struct tally_unwind_rule *tally_unwind_rules_find(struct tally_unwind_rules *rules,
							struct tally_function_index *index,
							uint64_t address,
							struct tally_rule_range *range,
							bool *is_failed);

/* Returns the rule of a frame that the code describes, or NULL when the rule has no compact form or
 * memory is out. */
const struct tally_unwind_rule *tally_unwind_rules_of_frame(struct tally_unwind_rules *rules,
							    const struct tally_code_frame *frame);

/* Drops the compiled functions: the index was read anew, and its positions mean other functions. */
void tally_unwind_rules_renumber(struct tally_unwind_rules *rules);

/* Returns the heap memory that the rules take, in bytes.  `index` is the one that they belong
 * to. */
size_t tally_unwind_rules_bytes(const struct tally_unwind_rules *rules,
				const struct tally_function_index *index);

void tally_unwind_rules_release(struct tally_unwind_rules *rules);

/* The rules of one object.  Internal to this room (and for tests that make their own sections). */

/* .eh_frame, then .debug_frame, of the object and of its debug file.  They are searched in this
 * order. */
enum { TALLY_UNWIND_INDEXES = 3 };

struct tally_unwind_table {
	struct tally_object *object, *debug; /* NULL for a table from bytes */
	enum tally_unwind_machine machine;
	uint64_t entry_point; /* 0: none */
	unsigned index_count;
	struct tally_function_index indexes[TALLY_UNWIND_INDEXES];
	struct tally_unwind_rules rules[TALLY_UNWIND_INDEXES]; /* compiled from each index */
	/* tally_unwind_table_use_functions() */
	enum tally_unwind_function_kind (*find_function)(void *context, uint64_t address,
							 uint64_t *start, uint64_t *end);
	void *functions;
	bool is_go; /* a Go program: its runtime switches stacks */
	bool is_ghc; /* a Haskell program: its runtime leaves pages of the stack untouched */
	struct tally_unwind_rules made; /* made from code without rules */
	/* of a segment without rules and symbols; empty: not searched, or too large */
	struct tally_code_starts starts;
	bool has_starts; /* `starts` was searched for */
	struct tally_code_starts gap; /* of the last piece without rules in a large segment */
	TALLY_VECTOR(uint64_t) code_sections; /* where sections of code begin, ascending */
	bool has_code_sections;               /* they were searched for */
};

/* Makes a table over one section's bytes, which must outlive it.  `linker` is its .eh_frame_hdr, or
 * NULL.  Returns 0 or -ENOMEM. */
int tally_unwind_table_new_from_bytes(const struct tally_cfi_section *section,
				      const struct tally_cfi_section *linker,
				      struct tally_unwind_table **out, struct tally_error *err);

enum tally_unwind_lookup { TALLY_UNWIND_FOUND, TALLY_UNWIND_NOT_FOUND, TALLY_UNWIND_MALFORMED };

/* Finds the row at an address in the object, by running the function's program.  Leaves the row in
 * program->row. */
enum tally_unwind_lookup tally_unwind_table_lookup(struct tally_unwind_table *table,
						   uint64_t address,
						   struct tally_cfi_program *program);

/* Finds the compiled rule at an address in the object, of kind TALLY_RULE_NONE, _BAD or better, and
 * the addresses that it holds for.  Compiles a function that it meets for the first time.  The rule
 * lives as long as the table.  Returns NULL when memory is out; tally_unwind_table_lookup() needs
 * none. */
const struct tally_unwind_rule *tally_unwind_table_rule(struct tally_unwind_table *table,
							uint64_t address,
							struct tally_rule_range *range);

/* True if the address is in the first function of a program or of its dynamic linker. */
bool tally_unwind_table_is_entry(const struct tally_unwind_table *table, uint64_t address);

/* Finds the frame at an address without rules and symbols, and where its function begins, from the
 * code.  The result is not quite certain: the caller checks the return address.  Returns false when
 * the code doesn't tell. */
bool tally_unwind_table_begun_frame(struct tally_unwind_table *table, uint64_t address,
				    uint64_t *start, struct tally_code_frame *frame);

/* Makes a rule from the code for an address that no index has a rule for.  Returns NULL where the
 * code doesn't tell. */
const struct tally_unwind_rule *tally_unwind_table_code_rule(struct tally_unwind_table *table,
							     uint64_t address);

/* The registers of a machine, in DWARF's numbering. */

struct tally_unwind_layout {
	uint8_t count; /* registers 0 … count − 1 */
	uint8_t sp, fp, pc;
	uint8_t word; /* bytes of an address */
	uint8_t return_register; /* the column of the caller's pc */
	/* bytes from a frame record up to the caller's sp; 0: unknown */
	uint8_t top_of_pair;
	/* pointer authentication: the high bits of a return address are a signature */
	bool has_signed_returns;
};

/* Returns the registers of a machine; never NULL.  Resolves TALLY_UNWIND_HOST.  An unknown machine
 * has no registers. */
const struct tally_unwind_layout *tally_unwind_layout(enum tally_unwind_machine machine);

/* A walk up a stack, frame by frame: the state that the ways of taking a step share.  Internal to
 * src/unwind. */

enum { TALLY_UNWIND_WORD = 8 };

struct tally_unwind_walk {
	const struct tally_unwind_request *request;
	const struct tally_unwind_layout *layout;
	/* the address bits of a return address; the others are its signature */
	uint64_t return_mask;
	struct tally_unwind_frame frame;
	const struct tally_unwind_rule *rule; /* of the current frame */
	/* of the current frame, if its rule is TALLY_RULE_ROW */
	const struct tally_cfi_row *row;
	struct tally_unwind_place place;      /* of the current frame, if has_place */
	bool has_place;
	bool is_exact;      /* pc is the next instruction to run, not a return address */
	bool is_by_pointer; /* the step to this frame was by frame pointer: a guess */
	bool is_fetched;    /* the words of the stack were loaded already: no need to prefetch */
	/* pc is a function's first byte: no call left it (tally_unwind_is_made_up()) */
	bool is_made_up;
	bool is_leaf_mistrusted; /* the leaf's rules are wrong */
	bool is_at_zero;         /* ended by a return address of 0 */
	bool has_interrupted;    /* the leaf is a signal's trampoline: no call led to it */
	uint64_t switched_at; /* tally_unwind_extent */
	bool is_in_go;
	enum tally_unwind_end end;
	struct tally_cfi_program program; /* large; only the interpreter sets it up */
};

static inline uint64_t tally_unwind_get(const struct tally_unwind_walk *walk, unsigned reg)
{
	return walk->frame.registers[reg];
}

static inline bool tally_unwind_knows(const struct tally_unwind_walk *walk, unsigned reg)
{
	return walk->frame.known >> reg & 1;
}

static inline uint64_t tally_unwind_lookup_address(const struct tally_unwind_walk *walk)
{
	return tally_unwind_get(walk, walk->layout->pc) - !walk->is_exact;
}

static inline bool tally_unwind_stop(struct tally_unwind_walk *walk, enum tally_unwind_end end)
{
	walk->end = end;
	return false;
}

/* Finds the place of the current frame, once.  Returns false when nothing is mapped there. */
bool tally_unwind_locate(struct tally_unwind_walk *walk);

/* True if the frame pointer leads to another stack than the copied one. */
bool tally_unwind_is_linked_apart(const struct tally_unwind_walk *walk);

/* Ends the walk because a word of the stack that the rules name could not be read.  The end says
 * whether the copy was too short or the rules are bad.  Returns false. */
bool tally_unwind_stop_at_missed(struct tally_unwind_walk *walk);

/* Makes the caller's registers the current ones.  Returns false, and ends the walk, when they can't
 * be a caller's. */
bool tally_unwind_enter(struct tally_unwind_walk *walk, const uint64_t *registers, uint64_t known,
			bool is_exact);

/* Reads a saved word.  Below sp it is no longer in the copy; but then the function's last
 * instructions have popped it already, and the register holds it again.  (Compilers write no rules
 * for that: the function is about to return.)  Returns false when the word can't be had. */
bool tally_unwind_load_saved(struct tally_unwind_walk *walk, unsigned reg, uint64_t address,
			     uint64_t *value);

/* The ways of taking a step, other than by a compiled rule.  They return false at the walk's
 * end. */
bool tally_unwind_step_by_row(struct tally_unwind_walk *walk);
bool tally_unwind_step_by_frame_pointer(struct tally_unwind_walk *walk);
bool tally_unwind_step_without_table(struct tally_unwind_walk *walk);
bool tally_unwind_step_without_rules(struct tally_unwind_walk *walk);
/* from the sampled frame, whose rules are wrong: by what its code and the stack say */
bool tally_unwind_step_by_evidence(struct tally_unwind_walk *walk);

/* go_switch.c */
bool tally_unwind_step_from_c_to_go(struct tally_unwind_walk *walk); /* TALLY_RULE_GO_TO_C */
bool tally_unwind_step_from_go_to_c(struct tally_unwind_walk *walk); /* TALLY_RULE_C_TO_GO */
/* Makes the stack around `sp` the current one, so that a missing word is looked for there.  The
 * others are members of tally_unwind_extent. */
void tally_unwind_change_stack(struct tally_unwind_walk *walk, uint64_t sp, uint64_t switched_at,
			       bool is_in_go);
/* Returns which of these rules holds behind a call in a Go object; TALLY_RULE_NONE: neither. */
enum tally_unwind_rule_kind tally_unwind_go_switch(struct tally_unwind_walk *walk);

/* Takes a step from code that a C function jumped to, with neither rules nor frames of its own, to
 * that function (unwind_entered.c).  Returns false, and leaves the walk as it is, if it finds no
 * such function. */
bool tally_unwind_step_entered(struct tally_unwind_walk *walk);
/* The same, only with functions that earlier walks found. */
bool tally_unwind_step_entered_before(struct tally_unwind_walk *walk);

/* Takes a step by the rules at pc.  Returns false when there are none, or at the walk's end. */
bool tally_unwind_step_by_rules(struct tally_unwind_walk *walk);

/* True if a call left the address on the stack: the code in front of it is a call. */
bool tally_unwind_is_left_by_call(struct tally_unwind_walk *walk, uint64_t address);

/* True if a call left the address, or it is where a stack was made to begin: a function's first
 * byte, Go's goexit. */
bool tally_unwind_is_return_address(struct tally_unwind_walk *walk, uint64_t address);

/* True in the first instructions of a program or of its dynamic linker: they have no caller. */
bool tally_unwind_is_entry_point(struct tally_unwind_walk *walk);

/* True if the return address, in an object, was left by no call: it is a function's first byte, or
 * that of code that ends the program or the thread.  Code that sets up a stack puts it there: Go
 * for the stacks of its scheduler, makecontext(3), libraries of fibers.  The frame has no caller. */
bool tally_unwind_is_made_up(struct tally_unwind_walk *walk);

/* True if the code at pc can be read and is where a signal handler returns to. */
bool tally_unwind_is_at_sigreturn(struct tally_unwind_walk *walk);
/* True if a signal handler returns to the address. */
bool tally_unwind_is_signal_return(struct tally_unwind_walk *walk, uint64_t address);
bool tally_unwind_step_over_signal(struct tally_unwind_walk *walk);

/* Keeps the last whole stack of a thread, so that the next walk ends where it meets it.  Internal
 * to src/unwind; unwind_chain.c explains it. */

enum { TALLY_CHAIN_FRAMES = 512, TALLY_CHAIN_WORDS = 1024 };

/* A frame with the registers that the rest of a walk depends on. */
struct tally_unwind_chain_frame {
	uint64_t pc, sp;
	uint64_t fp;        /* if needs_fp */
	/* the chain's words below this index belong to this step and to the frames outside of it */
	uint32_t words_end;
	bool needs_fp;
	bool is_by_pointer; /* how it was reached, on which is_made_up depends */
	bool is_made_up;    /* tally_unwind_is_made_up(); only the outermost can be */
};

struct tally_chain_word {
	uint64_t address, value;
};

/* A frame of the walk under way, before its step. */
struct tally_chain_step {
	uint64_t pc, sp, fp, known;
	const struct tally_unwind_rule *rule;
	bool is_exact, is_by_pointer, is_made_up;
};

struct tally_unwind_chain {
	uint64_t space;
	uint32_t frame_count, word_count;
	/* For the walk under way: the frames below this index may be met.  Their words are equal in
	 * the new copy, and the walk has not passed them. */
	uint32_t at;
	struct tally_unwind_chain_frame frames[TALLY_CHAIN_FRAMES]; /* outermost first, as are the words */
	struct tally_chain_word words[TALLY_CHAIN_WORDS];
	struct tally_chain_step steps[TALLY_CHAIN_FRAMES]; /* leaf first */
};

/* Prepares the request's chain for the walk.  Returns NULL where a chain can't be used. */
struct tally_unwind_chain *tally_unwind_chain_begin(const struct tally_unwind_walk *walk);

static inline void tally_unwind_chain_note(struct tally_unwind_chain *chain,
					   const struct tally_unwind_walk *walk, size_t at)
{
	if (at < TALLY_CHAIN_FRAMES)
		chain->steps[at] = (struct tally_chain_step){
			.pc = tally_unwind_get(walk, TALLY_UNWIND_RIP),
			.sp = tally_unwind_get(walk, TALLY_UNWIND_RSP),
			.fp = tally_unwind_get(walk, TALLY_UNWIND_RBP),
			.known = walk->frame.known,
			.rule = walk->rule,
			.is_exact = walk->is_exact,
			.is_by_pointer = walk->is_by_pointer,
			.is_made_up = walk->is_made_up
		};
}

/* Returns how many of the chain's frames make up the rest of the walk, the current frame included.
 * Returns 0 unless the current frame is one of the chain, and everything that decides on the frames
 * outside of it is the same. */
static inline size_t tally_unwind_chain_meet(struct tally_unwind_chain *chain,
					     const struct tally_unwind_walk *walk)
{
	uint64_t sp = tally_unwind_get(walk, TALLY_UNWIND_RSP);
	while (chain->at && chain->frames[chain->at - 1].sp < sp)
		chain->at--;
	if (!chain->at)
		return 0;
	const struct tally_unwind_chain_frame *frame = &chain->frames[chain->at - 1];
	if (frame->sp != sp || frame->pc != tally_unwind_get(walk, TALLY_UNWIND_RIP) ||
	    walk->is_exact || walk->is_by_pointer != frame->is_by_pointer ||
	    !tally_unwind_knows(walk, TALLY_UNWIND_RSP))
		return 0;
	bool has_fp = tally_unwind_knows(walk, TALLY_UNWIND_RBP) &&
		      tally_unwind_get(walk, TALLY_UNWIND_RBP) == frame->fp;
	if (!frame->needs_fp || has_fp)
		return chain->at;
	return 0;
}

/* Keeps the stack of a walk that reached the outermost frame.  `count` of its steps were noted; the
 * chain's first `met` frames are the rest. */
void tally_unwind_chain_learn(struct tally_unwind_chain *chain, struct tally_unwind_walk *walk,
			      size_t count, size_t met);

/* Remembers the rules of addresses.
 *
 * One rule holds for a stretch of a function, often for most of it.  So the cache remembers
 * stretches, grouped by regions of code.  A sample's ip has rarely been seen before, but it nearly
 * always lies beside one that has; and the return addresses of one function share a line of the
 * CPU's cache.  A lookup reads one line, or also its neighbour: when a line is needed for another
 * region, its content moves to the neighbour.
 *
 * The key is the region's address in the process and the space, which is the number of a set of
 * mappings.  A process whose mappings change gets another number, so nothing must ever be removed.
 */

enum {
	TALLY_UNWIND_CACHE_BITS = 15,
	TALLY_UNWIND_PLACE_BITS = 9, /* of an offset in a region */
	TALLY_UNWIND_REGION = 1 << TALLY_UNWIND_PLACE_BITS,
	TALLY_UNWIND_STRETCHES = 6,
	TALLY_UNWIND_RULE_ALIGN = 8,
};

/* A line of the CPU's cache.  A stretch consists of the rule's address (46 bits of it: rules lie at
 * multiples of eight), the offset of its first byte in the region, and the number of bytes behind
 * that one.  A stretch of 0 is empty, and so are those behind it. */
struct tally_unwind_region {
	uint64_t address, space; /* address of the region's first byte; number of the mappings */
	uint64_t stretches[TALLY_UNWIND_STRETCHES];
};

struct tally_unwind_cache {
	struct tally_unwind_region regions[1 << TALLY_UNWIND_CACHE_BITS];
};

static inline struct tally_unwind_region *tally_unwind_cache_region(
	struct tally_unwind_cache *cache, uint64_t address, uint64_t space)
{
	uint64_t mixed = (address / TALLY_UNWIND_REGION + space * 0x9e3779b97f4a7c15ull) *
			 0xd6e8feb86659fd93ull;
	return &cache->regions[mixed >> (64 - TALLY_UNWIND_CACHE_BITS)];
}

static inline struct tally_unwind_region *tally_unwind_cache_other(
	struct tally_unwind_cache *cache, const struct tally_unwind_region *region)
{
	return &cache->regions[(region - cache->regions) ^ 1];
}

static inline bool tally_unwind_region_is(const struct tally_unwind_region *region,
					  uint64_t address, uint64_t space)
{
	return address - region->address < TALLY_UNWIND_REGION && region->space == space;
}

/* Returns the rule of an address in the region, or NULL if it is not known. */
static inline const struct tally_unwind_rule *tally_unwind_region_rule(
	const struct tally_unwind_region *region, uint64_t address)
{
	const uint64_t mask = TALLY_UNWIND_REGION - 1;
	for (unsigned i = 0; i < TALLY_UNWIND_STRETCHES; i++) {
		uint64_t stretch = region->stretches[i];
		if (((address - (stretch >> TALLY_UNWIND_PLACE_BITS)) & mask) <= (stretch & mask))
			return (const void *)(uintptr_t)((stretch >> 2 * TALLY_UNWIND_PLACE_BITS) *
							 TALLY_UNWIND_RULE_ALIGN);
	}
	return NULL;
}

static inline const struct tally_unwind_rule *tally_unwind_cache_get(
	struct tally_unwind_cache *cache, uint64_t address, uint64_t space)
{
	const struct tally_unwind_region *region = tally_unwind_cache_region(cache, address, space);
	if (!tally_unwind_region_is(region, address, space))
		region = tally_unwind_cache_other(cache, region);
	if (!tally_unwind_region_is(region, address, space))
		return NULL;
	return tally_unwind_region_rule(region, address);
}

/* Remembers the rule of an address.  It holds for at least `below` bytes before the address and
 * `above` bytes behind it. */
void tally_unwind_cache_put(struct tally_unwind_cache *cache, uint64_t address, uint64_t space,
			    const struct tally_unwind_rule *rule, uint64_t below, uint64_t above);

#endif
