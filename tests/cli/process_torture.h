/* process_torture.h: the interface between the files of process_torture. */
#ifndef PROCESS_TORTURE_H
#define PROCESS_TORTURE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000 };

struct torture {
	bool has_timers;    /* the round has timers of its own: calls may be interrupted */
	bool is_told;       /* writes the name of each step to standard error */
};
extern struct torture torture;

/* `run` returns whether all was well; it tells what was not.  Lists end with a row without a name. */
struct torture_step {
	const char *name;
	bool (*run)(uint64_t *random);
	unsigned weight;
};
extern const struct torture_step torture_process_steps[], torture_thread_steps[],
	torture_signal_steps[], torture_alone_steps[];

enum torture_end { EXITS, IS_KILLED };

/* glibc's dlclose(3) and quick_exit(3) take a lock that fork(2) does not give back in the child: a child
 * that is forked while another thread is in dlclose(3) hangs in quick_exit(3), profiled or not
 * (glibc 2.36, __exit_funcs_lock).  So dlclose(3) and such a fork exclude each other. */
extern pthread_mutex_t torture_exit_lock;

/* Tells a failure; returns false. */
__attribute__((format(printf, 1, 2))) bool torture_failed(const char *format, ...);
uint64_t torture_random(uint64_t *state);
uint64_t torture_now_ns(void);
uint64_t torture_sum(unsigned count);
/* Computes something and checks it, and that errno stays. */
bool torture_work(unsigned count);
/* waitpid(2), again after a signal of the round's own. */
pid_t torture_wait(pid_t pid, int *status);
/* Waits for a child and returns whether it ended so, with that exit status or signal. */
bool torture_expect(pid_t pid, enum torture_end end, int value, const char *what);
/* Starts this program; `name` may be NULL.  Returns its pid or -1. */
pid_t torture_spawn(const char *verb, const char *name, uint64_t value);
/* Executes this program, which ends with that status. */
__attribute__((noreturn)) void torture_exec(int status);
const char *torture_self(void);
/* Gives the round timers and handlers by chance, and looks at the end whether they ticked. */
void torture_own_timers(uint64_t *random);
bool torture_own_timers_end(void);

static inline int torture_tid(void)
{
	return (int)syscall(SYS_gettid);
}

#endif
