/* Which instruction a late sample is charged to (unwind/unwind.h). */
#include "test.h"

#include "unwind/unwind.h"

#include <elf.h>

#define CODE(text) (const uint8_t *)(text), sizeof(text) - 1
enum { SAMPLES_MAX = 8 };

/* Checks the causes of a list of sampled offsets, ended by -1.  The copy lets sanitizers see a read
 * behind the code. */
static void check(unsigned machine, const uint8_t *code, size_t size, const int *offsets,
		  const int *causes)
{
	struct tally_code_sample samples[SAMPLES_MAX];
	size_t count = 0;
	uint8_t *copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, code, size);
	for (; offsets[count] >= 0; count++)
		samples[count] = (struct tally_code_sample){ .offset = (uint64_t)offsets[count],
							     .heat = 5 };
	assert_int_equal(tally_code_causes(machine, copy, size, samples, count), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(samples[i].cause, causes[i]);
	free(copy);
}

#define SAMPLES(...) \
	(const int[]) \
	{ \
		__VA_ARGS__, -1 \
	}
#define CAUSES(...) \
	(const int[]) \
	{ \
		__VA_ARGS__ \
	}

/* mov (%rdi),%rdi; add $1,%rax; dec %rsi; jne 0; mov %rax,%rcx; ret */
#define LOOP CODE("\x48\x8b\x3f\x48\x83\xc0\x01\x48\xff\xce\x75\xf4\x48\x89\xc1\xc3")

static void the_instruction_before_is_charged(void **state)
{
	(void)state;
	check(EM_X86_64, LOOP, SAMPLES(3, 12), CAUSES(0, 10));
}

static void a_loops_head_is_charged_to_the_jump_at_its_end(void **state)
{
	(void)state;
	check(EM_X86_64, LOOP, SAMPLES(0), CAUSES(10));
}

static void a_functions_first_instruction_keeps_its_samples(void **state)
{
	(void)state;
	check(EM_X86_64, CODE("\x48\x83\xc2\x01\xc3"), SAMPLES(0, 4), CAUSES(0, 0));
}

static void what_begins_no_instruction_keeps_its_samples(void **state)
{
	(void)state;
	check(EM_X86_64, LOOP, SAMPLES(1, 13, 77), CAUSES(1, 13, 77));
}

/* movzbl (%rdi),%eax; cmp $128,%eax; jb +8; add $1,%rdx; xor $1,%rdx; add $3,%rdx;
 * lea 3(%rdx),%rdx; ret: both sides of a mispredicted jump */
static void a_mispredicted_jump_is_charged_for_both_sides(void **state)
{
	(void)state;
	check(EM_X86_64,
	      CODE("\x0f\xb6\x07\x3d\x80\x00\x00\x00\x72\x08\x48\x83\xc2\x01\x48\x83\xf2\x01"
		   "\x48\x83\xc2\x03\x48\x8d\x52\x03\xc3"),
	      SAMPLES(3, 14, 18, 22), CAUSES(0, 8, 8, 8));
}

/* add $7,%rax; xor $5,%rax; cmpb $0,(%rsi,%rcx); jns 0; add %rdx,%rax; xor $1,%rax; jmp 8 */
#define BACKWARDS \
	CODE("\x48\x83\xc0\x07\x48\x83\xf0\x05\x80\x3c\x0e\x00\x79\xf2\x48\x01\xd0\x48" \
	     "\x83\xf0\x01\xeb\xf1")

static void a_jump_backwards_is_mispredicted_if_both_sides_have_samples(void **state)
{
	(void)state;
	check(EM_X86_64, BACKWARDS, SAMPLES(4, 17), CAUSES(12, 12));
	check(EM_X86_64, BACKWARDS, SAMPLES(4), CAUSES(0));
}

/* test %eax,%eax; je +3; div %rsi; add $1,%rdx; ret */
static void a_slow_instruction_above_is_charged_rather_than_a_jump(void **state)
{
	(void)state;
	check(EM_X86_64, CODE("\x85\xc0\x74\x03\x48\xf7\xf6\x48\x83\xc2\x01\xc3"), SAMPLES(7),
	      CAUSES(4));
}

/* call; add $1,%rdx; syscall; add $1,%rcx; ret */
static void calls_are_not_charged(void **state)
{
	(void)state;
	check(EM_X86_64, CODE("\xe8\xc4\xff\xff\xff\x48\x83\xc2\x01\x0f\x05\x48\x83\xc1\x01\xc3"),
	      SAMPLES(5, 9, 11, 15), CAUSES(5, 5, 11, 11));
}

/* cmp $3,%rax; ja 22; jmp *(%rdx,%rax,8); nop; add $1,%rcx; ret; nop; sub $1,%rcx; mov %rcx,%rax;
 * ret */
