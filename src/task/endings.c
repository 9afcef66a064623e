#include "task/endings.h"

#include "base/vector.h"

#include <errno.h>
#include <string.h>

static uint64_t key_of(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

/* A new process, or a thread more. */
static int begin(struct tally_endings *endings, const struct tally_record_task *task)
{
	uint64_t *living = tally_map_put(&endings->living, task->pid, NULL);
	if (!living)
		return -ENOMEM;
	*living = task->pid == task->tid ? 1 : *living + 1;
	tally_map_remove(&endings->pending, key_of(task->pid, task->tid));
	return 0;
}

/* Told twice, it counts once. */
static int end(struct tally_endings *endings, const struct tally_record_task *task)
{
	bool added = false;
	struct tally_ending ending = { task->pid, task->tid, endings->number + 1 };
	uint64_t *living = tally_map_get(&endings->living, task->pid);
	uint64_t *pending = tally_map_put(&endings->pending, key_of(task->pid, task->tid), &added);
	if (pending && !added)
		return 0;
	if (!pending || tally_vector_push(&endings->queue, ending) < 0)
		return -ENOMEM;
	*pending = ++endings->number;
	if (living && *living)
		--*living;
	return 0;
}

int tally_endings_record(struct tally_endings *endings, const struct tally_record *record)
{
	switch (record->header.type) {
	case TALLY_RECORD_FORK: return begin(endings, &record->task);
	case TALLY_RECORD_EXIT: return end(endings, &record->task);
	case TALLY_RECORD_COMM: /* execve(2) in another thread: who has the number now is alive */
		tally_map_remove(&endings->pending, key_of(record->comm.pid, record->comm.tid));
		return 0;
	default: return 0;
	}
}

void tally_endings_pass(struct tally_endings *endings, struct tally_tasks *tasks)
{
	for (size_t i = 0; i < endings->old; i++) {
		const struct tally_ending *ending = &endings->queue.items[i];
		uint64_t key = key_of(ending->pid, ending->tid), *pending = tally_map_get(&endings->pending, key);
		if (!pending || *pending != ending->number)
			continue;
		tally_map_remove(&endings->pending, key);
		tally_tasks_forget_thread(tasks, ending->pid, ending->tid);
		uint64_t *living = tally_map_get(&endings->living, ending->pid);
		if (living && *living)
			continue;
		tally_map_remove(&endings->living, ending->pid);
		tally_tasks_forget_process(tasks, ending->pid);
	}
	size_t left = endings->queue.count - endings->old;
	if (endings->old)
		memmove(endings->queue.items, endings->queue.items + endings->old, left * sizeof(*endings->queue.items));
	endings->queue.count = endings->old = left;
}

void tally_endings_release(struct tally_endings *endings)
{
	tally_vector_release(&endings->queue);
	tally_map_release(&endings->pending);
	tally_map_release(&endings->living);
}
