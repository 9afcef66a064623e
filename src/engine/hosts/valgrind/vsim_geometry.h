/* The simulated CPU's geometry: caches, TLBs, predictors, and their costs.
 *
 * It exists as text for people (`--sim-cpu FILE`, the header of a recording) and as this struct for
 * the model.
 *
 * The text has one `key = value` on each line; `#` begins a comment:
 *
 *     base = skylake          a preset to begin from, on the first line; default "generic"
 *     name = my own           1 … 63 printable characters
 *     line = 64               bytes of a line of all caches
 *     page = 4K
 *     l1d = 32K 8-way         bytes (K, M), ways; also l1i, l2, llc
 *     dtlb = 64 4-way         entries, ways; also itlb, stlb
 *     stlb = none             this level does not exist; also l2, llc
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

/* `sets` is a power of two, `ways` is 1 … VSIM_WAYS_MAX; bytes = sets × ways × line (or page). */
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
	char name[VSIM_CPU_NAME];  /* "this machine", "skylake", or the name in a file */
	uint32_t line_bytes;       /* line size of all caches; a power of two, 16 … 256 */
	uint32_t page_bytes;       /* a power of two, 4 KiB … 2 MiB */
	struct vsim_cache_geometry l1d, l1i, l2, llc; /* an absent l2 or llc has 0 ways */
	struct vsim_cache_geometry dtlb, itlb;        /* the first level */
	/* the second level, shared by both; 0 ways: absent */
	struct vsim_cache_geometry stlb;
	uint32_t history_bits;     /* 2^n counters of the conditional predictor, 4 … 20 */
	uint32_t target_bits;      /* 2^n targets of the indirect predictor, 4 … 16 */
	uint32_t return_depth;     /* entries of the return stack: a power of two, 1 … 64 */
	/* Parts of est-cycles, in hundredths of a cycle: an instruction; a wrong prediction; an
	 * access served by L2, LLC or memory; an address translated by the second TLB or a page
	 * walk. cost_l2 <= cost_llc <= cost_memory, cost_stlb <= cost_walk. */
	uint32_t cost_instruction, cost_branch_miss, cost_l2, cost_llc, cost_memory, cost_stlb,
		cost_walk;
	/* est-cycles of a simulated microsecond, 1 … 100000; used for -F */
	uint32_t mhz;
};

#define VSIM_NO_FIELD ((size_t)-1)
/* Returns the first problem of the geometry as a sentence without a full stop ("l1d has more than
 * 64 ways"), or NULL.  Sets *field to the offset of the member that it is about; VSIM_NO_FIELD: of
 * several.  Freestanding.  The functions below are not part of the tool. */
const char *vsim_geometry_find_problem(const struct vsim_geometry *geometry, size_t *field);

static inline const char *vsim_geometry_problem(const struct vsim_geometry *geometry)
{
	size_t field;
	return vsim_geometry_find_problem(geometry, &field);
}

struct vsim_geometry_error {
	unsigned line;       /* line number from 1; 0: the problem has no line */
	char message[320];   /* a sentence that says what is allowed, without a full stop */
};

/* Parses untrusted text of `length` bytes.  Returns 0, or -EINVAL with *error set.  Without a name
 * in the text, the name is "custom". */
int vsim_geometry_parse(const char *text, size_t length, struct vsim_geometry *geometry,
			struct vsim_geometry_error *error);
/* Writes text that parses to the same geometry.  Works like snprintf(): returns the length, writes
 * what fits, with a NUL.  VSIM_GEOMETRY_TEXT bytes are always enough. */
enum { VSIM_GEOMETRY_TEXT = 1024 };
size_t vsim_geometry_format(const struct vsim_geometry *geometry, char *text, size_t size);

/* Returns the preset of that name ("skylake", "zen3", …), or NULL.  The second function returns the
 * names by index, and NULL after the last. */
const struct vsim_geometry *vsim_geometry_preset(const char *name);
const char *vsim_geometry_preset_name(size_t index);

/* A cache as a machine describes it; unknown values are 0. */
struct vsim_cache_described {
	unsigned level;      /* from 1 */
	char type;           /* 'D'ata, 'I'nstruction, 'U'nified: sysfs's first letter */
	uint64_t size_bytes;
	unsigned ways, line_bytes;
};
/* Fills `geometry` with the CPU "this machine": the described caches, and the rest (TLBs,
 * predictors, costs) from the preset `base` (NULL: "generic").  The result never has a problem:
 * sizes that the model can't have (sets that are no power of two) are rounded to the nearest that
 * it can, and what is not described comes from `base`.  Returns how many of the caches were taken
 * unchanged. */
int vsim_geometry_of_caches(const struct vsim_cache_described *caches, size_t count,
			    const struct vsim_geometry *base, struct vsim_geometry *geometry);

#endif
