#include "test.h"

#include "output/output.h"
#include "output/output_text.h"
#include "profile_fixture.h"
#include "report/report.h"
#include "sort_key_sets.h"

static struct profile_fixture fixture;
static struct tally_profile *profile;

static struct tally_report_options by_symbol(void)
{
	return (struct tally_report_options){ .by = { [TALLY_SORT_SYMBOL] = true },
					      .children = true };
}

static const struct tally_report_entry *entry_named(const struct tally_report *report,
						    const char *name)
{
	for (size_t i = 0; i < report->entries.count; i++)
		if (!strcmp(tally_names_text(&profile->recording->names,
					     report->entries.items[i].function),
			    name))
			return &report->entries.items[i];
	return NULL;
}

static struct tally_report build(const struct tally_report_options *options)
{
	struct tally_report report;
	assert_int_equal(tally_report_build(profile, options, &report), 0);
	return report;
}

static void recursion_counts_once_in_a_total(void **state)
{
	static const struct { const char *name; uint64_t self, total; } expected[] = {
		{ "main", 0, 75 }, { "work", 0, 30 }, { "loop", 5, 45 }, { "leaf", 70, 70 },
	};
	(void)state;
	struct tally_report_options options = by_symbol();
	struct tally_report report = build(&options);
	assert_int_equal(report.period, 75);
	assert_int_equal(report.samples, 4);
	assert_int_equal(report.entries.count, 4);
	for (unsigned i = 0; i < 4; i++) {
		const struct tally_report_entry *entry = entry_named(&report, expected[i].name);
		assert_non_null(entry);
		assert_int_equal(entry->self, expected[i].self);
		assert_int_equal(entry->total, expected[i].total);
	}
	tally_report_release(&report);
}

static void selves_add_up_to_the_event(void **state)
{
	(void)state;
	for (unsigned keys = 1; keys < SORT_KEY_SETS; keys++) {
		struct tally_report_options options = { 0 };
		uint64_t self = 0;
		choose_sort_keys(keys, options.by);
		struct tally_report report = build(&options);
		for (size_t i = 0; i < report.entries.count; i++)
			self += report.entries.items[i].self;
		assert_int_equal(self, 75);
		tally_report_release(&report);
	}
}

static void keys_keep_apart_what_they_name(void **state)
{
	static const struct { enum tally_sort_key key; size_t entries;
	} expected[] = {
		{ TALLY_SORT_COMM, 2 }, { TALLY_SORT_PID, 1 },    { TALLY_SORT_TID, 2 },
		{ TALLY_SORT_CPU, 2 },  { TALLY_SORT_OBJECT, 1 }, { TALLY_SORT_SYMBOL, 2 },
	};
	(void)state;
	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct tally_report_options options = { 0 };
		options.by[expected[i].key] = true;
		struct tally_report report = build(&options);
		assert_int_equal(report.entries.count, expected[i].entries);
		tally_report_release(&report);
	}
}

/* Checks the tree: the children of a branch sum up to at most the branch, the first level to at
 * most the entry. */
static void check_tree(const struct tally_branch_node *first, uint64_t above)
{
	uint64_t sum = 0, before = UINT64_MAX;
	for (const struct tally_branch_node *branch = first; branch; branch = branch->sibling) {
		assert_true(branch->weight <= before);
		before = branch->weight;
		sum += branch->weight;
		check_tree(branch->child, branch->weight);
	}
	assert_true(sum <= above);
}

static const char *branch_name(const struct tally_branch_node *branch)
{
	return tally_names_text(&profile->recording->names, branch->function);
}

static void trees_add_up(void **state)
{
	(void)state;
	struct tally_report_options options = by_symbol();
	for (unsigned children = 0; children < 2; children++)
		for (options.tree = TALLY_TREE_CALLER; options.tree <= TALLY_TREE_CALLEE;
		     options.tree++) {
			options.children = children;
			struct tally_report report = build(&options);
			for (size_t i = 0; i < report.entries.count; i++)
				check_tree(report.entries.items[i].tree,
					   report.entries.items[i].total);
			tally_report_release(&report);
		}
}

