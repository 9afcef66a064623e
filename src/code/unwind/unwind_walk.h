/* A walk up a stack, frame by frame: the state that the ways of taking a step share.  Internal to
 * src/unwind. */
#ifndef TALLY_UNWIND_WALK_H
#define TALLY_UNWIND_WALK_H

#include "unwind/unwind_machine.h"
#include "unwind/unwind_table.h"

enum { TALLY_UNWIND_WORD = 8 };

struct tally_unwind_walk {
	const struct tally_unwind_request *request;
	const struct tally_unwind_layout *layout;
	/* the address bits of a return address; the others are its signature */
	uint64_t return_mask;
	struct tally_unwind_frame frame;
	const struct tally_unwind_rule *rule; /* of the current frame */
	/* of the current frame, if its rule is TALLY_RULE_ROW */
	const struct tally_cfi_row *row;
	struct tally_unwind_place place;      /* of the current frame, if has_place */
	bool has_place;
	bool is_exact;      /* pc is the next instruction to run, not a return address */
	bool is_by_pointer; /* the step to this frame was by frame pointer: a guess */
	bool is_fetched;    /* the words of the stack were loaded already: no need to prefetch */
	/* pc is a function's first byte: no call left it (tally_unwind_is_made_up()) */
	bool is_made_up;
	bool is_leaf_mistrusted; /* the leaf's rules are wrong */
	bool is_at_zero;         /* ended by a return address of 0 */
	bool has_interrupted;    /* the leaf is a signal's trampoline: no call led to it */
	uint64_t switched_at; /* tally_unwind_extent */
	bool is_in_go;
	enum tally_unwind_end end;
	struct tally_cfi_program program; /* large; only the interpreter sets it up */
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

/* Finds the place of the current frame, once.  Returns false when nothing is mapped there. */
bool tally_unwind_locate(struct tally_unwind_walk *walk);

/* True if the frame pointer leads to another stack than the copied one. */
bool tally_unwind_is_linked_apart(const struct tally_unwind_walk *walk);

/* Ends the walk because a word of the stack that the rules name could not be read.  The end says
 * whether the copy was too short or the rules are bad.  Returns false. */
bool tally_unwind_stop_at_missed(struct tally_unwind_walk *walk);

/* Makes the caller's registers the current ones.  Returns false, and ends the walk, when they can't
 * be a caller's. */
bool tally_unwind_enter(struct tally_unwind_walk *walk, const uint64_t *registers, uint64_t known,
			bool is_exact);

/* Reads a saved word.  Below sp it is no longer in the copy; but then the function's last
 * instructions have popped it already, and the register holds it again.  (Compilers write no rules
 * for that: the function is about to return.)  Returns false when the word can't be had. */
bool tally_unwind_load_saved(struct tally_unwind_walk *walk, unsigned reg, uint64_t address,
			     uint64_t *value);

/* The ways of taking a step, other than by a compiled rule.  They return false at the walk's
 * end. */
bool tally_unwind_step_by_row(struct tally_unwind_walk *walk);
bool tally_unwind_step_by_frame_pointer(struct tally_unwind_walk *walk);
bool tally_unwind_step_without_table(struct tally_unwind_walk *walk);
bool tally_unwind_step_without_rules(struct tally_unwind_walk *walk);
/* from the sampled frame, whose rules are wrong: by what its code and the stack say */
bool tally_unwind_step_by_evidence(struct tally_unwind_walk *walk);

/* go_switch.c */
bool tally_unwind_step_from_c_to_go(struct tally_unwind_walk *walk); /* TALLY_RULE_GO_TO_C */
bool tally_unwind_step_from_go_to_c(struct tally_unwind_walk *walk); /* TALLY_RULE_C_TO_GO */
/* Makes the stack around `sp` the current one, so that a missing word is looked for there.  The
 * others are members of tally_unwind_extent. */
void tally_unwind_change_stack(struct tally_unwind_walk *walk, uint64_t sp, uint64_t switched_at,
			       bool is_in_go);
/* Returns which of these rules holds behind a call in a Go object; TALLY_RULE_NONE: neither. */
enum tally_unwind_rule_kind tally_unwind_go_switch(struct tally_unwind_walk *walk);

/* Takes a step from code that a C function jumped to, with neither rules nor frames of its own, to
 * that function (unwind_entered.c).  Returns false, and leaves the walk as it is, if it finds no
 * such function. */
bool tally_unwind_step_entered(struct tally_unwind_walk *walk);
/* The same, only with functions that earlier walks found. */
bool tally_unwind_step_entered_before(struct tally_unwind_walk *walk);

/* Takes a step by the rules at pc.  Returns false when there are none, or at the walk's end. */
bool tally_unwind_step_by_rules(struct tally_unwind_walk *walk);

/* True if a call left the address on the stack: the code in front of it is a call. */
bool tally_unwind_is_left_by_call(struct tally_unwind_walk *walk, uint64_t address);

/* True if a call left the address, or it is where a stack was made to begin: a function's first
 * byte, Go's goexit. */
bool tally_unwind_is_return_address(struct tally_unwind_walk *walk, uint64_t address);

/* True in the first instructions of a program or of its dynamic linker: they have no caller. */
bool tally_unwind_is_entry_point(struct tally_unwind_walk *walk);

/* True if the return address, in an object, was left by no call: it is a function's first byte, or
 * that of code that ends the program or the thread.  Code that sets up a stack puts it there: Go
 * for the stacks of its scheduler, makecontext(3), libraries of fibers.  The frame has no caller. */
bool tally_unwind_is_made_up(struct tally_unwind_walk *walk);

/* True if the code at pc can be read and is where a signal handler returns to. */
bool tally_unwind_is_at_sigreturn(struct tally_unwind_walk *walk);
/* True if a signal handler returns to the address. */
bool tally_unwind_is_signal_return(struct tally_unwind_walk *walk, uint64_t address);
bool tally_unwind_step_over_signal(struct tally_unwind_walk *walk);

#endif
