/* The Trace Event Format of ui.perfetto.dev and chrome://tracing: shared by timeline_trace.c and
 * export_chrome.c.
 *
 * Never writes displayTimeUnit. In Chrome's viewer it sets how times are displayed, but some
 * versions of Perfetto take it as the unit of "ts", and "ns" then shrinks everything to a
 * thousandth.
 */
#ifndef TALLY_OUTPUT_TRACE_EVENT_H
#define TALLY_OUTPUT_TRACE_EVENT_H

#include "base/json.h"
#include "task/tasks.h"

/* Starts an event's object and leaves it open for more members; tally_json_end() ends it. */
void tally_trace_event_start(struct tally_json *json, const char *name, const char *phase,
			     uint32_t pid, uint32_t tid, uint64_t time_ns);
/* Names a process or a thread; `what` is "process_name" or "thread_name". */
void tally_trace_event_name(struct tally_json *json, const char *what, uint32_t pid, uint32_t tid,
			    const char *name);
/* Names all processes and threads, without those of tid 0 unless `idle`. */
void tally_trace_event_tasks(struct tally_json *json, const struct tally_tasks *tasks, bool idle);

#endif
