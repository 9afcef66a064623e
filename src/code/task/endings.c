/* Counts the living threads of each process from FORK and EXIT records.  Ended tasks wait in a
 * queue; a later record of such a task removes it from `pending`, and its entry in the queue is
 * then ignored. */
#include "task/task.h"

#include "base/vector.h"

#include <errno.h>
#include <string.h>

static uint64_t key_of(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

/* Values in `living`: THREAD times the number of threads besides the leader; LEADER_ENDED is added
 * once the leader has ended. */
enum { LEADER_ENDED = 1, THREAD = 2 };

/* Counts a new process, or a new thread of one. */
static int begin(struct tally_endings *endings, const struct tally_record_task *task)
{
	uint64_t *living = tally_map_put(&endings->living, task->pid, NULL);
	if (!living)
		return -ENOMEM;
	if (task->pid == task->tid)
		*living = 0;
	else
		*living += THREAD;
	tally_map_remove(&endings->pending, key_of(task->pid, task->tid));
	return 0;
}

/* The task is alive after all, since a record came from it.  After an execve(2) in another thread,
 * that thread is the leader and the only one left. */
static void revive(struct tally_endings *endings, uint32_t pid, uint32_t tid, bool is_exec)
{
	uint64_t *living = NULL;
	if (pid == tid)
		living = tally_map_get(&endings->living, pid);
	tally_map_remove(&endings->pending, key_of(pid, tid));
	if (living)
		*living = is_exec ? 0 : *living & ~(uint64_t)LEADER_ENDED;
}

/* Counts a task out.  Returns 1 if its process has ended with it, 0, or -ENOMEM. */
static int count_out(struct tally_endings *endings, const struct tally_record_task *task)
{
	bool is_leader = task->pid == task->tid;
	uint64_t *living;
	if (is_leader) {
		living = tally_map_put(&endings->living, task->pid, NULL);
		if (!living)
			return -ENOMEM;
		*living |= LEADER_ENDED;
	} else {
		living = tally_map_get(&endings->living, task->pid);
		if (!living)
			return 0;
		if (*living >= THREAD)
			*living -= THREAD;
	}
	return *living == LEADER_ENDED;
}

/* Notes an ending.  A second EXIT of the same task is ignored. */
static int end(struct tally_endings *endings, const struct tally_record_task *task)
{
	bool added = false;
	uint64_t *pending = tally_map_put(&endings->pending, key_of(task->pid, task->tid), &added);
	if (!pending)
		return -ENOMEM;
	if (!added)
		return 0;
	int is_last = count_out(endings, task);
	struct tally_ending ending = { task->pid, task->tid, endings->number + 1, is_last };
	if (is_last < 0 || tally_vector_push(&endings->queue, ending) < 0)
		return -ENOMEM;
	*pending = ++endings->number;
	return 0;
}

int tally_endings_record(struct tally_endings *endings, const struct tally_record *record)
{
	switch (record->header.type) {
	case TALLY_RECORD_FORK: return begin(endings, &record->task);
	case TALLY_RECORD_EXIT: return end(endings, &record->task);
	case TALLY_RECORD_COMM:
		revive(endings, record->comm.pid, record->comm.tid,
		       record->header.misc & TALLY_MISC_COMM_EXEC);
		return 0;
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2:
		revive(endings, record->mmap.pid, record->mmap.tid, false);
		return 0;
	default: return 0;
	}
}

void tally_endings_pass(struct tally_endings *endings, struct tally_tasks *tasks)
{
	for (size_t i = 0; i < endings->old; i++) {
		const struct tally_ending *ending = &endings->queue.items[i];
		uint64_t key = key_of(ending->pid, ending->tid),
			 *pending = tally_map_get(&endings->pending, key);
		if (!pending || *pending != ending->number)
			continue;
		tally_map_remove(&endings->pending, key);
		if (!endings->keeps_threads)
			tally_tasks_forget_thread(tasks, ending->pid, ending->tid);
		const uint64_t *living = tally_map_get(&endings->living, ending->pid);
		if (!ending->is_last || !living || *living != LEADER_ENDED)
			continue;
		tally_map_remove(&endings->living, ending->pid);
		tally_tasks_forget_process(tasks, ending->pid);
	}
	size_t left = endings->queue.count - endings->old;
	if (endings->old)
		memmove(endings->queue.items, endings->queue.items + endings->old,
			left * sizeof(*endings->queue.items));
	endings->queue.count = endings->old = left;
}

void tally_endings_release(struct tally_endings *endings)
{
	tally_vector_release(&endings->queue);
	tally_map_release(&endings->pending);
	tally_map_release(&endings->living);
}
