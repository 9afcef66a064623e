/* Debug files have tens of megabytes, and a system-wide profile has hundreds of objects.  So only
 * objects are fetched that are in the stacks of at least 1 % of the samples.  The hottest come
 * first: a user who interrupts the fetching has the most useful files by then. */
#include "profile/profile_internal.h"

#include "base/extremes.h"
#include "base/terminal.h"
#include "naming/naming.h"
#include "object/object.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOT_PER_CENT = 1, FILES_MAX = 32 };

struct hot_file {
	uint64_t samples; /* samples that have the file in their stack */
	uint32_t file;
	uint32_t last_row; /* last row that was counted for it, + 1 */
};

struct fetching {
	struct tally_names *names;
	const char *object; /* name of the object whose file is being fetched */
};

static uint64_t count_samples(const struct tally_names *names, const struct tally_row_table *rows,
			      const struct tally_place_table *places, struct hot_file *hot,
			      size_t files)
{
	uint64_t all = 0;
	for (uint32_t i = 0; i < rows->rows.count; i++) {
		const uint8_t *end, *at = tally_row_stack(rows, i, &end);
		uint64_t samples = rows->rows.items[i].samples;
		all += samples;
		while (at && at < end) {
			uint32_t place = tally_stack_next_place(&at);
			uint32_t file = tally_names_file(names, &places->places.items[place]);
			/* the kernel has the last slot */
			if (file == TALLY_FILE_KERNEL)
				file = (uint32_t)files;
			if (file > files || hot[file].last_row == i + 1)
				continue;
			hot[file].last_row = i + 1;
			hot[file].samples += samples;
		}
	}
	return all;
}

static int hotter_first(const void *a_, const void *b_)
{
	const struct hot_file *a = a_, *b = b_;
	int order = tally_compare_u64(b->samples, a->samples);
	if (order)
		return order;
	return tally_compare_u64(a->file, b->file);
}

static bool on_progress(void *context, uint64_t bytes, uint64_t total)
{
	const struct fetching *fetching = context;
	const struct tally_name_sources *sources = &fetching->names->sources;
	return !sources->fetching ||
	       sources->fetching(sources->fetching_context, fetching->object, bytes, total);
}

/* Reports that fetching begins.  Returns 0, or -EINTR when the user wants no more. */
static int begin(struct fetching *fetching)
{
	if (on_progress(fetching, 0, 0))
		return 0;
	return -EINTR;
}

static bool has_lines(const struct tally_object *object)
{
	struct tally_section section;
	return object && tally_object_section(object, ".debug_info", &section);
}

/* Fetches dwz's common file, which the debug file's units refer to. libdebuginfod's folder then has
 * both files side by side, where the reader looks for it. */
static void fetch_common(struct tally_debuginfod *server, const struct tally_object *debug)
{
	struct tally_section link;
	struct tally_object *common;
	struct tally_build_id id = { 0 };
	if (!tally_object_section(debug, ".gnu_debugaltlink", &link) || !link.bytes)
		return;
	size_t name = strnlen((const char *)link.bytes, link.size) + 1;
	if (name >= link.size || link.size - name > sizeof(id.bytes))
		return;
	id.size = (uint8_t)(link.size - name);
	memcpy(id.bytes, link.bytes + name, id.size);
	if (!tally_debuginfod_fetch(server, &id, TALLY_DEBUGINFOD_DEBUG, &common))
		tally_object_unref(common);
}

/* True for errors that end all fetching, not just one file's. */
static bool is_end(int result)
{
	return result == -EINTR || result == -ENOMEM;
}

static void note_unfetched(struct tally_names *names, const struct tally_build_id *id, int result)
{
	char text[2 * TALLY_BUILD_ID_MAX + 1];
	if (!result || is_end(result))
		return;
	names->gaps.unfetched_files++;
	tally_build_id_format(id, text);
	tally_buffer_printf(&names->gaps.details, "not fetched: build-id %s: %s\n", text,
			    tally_errno_text(result));
}

