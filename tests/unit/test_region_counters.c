/* Regions with hardware counters that are shared, missing or unreadable.  The groups of this program
 * take the place of libtally's own: the dynamic linker finds them first.  So the counts are known. */
#include "test.h"

#include <tally/group.h>
#include <tally/region.h>

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the counters ------------------------------------------------------------ */

static struct {
	uint64_t cycles, instructions, enabled_ns, running_ns;
	bool is_unreadable;
	bool is_interrupted; /* by a signal's handler, once */
} counters;

struct tally_group {
	int unused;
};

struct tally_group *tally_group_open(const char *events, char *error, size_t error_size)
{
	static struct tally_group group;
	if (!strcmp(events, "cycles,instructions"))
		return &group;
	if (error)
		snprintf(error, error_size, "no counter is left");
	errno = ENOENT;
	return NULL;
}

size_t tally_group_size(const struct tally_group *group)
{
	(void)group;
	return 2;
}

const char *tally_group_name(const struct tally_group *group, size_t index)
{
	(void)group;
	return index ? "instructions" : "cycles";
}

long tally_group_read(struct tally_group *group, struct tally_count *counts, size_t size)
{
	(void)group;
	if (counters.is_interrupted) {
		counters.is_interrupted = false;
		tally_region_begin("handler");
		tally_region_end("handler");
	}
	if (counters.is_unreadable || size < 2)
		return -1;
	counts[0] = (struct tally_count){ counters.cycles, counters.cycles, counters.enabled_ns,
					  counters.running_ns };
	counts[1] = counts[0];
	counts[1].value = counts[1].raw = counters.instructions;
	return 2;
}

void tally_group_close(struct tally_group *group)
{
	(void)group;
}

static void count(uint64_t cycles, uint64_t instructions, uint64_t enabled_ns, uint64_t running_ns)
{
	counters.cycles += cycles;
	counters.instructions += instructions;
	counters.enabled_ns += enabled_ns;
	counters.running_ns += running_ns;
}

/* ---- tests ------------------------------------------------------------------- */

static struct tally_region_figures figures_of(const char *region, const char *event)
{
	struct tally_region_figures figures;
	assert_int_equal(tally_region_read(region, event, &figures, sizeof(figures)), 0);
	return figures;
}

/* Returns the report's lines from "\nREGION: " on. */
static const char *report_of(const char *region)
{
	static char text[1 << 16];
	char start[64];
	int fd = memfd_create("report", 0);
	assert_int_equal(tally_region_report(fd, "table"), 0);
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(length > 0);
	close(fd);
	text[length] = '\0';
	snprintf(start, sizeof(start), "\n%s: ", region);
	char *found = strstr(text, start);
	assert_non_null(found);
	char *end = strstr(found + 1, "\n\n");
	if (end)
		*end = '\0';
	return found;
}

static void counters_of_the_whole_time_have_ratios(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 100; i++) {
		TALLY_REGION("whole");
		count(1000 * i, 2500 * i, 500, 500);
	}
	struct tally_region_figures cycles = figures_of("whole", "cycles");
	assert_int_equal(cycles.total, 5050000);
	assert_int_equal(cycles.max, 100000);
	assert_int_equal(cycles.scaled, 0);
	assert_true(cycles.share == 1);
	assert_true(cycles.mean == 50500);
	assert_true(cycles.sigma > 29011.4 && cycles.sigma < 29011.6); /* of 1,000 … 100,000 */
	assert_true(cycles.p50 >= 50000 - 50000 / 64 && cycles.p50 <= 50000 + 50000 / 64);
	assert_true(cycles.p99 >= 99000 - 99000 / 64 && cycles.p99 <= 99000 + 99000 / 64);
	assert_non_null(strstr(report_of("whole"), "2.50 insn per cycle"));
}

