#include "cfi_fixture.h"

#include "object/object.h"
#include "unwind/unwind.h"
#include "unwind_ways.h"

#include <fcntl.h>

/* A process with one object, loaded at BIAS.  It has rules for [CODE, CODE + 0x1000), and code
 * without rules from BIAS + 0x10000 up to 0x20000.  Nothing else is mapped. */
enum { BIAS = 0x400000, JIT = BIAS + 0x10000 };

static bool find(void *context, uint64_t address, struct tally_unwind_place *place)
{
	if (address < BIAS || address >= BIAS + 0x20000)
		return false;
	place->address = address - BIAS;
	place->table = address < JIT ? context : NULL;
	return true;
}

struct walk {
	struct tally_unwind_table *table;
	uint64_t stack[64];
	struct tally_unwind_request request;
	uint64_t addresses[16];
	size_t count;
	enum tally_unwind_end end;
};

enum { STACK = 0x7000 };

static void run(struct walk *walk, size_t words, size_t limit)
{
	walk->request.registers[TALLY_UNWIND_RSP] = STACK;
	walk->request.stack = (const uint8_t *)walk->stack;
	walk->request.stack_size = words * 8;
	walk->request.find = find;
	walk->request.context = walk->table;
	walk->request.machine = TALLY_UNWIND_X86_64;
	struct unwind_way way;
	assert_true(unwind_every_way(&walk->request, NULL, limit, &way));
	walk->count = way.count;
	walk->end = way.end;
	memcpy(walk->addresses, way.addresses, way.count * sizeof(*way.addresses));
}

#define F(offset) ((uint64_t)BIAS + CODE + (offset))

/* f at 0x00 pushes rbx and 16 bytes.  g at 0x40 has its CFA in rbx + 16.  h at 0x80 is the
 * outermost. s at 0xc0 is the signal trampoline (saved registers: rip at rsp, rsp at rsp + 8, rbx
 * at rsp + 16). r at 0x100 has bad rules.  v at 0x140 has its return address in rsi. */
static void setup_walk(struct walk *walk, struct cfi *cfi)
{
	memset(walk, 0, sizeof(*walk));
	memset(cfi, 0, sizeof(*cfi));
	size_t cie = put_usual_cie(cfi);
	put_fde(cfi, cie, CODE, 0x40,
		BYTES(0x41, 0x0e, 16, 0x83, 2, 0x44, 0x0e, 32, 0x60, 0x0e, 16, 0x41, 0x0e, 8));
	put_fde(cfi, cie, CODE + 0x40, 0x40, BYTES(0x0c, RBX, 16));
	put_fde(cfi, cie, CODE + 0x80, 0x40, BYTES(0x07, 16));
	size_t signal = put_cie(cfi, "zRS", BYTES(0),
				BYTES(0x0f, 3, 0x77, 8, 0x06, 0x10, 16, 2, 0x77, 0, 0x10, 7, 2,
				      0x77, 8, 0x10, 3, 2, 0x77, 16));
	size_t at = begin(cfi, (uint32_t)(cfi->size + 4 - signal));
	put_u64(cfi, CODE + 0xbf);
	put_u64(cfi, 0x41);
	put(cfi, BYTES(0));
	finish(cfi, at);
	put_fde(cfi, cie, CODE + 0x100, 0x40, BYTES(0x0b));
	put_fde(cfi, cie, CODE + 0x140, 0x40, BYTES(0x0e, 0, 0x09, 16, RSI));
	walk->table = table_of(cfi->bytes, cfi->size, false);
}

