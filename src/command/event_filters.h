/* --filter: restricts the events of an -e to hits whose fields match. */
#ifndef TALLY_COMMAND_EVENT_FILTERS_H
#define TALLY_COMMAND_EVENT_FILTERS_H

#include "base/arena.h"
#include "event/event.h"

/* Adds a filter; all filters of one -e must match. Returns 0 or -ENOMEM. */
int event_filters_add(struct tally_arena *arena, const char **filter, const char *added,
		      struct tally_error *err);

/* Sets the filter of the list's events from `first` on, which must be tracepoints. Returns 0 or
 * -EINVAL. */
int event_filters_set(struct tally_event_list *events, size_t first, const char *filter,
		      struct tally_error *err);

#endif
