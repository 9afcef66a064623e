/* Filters on the fields of tracepoints, put on events that are open. */
#ifndef TALLY_SESSION_EVENT_FILTER_H
#define TALLY_SESSION_EVENT_FILTER_H

#include "base/error.h"
#include "event/event.h"
#include "provider/provider.h"

/* Has the kernel pass on, or count, only what the event's filter lets through.  0 or -errno. */
int tally_event_filter_put(struct tally_provider *provider, const struct tally_event *event,
			   int handle);

/* What is wrong with a filter that was refused with that code: returns it, with a message that
 * points. */
int tally_event_filter_explain(const struct tally_event *event, int code, struct tally_error *err);

#endif
