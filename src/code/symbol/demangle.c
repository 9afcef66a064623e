/* Readable names, by libiberty's demanglers: cp-demangle.c, rust-demangle.c and d-demangle.c.
 * Their licence is LGPL-2+ with the exception that gives "unlimited permission to link the compiled
 * version" into other programs.  OCaml's names need no library.
 *
 * Mangled names are untrusted, and their substitutions can expand 300 bytes to terabytes.  Those of
 * C++ and Rust pass their output piece by piece to a callback, which can't tell them to stop.  They
 * keep everything on the stack, so the callback can safely longjmp() out of them.  That of D has no
 * callback, so the work is estimated before.
 */
#include "symbol/symbol.h"

#include "base/buffer.h"
#include "base/input_limits.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MANGLED_MAX = 16 * 1024 };

struct output {
	struct tally_buffer text;
	jmp_buf too_long;
};

/* Decodes what libiberty leaves of Rust's older mangling: it knows no characters beyond ASCII
 * ("$ue9$"), and leaves the rest of a name that has one. */
static size_t decode_escape(const char *at, uint32_t *character)
{
	static const struct {
		const char *text;
		char character;
	} ESCAPES[] = { { "$SP$", '@' }, { "$BP$", '*' }, { "$RF$", '&' }, { "$LT$", '<' },
			{ "$GT$", '>' }, { "$LP$", '(' }, { "$RP$", ')' }, { "$C$", ',' } };
	for (size_t i = 0; i < sizeof(ESCAPES) / sizeof(*ESCAPES); i++) {
		size_t length = strlen(ESCAPES[i].text);
		*character = (unsigned char)ESCAPES[i].character;
		if (!strncmp(at, ESCAPES[i].text, length))
			return length;
	}
	size_t digits = 0;
	if (at[1] == 'u')
		digits = strspn(at + 2, "0123456789abcdef");
	if (!digits || digits > 6 || at[2 + digits] != '$')
		return 0;
	*character = (uint32_t)strtoul(at + 2, NULL, 16);
	bool is_control = *character < 0x20 || (*character >= 0x7f && *character < 0xa0);
	bool is_surrogate = *character >= 0xd800 && *character < 0xe000;
	if (is_control || is_surrogate || *character > 0x10ffff)
		return 0;
	return digits + 3;
}

/* Writes a character as UTF-8.  Returns the number of bytes, no more than its escape has. */
static size_t put_utf8(char *out, uint32_t character)
{
	if (character < 0x80) {
		out[0] = (char)character;
		return 1;
	}
	size_t more = 1 + (character >= 0x800) + (character >= 0x10000);
	out[0] = (char)(0xff00 >> (more + 1) | character >> 6 * more);
	for (size_t i = 1; i <= more; i++)
		out[i] = (char)(0x80 | (character >> 6 * (more - i) & 0x3f));
	return more + 1;
}

static void decode_escapes(struct output *output)
{
	char *text = output->text.bytes, *from = strchr(text, '$'), *to = from;
	while (from && *from) {
		uint32_t character;
		size_t length = 0;
		if (*from == '$')
			length = decode_escape(from, &character);
		if (length) {
			to += put_utf8(to, character);
			from += length;
		} else if (from[0] == '.' && from[1] == '.') {
			*to++ = ':';
			*to++ = ':';
			from += 2;
		} else {
			*to++ = *from++;
		}
	}
	if (from) {
		*to = '\0';
		output->text.length = (size_t)(to - text);
	}
}

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
	if (may_be_rust && rust_demangle_callback(name, 0, append, output)) {
		if (name[1] == 'Z' && output->text.length)
			decode_escapes(output);
		return true;
	}
	tally_buffer_clear(&output->text);
	return cplus_demangle_v3_callback(name, options, append, output);
}

static int hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return -1;
}

