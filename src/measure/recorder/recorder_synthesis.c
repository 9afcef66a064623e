/* Writes records of the state before the first event, as the kernel would have written them: the
 * kernel's address, and for each recorded task its name, its parent and its executable mappings,
 * from /proc.
 *
 * The side-band events are open already when this runs, so a change meanwhile is recorded twice
 * rather than missed.  All times are 0: before everything else.
 */
#include "recorder/recorder_image.h"
#include "recorder/recorder_state.h"

#include "base/binary_search.h"
#include "base/buffer.h"
#include "base/vector.h"
#include "machine/machine.h"
#include "object/object.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* A record that is built field by field, and where it goes. */
struct synthesis {
	struct tally_recorder_tasks *tasks;
	struct tally_recorder_output *output;
	const struct tally_attr *side_band;
	struct tally_error *err;
	pid_t pid;
	struct tally_recorder_image image;
	uint64_t time_ns; /* 0: before everything else */
	bool is_known; /* the recorder's own tasks have it already */
	_Alignas(8) uint8_t bytes[8192];
	size_t size;
};

static struct synthesis synthesis_of(struct tally_recorder_tasks *tasks,
				     struct tally_recorder_output *output, struct tally_error *err)
{
	return (struct synthesis){ .tasks = tasks,
				   .output = output,
				   .side_band = &tally_recorder_side_band(output->events)->attr,
				   .err = err };
}

/* ---- one record ---------------------------------------------------------- */

enum { FILENAME_MAX_BYTES = 4096 };

static void begin(struct synthesis *synthesis)
{
	synthesis->size = sizeof(struct tally_record_header);
}

static void put(struct synthesis *synthesis, const void *bytes, size_t size)
{
	memcpy(synthesis->bytes + synthesis->size, bytes, size);
	synthesis->size += size;
}

static void put_u32(struct synthesis *synthesis, uint32_t value)
{
	put(synthesis, &value, sizeof(value));
}

static void put_u64(struct synthesis *synthesis, uint64_t value)
{
	put(synthesis, &value, sizeof(value));
}

/* Adds a string, padded with zeros to whole words.  A string longer than a path is cut. */
static void put_string(struct synthesis *synthesis, const char *text)
{
	size_t length = strlen(text);
	if (length >= FILENAME_MAX_BYTES)
		length = FILENAME_MAX_BYTES - 1;
	size_t padded = (length + 8) & ~(size_t)7;
	memset(synthesis->bytes + synthesis->size, 0, padded);
	memcpy(synthesis->bytes + synthesis->size, text, length);
	synthesis->size += padded;
}

/* Adds trailer and header; the record goes to the file and to the recorder's tasks.  Returns 0 or
 * -errno. */
static int finish(struct synthesis *synthesis, uint32_t type, uint16_t misc,
			   pid_t pid, pid_t tid)
{
	const struct tally_attr *attr = synthesis->side_band;
	struct tally_sample_id id = { .pid = (uint32_t)pid,
				      .tid = (uint32_t)tid,
				      .time = synthesis->time_ns };
	struct tally_record record;
	tally_sample_id_encode(attr, &id, synthesis->bytes + synthesis->size);
	synthesis->size += tally_sample_id_size(attr);
	struct tally_record_header header = { type, misc, (uint16_t)synthesis->size };
	memcpy(synthesis->bytes, &header, sizeof(header));
	if (!synthesis->is_known &&
	    !tally_record_decode(attr, synthesis->bytes, synthesis->size, &record)) {
		int taken = tally_recorder_apply_task_record(synthesis->tasks, &record,
							     synthesis->err);
		if (taken < 0)
			return taken;
	}
	if (synthesis->output->session->options.overwrite && !synthesis->is_known)
		return 0; /* a dump writes it */
	return tally_recorder_put(synthesis->output, synthesis->bytes, synthesis->size,
				  synthesis->err);
}

/* ---- namespaces and control groups --------------------------------------- */

static bool is_wanted(const struct synthesis *synthesis, uint64_t side_band)
{
	return synthesis->side_band->flags & side_band;
}

