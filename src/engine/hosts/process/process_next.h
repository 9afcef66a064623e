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

/* The functions, each a column of PROCESS_NEXT. */
#define PROCESS_NEXT_FUNCTIONS(F) \
	F(pthread_create) F(thrd_create) F(pthread_setname_np) F(prctl) F(_Fork) \
	F(execve) F(fexecve) F(posix_spawn) F(posix_spawnp) PROCESS_NEXT_NEWER_FUNCTIONS(F) \
	F(system) F(popen) F(pclose) F(fclose) \
	F(read) F(__read_chk) F(readv) F(pread) F(pread64) F(write) F(ioctl) F(fcntl) F(fcntl64) \
	F(close) F(dup) F(dup2) F(dup3) F(poll) F(ppoll) F(epoll_ctl) F(epoll_wait) F(select) F(pselect)

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
