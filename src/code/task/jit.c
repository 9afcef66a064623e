/* A dump is recognised by its MMAP record: the file's name, the pid in it, and execute permission.
 * The record also has the file's inode, which proves that a file is the one that the process
 * mapped.  In old recordings, without an inode, the dump must belong to root or to this user.
 */
#include "task/jit.h"

#include "base/file_copy.h"
#include "base/input_limits.h"
#include "base/terminal.h"
#include "base/vector.h"
#include "machine/machine.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PREFIX_BYTES = 16 /* of a dump's record */ };

bool tally_jits_is_dump(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	unsigned pid;
	int end = 0;
	return sscanf(name, "jit-%9u.dump%n", &pid, &end) == 1 && end && !name[end];
}

static void note_gap(struct tally_jits *jits, size_t *gap, const char *path)
{
	if (!*jits->gaps.file)
		tally_terminal_clean_name(path, jits->gaps.file, sizeof(jits->gaps.file));
	++*gap;
}

/* ---- reading ------------------------------------------------------------- */

/* Returns `fd` if it is the record's file, otherwise -1, with the counter of the reason in *gap. */
static int check_file(struct tally_jit_gaps *gaps, int fd, const struct tally_record_mmap *mmap,
		      size_t **gap)
{
	struct stat file;
	*gap = &gaps->changed;
	if (fstat(fd, &file) < 0 || !S_ISREG(file.st_mode))
		return -1;
	if (mmap->has_inode && mmap->inode) {
		if (file.st_ino == mmap->inode)
			return fd;
		return -1;
	}
	*gap = &gaps->distrusted;
	if (!file.st_uid || file.st_uid == geteuid())
		return fd;
	return -1;
}

int tally_jit_open(const struct tally_record_mmap *mmap, struct tally_jit_gaps *gaps, size_t **gap)
{
	char in_root[4200];
	snprintf(in_root, sizeof(in_root), "/proc/%d/root%s",
		 tally_proc_living_thread((pid_t)mmap->pid), mmap->filename);
	const char *paths[] = { mmap->filename, in_root };
	size_t *why = NULL;
	*gap = &gaps->missing;
	for (unsigned i = 0; i < 2 && mmap->filename[0] == '/'; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
		if (fd >= 0 && check_file(gaps, fd, mmap, &why) >= 0)
			return fd;
		if (fd >= 0) {
			*gap = why;
			close(fd);
		}
	}
	return -1;
}

/* Finds how much of the file to read: its records, and the header of a torn one.  A process may
 * make its dump as large as it likes without using the disk. */
static int find_end(int fd, uint64_t size, uint64_t *end)
{
	enum { WINDOW_BYTES = 64 << 10 };
	struct tally_jit_extent extent = { 0 };
	uint8_t *window = malloc(WINDOW_BYTES);
	ssize_t got;
	int result = 0;
	if (!window)
		return -ENOMEM;
	do {
		got = 0;
		if (extent.at < size)
			got = pread(fd, window, WINDOW_BYTES, (off_t)extent.at);
	} while (got > 0 && tally_jit_extent_go_on(&extent, window, (size_t)got));
	if (got < 0)
		result = -errno;
	free(window);
	if (got > PREFIX_BYTES)
		got = PREFIX_BYTES;
	*end = size;
	if (extent.at < size)
		*end = extent.at + (uint64_t)got;
	return result;
}

/* Copies the dump's file to memory, as far as it has records. */
static int copy_file(struct tally_jits *jits, int fd, const char *path, struct tally_jit *jit)
{
	const uint64_t one = tally_input_limit(TALLY_INPUT_JIT_DUMP),
		       all = tally_input_limit(TALLY_INPUT_JIT_DUMPS);
	enum tally_input limit = TALLY_INPUT_JIT_DUMP;
	struct stat file;
	uint64_t end, data = 0, left = 0, most = one;
	if (fstat(fd, &file) < 0)
		return -errno;
	int result = find_end(fd, (uint64_t)file.st_size, &end);
	if (result)
		return result;
	if (end > one) {
		tally_input_note(TALLY_INPUT_JIT_DUMP, path);
		return -EFBIG;
	}
	if (all > jits->bytes_read)
		left = all - jits->bytes_read;
	if (left < one) {
		limit = TALLY_INPUT_JIT_DUMPS;
		most = left;
	}
	result = tally_file_copy(fd, (size_t)end, most, &jit->bytes, &data);
	if (result == -EFBIG)
		tally_input_note(limit, path);
	if (result)
		return result;
	jit->size = (size_t)end;
	jits->bytes_read += data;
	return 0;
}

