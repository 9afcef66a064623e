/* A report to be browsed: which lines are to be seen, which are open, what is searched and
 * filtered, where the cursor is.
 *
 * Knows nothing of terminals.  A line is an entry of the report, or a branch of its call tree,
 * whose entry and branches above are all open.  What the report points to, its options and names
 * must outlive what was set, until the next is; functions that return an int give 0 or -ENOMEM.
 */
#ifndef TALLY_OUTPUT_BROWSE_MODEL_H
#define TALLY_OUTPUT_BROWSE_MODEL_H

#include "base/map.h"
#include "report/report_model.h"

enum { TALLY_BROWSE_WORD_BYTES = 128, TALLY_BROWSE_INDENT_MAX = 60 };

struct tally_browse_line {
	uint32_t entry;                         /* of the report */
	const struct tally_branch_node *branch; /* NULL: the entry's own line */
	/* the same for the same functions below the same entry, whatever report */
	uint64_t path;
	/* bit i: a line runs down beside this one at indent i */
	uint64_t rails;
	uint8_t indent;
	bool is_last;     /* of the siblings that are shown */
	/* takes all of what is above it: stands below without a joint, always open */
	bool is_straight;
	bool can_open, is_open;
};

struct tally_browse_column {
	enum tally_sort_key key;
	int width; /* columns of its longest text, its title's at least */
};

struct tally_browse {
	const struct tally_names *names;
	struct tally_report report; /* what it points to is the caller's */
	const struct tally_report_options *options;
	struct tally_report_options shown_options; /* those of the report that is shown */
	struct { struct tally_browse_line *items; size_t count, capacity; } lines;
	size_t entries_shown;
	size_t cursor, top; /* lines; top is the first on the screen */
	size_t height;      /* lines that the screen has room for */
	struct tally_browse_column columns[TALLY_SORT_KEYS];
	unsigned column_count;
	char filter[TALLY_BROWSE_WORD_BYTES]; /* entries that have it in a cell; "": all */
	char search[TALLY_BROWSE_WORD_BYTES];
	uint32_t object;     /* of these alone, as string of names; TALLY_STRING_NONE: all */
	struct tally_map open; /* by path: 1 where it is open */
};

void tally_browse_init(struct tally_browse *browse, const struct tally_names *names);
void tally_browse_release(struct tally_browse *browse);

/* Another report, or the same one built anew: what is open stays so, and the cursor where it is, as
 * far as that is still there. */
int tally_browse_set(struct tally_browse *browse, const struct tally_report *report,
		     const struct tally_report_options *options);

/* NULL: there are no lines. */
const struct tally_browse_line *tally_browse_current(const struct tally_browse *browse);
const struct tally_report_entry *tally_browse_entry(const struct tally_browse *browse);
/* The function of a line; UINT32_MAX: none. */
uint32_t tally_browse_function(const struct tally_browse *browse,
			       const struct tally_browse_line *line);

/* The screen has room for so many lines. */
void tally_browse_resize(struct tally_browse *browse, size_t height);
void tally_browse_move(struct tally_browse *browse, long lines);
void tally_browse_go(struct tally_browse *browse, size_t line);

/* Opens or closes what the cursor is on. */
int tally_browse_toggle(struct tally_browse *browse);
int tally_browse_open(struct tally_browse *browse);
/* Closes what the cursor is on; goes to what is above where it is closed. */
int tally_browse_close(struct tally_browse *browse);
/* All trees with all of their branches. */
int tally_browse_open_all(struct tally_browse *browse, bool open);

int tally_browse_filter(struct tally_browse *browse, const char *word);
/* Entries of this object alone; TALLY_STRING_NONE: of all. */
int tally_browse_only_object(struct tally_browse *browse, uint32_t object);

/* To the next line (backwards: the one before) with `search` in it, going round; false: none has
 * it.  `here`: the line of the cursor will do. */
bool tally_browse_find(struct tally_browse *browse, bool backwards, bool here);
/* Where in a text the word is, whatever its case; NULL: nowhere, or there is no word. */
const char *tally_browse_match(const char *text, const char *word);

#endif
