/* Goes from objects to places, functions and their texts; names of data come last.  A place's
 * function comes from the names that the recording carries, else from the table of its file. */
#include "naming/naming.h"

#include "base/buffer.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/vector.h"
#include "naming/naming_internal.h"
#include "naming/packed.h"
#include "object/cache.h"
#include "task/jit.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tally_object_basename(const char *object)
{
	const char *slash = strrchr(object, '/');
	if (!slash || !slash[1])
		return object;
	return slash + 1;
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is_jit(const char *object, const char *base)
{
	size_t length = strlen(base);
	return tally_jit_object(object) || starts(object, "//anon") ||
	       starts(object, "[anon") || starts(object, "/memfd:") ||
	       (starts(base, "perf-") && length > 9 && !strcmp(base + length - 4, ".map"));
}

/* True for ".so" at the end, or before a version or another ending: libc.so.6, libx-2.3.so,
 * libx.so.debug. */
static bool is_library(const char *base)
{
	for (const char *so = strstr(base, ".so"); so; so = strstr(so + 1, ".so"))
		if (!isalnum((unsigned char)so[3]) && so[3] != '_')
			return true;
	return starts(base, "ld-linux");
}

bool tally_object_is_user_page(const char *object)
{
	static const char *const pages[] = { "[vdso",     "[vsyscall", "[vvar",
					     "[vectors]", "[sigpage]", "[uprobes]" };
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		if (starts(object, pages[i]))
			return true;
	return false;
}

enum tally_frame_kind tally_frame_kind_of_object(const char *object)
{
	const char *base = tally_object_basename(object);
	size_t length = strlen(object);
	if (!*object || !strcmp(object, "[unknown]") || !strcmp(object, "[heap]") ||
	    starts(object, "[stack"))
		return TALLY_FRAME_PROGRAM;
	if (is_jit(object, base))
		return TALLY_FRAME_JIT;
	if (tally_object_is_user_page(object))
		return TALLY_FRAME_LIBRARY;
	if (starts(object, "[bpf") || starts(object, "bpf_prog_") || starts(base, "vmlinux") ||
	    starts(object, "/lib/modules/") || starts(object, "/usr/lib/modules/") ||
	    (length > 3 && !strcmp(object + length - 3, ".ko")))
		return TALLY_FRAME_KERNEL;
	/* perf writes a kernel module whose file it doesn't have as "[nf_conntrack]" */
	if (object[0] == '[' && length > 2)
		return TALLY_FRAME_KERNEL;
	if (is_library(base))
		return TALLY_FRAME_LIBRARY;
	return TALLY_FRAME_PROGRAM;
}

void tally_names_init(struct tally_names *names, struct tally_tasks *tasks)
{
	*names = (struct tally_names){ .tasks = tasks };
}

void tally_names_use_cache(struct tally_names *names)
{
	if (!names->tables.cache)
		names->tables.cache = tally_cache_open(NULL);
}

void tally_names_set_kernel(struct tally_names *names, const char *release, bool is_foreign)
{
	names->kernel.release = release;
	names->kernel.is_foreign = is_foreign;
	names->objects.is_foreign = is_foreign;
}

void tally_names_set_kernel_build_id(struct tally_names *names, struct tally_build_id id)
{
	names->kernel.build_id = id;
}

void tally_names_omit_kernel(struct tally_names *names)
{
	names->kernel.is_tried = true;
}

void tally_names_use_text_pokes(struct tally_names *names, const struct tally_text_pokes *pokes)
{
	names->kernel.text_pokes = pokes;
}

void tally_names_use_sources(struct tally_names *names, const struct tally_name_sources *sources)
{
	names->sources = *sources;
	names->objects.search = sources->search;
}

void tally_names_release(struct tally_names *names)
{
	tally_object_unref(names->kernel.vmlinux.object);
	tally_object_unref(names->kernel.vmlinux.debug);
	for (size_t i = 0; i < names->tables.count; i++)
		tally_name_table_release(&names->tables.items[i]);
	if (names->kernel.table)
		tally_name_table_release(names->kernel.table);
	free(names->kernel.table);
	tally_packed_codes_free(names->carried.codes);
	tally_packed_names_free(names->carried.names);
	tally_cache_close(names->tables.cache);
	tally_vector_release(&names->tables);
	tally_vector_release(&names->functions);
	tally_vector_release(&names->frames);
	tally_map_release(&names->functions.index);
	tally_strings_release(&names->strings);
	tally_objects_release(&names->objects);
	tally_buffer_release(&names->gaps.details);
	tally_vector_release(&names->gaps.partial);
}

int tally_names_note_partial(struct tally_names *names, const char *object, const char *companion)
{
	struct tally_names_partial partial = { tally_strings_intern(&names->strings, object),
					       tally_strings_intern(&names->strings, companion) };
	if (names->strings.failed)
		return -ENOMEM;
	for (size_t i = 0; i < names->gaps.partial.count; i++)
		if (names->gaps.partial.items[i].object == partial.object)
			return 0;
	if (!names->gaps.partial.count) {
		tally_terminal_clean_name(tally_object_short(object), names->gaps.partial_object,
					  sizeof(names->gaps.partial_object));
		tally_terminal_clean_name(companion, names->gaps.companion,
					  sizeof(names->gaps.companion));
	}
	names->gaps.partial_objects++;
	return tally_vector_push(&names->gaps.partial, partial);
}

struct tally_place tally_place_of(const struct tally_tasks *tasks, uint32_t pid, bool kernel,
				  uint64_t address)
{
	const struct tally_mapping *mapping = tally_tasks_find(tasks, pid, kernel, address);
	uint32_t jit;
	uint64_t code;
	if (!kernel && (!mapping || tasks->files.items[mapping->file].pid) &&
	    tally_jits_find(tasks, pid, address, &jit, &code))
		return (struct tally_place){ .file = tasks->jits->items.items[jit].file,
					     .address = code };
	/* Simulated kernels have functions at any address, told by records. */
	bool is_programs = kernel && address < tasks->kernel_start &&
			   (!mapping || !tasks->files.items[mapping->file].is_symbol);
	if (is_programs)
		return (struct tally_place){ .file = TALLY_FILE_NONE, .address = address };
	if (!mapping && kernel)
		return (struct tally_place){ .file = TALLY_FILE_KERNEL, .address = address };
	if (!mapping)
		return (struct tally_place){ .file = TALLY_FILE_NONE, .address = address };
	const struct tally_mapped_file *file = &tasks->files.items[mapping->file];
	if (file->is_kernel || file->pid)
		return (struct tally_place){ .file = mapping->file, .address = address };
	return (struct tally_place){ .file = mapping->file,
				     .address = address - mapping->start + mapping->file_offset };
}

/* ---- functions ----------------------------------------------------------- */

/* A name in brackets, which symbols don't have: the object, and the function's start if unwind
 * rules tell it. */
static uint32_t name_of_nameless(struct tally_names *names, const struct tally_function *function)
{
	const char *object = tally_object_short(
		tally_strings_text(&names->strings, function->object));
	size_t length = strlen(object);
	struct tally_buffer text = { 0 };
	if (object[0] == '[' && length > 1) {
		object++;
		length -= 2;
	}
	tally_buffer_printf(&text, "[%.*s", (int)length, object);
	if (function->start != UINT64_MAX && function->kind != TALLY_FRAME_INLINED)
		tally_buffer_printf(&text, "+0x%" PRIx64, function->start);
	tally_buffer_char(&text, ']');
	return tally_strings_intern_buffer(&names->strings, &text);
}

static uint32_t name_without_tier(struct tally_names *names, const char *name)
{
	struct tally_buffer text = { 0 };
	size_t at, length = tally_jit_tier(name, &at);
	tally_buffer_append(&text, name, at);
	tally_buffer_text(&text, name + at + length);
	return tally_strings_intern_buffer(&names->strings, &text);
}

static uint32_t bare_name(struct tally_names *names, const struct tally_function *function)
{
	if (function->name == TALLY_STRING_NONE)
		return name_of_nameless(names, function);
	const char *text = tally_strings_text(&names->strings, function->name),
		   *version = strstr(text, "@@");
	size_t at;
	if (function->kind == TALLY_FRAME_JIT) {
		if (names->sources.full_names || !tally_jit_tier(text, &at))
			return function->name;
		return name_without_tier(names, text);
	}
	if (!version || version == text)
		return function->name;
	return tally_strings_add(&names->strings, text, (size_t)(version - text));
}

uint32_t tally_names_intern_text(struct tally_names *names, struct tally_map *texts,
				 const char *text)
{
	bool added;
	uint64_t *slot = tally_map_put(texts, (uint64_t)(uintptr_t)text, &added);
	if (!slot)
		return TALLY_STRING_NONE;
	if (added) {
		char *readable = NULL;
		if (!names->options.keep_mangled)
			readable = tally_demangle(text);
		*slot = tally_strings_intern(&names->strings, tally_text_or(readable, text));
		free(readable);
	}
	return (uint32_t)*slot;
}

/* Inlined functions have no address of their own, so they are found by object, symbol and the file
 * that declares them; all others by file and start. */
static uint64_t function_key(const struct tally_function *function, uint32_t file)
{
	if (function->kind == TALLY_FRAME_INLINED)
		return tally_hash64(((uint64_t)function->symbol << 32 | function->object) +
				    tally_hash64(function->declared)) +
		       1;
	return tally_hash64(function->start) ^ ((uint64_t)file << 32 | file);
}

uint32_t tally_names_intern_function(struct tally_names *names, uint32_t file,
				     struct tally_function function)
{
	/* the string that memory was out for may be this function's name */
	if (names->strings.failed)
		return UINT32_MAX;
	for (uint64_t key = function_key(&function, file);; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&names->functions.index, key, &added);
		if (!slot)
			return UINT32_MAX;
		if (added) {
			function.bare = function.plain = bare_name(names, &function);
			function.file = file;
			*slot = names->functions.count;
			if (tally_vector_push(&names->functions, function) < 0)
				return UINT32_MAX;
			return (uint32_t)*slot;
		}
		const struct tally_function *there = &names->functions.items[*slot];
		bool is_inlined = function.kind == TALLY_FRAME_INLINED;
		if (there->start == function.start && there->object == function.object &&
		    there->kind == function.kind && there->symbol == function.symbol &&
		    (!is_inlined || there->declared == function.declared))
			return (uint32_t)*slot;
	}
}

