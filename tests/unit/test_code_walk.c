/* Finding a function's return address by following its instructions (unwind/code_walk.h).  Tests
 * hand-made sequences, instruction lengths against libLLVM's, and whole libraries against the rules
 * of their compiler. */
#include "test.h"

#include "object/object.h"
#include "symbol/symbol.h"
#include "unwind/code_walk.h"
#include "unwind/unwind_internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>

#define CODE(text) (const uint8_t *)(text), sizeof(text) - 1

/* Copies the code to the heap, so that sanitizers see a read behind it. */
static uint8_t *copy_of(const uint8_t *code, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	assert_non_null(copy);
	memcpy(copy, code, size);
	return copy;
}

/* ---- lengths -------------------------------------------------------------------------- */

static void assert_length(const uint8_t *code, size_t size)
{
	uint8_t *copy = copy_of(code, size);
	assert_int_equal(tally_code_length(copy, size), size);
	for (size_t part = 0; part < size; part++) {
		uint8_t *half = copy_of(code, part);
		assert_int_equal(tally_code_length(half, part), 0);
		free(half);
	}
	free(copy);
}

static void instructions_have_their_length(void **state)
{
	(void)state;
	assert_length(CODE("\x90"));
	assert_length(CODE("\xf3\xc3"));
	assert_length(CODE("\xf3\x0f\x1e\xfa")); /* endbr64 */
	assert_length(CODE("\x48\x89\xe5"));
	assert_length(CODE("\x48\x81\xec\x18\x01\x00\x00"));
	assert_length(CODE("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08")); /* movabs */
	assert_length(CODE("\x66\xb8\x01\x02"));
	assert_length(CODE("\x8b\x04\x25\x01\x02\x03\x04")); /* an absolute address */
	assert_length(CODE("\x64\x48\x8b\x04\x25\x28\x00\x00\x00"));
	assert_length(CODE("\x48\x8b\x05\x01\x02\x03\x04")); /* n(%rip) */
	assert_length(CODE("\xf6\x45\x08\x01"));             /* testb has an immediate operand, */
	assert_length(CODE("\xf6\x55\x08"));                 /* notb does not */
	assert_length(CODE("\x66\xf7\x45\x08\x01\x02"));
	assert_length(CODE("\x0f\x84\x01\x02\x03\x04"));
	assert_length(CODE("\xc5\xf8\x77"));
	assert_length(CODE("\xc5\xf9\x70\xc1\x44"));         /* vpshufd */
	assert_length(CODE("\xc4\xe3\x75\x0f\xc2\x08"));     /* vpalignr */
	assert_length(CODE("\x62\xf1\xfd\x48\x6f\x47\x01")); /* vmovdqa64 64(%rdi),%zmm0 */
	assert_length(CODE("\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00")); /* nopw */
	/* lea of a thread-local variable, */
	assert_length(CODE("\x66\x48\x8d\x3d\x01\x02\x03\x04"));
	assert_length(CODE("\x66\x66\x48\xe8\x01\x02\x03\x04")); /* and its call */
	assert_length(CODE("\x8f\xe8\x78\xc2\xd2\x07"));         /* vprotd $7,%xmm2,%xmm2 */
	assert_length(CODE("\x8f\x44\x24\x08"));                 /* pop 8(%rsp) */
	assert_length(CODE("\x67\xe8\x01\x02\x03\x04"));
	assert_length(CODE("\xc8\x10\x00\x00")); /* enter */
}

static void what_is_no_instruction_has_no_length(void **state)
{
	(void)state;
	assert_int_equal(tally_code_length(CODE("\x06")), 0);
	assert_int_equal(tally_code_length(CODE("\x9a\x90\x90\x90\x90\x90\x90")), 0);
	assert_int_equal(tally_code_length(CODE("\x48\x66\x90")), 0); /* a prefix after REX */
	/* More than 15 bytes. */
	assert_int_equal(
		tally_code_length(
			CODE("\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90")),
		0);
}

/* ---- walks ---------------------------------------------------------------------------- */

static bool walk(const uint8_t *code, size_t size, size_t at, struct tally_code_frame *frame)
{
	uint8_t *copy = copy_of(code, size);
	bool is_known = tally_code_walk(copy, size, at, frame);
	free(copy);
	return is_known;
}

enum { NO_FP = INT32_MIN };

static void assert_walk(const uint8_t *code, size_t size, size_t at, int32_t return_at,
			int32_t fp_at)
{
	struct tally_code_frame frame;
	assert_true(walk(code, size, at, &frame));
	assert_false(frame.is_linked);
	assert_int_equal(frame.return_at, return_at);
	assert_int_equal(frame.saves_fp, fp_at != NO_FP);
	if (fp_at != NO_FP)
		assert_int_equal(frame.fp_at, fp_at);
}

static void assert_linked(const uint8_t *code, size_t size, size_t at)
{
	struct tally_code_frame frame;
	assert_true(walk(code, size, at, &frame));
	assert_true(frame.is_linked);
}

static void assert_unknown(const uint8_t *code, size_t size, size_t at)
{
	struct tally_code_frame frame;
	assert_false(walk(code, size, at, &frame));
}

static void pushes_and_pops_are_counted(void **state)
{
	(void)state;
	/* push %rbx; push %rbp; sub $24,%rsp; call; add $24,%rsp; pop %rbp; pop %rbx; ret */
#define FUNCTION CODE("\x53\x55\x48\x83\xec\x18\xe8\x00\x00\x00\x00\x48\x83\xc4\x18\x5d\x5b\xc3")
	assert_walk(FUNCTION, 0, 0, NO_FP);
	assert_walk(FUNCTION, 1, 8, NO_FP);
	assert_walk(FUNCTION, 2, 16, 0);
	assert_walk(FUNCTION, 6, 40, 24);
	assert_walk(FUNCTION, 10, 40, 24); /* the call's last byte */
	assert_walk(FUNCTION, 15, 16, 0);
	assert_walk(FUNCTION, 16, 8, NO_FP);
	assert_walk(FUNCTION, 17, 0, NO_FP);
	assert_unknown(FUNCTION, 18); /* beyond the function */
#undef FUNCTION
	assert_walk(CODE("\x48\x81\xec\x08\x01\x00\x00\x90"), 7, 0x108, NO_FP);
	assert_walk(CODE("\x48\x8d\x64\x24\xf0\x90"), 5, 16, NO_FP); /* lea -16(%rsp),%rsp */
	assert_walk(CODE("\x48\x8d\xa4\x24\x00\xff\xff\xff\x90"), 8, 256, NO_FP);
	/* sub $8,%rsp; then padding: lea 0(%rbp),%rbp, lea 0(%rsp),%rsp, mov %rbp,%rbp */
	assert_walk(CODE("\x48\x83\xec\x08\x48\x8d\x6d\x00\x90"), 8, 8, NO_FP);
	assert_walk(CODE("\x48\x83\xec\x08\x48\x8d\xad\x00\x00\x00\x00\x90"), 11, 8, NO_FP);
	assert_walk(CODE("\x48\x83\xec\x08\x48\x8d\x64\x24\x00\x90"), 9, 8, NO_FP);
	assert_walk(CODE("\x48\x83\xec\x08\x48\x89\xed\x90"), 7, 8, NO_FP);
	/* and no padding: lea 8(%rbp),%rbp, lea 0(%ebp),%ebp, lea 0(%r13),%rbp, lea (%rbp,%rax),%rbp */
	assert_unknown(CODE("\x48\x83\xec\x08\x48\x8d\x6d\x08\x90"), 8);
	assert_unknown(CODE("\x48\x83\xec\x08\x8d\x6d\x00\x90"), 7);
	assert_unknown(CODE("\x48\x83\xec\x08\x49\x8d\x6d\x00\x90"), 8);
	assert_unknown(CODE("\x48\x83\xec\x08\x48\x8d\x6c\x05\x00\x90"), 9);
	assert_walk(CODE("\x6a\x01\x68\x02\x00\x00\x00\xff\x30\x9c\x90"), 10, 32, NO_FP);
	/* pop (%rax); an instruction of AMD's with the same first byte */
	assert_walk(CODE("\x53\x8f\x00\x90"), 3, 0, NO_FP);
	assert_walk(CODE("\x53\x8f\xe8\x78\xc2\xd2\x07\x90"), 7, 8, NO_FP);
	assert_walk(CODE("\x41\x55\x90"), 2, 8, NO_FP); /* r13 is not rbp */
}

