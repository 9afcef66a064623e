/* Frames recognized by a function's end, or by the beginning of a method that HotSpot compiled
 * (unwind/unwind.h). */
#include "test.h"

#include "unwind/unwind.h"

#define CODE(text) (const uint8_t *)(text), sizeof(text) - 1

/* Copies the code to the heap, so that sanitizers see a read behind it. */
static bool is_told_ahead(const uint8_t *code, size_t size, struct tally_code_frame *frame)
{
	uint8_t *copy = malloc(size ? size : 1);
	assert_non_null(copy);
	memcpy(copy, code, size);
	bool is_told = tally_code_frame_ahead(copy, size, frame);
	free(copy);
	return is_told;
}

static void assert_ahead(const uint8_t *code, size_t size, int32_t return_at, int32_t fp_at)
{
	struct tally_code_frame frame;
	assert_true(is_told_ahead(code, size, &frame));
	assert_false(frame.is_linked);
	assert_int_equal(frame.return_at, return_at);
	assert_int_equal(frame.saves_fp, fp_at >= 0);
	if (fp_at >= 0)
		assert_int_equal(frame.fp_at, fp_at);
}

static void assert_ahead_linked(const uint8_t *code, size_t size)
{
	struct tally_code_frame frame;
	assert_true(is_told_ahead(code, size, &frame));
	assert_true(frame.is_linked);
}

static void assert_not_ahead(const uint8_t *code, size_t size)
{
	struct tally_code_frame frame;
	assert_false(is_told_ahead(code, size, &frame));
}

enum { NO_FP = -1 };

static void a_functions_end_tells_its_frame(void **state)
{
	(void)state;
	assert_ahead(CODE("\xc3"), 0, NO_FP);
	assert_ahead(CODE("\xf3\xc3"), 0, NO_FP);
	assert_ahead(CODE("\xc2\x08\x00"), 0, NO_FP);
	assert_ahead(CODE("\x48\x83\xc4\x08\xc3"), 8, NO_FP); /* CPython's trampoline */
	assert_ahead(CODE("\x48\x81\xc4\x18\x01\x00\x00\xc3"), 0x118, NO_FP);
	assert_ahead(CODE("\x48\x8d\x64\x24\x10\xc3"), 16, NO_FP); /* lea 16(%rsp),%rsp */
	assert_ahead(CODE("\x48\x8d\xa4\x24\x80\x00\x00\x00\xc3"), 128, NO_FP);
	assert_ahead(CODE("\x5d\xc3"), 8, 0);
	assert_ahead(CODE("\x5b\x5d\x41\x5c\x41\x5d\xc3"), 32, 8); /* pop %rbx %rbp %r12 %r13 */
	assert_ahead(CODE("\x41\x5d\xc3"), 8, NO_FP);              /* r13 is not rbp */
	assert_ahead(CODE("\x48\x8b\x6c\x24\x10\x48\x83\xc4\x18\xc3"), 24, 16);
	assert_ahead(CODE("\xc5\xf8\x77\x5d\xc3"), 8, 0); /* vzeroupper */
}

static void jvms_ask_for_a_stop_before_they_return(void **state)
{
	(void)state;
	assert_ahead(
		CODE("\x48\x83\xc4\x10\x5d\x49\x3b\xa7\x48\x03\x00\x00"
		     "\x0f\x87\x10\x20\x00\x00\xc3"),
		24, 16);
	assert_ahead(CODE("\x49\x3b\x67\x28\x0f\x87\x10\x20\x00\x00\xc3"), 0, NO_FP);
	assert_ahead(CODE("\x48\x83\xc4\x10\x5d\x4d\x8b\x97\x40\x03\x00\x00\x41\x85\x02\xc3"), 24,
		     16);
}

static void leave_tells_that_rbp_is_the_link(void **state)
{
	(void)state;
	assert_ahead_linked(CODE("\xc9\xc3"));
	assert_ahead_linked(CODE("\x48\x83\xc4\x10\xc9\xc3"));
	assert_ahead_linked(CODE("\x48\x89\xec\x5d\xc3"));
	assert_ahead_linked(CODE("\x48\x8b\xe5\x5d\xc3"));
	assert_not_ahead(CODE("\x5d\xc9\xc3")); /* after the pop, rbp is the caller's */
}