static void check(const struct walk *walk, enum tally_unwind_end end, const uint64_t *expected,
		  size_t count)
{
	assert_string_equal(tally_unwind_end_text(walk->end), tally_unwind_end_text(end));
	assert_int_equal(walk->count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(walk->addresses[i], expected[i]);
}

#define CHECK(walk, end, ...) \
	check((walk), (end), (const uint64_t[]){ __VA_ARGS__ }, \
	      sizeof((uint64_t[]){ __VA_ARGS__ }) / 8)

static void a_chain_is_followed_to_the_outermost_frame(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	/* f after its sub: 16 bytes, rbx, return into g; g: CFA = rbx + 16, return into h. */
	walk.request.registers[TALLY_UNWIND_RIP] = F(0x10);
	walk.stack[2] = STACK + 6 * 8;
	walk.stack[3] = F(0x50);
	walk.stack[7] = F(0x90);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x10), F(0x50), F(0x90));

	/* The return address 0 ends a chain too. */
	walk.stack[7] = 0;
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x10), F(0x50));

	run(&walk, 8, 1);
	CHECK(&walk, TALLY_UNWIND_LIMIT, F(0x10));
	run(&walk, 8, 2);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x10), F(0x50));
	run(&walk, 8, 0);
	assert_int_equal(walk.count, 0);
	assert_int_equal(walk.end, TALLY_UNWIND_LIMIT);
	tally_unwind_table_free(walk.table);
}

static void rules_of_a_caller_are_those_of_its_call(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	/* The leaf is at f's first instruction: f's rules.  The return address 0x80 is h's first
	 * byte, but the call was g's last instruction: g's rules. */
	walk.request.registers[TALLY_UNWIND_RIP] = F(0);
	walk.request.registers[RBX] = STACK + 3 * 8;
	walk.stack[0] = F(0x80);
	walk.stack[4] = F(0x90);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0), F(0x80), F(0x90));
	tally_unwind_table_free(walk.table);
}

static void an_interrupted_frame_is_looked_up_at_its_ip(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	/* A handler (f at its entry) returns to the trampoline's first byte.  The signal hit f's
	 * first byte; at ip − 1 there are no rules. */
	walk.request.registers[TALLY_UNWIND_RIP] = F(0);
	walk.stack[0] = F(0xc0);
	walk.stack[1] = F(0);
	walk.stack[2] = STACK + 9 * 8;
	walk.stack[9] = F(0x90);
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0), F(0xc0), F(0), F(0x90));

	/* Leads from the handler's stack to a stack that was not copied. */
	walk.stack[2] = 0x7fff00000000;
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_TRUNCATED, F(0), F(0xc0), F(0));
	tally_unwind_table_free(walk.table);
}

static void a_popped_register_keeps_its_value(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	/* f's last byte: rbx has been popped, but its rule still points below rsp.  g needs it. */
	walk.request.registers[TALLY_UNWIND_RIP] = F(0x26);
	walk.request.registers[RBX] = STACK + 3 * 8;
	walk.stack[0] = F(0x50);
	walk.stack[4] = F(0x90);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x26), F(0x50), F(0x90));
	tally_unwind_table_free(walk.table);
}

static void a_return_address_may_be_in_a_register(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	walk.request.registers[TALLY_UNWIND_RIP] = F(0x150);
	walk.request.registers[RSI] = F(0x10);
	walk.stack[3] = F(0x90);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x150), F(0x10), F(0x90));
	/* … but not a function that leads to itself. */
	walk.request.registers[RSI] = F(0x150);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_BAD_RULES, F(0x150));
	tally_unwind_table_free(walk.table);
}

