/* Handles the keys of a browsed report. */
#include "browse/browse.h"

#include "base/characters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the menu of columns ------------------------------------------------- */

/* The first lines are the sort keys that have a name in the menu. */
static unsigned count_columns(void)
{
	unsigned count = 0;
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
		count += tally_sort_row(key)->menu != NULL;
	return count;
}

unsigned tally_browser_menu_lines(void)
{
	return count_columns() + 2; /* and the two orders */
}

/* Returns TALLY_SORT_KEYS if the line is an order. */
static enum tally_sort_key menu_key_of(unsigned line)
{
	unsigned key = 0;
	for (; key < TALLY_SORT_KEYS; key++)
		if (tally_sort_row(key)->menu && !line--)
			break;
	return (enum tally_sort_key)key;
}

struct tally_browser_choice tally_browser_choice(const struct tally_browser *browser, unsigned line)
{
	const struct tally_report_options *options = browser->options;
	enum tally_sort_key key = menu_key_of(line);
	if (key < TALLY_SORT_KEYS) {
		const struct tally_sort_row *row = tally_sort_row(key);
		return (struct tally_browser_choice){ row->menu, options->by[key], row->letter };
	}
	if (line == count_columns())
		return (struct tally_browser_choice){ "heaviest self first", options->by_self,
						      's' };
	return (struct tally_browser_choice){ "heaviest total first", !options->by_self, 'a' };
}

static enum tally_browser_request toggle_key(struct tally_browser *browser, enum tally_sort_key key)
{
	struct tally_report_options *options = browser->options;
	unsigned others = 0;
	if ((key == TALLY_SORT_PID || key == TALLY_SORT_TID) && !browser->has_threads)
		return TALLY_REQUEST_NONE;
	for (unsigned i = 0; i < TALLY_SORT_KEYS; i++)
		others += i != key && options->by[i];
	if (options->by[key] && !others) {
		snprintf(browser->message, sizeof(browser->message),
			 "at least one column must stay");
		return TALLY_REQUEST_NONE;
	}
	options->by[key] = !options->by[key];
	return TALLY_REQUEST_REPORT;
}

static enum tally_browser_request choose(struct tally_browser *browser, unsigned line)
{
	struct tally_report_options *options = browser->options;
	enum tally_sort_key key = menu_key_of(line);
	if (key < TALLY_SORT_KEYS)
		return toggle_key(browser, key);
	bool is_self = line == count_columns();
	if (!is_self && !browser->has_stacks) {
		snprintf(browser->message, sizeof(browser->message),
			 "there are no stacks: use %s -g", browser->live ? "top" : "record");
		return TALLY_REQUEST_NONE;
	}
	options->by_self = is_self;
	options->children |= !is_self;
	return TALLY_REQUEST_REPORT;
}

static enum tally_browser_request menu_key(struct tally_browser *browser, uint32_t key)
{
	unsigned lines = tally_browser_menu_lines();
	switch (key) {
	case TALLY_KEY_UP:
	case 'k':
		browser->menu = (browser->menu + lines - 1) % lines;
		break;
	case TALLY_KEY_DOWN:
	case 'j':
		browser->menu = (browser->menu + 1) % lines;
		break;
	case ' ': case TALLY_KEY_ENTER: return choose(browser, browser->menu);
	case 'q': case TALLY_KEY_ESCAPE: browser->mode = TALLY_BROWSER_ROWS; break;
	default:
		for (unsigned line = 0; line < lines; line++)
			if (key == (unsigned char)tally_browser_choice(browser, line).letter) {
				browser->menu = line;
				return choose(browser, line);
			}
	}
	return TALLY_REQUEST_NONE;
}

/* ---- lines that are typed ------------------------------------------------ */

static void begin_input(struct tally_browser *browser, enum tally_browser_mode mode,
			const char *text)
{
	browser->mode = mode;
	snprintf(browser->input, sizeof(browser->input), "%s", text);
}

static void find(struct tally_browser *browser, bool backwards, bool here)
{
	if (!browser->browse.search[0])
		snprintf(browser->message, sizeof(browser->message),
			 "no search yet: / searches");
	else if (!tally_browse_find(&browser->browse, backwards, here))
		snprintf(browser->message, sizeof(browser->message), "no line has '%s'%s",
			 browser->browse.search, browser->has_stacks ? " (e opens all trees)" : "");
}

static enum tally_browser_request end_input(struct tally_browser *browser)
{
	enum tally_browser_mode mode = browser->mode;
	char *end;
	browser->mode = TALLY_BROWSER_ROWS;
	if (mode == TALLY_BROWSER_FILTER) {
		if (tally_browse_filter(&browser->browse, browser->input) < 0)
			return TALLY_REQUEST_FAIL;
		return TALLY_REQUEST_NONE;
	}
	if (mode == TALLY_BROWSER_SEARCH) {
		snprintf(browser->browse.search, sizeof(browser->browse.search), "%s",
			 browser->input);
		if (browser->input[0])
			find(browser, false, true);
		return TALLY_REQUEST_NONE;
	}
	double percent = strtod(browser->input, &end);
	if (end == browser->input || (*end && strcmp(end, "%")) ||
	    !(percent >= 0 && percent <= 100)) {
		snprintf(browser->message, sizeof(browser->message), "'%s' is not a percentage",
			 browser->input);
		return TALLY_REQUEST_NONE;
	}
	browser->options->percent_min = browser->options->tree_percent_min = percent;
	return TALLY_REQUEST_REPORT;
}

