/* Code that programs make at run time: dumps, perf maps, and code read from the process. */
#ifndef TALLY_TASK_JIT_H
#define TALLY_TASK_JIT_H

#include "base/buffer.h"
#include "symbol/jit_dump.h"
#include "task/task.h"
#include "unwind/unwind.h"

#include <stddef.h>
#include <stdint.h>

struct tally_code_memo;
struct tally_live_jits;
struct tally_made_code;
struct tally_unwind_table;

/* The code that JITs made in the recorded processes, when they left a dump of it (jit-PID.dump).
 *
 * A process maps its dump executable so that recordings mention it.  From then on, the contents of
 * its private memory depend on the time.  A place in such code is a byte of the dump's code
 * (symbol/jit_dump.h), in the dump's file; it stays the same when other code replaces it.
 *
 * A forked child runs its parent's code until it makes its own, which a dump of its own describes.
 * What the parent's JIT makes later is not in the child's memory.
 */

struct tally_jit {
	uint32_t pid, file; /* `file`: the dump's index in the tasks' files */
	uint32_t older;     /* 1 + index of an older dump of the same process; 0: none */
	/* read for an ancestor, which owns `dump` and `tables`; code made after `until_ns`, when
	 * the processes parted, is not the child's */
	bool is_inherited;
	uint64_t until_ns; /* UINT64_MAX: its own */
	/* a copy of the file up to the end of its records */
	uint8_t *bytes;
	size_t size;
	struct tally_jit_dump *dump;
	size_t seen;        /* number of the dump's places that are valid now */
	struct tally_unwind_table **tables; /* by function; NULL: not yet made */
};

/* Counts the reasons why dumps could not be used, for one line to the user. */
struct tally_jit_gaps {
	size_t missing, changed, distrusted, unreadable, other_clock;
	char file[256]; /* the first such dump */
};

struct tally_jits {
	struct { struct tally_jit *items; size_t count, capacity; } items;
	struct tally_map of_process; /* pid → 1 + index of the newest; 0: forgotten */
	/* the recording's clock is not CLOCK_MONOTONIC: code counts as valid from the start */
	bool has_no_times;
	struct tally_jit_gaps gaps;
	uint64_t bytes_read; /* of all dumps, without holes */
	/* Optional.  Called before a dump's file is read; returns the dump that the file once was,
	 * without code (the caller owns it), or NULL. */
	struct tally_jit_dump *(*recall)(void *context, uint32_t file);
	void *context;
	/* dumps that were opened while recording; NULL: none, they are read where they are now */
	const struct tally_jit_files *files;
	/* read the file first, because its code is needed; call `recall` only when the file is
	 * missing */
	bool wants_code;
};

/* True if an executable mapping of a file with this name is a dump. */
bool tally_jits_is_dump(const char *path);

/* Reads the dump if `mmap`, an executable mapping of `file`, maps one.  Returns 0 or -ENOMEM. */
int tally_jits_record(struct tally_tasks *tasks, const struct tally_record_mmap *mmap,
		      uint32_t file);

/* A forked child inherits its parent's code.  Returns 0 or -ENOMEM. */
int tally_jits_fork(struct tally_tasks *tasks, uint32_t parent, uint32_t child, uint64_t time_ns);

/* Call when the process ends or executes another program. */
void tally_jits_forget(struct tally_tasks *tasks, uint32_t pid);

/* True if a dump of the process itself was read, even if it was forgotten since. */
bool tally_jits_has(const struct tally_tasks *tasks, uint32_t pid);

/* Returns true when the process's code at `time_ns` differs from the current state; then call
 * tally_jits_advance(). */
bool tally_jits_are_behind(const struct tally_tasks *tasks, uint32_t pid, uint64_t time_ns);
void tally_jits_advance(struct tally_tasks *tasks, uint32_t pid, uint64_t time_ns);

/* Finds the code that is at an address now.  Returns false when there is none.  `code_address` is
 * its byte among the dump's code. */
bool tally_jits_find(const struct tally_tasks *tasks, uint32_t pid, uint64_t address, uint32_t *jit,
		     uint64_t *code_address);

