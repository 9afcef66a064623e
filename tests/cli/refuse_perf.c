/* refuse_perf EPERM|ENOSYS|EACCES|KILL|MEMORY command…: runs the command under a seccomp filter that
 * refuses perf_event_open(2) in this way, or process_vm_readv(2), as containers do. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct refusal {
	const char *name;
	unsigned action;
	unsigned call;
};

/* Returns the refusal of that name, or NULL. */
static const struct refusal *refusal_of(const char *name)
{
	static const struct refusal refusals[] = {
		{ "EPERM", SECCOMP_RET_ERRNO | EPERM, SYS_perf_event_open },
		{ "ENOSYS", SECCOMP_RET_ERRNO | ENOSYS, SYS_perf_event_open },
		{ "EACCES", SECCOMP_RET_ERRNO | EACCES, SYS_perf_event_open },
		{ "KILL", SECCOMP_RET_KILL_PROCESS, SYS_perf_event_open },
		{ "MEMORY", SECCOMP_RET_ERRNO | EPERM, SYS_process_vm_readv },
	};
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (!strcmp(refusals[i].name, name))
			return &refusals[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct refusal *refusal = argc < 3 ? NULL : refusal_of(argv[1]);
	if (!refusal) {
		fprintf(stderr, "usage: refuse_perf EPERM|ENOSYS|EACCES|KILL|MEMORY command…\n");
		return 125;
	}
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refusal->call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, refusal->action),
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
