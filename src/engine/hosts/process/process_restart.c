/* Calls that a signal's handler interrupts even with SA_RESTART (signal(7)) go on if only
 * PROCESS_SIGNAL interrupted them.  Each try is libc's own function, which keeps its cancellation
 * points, with the time that is left.
 *
 * The difficulty is a handler of the program's that runs after PROCESS_SIGNAL has interrupted the
 * call and before the call is made again.  Without the sample, it would have interrupted the call.
 * A program that waits in pause(2) for its alarm would wait forever if that was missed.  So
 * process_signals.c tells of each handler of the program's that begins:
 *
 * - A handler that has begun since the first try: the call ends with EINTR.
 * - A handler that begins after that check and before the kernel has begun the next try: then
 *   PROCESS_SIGNAL is sent by a timer, again and again, until the call has ended.  It interrupts
 *   the call, and the check finds that the handler has begun. */
#include "process/process_restart.h"
#include "process/process_call.h"
#include "process/process_next.h"

#include <aio.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, NS_PER_US = 1000, NS_PER_MS = 1000000 };

/* --- trying again ---------------------------------------------------------------- */

enum { FIRST_KICK_NS = 20000, SLOWEST_KICK_NS = 100000000 };

#define OWN __attribute__((tls_model("initial-exec")))
/* Address of the struct process_restart of the call that is being made again; 0: none.  A handler
 * that left it by longjmp(3) leaves a dead one, whose address is below that of the next. */
static __thread volatile uintptr_t resuming OWN;
static __thread unsigned kick_ns OWN;

bool process_restart_resume(struct process_restart *restart)
{
	const struct process_thread *thread = process_own;
	if (restart->interruptions == thread->interruptions) {
		process_restart_end(restart);
		return false;
	}
	restart->interruptions = thread->interruptions;
	if (!restart->resumes && resuming > (uintptr_t)restart)
		restart->outer = resuming;
	restart->resumes = true;
	resuming = (uintptr_t)restart;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (restart->relayed != process_signals_relayed) {
		process_restart_end(restart);
		return false;
	}
	/* a call that succeeds leaves errno as it is */
	errno = restart->error;
	return true;
}

void process_restart_end(struct process_restart *restart)
{
	if (!restart->resumes)
		return;
	restart->resumes = false;
	resuming = restart->outer;
	if (resuming || !kick_ns)
		return;
	kick_ns = 0;
	process_timer_kick(process_own, 0);
}

void process_restart_handler(void)
{
	if (!resuming || !process_own)
		return;
	kick_ns = FIRST_KICK_NS;
	process_timer_kick(process_own, kick_ns);
}

void process_restart_kicked(struct process_thread *thread)
{
	if (!resuming || !kick_ns)
		return;
	if (kick_ns < SLOWEST_KICK_NS)
		kick_ns *= 2;
	process_timer_kick(thread, kick_ns);
}

