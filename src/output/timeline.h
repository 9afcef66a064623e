/* What ran and what happened over time: strips for a terminal, trace events for a viewer. */
#ifndef TALLY_OUTPUT_TIMELINE_H
#define TALLY_OUTPUT_TIMELINE_H

#include "base/buffer.h"
#include "profile/activity.h"

struct tally_timeline_view {
	unsigned columns;  /* of the whole; at least 60 are used */
	unsigned tasks;    /* at most so many rows of tasks: those that ran longest */
	bool cpus_wanted, tasks_wanted;
	bool colours, ascii;
};

/* 0 or -ENOMEM. */
int tally_timeline_text(const struct tally_activity *activity,
			const struct tally_timeline_view *view, struct tally_buffer *out);

/* Trace Event Format: a track for each CPU with who ran on it, one for each task with its marks.  0
 * or -ENOMEM. */
int tally_timeline_trace(const struct tally_activity *activity, struct tally_buffer *out);

#endif
