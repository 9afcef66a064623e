/* Finds the innermost frames of a call chain by frame pointers, from registers and the top of the
 * stack (task/user_stack.h).  The code has no file and shows its frames itself, like the code of
 * CPython's trampolines and of small JITs. */
#include "test.h"

#include "task/jit.h"
#include "task/user_stack.h"

#include <errno.h>

enum { PID = 42, BYTES = 512, WORDS = BYTES / 8, BP = 0, SP = 1, IP = 2, LEAF = 0x40, BODY = 0x80 };

static const uint64_t CODE = 0x400000, STACK = 0x7fff0000, CALLER = 0x400105, LINKED = 0x400205;

struct fixture {
	struct tally_tasks tasks;
	struct tally_objects objects;
	struct tally_attr attr;
	uint8_t code[4096];
	uint64_t registers[3], stack[WORDS], chain[8];
	struct tally_sample sample;
	struct tally_user_stack_inner inner;
};

static long read_code(void *context, uint32_t pid, uint64_t address, void *out, size_t size)
{
	struct fixture *f = context;
	if (pid != PID || address != CODE)
		return -EFAULT;
	size = size < sizeof(f->code) ? size : sizeof(f->code);
	memcpy(out, f->code, size);
	return (long)size;
}

/* Puts a function at CODE + at. */
static void put_code(struct fixture *f, size_t at, const char *code, size_t size)
{
	memcpy(f->code + at, code, size);
}

#define PUT_CODE(f, at, code) put_code(f, at, code, sizeof(code) - 1)

/* Returns a sample of user code at `ip`.  rbp points `link` words above rsp, and the kernel's chain
 * continues there. */
static struct fixture *new_fixture(uint64_t ip, size_t link)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct tally_record map = { .header = { .type = TALLY_RECORD_MMAP2 } };
	assert_non_null(f);
	map.mmap = (struct tally_record_mmap){ .pid = PID,
					       .tid = PID,
					       .start = CODE,
					       .length = 4096,
					       .protection = 5,
					       .filename = "//anon" };
	assert_int_equal(tally_tasks_record(&f->tasks, &map), 0);
	f->objects.machine = TALLY_UNWIND_X86_64;
	f->objects.made_code = tally_made_code_new(read_code, f);
	assert_non_null(f->objects.made_code);
	f->attr = (struct tally_attr){ .size = sizeof(f->attr),
				       .sample_type = TALLY_SAMPLE_CALLCHAIN };
	tally_user_stack_ask_for_inner(f->objects.machine, false, &f->attr);
	assert_true(tally_user_stack_has_inner(f->objects.machine, &f->attr));
	memset(f->code, 0x90, sizeof(f->code));
	/* CALLER is the address behind it: a call of LEAF */
	PUT_CODE(f, 0x100, "\xe8\x3b\xff\xff\xff");
	PUT_CODE(f, 0x200, "\xe8\xfb\xfe\xff\xff"); /* LINKED: a call of 0x100 */
	f->registers[BP] = STACK + link * 8;
	f->registers[SP] = STACK;
	f->registers[IP] = ip;
	/* The kernel's chain: the leaf, then the return address that rbp leads to. */
	const uint64_t chain[] = { TALLY_CONTEXT_KERNEL, 0xffffffff81000010, TALLY_CONTEXT_USER, ip,
				   LINKED };
	memcpy(f->chain, chain, sizeof(chain));
	f->sample = (struct tally_sample){ .pid = PID,
					   .tid = PID,
					   .ip = ip,
					   .chain = f->chain,
					   .chain_length = 5,
					   .stack = f->stack,
					   .stack_size = BYTES,
					   .stack_dynamic_size = BYTES };
	f->sample.regs_user.abi = 2;
	f->sample.regs_user.words = f->registers;
	f->sample.regs_user.count = 3;
	return f;
}

static void free_fixture(struct fixture *f)
{
	tally_made_code_free(f->objects.made_code);
	f->objects.made_code = NULL;
	tally_objects_release(&f->objects);
	tally_tasks_release(&f->tasks);
	free(f);
}

static bool mend(struct fixture *f)
{
	return tally_user_stack_mend(&f->tasks, &f->objects, &f->attr, &f->sample, &f->inner);
}

/* A leaf without a frame was called by a function with one: the kernel's chain lacks that
 * caller. */
static void a_leafs_caller_is_put_into_the_chain(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(CODE + LEAF, 4);
	PUT_CODE(f, LEAF, "\xc3");
	PUT_CODE(f, 0x105, "\xc9\xc3"); /* the caller has a frame pointer; this is its end */
	f->stack[0] = CALLER;
	f->stack[4] = STACK + 40 * 8;
	f->stack[5] = LINKED;
	assert_true(mend(f));
	assert_int_equal(f->inner.at, 3);
	assert_int_equal(f->inner.count, 2);
	assert_int_equal(f->inner.frames[0], CODE + LEAF);
	assert_int_equal(f->inner.frames[1], CALLER);
	assert_int_equal(f->inner.resume, 4); /* LINKED, and the addresses after it */
	assert_false(f->inner.is_cut);
	free_fixture(f);
}

