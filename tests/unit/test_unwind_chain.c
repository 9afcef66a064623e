/* Walks that stop where they meet the previous stack give the same result as whole walks.  The
 * stacks are random, each made from the one before by calls, returns, and random changes. */
#include "test.h"

#include "unwind/unwind.h"
#include "unwind/unwind_internal.h"

#include "object_fixture.h"
#include "unwind_ways.h"

enum {
	SECTION = 0x100000,
	CODE = 0x1000,
	FUNCTION = 64,
	JIT = 0x80000,
	STACK = 0x700000,
	WORDS = 2048,
	FRAMES = 400,
	LIMIT = 512,
	RBX = 3,
	SIZES = 6
};

/* How a function saves registers.  All kinds except the last two have several frame sizes. */
enum kind {
	BY_SP,        /* CFA = rsp + n */
	BY_SP_SAVES,  /* … rbp at CFA − 16 */
	BY_FP,        /* CFA = rbp + 16, rbp at CFA − 16 */
	BY_RBX,       /* CFA = rbx + 16, rbx at CFA − 16 */
	REALIGNED,    /* CFA at rbp − 8; rbp is saved where it points */
	INTERRUPTED,  /* CFA = rsp + n, and the caller did not call: it was interrupted */
	LOSES_FP,     /* CFA = rsp + n, rbp undefined */
	OUTERMOST,
	KINDS,
	NO_RULES = KINDS, /* keeps a frame pointer */
};

struct section {
	uint8_t bytes[16384];
	size_t size;
};

static void put(struct section *section, const void *bytes, size_t size)
{
	assert_true(section->size + size <= sizeof(section->bytes));
	memcpy(section->bytes + section->size, bytes, size);
	section->size += size;
}

static size_t begin(struct section *section, uint32_t id)
{
	const uint32_t length = 0;
	size_t at = section->size;
	put(section, &length, sizeof(length));
	put(section, &id, sizeof(id));
	return at;
}

static void finish(struct section *section, size_t at)
{
	uint32_t length = (uint32_t)(section->size - at - 4);
	memcpy(section->bytes + at, &length, sizeof(length));
}

static size_t put_cie(struct section *section, bool is_signal)
{
	static const uint8_t usual[] = { 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1 };
	static const uint8_t signal[] = { 1, 'z', 'R',  'S', 0, 1,    0x78, 16,
					  1, 0,   0x0c, 7,   8, 0x90, 1 };
	size_t at = begin(section, 0);
	put(section, is_signal ? signal : usual, is_signal ? sizeof(signal) : sizeof(usual));
	finish(section, at);
	return at;
}

static uint64_t function_of(enum kind kind, unsigned words)
{
	return kind == NO_RULES ? JIT + words * 2 : CODE + (kind * SIZES + words) * FUNCTION;
}

static unsigned frame_words(unsigned size)
{
	return 2 + 2 * size;
}

static void put_function(struct section *section, size_t cie, enum kind kind, unsigned size)
{
	static const struct { uint8_t bytes[10], size; } rules[KINDS] = {
		[BY_SP] = { { 0 }, 1 },
		[BY_SP_SAVES] = { { 0x86, 2 }, 2 },
		[BY_FP] = { { 0x0c, 6, 16, 0x86, 2 }, 5 },
		[BY_RBX] = { { 0x0c, 3, 16, 0x83, 2 }, 5 },
		[REALIGNED] = { { 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0 }, 10 },
		[INTERRUPTED] = { { 0 }, 1 },
		[LOSES_FP] = { { 0x07, 6 }, 2 },
		[OUTERMOST] = { { 0x07, 16 }, 2 },
	};
	size_t at = begin(section, (uint32_t)(section->size + 4 - cie));
	const uint64_t range[] = { function_of(kind, size), FUNCTION };
	/* no augmentation data */
	const uint8_t sized[] = { 0, 0x0e, (uint8_t)(8 * frame_words(size)) };
	put(section, range, sizeof(range));
	put(section, sized, sizeof(sized));
	put(section, rules[kind].bytes, rules[kind].size);
	finish(section, at);
}

