#include "test.h"

#include "object/cache.h"
#include "object/object.h"
#include "symbol/lines.h"
#include "symbol/lines_internal.h"
#include "symbol/symbol_internal.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ---- ranges inside ranges ---- */

/* The slow way: of all ranges that hold the address, returns the last in the contract's order. */
static uint32_t innermost(const struct tally_nested_range *ranges, size_t count, uint64_t address)
{
	const struct tally_nested_range *best = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct tally_nested_range *range = &ranges[i];
		if (address < range->start || address >= range->end)
			continue;
		if (!best || range->start > best->start ||
		    (range->start == best->start && range->end <= best->end))
			best = range;
	}
	return best ? best->id : (uint32_t)TALLY_NESTED_NONE;
}

static void innermost_ranges_are_those_of_a_search_through_all(void **state)
{
	(void)state;
	enum { RANGES = 60, SPACE = 200 };
	srand(1);
	for (unsigned round = 0; round < 2000; round++) {
		struct tally_nested nested = { 0 };
		struct tally_nested_range ranges[RANGES];
		size_t count = (size_t)rand() % RANGES;
		for (size_t i = 0; i < count; i++) {
			uint64_t start = (uint64_t)rand() % SPACE;
			uint64_t longest = round % 2 ? 8 : SPACE;
			ranges[i] = (struct tally_nested_range){
				start, start + 1 + (uint64_t)rand() % longest, (uint32_t)i
			};
			assert_int_equal(tally_vector_push(&nested.ranges, ranges[i]), 0);
		}
		assert_int_equal(tally_nested_flatten(&nested), 0);
		size_t at = 0;
		for (uint64_t address = 0; address < 2 * SPACE + 2; address++) {
			while (at < nested.items.count && nested.items.items[at].start <= address)
				at++;
			uint32_t id = at ? nested.items.items[at - 1].id
					 : (uint32_t)TALLY_NESTED_NONE;
			assert_int_equal(id, innermost(ranges, count, address));
		}
		tally_nested_release(&nested);
	}
}

/* ---- units made by hand ---- */

enum { CODE = 0x1000, CODE_SIZE = 0x1000 };

/* Abbreviations: 1 is a unit, 2 a function, 3 a block with children, 4 a function without a
 * name. */
static const uint8_t ABBREVS[] = {
	1, DW_TAG_compile_unit, 1, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0,
	2, DW_TAG_subprogram, 0, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4,
	DW_AT_abstract_origin, DW_FORM_ref4, 0, 0,
	3, DW_TAG_lexical_block, 1, 0, 0,
	4, DW_TAG_subprogram, 0, DW_AT_ranges, DW_FORM_sec_offset, 0, 0,
	0,
};

struct made {
	uint8_t *info;
	size_t size;
	struct tally_dwarf_file file;
	struct tally_lines_program program;
	struct tally_lines_scratch *scratch;
	struct tally_lines_unit compiled;
};

static void put(struct made *made, const void *bytes, size_t size)
{
	memcpy(made->info + made->size, bytes, size);
	made->size += size;
}

static void put_code(struct made *made, uint8_t code)
{
	put(made, &code, 1);
}

static void put_extent(struct made *made, uint64_t start, uint32_t size)
{
	put(made, &start, sizeof(start));
	put(made, &size, sizeof(size));
}

static void begin(struct made *made, size_t capacity)
{
	*made = (struct made){ .info = calloc(1, capacity),
			       .scratch = calloc(1, sizeof(*made->scratch)) };
	assert_non_null(made->info);
	assert_non_null(made->scratch);
	/* version 4, addresses of 8 bytes */
	const uint8_t header[] = { 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8 };
	put(made, header, sizeof(header));
	put_code(made, 1);
	put_extent(made, CODE, CODE_SIZE);
}

static void compile(struct made *made)
{
	uint32_t length = (uint32_t)made->size - 4;
	memcpy(made->info, &length, sizeof(length));
	made->file.sections[TALLY_DWARF_INFO] = (struct tally_dwarf_bytes){ made->info, made->size,
									    0 };
	made->file.sections[TALLY_DWARF_ABBREV] = (struct tally_dwarf_bytes){ ABBREVS,
									      sizeof(ABBREVS), 0 };
	made->program.path = "made";
	tally_dwarf_allow(&made->scratch->dwarf, &made->file);
	assert_int_equal(tally_vector_push(&made->program.code.ranges,
					   (struct tally_dwarf_range){ CODE, CODE + CODE_SIZE }),
			 0);
	assert_int_equal(tally_dwarf_read_units(&made->file, &made->scratch->dwarf, NULL), 0);
	assert_int_equal(made->file.units.count, 1);
	assert_int_equal(tally_lines_compile(made->scratch, &made->file.units.items[0],
					     &made->program, &made->compiled),
			 0);
}