/* Returns 0, -EINTR when the user wants no more, or -ENOMEM. */
static int fetch_kernel(struct fetching *fetching, struct tally_debuginfod *server)
{
	struct tally_names *names = fetching->names;
	struct tally_build_id id;
	struct tally_object *vmlinux = NULL;
	if (tally_kernel_object(names) || !tally_kernel_build_id(names, &id))
		return 0;
	fetching->object = "vmlinux";
	int result = begin(fetching);
	if (!result)
		result = tally_debuginfod_fetch(server, &id, TALLY_DEBUGINFOD_DEBUG, &vmlinux);
	if (!result) {
		tally_kernel_object_use(names, vmlinux);
		result = tally_objects_keep_fetched(&names->objects, &id, NULL, vmlinux);
	}
	names->gaps.fetched_files += !result;
	note_unfetched(names, &id, result);
	if (is_end(result))
		return result;
	return 0;
}

/* Fetches the debug file of an opened file.  Returns 0, -EINTR when the user wants no more, or
 * -ENOMEM. */
static int fetch_debug(struct tally_names *names, struct tally_debuginfod *server,
		       struct tally_object_entry *entry, const struct tally_build_id *id,
		       bool is_object_fetched)
{
	struct tally_object *debug = NULL;
	int result = tally_debuginfod_fetch(server, id, TALLY_DEBUGINFOD_DEBUG, &debug);
	if (!result) {
		tally_object_unref(entry->debug);
		entry->debug = debug;
		entry->debug_tried = true;
		fetch_common(server, debug);
	}
	names->gaps.fetched_files += !result;
	note_unfetched(names, id, result);
	if ((debug || is_object_fetched) &&
	    tally_objects_keep_fetched(&names->objects, id,
				       is_object_fetched ? entry->object : NULL, debug) < 0)
		return -ENOMEM;
	if (is_end(result))
		return result;
	return 0;
}

/* Fetches what a file lacks.  Returns 0, -EINTR when the user wants no more, or -ENOMEM. */
static int fetch(struct fetching *fetching, struct tally_debuginfod *server, uint32_t file)
{
	struct tally_names *names = fetching->names;
	struct tally_object_entry *entry = tally_objects_get(&names->objects, names->tasks, file);
	const char *path = tally_tasks_path(names->tasks, file), *slash = strrchr(path, '/');
	if (!entry)
		return -ENOMEM;
	bool is_here = entry->object != NULL;
	bool has_all = is_here &&
		       (has_lines(entry->object) || has_lines(tally_objects_debug(entry)));
	const struct tally_build_id *id = &names->tasks->files.items[file].build_id;
	if (is_here)
		id = tally_object_build_id(entry->object);
	if (!id->size || names->tasks->files.items[file].pid || has_all || !strcmp(path, "[vdso]"))
		return 0;
	fetching->object = slash ? slash + 1 : path;
	int result = begin(fetching);
	if (!result && !is_here)
		result = tally_debuginfod_fetch(server, id, TALLY_DEBUGINFOD_EXECUTABLE,
						&entry->object);
	if (result) {
		if (!is_here)
			entry->object = NULL;
		note_unfetched(names, id, result);
		if (is_end(result))
			return result;
		return 0;
	}
	entry->state = TALLY_OBJECT_OPEN;
	return fetch_debug(names, server, entry, id, !is_here);
}

int tally_fetch_names(struct tally_names *names, const struct tally_row_table *rows,
		      const struct tally_place_table *places)
{
	struct fetching fetching = { .names = names };
	struct tally_debuginfod *server;
	size_t files = names->tasks->files.count;
	if (!names->sources.asks_debuginfod)
		return 0;
	struct hot_file *hot = calloc(files + 1, sizeof(*hot));
	if (!hot)
		return -ENOMEM;
	int result = tally_debuginfod_open(names->sources.debuginfod_urls, on_progress, &fetching,
					   &server, NULL);
	if (result < 0) { /* the command that took the option has reported it */
		free(hot);
		if (result == -ENOMEM)
			return result;
		return 0;
	}
	for (uint32_t i = 0; i <= files; i++)
		hot[i].file = i;
	uint64_t all = count_samples(names, rows, places, hot, files);
	qsort(hot, files + 1, sizeof(*hot), hotter_first);
	for (size_t i = 0; !result && i <= files && i < FILES_MAX &&
			   hot[i].samples * 100 >= all * HOT_PER_CENT && hot[i].samples;
	     i++) {
		if (hot[i].file == files)
			result = fetch_kernel(&fetching, server);
		else
			result = fetch(&fetching, server, hot[i].file);
	}
	names->gaps.fetching_ended = result == -EINTR;
	if (names->sources.fetching)
		names->sources.fetching(names->sources.fetching_context, "", 0, 0);
	tally_debuginfod_close(server);
	free(hot);
	if (result == -ENOMEM)
		return result;
	return 0;
}

