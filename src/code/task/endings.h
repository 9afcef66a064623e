/* Forgets tasks that have ended, for a recorder that runs for hours and for readers of its
 * recordings.
 *
 * A task's last samples may be read after its EXIT, so it stays known until the pass after the
 * next.  A process has ended when its leader and all threads that began before it have ended.
 */
#ifndef TALLY_TASK_ENDINGS_H
#define TALLY_TASK_ENDINGS_H

#include "task/tasks.h"

#include <stdbool.h>

struct tally_ending {
	uint32_t pid, tid;
	uint64_t number; /* `pending` has the same number while the ending is valid */
	bool is_last;    /* the process ended with this task */
};

/* Zero-initialised is empty. */
struct tally_endings {
	struct { struct tally_ending *items; size_t count, capacity; } queue; /* oldest first */
	size_t old;                /* how many of `queue` are from before the last pass */
	/* pid << 32 | tid → number of the ending; removed when a new task has these ids */
	struct tally_map pending;
	/* pid → number of threads besides the leader, and whether the leader has ended
	 * (endings.c) */
	struct tally_map living;
	uint64_t number;
	bool keeps_threads; /* set by users of thread indices: forget only processes */
};

/* Takes FORK, COMM, MMAP and EXIT records, after `tasks` did.  Returns 0 or -ENOMEM. */
int tally_endings_record(struct tally_endings *endings, const struct tally_record *record);

/* Makes `tasks` forget the tasks that ended before the last pass.  Call it when all samples up to
 * this moment have been read. */
void tally_endings_pass(struct tally_endings *endings, struct tally_tasks *tasks);

void tally_endings_release(struct tally_endings *endings);

#endif
