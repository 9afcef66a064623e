/* The table of export formats, and the parts that several of them need: samples sorted by thread,
 * the source files of functions, and names of events and tasks. */
#include "base/extremes.h"
#include "export/export.h"

#include "base/vector.h"
#include "export/export_internal.h"

#include <errno.h>
#include <stdlib.h>

#define ROW(name, suffix, opened, compressed, is_signed) \
	{ #name, suffix, opened, tally_export_##name, compressed, is_signed },
const struct tally_export_format tally_export_formats[] = {
	TALLY_EXPORT_FORMATS(ROW)
	{ .name = NULL },
};

struct ordered {
	uint32_t thread, sample;
};

static int by_thread(const void *left, const void *right)
{
	const struct ordered *a = left, *b = right;
	if (a->thread != b->thread)
		return tally_compare_u64(a->thread, b->thread);
	return tally_compare_u64(a->sample, b->sample);
}

static int by_weight(const void *left, const void *right)
{
	const struct tally_export_thread *a = left, *b = right;
	if (a->weight != b->weight)
		return tally_compare_u64(b->weight, a->weight);
	return tally_compare_u64(a->thread, b->thread);
}

static int gather(const struct ordered *ordered, size_t count, struct tally_export_threads *out)
{
	const struct tally_one_sample *samples = out->samples->samples.items;
	for (size_t i = 0; i < count; i++) {
		size_t last = out->threads.count - 1;
		if (!out->threads.count || out->threads.items[last].thread != ordered[i].thread) {
			struct tally_export_thread thread = { .thread = ordered[i].thread,
							      .first = i };
			if (tally_vector_push(&out->threads, thread) < 0)
				return -ENOMEM;
			last = out->threads.count - 1;
		}
		out->order[i] = ordered[i].sample;
		out->threads.items[last].count++;
		out->threads.items[last].weight += samples[ordered[i].sample].period;
	}
	if (out->threads.count)
		qsort(out->threads.items, out->threads.count, sizeof(*out->threads.items),
		      by_weight);
	return 0;
}

int tally_export_threads_make(const struct tally_samples *samples, uint32_t event,
			      struct tally_export_threads *out)
{
	size_t all = samples->samples.count, count = 0;
	struct ordered *ordered = malloc((all + 1) * sizeof(*ordered));
	*out = (struct tally_export_threads){ .samples = samples,
					      .is_time = tally_export_is_time(samples, event),
					      .files = tally_export_files(samples),
					      .order = malloc((all + 1) * sizeof(*out->order)) };
	int result = -ENOMEM;
	if (!ordered || !out->files || !out->order)
		goto done;
	for (size_t i = 0; i < all; i++)
		if (samples->samples.items[i].event == event)
			ordered[count++] = (struct ordered){ samples->samples.items[i].thread,
							     (uint32_t)i };
	if (count)
		qsort(ordered, count, sizeof(*ordered), by_thread);
	result = gather(ordered, count, out);
done:
	free(ordered);
	return result;
}

void tally_export_threads_release(struct tally_export_threads *threads)
{
	free(threads->files);
	free(threads->order);
	tally_vector_release(&threads->threads);
}

uint32_t *tally_export_files(const struct tally_samples *samples)
{
	const struct tally_names *names = &samples->recording->names;
	uint32_t *files = malloc((names->functions.count + 1) * sizeof(*files));
	for (size_t i = 0; files && i < names->functions.count; i++)
		files[i] = TALLY_STRING_NONE;
	for (size_t i = 0; files && i < names->frames.count; i++) {
		const struct tally_place_frame *frame = &names->frames.items[i];
		if (files[frame->function] == TALLY_STRING_NONE)
			files[frame->function] = frame->file;
	}
	return files;
}

static const struct tally_recorded_event *event_of(const struct tally_samples *samples,
						   uint32_t event)
{
	size_t count;
	return &tally_perfdata_events(samples->recording->data, &count)[event];
}

bool tally_export_is_time(const struct tally_samples *samples, uint32_t event)
{
	return tally_recording_weighs_time(samples->recording, event_of(samples, event));
}

const char *tally_export_event_name(const struct tally_samples *samples, uint32_t event)
{
	return event_of(samples, event)->name;
}

const struct tally_thread *tally_export_task(const struct tally_samples *samples, uint32_t thread,
					     const char **comm)
{
	const struct tally_tasks *tasks = &samples->recording->tasks;
	const struct tally_thread *task = &tasks->threads.items[thread];
	*comm = "[unknown]";
	if (task->comm != TALLY_STRING_NONE)
		*comm = tally_strings_text(&tasks->strings, task->comm);
	return task;
}
