/* The simulated CPU on patterns whose misses were computed by hand; each access is also compared
 * with the textbook model.  Most run on "skylake": L1 32 KiB in 64 sets of 8, L2 256 KiB in 1024 of
 * 4, LLC 8 MiB in 8192 of 16, lines of 64 bytes; first TLB 16 sets of 4 pages, second 128 of 12. */
#include "vsim_fixture.h"

enum { KIB = 1024, MIB = 1024 * 1024, LINE = 64, PAGE = 4096 };
#define BASE 0x10000000ull

static uint64_t l1_misses(const struct bench *bench)
{
	return bench->count[VSIM_L1D_LOAD_MISSES];
}

static void forget(struct bench *bench)
{
	memset(bench->count, 0, sizeof(bench->count));
}

/* Reads 8 bytes at each `stride` over `bytes` bytes. */
static void walk(struct bench *bench, uint64_t bytes, uint64_t stride)
{
	for (uint64_t at = 0; at < bytes; at += stride)
		data(bench, BASE + at, 8, false);
}

/* Walks over the same bytes a second time, and counts only the second walk. */
static void walk_again(struct bench *bench, uint64_t bytes, uint64_t stride)
{
	walk(bench, bytes, stride);
	forget(bench);
	walk(bench, bytes, stride);
}

static void begin(struct bench *bench, const char *preset)
{
	bench_begin(bench, vsim_geometry_preset(preset));
}

/* --- Caches --------------------------------------------------------------- */

static void a_walk_misses_once_a_line(void **state)
{
	(void)state;
	/* By stride: the accesses that reach a line first.  At 24 bytes, every third line's last
	 * access straddles and fetches the next line, so still one access fetches each line; 1 MiB
	 * / 24 accesses end inside the last line. */
	const struct { uint64_t stride, misses;
	} strides[] = {
		{ 8, MIB / LINE },  { 24, MIB / LINE },   { 64, MIB / LINE },
		{ 128, MIB / 128 }, { 4096, MIB / PAGE },
	};
	for (size_t i = 0; i < sizeof(strides) / sizeof(strides[0]); i++) {
		struct bench bench;
		begin(&bench, "skylake");
		walk(&bench, MIB, strides[i].stride);
		assert_int_equal(l1_misses(&bench), strides[i].misses);
		assert_int_equal(bench.count[VSIM_LLC_LOAD_MISSES], strides[i].misses);
		assert_int_equal(bench.count[VSIM_DTLB_LOAD_WALKS], MIB / PAGE);
		bench_end(&bench);
	}
}

static void what_straddles_misses_once(void **state)
{
	(void)state;
	struct bench bench;
	begin(&bench, "skylake");
	data(&bench, BASE + PAGE - 4, 8, true); /* two pages and two lines, all absent */
	assert_int_equal(bench.count[VSIM_L1D_STORE_MISSES], 1);
	assert_int_equal(bench.count[VSIM_LLC_STORE_MISSES], 1);
	assert_int_equal(bench.count[VSIM_DTLB_STORE_WALKS], 1);
	forget(&bench);
	data(&bench, BASE + PAGE - 8, 8, false);
	data(&bench, BASE + PAGE, 8, false);
	data(&bench, BASE + PAGE - 4, 8, false);
	assert_int_equal(l1_misses(&bench), 0); /* both lines were fetched */
	bench_end(&bench);
}

static void an_array_misses_from_where_it_no_longer_fits(void **state)
{
	(void)state;
	/* Bytes walked repeatedly, and a walk's misses by level.  A set with one line more than
	 * ways always misses: 9 lines with L1's 8 ways, 5 with L2's 4, 17 with LLC's 16.  At twice
	 * the size, all sets do.  LRU and marks both give this, since lines that all miss come to
	 * the ways in turn. */
	const struct { uint64_t bytes, l1, l2, llc; } arrays[] = {
		{ 32 * KIB, 0, 0, 0 },
		{ 32 * KIB + LINE, 9, 0, 0 },
		{ 32 * KIB + 8 * LINE, 9 * 8, 0, 0 },
		{ 64 * KIB, 64 * KIB / LINE, 0, 0 },
		{ 256 * KIB, 256 * KIB / LINE, 0, 0 },
		{ 256 * KIB + LINE, 256 * KIB / LINE + 1, 5, 0 },
		{ 512 * KIB, 512 * KIB / LINE, 512 * KIB / LINE, 0 },
		{ 8 * MIB, 8 * MIB / LINE, 8 * MIB / LINE, 0 },
		{ 8 * MIB + LINE, 8 * MIB / LINE + 1, 8 * MIB / LINE + 1, 17 },
		{ 16 * MIB, 16 * MIB / LINE, 16 * MIB / LINE, 16 * MIB / LINE },
	};
	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
		struct bench bench;
		begin(&bench, "skylake");
		walk_again(&bench, arrays[i].bytes, LINE);
		assert_int_equal(l1_misses(&bench), arrays[i].l1);
		assert_int_equal(bench.count[VSIM_L2_LOADS], arrays[i].l1);
		assert_int_equal(bench.count[VSIM_L2_LOAD_MISSES], arrays[i].l2);
		assert_int_equal(bench.count[VSIM_LLC_LOADS], arrays[i].l2);
		assert_int_equal(bench.count[VSIM_LLC_LOAD_MISSES], arrays[i].llc);
		bench_end(&bench);
	}
}

