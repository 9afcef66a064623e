/* Small loops, each with one line that takes most of the time.  slow_lines.py runs them with that
 * line and without it, and compares annotate's lines with the difference.
 *
 * "slow" marks the line; it is left out, or replaced by the code behind "without:".  The lines
 * beside it keep instructions of their own behind the slow one, where an unmoved sample would be.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CELLS = 1 << 20, TABLE = 1 << 24, BYTES = 1 << 20 };

struct cell {
	struct cell *next;
	uint64_t value[7];
};

static struct cell *cells;
static uint64_t *table;
static uint8_t *noise;
static uint64_t seed = 88172645463325252u;
volatile uint64_t sink;
volatile uint64_t one = 1, seventeen = 17, big = 0x123456789abcdefu;
volatile double half = 0.5;
static uint64_t shared;

static uint64_t random_number(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

typedef uint64_t kernel(uint64_t rounds);
#define KERNEL __attribute__((noinline)) static uint64_t
/* keeps the compiler from joining or moving what is before and behind */
#define KEEP(x) __asm__ volatile("" : "+r"(x))
#ifdef __x86_64__
#define KEEP_DOUBLE(x) __asm__ volatile("" : "+x"(x))
#else
#define KEEP_DOUBLE(x) __asm__ volatile("" : "+w"(x))
#endif

KERNEL load_chain(uint64_t rounds)
{
	struct cell *at = cells;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		KEEP(at);
		at = at->next; KEEP(at); /* slow */
		sum += i;
		KEEP(sum);
		sum ^= 3;
		KEEP(sum);
	}
	return sum + (uint64_t)at;
}

KERNEL load_anywhere(uint64_t rounds)
{
	uint64_t sum = 0, at = 1;
	for (uint64_t i = 0; i < rounds; i++) {
		at = at * 6364136223846793005u + 1442695040888963407u;
		KEEP(at);
		at += table[at >> 40]; KEEP(at); /* slow */
		sum ^= at;
		KEEP(sum);
	}
	return sum;
}

KERNEL load_before_break(uint64_t rounds)
{
	struct cell *at = cells;
	uint64_t sum = 0, i = 0;
	do {
		sum ^= i;
		KEEP(sum);
		at = at->next; KEEP(at); /* slow */
		if (++i == rounds)
			break;
	} while (i != 0);
	return sum + (uint64_t)at;
}

KERNEL divide(uint64_t rounds)
{
	uint64_t x = 1, sum = 0, by = seventeen;
	for (uint64_t i = 0; i < rounds; i++) {
		x = big / (x | by) / (x | by) / (x | 1); KEEP(x); /* slow */
		sum += i;
		KEEP(sum);
	}
	return sum + x;
}

KERNEL remainder_of(uint64_t rounds)
{
	uint64_t x = big, sum = 0, by = big >> 7;
	for (uint64_t i = 0; i < rounds; i++) {
		x = by % (big % (x | by) | by) % (x | 1); KEEP(x); /* slow */
		sum += i;
		KEEP(sum);
	}
	return sum + x;
}

KERNEL divide_double(uint64_t rounds)
{
	double x = half, by = half + 1.1;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		x = by / x / by / x; KEEP_DOUBLE(x); /* slow */
		sum += i;
		KEEP(sum);
	}
	return sum + (uint64_t)x;
}

typedef double pair __attribute__((vector_size(16)));

KERNEL divide_vector(uint64_t rounds)
{
	pair x = { half, 0.7 }, by = { half + 1, 1.7 };
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		x = by / x / by; KEEP_DOUBLE(x); /* slow */
		sum += i;
		KEEP(sum);
	}
	return sum + (uint64_t)x[0];
}

KERNEL root(uint64_t rounds)
{
	double x = half;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		x = __builtin_sqrt(__builtin_sqrt(x)); KEEP_DOUBLE(x); /* slow */
		sum += i;
		KEEP(sum);
	}
	return sum + (uint64_t)x;
}

/* One of the two lines waits for the other, so their times add up. */
KERNEL divide_then_root(uint64_t rounds)
{
	double x = half, by = half + 1.1;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		x = 2 + (1 + x / by) / by; KEEP_DOUBLE(x); /* slow */
		x = 1 + __builtin_sqrt(x); KEEP_DOUBLE(x); /* cost */
		sum += i;
		KEEP(sum);
	}
	return sum + (uint64_t)x;
}

/* Stores to random cells; each waits for the line of the one before. */
KERNEL store_chain(uint64_t rounds)
{
	uint64_t at = 1, sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t *cell = &table[at % TABLE];
		KEEP(cell);
		*cell += i; at = at * 6364136223846793005u + (*cell & 1) + 1442695040888963407u; KEEP(at); /* slow, without: at++; */
		sum += 5;
		KEEP(sum);
		sum ^= 3;
		KEEP(sum);
	}
	return sum;
}

KERNEL atomic_add(uint64_t rounds)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		__atomic_fetch_add(&shared, 1, __ATOMIC_SEQ_CST); __atomic_fetch_add(&shared, 3, __ATOMIC_SEQ_CST); /* slow */
		sum += i;
		KEEP(sum);
		sum ^= 3;
		KEEP(sum);
	}
	return sum;
}

KERNEL exchange(uint64_t rounds)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		sum += __atomic_exchange_n(&shared, i, __ATOMIC_SEQ_CST); KEEP(sum); /* slow */
		sum ^= 3;
		KEEP(sum);
	}
	return sum;
}

