/* Runs on stacks that are not a thread's own: one by makecontext(3), and one that a few
 * instructions of assembly switch to, like libraries of coroutines. */
#include "truth.h"
#include <string.h>
#include <ucontext.h>

enum { HALF, THIRD, FIFTH, PARTS };
enum { ROUNDS = 12, STACK_BYTES = 256 << 10 };

static struct truth_part parts[PARTS] = { { "half", 0 }, { "third", 0 }, { "fifth", 0 } };

TRUTH_FUNCTION uint64_t half(uint64_t value)
{
	return truth_work(value) + 1;
}

TRUTH_FUNCTION uint64_t third(uint64_t value)
{
	return truth_work(value) + 2;
}

TRUTH_FUNCTION uint64_t fifth(uint64_t value)
{
	return truth_work(value) + 3;
}

static ucontext_t main_context, coroutine_context;
static void *main_stack, *other_stack;

/* void switch_stacks(void **from, void *to): saves the callee-saved registers and changes the
 * stack. */
void switch_stacks(void **from, void *to);
__asm__(".text\n"
	".globl switch_stacks\n"
	".type switch_stacks, @function\n"
	"switch_stacks:\n"
	".cfi_startproc\n"
	"	pushq %rbp\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rbx\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %r12\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %r13\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %r14\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %r15\n	.cfi_adjust_cfa_offset 8\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n	.cfi_adjust_cfa_offset -8\n"
	"	popq %r14\n	.cfi_adjust_cfa_offset -8\n"
	"	popq %r13\n	.cfi_adjust_cfa_offset -8\n"
	"	popq %r12\n	.cfi_adjust_cfa_offset -8\n"
	"	popq %rbx\n	.cfi_adjust_cfa_offset -8\n"
	"	popq %rbp\n	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size switch_stacks, .-switch_stacks\n");

TRUTH_FUNCTION void stage_of_third(void)
{
	uint64_t value = 3;
	TRUTH_SPEND(&parts[THIRD], 45, value = third(value));
}

TRUTH_FUNCTION void stage_of_fifth(void)
{
	uint64_t value = 4;
	TRUTH_SPEND(&parts[FIFTH], 30, value = fifth(value));
}

static void coroutine(void)
{
	for (;;) {
		stage_of_third();
		swapcontext(&coroutine_context, &main_context);
	}
}

static void other_coroutine(void)
{
	for (;;) {
		stage_of_fifth();
		switch_stacks(&other_stack, main_stack);
	}
}

TRUTH_FUNCTION void stage_of_half(void)
{
	uint64_t value = 5;
	TRUTH_SPEND(&parts[HALF], 75, value = half(value));
}

int main(void)
{
	static char stack[STACK_BYTES], other[STACK_BYTES] __attribute__((aligned(16)));
	void **top = (void **)(void *)(other + STACK_BYTES);
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = stack;
	coroutine_context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&coroutine_context, coroutine, 0);
	/* Looks as if switch_stacks had been called without a caller: six registers, the function,
	 * and no return address. */
	*--top = NULL;
	*--top = (void *)other_coroutine;
	top -= 6;
	other_stack = top;
	for (int i = 0; i < ROUNDS; i++) {
		stage_of_half();
		swapcontext(&main_context, &coroutine_context);
		switch_stacks(&main_stack, other_stack);
	}
	truth_print(parts, PARTS);
	return 0;
}
