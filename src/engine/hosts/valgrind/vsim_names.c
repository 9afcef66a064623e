/* The names of the simulated PMU's events, and the configs of the generic events. */
#include "valgrind/vsim_names.h"

#include "tally/perf_event.h"

#define BIT(kind) (1ull << VSIM_##kind)
#define BRANCH_MISSES (BIT(CONDITIONAL_MISSES) | BIT(INDIRECT_MISSES) | BIT(RETURN_MISSES))
#define LLC_ACCESSES (BIT(LLC_LOADS) | BIT(LLC_STORES))
#define LLC_MISSES (BIT(LLC_LOAD_MISSES) | BIT(LLC_STORE_MISSES))

const struct vsim_event_name vsim_event_names[] = {
	{ "instructions", BIT(INSTRUCTIONS), "instructions executed; a rep counts once" },
	{ "loads", BIT(LOADS), "data reads" },
	{ "stores", BIT(STORES), "data writes" },
	{ "branches", BIT(BRANCHES), "jumps, calls and returns, taken or not" },
	{ "branch-instructions", BIT(BRANCHES), "the same as branches" },
	{ "branch-misses", BRANCH_MISSES,
	  "branches that were predicted wrongly: conditional, indirect, returns" },
	{ "conditional-branch-misses", BIT(CONDITIONAL_MISSES),
	  "conditional jumps that were predicted wrongly" },
	{ "indirect-branch-misses", BIT(INDIRECT_MISSES),
	  "indirect jumps and calls whose target was predicted wrongly" },
	{ "return-misses", BIT(RETURN_MISSES), "returns to where the return stack did not say" },
	{ "cache-references", LLC_ACCESSES, "accesses to the last level of cache" },
	{ "cache-misses", LLC_MISSES,
	  "accesses that missed the last level of cache, and went to memory" },
	{ "L1-dcache-loads", BIT(LOADS), "the same as loads" },
	{ "L1-dcache-stores", BIT(STORES), "the same as stores" },
	{ "L1-dcache-load-misses", BIT(L1D_LOAD_MISSES), "loads that missed the first data cache" },
	{ "L1-dcache-store-misses", BIT(L1D_STORE_MISSES),
	  "stores that missed the first data cache" },
	{ "L1-icache-loads", BIT(L1I_LOADS),
	  "lines of code fetched, one for each that a straight run touches" },
	{ "L1-icache-load-misses", BIT(L1I_MISSES),
	  "lines of code that were not in the first code cache" },
	{ "L2-loads", BIT(L2_LOADS), "reads, data and code, that reached the second level" },
	{ "L2-stores", BIT(L2_STORES), "writes that reached the second level" },
	{ "L2-load-misses", BIT(L2_LOAD_MISSES),
	  "reads, data and code, that missed the second level" },
	{ "L2-store-misses", BIT(L2_STORE_MISSES), "writes that missed the second level" },
	{ "LLC-loads", BIT(LLC_LOADS), "reads, data and code, that reached the last level" },
	{ "LLC-stores", BIT(LLC_STORES), "writes that reached the last level" },
	{ "LLC-load-misses", BIT(LLC_LOAD_MISSES), "reads, data and code, that went to memory" },
	{ "LLC-store-misses", BIT(LLC_STORE_MISSES), "writes that went to memory" },
	{ "dTLB-loads", BIT(LOADS), "the same as loads" },
	{ "dTLB-stores", BIT(STORES), "the same as stores" },
	{ "dTLB-load-misses", BIT(DTLB_LOAD_WALKS),
	  "loads that missed both TLBs: a walk of the page tables" },
	{ "dTLB-store-misses", BIT(DTLB_STORE_WALKS),
	  "stores that missed both TLBs: a walk of the page tables" },
	{ "L1-dTLB-load-misses", BIT(DTLB_LOAD_MISSES), "loads that missed the first data TLB" },
	{ "L1-dTLB-store-misses", BIT(DTLB_STORE_MISSES), "stores that missed the first data TLB" },
	{ "iTLB-loads", BIT(ITLB_LOADS), "look-ups of code pages, one for each line fetched" },
	{ "iTLB-load-misses", BIT(ITLB_WALKS),
	  "code that missed both TLBs: a walk of the page tables" },
	{ "L1-iTLB-load-misses", BIT(ITLB_MISSES), "code that missed the first code TLB" },
	{ "branch-loads", BIT(BRANCHES), "the same as branches" },
	{ "branch-load-misses", BRANCH_MISSES, "the same as branch-misses" },
	{ "est-cycles", BIT(EST_CYCLES),
	  "cycles reckoned with fixed weights from the counts: for ranking, no measure of time" },
	{ NULL, 0, NULL },
};

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

