/* Writes records of the state before the first event, as the kernel would have written them: the
 * kernel's address, and for each recorded task its name, its parent and its executable mappings,
 * from /proc.
 *
 * The side-band events are open already when this runs, so a change meanwhile is recorded twice
 * rather than missed.  All times are 0: before everything else.
 */
#include "recorder/recorder_synthesis.h"

#include "base/buffer.h"
#include "base/vector.h"
#include "machine/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KERNEL_NAME "[kernel.kallsyms]"

/* ---- the kernel ---------------------------------------------------------- */

/* Returns the address of the kernel's first symbol, which is near the start of /proc/kallsyms; 0
 * when it is hidden (kptr_restrict).  The symbol is _text, or _stext without it (arm64). */
static uint64_t kernel_start(const char **symbol)
{
	char text[16384];
	uint64_t second = 0;
	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (got <= 0)
		return 0;
	text[got] = '\0';
	for (char *line = text; line; line = strchr(line, '\n')) {
		char name[64];
		unsigned long long address;
		line += *line == '\n';
		if (sscanf(line, "%llx %*c %63s", &address, name) != 2)
			continue;
		*symbol = "_text";
		if (!strcmp(name, *symbol))
			return address;
		if (!strcmp(name, "_stext"))
			second = address;
	}
	*symbol = "_stext";
	return second;
}

/* Returns the kernel's end.  Its modules and the code that it makes come behind it, on some
 * machines directly. */
static uint64_t kernel_end(const struct tally_recorder *recorder,
			   const struct tally_bpf_codes *codes, uint64_t start)
{
	const uint64_t image_bytes_max = 1ull << 30;
#if defined(__x86_64__)
	/* KERNEL_IMAGE_SIZE: the space behind it is for modules. */
	uint64_t end = (start | (image_bytes_max - 1)) + 1;
#else
	uint64_t end = start + image_bytes_max;
#endif
	uint64_t module = tally_recorder_module_above(recorder, start);
	if (module < end)
		end = module;
	for (size_t i = 0; i < codes->count; i++)
		if (codes->items[i].start > start && codes->items[i].start < end)
			end = codes->items[i].start;
	return end;
}

/* Writes the mapping as perf does: the file offset is the address of the symbol in the name. */
static int write_kernel(struct tally_synthesis *synthesis, const char *symbol, uint64_t start,
			uint64_t end)
{
	char name[32];
	tally_synthesis_begin(synthesis);
	tally_synthesis_u32(synthesis, UINT32_MAX);
	tally_synthesis_u32(synthesis, 0);
	tally_synthesis_u64(synthesis, start);
	tally_synthesis_u64(synthesis, end - start);
	tally_synthesis_u64(synthesis, start);
	snprintf(name, sizeof(name), KERNEL_NAME "%s", symbol);
	tally_synthesis_string(synthesis, name);
	return tally_synthesis_finish(synthesis, TALLY_RECORD_MMAP, TALLY_MISC_KERNEL, -1, 0);
}

/* If the kernel's address is hidden, nothing else in the kernel is described either. */
static int synthesize_kernel(struct tally_synthesis *synthesis)
{
	struct tally_bpf_codes codes = { 0 };
	const char *symbol;
	uint64_t start = kernel_start(&symbol);
	if (!start)
		return 0;
	synthesis->recorder->modules.pass_ns = tally_recorder_now_ns();
	int result = tally_recorder_read_modules(synthesis->recorder, synthesis->err);
	if (!result)
		result = tally_recorder_read_bpf(synthesis->recorder, &codes, synthesis->err);
	if (!result)
		result = write_kernel(synthesis, symbol, start,
				      kernel_end(synthesis->recorder, &codes, start));
	if (!result)
		result = tally_synthesize_modules(synthesis);
	if (!result)
		result = tally_synthesize_bpf(synthesis, &codes);
	tally_vector_release(&codes);
	return result;
}