/* The same in the order of a random cycle, like following pointers. */
static void a_chase_misses_beyond_each_level(void **state)
{
	(void)state;
	const struct { uint32_t lines; bool l1, l2, llc; } chases[] = {
		{ 32 * KIB / LINE, false, false, false },
		{ 256 * KIB / LINE, true, false, false },
		{ 8 * MIB / LINE, true, true, false },
		{ 16 * MIB / LINE, true, true, true },
	};
	for (size_t i = 0; i < sizeof(chases) / sizeof(chases[0]); i++) {
		uint32_t lines = chases[i].lines, *order = malloc(lines * sizeof(*order));
		uint64_t random = 7;
		struct bench bench;
		begin(&bench, "skylake");
		for (uint32_t at = 0; at < lines; at++) {
			uint32_t other = (uint32_t)(random_number(&random) % (at + 1));
			order[at] = order[other];
			order[other] = at;
		}
		for (int round = 0; round < 2; round++) {
			forget(&bench);
			for (uint32_t at = 0; at < lines; at++)
				data(&bench, BASE + order[at] * (uint64_t)LINE, 8, false);
		}
		assert_int_equal(l1_misses(&bench), chases[i].l1 ? lines : 0);
		assert_int_equal(bench.count[VSIM_L2_LOAD_MISSES], chases[i].l2 ? lines : 0);
		assert_int_equal(bench.count[VSIM_LLC_LOAD_MISSES], chases[i].llc ? lines : 0);
		free(order);
		bench_end(&bench);
	}
}

/* 512 × 512 doubles.  By rows, each line misses once.  By columns, the 512 lines of a column share
 * one set of L1 and 16 of L2, so each access misses both; they fit in 128 sets of LLC, where each
 * line misses once. */
static void columns_miss_at_each_element_and_rows_once_a_line(void **state)
{
	(void)state;
	enum { N = 512, LINES = N * N * 8 / LINE };
	for (int by_columns = 0; by_columns < 2; by_columns++) {
		struct bench bench;
		begin(&bench, "skylake");
		for (uint64_t i = 0; i < N; i++)
			for (uint64_t j = 0; j < N; j++)
				data(&bench, BASE + (by_columns ? j * N + i : i * N + j) * 8, 8,
				     false);
		assert_int_equal(l1_misses(&bench), by_columns ? N * N : LINES);
		assert_int_equal(bench.count[VSIM_L2_LOAD_MISSES], by_columns ? N * N : LINES);
		assert_int_equal(bench.count[VSIM_LLC_LOAD_MISSES], LINES);
		/* A row is a page; the first TLB holds 64, the second 1536. */
		assert_int_equal(bench.count[VSIM_DTLB_LOAD_MISSES], by_columns ? N * N : N);
		assert_int_equal(bench.count[VSIM_DTLB_LOAD_WALKS], N);
		bench_end(&bench);
	}
}

/* "small" has 2 ways in L1, 4 in L2.  With one line more, used by turns, each is evicted before its
 * next use. */
static void lines_of_one_set_push_each_other_out(void **state)
{
	(void)state;
	for (unsigned lines = 1; lines <= 5; lines++) {
		struct bench bench;
		begin(&bench, "small");
		/* the same set of L1 and of L2 (4 ways) */
		const uint64_t way = vsim_geometry_preset("small")->l2.sets * LINE;
		for (int round = 0; round < 100; round++)
			for (unsigned line = 0; line < lines; line++)
				data(&bench, BASE + line * way, 8, true);
		assert_int_equal(bench.count[VSIM_L1D_STORE_MISSES],
				 lines <= 2 ? lines : 100 * lines);
		assert_int_equal(bench.count[VSIM_L2_STORE_MISSES],
				 lines <= 4 ? lines : 100 * lines);
		assert_int_equal(bench.count[VSIM_LLC_STORE_MISSES], lines);
		assert_int_equal(bench.count[VSIM_L1D_LOAD_MISSES] | bench.count[VSIM_L2_LOADS], 0);
		bench_end(&bench);
	}
}

