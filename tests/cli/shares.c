/* shares MILLISECONDS [THREADS]: each thread spends that much CPU time in three functions, 50, 30
 * and 20 % of it, measures the shares and prints them: "half 50.02".  With THREADS, it prints the
 * shares of all together. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS_MAX = 64, STEPS_MIN = 20000, STEPS_RANGE = 40000 };

struct spent {
	uint64_t limit_ns;
	uint64_t half_ns, third_ns, fifth_ns;
	uint64_t value;
};

static uint64_t used_ns(void)
{
	struct timespec used;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static inline __attribute__((always_inline)) uint64_t work(uint64_t value, unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		value = value * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(value));
	}
	return value;
}

/* These are separate functions, so that each keeps its name. */
__attribute__((noinline)) static uint64_t half(uint64_t value, unsigned steps)
{
	return work(value, 5 * steps) + 1;
}

__attribute__((noinline)) static uint64_t third(uint64_t value, unsigned steps)
{
	return work(value, 3 * steps) + 2;
}

__attribute__((noinline)) static uint64_t fifth(uint64_t value, unsigned steps)
{
	return work(value, 2 * steps) + 3;
}

static void *spend(void *argument)
{
	struct spent *spent = argument;
	uint64_t start = used_ns(), now = start, before;
	while (now - start < spent->limit_ns) {
		/* Rounds of a fixed length would stay in step with a sampling period of about that
		 * length, which put shares 2 points off.  The three parts of a round have the same
		 * unit. */
		unsigned steps = STEPS_MIN + (unsigned)(spent->value >> 40) % STEPS_RANGE;
		before = now;
		spent->value = half(spent->value, steps);
		now = used_ns();
		spent->half_ns += now - before;
		before = now;
		spent->value = third(spent->value, steps);
		now = used_ns();
		spent->third_ns += now - before;
		before = now;
		spent->value = fifth(spent->value, steps);
		now = used_ns();
		spent->fifth_ns += now - before;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct spent spent[THREADS_MAX];
	static pthread_t threads[THREADS_MAX];
	int count = argc > 2 ? atoi(argv[2]) : 1;
	struct spent all = { 0 };
	if (argc < 2 || count < 1 || count > THREADS_MAX)
		return 2;
	for (int i = 0; i < count; i++) {
		spent[i].limit_ns = strtoull(argv[1], NULL, 10) * 1000000u;
		if (count == 1)
			spend(&spent[i]);
		else if (pthread_create(&threads[i], NULL, spend, &spent[i]))
			return 1;
	}
	for (int i = 0; i < count; i++) {
		if (count > 1)
			pthread_join(threads[i], NULL);
		all.half_ns += spent[i].half_ns;
		all.third_ns += spent[i].third_ns;
		all.fifth_ns += spent[i].fifth_ns;
		all.value += spent[i].value;
	}
	double total = (double)(all.half_ns + all.third_ns + all.fifth_ns);
	printf("half %.2f\nthird %.2f\nfifth %.2f\nseconds %.3f\n",
	       100 * (double)all.half_ns / total, 100 * (double)all.third_ns / total,
	       100 * (double)all.fifth_ns / total, total / 1e9);
	return all.value == 42; /* keeps the compiler from removing the work */
}
