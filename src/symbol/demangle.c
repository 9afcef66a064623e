/* Readable names, by libiberty's demanglers: cp-demangle.c, rust-demangle.c and d-demangle.c.
 * Their licence is LGPL-2+ with the exception that gives "unlimited permission to link the compiled
 * version" into other programs.
 *
 * Mangled names are untrusted, and their substitutions can expand 300 bytes to terabytes.  The
 * demanglers pass their output piece by piece to a callback, which can't tell them to stop.  They
 * keep everything on the stack, so the callback can safely longjmp() out of them.
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
	/* Rust first: names of its legacy mangling are valid C++ names, with a hash at the end
	 * ("17h" and 16 digits). */
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
	/* "@plt" is added by tally, "@@VERSION" by the linker. */
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
	return demangle_versioned(name, DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP);
}

/* Finds the hash: "17h", 16 hexadecimal digits and "E"; a compiler's suffix (".llvm.1") may
 * follow. */
static const char *rust_hash(const char *name)
{
	enum { DIGITS = 16 };
	for (const char *at = strstr(name, "17h"); at; at = strstr(at + 1, "17h")) {
		size_t digits = strspn(at + 3, "0123456789abcdef");
		if (digits == DIGITS && at[3 + DIGITS] == 'E' &&
		    (!at[4 + DIGITS] || at[4 + DIGITS] == '.'))
			return at + 2;
	}
	return NULL;
}

enum tally_mangled_variant tally_mangled_variant(const char *name, const char **hash)
{
	const char *found = name[0] == '_' && name[1] == 'Z' ? rust_hash(name) : NULL;
	if (name[0] != '_' || strlen(name) > MANGLED_MAX)
		return TALLY_MANGLED_PLAIN;
	if (found) {
		if (hash)
			*hash = found;
		return TALLY_MANGLED_RUST_HASH;
	}
	switch (is_gnu_v3_mangled_dtor(name)) {
	case gnu_v3_deleting_dtor:
		return TALLY_MANGLED_DELETING;
	case gnu_v3_complete_object_dtor:
		return TALLY_MANGLED_COMPLETE;
	case gnu_v3_base_object_dtor:
		return TALLY_MANGLED_BASE;
	default:
		break;
	}
	switch (is_gnu_v3_mangled_ctor(name)) {
	case gnu_v3_complete_object_ctor:
		return TALLY_MANGLED_COMPLETE;
	case gnu_v3_base_object_ctor:
		return TALLY_MANGLED_BASE;
	default:
		return TALLY_MANGLED_PLAIN;
	}
}
