/* Stands in for files that are not written yet. */
#include "process/process_agent.h"

#include <stdio.h>
#include <stdlib.h>

#define WEAK __attribute__((weak))

WEAK bool process_environment_take(void)
{
	const char *plan = getenv("TALLY_PLAN");
	if (plan)
		snprintf(process_agent.plan_name, sizeof(process_agent.plan_name), "%s", plan);
	return plan;
}

WEAK void process_signals_start(void)
{
}

WEAK void process_maps_tell(struct process_thread *thread, bool all)
{
	(void)thread, (void)all;
}

WEAK void process_interface_forked(void)
{
}

WEAK void process_interface_thread_end(struct process_thread *thread)
{
	(void)thread;
}
