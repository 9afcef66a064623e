/* The Trace Event Format, as ui.perfetto.dev and chrome://tracing read it: what timeline_trace.c
 * and export_chrome.c have in common.
 *
 * No displayTimeUnit: to Chrome's viewer it says how times are shown, to some of Perfetto's
 * versions what "ts" is counted in, and "ns" then makes everything a thousandth as long.
 */
#ifndef TALLY_OUTPUT_TRACE_EVENT_H
#define TALLY_OUTPUT_TRACE_EVENT_H

#include "base/json.h"
#include "task/tasks.h"

/* An event's object, left open for what else its phase wants; tally_json_end() ends it. */
void tally_trace_event_start(struct tally_json *json, const char *name, const char *phase,
			     uint32_t pid, uint32_t tid, uint64_t time_ns);
/* `what`: "process_name" or "thread_name". */
void tally_trace_event_name(struct tally_json *json, const char *what, uint32_t pid, uint32_t tid,
			    const char *name);
/* Names of all processes and threads, but those of tid 0 unless `idle`. */
void tally_trace_event_tasks(struct tally_json *json, const struct tally_tasks *tasks, bool idle);

#endif
