#include "test.h"

#include "object/object.h"
#include "unwind/code_spot.h"
#include "unwind/unwind.h"
#include "unwind/unwind_table.h"
#include "unwind_ways.h"

#include <fcntl.h>

/* An .eh_frame in the making.  The section lies at SECTION, its functions at CODE and up. */
enum { SECTION = 0x100000, CODE = 0x1000, RBX = 3, RSI = 4, R12 = 12 };

struct cfi {
	uint8_t bytes[8192];
	size_t size;
};

#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

static void put(struct cfi *cfi, const void *bytes, size_t size)
{
	assert_true(cfi->size + size <= sizeof(cfi->bytes));
	if (size)
		memcpy(cfi->bytes + cfi->size, bytes, size);
	cfi->size += size;
}

static void put_u32(struct cfi *cfi, uint32_t value)
{
	put(cfi, &value, sizeof(value));
}

static void put_u64(struct cfi *cfi, uint64_t value)
{
	put(cfi, &value, sizeof(value));
}

static size_t begin(struct cfi *cfi, uint32_t id)
{
	size_t at = cfi->size;
	put_u32(cfi, 0);
	put_u32(cfi, id);
	return at;
}

static void finish(struct cfi *cfi, size_t at)
{
	uint32_t length = (uint32_t)(cfi->size - at - 4);
	memcpy(cfi->bytes + at, &length, sizeof(length));
}

/* Version 1, code × 1, data × −8, rip is column 16. */
static size_t put_cie(struct cfi *cfi, const char *augmentation, const uint8_t *data, size_t data_size,
		      const uint8_t *instructions, size_t size)
{
	size_t at = begin(cfi, 0);
	put(cfi, BYTES(1));
	put(cfi, augmentation, strlen(augmentation) + 1);
	put(cfi, BYTES(1, 0x78, 16));
	if (augmentation[0] == 'z')
		put(cfi, BYTES((uint8_t)data_size));
	put(cfi, data, data_size);
	put(cfi, instructions, size);
	finish(cfi, at);
	return at;
}

/* At entry: CFA = rsp + 8, rip at CFA − 8; addresses are 8 bytes, absolute. */
static size_t put_usual_cie(struct cfi *cfi)
{
	return put_cie(cfi, "", NULL, 0, BYTES(0x0c, 7, 8, 0x90, 1));
}

static void put_fde(struct cfi *cfi, size_t cie, uint64_t start, uint64_t size, const uint8_t *instructions,
		    size_t count)
{
	size_t at = begin(cfi, (uint32_t)(cfi->size + 4 - cie));
	put_u64(cfi, start);
	put_u64(cfi, size);
	put(cfi, instructions, count);
	finish(cfi, at);
}

static struct tally_unwind_table *table_of(const void *bytes, size_t size, bool is_debug_frame)
{
	struct tally_unwind_table *table;
	struct tally_cfi_section section = { .bytes = bytes, .size = size, .address = SECTION, .machine = TALLY_UNWIND_X86_64,
					     .text_address = CODE, .data_address = 2 * CODE,
					     .is_debug_frame = is_debug_frame };
	assert_int_equal(tally_unwind_table_new_from_bytes(&section, NULL, &table, NULL), 0);
	return table;
}

