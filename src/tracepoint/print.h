/* A tracepoint's print format, compiled once, then run per event: raw bytes → the text that `perf
 * script` shows.
 *
 * The text is libtraceevent's byte for byte wherever that library understands the format; see
 * print_parse.c for where it errs and we don't.  A format beyond our compiler is left to
 * libtraceevent when the machine has it (loaded with dlopen(3), once per such tracepoint), else the
 * fields are printed as name=value.
 *
 * Strings in events come from the traced programs: the text may hold terminal escapes, which the
 * caller cleans.
 */
#ifndef TALLY_TRACEPOINT_PRINT_H
#define TALLY_TRACEPOINT_PRINT_H

#include "base/buffer.h"
#include "base/error.h"
#include "tracepoint/format.h"

/* What the text needs from outside the event.  Each function may be NULL. */
struct tally_print_names {
	void *context;
	/* The kernel function that holds `address`, for %pS and the like, and where it starts;
	 * NULL: unknown. */
	const char *(*function)(void *context, uint64_t address, uint64_t *start);
	/* The kernel's string at `address` (tracefs' printk_formats), for %s of a pointer; NULL:
	 * unknown. */
	const char *(*string)(void *context, uint64_t address);
};

enum tally_print_means {
	TALLY_PRINT_COMPILED,
	TALLY_PRINT_LIBRARY, /* libtraceevent */
	TALLY_PRINT_FIELDS,  /* "[FAILED TO PARSE] name=value …", as perf has it */
};

struct tally_print;

/* Compiles the print format.  `tracepoint` must outlive the program.  `system` ("sched") is told to
 * libtraceevent; with NULL that library is never used.  Fails with -ENOMEM alone: a format that
 * can't be compiled is printed by other means, and `why` (may be NULL) says what was not
 * understood.  Free with tally_print_free(). */
int tally_print_compile(const struct tally_tracepoint *tracepoint, const char *system,
			struct tally_print **out, struct tally_error *why);

void tally_print_free(struct tally_print *print);

enum tally_print_means tally_print_means(const struct tally_print *print);

/* Appends the text of the event in `size` raw bytes (PERF_SAMPLE_RAW); no newline.  `names` may be
 * NULL.  Any bytes are safe: what stands outside of them prints as 0 or nothing.  A compiled
 * program may be run by many threads; TALLY_PRINT_LIBRARY by one at a time. */
void tally_print_event(const struct tally_print *print, const void *raw, size_t size,
		       const struct tally_print_names *names, struct tally_buffer *out);

/* Appends " name=value" for each field but the common ones. */
void tally_print_fields(const struct tally_tracepoint *tracepoint, const void *raw, size_t size,
			struct tally_buffer *out);

/* Appends one field's value in that manner. */
void tally_print_field(const struct tally_tracepoint *tracepoint,
		       const struct tally_tracepoint_field *field, const void *raw, size_t size,
		       struct tally_buffer *out);

#endif
