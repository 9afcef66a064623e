/* A hash map has an entry for each changed byte, by address.  Later changes overwrite earlier
 * ones. */
#include "naming/naming.h"

#include <errno.h>

enum { BYTES_MAX = 1 << 20 };

/* A record of removed code has only the old bytes.  They are noted, because samples ran that
 * code. */
int tally_text_pokes_add(struct tally_text_pokes *pokes, const struct tally_record_text_poke *poke)
{
	size_t length = poke->old_length;
	const uint8_t *bytes = poke->bytes;
	if (poke->new_length) {
		length = poke->new_length;
		bytes += poke->old_length;
	}
	for (size_t i = 0; i < length; i++) {
		bool has_room = pokes->bytes.count < BYTES_MAX;
		uint64_t *slot;
		if (has_room)
			slot = tally_map_put(&pokes->bytes, poke->address + i, NULL);
		else
			slot = tally_map_get(&pokes->bytes, poke->address + i);
		if (slot)
			*slot = bytes[i];
		else if (has_room)
			return -ENOMEM;
	}
	return 0;
}

size_t tally_text_pokes_apply(const struct tally_text_pokes *pokes, uint64_t address, uint8_t *code,
			      size_t size)
{
	size_t written = 0;
	for (size_t i = 0; pokes->bytes.count && i < size; i++) {
		const uint64_t *byte = tally_map_get(&pokes->bytes, address + i);
		if (byte && code)
			code[i] = (uint8_t)*byte;
		written += byte != NULL;
	}
	return written;
}

void tally_text_pokes_release(struct tally_text_pokes *pokes)
{
	tally_map_release(&pokes->bytes);
}
