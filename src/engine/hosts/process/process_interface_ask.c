/* Calls to the events of other threads.  See process_interface.h: "The pool". */
#include "process/process_interface.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <time.h>

/* How long to sleep between looks, and how long a thread that lives may take: it may be stopped. */
enum { SLICE_NS = 300000, LOOK_NS = 20000000, PATIENCE_NS = 2000000000 };

static uint64_t now_ns(void)
{
	struct timespec now = { 0 };
	process_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void futex_wait(uint32_t *word, uint32_t value)
{
	const struct timespec slice = { .tv_nsec = SLICE_NS };
	process_call(SYS_futex, word, FUTEX_WAIT, value, &slice);
}

/* Only what the operation uses: an answer is large. */
static void copy_call(struct interface_call *to, const struct interface_call *from, bool answer)
{
	memcpy(to, from, offsetof(struct interface_call, text));
	memcpy(to->text, from->text, sizeof(to->text));
	if (answer)
		memcpy(to->answer, from->answer, sizeof(to->answer));
}

static bool is_gone(const struct interface_task *task, int32_t pid, int32_t tid)
{
	const struct interface_name *name = &interface_pool->names[task - interface_pool->tasks];
	return (int32_t)__atomic_load_n(&name->thread, __ATOMIC_SEQ_CST) != tid ||
	       process_call(SYS_tgkill, pid, tid, 0) == -ESRCH;
}

/* Returns -EBUSY for a stopped thread: it does not answer, and a tracer would see our signal;
 * -ESRCH for one that has ended but is not waited for; otherwise 0.  Reads /proc/TID/stat: "TID
 * (name) T …". */
int interface_check_state(int32_t tid)
{
	char path[32] = "/proc/", digits[12], text[512];
	unsigned count = 0, at = sizeof("/proc/") - 1;
	for (int32_t left = tid; left || !count; left /= 10)
		digits[count++] = (char)('0' + left % 10);
	while (count)
		path[at++] = digits[--count];
	memcpy(path + at, "/stat", sizeof("/stat"));
	long fd = process_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), length = 0;
	if (fd < 0)
		return 0;
	length = process_call(SYS_read, fd, text, sizeof(text) - 1);
	process_call(SYS_close, fd);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	const char *end = strrchr(text, ')');
	if (end && (end[2] == 'T' || end[2] == 't'))
		return -EBUSY;
	if (end && (end[2] == 'Z' || end[2] == 'X'))
		return -ESRCH;
	return 0;
}

/* Waits until *word leaves `value`.  Meanwhile others may ask this thread: two threads that ask
 * each other go on. */
static int wait_for(struct process_interface *interface, const struct interface_task *task,
		    uint32_t *word, uint32_t value, int32_t pid, int32_t tid)
{
	uint64_t start = now_ns(), looked = start;
	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == value) {
		if (is_gone(task, pid, tid))
			return -ESRCH;
		if (now_ns() - looked > LOOK_NS) {
			int error = interface_check_state(tid);
			if (error)
				return error;
			looked = now_ns();
		}
		if (now_ns() - start > PATIENCE_NS)
			return -ETIMEDOUT;
		if (interface)
			interface_serve(interface);
		futex_wait(word, value);
	}
	return 0;
}

static int claim(struct process_interface *interface, struct interface_task *task, int32_t pid,
		 int32_t tid)
{
	int32_t own = (int32_t)process_call(SYS_gettid);
	for (;;) {
		uint32_t asker = 0;
		if (__atomic_compare_exchange_n(&task->asker, &asker, (uint32_t)own, false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return 0;
		/* one that was killed meanwhile */
		if (process_call(SYS_kill, asker, 0) == -ESRCH) {
			__atomic_compare_exchange_n(&task->asker, &asker, 0, false,
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
			continue;
		}
		int error = wait_for(interface, task, &task->asker, asker, pid, tid);
		if (error)
			return error;
	}
}

/* Once the thread has begun to serve, it is waited for, however long that takes. */
static int wait_for_answer(struct process_interface *interface, struct interface_task *task,
			   int32_t pid, int32_t tid)
{
	uint32_t asked = INTERFACE_ASKED;
	int error = wait_for(interface, task, &task->state, INTERFACE_ASKED, pid, tid);
	if (error && __atomic_compare_exchange_n(&task->state, &asked, INTERFACE_IDLE, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return error;
	do
		error = wait_for(interface, task, &task->state, INTERFACE_SERVING, pid, tid);
	while (error == -ETIMEDOUT || error == -EBUSY);
	/* the thread has begun another program, and its entry anew */
	if (!error && __atomic_load_n(&task->state, __ATOMIC_SEQ_CST) != INTERFACE_ANSWERED)
		return -EAGAIN;
	return error;
}

int interface_ask(struct process_interface *interface, int32_t pid, int32_t tid,
		  struct interface_call *call)
{
	if (interface && interface->thread->tid == tid) {
		interface_execute(interface, call);
		return 0;
	}
	struct interface_task *task = interface_task_find(tid, NULL);
	if (!task)
		return -ESRCH;
	int error = 0;
	if (pid != process_agent.pid)
		error = interface_check_state(tid);
	if (!error)
		error = claim(interface, task, pid, tid);
	if (error)
		return error;
	copy_call(&task->call, call, false);
	__atomic_store_n(&task->state, INTERFACE_ASKED, __ATOMIC_SEQ_CST);
	process_call(SYS_tgkill, pid, tid, PROCESS_SIGNAL);
	error = wait_for_answer(interface, task, pid, tid);
	if (!error)
		copy_call(call, &task->call, true);
	if (error == -EAGAIN)
		return error;
	if (error != -ESRCH)
		__atomic_store_n(&task->state, INTERFACE_IDLE, __ATOMIC_SEQ_CST);
	__atomic_store_n(&task->asker, 0, __ATOMIC_SEQ_CST);
	process_call(SYS_futex, &task->asker, FUTEX_WAKE, 1);
	return error;
}

void interface_serve(struct process_interface *interface)
{
	struct interface_task *self = interface->self;
	uint32_t asked = INTERFACE_ASKED;
	interface_take_deferred(interface);
	if (!self || !__atomic_compare_exchange_n(&self->state, &asked, INTERFACE_SERVING, false,
						  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	interface_catch_up(interface);
	interface_execute(interface, &self->call);
	interface_settle(interface);
	__atomic_store_n(&self->state, INTERFACE_ANSWERED, __ATOMIC_SEQ_CST);
	process_call(SYS_futex, &self->state, FUTEX_WAKE, 1);
}
