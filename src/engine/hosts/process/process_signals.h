/* How the object hides PROCESS_SIGNAL: what process_signals.c offers to other files. */
#ifndef TALLY_PROCESS_SIGNALS_H
#define TALLY_PROCESS_SIGNALS_H

#include "process/process_agent.h"

#include <stdbool.h>
#include <stdint.h>

#define PROCESS_SIGNAL_BIT (1ull << (PROCESS_SIGNAL - 1))

/* Another name of a function that is defined in the same file. */
#if defined(__has_attribute) && __has_attribute(copy)
#define SAME_AS(name) __attribute__((alias(#name), copy(name), visibility("default")))
#else
#define SAME_AS(name) __attribute__((alias(#name), visibility("default")))
#endif

/* Returns the calling thread's signal mask as the program sees it. */
uint64_t process_signals_mask(void);
/* rt_sigprocmask(2), for programs that call it by syscall(2).  Returns 0 or -errno. */
long process_signals_call_mask(int how, const void *set, void *old, size_t size);
/* A thread begins, before its timers start: lets PROCESS_SIGNAL through.  `inherited` is the
 * creator's process_signals_mask() from before it made the thread; the mask that the creator set
 * for the thread, if any, remains in force. */
void process_signals_thread(uint64_t inherited);

/* Returns `set` without PROCESS_SIGNAL, in *copy, for a call that waits for signals or that sets
 * the mask while it waits; or `set` itself if the signal is not used or `set` is NULL. */
const sigset_t *process_signals_without(const sigset_t *set, sigset_t *copy);

/* Before the calling thread executes another program: gives mask and disposition of PROCESS_SIGNAL
 * back, since the next program inherits them.  Also around posix_spawn(3), and in a child of
 * vfork(2), where the parent is not affected.  `entered`: this object will be in that program.
 * Then the signal is blocked: one that another thread has sent would find no handler yet, and end
 * the program.  process_signals_exec_failed() takes all back. */
void process_signals_exec_begins(bool entered);
void process_signals_exec_failed(void);

/* For the handler of PROCESS_SIGNAL, at any moment in it: notes where it interrupted the thread.
 * The kernel restarts a system call that the handler interrupted (SA_RESTART).  If a handler of the
 * program's without SA_RESTART runs next, it must interrupt that call after all. */
void process_signals_sampled(const ucontext_t *context);

/* For the handler of PROCESS_SIGNAL: kill(2) or sigqueue(3) has sent it.  Does what the program wants
 * then: calls its handler, or ends the process.  While the program blocks it, the signal is lost. */
void process_signals_received(siginfo_t *info, ucontext_t *context);

/* How often a handler of the program's has begun in this thread. */
extern __thread unsigned process_signals_relayed
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

#endif