static void what_does_more_than_to_leave_tells_nothing(void **state)
{
	(void)state;
	assert_not_ahead(CODE(""));
	assert_not_ahead(CODE("\x48\x89\xc8\xc3"));     /* mov %rcx,%rax */
	assert_not_ahead(CODE("\x48\x83\xec\x08\xc3")); /* sub */
	assert_not_ahead(CODE("\x48\x83\xc4\xf8\xc3")); /* add $-8 */
	assert_not_ahead(CODE("\x5c\xc3"));             /* pop %rsp */
	assert_not_ahead(CODE("\x48\x83\xc4\x08"));     /* the end is beyond the bytes */
	assert_not_ahead(CODE("\xe8\x00\x00\x00\x00\xc3"));
	assert_not_ahead(CODE("\x5b\x5b\x5b\x5b\x5b\x5b\x5b\x5b\x5b\x5b\x5b\x5b\x5b\x5b\x5b\x5b"
			      "\x5b\x5b\x5b\x5b\x5b\x5b\x5b\x5b\x5b\xc3"));
}

static void an_end_that_is_cut_short_tells_nothing(void **state)
{
	static const char *const ENDS[] = {
		"\x48\x8d\xa4\x24\x80\x01\x01\x01\x5d\xc3",
		"\x48\x81\xc4\x18\x01\x01\x01\xc3",
		("\x48\x8b\x6c\x24\x10\x49\x3b\xa7\x48\x03\x01\x01"
		 "\x0f\x87\x10\x20\x01\x01\x41\x5c\xc3"),
	};
	(void)state;
	for (size_t i = 0; i < sizeof(ENDS) / sizeof(*ENDS); i++)
		for (size_t size = 0; size < strlen(ENDS[i]); size++)
			assert_not_ahead((const uint8_t *)ENDS[i], size);
}

/* ---- the beginning -------------------------------------------------------------------- */

/* Recognizes a frame from the code before pc, `before` bytes in, on the heap. */
static bool is_told_behind(const uint8_t *code, size_t size, size_t before,
			   struct tally_code_frame *frame)
{
	uint8_t *copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, code, size);
	bool is_told = tally_code_frame_behind(copy, before, size - before, frame);
	free(copy);
	return is_told;
}

enum { LINKED = -2 };

/* Asserts the frame; return_at may be LINKED. */
static void assert_behind(const uint8_t *code, size_t size, size_t before, int32_t return_at,
			  int32_t fp_at)
{
	struct tally_code_frame frame;
	assert_true(is_told_behind(code, size, before, &frame));
	assert_int_equal(frame.is_linked, return_at == LINKED);
	if (return_at == LINKED)
		return;
	assert_int_equal(frame.return_at, return_at);
	assert_int_equal(frame.saves_fp, fp_at >= 0);
	if (fp_at >= 0)
		assert_int_equal(frame.fp_at, fp_at);
}

#define BANG "\x89\x84\x24\x00\xc0\xfe\xff"
#define BODY "\x48\x8b\xf2\x90\x90\x90\x90\x90"

static void a_methods_beginning_tells_its_frame_at_each_instruction(void **state)
{
	(void)state;
#define METHOD CODE(BANG "\x55\x48\x83\xec\x20" BODY)
	assert_behind(METHOD, 0, 0, NO_FP); /* no instruction has run */
	assert_behind(METHOD, 7, 0, NO_FP); /* the stack was touched */
	assert_behind(METHOD, 8, 8, 0);     /* rbp was pushed */
	assert_behind(METHOD, 12, 0x28, 0x20);
	assert_behind(METHOD, 15, 0x28, 0x20);
	assert_behind(METHOD, 20, 0x28, 0x20); /* the last address of the frame */
#undef METHOD
	assert_behind(CODE(BANG "\x55\x48\x81\xec\x40\x01\x00\x00" BODY), 15, 0x148, 0x140);
	assert_behind(CODE(BANG "\x55" BODY), 10, 8, 0); /* it needs no stack space */
}

