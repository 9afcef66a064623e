/* The common beginning of libtally's functions that open events. */
#ifndef TALLY_LIBRARY_EVENTS_H
#define TALLY_LIBRARY_EVENTS_H

#include "base/arena.h"
#include "base/weight_sum.h"
#include "event/event.h"
#include "provider/provider.h"
#include "tally/counter.h"

struct tally_library_events {
	struct tally_provider *provider;
	struct tally_catalogue catalogue;
	struct tally_arena arena;
	struct tally_event_list list;
};

/* Chooses the provider of all that libtally opens. */
struct tally_provider *tally_library_provider(void);

/* Parses an expression into `list`, over the events of `provider`; NULL: the library's.  Returns 0 or
 * -errno.  The caller releases `events` in either case. */
int tally_library_events_parse(struct tally_library_events *events, const char *expression,
			       struct tally_error *err);

/* Opens an event of the list for a thread (0: the calling one).  Returns a handle, or -errno with
 * advice in `err`. */
int tally_library_events_open(struct tally_library_events *events, size_t index, int pid, int group,
			      struct tally_error *err);
void tally_library_events_release(struct tally_library_events *events);

/* Copies the caller's options into `chosen`, zeroed.  All structures of options begin with `size_t
 * size`, the bytes that the caller's header has: members behind them stay 0.  `options` may be NULL.
 * Returns 0 or -EINVAL with a message: no size, or members that this library does not know. */
int tally_library_options(void *chosen, size_t known, const void *options, struct tally_error *err);

/* libc's convention: sets errno and returns -1 for a negative result, otherwise returns 0. */
int tally_library_result(int result);
/* Writes message and hint into the caller's buffer (may be NULL), and sets errno. */
void tally_library_fail(int result, const struct tally_error *err, char *error, size_t error_size);

/* Returns the count.  If the counter was not always on the CPU, its value is scaled to the whole
 * time. */
static inline struct tally_count tally_library_count(uint64_t value, uint64_t enabled_ns,
						     uint64_t running_ns)
{
	struct tally_count count = { value, value, enabled_ns, running_ns };
	if (running_ns && running_ns < enabled_ns)
		count.value = tally_whole_number((double)value * (double)enabled_ns /
						 (double)running_ns);
	return count;
}

#endif
