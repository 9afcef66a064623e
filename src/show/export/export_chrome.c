/* Trace events: consecutive samples of a thread, drawn as calls.
 *
 * A sample says where a thread was at one moment. It is drawn until the thread's next sample. If
 * that comes late, it is drawn for the usual distance between the thread's samples, because the
 * thread did something else afterwards. Frames that a sample shares with the one before, from the
 * root on, are one call that continues. Samples of other events are marks.
 */
#include "base/extremes.h"
#include "export/export_internal.h"

#include "base/vector.h"
#include "base/weight_sum.h"
#include "output/output_text.h"

#include <errno.h>
#include <stdlib.h>

struct drawing {
	const struct tally_samples *samples;
	struct tally_json *json;
	const struct tally_thread *task;
	uint64_t origin; /* ns; the time shown as 0 */
	/* function ids, the root first */
	struct { uint32_t *items; size_t count, capacity; } calls;
};

static void put_event(const struct drawing *drawing, const char *name, const char *phase,
		      uint64_t time)
{
	tally_trace_event_start(drawing->json, name, phase, drawing->task->pid, drawing->task->tid,
				time - drawing->origin);
}

/* Writes beginnings and ends rather than whole calls: a call then ends at exactly the digits at
 * which the next one begins. */
static void put_call(const struct drawing *drawing, uint32_t function, const char *phase,
		     uint64_t time)
{
	const struct tally_names *names = &drawing->samples->recording->names;
	put_event(drawing, tally_names_plain_text(names, function), phase, time);
	tally_json_text(drawing->json, "cat", tally_names_short_object(names, function));
	tally_json_end(drawing->json);
}

static void close_calls(struct drawing *drawing, size_t depth, uint64_t time)
{
	while (drawing->calls.count > depth)
		put_call(drawing, drawing->calls.items[--drawing->calls.count], "E", time);
}

static int draw_sample(struct drawing *drawing, const struct tally_one_sample *sample,
		       struct tally_place_frames *frames)
{
	size_t same = 0;
	if (tally_samples_frames(drawing->samples, sample->stack, frames) < 0)
		return -ENOMEM;
	while (same < frames->count && same < drawing->calls.count &&
	       frames->items[same].function == drawing->calls.items[same])
		same++;
	close_calls(drawing, same, sample->time);
	for (; same < frames->count; same++) {
		put_call(drawing, frames->items[same].function, "B", sample->time);
		if (tally_vector_push(&drawing->calls, frames->items[same].function) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int by_value(const void *left, const void *right)
{
	return tally_compare_u64(*(const uint64_t *)left, *(const uint64_t *)right);
}

/* Returns the median distance between a thread's samples, in ns; 1 ms if it is unknown. */
static uint64_t usual_gap(const struct tally_samples *samples, const uint32_t *order, size_t count)
{
	const uint64_t unknown = 1000000;
	if (count < 2)
		return unknown;
	uint64_t *gaps = malloc((count - 1) * sizeof(*gaps));
	if (!gaps)
		return unknown;
	for (size_t i = 1; i < count; i++)
		gaps[i - 1] = samples->samples.items[order[i]].time -
			      samples->samples.items[order[i - 1]].time;
	qsort(gaps, count - 1, sizeof(*gaps), by_value);
	uint64_t gap = gaps[(count - 1) / 2];
	free(gaps);
	return gap;
}

/* Most samples of the idle task are left out, so that what is between the others is no measure:
 * a clock's sample then stands for its period. */
static uint64_t gap_of(const struct drawing *drawing, const struct tally_one_sample *sample,
		       uint64_t usual)
{
	bool is_clocks = !drawing->task->tid &&
			 tally_export_is_time(drawing->samples, sample->event);
	if (is_clocks && sample->period < usual)
		return sample->period;
	return usual;
}

static int draw_thread(struct drawing *drawing, const struct tally_export_threads *threads,
		       const struct tally_export_thread *thread)
{
	const uint32_t *order = threads->order + thread->first;
	uint64_t usual = usual_gap(drawing->samples, order, thread->count);
	struct tally_place_frames frames = { 0 };
	int result = 0;
	for (size_t i = 0; !result && i < thread->count; i++) {
		const struct tally_one_sample *sample = &drawing->samples->samples.items[order[i]];
		bool is_last = i + 1 == thread->count;
		uint64_t next = UINT64_MAX;
		if (!is_last)
			next = drawing->samples->samples.items[order[i + 1]].time;
		uint64_t gap = gap_of(drawing, sample, usual);
		result = draw_sample(drawing, sample, &frames);
		if (next - sample->time > tally_sum_capped(gap, gap / 2))
			close_calls(drawing, 0, tally_sum_capped(sample->time, gap));
	}
	tally_place_frames_release(&frames);
	return result;
}

static void put_marks(struct drawing *drawing, uint32_t event)
{
	const char *comm;
	for (size_t i = 0; i < drawing->samples->samples.count; i++) {
		const struct tally_one_sample *sample = &drawing->samples->samples.items[i];
		if (sample->event == event || sample->event == TALLY_SAMPLE_LEFT_OUT)
			continue;
		drawing->task = tally_export_task(drawing->samples, sample->thread, &comm);
		put_event(drawing, tally_export_event_name(drawing->samples, sample->event), "i",
			  sample->time);
		tally_json_text(drawing->json, "s", "t");
		tally_json_end(drawing->json);
	}
}

int tally_export_chrome(const struct tally_samples *samples, uint32_t event,
			struct tally_buffer *out)
{
	struct tally_json json = { .out = out };
	struct drawing drawing = { .samples = samples,
				   .json = &json,
				   .origin = samples->samples.items[0].time };
	struct tally_export_threads threads;
	int result = tally_export_threads_make(samples, event, &threads);
	tally_json_object(&json, NULL);
	tally_json_array(&json, "traceEvents");
	tally_trace_event_tasks(&json, &samples->recording->tasks, true);
	for (size_t i = 0; !result && i < threads.threads.count; i++) {
		const struct tally_export_thread *thread = &threads.threads.items[i];
		const char *comm;
		drawing.task = tally_export_task(samples, thread->thread, &comm);
		result = draw_thread(&drawing, &threads, thread);
	}
	if (!result)
		put_marks(&drawing, event);
	tally_json_end(&json);
	tally_json_end(&json);
	tally_export_threads_release(&threads);
	tally_vector_release(&drawing.calls);
	if (result || out->failed)
		return -ENOMEM;
	return 0;
}
