/* Decodes from the outside in: pointers, entries, CIEs, FDEs, and then instructions, which run
 * until a row is complete.  Limits on bytes and steps bound the time that a forged section can
 * cost. */
#include "unwind/unwind_internal.h"

#include <string.h>

/* DW_EH_PE: the low four bits are the format; the next three say what the value is relative to. */
enum {
	PE_ABSPTR = 0x00, PE_ULEB128 = 0x01, PE_UDATA2 = 0x02, PE_UDATA4 = 0x03, PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09, PE_SDATA2 = 0x0a, PE_SDATA4 = 0x0b, PE_SDATA8 = 0x0c, PE_FORMAT = 0x0f,
	PE_PCREL = 0x10, PE_TEXTREL = 0x20, PE_DATAREL = 0x30, PE_ALIGNED = 0x50, PE_BASE = 0x70,
	PE_INDIRECT = 0x80, PE_OMIT = 0xff
};

static struct tally_reader reader_over(const struct tally_cfi_section *section, uint32_t offset,
				       uint32_t end)
{
	struct tally_reader reader;
	tally_reader_init(&reader, section->bytes, end, false);
	tally_reader_seek(&reader, offset);
	return reader;
}

static bool is_narrow(const struct tally_cfi_section *section)
{
	return section->machine == TALLY_UNWIND_I386;
}

static uint64_t read_address(const struct tally_cfi_section *section, struct tally_reader *reader)
{
	if (is_narrow(section))
		return tally_reader_u32(reader);
	return tally_reader_u64(reader);
}

/* Returns an address without the bits that the machine does not have. */
static uint64_t cut_address(const struct tally_cfi_section *section, uint64_t address)
{
	if (is_narrow(section))
		return (uint32_t)address;
	return address;
}

static uint64_t read_format(const struct tally_cfi_section *section, struct tally_reader *reader,
			    uint8_t format)
{
	switch (format) {
	case PE_ABSPTR:
		return read_address(section, reader);
	case PE_UDATA8:
	case PE_SDATA8:
		return tally_reader_u64(reader);
	case PE_ULEB128:
		return tally_reader_uleb(reader);
	case PE_SLEB128:
		return (uint64_t)tally_reader_sleb(reader);
	case PE_UDATA2:
		return tally_reader_u16(reader);
	case PE_SDATA2:
		return (uint64_t)(int16_t)tally_reader_u16(reader);
	case PE_UDATA4:
		return tally_reader_u32(reader);
	case PE_SDATA4:
		return (uint64_t)(int32_t)tally_reader_u32(reader);
	}
	tally_reader_fail(reader);
	return 0;
}

uint64_t tally_cfi_pointer_read(const struct tally_cfi_section *section,
				struct tally_reader *reader, uint8_t encoding)
{
	uint64_t here = section->address + tally_reader_offset(reader);
	uint64_t base = 0;
	switch (encoding & (PE_BASE | PE_INDIRECT)) {
	case 0:
		break;
	case PE_PCREL:
		base = here;
		break;
	case PE_TEXTREL:
		base = section->text_address;
		if (base == 0)
			tally_reader_fail(reader);
		break;
	case PE_DATAREL:
		base = section->data_address;
		if (base == 0)
			tally_reader_fail(reader);
		break;
	case PE_ALIGNED:
		tally_reader_skip(reader, -here & (is_narrow(section) ? 3 : 7));
		return read_address(section, reader);
	/* DW_EH_PE_funcrel: the function is not known yet.  Indirect pointers: the value that they
	 * point at is not in the file. */
	default:
		tally_reader_fail(reader);
	}
	return cut_address(section, base + read_format(section, reader, encoding & PE_FORMAT));
}

