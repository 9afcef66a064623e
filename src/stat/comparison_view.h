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

/* --- shared by table and Markdown ------------------------------------------- */

enum { TALLY_COMPARISON_TEXT = 128 };

/* "1,234.5 msec"; "—" if there is no row; "<not-supported>" if it has no figure. */
void tally_comparison_figure(const struct tally_saved_row *row, char out[TALLY_COMPARISON_TEXT]);
/* "+1.25 %"; "" if there is none. */
void tally_comparison_change(const struct tally_compared_row *row, char out[TALLY_COMPARISON_TEXT]);
/* "−0.5 … +2.6 %, within the noise": the interval, and whether the change is significant. */
void tally_comparison_remark(const struct tally_compared_row *row, char out[TALLY_COMPARISON_TEXT]);
/* "instructions > +1%: +1.25 %", followed by the result in words. */
void tally_comparison_verdict(const struct tally_judged_condition *judged,
			      char out[3 * TALLY_COMPARISON_TEXT]);

#endif
