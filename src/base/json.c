/* The writer comes first, then the reader; they share nothing.  The reader wraps libjansson: each
 * document loads the library, calls it by pointers to functions, and closes it at the end. */
#include "base/json.h"

#include "base/characters.h"
#include "base/loaded.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends a character as an escape; one beyond 16 bits has two. */
static void escape(struct tally_buffer *out, uint32_t c)
{
	if (c >= 0x10000)
		tally_buffer_printf(out, "\\u%04" PRIx32, 0xd7c0 + (c >> 10));
	tally_buffer_printf(out, "\\u%04" PRIx32, c < 0x10000 ? c : 0xdc00 | (c & 0x3ff));
}

void tally_json_quote(struct tally_buffer *out, const char *text)
{
	tally_buffer_char(out, '"');
	for (size_t plain; *text;) {
		for (plain = 0; tally_plain_ascii(text + plain, 1) && text[plain] != '"' &&
				text[plain] != '\\';)
			plain++;
		tally_buffer_append(out, text, plain);
		text += plain;
		if (!*text)
			break;
		uint32_t c = 0;
		unsigned length = tally_character_decode(text, &c);
		if (!length)
			tally_buffer_text(out, "\xef\xbf\xbd");
		else if (c == '"' || c == '\\')
			tally_buffer_printf(out, "\\%c", (int)c);
		else if (c == '\n')
			tally_buffer_text(out, "\\n");
		else if (c == '\t')
			tally_buffer_text(out, "\\t");
		else if (!tally_character_is_plain(c))
			escape(out, c);
		else
			tally_buffer_append(out, text, length);
		text += length ? length : 1;
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
		tally_json_quote(json->out, name);
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
	tally_json_quote(json->out, value);
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

/* The header's inline functions would need the library linked, so only these functions are
 * called. */
struct library {
	json_t *(*loadb)(const char *, size_t, size_t, json_error_t *);
	void (*delete)(json_t *);
	json_t *(*object_get)(const json_t *, const char *);
	size_t (*array_size)(const json_t *);
	json_t *(*array_get)(const json_t *, size_t);
	const char *(*string_value)(const json_t *);
	double (*number_value)(const json_t *);
};

struct tally_json_document {
	struct library library;
	void *handle;
	json_t *root;
};

static bool load(struct tally_json_document *document)
{
	struct library *library = &document->library;
	void *handle = document->handle = tally_loaded_open("libjansson.so.4");
	return handle && tally_loaded_find(handle, "json_loadb", &library->loadb) &&
	       tally_loaded_find(handle, "json_delete", &library->delete) &&
	       tally_loaded_find(handle, "json_object_get", &library->object_get) &&
	       tally_loaded_find(handle, "json_array_size", &library->array_size) &&
	       tally_loaded_find(handle, "json_array_get", &library->array_get) &&
	       tally_loaded_find(handle, "json_string_value", &library->string_value) &&
	       tally_loaded_find(handle, "json_number_value", &library->number_value);
}

int tally_json_read(const char *text, size_t length, struct tally_json_document **out, size_t *used,
		    struct tally_error *err)
{
	struct tally_json_document *document = calloc(1, sizeof(*document));
	json_error_t error;
	*out = NULL;
	if (!document)
		return tally_error_set(err, -ENOMEM, "out of memory");
	if (!load(document)) {
		tally_json_release(document);
		return tally_loaded_refuse(err, -ENOENT, "JSON can't be read", "libjansson.so.4",
					   "libjansson4");
	}
	document->root = document->library.loadb(text, length, JSON_DISABLE_EOF_CHECK, &error);
	if (!document->root) {
		tally_json_release(document);
		return tally_error_set(err, -EINVAL, "line %d: %s", error.line, error.text);
	}
	*used = (size_t)error.position;
	*out = document;
	return 0;
}

void tally_json_release(struct tally_json_document *document)
{
	if (!document)
		return;
	if (document->root)
		document->library.delete(document->root); /* there are no other references */
	if (document->handle)
		dlclose(document->handle);
	free(document);
}

static const json_t *inside(const struct tally_json_value *value)
{
	return (const json_t *)(const void *)value;
}
static const struct tally_json_value *outside(const json_t *value)
{
	return (const void *)value;
}

const struct tally_json_value *tally_json_root(const struct tally_json_document *document)
{
	return outside(document->root);
}

const struct tally_json_value *tally_json_member(const struct tally_json_document *document,
						 const struct tally_json_value *value,
						 const char *name)
{
	return outside(document->library.object_get(inside(value), name));
}

const struct tally_json_value *tally_json_item(const struct tally_json_document *document,
					       const struct tally_json_value *value, size_t index)
{
	return outside(document->library.array_get(inside(value), index));
}

size_t tally_json_count(const struct tally_json_document *document,
			const struct tally_json_value *value)
{
	return document->library.array_size(inside(value));
}

const char *tally_json_string(const struct tally_json_document *document,
			      const struct tally_json_value *value)
{
	return document->library.string_value(inside(value));
}

bool tally_json_number(const struct tally_json_document *document,
		       const struct tally_json_value *value, double *out)
{
	if (!value || (inside(value)->type != JSON_INTEGER && inside(value)->type != JSON_REAL))
		return false;
	*out = document->library.number_value(inside(value));
	return true;
}

bool tally_json_is_true(const struct tally_json_value *value)
{
	return value && inside(value)->type == JSON_TRUE;
}
