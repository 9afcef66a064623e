/* Lists the instructions that a program executes on the real CPU: `single_step OUT PROGRAM
 * [ARGUMENT…]`.
 *
 * PTRACE_SINGLESTEP stops before each instruction; OUT gets their addresses as 64-bit numbers in
 * order.  A string instruction with a repeat prefix stops at each repetition, and is written once.
 * The loader does not learn of the vdso, since the simulated CPU has none.  For single-threaded
 * programs.  Exits with the program's status. */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
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

static uint64_t peek(pid_t pid, uint64_t at)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)at, NULL);
}

/* True for F2 or F3, with legacy and REX prefixes, before a string instruction's opcode. */
static bool is_repeated_string(pid_t pid, uint64_t ip)
{
	uint64_t word = peek(pid, ip);
	bool has_repeat = false;
	for (int i = 0; i < 8; i++, word >>= 8) {
		uint8_t byte = (uint8_t)word;
		if (byte == 0xf2 || byte == 0xf3)
			has_repeat = true;
		else if (byte != 0x66 && byte != 0x67 && (byte & 0xf0) != 0x40)
			return has_repeat &&
			       ((byte >= 0xa4 && byte <= 0xa7) || (byte >= 0xaa && byte <= 0xaf));
	}
	return false;
}

/* Removes the vdso's address from the auxiliary vector, at the first stop, when the stack is as the
 * kernel made it. */
static int hide_vdso(pid_t pid)
{
	uint64_t at = (uint64_t)ptrace(PTRACE_PEEKUSER, pid,
				       (void *)offsetof(struct user_regs_struct, rsp), NULL),
		 type;
	at += 8 * (1 + peek(pid, at) + 1); /* number of arguments, and the arguments */
	while (peek(pid, at)) /* the environment */
		at += 8;
	for (at += 8; (type = peek(pid, at)) != AT_NULL; at += 16)
		if (type == AT_SYSINFO_EHDR &&
		    ptrace(PTRACE_POKEDATA, pid, (void *)(uintptr_t)at, (void *)AT_IGNORE))
			return fail("PTRACE_POKEDATA");
	return 0;
}

static int follow(pid_t pid, FILE *out)
{
	uint64_t previous = 0;
	int status;
	if (waitpid(pid, &status, 0) != pid)
		return fail("waitpid");
	if (WIFSTOPPED(status) && hide_vdso(pid))
		return 125;
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
