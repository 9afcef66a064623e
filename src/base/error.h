/* Errors that a person must act on: what went wrong, and what to do next.
 *
 * Functions return 0 or a count, or -errno.  Those whose failure needs words take a last
 * `struct tally_error *`, which may be NULL.  The library never prints; the command prints message
 * and hint once.
 */
#ifndef TALLY_BASE_ERROR_H
#define TALLY_BASE_ERROR_H

#define TALLY_NO_POSITION (-1)

struct tally_error {
	int code;          /* -errno, 0 when nothing has failed */
	int position;      /* byte offset into the parsed text, or TALLY_NO_POSITION */
	char message[768]; /* one sentence without a full stop; may hold newlines (a caret line) */
	char hint[512];    /* what to do next; empty when there is nothing to say */
};

#define TALLY_ERROR_NONE { .position = TALLY_NO_POSITION }

/* Sets code, position (to none) and message, clears the hint.  Returns `code`, so that a failing
 * function can `return tally_error_set(...)`.  `err` may be NULL. */
int tally_error_set(struct tally_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds the hint to an error that was set.  `err` may be NULL. */
void tally_error_hint(struct tally_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "no such file or directory" for -ENOENT: strerror in lower case; thread-safe. */
const char *tally_errno_text(int code);

#endif
