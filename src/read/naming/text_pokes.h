/* Changes that the kernel made to its own code while it was recorded (TEXT_POKE records): jumps of
 * tracepoints and static keys, calls of tracers, generated code.  Used in this room only.  Not
 * thread-safe. */
#ifndef TALLY_NAMING_TEXT_POKES_H
#define TALLY_NAMING_TEXT_POKES_H

#include "abi/record.h"
#include "base/map.h"

#include <stddef.h>
#include <stdint.h>

struct tally_text_pokes {
	struct tally_map bytes; /* address → the byte written last */
};

/* Notes a change; changes must come in order of time.  Only the first million different addresses
 * are kept.  Returns 0 or -ENOMEM. */
int tally_text_pokes_add(struct tally_text_pokes *pokes, const struct tally_record_text_poke *poke);

/* Writes the changed bytes into `code`, a copy of `size` bytes at an address; NULL: only counts
 * them.  Returns the number of changed bytes. */
size_t tally_text_pokes_apply(const struct tally_text_pokes *pokes, uint64_t address, uint8_t *code,
			      size_t size);

void tally_text_pokes_release(struct tally_text_pokes *pokes);

#endif
