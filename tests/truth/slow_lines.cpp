// Small loops, each with one line that takes most of the time (see slow_lines.py).  The time of most
// is spent in code of the library that was inlined: the line is the user's own that leads there.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <list>
#include <numeric>
#include <vector>

#define KEEP(x) __asm__ volatile("" : "+r"(x))
#define KERNEL __attribute__((noinline)) static uint64_t

static std::vector<uint32_t> next_cell(1 << 24);
static std::vector<double> numbers(1 << 16);
static std::atomic<uint64_t> counter;
volatile uint64_t sink;

KERNEL load_chain(uint64_t rounds)
{
	uint64_t at = 0, sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		at = next_cell[at]; KEEP(at); // slow
		sum += i;
		KEEP(sum);
		sum ^= 3;
		KEEP(sum);
	}
	return sum + at;
}

KERNEL atomic_add(uint64_t rounds)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		counter++; counter += 3; // slow
		sum += i;
		KEEP(sum);
		sum ^= 3;
		KEEP(sum);
	}
	return sum;
}

KERNEL accumulate(uint64_t rounds)
{
	double sum = 0;
	for (uint64_t i = 0; i < rounds; i++)
		sum += std::accumulate(numbers.begin(), numbers.end(), 1.0, [](double a, double b) { return std::sqrt(a + b); }); // slow, without: sum += 1;
	return uint64_t(sum);
}

static double cpu_time()
{
	timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

static void run(int argc, char **argv, const char *name, uint64_t (*kernel)(uint64_t), uint64_t batch)
{
	bool is_wanted = argc < 2;
	for (int i = 1; i < argc; i++)
		is_wanted |= !strcmp(argv[i], name);
	double begin = cpu_time(), spent = 0;
	uint64_t rounds = 0;
	for (; is_wanted && spent < 0.15; spent = cpu_time() - begin, rounds += batch)
		sink = kernel(batch);
	if (is_wanted)
		printf("%s %.6f\n", name, 1e9 * spent / double(rounds));
}

int main(int argc, char **argv)
{
	std::vector<uint32_t> order(next_cell.size());
	std::iota(order.begin(), order.end(), 0);
	uint64_t seed = 88172645463325252u;
	for (size_t i = order.size() - 1; i; i--) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		std::swap(order[i], order[seed % i]);
	}
	next_cell = order;
	run(argc, argv, "load_chain", load_chain, 100000);
	run(argc, argv, "atomic_add", atomic_add, 1000000);
	run(argc, argv, "accumulate", accumulate, 10);
}
