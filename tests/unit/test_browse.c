/* Browsing a report: its model, the effects of keys, and drawing on a simulated screen. */
#include "test.h"

#include "browse/browse.h"
#include "profile_fixture.h"

enum { ROWS_MAX = 40, COLUMNS_MAX = 200, CELL_BYTES = 4 };

/* A screen in memory: each cell holds a UTF-8 character. */
struct paper {
	struct tally_screen screen;
	int rows, columns;
	char cells[ROWS_MAX][COLUMNS_MAX][CELL_BYTES + 1];
	unsigned styles[ROWS_MAX][COLUMNS_MAX];
	bool overrun; /* something was drawn outside the screen */
};

static void paper_size(struct tally_screen *screen, int *rows, int *columns)
{
	struct paper *paper = (struct paper *)screen;
	*rows = paper->rows;
	*columns = paper->columns;
}

static void paper_clear(struct tally_screen *screen)
{
	struct paper *paper = (struct paper *)screen;
	memset(paper->cells, 0, sizeof(paper->cells));
	memset(paper->styles, 0, sizeof(paper->styles));
}

static void paper_put(struct tally_screen *screen, int row, int column, unsigned style,
		      const char *text)
{
	struct paper *paper = (struct paper *)screen;
	for (; *text; column++) {
		int length = 1;
		while (((unsigned char)text[length] & 0xc0) == 0x80)
			length++;
		if (row < 0 || row >= paper->rows || column < 0 || column >= paper->columns ||
		    length > CELL_BYTES || (unsigned char)*text < ' ') {
			paper->overrun = true;
			return;
		}
		memcpy(paper->cells[row][column], text, (size_t)length);
		paper->cells[row][column][length] = '\0';
		paper->styles[row][column] = style;
		text += length;
	}
}

static void paper_show(struct tally_screen *screen)
{
	(void)screen;
}

static const struct tally_screen_ops paper_ops = {
	.size = paper_size, .clear = paper_clear, .put = paper_put, .show = paper_show,
};

static struct profile_fixture fixture;
static struct tally_profile *profile;

struct view {
	struct tally_browser browser;
	struct tally_report_options options;
	struct tally_report report;
	struct paper paper;
	char line[COLUMNS_MAX * CELL_BYTES + 1];
};

static void rebuild(struct view *view)
{
	struct tally_report old = view->report;
	assert_int_equal(tally_report_build(profile, &view->options, &view->report), 0);
	assert_int_equal(tally_browse_set(&view->browser.browse, &view->report, &view->options), 0);
	tally_report_release(&old);
}

static void open_view(struct view *view, int rows, int columns)
{
	memset(view, 0, sizeof(*view));
	view->options = (struct tally_report_options){
		.by = { [TALLY_SORT_OBJECT] = true, [TALLY_SORT_SYMBOL] = true },
		.children = true,
		.tree = TALLY_TREE_CALLER
	};
	view->paper = (struct paper){ .screen = { .ops = &paper_ops },
				      .rows = rows,
				      .columns = columns };
	view->browser = (struct tally_browser){ .screen = &view->paper.screen,
						.options = &view->options,
						.has_stacks = true,
						.has_threads = true,
						.title = "75 of clock" };
	tally_browse_init(&view->browser.browse, &profile->recording->names);
	rebuild(view);
	tally_browser_draw(&view->browser);
}

static void close_view(struct view *view)
{
	assert_false(view->paper.overrun);
	tally_browse_release(&view->browser.browse);
	tally_report_release(&view->report);
}

/* Presses the keys in turn.  Returns the browser's wish after the last one. */
static enum tally_browser_request press(struct view *view, const char *keys)
{
	enum tally_browser_request wish = TALLY_REQUEST_NONE;
	for (; *keys; keys++) {
		wish = tally_browser_key(&view->browser, (unsigned char)*keys);
		if (wish == TALLY_REQUEST_REPORT)
			rebuild(view);
		tally_browser_draw(&view->browser);
	}
	return wish;
}

static const char *row_text(struct view *view, int row)
{
	view->line[0] = '\0';
	for (int column = 0; column < view->paper.columns; column++)
		strcat(view->line,
		       view->paper.cells[row][column][0] ? view->paper.cells[row][column] : " ");
	return view->line;
}

static bool row_has(struct view *view, int row, const char *text)
{
	return strstr(row_text(view, row), text);
}

static const char *current_name(const struct view *view)
{
	const struct tally_browse *browse = &view->browser.browse;
	return tally_names_text(browse->names,
				tally_browse_function(browse, tally_browse_current(browse)));
}

