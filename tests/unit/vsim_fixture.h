/* Drives simulated CPUs and an oracle side by side.  One model gets every access; the other only
 * those that the generated code's comparisons (vsim_model.h) don't filter out.  Each access is
 * checked. */
#ifndef TALLY_TEST_VSIM_FIXTURE_H
#define TALLY_TEST_VSIM_FIXTURE_H

#include "random.h"
#include "test.h"
#include "vsim_oracle.h"

struct bench {
	struct vsim_geometry geometry;
	/* gets every access; gets only those that the comparisons don't filter out */
	struct vsim_model *all, *asked;
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

static void bench_count(struct bench *bench, unsigned expected, unsigned all, unsigned asked,
			const char *what, uint64_t address)
{
	bench->accesses++;
	if (all != expected || asked != expected)
		fail_msg("access %llu, %s of %#llx: %#x, the model %#x, behind its questions %#x",
			 (unsigned long long)bench->accesses, what, (unsigned long long)address,
			 expected, all, asked);
	for (unsigned kind = 0; kind < VSIM_KINDS; kind++)
		bench->count[kind] += expected >> kind & 1;
}

/* Does the same as generated code (vsim_model.h). */

static unsigned ask_data(struct bench *bench, uint64_t address, unsigned size, bool store)
{
	const struct vsim_recent *recent = vsim_model_recent_data(bench->asked);
	if (size <= recent->size_max &&
	    recent->recent[(address >> recent->line_shift) & recent->mask] ==
		    (address + size - 1) >> recent->line_shift)
		return 0;
	bench->told++;
	return vsim_model_data(bench->asked, address, size, store);
}

static unsigned ask_fetch(struct bench *bench, uint64_t address)
{
	const struct vsim_recent *recent = vsim_model_recent_code(bench->asked);
	if (recent->recent[(address >> recent->line_shift) & recent->mask] ==
	    address >> recent->line_shift)
		return 0;
	bench->told++;
	return vsim_model_fetch(bench->asked, address);
}

static unsigned ask_conditional(struct bench *bench, uint64_t ip, bool taken)
{
	struct vsim_conditional *conditional = vsim_model_conditionals(bench->asked);
	uint64_t outcomes = conditional->history << 1 | taken;
	conditional->history = outcomes;
	if (!conditional->counters[(outcomes & conditional->history_mask) ^
				   vsim_model_branch(bench->asked, ip)])
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
		    vsim_model_data(bench->all, address, size, store),
		    ask_data(bench, address, size, store), store ? "store" : "load", address);
}

static void fetch(struct bench *bench, uint64_t address)
{
	bench_count(bench, oracle_fetch(bench->oracle, address),
		    vsim_model_fetch(bench->all, address), ask_fetch(bench, address), "fetch",
		    address);
}

static void conditional(struct bench *bench, uint64_t ip, bool taken)
{
	bench_count(bench, oracle_conditional(bench->oracle, ip, taken),
		    vsim_model_conditional(bench->all, ip, taken),
		    ask_conditional(bench, ip, taken), "branch", ip);
}

static void indirect(struct bench *bench, uint64_t ip, uint64_t target)
{
	bench_count(bench, oracle_indirect(bench->oracle, ip, target),
		    vsim_model_indirect(bench->all, ip, target), ask_indirect(bench, ip, target),
		    "indirect jump", ip);
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
	bench_count(bench, oracle_return(bench->oracle, target),
		    vsim_model_return(bench->all, target), ask_return(bench, target), "return",
		    target);
}

static uint64_t random_number(uint64_t *state)
{
	return next_random(state) * 0x2545f4914f6cdd1dull >> 11;
}

#endif
