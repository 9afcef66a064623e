/* Turns a tracepoint's raw bytes into the text that `perf script` shows.  The print format is
 * compiled once and then run for each event.
 *
 * Wherever libtraceevent (perf's printer) understands the format, the text equals its output byte
 * for byte; print_parse.c lists where that library errs and we don't.  A format that we can't
 * compile prints the fields as name=value.
 *
 * Strings in events come from the traced programs: the text may contain terminal escapes, which the
 * caller must clean.
 */
#ifndef TALLY_TRACEPOINT_PRINT_H
#define TALLY_TRACEPOINT_PRINT_H

#include "base/buffer.h"
#include "base/error.h"
#include "tracepoint/format.h"

/* Names that the text needs and the event lacks.  Each function may be NULL. */
struct tally_print_names {
	void *context;
	/* Returns the kernel function that contains `address`, for %pS and the like, and its start;
	 * NULL: unknown. */
	const char *(*function)(void *context, uint64_t address, uint64_t *start);
	/* Returns the kernel's string at `address` (tracefs' printk_formats), for %s of a pointer;
	 * NULL: unknown. */
	const char *(*string)(void *context, uint64_t address);
};

enum { TALLY_PRINT_TEXT_MAX = 1 << 16 }; /* the kernel's own limit is two pages */

enum tally_print_means {
	TALLY_PRINT_COMPILED,
	TALLY_PRINT_FIELDS,  /* "[FAILED TO PARSE] name=value …", as perf prints it */
};

struct tally_print;

/* Compiles the print format.  `tracepoint` must outlive the program.  Returns 0 or -ENOMEM: a
 * format that can't be compiled prints the fields, and `why` (may be NULL) says what was not
 * understood.  Free with tally_print_free(). */
int tally_print_compile(const struct tally_tracepoint *tracepoint, struct tally_print **out,
			struct tally_error *why);

void tally_print_free(struct tally_print *print);

enum tally_print_means tally_print_means(const struct tally_print *print);

/* Appends the text of the event in `size` raw bytes (PERF_SAMPLE_RAW), without a newline.  `names`
 * may be NULL.  Any bytes are safe: a value outside of them prints as 0 or as nothing.  The
 * text is at most TALLY_PRINT_TEXT_MAX bytes; a longer one is cut and ends with "[LINE TOO BIG]", as
 * the kernel's own.  Many threads may print at once. */
void tally_print_event(const struct tally_print *print, const void *raw, size_t size,
		       const struct tally_print_names *names, struct tally_buffer *out);

/* Appends " name=value" for each field except the common ones, and cuts the text like
 * tally_print_event(). */
void tally_print_fields(const struct tally_tracepoint *tracepoint, const void *raw, size_t size,
			struct tally_buffer *out);

#endif
