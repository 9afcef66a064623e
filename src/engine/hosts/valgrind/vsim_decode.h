/* Decodes what the simulated PMU must know of an x86-64 instruction, from its bytes.  Pure;
 * freestanding; MIT. */
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
	/* a string instruction with a rep prefix: not a branch, but it repeats itself */
	VSIM_FLOW_REPEAT
};

/* Returns how the instruction transfers control.  `length`, 1 to 15, is that of a whole
 * instruction, decoded elsewhere.  Sets *target for direct jumps and calls, otherwise to 0. */
enum vsim_flow vsim_decode_flow(const uint8_t *bytes, unsigned length, uint64_t address,
				uint64_t *target);
static inline bool vsim_flow_is_branch(enum vsim_flow flow)
{
	return flow != VSIM_FLOW_ON && flow != VSIM_FLOW_REPEAT;
}

/* Returns how many data accesses the instruction reads: 0, 1 or 2.  It is used for instructions
 * whose reads were removed because their values are unused.  Returns 0 for instructions that don't
 * read (lea, hints, stores) and for unknown ones. */
unsigned vsim_decode_loads(const uint8_t *bytes, unsigned length);
/* True for instructions that save or restore the whole FPU state (fxsave, xrstor).  They count as
 * one access, in however many pieces it is done. */
bool vsim_decode_is_state(const uint8_t *bytes, unsigned length);

#endif
