/* Tasks and what they map, over time. */
#ifndef TALLY_TASK_H
#define TALLY_TASK_H

#include "abi/abi.h"
#include "base/map.h"
#include "base/strings.h"
#include "base/vector.h"
#include "object/object.h"
#include "tally/perf_event.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tally_jits;
struct tally_live_jits;
struct tally_made_code;
struct tally_mapping_node;
struct tally_symbol;
struct tally_symbols;

/* The mappings of an address space: sorted by address, disjoint.
 *
 * Processes share their mappings after a fork until one of them changes some.
 */

struct tally_mapping {
	uint64_t start, end; /* end: first address behind */
	uint64_t file_offset;
	uint32_t file;
	bool executable;
	bool is_program; /* code of the file that the process executed */
	bool is_made;    /* executable memory of one process, without a file */
	uint8_t program; /* the process's number when it was mapped */
};

/* Zero-initialised is empty. */
struct tally_mappings {
	struct tally_mapping_node *root;
};

/* Nodes that are free, for all address spaces that may share nodes.  Zero-initialised is empty. */
struct tally_mapping_pool {
	struct tally_mapping_node *free;
	size_t free_count;
	uint32_t visits;
};

/* Returns the first mapping that ends behind an address, or NULL.  With the end of a mapping, this
 * is the next one.  Valid until the mappings change. */
const struct tally_mapping *tally_mappings_behind(const struct tally_mappings *mappings,
						  uint64_t address);

/* Returns the last mapping that ends at or before an address, or NULL.  Valid until the mappings
 * change. */
const struct tally_mapping *tally_mappings_before(const struct tally_mappings *mappings,
						  uint64_t address);

/* Adds a mapping (start < end) in place of what it covers.  Returns 0, or -ENOMEM without any
 * change. */
int tally_mappings_put(struct tally_mapping_pool *pool, struct tally_mappings *mappings,
		       const struct tally_mapping *mapping);

/* Removes what is mapped from `start` to `end` (start < end).  Returns 0, or -ENOMEM without any
 * change. */
int tally_mappings_remove(struct tally_mapping_pool *pool, struct tally_mappings *mappings,
			  uint64_t start, uint64_t end);

/* Returns another reference to the same mappings. */
struct tally_mappings tally_mappings_share(const struct tally_mappings *mappings);

/* Drops a reference. */
void tally_mappings_drop(struct tally_mapping_pool *pool, struct tally_mappings *mappings);

/* Returns the first mapping with `is_made` that ends behind an address, or NULL. */
const struct tally_mapping *tally_mappings_made_behind(const struct tally_mappings *mappings,
						       uint64_t address);

/* Begins a visit of several address spaces. */
static inline void tally_mappings_begin_visit(struct tally_mapping_pool *pool)
{
	pool->visits++;
}

/* Calls `handle` once for each mapping that this visit has not met in another address space.
 * `handle` may change the mapping's file, in all address spaces that share it. */
void tally_mappings_visit(struct tally_mapping_pool *pool, const struct tally_mappings *mappings,
			  void (*handle)(struct tally_mapping *mapping, void *context),
			  void *context);

/* Frees the free nodes. */
void tally_mapping_pool_release(struct tally_mapping_pool *pool);

/* Tasks and their mappings over time: (pid, time, address) → file + offset.
 *
 * Takes records in time order (MMAP, MMAP2, KSYMBOL, COMM, FORK, EXIT, CGROUP, NAMESPACES) and has
 * the state after the last one; so look up right after each record.  An ended task stays known
 * until its id is used again, since samples of a dying task may follow its EXIT.
 *
 * Paths and command names are interned in `strings`, files in `files`.  Ids are small numbers, and
 * stable unless files are forgotten (objects.c).  Not thread-safe.
 */

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

/* Opens a mapped file while its process lives.
 *
 * A recording has the path that the process sees.  In a container, or after a chroot, we may see
 * another file at that path, or none; a removed file has no path at all.  While the process lives,
 * /proc leads to the file.
 */

struct tally_live_file {
	int fd;
	char *path; /* leads to the file from here, as far as known; malloc'd */
	/* the folder of the other root in which it was found, malloc'd; NULL: our root, or it could
	 * not be kept, so debug files are searched only below our own root */
	char *root;
};

