#include "task/objects.h"

#include "base/vector.h"
#include "unwind/unwind.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

const void *tally_vdso_image(size_t *size)
{
	const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
	if (!image)
		return NULL;
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
	/* The section headers end the image. */
	*size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	return image;
}

static bool is_wanted(const struct tally_object *object, const struct tally_build_id *wanted)
{
	return !wanted->size || tally_build_id_equal(tally_object_build_id(object), wanted);
}

/* A copy by build-id: perf's cache (~/.debug), then the distribution's folder. */
static struct tally_object *open_by_build_id(const struct tally_build_id *id)
{
	char hex[2 * TALLY_BUILD_ID_MAX + 1], path[512];
	const char *home = getenv("HOME");
	struct tally_object *object;
	if (id->size < 2)
		return NULL;
	tally_build_id_format(id, hex);
	static const char *const NAMES[] = { "elf", "vdso" };
	for (size_t i = 0; home && i < sizeof(NAMES) / sizeof(*NAMES); i++) {
		snprintf(path, sizeof(path), "%s/.debug/.build-id/%.2s/%s/%s", home, hex, hex + 2, NAMES[i]);
		if (!tally_object_open(AT_FDCWD, path, &object, NULL)) {
			if (is_wanted(object, id))
				return object;
			tally_object_unref(object);
		}
	}
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	if (!tally_object_open(AT_FDCWD, path, &object, NULL)) {
		if (is_wanted(object, id))
			return object;
		tally_object_unref(object);
	}
	return NULL;
}

static void open_entry(struct tally_object_entry *entry, const struct tally_mapped_file *file, const char *path)
{
	const struct tally_build_id *wanted = &file->build_id;
	entry->state = TALLY_OBJECT_NO_FILE;
	if (file->is_kernel || file->pid)
		return;
	entry->state = TALLY_OBJECT_MISSING;
	if (!strcmp(path, "[vdso]")) {
		size_t size;
		const void *image = tally_vdso_image(&size);
		if (image && tally_object_open_memory(path, image, size, &entry->object, NULL) < 0)
			entry->object = NULL;
	} else if (path[0] == '/' && tally_object_open(AT_FDCWD, path, &entry->object, NULL) < 0) {
		entry->object = NULL;
	}
	if (entry->object && !is_wanted(entry->object, wanted)) {
		tally_object_unref(entry->object);
		entry->object = NULL;
		entry->state = TALLY_OBJECT_CHANGED;
	}
	if (!entry->object)
		entry->object = open_by_build_id(wanted);
	if (entry->object)
		entry->state = TALLY_OBJECT_OPEN;
}

struct tally_object_entry *tally_objects_get(struct tally_objects *objects, const struct tally_tasks *tasks,
					     uint32_t file)
{
	static struct tally_object_entry none = { .state = TALLY_OBJECT_NO_FILE };
	if (file >= tasks->files.count)
		return &none;
	while (objects->entries.count <= file)
		if (tally_vector_push(&objects->entries, (struct tally_object_entry){ 0 }) < 0)
			return NULL;
	struct tally_object_entry *entry = &objects->entries.items[file];
	if (entry->state == TALLY_OBJECT_UNTRIED)
		open_entry(entry, &tasks->files.items[file], tally_tasks_path(tasks, file));
	return entry;
}

struct tally_object *tally_objects_debug(struct tally_object_entry *entry)
{
	if (!entry->debug_tried && entry->object)
		entry->debug = tally_object_open_debug(entry->object);
	entry->debug_tried = true;
	return entry->debug;
}

struct tally_unwind_table *tally_objects_unwind(struct tally_object_entry *entry)
{
	if (!entry->unwind_tried && entry->object) {
		/* .eh_frame is enough for nearly all; the debug file is opened only where it is missing. */
		struct tally_section section;
		bool has = tally_object_section(entry->object, ".eh_frame", &section) && section.bytes;
		if (tally_unwind_table_new(entry->object, has ? NULL : tally_objects_debug(entry), &entry->unwind,
					   NULL) < 0)
			entry->unwind = NULL;
	}
	entry->unwind_tried = true;
	return entry->unwind;
}

void tally_objects_release(struct tally_objects *objects)
{
	tally_unwind_cache_free(objects->unwind_cache);
	objects->unwind_cache = NULL;
	for (size_t i = 0; i < objects->entries.count; i++) {
		struct tally_object_entry *entry = &objects->entries.items[i];
		tally_unwind_table_free(entry->unwind);
		tally_object_unref(entry->object);
		tally_object_unref(entry->debug);
	}
	tally_vector_release(&objects->entries);
}
