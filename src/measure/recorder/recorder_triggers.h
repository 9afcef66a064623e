/* Events whose hits start the next file (--switch-output-event). */
#ifndef TALLY_RECORDER_TRIGGERS_H
#define TALLY_RECORDER_TRIGGERS_H

#include "recorder/recorder_session.h"

struct tally_recorder_triggers {
	struct tally_recorder_session *session;
	struct tally_ring *rings; /* by CPU of the target */
	size_t count;
	struct {
		int *items;
		size_t count, capacity;
	} handles;
};

/* Opens options.switch_events. */
int tally_recorder_open_triggers(struct tally_recorder_triggers *triggers, struct tally_error *err);
/* True if one was hit since the last call. */
bool tally_recorder_triggered(struct tally_recorder_triggers *triggers);
void tally_recorder_close_triggers(struct tally_recorder_triggers *triggers);

#endif
