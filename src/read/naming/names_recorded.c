/* Names places by the recording's own names, and by the machine's files where the recording has
 * none. */
#include "base/text.h"
#include "base/vector.h"
#include "naming/naming.h"
#include "naming/naming_internal.h"
#include "naming/packed.h"
#include "symbol/symbol.h"

#include <errno.h>
#include <stdlib.h>

void tally_names_use_packed(struct tally_names *names, const void *section, size_t size)
{
	names->carried.section.bytes = section;
	names->carried.section.size = size;
}

void tally_names_use_listed(struct tally_names *names, const void *bytes, size_t size)
{
	names->carried.listed.bytes = bytes;
	names->carried.listed.size = size;
}

void tally_names_use_perf_maps(struct tally_names *names, const struct tally_perf_maps *maps)
{
	names->carried.perf_maps = maps;
}

bool tally_names_carry_object(const struct tally_names *names, uint32_t file)
{
	return names->carried.names &&
	       tally_packed_names_object(names->carried.names, names->tasks, file);
}

/* Reads the names on first use. */
static struct tally_packed_names *packed_of(struct tally_names *names)
{
	const void *section = names->carried.section.bytes;
	if (names->carried.section.is_read || !section)
		return names->carried.names;
	int result = tally_packed_names_read(section, names->carried.section.size,
					     &names->carried.names);
	names->carried.section.is_read = true;
	names->gaps.packed_damaged = result == -EBADMSG;
	names->gaps.packed_newer = result == -ENOTSUP;
	for (size_t i = 0; names->carried.names && i < names->carried.names->partial.count; i++)
		tally_names_note_partial(names, names->carried.names->partial.items[i].object,
					 names->carried.names->partial.items[i].companion);
	return names->carried.names;
}

static bool is_fetched(const struct tally_names *names, const struct tally_object_entry *entry)
{
	return entry &&
	       tally_objects_fetched(&names->objects, tally_object_build_id(entry->object));
}

/* True if the user said where to look for files, and the file was found there or fetched.  If not,
 * the recording's own names stand. */
static bool has_asked_for_file(struct tally_names *names, uint32_t file)
{
	const struct tally_name_sources *sources = &names->sources;
	bool has_places = sources->search.root || sources->search.build_ids;
	bool is_kernel = file == TALLY_FILE_KERNEL;
	if (is_kernel && (sources->vmlinux || sources->kallsyms || sources->modules))
		return true;
	if ((!has_places && !sources->asks_debuginfod) ||
	    (!is_kernel && !tally_name_table_of(names, file)))
		return false;
	const struct tally_object_entry *entry;
	if (is_kernel)
		entry = tally_kernel_object(names);
	else
		entry = tally_name_table_entry(names, file);
	if (has_places)
		return entry != NULL;
	return is_fetched(names, entry);
}

/* True if the file is here.  A place without a name in the recording may have one now, from a debug
 * file that was installed since. */
static bool has_file(struct tally_names *names, uint32_t file)
{
	return file != TALLY_FILE_KERNEL && tally_name_table_of(names, file) &&
	       tally_name_table_entry(names, file);
}

const struct tally_packed_place *tally_names_recorded_place(struct tally_names *names,
							    const struct tally_place *place)
{
	struct tally_packed_names *packed = packed_of(names);
	if (!packed)
		return NULL;
	uint32_t file = tally_names_file(names, place);
	if (file == TALLY_FILE_NONE || has_asked_for_file(names, file))
		return NULL;
	const struct tally_packed_place *known = tally_packed_names_find(packed, names->tasks, file,
									 place);
	if (!known)
		return NULL;
	uint32_t outer = packed->frames.items[known->first + known->count - 1].function;
	const struct tally_packed_function *function = &packed->functions.items[outer];
	if (function->name || (function->start != UINT64_MAX && !has_file(names, file)))
		return known;
	return NULL;
}

const struct tally_packed_code *tally_names_recorded_code(struct tally_names *names,
							  const struct tally_place *place)
{
	const struct tally_packed_place *known = tally_names_recorded_place(names, place);
	if (!known)
		return NULL;
	struct tally_carried_names *carried = &names->carried;
	if (!carried->section.code_is_read) {
		int result = tally_packed_codes_read(carried->section.bytes, carried->section.size,
						     carried->names, &carried->codes);
		names->gaps.packed_damaged |= result == -EBADMSG;
	}
	carried->section.code_is_read = true;
	uint32_t last = known->first + known->count - 1;
	uint32_t function = carried->names->frames.items[last].function;
	if (!carried->codes)
		return NULL;
	return tally_packed_code_find(carried->codes, function);
}