/* Reads a dump.  If it can't be used, leaves jit->dump NULL and counts the reason. */
static int read_dump(struct tally_jits *jits, const struct tally_record_mmap *mmap,
		     struct tally_jit *jit)
{
	size_t *gap;
	int held = -1;
	if (jits->files)
		held = tally_jit_files_find(jits->files, mmap);
	int fd = held;
	if (fd < 0)
		fd = tally_jit_open(mmap, &jits->gaps, &gap);
	if (fd < 0) {
		note_gap(jits, gap, mmap->filename);
		return 0;
	}
	int result = copy_file(jits, fd, mmap->filename, jit);
	if (fd != held)
		close(fd);
	if (result == -EFBIG)
		return 0;
	if (!result)
		result = tally_jit_dump_read(jit->bytes, jit->size, &jit->dump, NULL);
	if (result < 0)
		note_gap(jits, &jits->gaps.unreadable, mmap->filename);
	else if (jit->dump->has_cycle_times)
		note_gap(jits, &jits->gaps.other_clock, mmap->filename);
	if (result == -ENOMEM)
		return -ENOMEM;
	return 0;
}

/* Reads or recalls a dump.  If neither works, leaves jit->dump NULL.  Returns 0 or -ENOMEM. */
static int find_dump(struct tally_jits *jits, const struct tally_record_mmap *mmap,
		     struct tally_jit *jit)
{
	if (jits->recall && !jits->wants_code)
		jit->dump = jits->recall(jits->context, jit->file);
	if (jit->dump)
		return 0;
	int result = read_dump(jits, mmap, jit);
	if (!result && !jit->dump && jits->recall && jits->wants_code)
		jit->dump = jits->recall(jits->context, jit->file);
	return result;
}

static void release(struct tally_jit *jit)
{
	if (jit->is_inherited)
		return;
	for (size_t i = 0; jit->tables && i < jit->dump->functions.count; i++)
		tally_unwind_table_free(jit->tables[i]);
	free(jit->tables);
	tally_jit_dump_free(jit->dump);
	tally_file_copy_free(jit->bytes, jit->size);
}

static struct tally_jit *youngest(const struct tally_tasks *tasks, uint32_t pid)
{
	struct tally_jits *jits = tasks->jits;
	if (!jits || !jits->items.count)
		return NULL;
	const uint64_t *slot = tally_map_get(&jits->of_process, pid);
	if (!slot || !*slot)
		return NULL;
	return &jits->items.items[*slot - 1];
}

static struct tally_jit *older(const struct tally_tasks *tasks, const struct tally_jit *jit)
{
	if (!jit->older)
		return NULL;
	return &tasks->jits->items.items[jit->older - 1];
}

int tally_jits_record(struct tally_tasks *tasks, const struct tally_record_mmap *mmap,
		      uint32_t file)
{
	struct tally_jits *jits = tasks->jits;
	if (!jits || !tally_jits_is_dump(mmap->filename))
		return 0;
	for (const struct tally_jit *known = youngest(tasks, mmap->pid); known;
	     known = older(tasks, known))
		if (known->file == file && !known->is_inherited)
			return 0;
	struct tally_jit jit = { .pid = mmap->pid, .file = file, .until_ns = UINT64_MAX };
	int result = find_dump(jits, mmap, &jit);
	if (result < 0 || !jit.dump) {
		release(&jit);
		return result;
	}
	uint64_t *slot = tally_map_put(&jits->of_process, mmap->pid, NULL);
	if (slot) {
		jit.older = (uint32_t)*slot;
		jit.tables = calloc(jit.dump->functions.count + 1, sizeof(*jit.tables));
	}
	if (!slot || !jit.tables || tally_vector_push(&jits->items, jit) < 0) {
		release(&jit);
		return -ENOMEM;
	}
	*slot = jits->items.count;
	return 0;
}

