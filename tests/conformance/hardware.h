/* What the clauses for hardware events share: opening them, measuring several at once, reading
 * without a system call. */
#ifndef TALLY_CONFORMANCE_HARDWARE_H
#define TALLY_CONFORMANCE_HARDWARE_H

#include "suite.h"

/* attr.config1 of PMUv3. */
#define ARM_LONG (1ull << 0)        /* a counter of 64 bits */
#define ARM_USER_ACCESS (1ull << 1) /* readable by mrs */

enum { HARDWARE_GROUP_MAX = 6 };

/* Attributes of a HARDWARE event with both times. */
struct tally_attr hardware_event(enum tally_hw event, uint64_t flags);

/* Opens it on the calling task, on any CPU. */
int hardware_open(struct surface *surface, enum tally_hw event, uint64_t flags, int group);

/* Counts instructions by `count` (at most HARDWARE_GROUP_MAX) events with these flags, in one
 * group, so that they start and stop together, while `work` runs: 0 or -errno.  -EAGAIN when they
 * were not on the PMU all the time. */
typedef int hardware_work(struct surface *surface);
int hardware_measure(struct surface *surface, unsigned count, const uint64_t *flags,
		     uint64_t *values, hardware_work *work);

/* value, time_enabled, time_running of an event opened by hardware_open(). */
struct hardware_values {
	uint64_t value, time_enabled, time_running;
};
int hardware_read(struct surface *surface, int fd, struct hardware_values *values);

/* As hardware_open(), readable from user mode: on arm64 64 bits wide if the counters are. */
int hardware_open_readable(struct surface *surface, enum tally_hw event, uint64_t flags);

/* The loop of perf_event_open(2) "rdpmc": the count without a system call.  -EAGAIN when the event
 * is not on the PMU; -errno when the counter can't be read. */
int hardware_user_read(struct surface *surface, const struct tally_user_page *page,
		       uint64_t *value);

/* The header page alone; NULL. */
struct tally_user_page *hardware_user_page(struct surface *surface, int fd);

#endif
