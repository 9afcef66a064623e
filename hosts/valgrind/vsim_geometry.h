/* What the simulated CPU looks like: caches, TLBs, predictors, and what they cost.
 *
 * It is text for people (`--sim-cpu FILE`, the header of a recording) and this struct for the
 * model.
 *
 * The text has a `key = value` a line; what follows `#` is a comment:
 *
 *     base = skylake          a preset to begin from, on the first line; else from "generic"
 *     name = my own           1 … 63 printable characters
 *     line = 64               bytes of a line of all caches
 *     page = 4K
 *     l1d = 32K 8-way         bytes (K, M), ways; also l1i, l2, llc
 *     dtlb = 64 4-way         entries, ways; also itlb, stlb
 *     stlb = none             there is none; also l2, llc
 *     history-bits = 14       the conditional predictor has 2^14 counters
 *     target-bits = 9         the indirect predictor has 2^9 targets
 *     return-stack = 16
 *     cost-instruction = 0.3  cycles; also -branch-miss, -l2, -llc, -memory, -stlb, -walk
 *     mhz = 3000
 *
 * MIT. */
#ifndef TALLY_VALGRIND_VSIM_GEOMETRY_H
#define TALLY_VALGRIND_VSIM_GEOMETRY_H

#include <stddef.h>
#include <stdint.h>

/* Sets are a power of two; ways 1 … VSIM_WAYS_MAX; bytes = sets × ways × line (or page). */
struct vsim_cache_geometry {
	uint32_t sets, ways;
};

enum {
	VSIM_WAYS_MAX = 64,
	VSIM_CPU_NAME = 64,
	VSIM_FIRST_SETS_MAX = 1 << 12, /* of l1d and l1i */
	VSIM_LINES_MAX = 1 << 22,      /* of l2, of llc: 256 MiB in lines of 64 bytes */
	VSIM_SETS_MAX = 1 << 19,
	VSIM_FIRST_TLB_MAX = 256,      /* entries of dtlb, of itlb */
	VSIM_STLB_MAX = 1 << 16,
	VSIM_COST_MAX = 1000000        /* 10,000 cycles */
};

struct vsim_geometry {
	char name[VSIM_CPU_NAME];  /* "this machine", "skylake", a file's */
	uint32_t line_bytes;       /* of all caches; a power of two, 16 … 256 */
	uint32_t page_bytes;       /* a power of two, 4 KiB … 2 MiB */
	struct vsim_cache_geometry l1d, l1i, l2, llc; /* an l2 or llc that isn't there has 0 ways */
	struct vsim_cache_geometry dtlb, itlb;        /* first level */
	/* second, shared by both; 0 ways: there is none */
	struct vsim_cache_geometry stlb;
	uint32_t history_bits;     /* of the conditional predictor's table, 4 … 20 */
	uint32_t target_bits;      /* of the indirect predictor's, 4 … 16 */
	uint32_t return_depth;     /* of the return stack: a power of two, 1 … 64 */
	/* est-cycles, in hundredths of a cycle: an instruction's; a wrong guess; and what an access
	 * costs that L2, LLC or memory answers, that the second TLB or a walk translates.  cost_l2
	 * <= cost_llc <= cost_memory, cost_stlb <= cost_walk. */
	uint32_t cost_instruction, cost_branch_miss, cost_l2, cost_llc, cost_memory, cost_stlb,
		cost_walk;
	uint32_t mhz;              /* est-cycles of a simulated second, 1 … 100000: -F */
};

/* What is wrong with it, as a sentence of its own without a full stop ("l1d has more than 64
 * ways"), or NULL. Freestanding; the rest below isn't part of the tool. */
const char *vsim_geometry_problem(const struct vsim_geometry *geometry);

struct vsim_geometry_error {
	unsigned line;       /* from 1; 0: not of a line */
	char message[320];   /* a sentence that says what is allowed, without a full stop */
};

/* Text of `length` bytes, by nobody vouched for.  0, or -EINVAL with *error set.  Where no name is
 * given it is "custom". */
int vsim_geometry_parse(const char *text, size_t length, struct vsim_geometry *geometry,
			struct vsim_geometry_error *error);
/* The text that parses to the same, as snprintf() has it: returns its length, writes what fits,
 * with a NUL.  VSIM_GEOMETRY_TEXT is enough for any. */
enum { VSIM_GEOMETRY_TEXT = 1024 };
size_t vsim_geometry_format(const struct vsim_geometry *geometry, char *text, size_t size);

/* "skylake", "zen3", …: NULL: no such.  Names by index, NULL behind the last. */
const struct vsim_geometry *vsim_geometry_preset(const char *name);
const char *vsim_geometry_preset_name(size_t index);

/* A cache as a machine describes it; what isn't known is 0. */
struct vsim_cache_described {
	unsigned level;      /* from 1 */
	char type;           /* 'D'ata, 'I'nstruction, 'U'nified: sysfs's first letter */
	uint64_t size_bytes;
	unsigned ways, line_bytes;
};
/* "this machine": caches as described, the rest (TLBs, predictors, costs) from the preset `base`,
 * NULL: "generic".  Always gives a geometry that has no problem: sizes that it can't have (sets
 * that are no power of two) are rounded to the nearest that it can, what isn't described stays as
 * in `base`.  Returns how many of the caches it took as they are. */
int vsim_geometry_of_caches(const struct vsim_cache_described *caches, size_t count,
			    const struct vsim_geometry *base, struct vsim_geometry *geometry);

#endif
