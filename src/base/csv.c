#include "base/csv.h"

#include <string.h>

void tally_csv_quote(struct tally_buffer *out, const char *text, const char *separator)
{
	if (!strpbrk(text, "\"\r\n") && !strstr(text, separator)) {
		tally_buffer_text(out, text);
		return;
	}
	tally_buffer_char(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			tally_buffer_char(out, '"');
		tally_buffer_char(out, *text);
	}
	tally_buffer_char(out, '"');
}
