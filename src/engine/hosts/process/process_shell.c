/* system(3) and popen(3), so that the shell and what it starts are counted.
 *
 * libc's own functions start the shell by a call inside libc, with `environ`.  So the variables of
 * process_environment.c can't be lent to it from outside: changing `environ` meanwhile would race
 * with setenv(3) in other threads.  Without a plan, libc's functions are called.
 *
 * In glibc, fclose(3) of a stream from popen(3) is pclose(3), so fclose() is replaced too.  It
 * costs other streams one look at a counter. */
#include "process/process_agent.h"
#include "process/process_call.h"
#include "process/process_exec.h"
#include "process/process_next.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_NO_SHELL = 127 << 8 };

static bool has_plan(void)
{
	return process_agent.plan && !process_agent.is_ending;
}

static int spawn_shell(pid_t *pid, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, const char *command)
{
	char *const argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
			       (char *)(uintptr_t)command, NULL };
	return process_exec_spawn_shell(pid, actions, attributes, argv);
}

/* --- system ----------------------------------------------------------------- */

/* While any thread is in system(), the process ignores SIGINT and SIGQUIT. */
static pthread_mutex_t ignoring_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned ignoring;
static struct sigaction old_interrupt, old_quit;

static void ignore_signals(void)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };
	pthread_mutex_lock(&ignoring_lock);
	if (!ignoring++) {
		sigaction(SIGINT, &ignored, &old_interrupt);
		sigaction(SIGQUIT, &ignored, &old_quit);
	}
	pthread_mutex_unlock(&ignoring_lock);
}

static void restore_signals(void)
{
	pthread_mutex_lock(&ignoring_lock);
	if (!--ignoring) {
		sigaction(SIGINT, &old_interrupt, NULL);
		sigaction(SIGQUIT, &old_quit, NULL);
	}
	pthread_mutex_unlock(&ignoring_lock);
}

struct running {
	pid_t pid;
	sigset_t mask;
};

/* The thread is cancelled while it waits. */
static void cancelled(void *argument)
{
	const struct running *running = argument;
	int cancel_state;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	kill(running->pid, SIGKILL);
	while (waitpid(running->pid, NULL, 0) < 0 && errno == EINTR)
		;
	restore_signals();
	pthread_sigmask(SIG_SETMASK, &running->mask, NULL);
	pthread_setcancelstate(cancel_state, NULL);
}

static int wait_for_shell(struct running *running)
{
	int status;
	pthread_cleanup_push(cancelled, running);
	for (;;) {
		pid_t pid = waitpid(running->pid, &status, 0);
		if (pid == running->pid)
			break;
		if (pid >= 0 || errno != EINTR) {
			status = -1;
			break;
		}
	}
	pthread_cleanup_pop(0);
	return status;
}

static int run(const char *command)
{
	struct running running;
	posix_spawnattr_t attributes;
	sigset_t child, reset;
	ignore_signals();
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, &running.mask);
	sigemptyset(&reset);
	if (old_interrupt.sa_handler != SIG_IGN)
		sigaddset(&reset, SIGINT);
	if (old_quit.sa_handler != SIG_IGN)
		sigaddset(&reset, SIGQUIT);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &running.mask);
	posix_spawnattr_setsigdefault(&attributes, &reset);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	int error = spawn_shell(&running.pid, NULL, &attributes, command);
	posix_spawnattr_destroy(&attributes);
	int status = STATUS_NO_SHELL;
	if (!error)
		status = wait_for_shell(&running);
	int wait_error = errno;
	restore_signals();
	pthread_sigmask(SIG_SETMASK, &running.mask, NULL);
	errno = error ? error : wait_error;
	return status;
}

PROCESS_EXPORT int system(const char *command)
{
	if (!has_plan())
		return PROCESS_NEXT(system)(command);
	if (!command)
		return run("exit 0") == 0;
	return run(command);
}

/* --- popen ------------------------------------------------------------------ */

enum { STREAMS = 256 };

/* A stream whose `pid` is 0 is free.  The thread that replaces 0 by -1 owns the slot. */
static struct stream {
	pid_t pid;
	int fd;
	FILE *file;
} streams[STREAMS];
static unsigned open_streams;

static struct stream *reserve_stream(void)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		pid_t free_pid = 0;
		if (__atomic_compare_exchange_n(&streams[i].pid, &free_pid, -1, false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
			__atomic_fetch_add(&open_streams, 1, __ATOMIC_SEQ_CST);
			return &streams[i];
		}
	}
	return NULL;
}

