#include "output/fit_text.h"

#include <string.h>

int tally_text_width(const char *text)
{
	int width = 0;
	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

/* "operator<", "operator<<", "operator->" …: how many of its characters at `at` are no brackets. */
static size_t operator_length(const char *text, const char *at)
{
	static const char word[] = "operator";
	const size_t length = sizeof(word) - 1;
	return (size_t)(at - text) >= length && !memcmp(at - length, word, length) ? strspn(at, "<>=-") : 0;
}

/* The text with what stands in its outermost angle brackets replaced; false when they don't pair. */
static bool fold_arguments(const char *text, const char *dots, struct tally_buffer *out)
{
	unsigned depth = 0;
	const char *opened = text;
	for (const char *at = text; *at; at++) {
		size_t skip = operator_length(text, at);
		if (skip) {
			if (!depth)
				tally_buffer_append(out, at, skip);
			at += skip - 1;
			continue;
		}
		bool arrow = *at == '>' && at > text && at[-1] == '-';
		if (*at == '>' && !arrow) {
			if (!depth--)
				return false;
			if (!depth && at - opened > 4)
				tally_buffer_text(out, dots);
			else if (!depth)
				tally_buffer_append(out, opened + 1, (size_t)(at - opened - 1));
		}
		if (!depth)
			tally_buffer_char(out, *at);
		if (*at == '<' && !depth++)
			opened = at;
	}
	return !depth && !out->failed;
}

int tally_fit_text(struct tally_buffer *out, const char *text, int width, bool ascii)
{
	const char *dots = ascii ? ".." : "…";
	const int dots_width = ascii ? 2 : 1;
	struct tally_buffer folded = { 0 };
	if (width > 0 && tally_text_width(text) > width && strchr(text, '<') && fold_arguments(text, dots, &folded))
		text = tally_buffer_string(&folded);
	int columns = tally_text_width(text);
	if (width <= 0 || columns <= width) {
		tally_buffer_text(out, text);
	} else {
		const char *end = text;
		for (columns = 0; *end; end++)
			if ((*end & 0xc0) != 0x80 && ++columns > width - dots_width)
				break;
		tally_buffer_append(out, text, (size_t)(end - text));
		tally_buffer_text(out, dots);
		columns = width;
	}
	tally_buffer_release(&folded);
	return columns;
}

void tally_wrap_text(struct tally_buffer *out, const char *text, int columns)
{
	int used = 0;
	for (const char *word = text; *word;) {
		int length = (int)strcspn(word, " "), width = 0;
		for (int i = 0; i < length; i++)
			width += ((unsigned char)word[i] & 0xc0) != 0x80;
		if (used && used + 1 + width > columns) {
			tally_buffer_char(out, '\n');
			used = 0;
		}
		tally_buffer_printf(out, "%s%.*s", used ? " " : "", length, word);
		used += width + (used > 0);
		word += length + (word[length] == ' ');
	}
}
