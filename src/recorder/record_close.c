#include "session/close_apart.h"
#include "recorder/recorder_state.h"

#include <stdlib.h>
#include <unistd.h>

static bool takes_long(const struct tally_recorder *recorder)
{
	size_t count = 0;
	for (size_t i = 0; i + 1 < recorder->source_count; i++)
		count += recorder->sources[i].event->kind == TALLY_EVENT_TRACEPOINT;
	return count >= TALLY_CLOSE_APART_MIN && recorder->provider == tally_provider_kernel() &&
	       recorder->handles.count;
}

void tally_recorder_close_apart(struct tally_recorder *recorder)
{
	if (!recorder || !takes_long(recorder))
		return;
	/* The kernel's handles are descriptors. */
	int *events = malloc(recorder->handles.count * sizeof(*events));
	for (size_t i = 0; events && i < recorder->handles.count; i++)
		events[i] = recorder->handles.items[i].handle;
	int gate = events ? tally_close_apart(events, recorder->handles.count) : -1;
	tally_recorder_close(recorder);
	if (gate >= 0)
		close(gate);
	free(events);
}