/* The row at CODE + offset of a function with these instructions; false when they are refused. */
static bool row_at(const uint8_t *instructions, size_t size, uint64_t offset, struct tally_cfi_row *row)
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
	assert_true(row_at(BYTES(0x10, 3, 2, 0x76, 0, 0x16, 6, 1, 0x30, 0x0f, 3, 0x77, 8, 0x06), 0, &row));
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
	/* Each advance, then a CFA of another offset: 16 at 3, 24 at 3 + 0x80, and so on. */
	struct cfi program = { 0 };
	put(&program, BYTES(0x43, 0x0e, 16, 0x02, 0x80, 0x0e, 24, 0x03, 0x00, 0x10, 0x0e, 32, 0x04, 0, 0, 1, 0, 0x0e,
			    40, 0x1d, 0, 0, 2, 0, 0, 0, 0, 0, 0x0e, 48, 0x01));
	put_u64(&program, CODE + 0x80000);
	put(&program, BYTES(0x0e, 56));
	static const struct {
		uint64_t offset;
		int64_t cfa;
	} cases[] = {
		{ 0, 8 }, { 2, 8 }, { 3, 16 }, { 0x82, 16 }, { 0x83, 24 }, { 0x1082, 24 }, { 0x1083, 32 },
		{ 0x11082, 32 }, { 0x11083, 40 }, { 0x31082, 40 }, { 0x31083, 48 }, { 0x7ffff, 48 },
		{ 0x80000, 56 }, { 0xfffff, 56 },
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
	/* 16 remembered, 24 remembered, 32; back to 24, back to 16. */
	static const uint8_t program[] = { 0x0e, 16, 0x0a, 0x41, 0x0e, 24, 0x83, 3, 0x0a, 0x41, 0x0e, 32, 0x41,
					   0x0b, 0x41, 0x0b };
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
	assert_false(row_at(BYTES(0x3f), 0, &row));                     /* no such instruction */
	assert_false(row_at(BYTES(0x0c, 40, 8), 0, &row));              /* CFA in a register we lack */
	assert_false(row_at(BYTES(0x0f, 1, 0x30, 0x0e, 8), 0, &row));   /* offset of an expression */
	assert_false(row_at(BYTES(0x0f, 9, 0x30), 0, &row));            /* expression past the end */
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
	/* Behind length, id, version, "zR", alignments, column, data: the encoded start of `CODE + 0x40`, and of
	 * a range of 0x10. */
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
	/* LEB128: 0x1040 and 0x10, the signed kind pc-relative would wrap to the same. */
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
		put_fde(&cfi, put_cie(&cfi, "zR", &encodings[i], 1, BYTES(0x0c, 7, 8)), CODE, 0x10, BYTES(0));
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
		{ "zPLRS", { 0x03, 1, 2, 3, 4, 0x1b, 0, 9, 9 }, 9, true, true }, /* data beyond the letters' */
		{ "zPLR", { 0x1b, 1, 2, 3, 4, 0x1b }, 6, false, false },
		{ "zQ", { 0 }, 1, false, false },
		{ "B", { 0 }, 0, false, false },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cfi cfi = { 0 };
			size_t cie = put_cie(&cfi, cases[i].letters, cases[i].data, cases[i].size,
				     BYTES(0x0c, 7, 8, 0x90, 1));
		if (cases[i].letters[0] == 'e') { /* its data stands before the alignments */
			cfi.size = cie;
			cie = begin(&cfi, 0);
			put(&cfi, BYTES(1, 'e', 'h', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1));
			finish(&cfi, cie);
		}
		struct tally_cfi_section section = { .bytes = cfi.bytes, .size = cfi.size, .address = SECTION };
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
	static const uint8_t body[] = { 4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1 }; /* DWARF 4's CIE */
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
	struct tally_cfi_section section = { .bytes = cfi.bytes, .size = cfi.size, .ends_at_zero = true };
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
		put_fde(&cfi, cie, CODE + (i * 37 % 64) * 0x20, 0x10, BYTES(0x0e, (uint8_t)(i * 37 % 64)));
	put_fde(&cfi, cie, CODE, 0x10, BYTES(0x0e, 99)); /* a second account of the same function */
	put_fde(&cfi, cie, 0, 0x10000, BYTES(0x0e, 99)); /* dropped by the linker */
	struct tally_unwind_table *table = table_of(cfi.bytes, cfi.size, false);
	struct tally_cfi_program program;
	for (uint64_t i = 0; i < 64; i++) {
		assert_int_equal(tally_unwind_table_lookup(table, CODE + i * 0x20 + 15, &program), TALLY_UNWIND_FOUND);
		assert_int_equal(program.row.cfa.value, i);
		assert_int_equal(tally_unwind_table_lookup(table, CODE + i * 0x20 + 16, &program),
				 TALLY_UNWIND_NOT_FOUND);
	}
	assert_int_equal(tally_unwind_table_lookup(table, CODE - 1, &program), TALLY_UNWIND_NOT_FOUND);
	tally_unwind_table_free(table);
}

