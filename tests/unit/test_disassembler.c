/* Disassembles code of several machines into text and targets (symbol/symbol.h), and reads
 * the kernel's memory (object/object.h). */
#include "object/object.h"
#include "symbol/symbol.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct sample {
	unsigned machine;
	bool is_big_endian, is_intel;
	const char *code; /* hex */
	const char *text; /* lines of "TEXT|KIND|TARGET"; addresses begin at 0x1000 */
};

static const struct sample samples[] = {
	{ EM_X86_64, false, false, "48ffc075fbe8000000000f0b488d0510000000c3",
	  "incq %rax|plain\njne |jump 1000\ncallq |call 100a\nud2|plain\n"
	  "leaq 0x10(%rip), %rax|plain 1023\nretq|plain\n" },
	{ EM_X86_64, false, true, "488d0510000000eb00",
	  "lea rax, [rip + 0x10]|plain 1017\njmp |jump 1009\n" },
	{ EM_X86_64, false, false, "06", ".byte 0x06|data\n" },
	{ EM_386, false, false, "e8fbefffff", "calll |call 0\n" },
	{ EM_AARCH64, false, false, "0000009401000054e0ffff34c0035fd6",
	  "bl |call 1000\nb.ne |jump 1004\ncbz w0, |jump 1004\nret|plain\n" },
	{ EM_RISCV, false, false, "6f004000630800000100",
	  "j |jump 1004\nbeqz zero, |jump 1014\nnop|plain\n" },
	{ EM_PPC64, false, false, "08000048", "b |jump 1008\n" },
	{ EM_S390, true, false, "a7f40008c0e500000010", "j |jump 1010\nbrasl %r14, |call 1024\n" },
};

static size_t bytes_of(const char *hex, uint8_t *out)
{
	size_t count = 0;
	for (; hex[0] && hex[1]; hex += 2, count++) {
		unsigned byte;
		sscanf(hex, "%2x", &byte);
		out[count] = (uint8_t)byte;
	}
	return count;
}

static int open_for(const struct sample *sample, struct tally_disassembler **out)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int result = tally_disassembler_open(sample->machine, sample->machine != EM_386,
					     sample->is_big_endian, sample->is_intel, out, &err);
	if (result == -ENOENT)
		skip(); /* libLLVM is missing */
	return result;
}

static void code_of_each_machine_is_read(void **state)
{
	static const char *const KINDS[] = { "plain", "jump", "call", "data" };
	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct tally_disassembler *disassembler;
		struct tally_instruction one;
		uint8_t bytes[64];
		char text[1024] = "";
		size_t size = bytes_of(samples[i].code, bytes);
		assert_int_equal(open_for(&samples[i], &disassembler), 0);
		for (size_t at = 0; at < size; at += one.size) {
			tally_disassemble(disassembler, bytes + at, size - at, 0x1000 + at, &one);
			assert_in_range(one.size, 1, size - at);
			bool goes = one.kind == TALLY_INSTRUCTION_JUMP ||
				    one.kind == TALLY_INSTRUCTION_CALL;
			uint64_t shown = goes ? one.target : one.reference;
			size_t length = strlen(text);
			snprintf(text + length, sizeof(text) - length,
				 goes || shown ? "%.*s|%s %llx\n" : "%.*s|%s\n", (int)one.operand,
				 one.text, KINDS[one.kind], (unsigned long long)shown);
		}
		tally_disassembler_close(disassembler);
		assert_string_equal(text, samples[i].text);
	}
}

static void any_bytes_end(void **state)
{
	static const struct sample machines[] = { { .machine = EM_X86_64 },
						  { .machine = EM_AARCH64 },
						  { .machine = EM_RISCV },
						  { .machine = EM_ARM },
						  { .machine = EM_386, .is_intel = true } };
	(void)state;
	srandom(1);
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct tally_disassembler *disassembler;
		struct tally_instruction one;
		assert_int_equal(open_for(&machines[i], &disassembler), 0);
		for (int round = 0; round < 2000; round++) {
			size_t size = 1 + (size_t)random() % 40;
			/* on the heap, so that sanitizers see reads behind the bytes */
			uint8_t *bytes = malloc(size);
			assert_non_null(bytes);
			for (size_t at = 0; at < size; at++)
				bytes[at] = (uint8_t)random();
			for (size_t at = 0; at < size; at += one.size) {
				tally_disassemble(disassembler, bytes + at, size - at, at, &one);
				assert_in_range(one.size, 1, size - at);
				assert_in_range(one.operand, 0, strlen(one.text));
			}
			free(bytes);
		}
		tally_disassembler_close(disassembler);
	}
}

static void other_machines_are_refused(void **state)
{
	struct tally_disassembler *disassembler;
	struct tally_error err = TALLY_ERROR_NONE;
	(void)state;
	assert_int_equal(tally_disassembler_open(EM_SPARC, true, true, false, &disassembler, &err),
			 -ENOTSUP);
	assert_non_null(strstr(err.message, "2"));
}

static void without_the_library_its_package_is_named(void **state)
{
	struct tally_disassembler *disassembler;
	struct tally_error err = TALLY_ERROR_NONE;
	(void)state;
	setenv("TALLY_LIBLLVM", "/nonexistent.so", 1);
	assert_int_equal(
		tally_disassembler_open(EM_X86_64, true, false, false, &disassembler, &err),
		-ENOENT);
	unsetenv("TALLY_LIBLLVM");
	assert_non_null(strstr(err.hint, "libllvm14"));
}

/* Any ELF file with segments works: this program's bytes lie where its headers say. */
static void memory_is_found_by_segments(void **state)
{
	Elf64_Ehdr header, again;
	(void)state;
	FILE *file = fopen("/proc/self/exe", "rb");
	assert_non_null(file);
	assert_int_equal(fread(&header, sizeof(header), 1, file), 1);
	Elf64_Phdr segment = { 0 };
	for (unsigned i = 0; i < header.e_phnum && segment.p_type != PT_LOAD; i++) {
		fseek(file, (long)(header.e_phoff + i * sizeof(segment)), SEEK_SET);
		assert_int_equal(fread(&segment, sizeof(segment), 1, file), 1);
	}
	fclose(file);
	assert_int_equal(segment.p_offset, 0);
	assert_int_equal(tally_kcore_read("/proc/self/exe", segment.p_vaddr, &again, sizeof(again)),
			 0);
	assert_memory_equal(&header, &again, sizeof(header));
	assert_int_equal(tally_kcore_read("/proc/self/exe", segment.p_vaddr + segment.p_filesz - 1,
					  &again, sizeof(again)),
			 -ENXIO);
	assert_int_equal(tally_kcore_read("/proc/self/exe", UINT64_MAX - 8, &again, sizeof(again)),
			 -ENXIO);
	assert_int_equal(tally_kcore_read("/proc/self/comm", 0, &again, sizeof(again)), -ENOEXEC);
	assert_int_equal(tally_kcore_read("/nonexistent", 0, &again, sizeof(again)), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_of_each_machine_is_read),
		cmocka_unit_test(any_bytes_end),
		cmocka_unit_test(other_machines_are_refused),
		cmocka_unit_test(without_the_library_its_package_is_named),
		cmocka_unit_test(memory_is_found_by_segments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
