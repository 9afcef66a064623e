/* Unpacks COMPRESSED records ahead of the reader, in a thread.
 *
 * The thread walks the file like the reader, ignores all records except COMPRESSED ones, and hands
 * over what they unpack to, piece by piece, in order.  The reader takes the pieces of one record
 * after the other.  The two share nothing else, so the result is the same with and without the
 * thread.
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
	struct tally_block *block; /* the receiver is a holder */
	/* in the block; before the block's first piece there is space for the beginning of a torn
	 * record */
	size_t start, end;
	bool is_last;              /* of the COMPRESSED record */
	enum tally_unpack_failure failure; /* behind the bytes; if set, no piece follows */
	size_t zstd_result;        /* zstd's result, for TALLY_UNPACK_DAMAGED */
};

/* Starts a thread at the COMPRESSED record at `offset` of the file's bytes; the data ends at `end`.
 * `swap`: the file is of the other byte order.  Returns NULL when there is no second CPU or no
 * thread can be made; nothing was started then. */
struct tally_unpack_ahead *tally_unpack_ahead_start(const uint8_t *file, uint64_t offset,
						    uint64_t end, bool swap);

/* Waits for the next piece.  Returns false when there are no more. */
bool tally_unpack_ahead_next(struct tally_unpack_ahead *ahead, struct tally_unpacked *piece);

/* Ends the thread.  The caller must have dropped all blocks.  Accepts NULL. */
void tally_unpack_ahead_stop(struct tally_unpack_ahead *ahead);

#endif