bool tally_cfi_entry_read(const struct tally_cfi_section *section, size_t offset,
			  struct tally_cfi_entry *entry)
{
	if (offset >= section->size || section->size > TALLY_CFI_SECTION_MAX)
		return false;
	struct tally_reader reader = reader_over(section, (uint32_t)offset,
						 (uint32_t)section->size);
	*entry = (struct tally_cfi_entry){ .kind = TALLY_CFI_NOTHING, .offset = (uint32_t)offset };
	uint64_t length = tally_reader_u32(&reader);
	bool is_64bit = length == 0xffffffff;
	if (is_64bit)
		length = tally_reader_u64(&reader);
	else if (length >= 0xfffffff0)
		return false; /* reserved */
	if (length == 0) {
		/* crtend.o ends the section with a zero length.  The linker may put more entries
		 * behind it; readers that know the section's size go on there. */
		entry->body = entry->end = (uint32_t)tally_reader_offset(&reader);
		return !reader.failed && !section->ends_at_zero;
	}
	if (reader.failed || length > tally_reader_left(&reader))
		return false;
	size_t id_at = tally_reader_offset(&reader);
	entry->end = (uint32_t)(id_at + length);
	/* In .eh_frame the id has 4 bytes even behind a 64-bit length. */
	bool is_wide = is_64bit && section->is_debug_frame;
	if (length < (is_wide ? 8 : 4))
		return true; /* too short for an id: callers skip it */
	uint64_t id = is_wide ? tally_reader_u64(&reader) : tally_reader_u32(&reader);
	entry->body = (uint32_t)tally_reader_offset(&reader);
	uint64_t cie_mark = 0;
	if (section->is_debug_frame)
		cie_mark = is_wide ? UINT64_MAX : UINT32_MAX;
	if (id == cie_mark) {
		entry->kind = TALLY_CFI_CIE;
		return true;
	}
	/* An FDE in .debug_frame names its CIE by an offset in the section; in .eh_frame by the
	 * distance back from this field. */
	uint64_t cie = id;
	if (!section->is_debug_frame)
		cie = id_at - id;
	if (cie < section->size) {
		entry->kind = TALLY_CFI_FDE;
		entry->cie = (uint32_t)cie;
	}
	return true;
}

/* Reads augmentation data.  Each letter behind the z ("zPLRS") announces one item, in the letters'
 * order.  Returns false when a letter is unknown or data is missing. */
static bool read_augmentation(const struct tally_cfi_section *section, struct tally_reader *reader,
			      const char *letters, struct tally_cfi_cie *cie)
{
	cie->has_augmentation_data = true;
	uint64_t size = tally_reader_uleb(reader);
	if (size > tally_reader_left(reader))
		return false;
	size_t end = tally_reader_offset(reader) + size;
	for (; *letters; letters++) {
		uint8_t encoding;
		switch (*letters) {
		case 'R':
			cie->encoding = tally_reader_u8(reader);
			break;
		/* The personality routine for exceptions.  Skip its pointer, whatever the
		 * encoding. */
		case 'P':
			encoding = tally_reader_u8(reader);
			if ((encoding & PE_BASE) == PE_ALIGNED)
				tally_cfi_pointer_read(section, reader, PE_ALIGNED);
			else if (encoding != PE_OMIT)
				read_format(section, reader, encoding & PE_FORMAT);
			break;
		/* The encoding of each FDE's pointer to its exception table.  FDEs skip the pointer
		 * by its length. */
		case 'L':
			tally_reader_u8(reader);
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B': /* arm64: return addresses are signed with the other key */
		case 'G': /* arm64: the frame's memory is tagged.  Neither changes the rules. */
			break;
		default:
			return false;
		}
	}
	if (reader->failed || tally_reader_offset(reader) > end)
		return false;
	tally_reader_seek(reader, end);
	return true;
}

/* The largest entries of real programs have some 10 KB.  A large forged one would be read again and
 * again: LEB128 may be padded to any length. */
enum { CIE_BYTES_MAX = 1 << 16, FDE_BYTES_MAX = 1 << 18 };

