#!/bin/bash
# Stacks of code that is not like a compiler's: assembly, labels, JIT code without frame pointers,
# fibers, 32-bit programs, split stacks, processes whose main thread has ended.  The callers must be
# right, and what is whole must not be called cut.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export XDG_CACHE_HOME=$scratch/cache
have gcc || skip_all "no gcc"
[ "$(uname -m)" = x86_64 ] || skip_all "the programs are for x86-64"
"$TALLY" record -q -o probe.data -- true >/dev/null 2>&1 || skip_all "perf events are refused"

cat >main.c <<'C'
#include <stdint.h>
#include <time.h>
void work(void);
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
__attribute__((noipa)) void driver(void)
{
	register long zero __asm__("rbx") = 0;
	__asm__ volatile("" : : "r"(zero));
	work();
	__asm__ volatile("" : : "r"(zero));
}
int main(void)
{
	for (double end = now() + 0.3; now() < end;)
		driver();
	return 0;
}
C
end='	.section .note.GNU-stack,"",@progbits'
spin='	mov $50000,%ecx
1:	imul $77,%rax,%rax
	dec %ecx
	jnz 1b'
function='	.text
	.globl work
	.type work,@function
work:'

# NAME FILE: records it.
record() { "$TALLY" record -q -o "$1.data" -- "./$1" >out 2>err; }
# NAME PATTERN: 90 % of the samples have this stack, and 99 % are whole.  The pattern is an extended
# regular expression for the whole folded stack, without kernel frames.
check_stacks() {
	"$TALLY" fold -i "$1.data" >out 2>err
	awk -v pattern="$2" '{ weight = $NF; sub(/ [0-9]+$/, ""); all += weight
		if ($0 ~ pattern) good += weight
		if (/\[truncated\]/) cut += weight }
		END { printf "# %.1f %% have the stack, %.1f %% are cut\n", 100 * good / all, 100 * cut / all
		exit !(all && good > 0.9 * all && cut < 0.01 * all) }' out
}
# NAME: the calls in its stacks agree with the code.
check_calls() {
	"$TALLY" report -v --stdio -i "$1.data" >out 2>err
	grep -q 'stacks: [1-9][0-9,]* pairs of caller and callee agree with the code, 0 do not' err
}
# NAME WHAT PATTERN: a program of main.c and the assembly on standard input.
assembly() {
	cat >"$1.S"
	if gcc -O2 -w main.c "$1.S" -o "$1" 2>err; then
		record "$1"
		check "$2" check_stacks "$1" "$3"
		check "$2: calls agree with the code" check_calls "$1"
	else
		skip "$2" "gcc can't build it"
	fi
}

assembly label "a label inside of a function is not its beginning" ';main;driver;work' <<S
	.text
	.globl work
work:
	push %rbx
	xor %ebx,%ebx
	mov \$50000,%ecx
work.loop:
	imul \$77,%rax,%rax
	dec %ecx
	jnz work.loop
	pop %rbx
	ret
$end
S
assembly aligned "a stack is aligned by a copy of rsp" ';main;driver;work' <<S
$function
	sub \$96,%rsp
	mov %rbx,(%rsp)
	mov %rbp,8(%rsp)
	mov %rsp,%rbx
	sub \$640,%rsp
	and \$-64,%rsp
$spin
	mov %rbx,%rsp
	mov (%rsp),%rbx
	mov 8(%rsp),%rbp
	add \$96,%rsp
	ret
	.size work,.-work
$end
S
assembly stored "… that is stored in the aligned part" ';main;driver;work' <<S
$function
	push %rbx
	mov %rsp,%rax
	and \$-64,%rsp
	sub \$256,%rsp
	mov %rax,136(%rsp)
	xor %eax,%eax
$spin
	mov 136(%rsp),%rsp
	pop %rbx
	ret
	.size work,.-work
$end
S
assembly wrong "unwind rules that forget a push" ';main;driver;work' <<S
$function
	.cfi_startproc
	push %rbx
	sub \$24,%rsp
$spin
	add \$24,%rsp
	pop %rbx
	ret
	.cfi_endproc
	.size work,.-work
$end
S