/* ---- tasks --------------------------------------------------------------- */

static int synthesize_comm(struct tally_synthesis *synthesis, pid_t pid, pid_t tid)
{
	char comm[TALLY_PROC_COMM_MAX];
	if (tally_proc_comm(tid, comm, sizeof(comm)) < 0)
		return 0;
	comm[15] = '\0';
	tally_synthesis_begin(synthesis);
	tally_synthesis_u32(synthesis, (uint32_t)pid);
	tally_synthesis_u32(synthesis, (uint32_t)tid);
	tally_synthesis_string(synthesis, comm);
	return tally_synthesis_finish(synthesis, TALLY_RECORD_COMM, 0, pid, tid);
}

static int synthesize_fork(struct tally_synthesis *synthesis, pid_t pid, pid_t parent, pid_t tid)
{
	tally_synthesis_begin(synthesis);
	tally_synthesis_u32(synthesis, (uint32_t)pid);
	tally_synthesis_u32(synthesis, (uint32_t)parent);
	tally_synthesis_u32(synthesis, (uint32_t)tid);
	tally_synthesis_u32(synthesis, (uint32_t)parent);
	tally_synthesis_u64(synthesis, 0);
	/* FORK_EXEC: only the mappings that follow are the task's; it inherits none. */
	return tally_synthesis_finish(synthesis, TALLY_RECORD_FORK,
				      pid == parent ? 0 : TALLY_MISC_FORK_EXEC, pid, tid);
}

static int synthesize_map(void *context, const struct tally_proc_map *map)
{
	struct tally_synthesis *synthesis = context;
	pid_t pid = synthesis->pid;
	bool is_code = map->protection & PROT_EXEC;
	bool with_data = tally_recorder_side_band(synthesis->recorder)->attr.flags &
			 TALLY_ATTR_MMAP_DATA;
	if (!is_code && (!with_data || !map->path[0]))
		return 0;
	tally_synthesis_begin(synthesis);
	tally_synthesis_u32(synthesis, (uint32_t)pid);
	tally_synthesis_u32(synthesis, (uint32_t)pid);
	tally_synthesis_u64(synthesis, map->start);
	tally_synthesis_u64(synthesis, map->end - map->start);
	tally_synthesis_u64(synthesis, map->offset);
	tally_synthesis_u32(synthesis, map->major);
	tally_synthesis_u32(synthesis, map->minor);
	tally_synthesis_u64(synthesis, map->inode);
	tally_synthesis_u64(synthesis, 0);
	tally_synthesis_u32(synthesis, (uint32_t)map->protection);
	tally_synthesis_u32(synthesis, map->shared ? MAP_SHARED : MAP_PRIVATE);
	tally_synthesis_string(synthesis, map->path[0] ? map->path : "//anon");
	return tally_synthesis_finish(synthesis, TALLY_RECORD_MMAP2,
				      TALLY_MISC_USER | (is_code ? 0 : TALLY_MISC_MMAP_DATA), pid,
				      pid);
}

static int synthesize_process(struct tally_synthesis *synthesis, pid_t pid)
{
	struct tally_proc_status status;
	struct tally_pid_list threads = { 0 };
	if (tally_proc_status(pid, &status) < 0 || tally_proc_threads(pid, &threads) < 0)
		return 0; /* it ended meanwhile */
	synthesis->pid = pid;
	int result = synthesize_fork(synthesis, pid, status.parent, pid);
	if (!result)
		result = tally_synthesize_namespaces(synthesis, pid, pid);
	if (!result)
		result = synthesize_comm(synthesis, pid, pid);
	for (size_t i = 0; !result && i < threads.count; i++) {
		if (threads.items[i] == pid)
			continue;
		result = synthesize_fork(synthesis, pid, pid, threads.items[i]);
		if (!result)
			result = tally_synthesize_namespaces(synthesis, pid, threads.items[i]);
		if (!result)
			result = synthesize_comm(synthesis, pid, threads.items[i]);
	}
	tally_pid_list_release(&threads);
	if (result)
		return result;
	result = tally_proc_maps(pid, synthesize_map, synthesis);
	return result == -ESRCH || result == -EACCES || result == -ENOENT || result == -EPERM
		       ? 0
		       : result;
}

