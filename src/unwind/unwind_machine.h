/* Which registers a machine has, in DWARF's numbering: inside this room. */
#ifndef TALLY_UNWIND_UNWIND_MACHINE_H
#define TALLY_UNWIND_UNWIND_MACHINE_H

#include "unwind/unwind.h"

struct tally_unwind_layout {
	uint8_t count; /* registers 0 … count − 1 */
	uint8_t sp, fp, pc;
	uint8_t return_register; /* the column that a caller's pc is found in */
	/* bytes from a frame record up to the caller's sp; 0: it doesn't tell */
	uint8_t top_of_pair;
	/* pointer authentication: the high bits of a return address are a signature */
	bool has_signed_returns;
};

/* Never NULL: TALLY_UNWIND_HOST is resolved, a machine that is not known has no registers. */
const struct tally_unwind_layout *tally_unwind_layout(enum tally_unwind_machine machine);

#endif