/* Expressions: rsp = 0x7000 with words 0x1111…, 0x2222…; rbx = −5; r12 is not known; the object is at 0x400000. */
static enum tally_expression_result evaluate(const uint8_t *bytes, size_t size, const uint64_t *initial,
					     uint64_t *value)
{
	static const uint64_t stack[] = { 0x1111111111111181, 0x2222222222222222 };
	struct tally_unwind_frame frame = { .known = 0x1ffff & ~(1u << R12), .bias = 0x400000,
					    .stack = (const uint8_t *)stack, .stack_size = sizeof(stack),
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
		{ { 0x03, 0x34, 0x12, 0, 0, 0, 0, 0, 0 }, 9, 0x401234 },           /* addr */
		{ { 0x77, 0, 0x06 }, 3, 0x1111111111111181 },                      /* breg7 0, deref */
		{ { 0x77, 8, 0x06 }, 3, 0x2222222222222222 },
		{ { 0x77, 0, 0x94, 1 }, 4, 0x81 },                                 /* deref_size */
		{ { 0x77, 0, 0x94, 2 }, 4, 0x1181 },
		{ { 0x77, 0, 0x94, 4 }, 4, 0x11111181 },
		{ { 0x08, 0xff }, 2, 0xff },                                       /* const1u, 1s, … */
		{ { 0x09, 0xff }, 2, UINT64_MAX },
		{ { 0x0a, 0xfe, 0xff }, 3, 0xfffe },
		{ { 0x0b, 0xfe, 0xff }, 3, (uint64_t)-2 },
		{ { 0x0c, 0xfe, 0xff, 0xff, 0xff }, 5, 0xfffffffe },
		{ { 0x0d, 0xfe, 0xff, 0xff, 0xff }, 5, (uint64_t)-2 },
		{ { 0x0e, 1, 0, 0, 0, 0, 0, 0, 0x80 }, 9, 0x8000000000000001 },
		{ { 0x0f, 1, 0, 0, 0, 0, 0, 0, 0x80 }, 9, 0x8000000000000001 },
		{ { 0x10, 0x80, 0x01 }, 3, 128 },                                  /* constu, consts */
		{ { 0x11, 0x7f }, 2, UINT64_MAX },
		{ { 0x33, 0x12, 0x22 }, 3, 6 },                                    /* lit3 dup plus */
		{ { 0x33, 0x34, 0x13 }, 3, 3 },                                    /* drop */
		{ { 0x33, 0x34, 0x14 }, 3, 3 },                                    /* over */
		{ { 0x31, 0x32, 0x33, 0x15, 2 }, 5, 1 },                           /* pick 2 */
		{ { 0x33, 0x39, 0x16, 0x1c }, 4, 6 },                              /* swap minus: 9 − 3 */
		{ { 0x31, 0x32, 0x33, 0x17 }, 4, 2 },                              /* rot: 3 1 2 */
		{ { 0x31, 0x32, 0x33, 0x17, 0x13 }, 5, 1 },
		{ { 0x31, 0x32, 0x33, 0x17, 0x13, 0x13 }, 6, 3 },
		{ { 0x73, 0, 0x19 }, 3, 5 },                                       /* abs −5 */
		{ { 0x3f, 0x36, 0x1a }, 3, 6 },                                    /* and */
		{ { 0x73, 0, 0x32, 0x1b }, 4, (uint64_t)-2 },                      /* −5 / 2 */
		{ { 0x0f, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b }, 12, 0x8000000000000000 },
		{ { 0x39, 0x34, 0x1c }, 3, 5 },                                    /* minus */
		{ { 0x39, 0x34, 0x1d }, 3, 1 },                                    /* mod */
		{ { 0x39, 0x34, 0x1e }, 3, 36 },                                   /* mul */
		{ { 0x39, 0x1f }, 2, (uint64_t)-9 },                               /* neg */
		{ { 0x39, 0x20 }, 2, ~(uint64_t)9 },                               /* not */
		{ { 0x39, 0x34, 0x21 }, 3, 13 },                                   /* or */
		{ { 0x39, 0x34, 0x22 }, 3, 13 },                                   /* plus */
		{ { 0x39, 0x23, 0x80, 0x01 }, 4, 137 },                            /* plus_uconst */
		{ { 0x33, 0x34, 0x24 }, 3, 48 },                                   /* shl */
		{ { 0x33, 0x08, 64, 0x24 }, 4, 0 },
		{ { 0x73, 0, 0x08, 60, 0x25 }, 5, 15 },                            /* shr */
		{ { 0x73, 0, 0x31, 0x26 }, 4, (uint64_t)-3 },                      /* shra */
		{ { 0x73, 0, 0x08, 200, 0x26 }, 5, UINT64_MAX },
		{ { 0x39, 0x33, 0x27 }, 3, 10 },                                   /* xor */
		{ { 0x35, 0x31, 0x28, 1, 0, 0x13, 0x96 }, 7, 5 },                  /* bra over the drop */
		{ { 0x35, 0x36, 0x30, 0x28, 1, 0, 0x13 }, 7, 5 },                  /* bra not taken */
		{ { 0x35, 0x2f, 1, 0, 0x13 }, 5, 5 },                              /* skip */
		{ { 0x33, 0x33, 0x29 }, 3, 1 },                                    /* eq ge gt le lt ne */
		{ { 0x73, 0, 0x33, 0x2a }, 4, 0 },                                 /* −5 ≥ 3: signed */
		{ { 0x33, 0x33, 0x2a }, 3, 1 },
		{ { 0x33, 0x33, 0x2b }, 3, 0 },
		{ { 0x73, 0, 0x33, 0x2c }, 4, 1 },
		{ { 0x73, 0, 0x33, 0x2d }, 4, 1 },
		{ { 0x33, 0x34, 0x2e }, 3, 1 },
		{ { 0x30 }, 1, 0 },
		{ { 0x4f }, 1, 31 },                                               /* lit31 */
		{ { 0x53 }, 1, (uint64_t)-5 },                                     /* reg3, as a value */
		{ { 0x90, 3 }, 2, (uint64_t)-5 },                                  /* regx */
		{ { 0x73, 0x7f }, 2, (uint64_t)-6 },                               /* breg3 −1 */
		{ { 0x92, 3, 6 }, 3, 1 },                                          /* bregx */
		{ { 0x33, 0x96 }, 2, 3 },                                          /* nop */
		/* The PLT's, at ip & 15 = 0: breg7 8, breg16 0, lit15 and lit11 ge, lit3 shl, plus. */
		{ { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 }, 11, 0x7008 },
		{ { 0x77, 8, 0x80, 11, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 }, 11, 0x7010 },
		/* A loop: 5 + 4 + 3 + 2 + 1 by counting down. */
		{ { 0x30, 0x35, 0x12, 0x17, 0x22, 0x16, 0x31, 0x1c, 0x12, 0x28, 0xf6, 0xff, 0x13 }, 13, 15 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t value;
		assert_int_equal(evaluate(cases[i].bytes, cases[i].size, NULL, &value), TALLY_EXPRESSION_OK);
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
		{ { 0 }, 0 },                      /* leaves nothing */
		{ { 0x22 }, 1 },                   /* nothing to add */
		{ { 0x31, 0x15, 1 }, 3 },          /* pick from below the stack */
		{ { 0x31, 0x30, 0x1b }, 3 },       /* division by 0 */
		{ { 0x31, 0x30, 0x1d }, 3 },
		{ { 0x2f, 0xfd, 0xff }, 3 },       /* skips back to itself */
		{ { 0x31, 0x2f, 0xfc, 0xff }, 4 }, /* pushes for ever */
		{ { 0x2f, 0x00, 0x80 }, 3 },       /* out of the expression */
		{ { 0x31, 0x2f, 9, 0 }, 4 },
		{ { 0x7c, 0 }, 2 },                /* r12 is not known */
		{ { 0x8f, 0 }, 2 },                /* register 31 */
		{ { 0x92, 0x7f, 0 }, 3 },
		{ { 0x0c, 1, 2 }, 3 },             /* operand cut short */
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
	assert_int_equal(evaluate(BYTES(0x77, 0x7f, 0x06), NULL, &value), TALLY_EXPRESSION_UNREADABLE);
}

/* A process: one object, loaded at BIAS, with rules for [CODE, CODE + 0x1000), code without rules at BIAS + 0x10000
 * and up to 0x20000; nothing else is mapped. */
enum { BIAS = 0x400000, JIT = BIAS + 0x10000 };

static bool find(void *context, uint64_t address, struct tally_unwind_place *place)
{
	if (address < BIAS || address >= BIAS + 0x20000)
		return false;
	place->address = address - BIAS;
	place->table = address < JIT ? context : NULL;
	return true;
}

struct walk {
	struct tally_unwind_table *table;
	uint64_t stack[64];
	struct tally_unwind_request request;
	uint64_t addresses[16];
	size_t count;
	enum tally_unwind_end end;
};

enum { STACK = 0x7000 };

static void run(struct walk *walk, size_t words, size_t limit)
{
	walk->request.registers[TALLY_UNWIND_RSP] = STACK;
	walk->request.stack = (const uint8_t *)walk->stack;
	walk->request.stack_size = words * 8;
	walk->request.find = find;
	walk->request.context = walk->table;
	walk->request.machine = TALLY_UNWIND_X86_64;
	struct unwind_way way;
	assert_true(unwind_every_way(&walk->request, NULL, limit, &way));
	walk->count = way.count;
	walk->end = way.end;
	memcpy(walk->addresses, way.addresses, way.count * sizeof(*way.addresses));
}

#define F(offset) ((uint64_t)BIAS + CODE + (offset))

/* f at 0x00 pushes rbx and 16 bytes; g at 0x40 keeps its CFA in rbx + 16; h at 0x80 is the outermost; s at 0xc0 is
 * the trampoline of signals (its registers: rip at rsp, rsp at rsp + 8, rbx at rsp + 16); r at 0x100 has bad
 * rules; v at 0x140 has its return address in rsi. */
static void setup_walk(struct walk *walk, struct cfi *cfi)
{
	memset(walk, 0, sizeof(*walk));
	memset(cfi, 0, sizeof(*cfi));
	size_t cie = put_usual_cie(cfi);
	put_fde(cfi, cie, CODE, 0x40,
		BYTES(0x41, 0x0e, 16, 0x83, 2, 0x44, 0x0e, 32, 0x60, 0x0e, 16, 0x41, 0x0e, 8));
	put_fde(cfi, cie, CODE + 0x40, 0x40, BYTES(0x0c, RBX, 16));
	put_fde(cfi, cie, CODE + 0x80, 0x40, BYTES(0x07, 16));
	size_t signal = put_cie(cfi, "zRS", BYTES(0), BYTES(0x0f, 3, 0x77, 8, 0x06, 0x10, 16, 2, 0x77, 0, 0x10, 7, 2,
							     0x77, 8, 0x10, 3, 2, 0x77, 16));
	size_t at = begin(cfi, (uint32_t)(cfi->size + 4 - signal));
	put_u64(cfi, CODE + 0xbf);
	put_u64(cfi, 0x41);
	put(cfi, BYTES(0));
	finish(cfi, at);
	put_fde(cfi, cie, CODE + 0x100, 0x40, BYTES(0x0b));
	put_fde(cfi, cie, CODE + 0x140, 0x40, BYTES(0x0e, 0, 0x09, 16, RSI));
	walk->table = table_of(cfi->bytes, cfi->size, false);
}

static void check(const struct walk *walk, enum tally_unwind_end end, const uint64_t *expected, size_t count)
{
	assert_string_equal(tally_unwind_end_text(walk->end), tally_unwind_end_text(end));
	assert_int_equal(walk->count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(walk->addresses[i], expected[i]);
}

#define CHECK(walk, end, ...) \
	check((walk), (end), (const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8)

static void a_chain_is_followed_to_the_outermost_frame(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	/* f behind its sub: 16 bytes, rbx, return into g; g: CFA = rbx + 16, return into h. */
	walk.request.registers[TALLY_UNWIND_RIP] = F(0x10);
	walk.stack[2] = STACK + 6 * 8;
	walk.stack[3] = F(0x50);
	walk.stack[7] = F(0x90);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x10), F(0x50), F(0x90));

	/* The return address 0 ends a chain too. */
	walk.stack[7] = 0;
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x10), F(0x50));

	run(&walk, 8, 1);
	CHECK(&walk, TALLY_UNWIND_LIMIT, F(0x10));
	run(&walk, 8, 2);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x10), F(0x50));
	run(&walk, 8, 0);
	assert_int_equal(walk.count, 0);
	assert_int_equal(walk.end, TALLY_UNWIND_LIMIT);
	tally_unwind_table_free(walk.table);
}