static struct tally_unwind_table *make_table(struct section *section)
{
	struct tally_unwind_table *table;
	size_t usual = put_cie(section, false), signal = put_cie(section, true);
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned size = 0; size < SIZES; size++)
			put_function(section, kind == INTERRUPTED ? signal : usual, kind, size);
	const struct tally_cfi_section frame = { .bytes = section->bytes,
						 .size = section->size,
						 .address = SECTION,
						 .machine = TALLY_UNWIND_X86_64,
						 .text_address = CODE,
						 .data_address = CODE };
	assert_int_equal(tally_unwind_table_new_from_bytes(&frame, NULL, &table, NULL), 0);
	return table;
}

/* The state of the caller, on which a frame is built. */
struct caller {
	uint64_t pc, sp, fp, rbx;
};

struct thread {
	struct tally_unwind_table *table;
	uint64_t random;
	uint8_t rare; /* one frame in so many is of an unusual kind */
	uint64_t shift; /* distance between table and code, for other mappings */
	size_t finds;
	uint64_t stack[WORDS], copy[WORDS];
	struct caller callers[FRAMES]; /* outermost first; the last one runs */
	size_t depth;
};

static uint64_t chance(struct thread *thread, uint64_t below)
{
	thread->random ^= thread->random << 13;
	thread->random ^= thread->random >> 7;
	thread->random ^= thread->random << 17;
	return (thread->random * 0x2545f4914f6cdd1dull >> 20) % below;
}

static uint64_t *word_at(struct thread *thread, uint64_t address)
{
	assert_true(address >= STACK && address < STACK + sizeof(thread->stack));
	return &thread->stack[(address - STACK) / 8];
}

static enum kind any_kind(struct thread *thread)
{
	static const enum kind usual[] = { BY_SP, BY_SP, BY_SP_SAVES, BY_FP, REALIGNED, NO_RULES };
	static const enum kind rare[] = { BY_RBX, INTERRUPTED, LOSES_FP };
	return chance(thread, thread->rare) ? usual[chance(thread, sizeof(usual) / sizeof(*usual))]
					    : rare[chance(thread, 3)];
}

static uint64_t any_value(struct thread *thread)
{
	switch (chance(thread, 4)) {
	case 0: return 0;
	case 1: return chance(thread, UINT32_MAX);
	case 2:
		return function_of(any_kind(thread), (unsigned)chance(thread, SIZES)) + 1 +
		       chance(thread, FUNCTION - 1);
	default: return STACK + chance(thread, WORDS) * 8;
	}
}

static void push_call(struct thread *thread, enum kind kind)
{
	const struct caller *caller = &thread->callers[thread->depth - 1];
	unsigned size = (unsigned)chance(thread, SIZES), words = frame_words(size);
	uint64_t cfa = caller->sp;
	struct caller callee = { .pc = function_of(kind, size) + !!chance(thread, 500),
				 .sp = cfa - 8 * words,
				 .fp = caller->fp,
				 .rbx = caller->rbx };
	if (kind == REALIGNED)
		callee.sp = cfa - 8 * (words + 4);
	if (thread->depth == FRAMES || callee.sp < STACK + 64)
		return;
	*word_at(thread, cfa - 8) = caller->pc;
	if (kind == BY_SP_SAVES || kind == BY_FP || kind == NO_RULES || kind == BY_RBX)
		*word_at(thread, cfa - 16) = kind == BY_RBX ? caller->rbx : caller->fp;
	if (kind == BY_SP_SAVES || kind == LOSES_FP)
		callee.fp = any_value(thread);
	if (kind == BY_FP || kind == NO_RULES)
		callee.fp = cfa - 16;
	if (kind == BY_RBX)
		callee.rbx = cfa - 16;
	if (kind == REALIGNED) {
		callee.fp = cfa - 8 * (3 + chance(thread, 2));
		*word_at(thread, callee.fp) = caller->fp;
		*word_at(thread, callee.fp - 8) = cfa;
	}
	thread->callers[thread->depth++] = callee;
}

static void start(struct thread *thread)
{
	for (size_t i = 0; i < WORDS; i++)
		thread->stack[i] = any_value(thread);
	uint64_t top = STACK + sizeof(thread->stack) - 256;
	bool is_by_zero = chance(thread, 2);
	thread->callers[0] = (struct caller){
		.pc = function_of(is_by_zero ? BY_SP : OUTERMOST, 1) + 1, .sp = top
	};
	*word_at(thread, top + 8 * frame_words(1) - 8) = 0;
	thread->depth = 1;
}

