/* The sentence that interprets the table.
 *
 * Rules are in a table, from the most to the least specific, and the first that holds is used.  The
 * thresholds are widely accepted ones.  Below one instruction per cycle a modern core (4 to 8 wide)
 * mostly waits.  Ten last-level misses per 1000 instructions at 200–300 cycles each are 2–3 cycles
 * per instruction, more than the work itself.  A mispredicted branch costs 15–20 cycles, a TLB miss
 * 20–40.  A run of less than some milliseconds is all start-up, and gets no verdict. */
#include "metric/metric.h"

#include <math.h>
#include <stdio.h>

struct evidence {
	double ipc;                          /* −1: unknown, here and below */
	double llc, l1d, dtlb, itlb, branch; /* misses per 1000 instructions */
	double utilized;                     /* CPUs */
	double kernel_share;                 /* of the CPU time, 0…1 */
	double faults;                       /* page faults per second of CPU time */
	/* 0: it waited voluntarily, or that is unknown */
	double preemptions;
	bool has_caches;
};

/* Returns a built-in metric of the instructions' modes; −1 if it is unknown. */
static double metric_of(const struct tally_count_table *table, const char *name,
			const struct tally_event_count *instructions)
{
	double value = tally_metric_beside(table, name, instructions);
	if (isnan(value))
		return -1;
	return value;
}

/* With several types of cores: those of the type that executed nearly all of them, so that what is
 * said of these cores is true of the program. */
static const struct tally_event_count *any_instructions(const struct tally_count_table *table)
{
	const struct tally_event_count *most = NULL;
	double on_others = 0;
	for (size_t i = 0; i < table->count; i++) {
		const struct tally_event_count *row = &table->rows[i];
		if (row->type != TALLY_TYPE_HARDWARE ||
		    (row->config & UINT32_MAX) != TALLY_HW_INSTRUCTIONS ||
		    row->state != TALLY_COUNT_OK || row->cgroup)
			continue;
		if (!row->core)
			return row;
		if (most && row->core != most->core)
			on_others += row->value < most->value ? row->value : most->value;
		if (!most || row->value > most->value)
			most = row;
	}
	if (most && on_others > most->value / 20)
		return NULL;
	return most;
}

/* A task that is runnable but not running is preempted every few milliseconds.  One that sleeps
 * long and was preempted a few times besides has mainly waited. */
static bool was_preempted(const struct tally_count_table *table, double clock_ns)
{
	enum { FEWEST = 5, LONGEST_WAIT_NS = 100000000 };
	double preemptions = table->preemptions;
	return table->has_cpu_times && preemptions >= FEWEST && preemptions > table->switches / 2 &&
	       (table->elapsed_ns - clock_ns) / preemptions <= LONGEST_WAIT_NS;
}

static struct evidence gather(const struct tally_count_table *table)
{
	struct evidence e = { -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, false };
	const struct tally_event_count *instructions = any_instructions(table), *faults;
	double clock_ns = tally_count_clock_ns(table, NULL);
	if (instructions) {
		e.ipc = metric_of(table, "ipc", instructions);
		e.llc = metric_of(table, "llc-mpki", instructions);
		if (e.llc < 0)
			e.llc = metric_of(table, "cache-mpki", instructions);
		e.l1d = metric_of(table, "l1d-mpki", instructions);
		e.dtlb = metric_of(table, "dtlb-mpki", instructions);
		e.itlb = metric_of(table, "itlb-mpki", instructions);
		e.branch = metric_of(table, "branch-mpki", instructions);
		e.has_caches = e.llc >= 0 || e.l1d >= 0;
	}
	faults = tally_count_find(table, TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS, 0, -1, NULL);
	if (faults && clock_ns > 0)
		e.faults = faults->value * 1e9 / clock_ns;
	if (clock_ns > 0 && table->elapsed_ns > 0 && !table->cpu_count)
		e.utilized = clock_ns / table->elapsed_ns;
	if (e.utilized >= 0 && was_preempted(table, clock_ns))
		e.preemptions = table->preemptions;
	if (table->has_cpu_times && table->user_ns + table->system_ns > 0)
		e.kernel_share = table->system_ns / (table->user_ns + table->system_ns);
	return e;
}

