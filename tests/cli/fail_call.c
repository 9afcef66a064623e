/* Makes a command's system calls fail, as a full disk, a broken one or an impatient signal does.
 *
 *     fail_call CALLS PART HOW N COUNT command…
 *
 * CALLS: names of system calls, separated by commas (`names` below).  PART: a part of the path of
 * the call's file, or "": any file.  The calls of the command's own process that match are counted
 * from 1.  HOW: the name of an errno, with which they fail, or KILL, which kills the command in the
 * call.  N: which of them ("3"; "3+": this one and all later ones; "%3": each third; "0": none).
 * COUNT: a file for the number of matching calls, or "".  Exits as the command does; 125: the calls
 * can't be watched here.
 *
 * A seccomp filter sends the calls to this process, which watches.  Programs that the command starts
 * have the filter too; their calls go on unchanged.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum file { DESCRIPTOR, PATH, NONE }; /* where the arguments name the file */

static const struct call {
	const char *name;
	int number;
	enum file file;
	unsigned argument; /* the one with the descriptor or the path */
} calls[] = {
	{ "read", SYS_read, DESCRIPTOR, 0 },
	{ "pread", SYS_pread64, DESCRIPTOR, 0 },
	{ "write", SYS_write, DESCRIPTOR, 0 },
	{ "pwrite", SYS_pwrite64, DESCRIPTOR, 0 },
	{ "writev", SYS_writev, DESCRIPTOR, 0 },
	{ "copy", SYS_copy_file_range, DESCRIPTOR, 2 },
	{ "truncate", SYS_ftruncate, DESCRIPTOR, 0 },
	{ "sync", SYS_fsync, DESCRIPTOR, 0 },
	{ "datasync", SYS_fdatasync, DESCRIPTOR, 0 },
	{ "chmod", SYS_fchmod, DESCRIPTOR, 0 },
	{ "close", SYS_close, DESCRIPTOR, 0 },
	{ "mmap", SYS_mmap, DESCRIPTOR, 4 },
	{ "open", SYS_openat, PATH, 1 },
	{ "link", SYS_linkat, PATH, 3 },
	{ "renameat", SYS_renameat, PATH, 1 },
	{ "renameat2", SYS_renameat2, PATH, 1 },
	{ "unlinkat", SYS_unlinkat, PATH, 1 },
	{ "ppoll", SYS_ppoll, NONE, 0 },
	{ "epoll", SYS_epoll_pwait, NONE, 0 },
	{ "wait", SYS_wait4, NONE, 0 },
	{ "clone3", SYS_clone3, NONE, 0 },
#ifdef __x86_64__
	{ "rename", SYS_rename, PATH, 0 },
	{ "unlink", SYS_unlink, PATH, 0 },
	{ "poll", SYS_poll, NONE, 0 },
	{ "epoll_wait", SYS_epoll_wait, NONE, 0 },
#endif
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static const struct {
	const char *name;
	int code;
} codes[] = { { "ENOSPC", ENOSPC }, { "EIO", EIO },	{ "EDQUOT", EDQUOT }, { "EFBIG", EFBIG },
	      { "EINTR", EINTR },   { "EROFS", EROFS }, { "EMFILE", EMFILE }, { "ENFILE", ENFILE },
	      { "EPIPE", EPIPE },   { "ENOMEM", ENOMEM }, { "EAGAIN", EAGAIN }, { "EACCES", EACCES },
	      { "KILL", 0 } };

struct watch {
	bool wanted[CALLS];
	const char *part;
	int code; /* 0: kill */
	unsigned long first, step; /* the first that fails; step: each so many */
	bool onward;
	unsigned long count;
	pid_t child;
};

static int usage(void)
{
	fprintf(stderr, "usage: fail_call CALLS PART ERRNO|KILL N[+]|%%N COUNT command…\n");
	return 125;
}

static bool take_calls(struct watch *watch, char *names)
{
	for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		unsigned i = 0;
		while (i < CALLS && strcmp(calls[i].name, name))
			i++;
		if (i < CALLS)
			watch->wanted[i] = true;
	}
	return true;
}

static bool take_how(struct watch *watch, const char *how, const char *which)
{
	char *end;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (strcmp(codes[i].name, how))
			continue;
		watch->code = codes[i].code;
		if (*which == '%')
			watch->step = strtoul(which + 1, &end, 10);
		else
			watch->first = strtoul(which, &end, 10);
		watch->onward = *end == '+';
		return true;
	}
	return false;
}

/* ---- the command's process ------------------------------------------------- */

/* Installs the filter.  Returns the descriptor that reports calls, or -1. */
static int install(const struct watch *watch)
{
	struct sock_filter filter[CALLS * 2 + 2];
	unsigned short length = 0;
	filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < CALLS; i++) {
		if (!watch->wanted[i])
			continue;
		filter[length++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, 0, 1);
		filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
								SECCOMP_RET_USER_NOTIF);
	}
	filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = length, .filter = filter };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* Passes a descriptor to the process at the other end. */
