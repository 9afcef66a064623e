/* Tries each parenthesis outside of other brackets: the first one that opens a parameter list ends
 * the name. */
#include "output/output_text.h"

#include <stdbool.h>
#include <string.h>

static const char *behind_parenthesis(const char *open)
{
	int depth = 0;
	for (const char *at = open; *at; at++) {
		depth += (*at == '(') - (*at == ')');
		if (!depth)
			return at + 1;
	}
	return open + strlen(open);
}

static bool follows_operator(const char *name, const char *at)
{
	return at - name >= 8 && !memcmp(at - 8, "operator", 8);
}

/* Skips what C++ and D put behind a member function's parameters: " const", " &&", " shared". */
static const char *behind_qualifiers(const char *at)
{
	static const char *const WORDS[] = { "const",     "volatile", "noexcept", "&&",   "&",
					     "immutable", "shared",   "inout",    "scope" };
	for (size_t i = 0; i < sizeof(WORDS) / sizeof(*WORDS); i++) {
		size_t length = strlen(WORDS[i]);
		if (*at != ' ' || strncmp(at + 1, WORDS[i], length) != 0 ||
		    !strchr(" :.", at[length + 1]))
			continue;
		at += length + 1;
		i = (size_t)-1; /* another one may follow */
	}
	return at;
}

/* True if what is in parentheses is no parameter list but a part of the name, such as those of the
 * function around a lambda. */
static bool is_within_name(const char *name, const char *open, const char *behind)
{
	behind = behind_qualifiers(behind);
	return open == name || open[-1] == ' ' || *behind == '.' || !strncmp(behind, "::", 2) ||
	       !strncmp(open, "(anonymous namespace)", 21);
}

size_t tally_function_name_length(const char *name)
{
	int inner = 0; /* number of open brackets */
	if (*name == '[') /* an object's name */
		return strlen(name);
	for (const char *at = name; *at; at++) {
		if (follows_operator(name, at)) {
			if (!strncmp(at, "()", 2))
				at += 2;
			else
				at += strspn(at, "<>-=");
			if (!*at)
				break;
		}
		inner += *at == '<' || *at == '{';
		inner -= (*at == '>' || *at == '}') && inner > 0 && at[-1] != '-';
		if (*at != '(' || inner)
			continue;
		const char *behind = behind_parenthesis(at);
		if (at > name && at[-1] == '.' && *behind == '.')
			return strlen(name);
		if (!is_within_name(name, at, behind))
			return (size_t)(at - name);
		at = behind - 1;
	}
	return strlen(name);
}