static void pages_miss_from_where_the_tlbs_end(void **state)
{
	(void)state;
	/* Pages walked repeatedly: set 0 of the first TLB has 4 ways, of the second 12.  Each step
	 * also moves by a line, so that lines don't evict each other. */
	const struct { uint64_t pages, misses, walks;
	} reaches[] = {
		{ 64, 0, 0 },      { 65, 5, 0 },       { 128, 128, 0 },
		{ 1536, 1536, 0 }, { 1537, 1537, 13 }, { 3072, 3072, 3072 },
	};
	for (size_t i = 0; i < sizeof(reaches) / sizeof(reaches[0]); i++) {
		struct bench bench;
		begin(&bench, "skylake");
		walk_again(&bench, reaches[i].pages * (PAGE + LINE), PAGE + LINE);
		/* (64 of these steps skip a page.) */
		if (reaches[i].pages <= 64) {
			assert_int_equal(bench.count[VSIM_DTLB_LOAD_MISSES], reaches[i].misses);
			assert_int_equal(l1_misses(&bench), 0);
		}
		bench_end(&bench);
		begin(&bench, "skylake");
		walk_again(&bench, reaches[i].pages * PAGE, PAGE);
		assert_int_equal(bench.count[VSIM_DTLB_LOAD_MISSES], reaches[i].misses);
		assert_int_equal(bench.count[VSIM_DTLB_LOAD_WALKS], reaches[i].walks);
		bench_end(&bench);
	}
}

static void code_has_a_first_level_of_its_own_and_shares_the_others(void **state)
{
	(void)state;
	struct bench bench;
	begin(&bench, "skylake");
	for (uint64_t at = 0; at < 32 * KIB; at += LINE)
		fetch(&bench, BASE + at);
	assert_int_equal(bench.count[VSIM_L1I_MISSES], 32 * KIB / LINE);
	assert_int_equal(bench.count[VSIM_LLC_LOAD_MISSES], 32 * KIB / LINE);
	assert_int_equal(bench.count[VSIM_ITLB_WALKS], 8);
	forget(&bench);
	/* the code, read as data: it is in L2 already, its pages in the second TLB */
	walk(&bench, 32 * KIB, LINE);
	assert_int_equal(l1_misses(&bench), 32 * KIB / LINE);
	assert_int_equal(bench.count[VSIM_L2_LOAD_MISSES], 0);
	assert_int_equal(bench.count[VSIM_DTLB_LOAD_MISSES], 8);
	assert_int_equal(bench.count[VSIM_DTLB_LOAD_WALKS], 0);
	forget(&bench);
	for (uint64_t at = 0; at < 32 * KIB; at += LINE)
		fetch(&bench, BASE + at);
	assert_int_equal(bench.count[VSIM_L1I_MISSES], 0); /* data evicted nothing from it */
	bench_end(&bench);
}

/* --- Branches ------------------------------------------------------------- */

enum { TURNS = 20000 };
#define JUMP 0x401234ull

static uint64_t wrong_guesses(const struct bench *bench)
{
	return bench->count[VSIM_CONDITIONAL_MISSES];
}

/* The first prediction is "not taken"; the second uses the branch's own counter, which was wrong
 * once. */
static void a_branch_that_goes_one_way_is_missed_once_at_most(void **state)
{
	(void)state;
	for (int taken = 0; taken < 2; taken++) {
		struct bench bench;
		begin(&bench, "skylake");
		for (int i = 0; i < TURNS; i++)
			conditional(&bench, JUMP, taken);
		assert_int_equal(wrong_guesses(&bench), taken);
		bench_end(&bench);
	}
}

/* Patterns that fit in the history are learned, and later miss nothing.  A loop longer than the
 * history misses once, at its end. */
static void loops_are_learnt_as_far_as_history_reaches(void **state)
{
	(void)state;
	const struct {
		int period;
		unsigned misses;
	} loops[] = { { 2, 0 }, { 3, 0 }, { 8, 0 }, { 14, 0 }, { 40, 1 }, { 100, 1 } };
	for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
		struct bench bench;
		begin(&bench, "skylake");
		for (int turn = 0; turn < TURNS; turn++)
			conditional(&bench, JUMP, turn % loops[i].period != loops[i].period - 1);
		forget(&bench);
		for (int turn = 0; turn < 50 * loops[i].period; turn++)
			conditional(&bench, JUMP,
				    (TURNS + turn) % loops[i].period != loops[i].period - 1);
		assert_int_equal(wrong_guesses(&bench), 50 * loops[i].misses);
		bench_end(&bench);
	}
}

