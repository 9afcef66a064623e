/* A simulated CPU's geometry: text, presets, and geometries made from a machine's caches. */
#include "test.h"

#include "valgrind/vsim_geometry.h"
#include "valgrind/vsim_model.h"

#include <errno.h>

static struct vsim_geometry parsed(const char *text)
{
	struct vsim_geometry geometry;
	struct vsim_geometry_error error;
	if (vsim_geometry_parse(text, strlen(text), &geometry, &error))
		fail_msg("%s: line %u: %s", text, error.line, error.message);
	return geometry;
}

static void refused(const char *text, unsigned line, const char *words)
{
	struct vsim_geometry geometry;
	struct vsim_geometry_error error;
	assert_int_equal(vsim_geometry_parse(text, strlen(text), &geometry, &error), -EINVAL);
	if (error.line != line || !strstr(error.message, words))
		fail_msg("%s: line %u: %s", text, error.line, error.message);
}

static void same_geometry(const struct vsim_geometry *a, const struct vsim_geometry *b)
{
	assert_memory_equal(a, b, sizeof(*a));
}

static void presets_are_sound_and_survive_their_text(void **state)
{
	(void)state;
	size_t count = 0;
	for (const char *name; (name = vsim_geometry_preset_name(count)); count++) {
		const struct vsim_geometry *preset = vsim_geometry_preset(name);
		char text[VSIM_GEOMETRY_TEXT], again[VSIM_GEOMETRY_TEXT], line[128];
		assert_string_equal(preset->name, name);
		assert_null(vsim_geometry_problem(preset));
		assert_in_range(vsim_model_bytes(preset), 1, VSIM_MODEL_BYTES_MAX);
		assert_true(vsim_geometry_format(preset, text, sizeof(text)) < sizeof(text));
		struct vsim_geometry back = parsed(text);
		same_geometry(&back, preset);
		/* The preset as `base` gives the preset; only its name must be given again. */
		snprintf(line, sizeof(line), "base = %s\nname = %s", name, name);
		back = parsed(line);
		same_geometry(&back, preset);
		vsim_geometry_format(&back, again, sizeof(again));
		assert_string_equal(again, text);
	}
	assert_true(count >= 6);
	assert_null(vsim_geometry_preset("pentium"));
}

static void a_file_changes_what_it_says_and_no_more(void **state)
{
	(void)state;
	struct vsim_geometry geometry = parsed(
		"# mine\r\n\n base=skylake # as before\nl1d = 48K\t12-way\n  stlb = none\n"
		"name = my own  \ncost-walk = 12.5\ncost-stlb = 0.05\ndtlb = 64 64\n");
	struct vsim_geometry expected = *vsim_geometry_preset("skylake");
	memset(expected.name, 0, sizeof(expected.name));
	strcpy(expected.name, "my own");
	expected.l1d = (struct vsim_cache_geometry){ 64, 12 };
	expected.stlb = (struct vsim_cache_geometry){ 0 };
	expected.dtlb = (struct vsim_cache_geometry){ 1, 64 };
	expected.cost_walk = 1250;
	expected.cost_stlb = 5;
	same_geometry(&geometry, &expected);

	geometry = parsed("");
	assert_string_equal(geometry.name, "custom");
	assert_int_equal(geometry.l2.sets, vsim_geometry_preset("generic")->l2.sets);
}

/* In any order: sizes are bytes, so another line size makes other sets. */
static void sizes_stay_when_lines_change(void **state)
{
	(void)state;
	struct vsim_geometry a = parsed("line = 128\nl1d = 64K 4-way"),
			     b = parsed("l1d = 64K 4-way\nline = 128");
	same_geometry(&a, &b);
	assert_int_equal(a.l1d.sets, 128);
	assert_int_equal(a.l1i.sets, 32);
	assert_int_equal(a.l2.sets, 512);
	assert_int_equal(a.stlb.sets, vsim_geometry_preset("generic")->stlb.sets);
}

