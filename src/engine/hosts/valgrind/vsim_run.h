/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The contract between vsim_instrument.c, which writes code, and the files that this code calls:
 * vsim_run.c and vsim_region.c. */
#ifndef TALLY_VALGRIND_VSIM_RUN_H
#define TALLY_VALGRIND_VSIM_RUN_H

#include "valgrind/vsim.h"
#include "valgrind/vsim_decode.h"

/* The running thread's second shadow registers, which generated code reaches as cheaply as
 * registers.
 *
 * `packed` holds two counts in a word.  A thread's turn ends after at most 100,000 blocks of code,
 * and vsim_fold() then empties the words.  VSIM_PACKED_MAX is the most that a block may add to a
 * lower half.  The instrumenter asserts that, so a lower half never carries into its upper half. */
struct vsim_shadow {
	/* Of kinds in cpu->alarmed: generated code counts these down. */
	int64_t left[VSIM_STATIC_KINDS];
	/* Of the other kinds: instructions and branches; loads and stores; lines of code. */
	uint64_t packed[3];
	/* Stack and frame pointer at the run's beginning; kept when misses are sampled. */
	uint64_t run_sp, run_fp;
	uint64_t address[64];            /* addresses of the run's accesses */
};
enum {
	VSIM_PACKED_SHIFT = 27,
	VSIM_TURN_BLOCKS = 100000,
	VSIM_PACKED_MAX = (1 << VSIM_PACKED_SHIFT) / (VSIM_TURN_BLOCKS + 1),
	VSIM_SLOTS = 64
};

/* The counts of each instruction of a straight run. */
struct vsim_step {
	uint16_t offset; /* bytes from the run's start */
	uint8_t counts[VSIM_STATIC_KINDS];
};
struct vsim_run {
	uint64_t start;
	uint32_t count;
	struct vsim_step steps[];
};

/* One question of a straight run to the model.  A run asks about the lines fetched, then data, then
 * the branch that ends it. */
struct vsim_access {
	/* Bytes: of the instruction, from the run's start; of the access.  For a line of code: of
	 * the first instruction in it, and 0. */
	uint16_t offset, size;
	int16_t delta;         /* its address is the slot's plus this */
	uint8_t slot;
	bool store;
};
struct vsim_batch {
	struct vsim *sim;
	uint64_t start;
	uint64_t branch;       /* vsim_model_branch() of a conditional jump */
	uint64_t line_address;
	uint16_t branch_offset;
	uint8_t flow;          /* enum vsim_flow of a branch that the model predicts */
	uint8_t lines;         /* lines from line_address; they are the first of `accesses` */
	uint8_t count;         /* number of all accesses */
	bool count_lines;      /* lines are sampled, so the helper counts them */
	struct vsim_access accesses[];
};

/* The address of an access whose condition was false: it touches no data. */
#define VSIM_NO_ADDRESS UINT64_MAX

/* Returns the run at the beginning of the block at `address` if the block's code calls
 * vsim_run_alarm_first(), otherwise NULL. */
const struct vsim_run *vsim_instrument_first_run(Addr address);

/* Called by generated code.  `guest` points to the running thread's registers, with the shadow
 * registers behind them. */
void vsim_run_alarm_first(void);
VG_REGPARM(2) void vsim_run_alarm(void *guest, const struct vsim_run *run);
VG_REGPARM(3) void vsim_run_batch(void *guest, const struct vsim_batch *batch, uint64_t outcome);

/* --- vsim_region.c: counts only inside a region --------------------------- */

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
