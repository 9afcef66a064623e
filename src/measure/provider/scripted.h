/* A provider that plays back a script, for tests that need a PMU, a refusal or a rare schedule:
 * --provider scripted:FILE.
 *
 * The script is text, a statement per line; '#' starts a comment:
 *
 *     EVENT READING…       the event opens, and its reads give these readings in turn, the last one
 *                          for ever. The second line for an event is for the second time that it is
 *                          opened (runs of -r), the last line for all later times.
 *     EVENT@CPU READING…   the same on one CPU; takes precedence over a line without @CPU
 *     EVENT refuse ERRNO   opening it fails: ENOENT, EOPNOTSUPP, EBUSY …; EVENT may be '*': all
 *                          events that have no line
 *     counters N [held M]  a group with more than N hardware events does not fit: the event that
 *                          joins it gets EINVAL.  Pinned groups beyond N - M hardware events are in
 *                          error state: reads return no bytes
 *     privilege user       opening without exclude_kernel fails with EACCES (perf_event_paranoid 2)
 *     privilege none       opening anything fails with EACCES
 *
 * EVENT is a name of a fixed event ("cycles", "LLC-load-misses") or TYPE:CONFIG, with TYPE one of
 * hardware, software, tracepoint, cache, raw, breakpoint or a number.  Modifiers are not part of
 * it.  READING is VALUE, VALUE/ENABLED or VALUE/ENABLED/RUNNING, with times in ns, 1000000 by
 * default; or 'error': read(2) returns no bytes, as for a pinned event that lost its counter.  An
 * event without a line gets ENOENT.
 *
 * Openings on the calling thread (pid 0) are trials: they take the first line of their event, and
 * the next opening takes it again.
 *
 * PERF_EVENT_IOC_DISABLE does not stop time: a reading is always that of the line.  There are no
 * rings. */
#ifndef TALLY_PROVIDER_SCRIPTED_H
#define TALLY_PROVIDER_SCRIPTED_H

#include "provider/provider.h"

/* Makes a provider from a script's text.  Returns 0, or -EINVAL with the line's number for an
 * invalid line.  `ops->release` frees it. */
int tally_provider_scripted_parse(const char *text, struct tally_provider **out,
				  struct tally_error *err);

#endif
