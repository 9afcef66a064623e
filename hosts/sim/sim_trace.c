/* The machine's own tracepoints. */
#include "sim/sim_state.h"

void sim_trace_switch(struct sim_machine *machine, struct sim_task *previous, struct sim_task *next)
{
	(void)machine, (void)previous, (void)next;
}