static void errors_name_the_line_and_what_is_allowed(void **state)
{
	(void)state;
	refused("l3 = 1M 4-way", 1, "l1d l1i l2 llc");
	refused("\n\nnonsense", 3, "key = value");
	refused("base = i386", 1, "one of generic, skylake");
	refused("mhz = 1\nbase = zen3", 2, "before");
	refused("mhz = 1\nmhz = 1", 2, "twice, on line 1");
	refused("l1d = 32K", 1, "32K 8-way");
	refused("l1d = 32K 65-way", 1, "at most 64");
	refused("l1d = 32K 8-wayward", 1, "32K 8-way");
	refused("l1d = 0 8", 1, "32K 8-way");
	refused("l1d = none", 1, "can't be left out");
	refused("\nl1d = 33K 8-way", 2, "33792 bytes in 8 ways");
	refused("dtlb = 512 4-way", 1, "256 entries");
	refused("stlb = 1500 12-way", 1, "power of two");
	refused("l2 = 1023M 16-way", 1, "power of two");
	refused("llc = 1024M 64-way", 1, "4194304 lines");
	refused("llc = 64M 1-way", 1, "524288 sets");
	refused("l1d = 99999999999999999999K 8-way", 1, "32K 8-way");
	refused("line = 8", 1, "16 to 256");
	refused("line = 0", 1, "16 to 256");
	refused("line = 96", 1, "16 to 256");
	refused("line = sixty", 1, "a number of bytes");
	refused("page = 1K", 1, "4K to 2M");
	refused("mhz = 0", 1, "1 to 100000");
	refused("mhz = 3.5", 1, "takes a number");
	refused("return-stack = 12", 1, "power of two");
	refused("history-bits = 24", 1, "4 to 20");
	refused("target-bits = 3", 1, "4 to 16");
	refused("cost-l2 = 1.234", 1, "two decimals");
	refused("cost-l2 = 10001", 1, "0 to 10000");
	refused("cost-l2 = 10000.01", 1, "0 to 10000");
	refused("cost-l2 = .5", 1, "cycles");
	refused("cost-l2 = 1.", 1, "cycles");
	refused("cost-l2 = 60", 0, "must not fall");
	refused("cost-instruction = 0", 1, "time would stand still");
	refused("name =", 1, "1 to 63");
	refused("name = 0123456789012345678901234567890123456789012345678901234567890123", 1,
		"1 to 63");
	refused("name = \033[31mred", 1, "printable");
}

static void text_that_has_no_room_is_cut_and_measured(void **state)
{
	(void)state;
	char text[VSIM_GEOMETRY_TEXT], cut[40];
	size_t length = vsim_geometry_format(vsim_geometry_preset("zen3"), text, sizeof(text));
	assert_int_equal(strlen(text), length);
	assert_int_equal(vsim_geometry_format(vsim_geometry_preset("zen3"), cut, sizeof(cut)),
			 length);
	assert_memory_equal(cut, text, sizeof(cut) - 1);
	assert_int_equal(cut[sizeof(cut) - 1], 0);
	assert_int_equal(vsim_geometry_format(vsim_geometry_preset("zen3"), NULL, 0), length);
	/* The longest possible text. */
	struct vsim_geometry geometry = *vsim_geometry_preset("generic");
	memset(geometry.name, 'm', VSIM_CPU_NAME - 1);
	geometry.cost_branch_miss = geometry.cost_l2 = geometry.cost_llc = geometry.cost_memory =
		VSIM_COST_MAX;
	geometry.cost_instruction = geometry.cost_stlb = geometry.cost_walk = VSIM_COST_MAX;
	geometry.mhz = 100000;
	assert_in_range(vsim_geometry_format(&geometry, text, sizeof(text)), 1, sizeof(text) - 64);
}

/* --- A machine's caches --------------------------------------------------- */