/* --- times ------------------------------------------------------------------------ */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now = { 0, 0 };
	process_call(SYS_clock_gettime, clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Returns the end of a wait, in ns of the clock; UINT64_MAX: none.  Calls with a timeout that libc
 * refuses, or that don't wait, fail or end in the first try: their value doesn't matter. */
static uint64_t end_by(clockid_t clock, const struct timespec *timeout)
{
	const uint64_t far = 1ull << 33; /* seconds */
	if (!timeout || !process_own || (uint64_t)timeout->tv_sec >= far)
		return UINT64_MAX;
	if (!timeout->tv_sec && !timeout->tv_nsec)
		return 0;
	return now_ns(clock) + (uint64_t)timeout->tv_sec * NS_PER_S + (uint64_t)timeout->tv_nsec;
}

static uint64_t end_of(const struct timespec *timeout)
{
	return end_by(CLOCK_MONOTONIC, timeout);
}

static struct timespec until_by(clockid_t clock, uint64_t end)
{
	uint64_t now = now_ns(clock), left = 0;
	if (end > now)
		left = end - now;
	return (struct timespec){ (time_t)(left / NS_PER_S), (long)(left % NS_PER_S) };
}

static struct timespec until(uint64_t end)
{
	return until_by(CLOCK_MONOTONIC, end);
}

/* Rounded up, so that a wait never ends early; less than 0: no limit. */
static int ms_until(uint64_t end)
{
	struct timespec left;
	int64_t ms;
	if (end == UINT64_MAX)
		return -1;
	left = until(end);
	ms = left.tv_sec * 1000 + (left.tv_nsec + NS_PER_MS - 1) / NS_PER_MS;
	if (ms > INT_MAX)
		return INT_MAX;
	return (int)ms;
}

/* Makes `call` until it is not only PROCESS_SIGNAL that interrupts it.  `call` takes its timeout
 * from `limit`, a pointer to a struct timespec, or NULL. */
#define RESTART_UNTIL(result, timeout, limit, call) \
	do { \
		struct process_restart restart_; \
		struct timespec left_; \
		const struct timespec *limit = (timeout); \
		uint64_t end_; \
		process_restart_begin(&restart_); \
		end_ = end_of(limit); \
		for (;;) { \
			(result) = (call); \
			if (!process_restart_again(&restart_, (result) < 0 && errno == EINTR)) \
				break; \
			if (end_ == UINT64_MAX) \
				continue; \
			left_ = until(end_); \
			limit = &left_; \
		} \
	} while (0)

/* --- sleeping ------------------------------------------------------------------ */

/* Sleeps on.  A relative sleep becomes an absolute one, so that many interruptions don't add up.
 * After EINTR, *left is what is left. */
static int sleep_on(clockid_t clock, uint64_t end, struct timespec *left)
{
	const struct timespec absolute = { (time_t)(end / NS_PER_S), (long)(end % NS_PER_S) };
	int error;
	if (end == UINT64_MAX)
		return PROCESS_NEXT(clock_nanosleep)(clock, 0, left, left);
	error = PROCESS_NEXT(clock_nanosleep)(clock, TIMER_ABSTIME, &absolute, NULL);
	if (error == EINTR)
		*left = until_by(clock, end);
	return error;
}

PROCESS_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
				   struct timespec *left)
{
	struct process_restart restart;
	struct timespec own_left = { 0, 0 };
	clockid_t even = clock;
	uint64_t end = UINT64_MAX;
	int error;
	if (!process_own)
		return PROCESS_NEXT(clock_nanosleep)(clock, flags, time, left);
	/* setting the time of day doesn't change relative sleeps */
	if (clock == CLOCK_REALTIME)
		even = CLOCK_MONOTONIC;
	if (!flags)
		end = end_by(even, time);
	process_restart_begin(&restart);
	error = PROCESS_NEXT(clock_nanosleep)(clock, flags, time, &own_left);
	while (process_restart_again(&restart, error == EINTR)) {
		if (flags & TIMER_ABSTIME)
			error = PROCESS_NEXT(clock_nanosleep)(clock, flags, time, NULL);
		else
			error = sleep_on(even, end, &own_left);
	}
	if (error == EINTR && left && !(flags & TIMER_ABSTIME))
		*left = own_left;
	return error;
}

PROCESS_EXPORT int nanosleep(const struct timespec *time, struct timespec *left)
{
	int error = clock_nanosleep(CLOCK_REALTIME, 0, time, left);
	if (!error)
		return 0;
	errno = error;
	return -1;
}

PROCESS_EXPORT int thrd_sleep(const struct timespec *time, struct timespec *left)
{
	switch (clock_nanosleep(CLOCK_REALTIME, 0, time, left)) {
	case 0:
		return 0;
	case EINTR:
		return -1;
	default:
		return -2;
	}
}

PROCESS_EXPORT int usleep(useconds_t time)
{
	const struct timespec wanted = { (time_t)(time / 1000000),
					 (long)(time % 1000000) * NS_PER_US };
	return nanosleep(&wanted, NULL);
}

PROCESS_EXPORT unsigned sleep(unsigned seconds)
{
	struct timespec time = { (time_t)seconds, 0 };
	int error = errno;
	if (nanosleep(&time, &time))
		return (unsigned)time.tv_sec;
	errno = error;
	return 0;
}

int __nanosleep(const struct timespec *, struct timespec *) SAME_AS(nanosleep);

/* --- waiting for signals -------------------------------------------------------- */

PROCESS_EXPORT int pause(void)
{
	int result;
	PROCESS_RESTART(result, PROCESS_NEXT(pause)());
	return result;
}

PROCESS_EXPORT int sigsuspend(const sigset_t *mask)
{
	sigset_t copy;
	int result;
	mask = process_signals_without(mask, &copy);
	PROCESS_RESTART(result, PROCESS_NEXT(sigsuspend)(mask));
	return result;
}