static void a_callers_tree_goes_down_and_a_callees_up(void **state)
{
	(void)state;
	struct tally_report_options options = by_symbol();
	options.tree = TALLY_TREE_CALLER;
	struct tally_report report = build(&options);
	const struct tally_branch_node *branch = entry_named(&report, "main")->tree;
	assert_string_equal(branch_name(branch), "loop");
	assert_int_equal(branch->weight, 45);
	assert_string_equal(branch_name(branch->child), "loop");
	assert_int_equal(branch->child->weight, 40);
	assert_string_equal(branch_name(branch->sibling), "work");
	assert_int_equal(branch->sibling->weight, 30);
	assert_string_equal(branch_name(branch->sibling->child), "leaf");
	tally_report_release(&report);

	options.tree = TALLY_TREE_CALLEE;
	report = build(&options);
	branch = entry_named(&report, "leaf")->tree;
	assert_string_equal(branch_name(branch), "loop");
	assert_int_equal(branch->weight, 40);
	assert_string_equal(branch_name(branch->child->child), "main");
	assert_null(entry_named(&report, "main")->tree);
	tally_report_release(&report);
}

static void limits_hide_and_count(void **state)
{
	(void)state;
	struct tally_report_options options = by_symbol();
	options.percent_min = 50;
	struct tally_report report = build(&options);
	assert_int_equal(report.entries.count, 3); /* main 75, leaf 70, loop 45 of 75 */
	assert_int_equal(report.hidden, 1);
	tally_report_release(&report);
	options.percent_min = 0;
	options.limit = 1;
	report = build(&options);
	assert_int_equal(report.entries.count, 1);
	assert_int_equal(report.hidden, 3);
	tally_report_release(&report);
}

static void each_event_has_its_own_report(void **state)
{
	(void)state;
	struct tally_report_options options = by_symbol();
	options.event = 1;
	struct tally_report report = build(&options);
	assert_int_equal(report.period, 100);
	assert_int_equal(report.entries.count, 2);
	assert_int_equal(entry_named(&report, "work")->self, 100);
	tally_report_release(&report);
}

static void text_fits_its_columns(void **state)
{
	(void)state;
	struct tally_report_options options = by_symbol();
	/* 80 columns have room for six keys */
	for (unsigned key = TALLY_SORT_COMM; key <= TALLY_SORT_CPU; key++)
		options.by[key] = true;
	options.by[TALLY_SORT_OBJECT] = true;
	options.tree = TALLY_TREE_CALLER;
	struct tally_report report = build(&options);
	for (unsigned ascii = 0; ascii < 2; ascii++) {
		struct tally_report_view view = { .columns = 80, .ascii = ascii };
		struct tally_buffer out = { 0 };
		tally_report_text(profile, &report, &options, &view, &out);
		for (char *line = strtok(out.bytes, "\n"); line; line = strtok(NULL, "\n")) {
			assert_true(tally_text_width(line) <= 80);
			for (const char *at = line; ascii && *at; at++)
				assert_true((unsigned char)*at < 0x80);
		}
		tally_buffer_release(&out);
	}
	tally_report_release(&report);
}

static void long_names_lose_template_arguments_first(void **state)
{
	static const struct {
		const char *text;
		int width;
		bool ascii;
		const char *fitted;
	} cases[] = {
		{ "std::vector<std::basic_string<char>>::push_back", 24, false,
		  "vector<…>::push_back" },
		{ "std::vector<std::basic_string<char>>::push_back", 19, false, "push_back" },
		{ "std::vector<std::basic_string<char>>::push_back", 8, false, "push…ack" },
		/* Template instances get as many arguments as fit, to tell them apart. */
		{ "engine::Sorter<std::pair<int, std::basic_string<char>>>::bubble", 40, false,
		  "engine::Sorter<std::pair<int, …>::bubble" },
		{ "engine::Sorter<std::pair<long, std::basic_string<char>>>::bubble", 40, false,
		  "engine::Sorter<std::pair<long,…>::bubble" },
		{ "engine::Sorter<std::pair<int, std::basic_string<char>>>::bubble", 24, false,
		  "Sorter<…>::bubble" },
		{ "engine::calc(std::pair<int, int> const&, double)", 24, false,
		  "calc(std::pa…t&, double)" },
		{ "<alloc::string::String as core::clone::Clone>::clone", 16, false, "<…>::clone" },
		{ "r::work::run::{{closure}}", 20, false, "run::{{closure}}" },
		{ "core::fmt::write::h0123456789abcdef", 26, false, "write::h0123456789abcdef" },
		{ "ns::call::operator()(int, std::string)", 30, false,
		  "call::operator(…, std::string)" },
		{ "(anonymous namespace)::some_function", 20, false, "some_function" },
		{ "std::vector<std::basic_string<char>>::push_back", 25, false,
		  "std::vector<…>::push_back" },
		{ "std::vector<std::basic_string<char>>::push_back", 26, true,
		  "std::vector<..>::push_back" },
		{ "std::vector<std::basic_string<char>>::push_back", 60, false,
		  "std::vector<std::basic_string<char>>::push_back" },
		{ "a<int, long>::operator<< <char>", 24, false, "a<…>::operator<< <…>" },
		{ "f<(x)->y, zzzzzzz>(int)", 12, false, "f<…>(int)" },
		{ "unpaired<<name_of_somebody", 10, false, "unpai…body" },
		{ "plain_long_name", 8, false, "plain_l…" },
		{ "plain_long_name", 8, true, "plain_.." },
		{ "plain_long_name", 0, true, "plain_long_name" },
	};
	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tally_buffer out = { 0 };
		tally_fit_text(&out, cases[i].text, cases[i].width, cases[i].ascii);
		assert_string_equal(out.bytes, cases[i].fitted);
		tally_buffer_release(&out);
	}
}

