/* A growable run of bytes with a maximum, and text building over it.
 *
 * Errors stick: after a failed append every later one does nothing, and `failed` is checked once at
 * the end.
 */
#ifndef TALLY_BASE_BUFFER_H
#define TALLY_BASE_BUFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_BUFFER_MAX_DEFAULT ((size_t)1 << 30)

struct tally_buffer {
	char *bytes; /* NUL behind the last byte, once anything was appended */
	size_t length;
	size_t capacity;
	size_t maximum; /* 0: TALLY_BUFFER_MAX_DEFAULT */
	bool failed;    /* an append did not fit or memory was out */
};

void tally_buffer_append(struct tally_buffer *buffer, const void *bytes, size_t length);
void tally_buffer_text(struct tally_buffer *buffer, const char *text);
void tally_buffer_char(struct tally_buffer *buffer, char c);
void tally_buffer_printf(struct tally_buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tally_buffer_vprintf(struct tally_buffer *buffer, const char *format, va_list args);

/* Room for `length` bytes behind the last, not yet counted in `length`; NULL when failed. */
char *tally_buffer_room(struct tally_buffer *buffer, size_t length);

/* The text so far; "" when nothing was appended. */
const char *tally_buffer_string(const struct tally_buffer *buffer);

/* Empties, keeps the memory, forgets a failure. */
void tally_buffer_clear(struct tally_buffer *buffer);
void tally_buffer_release(struct tally_buffer *buffer);

/* The whole of a file (also /proc and sysfs, whose size is unknown), at most `maximum` bytes.
 * 0 or -errno; -EFBIG when it is larger. */
int tally_buffer_read_file(struct tally_buffer *buffer, int directory_fd, const char *path,
			   size_t maximum);

#endif