static void rules_of_a_caller_are_those_of_its_call(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	/* The leaf is at f's first instruction: f's rules.  The return address 0x80 is h's first byte, but the call
	 * was g's last instruction: g's rules. */
	walk.request.registers[TALLY_UNWIND_RIP] = F(0);
	walk.request.registers[RBX] = STACK + 3 * 8;
	walk.stack[0] = F(0x80);
	walk.stack[4] = F(0x90);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0), F(0x80), F(0x90));
	tally_unwind_table_free(walk.table);
}

static void an_interrupted_frame_is_looked_up_at_its_ip(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	/* A handler (f at its entry) returns to the trampoline's first byte; the signal hit f's first byte, whose
	 * rules at ip − 1 would be nobody's. */
	walk.request.registers[TALLY_UNWIND_RIP] = F(0);
	walk.stack[0] = F(0xc0);
	walk.stack[1] = F(0);
	walk.stack[2] = STACK + 9 * 8;
	walk.stack[9] = F(0x90);
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0), F(0xc0), F(0), F(0x90));

	/* Out of the handler's stack to one that was not copied, wherever that is. */
	walk.stack[2] = 0x7fff00000000;
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_TRUNCATED, F(0), F(0xc0), F(0));
	tally_unwind_table_free(walk.table);
}