static size_t line_count(const struct view *view)
{
	return view->browser.browse.lines.count;
}

static void a_tree_opens_and_closes_where_the_cursor_is(void **state)
{
	struct view view;
	(void)state;
	open_view(&view, 24, 80);
	assert_string_equal(current_name(&view), "main"); /* heaviest total first */
	assert_int_equal(line_count(&view), 4);
	press(&view, "\n"); /* main called loop (45) and work (30) */
	assert_int_equal(line_count(&view), 6);
	assert_true(row_has(&view, 2, "▾ 100.00%"));
	assert_true(row_has(&view, 3, "├▸ 60.00% loop"));
	assert_true(row_has(&view, 4, "└▸ 40.00% work"));
	press(&view, "j+"); /* loop called loop (40) */
	assert_int_equal(line_count(&view), 7);
	assert_true(row_has(&view, 4, "│ └▸ 53.33% loop"));
	/* first from loop's loop, which is closed, to its parent; then that closes */
	press(&view, "j-");
	assert_int_equal(line_count(&view), 7);
	press(&view, "-");
	assert_int_equal(line_count(&view), 6);
	press(&view, "--");
	assert_int_equal(line_count(&view), 4);
	assert_int_equal(view.browser.browse.cursor, 0);
	close_view(&view);
}

static void frames_that_take_all_stand_straight(void **state)
{
	struct view view;
	(void)state;
	open_view(&view, 24, 80);
	view.options.tree = TALLY_TREE_CALLEE;
	rebuild(&view);
	press(&view, "/work\n\n"); /* only main called work (30) */
	assert_true(view.browser.browse.lines.count > 4);
	/* leaf: called by loop (40) and work (30); work's line to main needs no joint */
	press(&view, "E/leaf\nej");
	const struct tally_browse *browse = &view.browser.browse;
	bool straight = false;
	for (size_t i = 0; i < browse->lines.count; i++)
		straight |= browse->lines.items[i].is_straight;
	assert_true(straight);
	close_view(&view);
}

static void all_opens_and_closes(void **state)
{
	struct view view;
	(void)state;
	open_view(&view, 24, 80);
	press(&view, "e");
	size_t all = line_count(&view);
	assert_true(all > 8);
	press(&view, "G");
	assert_int_equal(view.browser.browse.cursor, all - 1);
	press(&view, "E");
	assert_int_equal(line_count(&view), 4);
	close_view(&view);
}

static void a_filter_leaves_what_has_the_word(void **state)
{
	struct view view;
	(void)state;
	open_view(&view, 24, 80);
	press(&view, "fOO\n"); /* finds loop, ignoring case */
	assert_int_equal(line_count(&view), 1);
	assert_string_equal(current_name(&view), "loop");
	assert_true(row_has(&view, 23, "'OO'"));
	press(&view, "fxx\n"); /* the previous text is there and can be changed */
	assert_string_equal(view.browser.browse.filter, "OOxx");
	assert_int_equal(line_count(&view), 0);
	assert_true(row_has(&view, 2, "nothing passes the filter"));
	assert_int_equal(press(&view, "\x1b"), TALLY_REQUEST_NONE);
	assert_int_equal(line_count(&view), 4);
	assert_int_equal(press(&view, "\x1b"), TALLY_REQUEST_QUIT);
	close_view(&view);
}

static void a_search_goes_round(void **state)
{
	struct view view;
	(void)state;
	open_view(&view, 24, 80);
	press(&view, "\n/loop\n"); /* in main's tree, and as an entry of its own */
	assert_string_equal(current_name(&view), "loop");
	size_t first = view.browser.browse.cursor;
	assert_true(view.paper.styles[2 + first][14] & TALLY_STYLE_MATCH);
	press(&view, "n");
	assert_string_equal(current_name(&view), "loop");
	assert_true(view.browser.browse.cursor > first);
	press(&view, "n");
	assert_int_equal(view.browser.browse.cursor, first);
	press(&view, "N");
	assert_true(view.browser.browse.cursor > first);
	size_t before = view.browser.browse.cursor;
	press(&view, "/nowhere\n");
	assert_int_equal(view.browser.browse.cursor, before);
	assert_true(row_has(&view, 23, "no line has 'nowhere'"));
	close_view(&view);
}

static void the_cursor_stays_with_its_entry(void **state)
{
	struct view view;
	(void)state;
	open_view(&view, 24, 80);
	press(&view, "/work\n");
	press(&view, "ss"); /* sorted by self: work has 0 */
	assert_true(view.options.by_self);
	assert_string_equal(current_name(&view), "work");
	press(&view, "a\x1b");
	assert_false(view.options.by_self);
	assert_string_equal(current_name(&view), "work");
	close_view(&view);
}

