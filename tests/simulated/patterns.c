/* Access patterns whose misses can be computed by hand: `patterns NAME PASSES`.  There is no libc,
 * and each access is written here.  The cost of a pass is the difference of two runs, divided by
 * the difference of their passes.  patterns.py has the computation. */
typedef unsigned long u64;
typedef unsigned char u8;

enum { KIB = 1024, LINE = 64, PAGE = 4096 };

static u8 memory[9 << 20] __attribute__((aligned(1 << 20)));
static u64 next[(8 << 20) / LINE]; /* order of a chase, by line */

static inline void load(const void *at)
{
	u64 v;
	__asm__ volatile("mov (%1), %0" : "=r"(v) : "r"(at) : "memory");
}
static inline void store(void *at) { __asm__ volatile("movq $1, (%0)" : : "r"(at) : "memory"); }
static inline void *follow(void *at)
{
	__asm__ volatile("mov (%0), %0" : "+r"(at) : : "memory");
	return at;
}

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

/* Makes one cycle through all lines in random order (Sattolo).  Each pass follows it from its
 * beginning. */
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

/* Makes 64 conditional jumps, each on the lowest bit of `bits`, which is then shifted. */
static void branches(u64 bits)
{
	u64 count = 64;
	__asm__ volatile("1: shr $1, %0\n jc 2f\n nop\n2: dec %1\n jnz 1b"
			 : "+r"(bits), "+r"(count)
			 :
			 : "cc");
}

static u64 random_bits;

static void random_branches(void)
{
	for (int i = 0; i < 16; i++) {
		random_bits = random_bits * 6364136223846793005u + 1442695040888963407u;
		branches(random_bits ^ random_bits >> 29);
	}
}

/* Three functions call each other by turns, so a return stack of 16 holds another return address at
 * another depth. */
#define DESCEND(name, next) \
	static __attribute__((noinline)) void name(u64 depth) \
	{ \
		if (depth) \
			next(depth - 1); \
		__asm__ volatile("" : : : "memory"); /* no tail call */ \
	}
static void descend(u64 depth);
DESCEND(descend_3, descend)
DESCEND(descend_2, descend_3)
DESCEND(descend, descend_2)

static __attribute__((noinline)) void target(void) { __asm__ volatile(""); }

static void indirect_one(void)
{
	void (*volatile pointer)(void) = target;
	for (int i = 0; i < 64; i++)
		pointer();
}

static int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static void within_l1(void) { loads(16 * KIB, LINE, 0); }
static void beyond_l1(void) { loads(64 * KIB, LINE, 0); }
static void beyond_l2(void) { loads(512 * KIB, LINE, 0); }
static void beyond_llc(void) { loads(8192 * KIB, LINE, 0); }
static void stride_8(void) { loads(64 * KIB, 8, 0); }
static void stride_128(void) { loads(64 * KIB, 128, 0); }
static void straddling(void) { loads(64 * KIB, LINE, 60); }
static void all_stores(void) { stores(64 * KIB, LINE); }
static void ways_full(void) { loads(8 * PAGE, PAGE, 512); }
static void ways_twice(void) { loads(16 * PAGE, PAGE, 512); }
static void chase_l1(void) { chase(64 * KIB); }
static void chase_l2(void) { chase(512 * KIB); }
static void chase_llc(void) { chase(8192 * KIB); }
static void pages_tlb(void) { loads(48 * PAGE, PAGE, 512); }
static void pages_stlb(void) { loads(128 * PAGE, PAGE, 512); }
static void pages_walk(void) { loads(2048 * PAGE, PAGE, 512); }
static void branch_same(void) { branches(~0ul); }
static void branch_alternating(void) { branches(0x5555555555555555ul); }
static void return_shallow(void) { descend(10); }
static void return_deep(void) { descend(24); }

static const struct pattern {
	const char *name;
	void (*pass)(void);
	u64 chased; /* bytes that are chased */
} patterns[] = {
	{ "within-l1", within_l1, 0 },
	{ "beyond-l1", beyond_l1, 0 },
	{ "beyond-l2", beyond_l2, 0 },
	{ "beyond-llc", beyond_llc, 0 },
	{ "stride-8", stride_8, 0 },
	{ "stride-128", stride_128, 0 },
	{ "straddling", straddling, 0 },
	{ "stores", all_stores, 0 },
	{ "ways-full", ways_full, 0 },
	{ "ways-twice", ways_twice, 0 },
	{ "chase-l1", chase_l1, 64 * KIB },
	{ "chase-l2", chase_l2, 512 * KIB },
	{ "chase-llc", chase_llc, 8192 * KIB },
	{ "pages-tlb", pages_tlb, 0 },
	{ "pages-stlb", pages_stlb, 0 },
	{ "pages-walk", pages_walk, 0 },
	{ "branch-same", branch_same, 0 },
	{ "branch-alternating", branch_alternating, 0 },
	{ "branch-random", random_branches, 0 },
	{ "return-shallow", return_shallow, 0 },
	{ "return-deep", return_deep, 0 },
	{ "indirect-one", indirect_one, 0 },
};

static __attribute__((used, noreturn)) void begin(u64 *stack)
{
	const char *name = (const char *)stack[2], *number = (const char *)stack[3];
	const struct pattern *pattern = patterns;
	u64 passes = 0;
	while (*number)
		passes = passes * 10 + (u64)(*number++ - '0');
	while (!same(name, pattern->name))
		pattern++;
	if (pattern->chased)
		make_chase(pattern->chased);
	for (void (*pass)(void) = pattern->pass; passes; passes--)
		pass();
	__asm__ volatile("syscall" : : "a"(231), "D"(0) : "rcx", "r11", "memory");
	__builtin_unreachable();
}

__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