struct tally_build_id tally_names_build_id(struct tally_names *names, uint32_t file)
{
	bool is_file = file < names->tasks->files.count;
	struct tally_build_id id = { 0 };
	if (is_file)
		id = names->tasks->files.items[file].build_id;
	else if (file == TALLY_FILE_KERNEL)
		id = names->kernel.build_id;
	if (id.size)
		return id;
	const struct tally_packed_object *packed = NULL;
	if (names->carried.names)
		packed = tally_packed_names_object(names->carried.names, names->tasks, file);
	if (packed)
		return packed->build_id;
	if (is_file && tally_name_table_of(names, file)) {
		const struct tally_object_entry *entry = tally_name_table_entry(names, file);
		if (entry && entry->object)
			return *tally_object_build_id(entry->object);
	}
	return id;
}

static uint32_t intern_text(struct tally_names *names, const char *text)
{
	if (!text)
		return TALLY_STRING_NONE;
	return tally_strings_intern(&names->strings, text);
}

static uint32_t intern_name(struct tally_names *names, const char *text)
{
	char *readable = NULL;
	if (text && !names->options.keep_mangled)
		readable = tally_demangle(text);
	uint32_t id = intern_text(names, tally_text_or(readable, text));
	free(readable);
	return id;
}

/* The recording has the name under which a program was started.  With real_paths, the file's own
 * path is taken from the mapping. */
static const char *object_of(const struct tally_names *names, uint32_t file,
			     const struct tally_packed_function *packed)
{
	const char *jit = tally_jit_object(packed->object);
	if (jit) /* older recordings have the process's map or dump */
		return jit;
	bool is_file = packed->object[0] == '/' && file < names->tasks->files.count &&
		       !names->tasks->files.items[file].pid;
	if (names->options.real_paths && is_file)
		return tally_tasks_path(names->tasks, file);
	return packed->object;
}

static uint32_t intern_function(struct tally_names *names, uint32_t file, uint32_t number)
{
	struct tally_packed_function *packed = &names->carried.names->functions.items[number];
	if (packed->known == UINT32_MAX) {
		struct tally_function function = {
			.name = intern_name(names, packed->name),
			.symbol = intern_text(names, packed->name),
			.source = intern_text(names, packed->source),
			.declared = intern_text(names, packed->declared),
			.object = tally_strings_intern(&names->strings,
						       object_of(names, file, packed)),
			.start = packed->start,
			.kind = packed->kind,
		};
		packed->known = tally_names_intern_function(names, file, function);
	}
	return packed->known;
}

uint32_t tally_names_recorded_function(struct tally_names *names, const struct tally_place *place,
				       const struct tally_packed_place *packed, uint64_t *offset)
{
	const struct tally_packed_frame *frame =
		&names->carried.names->frames.items[packed->first + packed->count - 1];
	*offset = packed->offset;
	return intern_function(names, tally_names_file(names, place), frame->function);
}

