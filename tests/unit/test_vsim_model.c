/* The simulated CPU: against a textbook's one (vsim_oracle.h) on random, strided, chased and recorded accesses, told all
 * of them and told only what generated code would tell; and against counts that were worked out by hand. */
#include "test.h"
#include "vsim_oracle.h"

#include <stdalign.h>

/* --- A model and its oracle, driven side by side ---------------------------------------------------------------- */

struct bench {
	struct vsim_geometry geometry;
	struct vsim_model *all, *asked; /* told of everything; only of what generated code's questions let through */
	struct oracle *oracle;
	void *memory[2];
	uint64_t count[VSIM_KINDS];
	uint64_t accesses, told;
};

static void bench_begin(struct bench *bench, const struct vsim_geometry *geometry)
{
	const char *problem = vsim_geometry_problem(geometry);
	if (problem)
		fail_msg("%s", problem);
	*bench = (struct bench){ .geometry = *geometry, .oracle = oracle_new(geometry) };
	size_t bytes = vsim_model_bytes(geometry);
	assert_in_range(bytes, 1, VSIM_MODEL_BYTES_MAX);
	for (int i = 0; i < 2; i++)
		bench->memory[i] = aligned_alloc(64, bytes);
	bench->all = vsim_model_init(bench->memory[0], geometry);
	bench->asked = vsim_model_init(bench->memory[1], geometry);
}

static void bench_end(struct bench *bench)
{
	free(bench->memory[0]);
	free(bench->memory[1]);
	oracle_free(bench->oracle);
}

static void bench_count(struct bench *bench, unsigned expected, unsigned all, unsigned asked, const char *what,
			uint64_t address)
{
	bench->accesses++;
	if (all != expected || asked != expected)
		fail_msg("access %llu, %s of %#llx: %#x, the model %#x, behind its questions %#x",
			 (unsigned long long)bench->accesses, what, (unsigned long long)address, expected, all, asked);
	for (unsigned kind = 0; kind < VSIM_KINDS; kind++)
		bench->count[kind] += expected >> kind & 1;
}

/* What generated code does (vsim_model.h). */

static unsigned ask_data(struct bench *bench, uint64_t address, unsigned size, bool store)
{
	const struct vsim_recent *recent = vsim_model_recent_data(bench->asked);
	if (size <= recent->size_max &&
	    recent->recent[(address >> recent->line_shift) & recent->mask] == (address + size - 1) >> recent->line_shift)
		return 0;
	bench->told++;
	return vsim_model_data(bench->asked, address, size, store);
}

static unsigned ask_fetch(struct bench *bench, uint64_t address)
{
	const struct vsim_recent *recent = vsim_model_recent_code(bench->asked);
	if (recent->recent[(address >> recent->line_shift) & recent->mask] == address >> recent->line_shift)
		return 0;
	bench->told++;
	return vsim_model_fetch(bench->asked, address);
}

static unsigned ask_conditional(struct bench *bench, uint64_t ip, bool taken)
{
	struct vsim_conditional *conditional = vsim_model_conditionals(bench->asked);
	uint64_t outcomes = conditional->history << 1 | taken;
	conditional->history = outcomes;
	if (!conditional->counters[(outcomes & conditional->history_mask) ^ vsim_model_branch(bench->asked, ip)])
		return 0;
	bench->told++;
	return vsim_model_unsure(bench->asked, ip, taken);
}

static unsigned ask_indirect(struct bench *bench, uint64_t ip, uint64_t target)
{
	if (*vsim_model_target(bench->asked, ip) == target)
		return 0;
	bench->told++;
	return vsim_model_indirect(bench->asked, ip, target);
}

static unsigned ask_return(struct bench *bench, uint64_t target)
{
	struct vsim_returns *returns = vsim_model_returns(bench->asked);
	returns->top = (returns->top - 1) & returns->mask;
	return returns->entry[returns->top] == target ? 0 : 1u << VSIM_RETURN_MISSES;
}

static void data(struct bench *bench, uint64_t address, unsigned size, bool store)
{
	bench_count(bench, oracle_data(bench->oracle, address, size, store),
		    vsim_model_data(bench->all, address, size, store), ask_data(bench, address, size, store),
		    store ? "store" : "load", address);
}

static void fetch(struct bench *bench, uint64_t address)
{
	bench_count(bench, oracle_fetch(bench->oracle, address), vsim_model_fetch(bench->all, address),
		    ask_fetch(bench, address), "fetch", address);
}

static void conditional(struct bench *bench, uint64_t ip, bool taken)
{
	bench_count(bench, oracle_conditional(bench->oracle, ip, taken), vsim_model_conditional(bench->all, ip, taken),
		    ask_conditional(bench, ip, taken), "branch", ip);
}

static void indirect(struct bench *bench, uint64_t ip, uint64_t target)
{
	bench_count(bench, oracle_indirect(bench->oracle, ip, target), vsim_model_indirect(bench->all, ip, target),
		    ask_indirect(bench, ip, target), "indirect jump", ip);
}

static void call(struct bench *bench, uint64_t return_address)
{
	struct vsim_returns *returns = vsim_model_returns(bench->asked);
	oracle_call(bench->oracle, return_address);
	vsim_model_call(bench->all, return_address);
	returns->entry[returns->top] = return_address;
	returns->top = (returns->top + 1) & returns->mask;
}

static void returns(struct bench *bench, uint64_t target)
{
	bench_count(bench, oracle_return(bench->oracle, target), vsim_model_return(bench->all, target),
		    ask_return(bench, target), "return", target);
}

static uint64_t random_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1dull >> 11;
}

