/* Samples that fade: the sums that `tally top` shows. */
#include "test.h"

#include "report/report.h"
#include "task/task.h"

static struct tally_tasks tasks;
static struct tally_names names;
static struct tally_live_sums sums;

static int set_up(void **state)
{
	(void)state;
	memset(&tasks, 0, sizeof(tasks));
	tally_names_init(&names, &tasks);
	sums = (struct tally_live_sums){ .names = &names };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tally_live_sums_release(&sums);
	tally_names_release(&names);
	tally_tasks_release(&tasks);
	return 0;
}

/* Adds a sample in unmapped memory: "[unknown]", in user mode. */
static void take(uint32_t event, uint32_t tid, uint64_t period)
{
	struct tally_record record = { .header = { .type = TALLY_RECORD_SAMPLE,
						   .misc = TALLY_MISC_USER } };
	record.sample.pid = 10;
	record.sample.tid = tid;
	record.sample.ip = 0x1000;
	record.sample.period = period;
	assert_int_equal(tally_live_sums_add(&sums, event, false, &record), 0);
}

static struct tally_report report_by(enum tally_sort_key key, double percent_min, uint32_t event)
{
	struct tally_report_options options = { .by_self = true,
						.percent_min = percent_min,
						.event = event };
	struct tally_report report;
	options.by[key] = true;
	assert_int_equal(tally_live_sums_report(&sums, &options, &report), 0);
	return report;
}

static void shares_are_of_what_weighs(void **state)
{
	(void)state;
	take(0, 11, 30);
	take(0, 12, 50);
	take(0, 11, 40);
	take(1, 13, 1000);
	struct tally_report report = report_by(TALLY_SORT_TID, 0, 0);
	assert_int_equal(report.period, 120);
	assert_int_equal(report.samples, 3);
	assert_int_equal(report.threads, 2);
	assert_int_equal(report.entries.count, 2);
	assert_int_equal(report.entries.items[0].key[TALLY_SORT_TID], 11);
	assert_int_equal(report.entries.items[0].self, 70);
	assert_int_equal(report.entries.items[1].self_samples, 1);
	tally_report_release(&report);
	report = report_by(TALLY_SORT_SYMBOL, 0, 0); /* one function */
	assert_int_equal(report.entries.count, 1);
	assert_int_equal(report.entries.items[0].self, 120);
	tally_report_release(&report);
	report = report_by(TALLY_SORT_TID, 0, 1);
	assert_int_equal(report.period, 1000);
	tally_report_release(&report);
}

static void what_is_old_fades_and_is_forgotten(void **state)
{
	(void)state;
	take(0, 11, 64);
	assert_int_equal(tally_live_sums_decay(&sums, 0.5), 0);
	take(0, 12, 64);
	struct tally_report report = report_by(TALLY_SORT_TID, 0, 0);
	assert_int_equal(report.entries.items[0].key[TALLY_SORT_TID], 12);
	assert_int_equal(report.entries.items[1].self, 32);
	tally_report_release(&report);
	take(0, 11, 64); /* found again after the index was rebuilt */
	assert_int_equal(sums.sums.count, 2);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(tally_live_sums_decay(&sums, 0.5), 0);
	assert_int_equal(sums.sums.count, 0);
	report = report_by(TALLY_SORT_TID, 0, 0);
	assert_int_equal(report.entries.count, 0);
	assert_int_equal(report.period, 0);
	tally_report_release(&report);
}

static void what_is_light_is_counted_alone(void **state)
{
	(void)state;
	take(0, 11, 99);
	take(0, 12, 1);
	struct tally_report report = report_by(TALLY_SORT_TID, 2, 0);
	assert_int_equal(report.entries.count, 1);
	assert_int_equal(report.hidden, 1);
	assert_int_equal(report.period, 100);
	tally_report_release(&report);
}

static void many_threads_are_told_apart(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 2; round++)
		for (uint32_t tid = 0; tid < 5000; tid++)
			take(0, tid, tid + 1);
	assert_int_equal(sums.sums.count, 5000);
	struct tally_report report = report_by(TALLY_SORT_TID, 0, 0);
	assert_int_equal(report.entries.count, 5000);
	assert_int_equal(report.entries.items[0].self, 10000);
	assert_int_equal(report.entries.items[4999].self, 2);
	tally_report_release(&report);
}

/* Adds names from the kernel's records: f1 … f3. */
static void name_functions(void)
{
	for (uint64_t n = 1; n <= 3; n++) {
		char name[8];
		snprintf(name, sizeof(name), "f%u", (unsigned)n);
		struct tally_record record = { .header = { .type = TALLY_RECORD_KSYMBOL,
							   .misc = TALLY_MISC_KERNEL } };
		record.ksymbol.address = 0xffffffff81000000 + 0x1000 * n;
		record.ksymbol.length = 0x1000;
		record.ksymbol.type = 1;
		record.ksymbol.name = name;
		assert_int_equal(tally_tasks_record(&tasks, &record), 0);
	}
}

