/* SPEC C2: when a call chain replaces a sample's stack copy, all other fields stay. */
#include "test.h"

#include "recorder/recorder_state.h"
#include "unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

enum { REGISTER_COUNT = 20, STACK = 256 };

struct words {
	uint64_t words[256];
	size_t count;
};

static void add(struct words *words, uint64_t word)
{
	words->words[words->count++] = word;
}

/* The function has a frame pointer and no rules, so the chain leads through two frames of the
 * copy. */
static void add_stack(struct words *words, uint64_t sp, uint64_t size, uint64_t valid)
{
	uint64_t stack[STACK / 8] = { 0 };
	stack[2] = sp + 64; /* at rbp: the caller's rbp */
	stack[3] = 0x5000;
	stack[8] = 0;
	stack[9] = 0x6000;
	add(words, size);
	for (size_t i = 0; i < size / 8; i++)
		add(words, i < STACK / 8 ? stack[i] : 0);
	if (size)
		add(words, valid);
}

static void add_registers(struct words *words, uint64_t abi, uint64_t ip, uint64_t sp)
{
	uint64_t registers[REGISTER_COUNT];
	for (unsigned i = 0; i < REGISTER_COUNT; i++)
		registers[i] = 0x100 + i;
	/* the kernel's order: BP SP IP */
	registers[6] = sp + 16;
	registers[7] = sp;
	registers[8] = ip;
	add(words, abi);
	for (unsigned i = 0; abi && i < REGISTER_COUNT; i++)
		add(words, registers[i]);
}

static const uint64_t TYPE = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
			     TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD |
			     TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_RAW | TALLY_SAMPLE_REGS_USER |
			     TALLY_SAMPLE_STACK_USER | TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_PHYS_ADDR;

struct fixture {
	struct tally_recorder recorder;
	struct tally_recorder_source source;
	struct words in;
	_Alignas(8) uint8_t out[1 << 16];
	/* the rewritten sample, decoded with the attribute of the file */
	struct tally_record record;
	long size;
};

static void set_header(struct words *in, uint16_t misc, size_t words)
{
	struct tally_record_header header = { .type = TALLY_RECORD_SAMPLE,
					      .misc = misc,
					      .size = (uint16_t)(8 * words) };
	memcpy(in->words, &header, sizeof(header));
}

static void make_sample(struct fixture *f, const uint64_t *kernel, size_t kernels, uint64_t abi,
			uint64_t stack_size)
{
	struct words *in = &f->in;
	const uint64_t sp = 0x7fff0000;
	in->count = 1;
	add(in, 77);               /* id */
	add(in, 0x4000);           /* ip */
	add(in, 43ull << 32 | 42); /* pid, tid */
	add(in, 123456789);
	add(in, 3);                /* cpu */
	add(in, 999);              /* period */
	add(in, kernels);
	for (size_t i = 0; i < kernels; i++)
		add(in, kernel[i]);
	add(in, 12ull | 0xabcdefull << 32); /* raw: size 12, then its bytes */
	add(in, 0x1122334455667788);
	add_registers(in, abi, 0x4000, sp);
	add_stack(in, sp, stack_size, stack_size);
	add(in, 55);         /* weight */
	add(in, 0x99990000); /* physical address */
	set_header(in, TALLY_MISC_USER | TALLY_MISC_EXACT_IP, in->count);
}

static void map_code(struct fixture *f)
{
	struct tally_record map = { .header = { .type = TALLY_RECORD_MMAP2 } };
	map.mmap = (struct tally_record_mmap){ .pid = 42,
					       .tid = 42,
					       .start = 0x4000,
					       .length = 0x4000,
					       .protection = 5,
					       .filename = "//anon" };
	assert_int_equal(tally_tasks_record(&f->recorder.tasks.known, &map), 0);
}

static struct fixture *new_fixture(void)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->source.attr = (struct tally_attr){ .size = sizeof(f->source.attr), .sample_type = TYPE,
					      .sample_regs_user = TALLY_UNWIND_REGS_MASK,
					      .sample_stack_user = STACK };
	f->source.written = f->source.attr;
	f->source.written.sample_type &= ~(TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER);
	f->source.written.sample_regs_user = 0;
	f->source.written.sample_stack_user = 0;
	f->source.unwinds = true;
	tally_recorder_init(&f->recorder);
	map_code(f);
	return f;
}

static void free_fixture(struct fixture *f)
{
	tally_recorder_stacks_release(&f->recorder.stacks);
	tally_recorder_tasks_release(&f->recorder.tasks);
	free(f);
}

