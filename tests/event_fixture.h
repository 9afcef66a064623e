/* A catalogue that is the same on every machine: the terms of two CPU PMUs, and a few
 * tracepoints. */
#ifndef TALLY_TESTS_EVENT_FIXTURE_H
#define TALLY_TESTS_EVENT_FIXTURE_H

#include "event/event.h"

static struct tally_format_term fixture_cpu_terms[] = {
	{ "event", 0, 0xf000000ffull },
	{ "umask", 0, 0xff00 },
	{ "edge", 0, 1 << 18 },
	{ "ldlat", 1, 0xffff },
	{ "offcore_rsp", 2, UINT64_MAX },
};

static struct tally_pmu_alias fixture_cpu_events[] = {
	{ "mem-loads", "event=0xcd,umask=0x1,ldlat=3", "", 1 },
	{ "needs-chip", "event=0x10,ldlat=?", "", 1 },
	{ "broken", "nonsense=1", "", 1 },
};

static struct tally_format_term fixture_power_terms[] = { { "event", 0, 0xff } };

static struct tally_pmu_alias fixture_power_events[] = {
	{ "energy-pkg", "event=0x02\n", "Joules", 2.3283064365386962890625e-10 },
};

static struct tally_pmu_alias fixture_imc_events[] = { { "cas_count_read", "event=0x04", "MiB",
							 6.103515625e-5 } };

static struct tally_pmu fixture_pmus[] = {
	{ "cpu", 4, "", fixture_cpu_terms, 5, fixture_cpu_events, 3 },
	{ "power", 20, "0", fixture_power_terms, 1, fixture_power_events, 1 },
	{ "uncore_imc_0", 30, "0", fixture_power_terms, 1, fixture_imc_events, 1 },
	{ "uncore_imc_1", 31, "0", fixture_power_terms, 1, fixture_imc_events, 1 },
};

static struct tally_tracepoint_name fixture_tracepoints[] = {
	{ "irq", "softirq_entry", 50 },
	{ "mine", "hit", 300 },
	{ "sched", "sched_process_exec", 102 },
	{ "sched", "sched_switch", 100 },
	{ "sched", "sched_wakeup", 101 },
	{ "syscalls", "sys_enter_open", 200 },
	{ "syscalls", "sys_enter_openat", 201 },
	{ "yours", "hit", 301 },
};

#define FIXTURE_COUNT(a) (sizeof(a) / sizeof((a)[0]))

static inline int fixture_catalogue(struct tally_catalogue *catalogue)
{
	int code = tally_catalogue_init(catalogue);
	catalogue->has_tools = true;
	catalogue->pmus = fixture_pmus;
	catalogue->pmu_count = FIXTURE_COUNT(fixture_pmus);
	catalogue->tracepoints = fixture_tracepoints;
	catalogue->tracepoint_count = FIXTURE_COUNT(fixture_tracepoints);
	return code;
}

#endif