static struct vsim_geometry machine(const struct vsim_cache_described *caches, size_t count,
				    int as_they_are)
{
	struct vsim_geometry geometry;
	assert_int_equal(vsim_geometry_of_caches(caches, count, NULL, &geometry), as_they_are);
	assert_string_equal(geometry.name, "this machine");
	if (vsim_geometry_problem(&geometry))
		fail_msg("%s", vsim_geometry_problem(&geometry));
	return geometry;
}

static uint64_t bytes(const struct vsim_geometry *geometry, const struct vsim_cache_geometry *cache)
{
	return (uint64_t)cache->sets * cache->ways * geometry->line_bytes;
}

static void a_machine_is_taken_as_it_is_described(void **state)
{
	(void)state;
	const struct vsim_cache_described caches[] = { { 1, 'D', 48 << 10, 12, 64 },
						       { 1, 'I', 32 << 10, 8, 64 },
						       { 2, 'U', 2 << 20, 16, 64 },
						       { 3, 'U', 32 << 20, 16, 64 } };
	struct vsim_geometry geometry = machine(caches, 4, 4),
			     generic = *vsim_geometry_preset("generic");
	assert_int_equal(geometry.l1d.sets, 64);
	assert_int_equal(geometry.l1d.ways, 12);
	assert_int_equal(bytes(&geometry, &geometry.l2), 2 << 20);
	assert_int_equal(bytes(&geometry, &geometry.llc), 32 << 20);
	assert_memory_equal(&geometry.dtlb, &generic.dtlb, sizeof(generic.dtlb));
	/* Two levels: the second one is the last. */
	geometry = machine(caches, 3, 3);
	assert_int_equal(geometry.l2.ways, 0);
	assert_int_equal(bytes(&geometry, &geometry.llc), 2 << 20);
	/* Without a description, the base's caches stay. */
	geometry = machine(NULL, 0, 0);
	assert_memory_equal(&geometry.l1d, &generic.l1d, sizeof(generic.l1d));
	assert_memory_equal(&geometry.llc, &generic.llc, sizeof(generic.llc));
}

/* Slices with 11 and 20 ways, an eDRAM, a virtual machine that hides the ways: the size stays about
 * the same. */
static void caches_that_the_model_can_t_have_are_rounded(void **state)
{
	(void)state;
	const struct vsim_cache_described odd[] = {
		{ 1, 'D', 33 << 10, 8, 64 },   { 3, 'U', 36608 << 10, 11, 64 },
		{ 3, 'U', 28 << 20, 20, 64 },  { 3, 'U', 54 << 20, 12, 64 },
		{ 4, 'U', 128 << 20, 16, 64 }, { 3, 'U', 16 << 20, 0, 64 },
		{ 2, 'U', 256 << 20, 1, 64 },  { 1, 'D', 1 << 20, 64, 64 }
	};
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct vsim_geometry geometry;
		vsim_geometry_of_caches(&odd[i], 1, NULL, &geometry);
		assert_null(vsim_geometry_problem(&geometry));
		uint64_t size = bytes(&geometry, odd[i].level == 1 ? &geometry.l1d : &geometry.llc);
		assert_in_range(size, odd[i].size_bytes * 94 / 100, odd[i].size_bytes * 106 / 100);
	}
}

static void no_description_breaks_it(void **state)
{
	(void)state;
	const uint64_t sizes[] = { 0, 1, 63, 64, 65, 4096, 12345678, 1ull << 40, UINT64_MAX };
	const unsigned ways[] = { 0, 1, 3, 64, 65, 1000000, UINT32_MAX },
		       lines[] = { 0, 1, 16, 48, 64, 256, 512, 1u << 31 };
	for (size_t i = 0; i < 9 * 7 * 8; i++)
		for (unsigned level = 0; level < 5; level++) {
			const struct vsim_cache_described caches[] = {
				{ level, "DIUX"[i % 4], sizes[i % 9], ways[i / 9 % 7],
				  lines[i / 63] },
				{ 1, 'U', sizes[(i + 4) % 9], ways[i / 9 % 7], lines[i / 63] },
			};
			struct vsim_geometry geometry;
			vsim_geometry_of_caches(caches, 2, NULL, &geometry);
			if (vsim_geometry_problem(&geometry))
				fail_msg("%zu, level %u: %s", i, level,
					 vsim_geometry_problem(&geometry));
			assert_in_range(vsim_model_bytes(&geometry), 1, VSIM_MODEL_BYTES_MAX);
		}
}

