/* Characters of names that come from outside: of programs, files, recordings and machines.
 *
 * A name may contain anything: bytes that control a terminal, newlines that forge a line,
 * characters that turn the direction of text, bytes that are no text.  So every output cleans names
 * by the rule of this file: terminals and text by terminal.h, JSON by json.h,
 * XML and HTML by output/output_text.h. */
#ifndef TALLY_BASE_CHARACTERS_H
#define TALLY_BASE_CHARACTERS_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the UTF-8 character at `text`.  Returns its length in bytes, 1 to 4; 0 if there is none
 * (RFC 3629: no overlong forms, no surrogates) or at the end of the text. */
unsigned tally_character_decode(const char *text, uint32_t *character);

/* True if the character can be shown in a line of text, and does not change how the rest is shown.
 * False for control characters (C0 with newline and tab, DEL, C1), separators of lines and
 * paragraphs, marks of the direction of text, the byte order mark, and code points that are no
 * characters. */
bool tally_character_is_plain(uint32_t character);

/* True for a byte that begins a UTF-8 character, not one that continues it.  A text has as many
 * characters as such bytes. */
static inline bool tally_begins_character(char byte)
{
	return (byte & 0xc0) != 0x80;
}

/* True for a byte of an identifier: a letter, digit or underscore. */
static inline bool tally_is_word_char(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_';
}

/* Returns how many of the text's first bytes, at most `limit`, are plain characters of ASCII: those
 * need no decoding, and names consist of little else. */
static inline size_t tally_plain_ascii(const char *text, size_t limit)
{
	size_t n = 0;
	while (n < limit && (unsigned char)(text[n] - ' ') < 0x7f - ' ')
		n++;
	return n;
}

#endif