/* Returns the dump whose file this is, or NULL. */
const struct tally_jit *tally_jits_of_file(const struct tally_tasks *tasks, uint32_t file);

/* Returns the function (name, bytes, place) that contains a byte of the dump's code; NULL when
 * there is none, or without its bytes. */
const struct tally_jit_function *tally_jits_function(const struct tally_tasks *tasks, uint32_t file,
						     uint64_t code_address);

/* Where a function's rules have its code: not at 0, which stands for functions that the linker left
 * out. */
enum { TALLY_JIT_RULES_AT = 4096 };

/* Returns the rules to unwind a function's frames, made on first use; NULL: none. */
struct tally_unwind_table *tally_jits_unwind(const struct tally_jit *jit,
					     const struct tally_jit_function *function);

/* Makes the same anew.  Returns NULL also without memory.  The function's bytes must outlive the
 * rules. */
struct tally_unwind_table *tally_jit_table(const struct tally_jit_function *function,
					   unsigned machine);

void tally_jits_free(struct tally_jits *jits); /* accepts NULL */

/* Opens the dump that a record names, by its path, then by the same path below the process's root
 * while the process runs.  Returns a descriptor, or -1 with the counter of the reason in *gap. */
int tally_jit_open(const struct tally_record_mmap *mmap, struct tally_jit_gaps *gaps,
		   size_t **gap);

/* Dumps that are held open from their mapping on: a process may remove its dump, and a container's
 * disappears with it.  Zero-initialised is empty.  Not thread-safe. */
struct tally_jit_file {
	uint32_t path, major, minor; /* `path`: string id */
	uint64_t inode;
	int fd;
};

struct tally_jit_files {
	struct tally_strings paths;
	struct { struct tally_jit_file *items; size_t count, capacity; } items;
};

/* Opens the dump if the record maps one that is not open yet.  Returns 0 or -ENOMEM. */
int tally_jit_files_record(struct tally_jit_files *files, const struct tally_record *record);
/* Returns the dump's descriptor, or -1. */
int tally_jit_files_find(const struct tally_jit_files *files, const struct tally_record_mmap *mmap);
void tally_jit_files_release(struct tally_jit_files *files);

/* The dumps that JITs write while they are recorded: rules to unwind their code by.
 *
 * Dumps are found by MMAP records, and read as they grow, a bounded piece in each pass
 * over the rings, when a sample of their process comes.  Names and lines are read afterwards, from
 * the whole dump.  Not thread-safe.
 */

struct tally_live_jits *tally_live_jits_new(void);       /* NULL: no memory */
void tally_live_jits_free(struct tally_live_jits *jits); /* NULL is fine */

/* Takes each record, after the tasks have: opens the dump that it names, and forgets those
 * of a process that runs another program. */
void tally_live_jits_record(struct tally_live_jits *jits, const struct tally_record *record);

/* A new pass over the rings begins.  Forgets the dumps of processes that the tasks have
 * forgotten. */
void tally_live_jits_pass(struct tally_live_jits *jits, const struct tally_tasks *tasks);

/* Reads what the process's dumps have grown by since the last pass.  New code gives the process's
 * mappings a new generation. */
void tally_live_jits_look(struct tally_live_jits *jits, struct tally_tasks *tasks, uint32_t pid);

/* Returns true when the process has a dump. */
bool tally_live_jits_has(const struct tally_live_jits *jits, uint32_t pid);

struct tally_live_rules {
	struct tally_unwind_table *table; /* until the next tally_live_jits_look() or _see() */
	uint64_t address;                 /* in the table */
	/* The code behind the address as the dump has it.  The caller compares: the JIT may have
	 * replaced the code without having written that yet. */
	uint8_t code[8];
	size_t code_size;
};

/* Finds the rules for an address of the process at a time (CLOCK_MONOTONIC; UINT64_MAX: now).
 * Returns false when no dump has rules for it that make sense. */
bool tally_live_jits_find(struct tally_live_jits *jits, uint32_t pid, uint64_t address,
			  uint64_t time_ns, struct tally_live_rules *out);

/* Code that processes made at run time, read from their memory while they are recorded.
 *
 * Code without a file has no unwind rules, but its instructions tell enough (unwind/unwind.h).
 * Pages are kept until the next pass over the rings, and replaced code is read again after that.
 * Not thread-safe.
 */

