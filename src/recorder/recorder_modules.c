/* Kernel modules.  No record of the kernel's reports them: neither those loaded before the
 * recording nor those loaded later.
 *
 * /proc/modules is read at the start, again whenever the number of folders in /sys/module changes
 * (which each pass checks cheaply), and once a second, since one module may have replaced another.
 * A new module's record has the time of the previous pass: it was loaded after that, and readers
 * accept no earlier time in a record that comes so late.  Like files, an unloaded module stays
 * known: earlier samples may still be in the rings.
 */
#include "recorder/recorder_synthesis.h"

#include "base/vector.h"
#include "object/module.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

static const uint64_t LOOK_NS = 1000000000;
enum { TEXT_BYTES_MAX = 16 << 20 };

static bool is_same(const struct tally_loaded_module *a, const struct tally_loaded_module *b)
{
	return a->start == b->start && a->end == b->end && !strcmp(a->name, b->name);
}

static bool is_known(const struct tally_loaded_modules *known,
		     const struct tally_loaded_module *module)
{
	size_t low = 0, high = known->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (known->items[middle].start < module->start)
			low = middle + 1;
		else
			high = middle;
	}
	return low < known->count && is_same(&known->items[low], module);
}

static uint64_t count_folders(void)
{
	struct stat status;
	return stat("/sys/module", &status) ? 0 : (uint64_t)status.st_nlink;
}

/* ---- writing ------------------------------------------------------------- */

static int write_module(struct tally_synthesis *synthesis, const struct tally_loaded_module *module,
			const char *path)
{
	struct tally_build_id id;
	if (tally_module_loaded_build_id(module->name, &id) &&
	    tally_tasks_build_id(&synthesis->recorder->tasks, path, &id) < 0)
		return tally_error_set(synthesis->err, -ENOMEM, "out of memory");
	tally_synthesis_begin(synthesis);
	tally_synthesis_u32(synthesis, UINT32_MAX);
	tally_synthesis_u32(synthesis, 0);
	tally_synthesis_u64(synthesis, module->start);
	tally_synthesis_u64(synthesis, module->end - module->start);
	tally_synthesis_u64(synthesis, 0);
	tally_synthesis_string(synthesis, path);
	return tally_synthesis_finish(synthesis, TALLY_RECORD_MMAP, TALLY_MISC_KERNEL, -1, 0);
}

/* Reads modules.dep of the running kernel and sets the path of its folder.  Returns "" when there
 * is none. */
static const char *read_dependencies(struct tally_buffer *text, char *folder, size_t size)
{
	struct utsname here;
	char path[PATH_MAX];
	if (uname(&here))
		return "";
	snprintf(folder, size, "/lib/modules/%s", here.release);
	snprintf(path, sizeof(path), "%s/modules.dep", folder);
	return tally_buffer_read_file(text, AT_FDCWD, path, TALLY_MODULE_DEPENDENCIES_BYTES_MAX)
		       ? ""
		       : tally_buffer_string(text);
}

static const struct tally_loaded_module *find(const struct tally_loaded_modules *modules,
					      const bool *wanted, const char *name)
{
	for (size_t i = 0; i < modules->count; i++)
		if (wanted[i] && !strcmp(modules->items[i].name, name))
			return &modules->items[i];
	return NULL;
}

/* Writes the modules with the paths in modules.dep, as perf names them, and those that it lacks in
 * brackets.  Clears `wanted`. */
static int write_modules(struct tally_synthesis *synthesis,
			 const struct tally_loaded_modules *modules, bool *wanted)
{
	struct tally_buffer text = { 0 };
	struct tally_module_dependency line;
	char folder[128], path[sizeof(folder) + sizeof(line.path)];
	const struct tally_loaded_module *module;
	int result = 0;
	for (const char *at = read_dependencies(&text, folder, sizeof(folder));
	     !result && tally_module_dependency_next(&at, &line);) {
		module = find(modules, wanted, line.name);
		if (!module)
			continue;
		wanted[module - modules->items] = false;
		snprintf(path, sizeof(path), "%s/%s", folder, line.path);
		result = write_module(synthesis, module, path);
	}
	for (size_t i = 0; !result && i < modules->count; i++) {
		if (!wanted[i])
			continue;
		snprintf(path, sizeof(path), "[%s]", modules->items[i].name);
		result = write_module(synthesis, &modules->items[i], path);
	}
	tally_buffer_release(&text);
	return result;
}

/* ---- reading ------------------------------------------------------------- */

int tally_recorder_read_modules(struct tally_recorder *recorder, struct tally_error *err)
{
	struct tally_recorder_modules *modules = &recorder->modules;
	struct tally_buffer text = { 0 };
	modules->now.count = 0;
	if (!tally_recorder_samples_kernel(recorder))
		return 0;
	modules->folders = count_folders();
	int result = tally_buffer_read_file(&text, AT_FDCWD, "/proc/modules", TEXT_BYTES_MAX);
	if (!result)
		result = tally_loaded_modules_parse(tally_buffer_string(&text), &modules->now);
	tally_buffer_release(&text);
	/* other failures mean that there are no modules, or that this user may not read them */
	return result == -ENOMEM ? tally_error_set(err, result, "out of memory") : 0;
}

uint64_t tally_recorder_module_above(const struct tally_recorder *recorder, uint64_t address)
{
	const struct tally_loaded_modules *now = &recorder->modules.now;
	for (size_t i = 0; i < now->count; i++)
		if (now->items[i].start > address)
			return now->items[i].start;
	return UINT64_MAX;
}

int tally_synthesize_modules(struct tally_synthesis *synthesis)
{
	struct tally_recorder_modules *modules = &synthesis->recorder->modules;
	struct tally_loaded_modules now = modules->now;
	bool *wanted = calloc(now.count + 1, sizeof(*wanted)), any = false;
	if (!wanted)
		return tally_error_set(synthesis->err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < now.count; i++)
		any |= wanted[i] = !is_known(&modules->known, &now.items[i]);
	int result = any ? write_modules(synthesis, &now, wanted) : 0;
	free(wanted);
	modules->now = modules->known;
	modules->known = now;
	return result;
}

int tally_recorder_look_at_modules(struct tally_recorder *recorder, uint64_t now_ns,
				   struct tally_error *err)
{
	struct tally_recorder_modules *modules = &recorder->modules;
	struct tally_synthesis synthesis = { .recorder = recorder,
					     .err = err,
					     .time_ns = modules->pass_ns };
	modules->pass_ns = now_ns;
	if (!recorder->objects.is_live || !tally_recorder_samples_kernel(recorder) ||
	    (now_ns < modules->look_at && count_folders() == modules->folders))
		return 0;
	modules->look_at = now_ns + LOOK_NS;
	int result = tally_recorder_read_modules(recorder, err);
	return result < 0 ? result : tally_synthesize_modules(&synthesis);
}

void tally_recorder_modules_release(struct tally_recorder_modules *modules)
{
	tally_vector_release(&modules->known);
	tally_vector_release(&modules->now);
}
