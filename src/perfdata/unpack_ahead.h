/* Unpacking COMPRESSED records ahead of their reader, in a thread of its own.
 *
 * The thread walks the file as the reader does, looks at nothing but COMPRESSED records, and hands
 * over what they unpack to, piece by piece, in order.  Whoever asks for the pieces does so for one
 * record after the other; nothing else of the reader is shared, so that what is read is the same
 * with the thread and without.
 */
#ifndef TALLY_PERFDATA_UNPACK_AHEAD_H
#define TALLY_PERFDATA_UNPACK_AHEAD_H

#include "perfdata/block.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_unpack_ahead;

enum tally_unpack_failure {
	TALLY_UNPACK_FINE,
	TALLY_UNPACK_NO_MEMORY,
	TALLY_UNPACK_DAMAGED,
	TALLY_UNPACK_BOMB
};

struct tally_unpacked {
	struct tally_block *block; /* with a holder for whoever got the piece */
	/* of it; room for a torn record is before the first piece in a block */
	size_t start, end;
	uint64_t offset;           /* of the COMPRESSED record */
	bool is_last;              /* of the record */
	enum tally_unpack_failure failure; /* behind the bytes; it is the last piece of all */
	size_t zstd_result;        /* where it is damaged */
};

/* Starts at `offset` of a file's bytes, where a COMPRESSED record is; its data ends at `end`;
 * `swap`: the file is of the other byte order.  NULL where a thread can't be had, or there is no
 * second CPU for it: nothing has begun then. */
struct tally_unpack_ahead *tally_unpack_ahead_start(const uint8_t *file, uint64_t offset,
						    uint64_t end, bool swap);

/* The next piece: waits for it; false when there is none any more. */
bool tally_unpack_ahead_next(struct tally_unpack_ahead *ahead, struct tally_unpacked *piece);

/* Ends the thread.  All blocks that were got must have been dropped.  NULL is fine. */
void tally_unpack_ahead_stop(struct tally_unpack_ahead *ahead);

#endif