int tally_jits_fork(struct tally_tasks *tasks, uint32_t parent, uint32_t child, uint64_t time_ns)
{
	struct tally_jits *jits = tasks->jits;
	const struct tally_jit *from = youngest(tasks, parent);
	if (!from)
		return 0;
	uint64_t *slot = tally_map_put(&jits->of_process, child, NULL);
	if (!slot)
		return -ENOMEM;
	*slot = jits->items.count + 1;
	while (from) {
		struct tally_jit jit = *from;
		uint32_t next = jit.older;
		jit.pid = child;
		jit.is_inherited = true;
		if (time_ns < jit.until_ns)
			jit.until_ns = time_ns;
		jit.bytes = NULL;
		jit.seen = 0;
		jit.older = next ? (uint32_t)jits->items.count + 2 : 0;
		if (tally_vector_push(&jits->items, jit) < 0) {
			*slot = 0;
			return -ENOMEM;
		}
		from = next ? &jits->items.items[next - 1] : NULL;
	}
	return 0;
}

static bool has_own(const struct tally_tasks *tasks, uint32_t pid)
{
	for (const struct tally_jit *jit = youngest(tasks, pid); jit; jit = older(tasks, jit))
		if (!jit->is_inherited)
			return true;
	return false;
}

void tally_jits_forget(struct tally_tasks *tasks, uint32_t pid)
{
	if (!tasks->jits)
		return;
	uint64_t *slot = tally_map_get(&tasks->jits->of_process, pid);
	if (slot && *slot && !has_own(tasks, pid))
		tally_map_remove(&tasks->jits->of_process, pid);
	else if (slot)
		*slot = 0;
}

bool tally_jits_has(const struct tally_tasks *tasks, uint32_t pid)
{
	if (!tasks->jits)
		return false;
	const uint64_t *slot = tally_map_get(&tasks->jits->of_process, pid);
	return slot && (!*slot || has_own(tasks, pid));
}

/* ---- held open ----------------------------------------------------------- */

enum { HELD_MAX = 128 };

int tally_jit_files_find(const struct tally_jit_files *files, const struct tally_record_mmap *mmap)
{
	for (size_t i = 0; mmap->has_inode && i < files->items.count; i++) {
		const struct tally_jit_file *file = &files->items.items[i];
		if (file->inode == mmap->inode && file->major == mmap->major &&
		    file->minor == mmap->minor &&
		    !strcmp(tally_strings_text(&files->paths, file->path), mmap->filename))
			return file->fd;
	}
	return -1;
}

int tally_jit_files_record(struct tally_jit_files *files, const struct tally_record *record)
{
	const struct tally_record_mmap *mmap = &record->mmap;
	struct tally_jit_gaps gaps = { 0 };
	size_t *gap;
	if (record->header.type != TALLY_RECORD_MMAP2 || !(mmap->protection & PROT_EXEC) ||
	    !tally_jits_is_dump(mmap->filename) || files->items.count == HELD_MAX ||
	    tally_jit_files_find(files, mmap) >= 0)
		return 0;
	struct tally_jit_file file = { .path = tally_strings_intern(&files->paths, mmap->filename),
				       .major = mmap->major,
				       .minor = mmap->minor,
				       .inode = mmap->inode,
				       .fd = tally_jit_open(mmap, &gaps, &gap) };
	if (file.fd < 0)
		return 0;
	if (file.path != TALLY_STRING_NONE && !tally_vector_push(&files->items, file))
		return 0;
	close(file.fd);
	return -ENOMEM;
}

void tally_jit_files_release(struct tally_jit_files *files)
{
	for (size_t i = 0; i < files->items.count; i++)
		close(files->items.items[i].fd);
	tally_vector_release(&files->items);
	tally_strings_release(&files->paths);
	*files = (struct tally_jit_files){ 0 };
}

/* ---- over time ----------------------------------------------------------- */

