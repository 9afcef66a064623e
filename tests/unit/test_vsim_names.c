/* The simulated PMU's events by name, and the configs of generic events. */
#include "tally/perf_event.h"
#include "valgrind/vsim_names.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void each_name_is_of_a_valid_config_and_found_again(void **state)
{
	(void)state;
	uint64_t seen = 0;
	for (const struct vsim_event_name *row = vsim_event_names; row->name; row++) {
		assert_true(vsim_config_is_valid(row->config));
		assert_ptr_equal(vsim_event_by_name(row->name), row);
		assert_int_equal(vsim_event_by_config(row->config)->config, row->config);
		assert_non_null(row->text);
		seen |= row->config;
	}
	assert_int_equal(seen, (1ull << VSIM_KINDS) - 1); /* each kind has a name */
	assert_null(vsim_event_by_name("instruction"));
	assert_null(vsim_event_by_name("instructionss"));
	assert_null(vsim_event_by_name("cycles"));
	assert_string_equal(vsim_event_by_config(1ull << VSIM_BRANCHES)->name, "branches");
}

static void configs_of_nothing_are_refused(void **state)
{
	(void)state;
	assert_false(vsim_config_is_valid(0));
	assert_false(vsim_config_is_valid(1ull << VSIM_KINDS));
	assert_false(vsim_config_is_valid(1ull << VSIM_EST_CYCLES | 1));
	assert_true(vsim_config_is_valid((1ull << VSIM_EST_CYCLES) - 1));
}

static void the_least_certain_kind_says_how_good_a_figure_is(void **state)
{
	(void)state;
	assert_int_equal(vsim_config_quality(1ull << VSIM_STORES | 1ull << VSIM_LOADS), VSIM_EXACT);
	assert_int_equal(vsim_config_quality(1ull << VSIM_LOADS | 1ull << VSIM_L1D_LOAD_MISSES),
			 VSIM_MODEL);
	assert_int_equal(vsim_config_quality(1ull << VSIM_EST_CYCLES), VSIM_ESTIMATE);
	assert_string_equal(vsim_quality_name(VSIM_MODEL), "model");
}

static void generic_events_have_the_config_of_their_name(void **state)
{
	(void)state;
	static const struct { uint32_t type; uint64_t generic; const char *name;
	} rows[] = {
		{ TALLY_TYPE_HARDWARE, TALLY_HW_INSTRUCTIONS, "instructions" },
		{ TALLY_TYPE_HARDWARE, TALLY_HW_CACHE_REFERENCES, "cache-references" },
		{ TALLY_TYPE_HARDWARE, TALLY_HW_CACHE_MISSES, "cache-misses" },
		{ TALLY_TYPE_HARDWARE, TALLY_HW_BRANCH_INSTRUCTIONS, "branch-instructions" },
		{ TALLY_TYPE_HARDWARE, TALLY_HW_BRANCH_MISSES, "branch-misses" },
		{ TALLY_TYPE_HW_CACHE, 0x000, "L1-dcache-loads" },
		{ TALLY_TYPE_HW_CACHE, 0x10000, "L1-dcache-load-misses" },
		{ TALLY_TYPE_HW_CACHE, 0x100, "L1-dcache-stores" },
		{ TALLY_TYPE_HW_CACHE, 0x10100, "L1-dcache-store-misses" },
		{ TALLY_TYPE_HW_CACHE, 0x001, "L1-icache-loads" },
		{ TALLY_TYPE_HW_CACHE, 0x10001, "L1-icache-load-misses" },
		{ TALLY_TYPE_HW_CACHE, 0x002, "LLC-loads" },
		{ TALLY_TYPE_HW_CACHE, 0x10102, "LLC-store-misses" },
		{ TALLY_TYPE_HW_CACHE, 0x10003, "dTLB-load-misses" },
		{ TALLY_TYPE_HW_CACHE, 0x10103, "dTLB-store-misses" },
		{ TALLY_TYPE_HW_CACHE, 0x10004, "iTLB-load-misses" },
		{ TALLY_TYPE_HW_CACHE, 0x10005, "branch-load-misses" },
	};
	uint64_t config;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(vsim_generic_config(rows[i].type, rows[i].generic, &config), 0);
		assert_int_equal(config, vsim_event_by_name(rows[i].name)->config);
	}
}

static void what_is_not_simulated_is_refused(void **state)
{
	(void)state;
	uint64_t config;
	assert_int_equal(vsim_generic_config(TALLY_TYPE_HARDWARE, TALLY_HW_CPU_CYCLES, &config),
			 -ENOENT);
	assert_int_equal(vsim_generic_config(TALLY_TYPE_HARDWARE, TALLY_HW_REF_CPU_CYCLES, &config),
			 -ENOENT);
	assert_int_equal(vsim_generic_config(TALLY_TYPE_HARDWARE, TALLY_HW_MAX, &config), -EINVAL);
	/* node */
	assert_int_equal(vsim_generic_config(TALLY_TYPE_HW_CACHE, 0x006, &config), -ENOENT);
	/* prefetches */
	assert_int_equal(vsim_generic_config(TALLY_TYPE_HW_CACHE, 0x200, &config), -ENOENT);
	/* stores to code */
	assert_int_equal(vsim_generic_config(TALLY_TYPE_HW_CACHE, 0x101, &config), -ENOENT);
	assert_int_equal(vsim_generic_config(TALLY_TYPE_HW_CACHE, 0x007, &config), -EINVAL);
	assert_int_equal(vsim_generic_config(TALLY_TYPE_HW_CACHE, 0x300, &config), -EINVAL);
	assert_int_equal(vsim_generic_config(TALLY_TYPE_HW_CACHE, 0x20000, &config), -EINVAL);
	assert_int_equal(vsim_generic_config(TALLY_TYPE_HW_CACHE, 1ull << 32, &config), -EINVAL);
	assert_int_equal(vsim_generic_config(TALLY_TYPE_SOFTWARE, 0, &config), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_name_is_of_a_valid_config_and_found_again),
		cmocka_unit_test(configs_of_nothing_are_refused),
		cmocka_unit_test(the_least_certain_kind_says_how_good_a_figure_is),
		cmocka_unit_test(generic_events_have_the_config_of_their_name),
		cmocka_unit_test(what_is_not_simulated_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
