/* The simulated PMU's part of a provider with a plan (planned.h): which events it has, and texts for
 * the user.  Processes add their counts to the plan's totals while they run at each tick of
 * simulated time (VSIM_TICK_NS) and before system calls, and the rest when they end. */
#include "provider/provider_internal.h"

#include "base/extremes.h"
#include "base/text.h"
#include "event/event.h"
#include "provider/provider.h"
#include "valgrind/vsim_names.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fields that the engine can write into a sample of a simulated CPU. */
static const uint64_t SAMPLED = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
				TALLY_SAMPLE_ADDR | TALLY_SAMPLE_READ | TALLY_SAMPLE_CALLCHAIN |
				TALLY_SAMPLE_ID | TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD |
				TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_IDENTIFIER |
				TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER;

/* The kernel's default limit.  More would lose no samples, but fill the disk. */
enum { SIMULATED_MAX_HZ = 100000 };

/* ---- the PMU's part of opening -------------------------------------------- */

/* Returns the attribute that processes open: the PMU's own event, without modifiers that mean
 * nothing there. */
static struct tally_attr attr_for_plan(const struct tally_attr *asked)
{
	struct tally_attr attr = { 0 };
	uint64_t config;
	size_t size = sizeof(attr);
	if (asked->size)
		size = tally_min_u64(asked->size, size);
	memcpy(&attr, asked, size);
	attr.size = sizeof(attr);
	if (attr.type != VSIM_PMU_TYPE && !vsim_generic_config(attr.type, attr.config, &config)) {
		attr.type = VSIM_PMU_TYPE;
		attr.config = config;
	}
	/* An address is always exactly the instruction's, so a request for precision is met. */
	attr.flags &= ~(TALLY_ATTR_PRECISE_IP | TALLY_ATTR_EXCLUDE_GUEST | TALLY_ATTR_EXCLUDE_HOST);
	return attr;
}

/* Returns the reason why this CPU can't have the event, or NULL. */
static const char *lacks(const struct simulated *simulated, const struct tally_attr *asked)
{
	struct tally_attr attr = attr_for_plan(asked);
	if (attr.type != VSIM_PMU_TYPE)
		return NULL;
	return simulated_geometry_lacks(&simulated->geometry, attr.config);
}

/* Returns how many counters the PMU has according to this event. */
static unsigned counters_of(const struct tally_attr *attr)
{
	if (attr->type == VSIM_PMU_TYPE && attr->config1 & VSIM_COUNTERS_MASK)
		return attr->config1 & VSIM_COUNTERS_MASK;
	return 2 * TALLY_PLAN_EVENTS;
}

/* True if the group has room for this event, with the smallest number of counters that any event so
 * far gives the PMU. The tool would refuse it as well, but in a process that can't report it. */
static bool group_fits(const struct planned *planned, const struct tally_attr *asked, int group)
{
	struct tally_attr attr = attr_for_plan(asked);
	unsigned needed = 1, counters = counters_of(&attr);
	for (int i = 0; i < TALLY_PLAN_EVENTS; i++) {
		const struct planned_event *event = &planned->events[i];
		if (!event->is_open || event->attr.type != VSIM_PMU_TYPE)
			continue;
		unsigned own = counters_of(&event->attr);
		if (own < counters)
			counters = own;
		needed += group >= 0 && event->leader == group;
	}
	return attr.type != VSIM_PMU_TYPE || needed <= counters;
}

static int simulated_check(const struct planned *planned, const struct tally_attr *attr, int group)
{
	if (tally_simulated_refuses(attr, NULL) || lacks((const struct simulated *)planned, attr))
		return -ENOENT;
	if (!group_fits(planned, attr, group))
		return -ENOSPC;
	return 0;
}

static const struct planned_host simulated_host = {
	.prefix = "tally-vsim-",
	.plan_bytes = sizeof(struct vsim_plan),
	.ring_pages = 128,
	.max_ring_pages = 128,
	.room_bytes = (uint64_t)48 << 20,
	.sample_fields = SAMPLED,
	.attr = attr_for_plan,
	.check = simulated_check,
};

/* ---- texts for the user ------------------------------------------------- */

