/* Shows a comparison of saved counts: a table for people, Markdown for a pull request, JSON for
 * programs. */
#ifndef TALLY_STAT_COMPARISON_VIEW_H
#define TALLY_STAT_COMPARISON_VIEW_H

#include "base/buffer.h"
#include "counts/saved_counts.h"

#include <stdbool.h>

enum { TALLY_COMPARE_JSON_VERSION = 1 };

void tally_comparison_table(const struct tally_saved_comparison *comparison, bool has_colours,
			    struct tally_buffer *out);
void tally_comparison_markdown(const struct tally_saved_comparison *comparison,
			       struct tally_buffer *out);
/* docs/stat-output.md has the schema. */
void tally_comparison_json(const struct tally_saved_comparison *comparison,
			   struct tally_buffer *out);

#endif
