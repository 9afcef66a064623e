/* Reads values from an event's raw bytes.  Each access is checked against their size. */
#include "tracepoint/format.h"

#include <string.h>

bool tally_tracepoint_u64(const struct tally_tracepoint *tracepoint,
			  const struct tally_tracepoint_field *field, const void *raw, size_t size,
			  uint64_t *value)
{
	return tally_tracepoint_number(tracepoint, raw, size, field->offset, field->size_bytes,
				       value);
}

bool tally_tracepoint_i64(const struct tally_tracepoint *tracepoint,
			  const struct tally_tracepoint_field *field, const void *raw, size_t size,
			  int64_t *value)
{
	uint64_t number;
	if (!tally_tracepoint_u64(tracepoint, field, raw, size, &number))
		return false;
	unsigned unused_bits = 64 - 8 * field->size_bytes;
	*value = field->is_signed ? (int64_t)(number << unused_bits) >> unused_bits
				  : (int64_t)number;
	return true;
}

bool tally_tracepoint_bytes(const struct tally_tracepoint *tracepoint,
			    const struct tally_tracepoint_field *field, const void *raw,
			    size_t size, const void **bytes, size_t *length)
{
	size_t offset = field->offset, count = field->size_bytes;
	if (field->place != TALLY_FIELD_FIXED) {
		uint64_t word;
		if (!tally_tracepoint_u64(tracepoint, field, raw, size, &word))
			return false;
		offset = word & 0xffff;
		if (field->place == TALLY_FIELD_REL_LOC)
			offset += (size_t)field->offset + field->size_bytes;
		if (offset > size)
			return false;
		count = field->size_bytes == 2 ? size - offset : (word >> 16) & 0xffff;
	} else if (count == 0 && offset <= size) {
		count = size - offset; /* a flexible array: the rest of the record */
	}
	if (offset > size || count > size - offset)
		return false;
	*bytes = (const uint8_t *)raw + offset;
	*length = count;
	return true;
}

bool tally_tracepoint_string(const struct tally_tracepoint *tracepoint,
			     const struct tally_tracepoint_field *field, const void *raw,
			     size_t size, const char **text, size_t *length)
{
	const void *bytes;
	if (!tally_tracepoint_bytes(tracepoint, field, raw, size, &bytes, length))
		return false;
	*text = bytes;
	*length = strnlen(bytes, *length);
	return true;
}

size_t tally_tracepoint_elements(const struct tally_tracepoint *tracepoint,
				 const struct tally_tracepoint_field *field, const void *raw,
				 size_t size)
{
	const void *bytes;
	size_t length;
	if (field->element_bytes == 0 ||
	    !tally_tracepoint_bytes(tracepoint, field, raw, size, &bytes, &length))
		return 0;
	return length / field->element_bytes;
}

bool tally_tracepoint_element(const struct tally_tracepoint *tracepoint,
			      const struct tally_tracepoint_field *field, const void *raw,
			      size_t size, size_t index, uint64_t *value)
{
	const void *bytes;
	size_t length;
	if (field->element_bytes == 0 ||
	    !tally_tracepoint_bytes(tracepoint, field, raw, size, &bytes, &length) ||
	    index >= length / field->element_bytes)
		return false;
	return tally_tracepoint_number(tracepoint, bytes, length, index * field->element_bytes,
				       field->element_bytes, value);
}