/* Opens the file by `path`, by /proc/PID/map_files, by its path below /proc/PID/root, or by
 * /proc/PID/exe.  Accepts only the mapped file, and only ELF files.  Returns true; the caller
 * releases it. */
bool tally_live_find(const struct tally_tasks *tasks, const struct tally_mapped_file *file,
		     const char *path, struct tally_live_file *out);

void tally_live_file_release(struct tally_live_file *file);

/* Tells whether a file is the one that was mapped.
 *
 * A path says little: a file may be replaced or written anew while it is recorded or afterwards,
 * another mount namespace has other files, and so has another machine.  A build-id identifies a
 * build.  A record without one has the inode, which identifies a file of one machine while the file
 * exists.  A record without either has at least the mapped range.
 */

enum tally_file_identity {
	TALLY_FILE_SAME,
	/* Nothing tells.  The device may be another one all the same: file systems in layers and
	 * with subvolumes show programs a device of their own. */
	TALLY_FILE_UNPROVEN,
	TALLY_FILE_OTHER_BUILD,
	TALLY_FILE_OTHER_INODE,
	TALLY_FILE_OTHER_CODE,  /* its code isn't where the recorded one was */
	TALLY_FILE_WRITTEN_LATER,
};

/* When a recording was made. */
struct tally_file_times {
	uint64_t until_ns; /* CLOCK_REALTIME; 0: not known, or it is being made */
	/* CLOCK_REALTIME minus the recording's clock; 0: not known */
	uint64_t wall_offset_ns;
};

/* Returns how a file differs from the recorded one, for messages: "has another build-id". */
const char *tally_file_difference(enum tally_file_identity identity);

/* Compares a mapped file with one that was found, whose build-id is `id`. */
enum tally_file_identity tally_file_identify(const struct tally_tasks *tasks,
					     const struct tally_mapped_file *mapped,
					     const struct tally_object_file *found,
					     const struct tally_build_id *id);

/* The same for an open object; doesn't return UNPROVEN.  `is_vouched_for`:
 * the user gave the folder that has the recorded files, so inodes and times say nothing. */
enum tally_file_identity tally_file_believe(const struct tally_tasks *tasks,
					    const struct tally_mapped_file *mapped,
					    const struct tally_object *found,
					    const struct tally_file_times *times,
					    bool is_vouched_for);

/* The ELF objects behind mapped files, opened once and shared, for names and for unwinding.
 *
 * A file is used only when it is the recorded one (file_identity.c).  Otherwise a copy in perf's or
 * the distribution's build-id folders is tried, then the file of a process that still maps it
 * (live_file.c).  An entry that can't be used says why.  While recording (`is_live`), a file is
 * opened as soon as it is mapped, and kept for the names.
 */

enum tally_object_state {
	TALLY_OBJECT_UNTRIED,
	TALLY_OBJECT_OPEN,
	TALLY_OBJECT_HELD,    /* found, but not read yet */
	TALLY_OBJECT_MISSING, /* not found, not readable, or no ELF file */
	TALLY_OBJECT_CHANGED, /* a file is there, but not the recorded one */
	TALLY_OBJECT_NO_FILE, /* nothing to open: the kernel, anonymous memory */
};

struct tally_object_entry {
	enum tally_object_state state;
	struct tally_object *object;
	struct tally_object *debug; /* separate debug file, or NULL */
	bool debug_tried;
	int lack; /* why names are missing: -ENOPKG (no liblzma), -ENOMEM, or 0 */
	const struct tally_object_search *search;
	/* why the file is not the recorded one (CHANGED) */
	enum tally_file_identity difference;
	struct tally_live_file held; /* of state HELD */
	size_t copied_bytes;
	/* the file was written anew while it was recorded, so its names may be of other code */
	bool is_ambiguous;
	char *root;         /* folder of another root in which it was found, or NULL */
	/* process tried last for a missing file; a later one may still have it */
	uint32_t tried_pid;
	uint32_t tries;
	struct tally_unwind_table *unwind; /* NULL: none, or not tried */
	bool unwind_tried;
	/* tells `unwind` where functions begin; NULL: unused */
	struct tally_entry_functions *functions;
	struct tally_build_id build_id; /* of an object that was closed to save memory */
	uint64_t used; /* round of tally_objects_trim() in which it was last used */
};

