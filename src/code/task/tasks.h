/* Tasks and their mappings over time: (pid, time, address) → file + offset.
 *
 * Takes records in time order (MMAP, MMAP2, KSYMBOL, COMM, FORK, EXIT, CGROUP, NAMESPACES) and has
 * the state after the last one; so look up right after each record.  An ended task stays known
 * until its id is used again, since samples of a dying task may follow its EXIT.
 *
 * Paths and command names are interned in `strings`, files in `files`.  Ids are small numbers, and
 * stable unless files are forgotten (objects.h).  Not thread-safe.
 */
#ifndef TALLY_TASKS_H
#define TALLY_TASKS_H

#include "abi/record.h"
#include "base/map.h"
#include "base/strings.h"
#include "object/object.h"
#include "tally/perf_event.h"
#include "task/mappings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The namespaces of tasks, from NAMESPACES records: for each kind the device and inode of its file
 * below /proc/PID/ns (namespaces(7)).  Each set is stored once, however many tasks are in it.
 *
 * Zero-initialised is empty.  Not thread-safe.
 */

#define TALLY_NAMESPACES_NONE UINT32_MAX /* no record seen */

enum tally_namespace_kind { /* in the order of the records */
			    TALLY_NAMESPACE_NET,
			    TALLY_NAMESPACE_UTS,
			    TALLY_NAMESPACE_IPC,
			    TALLY_NAMESPACE_PID,
			    TALLY_NAMESPACE_USER,
			    TALLY_NAMESPACE_MOUNT,
			    TALLY_NAMESPACE_CGROUP,
			    TALLY_NAMESPACE_KINDS
};

/* 0, 0: unknown. */
struct tally_namespace {
	uint64_t device, inode;
};

struct tally_namespace_set {
	struct tally_namespace of[TALLY_NAMESPACE_KINDS];
};

struct tally_namespaces {
	struct {
		struct tally_namespace_set *items;
		size_t count, capacity;
	} sets;
	struct tally_map index; /* hash → set */
};

#define TALLY_FILE_NONE UINT32_MAX         /* nothing is mapped there */
#define TALLY_FILE_KERNEL \
	(UINT32_MAX - 1) /* the kernel, when no record has its mappings */

/* A mapped file: a path, and what identifies its content. */
struct tally_mapped_file {
	uint32_t path; /* string id */
	uint32_t major, minor;
	uint64_t inode;
	uint64_t inode_generation;
	/* from the record, otherwise from the recording's list */
	struct tally_build_id build_id;
	bool has_own_build_id; /* from the record */
	/* the range of the file, by offsets, that was mapped executable: from the lowest to the
	 * highest.  Does not identify the file. */
	uint64_t code_start, code_end;
	/* when it was first mapped, by the recording's clock; 0: before the recording began */
	uint64_t since_ns;
	/* owner of memory that belongs to one process (anonymous memory, JIT code); otherwise 0 */
	uint32_t pid;
	/* of such memory: 1 + file of the process from which a fork copied it; 0: its own */
	uint32_t origin;
	bool is_kernel;
	/* from a KSYMBOL record: kernel code that was made at run time; `path` is its name */
	bool is_symbol;
	uint16_t symbol_type;
	uint32_t symbol_size;
	uint64_t symbol_start;
	/* The last process to map it, where, and a counter over all mappings.  Does not identify
	 * the file. */
	struct { uint32_t pid; uint64_t start, end, number; } seen;
	/* The name of the processes that started it ("redis-server" may have the file
	 * "redis-check-rdb"); "": it started none.  Names of the maximal length are cut, as in the
	 * kernel. */
	char started_as[16];
	bool is_started_variously; /* processes that started it had different names */
};

/* True for the path of a file in memory, which memfd_create(2) made. */
static inline bool tally_is_memfd(const char *path)
{
	return !strncmp(path, "/memfd:", 7);
}

struct tally_process {
	uint32_t pid;
	struct tally_mappings mappings;
	/* of its mappings: states with the same value are equal; 0: nothing is mapped */
	uint64_t generation;
	bool has_hotspot; /* it mapped libjvm.so, so its code without a file is HotSpot's */
	bool has_made_code; /* it maps memory without a file executable */
	uint8_t program; /* changes when it executes another program */
};

/* Where a sample's addresses have a meaning: in the kernel, or in a process.  A guest (a virtual
 * machine) has memory of its own.  The host's maps say nothing of it, and the sample is still one
 * of the host's process that runs it.  So the code of guests is in two processes that don't exist:
 * one has "[guest.kernel]" at all addresses, the other one "[guest]". */
struct tally_space {
	uint32_t pid;
	bool kernel;
};

#define TALLY_GUEST_KERNEL_PID (UINT32_MAX - 1)
#define TALLY_GUEST_USER_PID (UINT32_MAX - 2)

static inline bool tally_is_guest(uint16_t misc)
{
	unsigned mode = misc & TALLY_MISC_CPUMODE_MASK;
	return mode == TALLY_MISC_GUEST_KERNEL || mode == TALLY_MISC_GUEST_USER;
}

/* `misc`: of a sample's header. */
static inline struct tally_space tally_space_of(uint16_t misc, uint32_t pid)
{
	unsigned mode = misc & TALLY_MISC_CPUMODE_MASK;
	if (__builtin_expect(mode == TALLY_MISC_GUEST_KERNEL, 0))
		pid = TALLY_GUEST_KERNEL_PID;
	if (__builtin_expect(mode == TALLY_MISC_GUEST_USER, 0))
		pid = TALLY_GUEST_USER_PID;
	return (struct tally_space){ pid, mode == TALLY_MISC_KERNEL };
}

