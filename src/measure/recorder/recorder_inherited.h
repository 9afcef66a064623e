/* The tasks that inherited events while events were being opened. */
#ifndef TALLY_RECORDER_INHERITED_H
#define TALLY_RECORDER_INHERITED_H

#include "base/map.h"
#include "recorder/recorder_rings.h"

struct tally_recorder_inherited {
	const struct tally_recorder_rings *rings;
	/* The maps' keys combine a task and a ring. */
	struct tally_map opened_ns; /* time when the task's events for this ring were open */
	struct tally_map from;      /* the task has inherited its events for this ring */
	struct {
		struct tally_record_task *items;
		size_t count, capacity;
	} forks;
	/* by side ring: how far its forks were read; in the session's arena */
	uint64_t *read_to;
};

/* Notes that the task's events for this ring are open.  Returns 0 or -ENOMEM. */
int tally_recorder_note_opened(struct tally_recorder_inherited *inherited, pid_t tid, size_t ring);
/* Finds the tasks that were created by such tasks.  Returns 0 or -ENOMEM. */
int tally_recorder_look_for_inherited(struct tally_recorder_inherited *inherited,
				      const struct tally_attr *side_band);
bool tally_recorder_has_inherited(const struct tally_recorder_inherited *inherited, pid_t tid,
				  size_t ring);
bool tally_recorder_has_inherited_all(const struct tally_recorder_inherited *inherited, pid_t tid);
void tally_recorder_inherited_release(struct tally_recorder_inherited *inherited);

#endif