static void the_largest_that_can_be_said_fits_the_model_s_memory(void **state)
{
	(void)state;
	for (unsigned ways = 1; ways <= VSIM_WAYS_MAX; ways++) {
		unsigned sets = VSIM_SETS_MAX, first = VSIM_FIRST_SETS_MAX, second = VSIM_STLB_MAX;
		struct vsim_geometry geometry = *vsim_geometry_preset("generic");
		while (sets * ways > VSIM_LINES_MAX)
			sets /= 2;
		while (second * ways > VSIM_STLB_MAX)
			second /= 2;
		geometry.l2 = geometry.llc = (struct vsim_cache_geometry){ sets, ways };
		geometry.l1d = geometry.l1i = (struct vsim_cache_geometry){ first, ways };
		geometry.stlb = (struct vsim_cache_geometry){ second, ways };
		geometry.history_bits = 20;
		geometry.target_bits = 16;
		assert_null(vsim_geometry_problem(&geometry));
		assert_in_range(vsim_model_bytes(&geometry), 1, VSIM_MODEL_BYTES_MAX);
	}
}

/* est-cycles: an access costs what its outermost level costs, whichever levels exist. */
static void weights_add_up_to_an_access_s_cost(void **state)
{
	(void)state;
	uint32_t weight[VSIM_KINDS];
	struct vsim_geometry geometry = *vsim_geometry_preset("generic");
	vsim_model_weights(&geometry, weight);
	assert_int_equal(weight[VSIM_L2_LOADS] + weight[VSIM_LLC_LOADS] +
				 weight[VSIM_LLC_LOAD_MISSES],
			 geometry.cost_memory);
	assert_int_equal(weight[VSIM_L2_LOADS] + weight[VSIM_LLC_LOADS], geometry.cost_llc);
	assert_int_equal(weight[VSIM_DTLB_LOAD_MISSES] + weight[VSIM_DTLB_LOAD_WALKS],
			 geometry.cost_walk);
	assert_int_equal(weight[VSIM_LLC_STORE_MISSES], weight[VSIM_LLC_LOAD_MISSES] / 4);
	assert_int_equal(weight[VSIM_EST_CYCLES], 0);
	geometry.llc.ways = 0;
	vsim_model_weights(&geometry, weight);
	assert_int_equal(weight[VSIM_L2_LOADS] + weight[VSIM_L2_LOAD_MISSES], geometry.cost_memory);
	assert_int_equal(weight[VSIM_LLC_LOADS] | weight[VSIM_LLC_LOAD_MISSES], 0);
	geometry.l2.ways = 0;
	vsim_model_weights(&geometry, weight);
	assert_int_equal(weight[VSIM_L1D_LOAD_MISSES], geometry.cost_memory);
	assert_int_equal(weight[VSIM_L1I_MISSES], geometry.cost_memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(presets_are_sound_and_survive_their_text),
		cmocka_unit_test(a_file_changes_what_it_says_and_no_more),
		cmocka_unit_test(sizes_stay_when_lines_change),
		cmocka_unit_test(errors_name_the_line_and_what_is_allowed),
		cmocka_unit_test(text_that_has_no_room_is_cut_and_measured),
		cmocka_unit_test(a_machine_is_taken_as_it_is_described),
		cmocka_unit_test(caches_that_the_model_can_t_have_are_rounded),
		cmocka_unit_test(no_description_breaks_it),
		cmocka_unit_test(the_largest_that_can_be_said_fits_the_model_s_memory),
		cmocka_unit_test(weights_add_up_to_an_access_s_cost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