/* True for the path of a guest's code. */
static inline bool tally_is_guest_path(const char *path)
{
	return !strcmp(path, "[guest.kernel]") || !strcmp(path, "[guest]");
}

struct tally_thread {
	uint32_t pid, tid;
	uint32_t comm; /* string id; TALLY_STRING_NONE: unknown */
	uint32_t namespaces; /* in namespaces.sets; TALLY_NAMESPACES_NONE: unknown */
	bool awaits_program; /* it called exec; its next mapping is its program */
};

struct tally_jits;

/* A build-id in a recording's list, which knows files by their paths only.  perf reads the file at
 * the path when it has finished. */
struct tally_listed_build_id {
	struct tally_build_id id;
	/* the first file that was mapped from this path without a build-id */
	bool has_file;
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	/* The list has two build-ids for the path, or two files were mapped from it: so the
	 * build-id belongs to neither for certain. */
	bool is_ambiguous;
};

struct tally_tasks {
	struct tally_strings strings;
	struct { struct tally_mapped_file *items; size_t count, capacity; } files;
	struct { struct tally_process *items; size_t count, capacity; } processes;
	struct { struct tally_thread *items; size_t count, capacity; } threads;
	struct { struct tally_listed_build_id *items; size_t count, capacity; } build_ids;
	struct tally_map file_index, process_index, thread_index;
	struct tally_map cgroups; /* number → string id of the path */
	struct tally_namespaces namespaces;
	struct tally_map build_id_index; /* string id of the path → build_ids */
	struct tally_process kernel; /* from records with pid -1 */
	/* addresses below belong to programs only; 0: unknown, or there is no such border */
	uint64_t kernel_start;
	uint64_t generation; /* changes whenever a mapping changes */
	uint64_t comm_generation; /* changes whenever a command's name changes */
	struct tally_jits *jits; /* jit.h; NULL: ignore dumps of JITs */
	struct tally_mapping_pool pool; /* of the mappings of all processes */
	/* mappings from records; files that forks made */
	uint64_t maps_seen, files_inherited;
};

/* Applies a record; ignores types that are not about tasks.  Returns 0 or -ENOMEM. */
int tally_tasks_record(struct tally_tasks *tasks, const struct tally_record *record);

/* Sets the build-id of the files at `path` whose MMAP records have none, from a recording's list.
 * Call it before those records.  Returns 0 or -ENOMEM. */
int tally_tasks_build_id(struct tally_tasks *tasks, const char *path,
			 const struct tally_build_id *id);

/* True if the file's build-id may be that of another file, which had the same path. */
bool tally_tasks_is_ambiguous(const struct tally_tasks *tasks,
			      const struct tally_mapped_file *file);

/* Call it for a sample of a guest, before its addresses are looked up.  Returns 0 or -ENOMEM. */
int tally_tasks_add_guest(struct tally_tasks *tasks, uint16_t misc);

/* Returns the mapping at an address of a process (pid as u32; `kernel`: of the kernel), or NULL.
 * Valid until the next record. */
const struct tally_mapping *tally_tasks_find(const struct tally_tasks *tasks, uint32_t pid,
					     bool kernel, uint64_t address);

/* Returns the generation of a process's mappings.  Results of lookups stay valid while it is the
 * same. */
uint64_t tally_tasks_generation(const struct tally_tasks *tasks, uint32_t pid);

/* True when the process is a HotSpot JVM. */
bool tally_tasks_has_hotspot(const struct tally_tasks *tasks, uint32_t pid);

/* True when the process maps memory without a file executable, or a fork copied such memory. */
bool tally_tasks_has_made_code(const struct tally_tasks *tasks, uint32_t pid);

/* Call it when a process's addresses change their meaning while its mappings stay. */
void tally_tasks_remapped(struct tally_tasks *tasks, uint32_t pid);

/* From now on, reads the dumps of JITs that records mention.  Returns 0 or -ENOMEM. */
int tally_tasks_use_jits(struct tally_tasks *tasks);

/* Returns the thread's command name, otherwise its process's, otherwise ":TID" as perf writes it
 * (in `buffer`). */
const char *tally_tasks_comm(const struct tally_tasks *tasks, uint32_t pid, uint32_t tid,
			     char buffer[16]);
/* True if the task is the idle task: number 0, without a name or named "swapper".  Others have that
 * number, too: an exiting thread, and tasks outside of a recorder's PID namespace. */
bool tally_tasks_is_idle(const struct tally_tasks *tasks, uint32_t pid, uint32_t tid);

/* Returns the string id of a cgroup's path, from CGROUP records; TALLY_STRING_NONE: unknown. */
uint32_t tally_tasks_cgroup(const struct tally_tasks *tasks, uint64_t number);

/* Returns the thread's namespace of a kind; 0, 0: unknown. */
struct tally_namespace tally_tasks_namespace(const struct tally_tasks *tasks, uint32_t pid,
					     uint32_t tid, enum tally_namespace_kind kind);

/* Forget an ended task.  The last of `threads` or `processes` moves to its place, so indices
 * change.  A process with a JIT's dump stays: reports look up the targets of its code's calls in
 * its mappings. */
void tally_tasks_forget_thread(struct tally_tasks *tasks, uint32_t pid, uint32_t tid);
void tally_tasks_forget_process(struct tally_tasks *tasks, uint32_t pid);

/* Returns the thread's index in `threads` and adds it if it is new; UINT32_MAX without memory. */
uint32_t tally_tasks_thread(struct tally_tasks *tasks, uint32_t pid, uint32_t tid);

static inline const char *tally_tasks_path(const struct tally_tasks *tasks, uint32_t file)
{
	if (file < tasks->files.count)
		return tally_strings_text(&tasks->strings, tasks->files.items[file].path);
	return "";
}

void tally_tasks_release(struct tally_tasks *tasks);

#endif
