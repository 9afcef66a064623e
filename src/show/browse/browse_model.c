/* Makes all lines again when the report, the filter or an open branch changes.  A map of hashed
 * paths tells which lines are open, so they stay open in a new report. */
#include "browse/browse_internal.h"

#include "base/extremes.h"
#include "base/vector.h"
#include "output/output.h"
#include "output/output_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 120, CELL_MAX = 48 };

void tally_browse_init(struct tally_browse *browse, const struct tally_names *names)
{
	*browse = (struct tally_browse){ .names = names, .object = TALLY_STRING_NONE, .height = 1 };
}

void tally_browse_release(struct tally_browse *browse)
{
	tally_vector_release(&browse->lines);
	tally_map_release(&browse->open);
}

const char *tally_browse_match(const char *text, const char *word)
{
	if (*word)
		return strcasestr(text, word);
	return NULL;
}

/* ---- what is open -------------------------------------------------------- */

/* Hashes the keys that are shown: two entries never agree in all of them. */
static uint64_t entry_path(const struct tally_browse *browse, uint32_t number)
{
	const struct tally_report_entry *entry = &browse->report.entries.items[number];
	uint64_t path = 0;
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
		if (browse->options->by[key])
			path = tally_hash64(path ^ (uint64_t)(key + 1) << 32 ^ entry->key[key]);
	return path;
}

static uint64_t branch_path(uint64_t above, const struct tally_branch_node *branch)
{
	return tally_hash64(above ^ (UINT64_C(1) << 40 | branch->function));
}

static bool is_open(const struct tally_browse *browse, uint64_t path)
{
	const uint64_t *slot = tally_map_get(&browse->open, path);
	return slot && *slot;
}

static int set_open(struct tally_browse *browse, uint64_t path, bool open)
{
	uint64_t *slot = tally_map_put(&browse->open, path, NULL);
	if (!slot)
		return -ENOMEM;
	*slot = open;
	return 0;
}

/* ---- lines --------------------------------------------------------------- */

static bool is_shown(const struct tally_browse *browse, const struct tally_branch_node *branch)
{
	return branch && (double)branch->weight * 100 >=
				 browse->options->tree_percent_min * (double)browse->report.period;
}

static bool passes(const struct tally_browse *browse, const struct tally_report_entry *entry)
{
	char cell[TALLY_REPORT_CELL_BYTES];
	bool has = !browse->filter[0];
	if (browse->object != TALLY_STRING_NONE && (entry->function == UINT32_MAX ||
	    browse->names->functions.items[entry->function].object != browse->object))
		return false;
	for (unsigned i = 0; !has && i < browse->column_count; i++) {
		tally_report_cell(browse->names, entry, browse->columns[i].key, cell, sizeof(cell));
		has = tally_browse_match(cell, browse->filter);
	}
	return has;
}

static int add_branches(struct tally_browse *browse, const struct tally_browse_line *parent,
			const struct tally_branch_node *first, uint64_t above, unsigned depth)
{
	int result = 0;
	unsigned indent = parent->indent;
	if (parent->branch && !parent->is_straight)
		indent = parent->indent + 1u;
	if (depth >= DEPTH_MAX)
		return 0;
	for (const struct tally_branch_node *branch = first; !result && is_shown(browse, branch);
	     branch = branch->sibling) {
		struct tally_browse_line line = { .entry = parent->entry,
						  .branch = branch,
						  .rails = parent->rails };
		line.path = branch_path(parent->path, branch);
		line.indent = (uint8_t)tally_min_u64(indent, TALLY_BROWSE_INDENT_MAX);
		line.is_last = !is_shown(browse, branch->sibling);
		line.is_straight = branch == first && line.is_last && branch->weight == above;
		line.can_open = !line.is_straight && is_shown(browse, branch->child) &&
				depth + 1 < DEPTH_MAX;
		line.is_open = line.is_straight || (line.can_open && is_open(browse, line.path));
		if (!line.is_last)
			line.rails |= UINT64_C(1) << line.indent;
		result = tally_vector_push(&browse->lines, line);
		if (!result && line.is_open)
			result = add_branches(browse, &line, branch->child, branch->weight,
					      depth + 1);
	}
	return result;
}

static int make_lines(struct tally_browse *browse)
{
	int result = 0;
	browse->lines.count = 0;
	for (uint32_t i = 0; !result && i < browse->report.entries.count; i++) {
		const struct tally_report_entry *entry = &browse->report.entries.items[i];
		if (!passes(browse, entry))
			continue;
		struct tally_browse_line line = { .entry = i,
						  .can_open = is_shown(browse, entry->tree) };
		line.path = entry_path(browse, i);
		line.is_open = line.can_open && is_open(browse, line.path);
		result = tally_vector_push(&browse->lines, line);
		if (!result && line.is_open)
			result = add_branches(browse, &line, entry->tree, UINT64_MAX, 0);
	}
	return result;
}