static void rbp_may_be_saved_without_a_push(void **state)
{
	(void)state;
	/* sub $24,%rsp; mov %rbp,8(%rsp); nop; mov 8(%rsp),%rbp; add $24,%rsp; ret */
#define FUNCTION \
	CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x08\x90\x48\x8b\x6c\x24\x08\x48\x83\xc4\x18\xc3")
	assert_walk(FUNCTION, 9, 24, 8);
	assert_walk(FUNCTION, 15, 24, NO_FP);
	assert_walk(FUNCTION, 19, 0, NO_FP);
#undef FUNCTION
	/* Stores below rsp, before rsp is lowered. */
	assert_walk(CODE("\x48\x89\x6c\x24\xf0\x48\x83\xec\x18\x90"), 9, 24, 8);
}

static void a_link_survives_what_happens_to_rsp(void **state)
{
	(void)state;
	/* push %rbp; mov %rsp,%rbp; push %rbx; sub %rax,%rsp; call; lea -8(%rbp),%rsp; pop %rbx;
	 * pop %rbp; ret */
#define FUNCTION \
	CODE("\x55\x48\x89\xe5\x53\x48\x29\xc4\xe8\x00\x00\x00\x00\x48\x8d\x65\xf8\x5b\x5d\xc3")
	assert_walk(FUNCTION, 1, 8, 0);
	assert_linked(FUNCTION, 4);
	assert_linked(FUNCTION, 8);
	assert_linked(FUNCTION, 17);
	assert_walk(FUNCTION, 19, 0, NO_FP);
#undef FUNCTION
	/* push %rbp; mov %rsp,%rbp; and $-32,%rsp; nop; leave; ret */
#define FUNCTION CODE("\x55\x48\x8b\xec\x48\x83\xe4\xe0\x90\xc9\xc3")
	assert_linked(FUNCTION, 8);
	assert_linked(FUNCTION, 9);
	assert_walk(FUNCTION, 10, 0, NO_FP);
#undef FUNCTION
	/* Without a frame pointer, rsp is unknown. */
	assert_unknown(CODE("\x48\x83\xe4\xe0\x90"), 4);
	assert_unknown(CODE("\x48\x29\xc4\x90"), 3);
	assert_unknown(CODE("\x5c\x90"), 1);
	assert_unknown(CODE("\xc8\x10\x00\x00\x90"), 4);
	assert_unknown(CODE("\x48\x94\x90"), 2); /* xchg %rax,%rsp */
}

static void branches_are_followed(void **state)
{
	(void)state;
	/* test; je 1f; push %rbx; call; pop %rbx; 1: ret */
#define FUNCTION CODE("\x85\xc0\x74\x07\x53\xe8\x00\x00\x00\x00\x5b\xc3")
	assert_walk(FUNCTION, 5, 8, NO_FP);
	assert_walk(FUNCTION, 11, 0, NO_FP);
#undef FUNCTION
	/* push %rbx; jmp 1f; 2: pop %rbx; ret; 1: call; jmp 2b, by long jumps and a
	 * conditional one */
#define FUNCTION \
	CODE("\x53\xe9\x02\x00\x00\x00\x5b\xc3\xe8\x00\x00\x00\x00\x0f\x84\xf3\xff\xff\xff\xeb\xf1")
	assert_walk(FUNCTION, 8, 8, NO_FP);
	assert_walk(FUNCTION, 7, 0, NO_FP);
#undef FUNCTION
}

static void ways_that_differ_tell_nothing(void **state)
{
	(void)state;
	/* je 1f; push %rbx; 1: nop */
	assert_unknown(CODE("\x74\x01\x53\x90"), 3);
	/* je 1f; push %rbp; mov %rsp,%rbp; jmp 2f; 1: push %rax; 2: nop; nop */
	assert_unknown(CODE("\x74\x06\x55\x48\x89\xe5\xeb\x01\x50\x90\x90"), 10);
	/* No path leads there. */
	assert_unknown(CODE("\xc3\x90"), 1);
	assert_unknown(CODE("\xeb\x01\x90\xc3"), 2);
}

static void a_switchs_cases_have_the_frame_of_its_jump(void **state)
{
	(void)state;
	/* push %rbx; jmp *%rax; call; pop %rbx; ret; plain, and with prefixes */
	assert_walk(CODE("\x53\xff\xe0\xe8\x00\x00\x00\x00\x5b\xc3"), 3, 8, NO_FP);
	assert_walk(CODE("\x53\x3e\xff\xe0\xe8\x00\x00\x00\x00\x5b\xc3"), 4, 8,
		    NO_FP); /* notrack */
	assert_walk(CODE("\x53\xff\x24\xc5\x00\x00\x00\x00\xe8\x00\x00\x00\x00\x5b\xc3"), 8, 8,
		    NO_FP);
	/* Two jumps with different frames. */
	assert_unknown(CODE("\x74\x05\x53\x3e\xff\xe0\x90\xff\xe0\xe8\x00\x00\x00\x00\x90"), 9);
	/* push %rbx; jmp *%rax; case: pop %rbx; jmp *%rax to another function; nop; case: nop */
	assert_walk(CODE("\x53\xff\xe0\x5b\xff\xe0\x90\x90\xe8\x00\x00\x00\x00"), 3, 8, NO_FP);
	assert_unknown(CODE("\x53\xff\xe0\x5b\xff\xe0\x90\x90\xe8\x00\x00\x00\x00"), 8);
	/* A prefix does not hide the jump: the code behind it belongs to another path. */
	assert_unknown(CODE("\x74\x07\x53\x74\x04\x3e\xff\xe0\x90\x90"), 9);
}

