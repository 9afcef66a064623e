/* Whole objects, of this machine and of others: at every address where a row of the rules begins, and at its last, the
 * compiled rule takes the step that the interpreter takes; and what the linker's index says of functions is what the
 * section says.
 *
 * Arguments: ELF files; "-" for one that isn't there. */
#include "test.h"

#include "object/object.h"
#include "unwind/unwind_machine.h"
#include "unwind/unwind_table.h"
#include "unwind_ways.h"

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

/* One step: what is found is not followed any further, since the stack is made up. */
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

/* Each word of the stack is another, and the registers point into it: a wrong offset gives a wrong answer. */
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
		print_message("# %s: %zu addresses, a caller at %zu\n", files->paths[i], subject.checked,
			      subject.stepped);
		assert_true(subject.checked > 100);
		assert_true(subject.stepped * 2 > subject.checked);
		tally_unwind_cache_free(subject.cache);
		tally_unwind_table_free(subject.table);
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
			assert_true(tally_function_index_find(index, function.start + function.size - 1, &position,
							      &function, &is_anew));
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
		cmocka_unit_test_prestate(the_linker_s_index_says_what_the_section_says, &files),
	};
	return cmocka_run_group_tests_name("unwind_machines", tests, NULL, NULL);
}