static void a_method_with_a_frame_pointer_is_linked(void **state)
{
	(void)state;
#define METHOD CODE(BANG "\x55\x48\x8b\xec\x48\x83\xec\x20" BODY)
	assert_behind(METHOD, 7, 0, NO_FP);
	assert_behind(METHOD, 8, 8, 0); /* rbp does not link yet */
	assert_behind(METHOD, 11, LINKED, 0);
	assert_behind(METHOD, 15, LINKED, 0);
	assert_behind(METHOD, 18, LINKED, 0);
#undef METHOD
	assert_behind(CODE(BANG "\x55\x48\x89\xe5" BODY), 12, LINKED, 0);
}

static void a_small_method_saves_rbp_without_a_push(void **state)
{
	(void)state;
#define METHOD CODE("\x48\x81\xec\x18\x00\x00\x00\x48\x89\x6c\x24\x10" BODY)
	assert_behind(METHOD, 0, 0, NO_FP);
	assert_behind(METHOD, 7, 24, NO_FP);
	assert_behind(METHOD, 12, 24, 16);
	assert_behind(METHOD, 16, 24, 16);
#undef METHOD
	assert_behind(CODE("\x48\x81\xec\x18\x01\x00\x00\x48\x89\xac\x24\x10\x01\x00\x00" BODY), 18,
		      0x118, 0x110);
}

static void closed_methods_are_told_too(void **state)
{
	(void)state;
#define TOUCHING CODE("\xe9\x11\x22\x33\x44\xfe\xff\x55\x48\x83\xec\x20" BODY)
	assert_behind(TOUCHING, 15, 0x28, 0x20);
	assert_behind(TOUCHING, 0, 0, NO_FP);
#undef TOUCHING
#define SMALL CODE("\xe9\x11\x22\x33\x44\x00\x00\x48\x89\x6c\x24\x10" BODY)
	assert_behind(SMALL, 15, 24, 16);
	assert_behind(SMALL, 0, 0, NO_FP); /* about to jump: no frame exists */
#undef SMALL
}

static void padding_ends_the_search(void **state)
{
	struct tally_code_frame frame;
	(void)state;
	assert_false(
		is_told_behind(CODE(BANG "\x55\x48\x83\xec\x20\xf4\xf4\xf4\xf4" BODY), 20, &frame));
	assert_behind(CODE(BANG "\x55\x48\x83\xec\x20\xf4\xf4\xf4" BODY), 19, 0x28, 0x20);
}

static void what_is_no_beginning_tells_nothing(void **state)
{
	struct tally_code_frame frame;
	(void)state;
	assert_false(is_told_behind(CODE(BODY), 4, &frame));
	/* The touched address is too near, or above. */
	assert_false(is_told_behind(CODE("\x89\x84\x24\x00\xff\xff\xff\x55" BODY), 12, &frame));
	assert_false(is_told_behind(CODE("\x89\x84\x24\x00\x40\x01\x00\x55" BODY), 12, &frame));
	/* Touches the stack, but does not push. */
	assert_false(is_told_behind(CODE(BANG "\x53" BODY), 12, &frame));
	/* rbp is saved elsewhere than at the top of the frame. */
	assert_false(is_told_behind(CODE("\x48\x81\xec\x18\x00\x00\x00\x48\x89\x6c\x24\x08" BODY),
				    16, &frame));
	assert_false(is_told_behind(
		CODE("\xe9\x11\x22\x33\x44\x00\x00\x48\x89\xac\x24\xff\xff\xff\x7f" BODY), 16,
		&frame));
}

