/* Frames per second: a recording's stack copies, kept in memory, are unwound repeatedly on one
 * core.
 *
 *     perf record -e cpu-clock -F 4000 --call-graph dwarf,16384 -o cc1plus.data \
 *             g++ -O2 -c some.cpp
 *     build/bench/bench_unwind cc1plus.data
 *
 * "cold" is the first pass: files are opened, functions compiled, the cache filled.  "warm" is the
 * best of several passes after it.  The interpreter is tally's reference; libdwfl is elfutils'
 * unwinder on the same bytes. */
#include "recording/recording.h"
#include "unwind/unwind_internal.h"

#include "../tests/unit/dwfl_oracle.h"

#include <time.h>

enum { SAMPLES_MAX = 20000, PASSES = 20, FRAMES = 1024 };

struct copy {
	void *bytes;
	const struct tally_attr *attr;
	struct tally_record record;
};

struct bench {
	struct tally_recording *recording;
	struct copy *copies;
	size_t count, limit;
	struct dwfl_oracle oracle;
	size_t ends[TALLY_UNWIND_LIMIT + 1];
};

static double cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* All records are read first, so the timed part uses the maps as they are at the end. */
static int read_samples(struct bench *bench)
{
	struct tally_raw_record raw;
	struct tally_record record;
	struct tally_error err;
	int got;
	bench->recording->options.leaves_only = true;
	while ((got = tally_recording_next(bench->recording, &raw, &record, &err)) > 0) {
		if (record.header.type != TALLY_RECORD_SAMPLE || !record.sample.stack ||
		    bench->count == bench->limit)
			continue;
		struct copy *copy = &bench->copies[bench->count];
		copy->bytes = malloc(raw.size);
		if (!copy->bytes)
			return -1;
		memcpy(copy->bytes, raw.bytes, raw.size);
		copy->attr = &raw.event->attr;
		if (tally_record_decode(copy->attr, copy->bytes, raw.size, &copy->record) < 0)
			return -1;
		bench->count++;
	}
	return got;
}

static size_t unwind_all(struct bench *bench, bool is_interpreted)
{
	uint64_t addresses[FRAMES];
	enum tally_unwind_end end;
	size_t frames = 0;
	memset(bench->ends, 0, sizeof(bench->ends));
	bench->recording->names.objects.unwind_interpreted = is_interpreted;
	for (size_t i = 0; i < bench->count; i++) {
		const struct copy *copy = &bench->copies[i];
		frames += tally_user_stack_frames(&bench->recording->tasks,
						  &bench->recording->names.objects, copy->attr,
						  &copy->record.sample, addresses, NULL, FRAMES,
						  &end, NULL);
		bench->ends[end]++;
	}
	bench->recording->names.objects.unwind_interpreted = false;
	return frames;
}

static size_t unwind_all_by_libdwfl(struct bench *bench, size_t stride)
{
	size_t frames = 0;
	for (size_t i = 0; i < bench->count; i += stride) {
		const struct copy *copy = &bench->copies[i];
		if (dwfl_oracle_unwind(&bench->oracle, &bench->recording->tasks, copy->attr,
				       &copy->record.sample))
			frames += bench->oracle.count;
	}
	return frames;
}

static void print(const char *what, size_t frames, double seconds)
{
	printf("%-28s %10zu frames  %8.1f ns a frame  %8.2f million frames/s\n", what, frames,
	       seconds * 1e9 / (double)frames, (double)frames / seconds / 1e6);
}

static void run(struct bench *bench)
{
	double start = cpu_seconds(), best = 1e9;
	size_t frames = unwind_all(bench, false);
	print("cold", frames, cpu_seconds() - start);
	for (unsigned pass = 0; pass < PASSES; pass++) {
		start = cpu_seconds();
		frames = unwind_all(bench, false);
		double seconds = cpu_seconds() - start;
		best = seconds < best ? seconds : best;
	}
	print("warm", frames, best);
	for (unsigned end = 0; end <= TALLY_UNWIND_LIMIT; end++)
		if (bench->ends[end])
			printf("%28zu stacks: %s\n", bench->ends[end], tally_unwind_end_text(end));
	start = cpu_seconds();
	frames = unwind_all(bench, true);
	print("interpreter", frames, cpu_seconds() - start);
	enum { STRIDE = 4 };
	dwfl_oracle_init(&bench->oracle);
	unwind_all_by_libdwfl(bench, STRIDE * 8); /* opens the files */
	start = cpu_seconds();
	frames = unwind_all_by_libdwfl(bench, STRIDE);
	print("libdwfl, every 4th sample", frames, cpu_seconds() - start);
	dwfl_oracle_release(&bench->oracle);
}

/* Compiles every function of an object, to measure the cost of compiling it as a whole. */
static int compile_object(const char *path)
{
	struct tally_object *object;
	struct tally_unwind_table *table;
	struct tally_error err;
	double start = cpu_seconds();
	if (tally_object_open(AT_FDCWD, path, &object, &err) < 0 ||
	    tally_unwind_table_new(object, NULL, &table, &err) < 0)
		return 1;
	printf("%s: taken up in %.2f ms\n", path, (cpu_seconds() - start) * 1e3);
	for (unsigned i = 0; i < table->index_count; i++) {
		struct tally_unwind_function function;
		struct tally_rule_range range;
		const struct tally_unwind_rules *rules = &table->rules[i];
		start = cpu_seconds();
		for (size_t j = 0; j < table->indexes[i].count; j++)
			if (tally_function_index_at(&table->indexes[i], j, &function))
				tally_unwind_table_rule(table, function.start, &range);
		double seconds = cpu_seconds() - start;
		size_t rows = 0;
		for (size_t j = 0; j < rules->rules.count; j++)
			rows += rules->rules.items[j]->kind == TALLY_RULE_ROW;
		printf("%zu functions, %zu rows, %zu distinct rules (%zu not compact): %.1f ms, "
		       "%.0f ns a row\n",
		       table->indexes[i].count, rules->rows.count, rules->rules.count, rows,
		       seconds * 1e3, seconds * 1e9 / (double)rules->rows.count);
	}
	tally_unwind_table_free(table);
	tally_object_unref(object);
	return 0;
}

int main(int argc, char **argv)
{
	struct tally_error err;
	struct bench *bench = calloc(1, sizeof(*bench));
	if (argc == 3 && !strcmp(argv[1], "--object"))
		return free(bench), compile_object(argv[2]);
	if (!bench || argc < 2 || argc > 3 ||
	    tally_recording_open(argv[1], &bench->recording, &err) < 0) {
		fprintf(stderr, "usage: bench_unwind RECORDING [SAMPLES] | --object FILE\n");
		return 2;
	}
	bench->limit = argc == 3 ? strtoull(argv[2], NULL, 10) : SAMPLES_MAX;
	bench->copies = calloc(bench->limit, sizeof(*bench->copies));
	if (!bench->copies || read_samples(bench) < 0)
		return 1;
	printf("%zu samples\n", bench->count);
	if (bench->count)
		run(bench);
	for (size_t i = 0; i < bench->count; i++)
		free(bench->copies[i].bytes);
	free(bench->copies);
	tally_recording_close(bench->recording);
	free(bench);
	return 0;
}
