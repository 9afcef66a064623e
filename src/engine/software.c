/* The "software" PMU: events that the host reports (faults, switches, migrations), one that never
 * happens (dummy), and clocks. */
#include "engine/clock_event.h"

static int software_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *hw)
{
	const struct tally_attr *attr = hw->attr;

	if (attr->type != pmu->type)
		return -ENGINE_ENOENT;
	if (attr->sample_type & TALLY_SAMPLE_BRANCH_STACK)
		return -ENGINE_EOPNOTSUPP;
	if (attr->config >= TALLY_SW_MAX)
		return -ENGINE_ENOENT;
	if (engine_is_clock(attr))
		engine_clock_init(engine_event_of(hw));
	return 0;
}

static int software_add(struct tally_pmu_event *hw, unsigned flags)
{
	struct engine_event *event = engine_event_of(hw);

	if (!engine_is_clock(hw->attr))
		return engine_swevent_add(event, flags,
					  &engine_this_cpu(hw->engine)->software[hw->attr->config]);
	if (flags & TALLY_EF_START)
		engine_clock_start(event);
	else
		hw->state = TALLY_HES_STOPPED;
	return 0;
}

static void software_del(struct tally_pmu_event *hw, unsigned flags)
{
	if (engine_is_clock(hw->attr))
		engine_clock_stop(engine_event_of(hw));
	else
		engine_swevent_del(hw, flags);
}

static void software_start(struct tally_pmu_event *hw, unsigned flags)
{
	if (engine_is_clock(hw->attr))
		engine_clock_start(engine_event_of(hw));
	else
		engine_swevent_start(hw, flags);
}

static void software_stop(struct tally_pmu_event *hw, unsigned flags)
{
	if (engine_is_clock(hw->attr))
		engine_clock_stop(engine_event_of(hw));
	else
		engine_swevent_stop(hw, flags);
}

static void software_read(struct tally_pmu_event *hw)
{
	if (engine_is_clock(hw->attr))
		engine_clock_read(engine_event_of(hw));
}

static const struct tally_engine_pmu_ops software_ops = {
	.event_init = software_init,
	.add = software_add,
	.del = software_del,
	.start = software_start,
	.stop = software_stop,
	.read = software_read,
};

int engine_software_register(struct tally_engine *engine)
{
	engine->software_pmu = (struct tally_engine_pmu){
		.name = "software",
		.type = TALLY_TYPE_SOFTWARE,
		.scope = TALLY_SCOPE_SOFTWARE,
		.capabilities = TALLY_PMU_NO_NMI,
		.ops = &software_ops,
	};
	return tally_engine_pmu_register(engine, &engine->software_pmu);
}

/* Without listeners this costs one look at the list. */
void tally_engine_software(struct tally_engine *engine, enum tally_sw which, uint64_t count,
			   const struct tally_engine_regs *regs, uint64_t address)
{
	static const struct tally_engine_regs in_kernel = { .mode = TALLY_MODE_KERNEL };
	struct engine_cpu *cpu = engine_this_cpu(engine);

	if ((unsigned)which >= TALLY_SW_MAX ||
	    !__atomic_load_n(&cpu->software[which].first, __ATOMIC_RELAXED))
		return;
	int level = engine_hit_enter(engine, cpu);
	if (level < 0)
		return;
	ENGINE_HITS_EACH(link, &cpu->software[which]) {
		struct tally_engine_hit hit = { .address = address };
		engine_swevent_hit(ENGINE_CONTAINER(link, struct engine_event, hit_link), cpu,
				   count, &hit, regs ? regs : &in_kernel);
	}
	engine_hit_leave(cpu, level);
}
