/* Tasks and their maps over time: (pid, time, address) → file + offset.
 *
 * Fed with records in order of time (MMAP, MMAP2, KSYMBOL, COMM, FORK, EXIT, CGROUP, NAMESPACES),
 * it holds what was true at that moment; a lookup right after answers for the record that was fed
 * last.  What has exited stays known until its id is used again, since samples of a dying task may
 * follow its EXIT.
 *
 * Paths and commands are interned in `strings`; files in `files`: ids are small, and stable unless
 * files are forgotten (objects.h).  Not thread-safe.
 */
#ifndef TALLY_TASK_TASKS_H
#define TALLY_TASK_TASKS_H

#include "abi/record.h"
#include "base/map.h"
#include "base/strings.h"
#include "object/object.h"
#include "task/namespaces.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_FILE_NONE UINT32_MAX         /* nothing was mapped there */
#define TALLY_FILE_KERNEL \
	(UINT32_MAX - 1) /* the kernel, where no record said what of it is mapped */

/* What was mapped: a path with what identifies its content. */
struct tally_mapped_file {
	uint32_t path; /* string id */
	uint32_t major, minor;
	uint64_t inode;
	uint64_t inode_generation;
	struct tally_build_id build_id; /* from the record or set later from the recording's list */
	/* owner of what only one process has (anonymous memory, JIT code); 0 otherwise */
	uint32_t pid;
	bool is_kernel;
	/* of a KSYMBOL record: kernel code that was made at run time; `path` is its name */
	bool is_symbol;
	uint16_t symbol_type;
	uint32_t symbol_size;
	uint64_t symbol_start;
	/* Who mapped it last, where, and how many mappings were seen before; says nothing of which
	 * file it is. */
	struct { uint32_t pid; uint64_t start, end, number; } seen;
	/* What processes were called that began with it ("redis-server", of which "redis-check-rdb"
	 * is the file); "": it began none.  Cut where it is as long as it can be, as the kernel has
	 * it. */
	char started_as[16];
	bool is_started_variously; /* they were called differently */
};

struct tally_mapping {
	uint64_t start, end; /* end: first address behind */
	uint64_t file_offset;
	uint32_t file;
	bool executable;
};

struct tally_process {
	uint32_t pid;
	struct tally_mapping *mappings; /* sorted, without overlap */
	size_t count, capacity;
	/* of its mappings: two states that have the same are equal; 0: nothing is mapped */
	uint64_t generation;
	/* how many processes have these mappings in common since a fork; NULL: one */
	uint32_t *shares;
	bool has_hotspot; /* it mapped libjvm.so: its code without a file is HotSpot's */
};

struct tally_thread {
	uint32_t pid, tid;
	uint32_t comm; /* string id, TALLY_STRING_NONE when never told */
	uint32_t namespaces; /* of namespaces.sets, TALLY_NAMESPACES_NONE when never told */
	bool awaits_program; /* it has called exec, and what is mapped next is its program */
};

struct tally_jits;

struct tally_tasks {
	struct tally_strings strings;
	struct { struct tally_mapped_file *items; size_t count, capacity; } files;
	struct { struct tally_process *items; size_t count, capacity; } processes;
	struct { struct tally_thread *items; size_t count, capacity; } threads;
	struct { struct tally_build_id *items; size_t count, capacity; } build_ids;
	struct tally_map file_index, process_index, thread_index;
	struct tally_map cgroups; /* number → string id of its path */
	struct tally_namespaces namespaces;
	struct tally_map build_id_index; /* path's string id → build_ids */
	struct tally_process kernel; /* of records with pid -1 */
	/* below it are programs' addresses alone; 0: not known, or there is no such border */
	uint64_t kernel_start;
	uint64_t generation; /* changes whenever any mapping does */
	uint64_t comm_generation; /* changes whenever any command's name does */
	struct tally_jits *jits; /* jit.h; NULL: dumps of JITs are not looked for */
	/* by records; for processes that went on from their parent's */
	uint64_t maps_seen, maps_copied;
};

/* Applies a record; types that say nothing of tasks are ignored.  0 or -ENOMEM. */
int tally_tasks_record(struct tally_tasks *tasks, const struct tally_record *record);

/* Says what build-id the files at `path` have whose MMAP records carry none: a recording's list.
 * To be told before those records.  0 or -ENOMEM. */
int tally_tasks_build_id(struct tally_tasks *tasks, const char *path,
			 const struct tally_build_id *id);

/* The mapping at an address of a process (pid as u32; `kernel` true: the kernel's), or NULL.
 * Valid until the next record. */
const struct tally_mapping *tally_tasks_find(const struct tally_tasks *tasks, uint32_t pid,
					     bool kernel, uint64_t address);

/* Which state of a process's mappings holds now: what was looked up in them stays true while it is
 * the same. */
uint64_t tally_tasks_generation(const struct tally_tasks *tasks, uint32_t pid);

/* True when the process is a HotSpot JVM. */
bool tally_tasks_has_hotspot(const struct tally_tasks *tasks, uint32_t pid);

/* What a process's addresses mean has changed, though its mappings have not. */
void tally_tasks_remapped(struct tally_tasks *tasks, uint32_t pid);

/* From now on dumps of JITs are read where records tell of them.  0 or -ENOMEM. */
int tally_tasks_use_jits(struct tally_tasks *tasks);

/* The command's name: of the thread, else of its process, else ":TID" as perf writes it (then in
 * `buffer`). */
const char *tally_tasks_comm(const struct tally_tasks *tasks, uint32_t pid, uint32_t tid,
			     char buffer[16]);

/* The string id of a cgroup's path, as CGROUP records told of it; TALLY_STRING_NONE: they did
 * not. */
uint32_t tally_tasks_cgroup(const struct tally_tasks *tasks, uint64_t number);

/* The thread's namespace of a kind; 0, 0 when no record told. */
struct tally_namespace tally_tasks_namespace(const struct tally_tasks *tasks, uint32_t pid,
					     uint32_t tid, enum tally_namespace_kind kind);

/* For who has no use any more for what has ended.  The last of `threads` or `processes` takes the
 * place: indices change.  A process stays whose JIT's dump was read: what its code calls is looked
 * up in its maps whenever it is shown. */
void tally_tasks_forget_thread(struct tally_tasks *tasks, uint32_t pid, uint32_t tid);
void tally_tasks_forget_process(struct tally_tasks *tasks, uint32_t pid);

/* The thread's index into `threads`, made when it was never told of; UINT32_MAX when memory is
 * out. */
uint32_t tally_tasks_thread(struct tally_tasks *tasks, uint32_t pid, uint32_t tid);

static inline const char *tally_tasks_path(const struct tally_tasks *tasks, uint32_t file)
{
	return file < tasks->files.count
		       ? tally_strings_text(&tasks->strings, tasks->files.items[file].path)
		       : "";
}

void tally_tasks_release(struct tally_tasks *tasks);

#endif