bool tally_cfi_cie_read(const struct tally_cfi_section *section,
			const struct tally_cfi_entry *entry, struct tally_cfi_cie *cie)
{
	if (entry->kind != TALLY_CFI_CIE || entry->end - entry->body > CIE_BYTES_MAX)
		return false;
	struct tally_reader reader = reader_over(section, entry->body, entry->end);
	*cie = (struct tally_cfi_cie){ .offset = entry->offset, .encoding = PE_ABSPTR };
	uint8_t version = tally_reader_u8(&reader);
	const char *augmentation = tally_reader_string(&reader);
	if (!augmentation || (version != 1 && version != 3 && version != 4))
		return false;
	if (strncmp(augmentation, "eh", 2) == 0) { /* gcc 2: a pointer to its exception table */
		read_address(section, &reader);
		augmentation += 2;
	}
	if (version == 4) {
		if (tally_reader_u8(&reader) != tally_unwind_layout(section->machine)->word)
			return false; /* size of an address, in bytes */
		cie->segment_size = tally_reader_u8(&reader);
	}
	cie->code_align = tally_reader_uleb(&reader);
	cie->data_align = tally_reader_sleb(&reader);
	uint64_t column = version == 1 ? tally_reader_u8(&reader) : tally_reader_uleb(&reader);
	if (reader.failed || column >= tally_unwind_layout(section->machine)->count)
		return false;
	cie->return_register = (uint32_t)column;
	if (augmentation[0] == 'z') {
		if (!read_augmentation(section, &reader, augmentation + 1, cie))
			return false;
	} else if (augmentation[0]) {
		return false; /* without z, the size of the data is unknown */
	}
	cie->instructions = (uint32_t)tally_reader_offset(&reader);
	cie->instructions_end = entry->end;
	return true;
}

bool tally_cfi_fde_read(const struct tally_cfi_section *section,
			const struct tally_cfi_entry *entry, const struct tally_cfi_cie *cie,
			struct tally_cfi_fde *fde)
{
	if (entry->kind != TALLY_CFI_FDE || entry->end - entry->body > FDE_BYTES_MAX)
		return false;
	struct tally_reader reader = reader_over(section, entry->body, entry->end);
	tally_reader_skip(&reader, cie->segment_size);
	fde->start = tally_cfi_pointer_read(section, &reader, cie->encoding);
	uint64_t size = read_format(section, &reader, cie->encoding & PE_FORMAT);
	if (cie->has_augmentation_data)
		tally_reader_skip(&reader, tally_reader_uleb(&reader));
	fde->end = fde->start + size;
	fde->instructions = (uint32_t)tally_reader_offset(&reader);
	fde->instructions_end = entry->end;
	return !reader.failed && fde->end > fde->start;
}

/* The largest functions of real programs have thousands of instructions.  The limit keeps a forged
 * program from stalling a recorder. */
enum { STEPS_MAX = 1 << 16 };

/* DW_CFA opcodes.  The first three carry an operand in their low six bits. */
enum {
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f
};

/* Multiplies with wraparound: the operands come from the file, and signed overflow is undefined. */
static int64_t multiply(uint64_t a, uint64_t b)
{
	return (int64_t)(a * b);
}

/* Sets the rule of a register.  Ignores registers that tally does not track: real files have rules
 * for some of them (xmm0 is 17). */
static void set_rule(struct tally_cfi_program *program, uint64_t reg, struct tally_cfi_rule rule)
{
	if (reg >= program->register_count)
		return;
	program->row.registers[reg] = rule;
	program->row.ruled |= 1ull << reg;
}

static void set_offset(struct tally_cfi_program *program, uint64_t reg,
		       enum tally_cfi_rule_kind kind, uint64_t factored)
{
	int64_t offset = multiply(factored, (uint64_t)program->cie.data_align);
	set_rule(program, reg, (struct tally_cfi_rule){ .kind = kind, .value = offset });
}

static struct tally_cfi_rule read_expression(struct tally_cfi_program *program,
					     enum tally_cfi_rule_kind kind)
{
	struct tally_reader *reader = &program->reader;
	uint64_t size = tally_reader_uleb(reader);
	size_t at = tally_reader_offset(reader);
	if (size > UINT32_MAX || !tally_reader_bytes(reader, size))
		program->bad = true;
	return (struct tally_cfi_rule){ .kind = kind,
					.size = (uint32_t)size,
					.value = (int64_t)at };
}

static void restore_rule(struct tally_cfi_program *program, uint64_t reg)
{
	if (reg < program->register_count)
		program->row.registers[reg] = program->initial.registers[reg];
}

static void define_cfa(struct tally_cfi_program *program, uint64_t reg, int64_t offset)
{
	program->bad |= reg >= program->register_count;
	program->row.cfa = (struct tally_cfi_rule){ .kind = TALLY_CFI_REGISTER,
						    .reg = (uint8_t)reg,
						    .value = offset };
}

/* Changes the CFA's register or its offset; NULL keeps the old one.  Allowed only while the CFA is
 * register + offset. */
