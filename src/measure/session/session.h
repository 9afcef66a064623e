/* What counting and recording share. */
#ifndef TALLY_SESSION_H
#define TALLY_SESSION_H

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "event/event.h"
#include "machine/machine.h"
#include "provider/provider.h"
#include "session/session_internal.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/types.h>

/* The target to count or record: a command to start, running tasks, CPUs, or everything. */

struct tally_target {
	struct tally_pid_list pids;    /* requested processes, with all their threads */
	/* has a name: `pids` are the processes in its cgroups */
	struct tally_container container;
	struct tally_pid_list threads; /* requested single threads */
	/* include the processes that `pids` started, and all their descendants */
	bool takes_descendants;
	/* pids of the descendants found so far; filled even when they are not included */
	struct tally_map descendants;
	struct tally_pid_list tids;    /* all threads to open events on; filled by resolve */
	struct tally_map descendant_tids; /* the members of `tids` that belong to descendants */
	bool has_user;                 /* all processes of `user` that run now */
	uid_t user;
	bool all;                      /* every task, by CPUs */
	bool every_thread;             /* every task that runs now, opened one by one */
	/* `cpus` was requested (implies `all` unless tasks were requested) */
	bool has_cpu_list;
	/* CPUs to open events on; with `all` and no list: the online ones */
	struct tally_cpu_list cpus;
	char **command;                /* argv, ends with NULL; NULL: none.  Not owned. */
};

#define TALLY_TARGET_INIT { .all = false }

/* Add the pids in a list such as "12,34".  Return -EINVAL with a message that names the bad
 * word. */
int tally_target_add_pids(struct tally_target *target, const char *list, struct tally_error *err);
int tally_target_add_threads(struct tally_target *target, const char *list,
			     struct tally_error *err);
/* Adds the processes of a container or service; see tally_container_find(). */
int tally_target_add_container(struct tally_target *target, const char *name,
			       struct tally_error *err);
/* Sets the user by name or number. */
int tally_target_set_user(struct tally_target *target, const char *name, struct tally_error *err);
int tally_target_set_cpus(struct tally_target *target, const char *list, struct tally_error *err);

static inline bool tally_target_has_tasks(const struct tally_target *target)
{
	return target->pids.count || target->container.name || target->threads.count ||
	       target->has_user || target->every_thread;
}

/* Checks that the parts fit together, and lists the threads and the CPUs.  An empty target becomes
 * the whole system.  Returns 0, -EINVAL, -ESRCH (no such process), … */
int tally_target_resolve(struct tally_target *target, struct tally_error *err);

/* Lists the threads again.  Appends new ones to `tids` and returns how many, or -errno.  Without
 * inheritance, this finds threads that appear while events are opened on others. */
long tally_target_refresh(struct tally_target *target);

/* Returns how many processes entered the container's cgroups later without being started by one
 * that was listed: their events were not opened.  0 without a container. */
size_t tally_target_late_count(const struct tally_target *target);

/* True if the thread was not requested itself but belongs to a process that `pids` started. */
static inline bool tally_target_is_descendant(const struct tally_target *target, pid_t tid)
{
	return tally_map_get(&target->descendant_tids, (uint64_t)tid) != NULL;
}

/* Writes the title of the table: "'sleep 1'", "process 12", "CPUs 0-3", "the whole system". */
void tally_target_text(const struct tally_target *target, char *out, size_t size);

/* Writes a note about the descendants: "process 12 has 2 child processes, which are …"; "" without
 * descendants. */
void tally_target_descendants_text(const struct tally_target *target, char *out, size_t size);

void tally_target_release(struct tally_target *target);

/* Cgroups: opens one by name, since events are opened on its directory's descriptor, and lists all
 * of them. */

/* Returns a descriptor to open events on with TALLY_FLAG_PID_CGROUP; the caller closes it.  `name`
 * is a path below the mount of the hierarchy for perf events: version 1's with the controller
 * perf_event if it is mounted, otherwise version 2's.  Returns -ENOENT with a hint when there is no
 * cgroup of that name. */
int tally_cgroup_open(const char *name, struct tally_error *err);

/* The same with `mounts`, a text in the format of /proc/PID/mounts. */
int tally_cgroup_open_among(const char *mounts, const char *name, struct tally_error *err);

/* Calls `visit` for the directory `fd` of a hierarchy and those below it, parents first, with a
 * descriptor that is open during the call, and the path below `fd`: "/", "/system.slice".  A
 * non-zero result of `visit` ends the walk and is returned; otherwise returns 0.  Closes `fd`. */
int tally_cgroup_walk(int fd, int (*visit)(void *context, int fd, const char *path), void *context);

/* Calls `visit` for each cgroup of that hierarchy, parents first, with its id, as in samples and
 * CGROUP records, and its path: "/", "/system.slice".  A non-zero result of `visit` ends the walk
 * and is returned; otherwise returns 0, or -ENOENT when no hierarchy is mounted.  Skips cgroups
 * that appear or vanish meanwhile, or that this user can't read. */
int tally_cgroup_list(int (*visit)(void *context, uint64_t id, const char *path), void *context);

