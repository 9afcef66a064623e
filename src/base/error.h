/* Errors that a person must act on: what went wrong, and what to do next.
 *
 * Functions return 0 or a count, or -errno.  Functions whose failures need a message take a last
 * `struct tally_error *`, which may be NULL.  The library never prints; the command prints message
 * and hint once. */
#ifndef TALLY_BASE_ERROR_H
#define TALLY_BASE_ERROR_H

#include <errno.h>

#define TALLY_NO_POSITION (-1)

struct tally_error {
	int code;          /* -errno; 0 if nothing has failed */
	int position;      /* byte offset into the parsed text, or TALLY_NO_POSITION */
	/* One sentence without a full stop.  It has newlines (a caret line) only if its format has;
	 * names in such a format must be cleaned (terminal.h). */
	char message[768];
	char hint[512];    /* what to do next; empty if there is nothing to say */
};

#define TALLY_ERROR_NONE { .position = TALLY_NO_POSITION }

/* Sets code, position (to none) and message, clears the hint.  Returns `code`, so that a failing
 * function can `return tally_error_set(...)`.  `err` may be NULL. */
int tally_error_set(struct tally_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds the hint to an error that has been set.  `err` may be NULL. */
void tally_error_hint(struct tally_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Returns the error of a result that is -errno or a count; 0 for a count. */
static inline int tally_error_of(int result)
{
	return result < 0 ? result : 0;
}

/* Returns -ENOMEM if that is the result, and 0 for success and every other error: for callers that
 * go on without the result. */
static inline int tally_only_enomem(int result)
{
	return result == -ENOMEM ? result : 0;
}

/* Returns -errno if a system call or function of libc has just returned `result` below 0; 0
 * otherwise: `return tally_errno_of(fstat(fd, &status));`. */
static inline int tally_errno_of(int result)
{
	return result < 0 ? -errno : 0;
}

/* Returns strerror's text in lower case: "no such file or directory" for -ENOENT.  Thread-safe. */
const char *tally_errno_text(int code);

#endif
