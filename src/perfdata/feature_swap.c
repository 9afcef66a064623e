/* Converts feature sections of the other byte order to this machine's. feature.c and perf's
 * tools/perf/util/header.c have the layouts. */
#include "abi/byte_swap.h"
#include "perfdata/perfdata_reader.h"

static void swap_event_desc(struct tally_swapper *swapper)
{
	uint32_t count = tally_swap_u32(swapper), attr_size = tally_swap_u32(swapper);
	for (uint32_t i = 0; i < count && swapper->at < swapper->end; i++) {
		size_t left = (size_t)(swapper->end - swapper->at);
		tally_attr_swap(swapper->at, attr_size < left ? attr_size : left);
		tally_swap_skip(swapper, attr_size);
		uint32_t id_count = tally_swap_u32(swapper);
		tally_swap_fields(swapper, "s");
		for (uint32_t k = 0; k < id_count && swapper->at < swapper->end; k++)
			tally_swap_u64(swapper);
	}
}

static void swap_build_ids(struct tally_swapper *swapper)
{
	while (swapper->at < swapper->end) {
		const uint8_t *start = swapper->at;
		tally_swap_fields(swapper, "42");
		uint16_t size = tally_swap_u16(swapper);
		tally_swap_fields(swapper, "4"); /* pid */
		size_t used = (size_t)(swapper->at - start);
		tally_swap_skip(swapper, size > used ? size - used : 0);
	}
}

static void swap_cpu_topology(struct tally_swapper *swapper, uint32_t cpu_count)
{
	tally_swap_fields(swapper, "{s}{s}");
	for (uint32_t i = 0; i < cpu_count && swapper->at < swapper->end; i++)
		tally_swap_fields(swapper, "44"); /* core, package */
	tally_swap_fields(swapper, "{s}4*");      /* the die of each CPU */
}

/* Scheduling domains by CPU.  The domains have names from version 17 of the kernel's schedstat
 * on. */
static void swap_cpu_domains(struct tally_swapper *swapper)
{
	enum { WITH_NAMES = 17 };
	bool has_names = tally_swap_u32(swapper) >= WITH_NAMES;
	tally_swap_u32(swapper);
	while (swapper->at < swapper->end)
		tally_swap_fields(swapper, has_names ? "4{4sss}" : "4{4ss}");
}

static const char *const layouts[TALLY_FEATURE_MAX] = {
	[TALLY_FEATURE_HOSTNAME] = "s",
	[TALLY_FEATURE_OSRELEASE] = "s",
	[TALLY_FEATURE_VERSION] = "s",
	[TALLY_FEATURE_ARCH] = "s",
	[TALLY_FEATURE_NRCPUS] = "44",
	[TALLY_FEATURE_CPUDESC] = "s",
	[TALLY_FEATURE_CPUID] = "s",
	[TALLY_FEATURE_TOTAL_MEM] = "8",
	[TALLY_FEATURE_CMDLINE] = "{s}",
	[TALLY_FEATURE_NUMA_TOPOLOGY] = "{488s}",
	[TALLY_FEATURE_BRANCH_STACK] = "",
	[TALLY_FEATURE_PMU_MAPPINGS] = "{4s}",
	[TALLY_FEATURE_GROUP_DESC] = "{s44}",
	[TALLY_FEATURE_AUXTRACE] = "8*",
	[TALLY_FEATURE_STAT] = "",
	[TALLY_FEATURE_CACHE] = "4{4444sss}",
	[TALLY_FEATURE_SAMPLE_TIME] = "88",
	[TALLY_FEATURE_MEM_TOPOLOGY] = "8*",
	[TALLY_FEATURE_CLOCKID] = "8",
	[TALLY_FEATURE_DIR_FORMAT] = "8",
	[TALLY_FEATURE_COMPRESSED] = "4*",
	[TALLY_FEATURE_CPU_PMU_CAPS] = "{ss}",
	[TALLY_FEATURE_CLOCK_DATA] = "4488",
	[TALLY_FEATURE_HYBRID_TOPOLOGY] = "{ss}",
	[TALLY_FEATURE_PMU_CAPS] = "{{ss}s}",
	[TALLY_FEATURE_E_MACHINE] = "44",
	[TALLY_FEATURE_CLN_SIZE] = "4",
};

bool tally_feature_swap(unsigned feature, void *bytes, size_t size, uint32_t cpu_count)
{
	struct tally_swapper swapper = { bytes, (uint8_t *)bytes + size };
	if (feature == TALLY_FEATURE_EVENT_DESC)
		swap_event_desc(&swapper);
	else if (feature == TALLY_FEATURE_BUILD_ID)
		swap_build_ids(&swapper);
	else if (feature == TALLY_FEATURE_CPU_TOPOLOGY)
		swap_cpu_topology(&swapper, cpu_count);
	else if (feature == TALLY_FEATURE_CPU_DOMAIN_INFO)
		swap_cpu_domains(&swapper);
	else if (feature < TALLY_FEATURE_MAX && layouts[feature])
		tally_swap_fields(&swapper, layouts[feature]);
	else
		return false;
	return true;
}
