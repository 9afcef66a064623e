/* The pool: entries of events and threads in memory that all processes share. */
#include "process/process_interface.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct interface_pool *interface_pool;

int interface_pool_make(void)
{
	if (interface_pool)
		return 0;
	long map = process_call(SYS_mmap, NULL, sizeof(*interface_pool), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map < 0 && map > -4096)
		return (int)map;
	interface_pool = (struct interface_pool *)map;
	return 0;
}

struct interface_event *interface_event_new(void)
{
	struct interface_pool *pool = interface_pool;
	for (unsigned i = 0; i < INTERFACE_EVENTS; i++) {
		struct interface_event *event = &pool->events[i];
		uint32_t free = 0;
		if (__atomic_load_n(&event->used, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&event->used, &free, 1, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			continue;
		uint32_t wakes = event->wakes;
		memset(event, 0, sizeof(*event));
		event->wakes = wakes;
		event->used = 1;
		event->id = 1 + __atomic_fetch_add(&pool->next_id, 1, __ATOMIC_SEQ_CST);
		event->order = __atomic_fetch_add(&pool->next_order, 1, __ATOMIC_SEQ_CST);
		return event;
	}
	return NULL;
}

void interface_event_free(struct interface_event *event)
{
	__atomic_store_n(&event->used, 0, __ATOMIC_SEQ_CST);
}

struct interface_task *interface_task_find(int32_t tid)
{
	for (unsigned i = 0; i < INTERFACE_TASKS; i++)
		if (__atomic_load_n(&interface_pool->tasks[i].tid, __ATOMIC_RELAXED) == tid)
			return &interface_pool->tasks[i];
	return NULL;
}

struct interface_task *interface_task_new(int32_t pid, int32_t tid)
{
	struct interface_task *task = interface_task_find(tid);
	if (!task)
		for (unsigned i = 0; i < INTERFACE_TASKS && !task; i++) {
			int32_t free = 0;
			if (__atomic_compare_exchange_n(&interface_pool->tasks[i].tid, &free, tid,
							false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
				task = &interface_pool->tasks[i];
		}
	if (!task)
		return NULL;
	task->pid = pid;
	__atomic_store_n(&task->state, INTERFACE_IDLE, __ATOMIC_SEQ_CST);
	__atomic_store_n(&task->asker, 0, __ATOMIC_SEQ_CST);
	return task;
}
