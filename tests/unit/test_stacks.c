#include "test.h"

#include "output/output.h"
#include "profile/profile_internal.h"
#include "profile/stacks.h"

static const struct tally_folded_options plain;

/* Reads text and returns its folded form, which the caller frees. */
static char *refold(const char *text, const char *event, const struct tally_folded_options *options)
{
	struct tally_stacks stacks = { 0 };
	struct tally_buffer out = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	if (event)
		snprintf(stacks.event, sizeof(stacks.event), "%s", event);
	char *copy = NULL;
	if (!tally_stacks_read_text(&stacks, text, strlen(text), &err) &&
	    !tally_folded_write(&stacks, options, &out, &err))
		copy = strdup(tally_buffer_string(&out));
	tally_buffer_release(&out);
	tally_stacks_release(&stacks);
	return copy ? copy : strdup(err.message);
}

#define assert_folds(text, event, options, expected) \
	do { \
		char *folded = refold(text, event, options); \
		assert_string_equal(folded, expected); \
		free(folded); \
	} while (0)

static void equal_stacks_are_stored_once_and_summed(void **state)
{
	(void)state;
	struct tally_stacks stacks = { 0 };
	uint32_t a = tally_stacks_frame(&stacks, "a", NULL, TALLY_FRAME_PROGRAM);
	uint32_t a_kernel = tally_stacks_frame(&stacks, "a", NULL, TALLY_FRAME_KERNEL);
	uint32_t a_libc = tally_stacks_frame(&stacks, "a", "libc.so.6", TALLY_FRAME_LIBRARY);
	uint32_t thread = tally_stacks_thread(&stacks, "x", 1, 2),
		 other = tally_stacks_thread(&stacks, "x", 1, 3);
	assert_true(a != a_kernel && a != a_libc && a_kernel != a_libc && thread != other);
	assert_int_equal(tally_stacks_frame(&stacks, "a", NULL, TALLY_FRAME_PROGRAM), a);
	assert_int_equal(tally_stacks_thread(&stacks, "x", 1, 2), thread);

	const uint32_t frames[] = { a, a_libc, a_kernel };
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(tally_stacks_add(&stacks, thread, frames, 3, 10, 1), 0);
	assert_int_equal(tally_stacks_add(&stacks, other, frames, 3, 10, 1), 0);
	assert_int_equal(tally_stacks_add(&stacks, thread, frames, 2, 10, 1), 0);
	assert_int_equal(tally_stacks_add(&stacks, thread, NULL, 0, 10, 1), 0);
	assert_int_equal(stacks.rows.rows.count, 4);
	assert_int_equal(stacks.rows.rows.items[0].period, 30);
	assert_int_equal(stacks.rows.rows.items[0].samples, 3);
	assert_int_equal(stacks.total_weight, 60);
	assert_int_equal(stacks.total_samples, 6);
	tally_stacks_release(&stacks);
}

static void sums_stop_at_the_largest_number(void **state)
{
	(void)state;
	assert_folds("a;b 18446744073709551615\na;b 5\n", NULL, &plain,
		     "a;b 18446744073709551615\n");
}