static void a_frame_without_rules_is_stepped_over_by_frame_pointer(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	walk.request.registers[TALLY_UNWIND_RIP] = JIT + 0x10;
	walk.request.registers[TALLY_UNWIND_RBP] = STACK + 8;
	walk.stack[1] = STACK + 32; /* the caller of the JIT code, JIT code too */
	walk.stack[2] = JIT + 0x80;
	walk.stack[5] = F(0x10); /* f called it */
	walk.stack[9] = F(0x90);
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, JIT + 0x10, JIT + 0x80, F(0x10), F(0x90));

	walk.stack[5] = 0xdead0000; /* the frame pointer led nowhere */
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_NO_RULES, JIT + 0x10, JIT + 0x80);
	walk.stack[1] = STACK + 33; /* not a frame pointer */
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_NO_RULES, JIT + 0x10, JIT + 0x80);
	walk.stack[1] = STACK + 16; /* below the frame */
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_NO_RULES, JIT + 0x10, JIT + 0x80);
	walk.stack[1] = STACK + 160; /* above the copy */
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_TRUNCATED, JIT + 0x10, JIT + 0x80);

	/* A frame of this kind may have saved rbx anywhere, so g's rules can't be followed. */
	walk.stack[1] = STACK + 32;
	walk.stack[2] = F(0x50);
	walk.request.registers[RBX] = STACK + 32;
	run(&walk, 16, 16);
	CHECK(&walk, TALLY_UNWIND_BAD_RULES, JIT + 0x10, F(0x50));
	tally_unwind_table_free(walk.table);
}

static void code_tells_where_it_stands(void **state)
{
	(void)state;
	static const struct {
		uint8_t bytes[12], size, previous;
		enum tally_code_spot spot;
	} cases[] = {
		{ { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 }, 9, 0, TALLY_CODE_SIGRETURN },
		{ { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f }, 8, 0, TALLY_CODE_OTHER },
		{ { 0x48, 0xc7, 0xc0, 0x0e, 0, 0, 0, 0x0f, 0x05 }, 9, 0, TALLY_CODE_OTHER },
		/* jmp *x(%rip) */
		{ { 0xff, 0x25, 1, 2, 3, 4 }, 6, 0, TALLY_CODE_EDGE },
		{ { 0xf2, 0xff, 0x25, 1, 2, 3, 4 }, 7, 0, TALLY_CODE_EDGE },       /* bnd jmp */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25 }, 6, 0, TALLY_CODE_EDGE }, /* endbr64 */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5 }, 8, 0, TALLY_CODE_EDGE },
		/* also found behind setjmp */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x53 }, 5, 0, TALLY_CODE_OTHER },
		{ { 0xc3 }, 1, 0, TALLY_CODE_EDGE },                               /* ret */
		{ { 0xf3, 0xc3 }, 2, 0, TALLY_CODE_EDGE },
		{ { 0xc2, 8, 0 }, 3, 0, TALLY_CODE_OTHER },
		/* push %rbp; mov %rsp,%rbp */
		{ { 0x55, 0x48, 0x89, 0xe5 }, 4, 0, TALLY_CODE_EDGE },
		{ { 0x55, 0x48, 0x8b, 0xec }, 4, 0, TALLY_CODE_EDGE },
		{ { 0x48, 0x89, 0xe5 }, 3, 0x55, TALLY_CODE_PUSHED_RBP },
		{ { 0x48, 0x89, 0xe5 }, 3, 0x53, TALLY_CODE_OTHER },
		{ { 0x55 }, 1, 0, TALLY_CODE_OTHER },
		{ { 0 }, 0, 0x55, TALLY_CODE_OTHER },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(
			tally_code_recognise(cases[i].bytes, cases[i].size, cases[i].previous),
			cases[i].spot);
}

/* Makes an executable with one segment and no rules; sigreturn at 0x80, PLT at 0x90, a prologue at
 * 0xa0. */
static struct tally_object *object_without_rules(void)
{
	uint8_t image[0x100] = { 0 };
	static const uint8_t sigreturn[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t plt[] = { 0xff, 0x25, 0, 1, 0, 0 };
	static const uint8_t prologue[] = { 0x55, 0x48, 0x89, 0xe5 };
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					   EV_CURRENT },
			      .e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(header),
			      .e_ehsize = sizeof(header),
			      .e_phnum = 1,
			      .e_phentsize = sizeof(Elf64_Phdr) };
	Elf64_Phdr segment = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof(image),
			       .p_memsz = sizeof(image) };
	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), &segment, sizeof(segment));
	memcpy(image + 0x80, sigreturn, sizeof(sigreturn));
	memcpy(image + 0x90, plt, sizeof(plt));
	memcpy(image + 0xa0, prologue, sizeof(prologue));
	struct tally_object *object;
	assert_int_equal(tally_object_open_memory("bare", image, sizeof(image), &object, NULL), 0);
	return object;
}

