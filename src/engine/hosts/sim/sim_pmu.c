/* The PMU models that a machine may have, and their architectures. */
#include "sim/sim_state.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

const struct sim_architecture sim_x86_64 = {
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.sp_register = 7,
	.pc_register = 8,
	.register_mask = 0xff0fff, /* all but ds, es, fs, gs */
};
const struct sim_architecture sim_aarch64 = {
	.name = "aarch64",
	.elf_machine = EM_AARCH64,
	.sp_register = 31,
	.pc_register = 32,
	.register_mask = 0x1ffffffff, /* x0 to pc */
};

const struct sim_pmu_model sim_pmu_none = { .name = "none", .architecture = &sim_x86_64 };

#define ADDRESS(name) &sim_pmu_##name,
static const struct sim_pmu_model *const models[] = { SIM_PMU_MODELS(ADDRESS) };
enum { MODELS = sizeof(models) / sizeof(models[0]) };

const struct sim_pmu_model *sim_pmu_model(const char *name)
{
	for (unsigned i = 0; i < MODELS; i++)
		if (strcmp(models[i]->name, name) == 0)
			return models[i];
	return NULL;
}

void sim_pmu_describe(char *text, size_t size)
{
	size_t length = (size_t)snprintf(text, size, "a model: %s", models[0]->name);
	for (unsigned i = 1; i < MODELS && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%s",
					   i + 1 < MODELS ? ", " : " or ", models[i]->name);
}

const struct sim_architecture *sim_architecture_of(const char *model)
{
	const struct sim_pmu_model *found = sim_pmu_model(model);
	if (found)
		return found->architecture;
	return NULL;
}

bool sim_metric_of(const struct sim_machine *machine, uint32_t type, uint64_t config,
		   enum sim_metric *metric)
{
	return machine->model->metric_of && machine->model->metric_of(type, config, metric);
}