static void a_coin_is_missed_half_the_time(void **state)
{
	(void)state;
	struct bench bench;
	uint64_t random = 11;
	begin(&bench, "skylake");
	for (int i = 0; i < TURNS; i++)
		conditional(&bench, JUMP, random_number(&random) & 1);
	assert_in_range(wrong_guesses(&bench), TURNS * 47 / 100, TURNS * 53 / 100);
	bench_end(&bench);
}

/* 64 branches by turns, each with a fixed direction: 16 counters are too few for them. */
static void branches_alias_where_counters_are_few(void **state)
{
	(void)state;
	for (int few = 0; few < 2; few++) {
		struct vsim_geometry geometry = *vsim_geometry_preset("skylake");
		struct bench bench;
		if (few)
			geometry.history_bits = 4;
		bench_begin(&bench, &geometry);
		for (unsigned i = 0; i < 2 * TURNS; i++) {
			if (i == TURNS)
				forget(&bench);
			conditional(&bench, JUMP + i % 64 * 16, i % 64 * 0x9e3779b9u >> 31);
		}
		if (few)
			assert_in_range(wrong_guesses(&bench), TURNS / 5, TURNS);
		else
			assert_int_equal(wrong_guesses(&bench), 0);
		bench_end(&bench);
	}
}

static void targets_are_foreseen_where_they_follow_a_pattern(void **state)
{
	(void)state;
	for (unsigned targets = 1; targets <= 4; targets++) {
		struct bench bench;
		begin(&bench, "skylake");
		for (unsigned i = 0; i < TURNS; i++) {
			if (i == TURNS / 2 && targets > 1)
				forget(&bench);
			indirect(&bench, JUMP, 0x500000 + i % targets * 0x40);
		}
		/* one miss: the first time */
		assert_int_equal(bench.count[VSIM_INDIRECT_MISSES], targets == 1);
		bench_end(&bench);
	}
	struct bench bench;
	uint64_t random = 3;
	begin(&bench, "skylake");
	for (unsigned i = 0; i < TURNS; i++)
		indirect(&bench, JUMP, 0x500000 + random_number(&random) % 4 * 0x40);
	assert_in_range(bench.count[VSIM_INDIRECT_MISSES], TURNS * 70 / 100, TURNS * 80 / 100);
	bench_end(&bench);
}

/* skylake's return stack has 16 entries.  Calls deeper than that, from different places, overwrite
 * the outer ones. */
static void returns_are_foreseen_as_deep_as_the_stack_is(void **state)
{
	(void)state;
	for (unsigned depth = 1; depth <= 40; depth++) {
		struct bench bench;
		begin(&bench, "skylake");
		for (int round = 0; round < 100; round++) {
			for (unsigned i = 0; i < depth; i++)
				call(&bench, JUMP + i * 32);
			for (unsigned i = depth; i-- > 0;)
				returns(&bench, JUMP + i * 32);
		}
		assert_int_equal(bench.count[VSIM_RETURN_MISSES],
				 depth > 16 ? 100 * (depth - 16) : 0);
		/* A recursion from one place: each entry of the stack holds that place. */
		forget(&bench);
		for (unsigned i = 0; i < depth; i++)
			call(&bench, JUMP);
		for (unsigned i = 0; i < depth; i++)
			returns(&bench, JUMP);
		assert_int_equal(bench.count[VSIM_RETURN_MISSES], 0);
		bench_end(&bench);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_walk_misses_once_a_line),
		cmocka_unit_test(what_straddles_misses_once),
		cmocka_unit_test(an_array_misses_from_where_it_no_longer_fits),
		cmocka_unit_test(a_chase_misses_beyond_each_level),
		cmocka_unit_test(columns_miss_at_each_element_and_rows_once_a_line),
		cmocka_unit_test(lines_of_one_set_push_each_other_out),
		cmocka_unit_test(pages_miss_from_where_the_tlbs_end),
		cmocka_unit_test(code_has_a_first_level_of_its_own_and_shares_the_others),
		cmocka_unit_test(a_branch_that_goes_one_way_is_missed_once_at_most),
		cmocka_unit_test(loops_are_learnt_as_far_as_history_reaches),
		cmocka_unit_test(a_coin_is_missed_half_the_time),
		cmocka_unit_test(branches_alias_where_counters_are_few),
		cmocka_unit_test(targets_are_foreseen_where_they_follow_a_pattern),
		cmocka_unit_test(returns_are_foreseen_as_deep_as_the_stack_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
