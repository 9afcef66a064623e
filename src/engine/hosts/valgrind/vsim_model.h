/* The simulated CPU: caches, TLBs, predictors.  Plain C without Valgrind and libc, so that tests
 * can run it too.
 *
 * The tool reports each access.  The model returns the kinds that happened, as bits by enum
 * vsim_kind; nearly always 0.  One access counts a kind at most once, even if it touches two lines
 * and misses both.
 *
 * - Data, code: loads and stores fill the caches.  A miss of one level accesses the next.  No level
 *   evicts lines of another.  L2, LLC and the second-level TLB are shared by data and code, and
 *   LRU.  The first-level caches replace lines that were not used recently (vsim_cache.h); the
 *   first-level TLBs replace round-robin.
 * - Branches: vsim_predictor.h.
 *
 * Nine of ten calls would change nothing, so generated code compares before it calls.  The
 * comparisons that it may make are part of this contract.  When one passes, generated code need not
 * call, and the counts stay exactly the same:
 *
 *   data    recent[(address >> line_shift) & mask] == (address + size - 1) >> line_shift,
 *           for size <= size_max.  This compares the *last* byte's line at the *first* byte's
 *           place, so an access that straddles two lines never passes.
 *   code    recent[(address >> line_shift) & mask] == address >> line_shift
 *   conditional branches (generated code always does the first line itself):
 *           outcomes = history << 1 | taken;  history = outcomes;
 *           counters[(outcomes & history_mask) ^ vsim_model_branch(model, ip)] == 0,
 *           else it calls vsim_model_unsure()
 *   indirect jumps and calls
 *           *vsim_model_target(model, ip) == target
 *   calls   may be done in place: entry[top] = return address, top = (top + 1) & mask
 *   returns may be done in place: top = (top - 1) & mask, then entry[top] == target;
 *           otherwise it is VSIM_RETURN_MISSES
 *
 * The addresses of these arrays, the masks and the shifts don't change after vsim_model_init().
 * One thread at a time.  MIT. */
#ifndef TALLY_VALGRIND_VSIM_MODEL_H
#define TALLY_VALGRIND_VSIM_MODEL_H

#include "valgrind/vsim_geometry.h"
#include "valgrind/vsim_plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VSIM_NONE UINT64_MAX /* no line, no target */

/* One side of the first level, data or code, as generated code sees it. */
struct vsim_recent {
	uint64_t *recent;     /* lines whose use changes nothing, or VSIM_NONE */
	uint64_t mask;
	uint32_t line_shift;
	uint32_t size_max;    /* bytes; larger accesses must always be reported */
};

struct vsim_conditional {
	uint64_t history;     /* outcomes, the latest in bit 0 */
	/* the bits of the history that index the counters, the branch's own outcome included */
	uint64_t history_mask;
	const uint8_t *counters;
};

enum { VSIM_RETURN_DEPTH_MAX = 64 };

struct vsim_returns {
	/* A ring.  A push beyond its depth overwrites the oldest entry, as in CPUs. */
	uint64_t top, mask;
	uint64_t entry[VSIM_RETURN_DEPTH_MAX];
};

struct vsim_model;

/* Returns the bytes of memory that a model of this geometry needs, at most VSIM_MODEL_BYTES_MAX, or
 * 0 if vsim_geometry_problem() finds a problem.  The parts that generated code touches are at the
 * beginning; memory below 2 GiB makes the generated code shorter. */
size_t vsim_model_bytes(const struct vsim_geometry *geometry);
#define VSIM_MODEL_BYTES_MAX ((size_t)48 << 20)
/* Initializes an empty model at the beginning of `memory` and returns it.  `memory` must be aligned
 * to 64 bytes and outlive the model.  `geometry` must have no problem. */
struct vsim_model *vsim_model_init(void *memory, const struct vsim_geometry *geometry);

const struct vsim_recent *vsim_model_recent_data(const struct vsim_model *model);
const struct vsim_recent *vsim_model_recent_code(const struct vsim_model *model);
struct vsim_conditional *vsim_model_conditionals(struct vsim_model *model);
uint64_t vsim_model_branch(const struct vsim_model *model, uint64_t ip);
const uint64_t *vsim_model_target(const struct vsim_model *model, uint64_t ip);
struct vsim_returns *vsim_model_returns(struct vsim_model *model);

/* Reports a read or write of 1 to 4096 bytes.  Returns L1D, L2, LLC and DTLB kinds, of loads or of
 * stores.  Report an instruction that reads and writes (a locked add) twice, the load first. */
unsigned vsim_model_data(struct vsim_model *model, uint64_t address, unsigned size, bool store);
/* Reports a fetch of the line of code that holds `address`.  Returns L1I_MISSES, ITLB_*, and L2 and
 * LLC loads.  L1I_LOADS and ITLB_LOADS are known when a run is translated, so the caller counts
 * them. */
unsigned vsim_model_fetch(struct vsim_model *model, uint64_t address);
/* Reports a conditional jump at `ip`, taken or not. */
unsigned vsim_model_conditional(struct vsim_model *model, uint64_t ip, bool taken);
/* The same for a caller (generated code) that has already updated the history and found its counter
 * not 0. */
unsigned vsim_model_unsure(struct vsim_model *model, uint64_t ip, bool taken);
/* Reports an indirect jump or call at `ip`.  Report a call to vsim_model_call() too.  Don't report
 * returns here. */
unsigned vsim_model_indirect(struct vsim_model *model, uint64_t ip, uint64_t target);
void vsim_model_call(struct vsim_model *model, uint64_t return_address);
unsigned vsim_model_return(struct vsim_model *model, uint64_t target);

/* Fills weight[] with each kind's part of est-cycles, in hundredths of a cycle; the weight of
 * VSIM_EST_CYCLES itself is 0.  Stores weigh a quarter of loads: a store buffer hides them until it
 * is full. */
void vsim_model_weights(const struct vsim_geometry *geometry, uint32_t weight[VSIM_KINDS]);

#endif
