/* The code that JITs made in the recorded processes, where they left a dump of it (jit-PID.dump).
 *
 * A process maps its dump executable so that recordings tell of it.  From then on what its private
 * memory holds depends on the time: places of such code are bytes of the dump's code
 * (symbol/jit_dump.h), in the dump's file, and stay the same when other code comes to lie there.
 */
#ifndef TALLY_TASK_JIT_H
#define TALLY_TASK_JIT_H

#include "base/buffer.h"
#include "symbol/jit_dump.h"
#include "task/tasks.h"

struct tally_unwind_table;

struct tally_jit {
	uint32_t pid, file; /* of the tasks' files: the dump */
	uint32_t older;     /* of the process, + 1: another dump of it; 0: none */
	struct tally_buffer bytes;
	struct tally_jit_dump *dump;
	size_t seen;        /* so many of the dump's places are there by now */
	struct tally_unwind_table **tables; /* by function; NULL: none yet */
};

/* Why dumps could not be used, for a line to the user. */
struct tally_jit_gaps {
	size_t missing, changed, distrusted, unreadable, other_clock;
	char file[256]; /* the first of them */
};

struct tally_jits {
	struct { struct tally_jit *items; size_t count, capacity; } items;
	struct tally_map of_process; /* pid → the youngest, + 1; 0: no more */
	/* the recording's clock is not CLOCK_MONOTONIC: code counts as there from the start */
	bool has_no_times;
	struct tally_jit_gaps gaps;
	/* Asked before a dump's file is read; NULL: nobody.  The dump that the file was, which is
	 * taken over and has no code, or NULL. */
	struct tally_jit_dump *(*recall)(void *context, uint32_t file);
	void *context;
	/* the file is read all the same, for who wants the code; `recall` is asked where it is not
	 * there */
	bool wants_code;
};

/* Is a file of the name a dump, if it is mapped executable? */
bool tally_jits_is_dump(const char *path);

/* `mmap` told of an executable mapping of `file`: reads the dump if it is one.  0 or -ENOMEM. */
int tally_jits_see(struct tally_tasks *tasks, const struct tally_record_mmap *mmap, uint32_t file);

/* The process ends, or runs another program. */
void tally_jits_forget(struct tally_tasks *tasks, uint32_t pid);

/* Whether a dump of the process was read, though it may have been forgotten since. */
bool tally_jits_knew(const struct tally_tasks *tasks, uint32_t pid);

/* Would the time of a sample change what the process's code is?  Then tally_jits_advance() makes it
 * so. */
bool tally_jits_are_behind(const struct tally_tasks *tasks, uint32_t pid, uint64_t time_ns);
void tally_jits_advance(struct tally_tasks *tasks, uint32_t pid, uint64_t time_ns);

/* The code at an address as of now: false when there is none.  `code_address` is the byte of the
 * dump's code. */
bool tally_jits_find(const struct tally_tasks *tasks, uint32_t pid, uint64_t address, uint32_t *jit,
		     uint64_t *code_address);

/* The dump that a file is, or NULL. */
const struct tally_jit *tally_jits_of_file(const struct tally_tasks *tasks, uint32_t file);

/* The function (its name, bytes, and place) of a byte of the dump's code; NULL: none, or its bytes
 * are not there. */
const struct tally_jit_function *tally_jits_function(const struct tally_tasks *tasks, uint32_t file,
						     uint64_t code_address);

/* The rules to unwind a function's frames by, made on first use; NULL: none. */
struct tally_unwind_table *tally_jits_unwind(const struct tally_jit *jit,
					     const struct tally_jit_function *function);

void tally_jits_free(struct tally_jits *jits); /* NULL is fine */

#endif
