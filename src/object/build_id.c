#include "object/object.h"

#include "base/reader.h"

#include <string.h>

bool tally_build_id_equal(const struct tally_build_id *a, const struct tally_build_id *b)
{
	const struct tally_build_id *longer = a->size > b->size ? a : b,
				    *shorter = longer == a ? b : a;
	if (!shorter->size)
		return !longer->size;
	for (size_t i = shorter->size; i < longer->size; i++)
		if (longer->bytes[i])
			return false;
	return memcmp(a->bytes, b->bytes, shorter->size) == 0;
}

void tally_build_id_format(const struct tally_build_id *id, char text[2 * TALLY_BUILD_ID_MAX + 1])
{
	static const char DIGITS[] = "0123456789abcdef";
	for (size_t i = 0; i < id->size; i++) {
		*text++ = DIGITS[id->bytes[i] >> 4];
		*text++ = DIGITS[id->bytes[i] & 15];
	}
	*text = '\0';
}

/* Skips to the next multiple of 4.  The last note of a section may lack its padding. */
static void align(struct tally_reader *reader)
{
	size_t padding = -tally_reader_offset(reader) & 3;
	size_t left = tally_reader_left(reader);
	tally_reader_bytes(reader, padding < left ? padding : left);
}

static bool find_build_id(const void *notes, size_t size, bool swap, struct tally_build_id *out)
{
	struct tally_reader reader;
	tally_reader_init(&reader, notes, size, swap);
	while (tally_reader_left(&reader) >= sizeof(Elf64_Nhdr)) {
		uint32_t name_size = tally_reader_u32(&reader);
		uint32_t value_size = tally_reader_u32(&reader);
		uint32_t type = tally_reader_u32(&reader);
		const char *name = tally_reader_bytes(&reader, name_size);
		align(&reader);
		const uint8_t *value = tally_reader_bytes(&reader, value_size);
		align(&reader);
		if (reader.failed)
			return false;
		if (type == NT_GNU_BUILD_ID && name_size == sizeof("GNU") &&
		    memcmp(name, "GNU", sizeof("GNU")) == 0 && value_size > 0 &&
		    value_size <= TALLY_BUILD_ID_MAX) {
			*out = (struct tally_build_id){ .size = (uint8_t)value_size };
			memcpy(out->bytes, value, value_size);
			return true;
		}
	}
	return false;
}

bool tally_build_id_from_notes(const void *notes, size_t size, struct tally_build_id *out)
{
	*out = (struct tally_build_id){ 0 };
	/* Read in the wrong byte order, the first name would be 64 MiB long, so the two can't be
	 * confused. */
	return find_build_id(notes, size, false, out) || find_build_id(notes, size, true, out);
}