static const char *simulated_reason(struct tally_provider *provider, const struct tally_attr *attr,
				    int code, const char **hint)
{
	const char *reason = tally_simulated_refuses(attr, hint);
	if (reason)
		return reason;
	if (hint)
		*hint = NULL;
	reason = lacks(simulated_of(provider), attr);
	if (reason) {
		if (hint)
			*hint = "choose a CPU that has it with --sim-cpu";
		return reason;
	}
	switch (code) {
	case -EMFILE:
		return "at most 64 events are simulated at once";
	case -ENOSPC:
		if (hint)
			*hint = "count its events separately, or set counters= to the size of the "
				"largest group";
		return "its group has more events than the PMU has counters (counters=)";
	case -EOPNOTSUPP:
		if (attr->sample_type & ~SAMPLED)
			return "the simulated CPU has no such data for samples";
		return "only a command that tally starts is simulated";
	default:
		return tally_errno_text(code);
	}
}

static const char *simulated_quality(struct tally_provider *provider, const struct tally_attr *attr)
{
	struct tally_attr own = attr_for_plan(attr);
	(void)provider;
	if (own.type != VSIM_PMU_TYPE)
		return NULL;
	return vsim_quality_name(vsim_config_quality(own.config));
}

static const char *simulated_machine(struct tally_provider *provider, bool is_short)
{
	const struct simulated *simulated = simulated_of(provider);
	if (is_short)
		return simulated->caches;
	return simulated->machine;
}

static const char *simulated_uncounted(struct tally_provider *provider)
{
	const struct simulated *simulated = simulated_of(provider);
	const struct vsim_plan *plan = simulated_plan_of(simulated);
	if (!planned_has_begun(&simulated->planned) || !plan->region_only ||
	    __atomic_load_n(&plan->regions, __ATOMIC_SEQ_CST))
		return NULL;
	if (simulated->options.function_count)
		return "no function of that name ran";
	return "the program never called tally_roi_begin()";
}

/* Lists the regions that were counted, and the named functions that never ran. */
static void region_notes(const struct simulated *simulated, struct tally_arena *arena,
			 const char **counted, const char **absent)
{
	const struct tally_simulated_options *options = &simulated->options;
	uint32_t regions = __atomic_load_n(&simulated_plan_of(simulated)->regions,
					   __ATOMIC_SEQ_CST);
	static const char markers[] = "between the program's markers (tally/roi.h)";
	const char *ran = NULL, *not = NULL;
	for (unsigned i = 0; i < options->function_count; i++) {
		const char **list = regions >> i & 1 ? &ran : &not, *name = options->functions[i];
		if (*list)
			*list = tally_arena_printf(arena, "%s, '%s'", *list, name);
		else
			*list = tally_arena_printf(arena, "'%s'", name);
	}
	if (regions & VSIM_REGION_MARKED && ran)
		ran = tally_arena_printf(arena, "%s, and %s", ran, markers);
	else if (regions & VSIM_REGION_MARKED)
		ran = markers;
	if (ran)
		*counted = tally_arena_printf(arena, "counted only in regions: %s", ran);
	if (not )
		*absent = tally_arena_printf(
			arena,
			"no function %s ran: use the symbol's name, as 'tally report' shows it; "
			"inlined functions have none",
			not );
	else if (!regions)
		*absent = "the program never called tally_roi_begin() (tally/roi.h)";
}

static const char *unsimulated_note(const struct vsim_plan *plan, struct tally_arena *arena)
{
	uint32_t count = __atomic_load_n(&plan->shared.uncounted, __ATOMIC_SEQ_CST);
	if (!count)
		return NULL;
	return tally_arena_printf(
		arena,
		"%u program%s ran unsimulated and uncounted: set-user-ID, 32-bit and AVX-512-only "
		"programs can't be simulated, nor programs run as a user who can't open tally's "
		"files (setpriv, runuser)",
		count, tally_plural(count));
}

static size_t simulated_notes(struct tally_provider *provider, int signal,
			      struct tally_arena *arena, const char **notes, size_t maximum)
{
	struct simulated *simulated = simulated_of(provider);
	const struct vsim_plan *plan = simulated_plan_of(simulated);
	bool has_begun = planned_has_begun(&simulated->planned);
	enum { COUNTED, ABSENT, STARTLESS, ILLEGAL, UNSIMULATED, DAMAGED, LINES };
	const char *lines[LINES] = { NULL };
	if (has_begun && plan->region_only)
		region_notes(simulated, arena, &lines[COUNTED], &lines[ABSENT]);
	if (plan && !has_begun)
		lines[STARTLESS] =
			"the simulated PMU did not start: unless a message above explains it, the "
			"program's file is damaged, or the memory limit (ulimit -v) is too low";
	if (signal == SIGILL)
		lines[ILLEGAL] = "SIGILL: the simulated CPU has no AVX-512 and can't run code that "
				 "requires it";
	if (plan)
		lines[UNSIMULATED] = unsimulated_note(plan, arena);
	if (simulated->planned.damaged)
		lines[DAMAGED] = "the program overwrote a ring: some records are lost";
	size_t count = 0;
	for (size_t i = 0; i < LINES && count < maximum; i++)
		if (lines[i])
			notes[count++] = lines[i];
	return count;
}

