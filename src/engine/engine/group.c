/* Groups: on their PMUs completely, or not at all (SPEC.md B5).
 *
 * Some PMUs can only say for the whole group whether its events fit together (counters with
 * constraints).  They have the ops group_start, group_commit and group_cancel.  For other PMUs each
 * add() decides for itself, and if a later member finds no room, the earlier ones are taken off
 * again.  Members that are disabled or in ERROR stay off and don't keep the others from running
 * (B4). */
#include "engine/engine_schedule.h"

static void count_active(struct engine_event *event, struct engine_cpu *cpu, int more)
{
	cpu->active[__builtin_ctzll(engine_pmu_bit(event->hw.pmu))] += (uint32_t)more;
}

/* Disables an event that a hit wants disabled, if run_pending() has not done so yet: otherwise the
 * event could be scheduled in on another CPU first. */
static void disable_if_pending(struct engine_event *event)
{
	if (__atomic_load_n(&event->pending, __ATOMIC_RELAXED) & ENGINE_PENDING_DISABLE) {
		__atomic_fetch_and(&event->pending, ~ENGINE_PENDING_DISABLE, __ATOMIC_ACQ_REL);
		engine_event_set_state(event, ENGINE_EVENT_OFF);
	}
}

int engine_event_in(struct engine_event *event, struct engine_cpu *cpu)
{
	if (event->state != ENGINE_EVENT_INACTIVE)
		return 0;
	__atomic_store_n(&event->on_cpu, (int)cpu->number, __ATOMIC_RELEASE);
	/* ACTIVE before the PMU starts it, so that a hit that comes at once finds the event
	 * counting. */
	engine_event_set_state(event, ENGINE_EVENT_ACTIVE);
	if (event->interrupts == ENGINE_THROTTLED)
		engine_event_unthrottle(event, false);
	engine_output_itrace_start(event);
	if (event->hw.pmu->ops->add(&event->hw, TALLY_EF_START)) {
		engine_event_set_state(event, ENGINE_EVENT_INACTIVE);
		__atomic_store_n(&event->on_cpu, -1, __ATOMIC_RELEASE);
		disable_if_pending(event); /* as when its AUX area is full */
		return -ENGINE_EAGAIN;
	}
	count_active(event, cpu, 1);
	engine_user_page_update(event);
	return 0;
}

/* Updates the state of an event that its PMU has let go. */
static void set_inactive(struct engine_event *event, struct engine_cpu *cpu)
{
	count_active(event, cpu, -1);
	__atomic_store_n(&event->on_cpu, -1, __ATOMIC_RELEASE);
	engine_event_set_state(event, ENGINE_EVENT_INACTIVE);
	disable_if_pending(event);
	if (event->leader == event) {
		engine_list_remove(&event->active_link);
		cpu->exclusive &= ~event->held;
		event->held = 0;
	}
	engine_user_page_update(event);
}

void engine_event_out(struct engine_event *event, struct engine_cpu *cpu)
{
	if (event->state != ENGINE_EVENT_ACTIVE)
		return;
	event->hw.pmu->ops->del(&event->hw, TALLY_EF_UPDATE);
	set_inactive(event, cpu);
}

/* Takes a group that did not fit off its PMUs, up to the member that found no room (NULL: the
 * commit failed). */
static void undo(struct engine_event *leader, struct engine_event *failed, struct engine_cpu *cpu,
		 const struct tally_engine_pmu *together)
{
	for (struct engine_event *event = leader; event != failed;) {
		struct engine_list *next = event->sibling_link.next;
		if (event == leader)
			next = leader->siblings.next;
		if (event->state == ENGINE_EVENT_ACTIVE) {
			if (event->hw.pmu != together)
				event->hw.pmu->ops->del(&event->hw, TALLY_EF_UPDATE);
			set_inactive(event, cpu);
		}
		if (next == &leader->siblings)
			return;
		event = ENGINE_CONTAINER(next, struct engine_event, sibling_link);
	}
}

static struct engine_event *add_all(struct engine_event *leader, struct engine_cpu *cpu)
{
	if (engine_event_in(leader, cpu))
		return leader;
	ENGINE_LIST_EACH(member, &leader->siblings, struct engine_event, sibling_link)
		if (engine_event_in(member, cpu))
			return member;
	return NULL;
}