static const struct tally_sample *rewrite(struct fixture *f)
{
	f->size = tally_recorder_rewrite_sample(&f->recorder.stacks, &f->source, f->in.words,
						8 * f->in.count, f->out);
	assert_true(f->size > 0);
	assert_int_equal(
		tally_record_decode(&f->source.written, f->out, (size_t)f->size, &f->record), 0);
	assert_int_equal(f->record.header.size, f->size);
	assert_int_equal(f->size % 8, 0);
	return &f->record.sample;
}

static void assert_others_kept(const struct fixture *f, uint16_t mark)
{
	const struct tally_sample *sample = &f->record.sample;
	assert_int_equal(f->record.header.misc, TALLY_MISC_USER | TALLY_MISC_EXACT_IP | mark);
	assert_int_equal(sample->id, 77);
	assert_int_equal(sample->ip, 0x4000);
	assert_int_equal(sample->pid, 42);
	assert_int_equal(sample->tid, 43);
	assert_int_equal(sample->time, 123456789);
	assert_int_equal(sample->cpu, 3);
	assert_int_equal(sample->period, 999);
	assert_int_equal(sample->raw_size, 12);
	assert_memory_equal(sample->raw, "\xef\xcd\xab\0\x88\x77\x66\x55\x44\x33\x22\x11", 12);
	assert_int_equal(sample->weight, 55);
	assert_int_equal(sample->phys_addr, 0x99990000);
}

static void a_user_sample_gets_the_chain_of_its_copy(void **state)
{
	(void)state;
	struct fixture *f = new_fixture();
	make_sample(f, NULL, 0, 2, STACK);
	const struct tally_sample *sample = rewrite(f);
	assert_others_kept(f, 0);
	assert_true(sample->chain_length >= 3);
	assert_int_equal(sample->chain[0], TALLY_CONTEXT_USER);
	assert_int_equal(sample->chain[1], 0x4000);
	assert_int_equal(sample->chain[2], 0x5000);
	assert_int_equal(f->recorder.session.status.stacks, 1);
	free_fixture(f);
}

static void kernel_frames_stay_in_front(void **state)
{
	(void)state;
	const uint64_t kernel[] = { TALLY_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000020 };
	struct fixture *f = new_fixture();
	make_sample(f, kernel, 3, 2, STACK);
	const struct tally_sample *sample = rewrite(f);
	assert_others_kept(f, 0);
	assert_true(sample->chain_length >= 6);
	assert_memory_equal(sample->chain, kernel, sizeof(kernel));
	assert_int_equal(sample->chain[3], TALLY_CONTEXT_USER);
	assert_int_equal(sample->chain[4], 0x4000);
	free_fixture(f);
}

static void without_registers_the_place_alone_is_known(void **state)
{
	(void)state;
	struct fixture *f = new_fixture();
	make_sample(f, NULL, 0, 0, 0); /* neither registers nor stack */
	const struct tally_sample *sample = rewrite(f);
	assert_others_kept(f, 0); /* it is where a program or thread began: it has no callers */
	assert_int_equal(sample->chain_length, 2);
	assert_int_equal(sample->chain[0], TALLY_CONTEXT_USER);
	assert_int_equal(sample->chain[1], 0x4000);
	assert_int_equal(f->recorder.session.status.stacks, 0);
	free_fixture(f);
}

static void a_kernel_threads_sample_keeps_its_chain(void **state)
{
	(void)state;
	const uint64_t kernel[] = { TALLY_CONTEXT_KERNEL, 0xffffffff81000010 };
	struct fixture *f = new_fixture();
	make_sample(f, kernel, 2, 0, 0);
	set_header(&f->in, TALLY_MISC_KERNEL, f->in.count);
	const struct tally_sample *sample = rewrite(f);
	assert_int_equal(sample->chain_length, 2);
	assert_memory_equal(sample->chain, kernel, sizeof(kernel));
	assert_int_equal(sample->weight, 55);
	free_fixture(f);
}

static void a_torn_sample_is_refused(void **state)
{
	(void)state;
	struct fixture *f = new_fixture();
	make_sample(f, NULL, 0, 2, STACK);
	for (size_t words = 1; words < f->in.count; words++) {
		set_header(&f->in, TALLY_MISC_USER, words);
		assert_true(tally_recorder_rewrite_sample(&f->recorder.stacks, &f->source,
							  f->in.words, 8 * words, f->out) < 0);
	}
	free_fixture(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_sample_gets_the_chain_of_its_copy),
		cmocka_unit_test(kernel_frames_stay_in_front),
		cmocka_unit_test(without_registers_the_place_alone_is_known),
		cmocka_unit_test(a_kernel_threads_sample_keeps_its_chain),
		cmocka_unit_test(a_torn_sample_is_refused),
	};
	return cmocka_run_group_tests_name("record_stack", tests, NULL, NULL);
}