static void other_registers_are_not_taken_for_rsp_and_rbp(void **state)
{
	(void)state;
	/* push %rbp; mov %rsp,%rbp; sub $16,%rsp; mov %r13,%rsp: rbp still links, but rsp is not
	 * where rbp points */
	assert_linked(CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\x4c\x89\xec\x90"), 11);
	/* push %rbp; mov %r12,%rbp: no link */
	assert_walk(CODE("\x55\x4c\x89\xe5\x90"), 4, 8, 0);
	assert_walk(CODE("\x55\x49\x8b\xec\x90"), 4, 8, 0);
	/* push %rbp; sub $8,%rsp; mov 8(%r12),%rbp: this does not restore rbp */
	assert_walk(CODE("\x55\x48\x83\xec\x08\x49\x8b\x6c\x24\x08\x90"), 10, 16, 8);
	/* mov %rbp,8(%r12): this does not save rbp on the stack */
	assert_walk(CODE("\x48\x83\xec\x18\x49\x89\x6c\x24\x08\x90"), 9, 24, NO_FP);
	/* lea -8(%r12),%rsp, lea 8(%rsp,%r12),%rsp, mov %r13,%rsp */
	assert_unknown(CODE("\x53\x49\x8d\x64\x24\xf8\x90"), 6);
	assert_unknown(CODE("\x53\x4a\x8d\x64\x24\x08\x90"), 6);
	assert_unknown(CODE("\x53\x4c\x89\xec\x90"), 4);
	/* Half of rsp: sub $8,%esp, sub $8,%sp */
	assert_unknown(CODE("\x83\xec\x08\x90"), 3);
	assert_unknown(CODE("\x66\x81\xec\x08\x00\x90"), 5);
	/* or %al,%ah, which has rsp's number */
	assert_walk(CODE("\x53\x08\xc4\x90"), 3, 8, NO_FP);
}

static void a_callers_rbp_that_is_lost_is_not_made_up(void **state)
{
	(void)state;
	assert_unknown(CODE("\x31\xed\x90"), 2);             /* xor %ebp,%ebp */
	assert_unknown(CODE("\xbd\x01\x00\x00\x00\x90"), 5); /* mov $1,%ebp */
	assert_unknown(CODE("\x48\x95\x90"), 2);             /* xchg %rax,%rbp */
	assert_unknown(CODE("\x48\x0f\xcd\x90"), 3);         /* bswap %rbp */
	assert_unknown(CODE("\xf2\x48\x0f\x2c\xe8\x90"), 5); /* cvttsd2si %xmm0,%rbp */
	assert_walk(CODE("\x55\x31\xed\x90"), 3, 8, 0);      /* rbp was saved before */
	assert_unknown(CODE("\xc4\xe2\xf8\xf2\xe9\x90"), 5); /* andn %rcx,%rax,%rbp */
	assert_unknown(CODE("\xc4\xe2\xd0\xf3\xc9\x90"), 5); /* blsr %rcx,%rbp */
	assert_unknown(CODE("\xc4\xe3\xfb\xf0\xe8\x07\x90"), 6); /* rorx $7,%rax,%rbp */
	assert_unknown(CODE("\xc5\xfb\x2c\xe8\x90"), 4); /* vcvttsd2si %xmm0,%ebp */
	assert_unknown(CODE("\xc5\xf9\x7e\xc5\x90"), 4); /* vmovd %xmm0,%ebp */
	assert_walk(CODE("\xc5\xf9\x6f\xe8\x90"), 4, 0, NO_FP); /* vmovdqa %xmm0,%xmm5 */
	assert_walk(CODE("\xc4\x62\xf8\xf2\xe9\x90"), 5, 0, NO_FP); /* andn %rcx,%rax,%r13 */
	/* push %rbp; xor %ebp,%ebp; pop %rcx: the saved value leaves the stack */
	assert_unknown(CODE("\x55\x31\xed\x59\x90"), 4);
	/* Paths that differ only in rbp: je 1f; mov %rsp,%rbp; 1: nop; nop, after a push */
	assert_unknown(CODE("\x55\x74\x03\x48\x89\xe5\x90\x90"), 7);
}

static void amounts_beyond_all_frames_tell_nothing(void **state)
{
	(void)state;
	assert_unknown(CODE("\x53\x48\x81\xec\xff\xff\xff\x7f\x48\x81\xec\xff\xff\xff\x7f\x90"),
		       15);
	assert_unknown(CODE("\x53\x48\x81\xc4\x00\x00\x00\x80\x90"), 8);
	assert_unknown(CODE("\x55\x48\x89\xe5\x48\x8d\xa5\x00\x00\x00\x80\x5d\x90"), 12);
	assert_unknown(CODE("\x58\x90"), 1); /* rsp is above the return address */
	assert_walk(CODE("\x48\x89\xac\x24\x00\x00\x00\x80\x90"), 8, 0, NO_FP);
}

/* ---- where functions go --------------------------------------------------------------- */

static bool finds_tail(const uint8_t *code, size_t size, int64_t *distance)
{
	uint8_t *copy = copy_of(code, size);
	bool is_found = tally_code_tail(copy, size, distance);
	free(copy);
	return is_found;
}

static void a_function_that_hands_its_call_on_is_told(void **state)
{
	int64_t distance;
	(void)state;
	assert_true(finds_tail(CODE("\xe9\x10\x00\x00\x00"), &distance));
	assert_int_equal(distance, 0x15);
	assert_true(finds_tail(CODE("\xf3\x0f\x1e\xfa\x31\xd2\xe9\xf0\xff\xff\xff"), &distance));
	assert_int_equal(distance, -5);
	assert_true(finds_tail(CODE("\x31\xd2\xeb\x10"), &distance));
	assert_int_equal(distance, 0x14);
	assert_false(finds_tail(CODE("\x53\xe9\x10\x00\x00\x00"), &distance));
	assert_false(finds_tail(CODE("\x48\x89\xc4\xe9\x10\x00\x00\x00"), &distance));
	assert_false(finds_tail(CODE("\xc3\xe9\x10\x00\x00\x00"), &distance));
	assert_false(finds_tail(CODE("\xf3\xc3\xe9\x10\x00\x00\x00"), &distance));
	assert_false(finds_tail(CODE("\x74\x05\xe9\x10\x00\x00\x00"), &distance));
	assert_false(finds_tail(CODE("\x0f\x84\x05\x00\x00\x00\xe9\x10\x00\x00\x00"), &distance));
	assert_false(finds_tail(CODE("\xe8\x05\x00\x00\x00\xe9\x10\x00\x00\x00"), &distance));
	assert_false(
		finds_tail(CODE("\x41\xff\xd1\xe9\x10\x00\x00\x00"), &distance)); /* call *%r9 */
	assert_false(finds_tail(CODE("\xff\xe0\xe9\x10\x00\x00\x00"), &distance));
	assert_false(finds_tail(CODE("\x0f\x0b\xe9\x10\x00\x00\x00"), &distance));
	assert_false(finds_tail(CODE("\xe9\x10\x00\x00"), &distance));
	assert_false(finds_tail(CODE(""), &distance));
}

static bool exits(const uint8_t *code, size_t size)
{
	uint8_t *copy = copy_of(code, size);
	bool does = tally_code_exits(copy, size);
	free(copy);
	return does;
}

static void a_threads_end_is_told(void **state)
{
	(void)state;
	/* mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall; hlt */
	assert_true(exits(CODE("\x89\xc7\x31\xc0\xb0\x3c\x0f\x05\xf4")));
	assert_true(exits(CODE("\x0f\x05\xf4")));
	assert_false(exits(CODE("\x89\xc7\x31\xc0\xb0\x3c\x0f\x05\xc3")));
	assert_false(exits(CODE("\xc3\x0f\x05\xf4")));
	assert_false(exits(CODE("\xf3\xc3\x0f\x05\xf4")));
	assert_false(exits(CODE("\xe8\x00\x00\x00\x00\x0f\x05\xf4")));
	assert_false(exits(CODE("\x41\xff\xd1\x0f\x05\xf4"))); /* call *%r9 */
	assert_false(exits(CODE("\xff\xe0\x0f\x05\xf4")));
	assert_false(exits(CODE("\x0f\x84\x00\x00\x00\x00\x0f\x05\xf4")));
	assert_false(exits(CODE("\x74\x00\x0f\x05\xf4")));
	/* the instruction is too far away */
	assert_false(exits(CODE("\x90\x90\x90\x90\x90\x90\x0f\x05\xf4")));
	assert_false(exits(CODE("\x0f\x05")));
	assert_false(exits(CODE("")));
}

static void an_aligned_stack_is_found_by_a_copy_of_rsp(void **state)
{
	struct tally_code_frame frame;
	(void)state;
	/* sub $96,%rsp; mov %rbx,(%rsp); mov %rbp,8(%rsp); mov %rsp,%rbx; and $-4096,%rsp; nop;
	 * mov %rbx,%rsp; mov 8(%rsp),%rbp; add $96,%rsp; ret */
#define KERNEL                                                                          \
	CODE("\x48\x83\xec\x60\x48\x89\x1c\x24\x48\x89\x6c\x24\x08\x48\x89\xe3" \
	     "\x48\x81\xe4\x00\xf0\xff\xff\x90\x48\x89\xdc\x48\x8b\x6c\x24\x08" \
	     "\x48\x83\xc4\x60\xc3")
	assert_true(walk(KERNEL, 23, &frame));
	assert_true(frame.has_base && !frame.is_loaded);
	assert_int_equal(frame.base, 3); /* rbx */
	assert_int_equal(frame.return_at, 96);
	assert_true(frame.saves_fp && !frame.fp_is_apart);
	assert_int_equal(frame.fp_at, 8);
	assert_int_equal(frame.lost, 1 << 3);
	assert_walk(KERNEL, 27, 96, 8);
	assert_walk(KERNEL, 32, 96, NO_FP);
	assert_walk(KERNEL, 36, 0, NO_FP);
#undef KERNEL
	/* lea 8(%rsp),%r10; and $-64,%rsp; push -8(%r10); push %rbp; mov %rsp,%rbp; push %r10;
	 * sub %rax,%rsp; nop; mov -8(%rbp),%r10; leave; lea -8(%r10),%rsp; ret */
#define REALIGNED                                                                       \
	CODE("\x4c\x8d\x54\x24\x08\x48\x83\xe4\xc0\x41\xff\x72\xf8\x55\x48\x89\xe5" \
	     "\x41\x52\x48\x29\xc4\x90\x4c\x8b\x55\xf8\xc9\x49\x8d\x62\xf8\xc3")
	assert_true(walk(REALIGNED, 9, &frame)); /* by r10 */
	assert_true(frame.has_base && !frame.is_loaded && !frame.saves_fp);
	assert_int_equal(frame.base, 10);
	assert_int_equal(frame.return_at, -8);
	assert_true(walk(REALIGNED, 22, &frame)); /* rsp is unknown: by rbp and the stored r10 */
	assert_true(frame.has_base && frame.is_loaded && frame.saves_fp && frame.fp_is_apart);
	assert_int_equal(frame.base, 6);
	assert_int_equal(frame.loaded_at, -8);
	assert_int_equal(frame.return_at, -8);
	assert_int_equal(frame.fp_base, 6);
	assert_int_equal(frame.fp_at, 0);
	assert_walk(REALIGNED, 32, 0, NO_FP);
#undef REALIGNED
	/* mov %rsp,%rax; sub $64,%rsp; and $-64,%rsp; mov %rax,40(%rsp); xor %eax,%eax; nop;
	 * mov 40(%rsp),%rsp; ret */
#define STORED                                                                          \
	CODE("\x48\x89\xe0\x48\x83\xec\x40\x48\x83\xe4\xc0\x48\x89\x44\x24\x28\x31" \
	     "\xc0\x90\x48\x8b\x64\x24\x28\xc3")
	/* the word lies above the aligned address: it isn't certainly the function's */
	assert_unknown(STORED, 18);
#undef STORED
	/* the same with the room behind the alignment */
#define STORED                                                                          \
	CODE("\x48\x89\xe0\x48\x83\xe4\xc0\x48\x83\xec\x40\x48\x89\x44\x24\x28\x31" \
	     "\xc0\x90\x48\x8b\x64\x24\x28\xc3")
	assert_true(walk(STORED, 18, &frame));
	assert_true(frame.has_base && frame.is_loaded && !frame.saves_fp);
	assert_int_equal(frame.base, 7);
	assert_int_equal(frame.loaded_at, 40);
	assert_int_equal(frame.return_at, 0);
	assert_walk(STORED, 24, 0, NO_FP);
#undef STORED
	/* mov %rsp,%rax; and $-64,%rsp; call: the callee may change rax */
	assert_unknown(CODE("\x48\x89\xe0\x48\x83\xe4\xc0\xe8\x00\x00\x00\x00\x90"), 8);
	assert_unknown(CODE("\x48\x89\xe0\x48\x83\xe4\xc0\xe8\x00\x00\x00\x00\x90"), 12);
	/* mov %bl: changes the copy */
	assert_unknown(CODE("\x48\x89\xe3\x48\x83\xe4\xc0\xb3\x01\x90"), 9);
}

static void ways_may_disagree_about_rsp_where_rbp_tells_the_frame(void **state)
{
	(void)state;
	/* push %rbp; mov %rsp,%rbp; test %eax,%eax; je 1f; push %rax; 1: nop; leave; ret */
	assert_linked(CODE("\x55\x48\x89\xe5\x85\xc0\x74\x01\x50\x90\xc9\xc3"), 9);
	assert_unknown(CODE("\x55\x85\xc0\x74\x01\x50\x90\xc9\xc3"), 6);
}

static void assert_onward(const uint8_t *code, size_t size, int32_t return_at, int32_t fp_at)
{
	struct tally_code_frame frame;
	bool is_edge;
	uint8_t *copy = copy_of(code, size);
	assert_true(tally_code_onward(copy, size, false, &frame, &is_edge));
	free(copy);
	assert_false(frame.is_linked);
	assert_int_equal(frame.return_at, return_at);
	assert_int_equal(frame.saves_fp, fp_at != NO_FP);
	if (fp_at != NO_FP)
		assert_int_equal(frame.fp_at, fp_at);
}

static bool is_onward_known(const uint8_t *code, size_t size, struct tally_code_frame *frame,
			    bool *is_edge)
{
	uint8_t *copy = copy_of(code, size);
	bool is_known = tally_code_onward(copy, size, false, frame, is_edge);
	free(copy);
	return is_known;
}

static void the_way_to_the_end_tells_the_frame(void **state)
{
	struct tally_code_frame frame;
	bool is_edge;
	(void)state;
	/* 1: dec %ecx; jne 1b; add $8,%rsp; ret */
	assert_onward(CODE("\xff\xc9\x75\xfc\x48\x83\xc4\x08\xc3"), 8, NO_FP);
	/* pop %rbx; pop %rbp; ret */
	assert_onward(CODE("\x5b\x5d\xc3"), 16, 8);
	/* push %rbp; mov %rsp,%rbp; sub $8,%rsp; leave; ret */
	assert_onward(CODE("\x55\x48\x89\xe5\x48\x83\xec\x08\xc9\xc3"), 0, NO_FP);
	/* mov 8(%rsp),%rbp; add $24,%rsp; ret */
	assert_onward(CODE("\x48\x8b\x6c\x24\x08\x48\x83\xc4\x18\xc3"), 24, 8);
	/* nop; mov %rbp,%rsp; pop %rbp; ret $16 */
	assert_true(is_onward_known(CODE("\x90\x48\x89\xec\x5d\xc2\x10\x00"), &frame, &is_edge));
	assert_true(frame.is_linked);
	/* two ends that disagree: je 1f; pop %rbx; 1: ret */
	assert_false(is_onward_known(CODE("\x74\x01\x5b\xc3"), &frame, &is_edge));
	/* xor %ebp,%ebp; ret: where the caller's rbp is, is not known */
	assert_false(is_onward_known(CODE("\x31\xed\xc3"), &frame, &is_edge));
	/* call; ret */
	assert_false(is_onward_known(CODE("\xe8\x00\x00\x00\x00\xc3"), &frame, &is_edge));
	/* test $1,%al; push %rbp; mov %rsp,%rbp; call */
	assert_false(is_onward_known(CODE("\xa8\x01\x55\x48\x89\xe5\xe8\x00\x00\x00\x00"),
				     &frame, &is_edge));
	assert_true(is_edge);
	/* push %rax; jmp *%rcx */
	assert_false(is_onward_known(CODE("\x50\xff\xe1"), &frame, &is_edge));
	assert_false(is_edge);
}

static enum tally_code_way way_to(const uint8_t *code, size_t size)
{
	uint8_t *copy = copy_of(code, size + 1); /* the literal's NUL is the byte behind */
	enum tally_code_way way = tally_code_way_to(copy, size);
	free(copy);
	return way;
}

static void a_label_inside_of_a_function_is_told(void **state)
{
	(void)state;
	/* push %rbx; xor %ebx,%ebx */
	assert_int_equal(way_to(CODE("\x53\x31\xdb")), TALLY_CODE_WAY_INSIDE);
	assert_int_equal(way_to(CODE("\x31\xdb")), TALLY_CODE_WAY);
	assert_int_equal(way_to(CODE("\x53\x5b\xc3")), TALLY_CODE_NO_WAY);
	/* je to the label, from behind a push; ret */
	assert_int_equal(way_to(CODE("\x53\x74\x01\xc3")), TALLY_CODE_WAY_INSIDE);
	/* push %rax; call abort */
	assert_int_equal(way_to(CODE("\x50\xe8\x00\x00\x00\x00")), TALLY_CODE_NO_WAY);
	/* a call, and something behind it */
	assert_int_equal(way_to(CODE("\x50\xe8\x00\x00\x00\x00\x90")), TALLY_CODE_WAY_INSIDE);
}

static void the_end_of_a_made_stack_is_told(void **state)
{
	(void)state;
	/* xor %rdi,%rdi; call _exit; hlt */
	assert_true(tally_code_ends_stack(CODE("\x48\x31\xff\xe8\x00\x00\x00\x00\xf4")));
	assert_true(tally_code_ends_stack(CODE("\xff\xd0\x0f\x0b")));
	assert_false(tally_code_ends_stack(CODE("\x48\x31\xff\xe8\x00\x00\x00\x00\x90")));
	assert_false(tally_code_ends_stack(CODE("\xe8\x00\x00\x00\x00")));
	assert_false(tally_code_ends_stack(CODE("\xc3\xe8\x00\x00\x00\x00\xf4")));
	assert_false(tally_code_ends_stack(CODE("")));
}

/* ---- this machine's libraries --------------------------------------------------------- */

static const char *const LIBRARIES[] = {
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/lib64/libc.so.6",
	"/lib/x86_64-linux-gnu/libm.so.6",
	"/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/lib64/libcrypto.so.3",
	"/lib/x86_64-linux-gnu/libelf.so.1",
	"/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/lib64/libstdc++.so.6",
};

struct library {
	struct tally_object *object;
	struct tally_unwind_table *table;
};

static bool open_library(const char *path, struct library *library)
{
	if (tally_object_open(AT_FDCWD, path, &library->object, NULL) != 0)
		return false;
	bool is_ours = tally_object_machine(library->object) == EM_X86_64;
	if (is_ours)
		assert_int_equal(
			tally_unwind_table_new(library->object, NULL, &library->table, NULL), 0);
	else
		tally_object_unref(library->object);
	return is_ours;
}

static void close_library(struct library *library)
{
	tally_unwind_table_free(library->table);
	tally_object_unref(library->object);
}

struct tallies {
	size_t known, unknown, wrong,
		pieces; /* instructions; functions that are not entered by a call */
};

static bool has_cfa_at_sp(const struct tally_cfi_row *row, int64_t *offset)
{
	*offset = row->cfa.value;
	return row->cfa.kind == TALLY_CFI_REGISTER && row->cfa.reg == TALLY_UNWIND_RSP;
}

/* True if the rule and the walk have the return address and the saved rbp at the same places.  A
 * row may say late that rbp is restored; then only the return address is compared. */
static bool agrees(const struct tally_cfi_row *row, int64_t cfa, const uint8_t *code,
		   const struct tally_code_frame *frame)
{
	enum { RET = 0xc3, REPEAT = 0xf3 };
	const struct tally_cfi_rule *fp = &row->registers[TALLY_UNWIND_RBP];
	if (code[0] == RET || (code[0] == REPEAT && code[1] == RET))
		return frame->return_at ==
		       0; /* the rules of libcrypto's assembly are wrong here */
	if (frame->is_linked)
		return fp->kind == TALLY_CFI_OFFSET && fp->value == -16;
	if (frame->return_at != cfa - 8)
		return false;
	return !frame->saves_fp || fp->kind != TALLY_CFI_OFFSET || frame->fp_at == cfa + fp->value;
}

static size_t report(const struct tally_unwind_function *function, size_t at, int64_t cfa,
		     const struct tally_code_frame *frame)
{
	fprintf(stderr,
		"%#llx+%#zx: the CFA is rsp%+lld, the walk has return at %d, rbp at %d (%d), %s\n",
		(unsigned long long)function->start, at, (long long)cfa, frame->return_at,
		frame->fp_at, frame->saves_fp, frame->is_linked ? "linked" : "not linked");
	return 1;
}

/* By the beginnings that the code itself tells. */
static bool walk_from_start(const struct library *library, const struct tally_code_starts *starts,
			    uint64_t address, struct tally_code_frame *frame)
{
	enum { REACH = 8 << 10 };
	uint64_t start, end;
	size_t available;
	if (!tally_code_starts_around(starts, address, REACH, &start, &end))
		return false;
	const uint8_t *code = tally_object_bytes_at(library->object, start, &available);
	assert_true(code && available >= end - start);
	return tally_code_walk_plainly(code, (size_t)(end - start), start,
				       (size_t)(address - start), frame);
}

static void compare_row_by_start(const struct library *library,
				 const struct tally_code_starts *starts,
				 const struct tally_cfi_program *program,
				 const struct tally_unwind_function *function,
				 struct tallies *tallies)
{
	struct tally_code_frame frame;
	size_t available;
	int64_t cfa;
	const uint8_t *code = tally_object_bytes_at(library->object, program->row_start,
						    &available);
	if (!code || !has_cfa_at_sp(&program->row, &cfa) || program->row.is_signal_frame)
		return;
	if (!walk_from_start(library, starts, program->row_start, &frame))
		tallies->unknown++;
	else if (agrees(&program->row, cfa, code, &frame))
		tallies->known++;
	else
		tallies->wrong += report(function, (size_t)(program->row_start - function->start),
					 cfa, &frame);
}

static void compare_row(const struct tally_cfi_program *program, const uint8_t *code, size_t size,
			const struct tally_unwind_function *function, struct tallies *tallies)
{
	struct tally_code_frame frame;
	int64_t cfa;
	if (!has_cfa_at_sp(&program->row, &cfa))
		return;
	size_t at = (size_t)(program->row_start - function->start);
	if (!tally_code_walk(code, size, at, &frame))
		tallies->unknown++;
	else if (agrees(&program->row, cfa, code + at, &frame))
		tallies->known++;
	else
		tallies->wrong += report(function, at, cfa, &frame);
}

/* Onward from the row's first instruction.  A function may end by calling one that doesn't return:
 * then no answer is expected. */
static void compare_row_onward(const struct tally_cfi_program *program, const uint8_t *code,
			       size_t size, const struct tally_unwind_function *function,
			       bool passes_calls, struct tallies *tallies)
{
	struct tally_code_frame frame;
	int64_t cfa;
	bool is_edge;
	size_t at = (size_t)(program->row_start - function->start);
	if (!has_cfa_at_sp(&program->row, &cfa))
		return;
	if (!tally_code_onward(code + at, size - at, passes_calls, &frame, &is_edge))
		tallies->unknown++;
	else if (agrees(&program->row, cfa, code + at, &frame))
		tallies->known++;
	else
		tallies->wrong += report(function, at, cfa, &frame);
}

static void compare_function(const struct library *library,
			     const struct tally_function_index *index,
			     const struct tally_unwind_function *function, struct tallies *tallies,
			     struct tallies *onward)
{
	enum { NOP = 0x90 }; /* before an exception handler that was moved away */
	struct tally_cfi_program program;
	size_t available;
	int64_t cfa;
	const uint8_t *code = tally_object_bytes_at(library->object, function->start, &available);
	if (!code || !function->size || available < function->size ||
	    !tally_function_index_start(index, function, &program) ||
	    !tally_cfi_program_next(&program))
		return;
	if (!has_cfa_at_sp(&program.row, &cfa) || cfa != 8 || program.row.is_signal_frame ||
	    code[0] == NOP) {
		tallies->pieces++;
		return;
	}
	uint8_t *copy = copy_of(code, function->size);
	do {
		compare_row(&program, copy, function->size, function, tallies);
		compare_row_onward(&program, copy, function->size, function, false, &onward[0]);
		compare_row_onward(&program, copy, function->size, function, true, &onward[1]);
	} while (tally_cfi_program_next(&program));
	free(copy);
}

static void walks_say_what_the_compilers_rules_say(void **state)
{
	size_t libraries = 0;
	(void)state;
	for (size_t i = 0; i < sizeof(LIBRARIES) / sizeof(*LIBRARIES); i++) {
		struct library library;
		struct tallies tallies = { 0 }, onward[2] = { 0 };
		if (!open_library(LIBRARIES[i], &library))
			continue;
		libraries++;
		for (unsigned j = 0; j < library.table->index_count; j++) {
			const struct tally_function_index *index = &library.table->indexes[j];
			struct tally_unwind_function function;
			for (size_t k = 0; k < index->count; k++)
				if (tally_function_index_at(index, k, &function))
					compare_function(&library, index, &function, &tallies,
							 onward);
		}
		print_message("# %s: %zu places, %zu unknown, %zu wrong; %zu pieces left out\n",
			      LIBRARIES[i], tallies.known, tallies.unknown, tallies.wrong,
			      tallies.pieces);
		for (unsigned j = 0; j < 2; j++)
			print_message("# … onward%s: %zu places, %zu unknown, %zu wrong\n",
				      j ? " through calls" : "", onward[j].known,
				      onward[j].unknown, onward[j].wrong);
		assert_true(tallies.known > 100);
		assert_int_equal(tallies.wrong, 0);
		assert_true(onward[0].known > 100);
		assert_int_equal(onward[0].wrong, 0);
		/* calls that don't return */
		assert_true(onward[1].wrong * 500 <= onward[1].known);
		assert_true(tallies.unknown * 9 <= tallies.known);
		close_library(&library);
	}
	if (!libraries) {
		print_message("# none of the libraries is here\n");
		skip();
	}
}

static void assert_starts(const uint8_t *code, size_t size, uint64_t address, const char *expected)
{
	struct tally_code_starts starts;
	uint8_t *copy = copy_of(code, size);
	uint64_t start, end;
	char found[64];
	assert_true(size < sizeof(found));
	assert_int_equal(tally_code_starts_find(copy, size, address, &starts), 0);
	free(copy);
	for (size_t i = 0; i < size; i++)
		found[i] = tally_code_starts_around(&starts, address + i, 0, &start, &end) ? '^'
											   : '.';
	found[size] = '\0';
	assert_string_equal(found, expected);
	assert_false(tally_code_starts_around(&starts, address - 1, 64, &start, &end));
	assert_false(tally_code_starts_around(&starts, address + size, 64, &start, &end));
	tally_code_starts_release(&starts);
}

static void functions_begin_where_calls_go(void **state)
{
	(void)state;
	/* call 8; ret; 2 nops; 8: ret */
	assert_starts(CODE("\xe8\x03\x00\x00\x00\xc3\x66\x90\xc3"), 0x1000, "........^");
	/* into the middle of an instruction, and beyond the code */
	assert_starts(CODE("\xe8\x02\x00\x00\x00\xc3\x66\x90\xc3"), 0x1000, ".........");
	assert_starts(CODE("\xe8\x04\x00\x00\x00\xc3\x66\x90\xc3"), 0x1000, ".........");
	/* the same bytes within a mov are no call */
	assert_starts(CODE("\x48\xb8\xe8\x03\x00\x00\x00\x00\x00\x00\xc3"), 0x1000, "...........");
	/* lea 2(%rip),%rax; ret; nop; 9: ret */
	assert_starts(CODE("\x48\x8d\x05\x02\x00\x00\x00\xc3\x90\xc3"), 0x1000, ".........^");
	/* a label: the code before it goes on */
	assert_starts(CODE("\x48\x8d\x05\x02\x00\x00\x00\x31\xc0\xc3"), 0x1000, "..........");
	/* mov $0x401009,%rdi; ret; nop; 9: ret */
	assert_starts(CODE("\x48\xc7\xc7\x09\x10\x40\x00\xc3\x90\xc3"), 0x401000, ".........^");
	/* mov $0x401008,%edi; ret; 2 nops; 8: ret */
	assert_starts(CODE("\xbf\x08\x10\x40\x00\xc3\x66\x90\xc3"), 0x401000, "........^");
}

static void ends_of_a_start_are_the_next_one(void **state)
{
	uint64_t start, end;
	struct tally_code_starts starts;
	(void)state;
	/* call 8; ret; 2 nops; 8: call 16; ret; 2 nops; 16: ret */
	uint8_t *copy = copy_of(CODE("\xe8\x03\x00\x00\x00\xc3\x66\x90\xe8\x03\x00\x00\x00\xc3"
				     "\x66\x90\xc3"));
	assert_int_equal(tally_code_starts_find(copy, 17, 0x1000, &starts), 0);
	free(copy);
	assert_false(tally_code_starts_around(&starts, 0x1007, 64, &start, &end));
	assert_true(tally_code_starts_around(&starts, 0x100a, 64, &start, &end));
	assert_int_equal(start, 0x1008);
	assert_int_equal(end, 0x1010);
	assert_false(tally_code_starts_around(&starts, 0x100a, 1, &start, &end));
	assert_true(tally_code_starts_around(&starts, 0x1010, 64, &start, &end));
	assert_int_equal(end, 0x1011);
	tally_code_starts_release(&starts);
}

static void assert_likely(const uint8_t *code, size_t size, const char *expected)
{
	struct tally_code_starts starts;
	uint8_t *copy = copy_of(code, size);
	uint64_t start, end;
	char found[64];
	assert_true(size < sizeof(found));
	assert_int_equal(tally_code_starts_find(copy, size, 0x1000, &starts), 0);
	free(copy);
	for (size_t i = 0; i < size; i++)
		found[i] = tally_code_starts_likely(&starts, 0x1000 + i, 65536, &start, &end) &&
					   start == 0x1000 + i
				   ? '^'
				   : '.';
	found[size] = '\0';
	assert_string_equal(found, expected);
	tally_code_starts_release(&starts);
}

static void functions_are_likely_to_begin_behind_others(void **state)
{
	(void)state;
	/* ret; nop; xor; ret */
	assert_likely(CODE("\xc3\x90\x31\xc0\xc3"), "^.^..");
	/* jne 3; ret; 3: xor; ret: a part of the function */
	assert_likely(CODE("\x75\x01\xc3\x31\xc0\xc3"), "^.....");
	/* jne by 32 bits */
	assert_likely(CODE("\x0f\x85\x01\x00\x00\x00\xc3\x31\xc0\xc3"), "^.........");
	/* jmp 4, near; ret; nop; 4: ret */
	assert_likely(CODE("\xeb\x02\xc3\x90\xc3"), "^....");
	/* jmp far away, and to here from there is another function's */
	assert_likely(CODE("\xe9\x00\x10\x00\x00\xc3"), "^.....");
	/* jmp *%rax; ret: a case of a switch */
	assert_likely(CODE("\xff\xe0\xc3"), "^..");
	/* jmp *%rax; padding; 16: ret */
	assert_likely(CODE("\xff\xe0\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
			   "\xc3"),
		      "^...............^");
}

/* Without the function's bounds, the walk stops at instructions that may begin another function. */
static void plain_walks_end_where_functions_may(void **state)
{
	struct tally_code_frame frame;
	(void)state;
	/* push %rbx; call; then nopl, or pop; ret */
	static const uint8_t padded[] = {
		0x53, 0xe8, 0, 0, 0, 0, 0x0f, 0x1f, 0x00, 0x5b, 0xc3, 0, 0
	};
	static const uint8_t going_on[] = { 0x53, 0xe8, 0,    0,    0, 0, 0x31,
					    0xc0, 0x90, 0x5b, 0xc3, 0, 0 };
	static const uint8_t beginning[] = { 0x53, 0xe8, 0, 0, 0, 0, 0x55, 0x31, 0xc0, 0x5d, 0xc3 };
	assert_true(tally_code_walk(padded, sizeof(padded), 9, &frame));
	assert_false(tally_code_walk_plainly(padded, sizeof(padded), 0x1000, 9, &frame));
	assert_true(tally_code_walk_plainly(padded, sizeof(padded), 0x1000, 5, &frame));
	assert_true(tally_code_walk_plainly(going_on, sizeof(going_on), 0x1000, 9, &frame));
	assert_int_equal(frame.return_at, 8);
	assert_true(tally_code_walk_plainly(beginning, sizeof(beginning), 0x1000, 7, &frame));
	assert_false(tally_code_walk_plainly(beginning, sizeof(beginning), 0x100a, 7, &frame));
}

/* The frame at a jump through a register, which leads to code that has no beginning of its own. */
static void frames_at_jumps_are_found(void **state)
{
	struct tally_code_frame frame;
	(void)state;
	/* push %rbp; mov %rsp,%rbp; push %rdi; jmp *%rsi */
	static const uint8_t linked[] = { 0x55, 0x48, 0x89, 0xe5, 0x57, 0xff, 0xe6 };
	/* push %rdi; jz over the jump; jmp *%rsi; push %rdi; jmp *%rsi */
	static const uint8_t differing[] = { 0x57, 0x74, 0x02, 0xff, 0xe6, 0x57, 0xff, 0xe6 };
	static const uint8_t none[] = { 0x55, 0x48, 0x89, 0xe5, 0xc9, 0xc3 };
	assert_true(tally_code_walk_to_jump(linked, sizeof(linked), &frame));
	assert_true(frame.is_linked);
	assert_int_equal(frame.return_at, 16);
	assert_true(tally_code_walk_to_jump(differing, 5, &frame));
	assert_int_equal(frame.return_at, 8);
	assert_false(tally_code_walk_to_jump(differing, sizeof(differing), &frame));
	assert_false(tally_code_walk_to_jump(none, sizeof(none), &frame));
}

static void find_starts(const struct library *library, struct tally_code_starts *starts)
{
	struct tally_section text;
	assert_true(tally_object_section(library->object, ".text", &text));
	assert_int_equal(tally_code_starts_find(text.bytes, text.size, text.address, starts), 0);
}

/* Without symbols, places are right or unknown.  Exceptions are some places after calls that don't
 * return.  The unwinder detects these later, by the stack. */
static void beginnings_are_found_without_symbols(void **state)
{
	size_t libraries = 0;
	(void)state;
	for (size_t i = 0; i < sizeof(LIBRARIES) / sizeof(*LIBRARIES); i++) {
		struct library library;
		struct tally_code_starts starts;
		struct tallies tallies = { 0 };
		if (!open_library(LIBRARIES[i], &library))
			continue;
		libraries++;
		find_starts(&library, &starts);
		for (unsigned j = 0; j < library.table->index_count; j++) {
			const struct tally_function_index *index = &library.table->indexes[j];
			struct tally_unwind_function function;
			struct tally_cfi_program program;
			for (size_t k = 0; k < index->count; k++)
				if (tally_function_index_at(index, k, &function) &&
				    tally_function_index_start(index, &function, &program))
					while (tally_cfi_program_next(&program))
						compare_row_by_start(&library, &starts, &program,
								     &function, &tallies);
		}
		print_message("# %s: %zu places, %zu unknown, %zu wrong\n", LIBRARIES[i],
			      tallies.known, tallies.unknown, tallies.wrong);
		assert_true(tallies.known > 100);
		assert_true(tallies.wrong * 500 <= tallies.known);
		tally_code_starts_release(&starts);
		close_library(&library);
	}
	if (!libraries)
		skip();
}

/* Compares with libLLVM, from a function's start, as far as both know the instructions. */
static void compare_lengths(struct tally_disassembler *disassembler, const uint8_t *code,
			    size_t size, struct tallies *tallies)
{
	enum { LOCK = 0xf0 };
	struct tally_instruction one;
	for (size_t at = 0; at < size; at += one.size) {
		tally_disassemble(disassembler, code + at, size - at, at, &one);
		if (one.kind == TALLY_INSTRUCTION_DATA)
			return;
		if (one.size == 1 &&
		    code[at] == LOCK) /* libLLVM takes this prefix for an instruction */
			continue;
		size_t length = tally_code_length(code + at, size - at);
		tallies->known += length == one.size;
		tallies->unknown += !length;
		tallies->wrong += length && length != one.size;
		if (length && length != one.size)
			fprintf(stderr, "length %zu, not %u: %s\n", length, one.size, one.text);
	}
}

static void lengths_are_the_disassemblers(void **state)
{
	enum { INSTRUCTIONS_MAX = 150000 };
	struct tally_disassembler *disassembler;
	struct tallies tallies = { 0 };
	struct library library;
	(void)state;
	if (tally_disassembler_open(EM_X86_64, true, false, false, &disassembler, NULL) != 0) {
		print_message("# no libLLVM\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(LIBRARIES) / sizeof(*LIBRARIES); i++) {
		struct tally_unwind_function function;
		size_t available, first = tallies.known;
		if (!open_library(LIBRARIES[i], &library))
			continue;
		const struct tally_function_index *index = &library.table->indexes[0];
		for (size_t k = 0; library.table->index_count && k < index->count; k++) {
			if (tallies.known - first > INSTRUCTIONS_MAX ||
			    !tally_function_index_at(index, k, &function))
				continue;
			const uint8_t *code = tally_object_bytes_at(library.object, function.start,
								    &available);
			if (code && available >= function.size)
				compare_lengths(disassembler, code, function.size, &tallies);
		}
		close_library(&library);
	}
	tally_disassembler_close(disassembler);
	print_message("# %zu instructions, %zu unknown, %zu wrong\n", tallies.known,
		      tallies.unknown, tallies.wrong);
	if (!tallies.known)
		skip();
	assert_int_equal(tallies.wrong, 0);
	assert_true(tallies.unknown * 1000 <= tallies.known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_have_their_length),
		cmocka_unit_test(what_is_no_instruction_has_no_length),
		cmocka_unit_test(pushes_and_pops_are_counted),
		cmocka_unit_test(rbp_may_be_saved_without_a_push),
		cmocka_unit_test(a_link_survives_what_happens_to_rsp),
		cmocka_unit_test(branches_are_followed),
		cmocka_unit_test(ways_that_differ_tell_nothing),
		cmocka_unit_test(a_switchs_cases_have_the_frame_of_its_jump),
		cmocka_unit_test(other_registers_are_not_taken_for_rsp_and_rbp),
		cmocka_unit_test(a_callers_rbp_that_is_lost_is_not_made_up),
		cmocka_unit_test(amounts_beyond_all_frames_tell_nothing),
		cmocka_unit_test(a_function_that_hands_its_call_on_is_told),
		cmocka_unit_test(a_threads_end_is_told),
		cmocka_unit_test(an_aligned_stack_is_found_by_a_copy_of_rsp),
		cmocka_unit_test(ways_may_disagree_about_rsp_where_rbp_tells_the_frame),
		cmocka_unit_test(the_way_to_the_end_tells_the_frame),
		cmocka_unit_test(a_label_inside_of_a_function_is_told),
		cmocka_unit_test(the_end_of_a_made_stack_is_told),
		cmocka_unit_test(walks_say_what_the_compilers_rules_say),
		cmocka_unit_test(functions_begin_where_calls_go),
		cmocka_unit_test(ends_of_a_start_are_the_next_one),
		cmocka_unit_test(functions_are_likely_to_begin_behind_others),
		cmocka_unit_test(plain_walks_end_where_functions_may),
		cmocka_unit_test(frames_at_jumps_are_found),
		cmocka_unit_test(beginnings_are_found_without_symbols),
		cmocka_unit_test(lengths_are_the_disassemblers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