static void change_cfa(struct tally_cfi_program *program, const uint64_t *reg,
		       const int64_t *offset)
{
	const struct tally_cfi_rule *cfa = &program->row.cfa;
	uint64_t new_reg = cfa->reg;
	int64_t new_offset = cfa->value;
	if (reg)
		new_reg = *reg;
	if (offset)
		new_offset = *offset;
	program->bad |= cfa->kind != TALLY_CFI_REGISTER;
	define_cfa(program, new_reg, new_offset);
}

static void remember_state(struct tally_cfi_program *program)
{
	if (program->remembered == TALLY_CFI_REMEMBER_MAX)
		program->bad = true;
	else
		program->stack[program->remembered++] = program->row;
}

static void restore_state(struct tally_cfi_program *program)
{
	if (program->remembered == 0)
		program->bad = true;
	else
		program->row = program->stack[--program->remembered];
}

static void run_cfa_instruction(struct tally_cfi_program *program, uint8_t opcode)
{
	struct tally_reader *reader = &program->reader;
	int64_t align = program->cie.data_align;
	uint64_t reg;
	int64_t offset;
	switch (opcode) {
	case CFA_DEF_CFA:
		reg = tally_reader_uleb(reader);
		define_cfa(program, reg, (int64_t)tally_reader_uleb(reader));
		return;
	case CFA_DEF_CFA_SF:
		reg = tally_reader_uleb(reader);
		define_cfa(program, reg,
			   multiply((uint64_t)tally_reader_sleb(reader), (uint64_t)align));
		return;
	case CFA_DEF_CFA_REGISTER:
		reg = tally_reader_uleb(reader);
		change_cfa(program, &reg, NULL);
		return;
	case CFA_DEF_CFA_OFFSET:
		offset = (int64_t)tally_reader_uleb(reader);
		change_cfa(program, NULL, &offset);
		return;
	case CFA_DEF_CFA_OFFSET_SF:
		offset = multiply((uint64_t)tally_reader_sleb(reader), (uint64_t)align);
		change_cfa(program, NULL, &offset);
		return;
	case CFA_DEF_CFA_EXPRESSION:
		program->row.cfa = read_expression(program, TALLY_CFI_EXPRESSION);
		return;
	}
	program->bad = true;
}

static void run_register_instruction(struct tally_cfi_program *program, uint8_t opcode)
{
	struct tally_reader *reader = &program->reader;
	uint64_t reg = tally_reader_uleb(reader);
	uint64_t other;
	switch (opcode) {
	case CFA_OFFSET_EXTENDED:
		set_offset(program, reg, TALLY_CFI_OFFSET, tally_reader_uleb(reader));
		return;
	case CFA_OFFSET_EXTENDED_SF:
		set_offset(program, reg, TALLY_CFI_OFFSET, (uint64_t)tally_reader_sleb(reader));
		return;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		set_offset(program, reg, TALLY_CFI_OFFSET, -tally_reader_uleb(reader));
		return;
	case CFA_VAL_OFFSET:
		set_offset(program, reg, TALLY_CFI_VAL_OFFSET, tally_reader_uleb(reader));
		return;
	case CFA_VAL_OFFSET_SF:
		set_offset(program, reg, TALLY_CFI_VAL_OFFSET, (uint64_t)tally_reader_sleb(reader));
		return;
	case CFA_RESTORE_EXTENDED:
		restore_rule(program, reg);
		return;
	case CFA_UNDEFINED:
		set_rule(program, reg, (struct tally_cfi_rule){ .kind = TALLY_CFI_UNDEFINED });
		return;
	case CFA_SAME_VALUE:
		set_rule(program, reg, (struct tally_cfi_rule){ .kind = TALLY_CFI_SAME_VALUE });
		return;
	case CFA_REGISTER:
		other = tally_reader_uleb(reader);
		if (other < program->register_count)
			set_rule(program, reg,
				 (struct tally_cfi_rule){ .kind = TALLY_CFI_REGISTER,
							  .reg = (uint8_t)other });
		else
			set_rule(program, reg,
				 (struct tally_cfi_rule){ .kind = TALLY_CFI_UNDEFINED });
		return;
	case CFA_EXPRESSION:
		set_rule(program, reg, read_expression(program, TALLY_CFI_EXPRESSION));
		return;
	case CFA_VAL_EXPRESSION:
		set_rule(program, reg, read_expression(program, TALLY_CFI_VAL_EXPRESSION));
		return;
	}
	program->bad = true;
}

