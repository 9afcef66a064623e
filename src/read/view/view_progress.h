/* Shows on a terminal how far a view is. */
#ifndef TALLY_VIEW_PROGRESS_H
#define TALLY_VIEW_PROGRESS_H

#include "recording/recording.h"

#include <stdbool.h>
#include <stdint.h>

/* Shows on a terminal how much of a recording has been read, if reading takes longer than a
 * second. */
struct tally_view_progress {
	double started, shown; /* seconds */
	bool is_terminal, visible;
};
/* Only one at a time. Erases the line when a signal ends the program. */
void tally_view_progress_start(struct tally_view_progress *progress);
void tally_view_progress(void *progress, double share);
/* Shows progress by the position of a record; cheap enough to call for each. */
void tally_view_progress_record(struct tally_view_progress *progress,
				const struct tally_recording *recording,
				const struct tally_raw_record *raw);
void tally_view_progress_end(struct tally_view_progress *progress);

/* Shows how fetching a debug file proceeds: tally_name_sources.fetching.  From the first file to the
 * last, SIGINT is blocked; Ctrl-C ends only the fetching. */
bool tally_view_fetching(void *context, const char *object, uint64_t bytes, uint64_t total);

#endif
