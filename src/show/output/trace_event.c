/* Writes an event's common members, with its time in microseconds, and the events that name
 * tasks. */
#include "output/output_text.h"

void tally_trace_event_start(struct tally_json *json, const char *name, const char *phase,
			     uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	tally_json_object(json, NULL);
	tally_json_text(json, "name", name);
	tally_json_text(json, "ph", phase);
	tally_json_u64(json, "pid", pid);
	tally_json_u64(json, "tid", tid);
	tally_json_double(json, "ts", (double)time_ns / 1e3);
}

void tally_trace_event_name(struct tally_json *json, const char *what, uint32_t pid, uint32_t tid,
			    const char *name)
{
	tally_json_object(json, NULL);
	tally_json_text(json, "name", what);
	tally_json_text(json, "ph", "M");
	tally_json_u64(json, "pid", pid);
	tally_json_u64(json, "tid", tid);
	tally_json_object(json, "args");
	tally_json_text(json, "name", name);
	tally_json_end(json);
	tally_json_end(json);
}

void tally_trace_event_tasks(struct tally_json *json, const struct tally_tasks *tasks, bool idle)
{
	for (size_t i = 0; i < tasks->threads.count; i++) {
		const struct tally_thread *task = &tasks->threads.items[i];
		const char *comm = "[unknown]";
		if (task->comm != TALLY_STRING_NONE)
			comm = tally_strings_text(&tasks->strings, task->comm);
		if (!idle && tally_tasks_is_idle(tasks, task->pid, task->tid))
			continue;
		if (task->pid == task->tid)
			tally_trace_event_name(json, "process_name", task->pid, task->tid, comm);
		tally_trace_event_name(json, "thread_name", task->pid, task->tid, comm);
	}
}
