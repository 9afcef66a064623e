/* What an x86-64 instruction is to the simulated PMU, from its bytes.  Pure; freestanding; MIT. */
#ifndef TALLY_VALGRIND_VSIM_DECODE_H
#define TALLY_VALGRIND_VSIM_DECODE_H

#include <stdbool.h>
#include <stdint.h>

enum vsim_flow {
	VSIM_FLOW_ON,            /* no branch */
	VSIM_FLOW_CONDITIONAL,   /* jcc, loop, jrcxz */
	VSIM_FLOW_JUMP,
	VSIM_FLOW_CALL,
	VSIM_FLOW_INDIRECT_JUMP,
	VSIM_FLOW_INDIRECT_CALL,
	VSIM_FLOW_RETURN,
	/* a string instruction with a rep prefix: no branch, but it comes back to itself */
	VSIM_FLOW_REPEAT
};

/* `length`: 1 … 15, of an instruction that was decoded as a whole elsewhere.  *target of what jumps
 * or calls directly, else 0. */
enum vsim_flow vsim_decode_flow(const uint8_t *bytes, unsigned length, uint64_t address,
				uint64_t *target);
static inline bool vsim_flow_is_branch(enum vsim_flow flow)
{
	return flow != VSIM_FLOW_ON && flow != VSIM_FLOW_REPEAT;
}

/* Data that an instruction reads, in accesses: 0, 1, 2.  For instructions whose reads were found to
 * be of no use and have gone: those that are known not to read (lea, hints, stores), and what isn't
 * known, give 0. */
unsigned vsim_decode_loads(const uint8_t *bytes, unsigned length);
/* Whole states of the FPU (fxsave, xrstor): one access, in however many pieces it is done. */
bool vsim_decode_is_state(const uint8_t *bytes, unsigned length);

#endif
