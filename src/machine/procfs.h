/* Tasks as /proc shows them: proc(5).
 *
 * Parsers take text; readers go to /proc and say -ESRCH for a task that is gone and -EACCES for one
 * that may not be looked at.  A task can end between two reads: whoever walks the list expects
 * -ESRCH.
 */
#ifndef TALLY_MACHINE_PROCFS_H
#define TALLY_MACHINE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	TALLY_PROC_PATH_MAX = 4096 + 16, /* PATH_MAX, and " (deleted)" behind it */
	/* 16 but for kernel workers, whose work is named behind it */
	TALLY_PROC_COMM_MAX = 64
};

struct tally_proc_map {
	uint64_t start, end, offset; /* end: first byte behind */
	int protection;              /* PROT_* of mmap(2) */
	bool shared;
	uint32_t major, minor;
	uint64_t inode;
	/* As the kernel's own MMAP2 records have it: "/usr/bin/a b", "[heap]", "/memfd:x
	 * (deleted)", "" for anonymous memory.  Newlines are as in the file's name, not escaped. */
	char path[TALLY_PROC_PATH_MAX];
	/* The path ends in " (deleted)"; a file that is really called so can't be told from it. */
	bool deleted;
};

/* Parses the line at *text, ending at `end` or at a newline, and moves *text behind it.  False when
 * the text is at its end; lines that are no mapping are passed over. */
bool tally_proc_maps_next(const char **text, const char *end, struct tally_proc_map *out);

/* Calls `visit` for each mapping of `pid`, in order of address, until it gives non-zero, which is
 * returned. */
int tally_proc_maps(pid_t pid, int (*visit)(void *context, const struct tally_proc_map *map),
		    void *context);

struct tally_proc_status {
	pid_t pid, tgid, parent, tracer; /* -1: the text doesn't say */
	uid_t uid;                       /* effective */
	uint64_t capabilities;           /* effective, a bit each */
	int seccomp;                     /* 0 off, 1 strict, 2 filter, -1 not said */
	int seccomp_filters;             /* -1 not said (before Linux 5.9) */
	bool no_new_privileges;
	char name[TALLY_PROC_COMM_MAX];  /* escapes undone */
};

void tally_proc_status_parse(const char *text, struct tally_proc_status *out);
/* a thread's id will do; 0 or -errno */
int tally_proc_status(pid_t pid, struct tally_proc_status *out);

/* The name of a task (process or thread): its length, or -errno. */
int tally_proc_comm(pid_t tid, char *out, size_t size);

/* The path of the program that a process runs (as readlink of /proc/PID/exe): its length, or
 * -errno; -ENOENT for kernel threads. */
int tally_proc_exe(pid_t pid, char *out, size_t size);

struct tally_pid_list {
	pid_t *items; /* ascending; malloc'd */
	size_t count, capacity;
};

int tally_proc_pids(struct tally_pid_list *out);               /* all processes */
/* the threads of one, itself among them */
int tally_proc_threads(pid_t pid, struct tally_pid_list *out);
void tally_pid_list_release(struct tally_pid_list *list);

#endif
