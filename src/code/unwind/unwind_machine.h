/* The registers of a machine, in DWARF's numbering.  Internal to this room. */
#ifndef TALLY_UNWIND_MACHINE_H
#define TALLY_UNWIND_MACHINE_H

#include "unwind/unwind.h"

struct tally_unwind_layout {
	uint8_t count; /* registers 0 … count − 1 */
	uint8_t sp, fp, pc;
	uint8_t word; /* bytes of an address */
	uint8_t return_register; /* the column of the caller's pc */
	/* bytes from a frame record up to the caller's sp; 0: unknown */
	uint8_t top_of_pair;
	/* pointer authentication: the high bits of a return address are a signature */
	bool has_signed_returns;
};

/* Returns the registers of a machine; never NULL.  Resolves TALLY_UNWIND_HOST.  An unknown machine
 * has no registers. */
const struct tally_unwind_layout *tally_unwind_layout(enum tally_unwind_machine machine);

#endif