static void code_without_rules_is_stepped_through_by_what_it_is(void **state)
{
	(void)state;
	struct tally_object *object = object_without_rules();
	struct walk walk = { 0 };
	assert_int_equal(tally_unwind_table_new(object, NULL, &walk.table, NULL), 0);
	tally_object_unref(object);
	assert_int_equal(walk.table->index_count, 0);
	/* A handler in a PLT stub; the signal's context; a function that has pushed rbp; its
	 * caller. */
	walk.request.registers[TALLY_UNWIND_RIP] = BIAS + 0x90;
	walk.stack[0] = BIAS + 0x80;
	/* rsp, rip: after r8–r15 rdi rsi rbp rbx rdx rax rcx */
	walk.stack[6 + 15] = STACK + 30 * 8;
	walk.stack[6 + 16] = BIAS + 0xa1;
	walk.stack[30] = STACK + 40 * 8;
	walk.stack[31] = BIAS + 0xb0;
	run(&walk, 64, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, BIAS + 0x90, BIAS + 0x80, BIAS + 0xa1, BIAS + 0xb0);
	run(&walk, 22, 16);
	CHECK(&walk, TALLY_UNWIND_TRUNCATED, BIAS + 0x90, BIAS + 0x80);
	tally_unwind_table_free(walk.table);
}

static void each_end_is_told(void **state)
{
	(void)state;
	struct cfi cfi;
	struct walk walk;
	setup_walk(&walk, &cfi);
	walk.request.registers[TALLY_UNWIND_RIP] = 0xdead0000;
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_NO_MAP, 0xdead0000);

	walk.request.registers[TALLY_UNWIND_RIP] = F(0x110);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_BAD_RULES, F(0x110));

	walk.request.registers[TALLY_UNWIND_RIP] = F(0x10);
	walk.stack[3] = F(0x808); /* in the entry point's code, which has no rules */
	walk.table->entry_point = CODE + 0x800;
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_COMPLETE, F(0x10), F(0x808));
	walk.stack[3] = F(0x800);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_NO_RULES, F(0x10), F(0x800));

	walk.request.registers[TALLY_UNWIND_RIP] = F(0x10);
	walk.stack[3] = F(0x10);
	walk.stack[7] = F(0x10);
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_TRUNCATED, F(0x10), F(0x10), F(0x10));
	run(&walk, 0, 16);
	CHECK(&walk, TALLY_UNWIND_TRUNCATED, F(0x10));

	walk.stack[7] = 0xdead0000; /* it is not part of the chain */
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_NO_MAP, F(0x10), F(0x10));

	/* A CFA below rsp, and one far from the stack. */
	walk.request.registers[TALLY_UNWIND_RIP] = F(0x50);
	walk.request.registers[RBX] = STACK - 0x100;
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_BAD_RULES, F(0x50));
	walk.request.registers[RBX] = 0x1234567890ab;
	run(&walk, 8, 16);
	CHECK(&walk, TALLY_UNWIND_BAD_RULES, F(0x50));
	tally_unwind_table_free(walk.table);
}

