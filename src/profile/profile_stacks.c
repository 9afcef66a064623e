/* A profile's stacks by name: what fold prints and flame graphs draw. */
#include "profile/profile.h"

#include "base/vector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct frame_ids {
	uint32_t *items;
	size_t count, capacity;
};

static uint32_t frame_of(const struct tally_names *names, uint32_t function, struct tally_stacks *out)
{
	const char *object = tally_names_short_object(names, function);
	char buffer[512];
	const char *text = buffer;
	if (names->functions.items[function].name != TALLY_STRING_NONE)
		text = tally_names_plain_text(names, function);
	else
		snprintf(buffer, sizeof(buffer), object[0] == '[' ? "%s" : "[%s]", object);
	return tally_stacks_frame(out, text, object, names->functions.items[function].kind);
}

/* By function: its frame in `out`. */
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

/* By class: its thread in `out`; UINT32_MAX for those of other events. */
static uint32_t *make_threads(const struct tally_profile *profile, uint32_t event, bool by_thread,
			      struct tally_stacks *out)
{
	const struct tally_tasks *tasks = &profile->recording->tasks;
	uint32_t *threads = malloc((profile->classes.count + 1) * sizeof(*threads));
	for (size_t i = 0; threads && i < profile->classes.count; i++) {
		const struct tally_class *class = &profile->classes.items[i];
		bool apart = by_thread && class->thread < tasks->threads.count;
		const struct tally_thread *task = apart ? &tasks->threads.items[class->thread] : NULL;
		threads[i] = UINT32_MAX;
		if (class->event != event)
			continue;
		threads[i] = tally_stacks_thread(out, tally_strings_text(&tasks->strings, class->comm),
						 apart ? task->pid : 0, apart ? task->tid : 0);
		if (threads[i] == UINT32_MAX) {
			free(threads);
			return NULL;
		}
	}
	return threads;
}

/* A row's frames, root first. */
static int expand(const struct tally_profile *profile, size_t row, const uint32_t *frames,
		  struct frame_ids *path)
{
	const struct tally_names *names = &profile->recording->names;
	const uint8_t *end, *next = tally_row_stack(&profile->rows, row, &end);
	path->count = 0;
	while (next < end) {
		const struct tally_place_name *name = &profile->names[tally_stack_next_place(&next)];
		for (uint32_t i = 0; i < name->count; i++)
			if (tally_vector_push(path, frames[names->frames.items[name->first + i].function]) < 0)
				return -ENOMEM;
	}
	for (size_t low = 0, high = path->count; low + 1 < high; low++) {
		uint32_t kept = path->items[low];
		path->items[low] = path->items[--high];
		path->items[high] = kept;
	}
	return 0;
}

int tally_profile_stacks(const struct tally_profile *profile, uint32_t event, bool by_thread, bool by_period,
			 struct tally_stacks *out)
{
	uint32_t *frames = make_frames(&profile->recording->names, out);
	uint32_t *threads = make_threads(profile, event, by_thread, out);
	struct frame_ids path = { 0 };
	int result = frames && threads ? 0 : -ENOMEM;
	/* Mostly a place is a frame, and a byte: what is not touched costs nothing. */
	if (!result && (tally_vector_reserve(&out->stacks, profile->rows.rows.count) < 0 ||
			tally_vector_reserve(&out->frame_ids, profile->rows.stacks.count) < 0))
		result = -ENOMEM;
	for (size_t i = 0; !result && i < profile->rows.rows.count; i++) {
		const struct tally_row *row = &profile->rows.rows.items[i];
		if (threads[row->class] == UINT32_MAX)
			continue;
		result = expand(profile, i, frames, &path);
		if (!result)
			result = tally_stacks_append(out, threads[row->class], path.items, path.count,
						     by_period ? row->period : row->samples, row->samples);
	}
	tally_vector_release(&path);
	free(frames);
	free(threads);
	return result;
}
