/* The simulated CPU: caches, TLBs, predictors.  Plain C, of no Valgrind and no libc, so that tests
 * run it too.
 *
 * The tool tells it of each access; it answers what happened, as a set of bits by enum vsim_kind: 0
 * nearly always.  A kind happens at most once to an access, though one may touch two lines and miss
 * both.
 *
 *   data, code  caches fill on loads and stores; each level is looked up on a miss of the one
 *   before; none evicts from
 *               another.  L2, LLC and the second-level TLB are shared by data and code, and LRU.  The first-level caches
 *               replace what was not recently used (vsim_cache.h), the first-level TLBs round-robin.
 *   branches    vsim_predictor.h
 *
 * Nine in ten of the calls would change nothing, so generated code asks before it calls.  What it
 * may ask is part of this contract; what passes need not be told, and the counts are the same to
 * the last digit:
 *
 *   data    recent[(address >> line_shift) & mask] == (address + size - 1) >> line_shift, for size <= size_max.
 *           The *last* byte's line at the *first* byte's place: what straddles two lines never passes.
 *   code    recent[(address >> line_shift) & mask] == address >> line_shift
 *   conditional branches, of which generated code always does the first two lines itself:
 *           outcomes = history << 1 | taken;  history = outcomes;
 *           counters[(outcomes & history_mask) ^ vsim_model_branch(model, ip)] == 0, else vsim_model_unsure()
 *   indirect jumps and calls
 *           *vsim_model_target(model, ip) == target
 *   calls   may be done in place: entry[top] = return address, top = (top + 1) & mask
 *   returns likewise: top = (top - 1) & mask, then entry[top] == target, or it is
 *   VSIM_RETURN_MISSES
 *
 * Addresses of these arrays, masks and shifts don't change after vsim_model_init().  One thread at
 * a time. MIT. */
#ifndef TALLY_VALGRIND_VSIM_MODEL_H
#define TALLY_VALGRIND_VSIM_MODEL_H

#include "valgrind/vsim_geometry.h"
#include "valgrind/vsim_plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VSIM_NONE UINT64_MAX /* no line, no target */

/* A side of the first level, of data or of code, as generated code sees it. */
struct vsim_recent {
	uint64_t *recent;     /* lines whose use changes nothing, or VSIM_NONE */
	uint64_t mask;
	uint32_t line_shift;
	uint32_t size_max;    /* larger accesses are always told */
};

struct vsim_conditional {
	uint64_t history;     /* outcomes, the latest in bit 0 */
	/* what the index takes of them, that of the branch itself included */
	uint64_t history_mask;
	const uint8_t *counters;
};

enum { VSIM_RETURN_DEPTH_MAX = 64 };

struct vsim_returns {
	/* a ring: what is pushed beyond its depth overwrites the oldest, as in CPUs */
	uint64_t top, mask;
	uint64_t entry[VSIM_RETURN_DEPTH_MAX];
};

struct vsim_model;

/* Bytes of memory that a model of this geometry takes, at most VSIM_MODEL_BYTES_MAX; 0:
 * vsim_geometry_problem() has found something.  What generated code touches lies at the beginning;
 * a block below 2 GiB makes shorter code. */
size_t vsim_model_bytes(const struct vsim_geometry *geometry);
#define VSIM_MODEL_BYTES_MAX ((size_t)48 << 20)
/* Everything empty.  `memory` is aligned to 64 bytes and outlives the model, which lies at its
 * beginning; the geometry has no problem. */
struct vsim_model *vsim_model_init(void *memory, const struct vsim_geometry *geometry);

const struct vsim_recent *vsim_model_recent_data(const struct vsim_model *model);
const struct vsim_recent *vsim_model_recent_code(const struct vsim_model *model);
struct vsim_conditional *vsim_model_conditionals(struct vsim_model *model);
uint64_t vsim_model_branch(const struct vsim_model *model, uint64_t ip);
const uint64_t *vsim_model_target(const struct vsim_model *model, uint64_t ip);
struct vsim_returns *vsim_model_returns(struct vsim_model *model);

/* A read or write of 1 … 4096 bytes: L1D, L2, LLC, DTLB kinds, of loads or of stores.  What reads
 * and writes (a locked add) is told twice, first as a load. */
unsigned vsim_model_data(struct vsim_model *model, uint64_t address, unsigned size, bool store);
/* The line of code that holds `address`: L1I_MISSES, ITLB_*, L2 and LLC loads.  (The lines that a
 * run touches, L1I_LOADS and ITLB_LOADS, are known when it is translated: the caller counts
 * them.) */
unsigned vsim_model_fetch(struct vsim_model *model, uint64_t address);
/* A conditional jump at `ip`, taken or not. */
unsigned vsim_model_conditional(struct vsim_model *model, uint64_t ip, bool taken);
/* The same where generated code has moved the history on and found its counter not 0. */
unsigned vsim_model_unsure(struct vsim_model *model, uint64_t ip, bool taken);
/* An indirect jump or call at `ip` (a call is told by vsim_model_call() too; a return isn't told
 * here). */
unsigned vsim_model_indirect(struct vsim_model *model, uint64_t ip, uint64_t target);
void vsim_model_call(struct vsim_model *model, uint64_t return_address);
unsigned vsim_model_return(struct vsim_model *model, uint64_t target);

/* est-cycles is a sum over the other kinds, each by a weight in hundredths of a cycle: fills
 * weight[], of VSIM_EST_CYCLES itself 0.  Stores weigh a quarter of what loads do: a store buffer
 * hides them until it is full. */
void vsim_model_weights(const struct vsim_geometry *geometry, uint32_t weight[VSIM_KINDS]);

#endif
