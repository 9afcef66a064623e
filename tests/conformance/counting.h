/* Attributes, opening and reading in short forms: the beginning of most clauses. */
#ifndef TALLY_CONFORMANCE_COUNTING_H
#define TALLY_CONFORMANCE_COUNTING_H

#include "suite.h"

/* Excludes the kernel: only privileged users may count it (perf_event_paranoid 2, the default). */
static inline struct tally_attr event_attr(struct surface *surface, uint32_t type, uint64_t config)
{
	return (struct tally_attr){ .type = type,
				    .size = sizeof(struct tally_attr),
				    .config = config,
				    .flags = surface->features & SURFACE_PRIVILEGED
						     ? 0
						     : TALLY_ATTR_EXCLUDE_KERNEL };
}

static inline struct tally_attr software_attr(struct surface *surface, enum tally_sw event)
{
	return event_attr(surface, TALLY_TYPE_SOFTWARE, event);
}

static inline struct tally_attr hardware_attr(struct surface *surface, enum tally_hw event)
{
	return event_attr(surface, TALLY_TYPE_HARDWARE, event);
}

/* Counts the user-mode accesses of touch(type), which needs no privilege. */
static inline struct tally_attr breakpoint_attr(struct surface *surface, unsigned breakpoint_type)
{
	struct tally_attr attr = event_attr(surface, TALLY_TYPE_BREAKPOINT, 0);
	attr.bp_type = breakpoint_type;
	attr.config1 = CALL(watched_address, breakpoint_type);
	attr.config2 = breakpoint_type == TALLY_BREAKPOINT_X ? sizeof(long) : 4;
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	return attr;
}

/* Counts hits of hit().  Only type (TRACEPOINT) and config (its id) are set. */
static inline struct tally_attr hit_attr(struct surface *surface)
{
	return event_attr(surface, TALLY_TYPE_TRACEPOINT, (uint64_t)CALL(tracepoint, "hit"));
}

/* Opens the event on the calling task, on any CPU, without a group. */
static inline int open_self(struct surface *surface, const struct tally_attr *attr)
{
	return CALL(open, attr, 0, -1, -1, 0);
}

static inline int open_member(struct surface *surface, const struct tally_attr *attr, int leader)
{
	return CALL(open, attr, 0, -1, leader, 0);
}

/* Returns the count of an event whose read_format is 0; or -errno; or -1000 − size if the read
 * returned another size than 8. */
static inline int64_t count_of(struct surface *surface, int fd)
{
	uint64_t value;
	ssize_t size = CALL(read, fd, &value, sizeof(value));
	if (size == (ssize_t)sizeof(value))
		return (int64_t)value;
	return size < 0 ? size : -1000 - size;
}

/* Reads as many 8-byte words as the event's read_format gives.  Returns their number, or -errno. */
static inline ssize_t read_words(struct surface *surface, int fd, uint64_t *words, size_t size)
{
	ssize_t length = CALL(read, fd, words, size);
	return length < 0 ? length : length / 8;
}

static inline long enable(struct surface *surface, int fd)
{
	return CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
}

static inline long disable(struct surface *surface, int fd)
{
	return CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
}

static inline uint64_t id_of(struct surface *surface, int fd)
{
	uint64_t id = 0;
	return CALL(ioctl, fd, TALLY_IOC_ID, (uintptr_t)&id) == 0 ? id : 0;
}

/* Opens and closes the event.  Returns 0 or -errno. */
static inline int try_open(struct surface *surface, const struct tally_attr *attr)
{
	int fd = open_self(surface, attr);
	return fd < 0 ? fd : CALL(close, fd);
}

#define CHECK_OPENS(fd) CHECK_BETWEEN(fd, 0, INT32_MAX)

/* Ends the clause as not applicable. */
#define SKIP(reason) return CLAUSE_NOT_APPLICABLE + (reason)

#endif