uint32_t tally_names_symbol_function(struct tally_names *names, struct tally_name_table *table,
				     uint32_t file, const struct tally_place *place,
				     const struct tally_symbol *symbol, uint64_t start)
{
	struct tally_function function = {
		.object = tally_name_table_object(names, table, place, &symbol),
		.name = TALLY_STRING_NONE,
		.symbol = TALLY_STRING_NONE,
		.source = TALLY_STRING_NONE,
		.declared = TALLY_STRING_NONE,
		.start = start,
		.kind = table->kind,
	};
	if (symbol) {
		function.name = tally_names_intern_text(names, &table->texts, symbol->name);
		function.symbol = tally_strings_intern(&names->strings, symbol->name);
		function.start = symbol->start;
	}
	return tally_names_intern_function(names, file, function);
}

static uint32_t name_waker(struct tally_names *names, const struct tally_place *place)
{
	char text[64];
	switch (place->address >> 32 & 0xffff) {
	case TALLY_PLACE_WAKER_INTERRUPT:
		return tally_strings_intern(&names->strings, "[woken by an interrupt]");
	case TALLY_PLACE_WAKER_PREEMPTED:
		return tally_strings_intern(&names->strings, "[preempted, waits for a CPU]");
	case TALLY_PLACE_WAKER_UNKNOWN:
		return tally_strings_intern(&names->strings, "[woken by what was not recorded]");
	default:
		snprintf(text, sizeof(text), "[woken by %s]",
			 tally_strings_text(&names->tasks->strings, (uint32_t)place->address));
		return tally_strings_intern(&names->strings, text);
	}
}

