/* The pool: entries of events and threads in memory that all processes share. */
#include "process/process_interface.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

struct interface_pool *interface_pool;

/* In the plan's file the pool outlives programs.  A process whose files are limited must not make
 * it longer: that would be a signal. */
void process_interface_map(int fd)
{
	const uint64_t size = TALLY_PLAN_INTERFACE + sizeof(*interface_pool);
	struct rlimit limit = { 0 };
	struct stat about;
	if (process_call(SYS_fstat, fd, &about))
		return;
	if ((uint64_t)about.st_size < size &&
	    (process_call(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) ||
	     limit.rlim_cur != RLIM_INFINITY || process_call(SYS_ftruncate, fd, size)))
		return;
	long map = process_call(SYS_mmap, NULL, sizeof(*interface_pool), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_NORESERVE, fd, TALLY_PLAN_INTERFACE);
	if (map < 0 && map > -4096)
		return;
	process_call(SYS_madvise, map, sizeof(*interface_pool), MADV_DONTDUMP);
	interface_pool = (struct interface_pool *)map;
}

/* Several threads may open the first event at the same time: the pool of the first one counts. */
int interface_pool_make(void)
{
	struct interface_pool *none = NULL;
	if (__atomic_load_n(&interface_pool, __ATOMIC_ACQUIRE))
		return 0;
	long map = process_call(SYS_mmap, NULL, sizeof(*interface_pool), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map < 0 && map > -4096)
		return (int)map;
	if (!__atomic_compare_exchange_n(&interface_pool, &none, (struct interface_pool *)map,
					 false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		process_call(SYS_munmap, map, sizeof(*interface_pool));
	return 0;
}

static bool has_ended(int32_t pid)
{
	return process_call(SYS_kill, pid, 0) == -ESRCH || interface_check_state(pid) == -ESRCH;
}

/* Killed processes leave their events behind.  An inherited event goes with its original. */
static bool is_abandoned(const struct interface_event *event)
{
	if (!interface_is_used(event))
		return false;
	if (event->parent)
		return !interface_is_heir(event, &interface_pool->events[event->parent - 1]);
	uint32_t ended = 0;
	for (unsigned i = 0; i < sizeof(event->holder_pids) / sizeof(event->holder_pids[0]); i++) {
		int32_t pid = __atomic_load_n(&event->holder_pids[i], __ATOMIC_SEQ_CST);
		if (pid && !has_ended(pid))
			return false;
		ended += pid != 0;
	}
	/* A holder that begins, forks or lets go is counted, but has no pid here for a moment. */
	return ended && __atomic_load_n(&event->holders, __ATOMIC_SEQ_CST) == ended;
}

void interface_reap(void)
{
	for (unsigned i = 0; i < interface_pool->events_used; i++)
		if (is_abandoned(&interface_pool->events[i]))
			interface_event_free(&interface_pool->events[i],
					     interface_pool->events[i].serial);
}

static struct interface_event *take(unsigned index)
{
	struct interface_pool *pool = interface_pool;
	struct interface_event *event = &pool->events[index];
	uint32_t state = INTERFACE_FREE,
		 used = __atomic_load_n(&pool->events_used, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&event->state, __ATOMIC_RELAXED) != INTERFACE_FREE ||
	    !__atomic_compare_exchange_n(&event->state, &state, INTERFACE_CHANGES, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return NULL;
	while (used <= index &&
	       !__atomic_compare_exchange_n(&pool->events_used, &used, index + 1, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	memset((char *)event + sizeof(event->state), 0, sizeof(*event) - sizeof(event->state));
	event->opener = process_agent.pid;
	event->opener_tid = (int32_t)process_call(SYS_gettid);
	event->id = 1 + __atomic_fetch_add(&pool->next_id, 1, __ATOMIC_SEQ_CST);
	event->order = __atomic_fetch_add(&pool->next_order, 1, __ATOMIC_SEQ_CST);
	event->serial = event->order + 1;
	__atomic_store_n(&event->state, INTERFACE_USED, __ATOMIC_SEQ_CST);
	return event;
}

struct interface_event *interface_event_new(void)
{
	for (unsigned i = 0; i < INTERFACE_EVENTS; i++) {
		struct interface_event *event = take(i);
		if (event)
			return event;
	}
	interface_reap();
	for (unsigned i = 0; i < INTERFACE_EVENTS; i++) {
		struct interface_event *event = take(i);
		if (event)
			return event;
	}
	return NULL;
}

void interface_event_free(struct interface_event *event, uint64_t serial)
{
	uint32_t state = INTERFACE_USED;
	if (event->serial != serial ||
	    !__atomic_compare_exchange_n(&event->state, &state, INTERFACE_CHANGES, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	if (event->serial != serial) { /* another one has freed it, and it was used anew */
		__atomic_store_n(&event->state, INTERFACE_USED, __ATOMIC_SEQ_CST);
		return;
	}
	if (__atomic_exchange_n(&event->deferred, 0, __ATOMIC_SEQ_CST))
		__atomic_fetch_sub(&interface_pool->deferrals, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&event->state, INTERFACE_FREE, __ATOMIC_SEQ_CST);
}

/* A tid's entry is the first that was free from its own place on. */
static unsigned place_of(int32_t tid, unsigned step)
{
	return ((unsigned)tid + step) % INTERFACE_TASKS;
}

static int32_t tid_of(uint64_t thread)
{
	return (int32_t)thread;
}

static int32_t pid_of(uint64_t thread)
{
	return (int32_t)(thread >> 32);
}

struct interface_task *interface_task_find(int32_t tid, int32_t *pid)
{
	for (unsigned i = 0; interface_pool && i < INTERFACE_TASKS; i++) {
		unsigned at = place_of(tid, i);
		uint64_t present = __atomic_load_n(&interface_pool->names[at].thread,
						   __ATOMIC_SEQ_CST);
		if (tid_of(present) != tid)
			continue;
		if (pid)
			*pid = pid_of(present);
		return &interface_pool->tasks[at];
	}
	return NULL;
}

/* Entries of threads that were killed are free, too. */
static bool claim(struct interface_name *name, uint64_t thread)
{
	uint64_t present = __atomic_load_n(&name->thread, __ATOMIC_SEQ_CST);
	if (present && process_call(SYS_tgkill, pid_of(present), tid_of(present), 0) != -ESRCH)
		return false;
	return __atomic_compare_exchange_n(&name->thread, &present, thread, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

static struct interface_task *task_claim(uint64_t thread)
{
	for (unsigned i = 0; i < INTERFACE_TASKS; i++) {
		unsigned at = place_of(tid_of(thread), i);
		if (claim(&interface_pool->names[at], thread))
			return &interface_pool->tasks[at];
	}
	return NULL;
}

/* The entry of the thread's earlier program is used again, and is never without its tid: those who
 * wait for an answer would take the thread for one that has ended. */
struct interface_task *interface_task_new(int32_t pid, int32_t tid)
{
	const uint64_t thread = (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
	struct interface_task *task = interface_task_find(tid, NULL);
	if (task)
		__atomic_store_n(&interface_pool->names[task - interface_pool->tasks].thread,
				 thread, __ATOMIC_SEQ_CST);
	else
		task = task_claim(thread);
	if (!task)
		return NULL;
	__atomic_store_n(&task->state, INTERFACE_IDLE, __ATOMIC_SEQ_CST);
	__atomic_store_n(&task->asker, 0, __ATOMIC_SEQ_CST);
	return task;
}

void interface_task_end(int32_t tid)
{
	struct interface_task *task = interface_task_find(tid, NULL);
	if (task)
		__atomic_store_n(&interface_pool->names[task - interface_pool->tasks].thread, 0,
				 __ATOMIC_SEQ_CST);
}
