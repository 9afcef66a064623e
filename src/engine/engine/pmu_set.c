/* Sets of PMUs as 64-bit words, so that scheduling need not walk the PMUs. 62 hardware PMUs have a
 * bit of their own.  All further ones share one bit: they rotate and exclude one another as if they
 * were one PMU, so fewer events may be on than would fit, but nothing is wrong.  All PMUs of
 * SCOPE_SOFTWARE share another bit, since they always have room. */
#include "engine/engine_schedule.h"

void engine_pmu_number(struct tally_engine *engine, struct tally_engine_pmu *pmu)
{
	if (pmu->scope == TALLY_SCOPE_SOFTWARE) {
		pmu->bit = ENGINE_PMU_SOFTWARE;
		return;
	}
	pmu->bit = ENGINE_PMU_OTHERS;
	for (unsigned i = 0; i < sizeof(engine->numbered) / sizeof(engine->numbered[0]); i++)
		if (!engine->numbered[i]) {
			pmu->bit = 1ull << i;
			__atomic_store_n(&engine->numbered[i], pmu, __ATOMIC_RELEASE);
			return;
		}
}

struct forgetting {
	struct engine_context *context;
	uint64_t bit;
};

static void forget(struct engine_event *event, void *argument)
{
	(void)event;
	struct forgetting *forgetting = argument;
	forgetting->context->pmus &= ~forgetting->bit;
	forgetting->context->pinned_pmus &= ~forgetting->bit;
	forgetting->context->rotate &= ~forgetting->bit;
}

void engine_pmu_unnumber(struct tally_engine *engine, struct tally_engine_pmu *pmu)
{
	uint64_t bit = pmu->bit;
	pmu->bit = 0;
	if (!bit || bit >= ENGINE_PMU_SOFTWARE)
		return;
	/* Contexts don't clear a PMU's bit when its last event leaves.  So clear it here, since
	 * another PMU may get the bit. */
	for (unsigned i = 0; i < engine->host.cpus; i++) {
		struct forgetting forgetting = { &engine->cpus[i].context, bit };
		engine_context_call_in(forgetting.context, NULL, forget, &forgetting);
	}
	ENGINE_LIST_EACH(task, &engine->tasks, struct tally_engine_task, link) {
		struct forgetting forgetting = { task->context, bit };
		if (task->context)
			engine_context_call_in(forgetting.context, NULL, forget, &forgetting);
	}
	__atomic_store_n(&engine->numbered[__builtin_ctzll(bit)], NULL, __ATOMIC_RELEASE);
}

uint64_t engine_pmu_bit(const struct tally_engine_pmu *pmu)
{
	if (pmu->scope == TALLY_SCOPE_SOFTWARE)
		return ENGINE_PMU_SOFTWARE;
	if (pmu->bit)
		return pmu->bit;
	return ENGINE_PMU_OTHERS;
}

/* Takes the next hardware PMU out of `set` and returns it; NULL at the end.  PMUs that share a bit
 * stay in the set: `shared` walks them. */
static struct tally_engine_pmu *next_pmu(struct tally_engine *engine, uint64_t *set,
					 struct tally_engine_pmu **shared)
{
	for (uint64_t own; (own = *set & ~(ENGINE_PMU_SOFTWARE | ENGINE_PMU_OTHERS));) {
		struct tally_engine_pmu *pmu = __atomic_load_n(
			&engine->numbered[__builtin_ctzll(own)], __ATOMIC_ACQUIRE);
		*set &= *set - 1;
		if (pmu)
			return pmu;
	}
	if (!(*set & ENGINE_PMU_OTHERS))
		return NULL;
	struct tally_engine_pmu *pmu;
	if (*shared)
		pmu = __atomic_load_n(&(*shared)->next, __ATOMIC_ACQUIRE);
	else
		pmu = __atomic_load_n(&engine->pmus, __ATOMIC_ACQUIRE);
	while (pmu && engine_pmu_bit(pmu) != ENGINE_PMU_OTHERS)
		pmu = __atomic_load_n(&pmu->next, __ATOMIC_ACQUIRE);
	*shared = pmu;
	return pmu;
}

void engine_pmus_disable(struct tally_engine *engine, uint64_t set)
{
	struct tally_engine_pmu *shared = NULL;
	for (struct tally_engine_pmu *pmu; (pmu = next_pmu(engine, &set, &shared));)
		engine_pmu_disable(pmu);
}

void engine_pmus_enable(struct tally_engine *engine, uint64_t set)
{
	struct tally_engine_pmu *shared = NULL;
	for (struct tally_engine_pmu *pmu; (pmu = next_pmu(engine, &set, &shared));)
		engine_pmu_enable(pmu);
}

void engine_pmus_switched(struct tally_engine *engine, uint64_t set, struct tally_engine_task *task,
			  bool in)
{
	struct tally_engine_pmu *shared = NULL;
	for (struct tally_engine_pmu *pmu; (pmu = next_pmu(engine, &set, &shared));)
		if (pmu->ops->switched)
			pmu->ops->switched(pmu, task, in);
}