/* G5: the same output as stackcollapse-perf.pl for the same text. */
static void perf_script_text_folds_as_stackcollapse_does(void **state)
{
	(void)state;
	const char *text =
		"# ========\n# captured on: today\n#\n"
		"V8 Worker 24636/25607 [000] 94564.109216:        100 cycles:u: \n"
		"\t          7dd1 std::map<int, ns::T>::find(int const&) const+0x51 "
		"(/usr/lib/libv8.so.1)\n"
		"\t          1234 [unknown] (/opt/my app/bin (x)/node)\n"
		"\t             0 [unknown] ([unknown])\n"
		"\n"
		"V8 Worker 24636/25607 [001] 94564.109217:         50 cycles:u: \n"
		"\tffffffff8103ce3b native_safe_halt+0xa ([kernel.kallsyms])\n"
		"\t       59fef5 copy (/lib/modules/4.3.0/build/vmlinux)\n"
		"\t         8eff (anonymous namespace)::f(int (*)(char))+0x1 (/tmp/a (deleted))\n"
		"\n"
		"gcc  1336  3594.996410:          1 cycles:u: \n"
		"\n";
	assert_folds(text, NULL, &plain,
		     "V8_Worker;(anonymous namespace)::f;copy;native_safe_halt 50\n"
		     "V8_Worker;[unknown];[node];std::map<int, ns::T>::find 100\n"
		     "gcc 1\n");
	const struct tally_folded_options all = { .with_tid = true,
						  .suffix_kernel = true,
						  .by_samples = true };
	assert_folds(
		text, NULL, &all,
		"V8_Worker-24636/25607;(anonymous namespace)::f;copy_[k];native_safe_halt_[k] 1\n"
		"V8_Worker-24636/25607;[unknown];[node];std::map<int, ns::T>::find 1\n"
		"gcc-?/1336 1\n");
}

static void a_sample_without_a_chain_has_its_frame_on_the_header(void **state)
{
	(void)state;
	assert_folds(
		"              xz 16650  3942.102633:    2004008 cpu-clock:ppp:  ffffffff81676365 "
		"vma_alloc+0x5 ([kernel.kallsyms])\n"
		"           cc1+ 16650  3942.102634:    2004008 cpu-clock:ppp:            414000 "
		"main+0x5 (/bin/x)\n",
		NULL, &plain, "cc1+;main 2004008\nxz;vma_alloc 2004008\n");
}

static void tracepoint_text_is_not_taken_for_a_frame(void **state)
{
	(void)state;
	assert_folds(
		"bash  10 [001] 5.000001: sched:sched_switch: prev_comm=bash prev_pid=10 ==> "
		"next_pid=0\n"
		"\tffffffff81 __schedule+0x1 ([kernel.kallsyms])\n\n"
		"bash  10 [001] 5.000002: sched:sched_switch: fade 12 x\n",
		NULL, &plain, "bash 1\nbash;__schedule 1\n");
}

static void the_first_event_is_chosen_or_the_one_asked_for(void **state)
{
	(void)state;
	const char *text =
		"a 1 1.0: 5 cycles:u: \n\t1 f (/x)\n\na 1 1.0: 7 cache-misses: \n\t1 f (/x)\n\n"
		"a 1 1.0: 6 cycles:u: \n\t1 f (/x)\n\n";
	assert_folds(text, NULL, &plain, "a;f 11\n");
	assert_folds(text, "cache-misses", &plain, "a;f 7\n");
	assert_folds(text, "cycles", &plain, "a;f 11\n");
	assert_folds(text, "cycl", &plain, "there are no samples of event 'cycl' in this text");
}

static void fields_may_be_missing(void **state)
{
	(void)state;
	static const char *const headers[] = {
		"my prog 7",
		"my prog  7/8 ",
		"my prog 8 [003] 1.123456789: ",
		"my prog 8 cycles:u: ",
		"my prog 8 U  1.5: cycles: ",
		"my prog -1 1.5: 9 cycles: ",
		"my prog 8 1.5:  1",
		"  my prog  8  1.5: 3 c:",
	};
	for (unsigned i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		struct tally_script_header header;
		assert_true(tally_script_header_parse(headers[i], strlen(headers[i]), &header));
		assert_int_equal(header.comm.length, 7);
		assert_memory_equal(header.comm.at, "my prog", 7);
		assert_int_equal(header.rest.length, 0);
	}
}