static int write_namespaces(struct synthesis *synthesis, pid_t pid, pid_t tid,
			    const struct tally_namespace_set *set)
{
	begin(synthesis);
	put_u32(synthesis, (uint32_t)pid);
	put_u32(synthesis, (uint32_t)tid);
	put_u64(synthesis, TALLY_NAMESPACE_KINDS);
	for (int kind = 0; kind < TALLY_NAMESPACE_KINDS; kind++) {
		put_u64(synthesis, set->of[kind].device);
		put_u64(synthesis, set->of[kind].inode);
	}
	return finish(synthesis, TALLY_RECORD_NAMESPACES, 0, pid, tid);
}

static int write_cgroup(struct synthesis *synthesis, uint64_t id, const char *path)
{
	begin(synthesis);
	put_u64(synthesis, id);
	put_string(synthesis, path);
	return finish(synthesis, TALLY_RECORD_CGROUP, 0, 0, 0);
}

/* Writes a thread's namespaces as /proc shows them, if they are recorded.  Unreadable ones are 0,
 * as in perf's records. */
static int synthesize_namespaces(struct synthesis *synthesis, pid_t pid, pid_t tid)
{
	static const char *const names[TALLY_NAMESPACE_KINDS] = { "net",  "uts", "ipc",   "pid",
								  "user", "mnt", "cgroup" };
	struct tally_namespace_set set = { 0 };
	if (!is_wanted(synthesis, TALLY_ATTR_NAMESPACES))
		return 0;
	for (int kind = 0; kind < TALLY_NAMESPACE_KINDS; kind++) {
		char path[64];
		struct stat file;
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)tid, names[kind]);
		if (!stat(path, &file))
			set.of[kind] = (struct tally_namespace){ file.st_dev, file.st_ino };
	}
	return write_namespaces(synthesis, pid, tid, &set);
}

static int write_known_namespaces(struct synthesis *synthesis,
				      const struct tally_thread *thread)
{
	const struct tally_namespaces *known = &synthesis->tasks->known.namespaces;
	if (thread->namespaces == TALLY_NAMESPACES_NONE)
		return 0;
	return write_namespaces(synthesis, (pid_t)thread->pid, (pid_t)thread->tid,
				&known->sets.items[thread->namespaces]);
}

static int visit_cgroup(void *context, uint64_t id, const char *path)
{
	return write_cgroup(context, id, path);
}

/* When no hierarchy is mounted or readable, the recording lacks the cgroups' names. */
static int synthesize_cgroups(struct synthesis *synthesis)
{
	if (!is_wanted(synthesis, TALLY_ATTR_CGROUP))
		return 0;
	int result = tally_cgroup_list(visit_cgroup, synthesis);
	if (result == -ENOENT || result == -EACCES)
		return 0;
	return result;
}

static int write_known_cgroups(struct synthesis *synthesis)
{
	const struct tally_tasks *tasks = &synthesis->tasks->known;
	int result = 0;
	for (size_t i = 0; !result && i < tasks->cgroups.capacity; i++) {
		const struct tally_map_slot *slot = &tasks->cgroups.slots[i];
		if (slot->used)
			result = write_cgroup(
				synthesis, slot->key,
				tally_strings_text(&tasks->strings, (uint32_t)slot->value));
	}
	return result;
}

/* ---- code that the kernel made ------------------------------------------- */

enum { PROGRAM_LOADED = 1 };

/* Writes a record for code that the kernel made; `type` as in the kernel's records. */
static int synthesize_symbol(struct synthesis *synthesis, uint64_t start, uint32_t size,
			    uint16_t type, const char *name)
{
	begin(synthesis);
	put_u64(synthesis, start);
	put_u32(synthesis, size);
	put_u32(synthesis, type); /* flags are 0: it is loaded */
	put_string(synthesis, name);
	return finish(synthesis, TALLY_RECORD_KSYMBOL, 0, 0, 0);
}

