/* Filter expressions on an event's fields, as in ftrace and PERF_EVENT_IOC_SET_FILTER
 * (Documentation/trace/events.rst, Event filtering):
 *
 *     pid == 3 && (comm ~ "xz*" || !(flags & 0x10))
 *
 * A text is compiled into a program in the caller's memory, which is then run on raw records.
 * Freestanding; nothing is allocated.  A program doesn't change, so several threads may run it at
 * once.
 *
 * Numbers compare with ==, !=, <, <=, >, >=, and & (a bit in common); the value is cut to the
 * field's size, as in the kernel.  Strings compare with ==, != and ~ (a pattern of * ? [a-z] \; a !
 * in front inverts it); the value is in "" or ''.  CPUs, as numbers or masks, compare with ==, !=
 * and & to a list: CPUS{0-3,7}. Every event has `cpu` (CPU) and `comm` (COMM), unless its fields
 * have these names. && binds stronger than ||; ! and parentheses as usual. */
#ifndef TALLY_FILTER_H
#define TALLY_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TALLY_FILTER_TEXT_MAX = 4095,  /* bytes without the NUL: a page with it */
	TALLY_FILTER_STRING_MAX = 255, /* bytes of a value in quotes */
	TALLY_FILTER_NUMBER_MAX = 23,  /* characters */
	TALLY_FILTER_DEPTH_MAX = 64    /* nested parentheses */
};

enum tally_filter_kind {
	TALLY_FILTER_NUMBER,         /* 1, 2, 4 or 8 bytes in the machine's order */
	TALLY_FILTER_STRING,         /* an array of char in place, up to its NUL or end */
	/* 4 bytes: offset | size << 16 of the characters, from the record's start */
	TALLY_FILTER_DYNAMIC_STRING,
	/* 4 bytes, the same for an array of unsigned long with a bit per CPU */
	TALLY_FILTER_CPUMASK,
	TALLY_FILTER_OTHER           /* can't be used in filters */
};

struct tally_filter_field {
	const char *name;
	uint16_t offset, size;
	bool is_signed;
	enum tally_filter_kind kind;
};

struct tally_filter_fields {
	const struct tally_filter_field *fields;
	size_t count;
	unsigned cpus; /* a list of CPUs may contain 0 … cpus - 1 */
};

enum tally_filter_problem {
	TALLY_FILTER_GOOD,
	TALLY_FILTER_EMPTY,          /* a predicate is missing */
	TALLY_FILTER_NO_FIELD,
	TALLY_FILTER_NO_OPERATOR,
	TALLY_FILTER_BAD_OPERATOR,   /* wrong for this kind of field */
	TALLY_FILTER_NO_VALUE,       /* neither number nor quoted string */
	TALLY_FILTER_NOT_A_NUMBER,   /* a string instead of a number */
	TALLY_FILTER_NOT_A_STRING,   /* a number instead of a string */
	TALLY_FILTER_BAD_NUMBER,     /* not digits of its base, or beyond 64 bits */
	TALLY_FILTER_TOO_LONG,       /* text, number or string */
	TALLY_FILTER_NO_QUOTE,       /* the closing quote is missing */
	TALLY_FILTER_OPEN,           /* ( without ) */
	TALLY_FILTER_CLOSE,          /* ) without ( */
	TALLY_FILTER_TERMS,          /* && or || is missing */
	TALLY_FILTER_BAD_CPUS,
	TALLY_FILTER_TOO_DEEP
};

struct tally_filter_error {
	enum tally_filter_problem problem;
	size_t position;    /* byte of the text where the problem is */
	const char *reason; /* static text, in English */
};

struct tally_filter; /* the program: aligned as uint64_t */

/* Compiles `text` into `memory` of `size` bytes (aligned as uint64_t) if it fits.  Returns the size
 * of the program in bytes, so that a first call with size 0 can ask for it; or -22 (EINVAL) with
 * *error (may be NULL) filled.  The names in `fields` are not used afterwards. */
long tally_filter_compile(const char *text, const struct tally_filter_fields *fields, void *memory,
			  size_t size, struct tally_filter_error *error);

/* The values of `cpu` and `comm` at a hit. */
struct tally_filter_context {
	unsigned cpu;
	const char *comm;
};

/* Returns true if the record of `size` bytes passes.  A predicate on bytes beyond the record's end
 * is false. */
bool tally_filter_match(const struct tally_filter *filter, const void *record, size_t size,
			const struct tally_filter_context *context);

#endif
