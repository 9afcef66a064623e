/* Shows what changed between two sides' stacks: a table for people, Markdown for a pull request,
 * JSON for programs. */
#ifndef TALLY_OUTPUT_DIFF_VIEW_H
#define TALLY_OUTPUT_DIFF_VIEW_H

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

/* Appends a warning to be read before the table, with a newline; nothing if there is none. */
void tally_diff_warning(const struct tally_diff *diff, struct tally_buffer *out);

#endif
