/* One run of the recorder, as all its parts see it: what is recorded, with which options, the
 * command that was started, and the counts so far. */
#ifndef TALLY_RECORDER_SESSION_H
#define TALLY_RECORDER_SESSION_H

#include "base/arena.h"
#include "recorder/recorder.h"

#include <sys/resource.h>

struct tally_recorder_session {
	struct tally_provider *provider;
	struct tally_target *target;
	struct tally_recorder_options options;
	struct tally_spawn *spawn;
	struct tally_buffer *notes; /* lines for the user, while opening */
	struct tally_arena arena;
	uint64_t start_ns;
	struct tally_recorder_status status;
	int wait_status; /* the command's, once it has ended */
	struct rusage command_used; /* including its children that were waited for */
	bool command_ended;
};

#endif
