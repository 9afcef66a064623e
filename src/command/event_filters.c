#include "command/event_filters.h"

#include <errno.h>

int event_filters_add(struct tally_arena *arena, const char **filter, const char *added,
		      struct tally_error *err)
{
	*filter = *filter ? tally_arena_printf(arena, "(%s) && (%s)", *filter, added) : added;
	return *filter ? 0 : tally_error_set(err, -ENOMEM, "out of memory");
}

int event_filters_set(struct tally_event_list *events, size_t first, const char *filter,
		      struct tally_error *err)
{
	for (size_t i = first; i < events->count; i++) {
		struct tally_event *event = &events->items[i];
		if (event->kind != TALLY_EVENT_TRACEPOINT) {
			tally_error_set(
				err, -EINVAL,
				"--filter: '%s' is not a tracepoint and has no fields to filter by",
				event->name);
			tally_error_hint(
				err,
				"address filters ('start …') need a tracing PMU, which tally "
				"doesn't record; ':u' and ':k' select user mode or the kernel");
			return -EINVAL;
		}
		event->filter = filter;
	}
	return 0;
}
