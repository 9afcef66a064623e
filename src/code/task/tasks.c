/* Applies one record at a time to tables of processes and threads, which are indexed by id.  Most
 * of the work is with mappings: a process may copy its code to other memory, or inherit made code,
 * and names must still be found. */
#include "task/task.h"

#include "base/binary_search.h"
#include "base/vector.h"
#include "task/jit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Returns the number of a record's set; TALLY_NAMESPACES_NONE without memory. */
static uint32_t namespaces_intern(struct tally_namespaces *namespaces,
				  const struct tally_record_namespaces *record)
{
	struct tally_namespace_set set = { 0 };
	uint64_t key = 0;
	for (uint64_t i = 0; i < record->count && i < TALLY_NAMESPACE_KINDS; i++) {
		set.of[i] = (struct tally_namespace){ record->dev_inode[2 * i],
						      record->dev_inode[2 * i + 1] };
		key = tally_hash64(key ^ tally_hash64(set.of[i].device + 1) ^ set.of[i].inode);
	}
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&namespaces->index, key, &added);
		if (!slot)
			return TALLY_NAMESPACES_NONE;
		if (added) {
			if (tally_vector_push(&namespaces->sets, set) < 0) {
				tally_map_remove(&namespaces->index, key);
				return TALLY_NAMESPACES_NONE;
			}
			*slot = namespaces->sets.count - 1;
		}
		if (!memcmp(&namespaces->sets.items[*slot], &set, sizeof(set)))
			return (uint32_t)*slot;
	}
}

static void namespaces_release(struct tally_namespaces *namespaces)
{
	tally_vector_release(&namespaces->sets);
	tally_map_release(&namespaces->index);
	*namespaces = (struct tally_namespaces){ 0 };
}

static const uint32_t KERNEL_PID = UINT32_MAX;

/* ---- processes and their mappings ---------------------------------------- */

static struct tally_process *find_process(const struct tally_tasks *tasks, uint32_t pid)
{
	uint64_t *slot = tally_map_get(&tasks->process_index, pid);
	if (!slot)
		return NULL;
	return &tasks->processes.items[*slot];
}

static struct tally_process *need_process(struct tally_tasks *tasks, uint32_t pid)
{
	bool added;
	uint64_t *slot = tally_map_put(&tasks->process_index, pid, &added);
	if (!slot)
		return NULL;
	if (added) {
		*slot = tasks->processes.count;
		if (tally_vector_push(&tasks->processes, (struct tally_process){ .pid = pid }) < 0) {
			tally_map_remove(&tasks->process_index, pid);
			return NULL;
		}
	}
	return &tasks->processes.items[*slot];
}

/* Returns the mapping that contains an address, or NULL. */
static const struct tally_mapping *mapping_at(const struct tally_process *process, uint64_t address)
{
	const struct tally_mapping *mapping = tally_mappings_behind(&process->mappings, address);
	if (mapping && mapping->start <= address)
		return mapping;
	return NULL;
}

static bool is_hotspot(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && !strcmp(slash, "/libjvm.so");
}

/* ---- code that is copied ------------------------------------------------- */

/* Programs copy their code to memory with large pages, at the same addresses: node
 * --use-largepages, libhugetlbfs, BOLT's hugify.  The record of such memory has no file, but the
 * code is still the file's. */

static bool is_of_large_pages(const char *path)
{
	return tally_is_memfd(path) || !strncmp(path, "/dev/hugepages/", 15) ||
	       strstr(path, "libhugetlbfs");
}

/* Returns the first of the mappings that cover all of another one, if they are one piece of one
 * file; NULL: none. */
static const struct tally_mapping *find_covered(const struct tally_process *process,
						const struct tally_mapping *by, bool has_offsets)
{
	const struct tally_mapping *first = mapping_at(process, by->start);
	for (const struct tally_mapping *map = first; map && map->end < by->end;) {
		const struct tally_mapping *next = mapping_at(process, map->end);
		if (!next || next->file != map->file || next->program != map->program ||
		    (has_offsets &&
		     next->file_offset != map->file_offset + (next->start - map->start)))
			return NULL;
		map = next;
	}
	return first;
}

/* A program's own code is never unmapped.  A library's may be, and its addresses may be used for
 * other code; but hardly for a mapping of just its size, or of whole large pages. */
