/* Which instructions a program executes, as the CPU itself tells: `single_step OUT PROGRAM [ARGUMENT…]`.
 *
 * PTRACE_SINGLESTEP stops before each instruction; their addresses go to OUT as 64-bit numbers in order.  A string
 * instruction with a repeat prefix stops once for each turn, and is written once.  For single-threaded, static programs; exit status: the
 * program's. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char *what)
{
	fprintf(stderr, "single_step: %s: %s\n", what, strerror(errno));
	return 125;
}

/* F2 or F3, with legacy and REX prefixes around, before a string instruction's opcode. */
static bool is_repeated_string(pid_t pid, uint64_t ip)
{
	uint64_t word = (uint64_t)ptrace(PTRACE_PEEKTEXT, pid, (void *)(uintptr_t)ip, NULL);
	bool has_repeat = false;
	for (int i = 0; i < 8; i++, word >>= 8) {
		uint8_t byte = (uint8_t)word;
		if (byte == 0xf2 || byte == 0xf3)
			has_repeat = true;
		else if (byte != 0x66 && byte != 0x67 && (byte & 0xf0) != 0x40)
			return has_repeat && ((byte >= 0xa4 && byte <= 0xa7) || (byte >= 0xaa && byte <= 0xaf));
	}
	return false;
}

static int follow(pid_t pid, FILE *out)
{
	uint64_t previous = 0;
	int status;
	if (waitpid(pid, &status, 0) != pid)
		return fail("waitpid");
	while (WIFSTOPPED(status)) {
		struct user_regs_struct regs;
		int signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
			return fail("PTRACE_GETREGS");
		if (!signal && (regs.rip != previous || !is_repeated_string(pid, regs.rip)))
			fwrite(&regs.rip, sizeof(regs.rip), 1, out);
		previous = regs.rip;
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(uintptr_t)signal))
			return fail("PTRACE_SINGLESTEP");
		if (waitpid(pid, &status, 0) != pid)
			return fail("waitpid");
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return fprintf(stderr, "usage: single_step OUT PROGRAM [ARGUMENT…]\n"), 125;
	FILE *out = fopen(argv[1], "we");
	if (!out)
		return fail(argv[1]);
	pid_t pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[2], argv + 2);
		_exit(fail(argv[2]));
	}
	int result = pid < 0 ? fail("fork") : follow(pid, out);
	return fclose(out) ? fail(argv[1]) : result;
}
