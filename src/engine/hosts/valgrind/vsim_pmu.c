/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The PMU "vsim".  A counter is the sum of the totals of some kinds since it was last read.  So
 * there may be as many counters as events; they cost only the instrumentation of their kinds, once.
 *
 * Overflows.  cpu->left holds, for each kind, how often it may happen before this file must look.
 * For an event that counts one kind, that is the rest of its period.  For an event with several
 * kinds (branch-misses), it is unknown which kind completes the period.  So each kind gets a share,
 * and all shares together stay below the rest of the period.  When one share is used up, all are
 * computed anew.  The shares shrink toward the end of the period, down to nothing; then each
 * occurrence raises the alarm, and the overflow is found where it happens.  est-cycles work the
 * same way, in hundredths of cycles, with two shares: instructions use up one, misses the other. */
#include "valgrind/vsim.h"
#include "valgrind/vsim_names.h"

#include "pub_tool_libcbase.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_vki.h"

enum { PLACES = 2 * TALLY_PLAN_EVENTS };

struct vsim_pmu { /* tally_engine_pmu.driver points to it */
	struct tally_engine_pmu pmu;
	struct vsim *sim;
	struct tally_pmu_event *on[PLACES]; /* events on the PMU, in the order of adding */
	unsigned count;
	unsigned counters; /* how many counters exist */
};

static struct vsim_pmu *pmu_of(const struct tally_pmu_event *event)
{
	return event->pmu->driver;
}

static bool counts(const struct vsim *sim, const struct tally_pmu_event *event)
{
	return sim->cpu.counting && !(event->state & TALLY_HES_STOPPED);
}

static uint64_t sum(const struct vsim_cpu *cpu, uint64_t kinds)
{
	uint64_t value = 0;
	for (; kinds; kinds &= kinds - 1)
		value += cpu->totals[__builtin_ctzll(kinds)];
	return value;
}

static void bring_up_to_date(struct vsim *sim, struct tally_pmu_event *event)
{
	uint64_t value = sum(&sim->cpu, event->config);
	uint64_t more = value - event->previous;
	event->previous = value;
	if (more && sim->cpu.counting)
		tally_engine_pmu_count(event, more);
}

/* --- what the engine asks ------------------------------------------------- */

static void vsim_read(struct tally_pmu_event *event)
{
	if (!(event->state & TALLY_HES_STOPPED))
		bring_up_to_date(pmu_of(event)->sim, event);
}

static void vsim_start(struct tally_pmu_event *event, unsigned flags)
{
	struct vsim *sim = pmu_of(event)->sim;
	if (!(event->state & TALLY_HES_STOPPED))
		return;
	if (flags & TALLY_EF_RELOAD)
		tally_engine_period_elapsed(event);
	event->previous = sum(&sim->cpu, event->config);
	event->state = 0;
	tally_engine_user_page_changed(event);
}

static void vsim_stop(struct tally_pmu_event *event, unsigned flags)
{
	(void)flags; /* nothing is saved: every read folds in all counts */
	vsim_read(event);
	event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
}

static int vsim_add(struct tally_pmu_event *event, unsigned flags)
{
	struct vsim_pmu *own = pmu_of(event);
	if (own->count == own->counters)
		return -VKI_EAGAIN;
	event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
	event->index = (int)own->count;
	own->on[own->count++] = event;
	if (flags & TALLY_EF_START)
		vsim_start(event, TALLY_EF_RELOAD);
	return 0;
}

static void vsim_del(struct tally_pmu_event *event, unsigned flags)
{
	struct vsim_pmu *own = pmu_of(event);
	vsim_stop(event, flags);
	for (unsigned i = 0; i < own->count; i++)
		if (own->on[i] == event) {
			own->on[i] = own->on[--own->count];
			own->on[i]->index = (int)i;
			break;
		}
	event->index = -1;
}

/* --- opening -------------------------------------------------------------- */

static int config_of(const struct tally_attr *attr, uint64_t *config)
{
	if (attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE)
		return vsim_generic_config(attr->type, attr->config, config);
	*config = attr->config;
	if (attr->type != VSIM_PMU_TYPE)
		return -VKI_ENOENT;
	if (!vsim_config_is_valid(attr->config))
		return -VKI_EINVAL;
	return 0;
}

uint64_t vsim_pmu_kinds(const struct tally_attr *attr)
{
	uint64_t config;
	if (config_of(attr, &config))
		return 0;
	return config;
}

/* True if the group, including this event, fits on the PMU's counters. */
static bool group_fits(const struct vsim_pmu *own, struct tally_pmu_event *event)
{
	unsigned needed = 0;
	for (struct tally_pmu_event *member = tally_engine_group_first(event); member;
	     member = tally_engine_group_next(event, member))
		needed += member->pmu == &own->pmu || member == event;
	return needed <= own->counters;
}

