/* A text is a scenario whose references are valid, or an error whose position is in the text. */
#include "fuzz.h"

#include "sim/scenario.h"

#include <stdlib.h>
#include <string.h>

static bool is_place(int number, unsigned count)
{
	return number == SCENARIO_NONE || (number >= 0 && (unsigned)number < count);
}

static void check_step(const struct scenario *scenario, const struct scenario_program *program,
		       unsigned at)
{
	const struct scenario_step *step = &program->steps[at];
	require(is_place(step->mix, scenario->mix_count) &&
		is_place(step->function, scenario->function_count));
	require(is_place(step->from, scenario->function_count) &&
		is_place(step->program, scenario->program_count));
	require(is_place(step->cpu, scenario->machine.cpus));
	if (step->kind == SCENARIO_REPEAT)
		require(step->other > at && program->steps[step->other].other == at &&
			step->amount > 0);
	if (step->kind == SCENARIO_FORK || step->kind == SCENARIO_THREAD)
		require(step->program >= 0 && !scenario->programs[step->program].is_task);
	if (step->kind == SCENARIO_RUN || step->kind == SCENARIO_GUEST)
		require(step->mix >= 0 && step->function >= 0 && (step->amount || step->ns));
}

static void check(const struct scenario *scenario)
{
	require(scenario->machine.cpus > 0 && scenario->stop_ns > 0);
	for (unsigned i = 0; i < scenario->mix_count; i++)
		require(scenario->mixes[i].per_kilo[SIM_CYCLES] > 0);
	for (unsigned i = 0; i < scenario->function_count; i++)
		require(scenario->functions[i].caller < (int)i &&
			scenario->functions[i].size >= 64);
	for (unsigned i = 0; i < scenario->program_count; i++)
		for (unsigned j = 0; j < scenario->programs[i].step_count; j++)
			check_step(scenario, &scenario->programs[i], j);
	for (unsigned i = 0; i < scenario->part_count; i++) {
		const struct scenario_part *part = &scenario->parts[i];
		require(part->text && is_place(part->program, scenario->program_count));
		require(part->program < 0 || scenario->programs[part->program].is_task);
		require(part->kind != SCENARIO_SAMPLE ||
			(part->rate && part->pages && part->read_every_ns));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct scenario *scenario;
	struct scenario_error error = { 0 };
	unsigned lines = 1;
	for (size_t i = 0; i < size; i++)
		lines += bytes[i] == '\n';
	int code = scenario_parse((const char *)bytes, size, &scenario, &error);
	if (code == -12)
		return 0;
	require(code == 0 || code == -22);
	if (!code)
		check(scenario);
	else
		require(error.message[0] && error.place.line && error.place.line <= lines + 1 &&
			error.place.column);
	scenario_free(scenario);
	return 0;
}