# JIT code without frame pointers, called by a function that has one.
cat >jit.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static unsigned char *code;
static unsigned at;
static unsigned emit(const void *bytes, unsigned size)
{
	unsigned start = at;
	memcpy(code + at, bytes, size);
	at += size;
	return start;
}
static unsigned caller(unsigned callee, int by_pointer)
{
	unsigned start = emit("\x48\x83\xec\x18", 4); /* sub $24,%rsp */
	int32_t distance = (int32_t)callee - (int32_t)(at + 5);
	uint64_t address = (uint64_t)(code + callee);
	emit(by_pointer ? "\x48\xb8" : "\xe8", by_pointer ? 2 : 1);
	emit(by_pointer ? (void *)&address : (void *)&distance, by_pointer ? 8 : 4);
	if (by_pointer)
		emit("\xff\xd0", 2);
	emit("\x48\x83\xc4\x18\xc3", 5);
	while (at % 16)
		emit("\x90", 1);
	return start;
}
__attribute__((noipa)) void run_jit(void (*f)(void)) { f(); __asm__ volatile(""); }
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
int main(int argc, char **argv)
{
	code = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned leaf = emit("\x48\x83\xec\x08\xb9\x50\xc3\x00\x00\x48\x6b\xc0\x4d\xff\xc9\x75\xf8\x48\x83\xc4"
			     "\x08\xc3", 22);
	while (at % 16)
		emit("\x90", 1);
	unsigned middle = caller(leaf, argc > 1), outer = caller(middle, argc > 1);
	char name[64];
	sprintf(name, "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(name, "w");
	fprintf(map, "%lx 20 j_leaf\n%lx 20 j_middle\n%lx 20 j_outer\n", (long)code + leaf,
		(long)code + middle, (long)code + outer);
	fclose(map);
	for (double end = now() + 0.3; now() < end;)
		run_jit((void (*)(void))(code + outer));
	return 0;
}
C
if gcc -O2 -fno-omit-frame-pointer -w jit.c -o jit 2>err; then
	record jit
	check "JIT code without frame pointers keeps its callers" \
		check_stacks jit ';main;run_jit;j_outer;j_middle;j_leaf'
	"$TALLY" record -q -o pointers.data -- ./jit x >out 2>err
	check "… that calls by pointer" check_stacks pointers ';main;run_jit;j_outer;j_middle;j_leaf'
fi

# A function in the first bytes of a mapping, which left an old return address below its frame.  "old":
# the sampled code follows its beginning; "jumps": it jumps there through a register.
cat >first.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
__attribute__((noipa)) void *after_call(void) { return __builtin_return_address(0); }
__attribute__((noipa)) void run_jit(void (*f)(void *, void *, void *), void *old, void *to, void *end)
{
	f(old, to, end);
	__asm__ volatile("");
}
int main(int argc, char **argv)
{
	/* push %rbp; mov %rsp,%rbp; push %rdi */
	static const unsigned char begin[] = { 0x55, 0x48, 0x89, 0xe5, 0x57 };
	static const unsigned char jump[] = { 0xff, 0xe6 }; /* jmp *%rsi */
	/* mov $50000,%ecx; 1: imul $77,%rax,%rax; dec %ecx; jnz 1b; jmp *%rdx */
	static const unsigned char spin[] = { 0xb9, 0x50, 0xc3, 0, 0, 0x48, 0x6b, 0xc0, 0x4d, 0xff,
					      0xc9, 0x75, 0xf8, 0xff, 0xe2 };
	static const unsigned char end[] = { 0xc9, 0xc3 }; /* leave; ret */
	enum { SPIN = 700, END = 1000, SIZE = 4096 };
	unsigned char *code = mmap(0, SIZE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(code, 0x90, SIZE);
	memcpy(code, begin, sizeof(begin));
	if (!strcmp(argv[1], "jumps"))
		memcpy(code + sizeof(begin), jump, sizeof(jump));
	memcpy(code + SPIN, spin, sizeof(spin));
	memcpy(code + END, end, sizeof(end));
	char name[64];
	sprintf(name, "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(name, "w");
	fprintf(map, "%lx %x j_first\n", (long)code, SIZE);
	fclose(map);
	void *old = after_call();
	for (double until = now() + 0.3; now() < until;)
		run_jit((void (*)(void *, void *, void *))code, old, code + SPIN, code + END);
	return 0;
}
C
if gcc -O2 -fno-omit-frame-pointer -w first.c -o first 2>err; then
	for mode in old jumps; do
		"$TALLY" record -q -o $mode.data -- ./first $mode >out 2>err
		check "the first function of a mapping has its frame, mode $mode" check_stacks $mode ';main;run_jit;j_first'
	done
fi

# The first function of a program, longer than most.
cat >start.S <<S
	.text
	.globl _start
_start:
	pop %rsi
	mov %esi,argc_(%rip)
	mov %rsp,argv_(%rip)
	lea 8(,%rsi,8),%rax
	add %rsp,%rax
	mov %rax,envp_(%rip)
	and \$-16,%rsp
	mov %rsp,top_(%rip)
	lea top_(%rip),%rdi
	xor %ebp,%ebp
	call program
	ret
	.comm argc_,8,8
	.comm argv_,8,8
	.comm envp_,8,8
	.comm top_,8,8
$end
S
cat >program.c <<'C'
static void sys(long n, long a, long b)
{
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b) : "rcx", "r11", "memory");
}
static long now(void)
{
	long t[2];
	sys(228, 3, (long)t);
	return t[0] * 1000000000 + t[1];
}
__attribute__((noipa)) void leaf(void)
{
	volatile long x = 1;
	for (int i = 0; i < 50000; i++)
		x = x * 77 + i;
}
__attribute__((noipa)) void program(void)
{
	for (long end = now() + 300000000; now() < end;)
		leaf();
	sys(231, 0, 0);
}
C
if gcc -O2 -w -nostdlib -static -fno-asynchronous-unwind-tables -fcf-protection=none start.S \
	program.c -o start 2>err; then
	record start
	check "a long first function is the start of its stacks" check_stacks start '^start;_start;program;leaf'
else
	skip "a long first function is the start of its stacks" "gcc can't build it"
fi

# A fiber, as boost::context sets one up: it returns to code that ends the program.
cat >fiber.S <<S
	.text
	.globl enter
	.type enter,@function
enter:
	lea finish(%rip),%rax
	lea -8(%rdi),%rsp
	mov %rax,(%rsp)
	jmp *%rsi
finish:
	xor %edi,%edi
	call _exit@PLT
	hlt
	.size enter,.-enter
$end
S
cat >fiber.c <<'C'
#include <time.h>
void enter(void *stack, void (*function)(void));
static char stack[1 << 16] __attribute__((aligned(16)));
__attribute__((noipa)) static void leaf(void)
{
	volatile long x = 1;
	for (int i = 0; i < 50000; i++)
		x = x * 77 + i;
}
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
__attribute__((noipa)) static void in_fiber(void)
{
	for (double end = now() + 0.3; now() < end;)
		leaf();
}
int main(void) { enter(stack + sizeof(stack) - 64, in_fiber); }
C
if gcc -O2 -w fiber.c fiber.S -o fiber 2>err; then
	record fiber
	check "a fiber's stack begins where it was set up to end" check_stacks fiber '^fiber;enter;in_fiber;leaf'
fi

# The main thread has ended, another one goes on.
cat >ended.c <<'C'
#include <pthread.h>
__attribute__((noipa)) static void burn(void)
{
	static volatile unsigned long sum;
	for (;;)
		sum++;
}
static void *thread(void *x) { burn(); return x; }
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, thread, 0);
	pthread_exit(0);
}
C
if gcc -O2 -w ended.c -o ended -pthread 2>err; then
	./ended &
	pid=$!
	for _ in $(seq 100); do
		[ -s "/proc/$pid/maps" ] || break
		sleep 0.05
	done
	"$TALLY" record -q -o ended.data -p "$pid" --duration 2 >out 2>err
	kill "$pid"
	wait "$pid" 2>/dev/null
	check "a process whose main thread has ended has its mappings" check_stacks ended ';thread;burn'