static void erase_character(char *text)
{
	size_t length = strlen(text);
	while (length && !tally_begins_character(text[length - 1]))
		length--;
	text[length ? length - 1 : 0] = '\0';
}

static void add_character(char *text, size_t size, uint32_t key)
{
	char bytes[5] = { 0 };
	if (key < 0x80)
		bytes[0] = (char)key;
	else if (key < 0x800)
		memcpy(bytes, (char[]){ (char)(0xc0 | key >> 6), (char)(0x80 | (key & 0x3f)) }, 2);
	else if (key < 0x10000)
		memcpy(bytes, (char[]){ (char)(0xe0 | key >> 12), (char)(0x80 | (key >> 6 & 0x3f)),
					(char)(0x80 | (key & 0x3f)) }, 3);
	else
		memcpy(bytes,
		       (char[]){ (char)(0xf0 | key >> 18), (char)(0x80 | (key >> 12 & 0x3f)),
				 (char)(0x80 | (key >> 6 & 0x3f)), (char)(0x80 | (key & 0x3f)) },
		       4);
	if (strlen(text) + strlen(bytes) < size)
		strcat(text, bytes);
}

static enum tally_browser_request input_key(struct tally_browser *browser, uint32_t key)
{
	if (key == TALLY_KEY_ENTER)
		return end_input(browser);
	if (key == TALLY_KEY_ESCAPE || (key == TALLY_KEY_BACKSPACE && !browser->input[0]))
		browser->mode = TALLY_BROWSER_ROWS;
	else if (key == TALLY_KEY_BACKSPACE)
		erase_character(browser->input);
	else if (key == 21) /* Ctrl-U */
		browser->input[0] = '\0';
	else if (key >= ' ' && key < TALLY_KEY_UP && !(key >= 0x7f && key < 0xa0))
		add_character(browser->input, sizeof(browser->input), key);
	return TALLY_REQUEST_NONE;
}

/* ---- rows ---------------------------------------------------------------- */

static enum tally_browser_request asked(int result)
{
	if (result < 0)
		return TALLY_REQUEST_FAIL;
	return TALLY_REQUEST_NONE;
}

static enum tally_browser_request toggle_object(struct tally_browser *browser)
{
	struct tally_browse *browse = &browser->browse;
	const struct tally_browse_line *line = tally_browse_current(browse);
	uint32_t function = UINT32_MAX;
	if (line)
		function = tally_browse_function(browse, line);
	if (browse->object != TALLY_STRING_NONE)
		return asked(tally_browse_only_object(browse, TALLY_STRING_NONE));
	if (function == UINT32_MAX)
		return TALLY_REQUEST_NONE;
	return asked(
		tally_browse_only_object(browse, browse->names->functions.items[function].object));
}

static enum tally_browser_request escape(struct tally_browser *browser)
{
	struct tally_browse *browse = &browser->browse;
	bool filtered = browse->filter[0] || browse->object != TALLY_STRING_NONE;
	if (!filtered && !browse->search[0])
		return TALLY_REQUEST_QUIT;
	browse->search[0] = browse->filter[0] = '\0';
	return asked(filtered ? tally_browse_only_object(browse, TALLY_STRING_NONE) : 0);
}

static enum tally_browser_request switch_order(struct tally_browser *browser)
{
	struct tally_report_options *options = browser->options;
	if (!browser->has_stacks) {
		snprintf(browser->message, sizeof(browser->message),
			 "there are no stacks: use %s -g", browser->live ? "top" : "record");
		return TALLY_REQUEST_NONE;
	}
	bool callee = options->tree == TALLY_TREE_CALLEE;
	if (callee)
		options->tree = TALLY_TREE_CALLER;
	else
		options->tree = TALLY_TREE_CALLEE;
	snprintf(browser->message, sizeof(browser->message), "trees show %s",
		 callee ? "what a function called" : "who called a function");
	return TALLY_REQUEST_REPORT;
}

/* Returns false if the key moves nothing. */
static bool move_key(struct tally_browse *browse, uint32_t key)
{
	long page = (long)browse->height - 1;
	switch (key) {
	case TALLY_KEY_UP: case 'k': case 16: tally_browse_move(browse, -1); return true;
	case TALLY_KEY_DOWN: case 'j': case 14: tally_browse_move(browse, 1); return true;
	case TALLY_KEY_PAGE_UP: case 'b': case 2: tally_browse_move(browse, -page); return true;
	case TALLY_KEY_PAGE_DOWN: case ' ': case 6: tally_browse_move(browse, page); return true;
	case 'u': case 21: tally_browse_move(browse, -page / 2); return true;
	case 4: tally_browse_move(browse, page / 2); return true;
	case TALLY_KEY_HOME: case 'g': case '<': tally_browse_go(browse, 0); return true;
	case TALLY_KEY_END: case 'G': case '>': tally_browse_go(browse, SIZE_MAX); return true;
	default: return false;
	}
}

