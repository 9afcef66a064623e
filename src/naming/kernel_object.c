/* The kernel's own file, vmlinux.  It has the lines of its functions, and their names if kallsyms
 * doesn't.
 *
 * Each distribution puts it elsewhere; it is large and often absent.  A build-id finds it reliably;
 * without one in the recording, the release in the file's name has to do.  KASLR runs the kernel at
 * another address than it was linked for: recordings have the address of one symbol, and all others
 * are off by the same distance.
 */
#include "base/buffer.h"
#include "naming/name_tables.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum { NOTES_BYTES_MAX = 1 << 16 };

bool tally_kernel_running_build_id(struct tally_build_id *id)
{
	struct tally_buffer notes = { 0 };
	bool found = !tally_buffer_read_file(&notes, AT_FDCWD, "/sys/kernel/notes",
					     NOTES_BYTES_MAX) &&
		     tally_build_id_from_notes(notes.bytes, notes.length, id);
	tally_buffer_release(&notes);
	return found;
}

const struct tally_mapping *tally_kernel_reference(const struct tally_names *names,
						   const char **symbol)
{
	static const char prefix[] = "[kernel.kallsyms]";
	const struct tally_process *kernel = &names->tasks->kernel;
	for (size_t i = 0; i < kernel->count; i++) {
		const char *path = tally_tasks_path(names->tasks, kernel->mappings[i].file);
		if (strncmp(path, prefix, sizeof(prefix) - 1) != 0 || !path[sizeof(prefix) - 1])
			continue;
		*symbol = path + sizeof(prefix) - 1;
		return &kernel->mappings[i];
	}
	return NULL;
}

const char *tally_kernel_release(const struct tally_names *names,
				 char release[TALLY_KERNEL_RELEASE_BYTES])
{
	struct utsname here;
	bool is_here = !names->kernel_release && !names->foreign_machine && !uname(&here);
	snprintf(release, TALLY_KERNEL_RELEASE_BYTES, "%s", is_here ? here.release : "");
	return names->kernel_release ? names->kernel_release : release;
}

static struct tally_object *if_of(struct tally_object *object, const struct tally_build_id *id)
{
	if (object && id->size && !tally_build_id_equal(tally_object_build_id(object), id)) {
		tally_object_unref(object);
		return NULL;
	}
	return object;
}

static struct tally_object *find_by_release(const struct tally_names *names, const char *release,
					    const struct tally_build_id *id)
{
	static const char *const PLACES[][2] = {
		{ "/usr/lib/debug/boot/vmlinux-", "" },
		{ "/usr/lib/debug/lib/modules/", "/vmlinux" },
		{ "/lib/modules/", "/build/vmlinux" },
		{ "/boot/vmlinux-", "" },
		{ "/usr/lib/debug/boot/vmlinux-", ".debug" },
		{ "/lib/modules/", "/vmlinux" },
	};
	struct tally_object *found = NULL;
	bool is_release = *release && !strchr(release, '/');
	for (size_t i = 0; is_release && !found && i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s%s%s", PLACES[i][0], release, PLACES[i][1]);
		if (tally_search_open(&names->objects.search, path, &found) < 0)
			found = NULL;
		found = if_of(found, id);
	}
	return found;
}

static struct tally_object *find(struct tally_names *names)
{
	struct tally_build_id id = names->kernel_build_id;
	struct tally_object *found = NULL;
	if (names->sources.vmlinux) {
		if (tally_object_open(AT_FDCWD, names->sources.vmlinux, &found, NULL) < 0)
			return NULL;
		names->gaps.vmlinux_differs = id.size && !tally_build_id_equal(
								 tally_object_build_id(found), &id);
		return found;
	}
	if (!id.size && !names->foreign_machine)
		tally_kernel_running_build_id(&id);
	const struct tally_fetched_object *fetched = tally_objects_fetched(&names->objects, &id);
	if (fetched && fetched->debug)
		return tally_object_ref(fetched->debug);
	if (id.size)
		found = tally_search_by_build_id(&names->objects.search, &id);
	char release[TALLY_KERNEL_RELEASE_BYTES];
	return found ? found : find_by_release(names, tally_kernel_release(names, release), &id);
}

void tally_kernel_object_use(struct tally_names *names, struct tally_object *object)
{
	struct tally_object_entry *entry = &names->vmlinux;
	const char *symbol;
	uint64_t linked;
	const struct tally_mapping *reference = tally_kernel_reference(names, &symbol);
	entry->state = object ? TALLY_OBJECT_OPEN : TALLY_OBJECT_MISSING;
	entry->search = &names->objects.search;
	entry->object = object;
	if (object && reference &&
	    (tally_symbols_value_in(object, symbol, &linked) ||
	     (tally_objects_debug(entry) && tally_symbols_value_in(entry->debug, symbol, &linked))))
		names->vmlinux_shift = (int64_t)(reference->file_offset - linked);
}

struct tally_object_entry *tally_kernel_object(struct tally_names *names)
{
	if (names->vmlinux.state == TALLY_OBJECT_UNTRIED)
		tally_kernel_object_use(names, find(names));
	return names->vmlinux.object ? &names->vmlinux : NULL;
}
