/* Shows what changed between two sides' stacks: a table for people, Markdown for a pull request,
 * JSON for programs. */
#ifndef TALLY_DIFF_DIFF_VIEW_H
#define TALLY_DIFF_DIFF_VIEW_H

#include "base/buffer.h"
#include "diff/diff_gate.h"
#include "diff/diff_model.h"

enum { TALLY_DIFF_JSON_VERSION = 1 };

struct tally_diff_view {
	const struct tally_match *match;
	const struct tally_diff_options *options;
	const char *const *old_paths, *const *new_paths; /* one path for each run */
	unsigned columns; /* terminal width; 0: unlimited */
	bool colours, ascii;
	const struct tally_diff_verdict *verdicts; /* results of --fail-if's conditions */
	size_t verdict_count;
};

void tally_diff_table(const struct tally_diff *diff, const struct tally_diff_view *view,
		      struct tally_buffer *out);
void tally_diff_markdown(const struct tally_diff *diff, const struct tally_diff_view *view,
			 struct tally_buffer *out);
/* docs/diff.md has the schema. */
void tally_diff_json(const struct tally_diff *diff, const struct tally_diff_view *view,
		     struct tally_buffer *out);

/* --- shared by table and Markdown ------------------------------------------- */

enum tally_diff_column {
	TALLY_DIFF_OLD,
	TALLY_DIFF_NEW,
	TALLY_DIFF_CHANGE,
	TALLY_DIFF_INTERVAL,
	TALLY_DIFF_WEIGHT,
	TALLY_DIFF_REMARK,
	TALLY_DIFF_COMM,
	TALLY_DIFF_OBJECT,
	TALLY_DIFF_SYMBOL,
	TALLY_DIFF_COLUMNS
};

enum { TALLY_DIFF_CELL = 1024 };

struct tally_diff_cells {
	char text[TALLY_DIFF_COLUMNS][TALLY_DIFF_CELL]; /* without terminal escapes */
};

bool tally_diff_has_column(const struct tally_diff *diff, const struct tally_diff_view *view,
			   enum tally_diff_column column);
void tally_diff_heading(const struct tally_diff *diff, const struct tally_diff_view *view,
			struct tally_diff_cells *out);
void tally_diff_cells(const struct tally_diff *diff, const struct tally_diff_view *view,
		      const struct tally_diff_entry *entry, struct tally_diff_cells *out);

/* Appends "old.data: 1,234 samples, 1.24 s of cpu-clock" for one side. */
void tally_diff_side_text(const struct tally_diff_side *side, const char *const *paths,
			  struct tally_buffer *out);
/* Appends the lines below the table, each with a newline: omissions, matches, and the limits of the
 * comparison. */
void tally_diff_notes(const struct tally_diff *diff, const struct tally_diff_view *view,
		      struct tally_buffer *out);
/* Appends a warning to be read before the table, with a newline; nothing if there is none. */
void tally_diff_warning(const struct tally_diff *diff, struct tally_buffer *out);

#endif
