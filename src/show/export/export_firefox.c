/* The Firefox Profiler's processed profile: for each thread, tables of functions, frames and stacks
 * that are stored by column and refer to one another by row number. */
#include "export/export_internal.h"

#include "base/json.h"
#include "base/vector.h"

#include <errno.h>
#include <stdio.h>

enum { VERSION = 48, RESOURCE_LIBRARY = 1 };

/* By enum tally_frame_kind + 1. The profiler uses the first as its default and needs it grey. */
static const struct { const char *name, *colour;
} categories[] = {
	{ "Other", "grey" },    { "Program", "yellow" }, { "Library", "blue" },
	{ "Kernel", "orange" }, { "JIT", "green" },      { "Inlined", "lightblue" },
};

static unsigned category_of(enum tally_frame_kind kind)
{
	if (kind < TALLY_FRAME_KINDS)
		return (unsigned)kind + 1;
	return 0;
}

struct column {
	uint32_t *items;
	size_t count, capacity;
};

/* The tables of a thread. Missing numbers are UINT32_MAX and written as null. */
struct thread_tables {
	const struct tally_samples *samples;
	const uint32_t *files; /* source file by function */
	struct tally_map strings, resources, functions, frames, stacks; /* key → row */
	struct { const char **items; size_t count, capacity; } texts;
	struct column resource_names, function_names, function_resources, function_files;
	struct column frame_functions, frame_lines, frame_depths, frame_categories;
	struct column stack_frames, stack_prefixes, stack_categories;
	bool failed;
};

static uint32_t add(struct thread_tables *tables, struct column *column, uint32_t value)
{
	if (tally_vector_push(column, value) < 0)
		tables->failed = true;
	return (uint32_t)column->count - 1;
}

/* Returns the row of a key; sets `*is_new` if the caller must fill the row. */
static uint32_t row_of(struct thread_tables *tables, struct tally_map *map, uint64_t key,
		       size_t rows, bool *is_new)
{
	uint64_t *slot = tally_map_put(map, key, is_new);
	if (!slot) {
		tables->failed = true;
		*is_new = false;
		return 0;
	}
	if (*is_new)
		*slot = rows;
	return (uint32_t)*slot;
}

/* Interns a text by its address. Texts live as long as the names do, so that equal addresses mean
 * equal texts. */
static uint32_t add_text(struct thread_tables *tables, const char *text)
{
	bool is_new;
	uint32_t row = row_of(tables, &tables->strings, (uint64_t)(uintptr_t)text,
			      tables->texts.count, &is_new);
	if (is_new && tally_vector_push(&tables->texts, text) < 0)
		tables->failed = true;
	return row;
}

static uint32_t add_resource(struct thread_tables *tables, uint32_t function)
{
	const struct tally_names *names = &tables->samples->recording->names;
	bool is_new;
	uint32_t row = row_of(tables, &tables->resources, names->functions.items[function].object,
			      tables->resource_names.count, &is_new);
	if (is_new)
		add(tables, &tables->resource_names,
		    add_text(tables, tally_names_short_object(names, function)));
	return row;
}

static uint32_t add_function(struct thread_tables *tables, uint32_t function)
{
	const struct tally_names *names = &tables->samples->recording->names;
	bool is_new;
	uint32_t row = row_of(tables, &tables->functions, function, tables->function_names.count,
			      &is_new);
	if (!is_new)
		return row;
	add(tables, &tables->function_names,
	    add_text(tables, tally_names_plain_text(names, function)));
	add(tables, &tables->function_resources, add_resource(tables, function));
	uint32_t file = tables->files[function], file_row = UINT32_MAX;
	if (file != TALLY_STRING_NONE)
		file_row = add_text(tables, tally_strings_text(&names->strings, file));
	add(tables, &tables->function_files, file_row);
	return row;
}

static uint32_t add_frame(struct thread_tables *tables, const struct tally_place_frame *frame,
			  uint32_t depth)
{
	const struct tally_names *names = &tables->samples->recording->names;
	bool is_new;
	uint64_t key = tally_hash64((uint64_t)frame->function << 32 | frame->line) ^ depth;
	uint32_t row = row_of(tables, &tables->frames, key, tables->frame_functions.count, &is_new);
	if (!is_new)
		return row;
	add(tables, &tables->frame_functions, add_function(tables, frame->function));
	add(tables, &tables->frame_lines, frame->line ? frame->line : UINT32_MAX);
	add(tables, &tables->frame_depths, depth);
	add(tables, &tables->frame_categories,
	    category_of(names->functions.items[frame->function].kind));
	return row;
}