static void cases_of_a_switch_are_charged_to_its_jump(void **state)
{
	(void)state;
	check(EM_X86_64,
	      CODE("\x48\x83\xf8\x03\x77\x10\xff\x24\xc2\x0f\x1f\x00\x48\x83\xc1\x01\xc3\x90"
		   "\x48\x83\xe9\x01\x48\x89\xc8\xc3"),
	      SAMPLES(12, 16, 18, 25), CAUSES(6, 6, 6, 4));
}

/* movslq (%rax,%rsi,4),%rdx; add $0x4000,%rax; add %rdx,%rcx; cmp %rdi,%rax; jne 0 */
static void a_counters_step_takes_no_time(void **state)
{
	(void)state;
	check(EM_X86_64,
	      CODE("\x48\x63\x14\xb0\x48\x05\x00\x40\x00\x00\x48\x01\xd1\x48\x39\xf8\x75\xee"),
	      SAMPLES(4, 13), CAUSES(0, 10));
	/* mov (%rdi),%rax; add $8,%rdi; add $1,%rax: the last one waits for the load */
	check(EM_X86_64, CODE("\x48\x8b\x07\x48\x83\xc7\x08\x48\x83\xc0\x01\xc3"), SAMPLES(7, 11),
	      CAUSES(0, 7));
}

/* mfence; xor $3,%rax; add $1,%rcx; ret */
static void a_fence_holds_up_what_is_behind_it(void **state)
{
	(void)state;
	check(EM_X86_64, CODE("\x0f\xae\xf0\x48\x83\xf0\x03\x48\x83\xc1\x01\xc3"), SAMPLES(3, 7),
	      CAUSES(0, 0));
}

/* mov $9,%ecx; rep movsb; add $1,%rax; ret */
static void a_repeated_instruction_keeps_its_samples(void **state)
{
	(void)state;
	check(EM_X86_64, CODE("\xb9\x09\x00\x00\x00\xf3\xa4\x48\x83\xc0\x01\xc3"), SAMPLES(5, 7),
	      CAUSES(5, 5));
}

/* ldr x0,[x0]; add; subs; b.ne 0; ret; ldrb w1,[x0]; tbz w1,#7,36; add; eor; add; bl; add; cbz;
 * udiv; svc; mul; br; ret */
static void arm64_follows_the_same_rules(void **state)
{
	(void)state;
	static const uint32_t words[] = { 0xf9400000, 0x91000421, 0xf1000442, 0x54ffffa1,
					  0xd65f03c0, 0x39400001, 0x36380061, 0x91000442,
					  0xd2400042, 0x91000c42, 0x97fffff6, 0x91001442,
					  0xb4ffff22, 0x9ac10842, 0xd4000001, 0x9b017c43,
					  0xd61f0060, 0xd65f03c0 };
	const uint8_t *code = (const uint8_t *)words;
	check(EM_AARCH64, code, sizeof(words), SAMPLES(0, 4, 16, 24, 32, 36),
	      CAUSES(12, 0, 12, 20, 24, 24));
	check(EM_AARCH64, code, sizeof(words), SAMPLES(44, 52, 56, 60, 64),
	      CAUSES(44, 48, 52, 60, 60));
}

static void other_machines_have_no_causes(void **state)
{
	(void)state;
	assert_true(tally_code_has_causes(EM_X86_64, false));
	assert_true(tally_code_has_causes(EM_AARCH64, false));
	assert_false(tally_code_has_causes(EM_AARCH64, true));
	assert_false(tally_code_has_causes(EM_RISCV, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_instruction_before_is_charged),
		cmocka_unit_test(a_loops_head_is_charged_to_the_jump_at_its_end),
		cmocka_unit_test(a_functions_first_instruction_keeps_its_samples),
		cmocka_unit_test(what_begins_no_instruction_keeps_its_samples),
		cmocka_unit_test(a_mispredicted_jump_is_charged_for_both_sides),
		cmocka_unit_test(a_jump_backwards_is_mispredicted_if_both_sides_have_samples),
		cmocka_unit_test(a_slow_instruction_above_is_charged_rather_than_a_jump),
		cmocka_unit_test(calls_are_not_charged),
		cmocka_unit_test(cases_of_a_switch_are_charged_to_its_jump),
		cmocka_unit_test(a_counters_step_takes_no_time),
		cmocka_unit_test(a_fence_holds_up_what_is_behind_it),
		cmocka_unit_test(a_repeated_instruction_keeps_its_samples),
		cmocka_unit_test(arm64_follows_the_same_rules),
		cmocka_unit_test(other_machines_have_no_causes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
