#include "base/json_reader.h"

#include "base/loaded.h"

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

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
	void *handle = document->handle = dlopen("libjansson.so.4", RTLD_NOW | RTLD_LOCAL);
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
		tally_error_set(err, -ENOENT,
				"JSON can't be read: libjansson.so.4 is not installed");
		tally_error_hint(err, "on Debian: apt-get install libjansson4");
		return -ENOENT;
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
static const struct tally_json_value *outside(const json_t *value) { return (const void *)value; }

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