static void release(struct made *made)
{
	tally_lines_unit_release(&made->compiled);
	tally_lines_scratch_release(made->scratch);
	tally_vector_release(&made->program.code.ranges);
	tally_dwarf_file_release(&made->file);
	free(made->scratch);
	free(made->info);
}

static void a_loop_of_references_is_a_function_without_a_name(void **state)
{
	(void)state;
	struct made made;
	begin(&made, 256);
	uint32_t itself = (uint32_t)made.size;
	put_code(&made, 2);
	put_extent(&made, CODE + 16, 16);
	put(&made, &itself, sizeof(itself));
	uint32_t next = (uint32_t)made.size + 1 + 12 + 4, here = (uint32_t)made.size;
	put_code(&made, 2);
	put_extent(&made, CODE + 32, 16);
	put(&made, &next, sizeof(next));
	put_code(&made, 2);
	put_extent(&made, CODE + 48, 16);
	put(&made, &here, sizeof(here));
	put_code(&made, 0);
	compile(&made);
	assert_int_equal(made.compiled.node_count, 3);
	for (uint32_t i = 0; i < made.compiled.node_count; i++)
		assert_null(
			tally_lines_unit_name(&made.compiled, NULL, made.compiled.nodes[i].name));
	assert_int_equal(made.compiled.range_count, 4);
	release(&made);
}

/* A table of version 5 with no directories and `count` files.  Each has one field of the form. */
static size_t sources_of(uint8_t form, uint8_t count)
{
	const uint8_t table[] = { 22, 0, 0, 0, 5, 0, 8, 0, 14, 0, 0, 0,
				  1, 1, 1, 0, 14, 1, /* no opcode has operands */
				  0, 0, 1, DW_LNCT_directory_index, form, count, 0, 0 };
	struct tally_dwarf_file file = { 0 };
	const struct tally_dwarf_unit unit = {
		.file = &file, .version = 5, .address_size = 8, .offset_size = 4, .has_lines = true
	};
	struct tally_dwarf_lines lines = { 0 };
	file.sections[TALLY_DWARF_LINE] = (struct tally_dwarf_bytes){ table, sizeof(table), 0 };
	struct tally_dwarf_scratch *scratch = calloc(1, sizeof(*scratch));
	assert_non_null(scratch);
	scratch->budget = UINT64_MAX;
	assert_int_equal(tally_dwarf_lines_read_tables(scratch, &lines, &unit), 0);
	free(scratch);
	size_t sources = lines.sources.count;
	tally_dwarf_lines_release(&lines);
	return sources;
}

/* UBSan: there is nothing to point to. */
static void a_table_without_attributes_has_units_without_any(void **state)
{
	(void)state;
	static const uint8_t ABBREV[] = { 1, DW_TAG_compile_unit, 0, 0, 0, 0 };
	static const uint8_t INFO[] = { 8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1 };
	struct tally_dwarf_file file = { 0 };
	struct tally_dwarf_scratch *scratch = calloc(1, sizeof(*scratch));
	assert_non_null(scratch);
	file.sections[TALLY_DWARF_INFO] = (struct tally_dwarf_bytes){ INFO, sizeof(INFO), 0 };
	file.sections[TALLY_DWARF_ABBREV] = (struct tally_dwarf_bytes){ ABBREV, sizeof(ABBREV), 0 };
	tally_dwarf_allow(scratch, &file);
	assert_int_equal(tally_dwarf_read_units(&file, scratch, NULL), 0);
	assert_int_equal(file.units.count, 1);
	assert_int_equal(file.units.items[0].tag, DW_TAG_compile_unit);
	assert_null(file.units.items[0].name);
	tally_dwarf_scratch_release(scratch);
	tally_dwarf_file_release(&file);
	free(scratch);
}

/* Otherwise a small forged file could ask for any number of entries. */
static void entries_without_bytes_end_their_table(void **state)
{
	(void)state;
	assert_int_equal(sources_of(DW_FORM_data1, 2), 2);
	assert_int_equal(sources_of(DW_FORM_flag_present, 100), 0);
}

