/* The simulated machine, the scenario that plays on it, and the provider of its events. */
#include "simulation/simulation_state.h"

#include "base/extremes.h"
#include "provider/engine_provider.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int simulation_stage_init(struct simulation_stage *stage)
{
	stage->machine = sim_new(&stage->scenario->machine);
	if (!stage->machine ||
	    scenario_play_init(&stage->play, stage->scenario, stage->machine) < 0)
		return simulation_out_of_memory(stage);
	stage->is_playing = true;
	stage->provider = tally_provider_engine_new(sim_engine(stage->machine), "sim",
						    SIM_PAGE_SIZE);
	if (!stage->provider)
		return simulation_out_of_memory(stage);
	int code = stage->provider->ops->catalogue(stage->provider, &stage->catalogue, stage->err);
	stage->has_catalogue = !code;
	return code;
}

void simulation_stage_release(struct simulation_stage *stage)
{
	if (stage->machine)
		sim_free(stage->machine);
	if (stage->is_playing)
		scenario_play_release(&stage->play);
	if (stage->provider)
		stage->provider->ops->release(stage->provider);
	if (stage->has_catalogue)
		tally_catalogue_release(&stage->catalogue);
	tally_arena_release(&stage->arena);
}

void simulation_report(struct simulation_stage *stage, const char *format, ...)
{
	char text[512];
	va_list args;
	if (!stage->options->on_message)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	uint64_t start = stage->play.start_ns, since_start = 0;
	if (start)
		since_start = tally_saturating_sub_u64(sim_now(stage->machine), start);
	stage->options->on_message(stage->options->context, since_start, text);
}

int simulation_out_of_memory(struct simulation_stage *stage)
{
	return tally_error_set(stage->err, -ENOMEM, "out of memory");
}
