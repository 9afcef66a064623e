/* Code that a process makes, read while it is recorded (task/jit.h). */
#include "test.h"

#include "task/jit.h"

#include <errno.h>
#include <stdbool.h>

enum { PAGE = 4096, START = 0x10000 * PAGE, PAGES = 3 };

/* A process whose memory is three pages of code; each byte depends on its page and place. */
struct process {
	uint32_t pid;
	uint8_t memory[PAGES * PAGE];
	size_t size; /* bytes that exist */
	bool has_ended;
	unsigned reads;
};

static long read_process(void *context, uint32_t pid, uint64_t address, void *out, size_t size)
{
	struct process *process = context;
	process->reads++;
	if (process->has_ended || pid != process->pid)
		return -ESRCH;
	if (address < START || address - START >= process->size)
		return -EFAULT;
	size_t left = process->size - (size_t)(address - START);
	size = size < left ? size : left;
	memcpy(out, process->memory + (address - START), size);
	return (long)size;
}

static struct tally_made_code *start(struct process *process)
{
	*process = (struct process){ .pid = 42, .size = sizeof(process->memory) };
	for (size_t i = 0; i < sizeof(process->memory); i++)
		process->memory[i] = (uint8_t)(i / PAGE * 64 + i % 61);
	struct tally_made_code *code = tally_made_code_new(read_process, process);
	assert_non_null(code);
	return code;
}

static void assert_bytes(struct tally_made_code *code, const struct process *process, size_t at,
			 size_t size, size_t expected)
{
	uint8_t out[PAGES * PAGE + 16], untouched[sizeof(out)];
	memset(out, 0xee, sizeof(out));
	memset(untouched, 0xee, sizeof(untouched));
	assert_true(size <= sizeof(out));
	assert_int_equal(tally_made_code_read(code, process->pid, START + at, out, size), expected);
	assert_memory_equal(out, process->memory + at, expected);
	assert_memory_equal(out + expected, untouched, sizeof(out) - expected);
}

static void bytes_may_cross_pages(void **state)
{
	struct process process;
	struct tally_made_code *code = start(&process);
	(void)state;
	assert_bytes(code, &process, 100, 16, 16);
	assert_bytes(code, &process, PAGE - 3, 16, 16);
	assert_bytes(code, &process, PAGE - 1, PAGE + 2, PAGE + 2);
	assert_bytes(code, &process, 0, sizeof(process.memory), sizeof(process.memory));
	assert_bytes(code, &process, 5, 0, 0);
	assert_int_equal(process.reads, PAGES); /* each page was read once */
	tally_made_code_free(code);
}

static void what_is_not_there_ends_the_bytes(void **state)
{
	struct process process;
	struct tally_made_code *code = start(&process);
	uint8_t out[16];
	(void)state;
	assert_bytes(code, &process, sizeof(process.memory) - 3, 16, 3);
	process.size = PAGE + 100; /* only a part of the second page is read */
	tally_made_code_free(code);
	code = tally_made_code_new(read_process, &process);
	assert_bytes(code, &process, PAGE + 90, 16, 10);
	assert_bytes(code, &process, PAGE + 100, 16, 0);
	assert_bytes(code, &process, PAGE - 8, 512, 108);
	assert_int_equal(tally_made_code_read(code, 42, START - 8, out, sizeof(out)), 0);
	assert_int_equal(tally_made_code_read(code, 43, START, out, sizeof(out)), 0);
	assert_int_equal(tally_made_code_read(code, 42, UINT64_MAX - 3, out, sizeof(out)), 0);
	tally_made_code_free(code);
}

static void a_pass_reads_pages_anew(void **state)
{
	struct process process;
	struct tally_made_code *code = start(&process);
	(void)state;
	assert_bytes(code, &process, 100, 16, 16);
	uint8_t before = process.memory[100], out;
	process.memory[100] = 0xcc;
	assert_int_equal(tally_made_code_read(code, 42, START + 100, &out, 1), 1);
	assert_int_equal(out, before); /* within one pass, the copy stays the same */
	tally_made_code_pass(code);
	assert_bytes(code, &process, 100, 16, 16);
	assert_int_equal(process.reads, 2);
	tally_made_code_free(code);
}

static void an_ended_processs_code_is_what_it_was(void **state)
{
	struct process process;
	struct tally_made_code *code = start(&process);
	uint8_t out[4];
	(void)state;
	assert_bytes(code, &process, 100, 16, 16);
	process.has_ended = true;
	tally_made_code_pass(code);
	assert_bytes(code, &process, 100, 16, 16);
	tally_made_code_pass(code);
	assert_bytes(code, &process, 200, 16, 16); /* from the same page */
	/* The copy serves no other process and no other page. */
	assert_int_equal(tally_made_code_read(code, 43, START + 100, out, sizeof(out)), 0);
	assert_int_equal(tally_made_code_read(code, 42, START + PAGE, out, sizeof(out)), 0);
	tally_made_code_free(code);
}

/* More pages of several processes than are kept: none is mistaken for another. */
static void pages_that_take_each_others_place_are_told_apart(void **state)
{
	struct process process;
	struct tally_made_code *code = start(&process);
	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		process.pid = 42 + round % 700;
		process.memory[0] = (uint8_t)process.pid;
		process.memory[PAGE] = (uint8_t)(process.pid >> 3);
		assert_bytes(code, &process, 0, 1, 1);
		assert_bytes(code, &process, PAGE, 1, 1);
	}
	tally_made_code_free(code);
}

static void nothing_is_freed_twice(void **state)
{
	(void)state;
	tally_made_code_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_may_cross_pages),
		cmocka_unit_test(what_is_not_there_ends_the_bytes),
		cmocka_unit_test(a_pass_reads_pages_anew),
		cmocka_unit_test(an_ended_processs_code_is_what_it_was),
		cmocka_unit_test(pages_that_take_each_others_place_are_told_apart),
		cmocka_unit_test(nothing_is_freed_twice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
