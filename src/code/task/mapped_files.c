/* Turns records of mappings into files, and interns these by a hash of all that identifies them.
 * The rest of the file forgets files: it chooses them, makes new tables for the others, and then
 * replaces the old tables. */
#include "task/task.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const uint32_t KERNEL_PID = UINT32_MAX;

/* True for a memfd that holds a program or library: loaders map these privately, as they map any
 * file.  JITs share a memfd between a mapping that they write and one that they execute. */
static bool is_memfd_file(const struct tally_record_mmap *mmap)
{
	return tally_is_memfd(mmap->filename) &&
	       (mmap->build_id_size ||
		(mmap->has_inode && mmap->inode && mmap->flags & MAP_PRIVATE));
}

/* Memory without a file belongs to one process: its path says nothing about its content. */
static bool is_private(const struct tally_record_mmap *mmap)
{
	const char *path = mmap->filename;
	return !strncmp(path, "//anon", 6) || !strncmp(path, "/dev/zero", 9) ||
	       !strncmp(path, "/anon_hugepage", 14) || !strncmp(path, "/SYSV", 5) ||
	       !strncmp(path, "[anon", 5) || !strcmp(path, "[heap]") ||
	       !strncmp(path, "[stack", 6) || !*path ||
	       (tally_is_memfd(path) && !is_memfd_file(mmap));
}

static bool same_file(const struct tally_mapped_file *a, const struct tally_mapped_file *b)
{
	return a->path == b->path && a->major == b->major && a->minor == b->minor &&
	       a->inode == b->inode && a->inode_generation == b->inode_generation &&
	       a->pid == b->pid && a->origin == b->origin && a->is_kernel == b->is_kernel &&
	       a->is_symbol == b->is_symbol && a->symbol_start == b->symbol_start &&
	       a->symbol_size == b->symbol_size && a->has_own_build_id == b->has_own_build_id &&
	       tally_build_id_equal(&a->build_id, &b->build_id);
}

static uint64_t key_of(const struct tally_mapped_file *file)
{
	uint64_t key = tally_hash64(file->path | (uint64_t)file->pid << 32) ^
		       tally_hash64(file->inode + 1) ^
		       tally_hash64(((uint64_t)file->major << 32 | file->minor) + 2) ^
		       file->inode_generation ^ tally_hash64(file->symbol_start + 3);
	key ^= file->pid ? tally_hash64((uint64_t)file->origin + 4) : 0;
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
		if (tally_vector_push(&tasks->files, *file) < 0) {
			tally_map_remove(&tasks->file_index, key);
			return TALLY_FILE_NONE;
		}
		*slot = tasks->files.count - 1;
		return (uint32_t)*slot;
	}
}

