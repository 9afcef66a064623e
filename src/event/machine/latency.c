/* Asks the kernel by sched_setattr(2), first for real-time priority with reset-on-fork, then for
 * the shortest slice. */
#include "machine/machine.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The argument of sched_setattr(2), as of Linux 3.14; the supported C libraries lack it. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

enum { RESET_ON_FORK = 1, SHORTEST_SLICE_NS = 100000 };

static bool set_scheduling(uint32_t policy, int nice, uint64_t slice_ns, uint64_t flags)
{
	struct scheduling wanted = { .size = sizeof(wanted),
				     .policy = policy,
				     .flags = flags,
				     .nice = nice,
				     .priority = policy == SCHED_FIFO,
				     .runtime_ns = slice_ns };
	return !syscall(SYS_sched_setattr, 0, &wanted, 0);
}

void tally_latency_begin(struct tally_latency *before)
{
	struct scheduling now = { 0 };
	*before = (struct tally_latency){ 0 };
	if (syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0) < 0 || now.policy != SCHED_OTHER)
		return;
	before->nice = now.nice;
	before->is_raised = set_scheduling(SCHED_FIFO, now.nice, 0, RESET_ON_FORK);
	if (!before->is_raised)
		set_scheduling(SCHED_OTHER, now.nice, SHORTEST_SLICE_NS, now.flags);
}

void tally_latency_end(const struct tally_latency *before)
{
	/* Without the privilege, a thread with reset-on-fork may not clear that flag. */
	if (before->is_raised && !set_scheduling(SCHED_OTHER, before->nice, 0, 0))
		set_scheduling(SCHED_OTHER, before->nice, 0, RESET_ON_FORK);
}