/* Makes calls and returns, and, in the copy, changes that should not happen. */
static void go_on(struct thread *thread)
{
	if (chance(thread, 500) == 0)
		start(thread);
	size_t returns = chance(thread, chance(thread, 20) ? 6 : thread->depth + 1);
	thread->depth = returns < thread->depth ? thread->depth - returns : 1;
	for (uint64_t calls = chance(thread, chance(thread, 20) ? 7 : 80); calls > 0; calls--)
		push_call(thread, any_kind(thread));
	memcpy(thread->copy, thread->stack, sizeof(thread->copy));
	uint64_t used = (thread->callers[thread->depth - 1].sp - STACK) / 8;
	for (uint64_t i = chance(thread, 4) ? 0 : chance(thread, 6); i > 0; i--)
		thread->copy[used + chance(thread, WORDS - used)] = any_value(thread);
}

static bool find(void *context, uint64_t address, struct tally_unwind_place *place)
{
	struct thread *thread = context;
	bool has_rules = address >= CODE && address < CODE + KINDS * SIZES * FUNCTION;
	*place = (struct tally_unwind_place){ .table = has_rules ? thread->table : NULL,
					       .address = address + thread->shift };
	thread->finds++;
	return has_rules || address - JIT < 4096;
}

struct answer {
	uint64_t addresses[LIMIT], stack_pointers[LIMIT];
	bool is_exact[LIMIT];
	size_t count, finds;
	enum tally_unwind_end end;
	struct tally_unwind_extent extent;
};

static void walk(struct thread *thread, struct tally_unwind_request request, size_t limit,
		 struct answer *answer)
{
	request.is_exact = answer->is_exact;
	request.stack_pointers = answer->stack_pointers;
	request.extent = &answer->extent;
	size_t before = thread->finds;
	answer->count = tally_unwind(&request, answer->addresses, limit, &answer->end);
	answer->finds = thread->finds - before;
}

static void assert_equal(const struct answer *a, const struct answer *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->extent.reached, b->extent.reached);
	assert_int_equal(a->extent.missed, b->extent.missed);
	assert_memory_equal(a->addresses, b->addresses, a->count * sizeof(*a->addresses));
	assert_memory_equal(a->stack_pointers, b->stack_pointers,
			    a->count * sizeof(*a->stack_pointers));
	assert_memory_equal(a->is_exact, b->is_exact, a->count * sizeof(*a->is_exact));
}

static struct tally_unwind_request request_of(struct thread *thread)
{
	const struct caller *at = &thread->callers[thread->depth - 1];
	struct tally_unwind_request request = { .machine = TALLY_UNWIND_X86_64,
						.find = find,
						.context = thread };
	request.registers[TALLY_UNWIND_RIP] = at->pc;
	request.registers[TALLY_UNWIND_RSP] = at->sp;
	request.registers[TALLY_UNWIND_RBP] = chance(thread, 20) ? at->fp : any_value(thread);
	request.registers[RBX] = chance(thread, 20) ? at->rbx : any_value(thread);
	request.stack = (const uint8_t *)&thread->copy[(at->sp - STACK) / 8];
	request.stack_size = STACK + sizeof(thread->stack) - at->sp;
	if (chance(thread, 20) == 0)
		request.stack_size = chance(thread, request.stack_size);
	return request;
}

/* Compares the walks.  `rare`: one frame in so many ends a chain.  Returns the share of saved
 * steps, in per cent. */