static void frame_lines_give_symbol_and_object(void **state)
{
	(void)state;
	static const struct { const char *line, *symbol, *object; bool inlined;
	} lines[] = {
		{ "\tff main+0x1 (/bin/x)", "main", "/bin/x", false },
		{ "\tff main (/bin/x y)", "main", "/bin/x y", false },
		{ "\tff f(int) (inlined)", "f(int)", "", true },
		{ "\tff operator()(int (*)(char))+0x2 ([vdso])", "operator()(int (*)(char))",
		  "[vdso]", false },
		{ "\tff [unknown] ([unknown])", "", "", false },
		{ "\tff [unknown] (//anon)", "", "//anon", false },
		{ "\tff (/bin/x)", "", "/bin/x", false },
		{ "\tff x::f(int)", "x::f(int)", "", false },
		{ "ff main", "main", "", false },
		{ "  ff +0x3", "", "", false },
		{ "\tff", "", "", false },
		{ "\tff f+0x1 (/a (b)/c (deleted))", "f", "/a (b)/c (deleted)", false },
	};
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct tally_script_frame frame;
		assert_true(tally_script_frame_parse(lines[i].line, strlen(lines[i].line), &frame));
		assert_int_equal(frame.symbol.length, strlen(lines[i].symbol));
		assert_memory_equal(frame.symbol.at, lines[i].symbol, frame.symbol.length);
		assert_int_equal(frame.object.length, strlen(lines[i].object));
		if (frame.object.length)
			assert_memory_equal(frame.object.at, lines[i].object, frame.object.length);
		assert_int_equal(frame.inlined, lines[i].inlined);
	}
	struct tally_script_frame frame;
	assert_false(tally_script_frame_parse("\tnothex main", 12, &frame));
	assert_false(tally_script_frame_parse("", 0, &frame));
}

