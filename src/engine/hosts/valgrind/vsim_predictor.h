/* The simulated CPU's branch predictors.
 *
 * Conditional branches.  A table of two-bit counters, indexed by the branch and the latest outcomes
 * (gshare), is right nine times in ten.  Its weakness: each branch must learn a counter in each
 * context, and shares it with other branches.  So where the counter is not saturated, two more
 * tables are used: one indexed by a history of 40 outcomes, with tags that tell whether the branch
 * has an entry, and then one indexed by the branch alone.  They learn only where the first table
 * was not both sure and right.  So a saturated counter that is right needs no other work: generated
 * code checks it, and the other tables run for one branch in ten.  On recorded branches they reduce
 * the misses: gzip from 3.7 % to 3.6, xz 8.5 to 7.6, SQLite 0.9 to 0.8, Python 7.6 to 5.7, gcc 4.6
 * to 3.5.
 *
 * A counter c from 0 (never taken) to 3 (always taken) is stored as two bytes, c and 3 - c.  The
 * byte at index [taken] is its distance from being sure of the actual outcome: 0 if it is sure and
 * right, 2 or 3 if it is wrong.  So generated code loads one byte and compares it with 0, whatever
 * the outcome.  The outcome is the lowest bit of the history, so the history gives the byte's
 * index.
 *
 * Indirect branches.  Most always go to one place (a PLT entry's).  A branch that went to the same
 * target VSIM_TARGET_REPEATS times in a row is predicted from that alone and does not enter the
 * history.  So the history reaches further back for the branches that need it; those use a table of
 * targets, indexed by the branch and the latest targets.  Misses, compared with such a table alone
 * (2,048 targets): SQLite 1.3 % instead of 16, gcc 6 instead of 13, Python 8 instead of 27.  And
 * three in four to six in seven of the branches need no call of the model.
 *
 * Returns.  A ring of return addresses.  MIT. */
#ifndef TALLY_VALGRIND_VSIM_PREDICTOR_H
#define TALLY_VALGRIND_VSIM_PREDICTOR_H

#include "valgrind/vsim_model.h"

enum {
	VSIM_LONG_HISTORY = 40,     /* outcomes that index the second table */
	VSIM_TAG_BITS = 8,
	VSIM_TARGET_REPEATS = 4,
	VSIM_TARGET_SLOT_BITS = 12,
	VSIM_TARGET_HISTORY = 16    /* bits of target history, 4 for each target */
};

/* An entry of the second table: the tag of its branch, and its counter. */
struct vsim_tagged {
	uint8_t tag, counter;
};

struct vsim_target_slot {
	uint64_t last;
	uint32_t repeats;
};

struct vsim_predictor {
	struct vsim_conditional conditional;
	struct vsim_returns returns;
	uint8_t *pairs;             /* conditional.counters, 2 << history_bits bytes */
	struct vsim_tagged *by_long_history; /* 1 << opinion_bits */
	uint8_t *by_branch;         /* counters, 1 << opinion_bits */
	uint64_t *sure;             /* by slot: the predicted target, or VSIM_NONE */
	struct vsim_target_slot *slots;
	uint64_t *targets;          /* 1 << target_bits */
	uint64_t path;              /* the latest targets */
	uint32_t history_bits, opinion_bits, target_bits;
};

/* The highest bits of a product with an odd constant depend on all bits of `value`. */
static inline uint64_t vsim_hash(uint64_t value, uint32_t bits)
{
	return value * 0x9e3779b97f4a7c15ull >> (64 - bits);
}

/* Returns how many outcomes index the table.  A history as wide as the index would leave the
 * branches no bits of their own; with 2^n counters, n - 2 outcomes did best. */
static inline uint32_t vsim_history_outcomes(uint32_t history_bits)
{
	return history_bits - 2;
}

static inline uint64_t vsim_predictor_branch(const struct vsim_predictor *predictor, uint64_t ip)
{
	return vsim_hash(ip, predictor->history_bits) << 1;
}

/* Returns the index into the second table and, in the lowest bits, the tag. */
static inline uint64_t vsim_long_context(uint64_t ip, uint64_t history, uint32_t bits)
{
	return vsim_hash(ip ^ history << (64 - VSIM_LONG_HISTORY), bits + VSIM_TAG_BITS);
}

static inline void vsim_counter_learn(uint8_t *counter, bool taken)
{
	if (taken && *counter < 3)
		++*counter;
	else if (!taken && *counter > 0)
		--*counter;
}

static inline bool vsim_counter_sure(uint8_t counter)
{
	return counter == 0 || counter == 3;
}

#endif