/* Looks for the program that a command names, like execvp(3). */

/* True if execvp(3) would find it with this PATH; NULL: the default one. */
bool tally_program_is_there(const char *path, const char *command);

/* Starts a command that waits before exec until the caller lets it go.
 *
 * The child is forked at once and stops before exec(2), so that events can be opened on it;
 * tally_spawn_go() lets it continue.  The child then writes what it has used so far (its share of
 * our own fork) and calls execvp(3).  The socket between the two closes by itself when that
 * succeeds, and carries errno when it fails.  Signals and limits are those that the caller had when
 * it called tally_spawn_prepare(), even if the caller changes its own later.
 */

struct tally_spawn {
	pid_t pid; /* 0: none */
	int control_fd;
	struct rusage before; /* used by the child before exec */
};

#define TALLY_SPAWN_INIT { .control_fd = -1 }

/* A shell's exit statuses for a command that can't be executed. */
enum { TALLY_EXIT_NOT_EXECUTABLE = 126, TALLY_EXIT_NOT_FOUND = 127 };

/* Finds the file that execvp(3) would run for `name`, by the caller's PATH.  Returns 0; -ENOENT,
 * -EACCES if it may not be executed, or -ENAMETOOLONG. */
int tally_spawn_find(const char *name, char *path, size_t size);

/* Gets the arguments to execute for `command`: its own, or those of the provider's program that
 * runs it.  In the second case this looks the command up, so that a missing command gives the same
 * message.  Returns 0 or -errno. */
int tally_spawn_command(struct tally_provider *provider, char **command, char ***out,
			struct tally_error *err);

/* Forks.  `provider` (may be NULL) prepares the child for exec, `command` is what
 * tally_spawn_command() returned, `mask` the signal mask for the command.  Returns 0 or -errno. */
int tally_spawn_prepare(struct tally_spawn *spawn, struct tally_provider *provider, char **command,
			const sigset_t *mask, struct tally_error *err);

/* Lets the command start, and returns once it has.  Returns 0, or -errno of exec with a message
 * (the child is reaped). */
int tally_spawn_go(struct tally_spawn *spawn, char **command, struct tally_error *err);

/* Returns the exit status for a result of tally_spawn_go(): 127 or 126. */
int tally_spawn_failure_status(int code);

/* Returns the exit status for wait4(2)'s status: 128 + n for a signal. */
int tally_spawn_exit_status(int wait_status);

/* Ends a child that has not been told to go, and closes the socket.  A running command is left
 * alone. */
void tally_spawn_release(struct tally_spawn *spawn);

/* Delivers signals as readable data instead of by handlers: a child's end, and all signals whose
 * default action would end a session without its results.
 *
 * Signals end the session, except SIGUSR1 and SIGUSR2.  Not taken: SIGKILL, faults of the program,
 * SIGPIPE and SIGXFSZ, after which a write fails.
 *
 * They are blocked from open to release; a command gets the original mask (`before`).  An ending
 * signal within 200 ms of another of the same number is dropped: timeout(1) signals its child and
 * then the child's group.
 */

struct tally_signals {
	int fd;
	sigset_t taken;            /* signals delivered here */
	sigset_t before;           /* the signal mask before open */
	bool ignored[65];          /* by number: it was ignored before open */
	/* by number: time of the last one that counted; CLOCK_MONOTONIC */
	uint64_t first_ns[65];
	struct sigaction child_before;
};

struct tally_signal {
	int number;
	/* The number by which the session's command is told, if a signal ends the session: SIGTERM
	 * for those that are about tally alone, as SIGXCPU. */
	int passed_on;
	bool from_terminal; /* sent to the whole foreground group, so it need not be passed on */
	/* It ends the session.  A child's end, SIGUSR1 and SIGUSR2 don't, nor one that was ignored
	 * before open and comes from the terminal (nohup, background job) or is about tally
	 * alone. */
	bool ends;
};

int tally_signals_open(struct tally_signals *signals, struct tally_error *err);

/* Gets the next signal without waiting.  Returns 1, or 0 when there is none. */
int tally_signals_next(struct tally_signals *signals, struct tally_signal *out);

void tally_signals_release(struct tally_signals *signals);

/* `--control`: another program controls the session by lines in a FIFO or on a descriptor, as with
 * `perf … --control`.
 *
 *     enable | disable [EVENT]     all events, or the one of that name
 *     snapshot                     what a flight recorder has goes to the file
 *     stop                         the session ends as after Ctrl-C
 *     ping                         nothing except the answer
 *     evlist [-v|-g|-F]            the events, on standard error
 *
 * Lines end with '\n' or NUL.  Each command is answered once it is done, with perf's five bytes:
 * "ack\n" and a NUL.  "fifo:CTL[,ACK]" gives paths of existing FIFOs: the sender must know when
 * they are there, so it creates them.  They are opened for reading and writing, so that senders may
 * come and go.  "fd:CTL[,ACK]" gives inherited descriptors.
 */

