/* Loads a BPF program that does nothing and keeps it for a moment: a workload for which the kernel
 * makes code.  Exits with 3 if it lacks the permission. */
#include <linux/bpf.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	const struct bpf_insn program[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 0 },
					    { .code = BPF_JMP | BPF_EXIT } };
	const struct timespec moment = { .tv_nsec = 20000000 };
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = 2;
	attr.license = (uintptr_t) "MIT";
	strcpy(attr.prog_name, "for_tally");
	int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd < 0)
		return 3;
	nanosleep(&moment, NULL);
	return 0;
}