static int write_program(struct synthesis *synthesis, const struct tally_bpf_code *code)
{
	uint64_t tag;
	memcpy(&tag, code->tag, sizeof(tag));
	begin(synthesis);
	put_u32(synthesis, PROGRAM_LOADED);
	put_u32(synthesis, code->program);
	put_u64(synthesis, tag);
	return finish(synthesis, TALLY_RECORD_BPF_EVENT, 0, 0, 0);
}

/* Reads the code of BPF programs, if it is recorded and this user may read it. */
static int read_bpf(const struct synthesis *synthesis, struct tally_bpf_codes *out)
{
	const uint64_t both = TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT;
	bool is_wanted = (synthesis->side_band->flags & both) == both;
	int result = is_wanted ? tally_bpf_codes_read(out) : 0;
	/* without the permission to know, there are none */
	return result == -ENOMEM ? tally_error_set(synthesis->err, result, "out of memory") : 0;
}

static int synthesize_bpf(struct synthesis *synthesis, const struct tally_bpf_codes *codes)
{
	int result = 0;
	for (size_t i = 0; !result && i < codes->count; i++) {
		const struct tally_bpf_code *code = &codes->items[i];
		bool is_last = i + 1 == codes->count ||
			       codes->items[i + 1].program != code->program;
		result = synthesize_symbol(synthesis, code->start, code->size,
						 TALLY_KSYMBOL_BPF, code->name);
		if (!result && is_last && code->program)
			result = write_program(synthesis, code);
	}
	return result;
}

/* ---- kernel modules ------------------------------------------------------ */

/* Kernel modules.  No record of the kernel's reports them: neither those loaded before the
 * recording nor those loaded later.
 *
 * /proc/modules is read at the start, again whenever the number of folders in /sys/module changes
 * (which each pass checks cheaply), and once a second, since one module may have replaced another.
 * A new module's record has the time of the previous pass: it was loaded after that, and readers
 * accept no earlier time in a record that comes so late.  Like files, an unloaded module stays
 * known: earlier samples may still be in the rings.
 */

static const uint64_t LOOK_NS = 1000000000;
enum { TEXT_BYTES_MAX = 16 << 20 };

static bool is_same(const struct tally_loaded_module *a, const struct tally_loaded_module *b)
{
	return a->start == b->start && a->end == b->end && !strcmp(a->name, b->name);
}

static bool is_known(const struct tally_loaded_modules *known,
		     const struct tally_loaded_module *module)
{
	size_t at = tally_search(i, 0, known->count, known->items[i].start >= module->start);
	return at < known->count && is_same(&known->items[at], module);
}

/* Counts the folders in /sys/module.  It is held open: the way there costs more than the rest of a
 * pass without samples. */