static void kinds_come_from_the_objects_name(void **state)
{
	(void)state;
	static const struct { const char *object; enum tally_frame_kind kind;
	} objects[] = {
		{ "[kernel.kallsyms]", TALLY_FRAME_KERNEL },
		{ "[guest.kernel.kallsyms]", TALLY_FRAME_KERNEL },
		{ "/lib/modules/6.1/kernel/fs/ext4.ko", TALLY_FRAME_KERNEL },
		{ "[nf_tables]", TALLY_FRAME_KERNEL },
		{ "/usr/lib/debug/boot/vmlinux-6.1", TALLY_FRAME_KERNEL },
		{ "/usr/lib/libc.so.6", TALLY_FRAME_LIBRARY },
		{ "libx-2.3.so", TALLY_FRAME_LIBRARY },
		{ "[vdso]", TALLY_FRAME_LIBRARY },
		{ "/bin/bash", TALLY_FRAME_PROGRAM },
		{ "", TALLY_FRAME_PROGRAM },
		{ "/opt/x.software/bin/y", TALLY_FRAME_PROGRAM },
		{ "/tmp/perf-77.map", TALLY_FRAME_JIT },
		{ "[JIT] tid 77", TALLY_FRAME_JIT },
		{ "/tmp/jitted-7-1.so", TALLY_FRAME_JIT },
		{ "//anon", TALLY_FRAME_JIT },
		{ "[heap]", TALLY_FRAME_PROGRAM },
		{ "[vectors]", TALLY_FRAME_LIBRARY },
		{ "[vvar]", TALLY_FRAME_LIBRARY },
	};
	for (unsigned i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		assert_int_equal(tally_frame_kind_of_object(objects[i].object), objects[i].kind);
}

static void javas_arrows_are_inlined_frames_of_jit_code_alone(void **state)
{
	(void)state;
	const struct tally_folded_options options = { .suffix_inlined = true, .suffix_jit = true };
	assert_folds("java 1 1.0: 5 cycles: \n\t1 LFoo;::a->LBar;::b->c (/tmp/perf-1.map)\n"
		     "\t2 P::operator->() (/bin/x)\n\n", NULL, &options,
		     "java;P::operator->;LFoo:::a_[j];LBar:::b_[i];c_[i] 5\n");
}

static void malformed_lines_are_counted_and_skipped(void **state)
{
	(void)state;
	struct tally_stacks stacks = { 0 };
	const char *text =
		"nonsense\na 1 1.0: 5 cycles: \n\t1 f (/x)\n  file.c:12\n\tzz zz\n\nstray\n"
		"a 1 1.0: 5 cycles: \n";
	assert_int_equal(tally_stacks_read_text(&stacks, text, strlen(text), NULL), 0);
	assert_int_equal(stacks.lines_skipped, 3);
	assert_int_equal(stacks.first_line_skipped, 1);
	assert_int_equal(stacks.total_weight, 10);
	tally_stacks_release(&stacks);
}

static void folded_text_survives_reading_and_writing(void **state)
{
	(void)state;
	const char *text =
		"a b-1/2;main;x::f(int, char);[libc.so.6];k_[k] 12\nbash 4\nbash;j_[j];i_[i] 7\n";
	const struct tally_folded_options options = { .with_tid = false,
						      .suffix_kernel = true,
						      .suffix_jit = true,
						      .suffix_inlined = true,
						      .full_names = true };
	assert_folds(text, NULL, &options,
		     "a b;main;x::f(int, char);[libc.so.6];k_[k] 12\nbash 4\nbash;j_[j];i_[i] 7\n");
	assert_folds("a;b 1.0\r\na;b 2\n\n# note\na;b 1.\n", NULL, &plain, "a;b 4\n");
	assert_folds("a;b\n", NULL, &plain, "no stacks were found in this text");
}

static void fractions_of_weights_are_added(void **state)
{
	(void)state;
	assert_folds("a;b 0.3\na;b 0.3\na;c 0.4\na;d 2.6\n", NULL, &plain,
		     "a;b 0.6\na;c 0.4\na;d 2.6\n");
	assert_folds("a;b 1\na;b .5\na;c 0.0000004\na;d 0.00000051\n", NULL, &plain,
		     "a;b 1\na;c 0\na;d 0.000001\n");
	assert_folds("a;b 99999999999999999999.5\n", NULL, &plain,
		     "a;b 18446744073709.551615\n");
}

static void blanks_before_parentheses_and_objects_names_stay(void **state)
{
	(void)state;
	assert_folds("app;worker (2) 5\napp;block (2 levels) in foo - /x/y.rb:3 10\n", NULL, &plain,
		     "app;block (2 levels) in foo - /x/y.rb:3 10\napp;worker (2) 5\n");
	assert_folds("app 10 1.0: 5 c:\n\t1 [unknown] (/lib/l.so.1 (deleted))\n\n", NULL, &plain,
		     "app;[l.so.1 (deleted)] 5\n");
	assert_folds("app;mod.main().__lambda2(int).go(int) 5\n", NULL, &plain,
		     "app;mod.main().__lambda2(int).go 5\n");
}

static void text_of_records_beside_samples_is_skipped(void **state)
{
	(void)state;
	const char *text =
		"\n0xe8@perf.data [0x30]: event: 3\n.\n. ... raw event: size 48 bytes\n"
		".  0000:  03 00 00 00 00 00 30 00                          ......0.\n\n"
		"0 0 0xe8 [0x30]: PERF_RECORD_COMM: t:100/100\n\n"
		"0x180@perf.data [0x30]: event: 9\n"
		"0 1000000 0x180 [0x30]: PERF_RECORD_SAMPLE(IP, 0x2): 100/100: 0x400100 period: "
		"1000 addr: 0\n... FP chain: nr:1\n.....  0: 0000000000400100\n"
		" ... thread: t:100\n ...... dso: /bin/x\n"
		"               t   100 [000]     0.001000:       1000 cycles:HG: \n"
		"\t          400100 [unknown] (/bin/x)\n\n";
	assert_folds(text, NULL, &plain, "t;[x] 1000\n");
	assert_folds(".NET ThreadPool 7 1.0: 5 cycles: \n\t1 f+0x1 (/bin/a)\n\n", NULL, &plain,
		     ".NET_ThreadPool;f 5\n");
}

/* stackcollapse-perf.pl --kernel marks it as the kernel's. */
static void the_vdso_is_not_the_kernels(void **state)
{
	(void)state;
	const struct tally_folded_options options = { .suffix_kernel = true };
	assert_folds("a;[vdso]_[k];__vdso_gettimeofday_[k] 1\na;read_[k] 2\n", NULL, &options,
		     "a;[vdso];__vdso_gettimeofday 1\na;read_[k] 2\n");
	assert_folds("a 7 1.0: 5 cycles: \n\t1 __vdso_time+0x1 ([vdso])\n\t2 main+0x1 (/bin/a)\n\n",
		     NULL, &options, "a;main;__vdso_time 5\n");
}

static void empty_names_are_unknown(void **state)
{
	(void)state;
	const struct tally_folded_options options = { .suffix_kernel = true };
	assert_folds("a;;b 3\n;x 2\nc; 4\nd;_[k] 5\n", NULL, &options,
		     "[unknown];x 2\na;[unknown];b 3\nc;[unknown] 4\nd;[unknown]_[k] 5\n");
}

/* stackcollapse-perf.pl drops it. */
static void the_last_sample_needs_no_blank_line(void **state)
{
	(void)state;
	const char *text =
		"a 7 1.0: 5 cycles: \n\t1 f+0x1 (/bin/a)\n\na 7 1.1: 6 cycles: \n"
		"\t1 g+0x1 (/bin/a)\n";
	assert_folds(text, NULL, &plain, "a;f 5\na;g 6\n");
}

static void names_cannot_end_a_line_or_a_frame(void **state)
{
	(void)state;
	struct tally_stacks stacks = { 0 };
	struct tally_buffer out = { 0 };
	uint32_t frame = tally_stacks_frame(&stacks, "a;b\nc\x1b[31m'\"", NULL,
					    TALLY_FRAME_PROGRAM);
	uint32_t thread = tally_stacks_thread(&stacks, "x;y z\n", 0, 0);
	tally_stacks_add(&stacks, thread, &frame, 1, 1, 1);
	assert_int_equal(tally_folded_write(&stacks, &plain, &out, NULL), 0);
	assert_string_equal(tally_buffer_string(&out), "x:y_z?;a:b?c?[31m 1\n");
	tally_buffer_release(&out);
	tally_stacks_release(&stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_are_stored_once_and_summed),
		cmocka_unit_test(sums_stop_at_the_largest_number),
		cmocka_unit_test(perf_script_text_folds_as_stackcollapse_does),
		cmocka_unit_test(a_sample_without_a_chain_has_its_frame_on_the_header),
		cmocka_unit_test(tracepoint_text_is_not_taken_for_a_frame),
		cmocka_unit_test(the_first_event_is_chosen_or_the_one_asked_for),
		cmocka_unit_test(fields_may_be_missing),
		cmocka_unit_test(frame_lines_give_symbol_and_object),
		cmocka_unit_test(kinds_come_from_the_objects_name),
		cmocka_unit_test(javas_arrows_are_inlined_frames_of_jit_code_alone),
		cmocka_unit_test(malformed_lines_are_counted_and_skipped),
		cmocka_unit_test(folded_text_survives_reading_and_writing),
		cmocka_unit_test(fractions_of_weights_are_added),
		cmocka_unit_test(blanks_before_parentheses_and_objects_names_stay),
		cmocka_unit_test(text_of_records_beside_samples_is_skipped),
		cmocka_unit_test(the_vdso_is_not_the_kernels),
		cmocka_unit_test(empty_names_are_unknown),
		cmocka_unit_test(the_last_sample_needs_no_blank_line),
		cmocka_unit_test(names_cannot_end_a_line_or_a_frame),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
