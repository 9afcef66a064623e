/* Patterns whose misses can be reckoned by hand: `patterns NAME PASSES`.  Without a libc, and each access is one that is
 * written here: what a pass adds is the difference of two runs divided by their passes.  patterns.py has the reckoning. */
typedef unsigned long u64;
typedef unsigned char u8;

enum { KIB = 1024, LINE = 64, PAGE = 4096 };

static u8 memory[9 << 20] __attribute__((aligned(1 << 20)));
static u64 next[(8 << 20) / LINE]; /* a chase's order, by line */

static inline void load(const void *at) { u64 v; __asm__ volatile("mov (%1), %0" : "=r"(v) : "r"(at) : "memory"); }
static inline void store(void *at) { __asm__ volatile("movq $1, (%0)" : : "r"(at) : "memory"); }
static inline void *follow(void *at) { __asm__ volatile("mov (%0), %0" : "+r"(at) : : "memory"); return at; }

static void loads(u64 bytes, u64 stride, u64 offset)
{
	for (u64 at = 0; at < bytes; at += stride)
		load(memory + at + offset);
}

static void stores(u64 bytes, u64 stride)
{
	for (u64 at = 0; at < bytes; at += stride)
		store(memory + at);
}

/* One cycle through all lines in an order by chance (Sattolo): made once, followed from its beginning in each pass. */
static void make_chase(u64 bytes)
{
	u64 lines = bytes / LINE, seed = 1;
	for (u64 i = 0; i < lines; i++)
		next[i] = i;
	for (u64 i = lines - 1; i > 0; i--) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		u64 j = (seed >> 33) % i, keep = next[i];
		next[i] = next[j];
		next[j] = keep;
	}
	for (u64 i = 0; i < lines; i++)
		*(void **)(void *)(memory + next[i] * LINE) = memory + next[(i + 1) % lines] * LINE;
}

static void chase(u64 bytes)
{
	void *at = memory;
	for (u64 steps = bytes / LINE; steps; steps--)
		at = follow(at);
}

/* A conditional jump on the lowest bit of `bits`, then the next: 64 of them. */
static void branches(u64 bits)
{
	u64 count = 64;
	__asm__ volatile("1: shr $1, %0\n jc 2f\n nop\n2: dec %1\n jnz 1b" : "+r"(bits), "+r"(count) : : "cc");
}

static u64 random_bits;

static void random_branches(void)
{
	for (int i = 0; i < 16; i++) {
		random_bits = random_bits * 6364136223846793005u + 1442695040888963407u;
		branches(random_bits ^ random_bits >> 29);
	}
}

static __attribute__((noinline)) void descend(u64 depth)
{
	if (depth)
		descend(depth - 1);
	__asm__ volatile("" : : : "memory"); /* no tail call */
}

static __attribute__((noinline)) void target_a(void) { __asm__ volatile(""); }
static __attribute__((noinline)) void target_b(void) { __asm__ volatile("nop"); }

static void calls(int targets)
{
	void (*volatile table[2])(void) = { target_a, targets > 1 ? target_b : target_a };
	for (int i = 0; i < 64; i++)
		table[i & 1]();
}

static int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static void pass(const char *name)
{
	if (same(name, "within-l1")) loads(16 * KIB, LINE, 0);
	else if (same(name, "beyond-l1")) loads(64 * KIB, LINE, 0);
	else if (same(name, "beyond-l2")) loads(512 * KIB, LINE, 0);
	else if (same(name, "beyond-llc")) loads(8192 * KIB, LINE, 0);
	else if (same(name, "stride-8")) loads(64 * KIB, 8, 0);
	else if (same(name, "stride-128")) loads(64 * KIB, 128, 0);
	else if (same(name, "straddling")) loads(64 * KIB, LINE, 60);
	else if (same(name, "stores")) stores(64 * KIB, LINE);
	else if (same(name, "ways-full")) loads(8 * PAGE, PAGE, 0);
	else if (same(name, "ways-and-one")) loads(9 * PAGE, PAGE, 0);
	else if (same(name, "chase-l1")) chase(64 * KIB);
	else if (same(name, "chase-l2")) chase(512 * KIB);
	else if (same(name, "chase-llc")) chase(8192 * KIB);
	else if (same(name, "pages-tlb")) loads(64 * PAGE, PAGE, 0);
	else if (same(name, "pages-stlb")) loads(128 * PAGE, PAGE, 0);
	else if (same(name, "pages-walk")) loads(2048 * PAGE, PAGE, 0);
	else if (same(name, "branch-same")) branches(~0ul);
	else if (same(name, "branch-alternating")) branches(0x5555555555555555ul);
	else if (same(name, "branch-random")) random_branches();
	else if (same(name, "return-shallow")) descend(10);
	else if (same(name, "return-deep")) descend(24);
	else if (same(name, "indirect-one")) calls(1);
}

static __attribute__((used, noreturn)) void begin(u64 *stack)
{
	const char *name = (const char *)stack[2], *number = (const char *)stack[3];
	u64 passes = 0;
	while (*number)
		passes = passes * 10 + (u64)(*number++ - '0');
	if (same(name, "chase-l1")) make_chase(64 * KIB);
	else if (same(name, "chase-l2")) make_chase(512 * KIB);
	else if (same(name, "chase-llc")) make_chase(8192 * KIB);
	for (u64 i = 0; i < passes; i++)
		pass(name);
	__asm__ volatile("syscall" : : "a"(231), "D"(0) : "rcx", "r11", "memory");
	__builtin_unreachable();
}

__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
