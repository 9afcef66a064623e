/* refuse_perf EPERM|ENOSYS|EACCES|KILL command…: runs the command under a seccomp filter that
 * refuses perf_event_open(2) in this way, as containers do. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int action_of(const char *name, unsigned *out)
{
	static const struct { const char *name; unsigned action; } actions[] = {
		{ "EPERM", SECCOMP_RET_ERRNO | EPERM },
		{ "ENOSYS", SECCOMP_RET_ERRNO | ENOSYS },
		{ "EACCES", SECCOMP_RET_ERRNO | EACCES },
		{ "KILL", SECCOMP_RET_KILL_PROCESS },
	};
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (!strcmp(actions[i].name, name)) {
			*out = actions[i].action;
			return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned action;
	if (argc < 3 || !action_of(argv[1], &action)) {
		fprintf(stderr, "usage: refuse_perf EPERM|ENOSYS|EACCES|KILL command…\n");
		return 125;
	}
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("refuse_perf: seccomp");
		return 125;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
