/* Functions for the clauses on hardware events: opening them, measuring several at once, and
 * reading without a system call. */
#ifndef TALLY_CONFORMANCE_HARDWARE_H
#define TALLY_CONFORMANCE_HARDWARE_H

#include "suite.h"

/* attr.config1 of PMUv3. */
#define ARM_LONG (1ull << 0)        /* a counter of 64 bits */
#define ARM_USER_ACCESS (1ull << 1) /* readable by mrs */

enum { HARDWARE_GROUP_MAX = 6 };

/* Returns the attributes of a HARDWARE event that is read with both times. */
struct tally_attr hardware_event(enum tally_hw event, uint64_t flags);

/* Opens the event on the calling task, on any CPU.  Returns a descriptor or -errno. */
int hardware_open(struct surface *surface, enum tally_hw event, uint64_t flags, int group);

/* Counts the instructions of `work` with `count` events (at most HARDWARE_GROUP_MAX) that have
 * these flags.  They are one group, so they start and stop together.  Returns 0 or -errno; -EAGAIN
 * if they were not on the PMU all the time. */
typedef int hardware_work(struct surface *surface);
int hardware_measure(struct surface *surface, unsigned count, const uint64_t *flags,
		     uint64_t *values, hardware_work *work);

/* The read(2) format of an event opened by hardware_open(). */
struct hardware_values {
	uint64_t value, time_enabled, time_running;
};
int hardware_read(struct surface *surface, int fd, struct hardware_values *values);

/* Works like hardware_open(), but user mode may read the counter; on arm64 it has 64 bits if the
 * PMU has such counters. */
int hardware_open_readable(struct surface *surface, enum tally_hw event, uint64_t flags);

/* Reads the count without a system call, with the loop of perf_event_open(2) "rdpmc".  Returns 0;
 * -EAGAIN if the event is not on the PMU; -errno if the counter can't be read. */
int hardware_user_read(struct surface *surface, struct tally_user_page *page, uint64_t *value);

/* Maps the event's user page without data.  Returns it, or NULL. */
struct tally_user_page *hardware_user_page(struct surface *surface, int fd);

#endif
