/* What the cells of a report say, with terminal escapes neutralised. */
#ifndef TALLY_OUTPUT_REPORT_CELLS_H
#define TALLY_OUTPUT_REPORT_CELLS_H

#include "report/report_model.h"

enum { TALLY_REPORT_CELL_BYTES = 1024 };

/* A terminal of which takes columns of errors without the names being cut. */
enum { TALLY_REPORT_ERROR_COLUMNS = 120 };

/* "main", "schedule [k]", "[libc.so.6]" where there is no symbol; UINT32_MAX: of samples without
 * any address. */
void tally_report_function(const struct tally_names *names, uint32_t function, char *out,
			   size_t size);

/* An entry's text in the column of a key. */
void tally_report_cell(const struct tally_names *names, const struct tally_report_entry *entry,
		       enum tally_sort_key key, char *out, size_t size);

/* Columns of a report of waits, of its totals where it has such: how long, how often, in the
 * mean and at most. */
enum { TALLY_WAIT_COLUMNS = 4, TALLY_WAIT_WIDTH = 10 };

/* A terminal that has room for them and for both shares. */
enum { TALLY_REPORT_WAIT_COLUMNS = 110 };

/* Right-aligned, as all of them. */
const char *tally_report_wait_title(unsigned column);
void tally_report_wait_cell(const struct tally_report_entry *entry, bool of_total, unsigned column,
			    char *out, size_t size);

/* Whether a key has a column: one command alone stands in the head. */
bool tally_report_is_column(const struct tally_report *report,
			    const struct tally_report_options *options, enum tally_sort_key key);

/* Whether its column may be cut where there is little room. */
bool tally_report_key_shrinks(enum tally_sort_key key);

#endif
