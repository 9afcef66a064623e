/* One option: the row of an option table, and its value.
 *
 * A row names the option, its argument and its help, and says where its value goes: into a member
 * of a request, or to a function.  A command's table has one row an option, and includes tables
 * that several commands share.
 *
 *     struct request {
 *             struct tally_view_options view;
 *             const char *output;
 *             size_t limit;
 *             bool json;
 *     };
 *
 *     static const struct tally_option options[] = {
 *             { 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE", "write to FILE",
 *               TALLY_TEXT(struct request, output) },
 *             { 'n', "limit", TALLY_ARGUMENT_REQUIRED, "N", "at most N rows",
 *               TALLY_NUMBER(struct request, limit, 1, 1000) },
 *             { TALLY_INCLUDE(tally_view_filter_options, struct request, view) },
 *             { 'j', "json", TALLY_ARGUMENT_NONE, NULL, "JSON", TALLY_SET(struct request, json) },
 *             { 'v', "verbose", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
 *             TALLY_OPTIONS_END,
 *     };
 */
#ifndef TALLY_BASE_OPTION_ROW_H
#define TALLY_BASE_OPTION_ROW_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_option;

enum tally_argument_kind {
	TALLY_ARGUMENT_NONE,
	TALLY_ARGUMENT_REQUIRED,
	TALLY_ARGUMENT_OPTIONAL /* "-g", "-gcaller"; also "-g caller" if `choices` has the word, and
				    "--source ./src" if the argument is a DIR and the word looks
				    like one */
};

/* A member's type, and the value that it gets. */
enum tally_store {
	TALLY_STORE_NOTHING,
	TALLY_STORE_TRUE,     /* bool */
	TALLY_STORE_FALSE,    /* bool */
	TALLY_STORE_TEXT,     /* const char *: the argument, or NULL */
	TALLY_STORE_NUMBER,   /* integer, from `minimum` to `maximum` */
	TALLY_STORE_CONSTANT, /* integer or enum: `constant` */
	TALLY_STORE_BITS,     /* integer: adds the bits of `constant` */
	TALLY_STORE_WORD,     /* integer, enum or bool: the argument's index in `words` */
	TALLY_STORE_SIZE,     /* integer: bytes, as tally_option_size() */
	TALLY_STORE_SECONDS,  /* double, as tally_option_seconds() */
	TALLY_STORE_DURATION, /* double: seconds, as tally_option_duration() */
	TALLY_STORE_PERCENT   /* double */
};

/* Takes an option that needs code.  Returns 0 or more, or -errno with a message.  It may call
 * tally_option_store() to store the value as the row says. */
typedef int tally_take_option(void *request, const struct tally_option *option, const char *value,
			      struct tally_error *err);

struct tally_option {
	int letter;            /* 'e', or 0: long option only */
	const char *name;      /* "event", or NULL: letter only */
	enum tally_argument_kind kind;
	const char *argument;  /* "EVENTS": the argument's name in the help */
	/* one or more lines, lower case, no full stop; NULL: not in the help */
	const char *help;
	/* for OPTIONAL: blank-separated words that may be the next argument */
	const char *choices;

	/* the value's target; the macros below set it */
	enum tally_store store;
	size_t offset, size;   /* of the member in the request */
	size_t also;           /* offset of a bool that is set as well, plus 1; 0: none */
	unsigned long long minimum, maximum, constant;
	const char *words;     /* separated by blanks */
	tally_take_option *take; /* called instead of storing; NULL: none */
	/* for options of perf that tally refuses: what to use instead; or NULL */
	const char *instead;
	/* The rows of this table stand here; their offsets are from `offset`.  NULL: this row is an
	 * option. */
	const struct tally_option *included;
};

#define TALLY_OPTIONS_END { .letter = 0, .name = NULL }
/* A row that stands for a table of rows; their request is this member.  A command includes a table
 * once. */
#define TALLY_INCLUDE(table, type, member) \
	.included = (table), .offset = offsetof(type, member)

/* A member whose type is checked when it is compiled. */
#define TALLY_MEMBER(type, member) \
	.offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)
#define TALLY_MEMBER_OF(wanted, type, member) \
	.offset = offsetof(type, member), \
	.size = sizeof(_Generic(&((type *)NULL)->member, wanted *: ((type *)NULL)->member))
