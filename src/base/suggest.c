/* The edit distance needs only three rows of its matrix.  Candidates are tried one by one; the best
 * one so far sets the distance that the next must beat. */
#include "base/suggest.h"

#include "base/extremes.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH_MAX = 63 };

unsigned tally_edit_distance(const char *a, const char *b)
{
	unsigned rows[3][LENGTH_MAX + 1];
	size_t la = strnlen(a, LENGTH_MAX), lb = strnlen(b, LENGTH_MAX);
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= lb; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			int ca = tolower((unsigned char)a[i - 1]),
			    cb = tolower((unsigned char)b[j - 1]);
			now[j] = tally_min_u64(last[j - 1] + (ca != cb),
					       tally_min_u64(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
			    cb == tolower((unsigned char)a[i - 2]))
				now[j] = tally_min_u64(now[j], before[j - 2] + 1);
		}
		unsigned *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[lb];
}

void tally_nearest_init(struct tally_nearest *nearest, const char *typed)
{
	/* A word of three letters with two wrong ones is another word. */
	*nearest = (struct tally_nearest){ .typed = typed, .distance = strlen(typed) < 6 ? 2 : 3 };
}

void tally_nearest_try(struct tally_nearest *nearest, const char *candidate)
{
	enum { BEGINNING_MIN = 3 };
	size_t length = strlen(candidate);
	unsigned distance = tally_edit_distance(nearest->typed, candidate);
	bool is_near = distance < nearest->distance && *nearest->typed;
	bool is_beginning = !nearest->is_near && length >= BEGINNING_MIN &&
			    length > strlen(nearest->name) &&
			    !strncmp(candidate, nearest->typed, length);
	if ((!is_near && !is_beginning) || length >= sizeof(nearest->name))
		return;
	if (is_near)
		nearest->distance = distance;
	nearest->is_near |= is_near;
	snprintf(nearest->name, sizeof(nearest->name), "%s", candidate);
}

static void try_words(struct tally_nearest *nearest, const char *words)
{
	char word[sizeof(nearest->name)];
	for (; *words; words += strcspn(words, " "), words += *words == ' ') {
		size_t length = strcspn(words, " "), kept = tally_min_u64(length, sizeof(word) - 1);
		memcpy(word, words, kept);
		word[kept] = '\0';
		tally_nearest_try(nearest, word);
	}
}

void tally_hint_word(struct tally_error *err, const char *typed, size_t length, const char *words,
		     const char *others)
{
	char word[LENGTH_MAX + 1], list[sizeof(err->hint)];
	struct tally_nearest nearest;
	size_t used = 0;
	snprintf(word, sizeof(word), "%.*s", (int)tally_min_u64(length, LENGTH_MAX), typed);
	tally_nearest_init(&nearest, word);
	try_words(&nearest, words);
	try_words(&nearest, tally_text_or(others, ""));
	if (*nearest.name) {
		tally_error_hint(err, "did you mean '%s'?", nearest.name);
		return;
	}
	for (; *words && used + 2 < sizeof(list); words++) {
		if (*words == ' ')
			list[used++] = ',';
		list[used++] = *words;
	}
	tally_error_hint(err, "there are %.*s", (int)used, list);
}