/* OCaml's "camlList__map_81" as perf prints it: "List.map_81".  "$2b" is a character's code. */
static char *demangle_ocaml(const char *name)
{
	char *readable = malloc(strlen(name) + 1), *to = readable;
	for (const char *from = name + 4; readable && *from;) {
		int high = -1, low = -1;
		if (*from == '$')
			high = hex_digit(from[1]);
		if (high >= 0)
			low = hex_digit(from[2]);
		if (low >= 0 && high * 16 + low >= ' ') {
			*to++ = (char)(high * 16 + low);
			from += 3;
		} else if (from[0] == '_' && from[1] == '_') {
			*to++ = '.';
			from += 2;
		} else {
			*to++ = *from++;
		}
	}
	if (readable)
		*to = '\0';
	return readable;
}

/* ---- D ------------------------------------------------------------------- */

/* Reads the number of a back reference (D's ABI, NumberBackRef: base 26, the last digit is a small
 * letter).  Returns 0 if there is none. */
static size_t back_reference(const char *at)
{
	size_t distance = 0;
	for (; *at >= 'A' && *at <= 'Z' && distance < MANGLED_MAX; at++)
		distance = distance * 26 + (size_t)(*at - 'A');
	if (*at >= 'a' && *at <= 'z')
		return distance * 26 + (size_t)(*at - 'a');
	return 0;
}

/* Returns how much the characters of the name expand to at most, in characters.
 *
 * A back reference to an identifier stands for that.  A back reference to a type stands for what
 * was parsed there, which ends before the reference at the latest.  `sums` has length + 1 items. */
static uint64_t d_expansion(const char *name, size_t length, uint64_t *sums)
{
	sums[0] = 0;
	for (size_t i = 0; i < length; i++) {
		size_t distance = 0;
		if (name[i] == 'Q')
			distance = back_reference(name + i + 1);
		uint64_t weight = 1;
		if (distance && distance <= i) {
			const char *there = name + i - distance;
			bool is_identifier = *there >= '0' && *there <= '9';
			uint64_t size = sums[i] - sums[i - distance];
			if (is_identifier)
				size = strtoul(there, NULL, 10);
			if (is_identifier && size > length)
				size = length;
			weight += size;
		}
		sums[i + 1] = sums[i] + weight;
		if (sums[i + 1] > UINT32_MAX)
			sums[i + 1] = UINT32_MAX; /* only compared with a limit far below */
	}
	return sums[length];
}

/* True if libiberty demangles a name of D in reasonable time.  It copies the text of a type at each
 * level of nesting, and tries all ways to split the digits of a symbol parameter ("S12…") of old
 * compilers, also at each level. */
static bool is_d_name_cheap(const char *name)
{
	const uint64_t most = 1 << 26;
	const size_t length = strlen(name);
	uint64_t *sums = malloc((length + 1) * sizeof(*sums)), work;
	if (!sums)
		return false;
	work = length * d_expansion(name, length, sums);
	free(sums);
	for (const char *at = name; (at = strchr(at, 'S')) && work <= most; at++) {
		size_t digits = strspn(at + 1, "0123456789");
		work *= digits > 1 ? digits : 1;
	}
	return work <= most;
}

/* libiberty doesn't know the suffixes that compilers add to copies of functions (".constprop.0").
 * They are left out, as in names of C++ without parameters. */
static char *demangle_d(const char *name, int options)
{
	char *mangled = strndup(name, strcspn(name, "."));
	char *readable = NULL;
	if (mangled && is_d_name_cheap(mangled))
		readable = dlang_demangle(mangled, options);
	free(mangled);
	if (readable && strlen(readable) > tally_input_rows[TALLY_INPUT_DEMANGLED].bytes) {
		free(readable);
		return NULL;
	}
	return readable;
}

static char *demangle(const char *name, int options)
{
	if (!strncmp(name, "caml", 4) && name[4] >= 'A' && name[4] <= 'Z')
		return demangle_ocaml(name);
	if (name[0] == '_' && name[1] == 'D')
		return demangle_d(name, options);
	if (name[0] != '_')
		return NULL;
	struct output output = {
		.text = { .maximum = tally_input_rows[TALLY_INPUT_DEMANGLED].bytes }
	};
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
	if (!mangled)
		return NULL;
	char *readable = demangle(mangled, options);
	free(mangled);
	if (!readable)
		return NULL;
	char *whole = realloc(readable, strlen(readable) + strlen(at) + 1);
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
	const char *found = NULL;
	if (name[0] == '_' && name[1] == 'Z')
		found = rust_hash(name);
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