static int vsim_event_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *event)
{
	struct vsim_pmu *own = pmu->driver;
	int error = config_of(event->attr, &event->config);
	if (error)
		return error;
	if (event->attr->flags & TALLY_ATTR_EXCLUDE_USER)
		return -VKI_EINVAL; /* the PMU counts nothing but user mode */
	unsigned counters = 0;
	if (event->attr->type == VSIM_PMU_TYPE)
		counters = event->attr->config1 & VSIM_COUNTERS_MASK;
	if (counters && counters < own->counters)
		own->counters = counters;
	event->index = -1;
	if (!group_fits(own, event))
		return -VKI_EINVAL;
	return 0;
}

static const struct tally_engine_pmu_ops ops = {
	.event_init = vsim_event_init,
	.add = vsim_add,
	.del = vsim_del,
	.start = vsim_start,
	.stop = vsim_stop,
	.read = vsim_read,
};

/* Has no terms: the engine never looks up events by name; tally does, with vsim_names.h. */
int vsim_pmu_register(struct vsim *sim)
{
	struct vsim_pmu *own = sim->pmu ? sim->pmu->driver : VG_(malloc)("vsim.pmu", sizeof(*own));
	*own = (struct vsim_pmu){
		.pmu = { .name = "vsim",
			 .type = VSIM_PMU_TYPE,
			 .scope = TALLY_SCOPE_HARDWARE,
			 .capabilities = TALLY_PMU_GENERIC | TALLY_PMU_NO_NMI,
			 .ops = &ops,
			 .driver = own },
		.sim = sim,
		.counters = PLACES,
	};
	sim->pmu = &own->pmu;
	return tally_engine_pmu_register(sim->engine, &own->pmu);
}

/* --- overflows ------------------------------------------------------------ */

static void overflow(struct vsim *sim, struct tally_pmu_event *event,
		     const struct vsim_place *place)
{
	const struct tally_engine_hit hit = {
		.address = place->address,
		.period = event->last_period,
		.exact_ip = place->ip,
		.has_exact_ip = true,
	};
	struct tally_engine_regs regs;
	vsim_host_regs(place, &regs);
	vsim_host_make_room(sim);
	if (tally_engine_overflow(event, &hit, &regs))
		vsim_stop(event, 0);
}

/* Returns NULL before the PMU is registered. */
static struct vsim_pmu *registered_pmu(const struct vsim *sim)
{
	if (!sim->pmu)
		return NULL;
	return sim->pmu->driver;
}

void vsim_pmu_hit(struct vsim *sim, const struct vsim_place *place)
{
	struct vsim_pmu *own = registered_pmu(sim);
	for (unsigned i = 0; own && i < own->count; i++) {
		struct tally_pmu_event *event = own->on[i];
		if (!event->sample_period || !counts(sim, event))
			continue;
		bring_up_to_date(sim, event);
		if (event->period_left <= 0 && tally_engine_period_elapsed(event))
			overflow(sim, event, place);
	}
}

static void share(struct vsim_cpu *cpu, unsigned kind, int64_t left)
{
	if (left < cpu->left[kind])
		cpu->left[kind] = left;
}

static void arm_event(struct vsim_cpu *cpu, const struct tally_pmu_event *event)
{
	uint64_t counted = sum(cpu, event->config) - event->previous;
	/* up to the end of the period, without it */
	int64_t may = event->period_left - (int64_t)counted - 1;
	if (may < 0)
		may = 0;
	if (event->config == 1ull << VSIM_EST_CYCLES) {
		/* Takes account of the hundredths already counted of the next cycle.  A period
		 * longer than a century is not kept exactly. */
		int64_t hundredths = INT64_MAX / 2;
		if (may < INT64_MAX / 200)
			hundredths = may * 100 + 99 - (int64_t)(cpu->hundredths % 100);
		share(cpu, VSIM_INSTRUCTIONS,
		      hundredths / 2 / (cpu->weight[0] ? cpu->weight[0] : 1));
		share(cpu, VSIM_EST_CYCLES, hundredths / 2);
		return;
	}
	may /= __builtin_popcountll(event->config);
	for (uint64_t kinds = event->config; kinds; kinds &= kinds - 1)
		share(cpu, (unsigned)__builtin_ctzll(kinds), may);
}

void vsim_pmu_arm(struct vsim *sim)
{
	const struct vsim_pmu *own = registered_pmu(sim);
	if (!sim->cpu.sampled)
		return;
	for (unsigned kind = 0; kind < VSIM_KINDS; kind++)
		sim->cpu.left[kind] = INT64_MAX / 2;
	for (unsigned i = 0; own && i < own->count; i++)
		if (own->on[i]->sample_period && counts(sim, own->on[i]))
			arm_event(&sim->cpu, own->on[i]);
}

void vsim_pmu_counting(struct vsim *sim, bool counting)
{
	struct vsim_pmu *own = registered_pmu(sim);
	for (unsigned i = 0; own && i < own->count; i++)
		if (!(own->on[i]->state & TALLY_HES_STOPPED))
			/* The end of a region counts what is pending, its beginning skips it. */
			bring_up_to_date(sim, own->on[i]);
	sim->cpu.counting = counting;
}