static uint64_t count_folders(struct tally_recorder_modules *modules)
{
	struct stat status;
	if (!modules->fd)
		modules->fd = open("/sys/module", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return modules->fd < 0 || fstat(modules->fd, &status) ? 0 : (uint64_t)status.st_nlink;
}

static int write_module(struct synthesis *synthesis, const struct tally_loaded_module *module,
			const char *path)
{
	struct tally_build_id id;
	if (tally_module_loaded_build_id(module->name, &id) &&
	    tally_tasks_build_id(&synthesis->tasks->known, path, &id) < 0)
		return tally_error_set(synthesis->err, -ENOMEM, "out of memory");
	begin(synthesis);
	put_u32(synthesis, UINT32_MAX);
	put_u32(synthesis, 0);
	put_u64(synthesis, module->start);
	put_u64(synthesis, module->end - module->start);
	put_u64(synthesis, 0);
	put_string(synthesis, path);
	return finish(synthesis, TALLY_RECORD_MMAP, TALLY_MISC_KERNEL, -1, 0);
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
	if (tally_buffer_read_file(text, AT_FDCWD, path, TALLY_MODULE_DEPENDENCIES_BYTES_MAX))
		return "";
	return tally_buffer_string(text);
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
static int write_modules(struct synthesis *synthesis,
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

/* Reads which modules are loaded now. */
static int read_modules(const struct synthesis *synthesis)
{
	struct tally_recorder_modules *modules = &synthesis->tasks->modules;
	struct tally_buffer text = { 0 };
	modules->now.count = 0;
	if (!tally_recorder_samples_kernel(synthesis->output->events))
		return 0;
	modules->folders = count_folders(modules);
	int result = tally_buffer_read_file(&text, AT_FDCWD, "/proc/modules", TEXT_BYTES_MAX);
	if (!result)
		result = tally_loaded_modules_parse(tally_buffer_string(&text), &modules->now);
	tally_buffer_release(&text);
	/* other failures mean that there are no modules, or that this user may not read them */
	return result == -ENOMEM ? tally_error_set(synthesis->err, result, "out of memory") : 0;
}

/* Returns the lowest start of a module above an address, or UINT64_MAX. */
static uint64_t module_above(const struct tally_loaded_modules *now, uint64_t address)
{
	for (size_t i = 0; i < now->count; i++)
		if (now->items[i].start > address)
			return now->items[i].start;
	return UINT64_MAX;
}

/* Writes records for the modules that were read and have none yet. */
static int synthesize_modules(struct synthesis *synthesis)
{
	struct tally_recorder_modules *modules = &synthesis->tasks->modules;
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

int tally_recorder_look_at_modules(struct tally_recorder_tasks *tasks,
				   struct tally_recorder_output *output, uint64_t now_ns,
				   struct tally_error *err)
{
	struct tally_recorder_modules *modules = &tasks->modules;
	uint64_t last_pass_ns = modules->pass_ns;
	modules->pass_ns = now_ns;
	if (!tasks->objects.is_live || !tally_recorder_samples_kernel(output->events) ||
	    (now_ns < modules->look_at && count_folders(modules) == modules->folders))
		return 0;
	modules->look_at = now_ns + LOOK_NS;
	struct synthesis synthesis = synthesis_of(tasks, output, err);
	synthesis.time_ns = last_pass_ns;
	int result = read_modules(&synthesis);
	return result < 0 ? result : synthesize_modules(&synthesis);
}

/* ---- the kernel ---------------------------------------------------------- */

#define KERNEL_NAME "[kernel.kallsyms]"

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
static uint64_t kernel_end(const struct tally_loaded_modules *modules,
			   const struct tally_bpf_codes *codes, uint64_t start)
{
	const uint64_t image_bytes_max = 1ull << 30;
#if defined(__x86_64__)
	/* KERNEL_IMAGE_SIZE: the space behind it is for modules. */
	uint64_t end = (start | (image_bytes_max - 1)) + 1;
#else
	uint64_t end = start + image_bytes_max;
#endif
	uint64_t module = module_above(modules, start);
	if (module < end)
		end = module;
	for (size_t i = 0; i < codes->count; i++)
		if (codes->items[i].start > start && codes->items[i].start < end)
			end = codes->items[i].start;
	return end;
}

/* Writes the mapping as perf does: the file offset is the address of the symbol in the name. */
static int write_kernel(struct synthesis *synthesis, const char *symbol, uint64_t start,
			uint64_t end)
{
	char name[32];
	begin(synthesis);
	put_u32(synthesis, UINT32_MAX);
	put_u32(synthesis, 0);
	put_u64(synthesis, start);
	put_u64(synthesis, end - start);
	put_u64(synthesis, start);
	snprintf(name, sizeof(name), KERNEL_NAME "%s", symbol);
	put_string(synthesis, name);
	return finish(synthesis, TALLY_RECORD_MMAP, TALLY_MISC_KERNEL, -1, 0);
}

/* If the kernel's address is hidden, nothing else in the kernel is described either. */
static int synthesize_kernel(struct synthesis *synthesis)
{
	struct tally_bpf_codes codes = { 0 };
	const char *symbol;
	uint64_t start = kernel_start(&symbol);
	if (!start)
		return 0;
	synthesis->tasks->modules.pass_ns = tally_recorder_now_ns();
	int result = read_modules(synthesis);
	if (result)
		return result;
	result = read_bpf(synthesis, &codes);
	if (result)
		goto out;
	result = write_kernel(synthesis, symbol, start,
			      kernel_end(&synthesis->tasks->modules.now, &codes, start));
	if (result)
		goto out;
	result = synthesize_modules(synthesis);
	if (result)
		goto out;
	result = synthesize_bpf(synthesis, &codes);
out:
	tally_vector_release(&codes);
	return result;
}

/* ---- tasks --------------------------------------------------------------- */

static int synthesize_comm(struct synthesis *synthesis, pid_t pid, pid_t tid)
{
	char comm[TALLY_PROC_COMM_MAX];
	if (tally_proc_comm(tid, comm, sizeof(comm)) < 0)
		return 0;
	comm[15] = '\0';
	begin(synthesis);
	put_u32(synthesis, (uint32_t)pid);
	put_u32(synthesis, (uint32_t)tid);
	put_string(synthesis, comm);
	return finish(synthesis, TALLY_RECORD_COMM, 0, pid, tid);
}

static int synthesize_fork(struct synthesis *synthesis, pid_t pid, pid_t parent, pid_t tid)
{
	begin(synthesis);
	put_u32(synthesis, (uint32_t)pid);
	put_u32(synthesis, (uint32_t)parent);
	put_u32(synthesis, (uint32_t)tid);
	put_u32(synthesis, (uint32_t)parent);
	put_u64(synthesis, 0);
	/* FORK_EXEC: only the mappings that follow are the task's; it inherits none. */
	return finish(synthesis, TALLY_RECORD_FORK,
				      pid == parent ? 0 : TALLY_MISC_FORK_EXEC, pid, tid);
}

static int synthesize_map(void *context, const struct tally_proc_map *map)
{
	struct synthesis *synthesis = context;
	pid_t pid = synthesis->pid;
	bool is_code = map->protection & PROT_EXEC;
	bool with_data = synthesis->side_band->flags & TALLY_ATTR_MMAP_DATA;
	struct tally_proc_map file = *map; /* what the record says */
	if (tally_recorder_image_add_map(&synthesis->image, pid, map, &file.offset)) {
		const struct tally_recorder_image *image = &synthesis->image;
		file.shared = false;
		file.major = image->major;
		file.minor = image->minor;
		file.inode = image->inode;
		memcpy(file.path, image->path, sizeof(file.path));
	}
	if (!is_code && (!with_data || !map->path[0]))
		return 0;
	const struct tally_record_mmap mmap = {
		.pid = (uint32_t)pid,
		.start = map->start,
		.length = map->end - map->start,
		.file_offset = file.offset,
		.has_inode = true,
		.major = file.major,
		.minor = file.minor,
		.inode = file.inode,
		.protection = (uint32_t)map->protection,
		.filename = file.path,
	};
	struct tally_recorder_tasks *tasks = synthesis->tasks;
	struct tally_build_id id = { 0 };
	if (is_wanted(synthesis, TALLY_ATTR_BUILD_ID) && tasks->objects.is_live)
		tally_recorder_build_id(&tasks->build_ids, &tasks->known, &mmap, &id);
	uint16_t misc = TALLY_MISC_USER | (is_code ? 0 : TALLY_MISC_MMAP_DATA) |
			(id.size ? TALLY_MISC_MMAP_BUILD_ID : 0);
	begin(synthesis);
	put_u32(synthesis, (uint32_t)pid);
	put_u32(synthesis, (uint32_t)pid);
	put_u64(synthesis, map->start);
	put_u64(synthesis, map->end - map->start);
	put_u64(synthesis, file.offset);
	put_u32(synthesis, file.major);
	put_u32(synthesis, file.minor);
	put_u64(synthesis, file.inode);
	put_u64(synthesis, 0);
	put_u32(synthesis, (uint32_t)map->protection);
	put_u32(synthesis, file.shared ? MAP_SHARED : MAP_PRIVATE);
	put_string(synthesis, file.path[0] ? file.path : "//anon");
	if (id.size)
		tally_recorder_put_build_id(synthesis->bytes, &id);
	return finish(synthesis, TALLY_RECORD_MMAP2, misc, pid, pid);
}

static int synthesize_task(struct synthesis *synthesis, pid_t pid, pid_t parent, pid_t tid)
{
	int result = synthesize_fork(synthesis, pid, parent, tid);
	if (result)
		return result;
	result = synthesize_namespaces(synthesis, pid, tid);
	if (result)
		return result;
	return synthesize_comm(synthesis, pid, tid);
}

static int synthesize_process(struct synthesis *synthesis, pid_t pid)
{
	struct tally_proc_status status;
	struct tally_pid_list threads = { 0 };
	if (tally_proc_status(pid, &status) < 0 || tally_proc_threads(pid, &threads) < 0)
		return 0; /* it ended meanwhile */
	synthesis->pid = pid;
	synthesis->image.end = 0;
	int result = synthesize_task(synthesis, pid, status.parent, pid);
	for (size_t i = 0; !result && i < threads.count; i++)
		if (threads.items[i] != pid)
			result = synthesize_task(synthesis, pid, pid, threads.items[i]);
	tally_pid_list_release(&threads);
	if (result)
		return result;
	result = tally_proc_maps(pid, synthesize_map, synthesis);
	if (result == -ESRCH || result == -EACCES || result == -ENOENT || result == -EPERM)
		return 0;
	return result;
}

static int synthesize_all(struct synthesis *synthesis)
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
static int synthesize_tids(struct synthesis *synthesis)
{
	const struct tally_pid_list *tids = &synthesis->tasks->session->target->tids;
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

static int synthesize_command(struct synthesis *synthesis, pid_t pid)
{
	int result = synthesize_comm(synthesis, pid, pid);
	return result ? result : synthesize_namespaces(synthesis, pid, pid);
}

int tally_recorder_synthesize(struct tally_recorder_tasks *tasks,
			      struct tally_recorder_output *output, struct tally_error *err)
{
	const struct tally_recorder_session *session = tasks->session;
	struct synthesis synthesis = synthesis_of(tasks, output, err);
	bool has_kernel = tally_provider_can(session->provider, TALLY_PROVIDER_KERNEL_MODE);
	int result = has_kernel ? synthesize_kernel(&synthesis) : 0;
	if (result)
		return result;
	result = synthesize_cgroups(&synthesis);
	if (result)
		return result;
	if (session->target->all)
		result = synthesize_all(&synthesis);
	else if (session->target->tids.count)
		result = synthesize_tids(&synthesis);
	else if (session->spawn)
		result = synthesize_command(&synthesis, session->spawn->pid);
	if (result)
		return result;
	return tally_recorder_finish_round(output, err);
}

/* ---- the tasks known so far ---------------------------------------------- */

static bool is_kernel_itself(const struct tally_tasks *tasks, const struct tally_mapping *mapping)
{
	return !strncmp(tally_tasks_path(tasks, mapping->file), KERNEL_NAME, strlen(KERNEL_NAME));
}

static int write_kernel_mapping(struct synthesis *synthesis,
				const struct tally_mapping *mapping)
{
	const struct tally_tasks *tasks = &synthesis->tasks->known;
	const struct tally_mapped_file *file = &tasks->files.items[mapping->file];
	const char *path = tally_tasks_path(tasks, mapping->file);
	if (file->is_symbol)
		return synthesize_symbol(synthesis, mapping->start,
					       (uint32_t)(mapping->end - mapping->start),
					       file->symbol_type, path);
	begin(synthesis);
	put_u32(synthesis, UINT32_MAX);
	put_u32(synthesis, 0);
	put_u64(synthesis, mapping->start);
	put_u64(synthesis, mapping->end - mapping->start);
	put_u64(synthesis, mapping->file_offset);
	put_string(synthesis, path);
	return finish(synthesis, TALLY_RECORD_MMAP, TALLY_MISC_KERNEL, -1, 0);
}

/* Other code may cut the kernel's mapping.  Only the first piece is written: perf would take each
 * piece for the whole kernel. */
static int write_kernel_mappings(struct synthesis *synthesis)
{
	const struct tally_tasks *tasks = &synthesis->tasks->known;
	const struct tally_mapping *mapping = NULL;
	uint32_t written = TALLY_FILE_NONE;
	int result = 0;
	while (!result && (mapping = tally_mappings_behind(&tasks->kernel.mappings,
							   mapping ? mapping->end : 0))) {
		bool is_kernel = is_kernel_itself(tasks, mapping);
		if (is_kernel && mapping->file == written)
			continue;
		written = is_kernel ? mapping->file : written;
		result = write_kernel_mapping(synthesis, mapping);
	}
	return result;
}

static int write_mapping(struct synthesis *synthesis, pid_t pid,
			 const struct tally_mapping *mapping)
{
	const struct tally_tasks *tasks = &synthesis->tasks->known;
	const struct tally_mapped_file *file = &tasks->files.items[mapping->file];
	uint16_t misc = TALLY_MISC_USER | (mapping->executable ? 0 : TALLY_MISC_MMAP_DATA) |
			(file->has_own_build_id ? TALLY_MISC_MMAP_BUILD_ID : 0);
	begin(synthesis);
	put_u32(synthesis, (uint32_t)pid);
	put_u32(synthesis, (uint32_t)pid);
	put_u64(synthesis, mapping->start);
	put_u64(synthesis, mapping->end - mapping->start);
	put_u64(synthesis, mapping->file_offset);
	put_u32(synthesis, file->major);
	put_u32(synthesis, file->minor);
	put_u64(synthesis, file->inode);
	put_u64(synthesis, file->inode_generation);
	put_u32(synthesis, mapping->executable ? PROT_READ | PROT_EXEC : PROT_READ);
	/* of a memfd, the flag tells whether it is one process's code (mapped_files.c) */
	put_u32(synthesis, file->pid ? MAP_SHARED : MAP_PRIVATE);
	put_string(synthesis, tally_tasks_path(tasks, mapping->file));
	if (file->has_own_build_id)
		tally_recorder_put_build_id(synthesis->bytes, &file->build_id);
	return finish(synthesis, TALLY_RECORD_MMAP2, misc, pid, pid);
}

static int write_mappings(struct synthesis *synthesis, const struct tally_process *process)
{
	const struct tally_mapping *mapping = NULL;
	int result = 0;
	while (!result && (mapping = tally_mappings_behind(&process->mappings,
							   mapping ? mapping->end : 0)))
		result = write_mapping(synthesis, (pid_t)process->pid, mapping);
	return result;
}

static int write_thread(struct synthesis *synthesis, const struct tally_thread *thread)
{
	if (thread->comm == TALLY_STRING_NONE)
		return 0;
	begin(synthesis);
	put_u32(synthesis, thread->pid);
	put_u32(synthesis, thread->tid);
	put_string(synthesis, tally_strings_text(&synthesis->tasks->known.strings, thread->comm));
	int result = finish(synthesis, TALLY_RECORD_COMM, 0, (pid_t)thread->pid,
					    (pid_t)thread->tid);
	return result ? result : write_known_namespaces(synthesis, thread);
}

int tally_recorder_write_tasks(struct tally_recorder_tasks *tasks,
			       struct tally_recorder_output *output, struct tally_error *err)
{
	struct synthesis synthesis = synthesis_of(tasks, output, err);
	const struct tally_tasks *known = &tasks->known;
	synthesis.is_known = true;
	int result = write_kernel_mappings(&synthesis);
	if (!result)
		result = write_known_cgroups(&synthesis);
	for (size_t i = 0; !result && i < known->threads.count; i++)
		result = write_thread(&synthesis, &known->threads.items[i]);
	for (size_t i = 0; !result && i < known->processes.count; i++)
		result = write_mappings(&synthesis, &known->processes.items[i]);
	return result ? result : tally_recorder_finish_round(output, err);
}