static void depth_has_an_end(void **state)
{
	(void)state;
	enum { DEPTH = 1 << 20 };
	struct made made;
	begin(&made, DEPTH + 256);
	memset(made.info + made.size, 3, DEPTH);
	made.size += DEPTH;
	compile(&made);
	assert_int_equal(made.compiled.node_count, 0);
	release(&made);
}

/* Many functions claim the same long list as their own.  The sum is bounded by the unit's size. */
static void ranges_are_no_more_than_a_unit_can_have(void **state)
{
	(void)state;
	enum { ENTRIES = 1 << 16, FUNCTIONS = 1000 };
	struct made made;
	begin(&made, 5 * FUNCTIONS + 256);
	uint64_t *list = calloc(2 * ENTRIES, sizeof(*list));
	assert_non_null(list);
	for (size_t i = 0; i < ENTRIES; i++) {
		list[2 * i] = CODE;
		list[2 * i + 1] = CODE + 1 + i % CODE_SIZE;
	}
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		put_code(&made, 4);
		put(&made, &(uint32_t){ 0 }, 4);
	}
	put_code(&made, 0);
	made.file.sections[TALLY_DWARF_RANGES] =
		(struct tally_dwarf_bytes){ (const uint8_t *)list, 2 * ENTRIES * sizeof(*list), 0 };
	compile(&made);
	assert_true(made.scratch->nested.ranges.count <= 4096 + made.size);
	release(&made);
	free(list);
}

/* ---- this program ---- */

struct asked {
	struct tally_object *object;
	struct tally_lines *lines;
	uint64_t *addresses;
	struct tally_line_answer *answers;
	size_t count;
};

enum { STEP = 97 };

static int innermost_line_here(void)
{
	return __LINE__;
}

/* Asks about a program; `path` NULL: this program. */
static void ask_about_program(struct asked *asked, const char *path, struct tally_disk_cache *cache)
{
	struct tally_section text;
	if (!path || tally_object_open(AT_FDCWD, path, &asked->object, NULL) < 0)
		assert_int_equal(
			tally_object_open(AT_FDCWD, "/proc/self/exe", &asked->object, NULL), 0);
	assert_true(tally_object_section(asked->object, ".text", &text));
	asked->count = text.size / STEP;
	asked->addresses = calloc(asked->count + 1, sizeof(*asked->addresses));
	asked->answers = calloc(asked->count + 1, sizeof(*asked->answers));
	assert_non_null(asked->addresses);
	assert_non_null(asked->answers);
	for (size_t i = 0; i < asked->count; i++)
		asked->addresses[i] = text.address + i * STEP;
	assert_int_equal(tally_lines_new(asked->object, NULL, &asked->lines, NULL), 0);
	tally_lines_use_cache(asked->lines, cache);
	assert_int_equal(
		tally_lines_find(asked->lines, asked->addresses, asked->count, asked->answers), 0);
}

