#include "command/recording_path.h"

#include <unistd.h>

const char *tally_recording_path(const char *given)
{
	if (given)
		return given;
	return access("tally.data", R_OK) && !access("perf.data", R_OK) ? "perf.data" : "tally.data";
}