/* Columns never get narrower: a live view would jump. */
static int width_before(const struct tally_browse_column *columns, unsigned count,
			enum tally_sort_key key)
{
	int width = (int)strlen(tally_sort_row(key)->title);
	for (unsigned i = 0; i < count; i++)
		if (columns[i].key == key)
			width = columns[i].width;
	return width;
}

static void find_columns(struct tally_browse *browse)
{
	char cell[TALLY_REPORT_CELL_BYTES];
	struct tally_browse_column before[TALLY_SORT_KEYS];
	unsigned count_before = browse->column_count;
	memcpy(before, browse->columns, sizeof(before));
	browse->column_count = 0;
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++) {
		if (!tally_report_is_column(&browse->report, browse->options, key))
			continue;
		struct tally_browse_column *column = &browse->columns[browse->column_count++];
		*column = (struct tally_browse_column){ key,
							width_before(before, count_before, key) };
		for (size_t i = 0; i < browse->report.entries.count; i++) {
			tally_report_cell(browse->names, &browse->report.entries.items[i], key,
					  cell, sizeof(cell));
			int width = tally_text_width(cell);
			if (width > CELL_MAX)
				width = CELL_MAX;
			if (width > column->width)
				column->width = width;
		}
	}
}

/* ---- the cursor ---------------------------------------------------------- */

static void keep_in_sight(struct tally_browse *browse)
{
	size_t count = browse->lines.count, height = browse->height;
	if (browse->cursor >= count)
		browse->cursor = count ? count - 1 : 0;
	if (browse->cursor < browse->top)
		browse->top = browse->cursor;
	/* The last line is followed by one that says how many entries are not shown. */
	if (count && browse->report.hidden) {
		if (browse->cursor == count - 1 && count >= browse->top + height && height > 1)
			browse->top = count + 1 - height;
		count++;
	}
	if (browse->cursor >= browse->top + height)
		browse->top = browse->cursor - height + 1;
	if (browse->top + height > count)
		browse->top = count > height ? count - height : 0;
}

const struct tally_browse_line *tally_browse_current(const struct tally_browse *browse)
{
	if (browse->cursor < browse->lines.count)
		return &browse->lines.items[browse->cursor];
	return NULL;
}

const struct tally_report_entry *tally_browse_entry(const struct tally_browse *browse)
{
	const struct tally_browse_line *line = tally_browse_current(browse);
	if (line)
		return &browse->report.entries.items[line->entry];
	return NULL;
}

uint32_t tally_browse_function(const struct tally_browse *browse,
			       const struct tally_browse_line *line)
{
	if (line->branch)
		return line->branch->function;
	return browse->report.entries.items[line->entry].function;
}

/* Makes the lines again.  The cursor stays on its entry or branch, or moves from a branch that has
 * disappeared to its entry. */
static int change_lines(struct tally_browse *browse)
{
	const struct tally_browse_line *current = tally_browse_current(browse);
	const struct tally_browse_line old = current ? *current : (struct tally_browse_line){ 0 };
	bool had = current;
	int result = make_lines(browse);
	for (size_t i = 0; had && i < browse->lines.count; i++) {
		const struct tally_browse_line *line = &browse->lines.items[i];
		if (line->entry == old.entry && (!line->branch || line->branch == old.branch))
			browse->cursor = i;
		if (line->entry > old.entry)
			break;
	}
	keep_in_sight(browse);
	return result;
}

void tally_browse_resize(struct tally_browse *browse, size_t height)
{
	if (height)
		browse->height = height;
	else
		browse->height = 1;
	keep_in_sight(browse);
}

void tally_browse_move(struct tally_browse *browse, long lines)
{
	long to = (long)browse->cursor + lines;
	tally_browse_go(browse, to < 0 ? 0 : (size_t)to);
}

void tally_browse_go(struct tally_browse *browse, size_t line)
{
	browse->cursor = line;
	keep_in_sight(browse);
}

/* True if two entries agree in all keys that both reports have. */
static bool is_same(const struct tally_browse *browse, const struct tally_report_entry *a,
		    const struct tally_report_entry *b)
{
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
		if (browse->options->by[key] && browse->shown_options.by[key] &&
		    a->key[key] != b->key[key])
			return false;
	return true;
}

