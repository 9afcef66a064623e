/* The libc functions that programs use on descriptors of perf_event_open(2).
 *
 * Each asks first whether the descriptor is an emulated event: one load for all others, if the
 * program has no event.  Otherwise it calls libc's own function, which keeps its cancellation
 * points. System calls that a program makes by instructions of its own are not seen: it must call
 * libc. */

/* mmap() and mmap64() are two names here, though they are the same function. */
#undef _FILE_OFFSET_BITS

#include "process/process_interface.h"
#include "process/process_next.h"
#include "process/process_restart.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LARGEST_ERROR = 4095 };

static long answer(long result)
{
	if (result >= 0 || result < -LARGEST_ERROR)
		return result;
	errno = (int)-result;
	return -1;
}

/* --- syscall(2) ----------------------------------------------------------- */

/* The kernel is asked first, but not about groups that it doesn't know. */
static long open_event(const long *a)
{
	long result = -ENOSYS;
	int group = (int)a[3];
	if (group < 0 || !interface_event_of(group))
		result = process_call6(SYS_perf_event_open, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (result != -EPERM && result != -EACCES && result != -ENOSYS)
		return result;
	if (!process_self())
		return result;
	return interface_open((const void *)a[0], (int32_t)a[1], (int)a[2], group,
			      (unsigned long)a[4]);
}

static long map(const long *a)
{
	void *mapped;
	int result;
	if (process_interface_mmap((void *)a[0], (size_t)a[1], (int)a[2], (int)a[3], (int)a[4],
				   (uint64_t)a[5], &mapped, &result)) {
		if (result)
			return result;
		return (long)mapped;
	}
	long place = process_call6(SYS_mmap, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (place > 0 || place < -4095) {
		interface_mapped((void *)place, (size_t)a[1], (int)a[2], (int)a[3], (int)a[4],
				 (uint64_t)a[5]);
		process_maps_changed((void *)place, (size_t)a[1], (int)a[2], (int)a[3]);
	}
	return place;
}

static long unmap(void *address, size_t size)
{
	int result;
	if (process_interface_munmap(address, size, &result))
		return result;
	return process_call(SYS_munmap, address, size);
}

static bool is_file_command(int command)
{
	switch (command) {
	case F_GETFL:
	case F_SETFL:
	case F_SETOWN:
	case F_GETOWN:
	case 10: /* F_SETSIG */
	case 11: /* F_GETSIG */
	case 15: /* F_SETOWN_EX */
	case 16: /* F_GETOWN_EX */
		return true;
	default:
		return false;
	}
}

static bool duplicates(int command)
{
	return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

/* Returns true if the call was on an event; then *result is its result or -errno. */
static bool call_file(int fd, int command, uintptr_t argument, long *result)
{
	struct interface_event *event = interface_event_of(fd);
	if (!event)
		return false;
	if (is_file_command(command)) {
		*result = interface_fcntl(fd, command, argument);
		return true;
	}
	*result = process_call(SYS_fcntl, fd, command, argument);
	if (duplicates(command) && *result >= 0)
		interface_duplicated(event, (int)*result);
	return true;
}

static long duplicate(long number, long old, long new, long flags)
{
	struct interface_event *event = interface_event_of((int)old);
	long result = process_call(number, old, new, flags);
	if (result >= 0 && (number == SYS_dup || result != old))
		interface_duplicated(event, (int)result);
	return result;
}

static long control_task(const long *a)
{
	long result = process_call6(SYS_prctl, a[0], a[1], a[2], a[3], a[4], 0);
	if (a[0] == PR_TASK_PERF_EVENTS_DISABLE || a[0] == PR_TASK_PERF_EVENTS_ENABLE)
		process_interface_prctl((int)a[0]);
	return result;
}

PROCESS_EXPORT long syscall(long number, ...)
{
	long a[6], result;
	va_list list;
	va_start(list, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	switch (number) {
	case SYS_perf_event_open:
		return answer(open_event(a));
	case SYS_read:
		if (interface_event_of((int)a[0]))
			return answer(interface_read((int)a[0], (void *)a[1], (size_t)a[2]));
		break;
	case SYS_ioctl:
		if (interface_event_of((int)a[0]))
			return answer(
				interface_ioctl((int)a[0], (unsigned long)a[1], (uintptr_t)a[2]));
		break;
	case SYS_fcntl:
		if (call_file((int)a[0], (int)a[1], (uintptr_t)a[2], &result))
			return answer(result);
		break;
	case SYS_mmap:
		return answer(map(a));
	case SYS_munmap:
		return answer(unmap((void *)a[0], (size_t)a[1]));
	case SYS_close:
		interface_closed((int)a[0]);
		break;
	case SYS_dup:
	case SYS_dup3:
		return answer(duplicate(number, a[0], a[1], a[2]));
#ifdef SYS_dup2
	case SYS_dup2:
		return answer(duplicate(number, a[0], a[1], 0));
#endif
	case SYS_prctl:
		return answer(control_task(a));
	case SYS_futex:
		return answer(process_restart_futex(a));
	case SYS_rt_sigprocmask:
		return answer(process_signals_call_mask((int)a[0], (const void *)a[1], (void *)a[2],
							(size_t)a[3]));
	case SYS_seccomp:
		/* the filter may forbid what this object does */
		if (a[0] != SECCOMP_GET_ACTION_AVAIL && a[0] != SECCOMP_GET_NOTIF_SIZES)
			process_end();
		break;
	/* the functions lend tally's variables, and tell of new code */
	case SYS_execve:
		return execve((const char *)a[0], (char *const *)a[1], (char *const *)a[2]);
#if __GLIBC_PREREQ(2, 34)
	case SYS_execveat:
		return execveat((int)a[0], (const char *)a[1], (char *const *)a[2],
				(char *const *)a[3], (int)a[4]);
#endif
	case SYS_mprotect:
		return mprotect((void *)a[0], (size_t)a[1], (int)a[2]);
	case SYS_pkey_mprotect:
		return pkey_mprotect((void *)a[0], (size_t)a[1], (int)a[2], (int)a[3]);
	case SYS_mremap:
		return (long)mremap((void *)a[0], (size_t)a[1], (size_t)a[2], (int)a[3],
				    (void *)a[4]);
	default:
		break;
	}
	return answer(process_call6(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

/* --- reading -------------------------------------------------------------- */

PROCESS_EXPORT ssize_t read(int fd, void *bytes, size_t size)
{
	if (interface_event_of(fd))
		return answer(interface_read(fd, bytes, size));
	struct process_transfer transfer;
	ssize_t got;
	process_transfer_begin(&transfer, fd, SOCKET_RECEIVES, size);
	do
		got = PROCESS_NEXT(read)(fd, (char *)bytes + transfer.done, size - transfer.done);
	while (process_transfer_again(&transfer, got));
	return process_transfer_end(&transfer, got);
}

/* What read() is under _FORTIFY_SOURCE. */
PROCESS_EXPORT ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room);
ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room)
{
	if (size > room)
		return PROCESS_NEXT(__read_chk)(fd, bytes, size, room);
	return read(fd, bytes, size);
}

/* The kernel's events fill the first piece alone, and each piece has the whole. */
static long read_pieces(int fd, const struct iovec *pieces, int count)
{
	long total = 0;
	for (int i = 0; i < count; i++) {
		long length = interface_read(fd, pieces[i].iov_base, pieces[i].iov_len);
		if (length < 0)
			return total ? total : length;
		total += length;
		if ((size_t)length < pieces[i].iov_len)
			break;
	}
	return total;
}

PROCESS_EXPORT ssize_t readv(int fd, const struct iovec *pieces, int count)
{
	if (interface_event_of(fd))
		return answer(read_pieces(fd, pieces, count));
	ssize_t result;
	PROCESS_RESTART_SOCKET(result, fd, SOCKET_RECEIVES, PROCESS_NEXT(readv)(fd, pieces, count));
	return result;
}

PROCESS_EXPORT ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
	if (interface_event_of(fd))
		return answer(-ESPIPE);
	return PROCESS_NEXT(pread)(fd, bytes, size, offset);
}

PROCESS_EXPORT ssize_t pread64(int fd, void *bytes, size_t size, off64_t offset)
{
	if (interface_event_of(fd))
		return answer(-ESPIPE);
	return PROCESS_NEXT(pread64)(fd, bytes, size, offset);
}

PROCESS_EXPORT ssize_t write(int fd, const void *bytes, size_t size)
{
	if (interface_event_of(fd))
		return answer(-EINVAL);
	struct process_transfer transfer;
	ssize_t got;
	process_transfer_begin(&transfer, fd, SOCKET_SENDS, size);
	do
		got = PROCESS_NEXT(write)(fd, (const char *)bytes + transfer.done,
					  size - transfer.done);
	while (process_transfer_again(&transfer, got));
	return process_transfer_end(&transfer, got);
}

/* --- control -------------------------------------------------------------- */

PROCESS_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	va_start(list, request);
	uintptr_t argument = va_arg(list, uintptr_t);
	va_end(list);
	if (interface_event_of(fd))
		return (int)answer(interface_ioctl(fd, request, argument));
	return PROCESS_NEXT(ioctl)(fd, request, argument);
}

PROCESS_EXPORT int fcntl(int fd, int command, ...)
{
	long result;
	va_list list;
	va_start(list, command);
	uintptr_t argument = va_arg(list, uintptr_t);
	va_end(list);
	if (call_file(fd, command, argument, &result))
		return (int)answer(result);
	return PROCESS_NEXT(fcntl)(fd, command, argument);
}

PROCESS_EXPORT int fcntl64(int fd, int command, ...)
{
	long result;
	va_list list;
	va_start(list, command);
	uintptr_t argument = va_arg(list, uintptr_t);
	va_end(list);
	if (call_file(fd, command, argument, &result))
		return (int)answer(result);
	return PROCESS_NEXT(fcntl64)(fd, command, argument);
}

/* --- descriptors ---------------------------------------------------------- */

PROCESS_EXPORT int close(int fd)
{
	interface_closed(fd);
	return PROCESS_NEXT(close)(fd);
}

PROCESS_EXPORT int dup(int old)
{
	struct interface_event *event = interface_event_of(old);
	int fd = PROCESS_NEXT(dup)(old);
	if (fd >= 0)
		interface_duplicated(event, fd);
	return fd;
}

PROCESS_EXPORT int dup2(int old, int new)
{
	struct interface_event *event = interface_event_of(old);
	int fd = PROCESS_NEXT(dup2)(old, new);
	if (fd >= 0 && fd != old)
		interface_duplicated(event, fd);
	return fd;
}

PROCESS_EXPORT int dup3(int old, int new, int flags)
{
	struct interface_event *event = interface_event_of(old);
	int fd = PROCESS_NEXT(dup3)(old, new, flags);
	if (fd >= 0)
		interface_duplicated(event, fd);
	return fd;
}

/* --- memory --------------------------------------------------------------- */

PROCESS_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd,
			  off_t offset)
{
	const long a[6] = { (long)address, (long)size, protection, flags, fd, offset };
	return (void *)answer(map(a));
}

PROCESS_EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd,
			    off64_t offset)
{
	const long a[6] = { (long)address, (long)size, protection, flags, fd, offset };
	return (void *)answer(map(a));
}

PROCESS_EXPORT int munmap(void *address, size_t size)
{
	return (int)answer(unmap(address, size));
}

PROCESS_EXPORT int madvise(void *address, size_t size, int advice)
{
	process_interface_safe_point();
	return (int)answer(process_call(SYS_madvise, address, size, advice));
}

PROCESS_EXPORT int sched_setaffinity(pid_t task, size_t size, const cpu_set_t *set)
{
	process_interface_safe_point();
	int result = (int)answer(process_call(SYS_sched_setaffinity, task, size, set));
	process_interface_safe_point();
	return result;
}

/* A child stops itself like this until its parent has opened events on it: it finds them here. */
PROCESS_EXPORT int kill(pid_t process, int signal)
{
	int result = (int)answer(process_call(SYS_kill, process, signal));
	process_interface_safe_point();
	return result;
}

PROCESS_EXPORT int raise(int signal)
{
	int result = PROCESS_NEXT(raise)(signal);
	process_interface_safe_point();
	return result;
}

/* --- waiting -------------------------------------------------------------- */

PROCESS_EXPORT int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	int result;
	if (interface_epoll_control(epoll, operation, fd, event, &result))
		return (int)answer(result);
	return PROCESS_NEXT(epoll_ctl)(epoll, operation, fd, event);
}