static bool is_copy(const struct tally_tasks *tasks, const struct tally_mapping *mapping,
		    const struct tally_mapping *covered)
{
	const uint64_t large_page = 2 << 20;
	const struct tally_mapped_file *file = &tasks->files.items[mapping->file],
				       *old = &tasks->files.items[covered->file];
	const char *path = tally_tasks_path(tasks, mapping->file);
	bool is_file = !old->pid && tally_tasks_path(tasks, covered->file)[0] == '/';
	if (!is_file || mapping->file == covered->file)
		return false;
	if (covered->is_program)
		return file->pid || is_of_large_pages(path);
	bool is_whole = mapping->start == covered->start && mapping->end == covered->end;
	return file->pid && covered->executable &&
	       (is_whole || (mapping->start | mapping->end) % large_page == 0);
}

/* Memory of a forked child is still its parent's when the child changes its protection. */
static bool is_inherited(const struct tally_tasks *tasks, const struct tally_mapping *mapping,
			 const struct tally_mapping *covered)
{
	const struct tally_mapped_file *file = &tasks->files.items[mapping->file],
				       *old = &tasks->files.items[covered->file];
	return file->pid && old->origin && old->pid == file->pid && old->path == file->path;
}

static void keep_code(const struct tally_tasks *tasks, const struct tally_process *process,
		      struct tally_mapping *mapping)
{
	const struct tally_mapping *covered;
	if (!tasks->files.items[mapping->file].pid &&
	    !is_of_large_pages(tally_tasks_path(tasks, mapping->file)))
		return;
	covered = find_covered(process, mapping, true);
	if (covered && covered->program == process->program && is_copy(tasks, mapping, covered)) {
		mapping->file = covered->file;
		mapping->file_offset = covered->file_offset + (mapping->start - covered->start);
		mapping->is_program = covered->is_program;
		return;
	}
	covered = find_covered(process, mapping, false);
	if (covered && is_inherited(tasks, mapping, covered))
		mapping->file = covered->file;
}

/* A process may have copied its code before it was recorded: then the copy lies in a gap of the
 * file's code. */
static int close_gap(struct tally_tasks *tasks, struct tally_process *process,
		     const struct tally_mapping *behind)
{
	const struct tally_mapping *copy, *before;
	copy = tally_mappings_before(&process->mappings, behind->start);
	if (!copy)
		return 0;
	before = tally_mappings_before(&process->mappings, copy->start);
	if (!before || !copy->executable || !before->executable || before->file != behind->file ||
	    before->program != behind->program || before->end != copy->start ||
	    copy->end != behind->start || !copy->is_made ||
	    before->file_offset + (behind->start - before->start) != behind->file_offset)
		return 0;
	struct tally_mapping closed = *copy;
	closed.is_made = false;
	closed.file = behind->file;
	closed.file_offset = before->file_offset + (copy->start - before->start);
	closed.is_program = before->is_program;
	return tally_mappings_put(&tasks->pool, &process->mappings, &closed);
}

/* If a recording forks processes with much code that they made, without end, children at some point
 * share their parents' files: memory must grow with the file's size, not with its square. */
static bool may_inherit(struct tally_tasks *tasks)
{
	const uint64_t free_files = 1 << 16, files_per_map = 16;
	return tasks->files_inherited++ < free_files + files_per_map * tasks->maps_seen;
}

/* Gives a forked child's copies of code that its parent made files of their own: the child may have
 * a perf map of its own for them. */
static int inherit_code(struct tally_tasks *tasks, struct tally_process *child)
{
	const struct tally_mapping *made = tally_mappings_made_behind(&child->mappings, 0);
	if (!made || !child->has_made_code)
		return 0;
	while (made && may_inherit(tasks)) {
		struct tally_mapping own = *made;
		own.file = tally_mapped_files_inherit(tasks, made->file, child->pid);
		if (own.file == TALLY_FILE_NONE ||
		    tally_mappings_put(&tasks->pool, &child->mappings, &own) < 0)
			return -ENOMEM;
		made = tally_mappings_made_behind(&child->mappings, own.end);
	}
	child->generation = ++tasks->generation;
	return 0;
}

/* ---- records of mappings ------------------------------------------------- */

/* Notes the name of the thread that started the program: the kernel maps a program first, right
 * after the COMM record of its exec.  Returns true for a program. */