static void json_lists_trees_flat(void **state)
{
	(void)state;
	struct tally_report_options options = by_symbol();
	struct tally_buffer out = { 0 };
	struct tally_json json = { .out = &out };
	options.tree = TALLY_TREE_CALLER;
	struct tally_report report = build(&options);
	tally_report_json(profile, &report, &options, &json);
	assert_non_null(strstr(out.bytes, "\"function\":\"main\""));
	assert_non_null(strstr(out.bytes, "\"depth\":2"));
	assert_null(strstr(out.bytes, "\"depth\":3"));
	tally_buffer_release(&out);
	tally_report_release(&report);
}

/* A recording may be damaged, so any sort key may be unnamed. */
static void a_branch_of_no_function_has_no_address(void **state)
{
	struct tally_names names = { 0 };
	struct tally_report_entry entry = { .function = UINT32_MAX };
	char cell[64];
	(void)state;
	tally_report_cell(&names, &entry, TALLY_SORT_SYMBOL_FROM, cell, sizeof(cell));
	assert_string_equal(cell, "[no address]");
}

static bool is_listed(const char *name, const char *list)
{
	size_t length = strlen(name);
	for (size_t span; *list; list += span + (list[span] != '\0')) {
		span = strcspn(list, " ,;\n");
		if (span == length && !memcmp(list, name, length))
			return true;
	}
	return false;
}

/* "the same with _to" stands for the keys of a branch's target. */
static void the_help_lists_every_sort_key(void **state)
{
	(void)state;
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++) {
		const char *name = tally_sort_key_name(key);
		size_t length = strlen(name);
		bool is_target = length > 3 && !strcmp(name + length - 3, "_to");
		if (!is_target && !is_listed(name, TALLY_SORT_HELP))
			fail_msg("TALLY_SORT_HELP lacks %s", name);
	}
}

static void every_sort_key_has_a_row_and_is_found_by_its_names(void **state)
{
	(void)state;
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++) {
		const struct tally_sort_row *row = tally_sort_row(key);
		const char *name = tally_sort_key_name(key);
		assert_non_null(row->title);
		assert_int_equal(tally_sort_key_find(name, (unsigned)strlen(name)), key);
		if (row->alias)
			assert_int_equal(
				tally_sort_key_find(row->alias, (unsigned)strlen(row->alias)), key);
		bool is_fact = TALLY_SORT_BIT(key) & TALLY_SORT_OF_FACTS;
		bool is_place = row->kind == TALLY_KIND_OBJECT ||
				row->kind == TALLY_KIND_FUNCTION || row->kind == TALLY_KIND_LINE;
		assert_int_equal(tally_sort_has_number(row) + !!row->string, is_fact && !is_place);
		assert_true(!is_fact || row->need);
	}
}

static int set_up(void **state)
{
	(void)state;
	fixture_write_map();
	fixture_usual(&fixture);
	profile = fixture_profile(&fixture, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_release(&fixture, profile);
	fixture_remove_map();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sort_key_has_a_row_and_is_found_by_its_names),
		cmocka_unit_test(the_help_lists_every_sort_key),
		cmocka_unit_test(a_branch_of_no_function_has_no_address),
		cmocka_unit_test(recursion_counts_once_in_a_total),
		cmocka_unit_test(selves_add_up_to_the_event),
		cmocka_unit_test(keys_keep_apart_what_they_name),
		cmocka_unit_test(trees_add_up),
		cmocka_unit_test(a_callers_tree_goes_down_and_a_callees_up),
		cmocka_unit_test(limits_hide_and_count),
		cmocka_unit_test(each_event_has_its_own_report),
		cmocka_unit_test(text_fits_its_columns),
		cmocka_unit_test(long_names_lose_template_arguments_first),
		cmocka_unit_test(json_lists_trees_flat),
	};
	return cmocka_run_group_tests_name("report", tests, set_up, tear_down);
}
