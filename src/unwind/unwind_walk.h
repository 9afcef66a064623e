/* A walk up a stack, frame by frame: what the ways of taking a step share.  Inside this room. */
#ifndef TALLY_UNWIND_UNWIND_WALK_H
#define TALLY_UNWIND_UNWIND_WALK_H

#include "unwind/unwind_machine.h"
#include "unwind/unwind_table.h"

enum { TALLY_UNWIND_WORD = 8 };

struct tally_unwind_walk {
	const struct tally_unwind_request *request;
	const struct tally_unwind_layout *layout;
	uint64_t return_mask; /* what a return address has of address: the rest is its signature */
	struct tally_unwind_frame frame;
	const struct tally_unwind_rule *rule; /* of the current frame */
	/* of the current frame, where its rule is TALLY_RULE_ROW */
	const struct tally_cfi_row *row;
	struct tally_unwind_place place;      /* of the current frame, where has_place says so */
	bool has_place;
	bool is_exact;      /* pc is that of an instruction about to run, not a return address */
	bool is_by_pointer; /* the step to here was by frame pointer: a guess */
	bool is_fetched;    /* what the walk will read was asked for already */
	/* pc is where a function begins: no call left it (tally_unwind_is_made_up()) */
	bool is_made_up;
	enum tally_unwind_end end;
	struct tally_cfi_program program; /* large, and set up by whoever runs it */
};

static inline uint64_t tally_unwind_get(const struct tally_unwind_walk *walk, unsigned reg)
{
	return walk->frame.registers[reg];
}

static inline bool tally_unwind_knows(const struct tally_unwind_walk *walk, unsigned reg)
{
	return walk->frame.known >> reg & 1;
}

static inline uint64_t tally_unwind_lookup_address(const struct tally_unwind_walk *walk)
{
	return tally_unwind_get(walk, walk->layout->pc) - !walk->is_exact;
}

static inline bool tally_unwind_stop(struct tally_unwind_walk *walk, enum tally_unwind_end end)
{
	walk->end = end;
	return false;
}

/* Finds the place of the current frame, once; false when nothing is mapped there. */
bool tally_unwind_locate(struct tally_unwind_walk *walk);

/* A word of the stack that the rules name could not be read: ends the walk, as the reason
 * demands. */
bool tally_unwind_stop_at_missed(struct tally_unwind_walk *walk);

/* Makes the registers of the caller the current ones; false, at the walk's end, where they can't
 * be. */
bool tally_unwind_enter(struct tally_unwind_walk *walk, const uint64_t *registers, uint64_t known,
			bool is_exact);

/* A saved word; below sp it is gone from the copy, but then the function's end has popped it
 * already, and the register holds it again (compilers don't say so in the rules: any moment now
 * they won't matter). */
bool tally_unwind_load_saved(struct tally_unwind_walk *walk, unsigned reg, uint64_t address,
			     uint64_t *value);

/* The ways of taking a step but for that by a compiled rule: false at the walk's end. */
bool tally_unwind_step_by_row(struct tally_unwind_walk *walk);
bool tally_unwind_step_by_frame_pointer(struct tally_unwind_walk *walk);
bool tally_unwind_step_without_table(struct tally_unwind_walk *walk);
bool tally_unwind_step_without_rules(struct tally_unwind_walk *walk);

/* True in the first instructions of a program, or of its dynamic linker: they have no caller. */
bool tally_unwind_is_entry_point(struct tally_unwind_walk *walk);

/* True when the return address, in an object with rules, was left by no call: it is a function's
 * first byte.  Those who set a stack up put it there: Go for the stacks of its scheduler,
 * makecontext(3).  Nothing is outside. */
bool tally_unwind_is_made_up(struct tally_unwind_walk *walk);

/* True when the code at pc is where a signal's handler returns to, where it can be read. */
bool tally_unwind_is_at_sigreturn(struct tally_unwind_walk *walk);
bool tally_unwind_step_over_signal(struct tally_unwind_walk *walk);

#endif
