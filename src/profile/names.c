#include "profile/names.h"

#include "base/buffer.h"
#include "base/vector.h"
#include "symbol/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KALLSYMS_BYTES_MAX = 256 << 20, PERF_MAP_BYTES_MAX = 1 << 30 };

/* The symbols of one mapped file. */
struct tally_file_symbols {
	struct tally_symbols *symbols; /* NULL: none */
	bool tried;
	bool is_jit; /* addresses are raw ones */
	uint32_t object; /* string id */
	enum tally_frame_kind kind;
};

void tally_names_init(struct tally_names *names, struct tally_tasks *tasks)
{
	*names = (struct tally_names){ .tasks = tasks };
}

void tally_names_release(struct tally_names *names)
{
	for (size_t i = 0; i < names->tables.count; i++)
		tally_symbols_free(names->tables.items[i].symbols);
	tally_vector_release(&names->tables);
	tally_vector_release(&names->functions);
	tally_vector_release(&names->frames);
	tally_map_release(&names->function_index);
	tally_symbols_free(names->kernel);
	tally_strings_release(&names->strings);
	tally_objects_release(&names->objects);
}

struct tally_place tally_place_of(const struct tally_tasks *tasks, uint32_t pid, bool kernel, uint64_t address)
{
	const struct tally_mapping *mapping = tally_tasks_find(tasks, pid, kernel, address);
	if (!mapping)
		return (struct tally_place){ .file = kernel ? TALLY_FILE_KERNEL : TALLY_FILE_NONE, .address = address };
	const struct tally_mapped_file *file = &tasks->files.items[mapping->file];
	if (file->is_kernel || file->pid)
		return (struct tally_place){ .file = mapping->file, .address = address };
	return (struct tally_place){ .file = mapping->file,
				     .address = address - mapping->start + mapping->file_offset };
}

/* ---- the kernel ---------------------------------------------------------------------------------------- */

static bool running_kernel_is(const struct tally_build_id *recorded)
{
	struct tally_buffer notes = { 0 };
	struct tally_build_id running;
	bool same = true;
	if (recorded->size && !tally_buffer_read_file(&notes, AT_FDCWD, "/sys/kernel/notes", 1 << 16) &&
	    tally_build_id_from_notes(notes.bytes, notes.length, &running))
		same = tally_build_id_equal(recorded, &running);
	tally_buffer_release(&notes);
	return same;
}

/* The address of a symbol in kallsyms' text.  Not from the table of symbols, which keeps one for each address: the
 * first byte of the kernel has several. */
static bool find_in_kallsyms(const struct tally_buffer *text, const char *name, uint64_t *address)
{
	size_t length = strlen(name);
	for (const char *line = tally_buffer_string(text), *end; *line; line = end + (*end == '\n')) {
		end = line + strcspn(line, "\n");
		char *type;
		*address = strtoull(line, &type, 16);
		if ((size_t)(end - type) == length + 3 && !memcmp(type + 3, name, length))
			return true;
	}
	return false;
}

/* KASLR moved the kernel since the recording when "[kernel.kallsyms]_text" was elsewhere: perf's MMAP of the
 * kernel has the address of that symbol as its file offset.  Modules move by themselves: theirs stay unnamed then. */
static void see_kernel_shift(struct tally_names *names, const struct tally_buffer *kallsyms)
{
	static const char prefix[] = "[kernel.kallsyms]";
	const struct tally_process *kernel = &names->tasks->kernel;
	uint64_t now;
	for (size_t i = 0; i < kernel->count; i++) {
		const struct tally_mapping *mapping = &kernel->mappings[i];
		const char *path = tally_tasks_path(names->tasks, mapping->file);
		if (strncmp(path, prefix, sizeof(prefix) - 1) || !path[sizeof(prefix) - 1] ||
		    !find_in_kallsyms(kallsyms, path + sizeof(prefix) - 1, &now))
			continue;
		names->kernel_shift = (int64_t)(mapping->file_offset - now);
		return;
	}
}

static void load_kernel(struct tally_names *names)
{
	struct tally_buffer text = { 0 };
	names->kernel_tried = true;
	if (names->foreign_machine || !running_kernel_is(&names->kernel_build_id)) {
		names->gaps.kernel_differs = true;
		return;
	}
	if (tally_buffer_read_file(&text, AT_FDCWD, "/proc/kallsyms", KALLSYMS_BYTES_MAX) < 0 ||
	    tally_symbols_from_kallsyms(text.bytes ? text.bytes : "", text.length, &names->kernel, NULL) < 0) {
		names->kernel = NULL;
		names->gaps.kernel_hidden = true;
	} else {
		see_kernel_shift(names, &text);
	}
	tally_buffer_release(&text);
}

/* ---- tables of files ----------------------------------------------------------------------------------- */