int __sigsuspend(const sigset_t *) SAME_AS(sigsuspend);

static int suspend_with(uint64_t word)
{
	sigset_t mask;
	sigemptyset(&mask);
	memcpy(&mask, &word, sizeof(word));
	return sigsuspend(&mask);
}

/* sigpause(3) has two meanings, and three symbols. */
int __xpg_sigpause(int signal);
int __sigpause(int signal_or_mask, int is_signal);
int process_bsd_sigpause(int mask) __asm__("sigpause") PROCESS_EXPORT;

PROCESS_EXPORT int __xpg_sigpause(int signal)
{
	sigset_t is_valid;
	sigemptyset(&is_valid);
	if (sigaddset(&is_valid, signal))
		return -1;
	return suspend_with(process_signals_mask() & ~(1ull << (signal - 1)));
}

int process_bsd_sigpause(int mask)
{
	return suspend_with((unsigned)mask);
}

PROCESS_EXPORT int __sigpause(int signal_or_mask, int is_signal)
{
	if (is_signal)
		return __xpg_sigpause(signal_or_mask);
	return process_bsd_sigpause(signal_or_mask);
}

PROCESS_EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
	sigset_t copy;
	int result;
	set = process_signals_without(set, &copy);
	PROCESS_RESTART(result, PROCESS_NEXT(sigwaitinfo)(set, info));
	return result;
}

PROCESS_EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
				const struct timespec *restrict timeout)
{
	sigset_t copy;
	int result;
	set = process_signals_without(set, &copy);
	RESTART_UNTIL(result, timeout, limit, PROCESS_NEXT(sigtimedwait)(set, info, limit));
	return result;
}

int __sigtimedwait(const sigset_t *restrict, siginfo_t *restrict, const struct timespec *restrict)
	SAME_AS(sigtimedwait);

/* --- waiting for descriptors ----------------------------------------------------- */

/* Returns what process_interface.c answered. */
static int interface_answer(int result)
{
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}

/* Milliseconds; less than 0: no limit, and NULL is returned. */
static const struct timespec *in_ms(int timeout, struct timespec *time)
{
	if (timeout < 0)
		return NULL;
	*time = (struct timespec){ timeout / 1000, (long)(timeout % 1000) * NS_PER_MS };
	return time;
}

PROCESS_EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct process_restart restart;
	struct timespec time;
	const struct timespec *first = in_ms(timeout, &time);
	uint64_t end;
	int result;
	process_restart_begin(&restart);
	if (process_interface_poll(fds, count, first, NULL, &result))
		return interface_answer(result);
	end = end_of(first);
	for (;;) {
		result = PROCESS_NEXT(poll)(fds, count, timeout);
		if (!process_restart_again(&restart, result < 0 && errno == EINTR))
			return result;
		timeout = ms_until(end);
	}
}

PROCESS_EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			 const sigset_t *mask)
{
	sigset_t copy;
	int result;
	if (process_interface_poll(fds, count, timeout, mask, &result))
		return interface_answer(result);
	mask = process_signals_without(mask, &copy);
	RESTART_UNTIL(result, timeout, limit, PROCESS_NEXT(ppoll)(fds, count, limit, mask));
	return result;
}

int __poll(struct pollfd *, nfds_t, int) SAME_AS(poll);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t size);

/* For programs built with _FORTIFY_SOURCE: libc's functions end the program if `count` is too
 * large. */
PROCESS_EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size)
{
	if (size / sizeof(*fds) < count)
		return PROCESS_NEXT(__poll_chk)(fds, count, timeout, size);
	return poll(fds, count, timeout);
}

PROCESS_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			       const sigset_t *mask, size_t size)
{
	if (size / sizeof(*fds) < count)
		return PROCESS_NEXT(__ppoll_chk)(fds, count, timeout, mask, size);
	return ppoll(fds, count, timeout, mask);
}

