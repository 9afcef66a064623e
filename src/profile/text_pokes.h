/* What the kernel wrote over its own code while it was recorded (TEXT_POKE records): jumps of
 * tracepoints and static keys, calls of tracers, code that it made.  Of this room alone.  Not
 * thread-safe. */
#ifndef TALLY_PROFILE_TEXT_POKES_H
#define TALLY_PROFILE_TEXT_POKES_H

#include "abi/record.h"
#include "base/map.h"

#include <stddef.h>
#include <stdint.h>

struct tally_text_pokes {
	struct tally_map bytes; /* address → what was written there last */
};

/* In order of time.  0 or -ENOMEM.  Of more than a million bytes the rest is let go. */
int tally_text_pokes_add(struct tally_text_pokes *pokes, const struct tally_record_text_poke *poke);

/* How many of `size` bytes at an address were written; writes them into a copy of that code (NULL:
 * they are but counted). */
size_t tally_text_pokes_apply(const struct tally_text_pokes *pokes, uint64_t address, uint8_t *code,
			      size_t size);

void tally_text_pokes_release(struct tally_text_pokes *pokes);

#endif