/* A JIT's perf map is believed only when the process's owner (or root) wrote it. */
static bool is_trusted_map(int fd, uint32_t pid)
{
	char proc[32];
	struct stat map, process;
	if (fstat(fd, &map) < 0 || !S_ISREG(map.st_mode))
		return false;
	snprintf(proc, sizeof(proc), "/proc/%u", pid);
	return map.st_uid == geteuid() || !map.st_uid || (!stat(proc, &process) && process.st_uid == map.st_uid);
}

static struct tally_symbols *load_perf_map(struct tally_names *names, uint32_t pid)
{
	char path[64];
	struct tally_buffer text = { .maximum = PERF_MAP_BYTES_MAX };
	struct tally_symbols *symbols = NULL;
	size_t skipped = 0;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!is_trusted_map(fd, pid))
		names->gaps.distrusted_maps++;
	else if (!tally_buffer_read_file(&text, AT_FDCWD, path, PERF_MAP_BYTES_MAX - 1) &&
		 tally_symbols_from_perf_map(text.bytes ? text.bytes : "", text.length, &skipped, &symbols, NULL) < 0)
		symbols = NULL;
	names->gaps.map_lines_skipped += skipped;
	close(fd);
	tally_buffer_release(&text);
	return symbols;
}

static enum tally_frame_kind kind_of_path(const char *path)
{
	const char *so = strstr(path, ".so");
	bool is_library = so && (!so[3] || so[3] == '.' || so[3] == '-');
	return is_library || !strcmp(path, "[vdso]") || !strncmp(path, "[vsyscall", 9) ? TALLY_FRAME_LIBRARY :
										      TALLY_FRAME_PROGRAM;
}

static void note_gap(struct tally_names *names, const struct tally_object_entry *entry, const char *path)
{
	if (entry->state == TALLY_OBJECT_CHANGED) {
		if (!names->gaps.changed_files++)
			snprintf(names->gaps.changed_file, sizeof(names->gaps.changed_file), "%s", path);
	} else if (entry->state == TALLY_OBJECT_MISSING && path[0] == '/') {
		names->gaps.missing_files++;
	}
}

static void load_file(struct tally_names *names, struct tally_file_symbols *table, uint32_t file_id)
{
	const struct tally_mapped_file *file = &names->tasks->files.items[file_id];
	const char *path = tally_tasks_path(names->tasks, file_id);
	char jit_path[64];
	table->tried = true;
	table->kind = kind_of_path(path);
	if (file->pid && strncmp(path, "[stack", 6) && strcmp(path, "[heap]")) {
		table->is_jit = true;
		table->kind = TALLY_FRAME_JIT;
		table->symbols = load_perf_map(names, file->pid);
		snprintf(jit_path, sizeof(jit_path), "/tmp/perf-%u.map", file->pid);
		if (table->symbols || strncmp(path, "/memfd:", 7))
			path = jit_path; /* else a file in memory, which has a name to show */
	} else if (!file->pid) {
		struct tally_object_entry *entry = tally_objects_get(&names->objects, names->tasks, file_id);
		if (entry && entry->object) {
			if (tally_symbols_from_object(entry->object, tally_objects_debug(entry), &table->symbols,
						      NULL) < 0)
				table->symbols = NULL;
		} else if (entry) {
			note_gap(names, entry, path);
		}
	}
	table->object = tally_strings_intern(&names->strings, path);
}

static struct tally_file_symbols *table_of(struct tally_names *names, uint32_t file)
{
	while (names->tables.count <= file)
		if (tally_vector_push(&names->tables, (struct tally_file_symbols){ 0 }) < 0)
			return NULL;
	struct tally_file_symbols *table = &names->tables.items[file];
	if (!table->tried)
		load_file(names, table, file);
	return table;
}

/* ---- functions ----------------------------------------------------------------------------------------- */

static uint32_t intern_name(struct tally_names *names, const char *mangled)
{
	char *readable = names->keep_mangled ? NULL : tally_demangle(mangled);
	uint32_t name = tally_strings_intern(&names->strings, readable ? readable : mangled);
	free(readable);
	return name;
}

static uint32_t plain_name(struct tally_names *names, uint32_t name)
{
	const char *text = name == TALLY_STRING_NONE ? "" : tally_strings_text(&names->strings, name);
	const char *version = strstr(text, "@@");
	return version && version > text ? tally_strings_add(&names->strings, text, (size_t)(version - text)) : name;
}