static void shared_counters_are_scaled_and_marked_and_have_no_ratio(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		TALLY_REGION("shared");
		count(1000, 2500, 500, i ? 500 : 250);
	}
	struct tally_region_figures cycles = figures_of("shared", "cycles");
	assert_int_equal(cycles.total, 3000);
	assert_int_equal(cycles.measured, 2);
	assert_int_equal(cycles.scaled, 1);
	assert_true(cycles.share == 0.75);
	const char *report = report_of("shared");
	assert_null(strstr(report, "insn per cycle"));
	assert_non_null(strstr(report, "cycles            ~"));
	assert_non_null(strstr(report, "# ~ scaled: counted 75% of the time, no ratios"));
}

static void a_call_without_counters_has_no_count(void **state)
{
	(void)state;
	tally_region_begin("never");
	count(0, 0, 500, 0);
	tally_region_end("never");
	assert_int_equal(figures_of("never", "cycles").measured, 0);
	assert_int_equal(figures_of("never", "wall").measured, 1);
	assert_non_null(strstr(report_of("never"), "<not counted>"));
	tally_region_begin("partly");
	count(1000, 2500, 500, 500);
	tally_region_end("partly");
	counters.is_unreadable = true;
	tally_region_begin("partly");
	counters.is_unreadable = false;
	count(1000, 2500, 500, 500);
	tally_region_end("partly");
	assert_int_equal(figures_of("partly", "cycles").total, 1000);
	const char *report = report_of("partly");
	assert_non_null(strstr(report, "# in 1 of 2 calls"));
	assert_null(strstr(report, "insn per cycle"));
}

static void self_of_events_is_without_the_regions_inside(void **state)
{
	(void)state;
	tally_region_begin("outer");
	count(100, 50, 10, 10);
	tally_region_begin("inner");
	count(700, 50, 10, 10);
	tally_region_end("inner");
	tally_region_begin("outer");
	count(11, 50, 10, 10);
	tally_region_end("outer");
	tally_region_end("outer");
	assert_int_equal(figures_of("outer", "cycles").total, 811);
	assert_int_equal(figures_of("outer", "cycles").self, 111);
	assert_int_equal(figures_of("inner", "cycles").self, 700);
}

static void a_handler_that_interrupts_begin_or_end_is_ignored(void **state)
{
	struct tally_region_figures figures;
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		counters.is_interrupted = !i;
		tally_region_begin("interrupted");
		counters.is_interrupted = i;
		tally_region_end("interrupted");
		assert_false(counters.is_interrupted);
	}
	assert_int_equal(figures_of("interrupted", NULL).calls, 2);
	assert_int_equal(tally_region_read("handler", NULL, &figures, sizeof(figures)), -1);
	int fd = memfd_create("report", 0);
	char text[1 << 16] = "";
	assert_int_equal(tally_region_report(fd, "json"), 0);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	close(fd);
	assert_non_null(strstr(text, "\"ignored_in_handlers\": 4"));
}

static void a_missing_group_has_its_reason(void **state)
{
	(void)state;
	assert_string_equal(tally_region_missing(), "branches,branch-misses: no counter is left");
	assert_string_equal(tally_region_event(2), "instructions");
	assert_null(tally_region_event(3));
}

int main(void)
{
	const struct tally_region_options options = {
		sizeof(options), .events = "{cycles,instructions},{branches,branch-misses}"
	};
	unsetenv("TALLY_EVENTS");
	unsetenv("TALLY_REPORT");
	unsetenv("TALLY_OVERHEAD");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_of_the_whole_time_have_ratios),
		cmocka_unit_test(shared_counters_are_scaled_and_marked_and_have_no_ratio),
		cmocka_unit_test(a_call_without_counters_has_no_count),
		cmocka_unit_test(self_of_events_is_without_the_regions_inside),
		cmocka_unit_test(a_handler_that_interrupts_begin_or_end_is_ignored),
		cmocka_unit_test(a_missing_group_has_its_reason),
	};
	if (tally_region_configure(&options))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