int engine_group_schedule_in(struct engine_event *leader, struct engine_cpu *cpu)
{
	struct engine_context *context = leader->context;
	struct tally_engine_pmu *pmu = leader->group_pmu;
	bool together = pmu && pmu->ops->group_start;
	if (together)
		pmu->ops->group_start(pmu);
	struct engine_event *failed = add_all(leader, cpu);
	if (failed || (together && pmu->ops->group_commit(pmu))) {
		undo(leader, failed, cpu, together ? pmu : NULL);
		if (together)
			pmu->ops->group_cancel(pmu);
		return -ENGINE_EAGAIN;
	}
	bool pinned = engine_event_flag(leader, TALLY_ATTR_PINNED);
	engine_list_add_tail(&leader->active_link,
			     pinned ? &context->active_pinned : &context->active_flexible);
	if (engine_event_flag(leader, TALLY_ATTR_EXCLUSIVE) && !leader->software_only)
		leader->held = leader->pmus;
	cpu->exclusive |= leader->held;
	return 0;
}

void engine_group_schedule_out(struct engine_event *leader, struct engine_cpu *cpu)
{
	if (leader->state != ENGINE_EVENT_ACTIVE)
		return;
	engine_event_out(leader, cpu);
	ENGINE_LIST_EACH(member, &leader->siblings, struct engine_event, sibling_link)
		engine_event_out(member, cpu);
}

bool engine_event_fits(const struct engine_event *event, const struct engine_cpu *cpu)
{
	const struct engine_event *leader = event->leader;
	if (event->stranded || event->cgroup_away ||
	    (event->cpu >= 0 && event->cpu != (int)cpu->number))
		return false;
	return !leader->group_pmu || engine_pmu_counts_on(leader->group_pmu, cpu->number);
}

/* --- membership ----------------------------------------------------------- */

static void add_pmu(struct engine_event *leader, struct tally_engine_pmu *pmu)
{
	if (pmu->scope == TALLY_SCOPE_SOFTWARE)
		return;
	leader->software_only = false;
	leader->pmus &= ~ENGINE_PMU_SOFTWARE;
	leader->pmus |= engine_pmu_bit(pmu);
	if (!leader->group_pmu)
		leader->group_pmu = pmu;
}

static void find_pmus(struct engine_event *leader)
{
	leader->software_only = true;
	leader->pmus = ENGINE_PMU_SOFTWARE;
	leader->group_pmu = NULL;
	add_pmu(leader, leader->hw.pmu);
	ENGINE_LIST_EACH(member, &leader->siblings, struct engine_event, sibling_link)
		add_pmu(leader, member->hw.pmu);
}

/* The context's sets of PMUs only grow: they are not updated when the last group of a PMU
 * leaves. */
static void note_pmus(struct engine_event *leader)
{
	struct engine_context *context = leader->context;
	context->pmus |= leader->pmus;
	if (engine_event_flag(leader, TALLY_ATTR_PINNED))
		context->pinned_pmus |= leader->pmus;
}

void engine_group_alone(struct engine_event *event)
{
	event->leader = event;
	event->sibling_count = 0;
	find_pmus(event);
	note_pmus(event);
}

void engine_group_attach(struct engine_event *event)
{
	struct engine_event *leader = event->leader;
	engine_list_add_tail(&event->sibling_link, &leader->siblings);
	leader->sibling_count++;
	leader->group_generation++;
	add_pmu(leader, event->hw.pmu);
	note_pmus(leader);
}

/* Handles a member that wrote to the AUX area of its leader, which has left. */
static void lose_area(struct engine_event *member)
{
	struct engine_cpu *cpu = engine_context_here(member->context);
	if (cpu)
		engine_event_out(member, cpu);
	engine_event_set_state(member, ENGINE_EVENT_ERROR);
}

void engine_group_release(struct engine_event *member)
{
	struct engine_context *context = member->context;
	/* for the last time, while its leader's state still counts */
	engine_event_update_times(member);
	engine_list_remove(&member->sibling_link);
	member->leader->sibling_count--;
	member->leader->group_generation++;
	if (!context) { /* removed before its leader was */
		member->leader = member;
		return;
	}
	engine_group_alone(member);
	engine_queue_insert(member);
	if (engine_event_flag(member, TALLY_ATTR_AUX_OUTPUT))
		lose_area(member);
	if (member->state == ENGINE_EVENT_ACTIVE) {
		struct engine_list *active = &context->active_flexible;
		if (engine_event_flag(member, TALLY_ATTR_PINNED))
			active = &context->active_pinned;
		engine_list_add_tail(&member->active_link, active);
	} else
		/* rotation tries it at the next tick; otherwise it would wait for a switch, and a
		 * CPU's context has none */
		context->rotate |= member->pmus;
}

void engine_group_detach(struct engine_event *event)
{
	struct engine_event *leader = event->leader;
	if (leader != event) {
		engine_list_remove(&event->sibling_link);
		leader->sibling_count--;
		leader->group_generation++;
		event->leader = event;
		if (event->hw.pmu->scope != TALLY_SCOPE_SOFTWARE)
			find_pmus(leader);
		return;
	}
	ENGINE_LIST_EACH(member, &event->siblings, struct engine_event, sibling_link)
		engine_group_release(member);
}
