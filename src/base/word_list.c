/* Matches a word against each pattern of a list in place.  A comma within a function's parameter
 * list does not end the pattern. */
#include "base/word_list.h"

#include "base/characters.h"

#include <stddef.h>

/* If the pattern's next character matches the word's, moves both past it.  `?` matches any
 * character; a backslash makes the next character literal. */
static bool take_letter(const char **pattern, const char *end, const char **word)
{
	const char *at = *pattern;
	bool is_quoted = at + 1 < end && *at == '\\';
	at += is_quoted;
	if (at == end || (*at != **word && (*at != '?' || is_quoted)))
		return false;
	if (*at == '?' && !is_quoted) /* it may have several bytes in UTF-8 */
		while (!tally_begins_character((*word)[1]))
			++*word;
	++*word;
	*pattern = at + 1;
	return true;
}

/* `*` stands for any text.  If the rest doesn't match after a star, the star takes one more
 * character; only the last star has to be tried again. */
static bool fits(const char *pattern, const char *end, const char *word)
{
	const char *star = NULL, *taken = NULL;
	while (*word) {
		if (pattern < end && *pattern == '*') {
			star = pattern++;
			taken = word;
		} else if (take_letter(&pattern, end, &word)) {
			continue;
		} else if (star) {
			pattern = star + 1;
			word = ++taken;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

/* Returns the length up to and including the parenthesis that closes the one at `list`; 1 if none
 * does. */
static size_t length_of_parameters(const char *list)
{
	size_t depth = 0;
	for (size_t i = 0; list[i]; i++) {
		depth += list[i] == '(';
		depth -= list[i] == ')';
		if (!depth)
			return i + 1;
	}
	return 1;
}

/* Returns the length of the first name in a list.  Commas within parameters belong to the name. */
static size_t length_of_one(const char *list)
{
	size_t length = 0;
	while (list[length] && list[length] != ',') {
		if (list[length] == '(')
			length += length_of_parameters(list + length);
		else if (list[length] == '\\' && list[length + 1])
			length += 2;
		else
			length++;
	}
	return length;
}

bool tally_list_has(const char *list, const char *word)
{
	while (list && *list) {
		size_t one = length_of_one(list);
		if (fits(list, list + one, word))
			return true;
		list += one + (list[one] == ',');
	}
	return false;
}
