/* epoll(7) of emulated events.
 *
 * The kernel would refuse the memfd, so the registration stays here, and epoll_wait(2) looks at the
 * event itself, as poll(2) does (process_interface_poll.c).  An epoll descriptor that is itself
 * polled doesn't show them. */
#include "process/process_interface.h"
#include "process/process_next.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

enum { REGISTRATIONS = 256, SLICE_NS = 10000000, NS_PER_S = 1000000000 };

struct registration {
	int epoll, fd;          /* epoll -1: the entry is free */
	bool used, is_disarmed; /* EPOLLONESHOT has been told */
	struct epoll_event wanted;
};

static struct registration registrations[REGISTRATIONS];
static unsigned registered;
static uint32_t registration_lock;

/* With all signals blocked. */
static uint64_t lock(void)
{
	const uint64_t all = ~0ull;
	uint64_t mask;
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(all));
	while (__atomic_exchange_n(&registration_lock, 1, __ATOMIC_ACQUIRE))
		process_call(SYS_sched_yield);
	return mask;
}

static void unlock(uint64_t mask)
{
	__atomic_store_n(&registration_lock, 0, __ATOMIC_RELEASE);
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

void interface_epoll_forked(void)
{
	registration_lock = 0;
}

void interface_epoll_closed(int fd)
{
	if (!__atomic_load_n(&registered, __ATOMIC_RELAXED))
		return;
	uint64_t mask = lock();
	for (unsigned i = 0; i < REGISTRATIONS; i++) {
		struct registration *at = &registrations[i];
		if (!at->used || (at->epoll != fd && at->fd != fd))
			continue;
		at->used = false;
		registered--;
	}
	unlock(mask);
}

static struct registration *find(int epoll, int fd)
{
	for (unsigned i = 0; i < REGISTRATIONS; i++) {
		struct registration *at = &registrations[i];
		if (at->used && at->epoll == epoll && at->fd == fd)
			return at;
	}
	return NULL;
}

static int add(int epoll, int fd, const struct epoll_event *wanted)
{
	for (unsigned i = 0; i < REGISTRATIONS; i++) {
		struct registration *at = &registrations[i];
		if (at->used)
			continue;
		*at = (struct registration){
			.epoll = epoll,
			.fd = fd,
			.used = true,
			.wanted = *wanted,
		};
		registered++;
		return 0;
	}
	return -ENOSPC;
}

static int control(int epoll, int operation, int fd, const struct epoll_event *wanted)
{
	struct registration *at = find(epoll, fd);
	if (operation == EPOLL_CTL_ADD)
		return at ? -EEXIST : add(epoll, fd, wanted);
	if (!at)
		return -ENOENT;
	if (operation == EPOLL_CTL_DEL) {
		at->used = false;
		registered--;
	} else {
		at->wanted = *wanted;
		at->is_disarmed = false;
	}
	return 0;
}

/* Is this an epoll descriptor?  The kernel tells: it knows no such registration in one that is. */
static int check_epoll(int epoll)
{
	struct epoll_event none = { 0 };
	long code = process_call(SYS_epoll_ctl, epoll, EPOLL_CTL_MOD, epoll, &none);
	return code == -EBADF ? -EBADF : 0;
}

bool interface_epoll_control(int epoll, int operation, int fd, struct epoll_event *event,
			     int *result)
{
	struct epoll_event wanted = { 0 };
	if (!interface_event_of(fd))
		return false;
	*result = check_epoll(epoll);
	if (!*result && operation != EPOLL_CTL_DEL)
		*result = interface_copy_in(&wanted, event, sizeof(wanted));
	if (!*result && (operation < EPOLL_CTL_ADD || operation > EPOLL_CTL_MOD))
		*result = -EINVAL;
	if (*result)
		return true;
	uint64_t mask = lock();
	*result = control(epoll, operation, fd, &wanted);
	unlock(mask);
	return true;
}

/* --- waiting -------------------------------------------------------------- */

static bool concerns(int epoll)
{
	for (unsigned i = 0; i < REGISTRATIONS; i++)
		if (registrations[i].used && registrations[i].epoll == epoll)
			return true;
	return false;
}

static int look(int epoll, struct epoll_event *events, int count)
{
	int ready = 0;
	for (unsigned i = 0; i < REGISTRATIONS && ready < count; i++) {
		struct registration *at = &registrations[i];
		struct interface_event *event = NULL;
		if (at->used && at->epoll == epoll && !at->is_disarmed)
			event = interface_event_of(at->fd);
		if (!event)
			continue;
		uint32_t seen = (uint32_t)interface_poll(event) & (at->wanted.events | EPOLLHUP);
		if (!seen)
			continue;
		at->is_disarmed = at->wanted.events & EPOLLONESHOT;
		events[ready++] = (struct epoll_event){ .events = seen, .data = at->wanted.data };
	}
	return ready;
}

static bool wait_at_all(int epoll, const struct process_thread *thread, bool begin)
{
	bool all = true;
	for (unsigned i = 0; i < REGISTRATIONS; i++) {
		struct registration *at = &registrations[i];
		struct interface_event *event = NULL;
		if (at->used && at->epoll == epoll)
			event = interface_event_of(at->fd);
		if (event && begin)
			all = interface_wait_begin(event, thread) && all;
		else if (event)
			interface_wait_end(event, thread);
	}
	return all;
}

static uint64_t now_ns(void)
{
	struct timespec now = { 0 };
	process_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Returns milliseconds for epoll_pwait(2), -1: without end. */
static int slice(uint64_t deadline, bool in_slices)
{
	enum { NS_PER_MS = 1000000 };
	uint64_t now = now_ns(), left = deadline - now;
	if (deadline <= now)
		return 0;
	if (in_slices && left > SLICE_NS)
		left = SLICE_NS;
	else if (deadline == UINT64_MAX)
		return -1;
	if (left / NS_PER_MS >= INT32_MAX)
		return INT32_MAX;
	return (int)((left + NS_PER_MS - 1) / NS_PER_MS);
}

static void wait(int epoll, struct epoll_event *events, int count, uint64_t deadline, uint64_t mask,
		 struct process_thread *thread, int *result)
{
	bool in_slices = !wait_at_all(epoll, thread, true);
	for (;;) {
		int ready = look(epoll, events, count);
		int left = ready ? 0 : slice(deadline, in_slices);
		int before = (int)thread->interruptions;
		long code = 0;
		if (ready < count)
			code = process_call(SYS_epoll_pwait, epoll, events + ready, count - ready,
					    left, &mask, sizeof(mask));
		if (code == -EINTR && !ready && before != (int)thread->interruptions)
			continue;
		*result = (int)code;
		if (ready)
			*result = code > 0 ? ready + (int)code : ready;
		if (*result || !left)
			break;
	}
	wait_at_all(epoll, thread, false);
}

bool process_interface_epoll(int epoll, struct epoll_event *events, int count,
			     const struct timespec *timeout, const sigset_t *mask, int *result)
{
	const uint64_t own = 1ull << (PROCESS_SIGNAL - 1);
	struct process_thread *thread = process_self();
	uint64_t before, during, deadline = UINT64_MAX;
	if (!__atomic_load_n(&registered, __ATOMIC_RELAXED) || !thread || count <= 0 ||
	    !concerns(epoll))
		return false;
	if (timeout)
		deadline = now_ns() + (uint64_t)timeout->tv_sec * NS_PER_S +
			   (uint64_t)timeout->tv_nsec;
	process_call(SYS_rt_sigprocmask, SIG_BLOCK, &own, &before, sizeof(own));
	during = before;
	if (mask)
		memcpy(&during, mask, sizeof(during));
	wait(epoll, events, count, deadline, during & ~own, thread, result);
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	return true;
}
