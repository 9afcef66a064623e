/* Reads call frame information: .eh_frame and .debug_frame bytes → entries → rules.  Internal to
 * src/unwind.
 *
 * Follows DWARF 5 section 6.4, and the Linux Standard Base 5.0 ("Exception Frames") where .eh_frame
 * differs.  Nothing here allocates memory.  Every read stays within the section, and every loop
 * ends with the section's bytes.  Addresses are little-endian, with 8 bytes; i386's have 4.
 */
#ifndef TALLY_UNWIND_CFI_H
#define TALLY_UNWIND_CFI_H

#include "base/reader.h"
#include "unwind/unwind.h"

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

#endif
