/* Checks a geometry.  Freestanding, since the Valgrind tool and the model check with it too. */
#include "valgrind/vsim_geometry.h"

#include <stdbool.h>

static bool power_of_two(uint32_t value)
{
	return value && !(value & (value - 1));
}

static bool within(uint32_t value, uint32_t least, uint32_t most)
{
	return value >= least && value <= most;
}

/* A problem, and the offset of the member that it is about. */
#define PROBLEM(member, text) (*field = offsetof(struct vsim_geometry, member), text)

struct cache_limit {
	size_t offset;
	uint32_t sets_max, entries_max;
	bool optional;
	const char *no_ways, *many_ways, *sets, *large;
};

#define CACHE_LIMIT(cache, most_sets, most_entries, may_lack, too_large) \
	{ \
		.offset = offsetof(struct vsim_geometry, cache), .sets_max = most_sets, \
		.entries_max = most_entries, .optional = may_lack, \
		.no_ways = #cache " can't be left out", \
		.many_ways = #cache " has more than 64 ways", \
		.sets = #cache \
			" has a number of sets that is no power of two (size / ways / line or page)", \
		.large = #cache " is too large: " too_large \
	}

static const struct cache_limit cache_limits[] = {
	CACHE_LIMIT(l1d, VSIM_FIRST_SETS_MAX, UINT32_MAX, false, "4096 sets are the most"),
	CACHE_LIMIT(l1i, VSIM_FIRST_SETS_MAX, UINT32_MAX, false, "4096 sets are the most"),
	CACHE_LIMIT(l2, VSIM_SETS_MAX, VSIM_LINES_MAX, true,
		    "524288 sets, 4194304 lines are the most"),
	CACHE_LIMIT(llc, VSIM_SETS_MAX, VSIM_LINES_MAX, true,
		    "524288 sets, 4194304 lines are the most"),
	CACHE_LIMIT(dtlb, UINT32_MAX, VSIM_FIRST_TLB_MAX, false, "256 entries are the most"),
	CACHE_LIMIT(itlb, UINT32_MAX, VSIM_FIRST_TLB_MAX, false, "256 entries are the most"),
	CACHE_LIMIT(stlb, UINT32_MAX, VSIM_STLB_MAX, true, "65536 entries are the most"),
};

static const char *cache_problem(const struct cache_limit *limit,
				 const struct vsim_geometry *geometry)
{
	const struct vsim_cache_geometry *cache = (const void *)((const char *)geometry +
								 limit->offset);
	if (!cache->ways && limit->optional)
		return NULL;
	if (!cache->ways)
		return limit->no_ways;
	if (cache->ways > VSIM_WAYS_MAX)
		return limit->many_ways;
	if (!power_of_two(cache->sets))
		return limit->sets;
	if (cache->sets > limit->sets_max ||
	    (uint64_t)cache->sets * cache->ways > limit->entries_max)
		return limit->large;
	return NULL;
}

static const char *cost_problem(const struct vsim_geometry *geometry, size_t *field)
{
	const uint32_t costs[] = { geometry->cost_instruction, geometry->cost_branch_miss,
				   geometry->cost_memory, geometry->cost_walk };
	for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++)
		if (costs[i] > VSIM_COST_MAX)
			return "a cost is more than 10000 cycles";
	if (geometry->cost_l2 > geometry->cost_llc || geometry->cost_llc > geometry->cost_memory)
		return "costs must not fall from cost-l2 to cost-llc to cost-memory";
	if (geometry->cost_stlb > geometry->cost_walk)
		return PROBLEM(cost_stlb, "cost-stlb is more than cost-walk");
	if (!geometry->cost_instruction)
		return PROBLEM(cost_instruction, "cost-instruction is 0: time would stand still");
	return NULL;
}

const char *vsim_geometry_find_problem(const struct vsim_geometry *geometry, size_t *field)
{
	size_t length = 0;
	*field = VSIM_NO_FIELD;
	while (length < VSIM_CPU_NAME && geometry->name[length])
		if ((unsigned char)geometry->name[length++] < ' ' ||
		    geometry->name[length - 1] == '#' || geometry->name[length - 1] == 0x7f)
			return PROBLEM(name, "name has a character that isn't printable, or a #");
	if (!length || length == VSIM_CPU_NAME)
		return PROBLEM(name, "name has not 1 to 63 characters");
	if (geometry->name[0] == ' ' || geometry->name[length - 1] == ' ')
		return PROBLEM(name, "name begins or ends with a blank");
	if (!power_of_two(geometry->line_bytes) || !within(geometry->line_bytes, 16, 256))
		return PROBLEM(line_bytes, "line is no power of two from 16 to 256");
	if (!power_of_two(geometry->page_bytes) || !within(geometry->page_bytes, 4096, 2 << 20))
		return PROBLEM(page_bytes, "page is no power of two from 4K to 2M");
	for (size_t i = 0; i < sizeof(cache_limits) / sizeof(cache_limits[0]); i++) {
		const char *problem = cache_problem(&cache_limits[i], geometry);
		if (problem) {
			*field = cache_limits[i].offset;
			return problem;
		}
	}
	if (!within(geometry->history_bits, 4, 20))
		return PROBLEM(history_bits, "history-bits is not 4 to 20");
	if (!within(geometry->target_bits, 4, 16))
		return PROBLEM(target_bits, "target-bits is not 4 to 16");
	if (!power_of_two(geometry->return_depth) || geometry->return_depth > 64)
		return PROBLEM(return_depth, "return-stack is no power of two from 1 to 64");
	if (!within(geometry->mhz, 1, 100000))
		return PROBLEM(mhz, "mhz is not 1 to 100000");
	return cost_problem(geometry, field);
}