static void forget(struct asked *asked)
{
	tally_lines_free(asked->lines);
	tally_object_unref(asked->object);
	free(asked->addresses);
	free(asked->answers);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void assert_same(const struct tally_line_answer *a, const struct tally_line_answer *b)
{
	assert_int_equal(a->count, b->count);
	for (uint32_t i = 0; i < a->count; i++) {
		assert_true(same_text(a->frames[i].function, b->frames[i].function));
		assert_true(same_text(a->frames[i].file, b->frames[i].file));
		assert_int_equal(a->frames[i].line, b->frames[i].line);
		assert_int_equal(a->frames[i].column, b->frames[i].column);
	}
}

/* Asks with several threads at once, or one by one from the last to the first. */
static void answers_are_the_same_however_they_are_asked_for(void **state)
{
	(void)state;
	struct asked asked;
	char path[4096];
	/* This file is large enough for several threads. */
	const char *root = getenv("TALLY_BUILD_ROOT");
	snprintf(path, sizeof(path), "%s/tally", root ? root : ".");
	ask_about_program(&asked, path, NULL);
	struct tally_lines *others;
	assert_int_equal(tally_lines_new(asked.object, NULL, &others, NULL), 0);
	size_t known = 0;
	for (size_t i = asked.count; i-- > 0;) {
		struct tally_line_answer answer;
		assert_int_equal(tally_lines_find(others, &asked.addresses[i], 1, &answer), 0);
		assert_same(&answer, &asked.answers[i]);
		known += answer.count > 0;
	}
	tally_lines_free(others);
	forget(&asked);
	if (known == 0)
		skip(); /* the program has no debug information */
}

static void this_function_is_found_with_its_line(void **state)
{
	(void)state;
	struct asked asked;
	ask_about_program(&asked, NULL, NULL);
	/* Converts the address in memory to that in the file, by another symbol's distance from the
	 * code. */
	extern const char __executable_start[] __attribute__((weak));
	struct tally_line_answer answer;
	uint64_t address = (uint64_t)(uintptr_t)innermost_line_here;
	if (tally_object_type(asked.object) == ET_DYN)
		address -= (uint64_t)(uintptr_t)__executable_start;
	assert_int_equal(tally_lines_find(asked.lines, &address, 1, &answer), 0);
	if (answer.count > 0) {
		assert_string_equal(answer.frames[answer.count - 1].function,
				    "innermost_line_here");
		assert_non_null(strstr(answer.frames[0].file, "test_lines.c"));
		assert_in_range(answer.frames[0].line, (uint32_t)innermost_line_here() - 3,
				(uint32_t)innermost_line_here() + 1);
	}
	uint32_t count = answer.count;
	forget(&asked);
	if (count == 0)
		skip();
}

static void cached_answers_are_the_same_and_need_no_file(void **state)
{
	(void)state;
	char folder[] = "/tmp/tally-lines-XXXXXX";
	assert_non_null(mkdtemp(folder));
	struct tally_disk_cache *cache = tally_cache_open_at(folder, (uint64_t)1 << 30);
	assert_non_null(cache);
	struct asked first, second;
	ask_about_program(&first, NULL, cache);
	tally_lines_keep(first.lines);
	struct tally_cache_key key = { .id = *tally_object_build_id(first.object), .kind = "lines",
				       .version = TALLY_LINES_CACHE_VERSION };
	tally_cache_key_add(&key, first.object);
	struct tally_cache_blob blob;
	bool is_kept = tally_cache_get(cache, &key, &blob);
	if (is_kept) {
		/* The blob belongs to a file of this size. */
		struct tally_lines_blob opened;
		size_t size;
		tally_object_image(first.object, &size);
		assert_true(tally_lines_blob_open(&opened, blob.bytes, blob.size, size));
		assert_false(tally_lines_blob_open(&opened, blob.bytes, blob.size, size + 1));
		/* The strings come last: a blob cut anywhere is invalid. */
		for (size_t cut = 0; cut < 128; cut++)
			assert_false(tally_lines_blob_open(&opened, blob.bytes,
							   cut * blob.size / 128, size));
		tally_cache_blob_release(&blob);
	}
	ask_about_program(&second, NULL, cache);
	for (size_t i = 0; i < first.count; i++)
		assert_same(&first.answers[i], &second.answers[i]);
	forget(&second);
	forget(&first);
	uint64_t files, bytes;
	assert_int_equal(tally_cache_clear(cache, &files, &bytes), 0);
	assert_int_equal(files, is_kept ? 1 : 0);
	tally_cache_close(cache);
	rmdir(folder);
	if (!is_kept)
		skip(); /* no build-id, or no debug information */
}

static void an_object_without_debug_information_has_no_answers(void **state)
{
	(void)state;
	struct tally_object *object;
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					   ELFDATA2LSB, EV_CURRENT },
			      .e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_ehsize = sizeof(header) };
	assert_int_equal(tally_object_open_memory("bare", &header, sizeof(header), &object, NULL),
			 0);
	struct tally_lines *lines;
	assert_int_equal(tally_lines_new(object, NULL, &lines, NULL), 0);
	uint64_t addresses[] = { 0, 0x1000, UINT64_MAX };
	struct tally_line_answer answers[3];
	assert_int_equal(tally_lines_find(lines, addresses, 3, answers), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(answers[i].count, 0);
	tally_lines_free(lines);
	tally_object_unref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(innermost_ranges_are_those_of_a_search_through_all),
		cmocka_unit_test(a_loop_of_references_is_a_function_without_a_name),
		cmocka_unit_test(a_table_without_attributes_has_units_without_any),
		cmocka_unit_test(entries_without_bytes_end_their_table),
		cmocka_unit_test(depth_has_an_end),
		cmocka_unit_test(ranges_are_no_more_than_a_unit_can_have),
		cmocka_unit_test(answers_are_the_same_however_they_are_asked_for),
		cmocka_unit_test(this_function_is_found_with_its_line),
		cmocka_unit_test(cached_answers_are_the_same_and_need_no_file),
		cmocka_unit_test(an_object_without_debug_information_has_no_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