uint32_t tally_names_plain_function(struct tally_names *names, const struct tally_place *place,
				    uint64_t *offset)
{
	struct tally_function function = { .start = UINT64_MAX, .name = TALLY_STRING_NONE };
	function.source = function.declared = TALLY_STRING_NONE;
	*offset = 0;
	if (tally_place_is_waker(place)) {
		function.object = tally_strings_intern(&names->strings, "[waker]");
		function.name = name_waker(names, place);
	} else if (place->file == TALLY_FILE_NONE) {
		function.object = tally_strings_intern(&names->strings, "[unknown]");
		if (place->address == TALLY_PLACE_CUT)
			function.name = tally_strings_intern(&names->strings, "[truncated]");
	} else {
		const char *name = tally_tasks_path(names->tasks, place->file);
		function = (struct tally_function){
			.start = names->tasks->files.items[place->file].symbol_start,
			.kind = TALLY_FRAME_KERNEL,
			.source = TALLY_STRING_NONE,
			.declared = TALLY_STRING_NONE,
		};
		*offset = place->address - function.start;
		function.name = function.object = tally_strings_intern(&names->strings, name);
	}
	function.symbol = function.name;
	return tally_names_intern_function(names, place->file, function);
}

uint32_t tally_names_file(const struct tally_names *names, const struct tally_place *place)
{
	if (place->file == TALLY_FILE_NONE || place->file == TALLY_FILE_KERNEL)
		return place->file;
	const struct tally_mapped_file *file = &names->tasks->files.items[place->file];
	if (file->is_symbol)
		return TALLY_FILE_NONE;
	if (file->is_kernel)
		return TALLY_FILE_KERNEL;
	return place->file;
}

