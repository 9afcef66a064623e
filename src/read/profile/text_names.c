/* Names in text that other tools wrote. perf built without demanglers leaves mangled symbols. perf
 * built without Rust's demangler leaves the hash of the older mangling at the end:
 * "core::fmt::write::h0123456789abcdef".  Both are made readable; the hash stays if two functions
 * would have the same name without it. */
#include "profile/stacks.h"

#include "base/buffer.h"
#include "symbol/symbol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_LETTERS = 17 }; /* "h0123456789abcdef" */

struct readable {
	uint32_t whole, brief; /* string ids: with the hash, and without */
};

/* Returns the length of a name without "::h" and 16 digits at its end. */
static size_t brief_length(const char *name)
{
	size_t length = strlen(name);
	if (length <= HASH_LETTERS + 2)
		return length;
	const char *hash = name + length - HASH_LETTERS;
	if (memcmp(hash - 2, "::h", 3) != 0 ||
	    strspn(hash + 1, "0123456789abcdef") != HASH_LETTERS - 1)
		return length;
	return length - HASH_LETTERS - 2;
}

static struct readable read_name(struct tally_strings *strings, uint32_t name)
{
	const char *text = tally_strings_text(strings, name), *hash;
	char *readable = text[0] == '_' ? tally_demangle_signature(text) : NULL;
	struct tally_buffer whole = { 0 };
	struct readable result = { name, name };
	if (readable && tally_mangled_variant(text, &hash) == TALLY_MANGLED_RUST_HASH) {
		tally_buffer_printf(&whole, "%s::%.*s", readable, (int)HASH_LETTERS, hash);
		result.whole = TALLY_STRING_NONE;
		if (!whole.failed)
			result.whole = tally_strings_intern(strings, tally_buffer_string(&whole));
	} else if (readable) {
		result.whole = tally_strings_intern(strings, readable);
	}
	text = tally_strings_text(strings, result.whole);
	result.brief = tally_strings_add(strings, text, brief_length(text));
	tally_buffer_release(&whole);
	free(readable);
	return result;
}

int tally_stacks_make_readable(struct tally_stacks *stacks)
{
	enum { SEVERAL = UINT32_MAX - 1 };
	struct readable *names = malloc((stacks->frames.count + 1) * sizeof(*names));
	/* brief name → the only whole name, + 1; SEVERAL: there are several */
	struct tally_map wholes = { 0 };
	int result = 0;
	if (!names)
		result = -ENOMEM;
	for (size_t i = 0; !result && i < stacks->frames.count; i++) {
		names[i] = read_name(&stacks->strings, stacks->frames.items[i].name);
		uint64_t *whole = NULL;
		if (!stacks->strings.failed)
			whole = tally_map_put(&wholes, names[i].brief, NULL);
		if (!whole)
			result = -ENOMEM;
		else if (!*whole)
			*whole = names[i].whole + 1u;
		else if (*whole != names[i].whole + 1u)
			*whole = SEVERAL;
	}
	for (size_t i = 0; !result && i < stacks->frames.count; i++) {
		bool is_only = *tally_map_get(&wholes, names[i].brief) != SEVERAL;
		stacks->frames.items[i].name = is_only ? names[i].brief : names[i].whole;
	}
	tally_map_release(&wholes);
	free(names);
	return result;
}
