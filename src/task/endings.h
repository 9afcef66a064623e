/* Tasks that have ended, forgotten: for who follows a machine for hours (a recorder), or reads what
 * it wrote.
 *
 * A task's last samples may be read after its EXIT, so that it is known until the pass after the
 * next.  A process has ended when its leader has, and all threads that began before it.
 */
#ifndef TALLY_TASK_ENDINGS_H
#define TALLY_TASK_ENDINGS_H

#include "task/tasks.h"

#include <stdbool.h>

struct tally_ending {
	uint32_t pid, tid;
	uint64_t number; /* in `pending` while it holds */
	bool is_last;    /* the process ended with it */
};

/* Zero-initialised is empty. */
struct tally_endings {
	struct { struct tally_ending *items; size_t count, capacity; } queue; /* oldest first */
	size_t old;                /* of these: before the last pass */
	/* pid << 32 | tid → number of the ending; removed by a new task of these */
	struct tally_map pending;
	/* pid → threads besides the leader, and whether that has ended (endings.c) */
	struct tally_map living;
	uint64_t number;
	bool keeps_threads; /* set by who has their indices: processes alone are forgotten */
};

/* Takes FORK, COMM, MMAP and EXIT, after the tasks have.  0 or -ENOMEM. */
int tally_endings_record(struct tally_endings *endings, const struct tally_record *record);

/* After all samples up to this moment have been read: `tasks` forgets who ended before the last
 * pass. */
void tally_endings_pass(struct tally_endings *endings, struct tally_tasks *tasks);

void tally_endings_release(struct tally_endings *endings);

#endif
