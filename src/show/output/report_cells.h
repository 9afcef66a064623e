/* The text of a report's cells, with terminal escapes neutralised. */
#ifndef TALLY_OUTPUT_REPORT_CELLS_H
#define TALLY_OUTPUT_REPORT_CELLS_H

#include "report/report_model.h"

enum { TALLY_REPORT_CELL_BYTES = 1024 };

/* Terminals of this width have room for columns of errors. */
enum { TALLY_REPORT_ERROR_COLUMNS = 120 };

/* Writes "main", "schedule [k]", or "[libc.so.6]" for a place without a symbol; UINT32_MAX: the
 * samples have no address. */
void tally_report_function(const struct tally_names *names, uint32_t function, char *out,
			   size_t size);

/* Writes an entry's text in the column of a key. */
void tally_report_cell(const struct tally_names *names, const struct tally_report_entry *entry,
		       enum tally_sort_key key, char *out, size_t size);

/* Columns of a report of waits: total time, number, mean and maximum; with callees included if the
 * report has totals. */
enum { TALLY_WAIT_COLUMNS = 4, TALLY_WAIT_WIDTH = 10 };

/* Terminals of this width have room for them and for both shares. */
enum { TALLY_REPORT_WAIT_COLUMNS = 110 };

/* All of these columns are right-aligned. */
const char *tally_report_wait_title(unsigned column);
void tally_report_wait_cell(const struct tally_report_entry *entry, bool of_total, unsigned column,
			    char *out, size_t size);

/* True if a key has a column. If there is only one command, the head names it instead. */
bool tally_report_is_column(const struct tally_report *report,
			    const struct tally_report_options *options, enum tally_sort_key key);

/* True if the key's column may be narrowed. */
bool tally_report_key_shrinks(enum tally_sort_key key);

#endif
