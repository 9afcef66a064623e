/* Module files are found like the kernel's own file (kernel_names.c).  First by build-id: perf's
 * recordings have one for each module, and /sys/module has those of loaded modules.  Then by path:
 * the recorded one, or that in modules.dep of the release.  Distributions put a copy with debug
 * information below /usr/lib/debug.
 *
 * A module's file isn't linked (object/object.h). /sys/module tells where its sections are, as long
 * as the same kernel runs; otherwise that is computed from the recorded start of the module.  All
 * addresses are in the terms of the kernel's table: names->kernel.shift is subtracted.
 */
#include "naming/naming_internal.h"

#include "base/buffer.h"
#include "base/text.h"
#include "base/vector.h"
#include "object/object.h"
#include "symbol/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = TALLY_MODULE_NAME_BYTES };

struct module {
	char name[NAME_MAX_BYTES]; /* "nf_tables" */
	uint64_t start; /* recorded; 0: not known */
	struct tally_object *object, *debug; /* linked; NULL: none */
	struct tally_symbols *symbols;
	struct tally_lines *lines; /* NULL: none, or not tried */
	bool lines_tried;
};

struct tally_kernel_modules {
	struct { struct module *items; size_t count, capacity; } items;
};

void tally_kernel_modules_free(struct tally_kernel_modules *modules)
{
	for (size_t i = 0; modules && i < modules->items.count; i++) {
		struct module *module = &modules->items.items[i];
		tally_lines_free(module->lines);
		tally_symbols_free(module->symbols);
		tally_object_unref(module->object);
		tally_object_unref(module->debug);
	}
	if (modules)
		tally_vector_release(&modules->items);
	free(modules);
}

/* ---- which module -------------------------------------------------------- */

struct wanted {
	char name[NAME_MAX_BYTES];
	uint64_t start;
	const struct tally_mapped_file *file; /* NULL: no record has it */
	const char *path;
};

static bool find_wanted(const struct tally_names *names, uint64_t raw, const char *name,
			struct wanted *wanted)
{
	const struct tally_mapping *mapping = tally_tasks_find(names->tasks, 0, true, raw);
	const struct tally_mapped_file *file = NULL;
	if (mapping)
		file = &names->tasks->files.items[mapping->file];
	*wanted = (struct wanted){ 0 };
	if (file && !file->is_symbol &&
	    tally_module_name(tally_tasks_path(names->tasks, mapping->file), wanted->name)) {
		wanted->path = tally_tasks_path(names->tasks, mapping->file);
		wanted->file = file;
		wanted->start = mapping->start - (uint64_t)names->kernel.shift;
		return true;
	}
	if (name)
		snprintf(wanted->name, sizeof(wanted->name), "%s", name);
	return name && !strchr(name, '/') && strcmp(name, "bpf") != 0;
}

bool tally_kernel_module_recorded(const struct tally_names *names, uint64_t address,
				  char name[TALLY_MODULE_NAME_BYTES])
{
	struct wanted wanted;
	if (!find_wanted(names, address, NULL, &wanted))
		return false;
	memcpy(name, wanted.name, TALLY_MODULE_NAME_BYTES);
	return true;
}

/* ---- its files ----------------------------------------------------------- */

static struct tally_build_id id_of(const struct tally_names *names, const struct wanted *wanted)
{
	struct tally_build_id id = { 0 };
	if (wanted->file && wanted->file->build_id.size)
		return wanted->file->build_id;
	if (!names->kernel.is_foreign)
		tally_module_loaded_build_id(wanted->name, &id);
	return id;
}

static bool find_in_dependencies(const char *text, const char *name, char *path, size_t size)
{
	struct tally_module_dependency line;
	while (tally_module_dependency_next(&text, &line))
		if (!strcmp(line.name, name))
			return (size_t)snprintf(path, size, "%s", line.path) < size;
	return false;
}