static int pipeline_verdict(const struct evidence *e, char *out, size_t size)
{
	if (e->ipc < 1 && e->llc >= 5)
		return snprintf(
			out, size,
			"memory bound: %.2f insn per cycle with %.1f last-level cache misses per "
			"1000 instructions",
			e->ipc, e->llc);
	if (e->ipc < 1.5 && e->dtlb >= 5)
		return snprintf(
			out, size,
			"address translation costs much: %.1f dTLB misses per 1000 instructions at "
			"%.2f insn per cycle; huge pages may help",
			e->dtlb, e->ipc);
	if (e->ipc < 2 && e->branch >= 8)
		return snprintf(
			out, size,
			"bad speculation: %.1f mispredicted branches per 1000 instructions at %.2f "
			"insn per cycle",
			e->branch, e->ipc);
	if (e->ipc < 1.5 && e->itlb >= 2)
		return snprintf(
			out, size,
			"front end bound: %.1f iTLB misses per 1000 instructions; the code is "
			"spread over too many pages",
			e->itlb);
	if (e->ipc < 1 && e->l1d >= 30)
		return snprintf(
			out, size,
			"cache bound: %.0f L1-dcache misses per 1000 instructions at %.2f insn per "
			"cycle, most of them answered by the next levels",
			e->l1d, e->ipc);
	if (e->ipc < 1 && !e->has_caches)
		return snprintf(
			out, size,
			"the pipeline mostly waits: %.2f insn per cycle; -d shows whether for "
			"memory",
			e->ipc);
	if (e->ipc < 1)
		return snprintf(
			out, size,
			"the pipeline mostly waits: %.2f insn per cycle, but not for caches, TLBs "
			"or branches: long dependencies or divisions",
			e->ipc);
	if (e->ipc >= 2)
		return snprintf(
			out, size,
			"the pipeline is well used: %.2f insn per cycle; to be faster it must "
			"execute less",
			e->ipc);
	return 0;
}

static int system_verdict(const struct evidence *e, double elapsed_ns, char *out, size_t size)
{
	bool waiting = e->utilized >= 0 && e->utilized < 0.5 && elapsed_ns >= 50e6;
	if (waiting && e->preemptions > 0)
		return snprintf(
			out, size,
			"had %.0f %% of one CPU: it was preempted %.0f times, other programs ran "
			"meanwhile",
			100 * e->utilized, e->preemptions);
	if (waiting)
		return snprintf(out, size,
				"mostly waiting, not computing: %.0f %% of one CPU was used",
				100 * e->utilized);
	if (e->faults >= 100e3)
		return snprintf(
			out, size,
			"memory is being got from the kernel all the time: %.0fK page faults per "
			"second of CPU time",
			e->faults / 1e3);
	if (e->kernel_share >= 0.5)
		return snprintf(
			out, size,
			"%.0f %% of the CPU time is the kernel's: look at its system calls and "
			"faults",
			100 * e->kernel_share);
	return 0;
}

/* The simulation has no pipeline, so there are no cycles.  The kinds of misses are weighted by
 * their cost on usual machines. */
static bool simulated_verdict(const struct tally_count_table *table, const struct evidence *e,
			      char *out, size_t size)
{
	enum { SHORTEST_RUN = 5000000 };
	const char *cache_bound = "cache bound: %.0f L1-dcache misses per 1000 instructions";
	if (e->llc >= 0)
		cache_bound = "cache bound: %.0f L1-dcache misses per 1000 instructions, most of "
			      "them answered by the next levels";
	const struct {
		double misses, least, cycles;
		const char *format;
	} rows[] = {
		{ e->llc, 5, 200,
		  "memory bound: %.1f accesses per 1000 instructions go to memory" },
		{ e->branch, 8, 15,
		  "branch bound: %.1f branches per 1000 instructions are predicted wrongly" },
		{ e->dtlb, 5, 30,
		  "address translation costs much: %.1f page walks per 1000 instructions; huge "
		  "pages may help" },
		{ e->l1d, 30, 12, cache_bound },
		{ e->itlb, 2, 30,
		  "front end bound: %.1f iTLB misses per 1000 instructions; the code is spread "
		  "over too many pages" },
	};
	const struct tally_event_count *instructions = any_instructions(table);
	double cost = 0;
	if (!instructions || instructions->value < SHORTEST_RUN)
		return false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].misses >= rows[i].least && rows[i].misses * rows[i].cycles > cost) {
			cost = rows[i].misses * rows[i].cycles;
			snprintf(out, size, rows[i].format, rows[i].misses);
		}
	if (cost > 0 || e->llc < 0 || e->l1d < 0 || e->branch < 0)
		return cost > 0;
	return snprintf(out, size,
			"neither caches nor branches hold it up: to be faster it must execute "
			"less") > 0;
}

bool tally_count_verdict(const struct tally_count_table *table, char *out, size_t size)
{
	enum { SHORTEST_NS = 10000000 };
	double clock_ns = tally_count_clock_ns(table, NULL);
	double work_ns = table->elapsed_ns;
	if (clock_ns > 0)
		work_ns = clock_ns;
	struct evidence e = gather(table);
	if (table->is_simulated)
		return simulated_verdict(table, &e, out, size);
	bool waiting = e.utilized >= 0 && e.utilized < 0.5 && table->elapsed_ns >= 50e6;
	if (work_ns < SHORTEST_NS && !waiting)
		return false;
	if (!waiting && e.ipc > 0 && pipeline_verdict(&e, out, size))
		return true;
	return system_verdict(&e, table->elapsed_ns, out, size) > 0;
}
