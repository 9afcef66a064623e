/* Values with a separator between them: RFC 4180, whose separator is the comma. */
#ifndef TALLY_BASE_CSV_H
#define TALLY_BASE_CSV_H

#include "base/buffer.h"

/* Appends `text` as a cell, in quotes if it needs them; text that contains this separator does.  CSV
 * has no escapes, so names are cleaned as for a terminal (terminal.h): a row is one line. */
void tally_csv_quote(struct tally_buffer *out, const char *text, const char *separator);

#endif