uint32_t tally_names_function(struct tally_names *names, const struct tally_place *place,
			      uint64_t *symbol_offset)
{
	uint64_t ignored, *offset = symbol_offset ? symbol_offset : &ignored;
	struct tally_place_table *asked = names->options.asked;
	if (asked && tally_place_table_intern(asked, place) == UINT32_MAX)
		return UINT32_MAX;
	uint32_t file = tally_names_file(names, place);
	if (file == TALLY_FILE_NONE)
		return tally_names_plain_function(names, place, offset);
	const struct tally_packed_place *packed = tally_names_recorded_place(names, place);
	if (packed)
		return tally_names_recorded_function(names, place, packed, offset);
	struct tally_name_table *table = tally_name_table_of(names, file);
	if (!table)
		return UINT32_MAX;
	struct tally_object_entry *entry = tally_name_table_entry(names, file);
	if (tally_name_table_read(names, table, entry, false) < 0)
		return UINT32_MAX;
	uint64_t address = UINT64_MAX;
	size_t cursor = 0;
	if (table->is_kernel)
		tally_kernel_names_reach(names, table, place->address);
	const struct tally_symbol *symbol = NULL;
	if (tally_name_table_address(names, table, entry, place, &address))
		symbol = tally_name_table_called(table, entry, address, place->before, &cursor);
	if (table->is_kernel)
		symbol = tally_kernel_module_symbol(names, table, place, symbol);
	if (!symbol)
		tally_name_table_lacks(names, table);
	uint64_t start;
	if (symbol)
		start = symbol->start;
	else
		start = tally_name_table_start(table, entry, place, address);
	*offset = 0;
	if (start != UINT64_MAX && address != UINT64_MAX)
		*offset = address - start;
	return tally_names_symbol_function(names, table, file, place, symbol, start);
}

static const char *text_or_unknown(const struct tally_names *names, uint32_t text)
{
	if (text == TALLY_STRING_NONE)
		return "[unknown]";
	return tally_strings_text(&names->strings, text);
}

const char *tally_names_text(const struct tally_names *names, uint32_t function)
{
	if (function >= names->functions.count)
		return "[unknown]";
	return text_or_unknown(names, names->functions.items[function].name);
}

const char *tally_names_plain_text(const struct tally_names *names, uint32_t function)
{
	if (function >= names->functions.count)
		return "[unknown]";
	return text_or_unknown(names, names->functions.items[function].plain);
}

const char *tally_names_object(const struct tally_names *names, uint32_t function)
{
	if (function >= names->functions.count)
		return "[unknown]";
	return tally_strings_text(&names->strings, names->functions.items[function].object);
}

const char *tally_names_mapped_object(const struct tally_names *names, uint32_t function,
				      char map[TALLY_PERF_MAP_PATH_BYTES])
{
	const struct tally_tasks *tasks = names->tasks;
	if (function >= names->functions.count ||
	    names->functions.items[function].kind != TALLY_FRAME_JIT ||
	    names->functions.items[function].file >= tasks->files.count)
		return tally_names_object(names, function);
	uint32_t file = names->functions.items[function].file;
	while (tasks->files.items[file].origin)
		file = tasks->files.items[file].origin - 1;
	uint32_t pid = tasks->files.items[file].pid;
	const char *path = tally_tasks_path(tasks, file);
	if (!pid || tally_is_memfd(path) || tally_jits_is_dump(path))
		return path;
	snprintf(map, TALLY_PERF_MAP_PATH_BYTES, "/tmp/perf-%" PRIu32 ".map", pid);
	return map;
}

const char *tally_names_file_path(const struct tally_names *names, uint32_t function)
{
	uint32_t file = TALLY_FILE_NONE;
	if (function < names->functions.count)
		file = names->functions.items[function].file;
	return tally_tasks_path(names->tasks, file);
}

