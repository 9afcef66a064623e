/* Bytes of instructions, as assemblers write them: which ones branch, and which read memory. */
#include "valgrind/vsim_decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct sample {
	const char *text; /* for the reader */
	uint8_t length, bytes[15];
	enum vsim_flow flow;
	int64_t target; /* relative to the instruction's beginning; 0: none */
	unsigned loads;
};

static const struct sample samples[] = {
	{ "mov (%rbx),%eax", 2, { 0x8b, 0x03 }, VSIM_FLOW_ON, 0, 1 },
	{ "mov %rbx,%rax", 3, { 0x48, 0x89, 0xd8 }, VSIM_FLOW_ON, 0, 0 },
	{ "mov %eax,(%rbx)", 2, { 0x89, 0x03 }, VSIM_FLOW_ON, 0, 0 },
	{ "lea 8(%rbx),%rax", 4, { 0x48, 0x8d, 0x43, 0x08 }, VSIM_FLOW_ON, 0, 0 },
	{ "test %eax,16(%rbx)", 3, { 0x85, 0x43, 0x10 }, VSIM_FLOW_ON, 0, 1 },
	{ "andl $0,24(%rbx)", 4, { 0x83, 0x63, 0x18, 0x00 }, VSIM_FLOW_ON, 0, 1 },
	{ "pop %rcx", 1, { 0x59 }, VSIM_FLOW_ON, 0, 1 },
	{ "push %rcx", 1, { 0x51 }, VSIM_FLOW_ON, 0, 0 },
	{ "movzbl 3(%rbx),%edx", 4, { 0x0f, 0xb6, 0x53, 0x03 }, VSIM_FLOW_ON, 0, 1 },
	{ "movups %xmm0,64(%rbx)", 4, { 0x0f, 0x11, 0x43, 0x40 }, VSIM_FLOW_ON, 0, 0 },
	{ "movq (%rbx),%xmm0", 4, { 0xf3, 0x0f, 0x7e, 0x03 }, VSIM_FLOW_ON, 0, 1 },
	{ "movd %xmm0,(%rbx)", 4, { 0x66, 0x0f, 0x7e, 0x03 }, VSIM_FLOW_ON, 0, 0 },
	{ "vmovdqu (%rdi),%ymm0", 4, { 0xc5, 0xfe, 0x6f, 0x07 }, VSIM_FLOW_ON, 0, 1 },
	{ "vmovdqu %ymm0,(%rdi)", 4, { 0xc5, 0xfe, 0x7f, 0x07 }, VSIM_FLOW_ON, 0, 0 },
	{ "vpshufb (%rdi),%xmm1,%xmm0", 5, { 0xc4, 0xe2, 0x71, 0x00, 0x07 }, VSIM_FLOW_ON, 0, 1 },
	{ "vextracti128 $1,%ymm0,(%rdi)",
	  6,
	  { 0xc4, 0xe3, 0x7d, 0x39, 0x07, 0x01 },
	  VSIM_FLOW_ON,
	  0,
	  0 },
	{ "prefetcht0 (%rbx)", 3, { 0x0f, 0x18, 0x0b }, VSIM_FLOW_ON, 0, 0 },
	{ "nopw 0(%rax,%rax,1)", 6, { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 }, VSIM_FLOW_ON, 0, 0 },
	{ "endbr64", 4, { 0xf3, 0x0f, 0x1e, 0xfa }, VSIM_FLOW_ON, 0, 0 },
	{ "cpuid", 2, { 0x0f, 0xa2 }, VSIM_FLOW_ON, 0, 0 },
	{ "syscall", 2, { 0x0f, 0x05 }, VSIM_FLOW_ON, 0, 0 },
	{ "cmpsb", 1, { 0xa6 }, VSIM_FLOW_ON, 0, 2 },
	{ "stosb", 1, { 0xaa }, VSIM_FLOW_ON, 0, 0 },
	{ "rep movsq", 3, { 0xf3, 0x48, 0xa5 }, VSIM_FLOW_REPEAT, 0, 1 },
	{ "repne scasb", 2, { 0xf2, 0xae }, VSIM_FLOW_REPEAT, 0, 1 },
	{ "fldt (%rbx)", 2, { 0xdb, 0x2b }, VSIM_FLOW_ON, 0, 1 },
	{ "fstpt (%rbx)", 2, { 0xdb, 0x3b }, VSIM_FLOW_ON, 0, 0 },
	{ "je .+4", 2, { 0x74, 0x02 }, VSIM_FLOW_CONDITIONAL, 4, 0 },
	{ "jne .-10", 6, { 0x0f, 0x85, 0xf0, 0xff, 0xff, 0xff }, VSIM_FLOW_CONDITIONAL, -10, 0 },
	{ "bnd jne .+7", 3, { 0xf2, 0x75, 0x04 }, VSIM_FLOW_CONDITIONAL, 7, 0 },
	{ "loop .-2", 2, { 0xe2, 0xfc }, VSIM_FLOW_CONDITIONAL, -2, 0 },
	{ "jrcxz .+2", 2, { 0xe3, 0x00 }, VSIM_FLOW_CONDITIONAL, 2, 0 },
	{ "jmp .+2", 2, { 0xeb, 0x00 }, VSIM_FLOW_JUMP, 2, 0 },
	{ "jmp .-123", 5, { 0xe9, 0x80, 0xff, 0xff, 0xff }, VSIM_FLOW_JUMP, -123, 0 },
	{ "call .+261", 5, { 0xe8, 0x00, 0x01, 0x00, 0x00 }, VSIM_FLOW_CALL, 261, 0 },
	{ "call *88(%rbx)", 3, { 0xff, 0x53, 0x58 }, VSIM_FLOW_INDIRECT_CALL, 0, 1 },
	{ "call *%rax", 2, { 0xff, 0xd0 }, VSIM_FLOW_INDIRECT_CALL, 0, 0 },
	{ "notrack jmp *%rax", 3, { 0x3e, 0xff, 0xe0 }, VSIM_FLOW_INDIRECT_JUMP, 0, 0 },
	{ "push 64(%rbx)", 3, { 0xff, 0x73, 0x40 }, VSIM_FLOW_ON, 0, 1 },
	{ "ret", 1, { 0xc3 }, VSIM_FLOW_RETURN, 0, 0 },
	{ "rep ret", 2, { 0xf3, 0xc3 }, VSIM_FLOW_RETURN, 0, 0 },
	{ "ret $8", 3, { 0xc2, 0x08, 0x00 }, VSIM_FLOW_RETURN, 0, 0 },
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static void branches_and_their_targets_are_known_by_opcode(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SAMPLES; i++) {
		const uint64_t at = 0x401000;
		uint64_t target;
		assert_int_equal(vsim_decode_flow(samples[i].bytes, samples[i].length, at, &target),
				 samples[i].flow);
		assert_int_equal(target, samples[i].target ? at + (uint64_t)samples[i].target : 0);
	}
}

