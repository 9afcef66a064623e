/* Replaces the outermost template arguments, then drops leading parts until the name fits.  Both
 * steps skip names of operators, whose characters look like brackets. */
#include "output/output_text.h"

#include <stdbool.h>
#include <string.h>

enum { ARGUMENTS_MAX = 4, WORTH_FILLING = 8 };

/* Returns how many characters at `at` belong to an operator's name ("operator<", "operator<<",
 * "operator->") and so are not brackets. */
static size_t operator_length(const char *text, const char *at)
{
	static const char word[] = "operator";
	const size_t length = sizeof(word) - 1;
	bool is_behind = (size_t)(at - text) >= length && !memcmp(at - length, word, length);
	if (!is_behind)
		return 0;
	if (!strncmp(at, "()", 2))
		return 2;
	return strspn(at, "<>=-");
}

/* Appends the text with `dots` in place of its outermost template arguments; stores where the first
 * arguments are in `*first` and `*first_length`. Returns false when brackets don't pair. */
static bool fold_arguments(const char *text, const char *dots, struct tally_buffer *out,
			   const char **first, size_t *first_length)
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
			size_t length = (size_t)(at - opened - 1);
			if (!depth && length >= ARGUMENTS_MAX) {
				tally_buffer_text(out, dots);
				if (!*first) {
					*first = opened + 1;
					*first_length = length;
				}
			} else if (!depth) {
				tally_buffer_append(out, opened + 1, length);
			}
		}
		if (!depth)
			tally_buffer_char(out, *at);
		if (*at == '<' && !depth++)
			opened = at;
	}
	return !depth && !out->failed;
}

/* True for a part that means nothing alone: "{{closure}}", "operator()", a Rust hash. */
static bool needs_scope(const char *part)
{
	enum { HASH_DIGITS = 16 };
	return *part == '{' || !strncmp(part, "operator()", 10) ||
	       (*part == 'h' && strspn(part + 1, "0123456789abcdef") == HASH_DIGITS &&
		!part[1 + HASH_DIGITS]);
}

/* Returns the next part of a qualified name, or NULL after the last. */
static const char *next_part(const char *text, const char *part)
{
	int depth = 0;
	for (const char *at = part; *at; at++) {
		size_t skip = operator_length(text, at);
		if (skip) {
			at += skip - 1;
			continue;
		}
		bool arrow = *at == '>' && at > text && at[-1] == '-';
		depth += strchr("<({[", *at) != NULL;
		depth -= strchr(">)}]", *at) != NULL && !arrow;
		if (!depth && at[0] == ':' && at[1] == ':')
			return at + 2;
	}
	return NULL;
}

/* Drops leading parts until the rest fits, or until the rest means nothing alone. */
static const char *drop_parts(const char *text, int width)
{
	const char *part = text;
	int rest = tally_text_width(part);
	while (rest > width) {
		const char *next = next_part(text, part);
		if (!next || needs_scope(next))
			return part;
		for (; part < next; part++)
			rest -= tally_begins_character(*part);
	}
	return part;
}

/* Appends the name with as much of its first template arguments as there is room for. Arguments
 * tell instances of a template apart. */
static void put_filled(struct tally_buffer *out, const char *brief, const char *dots,
		       const char *arguments, size_t length, int width)
{
	const char *at = strstr(brief, dots);
	int room = width - tally_text_width(brief);
	if (!at || room < WORTH_FILLING || (size_t)room >= length) {
		tally_buffer_text(out, brief);
		return;
	}
	size_t kept = (size_t)room;
	while (kept && !tally_begins_character(arguments[kept]))
		kept--;
	tally_buffer_append(out, brief, (size_t)(at - brief));
	tally_buffer_append(out, arguments, kept);
	tally_buffer_text(out, at);
}

void tally_brief_name(struct tally_buffer *out, const char *name, int width, const char *dots)
{
	struct tally_buffer folded = { 0 };
	const char *arguments = NULL;
	size_t length = 0;
	if (tally_text_width(name) <= width ||
	    !fold_arguments(name, dots, &folded, &arguments, &length)) {
		tally_buffer_text(out, name);
	} else {
		const char *whole = tally_buffer_string(&folded), *brief = drop_parts(whole, width);
		/* The first arguments may belong to a part that was dropped. */
		const char *first = strstr(whole, dots);
		if (first && first >= brief)
			put_filled(out, brief, dots, arguments, length, width);
		else
			tally_buffer_text(out, brief);
	}
	tally_buffer_release(&folded);
}