/* A file fetched from elsewhere: by debuginfod, or by the recorder, which opened it when it was
 * mapped. */
struct tally_fetched_object {
	struct tally_build_id id;
	/* with size 0 of `id`: the mapped file; NULL: identified by `id` */
	char *path;
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	struct tally_object *object; /* NULL: only the debug file was fetched, or `held` has it */
	struct tally_object *debug;  /* NULL: none found */
	struct tally_live_file held; /* not read yet; path NULL: none */
	bool is_overwritten; /* the file was written anew while it was recorded */
};

/* Limits for open objects; 0: none. */
struct tally_objects_budget {
	size_t bytes;  /* heap bytes */
	size_t mapped; /* bytes of mapped files; a deleted file occupies the disk while mapped */
	size_t objects;
};

struct tally_objects {
	/* indexed by file id */
	struct { struct tally_object_entry *items; size_t count, capacity; } entries;
	enum tally_arch arch; /* ignore files of other machines; unknown: use all */
	/* recorded under another kernel: our vdso and our processes are not the recorded ones */
	bool is_foreign;
	/* the machine whose stacks are unwound; by default this one */
	enum tally_unwind_machine machine;
	struct tally_unwind_cache *unwind_cache;  /* made for the first stack */
	/* for tests: unwind by the slow reference, without the cache */
	bool unwind_interpreted;
	/* the mappings are of this machine and current */
	bool is_live;
	struct tally_file_times times;
	size_t copied_bytes; /* of files that are not mapped, since they may be written anew */
	size_t held_count; /* descriptors of files that are not read yet */
	/* optional, while recording: reads code without a file */
	struct tally_made_code *made_code;
	/* optional, while recording: has rules of code without a file */
	struct tally_live_jits *live_jits;
	struct tally_object_search search;        /* set before the first object is opened */
	struct { uint32_t *items; size_t count, capacity; } open; /* entries that have an object */
	/* preferred to local files */
	struct { struct tally_fetched_object *items; size_t count, capacity; } fetched;
	uint64_t rounds;
	size_t files_kept; /* files left by the last tally_objects_forget() */
};

/* Returns a file's entry, opened on first use; NULL without memory. */
struct tally_object_entry *tally_objects_get(struct tally_objects *objects,
					     const struct tally_tasks *tasks, uint32_t file);

/* Call it with each record while recording, after the tasks got it.  Opens each file that is mapped
 * executable when it is new: it may be removed or replaced, and its process may end. */
void tally_objects_record(struct tally_objects *objects, const struct tally_tasks *tasks,
			  const struct tally_record *record);

/* Keeps fetched files of this build-id for entries that are opened later.  Either may be NULL;
 * takes new references.  Returns 0 or -ENOMEM. */
int tally_objects_keep_fetched(struct tally_objects *objects, const struct tally_build_id *id,
			       struct tally_object *object, struct tally_object *debug);

/* Moves the open and held files to `to`, as fetched.  Don't use `from` afterwards.  Returns 0 or
 * -ENOMEM. */
int tally_objects_hand_over(struct tally_objects *from, const struct tally_tasks *tasks,
			    struct tally_objects *to);

/* Lets `to` use the fetched files of `from` as well.  Returns 0 or -ENOMEM. */
int tally_objects_share(const struct tally_objects *from, struct tally_objects *to);

/* Returns what was fetched for a build-id, or NULL. */
const struct tally_fetched_object *tally_objects_fetched(const struct tally_objects *objects,
							 const struct tally_build_id *id);

/* Returns the separate debug file, searched for on first use; NULL when there is none. */
struct tally_object *tally_objects_debug(struct tally_object_entry *entry);

/* Returns the build-id of an entry, open or closed; size 0: none or unknown. */
const struct tally_build_id *tally_objects_build_id(const struct tally_object_entry *entry);

/* Returns the build-id of a file by its id; opens the file unless it was open before.  NULL without
 * memory. */