static int name_place(struct tally_names *names, const struct tally_place *place,
		      const struct tally_packed_place *packed, struct tally_place_name *out)
{
	bool is_charged = place->is_late && packed->late_count;
	bool has_lines = tally_names_reads_lines(names);
	uint32_t file = tally_names_file(names, place);
	uint32_t first = packed->first, count = packed->count, skipped = 0;
	*out = (struct tally_place_name){ .first = (uint32_t)names->frames.count,
					  .offset = packed->offset,
					  .is_charged = is_charged };
	if (is_charged) {
		first = packed->late_first;
		count = packed->late_count;
		out->moved = packed->moved;
	}
	if (!has_lines)
		skipped = count - 1;
	out->count = count - skipped;
	for (uint32_t i = skipped; i < count; i++) {
		const struct tally_packed_frame *from =
			&names->carried.names->frames.items[first + i];
		struct tally_place_frame frame = {
			.function = intern_function(names, file, from->function),
			.file = TALLY_STRING_NONE,
		};
		if (has_lines) {
			frame.file = intern_text(names, from->file);
			frame.line = from->line;
		}
		if (frame.function == UINT32_MAX || tally_vector_push(&names->frames, frame) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Places that the recording names, and places that are left to the files. */
struct split {
	const struct tally_packed_place **known; /* by place; NULL: left */
	/* of the known places, and as many spare ones for sorting */
	struct tally_radix_item *keys;
	size_t known_count, left_count;
	uint32_t *left;
	struct tally_place *left_places;
	struct tally_place_name *left_names;
};

static int split_places(struct tally_names *names, const struct tally_place *places, size_t count,
			struct split *split)
{
	split->known = calloc(count + 1, sizeof(*split->known));
	split->keys = malloc((2 * count + 1) * sizeof(*split->keys));
	split->left = malloc((count + 1) * sizeof(*split->left));
	if (!split->known || !split->keys || !split->left)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct tally_packed_place *packed = split->known[i] =
			tally_names_recorded_place(names, &places[i]);
		if (packed)
			split->keys[split->known_count++] = (struct tally_radix_item){
				(uint64_t)(packed - names->carried.names->places.items), (uint32_t)i
			};
		else
			split->left[split->left_count++] = (uint32_t)i;
	}
	split->left_places = malloc((split->left_count + 1) * sizeof(*split->left_places));
	split->left_names = malloc((split->left_count + 1) * sizeof(*split->left_names));
	if (!split->left_places || !split->left_names)
		return -ENOMEM;
	for (size_t i = 0; i < split->left_count; i++)
		split->left_places[i] = places[split->left[i]];
	return 0;
}

/* Works in the packed order, by file and address, so that functions get the same numbers as without
 * packed names. */
static int name_known(struct tally_names *names, const struct tally_place *places,
		      const struct split *split, struct tally_place_name *out)
{
	const struct tally_radix_item *sorted = tally_radix_sort(
		split->keys, split->keys + split->known_count, split->known_count);
	int result = 0;
	for (size_t i = 0; !result && i < split->known_count; i++) {
		uint32_t at = sorted[i].index;
		result = name_place(names, &places[at], split->known[at], &out[at]);
	}
	return result;
}

static int resolve(struct tally_names *names, const struct tally_place *places, size_t count,
		   struct tally_place_name *out)
{
	struct split split = { 0 };
	if (!packed_of(names))
		return tally_names_resolve_by_files(names, places, count, out);
	if (count == 1) {
		const struct tally_packed_place *packed = tally_names_recorded_place(names, places);
		if (packed)
			return name_place(names, places, packed, out);
		return tally_names_resolve_by_files(names, places, 1, out);
	}
	int result = split_places(names, places, count, &split);
	if (result)
		goto out;
	if (split.left_count)
		result = tally_names_resolve_by_files(names, split.left_places, split.left_count,
						      split.left_names);
	if (result)
		goto out;
	for (size_t i = 0; i < split.left_count; i++)
		out[split.left[i]] = split.left_names[i];
	result = name_known(names, places, &split, out);
out:
	free(split.known);
	free(split.keys);
	free(split.left);
	free(split.left_places);
	free(split.left_names);
	return result;
}

/* Leaves only the symbol's frame, with the line of the innermost one. */
static void drop_inlined(struct tally_names *names, struct tally_place_name *name)
{
	const struct tally_place_frame inner = names->frames.items[name->first];
	name->first += name->count - 1;
	name->count = 1;
	names->frames.items[name->first].file = inner.file;
	names->frames.items[name->first].line = inner.line;
}

int tally_names_resolve(struct tally_names *names, const struct tally_place *places, size_t count,
			struct tally_place_name *out)
{
	int result = resolve(names, places, count, out);
	if (result)
		return result;
	for (size_t i = 0; names->options.no_inlines && i < count; i++)
		drop_inlined(names, &out[i]);
	if (names->strings.failed)
		return -ENOMEM;
	return 0;
}

uint32_t tally_names_source_function(struct tally_names *names, const struct tally_place *place)
{
	struct tally_place_name name;
	if (names->options.no_inlines || names->options.asked)
		return tally_names_function(names, place, NULL);
	if (tally_names_resolve(names, place, 1, &name) < 0)
		return UINT32_MAX;
	return names->frames.items[name.first].function;
}