/* Linux writes the time that is left to *timeout, also after EINTR. */
PROCESS_EXPORT int select(int count, fd_set *restrict in, fd_set *restrict out,
			  fd_set *restrict except, struct timeval *restrict timeout)
{
	struct process_restart restart;
	struct timespec time;
	const struct timespec *first = NULL;
	uint64_t end;
	int result;
	process_restart_begin(&restart);
	if (timeout) {
		time = (struct timespec){ timeout->tv_sec, timeout->tv_usec * NS_PER_US };
		first = &time;
	}
	if (process_interface_select(count, in, out, except, first, NULL, &result))
		return interface_answer(result);
	end = end_of(first);
	for (;;) {
		result = PROCESS_NEXT(select)(count, in, out, except, timeout);
		if (!process_restart_again(&restart, result < 0 && errno == EINTR))
			return result;
		if (end == UINT64_MAX)
			continue;
		/* rounded up */
		time = until(end);
		*timeout = (struct timeval){ time.tv_sec, time.tv_nsec / NS_PER_US + 1 };
		if (timeout->tv_usec == 1000000)
			*timeout = (struct timeval){ time.tv_sec + 1, 0 };
	}
}

int __select(int, fd_set *restrict, fd_set *restrict, fd_set *restrict, struct timeval *restrict)
	SAME_AS(select);

PROCESS_EXPORT int pselect(int count, fd_set *restrict in, fd_set *restrict out,
			   fd_set *restrict except, const struct timespec *restrict timeout,
			   const sigset_t *restrict mask)
{
	sigset_t copy;
	int result;
	if (process_interface_select(count, in, out, except, timeout, mask, &result))
		return interface_answer(result);
	mask = process_signals_without(mask, &copy);
	RESTART_UNTIL(result, timeout, limit,
		      PROCESS_NEXT(pselect)(count, in, out, except, limit, mask));
	return result;
}

PROCESS_EXPORT int epoll_wait(int fd, struct epoll_event *events, int count, int timeout)
{
	struct process_restart restart;
	struct timespec time;
	const struct timespec *first = in_ms(timeout, &time);
	uint64_t end;
	int result;
	process_restart_begin(&restart);
	if (process_interface_epoll(fd, events, count, first, NULL, &result))
		return interface_answer(result);
	end = end_of(first);
	for (;;) {
		result = PROCESS_NEXT(epoll_wait)(fd, events, count, timeout);
		if (!process_restart_again(&restart, result < 0 && errno == EINTR))
			return result;
		timeout = ms_until(end);
	}
}

PROCESS_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int count, int timeout,
			       const sigset_t *mask)
{
	struct process_restart restart;
	struct timespec time;
	const struct timespec *first = in_ms(timeout, &time);
	uint64_t end;
	sigset_t copy;
	int result;
	process_restart_begin(&restart);
	if (process_interface_epoll(fd, events, count, first, mask, &result))
		return interface_answer(result);
	end = end_of(first);
	mask = process_signals_without(mask, &copy);
	for (;;) {
		result = PROCESS_NEXT(epoll_pwait)(fd, events, count, timeout, mask);
		if (!process_restart_again(&restart, result < 0 && errno == EINTR))
			return result;
		timeout = ms_until(end);
	}
}

/* Headers before glibc 2.35 lack it. */
int epoll_pwait2(int fd, struct epoll_event *events, int count, const struct timespec *timeout,
		 const sigset_t *mask);

PROCESS_EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int count,
				const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t copy;
	int result;
	if (process_interface_epoll(fd, events, count, timeout, mask, &result))
		return interface_answer(result);
	mask = process_signals_without(mask, &copy);
	RESTART_UNTIL(result, timeout, limit,
		      PROCESS_NEXT(epoll_pwait2)(fd, events, count, limit, mask));
	return result;
}

/* --- semaphores, messages, asynchronous input and output --------------------------- */

PROCESS_EXPORT int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict end)
{
	int result;
	PROCESS_RESTART(result, PROCESS_NEXT(sem_timedwait)(semaphore, end));
	return result;
}

PROCESS_EXPORT int sem_clockwait(sem_t *restrict semaphore, clockid_t clock,
				 const struct timespec *restrict end)
{
	int result;
	PROCESS_RESTART(result, PROCESS_NEXT(sem_clockwait)(semaphore, clock, end));
	return result;
}