/* arm64: rules with sp and x30, signed return addresses, and frame records without rules. */
static void arm64_s_signed_returns_are_stripped(void **state)
{
	(void)state;
	const uint64_t signature = 0x7fb5000000000000;
	struct cfi cfi = { 0 };
	size_t at = begin(&cfi, 0); /* x30 is the return column; at entry CFA = sp */
	put(&cfi, BYTES(1, 0, 4, 0x78, 30, 0x0c, 31, 0));
	finish(&cfi, at);
	/* paciasp; stp x29,x30,[sp,#-32]!; … */
	put_fde(&cfi, at, CODE, 0x40, BYTES(0x41, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3));
	put_fde(&cfi, at, CODE + 0x80, 0x40, BYTES(0x07, 30));
	struct tally_cfi_section section = { .bytes = cfi.bytes,
					     .size = cfi.size,
					     .address = SECTION,
					     .machine = TALLY_UNWIND_ARM64 };
	struct walk walk = { .request = { .machine = TALLY_UNWIND_ARM64,
					  .stack = (const uint8_t *)walk.stack,
					  .stack_size = sizeof(walk.stack),
					  .find = find } };
	assert_int_equal(tally_unwind_table_new_from_bytes(&section, NULL, &walk.table, NULL), 0);
	walk.request.context = walk.table;
	walk.request.registers[TALLY_UNWIND_ARM64_SP] = STACK;
	walk.request.registers[TALLY_UNWIND_ARM64_PC] = F(0x10);
	walk.stack[0] = STACK + 48; /* x29, which points to a record of code without rules; x30 */
	walk.stack[1] = signature | (JIT + 0x20);
	walk.stack[6] = STACK + 80;
	walk.stack[7] = signature | F(0x90);
	struct unwind_way way;
	assert_true(unwind_every_way(&walk.request, NULL, 16, &way));
	assert_int_equal(way.end, TALLY_UNWIND_COMPLETE);
	assert_int_equal(way.count, 3);
	assert_int_equal(way.addresses[1], JIT + 0x20);
	assert_int_equal(way.addresses[2], F(0x90));
	/* At entry, the return address is only in x30. */
	walk.request.registers[TALLY_UNWIND_ARM64_PC] = F(0);
	walk.request.registers[TALLY_UNWIND_X30] = signature | F(0x90);
	assert_true(unwind_every_way(&walk.request, NULL, 16, &way));
	assert_int_equal(way.end, TALLY_UNWIND_COMPLETE);
	assert_int_equal(way.count, 2);
	assert_int_equal(way.addresses[1], F(0x90));
	tally_unwind_table_free(walk.table);
}

/* The arm64 kernel pushes 128 bytes of siginfo, 176 of the ucontext, the fault's address, x0–x30 sp
 * pc pstate, and records, the first with the vector registers. */
enum {
	CONTEXT_WORD = (128 + 176 + 8) / 8,
	RECORDS_WORD = (128 + 176 + 288) / 8,
	SIGNAL_FRAME_WORDS = 4688 / 8
};

static void push_signal_frame(uint64_t *stack, uint64_t sp, uint64_t pc, uint64_t x30)
{
	stack[CONTEXT_WORD + TALLY_UNWIND_X30] = x30;
	stack[CONTEXT_WORD + TALLY_UNWIND_ARM64_SP] = sp;
	stack[CONTEXT_WORD + TALLY_UNWIND_ARM64_PC] = pc;
	stack[RECORDS_WORD] = 0x46508001 | (uint64_t)528 << 32;
}

/* The trampoline is at 0x80 of an object without rules; 0x88 is behind it. */
static struct tally_unwind_table *table_of_trampoline(void)
{
	static const uint8_t sigreturn[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };
	uint8_t image[0x100] = { 0 };
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					   EV_CURRENT },
			      .e_type = ET_DYN,
			      .e_machine = EM_AARCH64,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(header),
			      .e_ehsize = sizeof(header),
			      .e_phnum = 1,
			      .e_phentsize = sizeof(Elf64_Phdr) };
	Elf64_Phdr segment = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof(image),
			       .p_memsz = sizeof(image) };
	struct tally_object *object;
	struct tally_unwind_table *table;
	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), &segment, sizeof(segment));
	memcpy(image + 0x80, sigreturn, sizeof(sigreturn));
	assert_int_equal(tally_object_open_memory("vdso", image, sizeof(image), &object, NULL), 0);
	assert_int_equal(tally_unwind_table_new(object, NULL, &table, NULL), 0);
	tally_object_unref(object);
	return table;
}

