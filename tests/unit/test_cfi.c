#include "cfi_fixture.h"

/* Gets the row at CODE + offset of a function with these instructions.  Returns false if they are
 * refused. */
static bool row_at(const uint8_t *instructions, size_t size, uint64_t offset,
		   struct tally_cfi_row *row)
{
	struct cfi cfi = { 0 };
	put_fde(&cfi, put_usual_cie(&cfi), CODE, 0x100000, instructions, size);
	struct tally_unwind_table *table = table_of(cfi.bytes, cfi.size, false);
	struct tally_cfi_program program;
	enum tally_unwind_lookup lookup = tally_unwind_table_lookup(table, CODE + offset, &program);
	*row = program.row;
	row->section = NULL;
	tally_unwind_table_free(table);
	return lookup == TALLY_UNWIND_FOUND;
}

static void each_register_instruction_gives_its_rule(void **state)
{
	(void)state;
	static const struct {
		uint8_t bytes[8], size;
		uint8_t kind, reg;
		int64_t value;
	} cases[] = {
		{ { 0x83, 2 }, 2, TALLY_CFI_OFFSET, 0, -16 },
		{ { 0x05, 3, 3 }, 3, TALLY_CFI_OFFSET, 0, -24 },
		{ { 0x11, 3, 0x7e }, 3, TALLY_CFI_OFFSET, 0, 16 },
		{ { 0x2f, 3, 2 }, 3, TALLY_CFI_OFFSET, 0, 16 },
		{ { 0x14, 3, 4 }, 3, TALLY_CFI_VAL_OFFSET, 0, -32 },
		{ { 0x15, 3, 0x7f }, 3, TALLY_CFI_VAL_OFFSET, 0, 8 },
		{ { 0x09, 3, 12 }, 3, TALLY_CFI_REGISTER, 12, 0 },
		{ { 0x09, 3, 40 }, 3, TALLY_CFI_UNDEFINED, 0, 0 },
		{ { 0x83, 2, 0x07, 3 }, 4, TALLY_CFI_UNDEFINED, 0, 0 },
		{ { 0x83, 2, 0x08, 3 }, 4, TALLY_CFI_SAME_VALUE, 0, 0 },
		{ { 0x83, 2, 0xc3 }, 3, TALLY_CFI_UNSPECIFIED, 0, 0 },
		{ { 0x83, 2, 0x06, 3 }, 4, TALLY_CFI_UNSPECIFIED, 0, 0 },
		{ { 0x83, 2, 0x2e, 16, 0 }, 5, TALLY_CFI_OFFSET, 0, -16 },
		{ { 0x83, 2, 0x05, 40, 3 }, 5, TALLY_CFI_OFFSET, 0, -16 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct tally_cfi_row row;
		assert_true(row_at(cases[i].bytes, cases[i].size, 0, &row));
		assert_int_equal(row.registers[RBX].kind, cases[i].kind);
		assert_int_equal(row.registers[RBX].reg, cases[i].reg);
		assert_int_equal(row.registers[RBX].value, cases[i].value);
		assert_int_equal(row.registers[TALLY_UNWIND_RIP].kind, TALLY_CFI_OFFSET);
		assert_int_equal(row.registers[TALLY_UNWIND_RIP].value, -8);
	}
}

static void restore_returns_to_the_cie_s_rule(void **state)
{
	(void)state;
	struct tally_cfi_row row;
	assert_true(row_at(BYTES(0x07, 16, 0xd0), 0, &row));
	assert_int_equal(row.registers[TALLY_UNWIND_RIP].kind, TALLY_CFI_OFFSET);
	assert_int_equal(row.registers[TALLY_UNWIND_RIP].value, -8);
}

static void expressions_are_kept_in_place(void **state)
{
	(void)state;
	struct tally_cfi_row row;
	assert_true(row_at(BYTES(0x10, 3, 2, 0x76, 0, 0x16, 6, 1, 0x30, 0x0f, 3, 0x77, 8, 0x06), 0,
			   &row));
	assert_int_equal(row.registers[RBX].kind, TALLY_CFI_EXPRESSION);
	assert_int_equal(row.registers[RBX].size, 2);
	assert_int_equal(row.registers[6].kind, TALLY_CFI_VAL_EXPRESSION);
	assert_int_equal(row.registers[6].size, 1);
	assert_int_equal(row.registers[6].value, row.registers[RBX].value + 2 + 3);
	assert_int_equal(row.cfa.kind, TALLY_CFI_EXPRESSION);
	assert_int_equal(row.cfa.size, 3);
}

static void each_cfa_instruction_moves_the_cfa(void **state)
{
	(void)state;
	static const struct {
		uint8_t bytes[8], size, reg;
		int64_t value;
	} cases[] = {
		{ { 0 }, 1, 7, 8 },
		{ { 0x0c, 6, 16 }, 3, 6, 16 },
		{ { 0x12, 6, 0x7e }, 3, 6, 16 },
		{ { 0x0d, 6 }, 2, 6, 8 },
		{ { 0x0e, 0x90, 0x01 }, 3, 7, 144 },
		{ { 0x13, 0x7d }, 2, 7, 24 },
		{ { 0x0a, 0x0e, 64, 0x0b }, 4, 7, 8 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct tally_cfi_row row;
		assert_true(row_at(cases[i].bytes, cases[i].size, 0, &row));
		assert_int_equal(row.cfa.kind, TALLY_CFI_REGISTER);
		assert_int_equal(row.cfa.reg, cases[i].reg);
		assert_int_equal(row.cfa.value, cases[i].value);
	}
}

static void a_row_begins_where_its_location_does(void **state)
{
	(void)state;
	/* After each advance comes a CFA with another offset: 16 at 3, 24 at 3 + 0x80, and so
	 * on. */
	struct cfi program = { 0 };
	put(&program, BYTES(0x43, 0x0e, 16, 0x02, 0x80, 0x0e, 24, 0x03, 0x00, 0x10, 0x0e, 32, 0x04,
			    0, 0, 1, 0, 0x0e, 40, 0x1d, 0, 0, 2, 0, 0, 0, 0, 0, 0x0e, 48, 0x01));
	put_u64(&program, CODE + 0x80000);
	put(&program, BYTES(0x0e, 56));
	static const struct {
		uint64_t offset;
		int64_t cfa;
	} cases[] = {
		{ 0, 8 },        { 2, 8 },        { 3, 16 },       { 0x82, 16 },    { 0x83, 24 },
		{ 0x1082, 24 },  { 0x1083, 32 },  { 0x11082, 32 }, { 0x11083, 40 }, { 0x31082, 40 },
		{ 0x31083, 48 }, { 0x7ffff, 48 }, { 0x80000, 56 }, { 0xfffff, 56 },
	};
	struct tally_cfi_row row;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_true(row_at(program.bytes, program.size, cases[i].offset, &row));
		assert_int_equal(row.cfa.value, cases[i].cfa);
	}
	assert_false(row_at(program.bytes, program.size, 0x100000, &row));
}

static void remembered_states_nest(void **state)
{
	(void)state;
	struct tally_cfi_row row;
	/* Remembers 16, then 24, then sets 32; restores 24, then 16. */
	static const uint8_t program[] = { 0x0e, 16,   0x0a, 0x41, 0x0e, 24,   0x83, 3,
					   0x0a, 0x41, 0x0e, 32,   0x41, 0x0b, 0x41, 0x0b };
	static const int64_t cfa[] = { 16, 24, 32, 24, 16 };
	for (size_t i = 0; i < 5; i++) {
		assert_true(row_at(program, sizeof(program), i, &row));
		assert_int_equal(row.cfa.value, cfa[i]);
		assert_int_equal(row.registers[RBX].kind, i == 0 || i == 4 ? TALLY_CFI_UNSPECIFIED :
									     TALLY_CFI_OFFSET);
	}
}

static void senseless_instructions_are_refused(void **state)
{
	(void)state;
	struct tally_cfi_row row;
	uint8_t remember[64];
	memset(remember, 0x0a, sizeof(remember));
	assert_false(row_at(remember, sizeof(remember), 0, &row));
	assert_false(row_at(BYTES(0x0b), 0, &row));                     /* nothing remembered */
	assert_false(row_at(BYTES(0x3f), 0, &row));                     /* unknown instruction */
	/* CFA in a register that we don't track */
	assert_false(row_at(BYTES(0x0c, 40, 8), 0, &row));
	/* offset of a CFA that is an expression */
	assert_false(row_at(BYTES(0x0f, 1, 0x30, 0x0e, 8), 0, &row));
	/* expression past the end */
	assert_false(row_at(BYTES(0x0f, 9, 0x30), 0, &row));
	assert_false(row_at(BYTES(0x0e), 0, &row));                     /* operand past the end */
	assert_false(row_at(BYTES(0x04, 1, 0), 0, &row));
	assert_false(row_at(BYTES(0x44, 0x01, 1, 0, 0, 0, 0, 0, 0, 0), 8, &row)); /* backwards */
	assert_false(row_at(BYTES(0x1d, 255, 255, 255, 255, 255, 255, 255, 255), 8, &row));
}

static bool covers(const struct cfi *cfi, bool is_debug_frame, uint64_t address)
{
	struct tally_unwind_table *table = table_of(cfi->bytes, cfi->size, is_debug_frame);
	struct tally_cfi_program program;
	bool is_found = tally_unwind_table_lookup(table, address, &program) == TALLY_UNWIND_FOUND;
	tally_unwind_table_free(table);
	return is_found;
}

static void each_pointer_encoding_is_read(void **state)
{
	(void)state;
	/* The bytes after length, id, version, "zR", alignments, column and data: the encoded start
	 * `CODE + 0x40` and a range of 0x10. */
	enum { ENTRY = 8 };
	static const struct {
		uint8_t encoding, size;
		uint64_t base;
	} cases[] = {
		{ 0x00, 8, 0 }, { 0x04, 8, 0 }, { 0x0c, 8, 0 }, { 0x03, 4, 0 }, { 0x0b, 4, 0 },
		{ 0x02, 2, 0 }, { 0x0a, 2, 0 }, { 0x1b, 4, 1 }, { 0x1c, 8, 1 }, { 0x2b, 4, CODE },
		{ 0x2a, 2, CODE }, { 0x3b, 4, 2 * CODE },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cfi cfi = { 0 };
		size_t cie = put_cie(&cfi, "zR", &cases[i].encoding, 1, BYTES(0x0c, 7, 8, 0x90, 1));
		size_t at = begin(&cfi, (uint32_t)(cfi.size + 4 - cie));
		uint64_t base = cases[i].base == 1 ? SECTION + at + ENTRY : cases[i].base;
		uint64_t start = CODE + 0x40 - base, size = 0x10;
		put(&cfi, &start, cases[i].size);
		put(&cfi, &size, cases[i].size);
		put(&cfi, BYTES(0));
		finish(&cfi, at);
		assert_false(covers(&cfi, false, CODE + 0x3f));
		assert_true(covers(&cfi, false, CODE + 0x40));
		assert_true(covers(&cfi, false, CODE + 0x4f));
		assert_false(covers(&cfi, false, CODE + 0x50));
	}
	/* LEB128 of 0x1040 and 0x10; the signed pc-relative kind would wrap to the same. */
	for (uint8_t encoding = 0x01; encoding <= 0x09; encoding += 8) {
		struct cfi cfi = { 0 };
		size_t cie = put_cie(&cfi, "zR", &encoding, 1, BYTES(0x0c, 7, 8));
		size_t at = begin(&cfi, (uint32_t)(cfi.size + 4 - cie));
		put(&cfi, BYTES(0xc0, 0x20, 0x10, 0));
		finish(&cfi, at);
		assert_true(covers(&cfi, false, CODE + 0x4f));
		assert_false(covers(&cfi, false, CODE + 0x50));
	}
}

static void what_lies_behind_a_pointer_is_not_guessed(void **state)
{
	(void)state;
	static const uint8_t encodings[] = { 0x9b, 0x80, 0x4b, 0x0d, 0x60, 0xff };
	for (size_t i = 0; i < sizeof(encodings); i++) {
		struct cfi cfi = { 0 };
		put_fde(&cfi, put_cie(&cfi, "zR", &encodings[i], 1, BYTES(0x0c, 7, 8)), CODE, 0x10,
			BYTES(0));
		struct tally_unwind_table *table = table_of(cfi.bytes, cfi.size, false);
		assert_int_equal(table->indexes[0].functions.count, 0);
		tally_unwind_table_free(table);
	}
}

static void augmentations_are_understood_or_refused(void **state)
{
	(void)state;
	static const struct {
		const char *letters;
		uint8_t data[16], size;
		bool is_read, is_signal_frame;
	} cases[] = {
		{ "", { 0 }, 0, true, false },
		{ "eh", { 0 }, 8, true, false },
		{ "z", { 0 }, 0, true, false },
		{ "zR", { 0 }, 1, true, false },
		{ "zRS", { 0 }, 1, true, true },
		{ "zPLR", { 0x1b, 1, 2, 3, 4, 0x1b, 0 }, 7, true, false },
		{ "zPLR", { 0x9c, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b, 0 }, 11, true, false },
		{ "zPLR", { 0xff, 0xff, 0 }, 3, true, false },
		/* more data than the letters describe */
		{ "zPLRS", { 0x03, 1, 2, 3, 4, 0x1b, 0, 9, 9 }, 9, true, true },
		{ "zPLR", { 0x1b, 1, 2, 3, 4, 0x1b }, 6, false, false },
		{ "zQ", { 0 }, 1, false, false },
		{ "B", { 0 }, 0, false, false },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cfi cfi = { 0 };
			size_t cie = put_cie(&cfi, cases[i].letters, cases[i].data, cases[i].size,
				     BYTES(0x0c, 7, 8, 0x90, 1));
		if (cases[i].letters[0] == 'e') { /* its data comes before the alignments */
			cfi.size = cie;
			cie = begin(&cfi, 0);
			put(&cfi, BYTES(1, 'e', 'h', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x78, 16, 0x0c,
					7, 8, 0x90, 1));
			finish(&cfi, cie);
		}
		struct tally_cfi_section section = { .bytes = cfi.bytes,
						     .size = cfi.size,
						     .address = SECTION };
		struct tally_cfi_entry entry;
		struct tally_cfi_cie read;
		assert_true(tally_cfi_entry_read(&section, cie, &entry));
		assert_int_equal(entry.kind, TALLY_CFI_CIE);
		assert_int_equal(tally_cfi_cie_read(&section, &entry, &read), cases[i].is_read);
		if (!cases[i].is_read)
			continue;
		assert_int_equal(read.is_signal_frame, cases[i].is_signal_frame);
		assert_int_equal(read.instructions_end - read.instructions, 5);
		assert_int_equal(read.data_align, -8);
		assert_int_equal(read.return_register, 16);
	}
}

static void both_kinds_of_section_and_of_length_are_read(void **state)
{
	(void)state;
	/* DWARF 4's CIE */
	static const uint8_t body[] = { 4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1 };
	struct cfi narrow = { 0 }, wide = { 0 }, wide_eh = { 0 };

	size_t at = begin(&narrow, UINT32_MAX);
	put(&narrow, body, sizeof(body));
	finish(&narrow, at);
	at = begin(&narrow, 0);
	put_u64(&narrow, CODE);
	put_u64(&narrow, 0x10);
	finish(&narrow, at);
	assert_true(covers(&narrow, true, CODE + 1));
	assert_false(covers(&narrow, false, CODE + 1));

	put_u32(&wide, UINT32_MAX);
	put_u64(&wide, 8 + sizeof(body));
	put_u64(&wide, UINT64_MAX);
	put(&wide, body, sizeof(body));
	put_u32(&wide, UINT32_MAX);
	put_u64(&wide, 24);
	put_u64(&wide, 0);
	put_u64(&wide, CODE);
	put_u64(&wide, 0x10);
	assert_true(covers(&wide, true, CODE + 1));

	put_u32(&wide_eh, UINT32_MAX);
	put_u64(&wide_eh, 4 + sizeof(body));
	put_u32(&wide_eh, 0);
	put(&wide_eh, body, sizeof(body));
	put_u32(&wide_eh, UINT32_MAX);
	put_u64(&wide_eh, 20);
	put_u32(&wide_eh, (uint32_t)wide_eh.size);
	put_u64(&wide_eh, CODE);
	put_u64(&wide_eh, 0x10);
	assert_true(covers(&wide_eh, false, CODE + 1));
}

static void an_end_mark_ends_only_a_section_of_unknown_size(void **state)
{
	(void)state;
	struct cfi cfi = { 0 };
	size_t cie = put_usual_cie(&cfi);
	put_fde(&cfi, cie, CODE, 0x10, BYTES(0));
	put_u32(&cfi, 0);
	put_fde(&cfi, cie, CODE + 0x10, 0x10, BYTES(0));
	assert_true(covers(&cfi, false, CODE + 0x10));
	struct tally_cfi_section section = { .bytes = cfi.bytes,
					     .size = cfi.size,
					     .ends_at_zero = true };
	struct tally_unwind_table *table;
	assert_int_equal(tally_unwind_table_new_from_bytes(&section, NULL, &table, NULL), 0);
	assert_int_equal(table->indexes[0].functions.count, 1);
	tally_unwind_table_free(table);
}

static void functions_are_found_in_any_order_of_entries(void **state)
{
	(void)state;
	struct cfi cfi = { 0 };
	size_t cie = put_usual_cie(&cfi);
	for (uint64_t i = 0; i < 64; i++)
		put_fde(&cfi, cie, CODE + (i * 37 % 64) * 0x20, 0x10,
			BYTES(0x0e, (uint8_t)(i * 37 % 64)));
	put_fde(&cfi, cie, CODE, 0x10, BYTES(0x0e, 99)); /* a second entry for the same function */
	put_fde(&cfi, cie, 0, 0x10000, BYTES(0x0e, 99)); /* a function that the linker dropped */
	struct tally_unwind_table *table = table_of(cfi.bytes, cfi.size, false);
	struct tally_cfi_program program;
	for (uint64_t i = 0; i < 64; i++) {
		assert_int_equal(tally_unwind_table_lookup(table, CODE + i * 0x20 + 15, &program),
				 TALLY_UNWIND_FOUND);
		assert_int_equal(program.row.cfa.value, i);
		assert_int_equal(tally_unwind_table_lookup(table, CODE + i * 0x20 + 16, &program),
				 TALLY_UNWIND_NOT_FOUND);
	}
	assert_int_equal(tally_unwind_table_lookup(table, CODE - 1, &program),
			 TALLY_UNWIND_NOT_FOUND);
	tally_unwind_table_free(table);
}

/* Evaluates expressions.  rsp = 0x7000 with words 0x1111…, 0x2222…; rbx = −5; r12 is unknown; the
 * object is at 0x400000. */
static enum tally_expression_result evaluate(const uint8_t *bytes, size_t size,
					     const uint64_t *initial, uint64_t *value)
{
	static const uint64_t stack[] = { 0x1111111111111181, 0x2222222222222222 };
	struct tally_unwind_frame frame = { .known = 0x1ffff & ~(1u << R12),
					    .bias = 0x400000,
					    .stack = (const uint8_t *)stack,
					    .stack_size = sizeof(stack),
					    .stack_address = 0x7000 };
	frame.registers[TALLY_UNWIND_RSP] = 0x7000;
	frame.registers[RBX] = (uint64_t)-5;
	return tally_expression_run(bytes, size, &frame, initial, value);
}

static void each_expression_operation_gives_its_value(void **state)
{
	(void)state;
	static const struct {
		uint8_t bytes[24], size;
		uint64_t value;
	} cases[] = {
		{ { 0x03, 0x34, 0x12, 0, 0, 0, 0, 0, 0 }, 9, 0x401234 }, /* addr */
		/* breg7 0, deref */
		{ { 0x77, 0, 0x06 }, 3, 0x1111111111111181 },
		{ { 0x77, 8, 0x06 }, 3, 0x2222222222222222 },
		{ { 0x77, 0, 0x94, 1 }, 4, 0x81 }, /* deref_size */
		{ { 0x77, 0, 0x94, 2 }, 4, 0x1181 },
		{ { 0x77, 0, 0x94, 4 }, 4, 0x11111181 },
		/* const1u, 1s, … */
		{ { 0x08, 0xff }, 2, 0xff },
		{ { 0x09, 0xff }, 2, UINT64_MAX },
		{ { 0x0a, 0xfe, 0xff }, 3, 0xfffe },
		{ { 0x0b, 0xfe, 0xff }, 3, (uint64_t)-2 },
		{ { 0x0c, 0xfe, 0xff, 0xff, 0xff }, 5, 0xfffffffe },
		{ { 0x0d, 0xfe, 0xff, 0xff, 0xff }, 5, (uint64_t)-2 },
		{ { 0x0e, 1, 0, 0, 0, 0, 0, 0, 0x80 }, 9, 0x8000000000000001 },
		{ { 0x0f, 1, 0, 0, 0, 0, 0, 0, 0x80 }, 9, 0x8000000000000001 },
		/* constu, consts */
		{ { 0x10, 0x80, 0x01 }, 3, 128 },
		{ { 0x11, 0x7f }, 2, UINT64_MAX },
		/* lit3 dup plus */
		{ { 0x33, 0x12, 0x22 }, 3, 6 },
		{ { 0x33, 0x34, 0x13 }, 3, 3 },          /* drop */
		{ { 0x33, 0x34, 0x14 }, 3, 3 },          /* over */
		{ { 0x31, 0x32, 0x33, 0x15, 2 }, 5, 1 }, /* pick 2 */
		/* swap minus: 9 − 3 */
		{ { 0x33, 0x39, 0x16, 0x1c }, 4, 6 },
		{ { 0x31, 0x32, 0x33, 0x17 }, 4, 2 }, /* rot: 3 1 2 */
		{ { 0x31, 0x32, 0x33, 0x17, 0x13 }, 5, 1 },
		{ { 0x31, 0x32, 0x33, 0x17, 0x13, 0x13 }, 6, 3 },
		{ { 0x73, 0, 0x19 }, 3, 5 },                  /* abs −5 */
		{ { 0x3f, 0x36, 0x1a }, 3, 6 },               /* and */
		{ { 0x73, 0, 0x32, 0x1b }, 4, (uint64_t)-2 }, /* −5 / 2 */
		{ { 0x0f, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b }, 12, 0x8000000000000000 },
		{ { 0x39, 0x34, 0x1c }, 3, 5 },         /* minus */
		{ { 0x39, 0x34, 0x1d }, 3, 1 },         /* mod */
		{ { 0x39, 0x34, 0x1e }, 3, 36 },        /* mul */
		{ { 0x39, 0x1f }, 2, (uint64_t)-9 },    /* neg */
		{ { 0x39, 0x20 }, 2, ~(uint64_t)9 },    /* not */
		{ { 0x39, 0x34, 0x21 }, 3, 13 },        /* or */
		{ { 0x39, 0x34, 0x22 }, 3, 13 },        /* plus */
		{ { 0x39, 0x23, 0x80, 0x01 }, 4, 137 }, /* plus_uconst */
		{ { 0x33, 0x34, 0x24 }, 3, 48 },        /* shl */
		{ { 0x33, 0x08, 64, 0x24 }, 4, 0 },
		{ { 0x73, 0, 0x08, 60, 0x25 }, 5, 15 },       /* shr */
		{ { 0x73, 0, 0x31, 0x26 }, 4, (uint64_t)-3 }, /* shra */
		{ { 0x73, 0, 0x08, 200, 0x26 }, 5, UINT64_MAX },
		{ { 0x39, 0x33, 0x27 }, 3, 10 }, /* xor */
		/* bra over the drop */
		{ { 0x35, 0x31, 0x28, 1, 0, 0x13, 0x96 }, 7, 5 },
		/* bra not taken */
		{ { 0x35, 0x36, 0x30, 0x28, 1, 0, 0x13 }, 7, 5 },
		{ { 0x35, 0x2f, 1, 0, 0x13 }, 5, 5 }, /* skip */
		/* eq ge gt le lt ne */
		{ { 0x33, 0x33, 0x29 }, 3, 1 },
		/* −5 ≥ 3: signed */
		{ { 0x73, 0, 0x33, 0x2a }, 4, 0 },
		{ { 0x33, 0x33, 0x2a }, 3, 1 },
		{ { 0x33, 0x33, 0x2b }, 3, 0 },
		{ { 0x73, 0, 0x33, 0x2c }, 4, 1 },
		{ { 0x73, 0, 0x33, 0x2d }, 4, 1 },
		{ { 0x33, 0x34, 0x2e }, 3, 1 },
		{ { 0x30 }, 1, 0 },
		{ { 0x4f }, 1, 31 }, /* lit31 */
		/* reg3, as a value */
		{ { 0x53 }, 1, (uint64_t)-5 },
		{ { 0x90, 3 }, 2, (uint64_t)-5 },    /* regx */
		{ { 0x73, 0x7f }, 2, (uint64_t)-6 }, /* breg3 −1 */
		{ { 0x92, 3, 6 }, 3, 1 },            /* bregx */
		{ { 0x33, 0x96 }, 2, 3 },            /* nop */
		/* The PLT's expression, at ip & 15 = 0: breg7 8, breg16 0, lit15 and lit11 ge, lit3
		 * shl, plus. */
		{ { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 }, 11, 0x7008 },
		{ { 0x77, 8, 0x80, 11, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 }, 11, 0x7010 },
		/* A loop that counts down: 5 + 4 + 3 + 2 + 1. */
		{ { 0x30, 0x35, 0x12, 0x17, 0x22, 0x16, 0x31, 0x1c, 0x12, 0x28, 0xf6, 0xff, 0x13 },
		  13,
		  15 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t value;
		assert_int_equal(evaluate(cases[i].bytes, cases[i].size, NULL, &value),
				 TALLY_EXPRESSION_OK);
		if (value != cases[i].value)
			fail_msg("case %zu: %#lx, not %#lx", i, value, cases[i].value);
	}
	uint64_t initial = 0x7008, value;
	assert_int_equal(evaluate(BYTES(0x38, 0x1c, 0x06), &initial, &value), TALLY_EXPRESSION_OK);
	assert_int_equal(value, 0x1111111111111181);
}

static void senseless_expressions_are_refused(void **state)
{
	(void)state;
	static const struct {
		uint8_t bytes[8], size;
	} cases[] = {
		{ { 0 }, 0 },                      /* leaves no value */
		{ { 0x22 }, 1 },                   /* nothing to add */
		{ { 0x31, 0x15, 1 }, 3 },          /* pick from below the stack */
		{ { 0x31, 0x30, 0x1b }, 3 },       /* division by 0 */
		{ { 0x31, 0x30, 0x1d }, 3 },
		{ { 0x2f, 0xfd, 0xff }, 3 },       /* jumps back to itself */
		{ { 0x31, 0x2f, 0xfc, 0xff }, 4 }, /* pushes forever */
		{ { 0x2f, 0x00, 0x80 }, 3 },       /* jumps out of the expression */
		{ { 0x31, 0x2f, 9, 0 }, 4 },
		{ { 0x7c, 0 }, 2 },                /* r12 is not known */
		{ { 0x8f, 0 }, 2 },                /* register 31 */
		{ { 0x92, 0x7f, 0 }, 3 },
		{ { 0x0c, 1, 2 }, 3 },             /* truncated operand */
		{ { 0x77, 0, 0x94, 3 }, 4 },       /* three bytes */
		{ { 0x31, 0x9c }, 2 },             /* call_frame_cfa */
		{ { 0x31, 0x18 }, 2 },             /* xderef */
		{ { 0xf1, 0 }, 2 },
	};
	uint64_t value;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (evaluate(cases[i].bytes, cases[i].size, NULL, &value) != TALLY_EXPRESSION_BAD)
			fail_msg("case %zu is not refused", i);
	assert_int_equal(evaluate(BYTES(0x30, 0x06), NULL, &value), TALLY_EXPRESSION_UNREADABLE);
	assert_int_equal(evaluate(BYTES(0x77, 9, 0x06), NULL, &value), TALLY_EXPRESSION_UNREADABLE);
	assert_int_equal(evaluate(BYTES(0x77, 0x7f, 0x06), NULL, &value),
			 TALLY_EXPRESSION_UNREADABLE);
}

/* A loop of `rounds` over an operand that is padded to `padding` bytes. */
static enum tally_expression_result evaluate_padded(uint8_t rounds, size_t padding)
{
	static uint8_t bytes[65536];
	const uint8_t head[] = { 0x08, rounds },           /* const1u */
		tail[] = { 0x13, 0x31, 0x1c, 0x12, 0x28 }; /* drop, lit1, minus, dup, bra */
	uint8_t *at = bytes;
	uint64_t value;
	memcpy(at, head, sizeof(head));
	at += sizeof(head);
	*at++ = 0x10; /* constu */
	memset(at, 0x80, padding);
	at[padding - 1] = 0;
	at += padding;
	memcpy(at, tail, sizeof(tail));
	at += sizeof(tail);
	int16_t back = (int16_t)(bytes + sizeof(head) - (at + 2));
	memcpy(at, &back, sizeof(back));
	at += sizeof(back);
	return evaluate(bytes, (size_t)(at - bytes), NULL, &value);
}

static void padded_operands_are_read_within_a_bounded_time(void **state)
{
	(void)state;
	assert_int_equal(evaluate_padded(1, 32000), TALLY_EXPRESSION_OK);
	assert_int_equal(evaluate_padded(1, 33000), TALLY_EXPRESSION_BAD);
	assert_int_equal(evaluate_padded(4, 10000), TALLY_EXPRESSION_OK);
	assert_int_equal(evaluate_padded(5, 10000), TALLY_EXPRESSION_BAD);
	assert_int_equal(evaluate_padded(100, 20), TALLY_EXPRESSION_OK);
}

/* Reads an FDE whose augmentation's length, 0, is padded to `padding` bytes. */
static bool read_padded_fde(size_t padding)
{
	static const uint8_t cie[] = { 16, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16,
				       1, 0x03, 0, 0, 0 };
	uint32_t head[] = { (uint32_t)(12 + padding), sizeof(cie) + 4, 0x1000, 0x100 };
	uint8_t *bytes = malloc(sizeof(cie) + sizeof(head) + padding);
	assert_non_null(bytes);
	memcpy(bytes, cie, sizeof(cie));
	memcpy(bytes + sizeof(cie), head, sizeof(head));
	memset(bytes + sizeof(cie) + sizeof(head), 0x80, padding);
	bytes[sizeof(cie) + sizeof(head) + padding - 1] = 0;
	const struct tally_cfi_section section = { .bytes = bytes,
						   .size = sizeof(cie) + sizeof(head) + padding,
						   .machine = TALLY_UNWIND_X86_64 };
	struct tally_cfi_entry entry, cie_entry;
	struct tally_cfi_cie read_cie;
	struct tally_cfi_fde fde;
	assert_true(tally_cfi_entry_read(&section, sizeof(cie), &entry));
	assert_true(tally_cfi_entry_read(&section, entry.cie, &cie_entry));
	assert_true(tally_cfi_cie_read(&section, &cie_entry, &read_cie));
	bool is_read = tally_cfi_fde_read(&section, &entry, &read_cie, &fde);
	free(bytes);
	return is_read;
}

static void a_large_entry_is_refused(void **state)
{
	(void)state;
	assert_true(read_padded_fde(1));
	assert_true(read_padded_fde(200000));
	assert_false(read_padded_fde(300000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_register_instruction_gives_its_rule),
		cmocka_unit_test(restore_returns_to_the_cie_s_rule),
		cmocka_unit_test(expressions_are_kept_in_place),
		cmocka_unit_test(each_cfa_instruction_moves_the_cfa),
		cmocka_unit_test(a_row_begins_where_its_location_does),
		cmocka_unit_test(remembered_states_nest),
		cmocka_unit_test(senseless_instructions_are_refused),
		cmocka_unit_test(each_pointer_encoding_is_read),
		cmocka_unit_test(what_lies_behind_a_pointer_is_not_guessed),
		cmocka_unit_test(augmentations_are_understood_or_refused),
		cmocka_unit_test(both_kinds_of_section_and_of_length_are_read),
		cmocka_unit_test(an_end_mark_ends_only_a_section_of_unknown_size),
		cmocka_unit_test(functions_are_found_in_any_order_of_entries),
		cmocka_unit_test(each_expression_operation_gives_its_value),
		cmocka_unit_test(senseless_expressions_are_refused),
		cmocka_unit_test(padded_operands_are_read_within_a_bounded_time),
		cmocka_unit_test(a_large_entry_is_refused),
	};
	return cmocka_run_group_tests_name("cfi", tests, NULL, NULL);
}
