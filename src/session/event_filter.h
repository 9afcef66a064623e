/* Filters on tracepoints' fields, set on open events. */
#ifndef TALLY_SESSION_EVENT_FILTER_H
#define TALLY_SESSION_EVENT_FILTER_H

#include "base/error.h"
#include "event/event.h"
#include "provider/provider.h"

/* Makes the kernel deliver, or count, only what the event's filter lets through.  Returns 0 or
 * -errno. */
int tally_event_filter_put(struct tally_provider *provider, const struct tally_event *event,
			   int handle);

/* Explains why a filter was refused with `code`: sets a message, with a position if one can be
 * found, and returns `code`. */
int tally_event_filter_explain(const struct tally_event *event, int code, struct tally_error *err);

#endif