static void free_stream(struct stream *stream)
{
	__atomic_store_n(&stream->file, NULL, __ATOMIC_SEQ_CST);
	__atomic_store_n(&stream->pid, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(&open_streams, 1, __ATOMIC_SEQ_CST);
}

/* Returns the stream, which then belongs to the caller, or NULL if it isn't of popen(). */
static struct stream *take_stream(const FILE *file)
{
	if (!__atomic_load_n(&open_streams, __ATOMIC_SEQ_CST))
		return NULL;
	for (unsigned i = 0; i < STREAMS; i++) {
		FILE *expected = (FILE *)(uintptr_t)file;
		if (__atomic_compare_exchange_n(&streams[i].file, &expected, NULL, false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return &streams[i];
	}
	return NULL;
}

/* Returns 'r' or 'w', and whether the parent's end is closed by an exec; 0: the mode is wrong. */
static char read_mode(const char *mode, bool *closes)
{
	bool reads = false, writes = false;
	*closes = false;
	for (; *mode; mode++) {
		if (*mode == 'r')
			reads = true;
		else if (*mode == 'w')
			writes = true;
		else if (*mode == 'e')
			*closes = true;
		else
			return 0;
	}
	if (reads == writes)
		return 0;
	return reads ? 'r' : 'w';
}

/* Starts the shell with one end of the pipe.  Streams of earlier popen() calls are closed in it. */
static int start_shell(struct stream *stream, const char *command, int child_end, int child_fd)
{
	posix_spawn_file_actions_t actions;
	int error = posix_spawn_file_actions_init(&actions);
	if (error)
		return error;
	error = posix_spawn_file_actions_adddup2(&actions, child_end, child_fd);
	for (unsigned i = 0; i < STREAMS && !error; i++)
		if (__atomic_load_n(&streams[i].file, __ATOMIC_SEQ_CST) &&
		    streams[i].fd != child_fd)
			error = posix_spawn_file_actions_addclose(&actions, streams[i].fd);
	pid_t pid;
	if (!error)
		error = spawn_shell(&pid, &actions, NULL, command);
	if (!error)
		__atomic_store_n(&stream->pid, pid, __ATOMIC_SEQ_CST);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static void wait_for(pid_t pid, int *status)
{
	long ended;
	do
		ended = process_call(SYS_wait4, pid, status, 0, NULL);
	while (ended == -EINTR);
	if (ended >= 0)
		return;
	errno = (int)-ended;
	*status = -1;
}

static FILE *open_stream(struct stream *stream, const char *command, char mode, bool closes)
{
	int ends[2], status;
	if (pipe2(ends, O_CLOEXEC))
		return NULL;
	int parent_end = mode == 'r' ? ends[0] : ends[1],
	    child_end = mode == 'r' ? ends[1] : ends[0], child_fd = mode == 'r';
	FILE *file = fdopen(parent_end, mode == 'r' ? "r" : "w");
	int error = errno;
	if (file)
		error = start_shell(stream, command, child_end, child_fd);
	close(child_end);
	if (!file)
		close(parent_end);
	else if (error)
		PROCESS_NEXT(fclose)(file);
	if (!file || error) {
		errno = error;
		return NULL;
	}
	if (!closes && fcntl(parent_end, F_SETFD, 0)) {
		PROCESS_NEXT(fclose)(file);
		wait_for(stream->pid, &status);
		return NULL;
	}
	stream->fd = parent_end;
	__atomic_store_n(&stream->file, file, __ATOMIC_SEQ_CST);
	return file;
}

PROCESS_EXPORT FILE *popen(const char *command, const char *mode)
{
	bool closes;
	char direction = read_mode(mode, &closes);
	if (!direction) {
		errno = EINVAL;
		return NULL;
	}
	struct stream *stream = has_plan() ? reserve_stream() : NULL;
	if (!stream)
		return PROCESS_NEXT(popen)(command, mode);
	FILE *file = open_stream(stream, command, direction, closes);
	if (!file)
		free_stream(stream);
	return file;
}

static int close_stream(struct stream *stream, FILE *file)
{
	int status = -1;
	pid_t pid = stream->pid;
	int written = PROCESS_NEXT(fclose)(file);
	free_stream(stream);
	wait_for(pid, &status);
	if (status)
		return status;
	return written;
}

PROCESS_EXPORT int pclose(FILE *file)
{
	struct stream *stream = take_stream(file);
	if (!stream)
		return PROCESS_NEXT(pclose)(file);
	return close_stream(stream, file);
}

PROCESS_EXPORT int fclose(FILE *file)
{
	struct stream *stream = take_stream(file);
	if (!stream)
		return PROCESS_NEXT(fclose)(file);
	return close_stream(stream, file);
}