static void a_popped_register_keeps_its_value(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	/* f's last byte: rbx is popped, its rule still points below rsp.  g needs it. */
	walk.request.registers[TALLY_UNWIND_RIP] = F(0x26);
	walk.request.registers[RBX] = STACK + 3 * 8;
	walk.stack[0] = F(0x50);
	walk.stack[4] = F(0x90);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x26), F(0x50), F(0x90));
	tally_unwind_table_free(walk.table);
}

static void a_return_address_may_be_in_a_register(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	walk.request.registers[TALLY_UNWIND_RIP] = F(0x150);
	walk.request.registers[RSI] = F(0x10);
	walk.stack[3] = F(0x90);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x150), F(0x10), F(0x90));
	/* … but not lead to itself. */
	walk.request.registers[RSI] = F(0x150);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_BAD_RULES, F(0x150));
	tally_unwind_table_free(walk.table);
}

static void a_frame_without_rules_is_stepped_over_by_frame_pointer(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	walk.request.registers[TALLY_UNWIND_RIP] = JIT + 0x10;
	walk.request.registers[TALLY_UNWIND_RBP] = STACK + 8;
	walk.stack[1] = STACK + 32; /* the JIT's caller, JIT too */
	walk.stack[2] = JIT + 0x80;
	walk.stack[5] = F(0x10); /* called by f */
	walk.stack[9] = F(0x90);
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, JIT + 0x10, JIT + 0x80, F(0x10), F(0x90));

	walk.stack[5] = 0xdead0000; /* a frame pointer that led nowhere */
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_NO_RULES, JIT + 0x10, JIT + 0x80);
	walk.stack[1] = STACK + 33; /* no frame pointer */
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_NO_RULES, JIT + 0x10, JIT + 0x80);
	walk.stack[1] = STACK + 16; /* below the frame */
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_NO_RULES, JIT + 0x10, JIT + 0x80);
	walk.stack[1] = STACK + 160; /* above the copy */
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_TRUNCATED, JIT + 0x10, JIT + 0x80);

	/* Such a frame may have saved rbx anywhere: g's rules can't be followed. */
	walk.stack[1] = STACK + 32;
	walk.stack[2] = F(0x50);
	walk.request.registers[RBX] = STACK + 32;
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_BAD_RULES, JIT + 0x10, F(0x50));
	tally_unwind_table_free(walk.table);
}

static void code_tells_where_it_stands(void **state)
{
	(void)state;
	static const struct {
		uint8_t bytes[12], size, previous;
		enum tally_code_spot spot;
	} cases[] = {
		{ { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 }, 9, 0, TALLY_CODE_SIGRETURN },
		{ { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f }, 8, 0, TALLY_CODE_OTHER },
		{ { 0x48, 0xc7, 0xc0, 0x0e, 0, 0, 0, 0x0f, 0x05 }, 9, 0, TALLY_CODE_OTHER },
		{ { 0xff, 0x25, 1, 2, 3, 4 }, 6, 0, TALLY_CODE_EDGE },             /* jmp *x(%rip) */
		{ { 0xf2, 0xff, 0x25, 1, 2, 3, 4 }, 7, 0, TALLY_CODE_EDGE },       /* bnd jmp */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25 }, 6, 0, TALLY_CODE_EDGE }, /* endbr64 */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5 }, 8, 0, TALLY_CODE_EDGE },
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x53 }, 5, 0, TALLY_CODE_OTHER }, /* behind setjmp, too */
		{ { 0xc3 }, 1, 0, TALLY_CODE_EDGE },                               /* ret */
		{ { 0xf3, 0xc3 }, 2, 0, TALLY_CODE_EDGE },
		{ { 0xc2, 8, 0 }, 3, 0, TALLY_CODE_OTHER },
		{ { 0x55, 0x48, 0x89, 0xe5 }, 4, 0, TALLY_CODE_EDGE },             /* push %rbp; mov %rsp,%rbp */
		{ { 0x55, 0x48, 0x8b, 0xec }, 4, 0, TALLY_CODE_EDGE },
		{ { 0x48, 0x89, 0xe5 }, 3, 0x55, TALLY_CODE_PUSHED_RBP },
		{ { 0x48, 0x89, 0xe5 }, 3, 0x53, TALLY_CODE_OTHER },
		{ { 0x55 }, 1, 0, TALLY_CODE_OTHER },
		{ { 0 }, 0, 0x55, TALLY_CODE_OTHER },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(tally_code_recognise(cases[i].bytes, cases[i].size, cases[i].previous),
				 cases[i].spot);
}

