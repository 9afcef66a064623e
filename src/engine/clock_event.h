/* The two clocks among the software events, for software.c. */
#ifndef TALLY_ENGINE_CLOCK_EVENT_H
#define TALLY_ENGINE_CLOCK_EVENT_H

#include "engine/engine_state.h"

static inline bool engine_is_clock(const struct tally_attr *attr)
{
	return attr->config == TALLY_SW_CPU_CLOCK || attr->config == TALLY_SW_TASK_CLOCK;
}

void engine_clock_init(struct engine_event *event); /* when it is opened */
void engine_clock_start(struct engine_event *event);
void engine_clock_stop(struct engine_event *event);
void engine_clock_read(struct engine_event *event);

#endif
