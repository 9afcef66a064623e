/* The "breakpoint" PMU: hits of an address, by the host's debug registers.
 *
 * Slots are reserved when an event is opened, so that every opened event can be scheduled.  Each
 * CPU must have a slot for each of its own breakpoints, and beside them enough for those of any one
 * task. */
#include "engine/engine_state.h"

#define LENGTH_MAX 8u /* bytes of one watched range */

/* --- validation ----------------------------------------------------------- */

static int check_type(const struct tally_attr *attr)
{
	switch (attr->bp_type) {
	case TALLY_BREAKPOINT_W:
	case TALLY_BREAKPOINT_R | TALLY_BREAKPOINT_W:
		return 0;
	case TALLY_BREAKPOINT_X:
		if (attr->config2 == sizeof(void *))
			return 0;
		return -ENGINE_EINVAL;
	default:
		return -ENGINE_EINVAL;
	}
}

static int check_length(uint64_t address, uint64_t length)
{
	if (!length || length & (length - 1) || address & (length - 1))
		return -ENGINE_EINVAL;
	if (length > LENGTH_MAX)
		return -ENGINE_EOPNOTSUPP;
	return 0;
}

static int check_place(struct engine_event *event, const struct tally_attr *attr)
{
	uint64_t last = attr->config1 + attr->config2 - 1;
	bool in_kernel = (attr->config1 | last) >> 63;

	if (in_kernel && attr->flags & TALLY_ATTR_EXCLUDE_KERNEL)
		return -ENGINE_EINVAL;
	if (in_kernel && !engine_capable(event->engine, TALLY_CAPABLE_SYS_ADMIN))
		return -ENGINE_EPERM;
	return 0;
}

static int check(struct engine_event *event, const struct tally_attr *attr)
{
	int error = check_type(attr);

	if (!error && attr->bp_type != TALLY_BREAKPOINT_X)
		error = check_length(attr->config1, attr->config2);
	if (error)
		return error;
	return check_place(event, attr);
}

/* --- slots ---------------------------------------------------------------- */

static unsigned of_cpu(const struct tally_engine *engine, unsigned cpu)
{
	unsigned count = 0;
	ENGINE_LIST_EACH(event, &engine->breakpoints, struct engine_event, breakpoint_link)
		count += !event->task && event->cpu == (int)cpu;
	return count;
}

static unsigned of_task(const struct tally_engine *engine, const struct tally_engine_task *task,
			unsigned cpu)
{
	unsigned count = 0;
	ENGINE_LIST_EACH(event, &engine->breakpoints, struct engine_event, breakpoint_link)
		count += event->task == task && (event->cpu < 0 || event->cpu == (int)cpu);
	return count;
}

static unsigned of_busiest_task(const struct tally_engine *engine, unsigned cpu)
{
	unsigned most = 0;
	ENGINE_LIST_EACH(event, &engine->breakpoints, struct engine_event, breakpoint_link) {
		unsigned count = 0;
		if (event->task)
			count = of_task(engine, event->task, cpu);
		if (count > most)
			most = count;
	}
	return most;
}

static bool has_slot(const struct engine_event *event)
{
	const struct tally_engine *engine = event->engine;

	for (unsigned cpu = 0; cpu < engine->host.cpus; cpu++) {
		if (event->cpu >= 0 && event->cpu != (int)cpu)
			continue;
		unsigned used = of_cpu(engine, cpu);
		if (event->task)
			used += of_task(engine, event->task, cpu);
		else
			used += of_busiest_task(engine, cpu);
		if (used >= engine->host.breakpoint_slots)
			return false;
	}
	return true;
}

/* --- the PMU -------------------------------------------------------------- */

static int breakpoint_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *hw)
{
	const unsigned no_type = 0,
		       every_type = TALLY_BREAKPOINT_R | TALLY_BREAKPOINT_W | TALLY_BREAKPOINT_X;
	struct engine_event *event = engine_event_of(hw);
	struct tally_engine *engine = event->engine;

	if (hw->attr->type != pmu->type)
		return -ENGINE_ENOENT;
	if (hw->attr->sample_type & TALLY_SAMPLE_BRANCH_STACK || !engine->host.watch)
		return -ENGINE_EOPNOTSUPP;
	/* The kernel's order: these two checks come before the slot, the others after it. */
	if (hw->attr->bp_type == no_type || hw->attr->bp_type == every_type)
		return -ENGINE_EINVAL;
	if (!has_slot(event))
		return -ENGINE_ENOSPC;
	int error = check(event, hw->attr);
	if (!error)
		engine_list_add_tail(&event->breakpoint_link, &engine->breakpoints);
	return error;
}

static void breakpoint_release(struct tally_pmu_event *hw)
{
	engine_list_remove(&engine_event_of(hw)->breakpoint_link);
}