/* An executable of one segment without rules; sigreturn at 0x80, PLT at 0x90, a prologue at 0xa0. */
static struct tally_object *object_without_rules(void)
{
	uint8_t image[0x100] = { 0 };
	static const uint8_t sigreturn[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t plt[] = { 0xff, 0x25, 0, 1, 0, 0 };
	static const uint8_t prologue[] = { 0x55, 0x48, 0x89, 0xe5 };
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			      .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
			      .e_phoff = sizeof(header), .e_ehsize = sizeof(header), .e_phnum = 1,
			      .e_phentsize = sizeof(Elf64_Phdr) };
	Elf64_Phdr segment = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof(image),
			       .p_memsz = sizeof(image) };
	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), &segment, sizeof(segment));
	memcpy(image + 0x80, sigreturn, sizeof(sigreturn));
	memcpy(image + 0x90, plt, sizeof(plt));
	memcpy(image + 0xa0, prologue, sizeof(prologue));
	struct tally_object *object;
	assert_int_equal(tally_object_open_memory("bare", image, sizeof(image), &object, NULL), 0);
	return object;
}

static void code_without_rules_is_stepped_through_by_what_it_is(void **state)
{
	(void)state;
	struct tally_object *object = object_without_rules();
	struct walk walk = { 0 };
	assert_int_equal(tally_unwind_table_new(object, NULL, &walk.table, NULL), 0);
	tally_object_unref(object);
	assert_int_equal(walk.table->index_count, 0);
	/* A handler, in a PLT stub; the signal's context; a function that has pushed rbp; its caller. */
	walk.request.registers[TALLY_UNWIND_RIP] = BIAS + 0x90;
	walk.stack[0] = BIAS + 0x80;
	walk.stack[6 + 15] = STACK + 30 * 8; /* rsp, rip: behind r8–r15 rdi rsi rbp rbx rdx rax rcx */
	walk.stack[6 + 16] = BIAS + 0xa1;
	walk.stack[30] = STACK + 40 * 8;
	walk.stack[31] = BIAS + 0xb0;
	run(&walk, 64, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, BIAS + 0x90, BIAS + 0x80, BIAS + 0xa1, BIAS + 0xb0);
	run(&walk, 22, 16);
	CHECK(&walk, TALLY_UNWIND_TRUNCATED, BIAS + 0x90, BIAS + 0x80);
	tally_unwind_table_free(walk.table);
}

static void each_end_is_told(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	walk.request.registers[TALLY_UNWIND_RIP] = 0xdead0000;
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_NO_MAP, 0xdead0000);

	walk.request.registers[TALLY_UNWIND_RIP] = F(0x110);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_BAD_RULES, F(0x110));

	walk.request.registers[TALLY_UNWIND_RIP] = F(0x10);
	walk.stack[3] = F(0x808); /* in the entry point's code, which has no rules */
	walk.table->entry_point = CODE + 0x800;
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x10), F(0x808));
	walk.stack[3] = F(0x800);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_NO_RULES, F(0x10), F(0x800));

	walk.request.registers[TALLY_UNWIND_RIP] = F(0x10);
	walk.stack[3] = F(0x10);
	walk.stack[7] = F(0x10);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_TRUNCATED, F(0x10), F(0x10), F(0x10));
	run(&walk, 0, 16);
	CHECK(&walk, TALLY_UNWIND_TRUNCATED, F(0x10));

	walk.stack[7] = 0xdead0000; /* isn't written */
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_NO_MAP, F(0x10), F(0x10));

	/* A CFA below rsp, and one far from the stack. */
	walk.request.registers[TALLY_UNWIND_RIP] = F(0x50);
	walk.request.registers[RBX] = STACK - 0x100;
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_BAD_RULES, F(0x50));
	walk.request.registers[RBX] = 0x1234567890ab;
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_BAD_RULES, F(0x50));
	tally_unwind_table_free(walk.table);
}

