/* Running times and events over time: strips for a terminal, trace events for viewers. */
#ifndef TALLY_OUTPUT_TIMELINE_H
#define TALLY_OUTPUT_TIMELINE_H

#include "base/buffer.h"
#include "timeline/activity.h"

struct tally_timeline_view {
	unsigned columns;  /* total width; at least 60 are used */
	unsigned tasks;    /* limit of task rows; the longest running are shown */
	bool cpus_wanted, tasks_wanted;
	bool colours, ascii;
};

/* Returns 0 or -ENOMEM. */
int tally_timeline_text(const struct tally_activity *activity,
			const struct tally_timeline_view *view, struct tally_buffer *out);

/* Writes Trace Event Format: one track for each CPU with the tasks that ran on it, and one for each
 * task with its marks. Returns 0 or -ENOMEM. */
int tally_timeline_trace(const struct tally_activity *activity, struct tally_buffer *out);

#endif
