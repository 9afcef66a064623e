/* Reads all records once, and collects intervals from switches, tracepoints and samples side by
 * side.  At the end it takes the best source that has any, and cuts its intervals and the marks to
 * the filters. */
#include "timeline/timeline.h"

#include "abi/abi.h"
#include "base/vector.h"
#include "perfdata/perfdata.h"
#include "tracepoint/tracepoint.h"

#include "tally/perf_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A period of cycles or of cache misses says how much happened since the last sample, not how long
 * that took.  The distance between samples tells: for a task that stays on its CPU, the next sample
 * comes after about as long as the last one did.
 *
 * So a sample stands for the time since the previous sample of the same event, thread and CPU.  If
 * that is more than twice the median distance, the thread waited or did something else meanwhile;
 * then the sample stands for the median.  So does a sample without a previous one.
 */

struct gaps {
	TALLY_VECTOR(uint64_t) items;
	struct tally_map last; /* thread and CPU → time of the previous sample */
};

static bool is_open(const struct tally_ran *ran, uint32_t event)
{
	return ran->event == event && ran->start == ran->end;
}

static int by_length(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Notes a sample and sets `gap` to its distance from the previous one; 0: there is none.  Returns 0
 * or -ENOMEM. */
static int step(struct gaps *gaps, const struct tally_ran *ran, uint64_t *gap)
{
	bool is_first = false;
	uint64_t *last = tally_map_put(&gaps->last, (uint64_t)ran->thread << 32 | ran->cpu,
				       &is_first);
	if (!last)
		return -ENOMEM;
	*gap = is_first || *last > ran->end ? 0 : ran->end - *last;
	*last = ran->end;
	return 0;
}

/* Sets `usual` to the median distance; 0 when no thread has two samples on one CPU.  Returns 0 or
 * -ENOMEM. */
static int find_usual(struct gaps *gaps, const struct tally_ran *ran, size_t count, uint32_t event,
		      uint64_t *usual)
{
	uint64_t gap;
	*usual = 0;
	gaps->items.count = 0;
	for (size_t i = 0; i < count; i++) {
		if (!is_open(&ran[i], event))
			continue;
		if (step(gaps, &ran[i], &gap) < 0 ||
		    (gap && tally_vector_push(&gaps->items, gap) < 0))
			return -ENOMEM;
	}
	if (!gaps->items.count)
		return 0;
	qsort(gaps->items.items, gaps->items.count, sizeof(*gaps->items.items), by_length);
	*usual = gaps->items.items[gaps->items.count / 2];
	return 0;
}

static int fill_event(struct tally_ran *ran, size_t count, uint32_t event)
{
	struct gaps gaps = { 0 };
	uint64_t usual, gap;
	int result = find_usual(&gaps, ran, count, event, &usual);
	tally_map_release(&gaps.last);
	gaps.last = (struct tally_map){ 0 };
	for (size_t i = 0; !result && usual && i < count; i++) {
		if (!is_open(&ran[i], event))
			continue;
		result = step(&gaps, &ran[i], &gap);
		uint64_t span = usual;
		if (gap && gap / 2 <= usual)
			span = gap;
		if (ran[i].end > span)
			ran[i].start = ran[i].end - span;
		else
			ran[i].start = 0;
	}
	tally_map_release(&gaps.last);
	tally_vector_release(&gaps.items);
	return result;
}

/* Sets `start` of each sample in `ran` (sorted by end) that has start == end and an `event`.  The
 * samples of an event stay as they are if no thread has two of them on one CPU.  Returns 0 or
 * -ENOMEM. */
static int spans_fill(struct tally_ran *ran, size_t count)
{
	struct tally_map seen = { 0 };
	int result = 0;
	for (size_t i = 0; !result && i < count; i++) {
		bool is_new = false;
		if (ran[i].start != ran[i].end || ran[i].event == UINT32_MAX)
			continue;
		if (!tally_map_put(&seen, ran[i].event, &is_new))
			result = -ENOMEM;
		else if (is_new)
			result = fill_event(ran, count, ran[i].event);
	}
	tally_map_release(&seen);
	return result;
}

enum { PROGRESS_EVERY = 20000, CPUS_MAX = 1 << 16, NS_PER_SECOND = 1000000000 };

struct ran_list {
	struct tally_ran *items;
	size_t count, capacity;
};

/* The state of a CPU. */
struct on_cpu {
	uint64_t since;
	uint32_t thread;
	bool known, busy; /* before the first switch, `known` is false: anything may have run */
};

struct activity_reader {
	struct tally_activity *activity;
	const struct tally_activity_options *options;
	struct tally_sample_filter shown; /* filters by task, CPU and time */
	struct tally_sample_filter event; /* filters marks and samples by event */
	uint64_t left_out; /* samples that only the filters kept from being shown */
	/* The filters select the idle task, and it ran.  A timeline does not draw it. */
	bool idle_passes;
	struct ran_list by_source[TALLY_ACTIVITY_SAMPLES + 1];
	struct { struct on_cpu *items; size_t count, capacity; } cpus[TALLY_ACTIVITY_SAMPLES];
	struct tally_map thread_of; /* tid → thread, because switches don't tell the process */
	struct tally_tracepoint *format; /* of sched:sched_switch */
	const struct tally_tracepoint_field *prev_state, *next_pid, *prev_pid;
	bool format_tried;
};

/* ---- threads ------------------------------------------------------------- */

static void remember_thread(struct activity_reader *reader, uint32_t tid, uint32_t thread)
{
	uint64_t *slot = NULL;
	if (thread != UINT32_MAX)
		slot = tally_map_put(&reader->thread_of, tid, NULL);
	if (slot)
		*slot = thread;
}

static uint32_t thread_of(struct activity_reader *reader, uint32_t pid, uint32_t tid)
{
	struct tally_tasks *tasks = &reader->activity->recording->tasks;
	const uint64_t *known = NULL;
	if (pid == UINT32_MAX)
		known = tally_map_get(&reader->thread_of, tid);
	if (known)
		return (uint32_t)*known;
	uint32_t thread = tally_tasks_thread(tasks, pid == UINT32_MAX ? tid : pid, tid);
	remember_thread(reader, tid, thread);
	return thread;
}

const char *tally_activity_comm(const struct tally_activity *activity, uint32_t thread)
{
	const struct tally_tasks *tasks = &activity->recording->tasks;
	const struct tally_thread *task = &tasks->threads.items[thread];
	if (task->comm != TALLY_STRING_NONE)
		return tally_strings_text(&tasks->strings, task->comm);
	if (task->tid)
		return "[unknown]";
	return "swapper";
}

/* ---- what is shown ------------------------------------------------------- */

/* Filters apply to the tasks that are shown, not to the records that are read: a switch record
 * belongs to the task that leaves its CPU, and also tells which one runs next. */
static int parse_filter(struct activity_reader *reader, struct tally_error *err)
{
	const struct tally_profile_filter *asked = &reader->options->filter,
					  event = { .event = asked->event };
	const struct tally_perfdata *data = reader->activity->recording->data;
	int result = tally_sample_filter_init(&reader->shown, asked, data, err);
	if (result < 0)
		return result;
	return tally_sample_filter_init(&reader->event, &event, data, err);
}

static bool is_idle_task(const struct activity_reader *reader, uint32_t thread)
{
	const struct tally_tasks *tasks = &reader->activity->recording->tasks;
	const struct tally_thread *task = &tasks->threads.items[thread];
	return tally_tasks_is_idle(tasks, task->pid, task->tid);
}

static void leave_out(struct activity_reader *reader, uint32_t thread)
{
	struct tally_recording *recording = reader->activity->recording;
	reader->left_out++;
	tally_recording_leave_out(recording, recording->tasks.threads.items[thread].comm);
}

static bool is_shown(const struct activity_reader *reader, uint32_t thread, uint32_t cpu)
{
	const struct tally_thread *task = &reader->activity->recording->tasks.threads.items[thread];
	const struct tally_sample_filter *shown = &reader->shown;
	return tally_ranges_pass(&shown->cpus, cpu) &&
	       tally_ranges_pass(&shown->pids, task->pid) &&
	       tally_ranges_pass(&shown->tids, task->tid);
}

/* Matches the name that the task's row shows: its last one. */
static bool is_named(const struct activity_reader *reader, uint32_t thread)
{
	const char *comms = reader->shown.comms;
	return !comms || tally_list_has(comms, tally_activity_comm(reader->activity, thread));
}

/* The idle task's name never changes, so the filter can be applied at once. */
static void note_idle(struct activity_reader *reader, uint32_t thread, uint32_t cpu, uint64_t time)
{
	reader->idle_passes |= tally_ranges_pass(&reader->shown.times, time) &&
			       is_shown(reader, thread, cpu) && is_named(reader, thread);
}

/* ---- switches ------------------------------------------------------------ */

static struct on_cpu *cpu_of(struct activity_reader *reader, enum tally_activity_source source,
			     uint32_t cpu)
{
	struct on_cpu idle = { .known = false };
	if (cpu >= CPUS_MAX)
		return NULL;
	while (reader->cpus[source].count <= cpu)
		if (tally_vector_push(&reader->cpus[source], idle) < 0)
			return NULL;
	return &reader->cpus[source].items[cpu];
}

static int add_ran(struct activity_reader *reader, enum tally_activity_source source,
		   const struct tally_ran *ran)
{
	if (ran->end > ran->start)
		return tally_vector_push(&reader->by_source[source], *ran);
	return 0;
}

/* A task left a CPU: adds the interval since it was switched in.  At a CPU's first switch the
 * interval begins with the recording, and `thread` is the task that leaves. */
static int leave(struct activity_reader *reader, enum tally_activity_source source, uint32_t cpu,
		 uint32_t thread, uint64_t time, bool preempted)
{
	struct on_cpu *on = cpu_of(reader, source, cpu);
	if (!on)
		return cpu >= CPUS_MAX ? 0 : -ENOMEM;
	struct tally_ran ran = { .start = on->since,
				 .end = time,
				 .thread = on->thread,
				 .cpu = cpu,
				 .event = UINT32_MAX,
				 .preempted = preempted };
	bool was_busy = on->busy;
	if (!on->known) {
		ran.start = reader->activity->first;
		ran.thread = thread;
		was_busy = !is_idle_task(reader, thread);
	}
	*on = (struct on_cpu){ .known = true };
	if (was_busy)
		return add_ran(reader, source, &ran);
	return 0;
}

static int enter(struct activity_reader *reader, enum tally_activity_source source, uint32_t cpu,
		 uint32_t thread, uint64_t time)
{
	struct on_cpu *on = cpu_of(reader, source, cpu);
	if (!on)
		return cpu >= CPUS_MAX ? 0 : -ENOMEM;
	bool is_idle = is_idle_task(reader, thread);
	if (is_idle)
		note_idle(reader, thread, cpu, time);
	*on = (struct on_cpu){ .since = time, .thread = thread, .known = true, .busy = !is_idle };
	return 0;
}

static int take_switch(struct activity_reader *reader, const struct tally_record *record)
{
	const struct tally_sample_id *id = &record->sample_id;
	uint32_t thread = thread_of(reader, id->pid, id->tid);
	if (thread == UINT32_MAX)
		return -ENOMEM;
	if (record->header.misc & TALLY_MISC_SWITCH_OUT)
		return leave(reader, TALLY_ACTIVITY_SWITCHES, id->cpu, thread, id->time,
			     record->header.misc & TALLY_MISC_SWITCH_OUT_PREEMPT);
	return enter(reader, TALLY_ACTIVITY_SWITCHES, id->cpu, thread, id->time);
}

/* A task that exits leaves its CPU without a SWITCH record: the kernel closes its events before it
 * switches. */
static int take_exit(struct activity_reader *reader, const struct tally_record *record)
{
	const struct tally_record_task *task = &record->task;
	const struct tally_sample_id *id = &record->sample_id;
	uint32_t thread = thread_of(reader, task->pid, task->tid);
	if (thread == UINT32_MAX)
		return -ENOMEM;
	if (!id->present || id->cpu >= reader->cpus[TALLY_ACTIVITY_SWITCHES].count)
		return 0;
	const struct on_cpu *on = &reader->cpus[TALLY_ACTIVITY_SWITCHES].items[id->cpu];
	if (on->busy && on->thread == thread)
		return leave(reader, TALLY_ACTIVITY_SWITCHES, id->cpu, thread, id->time, false);
	return 0;
}

static void find_format(struct activity_reader *reader, const struct tally_recorded_event *event)
{
	const struct tally_perfdata *data = reader->activity->recording->data;
	struct tally_feature_bytes tracing = tally_perfdata_feature(data,
								    TALLY_FEATURE_TRACING_DATA);
	struct tally_tracepoint_machine machine;
	const char *text;
	size_t length;
	reader->format_tried = true;
	if (!tally_perfdata_tracepoint_format(data, event->attr.config, &text, &length) ||
	    !tally_tracing_data_machine(tracing.bytes, tracing.size, &machine.long_bytes,
					&machine.swap) ||
	    tally_tracepoint_parse(text, length, &machine, &reader->format, NULL) < 0)
		return;
	reader->prev_pid = tally_tracepoint_field(reader->format, "prev_pid");
	reader->prev_state = tally_tracepoint_field(reader->format, "prev_state");
	reader->next_pid = tally_tracepoint_field(reader->format, "next_pid");
}

static bool is_sched_switch(const struct tally_recorded_event *event)
{
	return event->attr.type == TALLY_TYPE_TRACEPOINT &&
	       !strncmp(event->name, "sched:sched_switch", 18) &&
	       (!event->name[18] || event->name[18] == ':');
}

static int take_sched_switch(struct activity_reader *reader,
			     const struct tally_recorded_event *event,
			     const struct tally_sample *sample)
{
	uint64_t next, prev, state = 1;
	if (!reader->format_tried)
		find_format(reader, event);
	if (!reader->next_pid || !reader->prev_pid ||
	    !tally_tracepoint_u64(reader->format, reader->next_pid, sample->raw, sample->raw_size,
				  &next) ||
	    !tally_tracepoint_u64(reader->format, reader->prev_pid, sample->raw, sample->raw_size,
				  &prev))
		return 0;
	if (reader->prev_state)
		tally_tracepoint_u64(reader->format, reader->prev_state, sample->raw,
				     sample->raw_size, &state);
	uint32_t from = thread_of(reader, (uint32_t)prev == sample->tid ? sample->pid : UINT32_MAX,
				  (uint32_t)prev);
	uint32_t to = thread_of(reader, UINT32_MAX, (uint32_t)next);
	if (from == UINT32_MAX || to == UINT32_MAX)
		return -ENOMEM;
	int result = leave(reader, TALLY_ACTIVITY_TRACEPOINT, sample->cpu, from, sample->time,
			   !(state & 0xff));
	if (result < 0)
		return result;
	return enter(reader, TALLY_ACTIVITY_TRACEPOINT, sample->cpu, to, sample->time);
}

/* ---- samples ------------------------------------------------------------- */

/* True for events that happen at a moment, so that each sample becomes a mark.  Off-CPU samples are
 * shown by other means. */
static bool is_happening(const struct tally_recorded_event *event)
{
	const struct tally_attr *attr = &event->attr;
	if (tally_is_off_cpu(attr, event->name))
		return false;
	return attr->type == TALLY_TYPE_TRACEPOINT || attr->type == TALLY_TYPE_BREAKPOINT ||
	       (attr->type == TALLY_TYPE_SOFTWARE && !tally_attr_is_clock(attr)) ||
	       attr->type >= TALLY_TYPE_MAX;
}

/* Returns how long a sample stands for, ns; 0: its event does not say. */
static uint64_t span_of(const struct tally_attr *attr, const struct tally_sample *sample)
{
	if (tally_attr_is_clock(attr))
		return sample->period;
	if (attr->flags & TALLY_ATTR_FREQ && attr->sample_period)
		return NS_PER_SECOND / attr->sample_period;
	return 0;
}

static uint32_t event_index(const struct tally_activity *activity,
			    const struct tally_recorded_event *event)
{
	size_t count;
	return (uint32_t)(event - tally_perfdata_events(activity->recording->data, &count));
}

static int add_mark(struct activity_reader *reader, const struct tally_raw_record *raw,
		    const struct tally_sample *sample, uint32_t thread, uint32_t cpu)
{
	struct tally_activity *activity = reader->activity;
	if (!is_shown(reader, thread, cpu) ||
	    !tally_ranges_pass(&reader->shown.times, sample->time)) {
		leave_out(reader, thread);
		return 0;
	}
	struct tally_mark mark = { .time = sample->time,
				   .thread = thread,
				   .cpu = cpu,
				   .text = UINT32_MAX,
				   .event = event_index(activity, raw->event) };
	if (reader->options->describe && sample->raw && activity->texts.length < UINT32_MAX) {
		mark.text = (uint32_t)activity->texts.length;
		reader->options->describe(reader->options->context, raw->event, mark.event, sample,
					  &activity->texts);
		tally_buffer_char(&activity->texts, '\0');
	}
	return tally_vector_push(&activity->marks, mark);
}

static int take_sample(struct activity_reader *reader, const struct tally_raw_record *raw,
		       const struct tally_sample *sample)
{
	const struct tally_attr *attr = &raw->event->attr;
	uint32_t cpu = UINT32_MAX;
	if (sample->type & TALLY_SAMPLE_CPU)
		cpu = sample->cpu;
	uint32_t thread = thread_of(reader, sample->pid, sample->tid);
	if (thread == UINT32_MAX)
		return -ENOMEM;
	if (is_sched_switch(raw->event))
		return take_sched_switch(reader, raw->event, sample);
	const struct tally_recording *recording = reader->activity->recording;
	if (!tally_sample_filter_passes(&reader->event, recording->data, &recording->tasks,
					raw->event, sample)) {
		leave_out(reader, thread);
		return 0;
	}
	if (tally_off_cpu_is_waking(&recording->off_cpu, raw->event))
		return 0;
	if (is_happening(raw->event))
		return add_mark(reader, raw, sample, thread, cpu);
	uint64_t span = span_of(attr, sample);
	struct tally_ran ran = { .start = sample->time > span ? sample->time - span : 0,
				 .end = sample->time,
				 .thread = thread,
				 .cpu = cpu,
				 .event = event_index(reader->activity, raw->event) };
	if (sample->time && !is_idle_task(reader, thread))
		return tally_vector_push(&reader->by_source[TALLY_ACTIVITY_SAMPLES], ran);
	if (!is_idle_task(reader, thread))
		return 0; /* without a time */
	note_idle(reader, thread, cpu, sample->time);
	reader->activity->idle_samples++;
	return 0;
}

/* ---- all of it ----------------------------------------------------------- */

static void note_time(struct tally_activity *activity, uint64_t time, uint32_t cpu)
{
	if (!time)
		return;
	if (!activity->last || time < activity->first)
		activity->first = time;
	if (time > activity->last)
		activity->last = time;
	if (cpu < CPUS_MAX && cpu >= activity->cpu_count)
		activity->cpu_count = cpu + 1;
}

static int take_record(struct activity_reader *reader, const struct tally_raw_record *raw,
		       const struct tally_record *record)
{
	switch (record->header.type) {
	case TALLY_RECORD_SAMPLE:
		note_time(reader->activity, record->sample.time,
			  record->sample.type & TALLY_SAMPLE_CPU ? record->sample.cpu : UINT32_MAX);
		return take_sample(reader, raw, &record->sample);
	case TALLY_RECORD_SWITCH:
	case TALLY_RECORD_SWITCH_CPU_WIDE:
		note_time(reader->activity, record->sample_id.time, record->sample_id.cpu);
		if (record->sample_id.present)
			return take_switch(reader, record);
		return 0;
	case TALLY_RECORD_EXIT:
		return take_exit(reader, record);
	case TALLY_RECORD_COMM:
		remember_thread(reader, record->comm.tid,
				tally_tasks_thread(&reader->activity->recording->tasks,
						   record->comm.pid, record->comm.tid));
		return 0;
	case TALLY_RECORD_FORK:
		remember_thread(reader, record->task.tid,
				tally_tasks_thread(&reader->activity->recording->tasks,
						   record->task.pid, record->task.tid));
		return 0;
	default:
		return 0;
	}
}

static int read_all(struct activity_reader *reader, struct tally_error *err)
{
	struct tally_recording *recording = reader->activity->recording;
	uint64_t size = tally_perfdata_size(recording->data);
	struct tally_raw_record raw;
	struct tally_record record;
	int result;
	while ((result = tally_recording_next(recording, &raw, &record, err)) > 0) {
		if (take_record(reader, &raw, &record) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
		if (reader->options->progress && size &&
		    !(recording->counts.records % PROGRESS_EVERY))
			reader->options->progress(reader->options->progress_context,
						  (double)raw.file_offset / (double)size);
	}
	return result;
}

/* A task that is still on its CPU at the end of the recording ran until then. */
static int close_open(struct activity_reader *reader, enum tally_activity_source source)
{
	for (uint32_t cpu = 0; cpu < reader->cpus[source].count; cpu++) {
		const struct on_cpu *on = &reader->cpus[source].items[cpu];
		struct tally_ran ran = { .start = on->since,
					 .end = reader->activity->last,
					 .thread = on->thread,
					 .cpu = cpu,
					 .event = UINT32_MAX };
		if (on->busy && add_ran(reader, source, &ran) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Keeps the parts of an interval that are within the selected times.  Returns 0 or -ENOMEM. */
static int keep_ran(struct activity_reader *reader, const struct tally_ran *ran)
{
	const struct tally_range any = { 0, UINT64_MAX };
	const struct tally_ranges *times = &reader->shown.times;
	bool is_kept = false;
	for (size_t i = 0; i < times->count || !i; i++) {
		const struct tally_range *range;
		if (times->count)
			range = &times->items[i];
		else
			range = &any;
		struct tally_ran part = *ran;
		if (part.start < range->first)
			part.start = range->first;
		if (part.end > range->last)
			part.end = range->last;
		if (part.end <= part.start || !is_shown(reader, ran->thread, ran->cpu) ||
		    !is_named(reader, ran->thread))
			continue;
		if (tally_vector_push(&reader->activity->ran, part) < 0)
			return -ENOMEM;
		is_kept = true;
	}
	if (!is_kept)
		leave_out(reader, ran->thread);
	return 0;
}

/* A sample that stands for no known time, since it is the only one of its kind, becomes a mark.
 * Returns 0 or -ENOMEM. */
static int keep_point(struct activity_reader *reader, const struct tally_ran *ran)
{
	struct tally_mark mark = { .time = ran->end,
				   .thread = ran->thread,
				   .cpu = ran->cpu,
				   .text = UINT32_MAX,
				   .event = ran->event };
	if (is_shown(reader, ran->thread, ran->cpu) &&
	    tally_ranges_pass(&reader->shown.times, ran->end))
		return tally_vector_push(&reader->activity->marks, mark);
	leave_out(reader, ran->thread);
	return 0;
}

/* Takes the first source that has any intervals at all, even if the filters then leave all of them
 * out. */
static int choose_source(struct activity_reader *reader)
{
	struct ran_list *samples = &reader->by_source[TALLY_ACTIVITY_SAMPLES];
	int result = spans_fill(samples->items, samples->count);
	bool chosen = false;
	for (unsigned source = 0; !result && !chosen && source <= TALLY_ACTIVITY_SAMPLES;
	     source++) {
		const struct ran_list *list = &reader->by_source[source];
		if (source < TALLY_ACTIVITY_SAMPLES)
			result = close_open(reader, source);
		chosen = list->count != 0;
		if (chosen)
			reader->activity->source = source;
		for (size_t i = 0; !result && i < list->count; i++) {
			if (list->items[i].start < list->items[i].end)
				result = keep_ran(reader, &list->items[i]);
			else
				result = keep_point(reader, &list->items[i]);
		}
	}
	return result;
}

static void choose_marks(struct activity_reader *reader)
{
	struct tally_activity *activity = reader->activity;
	size_t kept = 0;
	for (size_t i = 0; i < activity->marks.count; i++)
		if (is_named(reader, activity->marks.items[i].thread))
			activity->marks.items[kept++] = activity->marks.items[i];
		else
			leave_out(reader, activity->marks.items[i].thread);
	activity->marks.count = kept;
}

static void bound_time(struct tally_activity *activity, const struct tally_sample_filter *filter)
{
	if (filter->time_start_ns > activity->first)
		activity->first = filter->time_start_ns;
	if (filter->time_end_ns < activity->last)
		activity->last = filter->time_end_ns;
}

static void release_reader(struct activity_reader *reader)
{
	for (unsigned source = 0; source <= TALLY_ACTIVITY_SAMPLES; source++)
		tally_vector_release(&reader->by_source[source]);
	for (unsigned source = 0; source < TALLY_ACTIVITY_SAMPLES; source++)
		tally_vector_release(&reader->cpus[source]);
	tally_sample_filter_release(&reader->shown);
	tally_sample_filter_release(&reader->event);
	tally_map_release(&reader->thread_of);
	tally_tracepoint_free(reader->format);
}

static int fill(struct activity_reader *reader, struct tally_error *err)
{
	struct tally_recording *recording = reader->activity->recording;
	const char *event = reader->options->filter.event;
	size_t count;
	int result = parse_filter(reader, err);
	if (!result)
		result = read_all(reader, err);
	if (result < 0)
		return result;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	if (event && tally_event_find(events, count, event) == count)
		return tally_event_not_found(recording->data, event, err);
	if (choose_source(reader) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	choose_marks(reader);
	if (reader->activity->ran.count || reader->activity->marks.count)
		return 0;
	if (reader->idle_passes) {
		tally_error_set(err, -ENOENT,
				"only the idle task ran, which a timeline does not show");
		tally_error_hint(err,
				 "'tally report --sort comm,cpu' counts the idle task's samples");
		return -ENOENT;
	}
	if (!recording->counts.samples || reader->left_out)
		return tally_recording_is_empty(recording, reader->left_out, err);
	if (reader->activity->last) {
		tally_error_set(err, -ENOENT,
				"the recording shows one moment, and no task that ran");
		tally_error_hint(err, "record for longer");
		return -ENOENT;
	}
	tally_error_set(err, -ENOENT, "the recording has no times");
	tally_error_hint(
		err,
		"record with times: tally record --switch-events, or -e sched:sched_switch -a");
	return -ENOENT;
}

int tally_activity_new(struct tally_recording *recording,
		       const struct tally_activity_options *options, struct tally_activity **out,
		       struct tally_error *err)
{
	struct tally_activity *activity = calloc(1, sizeof(*activity));
	struct activity_reader reader = { .activity = activity, .options = options };
	if (!activity) {
		tally_recording_close(recording);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	activity->recording = recording;
	int result = fill(&reader, err);
	if (!result)
		bound_time(activity, &reader.shown);
	release_reader(&reader);
	if (result < 0) {
		tally_activity_free(activity);
		return result;
	}
	*out = activity;
	return 0;
}

void tally_activity_free(struct tally_activity *activity)
{
	if (!activity)
		return;
	tally_recording_close(activity->recording);
	tally_vector_release(&activity->ran);
	tally_vector_release(&activity->marks);
	tally_buffer_release(&activity->texts);
	free(activity);
}