const struct vsim_event_name *vsim_event_by_name(const char *name)
{
	for (const struct vsim_event_name *row = vsim_event_names; row->name; row++)
		if (same(row->name, name))
			return row;
	return NULL;
}

const struct vsim_event_name *vsim_event_by_config(uint64_t config)
{
	for (const struct vsim_event_name *row = vsim_event_names; row->name; row++)
		if (row->config == config)
			return row;
	return NULL;
}

bool vsim_config_is_valid(uint64_t config)
{
	return config && !(config >> VSIM_KINDS) &&
	       (!(config & BIT(EST_CYCLES)) || config == BIT(EST_CYCLES));
}

enum vsim_quality vsim_config_quality(uint64_t config)
{
	if (config & BIT(EST_CYCLES))
		return VSIM_ESTIMATE;
	if (config >> VSIM_STATIC_KINDS)
		return VSIM_MODEL;
	return VSIM_EXACT;
}

const char *vsim_quality_name(enum vsim_quality quality)
{
	if (quality == VSIM_EXACT)
		return "exact";
	if (quality == VSIM_MODEL)
		return "model";
	return "estimate";
}

static const uint64_t hardware[TALLY_HW_MAX] = { /* 0: not simulated */
	[TALLY_HW_INSTRUCTIONS] = BIT(INSTRUCTIONS),
	[TALLY_HW_CACHE_REFERENCES] = LLC_ACCESSES,
	[TALLY_HW_CACHE_MISSES] = LLC_MISSES,
	[TALLY_HW_BRANCH_INSTRUCTIONS] = BIT(BRANCHES),
	[TALLY_HW_BRANCH_MISSES] = BRANCH_MISSES,
};

/* read and write: access, miss */
static const uint64_t caches[TALLY_CACHE_MAX][2][TALLY_CACHE_RESULT_MAX] = {
	[TALLY_CACHE_L1D] = { { BIT(LOADS), BIT(L1D_LOAD_MISSES) },
			      { BIT(STORES), BIT(L1D_STORE_MISSES) } },
	[TALLY_CACHE_L1I] = { { BIT(L1I_LOADS), BIT(L1I_MISSES) } },
	[TALLY_CACHE_LL] = { { BIT(LLC_LOADS), BIT(LLC_LOAD_MISSES) },
			     { BIT(LLC_STORES), BIT(LLC_STORE_MISSES) } },
	[TALLY_CACHE_DTLB] = { { BIT(LOADS), BIT(DTLB_LOAD_WALKS) },
			       { BIT(STORES), BIT(DTLB_STORE_WALKS) } },
	[TALLY_CACHE_ITLB] = { { BIT(ITLB_LOADS), BIT(ITLB_WALKS) } },
	[TALLY_CACHE_BPU] = { { BIT(BRANCHES), BRANCH_MISSES } },
};

int vsim_generic_config(uint32_t type, uint64_t generic, uint64_t *config)
{
	*config = 0;
	if (type == TALLY_TYPE_HARDWARE) {
		if (generic >= TALLY_HW_MAX)
			return -22;
		*config = hardware[generic];
	} else if (type == TALLY_TYPE_HW_CACHE) {
		uint64_t cache = generic & 0xff, operation = generic >> 8 & 0xff,
			 result = generic >> 16;
		if (cache >= TALLY_CACHE_MAX || operation >= TALLY_CACHE_OP_MAX ||
		    result >= TALLY_CACHE_RESULT_MAX)
			return -22; /* EINVAL */
		if (operation != TALLY_CACHE_OP_PREFETCH)
			*config = caches[cache][operation][result];
	}
	return *config ? 0 : -2; /* ENOENT */
}