static int synthesize_all(struct tally_synthesis *synthesis)
{
	struct tally_pid_list pids = { 0 };
	int result = tally_proc_pids(&pids);
	if (result < 0)
		return tally_error_set(synthesis->err, result, "listing /proc failed: %s",
				       tally_errno_text(result));
	for (size_t i = 0; !(result < 0) && i < pids.count; i++)
		result = synthesize_process(synthesis, pids.items[i]);
	tally_pid_list_release(&pids);
	return result;
}

/* Describes the processes of the target's threads, each once. */
static int synthesize_tids(struct tally_synthesis *synthesis)
{
	const struct tally_pid_list *tids = &synthesis->recorder->target->tids;
	struct tally_map seen = { 0 };
	int result = 0;
	for (size_t i = 0; !result && i < tids->count; i++) {
		struct tally_proc_status status;
		bool added = false;
		if (tally_proc_status(tids->items[i], &status) < 0)
			continue;
		if (!tally_map_put(&seen, (uint64_t)status.tgid, &added))
			result = tally_error_set(synthesis->err, -ENOMEM, "out of memory");
		else if (added)
			result = synthesize_process(synthesis, status.tgid);
	}
	tally_map_release(&seen);
	return result;
}

static int synthesize_command(struct tally_synthesis *synthesis, pid_t pid)
{
	int result = synthesize_comm(synthesis, pid, pid);
	return result ? result : tally_synthesize_namespaces(synthesis, pid, pid);
}

int tally_recorder_synthesize(struct tally_recorder *recorder, struct tally_error *err)
{
	struct tally_synthesis synthesis = { .recorder = recorder, .err = err };
	bool has_kernel = !recorder->provider->ops->command;
	int result = has_kernel ? synthesize_kernel(&synthesis) : 0;
	if (!result)
		result = tally_synthesize_cgroups(&synthesis);
	if (!result && recorder->target->all)
		result = synthesize_all(&synthesis);
	else if (!result && recorder->target->tids.count)
		result = synthesize_tids(&synthesis);
	else if (!result && recorder->spawn)
		result = synthesize_command(&synthesis, recorder->spawn->pid);
	const struct tally_record_header done = { .type = TALLY_RECORD_FINISHED_ROUND,
						  .size = sizeof(done) };
	return result ? result : tally_recorder_put(recorder, &done, sizeof(done), err);
}

/* ---- the tasks known so far ---------------------------------------------- */

/* True for all pieces of the kernel except the first, when other code cuts its mapping: perf would
 * take each piece for the whole kernel. */
static bool is_rest_of_kernel(const struct tally_tasks *tasks, size_t at)
{
	const struct tally_mapping *mappings = tasks->kernel.mappings;
	if (strncmp(tally_tasks_path(tasks, mappings[at].file), KERNEL_NAME, strlen(KERNEL_NAME)) !=
	    0)
		return false;
	for (size_t i = 0; i < at; i++)
		if (mappings[i].file == mappings[at].file)
			return true;
	return false;
}

static int write_kernel_mapping(struct tally_synthesis *synthesis,
				const struct tally_mapping *mapping)
{
	const struct tally_tasks *tasks = &synthesis->recorder->tasks;
	const struct tally_mapped_file *file = &tasks->files.items[mapping->file];
	const char *path = tally_tasks_path(tasks, mapping->file);
	if (file->is_symbol)
		return tally_synthesize_symbol(synthesis, mapping->start,
					       (uint32_t)(mapping->end - mapping->start),
					       file->symbol_type, path);
	tally_synthesis_begin(synthesis);
	tally_synthesis_u32(synthesis, UINT32_MAX);
	tally_synthesis_u32(synthesis, 0);
	tally_synthesis_u64(synthesis, mapping->start);
	tally_synthesis_u64(synthesis, mapping->end - mapping->start);
	tally_synthesis_u64(synthesis, mapping->file_offset);
	tally_synthesis_string(synthesis, path);
	return tally_synthesis_finish(synthesis, TALLY_RECORD_MMAP, TALLY_MISC_KERNEL, -1, 0);
}