/* The function of `symbol` (NULL: none is known) in `file`; `module`: its object's name where it isn't `object`. */
static uint32_t intern_function(struct tally_names *names, uint32_t file, uint32_t object,
				enum tally_frame_kind kind, const struct tally_symbol *symbol)
{
	uint64_t start = symbol ? symbol->start : UINT64_MAX;
	uint64_t key = tally_hash64(start) ^ ((uint64_t)file << 32 | file);
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&names->function_index, key, &added);
		if (!slot)
			return UINT32_MAX;
		if (!added) {
			const struct tally_function *there = &names->functions.items[*slot];
			if (there->start == start && there->object == object)
				return (uint32_t)*slot;
			continue;
		}
		struct tally_function function = {
			.name = symbol ? intern_name(names, symbol->name) : TALLY_STRING_NONE,
			.object = object,
			.start = start,
			.kind = kind,
		};
		function.plain = plain_name(names, function.name);
		*slot = names->functions.count;
		if (tally_vector_push(&names->functions, function) < 0)
			return UINT32_MAX;
		return (uint32_t)*slot;
	}
}

/* The function of a call.  What no function holds may lie before one that is only ever returned to: a signal's
 * trampoline. */
static const struct tally_symbol *find_called(const struct tally_symbols *symbols, uint64_t address, uint32_t before)
{
	const struct tally_symbol *symbol = tally_symbols_find(symbols, address);
	return symbol || !before ? symbol : tally_symbols_find(symbols, address + before);
}

static uint32_t kernel_function(struct tally_names *names, const struct tally_place *place, uint64_t *offset)
{
	if (!names->kernel_tried)
		load_kernel(names);
	uint64_t address = place->address - (uint64_t)names->kernel_shift;
	const struct tally_symbol *symbol = names->kernel ? tally_symbols_find(names->kernel, address) : NULL;
	const char *module = symbol ? tally_symbol_module(names->kernel, symbol) : NULL;
	if (module && names->kernel_shift) {
		symbol = NULL;
		module = NULL;
	}
	char object[80] = "[kernel.kallsyms]";
	if (module)
		snprintf(object, sizeof(object), "[%s]", module);
	if (symbol)
		*offset = address - symbol->start;
	return intern_function(names, TALLY_FILE_KERNEL, tally_strings_intern(&names->strings, object),
			       TALLY_FRAME_KERNEL, symbol);
}

uint32_t tally_names_function(struct tally_names *names, const struct tally_place *place, uint64_t *symbol_offset)
{
	uint64_t ignored, *offset = symbol_offset ? symbol_offset : &ignored;
	*offset = 0;
	if (place->file == TALLY_FILE_NONE)
		return intern_function(names, TALLY_FILE_NONE, tally_strings_intern(&names->strings, "[unknown]"),
				       TALLY_FRAME_PROGRAM, NULL);
	if (place->file == TALLY_FILE_KERNEL || names->tasks->files.items[place->file].is_kernel)
		return kernel_function(names, place, offset);

	struct tally_file_symbols *table = table_of(names, place->file);
	if (!table)
		return UINT32_MAX;
	uint64_t address = place->address;
	const struct tally_symbol *symbol = NULL;
	if (table->symbols) {
		struct tally_object_entry *entry = tally_objects_get(&names->objects, names->tasks, place->file);
		if (table->is_jit || (entry && entry->object &&
				      tally_object_address_of_offset(entry->object, place->address, &address)))
			symbol = find_called(table->symbols, address, place->before);
	}
	if (symbol)
		*offset = address - symbol->start;
	return intern_function(names, place->file, table->object, table->kind, symbol);
}

int tally_names_resolve(struct tally_names *names, const struct tally_place *places, size_t count,
			struct tally_place_name *out)
{
	for (size_t i = 0; i < count; i++) {
		struct tally_place_frame frame = { .file = TALLY_STRING_NONE };
		out[i] = (struct tally_place_name){ .first = (uint32_t)names->frames.count, .count = 1 };
		frame.function = tally_names_function(names, &places[i], &out[i].offset);
		if (frame.function == UINT32_MAX || tally_vector_push(&names->frames, frame) < 0)
			return -ENOMEM;
	}
	return 0;
}

static const char *text_or_unknown(const struct tally_names *names, uint32_t text)
{
	return text == TALLY_STRING_NONE ? "[unknown]" : tally_strings_text(&names->strings, text);
}

const char *tally_names_text(const struct tally_names *names, uint32_t function)
{
	bool known = function < names->functions.count;
	return text_or_unknown(names, known ? names->functions.items[function].name : TALLY_STRING_NONE);
}

const char *tally_names_plain_text(const struct tally_names *names, uint32_t function)
{
	bool known = function < names->functions.count;
	return text_or_unknown(names, known ? names->functions.items[function].plain : TALLY_STRING_NONE);
}

const char *tally_names_object(const struct tally_names *names, uint32_t function)
{
	return function < names->functions.count ?
		       tally_strings_text(&names->strings, names->functions.items[function].object) :
		       "[unknown]";
}

const char *tally_names_short_object(const struct tally_names *names, uint32_t function)
{
	const char *path = tally_names_object(names, function), *slash = strrchr(path, '/');
	return slash && slash[1] && path[0] != '[' ? slash + 1 : path;
}
