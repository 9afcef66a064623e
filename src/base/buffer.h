/* A growable run of bytes with a maximum, and functions that build text in it.
 *
 * Errors stick: after a failed append every later one does nothing, so checking `failed` once at
 * the end is enough. */
#ifndef TALLY_BASE_BUFFER_H
#define TALLY_BASE_BUFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_BUFFER_MAX_DEFAULT ((size_t)1 << 30)

struct tally_buffer {
	char *bytes; /* NUL behind the last byte, once anything has been appended */
	size_t length;
	size_t capacity;
	size_t maximum; /* 0: TALLY_BUFFER_MAX_DEFAULT */
	bool failed;    /* an append did not fit or ran out of memory */
};

void tally_buffer_append(struct tally_buffer *buffer, const void *bytes, size_t length);
void tally_buffer_text(struct tally_buffer *buffer, const char *text);
void tally_buffer_char(struct tally_buffer *buffer, char c);
void tally_buffer_printf(struct tally_buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tally_buffer_vprintf(struct tally_buffer *buffer, const char *format, va_list args);

/* Makes room for `length` bytes behind the last, which `length` does not include yet.  Returns
 * their start; NULL if failed. */
char *tally_buffer_room(struct tally_buffer *buffer, size_t length);

/* Returns the text so far; "" if nothing was appended. */
const char *tally_buffer_string(const struct tally_buffer *buffer);

/* Empties the buffer, keeps its memory, and clears `failed`. */
void tally_buffer_clear(struct tally_buffer *buffer);
void tally_buffer_release(struct tally_buffer *buffer);

enum { TALLY_BUFFER_READ_ROOM = 8192 };
/* Appends a whole file (also of /proc and sysfs, whose size is unknown), at most `maximum` bytes.
 * Returns 0 or -errno: -EFBIG if it is larger.  The buffer's own maximum must be
 * TALLY_BUFFER_READ_ROOM larger; otherwise such a file is -ENOMEM. */
int tally_buffer_read_file(struct tally_buffer *buffer, int directory_fd, const char *path,
			   size_t maximum);

/* The same from where a descriptor stands to its end. */
int tally_buffer_read_descriptor(struct tally_buffer *buffer, int fd, size_t maximum);

#endif