/* Unwinds from pc, at sp.  Returns whether it finds the code interrupted at JIT + 0x40. */
static bool finds_interrupted(struct tally_unwind_table *table, const uint64_t *stack, size_t words,
			      uint64_t pc)
{
	struct unwind_way way;
	struct tally_unwind_request request = { .machine = TALLY_UNWIND_ARM64,
						.stack = (const uint8_t *)stack,
						.stack_size = words * 8,
						.find = find,
						.context = table };
	request.registers[TALLY_UNWIND_ARM64_SP] = STACK;
	request.registers[TALLY_UNWIND_ARM64_PC] = pc;
	assert_true(unwind_every_way(&request, NULL, 16, &way));
	return way.count > 1 && way.addresses[1] == JIT + 0x40 && way.is_exact[1];
}

static void arm64_s_signal_frames_are_stepped_over(void **state)
{
	(void)state;
	uint64_t stack[SIGNAL_FRAME_WORDS + 16] = { 0 };
	struct tally_unwind_table *table = table_of_trampoline();
	push_signal_frame(stack, STACK + SIGNAL_FRAME_WORDS * 8, JIT + 0x40, F(0x10));
	size_t words = sizeof(stack) / 8;
	/* Before each of its instructions, and while the kernel runs the system call. */
	for (uint64_t pc = BIAS + 0x80; pc <= BIAS + 0x88; pc += 4)
		assert_true(finds_interrupted(table, stack, words, pc));
	assert_false(finds_interrupted(table, stack, words, BIAS + 0x7c));
	assert_false(finds_interrupted(table, stack, words, BIAS + 0x8c));
	assert_false(finds_interrupted(table, stack, RECORDS_WORD, BIAS + 0x84));
	/* Without a file, the pushed data are enough; without that data, no frame is skipped. */
	assert_true(finds_interrupted(table, stack, words, JIT + 0x80));
	stack[RECORDS_WORD]++;
	assert_false(finds_interrupted(table, stack, words, JIT + 0x80));
	/* this is a function behind the trampoline */
	assert_false(finds_interrupted(table, stack, words, BIAS + 0x88));
	assert_true(finds_interrupted(table, stack, words, BIAS + 0x80));
	tally_unwind_table_free(table);
}

static void sample_registers_come_in_dwarf_s_order(void **state)
{
	(void)state;
	/* ax bx cx dx si di bp sp ip flags cs ss, r8–r15 */
	uint64_t words[20], registers[TALLY_UNWIND_REGISTERS];
	for (size_t i = 0; i < 20; i++)
		words[i] = 100 + i;
	assert_true(tally_unwind_registers(TALLY_UNWIND_X86_64, words, TALLY_UNWIND_REGS_MASK,
					   registers));
	static const uint64_t expected[] = { 100, 103, 102, 101, 104, 105, 106, 107, 112,
					     113, 114, 115, 116, 117, 118, 119, 108 };
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		assert_int_equal(registers[i], expected[i]);
	assert_true(tally_unwind_registers(TALLY_UNWIND_X86_64, words, 1 << 6 | 1 << 7 | 1 << 8,
					   registers));
	assert_int_equal(registers[TALLY_UNWIND_RBP], 100);
	assert_int_equal(registers[TALLY_UNWIND_RSP], 101);
	assert_int_equal(registers[TALLY_UNWIND_RIP], 102);
	assert_false(
		tally_unwind_registers(TALLY_UNWIND_X86_64, words, 1 << 6 | 1 << 7, registers));
	assert_false(tally_unwind_registers(TALLY_UNWIND_X86_64, words, 1 << 8, registers));
}

static bool find_everywhere(void *context, uint64_t address, struct tally_unwind_place *place)
{
	*place = (struct tally_unwind_place){ .table = context, .address = address - BIAS };
	return true;
}

