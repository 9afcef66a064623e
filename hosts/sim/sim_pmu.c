/* The PMU models that a machine may have. */
#include "sim/sim_state.h"

#include <string.h>

static const struct sim_pmu_model none = { .name = "none" };

static const struct sim_pmu_model *const models[] = {
	&none, &sim_pmu_x86, &sim_pmu_x86_8, &sim_pmu_arm64, &sim_pmu_arm64_32, &sim_pmu_big_little,
};

const struct sim_pmu_model *sim_pmu_model(const char *name)
{
	for (unsigned i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (strcmp(models[i]->name, name) == 0)
			return models[i];
	return NULL;
}

bool sim_metric_of(const struct sim_machine *machine, uint32_t type, uint64_t config,
		   enum sim_metric *metric)
{
	return machine->model->metric_of && machine->model->metric_of(type, config, metric);
}
