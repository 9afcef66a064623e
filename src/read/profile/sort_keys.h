/* The keys that a report can be sorted by.
 *
 * A key has a row in sample_fields.h.
 *
 * The values of keys of branches and samples are facts: the profile reads them from each sample,
 * and keeps samples apart by them (sample_facts.h). */
#ifndef TALLY_PROFILE_SORT_KEYS_H
#define TALLY_PROFILE_SORT_KEYS_H

#include "profile/sample_fields.h"

#include <stdbool.h>
#include <stdint.h>

struct tally_buffer;
struct tally_fact_reader;
struct tally_fact_source;
struct tally_recording;

#define TALLY_SORT_CONSTANT(key, ...) TALLY_SORT_##key,
enum tally_sort_key {
	TALLY_SORT_KEYS_OF_TASKS(TALLY_SORT_CONSTANT)
	TALLY_SORT_KEYS_OF_BRANCHES(TALLY_SORT_CONSTANT)
	TALLY_SORT_KEYS_OF_SAMPLES(TALLY_SORT_CONSTANT)
	TALLY_SORT_KEYS_OF_FRAMES(TALLY_SORT_CONSTANT)
	TALLY_SORT_KEYS
};
#undef TALLY_SORT_CONSTANT

/* The first key of each list. */
#define TALLY_SORT_ONE(key, ...) +1
enum {
	TALLY_SORT_BRANCHES_START = 0 TALLY_SORT_KEYS_OF_TASKS(TALLY_SORT_ONE),
	TALLY_SORT_SAMPLES_START =
		TALLY_SORT_BRANCHES_START TALLY_SORT_KEYS_OF_BRANCHES(TALLY_SORT_ONE),
	TALLY_SORT_FRAMES_START =
		TALLY_SORT_SAMPLES_START TALLY_SORT_KEYS_OF_SAMPLES(TALLY_SORT_ONE)
};
#undef TALLY_SORT_ONE

/* Sets of keys: bits of a word. */
#define TALLY_SORT_BIT(key) ((uint64_t)1 << (key))
#define TALLY_SORT_OF_BRANCHES \
	(TALLY_SORT_BIT(TALLY_SORT_SAMPLES_START) - TALLY_SORT_BIT(TALLY_SORT_BRANCHES_START))
#define TALLY_SORT_OF_FACTS \
	(TALLY_SORT_BIT(TALLY_SORT_FRAMES_START) - TALLY_SORT_BIT(TALLY_SORT_BRANCHES_START))

/* All names, separated by blanks. */
#define TALLY_SORT_NAME(key, name, ...) " " name
#define TALLY_SORT_CHOICES \
	&(TALLY_SORT_KEYS_OF_TASKS(TALLY_SORT_NAME) TALLY_SORT_KEYS_OF_BRANCHES(TALLY_SORT_NAME) \
		  TALLY_SORT_KEYS_OF_FRAMES(TALLY_SORT_NAME) \
			  TALLY_SORT_KEYS_OF_SAMPLES(TALLY_SORT_NAME))[1]

/* The meaning of an entry's value, which decides how it is compared and shown. */
enum tally_sort_kind {
	TALLY_KIND_TASK_TEXT, /* string id of the tasks */
	TALLY_KIND_NUMBER,    /* UINT32_MAX: not recorded */
	TALLY_KIND_TEXT,      /* string id of the names */
	TALLY_KIND_DIGITS,    /* string id of the names: a decimal number of any size, or "?" */
	/* string id of the names; shown is the sum: this number for each sample of the entry */
	TALLY_KIND_EACH,
	TALLY_KIND_OBJECT,    /* string id of the names: a path; its last part is shown */
	TALLY_KIND_FUNCTION,  /* index into the names' functions */
	TALLY_KIND_LINE,      /* string id of the names: the source line of a branch's end */
	/* string id of the names; shown is the object of the entry's function */
	TALLY_KIND_OWN_OBJECT,
	TALLY_KIND_OWN_FUNCTION, /* string id of the names; shown is the entry's function */
};

/* A part of samples that a recording must contain. */
struct tally_sort_need {
	uint64_t sample_types; /* one of these bits of an event's attr.sample_type */
	uint64_t without_branches; /* … and none of these bits of its branch_sample_type */
	const char *lacks; /* "the recording has no …" */
	const char *hint;  /* how to record it */
};

/* A 64-bit word of a sample or a branch. */
struct tally_sort_word {
	enum { TALLY_WORD_NONE, TALLY_WORD_OF_SAMPLE, TALLY_WORD_OF_BRANCH } origin;
	uint32_t offset; /* in struct tally_sample or tally_branch */
};

struct tally_sort_row {
	const char *name;  /* in --sort */
	const char *alias; /* another name in --sort; NULL: there is none */
	const char *title; /* "COMMAND" */
	const char *json;  /* name of its field; NULL: written in another way */
	enum tally_sort_kind kind;
	const struct tally_sort_need *need; /* NULL: any recording has it */

	/* Of facts: the number that the value is, as a word of the sample or from a function.  For
	 * values of kind NUMBER, this is the value; others are the number's text.  A sample without
	 * the need's types has "?". */
	struct tally_sort_word word;
	uint64_t (*number)(const struct tally_fact_source *source);
	/* Appends the number's text; NULL: in decimal. */
	void (*text)(uint64_t number, struct tally_buffer *out);
	/* In place of a number: returns the value, a string id; TALLY_STRING_NONE when memory is
	 * out. */
	uint32_t (*string)(struct tally_fact_reader *reader,
			   const struct tally_fact_source *source);
	bool uses_names; /* `string` needs the recording's names while samples are read */

	const char *menu; /* name in the browser's menu of columns; NULL: not there */
	char letter;      /* key of the menu's line */
};

const char *tally_sort_key_name(enum tally_sort_key key);
const struct tally_sort_row *tally_sort_row(enum tally_sort_key key);

/* True if the row's value is a number, which _number() returns. */
static inline bool tally_sort_has_number(const struct tally_sort_row *row)
{
	return row->number || row->word.origin != TALLY_WORD_NONE;
}
uint64_t tally_sort_number(const struct tally_sort_row *row,
			   const struct tally_fact_source *source);

/* Returns the key that the first `length` bytes of a text name; TALLY_SORT_KEYS: none. */
enum tally_sort_key tally_sort_key_find(const char *name, unsigned length);

/* True if one of the keys needs the recording's names while samples are read. */
bool tally_sort_keys_use_names(uint64_t keys);

/* True if a key needs this.  All keys of branches also need branch stacks. */
bool tally_sort_key_needs(enum tally_sort_key key, const struct tally_sort_need *need);

/* Returns the first need of the keys that no event of the recording meets; NULL: all are met, or
 * the recording is a pipe whose events are not known yet.  With `branches`, branch stacks are
 * needed, too. */
const struct tally_sort_need *tally_sort_keys_lack(uint64_t keys, bool branches,
						   const struct tally_recording *recording);

#endif
