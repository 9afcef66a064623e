/* speedscope: a list of frames, and for each thread its samples as lists of frames. */
#include "export/export_internal.h"

#include "base/json.h"

#include <errno.h>

/* Writes every function as a frame; the function's id is the frame's number. */
static void put_frames(const struct tally_export_threads *threads, struct tally_json *json)
{
	const struct tally_names *names = &threads->samples->recording->names;
	const uint32_t *files = threads->files;
	tally_json_object(json, "shared");
	tally_json_array(json, "frames");
	for (uint32_t i = 0; i < names->functions.count; i++) {
		const char *file = tally_names_object(names, i);
		if (files[i] != TALLY_STRING_NONE)
			file = tally_strings_text(&names->strings, files[i]);
		tally_json_object(json, NULL);
		tally_json_text(json, "name", tally_names_plain_text(names, i));
		tally_json_text(json, "file", file);
		tally_json_end(json);
	}
	tally_json_end(json);
	tally_json_end(json);
}

static int put_samples(const struct tally_export_threads *threads,
		       const struct tally_export_thread *thread, struct tally_json *json)
{
	const struct tally_samples *samples = threads->samples;
	struct tally_place_frames frames = { 0 };
	int result = 0;
	tally_json_array(json, "samples");
	for (size_t i = 0; !result && i < thread->count; i++) {
		const struct tally_one_sample *sample =
			&samples->samples.items[threads->order[thread->first + i]];
		result = tally_samples_frames(samples, sample->stack, &frames);
		tally_json_array(json, NULL);
		for (size_t f = 0; !result && f < frames.count; f++)
			tally_json_u64(json, NULL, frames.items[f].function);
		tally_json_end(json);
	}
	tally_json_end(json);
	tally_place_frames_release(&frames);
	return result;
}

static int put_thread(const struct tally_export_threads *threads,
		      const struct tally_export_thread *thread, struct tally_json *json)
{
	const struct tally_samples *samples = threads->samples;
	const char *comm;
	const struct tally_thread *task = tally_export_task(samples, thread->thread, &comm);
	struct tally_buffer name = { 0 };
	tally_buffer_printf(&name, "%s %u/%u", comm, task->pid, task->tid);
	tally_json_object(json, NULL);
	tally_json_text(json, "type", "sampled");
	tally_json_text(json, "name", tally_buffer_string(&name));
	json->out->failed |= name.failed;
	tally_buffer_release(&name);
	tally_json_text(json, "unit", threads->is_time ? "nanoseconds" : "none");
	tally_json_u64(json, "startValue", 0);
	tally_json_u64(json, "endValue", thread->weight);
	int result = put_samples(threads, thread, json);
	tally_json_array(json, "weights");
	for (size_t i = 0; i < thread->count; i++)
		tally_json_u64(json, NULL,
			       samples->samples.items[threads->order[thread->first + i]].period);
	tally_json_end(json);
	tally_json_end(json);
	return result;
}

int tally_export_speedscope(const struct tally_samples *samples, uint32_t event,
			    struct tally_buffer *out)
{
	struct tally_json json = { .out = out };
	struct tally_export_threads threads;
	int result = tally_export_threads_make(samples, event, &threads);
	tally_json_object(&json, NULL);
	tally_json_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	tally_json_text(&json, "exporter", "tally " TALLY_VERSION);
	tally_json_text(&json, "name", tally_export_event_name(samples, event));
	tally_json_u64(&json, "activeProfileIndex", 0);
	if (!result)
		put_frames(&threads, &json);
	tally_json_array(&json, "profiles");
	for (size_t i = 0; !result && i < threads.threads.count; i++)
		result = put_thread(&threads, &threads.threads.items[i], &json);
	tally_json_end(&json);
	tally_json_end(&json);
	tally_export_threads_release(&threads);
	if (result || out->failed)
		return -ENOMEM;
	return 0;
}
