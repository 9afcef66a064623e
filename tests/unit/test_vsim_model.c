/* Compares the simulated CPU with a textbook implementation (vsim_oracle.h), on random and on
 * recorded accesses. */
#include "vsim_fixture.h"

#include "base/buffer.h"

#include <fcntl.h>
#include <zstd.h>

/* --- Against the textbook ------------------------------------------------- */

/* Small enough that each level evicts, in every shape: one set, one way, no L2, no second TLB,
 * large lines, few sets per page. */
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

/* Makes accesses that mostly stay near the last one, and code that continues, jumps, calls and
 * returns. */
static void run_randomly(struct bench *bench, uint64_t seed, unsigned steps)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1, near = 0x7ffff000, code = 0x400000,
		 range = 1ull << (10 + seed % 24);
	for (unsigned i = 0; i < steps; i++) {
		uint64_t dice = random_number(&state), ip = 0x400000 + (dice >> 8 & 0x3f) * 5;
		if (!(dice & 0xff))
			near = random_number(&state) << (dice >> 9 & 7);
		uint64_t address = near + random_number(&state) % range;
		unsigned size = (dice & 0x700) ? 1u << (dice >> 12 & 5)
					       : 1 + (unsigned)(dice >> 12 & 0x1ff);
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
	assert_true(told < accesses); /* otherwise the comparisons were never used */
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
	/* Beyond the end there is no memory: only the first line is touched, and nothing hangs. */
	void *memory = aligned_alloc(64, vsim_model_bytes(&geometry));
	struct vsim_model *model = vsim_model_init(memory, &geometry);
	assert_int_not_equal(vsim_model_data(model, UINT64_MAX - 3, 64, false), 0);
	assert_int_equal(vsim_model_data(model, UINT64_MAX - 3, 4, false), 0);
	free(memory);
}

/* Lines of 64 bytes that are 2^38 bytes apart have the same lower 32 bits, which the first level
 * compares first.  The outer levels of skylake distinguish addresses up to 2^47. */
static void lines_far_apart_are_told_apart(void **state)
{
	(void)state;
	struct bench bench;
	bench_begin(&bench, vsim_geometry_preset("skylake"));
	for (int round = 0; round < 20; round++)
		for (uint64_t far = 0; far < 9; far++)
			data(&bench, 0x12345678 + (far << 38), 4, far & 1);
	/* Nine lines by turns in a set of eight. */
	assert_int_equal(bench.count[VSIM_L1D_LOAD_MISSES] + bench.count[VSIM_L1D_STORE_MISSES],
			 180);
	for (int round = 0; round < 20; round++)
		for (uint64_t far = 0; far < 3; far++)
			data(&bench, 0x40 + (far << 47), 4, false);
	bench_end(&bench);
}

/* --- Recorded accesses ---------------------------------------------------- */

/* 40,000 to 60,000 accesses from the middle of a run, recorded by a Valgrind tool.  Each has a byte
 * (0 load, 1 store, 2 straight run of code, 3 conditional branch, 4 indirect branch, 5 call, 6
 * return); its address less the last one of its sort, zigzag; and its size, outcome, or target less
 * address, zigzag.  Numbers are LEB128; the file is compressed. */
struct recorded {
	const uint8_t *at, *end;
	uint64_t last[7];
};

static uint64_t take_number(struct recorded *recorded)
{
	uint64_t value = 0;
	for (unsigned shift = 0; recorded->at < recorded->end; shift += 7) {
		uint8_t byte = *recorded->at++;
		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			break;
	}
	return value;
}

static uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ -(value & 1);
}

static void replay_access(struct bench *bench, struct recorded *recorded)
{
	unsigned sort = *recorded->at++;
	assert_in_range(sort, 0, 6);
	uint64_t address = recorded->last[sort] += unzigzag(take_number(recorded));
	uint64_t argument = take_number(recorded), line_bytes = bench->geometry.line_bytes;
	switch (sort) {
	case 0:
	case 1: data(bench, address, (unsigned)argument, sort); break;
	case 2:
		for (uint64_t line = address / line_bytes;
		     line <= (address + argument - 1) / line_bytes; line++)
			fetch(bench, line * line_bytes);
		break;
	case 3: conditional(bench, address, argument); break;
	case 4: indirect(bench, address, address + unzigzag(argument)); break;
	case 5: call(bench, address); break;
	default: returns(bench, address + unzigzag(argument)); break;
	}
}

static void replay(const char *name, const struct vsim_geometry *geometry, struct bench *bench)
{
	static uint8_t bytes[1 << 20];
	char path[512];
	struct tally_buffer file = { 0 };
	snprintf(path, sizeof(path), "%s/tests/unit/accesses/%s.zst", getenv("TALLY_SOURCE_ROOT"),
		 name);
	assert_int_equal(tally_buffer_read_file(&file, AT_FDCWD, path, 1 << 20), 0);
	size_t size = ZSTD_decompress(bytes, sizeof(bytes), file.bytes, file.length);
	assert_false(ZSTD_isError(size));
	struct recorded recorded = { bytes, bytes + size, { 0 } };
	bench_begin(bench, geometry);
	while (recorded.at < recorded.end)
		replay_access(bench, &recorded);
	tally_buffer_release(&file);
	bench_end(bench);
}

static const char *const recorded_names[] = { "gzip", "xz", "sqlite", "python", "cc1" };

static void recorded_accesses_count_what_a_textbook_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(recorded_names) / sizeof(recorded_names[0]); i++)
		for (size_t preset = 0; vsim_geometry_preset_name(preset); preset++) {
			struct bench bench;
			replay(recorded_names[i],
			       vsim_geometry_preset(vsim_geometry_preset_name(preset)), &bench);
			/* The comparisons save most calls, although most of these caches are still
			 * empty. */
			if (strcmp(vsim_geometry_preset_name(preset), "small"))
				assert_true(bench.told < bench.accesses / 4);
		}
}

static void odd_shapes_count_recorded_accesses_as_a_textbook_does(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < 7; shape++) {
		struct vsim_geometry geometry = odd_geometry(shape);
		struct bench bench;
		replay(recorded_names[shape % 5], &geometry, &bench);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_model_counts_what_a_textbook_counts),
		cmocka_unit_test(presets_count_what_a_textbook_counts),
		cmocka_unit_test(lines_far_apart_are_told_apart),
		cmocka_unit_test(recorded_accesses_count_what_a_textbook_counts),
		cmocka_unit_test(odd_shapes_count_recorded_accesses_as_a_textbook_does),
		cmocka_unit_test(edges_of_the_address_space_are_no_special_case),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