/* Adds a file that is not yet in the index, with its number.  Returns 0 or -ENOMEM. */
static int mapped_files_put(struct tally_map *index, const struct tally_mapped_file *file,
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

/* Notes that a file without a build-id was mapped from a listed path.  Records that a recorder
 * makes of what it finds have no generation. */
static void note_listed(struct tally_listed_build_id *listed, const struct tally_mapped_file *file)
{
	if (!listed->has_file) {
		listed->has_file = true;
		listed->major = file->major;
		listed->minor = file->minor;
		listed->inode = file->inode;
		listed->inode_generation = file->inode_generation;
	}
	bool is_later = file->inode_generation && listed->inode_generation &&
			file->inode_generation != listed->inode_generation;
	listed->is_ambiguous |= listed->major != file->major || listed->minor != file->minor ||
				listed->inode != file->inode || is_later;
}

/* Returns the mapping's file.  The vdso of a 32-bit process is another one than that of a 64-bit
 * process, under the same name; its address tells.  It gets the name that perf has for it. */
static const char *path_of(const struct tally_record_mmap *mmap)
{
	bool is_narrow = mmap->start + mmap->length <= (uint64_t)UINT32_MAX + 1;
	if (is_narrow && !strcmp(mmap->filename, "[vdso]"))
		return TALLY_VDSO32;
	return mmap->filename;
}

uint32_t tally_mapped_files_of_record(struct tally_tasks *tasks,
				      const struct tally_record_mmap *mmap)
{
	struct tally_mapped_file file = {
		.path = tally_strings_intern(&tasks->strings, path_of(mmap)),
		.is_kernel = mmap->pid == KERNEL_PID,
		.pid = is_private(mmap) ? mmap->pid : 0,
		.build_id.size = mmap->build_id_size,
		.has_own_build_id = mmap->build_id_size,
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
	if (known && !file.build_id.size && !file.pid) {
		struct tally_listed_build_id *listed = &tasks->build_ids.items[*known];
		note_listed(listed, &file);
		if (!listed->is_ambiguous)
			file.build_id = listed->id;
	}
	return tally_mapped_files_intern(tasks, &file);
}

uint32_t tally_mapped_files_inherit(struct tally_tasks *tasks, uint32_t number, uint32_t pid)
{
	struct tally_mapped_file file = tasks->files.items[number];
	file.pid = file.seen.pid = pid;
	file.origin = number + 1;
	return tally_mapped_files_intern(tasks, &file);
}

bool tally_tasks_is_ambiguous(const struct tally_tasks *tasks, const struct tally_mapped_file *file)
{
	const uint64_t *known = tally_map_get(&tasks->build_id_index, file->path);
	return known && !file->has_own_build_id && tasks->build_ids.items[*known].is_ambiguous;
}

int tally_tasks_build_id(struct tally_tasks *tasks, const char *path,
			 const struct tally_build_id *id)
{
	uint32_t text = tally_strings_intern(&tasks->strings, path);
	bool added;
	if (text == TALLY_STRING_NONE)
		return -ENOMEM;
	uint64_t *slot = tally_map_put(&tasks->build_id_index, text, &added);
	if (!slot)
		return -ENOMEM;
	if (!added) {
		struct tally_listed_build_id *listed = &tasks->build_ids.items[*slot];
		listed->is_ambiguous |= !tally_build_id_equal(&listed->id, id);
		return 0;
	}
	const struct tally_listed_build_id listed = { .id = *id };
	*slot = tasks->build_ids.count;
	if (tally_vector_push(&tasks->build_ids, listed) < 0) {
		tally_map_remove(&tasks->build_id_index, text);
		return -ENOMEM;
	}
	return 0;
}

/* Forgets files that no process maps any more.
 *
 * An id is an index into a vector, so the remaining files move together and get new numbers, in the
 * same order.  Paths share their string table with names of threads and control groups; every
 * string still in use goes to a new table.  All steps that can fail come before the first change.
 */

enum { MAPPED = 0, UNMAPPED = 1 };

static void mark(struct tally_mapping *mapping, void *marks)
{
	((uint32_t *)marks)[mapping->file] = MAPPED;
}

/* Calls a function for each mapping of the tasks, once when processes share it. */
static void visit_mappings(struct tally_tasks *tasks,
			   void (*handle)(struct tally_mapping *mapping, void *context),
			   void *context)
{
	tally_mappings_begin_visit(&tasks->pool);
	tally_mappings_visit(&tasks->pool, &tasks->kernel.mappings, handle, context);
	for (size_t i = 0; i < tasks->processes.count; i++)
		tally_mappings_visit(&tasks->pool, &tasks->processes.items[i].mappings, handle,
				     context);
}

static int by_last_use(const void *a, const void *b, void *context)
{
	const struct tally_mapped_file *files = context;
	const uint32_t *x = a, *y = b;
	uint64_t number_x = files[*x].seen.number, number_y = files[*y].seen.number;
	if (number_x != number_y)
		return (number_x > number_y) - (number_x < number_y);
	return (*x > *y) - (*x < *y);
}

uint32_t *tally_mapped_files_choose(struct tally_tasks *tasks, size_t limit)
{
	size_t count = tasks->files.count, excess = count > limit ? count - limit : 0, unmapped = 0;
	uint32_t *numbers = malloc((count + 1) * sizeof(*numbers)),
		 *oldest = malloc((count + 1) * sizeof(*oldest)), next = 0;
	if (!numbers || !oldest) {
		free(numbers);
		free(oldest);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		numbers[i] = UNMAPPED;
	visit_mappings(tasks, mark, numbers);
	/* A file's origin has a lower number than the file. */
	for (size_t i = count; i-- > 0;)
		if (numbers[i] == MAPPED && tasks->files.items[i].origin)
			numbers[tasks->files.items[i].origin - 1] = MAPPED;
	for (uint32_t i = 0; i < count; i++)
		if (numbers[i] == UNMAPPED)
			oldest[unmapped++] = i;
	qsort_r(oldest, unmapped, sizeof(*oldest), by_last_use, tasks->files.items);
	memset(numbers, 0, count * sizeof(*numbers));
	for (size_t i = 0; i < unmapped && i < excess; i++)
		numbers[oldest[i]] = TALLY_FILE_NONE;
	for (size_t i = 0; i < count; i++)
		if (numbers[i] != TALLY_FILE_NONE)
			numbers[i] = next++;
	free(oldest);
	return numbers;
}

/* ---- what stays ---------------------------------------------------------- */

/* New tables, made before they replace the old ones. */
struct kept {
	struct tally_strings strings;
	uint32_t *renamed; /* new id by old id */
	struct tally_map file_index, build_id_index;
};

static void kept_release(struct kept *kept)
{
	tally_strings_release(&kept->strings);
	tally_map_release(&kept->file_index);
	tally_map_release(&kept->build_id_index);
	free(kept->renamed);
}

static bool keep_string(struct kept *kept, const struct tally_strings *old, uint64_t id)
{
	if (id >= old->count || kept->renamed[id] != TALLY_STRING_NONE)
		return true;
	kept->renamed[id] = tally_strings_intern(&kept->strings,
						 tally_strings_text(old, (uint32_t)id));
	return kept->renamed[id] != TALLY_STRING_NONE;
}

static bool keep_strings(struct kept *kept, const struct tally_tasks *tasks,
			 const uint32_t *numbers)
{
	const struct tally_strings *old = &tasks->strings;
	bool done = true;
	for (size_t i = 0; i < tasks->files.count; i++)
		done = done && (numbers[i] == TALLY_FILE_NONE ||
				keep_string(kept, old, tasks->files.items[i].path));
	for (size_t i = 0; i < tasks->threads.count; i++)
		done = done && keep_string(kept, old, tasks->threads.items[i].comm);
	for (size_t i = 0; i < tasks->cgroups.capacity; i++)
		if (tasks->cgroups.slots[i].used)
			done = done && keep_string(kept, old, tasks->cgroups.slots[i].value);
	for (size_t i = 0; i < tasks->build_id_index.capacity; i++)
		if (tasks->build_id_index.slots[i].used)
			done = done && keep_string(kept, old, tasks->build_id_index.slots[i].key);
	return done;
}

static bool keep_build_ids(struct kept *kept, const struct tally_tasks *tasks)
{
	for (size_t i = 0; i < tasks->build_id_index.capacity; i++) {
		const struct tally_map_slot *slot = &tasks->build_id_index.slots[i];
		if (!slot->used)
			continue;
		uint64_t *value = tally_map_put(&kept->build_id_index, kept->renamed[slot->key],
						NULL);
		if (!value)
			return false;
		if (value)
			*value = slot->value;
	}
	return true;
}

static uint32_t renamed(const struct kept *kept, const struct tally_strings *old, uint32_t id)
{
	if (id < old->count)
		return kept->renamed[id];
	return id;
}

/* A forgotten origin is none. */
static uint32_t renumbered_origin(const struct tally_mapped_file *file, const uint32_t *numbers)
{
	if (file->origin && numbers[file->origin - 1] != TALLY_FILE_NONE)
		return numbers[file->origin - 1] + 1;
	return 0;
}

static bool keep_index(struct kept *kept, const struct tally_tasks *tasks, const uint32_t *numbers)
{
	for (size_t i = 0; i < tasks->files.count; i++) {
		struct tally_mapped_file file = tasks->files.items[i];
		file.path = renamed(kept, &tasks->strings, file.path);
		file.origin = renumbered_origin(&file, numbers);
		if (numbers[i] != TALLY_FILE_NONE &&
		    mapped_files_put(&kept->file_index, &file, numbers[i]) < 0)
			return false;
	}
	return true;
}

/* ---- done ---------------------------------------------------------------- */

static void renumber(struct tally_mapping *mapping, void *numbers)
{
	mapping->file = ((const uint32_t *)numbers)[mapping->file];
}

static void take_over(struct tally_tasks *tasks, struct kept *kept, uint32_t *numbers)
{
	const struct tally_strings *old = &tasks->strings;
	size_t count = 0;
	visit_mappings(tasks, renumber, numbers);
	for (size_t i = 0; i < tasks->files.count; i++) {
		if (numbers[i] == TALLY_FILE_NONE)
			continue;
		tasks->files.items[count] = tasks->files.items[i];
		tasks->files.items[count].path = renamed(kept, old, tasks->files.items[i].path);
		tasks->files.items[count].origin = renumbered_origin(&tasks->files.items[i],
								     numbers);
		count++;
	}
	tasks->files.count = count;
	for (size_t i = 0; i < tasks->threads.count; i++)
		tasks->threads.items[i].comm = renamed(kept, old, tasks->threads.items[i].comm);
	for (size_t i = 0; i < tasks->cgroups.capacity; i++)
		if (tasks->cgroups.slots[i].used)
			tasks->cgroups.slots[i].value = renamed(
				kept, old, (uint32_t)tasks->cgroups.slots[i].value);
	kept->strings.failed |= old->failed;
	tally_strings_release(&tasks->strings);
	tally_map_release(&tasks->file_index);
	tally_map_release(&tasks->build_id_index);
	tasks->strings = kept->strings;
	tasks->file_index = kept->file_index;
	tasks->build_id_index = kept->build_id_index;
	free(kept->renamed);
	tasks->comm_generation++;
}

int tally_mapped_files_renumber(struct tally_tasks *tasks, uint32_t *numbers)
{
	struct kept kept = { .renamed = malloc((tasks->strings.count + 1) *
					       sizeof(*kept.renamed)) };
	for (size_t i = 0; kept.renamed && i < tasks->strings.count; i++)
		kept.renamed[i] = TALLY_STRING_NONE;
	if (!kept.renamed || !keep_strings(&kept, tasks, numbers) ||
	    !keep_build_ids(&kept, tasks) || !keep_index(&kept, tasks, numbers)) {
		kept_release(&kept);
		return -ENOMEM;
	}
	take_over(tasks, &kept, numbers);
	return 0;
}
