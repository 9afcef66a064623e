/* Reads all samples, interns each chain as a row of class 0, and names the places at the end. */
#include "profile/profile.h"

#include "base/vector.h"
#include "profile/profile_internal.h"

#include "tally/perf_event.h"

#include <errno.h>
#include <stdlib.h>

enum { PROGRESS_EVERY = 20000 };

struct bytes {
	uint8_t *items;
	size_t count, capacity;
};

/* Interns the chain that the recording just gave, as numbers of places. */
static int intern_stack(struct tally_samples *samples, struct bytes *bytes, uint32_t *stack)
{
	const struct tally_recording *recording = samples->recording;
	bytes->count = 0;
	if (tally_vector_reserve(bytes, recording->chain.count * TALLY_PLACE_BYTES_MAX + 1) < 0)
		return -ENOMEM;
	uint8_t *at = bytes->items;
	for (size_t i = 0; i < recording->chain.count; i++) {
		uint32_t place = tally_place_table_intern(&samples->places,
							  &recording->chain.items[i].place);
		if (place == UINT32_MAX)
			return -ENOMEM;
		at = tally_stack_put_place(at, place);
	}
	size_t size = (size_t)(at - bytes->items);
	*stack = tally_row_table_put(&samples->stacks, tally_row_table_hash(0, bytes->items, size),
				     0, bytes->items, size);
	if (*stack == UINT32_MAX)
		return -ENOMEM;
	return 0;
}

static int add_sample(struct tally_samples *samples, struct bytes *bytes,
		      const struct tally_raw_record *raw, const struct tally_record *record)
{
	struct tally_recording *recording = samples->recording;
	const struct tally_sample *sample = &record->sample;
	size_t event_count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data,
									  &event_count);
	struct tally_one_sample one = {
		.time = sample->type & TALLY_SAMPLE_TIME ? sample->time : 0,
		.thread = tally_tasks_thread(&recording->tasks, sample->pid, sample->tid),
		.event = (uint32_t)(raw->event - events),
		.period = sample->period,
		.is_idle_task = tally_tasks_is_idle(&recording->tasks, sample->pid, sample->tid),
	};
	if (one.thread == UINT32_MAX ||
	    tally_recording_weigh(recording, one.event, &one.period) < 0 ||
	    tally_recording_chain(recording, raw, record) < 0 ||
	    intern_stack(samples, bytes, &one.stack) < 0)
		return -ENOMEM;
	samples->stacks.rows.items[one.stack].samples++;
	return tally_vector_push(&samples->samples, one);
}

static int read_all(struct tally_samples *samples, const struct tally_samples_options *options,
		    struct tally_error *err)
{
	struct tally_recording *recording = samples->recording;
	uint64_t size = tally_perfdata_size(recording->data);
	struct bytes bytes = { 0 };
	struct tally_raw_record raw;
	struct tally_record record;
	int result;
	while ((result = tally_recording_next(recording, &raw, &record, err)) > 0) {
		if (record.header.type == TALLY_RECORD_SAMPLE &&
		    add_sample(samples, &bytes, &raw, &record) < 0) {
			result = tally_error_set(err, -ENOMEM, "out of memory");
			break;
		}
		if (options->progress && size && !(recording->counts.records % PROGRESS_EVERY))
			options->progress(options->context, (double)raw.file_offset / (double)size);
	}
	tally_vector_release(&bytes);
	return result;
}

static int name_places(struct tally_samples *samples, struct tally_error *err)
{
	size_t count = samples->places.places.count;
	if (tally_fetch_names(&samples->recording->names, &samples->stacks, &samples->places) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	samples->names = malloc((count + 1) * sizeof(*samples->names));
	if (samples->names && !tally_row_table_heat(&samples->stacks, &samples->places) &&
	    !tally_names_resolve(&samples->recording->names, samples->places.places.items, count,
				 samples->names) &&
	    !tally_names_tell_apart(&samples->recording->names))
		return 0;
	return tally_error_set(err, -ENOMEM, "out of memory");
}

int tally_samples_new(struct tally_recording *recording,
		      const struct tally_samples_options *options, struct tally_samples **out,
		      struct tally_error *err)
{
	struct tally_samples *samples = calloc(1, sizeof(*samples));
	if (!samples) {
		tally_recording_close(recording);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	samples->recording = recording;
	recording->options.marks_cut = true;
	int result = tally_recording_filter(recording, &options->filter, err);
	if (result < 0)
		goto failed;
	result = read_all(samples, options, err);
	if (result < 0)
		goto failed;
	if (!samples->samples.count)
		result = tally_recording_is_empty(recording, 0, err);
	if (result < 0)
		goto failed;
	result = name_places(samples, err);
	if (result < 0)
		goto failed;
	tally_row_table_finish(&samples->stacks);
	*out = samples;
	return 0;

failed:
	tally_samples_free(samples);
	return result;
}

void tally_samples_free(struct tally_samples *samples)
{
	if (!samples)
		return;
	tally_recording_close(samples->recording);
	tally_vector_release(&samples->samples);
	tally_row_table_release(&samples->stacks);
	tally_place_table_release(&samples->places);
	free(samples->names);
	free(samples);
}

static int push_frame(struct tally_place_frames *out, const struct tally_place_frame *frame,
		      uint32_t place)
{
	if (out->count == out->capacity) {
		size_t capacity = out->capacity ? 2 * out->capacity : 64;
		struct tally_place_frame *items = realloc(out->items, capacity * sizeof(*items));
		if (!items)
			return -ENOMEM;
		out->items = items;
		uint32_t *places = realloc(out->places, capacity * sizeof(*places));
		if (!places)
			return -ENOMEM;
		out->places = places;
		out->capacity = capacity;
	}
	out->items[out->count] = *frame;
	out->places[out->count++] = place;
	return 0;
}

int tally_samples_frames(const struct tally_samples *samples, uint32_t stack,
			 struct tally_place_frames *out)
{
	const struct tally_names *names = &samples->recording->names;
	const uint8_t *end, *start = tally_row_stack(&samples->stacks, stack, &end);
	out->count = 0;
	while (end > start) {
		uint32_t place = tally_stack_last_place(start, &end);
		const struct tally_place_name *name = &samples->names[place];
		for (uint32_t i = name->count; i--;)
			if (push_frame(out, &names->frames.items[name->first + i], place) < 0)
				return -ENOMEM;
	}
	return 0;
}

void tally_place_frames_release(struct tally_place_frames *frames)
{
	free(frames->items);
	free(frames->places);
	*frames = (struct tally_place_frames){ 0 };
}