static bool note_program(struct tally_tasks *tasks, uint32_t pid, uint32_t file_id)
{
	const uint64_t *slot = tally_map_get(&tasks->thread_index, (uint64_t)pid << 32 | pid);
	if (!slot)
		return false;
	struct tally_thread *thread = &tasks->threads.items[*slot];
	struct tally_mapped_file *file = &tasks->files.items[file_id];
	if (!thread->awaits_program)
		return false;
	thread->awaits_program = false;
	const char *comm = tally_strings_text(&tasks->strings, thread->comm);
	bool is_other = file->started_as[0] && strcmp(file->started_as, comm) != 0;
	file->is_started_variously |= is_other;
	snprintf(file->started_as, sizeof(file->started_as), "%s", comm);
	return !file->pid;
}

/* A program may have several pieces of code, one behind the other. */
static bool is_more_of_program(const struct tally_process *process,
			       const struct tally_mapping *mapping)
{
	const struct tally_mapping *before = tally_mappings_before(&process->mappings,
								   mapping->start);
	return before && mapping->executable && before->is_program &&
	       before->file == mapping->file && before->program == mapping->program;
}

static void note_code(struct tally_mapped_file *file, const struct tally_mapping *mapping,
		      uint64_t time_ns)
{
	uint64_t end = mapping->file_offset + (mapping->end - mapping->start);
	bool is_first = !file->code_end;
	if (is_first)
		file->since_ns = time_ns;
	if (is_first || mapping->file_offset < file->code_start)
		file->code_start = mapping->file_offset;
	if (is_first || end > file->code_end)
		file->code_end = end;
}

int tally_tasks_add_guest(struct tally_tasks *tasks, uint16_t misc)
{
	uint32_t pid = tally_space_of(misc, 0).pid;
	bool is_kernel = pid == TALLY_GUEST_KERNEL_PID;
	struct tally_mapping mapping = { .end = UINT64_MAX, .executable = true };
	struct tally_mapped_file file = {
		.path = tally_strings_intern(&tasks->strings,
					     is_kernel ? "[guest.kernel]" : "[guest]"),
	};
	struct tally_process *process = find_process(tasks, pid);
	if (process)
		return 0;
	process = need_process(tasks, pid);
	if (!process || file.path == TALLY_STRING_NONE)
		return -ENOMEM;
	mapping.file = tally_mapped_files_intern(tasks, &file);
	process->generation = ++tasks->generation;
	if (mapping.file == TALLY_FILE_NONE)
		return -ENOMEM;
	return tally_mappings_put(&tasks->pool, &process->mappings, &mapping);
}

static int apply_mmap(struct tally_tasks *tasks, const struct tally_record *record)
{
	const struct tally_record_mmap *mmap = &record->mmap;
	struct tally_mapping mapping = {
		.start = mmap->start,
		.end = mmap->start + mmap->length,
		.file_offset = mmap->file_offset,
		.executable = record->header.type == TALLY_RECORD_MMAP2 ?
				      mmap->protection & PROT_EXEC || mmap->pid == KERNEL_PID :
				      !(record->header.misc & TALLY_MISC_MMAP_DATA),
	};
	if (mapping.end < mapping.start)
		mapping.end = UINT64_MAX;
	/* perf describes guests with their own processes' numbers */
	if (mapping.end == mapping.start || tally_is_guest(record->header.misc))
		return 0;
	/* Linux before 4.8 records the offset of memory that it maps by itself as its address. */
	if (!strcmp(mmap->filename, "[vdso]"))
		mapping.file_offset = 0;
	mapping.file = tally_mapped_files_of_record(tasks, mmap);
	bool is_kernel = mmap->pid == KERNEL_PID;
	struct tally_process *process = is_kernel ? &tasks->kernel : need_process(tasks, mmap->pid);
	if (mapping.file == TALLY_FILE_NONE || !process)
		return -ENOMEM;
	tasks->maps_seen++;
	if (mapping.executable)
		note_code(&tasks->files.items[mapping.file], &mapping, record->sample_id.time);
	if (mapping.executable && !is_kernel)
		mapping.is_program = note_program(tasks, mmap->pid, mapping.file);
	process->generation = ++tasks->generation;
	process->has_hotspot |= mapping.executable &&
				is_hotspot(tally_tasks_path(tasks, mapping.file));
	mapping.program = process->program;
	mapping.is_program |= is_more_of_program(process, &mapping);
	keep_code(tasks, process, &mapping);
	mapping.is_made = mapping.executable && tasks->files.items[mapping.file].pid;
	process->has_made_code |= mapping.is_made && !is_kernel;
	if (tally_mappings_put(&tasks->pool, &process->mappings, &mapping) < 0 ||
	    (mapping.executable && !mapping.is_made && !is_kernel &&
	     close_gap(tasks, process, &mapping) < 0))
		return -ENOMEM;
	if (!mapping.executable)
		return 0;
	return tally_jits_record(tasks, mmap, mapping.file);
}

