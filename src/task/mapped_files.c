#include "task/mapped_files.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t KERNEL_PID = UINT32_MAX;

/* Memory without a file belongs to one process: its path says nothing about its content. */
static bool is_private(const char *path)
{
	return !strncmp(path, "//anon", 6) || !strncmp(path, "/dev/zero", 9) ||
	       !strncmp(path, "/anon_hugepage", 14) || !strncmp(path, "/memfd:", 7) ||
	       !strncmp(path, "/SYSV", 5) || !strncmp(path, "[anon", 5) ||
	       !strcmp(path, "[heap]") || !strncmp(path, "[stack", 6) || !*path;
}

static bool same_file(const struct tally_mapped_file *a, const struct tally_mapped_file *b)
{
	return a->path == b->path && a->major == b->major && a->minor == b->minor &&
	       a->inode == b->inode && a->inode_generation == b->inode_generation &&
	       a->pid == b->pid && a->is_kernel == b->is_kernel && a->is_symbol == b->is_symbol &&
	       a->symbol_start == b->symbol_start && a->symbol_size == b->symbol_size &&
	       tally_build_id_equal(&a->build_id, &b->build_id);
}

static uint64_t key_of(const struct tally_mapped_file *file)
{
	uint64_t key = tally_hash64(file->path | (uint64_t)file->pid << 32) ^
		       tally_hash64(file->inode + 1) ^
		       tally_hash64(((uint64_t)file->major << 32 | file->minor) + 2) ^
		       file->inode_generation ^ tally_hash64(file->symbol_start + 3);
	for (unsigned i = 0; i < file->build_id.size; i++)
		key = tally_hash64(key ^ file->build_id.bytes[i]);
	return key;
}

uint32_t tally_mapped_files_intern(struct tally_tasks *tasks, const struct tally_mapped_file *file)
{
	/* When another file has the key, try the next one. */
	for (uint64_t key = key_of(file);; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&tasks->file_index, key, &added);
		if (!slot)
			return TALLY_FILE_NONE;
		if (!added && same_file(&tasks->files.items[*slot], file)) {
			tasks->files.items[*slot].seen = file->seen;
			return (uint32_t)*slot;
		}
		if (!added)
			continue;
		if (tally_vector_push(&tasks->files, *file) < 0)
			return TALLY_FILE_NONE;
		*slot = tasks->files.count - 1;
		return (uint32_t)*slot;
	}
}

int tally_mapped_files_put(struct tally_map *index, const struct tally_mapped_file *file,
			   uint32_t number)
{
	for (uint64_t key = key_of(file);; key++) {
		bool added;
		uint64_t *slot = tally_map_put(index, key, &added);
		if (!slot)
			return -ENOMEM;
		if (!added)
			continue;
		*slot = number;
		return 0;
	}
}

uint32_t tally_mapped_files_of_record(struct tally_tasks *tasks,
				      const struct tally_record_mmap *mmap)
{
	struct tally_mapped_file file = {
		.path = tally_strings_intern(&tasks->strings, mmap->filename),
		.is_kernel = mmap->pid == KERNEL_PID,
		.pid = is_private(mmap->filename) ? mmap->pid : 0,
		.build_id.size = mmap->build_id_size,
		.seen = { mmap->pid, mmap->start, mmap->start + mmap->length, tasks->maps_seen },
	};
	if (file.path == TALLY_STRING_NONE)
		return TALLY_FILE_NONE;
	if (mmap->has_inode) {
		file.major = mmap->major;
		file.minor = mmap->minor;
		file.inode = mmap->inode;
		file.inode_generation = mmap->inode_generation;
	}
	memcpy(file.build_id.bytes, mmap->build_id, mmap->build_id_size);
	uint64_t *known = tally_map_get(&tasks->build_id_index, file.path);
	if (known && !file.build_id.size && !file.pid)
		file.build_id = tasks->build_ids.items[*known];
	return tally_mapped_files_intern(tasks, &file);
}

int tally_tasks_build_id(struct tally_tasks *tasks, const char *path,
			 const struct tally_build_id *id)
{
	uint32_t text = tally_strings_intern(&tasks->strings, path);
	uint64_t *slot = text == TALLY_STRING_NONE
				 ? NULL
				 : tally_map_put(&tasks->build_id_index, text, NULL);
	if (!slot || tally_vector_push(&tasks->build_ids, *id) < 0)
		return -ENOMEM;
	*slot = tasks->build_ids.count - 1;
	return 0;
}
