/* Makes call stacks of every kind that C has.  The test leads an unwinder through them one
 * instruction at a time.  Each `int3` begins or ends a stretch that the test steps through. */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define BREAK __asm__ volatile("int3")

volatile int sink;

NOINLINE static int leaf(int x)
{
	sink += x;
	return x * 3 + 1;
}

/* Saves every callee-saved register; its callees use all of them too. */
NOINLINE static int deep(int depth, int a, int b, int c, int d)
{
	if (depth == 0)
		return leaf(a) + leaf(b);
	int first = deep(depth - 1, b, c, d, a + 1);
	int second = leaf(first + a);
	return first * b + second * c + leaf(d) + leaf(a);
}

NOINLINE static int with_alloca(int size)
{
	char *bytes = alloca((size_t)size);
	memset(bytes, size, (size_t)size);
	int sum = 0;
	for (int i = 0; i < size; i += 8)
		sum += leaf(bytes[i]);
	return sum;
}

NOINLINE static void fill(int *numbers)
{
	for (int i = 0; i < 4; i++)
		numbers[i] = leaf(i);
}

NOINLINE static int realigned(int x)
{
	int numbers[16] __attribute__((aligned(64)));
	fill(numbers);
	return numbers[x & 3] + leaf(numbers[0]);
}

static int compare(const void *a, const void *b)
{
	return leaf(*(const int *)a) - leaf(*(const int *)b);
}

static sigjmp_buf jump;

NOINLINE static __attribute__((noreturn)) void leave(int x)
{
	leaf(x);
	siglongjmp(jump, 1);
}

/* Its last instruction is the call, so the return address belongs to another function. */
NOINLINE static void never_returns(int x)
{
	leaf(x);
	leave(x + 1);
}

/* The first byte of the function faults.  At ip − 1, another function's rules hold. */
int faults_at_entry(int x);
__asm__(".text\n"
	"nop\n"
	".globl faults_at_entry\n"
	".type faults_at_entry,@function\n"
	"faults_at_entry:\n"
	".cfi_startproc\n"
	"ud2\n"
	"push %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset %rbx, 0\n"
	"mov %edi,%eax\n"
	"pop %rbx\n"
	".cfi_adjust_cfa_offset -8\n"
	".cfi_restore %rbx\n"
	"ret\n"
	".cfi_endproc\n"
	".size faults_at_entry, . - faults_at_entry\n");

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info;
	deep(2, 1, 2, 3, 4);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void on_signal(int signal)
{
	deep(3, signal, 2, 3, 4);
}

NOINLINE static int raises(int signal)
{
	int before = leaf(signal);
	raise(signal);
	return before + leaf(signal);
}

static void *run_thread(void *argument)
{
	BREAK;
	int result = deep(4, 1, 2, 3, 4) + raises(SIGUSR1);
	BREAK;
	return (void *)(long)(result + (int)(long)argument);
}

NOINLINE static void forks(void)
{
	pid_t child = vfork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
}

NOINLINE static void run_all(void)
{
	char text[256];
	int numbers[24];
	sink += deep(9, 1, 2, 3, 4) + with_alloca(100) + realigned(2);
	for (int i = 0; i < 24; i++)
		numbers[i] = i * 7919 % 24;
	qsort(numbers, 24, sizeof(*numbers), compare);
	snprintf(text, sizeof(text), "%d %s %f", sink, "text", 3.14159);
	if (sigsetjmp(jump, 1) == 0)
		never_returns(5);
	sink += faults_at_entry(5) + raises(SIGUSR1) + raises(SIGUSR2);
	time_t now = time(NULL);
	struct timespec precise;
	clock_gettime(CLOCK_MONOTONIC, &precise);
	sink += (int)now + (int)strlen(text);
	forks();
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	sigaction(SIGILL, &action, NULL);
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	sigaltstack(&stack, NULL);
	signal(SIGUSR1, on_signal);
	action = (struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	sigaction(SIGUSR2, &action, NULL);
	BREAK;
	run_all();
	BREAK;
	pthread_t thread;
	if (pthread_create(&thread, NULL, run_thread, NULL) == 0)
		pthread_join(thread, NULL);
	return 0;
}