const char *tally_object_short(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash || !slash[1] || path[0] == '[')
		return path;
	return slash + 1;
}

const char *tally_names_short_object(const struct tally_names *names, uint32_t function)
{
	return tally_object_short(tally_names_object(names, function));
}

static int compare_names(const void *wanted, const void *listed)
{
	return strcmp(wanted, *(const char *const *)listed);
}

bool tally_names_is_kernels(const struct tally_names *names, uint32_t function,
			    const char *const *sorted, size_t count)
{
	enum { LONGEST = 40 };
	char name[LONGEST];
	if (function >= names->functions.count ||
	    names->functions.items[function].kind != TALLY_FRAME_KERNEL ||
	    names->functions.items[function].name == TALLY_STRING_NONE)
		return false;
	const char *text = tally_names_text(names, function);
	size_t length = strcspn(text, ".");
	if (length >= sizeof(name))
		return false;
	memcpy(name, text, length);
	name[length] = '\0';
	return bsearch(name, sorted, count, sizeof(*sorted), compare_names);
}

/* Names of data addresses.  Few recordings have such addresses.  So symbols of data are kept apart
 * from those of functions, whose tables stay small, and are read on first use. */

/* Returns the object's variable at a place; NULL: not known, or memory is out. */
static const struct tally_symbol *find_variable(struct tally_names *names,
						const struct tally_place *place,
						struct tally_name_table *table, uint64_t *offset)
{
	struct tally_object_entry *entry = tally_name_table_entry(names, place->file);
	uint64_t address;
	if (!entry || !tally_object_address_of_offset(entry->object, place->address, &address))
		return NULL;
	if (!table->data_tried && tally_symbols_of_data(entry->object, tally_objects_debug(entry),
							&table->data, NULL) < 0)
		table->data = NULL;
	table->data_tried = true;
	*offset = 0;
	if (!table->data)
		return NULL;
	const struct tally_symbol *symbol = tally_symbols_find(table->data, address);
	if (symbol)
		*offset = address - symbol->start;
	return symbol;
}

/* Returns the process whose private memory it is: other processes have other memory at this
 * address.  0: a file's memory, or the kernel's. */
static uint32_t owner_of(const struct tally_tasks *tasks, uint32_t pid,
			 const struct tally_place *place)
{
	if (place->file == TALLY_FILE_NONE)
		return pid;
	if (place->file == TALLY_FILE_KERNEL)
		return 0;
	return tasks->files.items[place->file].pid;
}

int tally_names_data(struct tally_names *names, uint32_t pid, uint64_t address,
		     struct tally_data_name *out)
{
	const struct tally_mapping *mapping = tally_tasks_find(names->tasks, pid, address >> 63,
							       address);
	struct tally_place place = tally_place_of(names->tasks, pid, address >> 63, address);
	*out = (struct tally_data_name){ .start = place.address,
					 .pid = owner_of(names->tasks, pid, &place) };
	/* Memory without a file that is not executable gets the kernel's name for it, not that of a
	 * JIT. */
	if (mapping && !mapping->executable && names->tasks->files.items[mapping->file].pid) {
		out->object = tally_tasks_path(names->tasks, mapping->file);
		return 0;
	}
	uint32_t function = tally_names_function(names, &place, &out->offset);
	if (function == UINT32_MAX)
		return -ENOMEM;
	out->object = tally_names_mapped_object(names, function, out->map);
	if (names->functions.items[function].name != TALLY_STRING_NONE) {
		out->name = tally_names_text(names, function);
		out->start = names->functions.items[function].start;
		return 0;
	}
	out->offset = 0; /* code without a symbol: `start` is the place itself */
	if (tally_names_file(names, &place) == TALLY_FILE_NONE || place.file == TALLY_FILE_KERNEL)
		return 0;
	struct tally_name_table *table = tally_name_table_of(names, place.file);
	const struct tally_symbol *symbol = NULL;
	if (!table)
		return -ENOMEM;
	if (!table->is_jit && !table->is_kernel)
		symbol = find_variable(names, &place, table, &out->offset);
	if (!symbol)
		return 0;
	uint32_t text = tally_names_intern_text(names, &table->texts, symbol->name);
	if (text == TALLY_STRING_NONE)
		return -ENOMEM;
	out->name = tally_strings_text(&names->strings, text);
	out->start = symbol->start;
	out->is_variable = true;
	return 0;
}