static void reads_are_known_by_opcode(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SAMPLES; i++)
		assert_int_equal(vsim_decode_loads(samples[i].bytes, samples[i].length),
				 samples[i].loads);
}

static void states_of_the_fpu_are_known(void **state)
{
	(void)state;
	static const uint8_t fxsave[] = { 0x0f, 0xae, 0x83, 0x00, 0x04, 0x00, 0x00 },
			     xrstor[] = { 0x0f, 0xae, 0x2b }, ldmxcsr[] = { 0x0f, 0xae, 0x13 },
			     lfence[] = { 0x0f, 0xae, 0xe8 }, xsavec[] = { 0x0f, 0xc7, 0x23 };
	assert_true(vsim_decode_is_state(fxsave, sizeof(fxsave)));
	assert_true(vsim_decode_is_state(xrstor, sizeof(xrstor)));
	assert_true(vsim_decode_is_state(xsavec, sizeof(xsavec)));
	assert_false(vsim_decode_is_state(ldmxcsr, sizeof(ldmxcsr)));
	assert_false(vsim_decode_is_state(lfence, sizeof(lfence)));
	assert_int_equal(vsim_decode_loads(xrstor, sizeof(xrstor)), 1);
	assert_int_equal(vsim_decode_loads(fxsave, sizeof(fxsave)), 0);
}

/* Cuts instructions short anywhere, and tries any bytes: all reads are inside.  (With
 * AddressSanitizer.) */
static void nothing_behind_the_end_is_read(void **state)
{
	(void)state;
	uint32_t random = 1;
	for (unsigned i = 0; i < 200000; i++) {
		unsigned length = 1 + i % 15;
		uint8_t *exact = test_malloc(length);
		for (unsigned j = 0; j < length; j++)
			exact[j] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
		uint64_t target;
		vsim_decode_flow(exact, length, 0x401000, &target);
		assert_in_range(vsim_decode_loads(exact, length), 0, 2);
		vsim_decode_is_state(exact, length);
		test_free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(branches_and_their_targets_are_known_by_opcode),
		cmocka_unit_test(reads_are_known_by_opcode),
		cmocka_unit_test(states_of_the_fpu_are_known),
		cmocka_unit_test(nothing_behind_the_end_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