const struct tally_build_id *tally_objects_file_build_id(struct tally_objects *objects,
							 const struct tally_tasks *tasks,
							 uint32_t file);

/* When more is open than the budget allows, closes the objects not used for longest; they are
 * reopened when needed.  Call it from time to time, while no caller holds an object or a rule. */
void tally_objects_trim(struct tally_objects *objects, const struct tally_objects_budget *budget);

/* When the tasks have a sixteenth more files than `limit`, forgets files that no process maps, the
 * least recently mapped first, with their entries, until `limit` files are left or no more can go.
 * Before, calls `report` (may be NULL) with path and build-id of each that has a build-id; an error
 * of `report` ends this.  Ids of files and of strings change.  Call it only when
 * tally_objects_trim() may be called, and not with tasks that read dumps of JITs.  Returns 0,
 * `report`'s error, or -ENOMEM with nothing forgotten. */
int tally_objects_forget(struct tally_objects *objects, struct tally_tasks *tasks, size_t limit,
			 int (*report)(void *context, const char *path,
				       const struct tally_build_id *id),
			 void *context);

/* Corrects the symbol that a table has for an address, by where functions begin and end by rules
 * and code (`rules` may be NULL).  A symbol without a size ends with its function; code behind it
 * has no symbol, but for the first byte of padding.  A local label inside of a function is not the function's name.  Sets *symbol, and
 * *end to the function's end.  Returns false when there is no symbol. */
bool tally_objects_function_at(struct tally_unwind_table *rules,
			       const struct tally_symbols *symbols, uint64_t address,
			       const struct tally_symbol **symbol, uint64_t *end);

/* Returns the unwind rules, parsed on first use; NULL when there are none. */
struct tally_unwind_table *tally_objects_unwind(struct tally_object_entry *entry);

void tally_objects_release(struct tally_objects *objects);

/* Returns this process's "[vdso]" as bytes of an ELF image; NULL when there is none. */
const void *tally_vdso_image(size_t *size);

/* Forgets tasks that have ended, for a recorder that runs for hours and for readers of its
 * recordings.
 *
 * A task's last samples may be read after its EXIT, so it stays known until the pass after the
 * next.  A process has ended when its leader and all threads that began before it have ended.
 */

struct tally_ending {
	uint32_t pid, tid;
	uint64_t number; /* `pending` has the same number while the ending is valid */
	bool is_last;    /* the process ended with this task */
};

/* Zero-initialised is empty. */
struct tally_endings {
	struct { struct tally_ending *items; size_t count, capacity; } queue; /* oldest first */
	size_t old;                /* how many of `queue` are from before the last pass */
	/* pid << 32 | tid → number of the ending; removed when a new task has these ids */
	struct tally_map pending;
	/* pid → number of threads besides the leader, and whether the leader has ended
	 * (endings.c) */
	struct tally_map living;
	uint64_t number;
	bool keeps_threads; /* set by users of thread indices: forget only processes */
};

/* Takes FORK, COMM, MMAP and EXIT records, after `tasks` did.  Returns 0 or -ENOMEM. */
int tally_endings_record(struct tally_endings *endings, const struct tally_record *record);

/* Makes `tasks` forget the tasks that ended before the last pass.  Call it when all samples up to
 * this moment have been read. */
void tally_endings_pass(struct tally_endings *endings, struct tally_tasks *tasks);

void tally_endings_release(struct tally_endings *endings);

/* Compares a call chain with the one before it, and visits only what is new.  The outer frames are
 * mostly the same.
 *
 *     struct tally_chain_news news = tally_chain_news_of(&last, words, count, is_kernel_mode);
 *     while (tally_chain_news_next(&news, &last, &address)) … news.walk.kernel, news.walk.is_return
 *     tally_last_chain_set(&last, &news, words, count);
 *
 * An address is old if, from there outwards, the chain has the same words as the last one, in the
 * same context, and if both chains had that context's innermost address before it.  Inline, because
 * recordings contain hundreds of millions of words.
 */

