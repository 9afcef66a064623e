/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The regions' interface for vsim_instrument.c and for generated code. */
#ifndef TALLY_VALGRIND_VSIM_REGION_H
#define TALLY_VALGRIND_VSIM_REGION_H

#include "valgrind/vsim.h"

enum vsim_mark {
	VSIM_MARK_NONE,
	VSIM_MARK_BEGIN, /* after this instruction */
	VSIM_MARK_END,   /* before this one */
	/* before this one, a function's first; the guest's stack pointer is up to date */
	VSIM_MARK_ENTER,
	/* After a return or an indirect jump, if the guest's stack pointer is above
	 * sim->region_sp. */
	VSIM_MARK_LEAVE
};

/* Returns the mark of the instruction at `address`. */
enum vsim_mark vsim_region_mark(const struct vsim *sim, Addr address, unsigned length,
				bool begins_block);
/* True if each return and indirect jump must be checked. */
bool vsim_region_sees_returns(const struct vsim *sim);
VG_REGPARM(1) void vsim_region_reached(UWord mark);

#endif
