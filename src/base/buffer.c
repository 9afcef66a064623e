/* All functions append through tally_buffer_room(), which doubles the capacity and enforces the
 * maximum.  Formatted text is written straight into the buffer and formatted again only if it was
 * too long. */
#include "base/buffer.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *tally_buffer_room(struct tally_buffer *buffer, size_t length)
{
	size_t maximum = buffer->maximum ? buffer->maximum : TALLY_BUFFER_MAX_DEFAULT;
	if (buffer->failed || length >= maximum || buffer->length >= maximum - length) {
		buffer->failed = true;
		return NULL;
	}
	size_t need = buffer->length + length + 1;
	if (need > buffer->capacity) {
		size_t capacity = buffer->capacity ? buffer->capacity : 256;
		while (capacity < need)
			capacity *= 2;
		char *grown = realloc(buffer->bytes, capacity);
		if (!grown) {
			buffer->failed = true;
			return NULL;
		}
		buffer->bytes = grown;
		buffer->capacity = capacity;
	}
	return buffer->bytes + buffer->length;
}

void tally_buffer_append(struct tally_buffer *buffer, const void *bytes, size_t length)
{
	char *room = tally_buffer_room(buffer, length);
	if (!room)
		return;
	if (length)
		memcpy(room, bytes, length);
	room[length] = '\0';
	buffer->length += length;
}

void tally_buffer_text(struct tally_buffer *buffer, const char *text)
{
	tally_buffer_append(buffer, text, strlen(text));
}

void tally_buffer_char(struct tally_buffer *buffer, char c)
{
	tally_buffer_append(buffer, &c, 1);
}

void tally_buffer_vprintf(struct tally_buffer *buffer, const char *format, va_list args)
{
	enum { FIRST_TRY = 128 }; /* formatting twice is the main cost: most texts fit at once */
	va_list again;
	if (buffer->failed)
		return;
	char *room = tally_buffer_room(buffer, FIRST_TRY);
	buffer->failed = false; /* no room for the first try is not yet a failure */
	va_copy(again, args);
	int length = vsnprintf(room, room ? FIRST_TRY : 0, format, args);
	if (length >= 0 && (!room || length >= FIRST_TRY)) {
		room = tally_buffer_room(buffer, (size_t)length);
		if (room)
			vsnprintf(room, (size_t)length + 1, format, again);
	}
	if (room && length >= 0)
		buffer->length += (size_t)length;
	va_end(again);
}

void tally_buffer_printf(struct tally_buffer *buffer, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	tally_buffer_vprintf(buffer, format, args);
	va_end(args);
}

const char *tally_buffer_string(const struct tally_buffer *buffer)
{
	if (!buffer->length)
		return "";
	return tally_text_or(buffer->bytes, "");
}

void tally_buffer_clear(struct tally_buffer *buffer)
{
	buffer->length = 0;
	buffer->failed = false;
	if (buffer->bytes)
		buffer->bytes[0] = '\0';
}

void tally_buffer_release(struct tally_buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct tally_buffer){ 0 };
}

int tally_buffer_read_descriptor(struct tally_buffer *buffer, int fd, size_t maximum)
{
	enum { CHUNK_BYTES = 4096 };
	_Static_assert((int)CHUNK_BYTES < (int)TALLY_BUFFER_READ_ROOM, "a chunk more than the maximum fits");
	for (;;) {
		char *room = tally_buffer_room(buffer, CHUNK_BYTES);
		if (!room)
			return -ENOMEM;
		ssize_t got = read(fd, room, CHUNK_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		buffer->length += (size_t)got;
		buffer->bytes[buffer->length] = '\0';
		if (buffer->length > maximum)
			return -EFBIG;
		if (!got)
			return 0;
	}
}

int tally_buffer_read_file(struct tally_buffer *buffer, int directory_fd, const char *path,
			   size_t maximum)
{
	int fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = tally_buffer_read_descriptor(buffer, fd, maximum);
	close(fd);
	return result;
}
