/* Whole objects, of this machine and of others.  At the first and last address of each row of
 * rules, the compiled rule makes the same step as the interpreter, and agrees with libdw.  The
 * linker's index of functions agrees with the section.
 *
 * Arguments: ELF files; "-" for a missing one. */
#include "test.h"

#include "object/object.h"
#include "unwind/unwind_internal.h"
#include "unwind_ways.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>

enum { STACK = 0x7f0000, WORDS = 64, BIAS = 0x10000000, DISTINCT = 251 };

struct files {
	char **paths;
	int count;
};

struct subject {
	struct tally_unwind_table *table;
	const struct tally_unwind_layout *layout;
	struct tally_unwind_cache *cache;
	struct tally_unwind_request request;
	uint64_t stack[WORDS];
	size_t checked, stepped;
};

/* Allows one step only: the stack is artificial, so the next frame is not followed. */
static bool find(void *context, uint64_t address, struct tally_unwind_place *place)
{
	struct subject *subject = context;
	uint64_t asked = subject->request.registers[subject->layout->pc];
	*place = (struct tally_unwind_place){ .table = address == asked ? subject->table : NULL,
					      .address = address - BIAS };
	return true;
}

static void check_address(struct subject *subject, uint64_t address)
{
	struct unwind_way way;
	subject->request.registers[subject->layout->pc] = BIAS + address;
	assert_true(unwind_every_way(&subject->request, subject->cache, 2, &way));
	subject->checked++;
	subject->stepped += way.count == 2;
}

static void check_function(struct subject *subject, const struct tally_function_index *index,
			   const struct tally_unwind_function *function)
{
	struct tally_cfi_program program;
	if (!tally_function_index_start(index, function, &program))
		return;
	while (tally_cfi_program_next(&program)) {
		check_address(subject, program.row_start);
		check_address(subject, program.row_end - 1);
	}
}

/* Each word of the stack is different, and the registers point into it, so a wrong offset gives a
 * wrong answer. */
static void set_up(struct subject *subject)
{
	subject->layout = tally_unwind_layout(subject->table->machine);
	subject->request = (struct tally_unwind_request){
		.machine = subject->table->machine, .stack = (const uint8_t *)subject->stack,
		.stack_size = sizeof(subject->stack), .find = find, .context = subject, .space = 1,
	};
	for (unsigned i = 0; i < WORDS; i++)
		subject->stack[i] = STACK + 8 * WORDS + DISTINCT * i;
	for (unsigned reg = 0; reg < subject->layout->count; reg++)
		subject->request.registers[reg] = STACK + 8 * (reg % 24);
	subject->request.registers[subject->layout->sp] = STACK;
}

static void compiled_rules_step_as_the_interpreter_does(void **state)
{
	const struct files *files = *state;
	for (int i = 0; i < files->count; i++) {
		struct tally_object *object;
		struct subject subject = { 0 };
		if (strcmp(files->paths[i], "-") == 0)
			continue;
		assert_int_equal(tally_object_open(AT_FDCWD, files->paths[i], &object, NULL), 0);
		assert_int_equal(tally_unwind_table_new(object, NULL, &subject.table, NULL), 0);
		subject.cache = tally_unwind_cache_new();
		assert_non_null(subject.cache);
		set_up(&subject);
		for (unsigned j = 0; j < subject.table->index_count; j++) {
			const struct tally_function_index *index = &subject.table->indexes[j];
			struct tally_unwind_function function;
			for (size_t k = 0; k < index->count; k++)
				if (tally_function_index_at(index, k, &function))
					check_function(&subject, index, &function);
		}
		print_message("# %s: %zu addresses, a caller at %zu\n", files->paths[i],
			      subject.checked, subject.stepped);
		assert_true(subject.checked > 100);
		assert_true(subject.stepped * 2 > subject.checked);
		tally_unwind_cache_free(subject.cache);
		tally_unwind_table_free(subject.table);
		tally_object_unref(object);
	}
}