fi

# 32-bit programs: system calls by the vdso, assembly, signal handlers of both kinds.
cat >narrow.c <<'C'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define APART __attribute__((noipa))
static volatile unsigned long sum;
static char from[100000], to[100000];
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
APART void spin(void) { for (int i = 0; i < 100000; i++) sum += i; }
void plain(int s) { spin(); }
void informed(int s, siginfo_t *i, void *u) { spin(); }
static int order(const void *a, const void *b) { return *(int *)a - *(int *)b; }
APART void step(void)
{
	static int values[1000];
	for (int i = 0; i < 200; i++)
		getppid();
	for (int i = 0; i < 1000; i++)
		values[i] = i * 7919 % 1001;
	qsort(values, 1000, sizeof(int), order);
	raise(SIGUSR1);
	raise(SIGUSR2);
	for (int i = 0; i < 20; i++)
		memcpy(to, from, sizeof(to));
	spin();
	sum++;
}
int main(void)
{
	struct sigaction action = { .sa_sigaction = informed, .sa_flags = SA_SIGINFO };
	signal(SIGUSR1, plain);
	sigaction(SIGUSR2, &action, 0);
	for (double end = now() + 0.3; now() < end;)
		step();
	return 0;
}
C
for flags in "-O2" "-O0" "-O2 -fno-omit-frame-pointer -static"; do
	# shellcheck disable=SC2086
	if gcc -m32 $flags -w narrow.c -o narrow 2>err; then
		record narrow
		check "a 32-bit program, $flags" check_stacks narrow ';main;step'
		check "a 32-bit program, $flags: calls agree with the code" check_calls narrow
	else
		skip "a 32-bit program, $flags" "gcc has no -m32"
	fi
done

cat >split.c <<'C'
#include <time.h>
#define APART __attribute__((noinline))
static volatile unsigned long sum;
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
APART void leaf(void) { for (int i = 0; i < 100000; i++) sum += i; }
APART int outer(int depth)
{
	char room[200];
	room[depth] = 1;
	__asm__ volatile("" : : "r"(room) : "memory");
	if (depth)
		return outer(depth - 1) + room[depth];
	leaf();
	return 1;
}
int main(void)
{
	for (double end = now() + 0.5; now() < end;)
		sum += outer(9);
	return 0;
}
C
if gcc -O2 -fsplit-stack -fuse-ld=gold -w split.c -o split 2>err; then
	record split
	check "a split stack goes on below __morestack" check_stacks split ';main;.*outer;leaf'
else
	skip "a split stack goes on below __morestack" "gcc has no -fsplit-stack with gold"
fi

done_testing