static size_t places_at(const struct tally_tasks *tasks, const struct tally_jit *jit,
			uint64_t time_ns)
{
	bool has_times = !tasks->jits->has_no_times && !jit->dump->has_cycle_times;
	if (time_ns > jit->until_ns)
		time_ns = jit->until_ns;
	if (has_times)
		return tally_jit_dump_places_at(jit->dump, time_ns);
	return jit->dump->places.count;
}

/* True if places were added or removed since the last look.  Mostly nothing has changed, and the
 * next place's time tells this quickly. */
static bool is_behind(const struct tally_tasks *tasks, const struct tally_jit *jit,
		      uint64_t time_ns)
{
	const struct tally_jit_dump *dump = jit->dump;
	bool has_times = !tasks->jits->has_no_times && !dump->has_cycle_times;
	if (time_ns > jit->until_ns)
		time_ns = jit->until_ns;
	if (!has_times)
		return jit->seen < dump->places.count;
	return (jit->seen < dump->places.count &&
		dump->places.items[jit->seen].time_ns <= time_ns) ||
	       (jit->seen && dump->places.items[jit->seen - 1].time_ns > time_ns);
}

bool tally_jits_are_behind(const struct tally_tasks *tasks, uint32_t pid, uint64_t time_ns)
{
	for (const struct tally_jit *jit = youngest(tasks, pid); jit; jit = older(tasks, jit))
		if (is_behind(tasks, jit, time_ns))
			return true;
	return false;
}

void tally_jits_advance(struct tally_tasks *tasks, uint32_t pid, uint64_t time_ns)
{
	for (struct tally_jit *jit = youngest(tasks, pid); jit; jit = older(tasks, jit))
		jit->seen = places_at(tasks, jit, time_ns);
	tally_tasks_remapped(tasks, pid);
}

bool tally_jits_find(const struct tally_tasks *tasks, uint32_t pid, uint64_t address,
		     uint32_t *jit_number, uint64_t *code_address)
{
	for (const struct tally_jit *jit = youngest(tasks, pid); jit; jit = older(tasks, jit)) {
		const struct tally_jit_place *place = tally_jit_dump_find(jit->dump, address,
									  jit->seen);
		if (!place)
			continue;
		*jit_number = (uint32_t)(jit - tasks->jits->items.items);
		*code_address = jit->dump->functions.items[place->function].base +
				(address - place->address);
		return true;
	}
	return false;
}

const struct tally_jit *tally_jits_of_file(const struct tally_tasks *tasks, uint32_t file)
{
	const struct tally_jits *jits = tasks->jits;
	for (size_t i = 0; jits && i < jits->items.count; i++)
		if (jits->items.items[i].file == file)
			return &jits->items.items[i];
	return NULL;
}

const struct tally_jit_function *tally_jits_function(const struct tally_tasks *tasks, uint32_t file,
						     uint64_t code_address)
{
	const struct tally_jit *jit = tally_jits_of_file(tasks, file);
	if (!jit)
		return NULL;
	const struct tally_jit_function *function = tally_jit_dump_function(jit->dump,
									    code_address);
	if (function && function->bytes)
		return function;
	return NULL;
}

struct tally_unwind_table *tally_jit_table(const struct tally_jit_function *function,
					   unsigned machine)
{
	enum { ALIGNMENT = 8 };
	struct tally_unwind_table *table;
	uint64_t behind = TALLY_JIT_RULES_AT +
			  (function->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (tally_unwind_table_new_from_frames(function->eh_frame, function->eh_frame_size, behind,
					       tally_unwind_machine_of_elf(machine), &table) < 0)
		return NULL;
	return table;
}

struct tally_unwind_table *tally_jits_unwind(const struct tally_jit *jit,
					     const struct tally_jit_function *function)
{
	if (!function->eh_frame_size)
		return NULL;
	struct tally_unwind_table **table = &jit->tables[function - jit->dump->functions.items];
	if (!*table)
		*table = tally_jit_table(function, jit->dump->machine);
	return *table;
}

void tally_jits_free(struct tally_jits *jits)
{
	if (!jits)
		return;
	for (size_t i = 0; i < jits->items.count; i++)
		release(&jits->items.items[i]);
	tally_vector_release(&jits->items);
	tally_map_release(&jits->of_process);
	free(jits);
}
