/* What the simulated CPU guesses of branches.
 *
 * Conditional ones.  A table of counters of two bits, indexed by the branch and the latest outcomes
 * (gshare), guesses right nine times in ten; what it costs is that each branch has a counter to
 * learn in each context, and shares it.  So where the counter is not saturated, others are asked: a
 * table by a history of 40 outcomes, tagged, so that who isn't in it knows, and then one by the
 * branch alone.  They learn where the first one wasn't sure and right, and nowhere else: so a
 * saturated counter that is right is all that there is to a branch, generated code sees it, and the
 * rest runs for one branch in ten.  On recorded branches the others save misses: gzip 3.7 % -> 3.6,
 * xz 8.5 -> 7.6, SQLite 0.9 -> 0.8, Python 7.6 -> 5.7, gcc 4.6 -> 3.5.
 *
 * A counter c of 0 (never) to 3 (always) is kept as two bytes, c and 3 - c: byte [taken] is how far
 * it is from being sure of what happened, 0 where it is sure and right, 2 and 3 where it was wrong.
 * One byte to load and to compare with 0, whatever the outcome.  The outcome being the lowest bit
 * of the history, the history gives the byte's index.
 *
 * Indirect ones.  Most go to one place always (a PLT's); who has done so VSIM_TARGET_REPEATS times
 * is foreseen by that alone, and leaves no trace in the history, which so reaches further for those
 * that need it: a table of targets by the branch and the latest targets.  Compared with a table
 * alone (2,048 targets): SQLite 1.3 % wrong instead of 16, gcc 6 instead of 13, Python 8 instead of
 * 27; and three in four to six in seven need not be told.
 *
 * Returns.  A ring of return addresses.  MIT. */
#ifndef TALLY_VALGRIND_VSIM_PREDICTOR_H
#define TALLY_VALGRIND_VSIM_PREDICTOR_H

#include "valgrind/vsim_model.h"

enum {
	VSIM_LONG_HISTORY = 40,     /* outcomes that the second table is indexed by */
	VSIM_TAG_BITS = 8,
	VSIM_TARGET_REPEATS = 4,
	VSIM_TARGET_SLOT_BITS = 12,
	VSIM_TARGET_HISTORY = 16    /* bits, of 4 for each target */
};

/* Of the second table: whose it is, and its counter. */
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
	uint64_t *sure;             /* by slot, the target that is foreseen, or VSIM_NONE */
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

/* A history as wide as the index would leave the branches no bits of their own; of 2^n counters, n
 * - 2 outcomes did best. */
static inline uint32_t vsim_history_outcomes(uint32_t history_bits)
{
	return history_bits - 2;
}

static inline uint64_t vsim_predictor_branch(const struct vsim_predictor *predictor, uint64_t ip)
{
	return vsim_hash(ip, predictor->history_bits) << 1;
}

/* Index and, in the lowest bits, tag of the second table. */
static inline uint64_t vsim_long_context(uint64_t ip, uint64_t history, uint32_t bits)
{
	return vsim_hash(ip ^ history << (64 - VSIM_LONG_HISTORY), bits + VSIM_TAG_BITS);
}

static inline void vsim_counter_learn(uint8_t *counter, bool taken)
{
	if (taken ? *counter < 3 : *counter > 0)
		*counter = (uint8_t)(taken ? *counter + 1 : *counter - 1);
}

static inline bool vsim_counter_sure(uint8_t counter)
{
	return counter == 0 || counter == 3;
}

#endif