static void a_beginning_that_is_cut_short_is_read_to_its_end_at_most(void **state)
{
	static const char LONG[] = BANG "\x55\x48\x8b\xec\x48\x81\xec\x20\x01\x01\x01";
	static const char SMALL[] = "\x48\x81\xec\x18\x01\x01\x01\x48\x89\xac\x24\x10\x01\x01\x01";
	static const char CLOSED[] = "\xe9\x11\x22\x33\x44\x00\x00\x48\x89\xac\x24\x10\x01\x01\x01";
	static const struct {
		const char *code;
		size_t size;
	} begins[] = {
		{ LONG, sizeof(LONG) - 1 },
		{ SMALL, sizeof(SMALL) - 1 },
		{ CLOSED, sizeof(CLOSED) - 1 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		for (size_t size = 1; size <= begins[i].size; size++)
			for (size_t before = 0; before <= size; before++) {
				struct tally_code_frame frame = { 0 };
				is_told_behind((const uint8_t *)begins[i].code, size, before,
					       &frame);
				assert_in_range(frame.return_at, 0, 1 << 20);
			}
}

/* ---- calls ---------------------------------------------------------------------------- */

static bool ends_in_call(const uint8_t *code, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	assert_non_null(copy);
	memcpy(copy, code, size);
	bool is_call = tally_code_ends_in_call(copy, size);
	free(copy);
	return is_call;
}

static void calls_are_recognised(void **state)
{
	(void)state;
	assert_true(ends_in_call(CODE("\x90\x90\x90\xe8\x01\x02\x03\x04")));
	assert_true(ends_in_call(CODE("\xe8\x01\x02\x03\x04")));
	assert_true(ends_in_call(CODE("\x90\x90\xff\xd0")));                 /* *%rax */
	assert_true(ends_in_call(CODE("\x41\xff\xd4")));                     /* *%r12 */
	assert_true(ends_in_call(CODE("\x90\xff\x10")));                     /* *(%rax) */
	assert_true(ends_in_call(CODE("\x90\xff\x50\x18")));                 /* *24(%rax) */
	assert_true(ends_in_call(CODE("\x90\xff\x90\x18\x01\x00\x00")));     /* *0x118(%rax) */
	assert_true(ends_in_call(CODE("\x90\xff\x15\x01\x02\x03\x04")));     /* *n(%rip) */
	assert_true(ends_in_call(CODE("\x90\xff\x14\x24")));                 /* *(%rsp) */
	assert_true(ends_in_call(CODE("\x90\xff\x54\x24\x08")));             /* *8(%rsp) */
	assert_true(ends_in_call(CODE("\x90\xff\x94\x24\x08\x01\x00\x00"))); /* *0x108(%rsp) */
	assert_true(ends_in_call(CODE("\x90\xff\x14\xc5\x40\x20\x60\x00"))); /* *table(,%rax,8) */
	assert_true(ends_in_call(CODE("\x90\xff\x14\x25\x40\x20\x60\x00"))); /* *address */
}

static void other_instructions_are_no_calls(void **state)
{
	(void)state;
	assert_false(ends_in_call(CODE("")));
	assert_false(ends_in_call(CODE("\xff")));
	assert_false(ends_in_call(CODE("\x90\x90\x90\x90\x90\x90\x90\x90")));
	assert_false(ends_in_call(CODE("\x90\x90\x90\xe9\x01\x02\x03\x04"))); /* jmp */
	assert_false(ends_in_call(CODE("\x90\x90\xff\xe0")));                 /* jmp *%rax */
	assert_false(ends_in_call(CODE("\x90\xff\x30")));                     /* push (%rax) */
	/* half of an instruction */
	assert_false(ends_in_call(CODE("\xe8\x01\x02\x03")));
	/* its displacement is beyond the bytes */
	assert_false(ends_in_call(CODE("\x90\xff\x14\xc5")));
	assert_false(ends_in_call(CODE("\x90\xff\x50")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_functions_end_tells_its_frame),
		cmocka_unit_test(jvms_ask_for_a_stop_before_they_return),
		cmocka_unit_test(leave_tells_that_rbp_is_the_link),
		cmocka_unit_test(what_does_more_than_to_leave_tells_nothing),
		cmocka_unit_test(an_end_that_is_cut_short_tells_nothing),
		cmocka_unit_test(a_methods_beginning_tells_its_frame_at_each_instruction),
		cmocka_unit_test(a_method_with_a_frame_pointer_is_linked),
		cmocka_unit_test(a_small_method_saves_rbp_without_a_push),
		cmocka_unit_test(closed_methods_are_told_too),
		cmocka_unit_test(padding_ends_the_search),
		cmocka_unit_test(what_is_no_beginning_tells_nothing),
		cmocka_unit_test(a_beginning_that_is_cut_short_is_read_to_its_end_at_most),
		cmocka_unit_test(calls_are_recognised),
		cmocka_unit_test(other_instructions_are_no_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