/* The last chain.  Zero-initialised is none; setting words.count to 0 forgets it. */
struct tally_last_chain {
	TALLY_VECTOR(uint64_t) words;
	size_t innermost;      /* index of the first address of the last context */
	bool innermost_kernel; /* true: the last context is the kernel's */
};

struct tally_chain_news {
	struct tally_chain_walk walk;
	const uint64_t *words;
	size_t from;             /* from this index on, the words equal the last chain's */
	ptrdiff_t was_innermost; /* the last chain's `innermost`, as an index into this chain */
	size_t innermost;
	bool innermost_kernel;
};

/* Returns how many of the outermost words are the same as in the last chain. */
static inline size_t tally_last_chain_common(const struct tally_last_chain *last,
					     const uint64_t *words, size_t count)
{
	size_t common = 0, most = count < last->words.count ? count : last->words.count;
	if (!most)
		return 0;
	const uint64_t *a = last->words.items + last->words.count, *b = words + count;
	while (common < most && a[-1 - (ptrdiff_t)common] == b[-1 - (ptrdiff_t)common])
		common++;
	return common;
}

/* `kernel`: the context of the words before the first marker. */
static inline struct tally_chain_news tally_chain_news_of(const struct tally_last_chain *last,
							  const uint64_t *words, size_t count,
							  bool kernel)
{
	return (struct tally_chain_news){
		.walk = { .at = words, .end = words + count, .kernel = kernel },
		.words = words,
		.from = count - tally_last_chain_common(last, words, count),
		.was_innermost = (ptrdiff_t)(last->innermost + count - last->words.count),
	};
}

/* Gets the next new address, leaf first.  Returns false when there are no more. */
static inline bool tally_chain_news_next(struct tally_chain_news *news,
					 const struct tally_last_chain *last, uint64_t *address)
{
	if (!tally_chain_walk_next(&news->walk, address))
		return false;
	size_t at = (size_t)(news->walk.at - news->words) - 1;
	if (!news->walk.is_return) {
		news->innermost = at;
		news->innermost_kernel = news->walk.kernel;
		return true;
	}
	return at < news->from || (ptrdiff_t)at <= news->was_innermost ||
	       news->walk.kernel != last->innermost_kernel;
}

/* Makes this the last chain; call it when the walk has reached its end.  Returns 0 or -ENOMEM. */
static inline int tally_last_chain_set(struct tally_last_chain *last,
				       const struct tally_chain_news *news, const uint64_t *words,
				       size_t count)
{
	if (tally_vector_reserve(&last->words, count) < 0)
		return -ENOMEM;
	memcpy(last->words.items, words, count * sizeof(*words));
	last->words.count = count;
	last->innermost = news->innermost;
	last->innermost_kernel = news->innermost_kernel;
	return 0;
}

/* The files of the tasks' mappings, each stored once.
 *
 * A recorder that runs for hours sees ever more files: each process that makes code has its own
 * "//anon", and each test that is compiled and run is a new program.  So files that no process maps
 * any more can be forgotten.
 */

/* Returns the file's id and adds the file if it is new; TALLY_FILE_NONE without memory. */
#define TALLY_VDSO32 "[vdso32]" /* the path of the vdso of a 32-bit process */

uint32_t tally_mapped_files_intern(struct tally_tasks *tasks, const struct tally_mapped_file *file);
uint32_t tally_mapped_files_of_record(struct tally_tasks *tasks,
				      const struct tally_record_mmap *mmap);

/* Returns the file of a forked child's copy of memory that belongs to its parent. */
uint32_t tally_mapped_files_inherit(struct tally_tasks *tasks, uint32_t number, uint32_t pid);

/* Chooses which files to forget: files that no process maps, the least recently mapped first, until
 * `limit` files are left or no more can go.  Returns each file's new number, or TALLY_FILE_NONE if
 * it goes.  The caller frees the array.  Returns NULL without memory. */
uint32_t *tally_mapped_files_choose(struct tally_tasks *tasks, size_t limit);

/* Applies new numbers, and forgets the strings that are no longer used.  Ids of files and of
 * strings change.  Returns 0, or -ENOMEM without any change. */
int tally_mapped_files_renumber(struct tally_tasks *tasks, uint32_t *numbers);

#endif
