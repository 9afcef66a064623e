/* Tasks as /proc shows them: proc(5).
 *
 * Parsers take text.  Readers read /proc, and return -ESRCH for a task that has ended and -EACCES
 * for one that may not be inspected.  A task can end between two reads: code that walks the list
 * must expect -ESRCH. */
#ifndef TALLY_MACHINE_PROCFS_H
#define TALLY_MACHINE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	TALLY_PROC_PATH_MAX = 4096 + 16, /* PATH_MAX, and " (deleted)" behind it */
	/* 16, except for kernel workers: the name of their work follows */
	TALLY_PROC_COMM_MAX = 64
};

struct tally_proc_map {
	uint64_t start, end, offset; /* end: the first byte behind it */
	int protection;              /* PROT_* of mmap(2) */
	bool shared;
	uint32_t major, minor;
	uint64_t inode;
	/* As in the kernel's MMAP2 records: "/usr/bin/a b", "[heap]", "/memfd:x (deleted)", "" for
	 * anonymous memory.  Newlines are those of the file's name, not escaped. */
	char path[TALLY_PROC_PATH_MAX];
};

/* Parses the line at *text, which ends at `end` or at a newline, and moves *text behind it.  Skips
 * lines that are no mapping.  Returns false at the end of the text. */
bool tally_proc_maps_next(const char **text, const char *end, struct tally_proc_map *out);

/* Returns a thread of the process that still has the process's memory, root and mappings in /proc:
 * `pid` itself, or another thread when the main thread has ended.  Returns `pid` if there is none.
 * `pid` may also be a thread's id. */
pid_t tally_proc_living_thread(pid_t pid);

/* Calls `visit` for each mapping of `pid`, in order of address, until it returns non-zero.  Returns
 * that value, 0 at the end, or -errno. */
int tally_proc_maps(pid_t pid, int (*visit)(void *context, const struct tally_proc_map *map),
		    void *context);

struct tally_proc_status {
	pid_t tgid, parent;             /* -1: not in the text */
	uid_t uid;                      /* effective */
	int seccomp;                    /* 0 off, 1 strict, 2 filter, -1 not in the text */
	char name[TALLY_PROC_COMM_MAX]; /* unescaped */
};

void tally_proc_status_parse(const char *text, struct tally_proc_status *out);
/* `pid` may also be a thread's id.  Returns 0 or -errno. */
int tally_proc_status(pid_t pid, struct tally_proc_status *out);

/* Reads the name of a task (process or thread).  Returns its length, or -errno. */
int tally_proc_comm(pid_t tid, char *out, size_t size);
/* True if the process has this name: as the kernel keeps it, or the last part of its argv[0]. */
bool tally_proc_is_named(pid_t pid, const char *name);

struct tally_pid_list {
	pid_t *items; /* ascending; malloc'd */
	size_t count, capacity;
};

int tally_proc_pids(struct tally_pid_list *out);               /* all processes */
/* the threads of a process, the main one included */
int tally_proc_threads(pid_t pid, struct tally_pid_list *out);
void tally_pid_list_release(struct tally_pid_list *list);

/* The loaded kernel modules: proc(5), /proc/modules.  The parser takes text; it keeps nothing
 * between calls. */

enum { TALLY_LOADED_MODULE_NAME_BYTES = 64 };

struct tally_loaded_module {
	char name[TALLY_LOADED_MODULE_NAME_BYTES]; /* "nf_tables" */
	uint64_t start, end; /* end: the first byte behind the module, or the next module's start */
};

struct tally_loaded_modules {
	/* by start; the caller frees it with tally_vector_release() */
	struct tally_loaded_module *items;
	size_t count, capacity;
};

/* Adds the modules of a NUL-terminated text, except those whose addresses the kernel hides from the
 * reader (kptr_restrict).  The kernel gives the size of all of a module's memory, which need not be
 * in one piece: so an end is cut where another module begins.  Returns 0 or -ENOMEM. */
int tally_loaded_modules_parse(const char *text, struct tally_loaded_modules *out);

#endif