/* arm64: rules of sp and x30, signed return addresses, and frame records where there are no rules. */
static void arm64_s_signed_returns_are_stripped(void **state)
{
	(void)state;
	const uint64_t signature = 0x7fb5000000000000;
	struct cfi cfi = { 0 };
	size_t at = begin(&cfi, 0); /* x30 is the return column; at entry CFA = sp */
	put(&cfi, BYTES(1, 0, 4, 0x78, 30, 0x0c, 31, 0));
	finish(&cfi, at);
	/* paciasp; stp x29,x30,[sp,#-32]!; … */
	put_fde(&cfi, at, CODE, 0x40, BYTES(0x41, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3));
	put_fde(&cfi, at, CODE + 0x80, 0x40, BYTES(0x07, 30));
	struct tally_cfi_section section = { .bytes = cfi.bytes, .size = cfi.size, .address = SECTION,
					     .machine = TALLY_UNWIND_ARM64 };
	struct walk walk = { .request = { .machine = TALLY_UNWIND_ARM64, .stack = (const uint8_t *)walk.stack,
					  .stack_size = sizeof(walk.stack), .find = find } };
	assert_int_equal(tally_unwind_table_new_from_bytes(&section, NULL, &walk.table, NULL), 0);
	walk.request.context = walk.table;
	walk.request.registers[TALLY_UNWIND_ARM64_SP] = STACK;
	walk.request.registers[TALLY_UNWIND_ARM64_PC] = F(0x10);
	walk.stack[0] = STACK + 48; /* x29, to a record of code without rules; x30 */
	walk.stack[1] = signature | (JIT + 0x20);
	walk.stack[6] = STACK + 80;
	walk.stack[7] = signature | F(0x90);
	struct unwind_way way;
	assert_true(unwind_every_way(&walk.request, NULL, 16, &way));
	assert_int_equal(way.end, TALLY_UNWIND_COMPLETE);
	assert_int_equal(way.count, 3);
	assert_int_equal(way.addresses[1], JIT + 0x20);
	assert_int_equal(way.addresses[2], F(0x90));
	/* At entry the return address is in x30 alone. */
	walk.request.registers[TALLY_UNWIND_ARM64_PC] = F(0);
	walk.request.registers[TALLY_UNWIND_X30] = signature | F(0x90);
	assert_true(unwind_every_way(&walk.request, NULL, 16, &way));
	assert_int_equal(way.end, TALLY_UNWIND_COMPLETE);
	assert_int_equal(way.count, 2);
	assert_int_equal(way.addresses[1], F(0x90));
	tally_unwind_table_free(walk.table);
}

static void sample_registers_come_in_dwarf_s_order(void **state)
{
	(void)state;
	/* ax bx cx dx si di bp sp ip flags cs ss, r8–r15 */
	uint64_t words[20], registers[TALLY_UNWIND_REGISTERS];
	for (size_t i = 0; i < 20; i++)
		words[i] = 100 + i;
	assert_true(tally_unwind_registers(TALLY_UNWIND_X86_64, words, TALLY_UNWIND_REGS_MASK, registers));
	static const uint64_t expected[] = { 100, 103, 102, 101, 104, 105, 106, 107, 112,
					     113, 114, 115, 116, 117, 118, 119, 108 };
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		assert_int_equal(registers[i], expected[i]);
	assert_true(tally_unwind_registers(TALLY_UNWIND_X86_64, words, 1 << 6 | 1 << 7 | 1 << 8, registers));
	assert_int_equal(registers[TALLY_UNWIND_RBP], 100);
	assert_int_equal(registers[TALLY_UNWIND_RSP], 101);
	assert_int_equal(registers[TALLY_UNWIND_RIP], 102);
	assert_false(tally_unwind_registers(TALLY_UNWIND_X86_64, words, 1 << 6 | 1 << 7, registers));
	assert_false(tally_unwind_registers(TALLY_UNWIND_X86_64, words, 1 << 8, registers));
}

static void frame_pointers_are_told_from_rules(void **state)
{
	(void)state;
	static const uint8_t pointer[] = { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6 };
	static const uint8_t realigned[] = { 0x45, 0x0c, 10, 0, 0x49, 0x10, 6, 2, 0x76, 0,
					     0x45, 0x0f, 3, 0x76, 0x78, 0x06 };
	struct cfi cfi = { 0 };
	size_t cie = put_usual_cie(&cfi), functions, with;
	uint64_t at = CODE;
	put_fde(&cfi, cie, at += 0x100, 0x100, pointer, sizeof(pointer));
	put_fde(&cfi, cie, at += 0x100, 0x100, realigned, sizeof(realigned));
	put_fde(&cfi, cie, at += 0x100, 0x100, BYTES(0));                   /* a leaf */
	put_fde(&cfi, cie, at += 0x100, 0x100, BYTES(0x07, 16));            /* _start */
	put_fde(&cfi, cie, at += 0x100, 0x100, BYTES(0x0e, 16, 0x46, 0x0e, 24)); /* PLT, or a cold part */
	struct tally_unwind_table *table = table_of(cfi.bytes, cfi.size, false);
	assert_true(tally_unwind_table_uses_frame_pointers(table, &functions, &with));
	assert_int_equal(functions, 2);
	assert_int_equal(with, 2);
	tally_unwind_table_free(table);

	put_fde(&cfi, cie, at += 0x100, 0x100, BYTES(0x41, 0x0e, 16, 0x83, 2)); /* push %rbx */
	put_fde(&cfi, cie, at += 0x100, 0x100, BYTES(0x41, 0x0e, 16, 0x86, 2)); /* push %rbp, as any register */
	table = table_of(cfi.bytes, cfi.size, false);
	assert_false(tally_unwind_table_uses_frame_pointers(table, &functions, &with));
	assert_int_equal(functions, 4);
	assert_int_equal(with, 2);
	tally_unwind_table_free(table);

	table = table_of(NULL, 0, false);
	assert_false(tally_unwind_table_uses_frame_pointers(table, &functions, &with));
	assert_int_equal(functions, 0);
	tally_unwind_table_free(table);
}