enum tally_control_verb {
	TALLY_CONTROL_ENABLE,
	TALLY_CONTROL_DISABLE,
	TALLY_CONTROL_SNAPSHOT,
	TALLY_CONTROL_STOP,
	TALLY_CONTROL_PING,
	TALLY_CONTROL_EVLIST,
	TALLY_CONTROL_UNKNOWN /* report it; it gets no answer, as with perf */
};

struct tally_control_command {
	enum tally_control_verb verb;
	const char *
		argument; /* event's name, "-v", … or ""; unknown: the line; until the next call */
};

struct tally_control {
	int fd, ack_fd; /* −1: none, or the other side has closed it */
	bool owns;      /* the descriptors were opened here */
	bool is_too_long;
	size_t length;  /* of the incomplete line */
	char line[256];
};

#define TALLY_CONTROL_INIT { .fd = -1, .ack_fd = -1 }

/* Opens what `spec` names.  Returns 0; -EINVAL with a message for an invalid spec; -ENOENT and
 * other errors of the files. */
int tally_control_open(struct tally_control *control, const char *spec, struct tally_error *err);

/* Gets the next command.  Returns 1, or 0 when there is none; never waits.  Poll `control->fd` for
 * POLLIN (poll(2) ignores −1), then call this until it returns 0.  When the other side of a pipe
 * has gone, fd becomes −1. */
int tally_control_next(struct tally_control *control, struct tally_control_command *out);

/* Answers a command unless it is unknown.  Skips the answer without a reader, or if the pipe is
 * full. */
void tally_control_acknowledge(struct tally_control *control,
			       const struct tally_control_command *command);

/* Closes the descriptors that were opened here. */
void tally_control_release(struct tally_control *control);

/* What a session waits for besides its events: signals, the commands of --control, and CPUs that come
 * and go.  `fd` is readable while there is any, also if a control's regular file is not. */
struct tally_session_inputs {
	struct tally_signals *signals;
	struct tally_control *control; /* NULL: none */
	int fd;
	int hotplug_fd; /* −1: CPUs are not followed */
};

#define TALLY_SESSION_INPUTS_INIT ((struct tally_session_inputs){ .fd = -1, .hotplug_fd = -1 })

struct tally_session_handlers {
	void (*on_signal)(void *context, const struct tally_signal *signal);
	/* Returns 0, or a positive number to take no more commands now, or -errno with `err` set.
	 * The command is answered in each case. */
	int (*on_command)(void *context, const struct tally_control_command *command,
			  struct tally_error *err);
};

/* Opens the descriptors.  `signals` and `control` (or NULL) are open, and outlive the inputs.  Returns
 * 0 or -errno. */
int tally_session_inputs_open(struct tally_session_inputs *inputs, struct tally_signals *signals,
			      struct tally_control *control, bool follows_cpus,
			      struct tally_error *err);

/* Passes all signals that have arrived to the handlers, then the commands; never waits.  Returns 0 or
 * the error of a command. */
int tally_session_inputs_take(struct tally_session_inputs *inputs,
			      const struct tally_session_handlers *handlers, void *context,
			      struct tally_error *err);

/* True if CPUs came or went since the last call. */
bool tally_session_inputs_cpus_changed(const struct tally_session_inputs *inputs);

/* Closes the descriptors that were opened here.  May be called again. */
void tally_session_inputs_close(struct tally_session_inputs *inputs);

/* Filters on tracepoints' fields: --filter's conditions for the events of an -e, set on the open
 * events. */

/* Adds a condition to the filter; all conditions of one -e must hold. Returns 0 or -ENOMEM. */
int tally_event_filter_add(struct tally_arena *arena, const char **filter, const char *condition,
			   struct tally_error *err);

/* Gives the filter to the list's events from `first` on, which must be tracepoints. Returns 0 or
 * -EINVAL. */
int tally_event_filter_assign(struct tally_event_list *events, size_t first, const char *filter,
			      struct tally_error *err);

/* Makes the kernel deliver, or count, only what the event's filter lets through.  Returns 0 or
 * -errno. */
int tally_event_filter_put(struct tally_provider *provider, const struct tally_event *event,
			   int handle);

/* Explains why a filter was refused with `code`: sets a message, with a position if one can be
 * found, and returns `code`. */
int tally_event_filter_explain(const struct tally_event *event, int code, struct tally_error *err);

/* Closes many tracepoints without making the user wait.
 *
 * When the last event of a tracepoint is closed, the kernel waits until no CPU runs its probe any
 * more.  It does so for each tracepoint, which takes some 40 ms each and 25 s for syscalls:*,
 * although all output is written.  So a child process inherits the descriptors and outlives us; its
 * end closes them for good.  The child holds nothing else: no terminal, and no pipe whose reader
 * waits for its end.
 */

enum { TALLY_CLOSE_APART_MIN = 8 /* tracepoints; for fewer, a process is not worth it */ };

/* Forks a child that keeps these descriptors of perf events open, so that closing them here is
 * fast.  The last process to close them has to wait.  So the child ends only when the caller closes
 * the returned descriptor, which it does after closing the others.  Returns -1 when no child can be
 * made. */
int tally_close_apart(const int *events, size_t count);

#endif