/* Runs everything that reads a section, on exactly as many bytes as stated. */
static void exercise(const uint8_t *bytes, size_t size, uint64_t address,
		     struct tally_unwind_cache *cache)
{
	static uint64_t spaces;
	uint8_t *copy = malloc(size ? size : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, size);
	struct walk walk = { .request.space = ++spaces };
	struct tally_cfi_section section = { .bytes = copy, .size = size, .address = address,
					     .machine = TALLY_UNWIND_X86_64 };
	assert_int_equal(tally_unwind_table_new_from_bytes(&section, NULL, &walk.table, NULL), 0);
	for (size_t i = 0; i < 64; i++)
		walk.stack[i] = i % 2 ? F(i * 16) : STACK + i * 24;
	for (size_t i = 0; walk.table->index_count && i < walk.table->indexes[0].functions.count;
	     i += 7) {
		const struct tally_unwind_function *function =
			&walk.table->indexes[0].functions.items[i];
		for (size_t reg = 0; reg < TALLY_UNWIND_REGISTERS; reg++)
			walk.request.registers[reg] = STACK + reg * 8;
		walk.request.registers[TALLY_UNWIND_RIP] = BIAS + function->start +
							   function->size / 2;
		walk.request.registers[TALLY_UNWIND_RSP] = STACK;
		walk.request.stack = (const uint8_t *)walk.stack;
		walk.request.stack_size = sizeof(walk.stack);
		walk.request.find = find_everywhere;
		walk.request.context = walk.table;
		walk.request.machine = TALLY_UNWIND_X86_64;
		struct unwind_way way;
		assert_true(unwind_every_way(&walk.request, cache, 16, &way));
		assert_in_range(way.count, 1, 16);
	}
	tally_unwind_table_free(walk.table);
	free(copy);
}

static void damaged_sections_do_no_damage(void **state)
{
	(void)state;
	struct tally_object *object;
	struct tally_section section;
	assert_int_equal(tally_object_open(AT_FDCWD, "/proc/self/exe", &object, NULL), 0);
	assert_true(tally_object_section(object, ".eh_frame", &section));
	uint64_t address = section.address;
	size_t size = section.size < 16384 ? section.size : 16384;
	uint8_t *bytes = malloc(size);
	assert_non_null(bytes);
	memcpy(bytes, section.bytes, size);
	uint64_t seed = 20240611;
	struct tally_unwind_cache *cache = tally_unwind_cache_new();
	assert_non_null(cache);
	exercise(bytes, size, address, cache);
	for (unsigned i = 0; i < 600; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		exercise(bytes, (seed >> 33) % size, address, cache);
	}
	for (unsigned i = 0; i < 1400; i++) {
		memcpy(bytes, section.bytes, size);
		for (unsigned flips = 0; flips <= i % 16; flips++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			/* every other one near the start, in the CIE that all functions share */
			size_t at = (seed >> 33) % (i % 2 ? size : 256);
			bytes[at] ^= (uint8_t)(1u << (seed >> 20 & 7));
		}
		exercise(bytes, size, address, cache);
	}
	tally_unwind_cache_free(cache);
	free(bytes);
	tally_object_unref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_is_followed_to_the_outermost_frame),
		cmocka_unit_test(rules_of_a_caller_are_those_of_its_call),
		cmocka_unit_test(an_interrupted_frame_is_looked_up_at_its_ip),
		cmocka_unit_test(a_popped_register_keeps_its_value),
		cmocka_unit_test(a_return_address_may_be_in_a_register),
		cmocka_unit_test(a_frame_without_rules_is_stepped_over_by_frame_pointer),
		cmocka_unit_test(code_tells_where_it_stands),
		cmocka_unit_test(code_without_rules_is_stepped_through_by_what_it_is),
		cmocka_unit_test(each_end_is_told),
		cmocka_unit_test(arm64_s_signed_returns_are_stripped),
		cmocka_unit_test(arm64_s_signal_frames_are_stepped_over),
		cmocka_unit_test(sample_registers_come_in_dwarf_s_order),
		cmocka_unit_test(damaged_sections_do_no_damage),
	};
	return cmocka_run_group_tests_name("unwind", tests, NULL, NULL);
}