static int simulated_catalogue(struct tally_provider *provider, struct tally_catalogue *catalogue,
			       struct tally_error *err)
{
	(void)provider;
	return tally_simulated_catalogue(catalogue, err);
}

/* ---- life ---------------------------------------------------------------- */

static void simulated_release(struct tally_provider *provider)
{
	struct simulated *simulated = simulated_of(provider);
	planned_release(&simulated->planned);
	free(simulated->argv);
	free(simulated->words);
	free(simulated);
}

static int simulated_make(const struct tally_provider_choice *choice, struct tally_provider **out,
			  struct tally_error *err)
{
	return tally_provider_simulated_new(choice->simulated, out, err);
}

const struct tally_provider_ops tally_provider_simulated_ops = {
	.name = "simulated",
	.capabilities = TALLY_PROVIDER_SAMPLES | TALLY_PROVIDER_CATALOGUE |
			TALLY_PROVIDER_SIMULATED_TIME | TALLY_PROVIDER_ONE_CPU |
			TALLY_PROVIDER_CPU_MODEL,
	.make = simulated_make,
	.catalogue = simulated_catalogue,
	.open = planned_open,
	.read = planned_read,
	.ioctl = planned_ioctl,
	.map = planned_map,
	.unmap = planned_unmap,
	.wait = planned_wait,
	.close = planned_close,
	.release = simulated_release,
	.command = simulated_command,
	.gather = planned_gather,
	.reason = simulated_reason,
	.quality = simulated_quality,
	.uncounted = simulated_uncounted,
	.machine = simulated_machine,
	.notes = simulated_notes,
	.refuses = tally_simulated_refuses,
	.describe = tally_simulated_describe,
	.prepare_count = tally_simulated_make_generic,
	.prepare_record = tally_simulated_make_own,
	.default_event = "est-cycles",
	.default_event_note = "sampling est-cycles: an estimate, for ranking; -e instructions is "
			      "exact, and faster",
	/* it counts all at once: no groups */
	.standard_events = "instructions,branches,branch-misses,L1-dcache-loads,"
			   "L1-dcache-load-misses,LLC-load-misses,dTLB-load-misses,est-cycles",
	.detailed_events = "L1-dcache-stores,L1-dcache-store-misses,L1-icache-loads,"
			   "L1-icache-load-misses,LLC-loads,LLC-stores,LLC-store-misses,"
			   "dTLB-store-misses,iTLB-load-misses",
	.max_rate_hz = SIMULATED_MAX_HZ,
	.treatment = "simulated",
	.no_kernel_samples =
		"the simulated CPU does not support --overwrite, branch stacks, registers, -d, -W, "
		"-R, --per-thread, --off-cpu, --switch-output-event and similar options",
	.call_graph = "the simulated CPU's stack, unwound at each sample",
	.pmu_name = "vsim",
	.pmu_type = VSIM_PMU_TYPE,
};

int tally_provider_simulated_new(const struct tally_simulated_options *options,
				 struct tally_provider **out, struct tally_error *err)
{
	struct simulated *simulated = calloc(1, sizeof(*simulated));
	if (!simulated)
		return tally_error_set(err, -ENOMEM, "out of memory");
	planned_init(&simulated->planned, &tally_provider_simulated_ops, &simulated_host);
	simulated->options = *options;
	int result = 0;
	if (options->folder)
		snprintf(simulated->folder, sizeof(simulated->folder), "%s", options->folder);
	else
		result = tally_simulated_find(simulated->folder, sizeof(simulated->folder), err);
	if (!result)
		result = simulated_geometry(options->cpu, NULL, &simulated->geometry, err);
	if (result < 0) {
		free(simulated);
		return result;
	}
	simulated_geometry_line(&simulated->geometry, simulated->machine,
				sizeof(simulated->machine));
	simulated_geometry_caches(&simulated->geometry, simulated->caches,
				  sizeof(simulated->caches));
	*out = &simulated->planned.provider;
	return 0;
}
