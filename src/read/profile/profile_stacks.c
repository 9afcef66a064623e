/* A profile's stacks by name, for fold and flame graphs. */
#include "profile/profile.h"

#include "base/vector.h"
#include "naming/naming.h"
#include "profile/stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint32_t frame_of(const struct tally_names *names, uint32_t function,
			 struct tally_stacks *out)
{
	struct tally_buffer full = { 0 };
	uint32_t number = tally_stacks_frame(out, tally_names_plain_text(names, function),
					     tally_names_short_object(names, function),
					     names->functions.items[function].kind);
	if (number == UINT32_MAX || !out->with_full_names)
		return number;
	tally_names_full_text(names, function, &full);
	uint32_t id = TALLY_STRING_NONE;
	if (!full.failed)
		id = tally_strings_intern(&out->strings, tally_buffer_string(&full));
	tally_buffer_release(&full);
	out->frames.items[number].full = id;
	if (id == TALLY_STRING_NONE)
		return UINT32_MAX;
	return number;
}

/* Returns the frame for a function and line; without a line, the function's frame. */
static uint32_t line_frame(const struct tally_names *names, const struct tally_place_frame *frame,
			   uint32_t function, struct tally_stacks *out)
{
	struct tally_buffer text = { 0 };
	const struct tally_frame whole = out->frames.items[function];
	if (frame->file == TALLY_STRING_NONE || !frame->line)
		return function;
	const char *path = tally_strings_text(&names->strings, frame->file),
		   *slash = strrchr(path, '/');
	if (slash && slash[1])
		path = slash + 1;
	tally_buffer_printf(&text, "%s %s:%" PRIu32, tally_strings_text(&out->strings, whole.name),
			    path, frame->line);
	uint32_t number = UINT32_MAX;
	if (!text.failed)
		number = tally_stacks_frame(out, tally_buffer_string(&text),
					    tally_strings_text(&out->strings, whole.object),
					    whole.kind);
	tally_buffer_clear(&text);
	if (number != UINT32_MAX && whole.full != TALLY_STRING_NONE) {
		tally_buffer_printf(&text, "%s %s:%" PRIu32,
				    tally_strings_text(&out->strings, whole.full), path,
				    frame->line);
		out->frames.items[number].full = tally_strings_intern(&out->strings,
								      tally_buffer_string(&text));
	}
	tally_buffer_release(&text);
	return number;
}

/* A function without a symbol is named by an address, which differs between builds.  A comparison
 * has to know the build. */
static void note_build(struct tally_names *names, const struct tally_place *place,
		       struct tally_frame *frame)
{
	const struct tally_build_id id = tally_names_build_id(names,
							      tally_names_file(names, place));
	uint64_t build = 0;
	for (size_t i = 0; i < id.size; i++)
		build = tally_hash64(build ^ id.bytes[i]) | 2;
	if (!build || (frame->build && frame->build != build))
		build = TALLY_BUILD_UNKNOWN;
	frame->build = build;
}

/* Returns an array by function: its frame in `out`. */
static uint32_t *make_frames(const struct tally_names *names, struct tally_stacks *out)
{
	uint32_t *frames = malloc((names->functions.count + 1) * sizeof(*frames));
	for (uint32_t i = 0; frames && i < names->functions.count; i++) {
		frames[i] = frame_of(names, i, out);
		if (frames[i] == UINT32_MAX) {
			free(frames);
			return NULL;
		}
	}
	return frames;
}

/* Returns an array by class: its thread in `out`; UINT32_MAX for other events. */
static uint32_t *make_threads(const struct tally_profile *profile, uint32_t event, bool by_thread,
			      struct tally_stacks *out)
{
	const struct tally_tasks *tasks = &profile->recording->tasks;
	uint32_t *threads = malloc((profile->classes.count + 1) * sizeof(*threads));
	for (size_t i = 0; threads && i < profile->classes.count; i++) {
		const struct tally_class *class = &profile->classes.items[i];
		uint32_t pid = 0, tid = 0;
		if (by_thread && class->thread < tasks->threads.count) {
			pid = tasks->threads.items[class->thread].pid;
			tid = tasks->threads.items[class->thread].tid;
		}
		threads[i] = UINT32_MAX;
		if (class->event != event)
			continue;
		threads[i] = tally_stacks_thread(out,
						 tally_strings_text(&tasks->strings, class->comm),
						 pid, tid);
		if (threads[i] == UINT32_MAX) {
			free(threads);
			return NULL;
		}
	}
	return threads;
}

/* Makes a step of each place of the rows. */
static int make_steps(const struct tally_profile *profile, struct tally_stacks *out)
{
	struct tally_names *names = &profile->recording->names;
	size_t places = profile->places.places.count;
	uint32_t *frames = make_frames(names, out);
	int result = -ENOMEM;
	if (!frames || tally_vector_reserve(&out->steps, places) < 0)
		goto out;
	for (size_t i = 0; i < places; i++) {
		const struct tally_place_name *name = &profile->names[i];
		struct tally_step step = { .first = (uint32_t)out->step_frames.count,
					   .count = name->count };
		uint32_t symbol = tally_profile_symbol(profile, (uint32_t)i);
		if (names->functions.items[symbol].name == TALLY_STRING_NONE)
			note_build(names, &profile->places.places.items[i],
				   &out->frames.items[frames[symbol]]);
		for (uint32_t n = 0; n < name->count; n++) {
			const struct tally_place_frame *frame =
				&names->frames.items[name->first + n];
			uint32_t number = frames[frame->function];
			if (out->by_line)
				number = line_frame(names, frame, number, out);
			if (number == UINT32_MAX ||
			    tally_vector_push(&out->step_frames, number) < 0)
				goto out;
		}
		if (out->step_frames.count > UINT32_MAX || tally_vector_push(&out->steps, step) < 0)
			goto out;
	}
	result = 0;
out:
	free(frames);
	return result;
}

/* Moves the rows to `out`, without those of other events. */
static void take_rows(struct tally_profile *profile, const uint32_t *threads, bool by_period,
		      struct tally_stacks *out)
{
	struct tally_row_table *table = &out->rows;
	size_t kept = 0, bytes = 0;
	*table = profile->rows;
	profile->rows = (struct tally_row_table){ 0 };
	for (size_t i = 0; i < table->rows.count; i++) {
		struct tally_row row = table->rows.items[i];
		const uint8_t *end, *stack = tally_row_stack(table, i, &end);
		size_t size = (size_t)(end - stack);
		if (threads[row.class] == UINT32_MAX)
			continue;
		if (size && bytes != row.stack)
			memmove(table->stacks.items + bytes, stack, size);
		row.stack = bytes & (((uint64_t)1 << 40) - 1);
		row.class = threads[row.class] & (TALLY_CLASSES_MAX - 1);
		if (!by_period)
			row.period = row.samples;
		table->rows.items[kept++] = row;
		bytes += size;
		out->total_weight += row.period;
		out->total_samples += row.samples;
	}
	table->rows.count = kept;
	table->stacks.count = bytes;
}

int tally_profile_stacks(struct tally_profile *profile, uint32_t event, bool by_thread,
			 bool by_period, struct tally_stacks *out)
{
	uint32_t *threads = make_threads(profile, event, by_thread, out);
	int result = -ENOMEM;
	if (threads)
		result = make_steps(profile, out);
	if (!result)
		take_rows(profile, threads, by_period, out);
	if (by_period)
		out->weights_cut = tally_recording_weights_cut(profile->recording, event);
	free(threads);
	return result;
}
