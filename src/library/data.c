/* libtally's recordings, built on the same reader as report and script. */
#include "tally/data.h"

#include "base/vector.h"
#include "library/library_events.h"
#include "naming/naming.h"
#include "recording/recording.h"

#include <errno.h>
#include <stdlib.h>

struct tally_data {
	struct tally_recording *recording;
	struct tally_place_table places;
	/* by place; count 0: not yet named */
	struct { struct tally_place_name *items; size_t count, capacity; } names;
	/* of the present sample */
	struct { struct tally_data_frame *items; size_t count, capacity; } frames;
	struct tally_data_sample sample;
	struct tally_raw_record raw;
	struct tally_record record;
	char comm[16];
};

struct tally_data *tally_data_open(const char *path, char *error, size_t error_size)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_data *data = calloc(1, sizeof(*data));
	if (!data)
		return NULL;
	int result = tally_recording_open(path, &data->recording, &err);
	if (result < 0) {
		free(data);
		tally_library_fail(result, &err, error, error_size);
		return NULL;
	}
	data->recording->names.options.real_paths = true;
	tally_names_use_cache(&data->recording->names);
	return data;
}

/* Returns the name of a place.  Looks each place up once. */
static const struct tally_place_name *name_of(struct tally_data *data,
					      const struct tally_place *place)
{
	uint32_t number = tally_place_table_intern(&data->places, place);
	const struct tally_place_name unnamed = { .count = 0 };
	while (number != UINT32_MAX && data->names.count <= number)
		if (tally_vector_push(&data->names, unnamed) < 0)
			return NULL;
	if (number == UINT32_MAX)
		return NULL;
	struct tally_place_name *name = &data->names.items[number];
	if (!name->count && tally_names_resolve(&data->recording->names, place, 1, name) < 0)
		return NULL;
	return name;
}

static int add_frames(struct tally_data *data, const struct tally_chain_frame *frame)
{
	struct tally_names *names = &data->recording->names;
	char map[TALLY_PERF_MAP_PATH_BYTES];
	const struct tally_place_name *name = name_of(data, &frame->place);
	if (!name)
		return -ENOMEM;
	for (uint32_t i = 0; i < name->count; i++) {
		const struct tally_place_frame *from = &names->frames.items[name->first + i];
		const struct tally_function *function = &names->functions.items[from->function];
		uint32_t object = tally_strings_intern(
			&names->strings, tally_names_mapped_object(names, from->function, map));
		if (object == TALLY_STRING_NONE)
			return -ENOMEM;
		struct tally_data_frame to = {
			.address = frame->address,
			.object = tally_strings_text(&names->strings, object),
			.line = from->line,
			.inlined = i + 1 < name->count,
		};
		if (function->name != TALLY_STRING_NONE)
			to.function = tally_names_plain_text(names, from->function);
		if (from->file != TALLY_STRING_NONE)
			to.file = tally_strings_text(&names->strings, from->file);
		if (tally_vector_push(&data->frames, to) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int fill_sample(struct tally_data *data)
{
	struct tally_recording *recording = data->recording;
	const struct tally_sample *sample = &data->record.sample;
	data->frames.count = 0;
	if (tally_recording_chain(recording, &data->raw, &data->record) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < recording->chain.count; i++)
		if (add_frames(data, &recording->chain.items[i]) < 0)
			return -ENOMEM;
	data->sample = (struct tally_data_sample){
		.event = data->raw.event->name,
		.comm = tally_tasks_comm(&recording->tasks, sample->pid, sample->tid, data->comm),
		.pid = sample->pid, .tid = sample->tid,
		.cpu = sample->type & TALLY_SAMPLE_CPU ? sample->cpu : UINT32_MAX,
		.time = sample->type & TALLY_SAMPLE_TIME ? sample->time : 0,
		.period = sample->period,
		.frames = data->frames.items, .frame_count = data->frames.count,
		.record = &data->record,
	};
	return 0;
}

/* Returns 1, 0 at the end, or -1. */
static int next_record(struct tally_data *data, char *error, size_t error_size)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int result = tally_recording_next(data->recording, &data->raw, &data->record, &err);
	if (result < 0)
		tally_library_fail(result, &err, error, error_size);
	if (result < 0)
		return -1;
	return result;
}

int tally_data_next(struct tally_data *data, const struct tally_data_sample **sample, char *error,
		    size_t error_size)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int result;
	while ((result = next_record(data, error, error_size)) > 0) {
		if (data->record.header.type != TALLY_RECORD_SAMPLE)
			continue;
		if (fill_sample(data) < 0) {
			tally_error_set(&err, -ENOMEM, "out of memory");
			tally_library_fail(-ENOMEM, &err, error, error_size);
			return -1;
		}
		*sample = &data->sample;
		return 1;
	}
	return result;
}

int tally_data_next_record(struct tally_data *data, const struct tally_record **record, char *error,
			   size_t error_size)
{
	int result = next_record(data, error, error_size);
	*record = &data->record;
	return result;
}

uint64_t tally_data_lost(const struct tally_data *data)
{
	return data->recording->counts.lost;
}

const char *tally_data_damage(const struct tally_data *data)
{
	const struct tally_error *damage = tally_perfdata_damage(data->recording->data);
	if (!damage)
		return NULL;
	return damage->message;
}

void tally_data_close(struct tally_data *data)
{
	if (!data)
		return;
	tally_recording_close(data->recording);
	tally_place_table_release(&data->places);
	tally_vector_release(&data->names);
	tally_vector_release(&data->frames);
	free(data);
}