int tally_browse_set(struct tally_browse *browse, const struct tally_report *report,
		     const struct tally_report_options *options)
{
	const struct tally_browse_line *line = tally_browse_current(browse);
	const struct tally_report_entry *current = tally_browse_entry(browse);
	uint64_t path = 0;
	if (line)
		path = line->path;
	struct tally_report_entry old = current ? *current : (struct tally_report_entry){ 0 };
	/* a cursor on the first line stays there, whichever entry it is */
	bool moved = browse->cursor > 0;
	browse->report = *report;
	browse->options = options;
	find_columns(browse);
	int result = make_lines(browse);
	bool found = false, is_there = false;
	for (size_t i = 0; current && moved && !is_there && i < browse->lines.count; i++) {
		const struct tally_browse_line *there = &browse->lines.items[i];
		is_there = there->path == path;
		if (is_there ||
		    (!found && is_same(browse, &report->entries.items[there->entry], &old))) {
			browse->cursor = i;
			found = true;
		}
	}
	browse->shown_options = *options;
	keep_in_sight(browse);
	return result;
}

/* ---- opening and closing ------------------------------------------------- */

int tally_browse_toggle(struct tally_browse *browse)
{
	const struct tally_browse_line *line = tally_browse_current(browse);
	if (!line || !line->can_open)
		return 0;
	int result = set_open(browse, line->path, !line->is_open);
	if (result)
		return result;
	return change_lines(browse);
}

int tally_browse_open(struct tally_browse *browse)
{
	const struct tally_browse_line *line = tally_browse_current(browse);
	if (line && line->can_open && !line->is_open)
		return tally_browse_toggle(browse);
	return 0;
}

int tally_browse_close(struct tally_browse *browse)
{
	const struct tally_browse_line *line = tally_browse_current(browse);
	if (!line)
		return 0;
	if (line->can_open && line->is_open)
		return tally_browse_toggle(browse);
	size_t at = browse->cursor;
	if (!line->branch)
		return 0;
	/* Frames of a straight run have the indent of the branch's children. */
	for (at--; at; at--) {
		const struct tally_browse_line *above = &browse->lines.items[at];
		if (!above->branch || (!above->is_straight && above->indent < line->indent))
			break;
	}
	tally_browse_go(browse, at);
	return 0;
}

static int open_branches(struct tally_browse *browse, uint64_t above,
			 const struct tally_branch_node *first, unsigned depth)
{
	int result = 0;
	for (const struct tally_branch_node *branch = first;
	     !result && depth < DEPTH_MAX && is_shown(browse, branch); branch = branch->sibling) {
		uint64_t path = branch_path(above, branch);
		result = set_open(browse, path, true);
		if (!result)
			result = open_branches(browse, path, branch->child, depth + 1);
	}
	return result;
}

int tally_browse_open_all(struct tally_browse *browse, bool open)
{
	int result = 0;
	tally_map_release(&browse->open);
	browse->open = (struct tally_map){ 0 };
	for (uint32_t i = 0; open && !result && i < browse->report.entries.count; i++) {
		const struct tally_report_entry *entry = &browse->report.entries.items[i];
		if (!passes(browse, entry))
			continue;
		result = set_open(browse, entry_path(browse, i), true);
		if (!result)
			result = open_branches(browse, entry_path(browse, i), entry->tree, 0);
	}
	if (result)
		return result;
	return change_lines(browse);
}

/* ---- filters and search -------------------------------------------------- */

int tally_browse_filter(struct tally_browse *browse, const char *word)
{
	snprintf(browse->filter, sizeof(browse->filter), "%s", word);
	return change_lines(browse);
}

int tally_browse_only_object(struct tally_browse *browse, uint32_t object)
{
	browse->object = object;
	return change_lines(browse);
}

static bool has_search(const struct tally_browse *browse, const struct tally_browse_line *line)
{
	char text[TALLY_REPORT_CELL_BYTES];
	if (line->branch) {
		tally_report_function(browse->names, line->branch->function, text, sizeof(text));
		return tally_browse_match(text, browse->search);
	}
	for (unsigned i = 0; i < browse->column_count; i++) {
		tally_report_cell(browse->names, &browse->report.entries.items[line->entry],
				  browse->columns[i].key, text, sizeof(text));
		if (tally_browse_match(text, browse->search))
			return true;
	}
	return false;
}

bool tally_browse_find(struct tally_browse *browse, bool backwards, bool here)
{
	size_t count = browse->lines.count;
	for (size_t step = here ? 0 : 1; step < count + !here; step++) {
		size_t at = (browse->cursor + (backwards ? count - step % count : step)) % count;
		if (has_search(browse, &browse->lines.items[at])) {
			tally_browse_go(browse, at);
			return true;
		}
	}
	return false;
}
