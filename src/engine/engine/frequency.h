/* The period of events with attr.freq, for overflow.c. */
#ifndef TALLY_ENGINE_FREQUENCY_H
#define TALLY_ENGINE_FREQUENCY_H

#include "engine/engine_state.h"

/* Handles one overflow: sets the next period. [hit] */
void engine_frequency_overflow(struct engine_event *event);
void engine_frequency_tick(struct engine_event *event);     /* active here, not throttled. [cpu] */

#endif