/* True if libdw says "saved at CFA + offset". */
static bool is_saved_at(Dwarf_Frame *frame, int reg, int64_t offset)
{
	Dwarf_Op memory[3], *operations;
	size_t count;
	if (dwarf_frame_register(frame, reg, memory, &operations, &count) != 0 || count < 1 ||
	    operations[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (count == 1)
		return offset == 0;
	return count == 2 && operations[1].atom == DW_OP_plus_uconst &&
	       (int64_t)operations[1].number == offset;
}

/* Returns 1 if the rule is a register and an offset, and libdw's differs. */
static unsigned differs_from_libdw(Dwarf_CFI *cfi, const struct tally_unwind_layout *layout,
				   uint64_t address, const struct tally_unwind_rule *rule,
				   size_t *compared)
{
	Dwarf_Frame *frame;
	Dwarf_Op *cfa;
	size_t count;
	if (rule->kind != TALLY_RULE_SAVED || rule->cfa_is_loaded ||
	    rule->base_register != TALLY_RULE_BASE_IS_CFA)
		return 0;
	if (dwarf_cfi_addrframe(cfi, address, &frame) != 0)
		return 1;
	bool is_equal = dwarf_frame_cfa(frame, &cfa, &count) == 0 && count == 1 &&
			cfa[0].atom == (cfa[0].atom == DW_OP_bregx
						? DW_OP_bregx
						: DW_OP_breg0 + rule->cfa_register) &&
			(int64_t)(cfa[0].atom == DW_OP_bregx ? cfa[0].number2 : cfa[0].number) ==
				rule->cfa_offset;
	if (rule->return_word != TALLY_RULE_RETURN_IN_REGISTER)
		is_equal &= is_saved_at(frame, layout->return_register, rule->return_word * 8);
	for (unsigned i = 0; i < rule->saved_count; i++)
		is_equal &= is_saved_at(frame, rule->saved_register[i], rule->saved_word[i] * 8);
	++*compared;
	free(frame);
	return !is_equal;
}

static void compiled_rules_are_libdw_s(void **state)
{
	const struct files *files = *state;
	for (int i = 0; i < files->count; i++) {
		struct tally_object *object;
		struct tally_unwind_table *table;
		struct tally_unwind_function function;
		size_t differing = 0, compared = 0;
		if (strcmp(files->paths[i], "-") == 0)
			continue;
		assert_int_equal(tally_object_open(AT_FDCWD, files->paths[i], &object, NULL), 0);
		assert_int_equal(tally_unwind_table_new(object, NULL, &table, NULL), 0);
		Dwarf_CFI *cfi = dwarf_getcfi_elf(tally_object_elf(object));
		assert_non_null(cfi);
		const struct tally_unwind_layout *layout = tally_unwind_layout(table->machine);
		struct tally_rule_range range;
		const struct tally_function_index *index = &table->indexes[0];
		for (size_t j = 0; j < index->count; j++)
			/* 13 bytes further: some other row */
			for (uint64_t at = 0;
			     tally_function_index_at(index, j, &function) && at < function.size;
			     at += 13)
				differing += differs_from_libdw(
					cfi, layout, function.start + at,
					tally_unwind_table_rule(table, function.start + at, &range),
					&compared);
		print_message("# %s: %zu addresses beside libdw\n", files->paths[i], compared);
		assert_true(compared > 100);
		assert_int_equal(differing, 0);
		dwarf_cfi_end(cfi);
		tally_unwind_table_free(table);
		tally_object_unref(object);
	}
}

static void the_linker_s_index_says_what_the_section_says(void **state)
{
	const struct files *files = *state;
	for (int i = 0; i < files->count; i++) {
		struct tally_object *object;
		struct tally_unwind_table *table;
		struct tally_function_index own;
		if (strcmp(files->paths[i], "-") == 0)
			continue;
		assert_int_equal(tally_object_open(AT_FDCWD, files->paths[i], &object, NULL), 0);
		assert_int_equal(tally_unwind_table_new(object, NULL, &table, NULL), 0);
		struct tally_function_index *index = &table->indexes[0];
		assert_true(table->index_count > 0);
		assert_non_null(index->linker);
		assert_int_equal(tally_function_index_init(&own, &index->section, NULL), 0);
		assert_int_equal(own.count, index->count);
		for (size_t j = 0; j < own.count; j++) {
			struct tally_unwind_function function;
			assert_true(tally_function_index_at(index, j, &function));
			assert_memory_equal(&function, &own.functions.items[j], sizeof(function));
			size_t position;
			bool is_anew;
			assert_true(tally_function_index_find(index,
							      function.start + function.size - 1,
							      &position, &function, &is_anew));
			assert_int_equal(position, j);
		}
		tally_function_index_release(&own);
		tally_unwind_table_free(table);
		tally_object_unref(object);
	}
}

int main(int argc, char **argv)
{
	struct files files = { argv + 1, argc - 1 };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(compiled_rules_step_as_the_interpreter_does, &files),
		cmocka_unit_test_prestate(compiled_rules_are_libdw_s, &files),
		cmocka_unit_test_prestate(the_linker_s_index_says_what_the_section_says, &files),
	};
	return cmocka_run_group_tests_name("unwind_machines", tests, NULL, NULL);
}
