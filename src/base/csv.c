/* Quotes a cell that contains a quote or the separator, and doubles the quotes in it.  Newlines
 * need no quotes, because cleaning the text replaces them. */
#include "base/csv.h"

#include "base/terminal.h"

#include <string.h>

void tally_csv_quote(struct tally_buffer *out, const char *text, const char *separator)
{
	if (!strchr(text, '"') && !strstr(text, separator)) {
		tally_put_name(out, text);
		return;
	}
	tally_buffer_char(out, '"');
	for (;;) {
		size_t length = strcspn(text, "\"");
		tally_put_name_bytes(out, text, length);
		if (!text[length])
			break;
		tally_buffer_text(out, "\"\"");
		text += length + 1;
	}
	tally_buffer_char(out, '"');
}
