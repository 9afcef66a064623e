/* The built-in metrics: the only place where tally has a formula over events.
 *
 * Rows with `beside` are shown beside the counts of `stat`, in this order; all rows by `stat -M`.
 * Among rows with one name, the first whose CPU and events are there is used.
 *
 * Sources of the formulas:
 *
 * - ratios of generic events: perf's own (tools/perf/util/stat-shadow.c)
 * - Top-down, level 1: A. Yasin, A Top-Down Method for Performance Analysis and Counters
 *   Architecture, ISPASS 2014; on Intel by perf metrics since Ice Lake, before that by slots
 *   (tools/perf/Documentation/topdown.txt, arch/x86/events/intel/core.c in Linux)
 * - Top-down on Zen 4: tools/perf/pmu-events/arch/x86/amdzen4/pipeline.json, from AMD's Processor
 *   Programming Reference, with the encodings of its events (amdzen4/other.json, core.json)
 * - Top-down on Arm: tools/perf/pmu-events/arch/arm64/sbsa.json, from Arm's SBSA
 * - bandwidth: the units of the PMUs' events in sysfs, which are MiB
 */
#include "metric/metric.h"

#define PERF "perf, stat-shadow.c"
#define ICE_LAKE "Yasin 2014; Linux, topdown.txt (perf metrics)"
#define SLOTS "Yasin 2014; Linux, arch/x86/events/intel/core.c"
#define ZEN4 "Linux, amdzen4/pipeline.json"
#define ZEN4_CPUS "AuthenticAMD-25-[136-9A-F][[:xdigit:]]"
#define ARM "Linux, arm64/sbsa.json"
#define SYSFS "the units in sysfs"

#define BESIDE(event_, name_, expression_, unit_, description_) \
	{ \
		.name = name_, .expression = expression_, .unit = unit_, \
		.description = description_, .group = "ratios", .source = PERF, .scale = 1, \
		.decimals = 2, .beside = event_ \
	}
#define TOPDOWN(name_, expression_, description_, source_, cpus_) \
	{ \
		.name = name_, .expression = expression_, .unit = "% of slots", \
		.description = description_, .group = "topdown", .source = source_, .scale = 1, \
		.decimals = 1, .cpus = cpus_ \
	}
#define BANDWIDTH(name_, expression_, description_) \
	{ \
		.name = name_, .expression = expression_, .unit = "MiB/sec", \
		.description = description_, .group = "memory", .source = SYSFS, .scale = 1, \
		.decimals = 1 \
	}

/* Ice Lake and later: the kernel needs slots as the group's leader, so each formula begins with
 * it. */
#define PERF_METRIC(pmu, part) \
	"0 * '" pmu "/slots/' + 100 * '" pmu "/topdown-" part "/' / ('" pmu \
	"/topdown-retiring/' + '" pmu "/topdown-bad-spec/' + '" pmu "/topdown-fe-bound/' + '" pmu \
	"/topdown-be-bound/')"

/* Sandy Bridge to Cascade Lake. */
#define TOTAL "'cpu/topdown-total-slots/'"
#define FRONTEND_SLOTS "100 * 'cpu/topdown-fetch-bubbles/' / " TOTAL
#define BAD_SLOTS \
	"100 * ('cpu/topdown-slots-issued/' - 'cpu/topdown-slots-retired/' + " \
	"'cpu/topdown-recovery-bubbles/') / " TOTAL
#define RETIRED_SLOTS "100 * 'cpu/topdown-slots-retired/' / " TOTAL
#define BACKEND_SLOTS \
	"100 * (" TOTAL " - 'cpu/topdown-fetch-bubbles/' - 'cpu/topdown-slots-issued/' - " \
	"'cpu/topdown-recovery-bubbles/') / " TOTAL

/* Zen 4 dispatches up to 6 operations per cycle. */
#define ZEN4_SLOTS "(6 * 'cpu/event=0x76/')"

#define FRONTEND "slots without an operation, since the front end did not deliver one"
#define BACKEND "slots that stalled, since the back end could not take an operation"
#define BAD_SPECULATION "slots of operations that did not retire"
#define RETIRING "slots of operations that retired"

