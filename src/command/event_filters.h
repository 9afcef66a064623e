/* --filter: the events of an -e, of which only those pass whose fields are so. */
#ifndef TALLY_COMMAND_EVENT_FILTERS_H
#define TALLY_COMMAND_EVENT_FILTERS_H

#include "base/arena.h"
#include "event/event.h"

/* Several filters of one -e hold together.  0 or -ENOMEM. */
int event_filters_add(struct tally_arena *arena, const char **filter, const char *added,
		      struct tally_error *err);

/* Gives it to the list's events from `first` on, which have to be tracepoints: 0 or -EINVAL. */
int event_filters_set(struct tally_event_list *events, size_t first, const char *filter,
		      struct tally_error *err);

#endif
