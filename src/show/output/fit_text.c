/* Counts one column for each UTF-8 character, and cuts only between characters. */
#include "output/output_text.h"

#include <string.h>

int tally_text_width(const char *text)
{
	int width = 0;
	for (; *text; text++)
		width += tally_begins_character(*text);
	return width;
}

static const char *ellipsis(bool ascii)
{
	if (ascii)
		return "..";
	return "…";
}

/* Keeps the beginning; with `keeps_end`, half of the columns for the end. */
static void put_cut(struct tally_buffer *out, const char *text, int width, bool keeps_end,
		    bool ascii)
{
	const char *dots = ellipsis(ascii);
	int left = width - tally_text_width(dots), behind = 0, columns = 0;
	if (keeps_end)
		behind = left / 2;
	const char *end = text, *tail = text + strlen(text);
	for (; *end; end++)
		if (tally_begins_character(*end) && ++columns > left - behind)
			break;
	for (int i = 0; i < behind; i++)
		do
			tail--;
		while (tail > end && !tally_begins_character(*tail));
	tally_buffer_append(out, text, (size_t)(end - text));
	tally_buffer_text(out, dots);
	tally_buffer_text(out, tail);
}

int tally_fit_text(struct tally_buffer *out, const char *text, int width, bool ascii)
{
	bool is_name = strchr(text, '<') ||
		       strstr(text, "::"); /* the end of a name matters: overloads differ there */
	struct tally_buffer brief = { 0 };
	if (width > 0 && tally_text_width(text) > width && is_name) {
		tally_brief_name(&brief, text, width, ellipsis(ascii));
		text = tally_buffer_string(&brief);
	}
	int columns = tally_text_width(text);
	if (width <= 0 || columns <= width) {
		tally_buffer_text(out, text);
	} else {
		put_cut(out, text, width, is_name, ascii);
		columns = width;
	}
	tally_buffer_release(&brief);
	return columns;
}

void tally_wrap_text(struct tally_buffer *out, const char *text, int columns)
{
	int used = 0;
	for (const char *word = text; *word;) {
		int length = (int)strcspn(word, " "), width = 0;
		for (int i = 0; i < length; i++)
			width += tally_begins_character(word[i]);
		if (used && used + 1 + width > columns) {
			tally_buffer_char(out, '\n');
			used = 0;
		}
		if (used)
			tally_buffer_char(out, ' ');
		tally_buffer_append(out, word, (size_t)length);
		used += width + (used > 0);
		word += length + (word[length] == ' ');
	}
}
