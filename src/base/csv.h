/* Values with a separator between them: RFC 4180, which has the comma. */
#ifndef TALLY_BASE_CSV_H
#define TALLY_BASE_CSV_H

#include "base/buffer.h"

/* `text` as a cell: in quotes where it has need of them, with this separator (",") among others. */
void tally_csv_quote(struct tally_buffer *out, const char *text, const char *separator);

#endif
