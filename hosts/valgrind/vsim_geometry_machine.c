/* Makes a geometry from a machine's caches.  The model can't have all caches that exist: sliced
 * caches have sets that are no power of two, and a hypervisor may hide the ways.  Sizes matter
 * most, so the number of ways is adapted to them. */
#include "valgrind/vsim_geometry.h"

#include <stdbool.h>
#include <string.h>

static uint64_t power_below(uint64_t value)
{
	uint64_t power = 1;
	while (power * 2 <= value)
		power *= 2;
	return power;
}

/* Returns true if the cache is taken as described. */
static bool take_cache(const struct vsim_cache_described *described, uint32_t line_bytes,
		       uint32_t sets_max, uint32_t lines_max, struct vsim_cache_geometry *cache)
{
	uint64_t lines = described->size_bytes / line_bytes;
	uint64_t ways = described->ways ? described->ways : cache->ways ? cache->ways : 8;
	if (!lines)
		return false;
	if (lines > lines_max)
		lines = lines_max;
	if (ways > VSIM_WAYS_MAX)
		ways = VSIM_WAYS_MAX;
	uint64_t sets = power_below(lines / ways ? lines / ways : 1);
	while (sets < sets_max && (lines + sets / 2) / sets > VSIM_WAYS_MAX)
		sets *= 2;
	if (sets > sets_max)
		sets = sets_max;
	ways = (lines + sets / 2) / sets;
	if (ways > VSIM_WAYS_MAX)
		ways = VSIM_WAYS_MAX;
	while (sets * ways > lines_max)
		ways--;
	*cache = (struct vsim_cache_geometry){ (uint32_t)sets, (uint32_t)ways };
	return sets * ways * line_bytes == described->size_bytes && ways == described->ways;
}

static const struct vsim_cache_described *find(const struct vsim_cache_described *caches,
					       size_t count, unsigned level, char type)
{
	for (size_t i = 0; i < count; i++)
		if (caches[i].level == level && (caches[i].type == type || caches[i].type == 'U') &&
		    caches[i].size_bytes)
			return &caches[i];
	return NULL;
}

int vsim_geometry_of_caches(const struct vsim_cache_described *caches, size_t count,
			    const struct vsim_geometry *base, struct vsim_geometry *geometry)
{
	unsigned last = 0;
	int taken = 0;
	*geometry = base ? *base : *vsim_geometry_preset("generic");
	memset(geometry->name, 0, sizeof(geometry->name));
	memcpy(geometry->name, "this machine", sizeof("this machine"));
	for (size_t i = 0; i < count; i++)
		if (caches[i].level > last && caches[i].type == 'U' && caches[i].size_bytes)
			last = caches[i].level;
	const struct vsim_cache_described *l1d = find(caches, count, 1, 'D'),
					  *l1i = find(caches, count, 1, 'I');
	const struct vsim_cache_described *l2 = last > 2 ? find(caches, count, 2, 'D') : NULL;
	uint32_t line = l1d ? l1d->line_bytes : 0;
	if (line >= 16 && line <= 256 && !(line & (line - 1)))
		geometry->line_bytes = line;
	line = geometry->line_bytes;
	if (l1d)
		taken += take_cache(l1d, line, VSIM_FIRST_SETS_MAX, VSIM_LINES_MAX, &geometry->l1d);
	if (l1i)
		taken += take_cache(l1i, line, VSIM_FIRST_SETS_MAX, VSIM_LINES_MAX, &geometry->l1i);
	if (l2)
		taken += take_cache(l2, line, VSIM_SETS_MAX, VSIM_LINES_MAX, &geometry->l2);
	/* The last level becomes the LLC.  If that is the second level, no L2 lies between it and
	 * the first. */
	if (last >= 2) {
		taken += take_cache(find(caches, count, last, 'U'), line, VSIM_SETS_MAX,
				    VSIM_LINES_MAX, &geometry->llc);
		if (!l2)
			geometry->l2 = (struct vsim_cache_geometry){ 0 };
	}
	return taken;
}