static void columns_come_and_go(void **state)
{
	struct view view;
	(void)state;
	open_view(&view, 24, 100);
	assert_false(row_has(&view, 1, "TID"));
	press(&view, "t");
	assert_true(row_has(&view, 1, "TID"));
	press(&view, "t");
	assert_false(row_has(&view, 1, "TID"));
	press(&view, "sc"); /* there are two commands, so their column appears */
	assert_true(row_has(&view, 1, "COMMAND"));
	press(&view, "co"); /* without commands and objects, functions can't be switched off */
	press(&view, "f");
	assert_true(view.options.by[TALLY_SORT_SYMBOL]);
	assert_true(row_has(&view, 23, "at least one column must stay"));
	close_view(&view);
}

static void a_percent_limit_hides_and_says_so(void **state)
{
	struct view view;
	(void)state;
	open_view(&view, 24, 80);
	press(&view, "P\x15" "50\n");
	assert_int_equal(line_count(&view), 3); /* main 100, leaf 93, loop 60; not work */
	assert_true(row_has(&view, 5, "1 more below the limit"));
	press(&view, "ssq"); /* sorted by self: the limit still applies to totals */
	press(&view, "P\x15" "99%\n");
	assert_int_equal(line_count(&view), 1);
	assert_true(row_has(&view, 2, "main"));
	view.options.children = false; /* leaf has 93 */
	press(&view, "P\x15" "98%\n");
	assert_int_equal(line_count(&view), 0);
	assert_true(row_has(&view, 2, "all rows are below the limit"));
	view.options.children = true;
	press(&view, "P\x15" "5\nsaq");
	press(&view, "P\x15" "50\n");
	press(&view, "P\x15" "lots\n");
	assert_true(row_has(&view, 23, "'lots' is not a percentage"));
	assert_int_equal(line_count(&view), 3);
	close_view(&view);
}

static void narrow_screens_show_functions_and_the_way_out(void **state)
{
	struct view view;
	(void)state;
	for (int columns = 20; columns < 100; columns++) {
		open_view(&view, 24, columns);
		assert_true(row_has(&view, 1, "TOTAL  ")); /* the column that sorts the lines */
		assert_true(row_has(&view, 2, "main"));
		assert_true(row_has(&view, 23, "? help  q quit"));
		press(&view, "\n");
		assert_true(row_has(&view, 3, "60.00% loop"));
		press(&view, "tssq"); /* by threads; sorted by self */
		assert_true(row_has(&view, 1, "SELF  "));
		assert_true(row_has(&view, 2, "leaf"));
		view.browser.errors = true;
		tally_browser_draw(&view.browser);
		assert_true(row_has(&view, 2, "leaf"));
		close_view(&view);
	}
}

static void low_screens_show_what_is_chosen(void **state)
{
	struct view view;
	(void)state;
	open_view(&view, 5, 80);
	press(&view, "sjjjjj");
	assert_true(row_has(&view, 3, "heaviest self first"));
	press(&view, "kkkk");
	assert_true(row_has(&view, 2, "process"));
	close_view(&view);
}

static void nothing_is_drawn_outside_of_any_screen(void **state)
{
	static const char *const keys[] = { "",   "e",       "?",    "qs", "\x1b/lo",
					    "\n", "fleaf\n", "\x1b", "cet" };
	struct view view;
	(void)state;
	for (int ascii = 0; ascii < 2; ascii++)
		for (int rows = 1; rows < 30; rows += rows < 8 ? 1 : 7)
			for (int columns = 1; columns < 160; columns += columns < 30 ? 1 : 27) {
				open_view(&view, rows, columns);
				view.paper.screen.ascii = ascii;
				for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
					press(&view, keys[i]);
				press(&view, "GgG");
				for (int row = 0; ascii && row < rows; row++)
					for (const char *c = row_text(&view, row); *c; c++)
						assert_true((unsigned char)*c < 0x80);
				close_view(&view);
			}
}

static void the_cursor_is_always_in_sight(void **state)
{
	struct view view;
	(void)state;
	open_view(&view, 7, 60);
	press(&view, "e");
	size_t count = line_count(&view);
	assert_true(count > 10);
	for (size_t i = 0; i < count + 3; i++) {
		const struct tally_browse *browse = &view.browser.browse;
		assert_in_range(browse->cursor, browse->top, browse->top + browse->height - 1);
		assert_true(view.paper.styles[2 + browse->cursor - browse->top][0] &
			    TALLY_STYLE_CURSOR);
		press(&view, "j");
	}
	assert_int_equal(view.browser.browse.cursor, count - 1);
	view.paper.rows = 5; /* the terminal shrinks */
	tally_browser_key(&view.browser, TALLY_KEY_RESIZE);
	tally_browser_draw(&view.browser);
	assert_true(view.paper.styles[3][0] & TALLY_STYLE_CURSOR);
	close_view(&view);
}

