/* PMUs: their registration, and which of them counts an event (H2). */
#include "engine/engine_state.h"

#define EXCLUDES (TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV | \
		  TALLY_ATTR_EXCLUDE_IDLE | TALLY_ATTR_EXCLUDE_HOST | TALLY_ATTR_EXCLUDE_GUEST)
/* the upper half of config for types HARDWARE and HW_CACHE: the type of one of several core PMUs */
#define EXTENDED_TYPE_SHIFT 32

static bool same_name(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static struct tally_engine_pmu *pmu_of_type(struct tally_engine *engine, uint32_t type)
{
	struct tally_engine_pmu *pmu = engine->pmus;
	while (pmu && pmu->type != type)
		pmu = pmu->next;
	return pmu;
}

/* Type 0 is TYPE_HARDWARE, which no PMU can have as its own: here it asks for a new number. */
static int add_pmu(struct tally_engine *engine, struct tally_engine_pmu *pmu)
{
	struct tally_engine_pmu **last = &engine->pmus;
	for (; *last; last = &(*last)->next)
		if (same_name((*last)->name, pmu->name) ||
		    (pmu->type && (*last)->type == pmu->type))
			return -ENGINE_EEXIST;
	while (!pmu->type) {
		if (!pmu_of_type(engine, engine->next_type))
			pmu->type = engine->next_type;
		engine->next_type++;
	}
	pmu->event_count = 0;
	pmu->next = NULL;
	engine_pmu_number(engine, pmu);
	__atomic_store_n(last, pmu, __ATOMIC_RELEASE); /* pairs with pmu_set.c's walk */
	return 0;
}

int tally_engine_pmu_register(struct tally_engine *engine, struct tally_engine_pmu *pmu)
{
	engine_enter(engine);
	int error = add_pmu(engine, pmu);
	engine_leave(engine);
	return error;
}

static int drop_pmu(struct tally_engine *engine, struct tally_engine_pmu *pmu)
{
	struct tally_engine_pmu **at = &engine->pmus;
	while (*at && *at != pmu)
		at = &(*at)->next;
	if (!*at)
		return -ENGINE_ENOENT;
	if (pmu->event_count)
		return -ENGINE_EBUSY;
	*at = pmu->next;
	engine_pmu_unnumber(engine, pmu);
	return 0;
}

int tally_engine_pmu_unregister(struct tally_engine *engine, struct tally_engine_pmu *pmu)
{
	engine_enter(engine);
	int error = drop_pmu(engine, pmu);
	engine_leave(engine);
	return error;
}

const struct tally_engine_pmu *tally_engine_pmu_next(struct tally_engine *engine,
						     const struct tally_engine_pmu *pmu)
{
	if (pmu)
		return pmu->next;
	return engine->pmus;
}

/* --- who counts it -------------------------------------------------------- */

bool engine_pmu_counts_on(const struct tally_engine_pmu *pmu, unsigned cpu)
{
	if (!pmu->cpus)
		return true;
	return cpu / 64 < pmu->cpu_words && (pmu->cpus[cpu / 64] >> (cpu % 64) & 1);
}

static int ask_pmu(struct engine_event *event, struct tally_engine_pmu *pmu)
{
	const struct tally_attr *attr = &event->attr;
	if (pmu->capabilities & TALLY_PMU_HETEROGENEOUS && event->cpu >= 0 &&
	    !engine_pmu_counts_on(pmu, (unsigned)event->cpu))
		return -ENGINE_ENOENT;
	event->hw.pmu = pmu;
	int error = pmu->ops->event_init(pmu, &event->hw);
	if (error) {
		event->hw.pmu = NULL;
		return error;
	}
	pmu->event_count++;
	if (attr->sample_type & TALLY_SAMPLE_BRANCH_STACK &&
	    !(pmu->capabilities & TALLY_PMU_BRANCH_STACK))
		error = -ENGINE_EOPNOTSUPP;
	else if (attr->flags & EXCLUDES && pmu->capabilities & TALLY_PMU_NO_EXCLUDE)
		error = -ENGINE_EINVAL;
	else if (pmu->scope == TALLY_SCOPE_CPU_ONLY && event->task)
		error = -ENGINE_EINVAL;
	if (error)
		engine_pmu_release_event(event);
	return error;
}

void engine_pmu_release_event(struct engine_event *event)
{
	struct tally_engine_pmu *pmu = event->hw.pmu;
	if (pmu->ops->event_release)
		pmu->ops->event_release(&event->hw);
	pmu->event_count--;
	event->hw.pmu = NULL;
}

/* HARDWARE or HW_CACHE with the type of a PMU in the upper half of config: no other PMU may take
 * it. */
static int ask_extended(struct engine_event *event, uint32_t type)
{
	struct tally_engine_pmu *pmu = pmu_of_type(event->engine, type);
	if (!pmu || !(pmu->capabilities & TALLY_PMU_GENERIC))
		return -ENGINE_ENOENT;
	event->attr.config &= UINT32_MAX;
	return ask_pmu(event, pmu);
}

int engine_pmu_init_event(struct engine_event *event)
{
	const struct tally_attr *attr = &event->attr;
	bool alias = attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE;
	struct tally_engine_pmu *own = attr->type ? pmu_of_type(event->engine, attr->type) : NULL;
	if (event->parent)
		return ask_pmu(event, event->parent->hw.pmu);
	if (alias && attr->config >> EXTENDED_TYPE_SHIFT)
		return ask_extended(event, (uint32_t)(attr->config >> EXTENDED_TYPE_SHIFT));
	int error = own ? ask_pmu(event, own) : -ENGINE_ENOENT;
	for (struct tally_engine_pmu *pmu = event->engine->pmus; pmu && error == -ENGINE_ENOENT;
	     pmu = pmu->next) {
		bool generic = pmu->capabilities & TALLY_PMU_GENERIC;
		if (pmu != own && (generic || !(alias || attr->type == TALLY_TYPE_RAW)))
			error = ask_pmu(event, pmu);
	}
	return error;
}

/* --- calls to PMUs, and from them ----------------------------------------- */

void engine_pmu_disable(struct tally_engine_pmu *pmu)
{
	if (pmu->ops->disable)
		pmu->ops->disable(pmu);
}

void engine_pmu_enable(struct tally_engine_pmu *pmu)
{
	if (pmu->ops->enable)
		pmu->ops->enable(pmu);
}

struct tally_pmu_event *tally_engine_group_first(struct tally_pmu_event *event)
{
	return &engine_event_of(event)->leader->hw;
}

/* A member that is just being opened is not linked yet: it comes last. */
struct tally_pmu_event *tally_engine_group_next(struct tally_pmu_event *event,
						struct tally_pmu_event *member)
{
	struct engine_event *self = engine_event_of(event), *at = engine_event_of(member),
			    *leader = self->leader;
	bool joining = self != leader && engine_list_empty(&self->sibling_link);
	if (at == self && joining)
		return NULL;
	struct engine_list *next = at->sibling_link.next;
	if (at == leader)
		next = leader->siblings.next;
	if (next != &leader->siblings)
		return &ENGINE_CONTAINER(next, struct engine_event, sibling_link)->hw;
	if (joining)
		return &self->hw;
	return NULL;
}