/* `read` works like process_vm_readv(2) for one piece: it returns the bytes read from `address` on,
 * possibly fewer than `size`, or -errno.  Returns NULL without memory. */
struct tally_made_code *tally_made_code_new(long (*read)(void *context, uint32_t pid,
							 uint64_t address, void *out, size_t size),
					    void *context);
void tally_made_code_free(struct tally_made_code *code); /* accepts NULL */

/* Returns a memo of the frames found in code, or NULL: it is optional.  It is cleared from time to
 * time. */
struct tally_code_memo *tally_made_code_memo(struct tally_made_code *code);

/* Forgets the pages. */
void tally_made_code_pass(struct tally_made_code *code);

/* Copies bytes of a process's memory.  Returns how many, from `address` on. */
size_t tally_made_code_read(struct tally_made_code *code, uint32_t pid, uint64_t address, void *out,
			    size_t size);

/* Holds the perf maps of recorded processes open.
 *
 * A map may be missing by the time names are needed: its process deletes it at the end, a
 * container's file system vanishes with the container, or a runtime replaces the map (by renaming)
 * and so drops the old one's lines.  An open file survives all of these.  So the recorder opens
 * maps early: it looks for them when a process maps executable memory without a file.  The map is
 * read later, when names are needed; an open descriptor also gives the lines written since.
 *
 * When code replaces other code, the later line is right from then on.  But runtimes make code
 * while they end, over code that was hot until then.  So lines of the last moments don't replace
 * the names before them.
 *
 * At most 256 maps are held, eight per process.  For others, only the file at their path in the end
 * is read.  Not thread-safe.
 */

enum { TALLY_PERF_MAPS_OF_PROCESS = 8 };

struct tally_perf_map_watch {
	uint32_t pid;
	uint32_t count;
	int fds[TALLY_PERF_MAPS_OF_PROCESS]; /* oldest first */
	uint64_t seen[2]; /* bytes of the newest map at the last look but one, and at the last */
	bool has_ended;
	/* size of the newest map when the leader ended; if it grows, threads still run */
	uint64_t ended_size;
	uint64_t next_ns, pause_ns; /* time of the next look, and the pause after it */
};

/* Zero-initialised is empty. */
struct tally_perf_maps {
	struct { struct tally_perf_map_watch *items; size_t count, capacity; } watches;
	struct tally_map of_process; /* pid → watch */
	size_t held;
	uint64_t next_ns;  /* no watch is due before this time */
	uint64_t began_ns; /* when the first record was taken, CLOCK_REALTIME */
};

/* Takes MMAP, FORK and EXIT records, after the tasks did.  Returns 0 or -ENOMEM. */
int tally_perf_maps_record(struct tally_perf_maps *maps, const struct tally_tasks *tasks,
			   const struct tally_record *record);

/* Looks for the maps of processes that are due, or of all living ones (`last`). */
void tally_perf_maps_look(struct tally_perf_maps *maps, uint64_t now_ns, bool last);

/* Appends the held maps of a process, oldest first.  In the newest map, the lines of the last
 * moments (since the last look but one) come before the others.  Readers let later lines win, so
 * the older lines keep their names.  Returns 1; 0 when no map is held; -errno: -EFBIG if a map has
 * more than `maximum` bytes. */
int tally_perf_maps_text(const struct tally_perf_maps *maps, uint32_t pid, struct tally_buffer *out,
			 size_t maximum);

void tally_perf_maps_release(struct tally_perf_maps *maps);

/* Returns when a living process began, CLOCK_REALTIME, to a second; 0: it has ended. */
uint64_t tally_process_start_ns(uint32_t pid);

/* A process's perf map: /tmp/perf-PID.map, with /tmp and the pid as the process sees them. */

/* Opens the map.  Returns a descriptor; -ENOENT, also when the map was last written before the
 * process began; -EPERM when the map must not be believed.  When the process has ended, its start
 * is unknown: then the map must be younger than not_before_ns (CLOCK_REALTIME; 0: any age). */
int tally_perf_map_open(uint32_t pid, uint64_t not_before_ns);

#endif