static void advance(struct tally_cfi_program *program, uint64_t factored)
{
	program->row_end = program->row_end + factored * program->cie.code_align;
}

/* Runs one instruction.  One that advances the location changes only row_end, the end of the row
 * that the instructions so far describe. */
static void run_instruction(struct tally_cfi_program *program)
{
	struct tally_reader *reader = &program->reader;
	uint8_t opcode = tally_reader_u8(reader);
	switch (opcode & 0xc0) {
	case CFA_ADVANCE_LOC:
		advance(program, opcode & 0x3f);
		return;
	case CFA_OFFSET:
		set_offset(program, opcode & 0x3f, TALLY_CFI_OFFSET, tally_reader_uleb(reader));
		return;
	case CFA_RESTORE:
		restore_rule(program, opcode & 0x3f);
		return;
	}
	switch (opcode) {
	case CFA_NOP:
		return;
	case CFA_SET_LOC:
		program->row_end = tally_cfi_pointer_read(program->section, reader,
							  program->cie.encoding);
		return;
	case CFA_ADVANCE_LOC1:
		advance(program, tally_reader_u8(reader));
		return;
	case CFA_ADVANCE_LOC2:
		advance(program, tally_reader_u16(reader));
		return;
	case CFA_ADVANCE_LOC4:
		advance(program, tally_reader_u32(reader));
		return;
	case CFA_MIPS_ADVANCE_LOC8:
		advance(program, tally_reader_u64(reader));
		return;
	case CFA_REMEMBER_STATE:
		remember_state(program);
		return;
	case CFA_RESTORE_STATE:
		restore_state(program);
		return;
	case CFA_GNU_ARGS_SIZE: /* for exception landing pads: does not affect the frame */
		tally_reader_uleb(reader);
		return;
	/* the walk strips the signature of every return address */
	case CFA_AARCH64_NEGATE_RA_STATE:
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		program->bad |= !tally_unwind_layout(program->section->machine)->has_signed_returns;
		return;
	}
	if (opcode >= CFA_DEF_CFA && opcode <= CFA_DEF_CFA_EXPRESSION)
		run_cfa_instruction(program, opcode);
	else if (opcode == CFA_DEF_CFA_SF || opcode == CFA_DEF_CFA_OFFSET_SF)
		run_cfa_instruction(program, opcode);
	else
		run_register_instruction(program, opcode);
}

/* Runs instructions until one advances the location, or to the last one. */
static void run_row(struct tally_cfi_program *program)
{
	program->row_end = program->row_start;
	while (program->row_end == program->row_start && tally_reader_left(&program->reader) &&
	       !program->bad) {
		run_instruction(program);
		if (program->reader.failed || program->steps_left-- == 0)
			program->bad = true;
	}
}

bool tally_cfi_program_start(struct tally_cfi_program *program,
			     const struct tally_cfi_section *section,
			     const struct tally_cfi_cie *cie, const struct tally_cfi_fde *fde)
{
	program->section = section;
	program->cie = *cie;
	program->register_count = tally_unwind_layout(section->machine)->count;
	program->steps_left = STEPS_MAX;
	program->remembered = 0;
	program->bad = false;
	program->row = (struct tally_cfi_row){ .section = section,
					       .return_register = (uint8_t)cie->return_register,
					       .is_signal_frame = cie->is_signal_frame };
	program->initial = program->row;
	program->row_start = program->row_end = fde->start;
	program->reader = reader_over(section, cie->instructions, cie->instructions_end);
	run_row(program);
	if (program->row_end != program->row_start)
		program->bad = true; /* a CIE has no location to advance */
	program->initial = program->row;
	program->function_end = fde->end;
	program->reader = reader_over(section, fde->instructions, fde->instructions_end);
	return !program->bad;
}

bool tally_cfi_program_next(struct tally_cfi_program *program)
{
	program->row_start = program->row_end;
	if (program->bad || program->row_start >= program->function_end)
		return false;
	run_row(program);
	if (program->row_end == program->row_start) /* no more instructions */
		program->row_end = program->function_end;
	else if (program->row_end < program->row_start)
		program->bad = true;
	return !program->bad;
}