static void take_stack(uint64_t period, const char *functions)
{
	struct tally_record record = { .header = { .type = TALLY_RECORD_SAMPLE,
						   .misc = TALLY_MISC_KERNEL } };
	uint64_t chain[8] = { TALLY_CONTEXT_KERNEL };
	size_t count = 1;
	for (; *functions; functions++)
		chain[count++] = 0xffffffff81000010 + 0x1000 * (uint64_t)(*functions - '0');
	record.sample.pid = record.sample.tid = 10;
	record.sample.ip = chain[1];
	record.sample.period = period;
	record.sample.chain = chain;
	record.sample.chain_length = count;
	assert_int_equal(tally_live_sums_add(&sums, 0, false, &record), 0);
}

static const char *name_of(uint32_t function)
{
	return tally_names_text(&names, function);
}

static struct tally_report tree_report(enum tally_tree_order order)
{
	struct tally_report_options options = { .children = true, .tree = order };
	struct tally_report report;
	options.by[TALLY_SORT_SYMBOL] = true;
	assert_int_equal(tally_live_sums_report(&sums, &options, &report), 0);
	return report;
}

static int percent(const struct tally_report *report, uint64_t weight)
{
	return (int)(100 * (double)weight / (double)report->period + 0.5);
}

/* f1 ← f2 ← f3: 60; f1 ← f3: 20; f2 ← f2 ← f3: 20. */
static void stacks_make_totals_and_trees(void **state)
{
	(void)state;
	sums.with_stacks = true;
	name_functions();
	for (unsigned i = 0; i < 6; i++)
		take_stack(10, "123");
	take_stack(20, "13");
	take_stack(20, "223");
	assert_int_equal(sums.sums.count, 3);
	struct tally_report report = tree_report(TALLY_TREE_CALLEE);
	assert_int_equal(report.entries.count, 3);
	const struct tally_report_entry *f3 = &report.entries.items[0],
					*f1 = &report.entries.items[1], *f2 = f1 + 1;
	if (!strcmp(name_of(f1->function), "f2")) {
		f2 = f1;
		f1 = f2 + 1;
	}
	assert_string_equal(name_of(f3->function), "f3");
	assert_int_equal(percent(&report, f3->total), 100);
	assert_int_equal(percent(&report, f3->self), 0);
	assert_null(f3->tree);
	assert_int_equal(percent(&report, f1->self), 80);
	assert_int_equal(percent(&report, f2->total), 80); /* recursion counts once */
	assert_string_equal(name_of(f1->tree->function), "f2");
	assert_int_equal(percent(&report, f1->tree->weight), 60);
	assert_string_equal(name_of(f1->tree->child->function), "f3");
	assert_string_equal(name_of(f1->tree->sibling->function), "f3");
	assert_int_equal(percent(&report, f1->tree->sibling->weight), 20);
	tally_report_release(&report);
	for (unsigned i = 0; i < 4; i++) /* faded samples keep their shares */
		assert_int_equal(tally_live_sums_decay(&sums, 0.5), 0);
	take_stack(1, "3");
	report = tree_report(TALLY_TREE_CALLER);
	f3 = &report.entries.items[0];
	assert_int_equal(percent(&report, f3->tree->weight), 69 /* 5 of 7.25 */);
	assert_string_equal(name_of(f3->tree->function), "f2");
	assert_string_equal(name_of(f3->tree->child->function), "f1");
	assert_string_equal(name_of(f3->tree->child->sibling->function), "f2");
	tally_report_release(&report);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(tally_live_sums_decay(&sums, 0.5), 0);
	assert_int_equal(sums.frames.count, 0);
}

/* With two frames, f1 ← f2 ← f3 and f1 ← f2 ← f1 are the same stack. */
static void stacks_are_no_deeper_than_was_asked_for(void **state)
{
	(void)state;
	sums.with_stacks = true;
	sums.frames_max = 2;
	name_functions();
	take_stack(10, "123");
	take_stack(10, "121");
	take_stack(10, "1");
	assert_int_equal(sums.sums.count, 2);
	assert_int_equal(sums.sums.items[0].count, 2);
	struct tally_report report = tree_report(TALLY_TREE_CALLEE);
	assert_int_equal(report.entries.count, 2);
	assert_string_equal(name_of(report.entries.items[0].tree->function), "f2");
	assert_null(report.entries.items[0].tree->child);
	tally_report_release(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(shares_are_of_what_weighs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_old_fades_and_is_forgotten, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_light_is_counted_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_threads_are_told_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stacks_make_totals_and_trees, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stacks_are_no_deeper_than_was_asked_for, set_up,
						tear_down),
	};
	return cmocka_run_group_tests_name("live_sums", tests, NULL, NULL);
}
