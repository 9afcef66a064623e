/* Comma-separated values: RFC 4180. */
#ifndef TALLY_BASE_CSV_H
#define TALLY_BASE_CSV_H

#include "base/buffer.h"

/* `text` as a cell: in quotes where it has need of them. */
void tally_csv_quote(struct tally_buffer *out, const char *text);

#endif