/* Applies kernel code made at run time (BPF programs, ftrace's trampolines; all functions of a
 * simulated kernel). */
static int apply_ksymbol(struct tally_tasks *tasks, const struct tally_record_ksymbol *ksymbol)
{
	struct tally_mapping mapping = { .start = ksymbol->address, .executable = true };
	if (__builtin_add_overflow(ksymbol->address, ksymbol->length, &mapping.end) ||
	    !ksymbol->length)
		return 0;
	tasks->kernel.generation = ++tasks->generation;
	if (ksymbol->flags & TALLY_KSYMBOL_UNREGISTER)
		return tally_mappings_remove(&tasks->pool, &tasks->kernel.mappings, mapping.start,
					     mapping.end);
	struct tally_mapped_file file = {
		.path = tally_strings_intern(&tasks->strings, ksymbol->name),
		.is_kernel = true,
		.is_symbol = true,
		.symbol_type = ksymbol->type,
		.symbol_size = ksymbol->length,
		.symbol_start = ksymbol->address,
	};
	if (file.path == TALLY_STRING_NONE)
		return -ENOMEM;
	mapping.file = tally_mapped_files_intern(tasks, &file);
	if (mapping.file == TALLY_FILE_NONE)
		return -ENOMEM;
	return tally_mappings_put(&tasks->pool, &tasks->kernel.mappings, &mapping);
}

static int share_mappings(struct tally_tasks *tasks, uint32_t from_pid, uint32_t to_pid,
			  uint64_t time_ns)
{
	struct tally_process *to = need_process(tasks, to_pid);
	struct tally_process *from = find_process(tasks, from_pid);
	if (!to)
		return -ENOMEM;
	if (from == to)
		return 0;
	tally_mappings_drop(&tasks->pool, &to->mappings);
	tally_jits_forget(tasks, to_pid);
	tasks->generation++;
	to->generation = 0;
	to->has_hotspot = to->has_made_code = false;
	if (!from || !from->mappings.root)
		return 0;
	*to = *from;
	to->mappings = tally_mappings_share(&from->mappings);
	to->pid = to_pid;
	int result = inherit_code(tasks, to);
	if (result)
		return result;
	return tally_jits_fork(tasks, from_pid, to_pid, time_ns);
}

/* ---- threads ------------------------------------------------------------- */

uint32_t tally_tasks_thread(struct tally_tasks *tasks, uint32_t pid, uint32_t tid)
{
	bool added;
	uint64_t *slot = tally_map_put(&tasks->thread_index, (uint64_t)pid << 32 | tid, &added);
	if (!slot)
		return UINT32_MAX;
	if (added) {
		struct tally_thread thread = { .pid = pid, .tid = tid, .comm = TALLY_STRING_NONE,
					       .namespaces = TALLY_NAMESPACES_NONE };
		*slot = tasks->threads.count;
		if (tally_vector_push(&tasks->threads, thread) < 0) {
			tally_map_remove(&tasks->thread_index, (uint64_t)pid << 32 | tid);
			return UINT32_MAX;
		}
	}
	return (uint32_t)*slot;
}

static uint32_t comm_of(const struct tally_tasks *tasks, uint32_t pid, uint32_t tid)
{
	uint64_t *slot = tally_map_get(&tasks->thread_index, (uint64_t)pid << 32 | tid);
	if (!slot)
		return TALLY_STRING_NONE;
	return tasks->threads.items[*slot].comm;
}

static int apply_comm(struct tally_tasks *tasks, const struct tally_record *record)
{
	uint32_t thread = tally_tasks_thread(tasks, record->comm.pid, record->comm.tid);
	uint32_t comm = tally_strings_intern(&tasks->strings, record->comm.comm);
	if (thread == UINT32_MAX || comm == TALLY_STRING_NONE)
		return -ENOMEM;
	/* After an exec, the old mappings stay until new ones cover them: the last samples of
	 * execve(2) return into them. */
	struct tally_process *process = find_process(tasks, record->comm.pid);
	bool is_exec = record->header.misc & TALLY_MISC_COMM_EXEC;
	if (is_exec)
		tally_jits_forget(tasks, record->comm.pid);
	if (is_exec && process) {
		process->has_hotspot = process->has_made_code = false;
		process->program++;
	}
	/* For a process that ran before the recording, the recorder writes its name and then its
	 * mappings. */
	tasks->threads.items[thread].awaits_program |= is_exec ||
						       tasks->threads.items[thread].comm ==
							       TALLY_STRING_NONE;
	tasks->threads.items[thread].comm = comm;
	tasks->comm_generation++;
	return 0;
}