static void say_why_closed(struct tally_browser *browser)
{
	const char *why = "its callees are all below the limit; c shows callers";
	if (browser->options->tree == TALLY_TREE_CALLEE)
		why = "its callers are all below the limit";
	const struct tally_browse_line *line = tally_browse_current(&browser->browse);
	if (!browser->has_stacks)
		snprintf(browser->message, sizeof(browser->message),
			 "there are no stacks: use %s -g", browser->live ? "top" : "record");
	else if (line && !line->can_open && !line->is_straight)
		snprintf(browser->message, sizeof(browser->message), "%s", why);
}

static enum tally_browser_request tree_key(struct tally_browser *browser, uint32_t key)
{
	struct tally_browse *browse = &browser->browse;
	if (key == TALLY_KEY_ENTER || key == '+' || key == TALLY_KEY_RIGHT || key == 'l' ||
	    (key == 'e' && !browser->has_stacks))
		say_why_closed(browser);
	switch (key) {
	case TALLY_KEY_ENTER: case '+': return asked(tally_browse_toggle(browse));
	case TALLY_KEY_RIGHT: case 'l': return asked(tally_browse_open(browse));
	case TALLY_KEY_LEFT: case '-': return asked(tally_browse_close(browse));
	case 'e': return asked(tally_browse_open_all(browse, true));
	case 'E': return asked(tally_browse_open_all(browse, false));
	case 'c': return switch_order(browser);
	default:
		return TALLY_REQUEST_NONE;
	}
}

static enum tally_browser_request live_key(struct tally_browser *browser, uint32_t key)
{
	if (key == 'a')
		snprintf(browser->message, sizeof(browser->message),
			 "annotate needs a recording: tally record -p PID");
	if (key == 'p')
		return TALLY_REQUEST_PAUSE;
	if (key == 'z')
		return TALLY_REQUEST_RESET;
	return tree_key(browser, key);
}

static enum tally_browser_request row_key(struct tally_browser *browser, uint32_t key)
{
	struct tally_browse *browse = &browser->browse;
	char percent[32];
	switch (key) {
	case 'q':
		return TALLY_REQUEST_QUIT;
	case TALLY_KEY_ESCAPE: return escape(browser);
	case 'h': case '?':
		browser->mode = TALLY_BROWSER_HELP;
		browser->menu = 0;
		break;
	case 's':
		browser->mode = TALLY_BROWSER_COLUMNS;
		browser->menu = 0;
		break;
	case '/': begin_input(browser, TALLY_BROWSER_SEARCH, ""); break;
	case 'f': begin_input(browser, TALLY_BROWSER_FILTER, browse->filter); break;
	case 'P':
		snprintf(percent, sizeof(percent), "%.3g", browser->options->percent_min);
		begin_input(browser, TALLY_BROWSER_PERCENT, percent);
		break;
	case 'n': find(browser, false, false); break;
	case 'N': find(browser, true, false); break;
	case 't': return toggle_key(browser, TALLY_SORT_TID);
	case 'd': return toggle_object(browser);
	case TALLY_KEY_TAB:
		return TALLY_REQUEST_NEXT_EVENT;
	case TALLY_KEY_BACK_TAB:
		return TALLY_REQUEST_PREVIOUS_EVENT;
	default:
		if (move_key(browse, key))
			return TALLY_REQUEST_NONE;
		if (browser->live)
			return live_key(browser, key);
		if (key == 'a')
			return TALLY_REQUEST_ANNOTATE;
		return tree_key(browser, key);
	}
	return TALLY_REQUEST_NONE;
}

/* Any key that does not scroll closes the help. */
static enum tally_browser_request help_key(struct tally_browser *browser, uint32_t key)
{
	bool down = key == TALLY_KEY_DOWN || key == 'j' || key == ' ' || key == TALLY_KEY_PAGE_DOWN;
	bool up = key == TALLY_KEY_UP || key == 'k' || key == 'b' || key == TALLY_KEY_PAGE_UP;
	if (down)
		browser->menu++; /* drawing limits it */
	else if (up)
		browser->menu -= browser->menu > 0;
	else
		browser->mode = TALLY_BROWSER_ROWS;
	return TALLY_REQUEST_NONE;
}

enum tally_browser_request tally_browser_key(struct tally_browser *browser, uint32_t key)
{
	if (key == TALLY_KEY_NONE || key == TALLY_KEY_RESIZE)
		return TALLY_REQUEST_NONE;
	if (key == TALLY_KEY_CTRL_C || key == TALLY_KEY_GONE)
		return TALLY_REQUEST_QUIT;
	browser->message[0] = '\0';
	switch (browser->mode) {
	case TALLY_BROWSER_ROWS: return row_key(browser, key);
	case TALLY_BROWSER_COLUMNS: return menu_key(browser, key);
	case TALLY_BROWSER_HELP: return help_key(browser, key);
	default: return input_key(browser, key);
	}
}
