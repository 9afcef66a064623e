/* The cost of the simulated CPU's model by itself: replays recorded accesses (tests/unit/accesses,
 * in the format that test_vsim_model.c describes) by the same calls as generated code.
 * `bench_model [--preset NAME] FILE...`: prints ns of CPU time per access, the least of 40 rounds
 * from empty caches, and the share of each kind of access that has to be passed to the model. */
#include "valgrind/vsim_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

enum sort { LOAD, STORE, RUN, CONDITIONAL, INDIRECT, CALL, RETURN, SORTS };
enum { ROUNDS = 40, BYTES_MAX = 1 << 20 };

struct access {
	uint64_t address, argument;
	enum sort sort;
};

struct tally_of {
	uint64_t all[SORTS], told[SORTS], happened;
};

static uint64_t take(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;
	for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;
		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			break;
	}
	return value;
}

static uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ -(value & 1);
}

/* Returns the number of accesses, or 0 on failure; *accesses is malloc'ed. */
static size_t read_accesses(const char *path, struct access **accesses)
{
	static uint8_t packed[BYTES_MAX], bytes[BYTES_MAX];
	uint64_t last[SORTS] = { 0 };
	size_t count = 0;
	FILE *file = fopen(path, "rb");
	if (!file)
		return 0;
	size_t size = ZSTD_decompress(bytes, sizeof(bytes), packed,
				      fread(packed, 1, sizeof(packed), file));
	fclose(file);
	*accesses = malloc(BYTES_MAX * sizeof(**accesses));
	if (ZSTD_isError(size) || !*accesses)
		return 0;
	for (const uint8_t *at = bytes, *end = bytes + size; at < end; count++) {
		enum sort sort = *at++ % SORTS;
		uint64_t address = last[sort] += unzigzag(take(&at, end)),
			 argument = take(&at, end);
		if (sort == INDIRECT || sort == RETURN)
			argument = address + unzigzag(argument);
		(*accesses)[count] = (struct access){ address, argument, sort };
	}
	return count;
}

static unsigned run(struct vsim_model *model, const struct access *access, struct tally_of *counts)
{
	const struct vsim_recent *data = vsim_model_recent_data(model),
				 *code = vsim_model_recent_code(model);
	struct vsim_conditional *all = vsim_model_conditionals(model);
	uint64_t address = access->address, argument = access->argument, last;
	unsigned happened = 0;
	counts->all[access->sort]++;
	switch (access->sort) {
	case LOAD:
	case STORE:
		if (data->recent[(address >> data->line_shift) & data->mask] ==
		    (address + argument - 1) >> data->line_shift)
			return 0;
		counts->told[access->sort]++;
		return vsim_model_data(model, address, (unsigned)argument, access->sort == STORE);
	case RUN:
		last = (address + argument - 1) >> code->line_shift;
		for (uint64_t line = address >> code->line_shift; line <= last; line++)
			if (code->recent[line & code->mask] != line) {
				counts->told[RUN]++;
				happened |= vsim_model_fetch(model, line << code->line_shift);
			}
		return happened;
	case CONDITIONAL:
		all->history = all->history << 1 | argument;
		if (!all->counters[(all->history & all->history_mask) ^
				   vsim_model_branch(model, address)])
			return 0;
		counts->told[CONDITIONAL]++;
		return vsim_model_unsure(model, address, argument);
	case INDIRECT:
		if (*vsim_model_target(model, address) == argument)
			return 0;
		counts->told[INDIRECT]++;
		return vsim_model_indirect(model, address, argument);
	case CALL:
		vsim_model_call(model, address);
		return 0;
	default:
		return vsim_model_return(model, argument);
	}
}

static double now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void measure(const char *path, const struct vsim_geometry *geometry, void *memory)
{
	struct access *accesses = NULL;
	size_t count = read_accesses(path, &accesses);
	struct tally_of counts;
	double least = 1e18;
	for (int round = 0; round < ROUNDS && count; round++) {
		struct vsim_model *model = vsim_model_init(memory, geometry);
		counts = (struct tally_of){ .happened = 0 };
		double began = now_ns();
		for (size_t i = 0; i < count; i++)
			counts.happened += run(model, &accesses[i], &counts) != 0;
		double took = now_ns() - began;
		least = took < least ? took : least;
	}
	free(accesses);
	if (!count) {
		fprintf(stderr, "bench_model: can't read %s\n", path);
		return;
	}
	const char *slash = strrchr(path, '/');
	printf("%-12s %5.2f ns, %4.1f %% made a count; told: %4.1f %% of loads, %4.1f of stores, "
	       "%4.1f of runs, %4.1f of branches\n",
	       slash ? slash + 1 : path, least / (double)count,
	       100.0 * (double)counts.happened / (double)count,
	       100.0 * (double)counts.told[LOAD] / (double)counts.all[LOAD],
	       100.0 * (double)counts.told[STORE] / (double)counts.all[STORE],
	       100.0 * (double)counts.told[RUN] / (double)counts.all[RUN],
	       100.0 * (double)counts.told[CONDITIONAL] / (double)counts.all[CONDITIONAL]);
}

int main(int count, char **arguments)
{
	int first = count > 2 && !strcmp(arguments[1], "--preset") ? 3 : 1;
	const struct vsim_geometry *geometry = vsim_geometry_preset(first == 3 ? arguments[2]
									       : "generic");
	void *memory = geometry ? aligned_alloc(64, vsim_model_bytes(geometry)) : NULL;
	if (!memory) {
		fprintf(stderr, "bench_model: no such preset\n");
		return 1;
	}
	for (int i = first; i < count; i++)
		measure(arguments[i], geometry, memory);
	free(memory);
	return 0;
}