static int write_mapping(struct tally_synthesis *synthesis, pid_t pid,
			 const struct tally_mapping *mapping)
{
	const struct tally_tasks *tasks = &synthesis->recorder->tasks;
	const struct tally_mapped_file *file = &tasks->files.items[mapping->file];
	tally_synthesis_begin(synthesis);
	tally_synthesis_u32(synthesis, (uint32_t)pid);
	tally_synthesis_u32(synthesis, (uint32_t)pid);
	tally_synthesis_u64(synthesis, mapping->start);
	tally_synthesis_u64(synthesis, mapping->end - mapping->start);
	tally_synthesis_u64(synthesis, mapping->file_offset);
	tally_synthesis_u32(synthesis, file->major);
	tally_synthesis_u32(synthesis, file->minor);
	tally_synthesis_u64(synthesis, file->inode);
	tally_synthesis_u64(synthesis, file->inode_generation);
	tally_synthesis_u32(synthesis, mapping->executable ? PROT_READ | PROT_EXEC : PROT_READ);
	tally_synthesis_u32(synthesis, MAP_PRIVATE);
	tally_synthesis_string(synthesis, tally_tasks_path(tasks, mapping->file));
	return tally_synthesis_finish(
		synthesis, TALLY_RECORD_MMAP2,
		TALLY_MISC_USER | (mapping->executable ? 0 : TALLY_MISC_MMAP_DATA), pid, pid);
}

static int write_thread(struct tally_synthesis *synthesis, const struct tally_thread *thread)
{
	if (thread->comm == TALLY_STRING_NONE)
		return 0;
	tally_synthesis_begin(synthesis);
	tally_synthesis_u32(synthesis, thread->pid);
	tally_synthesis_u32(synthesis, thread->tid);
	tally_synthesis_string(
		synthesis, tally_strings_text(&synthesis->recorder->tasks.strings, thread->comm));
	int result = tally_synthesis_finish(synthesis, TALLY_RECORD_COMM, 0, (pid_t)thread->pid,
					    (pid_t)thread->tid);
	return result ? result : tally_synthesize_known_namespaces(synthesis, thread);
}

int tally_recorder_write_tasks(struct tally_recorder *recorder, struct tally_error *err)
{
	struct tally_synthesis synthesis = { .recorder = recorder, .err = err, .is_known = true };
	const struct tally_tasks *tasks = &recorder->tasks;
	const struct tally_record_header done = { .type = TALLY_RECORD_FINISHED_ROUND,
						  .size = sizeof(done) };
	int result = 0;
	for (size_t i = 0; !result && i < tasks->kernel.count; i++)
		if (!is_rest_of_kernel(tasks, i))
			result = write_kernel_mapping(&synthesis, &tasks->kernel.mappings[i]);
	if (!result)
		result = tally_synthesize_known_cgroups(&synthesis);
	for (size_t i = 0; !result && i < tasks->threads.count; i++)
		result = write_thread(&synthesis, &tasks->threads.items[i]);
	for (size_t i = 0; !result && i < tasks->processes.count; i++)
		for (size_t m = 0; !result && m < tasks->processes.items[i].count; m++)
			result = write_mapping(&synthesis, (pid_t)tasks->processes.items[i].pid,
					       &tasks->processes.items[i].mappings[m]);
	return result ? result : tally_recorder_put(recorder, &done, sizeof(done), err);
}
