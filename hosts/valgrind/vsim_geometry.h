/* What the simulated CPU looks like: caches, TLBs, predictors, and what they cost.
 *
 * It is text for people (`--sim-cpu FILE`, the header of a recording) and this struct for the model.  Freestanding; MIT. */
#ifndef TALLY_VALGRIND_VSIM_GEOMETRY_H
#define TALLY_VALGRIND_VSIM_GEOMETRY_H

#include <stddef.h>
#include <stdint.h>

/* Sets are a power of two; ways 1 … VSIM_WAYS_MAX; bytes = sets × ways × line (or page). */
struct vsim_cache_geometry {
	uint32_t sets, ways;
};

enum { VSIM_WAYS_MAX = 64, VSIM_CPU_NAME = 64 };

struct vsim_geometry {
	char name[VSIM_CPU_NAME];  /* "this machine", "skylake", a file's */
	uint32_t line_bytes;       /* of all caches; a power of two, 16 … 256 */
	uint32_t page_bytes;       /* 4096 */
	struct vsim_cache_geometry l1d, l1i, l2, llc; /* a level that isn't there has 0 ways */
	struct vsim_cache_geometry dtlb, itlb;        /* first level */
	struct vsim_cache_geometry stlb;              /* second, shared by both */
	uint32_t history_bits;     /* of the conditional predictor's table, 4 … 20 */
	uint32_t target_bits;      /* of the indirect predictor's */
	uint32_t return_depth;     /* of the return stack, 1 … 64 */
	/* est-cycles, in hundredths of a cycle. */
	uint32_t cost_instruction, cost_branch_miss, cost_l2, cost_llc, cost_memory, cost_stlb, cost_walk;
	uint32_t mhz;              /* est-cycles of a simulated second: -F */
};

#endif
