/* Lines and inlined functions of many addresses of one program, beside llvm-symbolizer in the same
 * run.
 *
 *     build/bench/bench_lines PROGRAM [COUNT [REPEAT]]
 *
 * The addresses are spread over .text at random, the same ones each time: the worst case, since
 * nearly all units are hit.  "cold" is from opening the file to the last answer, without a cache;
 * "cached" is the same with a filled cache, in a folder of its own.  Prints the least of REPEAT
 * runs: CPU time and wall time. */
#include "object/cache.h"
#include "object/object.h"
#include "symbol/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct times {
	double cpu, wall;
};

struct bench {
	const char *program;
	uint64_t *addresses;
	size_t count;
	size_t answered, frames;
};

static double seconds(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double children_seconds(void)
{
	struct rusage usage;
	getrusage(RUSAGE_CHILDREN, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void keep_least(struct times *least, struct times run)
{
	if (least->wall == 0 || run.wall < least->wall)
		least->wall = run.wall;
	if (least->cpu == 0 || run.cpu < least->cpu)
		least->cpu = run.cpu;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_lines: %s\n", what);
	exit(1);
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
	return left < right ? -1 : left > right;
}

static void choose_addresses(struct bench *bench)
{
	struct tally_object *object;
	struct tally_section text;
	if (tally_object_open(AT_FDCWD, bench->program, &object, NULL) < 0 ||
	    !tally_object_section(object, ".text", &text) || text.size == 0)
		die("the program has no code");
	uint64_t state = 1;
	for (size_t i = 0; i < bench->count; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bench->addresses[i] = text.address + (state >> 16) % text.size;
	}
	qsort(bench->addresses, bench->count, sizeof(*bench->addresses), compare);
	tally_object_unref(object);
}

static struct times ask(struct bench *bench, struct tally_disk_cache *cache)
{
	struct tally_line_answer *answers = calloc(bench->count, sizeof(*answers));
	struct tally_object *object = NULL;
	struct tally_lines *lines;
	struct times times = { seconds(CLOCK_PROCESS_CPUTIME_ID), seconds(CLOCK_MONOTONIC) };
	if (!answers || tally_object_open(AT_FDCWD, bench->program, &object, NULL) < 0)
		die("can't open the program");
	struct tally_object *debug = tally_search_debug(NULL, object, NULL);
	if (tally_lines_new(object, debug, &lines, NULL) < 0)
		die("out of memory");
	tally_lines_use_cache(lines, cache);
	if (tally_lines_find(lines, bench->addresses, bench->count, answers) < 0)
		die("out of memory");
	times.cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - times.cpu;
	times.wall = seconds(CLOCK_MONOTONIC) - times.wall;
	bench->answered = bench->frames = 0;
	for (size_t i = 0; i < bench->count; i++) {
		bench->answered += answers[i].count > 0;
		bench->frames += answers[i].count;
	}
	tally_lines_keep(lines);
	tally_lines_free(lines);
	tally_object_unref(debug);
	tally_object_unref(object);
	free(answers);
	return times;
}

/* Returns false if llvm-symbolizer isn't installed. */
static bool ask_llvm(const struct bench *bench, const char *list, struct times *times)
{
	char command[8192];
	snprintf(command, sizeof(command),
		 "exec llvm-symbolizer --no-demangle --inlines -e '%s' <'%s' >/dev/null 2>&1",
		 bench->program, list);
	*times = (struct times){ children_seconds(), seconds(CLOCK_MONOTONIC) };
	if (system(command) != 0)
		return false;
	times->cpu = children_seconds() - times->cpu;
	times->wall = seconds(CLOCK_MONOTONIC) - times->wall;
	return true;
}

static void print(const char *what, const struct times *times)
{
	printf("| %s | %.1f ms | %.1f ms |\n", what, times->cpu * 1e3, times->wall * 1e3);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: bench_lines PROGRAM [COUNT [REPEAT]]");
	struct bench bench = { .program = argv[1],
			       .count = argc > 2 ? strtoul(argv[2], NULL, 10) : 18000 };
	unsigned repeat = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 5;
	char folder[] = "/tmp/bench-lines-XXXXXX", list[sizeof(folder) + 16];
	bench.addresses = calloc(bench.count + 1, sizeof(*bench.addresses));
	if (!bench.addresses || bench.count == 0 || !mkdtemp(folder))
		die("no memory, or no room in /tmp");
	choose_addresses(&bench);
	snprintf(list, sizeof(list), "%s/addresses", folder);
	FILE *file = fopen(list, "w");
	for (size_t i = 0; file && i < bench.count; i++)
		fprintf(file, "0x%llx\n", (unsigned long long)bench.addresses[i]);
	if (!file || fclose(file) != 0)
		die("can't write the addresses");

	struct tally_disk_cache *cache = tally_cache_open_at(folder, (uint64_t)1 << 31);
	struct times cold = { 0 }, cached = { 0 }, llvm = { 0 }, run;
	bool has_llvm = true;
	ask(&bench, cache);
	for (unsigned i = 0; i < repeat; i++) {
		keep_least(&cold, ask(&bench, NULL));
		keep_least(&cached, ask(&bench, cache));
		has_llvm = has_llvm && ask_llvm(&bench, list, &run);
		if (has_llvm)
			keep_least(&llvm, run);
	}
	printf("%zu addresses, %zu with debug information, %zu frames\n\n| | CPU | wall |\n"
	       "|---|---|---|\n",
	       bench.count, bench.answered, bench.frames);
	print("tally, cold", &cold);
	print("tally, cached", &cached);
	if (has_llvm)
		print("llvm-symbolizer", &llvm);
	uint64_t files, bytes;
	tally_cache_clear(cache, &files, &bytes);
	tally_cache_close(cache);
	unlink(list);
	rmdir(folder);
	free(bench.addresses);
	return 0;
}