/* --- objects without names -------------------------------------------------- */

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
	if (is_file && function->name == TALLY_STRING_NONE)
		return file;
	return TALLY_FILE_NONE;
}

/* Returns the list that the file belongs to; NULL: another message reports what it lacks. */
static struct tally_nameless *list_of(struct tally_names *names, uint32_t file)
{
	if (tally_is_guest_path(tally_tasks_path(names->tasks, file)))
		return NULL;
	/* A recording that carries its names gives the same report on every machine: it knows the
	 * object of each file that was there when the names were packed. */
	if (tally_names_are_carried(names)) {
		if (tally_names_carry_object(names, file))
			return &names->gaps.nameless;
		return &names->gaps.absent;
	}
	const struct tally_object_entry *entry = tally_objects_get(&names->objects, names->tasks,
								   file);
	if (entry && entry->state == TALLY_OBJECT_CHANGED)
		return NULL;
	bool is_absent = entry && entry->state == TALLY_OBJECT_MISSING &&
			 tally_tasks_path(names->tasks, file)[0] == '/';
	if (is_absent)
		return &names->gaps.absent;
	return &names->gaps.nameless;
}

/* Lists the files, those with most samples first. */
static void list(struct tally_names *names, const struct hot_file *hot, size_t files, uint64_t all)
{
	struct tally_names_gaps *gaps = &names->gaps;
	for (size_t i = 0; i < files && hot[i].samples; i++) {
		if (!names->sources.verbose && hot[i].samples * 100 < all * LISTED_PER_CENT)
			break;
		char path[PATH_MAX];
		tally_terminal_clean_name(tally_tasks_path(names->tasks, hot[i].file), path,
					  sizeof(path));
		const char *slash = strrchr(path, '/');
		struct tally_nameless *list = list_of(names, hot[i].file);
		double percent = 100.0 * (double)hot[i].samples / (double)all;
		if (list)
			tally_buffer_printf(&gaps->details, "without names: %.1f%%, %s%s\n",
					    percent, path,
					    list == &gaps->absent ? " (not found)" : "");
		if (list && list->listed < LISTED_MAX && percent >= LISTED_PER_CENT) {
			size_t length = strlen(list->objects);
			const char *comma = list->listed++ ? ", " : "";
			snprintf(list->objects + length, sizeof(list->objects) - length, "%s%.32s",
				 comma, slash ? slash + 1 : path);
			list->percent += percent;
		}
	}
	gaps->nameless.listed *= gaps->nameless.percent >= WORTH_PER_CENT;
	gaps->absent.listed *= gaps->absent.percent >= WORTH_PER_CENT;
}

int tally_note_nameless(struct tally_profile *profile)
{
	struct tally_names *names = &profile->recording->names;
	size_t files = names->tasks->files.count;
	struct hot_file *hot = calloc(files + 1, sizeof(*hot));
	uint64_t all = 0;
	if (!hot)
		return -ENOMEM;
	for (uint32_t file = 0; file < files; file++)
		hot[file].file = file;
	for (uint32_t row = 0; row < profile->rows.rows.count; row++) {
		uint32_t file = nameless_file(profile, row);
		all += profile->rows.rows.items[row].samples;
		if (file != TALLY_FILE_NONE)
			hot[file].samples += profile->rows.rows.items[row].samples;
	}
	qsort(hot, files, sizeof(*hot), hotter_first);
	list(names, hot, files, all);
	free(hot);
	return 0;
}