static bool find_path(const struct tally_names *names, const struct wanted *wanted, char *path,
		      size_t size)
{
	char here[TALLY_KERNEL_RELEASE_BYTES];
	const char *root = tally_text_or(names->objects.search.root, "");
	const char *release = tally_kernel_release(names, here);
	char list[PATH_MAX], below[PATH_MAX];
	struct tally_buffer text = { 0 };
	if (wanted->path && wanted->path[0] == '/')
		return (size_t)snprintf(path, size, "%s", wanted->path) < size;
	if (!*release || strchr(release, '/') ||
	    snprintf(list, sizeof(list), "%s/lib/modules/%s/modules.dep", root, release) >=
		    (int)sizeof(list))
		return false;
	bool found = !tally_buffer_read_file(&text, AT_FDCWD, list,
					     TALLY_MODULE_DEPENDENCIES_BYTES_MAX) &&
		     find_in_dependencies(tally_buffer_string(&text), wanted->name, below,
					  sizeof(below)) &&
		     (size_t)snprintf(path, size, "/lib/modules/%s/%s", release, below) < size;
	tally_buffer_release(&text);
	return found;
}

static struct tally_object *open_if(const struct tally_names *names, const char *path,
				    const struct tally_build_id *id)
{
	struct tally_object *found = NULL;
	if (tally_module_open(&names->objects.search, path, &found) < 0)
		return NULL;
	if (!id->size || tally_build_id_equal(tally_object_build_id(found), id))
		return found;
	tally_object_unref(found);
	return NULL;
}

/* Returns the module's file, or NULL.  `*debug` is a separate copy with debug information, or NULL.
 * If only that copy exists, it is returned. */
static struct tally_object *open_module(const struct tally_names *names,
					const struct wanted *wanted, struct tally_object **debug)
{
	const struct tally_build_id id = id_of(names, wanted);
	char path[PATH_MAX - 32], copy[PATH_MAX];
	struct tally_object *found = NULL;
	if (id.size)
		found = tally_search_by_build_id(&names->objects.search, &id);
	bool has_path = !found && find_path(names, wanted, path, sizeof(path));
	*debug = NULL;
	if (has_path) {
		/* the copy with debug information is not compressed */
		char *packed = strstr(path, ".ko") + 3;
		snprintf(copy, sizeof(copy), "/usr/lib/debug%.*s", (int)(packed - path), path);
		*debug = open_if(names, copy, &id);
		strcat(copy, ".debug");
		if (!*debug)
			*debug = open_if(names, copy, &id);
		found = open_if(names, path, &id);
	}
	if (!found) {
		found = *debug;
		*debug = NULL;
	}
	return found;
}

/* ---- linked -------------------------------------------------------------- */

static uint64_t lowest(const uint64_t *addresses, size_t count)
{
	uint64_t found = UINT64_MAX;
	for (size_t i = 0; i < count; i++)
		if (addresses[i] && addresses[i] < found)
			found = addresses[i];
	return found;
}

static struct tally_object *link_object(const struct tally_names *names,
					const struct module *module,
					const struct tally_object *object)
{
	struct tally_object *linked = NULL;
	char folder[128];
	size_t count;
	uint64_t *addresses = tally_module_addresses(object, &count);
	snprintf(folder, sizeof(folder), "/sys/module/%s/sections", module->name);
	bool is_running = !names->kernel.is_foreign && !names->kernel.shift;
	bool is_placed = addresses && is_running &&
			 tally_module_place_by(object, folder, addresses, count) &&
			 (!module->start || lowest(addresses, count) == module->start);
	if (addresses && !is_placed && module->start)
		tally_module_place(object, module->start, addresses, count);
	if (!addresses || (!is_placed && !module->start) ||
	    tally_module_link(object, addresses, count, &linked) < 0)
		linked = NULL;
	free(addresses);
	return linked;
}

static void open_linked(const struct tally_names *names, const struct wanted *wanted,
			struct module *module)
{
	struct tally_object *debug, *object = open_module(names, wanted, &debug);
	if (object && !debug)
		debug = tally_search_debug(&names->objects.search, object, NULL);
	if (object)
		module->object = link_object(names, module, object);
	if (debug && module->object)
		module->debug = link_object(names, module, debug);
	tally_object_unref(object);
	tally_object_unref(debug);
	if (module->object &&
	    tally_symbols_from_object(module->object, module->debug, &module->symbols, NULL) < 0)
		module->symbols = NULL;
}

static struct module *if_opened(struct module *module)
{
	if (!module->object)
		return NULL;
	return module;
}

