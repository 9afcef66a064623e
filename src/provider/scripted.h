/* A provider that plays back a script: what needs a PMU, a refusal or an unlucky schedule is tested
 * by it.
 *
 * The script is text, a statement per line, '#' starts a comment:
 *
 *     EVENT READING…          the event opens and its reads give these readings in turn, the last for ever.
 *                             The second line for an event is for the second time that it is opened (runs of -r),
 *                             the last line for all later times.
 *     EVENT@CPU READING…      the same on one CPU; goes before a line without @CPU
 *     EVENT refuse ERRNO      opening it fails: ENOENT, EOPNOTSUPP, EBUSY …; EVENT may be '*': all that have no line
 *     counters N              a group with more than N hardware events does not fit: EINVAL to the one that joins
 *     privilege user          opening without exclude_kernel fails with EACCES (perf_event_paranoid 2)
 *     privilege none          opening anything fails with EACCES
 *
 * EVENT is a name of the fixed events ("cycles", "LLC-load-misses") or TYPE:CONFIG with TYPE one of
 * hardware, software, tracepoint, cache, raw, breakpoint or a number; modifiers are not part of it.
 * READING is VALUE, VALUE/ENABLED or VALUE/ENABLED/RUNNING, times in ns and 1000000 where not
 * given; or 'error': read(2) gives no bytes, as of a pinned event that lost its counter.  An event
 * without a line: ENOENT.
 *
 * PERF_EVENT_IOC_DISABLE does not stop time: a reading is what the line says.  There are no rings.
 */
#ifndef TALLY_PROVIDER_SCRIPTED_H
#define TALLY_PROVIDER_SCRIPTED_H

#include "provider/provider.h"

/* A provider from a script's text; tally_provider_scripted_new() reads the text from a file.
 * -EINVAL with the line's number when a line can't be understood.  `ops->release` frees it. */
int tally_provider_scripted_parse(const char *text, struct tally_provider **out,
				  struct tally_error *err);

#endif
