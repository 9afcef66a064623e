/* Running times and marks as trace events. */
#include "output/output.h"
#include "output/output_text.h"

#include <errno.h>
#include <stdio.h>

enum { CPUS_PID = 0 /* the process whose threads are the CPUs; no task has this pid */ };

static void put_start(struct tally_json *json, const struct tally_activity *activity,
		      const char *name, const char *phase, uint32_t pid, uint32_t tid,
		      uint64_t time)
{
	tally_trace_event_start(json, name, phase, pid, tid,
				time > activity->first ? time - activity->first : 0);
}

static void put_names(struct tally_json *json, const struct tally_activity *activity)
{
	char name[32];
	tally_trace_event_name(json, "process_name", CPUS_PID, 0, "CPUs");
	for (uint32_t cpu = 0; cpu < activity->cpu_count; cpu++) {
		snprintf(name, sizeof(name), "CPU %u", cpu);
		tally_trace_event_name(json, "thread_name", CPUS_PID, cpu, name);
	}
	tally_trace_event_tasks(json, &activity->recording->tasks, false);
}

/* Writes an interval twice: on the CPU's track, named after the task, and on the task's track,
 * named after the CPU. */
static void put_ran(struct tally_json *json, const struct tally_activity *activity,
		    const struct tally_ran *ran)
{
	const struct tally_thread *task = &activity->recording->tasks.threads.items[ran->thread];
	struct tally_buffer name = { 0 };
	for (int on_task = 0; on_task < 2; on_task++) {
		tally_buffer_clear(&name);
		if (on_task && ran->cpu != UINT32_MAX)
			tally_buffer_printf(&name, "CPU %u", ran->cpu);
		else if (on_task)
			tally_buffer_printf(&name, "running %u", task->tid);
		else
			tally_buffer_printf(&name, "%s %u",
					    tally_activity_comm(activity, ran->thread), task->tid);
		if (!on_task && ran->cpu == UINT32_MAX)
			continue;
		uint32_t pid = CPUS_PID, tid = ran->cpu;
		if (on_task) {
			pid = task->pid;
			tid = task->tid;
		}
		put_start(json, activity, tally_buffer_string(&name), "X", pid, tid, ran->start);
		tally_json_double(json, "dur", (double)(ran->end - ran->start) / 1e3);
		if (activity->source != TALLY_ACTIVITY_SAMPLES) {
			tally_json_object(json, "args");
			tally_json_text(json, "left",
					ran->preempted ? "preempted" : "gave up the CPU");
			tally_json_end(json);
		}
		tally_json_end(json);
	}
	json->out->failed |= name.failed;
	tally_buffer_release(&name);
}

static void put_mark(struct tally_json *json, const struct tally_activity *activity,
		     const struct tally_mark *mark)
{
	const struct tally_thread *task = &activity->recording->tasks.threads.items[mark->thread];
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(activity->recording->data,
									  &count);
	put_start(json, activity, events[mark->event].name, "i", task->pid, task->tid, mark->time);
	tally_json_text(json, "s", "t");
	if (mark->text != UINT32_MAX || mark->cpu != UINT32_MAX) {
		tally_json_object(json, "args");
		if (mark->cpu != UINT32_MAX)
			tally_json_u64(json, "cpu", mark->cpu);
		if (mark->text != UINT32_MAX)
			tally_json_text(json, "text",
					tally_buffer_string(&activity->texts) + mark->text);
		tally_json_end(json);
	}
	tally_json_end(json);
}

int tally_timeline_trace(const struct tally_activity *activity, struct tally_buffer *out)
{
	struct tally_json json = { .out = out };
	tally_json_object(&json, NULL);
	tally_json_array(&json, "traceEvents");
	put_names(&json, activity);
	for (size_t i = 0; i < activity->ran.count; i++)
		put_ran(&json, activity, &activity->ran.items[i]);
	for (size_t i = 0; i < activity->marks.count; i++)
		put_mark(&json, activity, &activity->marks.items[i]);
	tally_json_end(&json);
	tally_json_end(&json);
	if (out->failed || activity->texts.failed)
		return -ENOMEM;
	return 0;
}
