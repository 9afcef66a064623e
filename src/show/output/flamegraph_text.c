/* Decodes one character at a time, replaces those that are not plain, and escapes the others.
 * Labels count two cells for a wide character.  Weights with their units come last. */
#include "output/output_text.h"

#include "base/characters.h"
#include "base/number_text.h"
#include "profile/stacks.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { REPLACEMENT = 0xfffd };

/* Returns the next character and moves `*text` past it. Returns REPLACEMENT for a byte that belongs
 * to no character, and for characters that are not plain: some of them XML 1.0 does not allow. */
static uint32_t next_character(const char **text)
{
	uint32_t c;
	unsigned length = tally_character_decode(*text, &c);
	if (!length) {
		++*text;
		return REPLACEMENT;
	}
	*text += length;
	if (!tally_character_is_plain(c))
		return REPLACEMENT;
	return c;
}

static void append_utf8(struct tally_buffer *out, uint32_t c)
{
	char bytes[4];
	size_t length = 1u + (c >= 0x80) + (c >= 0x800) + (c >= 0x10000);
	static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	for (size_t i = length; i-- > 1; c >>= 6)
		bytes[i] = (char)(0x80 | (c & 0x3f));
	bytes[0] = (char)(first[length] | c);
	tally_buffer_append(out, bytes, length);
}

static void append_markup(struct tally_buffer *out, uint32_t c)
{
	switch (c) {
	case '&': tally_buffer_text(out, "&amp;"); break;
	case '<': tally_buffer_text(out, "&lt;"); break;
	case '>': tally_buffer_text(out, "&gt;"); break;
	case '"': tally_buffer_text(out, "&quot;"); break;
	case '\'': tally_buffer_text(out, "&#39;"); break;
	default: append_utf8(out, c);
	}
}

void tally_flame_markup_text(struct tally_buffer *out, const char *text)
{
	while (*text)
		append_markup(out, next_character(&text));
}

void tally_flame_json_text(struct tally_buffer *out, const char *text)
{
	tally_buffer_char(out, '"');
	while (*text) {
		uint32_t c = next_character(&text);
		if (c == '"' || c == '\\')
			tally_buffer_printf(out, "\\%c", (int)c);
		else if (c == '<' || c == '>' || c == '&')
			tally_buffer_printf(out, "\\u%04" PRIx32, c);
		else
			append_utf8(out, c);
	}
	tally_buffer_char(out, '"');
}

/* Returns the character's cells in a fixed-width font: 2 for East Asian ones and emoji. */
static unsigned cells(uint32_t c)
{
	if ((c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) ||
	    (c >= 0xac00 && c < 0xd7a4) || (c >= 0xf900 && c < 0xfb00) ||
	    (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff61) || c >= 0x1f300)
		return 2;
	return 1;
}

static unsigned cells_of(const char *name, size_t length)
{
	unsigned sum = 0;
	for (const char *end = name + length; name < end && *name && sum < 100000;)
		sum += cells(next_character(&name));
	return sum;
}

static void put_label(struct tally_buffer *out, const char *name, unsigned columns)
{
	size_t length = strlen(name);
	bool cut = false;
	if (cells_of(name, length) > columns)
		length = tally_function_name_length(name);
	if (cells_of(name, length) > columns) {
		cut = true;
		columns--;
	}
	for (const char *end = name + length; name < end;) {
		uint32_t c = next_character(&name);
		if (cells(c) > columns)
			break;
		columns -= cells(c);
		append_markup(out, c);
	}
	if (cut)
		tally_buffer_text(out, "\u2026");
}

void tally_flame_label(struct tally_buffer *out, const char *name, unsigned columns)
{
	struct tally_buffer brief = { 0 };
	if (columns < 3)
		return;
	if (cells_of(name, strlen(name)) > columns) {
		tally_brief_name(&brief, name, (int)columns, "\u2026");
		name = tally_buffer_string(&brief);
	}
	put_label(out, name, columns);
	tally_buffer_release(&brief);
}

/* Writes three digits: "1.24", "12.4", "124". */
static void append_scaled(struct tally_buffer *out, double value, const char *unit)
{
	int digits = !(value >= 99.95) + !(value >= 9.995);
	tally_buffer_printf(out, "%.*f", digits, value);
	if (*unit)
		tally_buffer_printf(out, " %s", unit);
}

/* Writes "12,345 ". */
static void append_whole(struct tally_buffer *out, double value)
{
	uint64_t whole = UINT64_MAX;
	if (value < 0x1p64)
		whole = (uint64_t)value;
	tally_buffer_printf(out, "%s ", tally_number(whole));
}

void tally_flame_weight(struct tally_buffer *out, double weight, const char *unit,
			const char *event)
{
	static const struct { double at_least, scale; const char *unit;
	} times[] = {
		{ 60e9, 60e9, "min" },        { 0.9995e9, 1e9, "s" }, { 0.9995e6, 1e6, "ms" },
		{ 0.9995e3, 1e3, "\u00b5s" }, { 0, 1, "ns" },
	};
	static const struct { double at_least, scale; const char *unit;
	} counts[] = {
		{ 0.9995e12, 1e12, "T " },
		{ 0.9995e9, 1e9, "G " },
		{ 0.9995e6, 1e6, "M " },
		{ 1e5, 1e3, "k " },
	};
	if (!strcmp(unit, "ns")) {
		unsigned i = 0;
		while (weight < times[i].at_least)
			i++;
		append_scaled(out, weight / times[i].scale, times[i].unit);
		return;
	}
	if (!strcmp(unit, TALLY_MILLIONTHS)) {
		append_scaled(out, weight / 1e6, "");
		return;
	}
	bool is_samples = !strcmp(unit, "samples");
	unsigned i = 0, scales = 4;
	if (is_samples)
		scales = 0;
	while (i < scales && weight < counts[i].at_least)
		i++;
	if (i < scales)
		append_scaled(out, weight / counts[i].scale, counts[i].unit);
	else
		append_whole(out, weight);
	const char *noun = unit;
	if (!strcmp(unit, "events") && *event)
		noun = event;
	size_t length = strlen(noun);
	if (weight == 1 && is_samples)
		length--;
	char copy[160];
	snprintf(copy, sizeof(copy), "%.*s", (int)length, noun);
	tally_flame_markup_text(out, copy);
}