static unsigned compare(uint8_t rare, uint64_t seed, struct tally_unwind_cache *cache)
{
	struct section section = { 0 };
	struct thread *thread = calloc(1, sizeof(*thread));
	struct tally_unwind_chain *chain = tally_unwind_chain_new();
	struct answer *whole = calloc(1, sizeof(*whole)), *met = calloc(1, sizeof(*met));
	assert_true(thread && chain && whole && met);
	thread->table = make_table(&section);
	thread->random = seed;
	thread->rare = rare;
	start(thread);
	size_t wholes = 0, mets = 0, completes = 0;
	for (unsigned round = 0; round < 20000; round++) {
		go_on(thread);
		thread->shift = round / 1000 % 4 == 3 ? FUNCTION : 0;
		struct tally_unwind_request request = request_of(thread);
		size_t limit = chance(thread, 50) ? LIMIT : 1 + chance(thread, LIMIT);
		request.is_interpreted = round % 4 == 0;
		walk(thread, request, limit, whole);
		request.is_interpreted = false;
		request.cache = cache;
		request.space = seed + round / 1000;
		request.chain = chain;
		walk(thread, request, limit, met);
		assert_equal(whole, met);
		wholes += whole->finds;
		mets += met->finds;
		completes += whole->end == TALLY_UNWIND_COMPLETE;
	}
	assert_true(completes > 2000); /* random, but regular enough that much is compared */
	tally_unwind_table_free(thread->table);
	tally_unwind_chain_free(chain);
	free(thread);
	free(whole);
	free(met);
	return (unsigned)(100 - mets * 100 / wholes);
}

static void walks_that_meet_the_last_stack_equal_whole_ones(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		for (unsigned rare = 10; rare <= 250; rare *= 5)
			compare((uint8_t)rare, seed * 0x9e3779b97f4a7c15ull + rare, NULL);
}

static void walks_with_a_cache_of_rules_equal_whole_ones(void **state)
{
	(void)state;
	struct tally_unwind_cache *cache = tally_unwind_cache_new();
	assert_non_null(cache);
	compare(200, 77, cache);
	tally_unwind_cache_free(cache);
}

static void most_frames_are_met(void **state)
{
	(void)state;
	assert_true(compare(250, 5, NULL) > 50);
}

/* ---- stacks that no call began -------------------------------------------- */

static bool find_in_object(void *context, uint64_t address, struct tally_unwind_place *place)
{
	*place = (struct tally_unwind_place){ .table = context, .address = address };
	return true;
}

/* The stack of a coroutine begins with the address of its first function, which is written one byte
 * further: readers look one byte before a return address. */
static void the_beginning_of_a_stack_is_the_same_where_walks_meet(void **state)
{
	static const char SOURCE[] = "before: nop\n.org 16\n"
				     "begin: .cfi_startproc\nnop\nret\n.cfi_endproc\n.org 32\n"
				     "leaf: .cfi_startproc\nnop\nret\n.cfi_endproc\n.org 48\n";
	char path[256];
	struct tally_unwind_table *table;
	struct tally_section text;
	struct unwind_way way;
	snprintf(path, sizeof(path), "%s/made.s", (const char *)*state);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(SOURCE, file);
	fclose(file);
	assert_true(run(*state, "cc -shared -nostdlib -o made.so made.s"));
	struct tally_object *object = open_in(*state, "made.so");
	assert_true(tally_object_section(object, ".text", &text));
	assert_int_equal(tally_unwind_table_new(object, NULL, &table, NULL), 0);
	const uint64_t stack[] = { text.address + 16, 0, 0 };
	struct tally_unwind_request request = { .machine = TALLY_UNWIND_X86_64,
						.stack = (const uint8_t *)stack,
						.stack_size = sizeof(stack),
						.find = find_in_object,
						.context = table,
						.space = 1 };
	request.registers[TALLY_UNWIND_RSP] = 0x700000;
	request.registers[TALLY_UNWIND_RIP] = text.address + 32;
	assert_true(unwind_every_way(&request, NULL, 8, &way));
	assert_int_equal(way.count, 2);
	assert_int_equal(way.end, TALLY_UNWIND_COMPLETE);
	assert_int_equal(way.addresses[1], text.address + 16 + 1);
	tally_unwind_table_free(table);
	tally_object_unref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_that_meet_the_last_stack_equal_whole_ones),
		cmocka_unit_test(walks_with_a_cache_of_rules_equal_whole_ones),
		cmocka_unit_test(most_frames_are_met),
#ifdef __x86_64__
		cmocka_unit_test_setup_teardown(
			the_beginning_of_a_stack_is_the_same_where_walks_meet, make_directory,
			remove_directory),
#endif
	};
	return cmocka_run_group_tests_name("unwind_chain", tests, NULL, NULL);
}