static int apply_fork(struct tally_tasks *tasks, const struct tally_record *record)
{
	const struct tally_record_task *fork = &record->task;
	uint32_t comm = comm_of(tasks, fork->parent_pid, fork->parent_tid);
	if (comm == TALLY_STRING_NONE)
		comm = comm_of(tasks, fork->parent_pid, fork->parent_pid);
	if (comm == TALLY_STRING_NONE && !fork->parent_pid && !fork->parent_tid)
		comm = tally_strings_intern(&tasks->strings, "swapper");
	uint32_t thread = tally_tasks_thread(tasks, fork->pid, fork->tid);
	if (thread == UINT32_MAX)
		return -ENOMEM;
	/* FORK_EXEC (synthesized by perf): the mappings that follow are the task's own; it inherits
	 * none. */
	if (comm != TALLY_STRING_NONE)
		tasks->threads.items[thread].comm = comm;
	tasks->comm_generation++;
	if (fork->pid == fork->parent_pid || record->header.misc & TALLY_MISC_FORK_EXEC)
		return 0;
	return share_mappings(tasks, fork->parent_pid, fork->pid, fork->time);
}

static int apply_cgroup(struct tally_tasks *tasks, const struct tally_record_cgroup *cgroup)
{
	uint32_t path = tally_strings_intern(&tasks->strings, cgroup->path);
	if (path == TALLY_STRING_NONE)
		return -ENOMEM;
	uint64_t *slot = tally_map_put(&tasks->cgroups, cgroup->id, NULL);
	if (!slot)
		return -ENOMEM;
	*slot = path;
	return 0;
}

uint32_t tally_tasks_cgroup(const struct tally_tasks *tasks, uint64_t number)
{
	const uint64_t *path = tally_map_get(&tasks->cgroups, number);
	if (!path)
		return TALLY_STRING_NONE;
	return (uint32_t)*path;
}

static int apply_namespaces(struct tally_tasks *tasks, const struct tally_record_namespaces *record)
{
	uint32_t thread = tally_tasks_thread(tasks, record->pid, record->tid);
	if (thread == UINT32_MAX)
		return -ENOMEM;
	uint32_t set = namespaces_intern(&tasks->namespaces, record);
	if (set == TALLY_NAMESPACES_NONE)
		return -ENOMEM;
	tasks->threads.items[thread].namespaces = set;
	return 0;
}

struct tally_namespace tally_tasks_namespace(const struct tally_tasks *tasks, uint32_t pid,
					     uint32_t tid, enum tally_namespace_kind kind)
{
	const uint64_t *slot = tally_map_get(&tasks->thread_index, (uint64_t)pid << 32 | tid);
	uint32_t set = TALLY_NAMESPACES_NONE;
	if (slot)
		set = tasks->threads.items[*slot].namespaces;
	if (set == TALLY_NAMESPACES_NONE)
		return (struct tally_namespace){ 0 };
	return tasks->namespaces.sets.items[set].of[kind];
}

void tally_tasks_forget_thread(struct tally_tasks *tasks, uint32_t pid, uint32_t tid)
{
	uint64_t key = (uint64_t)pid << 32 | tid, *slot = tally_map_get(&tasks->thread_index, key);
	if (!slot)
		return;
	size_t index = *slot;
	tally_map_remove(&tasks->thread_index, key);
	struct tally_thread last = tasks->threads.items[--tasks->threads.count];
	if (index == tasks->threads.count)
		return;
	tasks->threads.items[index] = last;
	*tally_map_get(&tasks->thread_index, (uint64_t)last.pid << 32 | last.tid) = index;
}

void tally_tasks_forget_process(struct tally_tasks *tasks, uint32_t pid)
{
	uint64_t *slot = tally_map_get(&tasks->process_index, pid);
	if (!slot || tally_jits_has(tasks, pid))
		return;
	size_t index = *slot;
	tally_jits_forget(tasks, pid);
	tally_map_remove(&tasks->process_index, pid);
	tally_mappings_drop(&tasks->pool, &tasks->processes.items[index].mappings);
	struct tally_process last = tasks->processes.items[--tasks->processes.count];
	if (index == tasks->processes.count)
		return;
	tasks->processes.items[index] = last;
	*tally_map_get(&tasks->process_index, last.pid) = index;
}

