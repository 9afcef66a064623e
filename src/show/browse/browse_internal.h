/* The state of a browsed report: which lines there are, which are open, the filter and the search,
 * and the cursor. It knows nothing of terminals.
 *
 * A line is an entry of the report, or a branch of its call tree when the entry and all branches
 * above are open. The report's data, its options and its names must outlive the tally_browse, or
 * last until the next tally_browse_set(). Functions that return an int return 0 or -ENOMEM.
 */
#ifndef TALLY_BROWSE_INTERNAL_H
#define TALLY_BROWSE_INTERNAL_H

#include "base/map.h"
#include "report/report.h"

enum { TALLY_BROWSE_WORD_BYTES = 128, TALLY_BROWSE_INDENT_MAX = 60 };

struct tally_browse_line {
	uint32_t entry;                         /* index in the report */
	const struct tally_branch_node *branch; /* NULL: the entry's own line */
	/* hash of the functions from the entry down; the same in a rebuilt report */
	uint64_t path;
	/* bit i: a vertical line is drawn at indent i */
	uint64_t rails;
	uint8_t indent;
	bool is_last;     /* last of the siblings that are shown */
	/* has its parent's whole weight: shown directly below it, always open */
	bool is_straight;
	bool can_open, is_open;
};

struct tally_browse_column {
	enum tally_sort_key key;
	int width; /* width of the longest cell or of the title, in columns */
};

struct tally_browse {
	const struct tally_names *names;
	struct tally_report report; /* a copy; the data it points to is the caller's */
	const struct tally_report_options *options;
	struct tally_report_options shown_options; /* options of the report that is shown */
	struct { struct tally_browse_line *items; size_t count, capacity; } lines;
	size_t cursor, top; /* cursor's line; first line on the screen */
	size_t height;      /* lines that fit on the screen */
	struct tally_browse_column columns[TALLY_SORT_KEYS];
	unsigned column_count;
	char filter[TALLY_BROWSE_WORD_BYTES]; /* shows entries with this text in a cell; "": all */
	char search[TALLY_BROWSE_WORD_BYTES];
	uint32_t object;     /* shows entries of this object (string id); TALLY_STRING_NONE: all */
	struct tally_map open; /* path → 1 if open */
};

void tally_browse_init(struct tally_browse *browse, const struct tally_names *names);
void tally_browse_release(struct tally_browse *browse);

/* Sets another report, or the same one built again. Open entries stay open and the cursor stays on
 * its line, as far as these still exist. */
int tally_browse_set(struct tally_browse *browse, const struct tally_report *report,
		     const struct tally_report_options *options);

/* Returns the line under the cursor; NULL: there are no lines. */
const struct tally_browse_line *tally_browse_current(const struct tally_browse *browse);
const struct tally_report_entry *tally_browse_entry(const struct tally_browse *browse);
/* Returns the line's function; UINT32_MAX: none. */
uint32_t tally_browse_function(const struct tally_browse *browse,
			       const struct tally_browse_line *line);

/* Sets how many lines fit on the screen. */
void tally_browse_resize(struct tally_browse *browse, size_t height);
void tally_browse_move(struct tally_browse *browse, long lines);
void tally_browse_go(struct tally_browse *browse, size_t line);

/* Opens or closes the line under the cursor. */
int tally_browse_toggle(struct tally_browse *browse);
int tally_browse_open(struct tally_browse *browse);
/* Closes the line under the cursor; if it is closed, moves the cursor to its parent. */
int tally_browse_close(struct tally_browse *browse);
/* Opens or closes all trees with all their branches. */
int tally_browse_open_all(struct tally_browse *browse, bool open);

int tally_browse_filter(struct tally_browse *browse, const char *word);
/* Shows only entries of this object; TALLY_STRING_NONE: all. */
int tally_browse_only_object(struct tally_browse *browse, uint32_t object);

/* Moves the cursor to the next line (with `backwards`, the previous one) that has `search` in it,
 * and wraps around. With `here`, the current line counts. Returns false if no line has it. */
bool tally_browse_find(struct tally_browse *browse, bool backwards, bool here);
/* Returns where the word is in a text, ignoring case; NULL: it isn't there, or the word is
 * empty. */
const char *tally_browse_match(const char *text, const char *word);

#endif