/* Returns the row of a stack, UINT32_MAX for an empty one. */
static uint32_t add_stack(struct thread_tables *tables, const struct tally_place_frames *frames)
{
	uint32_t prefix = UINT32_MAX, depth = 0;
	for (size_t i = 0; i < frames->count; i++) {
		if (i && frames->places[i] == frames->places[i - 1])
			depth++;
		else
			depth = 0;
		uint32_t frame = add_frame(tables, &frames->items[i], depth);
		bool is_new;
		uint64_t key = (uint64_t)(prefix + 1) << 32 | frame;
		uint32_t row = row_of(tables, &tables->stacks, key, tables->stack_frames.count,
				      &is_new);
		if (is_new) {
			add(tables, &tables->stack_frames, frame);
			add(tables, &tables->stack_prefixes, prefix);
			uint32_t category = 0;
			if (!tables->failed)
				category = tables->frame_categories.items[frame];
			add(tables, &tables->stack_categories, category);
		}
		prefix = row;
	}
	return prefix;
}

static void release_tables(struct thread_tables *tables)
{
	struct tally_map *maps[] = { &tables->strings, &tables->resources, &tables->functions,
				     &tables->frames, &tables->stacks };
	struct column *columns[] = { &tables->resource_names,     &tables->function_names,
				     &tables->function_resources, &tables->function_files,
				     &tables->frame_functions,    &tables->frame_lines,
				     &tables->frame_depths,       &tables->frame_categories,
				     &tables->stack_frames,       &tables->stack_prefixes,
				     &tables->stack_categories };
	for (unsigned i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		tally_map_release(maps[i]);
	for (unsigned i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		tally_vector_release(columns[i]);
	tally_vector_release(&tables->texts);
}

/* ---- writing ------------------------------------------------------------- */

static void put_column(struct tally_json *json, const char *name, const struct column *column)
{
	tally_json_array(json, name);
	for (size_t i = 0; i < column->count; i++)
		if (column->items[i] == UINT32_MAX)
			tally_json_null(json, NULL);
		else
			tally_json_u64(json, NULL, column->items[i]);
	tally_json_end(json);
}

/* Writes `count` times `value`, or null. */
static void put_constant(struct tally_json *json, const char *name, size_t count, int64_t value,
			 bool is_null)
{
	tally_json_array(json, name);
	for (size_t i = 0; i < count; i++)
		if (is_null)
			tally_json_null(json, NULL);
		else
			tally_json_i64(json, NULL, value);
	tally_json_end(json);
}

static void put_falses(struct tally_json *json, const char *name, size_t count)
{
	tally_json_array(json, name);
	for (size_t i = 0; i < count; i++)
		tally_json_bool(json, NULL, false);
	tally_json_end(json);
}

static void put_code_tables(struct tally_json *json, const struct thread_tables *tables)
{
	size_t frames = tables->frame_functions.count, functions = tables->function_names.count;
	size_t resources = tables->resource_names.count, stacks = tables->stack_frames.count;
	tally_json_object(json, "frameTable");
	tally_json_u64(json, "length", frames);
	/* unused: frames are symbolized already */
	put_constant(json, "address", frames, -1, false);
	put_column(json, "inlineDepth", &tables->frame_depths);
	put_column(json, "category", &tables->frame_categories);
	put_constant(json, "subcategory", frames, 0, false);
	put_column(json, "func", &tables->frame_functions);
	put_constant(json, "nativeSymbol", frames, 0, true);
	put_constant(json, "innerWindowID", frames, 0, true);
	put_constant(json, "implementation", frames, 0, true);
	put_column(json, "line", &tables->frame_lines);
	put_constant(json, "column", frames, 0, true);
	tally_json_end(json);
	tally_json_object(json, "funcTable");
	tally_json_u64(json, "length", functions);
	put_column(json, "name", &tables->function_names);
	put_falses(json, "isJS", functions);
	put_falses(json, "relevantForJS", functions);
	put_column(json, "resource", &tables->function_resources);
	put_column(json, "fileName", &tables->function_files);
	put_constant(json, "lineNumber", functions, 0, true);
	put_constant(json, "columnNumber", functions, 0, true);
	tally_json_end(json);
	tally_json_object(json, "resourceTable");
	tally_json_u64(json, "length", resources);
	put_constant(json, "lib", resources, 0, true);
	put_column(json, "name", &tables->resource_names);
	put_constant(json, "host", resources, 0, true);
	put_constant(json, "type", resources, RESOURCE_LIBRARY, false);
	tally_json_end(json);
	tally_json_object(json, "stackTable");
	tally_json_u64(json, "length", stacks);
	put_column(json, "prefix", &tables->stack_prefixes);
	put_column(json, "frame", &tables->stack_frames);
	put_column(json, "category", &tables->stack_categories);
	put_constant(json, "subcategory", stacks, 0, false);
	tally_json_end(json);
}

/* Writes the tables that the format requires and recordings have no data for. */
static void put_empty_tables(struct tally_json *json)
{
	static const char *const marker_columns[] = { "data",    "name",  "startTime",
						      "endTime", "phase", "category" };
	static const char *const symbol_columns[] = { "address", "functionSize", "libIndex",
						      "name" };
	tally_json_object(json, "markers");
	tally_json_u64(json, "length", 0);
	for (unsigned i = 0; i < sizeof(marker_columns) / sizeof(marker_columns[0]); i++)
		put_constant(json, marker_columns[i], 0, 0, true);
	tally_json_end(json);
	tally_json_object(json, "nativeSymbols");
	tally_json_u64(json, "length", 0);
	for (unsigned i = 0; i < sizeof(symbol_columns) / sizeof(symbol_columns[0]); i++)
		put_constant(json, symbol_columns[i], 0, 0, true);
	tally_json_end(json);
	put_constant(json, "pausedRanges", 0, 0, true);
}

static double ms_since(const struct tally_samples *samples, uint64_t time)
{
	return (double)(time - samples->samples.items[0].time) / 1e6;
}

static int put_samples(struct tally_json *json, struct thread_tables *tables,
		       const struct tally_export_threads *threads,
		       const struct tally_export_thread *thread)
{
	const struct tally_one_sample *all = tables->samples->samples.items;
	const uint32_t *order = threads->order + thread->first;
	size_t count = thread->count;
	struct tally_place_frames frames = { 0 };
	struct column stacks = { 0 };
	int result = 0;
	for (size_t i = 0; !result && i < count; i++) {
		result = tally_samples_frames(tables->samples, all[order[i]].stack, &frames);
		add(tables, &stacks, add_stack(tables, &frames));
	}
	tally_json_object(json, "samples");
	tally_json_u64(json, "length", count);
	tally_json_text(json, "weightType", threads->is_time ? "tracing-ms" : "samples");
	put_column(json, "stack", &stacks);
	tally_json_array(json, "time");
	for (size_t i = 0; i < count; i++)
		tally_json_double(json, NULL, ms_since(tables->samples, all[order[i]].time));
	tally_json_end(json);
	tally_json_array(json, "weight");
	for (size_t i = 0; i < count; i++)
		if (threads->is_time)
			tally_json_double(json, NULL, (double)all[order[i]].period / 1e6);
		else
			tally_json_u64(json, NULL, 1);
	tally_json_end(json);
	tally_json_end(json);
	tally_place_frames_release(&frames);
	tally_vector_release(&stacks);
	if (result || tables->failed)
		return -ENOMEM;
	return 0;
}

static int put_thread(struct tally_json *json, const struct tally_export_threads *threads,
		      const struct tally_export_thread *thread)
{
	const struct tally_samples *samples = threads->samples;
	struct thread_tables tables = { .samples = samples, .files = threads->files };
	uint64_t start = samples->samples.items[threads->order[thread->first]].time;
	const char *comm;
	const struct tally_thread *task = tally_export_task(samples, thread->thread, &comm);
	char pid[16];
	snprintf(pid, sizeof(pid), "%u", task->pid);
	tally_json_object(json, NULL);
	tally_json_text(json, "name", comm);
	tally_json_text(json, "processName", comm);
	tally_json_text(json, "processType", "default");
	tally_json_bool(json, "isMainThread", task->pid == task->tid);
	tally_json_text(json, "pid", pid);
	tally_json_u64(json, "tid", task->tid);
	tally_json_double(json, "processStartupTime", ms_since(samples, start));
	tally_json_null(json, "processShutdownTime");
	tally_json_double(json, "registerTime", ms_since(samples, start));
	tally_json_null(json, "unregisterTime");
	int result = put_samples(json, &tables, threads, thread);
	put_code_tables(json, &tables);
	put_empty_tables(json);
	tally_json_array(json, "stringArray");
	for (size_t i = 0; i < tables.texts.count; i++)
		tally_json_text(json, NULL, tables.texts.items[i]);
	tally_json_end(json);
	tally_json_end(json);
	release_tables(&tables);
	return result;
}

static void put_meta(struct tally_json *json, const struct tally_samples *samples, uint32_t event)
{
	static const char *const extension_columns[] = { "baseURL", "id", "name" };
	const struct tally_one_sample *all = samples->samples.items;
	size_t count = samples->samples.count;
	double span = ms_since(samples, all[count - 1].time), interval = 1;
	if (count > 1 && span > 0)
		interval = span / (double)(count - 1);
	tally_json_object(json, "meta");
	tally_json_array(json, "categories");
	for (unsigned i = 0; i < sizeof(categories) / sizeof(categories[0]); i++) {
		tally_json_object(json, NULL);
		tally_json_text(json, "name", categories[i].name);
		tally_json_text(json, "color", categories[i].colour);
		tally_json_array(json, "subcategories");
		tally_json_text(json, NULL, "Other");
		tally_json_end(json);
		tally_json_end(json);
	}
	tally_json_end(json);
	tally_json_bool(json, "debug", false);
	tally_json_object(json, "extensions");
	tally_json_u64(json, "length", 0);
	for (unsigned i = 0; i < sizeof(extension_columns) / sizeof(extension_columns[0]); i++)
		put_constant(json, extension_columns[i], 0, 0, true);
	tally_json_end(json);
	tally_json_double(json, "interval", interval);
	tally_json_u64(json, "preprocessedProfileVersion", VERSION);
	tally_json_u64(json, "version", 30);
	tally_json_u64(json, "processType", 0);
	tally_json_text(json, "product", tally_export_event_name(samples, event));
	tally_json_text(json, "importedFrom", "tally " TALLY_VERSION);
	tally_json_object(json, "sampleUnits");
	tally_json_text(json, "time", "ms");
	tally_json_text(json, "eventDelay", "ms");
	tally_json_text(json, "threadCPUDelta", "ns");
	tally_json_end(json);
	tally_json_double(json, "startTime", 0);
	tally_json_bool(json, "symbolicated", true);
	tally_json_u64(json, "stackwalk", 1);
	tally_json_bool(json, "usesOnlyOneStackType", true);
	tally_json_bool(json, "doesNotUseFrameImplementation", true);
	tally_json_bool(json, "sourceCodeIsNotOnSearchfox", true);
	put_constant(json, "markerSchema", 0, 0, true);
	tally_json_end(json);
}

int tally_export_firefox(const struct tally_samples *samples, uint32_t event,
			 struct tally_buffer *out)
{
	struct tally_json json = { .out = out };
	struct tally_export_threads threads;
	int result = tally_export_threads_make(samples, event, &threads);
	tally_json_object(&json, NULL);
	put_meta(&json, samples, event);
	put_constant(&json, "libs", 0, 0, true);
	put_constant(&json, "pages", 0, 0, true);
	put_constant(&json, "profilerOverhead", 0, 0, true);
	put_constant(&json, "counters", 0, 0, true);
	tally_json_array(&json, "threads");
	for (size_t i = 0; !result && i < threads.threads.count; i++)
		result = put_thread(&json, &threads, &threads.threads.items[i]);
	tally_json_end(&json);
	tally_json_end(&json);
	tally_export_threads_release(&threads);
	if (result || out->failed)
		return -ENOMEM;
	return 0;
}