/* FUTEX_WAIT has a relative timeout.  Without one, the kernel restarts it. */
long process_restart_futex(const long *arguments)
{
	const long operation = arguments[1] & FUTEX_CMD_MASK;
	const bool is_relative = operation == FUTEX_WAIT && arguments[3];
	struct process_restart restart;
	struct timespec left;
	long result, timeout = arguments[3];
	uint64_t end = UINT64_MAX;
	process_restart_begin(&restart);
	if (is_relative)
		end = end_of((const struct timespec *)timeout);
	for (;;) {
		result = process_call(SYS_futex, arguments[0], arguments[1], arguments[2], timeout,
				      arguments[4], arguments[5]);
		if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET)
			return result;
		if (!process_restart_again(&restart, result == -EINTR))
			return result;
		if (!is_relative || end == UINT64_MAX)
			continue;
		left = until(end);
		timeout = (long)&left;
	}
}

PROCESS_EXPORT int semop(int set, struct sembuf *operations, size_t count)
{
	int result;
	PROCESS_RESTART(result, PROCESS_NEXT(semop)(set, operations, count));
	return result;
}

PROCESS_EXPORT int semtimedop(int set, struct sembuf *operations, size_t count,
			      const struct timespec *timeout)
{
	int result;
	RESTART_UNTIL(result, timeout, limit,
		      PROCESS_NEXT(semtimedop)(set, operations, count, limit));
	return result;
}

PROCESS_EXPORT int msgsnd(int queue, const void *message, size_t size, int flags)
{
	int result;
	PROCESS_RESTART(result, PROCESS_NEXT(msgsnd)(queue, message, size, flags));
	return result;
}

PROCESS_EXPORT ssize_t msgrcv(int queue, void *message, size_t size, long type, int flags)
{
	ssize_t result;
	PROCESS_RESTART(result, PROCESS_NEXT(msgrcv)(queue, message, size, type, flags));
	return result;
}

PROCESS_EXPORT int aio_suspend(const struct aiocb *const list[], int count,
			       const struct timespec *restrict timeout)
{
	int result;
	RESTART_UNTIL(result, timeout, limit, PROCESS_NEXT(aio_suspend)(list, count, limit));
	return result;
}

/* aio_suspend() above is libc's aio_suspend64() if off_t is made to have 64 bits. */
int process_aio_suspend(const struct aiocb *const *, int,
			const struct timespec *) __asm__("aio_suspend") PROCESS_EXPORT;

int process_aio_suspend(const struct aiocb *const *list, int count, const struct timespec *timeout)
{
	return aio_suspend(list, count, timeout);
}

/* libaio's, which returns -errno.  A program without libaio never calls it. */
struct io_event;
int io_getevents(void *context, long least, long most, struct io_event *events,
		 struct timespec *timeout);

PROCESS_EXPORT int io_getevents(void *context, long least, long most, struct io_event *events,
				struct timespec *timeout)
{
	struct process_restart restart;
	struct timespec left, *limit = timeout;
	uint64_t end;
	int result;
	process_restart_begin(&restart);
	end = end_of(timeout);
	for (;;) {
		result = PROCESS_NEXT(io_getevents)(context, least, most, events, limit);
		if (!process_restart_again(&restart, result == -EINTR))
			return result;
		if (end == UINT64_MAX)
			continue;
		left = until(end);
		limit = &left;
	}
}

/* --- sockets with a timeout --------------------------------------------------------- */

/* Returns the socket's timeout in ns; 0: none. */
static uint64_t socket_timeout(const struct process_restart_socket *socket)
{
	struct timeval time = { 0, 0 };
	socklen_t size = sizeof(time);
	if (getsockopt(socket->fd, SOL_SOCKET,
		       socket->use != SOCKET_RECEIVES ? SO_SNDTIMEO : SO_RCVTIMEO, &time, &size))
		return 0;
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_usec * NS_PER_US;
}

