/* The code that JITs made in the recorded processes, when they left a dump of it (jit-PID.dump).
 *
 * A process maps its dump executable so that recordings mention it.  From then on, the contents of
 * its private memory depend on the time.  A place in such code is a byte of the dump's code
 * (symbol/jit_dump.h), in the dump's file; it stays the same when other code replaces it.
 *
 * A forked child runs its parent's code until it makes its own, which a dump of its own describes.
 * What the parent's JIT makes later is not in the child's memory.
 */
#ifndef TALLY_TASK_JIT_H
#define TALLY_TASK_JIT_H

#include "symbol/jit_dump.h"
#include "task/tasks.h"

struct tally_unwind_table;

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

#endif
