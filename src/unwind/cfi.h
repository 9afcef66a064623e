/* Call frame information as data: .eh_frame and .debug_frame bytes → entries → rules.  Inside this
 * room only.
 *
 * Follows DWARF 5 section 6.4, and the Linux Standard Base 5.0 ("Exception Frames") where .eh_frame
 * differs.  Nothing here allocates; every read is bounded by the section, every loop by its bytes.
 * Addresses are 8 bytes, little-endian.
 */
#ifndef TALLY_UNWIND_CFI_H
#define TALLY_UNWIND_CFI_H

#include "base/reader.h"
#include "unwind/unwind.h"

/* A section's bytes, borrowed.  At most TALLY_CFI_SECTION_MAX of them: offsets have 32 bits. */
#define TALLY_CFI_SECTION_MAX 0xffffff00u

struct tally_cfi_section {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;      /* of the first byte, in the object */
	/* what DW_EH_PE_textrel and _datarel are relative to; 0: not known */
	uint64_t text_address;
	uint64_t data_address;
	enum tally_unwind_machine machine; /* whose registers the rules speak of */
	bool is_debug_frame;
	bool ends_at_zero; /* `size` is but a bound: a zero length ends the section */
};

enum tally_cfi_kind { TALLY_CFI_CIE, TALLY_CFI_FDE, TALLY_CFI_NOTHING };

/* The frame that CIE and FDE share: a length, and the CIE's offset or the mark that this is one. */
struct tally_cfi_entry {
	enum tally_cfi_kind kind;
	uint32_t offset; /* of the entry, in the section */
	uint32_t body;   /* of what follows the id */
	uint32_t end;    /* of the entry, hence the offset of the next */
	uint32_t cie;    /* an FDE's: the offset of its CIE */
};

/* Common information: what the functions of one object file share. */
struct tally_cfi_cie {
	uint32_t offset;
	uint32_t instructions, instructions_end;
	uint32_t return_register;
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding;     /* DW_EH_PE of the FDEs' addresses */
	uint8_t segment_size; /* bytes of a segment selector before an FDE's address */
	bool has_augmentation_data;
	bool is_signal_frame; /* augmentation "S": what lies below was interrupted, it did not call */
};

/* Frame description: one function's address range and instructions. */
struct tally_cfi_fde {
	uint64_t start, end;
	uint32_t instructions, instructions_end;
};

/* How the caller's value of a register is found. */
enum tally_cfi_rule_kind {
	TALLY_CFI_UNSPECIFIED, /* taken as the same value; for sp: the CFA */
	TALLY_CFI_UNDEFINED,
	TALLY_CFI_SAME_VALUE,
	TALLY_CFI_OFFSET,         /* saved at CFA + value */
	TALLY_CFI_VAL_OFFSET,     /* is CFA + value */
	TALLY_CFI_REGISTER,       /* is in another register; of a CFA: that register + value */
	TALLY_CFI_EXPRESSION,     /* saved where the expression says; of a CFA: is the expression */
	TALLY_CFI_VAL_EXPRESSION, /* is what the expression gives */
};

struct tally_cfi_rule {
	uint8_t kind;
	uint8_t reg;
	uint32_t size; /* bytes of the expression, which begins at section offset `value` */
	int64_t value;
};

/* The rules that hold for one range of addresses: a row of DWARF's imagined table.
 * Plain data. */
struct tally_cfi_row {
	struct tally_cfi_rule cfa;
	struct tally_cfi_rule registers[TALLY_UNWIND_REGISTERS];
	/* bit n: register n may have a rule; all others are TALLY_CFI_UNSPECIFIED */
	uint64_t ruled;
	const struct tally_cfi_section *section; /* that expressions lie in */
	uint8_t return_register;
	bool is_signal_frame;
};

/* Reads the entry at `offset`.  False at the section's end or where its lengths stop making
 * sense. */
bool tally_cfi_entry_read(const struct tally_cfi_section *section, size_t offset,
			  struct tally_cfi_entry *entry);

/* False when the entry is malformed or of a kind that is not known. */
bool tally_cfi_cie_read(const struct tally_cfi_section *section,
			const struct tally_cfi_entry *entry, struct tally_cfi_cie *cie);
bool tally_cfi_fde_read(const struct tally_cfi_section *section,
			const struct tally_cfi_entry *entry, const struct tally_cfi_cie *cie,
			struct tally_cfi_fde *fde);

/* A pointer in DW_EH_PE encoding.  The reader must have been made over the section's bytes.
 * Indirect pointers, unknown encodings and unknown bases fail the reader. */
uint64_t tally_cfi_pointer_read(const struct tally_cfi_section *section,
				struct tally_reader *reader, uint8_t encoding);

/* Runs the instructions of a function, one row after the other. */
enum { TALLY_CFI_REMEMBER_MAX = 16 };

struct tally_cfi_program {
	const struct tally_cfi_section *section;
	struct tally_cfi_cie cie;
	struct tally_reader reader;
	uint32_t register_count;
	uint32_t steps_left;
	uint32_t remembered;
	bool bad;           /* the instructions make no sense */
	uint64_t row_start; /* `row` holds for [row_start, row_end) */
	uint64_t row_end;
	uint64_t function_end;
	struct tally_cfi_row row;
	struct tally_cfi_row initial;
	struct tally_cfi_row stack[TALLY_CFI_REMEMBER_MAX];
};

/* Runs the CIE's instructions.  False when they are bad. */
bool tally_cfi_program_start(struct tally_cfi_program *program,
			     const struct tally_cfi_section *section,
			     const struct tally_cfi_cie *cie, const struct tally_cfi_fde *fde);

/* Runs to the next row.  False at the end of the function, and with `bad` set when the instructions
 * are. */
bool tally_cfi_program_next(struct tally_cfi_program *program);

/* What expressions and rules see of a frame. */
struct tally_unwind_frame {
	uint64_t registers[TALLY_UNWIND_REGISTERS];
	uint64_t known; /* bit n: register n's value is known */
	uint64_t bias;  /* address in the process − address in the object */
	const uint8_t *stack;
	size_t stack_size;
	uint64_t stack_address; /* of stack[0] */
	struct tally_unwind_memory other; /* a stack that a signal interrupted */
	uint64_t missed;        /* the last address that tally_unwind_load could not read */
};

/* Reads 1, 2, 4 or 8 bytes of the copied stack. */
bool tally_unwind_load(struct tally_unwind_frame *frame, uint64_t address, unsigned size,
		       uint64_t *value);

enum tally_expression_result {
	TALLY_EXPRESSION_OK,
	TALLY_EXPRESSION_BAD,
	TALLY_EXPRESSION_UNREADABLE, /* needs memory outside the copied stack: frame->missed */
};

/* Evaluates a DWARF expression of CFI; `initial` (the CFA) is pushed first unless NULL. */
enum tally_expression_result tally_expression_run(const uint8_t *bytes, size_t size,
						  struct tally_unwind_frame *frame,
						  const uint64_t *initial, uint64_t *value);

#endif