static int socket_error(const struct process_restart_socket *socket)
{
	int domain = AF_UNIX;
	socklen_t size = sizeof(domain);
	if (socket->use == SOCKET_CONNECTS)
		getsockopt(socket->fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
	if (domain == AF_UNIX)
		return EAGAIN;
	return EINPROGRESS;
}

/* The call itself would wait for its whole timeout again.  So this waits until there is something
 * to do, or until the time is over, counted from the first interruption. */
bool process_restart_socket_again(struct process_restart_socket *socket)
{
	struct pollfd fd = { .fd = socket->fd,
			     .events = socket->use != SOCKET_RECEIVES ? POLLOUT : POLLIN };
	uint64_t timeout;
	int ms, result;
	if (!process_restart_resume(&socket->restart))
		return false;
	if (!socket->deadline_ns) {
		timeout = socket_timeout(socket);
		if (!timeout)
			return true;
		socket->deadline_ns = now_ns(CLOCK_MONOTONIC) + timeout;
	}
	do {
		ms = ms_until(socket->deadline_ns);
		if (!ms) {
			errno = socket_error(socket);
			return false;
		}
		result = PROCESS_NEXT(poll)(&fd, 1, ms);
		if (result > 0 || (result < 0 && errno != EINTR))
			return true;
	} while (!result || process_restart_resume(&socket->restart));
	return false;
}

/* --- transfers ---------------------------------------------------------------------- */

/* True if the kernel ends such a transfer early only for a signal.  What is read from pipes, sockets
 * and terminals is what there is at the time.  Transfers of regular files are not interrupted. */
static bool is_cut_by_signals(const struct process_transfer *transfer)
{
	enum { MEMORY_DEVICES = 1 }; /* /dev/zero, /dev/urandom */
	struct stat about;
	if (transfer->waits_for_all)
		return true;
	if (process_call(SYS_fstat, transfer->socket.fd, &about))
		return false;
	if (transfer->socket.use == SOCKET_SENDS)
		return !S_ISREG(about.st_mode);
	return S_ISCHR(about.st_mode) && major(about.st_rdev) == MEMORY_DEVICES;
}

bool process_transfer_resume(struct process_transfer *transfer, ssize_t got)
{
	struct process_restart *restart = &transfer->socket.restart;
	if (got < 0)
		return process_restart_socket_again(&transfer->socket);
	if (process_own->interruptions == restart->interruptions || !is_cut_by_signals(transfer))
		return false;
	return process_restart_resume(restart);
}

ssize_t process_transfer_end(struct process_transfer *transfer, ssize_t got)
{
	if (transfer->socket.restart.resumes)
		process_restart_end(&transfer->socket.restart);
	if (!transfer->done)
		return got;
	if (got < 0)
		errno = transfer->socket.restart.error;
	return (ssize_t)transfer->done;
}

PROCESS_EXPORT int accept(int fd, __SOCKADDR_ARG address, socklen_t *restrict length)
{
	int result;
	PROCESS_RESTART_SOCKET(result, fd, SOCKET_RECEIVES,
			       PROCESS_NEXT(accept)(fd, address, length));
	return result;
}

PROCESS_EXPORT int accept4(int fd, __SOCKADDR_ARG address, socklen_t *restrict length, int flags)
{
	int result;
	PROCESS_RESTART_SOCKET(result, fd, SOCKET_RECEIVES,
			       PROCESS_NEXT(accept4)(fd, address, length, flags));
	return result;
}

PROCESS_EXPORT int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
	int result;
	PROCESS_RESTART_SOCKET(result, fd, SOCKET_CONNECTS,
			       PROCESS_NEXT(connect)(fd, address, length));
	return result;
}

/* True if the call ends early only for a signal. */
static bool waits_for_all(int flags)
{
	return (flags & (MSG_WAITALL | MSG_PEEK | MSG_TRUNC)) == MSG_WAITALL;
}

PROCESS_EXPORT ssize_t recv(int fd, void *to, size_t size, int flags)
{
	struct process_transfer transfer;
	ssize_t got;
	if (!waits_for_all(flags)) {
		PROCESS_RESTART_SOCKET(got, fd, SOCKET_RECEIVES,
				       PROCESS_NEXT(recv)(fd, to, size, flags));
		return got;
	}
	process_transfer_begin(&transfer, fd, SOCKET_RECEIVES, size);
	transfer.waits_for_all = true;
	do
		got = PROCESS_NEXT(recv)(fd, (char *)to + transfer.done, size - transfer.done,
					 flags);
	while (process_transfer_again(&transfer, got));
	return process_transfer_end(&transfer, got);
}

PROCESS_EXPORT ssize_t recvfrom(int fd, void *restrict to, size_t size, int flags,
				__SOCKADDR_ARG address, socklen_t *restrict length)
{
	ssize_t result;
	if (waits_for_all(flags) && !length)
		return recv(fd, to, size, flags);
	PROCESS_RESTART_SOCKET(result, fd, SOCKET_RECEIVES,
			       PROCESS_NEXT(recvfrom)(fd, to, size, flags, address, length));
	return result;
}

PROCESS_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t result;
	PROCESS_RESTART_SOCKET(result, fd, SOCKET_RECEIVES,
			       PROCESS_NEXT(recvmsg)(fd, message, flags));
	return result;
}