static bool find_everywhere(void *context, uint64_t address, struct tally_unwind_place *place)
{
	*place = (struct tally_unwind_place){ .table = context, .address = address - BIAS };
	return true;
}

/* Everything that reads a section, on bytes that are exactly as long as they are said to be. */
static void exercise(const uint8_t *bytes, size_t size, uint64_t address, struct tally_unwind_cache *cache)
{
	static uint64_t spaces;
	uint8_t *copy = malloc(size ? size : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, size);
	struct walk walk = { .request.space = ++spaces };
	struct tally_cfi_section section = { .bytes = copy, .size = size, .address = address,
					     .machine = TALLY_UNWIND_X86_64 };
	assert_int_equal(tally_unwind_table_new_from_bytes(&section, NULL, &walk.table, NULL), 0);
	size_t functions, with;
	tally_unwind_table_uses_frame_pointers(walk.table, &functions, &with);
	for (size_t i = 0; i < 64; i++)
		walk.stack[i] = i % 2 ? F(i * 16) : STACK + i * 24;
	for (size_t i = 0; walk.table->index_count && i < walk.table->indexes[0].functions.count; i += 7) {
		const struct tally_unwind_function *function = &walk.table->indexes[0].functions.items[i];
		for (size_t reg = 0; reg < TALLY_UNWIND_REGISTERS; reg++)
			walk.request.registers[reg] = STACK + reg * 8;
		walk.request.registers[TALLY_UNWIND_RIP] = BIAS + function->start + function->size / 2;
		walk.request.registers[TALLY_UNWIND_RSP] = STACK;
		walk.request.stack = (const uint8_t *)walk.stack;
		walk.request.stack_size = sizeof(walk.stack);
		walk.request.find = find_everywhere;
		walk.request.context = walk.table;
		walk.request.machine = TALLY_UNWIND_X86_64;
		struct unwind_way way;
		assert_true(unwind_every_way(&walk.request, cache, 16, &way));
		assert_in_range(way.count, 1, 16);
	}
	tally_unwind_table_free(walk.table);
	free(copy);
}

static void damaged_sections_do_no_damage(void **state)
{
	(void)state;
	struct tally_object *object;
	struct tally_section section;
	assert_int_equal(tally_object_open(AT_FDCWD, "/proc/self/exe", &object, NULL), 0);
	assert_true(tally_object_section(object, ".eh_frame", &section));
	uint64_t address = section.address;
	size_t size = section.size < 16384 ? section.size : 16384;
	uint8_t *bytes = malloc(size);
	assert_non_null(bytes);
	memcpy(bytes, section.bytes, size);
	uint64_t seed = 20240611;
	struct tally_unwind_cache *cache = tally_unwind_cache_new();
	assert_non_null(cache);
	exercise(bytes, size, address, cache);
	for (unsigned i = 0; i < 600; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		exercise(bytes, (seed >> 33) % size, address, cache);
	}
	for (unsigned i = 0; i < 1400; i++) {
		memcpy(bytes, section.bytes, size);
		for (unsigned flips = 0; flips <= i % 16; flips++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			/* every other one near the start, where the CIE that all share is */
			size_t at = (seed >> 33) % (i % 2 ? size : 256);
			bytes[at] ^= (uint8_t)(1u << (seed >> 20 & 7));
		}
		exercise(bytes, size, address, cache);
	}
	tally_unwind_cache_free(cache);
	free(bytes);
	tally_object_unref(object);
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
		cmocka_unit_test(a_chain_is_followed_to_the_outermost_frame),
		cmocka_unit_test(rules_of_a_caller_are_those_of_its_call),
		cmocka_unit_test(an_interrupted_frame_is_looked_up_at_its_ip),
		cmocka_unit_test(a_popped_register_keeps_its_value),
		cmocka_unit_test(a_return_address_may_be_in_a_register),
		cmocka_unit_test(a_frame_without_rules_is_stepped_over_by_frame_pointer),
		cmocka_unit_test(code_tells_where_it_stands),
		cmocka_unit_test(code_without_rules_is_stepped_through_by_what_it_is),
		cmocka_unit_test(each_end_is_told),
		cmocka_unit_test(arm64_s_signed_returns_are_stripped),
		cmocka_unit_test(sample_registers_come_in_dwarf_s_order),
		cmocka_unit_test(frame_pointers_are_told_from_rules),
		cmocka_unit_test(damaged_sections_do_no_damage),
	};
	return cmocka_run_group_tests_name("unwind", tests, NULL, NULL);
}