/* Trampolines and functions without frame pointers, one after another. */
static void several_callers_are_put_in(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(CODE + LEAF, 6);
	PUT_CODE(f, LEAF, "\x5b\xc3");              /* pop %rbx; ret */
	PUT_CODE(f, 0x105, "\x48\x83\xc4\x08\xc3"); /* CPython's trampoline */
	PUT_CODE(f, 0x300, "\xe8\xfb\xfd\xff\xff\xc9\xc3");
	f->stack[0] = 7;
	f->stack[1] = CALLER;
	f->stack[3] = CODE + 0x305;
	f->stack[6] = STACK + 40 * 8;
	f->stack[7] = LINKED;
	assert_true(mend(f));
	assert_int_equal(f->inner.count, 3);
	assert_int_equal(f->inner.frames[1], CALLER);
	assert_int_equal(f->inner.frames[2], CODE + 0x305);
	assert_int_equal(f->inner.resume, 4);
	free_fixture(f);
}

static void a_chain_that_is_right_is_left_alone(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(CODE + LEAF, 2);
	PUT_CODE(f, LEAF, "\xc9\xc3");
	f->stack[2] = STACK + 40 * 8;
	f->stack[3] = LINKED;
	assert_false(mend(f));
	free_fixture(f);
}

/* rbp points beyond the copied words, which the kernel could read. */
static void a_link_beyond_the_copy_joins_the_kernels_chain(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(CODE + LEAF, WORDS + 100);
	PUT_CODE(f, LEAF, "\xc3");
	PUT_CODE(f, 0x105, "\xc9\xc3");
	f->stack[0] = CALLER;
	assert_true(mend(f));
	assert_int_equal(f->inner.count, 2);
	assert_int_equal(f->inner.frames[1], CALLER);
	assert_int_equal(f->inner.resume, 4);
	assert_false(f->inner.is_cut);
	free_fixture(f);
}

/* rbp is another value, so the kernel's chain behind the leaf is wrong. */
static void frames_that_never_meet_the_link_take_the_chains_place(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(CODE + LEAF, 20);
	PUT_CODE(f, LEAF, "\x5d\xc3");
	PUT_CODE(f, 0x105, "\xc3");
	f->stack[0] = STACK + 40 * 8; /* the caller's rbp */
	f->stack[1] = CALLER;
	f->stack[2] = 0; /* the outermost frame */
	assert_true(mend(f));
	assert_int_equal(f->inner.frames[0], CODE + LEAF);
	assert_int_equal(f->inner.frames[1], CALLER);
	assert_int_equal(f->inner.count, 2);
	assert_int_equal(f->inner.resume, f->sample.chain_length);
	assert_false(f->inner.is_cut);
	free_fixture(f);
}

static void a_caller_beyond_the_copy_is_said_to_be_missing(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(CODE + LEAF, 20);
	PUT_CODE(f, LEAF, "\x48\x81\xc4\x00\x10\x00\x00\xc3"); /* add $4096,%rsp */
	assert_true(mend(f));
	assert_int_equal(f->inner.count, 1);
	assert_int_equal(f->inner.resume, f->sample.chain_length);
	assert_true(f->inner.is_cut);
	free_fixture(f);
}

static void samples_without_a_users_part_are_left_alone(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(CODE + LEAF, 4);
	PUT_CODE(f, LEAF, "\xc3");
	f->stack[0] = CALLER;
	f->sample.chain_length = 2; /* only the kernel's part */
	assert_false(mend(f));
	f->sample.chain_length = 3; /* a marker, with nothing behind it */
	assert_false(mend(f));
	f->sample.chain_length = 5;
	f->sample.regs_user.abi = 0;
	assert_false(mend(f));
	f->sample.regs_user.abi = 1; /* a 32-bit process */
	assert_false(mend(f));
	f->sample.regs_user.abi = 2;
	f->sample.chain_length = 0;
	assert_false(mend(f));
	free_fixture(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leafs_caller_is_put_into_the_chain),
		cmocka_unit_test(several_callers_are_put_in),
		cmocka_unit_test(a_chain_that_is_right_is_left_alone),
		cmocka_unit_test(a_link_beyond_the_copy_joins_the_kernels_chain),
		cmocka_unit_test(frames_that_never_meet_the_link_take_the_chains_place),
		cmocka_unit_test(a_caller_beyond_the_copy_is_said_to_be_missing),
		cmocka_unit_test(samples_without_a_users_part_are_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