static void what_is_typed_may_be_any_character(void **state)
{
	struct view view;
	(void)state;
	open_view(&view, 24, 80);
	tally_browser_key(&view.browser, '/');
	tally_browser_key(&view.browser, 0xe9);    /* é */
	tally_browser_key(&view.browser, 0x20ac);  /* € */
	tally_browser_key(&view.browser, 0x1f600);
	assert_string_equal(view.browser.input, "é€\xf0\x9f\x98\x80");
	tally_browser_key(&view.browser, TALLY_KEY_BACKSPACE);
	tally_browser_key(&view.browser, TALLY_KEY_BACKSPACE);
	assert_string_equal(view.browser.input, "é");
	for (unsigned i = 0; i < 500; i++)
		tally_browser_key(&view.browser, 0x20ac);
	assert_true(strlen(view.browser.input) < sizeof(view.browser.input));
	assert_int_equal(tally_browser_key(&view.browser, TALLY_KEY_CTRL_C), TALLY_REQUEST_QUIT);
	close_view(&view);
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

static void narrow_screens_show_functions(void **state)
{
	(void)state;
	struct view view;
	open_view(&view, 12, 34);
	assert_true(row_has(&view, 1, "FUNCTION"));
	assert_false(row_has(&view, 1, "OBJECT"));
	close_view(&view);
}

static void what_is_open_stays_so_in_the_next_report(void **state)
{
	(void)state;
	struct view view;
	open_view(&view, 24, 80);
	press(&view, "\nj"); /* on loop, below main */
	assert_string_equal(current_name(&view), "loop");
	size_t lines = line_count(&view);
	rebuild(&view);
	assert_int_equal(line_count(&view), lines);
	assert_string_equal(current_name(&view), "loop");
	assert_non_null(tally_browse_current(&view.browser.browse)->branch);
	/* the cursor stays on the last entry when others move before it */
	press(&view, "G");
	char name[64];
	snprintf(name, sizeof(name), "%s", current_name(&view));
	view.options.by_self = true;
	rebuild(&view);
	assert_string_equal(current_name(&view), name);
	close_view(&view);
}

static bool shows(struct view *view, const char *text)
{
	bool found = false;
	for (int row = 0; row < view->paper.rows; row++)
		found |= row_has(view, row, text);
	return found;
}

static void help_that_does_not_fit_is_gone_through(void **state)
{
	(void)state;
	struct view view;
	open_view(&view, 10, 60);
	press(&view, "?");
	assert_true(shows(&view, "down, up"));
	assert_true(shows(&view, "more"));
	press(&view, "jjjjjjjjjjjjjjjjjjjj");
	assert_false(shows(&view, "down, up"));
	assert_true(shows(&view, "Ctrl-C"));
	assert_false(shows(&view, "more"));
	press(&view, "k");
	assert_true(shows(&view, "more"));
	press(&view, "x");
	assert_false(shows(&view, "Ctrl-C"));
	close_view(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_opens_and_closes_where_the_cursor_is),
		cmocka_unit_test(frames_that_take_all_stand_straight),
		cmocka_unit_test(all_opens_and_closes),
		cmocka_unit_test(a_filter_leaves_what_has_the_word),
		cmocka_unit_test(a_search_goes_round),
		cmocka_unit_test(the_cursor_stays_with_its_entry),
		cmocka_unit_test(columns_come_and_go),
		cmocka_unit_test(narrow_screens_show_functions_and_the_way_out),
		cmocka_unit_test(low_screens_show_what_is_chosen),
		cmocka_unit_test(a_percent_limit_hides_and_says_so),
		cmocka_unit_test(nothing_is_drawn_outside_of_any_screen),
		cmocka_unit_test(the_cursor_is_always_in_sight),
		cmocka_unit_test(what_is_typed_may_be_any_character),
		cmocka_unit_test(what_is_open_stays_so_in_the_next_report),
		cmocka_unit_test(narrow_screens_show_functions),
		cmocka_unit_test(help_that_does_not_fit_is_gone_through),
	};
	return cmocka_run_group_tests_name("browse", tests, set_up, tear_down);
}