/* Returns the module at an address; NULL: none, or its file is not there. */
static struct module *module_of(const struct tally_names *names, struct tally_name_table *table,
				uint64_t raw, const char *name)
{
	struct wanted wanted;
	if (!find_wanted(names, raw, name, &wanted))
		return NULL;
	if (!table->modules)
		table->modules = calloc(1, sizeof(*table->modules));
	for (size_t i = 0; table->modules && i < table->modules->items.count; i++) {
		struct module *module = &table->modules->items.items[i];
		if (module->start == wanted.start && !strcmp(module->name, wanted.name))
			return if_opened(module);
	}
	struct module fresh = { .start = wanted.start };
	memcpy(fresh.name, wanted.name, sizeof(fresh.name));
	if (!table->modules || tally_vector_push(&table->modules->items, fresh) < 0)
		return NULL;
	struct module *module = &table->modules->items.items[table->modules->items.count - 1];
	open_linked(names, &wanted, module);
	return if_opened(module);
}

/* ---- asked --------------------------------------------------------------- */

static bool has_symbol(const struct module *module, const struct tally_symbol *symbol)
{
	size_t count = 0;
	const struct tally_symbol *list = NULL;
	if (module->symbols)
		list = tally_symbols_list(module->symbols, &count);
	return list && symbol >= list && symbol < list + count;
}

const char *tally_kernel_module_name(const struct tally_kernel_modules *modules,
				     const struct tally_symbol *symbol)
{
	for (size_t i = 0; modules && i < modules->items.count; i++)
		if (has_symbol(&modules->items.items[i], symbol))
			return modules->items.items[i].name;
	return NULL;
}

/* Returns the name of the symbol's module by kallsyms, or NULL.  `*is_kernel`: the symbol belongs
 * to the kernel itself. */
static const char *module_in_table(const struct tally_names *names,
				   const struct tally_name_table *table,
				   const struct tally_symbol *symbol, bool *is_kernel)
{
	const char *name = NULL;
	if (symbol)
		name = tally_kernel_module_name(table->modules, symbol);
	if (symbol && !name)
		name = tally_symbol_module(table->symbols, symbol);
	*is_kernel = symbol && !name;
	if (names->kernel.shift)
		return NULL; /* the module has moved since */
	return name;
}

const struct tally_symbol *tally_kernel_module_symbol(const struct tally_names *names,
						      struct tally_name_table *table,
						      const struct tally_place *place,
						      const struct tally_symbol *symbol)
{
	bool is_kernel;
	uint64_t address = place->address - (uint64_t)names->kernel.shift;
	const char *name = module_in_table(names, table, symbol, &is_kernel);
	if (is_kernel || (name && !names->sources.modules))
		return symbol;
	const struct module *module = module_of(names, table, place->address, name);
	const struct tally_symbol *own = NULL;
	if (module && module->symbols)
		own = tally_symbols_find(module->symbols, address);
	if (own)
		return own;
	return symbol;
}

const struct tally_object *tally_kernel_module_object(const struct tally_names *names,
						      struct tally_name_table *table,
						      const struct tally_symbol *symbol)
{
	bool is_kernel;
	const char *name = module_in_table(names, table, symbol, &is_kernel);
	if (is_kernel)
		return NULL;
	const struct module *module = module_of(
		names, table, symbol->start + (uint64_t)names->kernel.shift, name);
	if (!module)
		return NULL;
	return module->object;
}

int tally_kernel_module_lines(const struct tally_names *names, struct tally_name_table *table,
			      const uint64_t *addresses, const struct tally_symbol *const *symbols,
			      size_t count, struct tally_line_answer *answers)
{
	for (size_t first = 0, end; first < count; first = end) {
		bool is_kernel;
		const char *name = module_in_table(names, table, symbols[first], &is_kernel);
		uint64_t raw = addresses[first] + (uint64_t)names->kernel.shift;
		struct module *module = NULL;
		if (!is_kernel)
			module = module_of(names, table, raw, name);
		end = first + 1;
		if (!module)
			continue;
		if (!module->lines_tried &&
		    tally_lines_new(module->object, module->debug, &module->lines, NULL) < 0)
			return -ENOMEM;
		module->lines_tried = true;
		while (end < count && symbols[end] && symbols[end] == symbols[first])
			end++;
		if (tally_lines_find(module->lines, addresses + first, end - first,
				     answers + first) < 0)
			return -ENOMEM;
	}
	return 0;
}
