#include "machine/latency.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* sched_setattr(2), as of Linux 3.14; no C library of ours has it. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

void tally_latency_ask_low(void)
{
	const uint64_t shortest_ns = 100000;
	struct scheduling now = { 0 };
	if (syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0) < 0 || now.policy != SCHED_OTHER)
		return;
	now.runtime_ns = shortest_ns;
	(void)syscall(SYS_sched_setattr, 0, &now, 0);
}
