/* Filters on tracepoints' fields: --filter's conditions for the events of an -e, set on the open
 * events. */
#ifndef TALLY_SESSION_EVENT_FILTER_H
#define TALLY_SESSION_EVENT_FILTER_H

#include "base/arena.h"
#include "base/error.h"
#include "event/event.h"
#include "provider/provider.h"

/* Adds a condition to the filter; all conditions of one -e must hold. Returns 0 or -ENOMEM. */
int tally_event_filter_add(struct tally_arena *arena, const char **filter, const char *condition,
			   struct tally_error *err);

/* Gives the filter to the list's events from `first` on, which must be tracepoints. Returns 0 or
 * -EINVAL. */
int tally_event_filter_assign(struct tally_event_list *events, size_t first, const char *filter,
			      struct tally_error *err);

/* Makes the kernel deliver, or count, only what the event's filter lets through.  Returns 0 or
 * -errno. */
int tally_event_filter_put(struct tally_provider *provider, const struct tally_event *event,
			   int handle);

/* Explains why a filter was refused with `code`: sets a message, with a position if one can be
 * found, and returns `code`. */
int tally_event_filter_explain(const struct tally_event *event, int code, struct tally_error *err);

#endif
