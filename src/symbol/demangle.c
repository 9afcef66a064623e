/* Readable names, by libiberty's demanglers: cp-demangle.c, rust-demangle.c and d-demangle.c, which are LGPL-2+ with
 * the exception that "unlimited permission to link the compiled version" into other programs is given.
 *
 * Mangled names may come from anybody's binary, and their substitutions let 300 bytes expand to terabytes.  The
 * demanglers hand their output piece by piece to a callback but take no word from it; they keep everything on the
 * stack, so that it is safe to jump out of them.
 */
#include "symbol/symbol.h"

#include "base/buffer.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	MANGLED_MAX = 16 * 1024,
	READABLE_MAX = 256 * 1024,
};

struct output {
	struct tally_buffer text;
	jmp_buf too_long;
};

static void append(const char *piece, size_t length, void *context)
{
	struct output *output = context;
	tally_buffer_append(&output->text, piece, length);
	if (output->text.failed)
		longjmp(output->too_long, 1);
}

static bool demangle_into(struct output *output, const char *name, int options)
{
	if (setjmp(output->too_long))
		return false;
	/* Rust first: its older names are valid C++ names, with a hash at the end ("17h" and 16 digits). */
	bool may_be_rust = name[1] != 'Z' || strstr(name, "17h");
	if (may_be_rust && rust_demangle_callback(name, 0, append, output))
		return true;
	tally_buffer_clear(&output->text);
	return cplus_demangle_v3_callback(name, options, append, output);
}

static char *demangle(const char *name, int options)
{
	if (name[0] == '_' && name[1] == 'D')
		return dlang_demangle(name, options);
	if (name[0] != '_')
		return NULL;
	struct output output = { .text = { .maximum = READABLE_MAX } };
	if (demangle_into(&output, name, options) && output.text.length > 0)
		return output.text.bytes;
	tally_buffer_release(&output.text);
	return NULL;
}

static char *demangle_versioned(const char *name, int options)
{
	size_t length = strlen(name);
	if (length < 4 || length > MANGLED_MAX)
		return NULL;
	/* "@plt" is ours, "@@VERSION" the linker's. */
	const char *at = strchr(name, '@');
	if (!at)
		return demangle(name, options);
	char *mangled = strndup(name, (size_t)(at - name));
	char *readable = mangled ? demangle(mangled, options) : NULL;
	free(mangled);
	char *whole = readable ? realloc(readable, strlen(readable) + strlen(at) + 1) : NULL;
	if (!whole) {
		free(readable);
		return NULL;
	}
	return strcat(whole, at);
}

char *tally_demangle(const char *name)
{
	return demangle_versioned(name, DMGL_NO_OPTS);
}

char *tally_demangle_signature(const char *name)
{
	return demangle_versioned(name, DMGL_PARAMS | DMGL_ANSI);
}