/* --- Against the textbook -------------------------------------------------------------------------------------- */

/* Tight enough that each level evicts, and of each shape: one set, one way, no L2, no second TLB, large lines, small pages' worth
 * of sets. */
static struct vsim_geometry odd_geometry(unsigned which)
{
	static const struct {
		uint32_t line, page;
		struct vsim_cache_geometry l1, l2, llc, tlb, stlb;
	} shapes[] = {
		{ 64, 4096, { 8, 2 }, { 32, 4 }, { 128, 8 }, { 2, 2 }, { 4, 4 } },
		{ 64, 4096, { 1, 4 }, { 1, 8 }, { 1, 64 }, { 1, 1 }, { 1, 8 } },
		{ 16, 4096, { 64, 1 }, { 0, 0 }, { 64, 4 }, { 1, 16 }, { 0, 0 } },
		{ 256, 8192, { 2, 3 }, { 4, 5 }, { 0, 0 }, { 8, 2 }, { 16, 2 } },
		{ 64, 4096, { 256, 2 }, { 0, 0 }, { 0, 0 }, { 1, 64 }, { 2, 5 } },
		{ 32, 1 << 20, { 1024, 4 }, { 64, 2 }, { 64, 3 }, { 4, 1 }, { 1, 1 } },
		{ 128, 16384, { 4, 12 }, { 16, 16 }, { 32, 16 }, { 256, 1 }, { 512, 1 } },
	};
	struct vsim_geometry geometry = *vsim_geometry_preset("small");
	which %= sizeof(shapes) / sizeof(shapes[0]);
	geometry.line_bytes = shapes[which].line;
	geometry.page_bytes = shapes[which].page;
	geometry.l1d = geometry.l1i = shapes[which].l1;
	geometry.l2 = shapes[which].l2;
	geometry.llc = shapes[which].llc;
	geometry.dtlb = geometry.itlb = shapes[which].tlb;
	geometry.stlb = shapes[which].stlb;
	geometry.history_bits = 4 + which;
	geometry.target_bits = 4 + which % 3;
	geometry.return_depth = 1u << which % 7;
	return geometry;
}

/* Accesses that stay around where they were, and sometimes don't; code that runs on, jumps, calls and comes back. */
static void run_randomly(struct bench *bench, uint64_t seed, unsigned steps)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1, near = 0x7ffff000, code = 0x400000, range = 1ull << (10 + seed % 24);
	for (unsigned i = 0; i < steps; i++) {
		uint64_t dice = random_number(&state), ip = 0x400000 + (dice >> 8 & 0x3f) * 5;
		if (!(dice & 0xff))
			near = random_number(&state) << (dice >> 9 & 7);
		uint64_t address = near + random_number(&state) % range;
		unsigned size = (dice & 0x700) ? 1u << (dice >> 12 & 5) : 1 + (unsigned)(dice >> 12 & 0x1ff);
		switch (dice >> 24 & 7) {
		case 0: fetch(bench, code += 60); break;
		case 1: fetch(bench, code = 0x400000 + random_number(&state) % range); break;
		case 2: conditional(bench, ip, (dice >> 32 & 7) > (ip & 7)); break;
		case 3: indirect(bench, ip & ~7ull, 0x500000 + (dice >> 32 & ip & 7) * 16); break;
		case 4: dice & 1 ? call(bench, ip) : returns(bench, ip); break;
		default: data(bench, address, size, dice >> 40 & 1); break;
		}
	}
}

static void the_model_counts_what_a_textbook_counts(void **state)
{
	(void)state;
	uint64_t accesses = 0, told = 0;
	for (unsigned round = 0; round < 70; round++) {
		struct vsim_geometry geometry = odd_geometry(round);
		struct bench bench;
		bench_begin(&bench, &geometry);
		run_randomly(&bench, round, 20000);
		accesses += bench.accesses;
		told += bench.told;
		bench_end(&bench);
	}
	assert_true(told < accesses); /* or the questions were never put */
}

static void presets_count_what_a_textbook_counts(void **state)
{
	(void)state;
	for (size_t i = 0; vsim_geometry_preset_name(i); i++) {
		struct bench bench;
		bench_begin(&bench, vsim_geometry_preset(vsim_geometry_preset_name(i)));
		for (unsigned seed = 0; seed < 24; seed += 5)
			run_randomly(&bench, seed, 20000);
		bench_end(&bench);
	}
}

/* An access at the end of the address space, and one larger than a whole small cache. */
static void edges_of_the_address_space_are_no_special_case(void **state)
{
	(void)state;
	struct vsim_geometry geometry = odd_geometry(2);
	struct bench bench;
	bench_begin(&bench, &geometry);
	for (int i = 0; i < 3; i++) {
		data(&bench, 0, 1, false);
		data(&bench, UINT64_MAX - 7, 8, true);
		data(&bench, UINT64_MAX, 1, false);
		data(&bench, 0x1000 - 16, 4096, false);
		fetch(&bench, UINT64_MAX);
	}
	bench_end(&bench);
	/* Beyond the end there is nothing: only the first line is touched, and nothing hangs. */
	void *memory = aligned_alloc(64, vsim_model_bytes(&geometry));
	struct vsim_model *model = vsim_model_init(memory, &geometry);
	assert_int_not_equal(vsim_model_data(model, UINT64_MAX - 3, 64, false), 0);
	assert_int_equal(vsim_model_data(model, UINT64_MAX - 3, 4, false), 0);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_model_counts_what_a_textbook_counts),
		cmocka_unit_test(presets_count_what_a_textbook_counts),
		cmocka_unit_test(edges_of_the_address_space_are_no_special_case),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
