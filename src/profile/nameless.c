#include "profile/fetch_names.h"

#include "naming/name_functions.h"
#include "naming/packed_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORTH_PER_CENT = 5, LISTED_PER_CENT = 2, LISTED_MAX = 3 };

/* Returns the file of the row's leaf if its function has no name; else TALLY_FILE_NONE. */
static uint32_t nameless_file(const struct tally_profile *profile, uint32_t row)
{
	const struct tally_names *names = &profile->recording->names;
	const uint8_t *end, *at = tally_row_stack(&profile->rows, row, &end);
	if (!at || at == end)
		return TALLY_FILE_NONE;
	uint32_t place = tally_stack_next_place(&at);
	uint32_t file = tally_names_file(names, &profile->places.places.items[place]);
	const struct tally_place_name *name = &profile->names[place];
	const struct tally_function *function =
		&names->functions
			 .items[names->frames.items[name->first + name->count - 1].function];
	bool is_file = file < names->tasks->files.count && !names->tasks->files.items[file].pid;
	return is_file && function->name == TALLY_STRING_NONE ? file : TALLY_FILE_NONE;
}

/* Returns the list that the file belongs to; NULL: another message reports what it lacks. */
static struct tally_nameless *list_of(struct tally_names *names, uint32_t file)
{
	/* A recording that carries its names gives the same report on every machine: it knows the
	 * object of each file that was there when the names were packed. */
	if (names->packed)
		return tally_packed_names_object(names->packed, names->tasks, file)
			       ? &names->gaps.nameless
			       : &names->gaps.absent;
	const struct tally_object_entry *entry = tally_objects_get(&names->objects, names->tasks,
								   file);
	if (entry && entry->state == TALLY_OBJECT_CHANGED)
		return NULL;
	bool is_absent = entry && entry->state == TALLY_OBJECT_MISSING &&
			 tally_tasks_path(names->tasks, file)[0] == '/';
	return is_absent ? &names->gaps.absent : &names->gaps.nameless;
}

static void list(struct tally_names *names, uint64_t *samples, size_t files, uint64_t all)
{
	for (;;) {
		uint32_t most = 0;
		for (uint32_t file = 1; file < files; file++)
			most = samples[file] > samples[most] ? file : most;
		if (!samples[most] || samples[most] * 100 < all * LISTED_PER_CENT)
			break;
		const char *path = tally_tasks_path(names->tasks, most),
			   *slash = strrchr(path, '/');
		struct tally_nameless *list = list_of(names, most);
		if (list && list->listed < LISTED_MAX) {
			size_t length = strlen(list->objects);
			snprintf(list->objects + length, sizeof(list->objects) - length, "%s%.32s",
				 list->listed++ ? ", " : "", slash ? slash + 1 : path);
			list->percent += 100.0 * (double)samples[most] / (double)all;
		}
		samples[most] = 0;
	}
	struct tally_names_gaps *gaps = &names->gaps;
	gaps->nameless.listed *= gaps->nameless.percent >= WORTH_PER_CENT;
	gaps->absent.listed *= gaps->absent.percent >= WORTH_PER_CENT;
}

int tally_note_nameless(struct tally_profile *profile)
{
	struct tally_names *names = &profile->recording->names;
	size_t files = names->tasks->files.count;
	uint64_t all = 0, *samples = calloc(files + 1, sizeof(*samples));
	if (!samples)
		return -ENOMEM;
	for (uint32_t row = 0; row < profile->rows.rows.count; row++) {
		uint32_t file = nameless_file(profile, row);
		all += profile->rows.rows.items[row].samples;
		if (file != TALLY_FILE_NONE)
			samples[file] += profile->rows.rows.items[row].samples;
	}
	if (files)
		list(names, samples, files, all);
	free(samples);
	return 0;
}
