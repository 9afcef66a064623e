/* libc's own functions behind those that this object replaces.
 *
 *     return PROCESS_NEXT(pthread_create)(thread, attr, start, argument);
 *
 * The table is filled by the constructor.  A function that is called before (by a constructor of
 * another library) finds its entry itself. */
#ifndef TALLY_PROCESS_NEXT_H
#define TALLY_PROCESS_NEXT_H

#include <features.h>

/* Functions that came later than glibc 2.33, so that an older libc's header lacks them. */
#if __GLIBC_PREREQ(2, 39)
#define PROCESS_NEXT_NEWER_FUNCTIONS(F) F(execveat) F(pidfd_spawn) F(pidfd_spawnp)
#elif __GLIBC_PREREQ(2, 34)
#define PROCESS_NEXT_NEWER_FUNCTIONS(F) F(execveat)
#else
#define PROCESS_NEXT_NEWER_FUNCTIONS(F)
#endif

/* Of process_signals.c and process_restart.c. */
#define PROCESS_NEXT_WAITING_FUNCTIONS(F) \
	F(sigaction) F(pthread_sigmask) F(sigpending) F(signalfd) F(sigwait) \
	F(nanosleep) F(clock_nanosleep) F(thrd_sleep) F(usleep) F(sleep) F(pause) \
	F(sigsuspend) F(sigwaitinfo) F(sigtimedwait) F(poll) F(ppoll) F(__poll_chk) \
	F(__ppoll_chk) F(select) F(pselect) F(epoll_wait) F(epoll_pwait) F(epoll_pwait2) \
	F(sem_timedwait) F(sem_clockwait) F(semop) F(semtimedop) F(msgsnd) F(msgrcv) \
	F(aio_suspend) F(io_getevents) F(accept) F(accept4) F(connect) F(recv) F(recvfrom) \
	F(recvmsg) F(recvmmsg) F(send) F(sendto) F(sendmsg) F(sendmmsg) F(writev) \
	F(__recv_chk) F(__recvfrom_chk)

/* The functions, each a column of PROCESS_NEXT. */
#define PROCESS_NEXT_FUNCTIONS(F) \
	F(pthread_create) F(thrd_create) F(pthread_setname_np) F(prctl) F(ptrace) F(_Fork) \
	F(execve) F(fexecve) F(posix_spawn) F(posix_spawnp) PROCESS_NEXT_NEWER_FUNCTIONS(F) \
	F(system) F(popen) F(pclose) F(fclose) \
	F(read) F(__read_chk) F(readv) F(pread) F(pread64) F(write) F(ioctl) F(fcntl) F(fcntl64) \
	F(close) F(dup) F(dup2) F(dup3) F(raise) F(epoll_ctl) \
	PROCESS_NEXT_WAITING_FUNCTIONS(F)

enum process_next_index {
#define PROCESS_NEXT_INDEX(name) PROCESS_NEXT_##name,
	PROCESS_NEXT_FUNCTIONS(PROCESS_NEXT_INDEX)
#undef PROCESS_NEXT_INDEX
	PROCESS_NEXT_COUNT
};

void process_next_find(void);
/* Returns the function; never NULL: without it, one that sets errno to ENOSYS and returns -1. */
void *process_next(enum process_next_index index);

#define PROCESS_NEXT(name) ((__typeof__(&name))process_next(PROCESS_NEXT_##name))

#endif
