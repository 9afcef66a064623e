#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns the length of the UTF-8 sequence at `text`; 0 if it isn't one (RFC 3629: no overlong
 * forms, no surrogates). */
static unsigned utf8_length(const unsigned char *text)
{
	unsigned char c = text[0];
	if (c < 0x80)
		return 1;
	unsigned length = c >= 0xc2 && c <= 0xdf   ? 2
			  : (c & 0xf0) == 0xe0     ? 3
			  : c >= 0xf0 && c <= 0xf4 ? 4
						   : 0;
	for (unsigned i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) ||
	    (c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] > 0x8f))
		return 0;
	return length;
}

/* Appends `text` as a JSON string with its quotes. */
static void quote(struct tally_buffer *out, const char *text)
{
	tally_buffer_char(out, '"');
	for (const unsigned char *at = (const unsigned char *)text; *at;) {
		unsigned length = utf8_length(at);
		if (*at == '"' || *at == '\\')
			tally_buffer_printf(out, "\\%c", *at);
		else if (*at == '\n')
			tally_buffer_text(out, "\\n");
		else if (*at == '\t')
			tally_buffer_text(out, "\\t");
		else if (*at < 0x20 || *at == 0x7f)
			tally_buffer_printf(out, "\\u%04x", *at);
		else if (!length)
			tally_buffer_text(out, "\xef\xbf\xbd");
		else
			tally_buffer_append(out, at, length);
		at += length ? length : 1;
	}
	tally_buffer_char(out, '"');
}

static void line_break(struct tally_json *json)
{
	if (!json->indent)
		return;
	tally_buffer_char(json->out, '\n');
	for (unsigned i = 0; i < json->depth; i++)
		tally_buffer_text(json->out, "  ");
}

static void before_value(struct tally_json *json, const char *name)
{
	if (json->depth) {
		if (json->has_items[json->depth - 1])
			tally_buffer_char(json->out, ',');
		json->has_items[json->depth - 1] = true;
		line_break(json);
	}
	if (name) {
		quote(json->out, name);
		tally_buffer_text(json->out, json->indent ? ": " : ":");
	}
}

static void open_nest(struct tally_json *json, const char *name, bool is_array)
{
	before_value(json, name);
	if (json->depth == TALLY_JSON_DEPTH_MAX) {
		json->out->failed = true;
		return;
	}
	tally_buffer_char(json->out, is_array ? '[' : '{');
	json->is_array[json->depth] = is_array;
	json->has_items[json->depth++] = false;
}

void tally_json_object(struct tally_json *json, const char *name)
{
	open_nest(json, name, false);
}

void tally_json_array(struct tally_json *json, const char *name)
{
	open_nest(json, name, true);
}

void tally_json_end(struct tally_json *json)
{
	if (!json->depth)
		return;
	json->depth--;
	if (json->has_items[json->depth])
		line_break(json);
	tally_buffer_char(json->out, json->is_array[json->depth] ? ']' : '}');
	if (!json->depth)
		tally_buffer_char(json->out, '\n');
}

void tally_json_text(struct tally_json *json, const char *name, const char *value)
{
	if (!value) {
		tally_json_null(json, name);
		return;
	}
	before_value(json, name);
	quote(json->out, value);
}

void tally_json_u64(struct tally_json *json, const char *name, uint64_t value)
{
	before_value(json, name);
	tally_buffer_printf(json->out, "%" PRIu64, value);
}

void tally_json_i64(struct tally_json *json, const char *name, int64_t value)
{
	before_value(json, name);
	tally_buffer_printf(json->out, "%" PRId64, value);
}

void tally_json_double(struct tally_json *json, const char *name, double value)
{
	if (!isfinite(value)) {
		tally_json_null(json, name);
		return;
	}
	before_value(json, name);
	/* 15 digits if they round-trip, else 17, which always do. */
	char text[40];
	double back;
	snprintf(text, sizeof(text), "%.15g", value);
	if (sscanf(text, "%lf", &back) != 1 || memcmp(&back, &value, sizeof(value)))
		snprintf(text, sizeof(text), "%.17g", value);
	for (char *c = text; *c; c++)
		if (*c == ',')
			*c = '.';
	tally_buffer_text(json->out, text);
}

void tally_json_bool(struct tally_json *json, const char *name, bool value)
{
	before_value(json, name);
	tally_buffer_text(json->out, value ? "true" : "false");
}

void tally_json_null(struct tally_json *json, const char *name)
{
	before_value(json, name);
	tally_buffer_text(json->out, "null");
}
