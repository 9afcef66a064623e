/* CPUs by name, from what their makers publish (optimization manuals, technical reference manuals).  What the model has not —
 * micro-op caches, prefetchers, slices whose sets are no power of two, 72 entries where 64 ways are the most — is left out or
 * rounded.  Costs: of an access, the latency beyond L1's less the part that out-of-order execution hides in programs (about
 * half of L2's, a third of the others'); a program that chases pointers pays more. */
#include "valgrind/vsim_geometry.h"

#include <string.h>

#define CACHE(kib, count, line) { .sets = (kib) * 1024 / ((count) * (line)), .ways = (count) }
#define TLB(entries, count) { .sets = (entries) / (count), .ways = (count) }

static const struct vsim_geometry presets[] = {
	{ .name = "generic", .line_bytes = 64, .page_bytes = 4096,
	  .l1d = CACHE(32, 8, 64), .l1i = CACHE(32, 8, 64), .l2 = CACHE(1024, 16, 64), .llc = CACHE(32 * 1024, 16, 64),
	  .dtlb = TLB(64, 4), .itlb = TLB(64, 4), .stlb = TLB(2048, 8),
	  .history_bits = 16, .target_bits = 11, .return_depth = 16,
	  .cost_instruction = 35, .cost_branch_miss = 1500, .cost_l2 = 500, .cost_llc = 3000, .cost_memory = 15000,
	  .cost_stlb = 300, .cost_walk = 2500, .mhz = 3000 },
	{ .name = "skylake", .line_bytes = 64, .page_bytes = 4096,
	  .l1d = CACHE(32, 8, 64), .l1i = CACHE(32, 8, 64), .l2 = CACHE(256, 4, 64), .llc = CACHE(8 * 1024, 16, 64),
	  .dtlb = TLB(64, 4), .itlb = TLB(128, 8), .stlb = TLB(1536, 12),
	  .history_bits = 16, .target_bits = 11, .return_depth = 16,
	  .cost_instruction = 35, .cost_branch_miss = 1650, .cost_l2 = 450, .cost_llc = 2700, .cost_memory = 15000,
	  .cost_stlb = 400, .cost_walk = 2500, .mhz = 4000 },
	{ .name = "icelake-server", .line_bytes = 64, .page_bytes = 4096,
	  .l1d = CACHE(48, 12, 64), .l1i = CACHE(32, 8, 64), .l2 = CACHE(1280, 20, 64), .llc = CACHE(48 * 1024, 12, 64),
	  .dtlb = TLB(64, 4), .itlb = TLB(128, 8), .stlb = TLB(2048, 16),
	  .history_bits = 17, .target_bits = 12, .return_depth = 16,
	  .cost_instruction = 30, .cost_branch_miss = 1700, .cost_l2 = 500, .cost_llc = 4500, .cost_memory = 18000,
	  .cost_stlb = 400, .cost_walk = 2500, .mhz = 3000 },
	{ .name = "zen3", .line_bytes = 64, .page_bytes = 4096,
	  .l1d = CACHE(32, 8, 64), .l1i = CACHE(32, 8, 64), .l2 = CACHE(512, 8, 64), .llc = CACHE(32 * 1024, 16, 64),
	  .dtlb = TLB(64, 64), .itlb = TLB(64, 64), .stlb = TLB(2048, 8),
	  .history_bits = 17, .target_bits = 11, .return_depth = 32,
	  .cost_instruction = 30, .cost_branch_miss = 1300, .cost_l2 = 450, .cost_llc = 3000, .cost_memory = 16000,
	  .cost_stlb = 350, .cost_walk = 2500, .mhz = 4000 },
	{ .name = "zen4", .line_bytes = 64, .page_bytes = 4096,
	  .l1d = CACHE(32, 8, 64), .l1i = CACHE(32, 8, 64), .l2 = CACHE(1024, 8, 64), .llc = CACHE(32 * 1024, 16, 64),
	  .dtlb = TLB(64, 64), .itlb = TLB(64, 64), .stlb = TLB(3072, 24),
	  .history_bits = 17, .target_bits = 11, .return_depth = 32,
	  .cost_instruction = 30, .cost_branch_miss = 1300, .cost_l2 = 500, .cost_llc = 3300, .cost_memory = 17000,
	  .cost_stlb = 350, .cost_walk = 2500, .mhz = 4500 },
	{ .name = "neoverse-n1", .line_bytes = 64, .page_bytes = 4096,
	  .l1d = CACHE(64, 4, 64), .l1i = CACHE(64, 4, 64), .l2 = CACHE(1024, 8, 64), .llc = CACHE(32 * 1024, 16, 64),
	  .dtlb = TLB(48, 48), .itlb = TLB(48, 48), .stlb = TLB(1280, 5),
	  .history_bits = 16, .target_bits = 11, .return_depth = 16,
	  .cost_instruction = 40, .cost_branch_miss = 1100, .cost_l2 = 400, .cost_llc = 5000, .cost_memory = 17000,
	  .cost_stlb = 300, .cost_walk = 2500, .mhz = 2800 },
	{ .name = "cortex-a72", .line_bytes = 64, .page_bytes = 4096,
	  .l1d = CACHE(32, 2, 64), .l1i = CACHE(48, 3, 64), .llc = CACHE(1024, 16, 64),
	  .dtlb = TLB(32, 32), .itlb = TLB(48, 48), .stlb = TLB(1024, 4),
	  .history_bits = 14, .target_bits = 9, .return_depth = 8,
	  .cost_instruction = 60, .cost_branch_miss = 1500, .cost_l2 = 900, .cost_llc = 1000, .cost_memory = 14000,
	  .cost_stlb = 300, .cost_walk = 2000, .mhz = 1800 },
	/* To see a cache's edges with arrays that one can draw. */
	{ .name = "small", .line_bytes = 64, .page_bytes = 4096,
	  .l1d = CACHE(4, 2, 64), .l1i = CACHE(4, 2, 64), .l2 = CACHE(32, 4, 64), .llc = CACHE(256, 8, 64),
	  .dtlb = TLB(8, 4), .itlb = TLB(8, 4), .stlb = TLB(32, 4),
	  .history_bits = 10, .target_bits = 6, .return_depth = 8,
	  .cost_instruction = 100, .cost_branch_miss = 1000, .cost_l2 = 1000, .cost_llc = 3000, .cost_memory = 10000,
	  .cost_stlb = 500, .cost_walk = 2000, .mhz = 1000 },
};

const struct vsim_geometry *vsim_geometry_preset(const char *name)
{
	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++)
		if (!strcmp(presets[i].name, name))
			return &presets[i];
	return NULL;
}

const char *vsim_geometry_preset_name(size_t index)
{
	return index < sizeof(presets) / sizeof(presets[0]) ? presets[index].name : NULL;
}
