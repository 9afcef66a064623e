#include "perfdata/perfdata_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 256 << 10 };

/* Room for one read more: moves what is left to the front, or doubles.  Grows with what really came. */
static bool make_room(struct tally_source *source)
{
	if (source->used) {
		source->buffered -= source->used;
		memmove(source->buffer, source->buffer + source->used, source->buffered);
		source->used = 0;
	}
	if (source->capacity - source->buffered >= READ_BYTES / 2)
		return true;
	size_t capacity = source->capacity ? 2 * source->capacity : READ_BYTES;
	uint8_t *grown = realloc(source->buffer, capacity);
	if (!grown) {
		source->failure = -ENOMEM;
		return false;
	}
	source->buffer = grown;
	source->capacity = capacity;
	return true;
}

static bool read_more(struct tally_source *source)
{
	if (source->at_end || source->failure || !make_room(source))
		return false;
	ssize_t got;
	do
		got = read(source->fd, source->buffer + source->buffered, source->capacity - source->buffered);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		source->failure = -errno;
	else if (got == 0)
		source->at_end = true;
	else
		source->buffered += (size_t)got;
	return got > 0;
}

size_t tally_source_left(struct tally_source *source, size_t size)
{
	if (source->memory)
		return source->offset < source->memory_size ? source->memory_size - source->offset : 0;
	while (source->buffered - source->used < size)
		if (!read_more(source))
			break;
	return source->buffered - source->used;
}

const uint8_t *tally_source_peek(struct tally_source *source, size_t size)
{
	if (tally_source_left(source, size) < size)
		return NULL;
	return source->memory ? source->memory + source->offset : source->buffer + source->used;
}

bool tally_source_skip(struct tally_source *source, uint64_t size)
{
	if (source->memory) {
		bool fits = size <= tally_source_left(source, 0);
		source->offset = fits ? source->offset + size : source->memory_size;
		return fits;
	}
	while (size) {
		size_t left = tally_source_left(source, 1);
		size_t part = left < size ? left : size;
		if (!part)
			return false;
		source->used += part;
		source->offset += part;
		size -= part;
	}
	return true;
}

void tally_source_release(struct tally_source *source)
{
	free(source->buffer);
}