KERNEL fence(uint64_t rounds)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		sum += i;
		KEEP(sum);
		__atomic_thread_fence(__ATOMIC_SEQ_CST); __atomic_thread_fence(__ATOMIC_SEQ_CST); /* slow */
		sum ^= 3;
		KEEP(sum);
	}
	return sum;
}

KERNEL mispredict(uint64_t rounds)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		if (noise[i % BYTES] >= 128) { /* slow, without: if (noise[i % BYTES] < 256) { */
			sum += i;
			KEEP(sum);
			sum ^= 1;
			KEEP(sum);
		}
		sum += 3;
		KEEP(sum);
	}
	return sum;
}

KERNEL mispredict_else(uint64_t rounds)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		if (noise[i % BYTES] >= 128) { /* slow, without: if (noise[i % BYTES] < 256) { */
			sum += i;
			KEEP(sum);
			sum ^= 1;
		} else {
			sum += 7;
			KEEP(sum);
			sum ^= 5;
		}
		KEEP(sum);
	}
	return sum;
}

__attribute__((noinline)) static uint64_t switched(uint64_t sum, uint64_t i)
{
	switch (noise[i % BYTES] & 7) { /* slow, without: switch (i & 0) { */
	case 0: return sum + i;
	case 1: return sum ^ 2;
	case 2: return sum - i;
	case 3: return sum ^ i;
	case 4: return sum + 5;
	case 5: return sum & ~i;
	case 6: return sum - 7;
	default: return sum | 8;
	}
}

/* The kernel is `switched`. */
KERNEL mispredict_switch(uint64_t rounds)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		sum = switched(sum, i);
		KEEP(sum);
	}
	return sum;
}

__attribute__((noinline)) static uint64_t called(uint64_t x, uint64_t by)
{
	x = big / (x | by) / (x | by) / (x | 1); KEEP(x); /* slow */
	return x;
}

/* The kernel is `called`; its caller must not get its time. */
KERNEL call(uint64_t rounds)
{
	uint64_t sum = 0, by = seventeen, x = 1;
	for (uint64_t i = 0; i < rounds; i++) {
		x = called(x, by);
		KEEP(x);
		sum += i;
		KEEP(sum);
	}
	return sum + x;
}

#ifdef __x86_64__
KERNEL repeat(uint64_t rounds)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		void *to = table, *from = table + 4096;
		uint64_t bytes = 4096;
		KEEP(to);
		__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory"); /* slow */
		sum += i;
		KEEP(sum);
		sum ^= 3;
		KEEP(sum);
	}
	return sum;
}
#endif

static double cpu_time(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Runs a kernel for a while, and prints how many ns a round took. */
static void run(const char *name, kernel *function, uint64_t batch)
{
	double begin = cpu_time(), spent = 0;
	uint64_t rounds = 0;
	for (; spent < 0.15; spent = cpu_time() - begin, rounds += batch)
		sink = function(batch);
	printf("%s %.6f\n", name, 1e9 * spent / (double)rounds);
}

static int is_wanted(int argc, char **argv, const char *name)
{
	int found = argc < 2;
	for (int i = 1; i < argc; i++)
		found |= !strcmp(argv[i], name);
	return found;
}

static void prepare(void)
{
	cells = aligned_alloc(64, CELLS * sizeof(*cells));
	table = aligned_alloc(64, TABLE * sizeof(*table));
	noise = malloc(BYTES);
	uint32_t *order = malloc(CELLS * sizeof(*order));
	if (!cells || !table || !noise || !order)
		exit(2);
	memset(table, 0, TABLE * sizeof(*table));
	for (uint32_t i = 0; i < CELLS; i++)
		order[i] = i;
	for (uint32_t i = CELLS - 1; i; i--) { /* one cycle through all cells */
		uint32_t other = (uint32_t)(random_number() % i), kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
	for (uint32_t i = 0; i < CELLS; i++)
		cells[i] = (struct cell){ .next = &cells[order[i]] };
	for (uint32_t i = 0; i < BYTES; i++)
		noise[i] = (uint8_t)(random_number() >> 40);
	free(order);
}

int main(int argc, char **argv)
{
	prepare();
#define RUN(name, function, batch) \
	if (is_wanted(argc, argv, name)) \
		run(name, function, batch)
	RUN("load_chain", load_chain, 100000);
	RUN("load_anywhere", load_anywhere, 100000);
	RUN("load_before_break", load_before_break, 100000);
	RUN("divide", divide, 1000000);
	RUN("remainder_of", remainder_of, 1000000);
	RUN("divide_double", divide_double, 1000000);
	RUN("divide_vector", divide_vector, 1000000);
	RUN("root", root, 1000000);
	RUN("divide_then_root", divide_then_root, 1000000);
	RUN("store_chain", store_chain, 100000);
	RUN("atomic_add", atomic_add, 1000000);
	RUN("exchange", exchange, 1000000);
	RUN("fence", fence, 1000000);
	RUN("mispredict", mispredict, BYTES);
	RUN("mispredict_else", mispredict_else, BYTES);
	RUN("switched", mispredict_switch, BYTES);
	RUN("called", call, 1000000);
#ifdef __x86_64__
	RUN("repeat", repeat, 10000);
#endif
	return 0;
}