PROCESS_EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
			    struct timespec *timeout)
{
	int result;
	PROCESS_RESTART_SOCKET(result, fd, SOCKET_RECEIVES,
			       PROCESS_NEXT(recvmmsg)(fd, messages, count, flags, timeout));
	return result;
}

PROCESS_EXPORT ssize_t send(int fd, const void *from, size_t size, int flags)
{
	struct process_transfer transfer;
	ssize_t got;
	process_transfer_begin(&transfer, fd, SOCKET_SENDS, size);
	do
		got = PROCESS_NEXT(send)(fd, (const char *)from + transfer.done,
					 size - transfer.done, flags);
	while (process_transfer_again(&transfer, got));
	return process_transfer_end(&transfer, got);
}

PROCESS_EXPORT ssize_t sendto(int fd, const void *from, size_t size, int flags,
			      __CONST_SOCKADDR_ARG address, socklen_t length)
{
	struct process_transfer transfer;
	ssize_t got;
	process_transfer_begin(&transfer, fd, SOCKET_SENDS, size);
	do
		got = PROCESS_NEXT(sendto)(fd, (const char *)from + transfer.done,
					   size - transfer.done, flags, address, length);
	while (process_transfer_again(&transfer, got));
	return process_transfer_end(&transfer, got);
}

PROCESS_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t result;
	PROCESS_RESTART_SOCKET(result, fd, SOCKET_SENDS, PROCESS_NEXT(sendmsg)(fd, message, flags));
	return result;
}

PROCESS_EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	int result;
	PROCESS_RESTART_SOCKET(result, fd, SOCKET_SENDS,
			       PROCESS_NEXT(sendmmsg)(fd, messages, count, flags));
	return result;
}

static size_t size_of(const struct iovec *pieces, int count)
{
	size_t size = 0;
	for (int i = 0; i < count; i++)
		size += pieces[i].iov_len;
	return size;
}

/* Writes the pieces but for the first `done` bytes. */
static ssize_t write_rest(int fd, const struct iovec *pieces, int count, size_t done)
{
	enum { PIECES = 256 }; /* of more, the rest is left to the program */
	struct iovec rest[PIECES];
	int used = 0;
	for (int i = 0; i < count && used < PIECES; i++) {
		size_t skipped = done < pieces[i].iov_len ? done : pieces[i].iov_len;
		done -= skipped;
		if (skipped < pieces[i].iov_len)
			rest[used++] = (struct iovec){ (char *)pieces[i].iov_base + skipped,
						       pieces[i].iov_len - skipped };
	}
	return PROCESS_NEXT(writev)(fd, rest, used);
}

PROCESS_EXPORT ssize_t writev(int fd, const struct iovec *pieces, int count)
{
	struct process_transfer transfer;
	ssize_t got;
	process_transfer_begin(&transfer, fd, SOCKET_SENDS, SIZE_MAX);
	do {
		if (transfer.done)
			got = write_rest(fd, pieces, count, transfer.done);
		else
			got = PROCESS_NEXT(writev)(fd, pieces, count);
		if (got > 0) /* they are readable, then */
			transfer.size = size_of(pieces, count);
	} while (process_transfer_again(&transfer, got));
	return process_transfer_end(&transfer, got);
}

int __connect(int, __CONST_SOCKADDR_ARG, socklen_t) SAME_AS(connect);
ssize_t __recv(int, void *, size_t, int) SAME_AS(recv);
ssize_t __send(int, const void *, size_t, int) SAME_AS(send);
int __sendmmsg(int, struct mmsghdr *, unsigned, int) SAME_AS(sendmmsg);
ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *restrict to, size_t size, size_t room, int flags,
		       __SOCKADDR_ARG address, socklen_t *restrict length);

PROCESS_EXPORT ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags)
{
	if (room < size)
		return PROCESS_NEXT(__recv_chk)(fd, to, size, room, flags);
	return recv(fd, to, size, flags);
}

PROCESS_EXPORT ssize_t __recvfrom_chk(int fd, void *restrict to, size_t size, size_t room,
				      int flags, __SOCKADDR_ARG address, socklen_t *restrict length)
{
	if (room < size)
		return PROCESS_NEXT(__recvfrom_chk)(fd, to, size, room, flags, address, length);
	return recvfrom(fd, to, size, flags, address, length);
}