static int breakpoint_add(struct tally_pmu_event *hw, unsigned flags)
{
	struct engine_event *event = engine_event_of(hw);
	const struct tally_engine_host *host = &hw->engine->host;
	struct engine_cpu *cpu = engine_this_cpu(hw->engine);

	for (unsigned slot = 0; slot < host->breakpoint_slots; slot++) {
		if (cpu->breakpoints[slot])
			continue;
		engine_swevent_add(event, flags, NULL);
		hw->index = (int)slot;
		__atomic_store_n(&cpu->breakpoints[slot], event, __ATOMIC_RELEASE);
		if (!host->watch(host->host, slot, hw->attr->config1, hw->attr->config2,
				 hw->attr->bp_type))
			return 0;
		__atomic_store_n(&cpu->breakpoints[slot], NULL, __ATOMIC_RELEASE);
		hw->index = -1;
		break;
	}
	return -ENGINE_EAGAIN;
}

static void breakpoint_del(struct tally_pmu_event *hw, unsigned flags)
{
	const struct tally_engine_host *host = &hw->engine->host;
	struct engine_cpu *cpu = engine_this_cpu(hw->engine);

	(void)flags;
	if (hw->index < 0)
		return;
	host->watch(host->host, (unsigned)hw->index, 0, 0, 0);
	__atomic_store_n(&cpu->breakpoints[hw->index], NULL, __ATOMIC_RELEASE);
	hw->index = -1;
}

static const struct tally_engine_pmu_ops breakpoint_ops = {
	.event_init = breakpoint_init,
	.event_release = breakpoint_release,
	.add = breakpoint_add,
	.del = breakpoint_del,
	.start = engine_swevent_start,
	.stop = engine_swevent_stop,
	.read = engine_swevent_read,
};

/* tally_engine_free() releases what this allocates. */
int engine_breakpoint_register(struct tally_engine *engine)
{
	size_t size = engine->host.breakpoint_slots * sizeof(*engine->cpus[0].breakpoints);

	for (unsigned cpu = 0; size && cpu < engine->host.cpus; cpu++) {
		engine->cpus[cpu].breakpoints = engine_allocate(engine, size);
		if (!engine->cpus[cpu].breakpoints)
			return -ENGINE_ENOMEM;
	}
	engine->breakpoint_pmu = (struct tally_engine_pmu){
		.name = "breakpoint",
		.type = TALLY_TYPE_BREAKPOINT,
		.scope = TALLY_SCOPE_SOFTWARE,
		.ops = &breakpoint_ops,
	};
	return tally_engine_pmu_register(engine, &engine->breakpoint_pmu);
}

void tally_engine_breakpoint_hit(struct tally_engine *engine, unsigned slot,
				 const struct tally_engine_regs *regs, uint64_t address)
{
	struct engine_cpu *cpu = engine_this_cpu(engine);

	(void)address; /* a sample has the address of attr.bp_addr, as in the kernel */
	int level = engine_hit_enter(engine, cpu);
	if (level < 0)
		return;
	struct engine_event *event = NULL;
	if (slot < engine->host.breakpoint_slots)
		event = __atomic_load_n(&cpu->breakpoints[slot], __ATOMIC_ACQUIRE);
	if (event) {
		struct tally_engine_hit hit = { .address = event->attr.config1 };
		engine_swevent_hit(event, cpu, 1, &hit, regs);
	}
	engine_hit_leave(cpu, level);
}

/* --- MODIFY_ATTRIBUTES ---------------------------------------------------- */

static bool same_elsewhere(const struct tally_attr *old, const struct tally_attr *wanted)
{
	struct tally_attr merged = *old;

	merged.bp_type = wanted->bp_type;
	merged.config1 = wanted->config1;
	merged.config2 = wanted->config2;
	merged.flags = (old->flags & ~TALLY_ATTR_DISABLED) | (wanted->flags & TALLY_ATTR_DISABLED);
	return !__builtin_memcmp(&merged, wanted, sizeof(merged));
}

static void change(struct engine_event *event, const struct tally_attr *attr)
{
	event->attr.bp_type = attr->bp_type;
	event->attr.config1 = attr->config1;
	event->attr.config2 = attr->config2;
	event->attr.flags = (event->attr.flags & ~TALLY_ATTR_DISABLED) |
			    (attr->flags & TALLY_ATTR_DISABLED);
}

/* Afterwards the event is on or off as its attr.disabled says, even if this fails (measured),
 * whatever ENABLE and DISABLE did before. */
int engine_breakpoint_modify(struct engine_event *event, const struct tally_attr *attr)
{
	engine_event_disable_alone(event);
	int error = check(event, attr);
	if (!error && !same_elsewhere(&event->attr, attr))
		error = -ENGINE_EINVAL;
	if (!error)
		change(event, attr);
	if (!engine_event_flag(event, TALLY_ATTR_DISABLED))
		engine_event_enable_alone(event);
	return error;
}
