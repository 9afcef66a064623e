/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Between vsim_instrument.c, which writes code, and vsim_run.c, which that code calls. */
#ifndef TALLY_VALGRIND_VSIM_RUN_H
#define TALLY_VALGRIND_VSIM_RUN_H

#include "valgrind/vsim.h"
#include "valgrind/vsim_decode.h"

/* Kept in the running thread's second shadow registers, which generated code reaches as cheaply as
 * its registers.
 *
 * `packed` holds two counts to a word.  A turn of a thread ends after 100,000 blocks of code at the
 * latest, and vsim_fold() empties the words then; VSIM_PACKED_MAX is the most that a block may add
 * to a lower half, which the instrumenter asserts, so that none carries into its upper half. */
struct vsim_shadow {
	/* of kinds in cpu->alarmed; what isn't left any more was counted */
	int64_t left[VSIM_STATIC_KINDS];
	/* of the others: instructions and branches; loads and stores; lines of code */
	uint64_t packed[3];
	/* the stack and frame pointer that the run began with: when misses are sampled */
	uint64_t run_sp, run_fp;
	uint64_t address[64];            /* of the run's accesses */
};
enum {
	VSIM_PACKED_SHIFT = 27,
	VSIM_TURN_BLOCKS = 100000,
	VSIM_PACKED_MAX = (1 << VSIM_PACKED_SHIFT) / (VSIM_TURN_BLOCKS + 1),
	VSIM_SLOTS = 64
};

/* What the instructions of a straight run count. */
struct vsim_step {
	uint16_t offset; /* from the run's start */
	uint8_t counts[VSIM_STATIC_KINDS];
};
struct vsim_run {
	uint64_t start;
	uint32_t count;
	struct vsim_step steps[];
};

/* What a straight run asks of the model: lines fetched, then data, then the branch that ends it. */
struct vsim_access {
	/* of the instruction from the run's start; bytes. Of a line: of the first one in it; 0 */
	uint16_t offset, size;
	int16_t delta;         /* its address is that in the slot, and this */
	uint8_t slot;
	bool store;
};
struct vsim_batch {
	struct vsim *sim;
	uint64_t start;
	uint64_t branch;       /* vsim_model_branch() of a conditional jump */
	uint64_t line_address;
	uint16_t branch_offset;
	uint8_t flow;          /* enum vsim_flow: of a branch that the model foresees */
	uint8_t lines;         /* from line_address: as many of the accesses, first */
	uint8_t count;         /* of all accesses */
	bool count_lines;      /* lines are sampled, so that they are counted here */
	struct vsim_access accesses[];
};

/* No data is there for an access whose condition was false. */
#define VSIM_NO_ADDRESS UINT64_MAX

/* The run at the beginning of the block at an address, if its code calls vsim_run_alarm_first():
 * else NULL. */
const struct vsim_run *vsim_instrument_first_run(Addr address);

/* What generated code calls.  `guest`: the running thread's registers, shadows behind them. */
void vsim_run_alarm_first(void);
VG_REGPARM(2) void vsim_run_alarm(void *guest, const struct vsim_run *run);
VG_REGPARM(3) void vsim_run_batch(void *guest, const struct vsim_batch *batch, uint64_t outcome);

#endif
