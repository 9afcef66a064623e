/* Makes stacks of many kinds on arm64, without a libc.  walk-plain.perfdata and walk-pac.perfdata
 * are recordings of it, made by perf 6.1 in a guest machine (QEMU's -cpu max, Linux 6.1) with the
 * programs in /prog:
 *
 *     aarch64-linux-gnu-gcc -O2 -ffreestanding -nostdlib -static -fno-stack-protector
 *         -fasynchronous-unwind-tables -fomit-frame-pointer -Wl,--build-id -Wl,--eh-frame-hdr
 *         -Wl,-z,max-page-size=4096 walk.c -o walk-plain
 *     … -march=armv8.3-a -mbranch-protection=pac-ret walk.c -o walk-pac
 *     perf record --buildid-mmap -z=19 -e cycles -c 800003 --call-graph dwarf,8192
 *         -o walk-plain.perfdata /prog/walk-plain
 *     perf record --buildid-mmap -z=19 -e cycles -c 1000003 --call-graph dwarf,8192
 *         -o walk-pac.perfdata /prog/walk-pac
 */
#define KEPT __attribute__((noinline, noclone))

typedef unsigned long word;
typedef void visit(word);

enum {
	ROUNDS = 3000,
	SIGPROF = 27,
	ITIMER_PROF = 2,
	SYS_SETITIMER = 103,
	SYS_RT_SIGACTION = 134,
	SYS_EXIT_GROUP = 94
};

struct action {
	void (*handler)(int);
	word flags;
	void (*restorer)(void);
	word mask;
};

struct timer {
	long interval_s, interval_us, value_s, value_us;
};

volatile word sink;
volatile long signals;
static word seed = 88172645463325252ul;

static long call_kernel(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
			 x2 __asm__("x2") = c, x3 __asm__("x3") = d;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}

KEPT word next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

KEPT word leaf(word n)
{
	word sum = n;
	for (word i = 0; i < 200; i++)
		sum = sum * 6364136223846793005ul + i;
	return sum;
}

KEPT void large_frame(word n)
{
	volatile unsigned char room[1200];
	for (word i = 0; i < sizeof(room); i++)
		room[i] = 0;
	sink += room[n % 1200] + leaf(n);
}

KEPT void with_alloca(word n)
{
	unsigned char *room = __builtin_alloca(16 + n % 200);
	for (word i = 0; i < 16; i++)
		((volatile unsigned char *)room)[i] = (unsigned char)i;
	sink += room[3] + leaf(n);
	large_frame(n);
}

KEPT void each(visit *call, word n)
{
	for (word i = 0; i < 3; i++)
		call(n + i);
	sink++;
}

KEPT double with_doubles(double a, double b, word n)
{
	double c = a * b;
	for (word i = 0; i < 50; i++)
		c = c * 1.0001 + a;
	sink += leaf(n);
	return c + a * b;
}

KEPT word recurse(word depth, word n)
{
	if (!depth) {
		each(with_alloca, n);
		return leaf(n);
	}
	word one = recurse(depth - 1, n + 1);
	return one + next_random();
}

KEPT void on_alarm(int signal)
{
	(void)signal;
	signals++;
	for (word i = 0; i < 2000; i++)
		sink += leaf(i);
	each(large_frame, 5);
}

KEPT word work(word n)
{
	sink += (word)with_doubles(1.5, (double)n, n);
	return recurse(n % 12, n) + leaf(n);
}

KEPT long run(long rounds)
{
	for (long i = 0; i < rounds; i++)
		sink += work(next_random());
	return 0;
}

KEPT void start(void)
{
	struct action action = { .handler = on_alarm };
	struct timer timer = { 0, 3000, 0, 3000 };
	call_kernel(SYS_RT_SIGACTION, SIGPROF, (long)&action, 0, 8);
	call_kernel(SYS_SETITIMER, ITIMER_PROF, (long)&timer, 0, 0);
	run(ROUNDS);
	call_kernel(SYS_EXIT_GROUP, 0, 0, 0, 0);
}

__asm__(".globl _start\n"
	".type _start,%function\n"
	"_start:\n"
	".cfi_startproc\n"
	".cfi_undefined x30\n"
	"mov x29,#0\n"
	"mov x30,#0\n"
	"bl start\n"
	"brk #0\n"
	".cfi_endproc\n"
	".size _start,.-_start\n");
