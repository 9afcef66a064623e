/* poll(2) and select(2) of emulated events.
 *
 * The thread waits in the kernel's ppoll(2) for the other descriptors, with PROCESS_SIGNAL open
 * only there.  A thread that writes to an event's ring sends that signal to the waiters that the
 * event's entry names; then the waiter looks again.  So no descriptor is needed that the program
 * could close. */
#include "process/process_interface.h"
#include "process/process_restart.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>

enum { FEW = 64, SLICE_NS = 10000000, NS_PER_S = 1000000000 };

static uint64_t now_ns(void)
{
	struct timespec now = { 0 };
	process_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void interface_wake(struct interface_event *event)
{
	int32_t self = (int32_t)process_call(SYS_gettid);
	for (unsigned i = 0; i < sizeof(event->waiters) / sizeof(event->waiters[0]); i++) {
		int32_t tid = __atomic_load_n(&event->waiters[i], __ATOMIC_SEQ_CST);
		if (tid && tid != self)
			process_call(SYS_tgkill, event->waiter_pids[i], tid, PROCESS_SIGNAL);
	}
}

bool interface_wait_begin(struct interface_event *event, const struct process_thread *thread)
{
	for (unsigned i = 0; i < sizeof(event->waiters) / sizeof(event->waiters[0]); i++) {
		int32_t free = 0;
		if (!__atomic_compare_exchange_n(&event->waiters[i], &free, thread->tid, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		event->waiter_pids[i] = thread->pid;
		return true;
	}
	return false;
}

void interface_wait_end(struct interface_event *event, const struct process_thread *thread)
{
	for (unsigned i = 0; i < sizeof(event->waiters) / sizeof(event->waiters[0]); i++) {
		int32_t own = thread->tid;
		__atomic_compare_exchange_n(&event->waiters[i], &own, 0, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	}
}

/* Registers with all events, or ends that.  Returns false if some event may not send a signal. */
static bool register_all(const struct pollfd *fds, unsigned long count,
			 const struct process_thread *thread, bool begin)
{
	bool all = true;
	for (unsigned long i = 0; i < count; i++) {
		struct interface_event *event = interface_event_of(fds[i].fd);
		if (event && begin)
			all = interface_wait_begin(event, thread) && all;
		else if (event)
			interface_wait_end(event, thread);
	}
	return all;
}

/* Fills in the events' part, and hides them from the kernel in `others`.  Returns how many are
 * ready. */
static int look(struct pollfd *fds, struct pollfd *others, unsigned long count)
{
	int ready = 0;
	for (unsigned long i = 0; i < count; i++) {
		struct interface_event *event = interface_event_of(fds[i].fd);
		others[i] = fds[i];
		if (!event)
			continue;
		others[i].fd = -1;
		fds[i].revents = (short)(interface_poll(event) & (fds[i].events | POLLHUP));
		ready += fds[i].revents != 0;
	}
	return ready;
}

static int merge(struct pollfd *fds, const struct pollfd *others, unsigned long count)
{
	int ready = 0;
	for (unsigned long i = 0; i < count; i++) {
		if (others[i].fd == fds[i].fd)
			fds[i].revents = others[i].revents;
		ready += fds[i].revents != 0;
	}
	return ready;
}

struct waiting {
	struct process_thread *thread;
	uint64_t deadline; /* UINT64_MAX: none */
	uint64_t mask;     /* of signals, during the wait */
	bool in_slices;
	struct process_restart restart;
};

/* One wait.  Returns 1 if the result is final. */
static bool wait_once(struct waiting *waiting, struct pollfd *fds, struct pollfd *others,
		      unsigned long count, int *result)
{
	int ready = look(fds, others, count);
	uint64_t now = now_ns(), left = 0;
	if (!ready && waiting->deadline > now)
		left = waiting->deadline - now;
	bool is_last = ready || !left;
	if (waiting->in_slices && left > SLICE_NS)
		left = SLICE_NS;
	const struct timespec slice = { (time_t)(left / NS_PER_S), (long)(left % NS_PER_S) };
	const struct timespec *timeout = &slice;
	if (waiting->deadline == UINT64_MAX && !is_last && !waiting->in_slices)
		timeout = NULL;
	long code = process_call(SYS_ppoll, others, count, timeout, &waiting->mask,
				 sizeof(waiting->mask));
	/* ours: another thread wakes this one, or it is the thread's own sample */
	if (code == -EINTR && !ready && process_restart_resume(&waiting->restart))
		return false;
	if (code < 0 && !ready) {
		*result = (int)code;
		return true;
	}
	*result = merge(fds, others, count);
	return *result || is_last;
}

static void wait(struct waiting *waiting, struct pollfd *fds, unsigned long count, int *result)
{
	struct pollfd few[FEW], *others = few;
	size_t bytes = count * sizeof(*others);
	if (count > FEW) {
		long map = process_call(SYS_mmap, NULL, bytes, 3, 0x22, -1, 0);
		if (map < 0 && map > -4096) {
			*result = -ENOMEM;
			return;
		}
		others = (struct pollfd *)map;
	}
	while (!wait_once(waiting, fds, others, count, result))
		;
	if (others != few)
		process_call(SYS_munmap, others, bytes);
}

static uint64_t deadline_of(const struct timespec *timeout)
{
	if (!timeout)
		return UINT64_MAX;
	return now_ns() + (uint64_t)timeout->tv_sec * NS_PER_S + (uint64_t)timeout->tv_nsec;
}

bool process_interface_poll(struct pollfd *fds, unsigned long count, const struct timespec *timeout,
			    const sigset_t *mask, int *result)
{
	const uint64_t own = 1ull << (PROCESS_SIGNAL - 1);
	struct waiting waiting = { .thread = process_self(), .deadline = deadline_of(timeout) };
	bool any = false;
	for (unsigned long i = 0; i < count && !any; i++)
		any = interface_event_of(fds[i].fd) != NULL;
	if (!any || !waiting.thread)
		return false;
	process_call(SYS_rt_sigprocmask, SIG_BLOCK, &own, &waiting.mask, sizeof(own));
	uint64_t before = waiting.mask;
	if (mask)
		memcpy(&waiting.mask, mask, sizeof(waiting.mask));
	waiting.mask &= ~own;
	waiting.in_slices = !register_all(fds, count, waiting.thread, true);
	process_restart_begin(&waiting.restart);
	wait(&waiting, fds, count, result);
	process_restart_end(&waiting.restart);
	register_all(fds, count, waiting.thread, false);
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	return true;
}

/* --- select --------------------------------------------------------------- */

static bool is_in(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

static int put(fd_set *set, int fd, bool ready)
{
	if (!is_in(set, fd))
		return 0;
	if (!ready)
		FD_CLR(fd, set);
	return ready;
}

bool process_interface_select(int count, void *read, void *write, void *except,
			      const struct timespec *timeout, const sigset_t *mask, int *result)
{
	struct pollfd fds[FD_SETSIZE];
	unsigned long used = 0;
	bool any = false;
	for (int fd = 0; fd < count && fd < FD_SETSIZE; fd++) {
		short events = 0;
		events |= is_in(read, fd) ? POLLIN | POLLRDNORM : 0;
		events |= is_in(write, fd) ? POLLOUT | POLLWRNORM : 0;
		events |= is_in(except, fd) ? POLLPRI : 0;
		if (!events)
			continue;
		any = any || interface_event_of(fd);
		fds[used++] = (struct pollfd){ .fd = fd, .events = events };
	}
	if (!any || !process_interface_poll(fds, used, timeout, mask, result))
		return false;
	if (*result < 0)
		return true;
	*result = 0;
	for (unsigned long i = 0; i < used; i++)
		if (fds[i].revents & POLLNVAL)
			*result = -EBADF;
	for (unsigned long i = 0; i < used && *result >= 0; i++) {
		short seen = fds[i].revents;
		*result += put(read, fds[i].fd, seen & (POLLIN | POLLRDNORM | POLLHUP | POLLERR));
		*result += put(write, fds[i].fd, seen & (POLLOUT | POLLWRNORM | POLLERR));
		*result += put(except, fds[i].fd, seen & POLLPRI);
	}
	return true;
}