int tally_tasks_record(struct tally_tasks *tasks, const struct tally_record *record)
{
	switch (record->header.type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2:
		return apply_mmap(tasks, record);
	case TALLY_RECORD_KSYMBOL:
		return apply_ksymbol(tasks, &record->ksymbol);
	case TALLY_RECORD_COMM:
		return apply_comm(tasks, record);
	case TALLY_RECORD_CGROUP:
		return apply_cgroup(tasks, &record->cgroup);
	case TALLY_RECORD_NAMESPACES:
		return apply_namespaces(tasks, &record->namespaces);
	case TALLY_RECORD_FORK:
		return apply_fork(tasks, record);
	default:
		return 0;
	}
}

const struct tally_mapping *tally_tasks_find(const struct tally_tasks *tasks, uint32_t pid,
					     bool kernel, uint64_t address)
{
	const struct tally_process *process = kernel ? &tasks->kernel : find_process(tasks, pid);
	if (!process)
		return NULL;
	return mapping_at(process, address);
}

uint64_t tally_tasks_generation(const struct tally_tasks *tasks, uint32_t pid)
{
	const struct tally_process *process = find_process(tasks, pid);
	if (!process)
		return 0;
	return process->generation;
}

bool tally_tasks_has_hotspot(const struct tally_tasks *tasks, uint32_t pid)
{
	const struct tally_process *process = find_process(tasks, pid);
	return process && process->has_hotspot;
}

bool tally_tasks_has_made_code(const struct tally_tasks *tasks, uint32_t pid)
{
	const struct tally_process *process = find_process(tasks, pid);
	return process && process->has_made_code;
}

void tally_tasks_remapped(struct tally_tasks *tasks, uint32_t pid)
{
	struct tally_process *process = find_process(tasks, pid);
	if (process)
		process->generation = ++tasks->generation;
}

int tally_tasks_use_jits(struct tally_tasks *tasks)
{
	if (!tasks->jits)
		tasks->jits = calloc(1, sizeof(*tasks->jits));
	if (!tasks->jits)
		return -ENOMEM;
	return 0;
}

const char *tally_tasks_comm(const struct tally_tasks *tasks, uint32_t pid, uint32_t tid,
			     char buffer[16])
{
	/* A task past its exit has no ids any more, so the name last recorded for -1 is not its
	 * own. */
	bool ended = tid == UINT32_MAX;
	uint32_t comm = TALLY_STRING_NONE;
	if (!ended)
		comm = comm_of(tasks, pid, tid);
	if (comm == TALLY_STRING_NONE && !ended)
		comm = comm_of(tasks, pid, pid);
	if (comm != TALLY_STRING_NONE)
		return tally_strings_text(&tasks->strings, comm);
	if (!pid && !tid)
		return "swapper";
	snprintf(buffer, 16, ":%d", (int)tid);
	return buffer;
}

bool tally_tasks_is_idle(const struct tally_tasks *tasks, uint32_t pid, uint32_t tid)
{
	char buffer[16];
	return !pid && !tid && !strcmp(tally_tasks_comm(tasks, pid, tid, buffer), "swapper");
}

void tally_tasks_release(struct tally_tasks *tasks)
{
	for (size_t i = 0; i < tasks->processes.count; i++)
		tally_mappings_drop(&tasks->pool, &tasks->processes.items[i].mappings);
	tally_mappings_drop(&tasks->pool, &tasks->kernel.mappings);
	tally_mapping_pool_release(&tasks->pool);
	tally_jits_free(tasks->jits);
	tally_vector_release(&tasks->processes);
	tally_vector_release(&tasks->threads);
	tally_vector_release(&tasks->files);
	tally_vector_release(&tasks->build_ids);
	tally_map_release(&tasks->cgroups);
	namespaces_release(&tasks->namespaces);
	tally_map_release(&tasks->build_id_index);
	tally_map_release(&tasks->file_index);
	tally_map_release(&tasks->process_index);
	tally_map_release(&tasks->thread_index);
	tally_strings_release(&tasks->strings);
	*tasks = (struct tally_tasks){ 0 };
}