static bool send_descriptor(int to, int fd)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec one = { &byte, 1 };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = space,
				  .msg_controllen = sizeof(space) };
	struct cmsghdr *part = CMSG_FIRSTHDR(&message);
	*part = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(part), &fd, sizeof(fd));
	return sendmsg(to, &message, 0) == 1;
}

static int receive_descriptor(int from)
{
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec one = { &byte, 1 };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = space,
				  .msg_controllen = sizeof(space) };
	int fd = -1;
	if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static void run_command(const struct watch *watch, int end, char **command)
{
	int fd = install(watch);
	if (fd < 0) {
		perror("fail_call: seccomp");
		_exit(125);
	}
	/* Both descriptors are closed at exec; closing them here would be reported. */
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (!send_descriptor(end, fd))
		_exit(125);
	execvp(command[0], command);
	perror(command[0]);
	_exit(127);
}

/* ---- watching -------------------------------------------------------------- */

/* True if the thread is of the command's own process. */
static bool is_ours(const struct watch *watch, unsigned tid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%u", watch->child, tid);
	return !access(path, F_OK);
}

/* Finds the path of the call's file.  A process that has just been forked may have ended. */
static bool find_path(const struct call *call, const struct seccomp_notif *request,
		      char path[PATH_MAX])
{
	uint64_t argument = request->data.args[call->argument];
	char link[64];
	ssize_t length = 0;
	if (call->file == DESCRIPTOR) {
		snprintf(link, sizeof(link), "/proc/%u/fd/%d", request->pid, (int)argument);
		length = readlink(link, path, PATH_MAX - 1);
	} else if (call->file == PATH) {
		struct iovec to = { path, PATH_MAX - 1 };
		struct iovec from = { (void *)(uintptr_t)argument, PATH_MAX - 1 };
		/* the path may end less than PATH_MAX before the end of its mapping */
		from.iov_len = 4096 - argument % 4096;
		length = process_vm_readv((pid_t)request->pid, &to, 1, &from, 1, 0);
		if (length == (ssize_t)from.iov_len && length < PATH_MAX - 1 &&
		    !memchr(path, 0, (size_t)length)) {
			to = (struct iovec){ path + length, (size_t)(PATH_MAX - 1 - length) };
			from = (struct iovec){ (void *)(uintptr_t)(argument + (uint64_t)length),
					       (size_t)(PATH_MAX - 1 - length) };
			ssize_t more = process_vm_readv((pid_t)request->pid, &to, 1, &from, 1, 0);
			length += more > 0 ? more : 0;
		}
	}
	path[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static bool matches(const struct watch *watch, const struct seccomp_notif *request)
{
	char path[PATH_MAX];
	for (unsigned i = 0; i < CALLS; i++)
		if (watch->wanted[i] && calls[i].number == request->data.nr)
			return is_ours(watch, request->pid) &&
			       (!*watch->part || (find_path(&calls[i], request, path) &&
						  strstr(path, watch->part)));
	return false;
}

static bool fails(struct watch *watch)
{
	watch->count++;
	if (watch->step)
		return watch->count % watch->step == 0;
	return watch->first && (watch->onward ? watch->count >= watch->first
					      : watch->count == watch->first);
}

static bool answer(struct watch *watch, int fd)
{
	struct seccomp_notif request = { 0 };
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
		return errno == EINTR || errno == ENOENT;
	struct seccomp_notif_resp response = { .id = request.id };
	bool is_chosen = matches(watch, &request) && fails(watch);
	if (is_chosen && !watch->code)
		kill(watch->child, SIGKILL);
	if (is_chosen && watch->code)
		response.error = -watch->code;
	else
		response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	return ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0 || errno == ENOENT;
}

/* Answers until no process with the filter is left.  The command's children may outlive it. */
static int watch_calls(struct watch *watch, int fd)
{
	int status = 0;
	bool ended = false;
	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int ready = poll(&wait, 1, ended ? 2000 : 100);
		if (!ended && waitpid(watch->child, &status, WNOHANG) == watch->child)
			ended = true;
		if (ready > 0 && wait.revents & POLLIN && !answer(watch, fd))
			break;
		if ((ready > 0 && !(wait.revents & POLLIN)) || (!ready && ended))
			break;
	}
	if (!ended && waitpid(watch->child, &status, 0) < 0)
		return 125;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool write_count(const char *path, unsigned long count)
{
	FILE *file = *path ? fopen(path, "we") : NULL;
	bool failed = file && fprintf(file, "%lu\n", count) < 0;
	return !(file && fclose(file)) && !failed && (file || !*path);
}

int main(int argc, char **argv)
{
	struct watch watch = { 0 };
	int ends[2];
	if (argc < 7 || !take_calls(&watch, argv[1]) || !take_how(&watch, argv[3], argv[4]))
		return usage();
	watch.part = argv[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return 125;
	watch.child = fork();
	if (watch.child < 0)
		return 125;
	if (!watch.child)
		run_command(&watch, ends[1], argv + 6);
	close(ends[1]);
	int fd = receive_descriptor(ends[0]), status;
	if (fd < 0)
		return waitpid(watch.child, &status, 0) < 0 ? 125 : WEXITSTATUS(status);
	int result = watch_calls(&watch, fd);
	return write_count(argv[5], watch.count) ? result : 125;
}