#define TALLY_INTEGER(type, member) \
	.offset = offsetof(type, member), \
	.size = sizeof(((type *)NULL)->member) + 0 * sizeof(((type *)NULL)->member % 2)

/* Each of these macros ends a row: it says where the value goes. */
#define TALLY_SET(type, member) \
	.store = TALLY_STORE_TRUE, TALLY_MEMBER_OF(bool, type, member)
#define TALLY_CLEAR(type, member) \
	.store = TALLY_STORE_FALSE, TALLY_MEMBER_OF(bool, type, member)
#define TALLY_TEXT(type, member) \
	.store = TALLY_STORE_TEXT, TALLY_MEMBER_OF(const char *, type, member)
#define TALLY_NUMBER(type, member, minimum_, maximum_) \
	.store = TALLY_STORE_NUMBER, TALLY_INTEGER(type, member), .minimum = (minimum_), \
	.maximum = (maximum_)
#define TALLY_CONSTANT(type, member, constant_) \
	.store = TALLY_STORE_CONSTANT, TALLY_INTEGER(type, member), .constant = (constant_)
#define TALLY_BITS(type, member, bits) \
	.store = TALLY_STORE_BITS, TALLY_INTEGER(type, member), .constant = (bits)
#define TALLY_WORD(type, member, words_) \
	.store = TALLY_STORE_WORD, TALLY_INTEGER(type, member), .words = (words_)
#define TALLY_SIZE(type, member) .store = TALLY_STORE_SIZE, TALLY_INTEGER(type, member)
#define TALLY_SECONDS(type, member) \
	.store = TALLY_STORE_SECONDS, TALLY_MEMBER_OF(double, type, member)
#define TALLY_DURATION(type, member) \
	.store = TALLY_STORE_DURATION, TALLY_MEMBER_OF(double, type, member)
#define TALLY_PERCENT(type, member) \
	.store = TALLY_STORE_PERCENT, TALLY_MEMBER_OF(double, type, member)
/* --max-stack: a number of frames, up to the maximum of an attribute.  The attribute's value for
 * "unwound" is excluded. */
#define TALLY_FRAMES(type, member) TALLY_NUMBER(type, member, 1, UINT16_MAX - 1)
/* The value goes to a function, which gets the request. */
#define TALLY_TAKE(function) .take = (function)
/* The value goes to a function, which finds the member by tally_option_member(). */
#define TALLY_TAKE_MEMBER(function, type, member) \
	.take = (function), TALLY_MEMBER(type, member)
/* After another of these macros: also sets this bool. */
#define TALLY_ALSO(type, member) \
	.also = offsetof(type, member) + sizeof(_Generic(((type *)NULL)->member, bool: (char)1))
/* perf's options that tally lacks: accepted without effect, since tally does this anyway; or
 * refused, with what to use instead.  docs/compatibility.md lists them. */
#define TALLY_IGNORED .store = TALLY_STORE_NOTHING
#define TALLY_INSTEAD(text) .instead = (text)

/* True for the row that ends a table. */
bool tally_option_is_end(const struct tally_option *option);

/* Stores the value as the row says, without `take`.  Returns 0, or -EINVAL with a message that
 * names the option. */
int tally_option_store(void *request, const struct tally_option *option, const char *value,
		       struct tally_error *err);

/* Returns the row's member. */
void *tally_option_member(void *request, const struct tally_option *option);

/* True if the option's argument names a file or a directory, which must not be empty. */
bool tally_option_takes_path(const struct tally_option *option);

/* Parses a number. Returns 0, or -EINVAL with a message that names the option. */
int tally_option_u64(const char *option, const char *value, unsigned long long minimum,
		     unsigned long long maximum, unsigned long long *out, struct tally_error *err);
/* Parses a size, "512K", "8M", "1G", to bytes. */
int tally_option_size(const char *option, const char *value, unsigned long long *out,
		      struct tally_error *err);
/* Parses a time, "1.5", "500ms", "2s", "3m", to seconds. */
int tally_option_seconds(const char *option, const char *value, double *out,
			 struct tally_error *err);
/* Like tally_option_seconds(), from 1 ms to 1e9 s: 0 must not be taken for "no limit". */
int tally_option_duration(const char *option, const char *value, double *out,
			  struct tally_error *err);

/* Parses a percentage, 0 to 100. */
int tally_option_percent(const char *option, const char *value, double *out,
			 struct tally_error *err);

#endif