static const struct tally_metric_definition table[] = {
	BESIDE("instructions", "ipc", "instructions / cycles", "insn per cycle",
	       "instructions per cycle"),
	{ .name = "cpi",
	  .expression = "cycles / instructions",
	  .unit = "CPI",
	  .description = "cycles per instruction",
	  .group = "ratios",
	  .source = PERF,
	  .scale = 1,
	  .decimals = 2,
	  .beside = "instructions",
	  .unit_first = true },
	BESIDE("stalled-cycles-frontend", "frontend-idle",
	       "100 * 'stalled-cycles-frontend' / cycles", "% of cycles idle in the front end",
	       "cycles in which no instruction was issued"),
	BESIDE("stalled-cycles-backend", "backend-idle", "100 * 'stalled-cycles-backend' / cycles",
	       "% of cycles idle in the back end", "cycles in which nothing retired"),
	BESIDE("branch-misses", "branch-miss-rate", "100 * 'branch-misses' / branches",
	       "% of all branches", "branches that were predicted wrongly"),
	BESIDE("branch-misses", "branch-mpki", "1000 * 'branch-misses' / instructions",
	       "per 1000 insn", "branches predicted wrongly, per thousand instructions"),
	BESIDE("cache-misses", "cache-miss-rate", "100 * 'cache-misses' / 'cache-references'",
	       "% of all cache refs", "references that missed the cache, usually the last level"),
	BESIDE("cache-misses", "cache-mpki", "1000 * 'cache-misses' / instructions",
	       "per 1000 insn", "cache misses per thousand instructions, usually the last level"),
	BESIDE("L1-dcache-load-misses", "l1d-miss-rate",
	       "100 * 'L1-dcache-load-misses' / 'L1-dcache-loads'", "% of all L1-dcache accesses",
	       "loads that missed the first data cache"),
	BESIDE("L1-dcache-load-misses", "l1d-mpki", "1000 * 'L1-dcache-load-misses' / instructions",
	       "per 1000 insn",
	       "loads that missed the first data cache, per thousand instructions"),
	BESIDE("L1-icache-load-misses", "l1i-miss-rate",
	       "100 * 'L1-icache-load-misses' / 'L1-icache-loads'", "% of all L1-icache accesses",
	       "fetches that missed the first instruction cache"),
	BESIDE("L1-icache-load-misses", "l1i-mpki", "1000 * 'L1-icache-load-misses' / instructions",
	       "per 1000 insn",
	       "fetches that missed the first instruction cache, per thousand instructions"),
	BESIDE("LLC-load-misses", "llc-miss-rate", "100 * 'LLC-load-misses' / 'LLC-loads'",
	       "% of all LL-cache accesses", "loads that missed the last-level cache"),
	BESIDE("LLC-load-misses", "llc-mpki", "1000 * 'LLC-load-misses' / instructions",
	       "per 1000 insn", "loads that missed the last level, per thousand instructions"),
	BESIDE("dTLB-load-misses", "dtlb-miss-rate", "100 * 'dTLB-load-misses' / 'dTLB-loads'",
	       "% of all dTLB cache accesses", "loads whose address needed a page walk"),
	BESIDE("dTLB-load-misses", "dtlb-mpki", "1000 * 'dTLB-load-misses' / instructions",
	       "per 1000 insn", "page walks for loads, per thousand instructions"),
	BESIDE("iTLB-load-misses", "itlb-miss-rate", "100 * 'iTLB-load-misses' / 'iTLB-loads'",
	       "% of all iTLB cache accesses", "fetches whose address needed a page walk"),
	BESIDE("iTLB-load-misses", "itlb-mpki", "1000 * 'iTLB-load-misses' / instructions",
	       "per 1000 insn", "page walks for fetches, per thousand instructions"),
	BESIDE("branch-load-misses", "bpu-miss-rate", "100 * 'branch-load-misses' / 'branch-loads'",
	       "% of all branch lookups", "look-ups that missed the branch predictor's tables"),
	BESIDE("node-load-misses", "node-miss-rate", "100 * 'node-load-misses' / 'node-loads'",
	       "% of all node accesses", "loads from the memory of another NUMA node"),
	BESIDE("L1-dcache-store-misses", "l1d-store-miss-rate",
	       "100 * 'L1-dcache-store-misses' / 'L1-dcache-stores'", "% of all L1-dcache stores",
	       "stores that missed the first data cache"),
	BESIDE("LLC-store-misses", "llc-store-miss-rate", "100 * 'LLC-store-misses' / 'LLC-stores'",
	       "% of all LL-cache stores", "stores that missed the last-level cache"),
	BESIDE("dTLB-store-misses", "dtlb-store-miss-rate",
	       "100 * 'dTLB-store-misses' / 'dTLB-stores'", "% of all dTLB stores",
	       "stores whose address needed a page walk"),

	TOPDOWN("frontend-bound", PERF_METRIC("cpu", "fe-bound"), FRONTEND, ICE_LAKE, NULL),
	TOPDOWN("frontend-bound", FRONTEND_SLOTS, FRONTEND, SLOTS, NULL),
	TOPDOWN("frontend-bound", "100 * 'cpu/event=0x1a0,umask=0x01/' / " ZEN4_SLOTS, FRONTEND,
		ZEN4, ZEN4_CPUS),
	TOPDOWN("frontend-bound", "100 * stall_slot_frontend / (#slots * cpu_cycles)", FRONTEND,
		ARM, NULL),
	TOPDOWN("frontend-bound", PERF_METRIC("cpu_core", "fe-bound"), FRONTEND, ICE_LAKE, NULL),

	TOPDOWN("backend-bound", PERF_METRIC("cpu", "be-bound"), BACKEND, ICE_LAKE, NULL),
	TOPDOWN("backend-bound", BACKEND_SLOTS, BACKEND, SLOTS, NULL),
	TOPDOWN("backend-bound", "100 * 'cpu/event=0x1a0,umask=0x1e/' / " ZEN4_SLOTS, BACKEND, ZEN4,
		ZEN4_CPUS),
	TOPDOWN("backend-bound", "100 * stall_slot_backend / (#slots * cpu_cycles)", BACKEND, ARM,
		NULL),
	TOPDOWN("backend-bound", PERF_METRIC("cpu_core", "be-bound"), BACKEND, ICE_LAKE, NULL),

	TOPDOWN("bad-speculation", PERF_METRIC("cpu", "bad-spec"), BAD_SPECULATION, ICE_LAKE, NULL),
	TOPDOWN("bad-speculation", BAD_SLOTS, BAD_SPECULATION, SLOTS, NULL),
	TOPDOWN("bad-speculation",
		"100 * ('cpu/event=0xaa,umask=0x07/' - 'cpu/event=0xc1/') / " ZEN4_SLOTS,
		BAD_SPECULATION, ZEN4, ZEN4_CPUS),
	TOPDOWN("bad-speculation",
		"100 * (1 - op_retired / op_spec) * (1 - stall_slot / (#slots * cpu_cycles))",
		BAD_SPECULATION, ARM, NULL),
	TOPDOWN("bad-speculation", PERF_METRIC("cpu_core", "bad-spec"), BAD_SPECULATION, ICE_LAKE,
		NULL),

	TOPDOWN("retiring", PERF_METRIC("cpu", "retiring"), RETIRING, ICE_LAKE, NULL),
	TOPDOWN("retiring", RETIRED_SLOTS, RETIRING, SLOTS, NULL),
	TOPDOWN("retiring", "100 * 'cpu/event=0xc1/' / " ZEN4_SLOTS, RETIRING, ZEN4, ZEN4_CPUS),
	TOPDOWN("retiring",
		"100 * (op_retired / op_spec) * (1 - stall_slot / (#slots * cpu_cycles))", RETIRING,
		ARM, NULL),
	TOPDOWN("retiring", PERF_METRIC("cpu_core", "retiring"), RETIRING, ICE_LAKE, NULL),

	BANDWIDTH("memory-read-bandwidth", "'uncore_imc/cas_count_read/' / duration_time",
		  "what was read from memory, by all programs (needs -a)"),
	BANDWIDTH("memory-read-bandwidth", "'uncore_imc_free_running/data_read/' / duration_time",
		  "what was read from memory, by all programs (needs -a)"),
	BANDWIDTH("memory-read-bandwidth", "'uncore_imc/data_reads/' / duration_time",
		  "what was read from memory, by all programs (needs -a)"),
	BANDWIDTH("memory-write-bandwidth", "'uncore_imc/cas_count_write/' / duration_time",
		  "what was written to memory, by all programs (needs -a)"),
	BANDWIDTH("memory-write-bandwidth", "'uncore_imc_free_running/data_write/' / duration_time",
		  "what was written to memory, by all programs (needs -a)"),
	BANDWIDTH("memory-write-bandwidth", "'uncore_imc/data_writes/' / duration_time",
		  "what was written to memory, by all programs (needs -a)"),
};

const struct tally_metric_definition *tally_metric_table(size_t *count)
{
	*count = sizeof(table) / sizeof(table[0]);
	return table;
}
