#include "profile/jit_hint.h"

#include "profile/name_functions.h"

#include <errno.h>
#include <string.h>

enum { WORTH_A_LINE = 20 }; /* one of so many samples */

static const struct {
	const char *comm, *how;
} RUNTIMES[] = {
	{ "node", "node --perf-basic-prof" },
	{ "deno", "deno run --v8-flags=--perf-basic-prof" },
	{ "java", "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit (JDK 17)" },
	{ "dotnet", "DOTNET_PerfMapEnabled=1" },
	{ "ruby", "ruby --yjit-perf (Ruby 3.3)" },
	{ "beam.smp", "erl +JPperf true" },
};

static bool is_unnamed_function(const struct tally_names *names, uint32_t index)
{
	const struct tally_function *function = &names->functions.items[index];
	return function->kind == TALLY_FRAME_JIT && function->name == TALLY_STRING_NONE;
}

static bool is_unnamed(const struct tally_profile *profile, uint32_t place)
{
	return is_unnamed_function(&profile->recording->names, tally_profile_function(profile, place));
}

/* A file in memory, which a program can be run from: it went with its process. */
static const char *memory_file(const struct tally_profile *profile, uint32_t place)
{
	const struct tally_names *names = &profile->recording->names;
	uint32_t file = tally_names_file(names, &profile->places.places.items[place]);
	const char *path = file < names->tasks->files.count ? tally_tasks_path(names->tasks, file) : "";
	return strncmp(path, "/memfd:", 7) != 0 ? NULL : path;
}

struct sums {
	struct tally_map by_comm;                    /* in unnamed code, or in what it called */
	uint64_t total, in_memory, most;
	uint64_t unnamed, below;                     /* in unnamed code or what it called; of these, in what it called */
	uint32_t comm;                               /* that has most */
	const char *memory;
};

static int count_unnamed(struct sums *sums, uint32_t comm, bool is_leaf, uint64_t added)
{
	uint64_t *samples = tally_map_put(&sums->by_comm, comm, NULL);
	if (!samples)
		return -ENOMEM;
	*samples += added;
	sums->unnamed += added;
	sums->below += is_leaf ? 0 : added;
	if (*samples > sums->most) {
		sums->most = *samples;
		sums->comm = comm;
	}
	return 0;
}

static int count_row(const struct tally_profile *profile, size_t index, struct sums *sums)
{
	const struct tally_row *row = &profile->rows.rows.items[index];
	const uint8_t *end, *at = tally_row_stack(&profile->rows, index, &end);
	bool is_leaf = true;
	sums->total += row->samples;
	for (; at && at < end; is_leaf = false) {
		uint32_t place = tally_stack_next_place(&at);
		if (!is_unnamed(profile, place))
			continue;
		const char *path = memory_file(profile, place);
		if (path && is_leaf) {
			sums->memory = path;
			sums->in_memory += row->samples;
			return 0;
		}
		if (path)
			continue;
		return count_unnamed(sums, profile->classes.items[row->class].comm, is_leaf, row->samples);
	}
	return 0;
}

static int count_live(const struct tally_live_sums *live, const struct tally_live_sum *sum, struct sums *sums)
{
	const double parts = 1024; /* of a sample, which fades */
	const uint32_t *frames = sum->count ? live->frames.items + sum->first : &sum->function;
	uint64_t samples = (uint64_t)(sum->samples * parts);
	sums->total += samples;
	for (uint32_t i = 0; i < (sum->count ? sum->count : 1); i++)
		if (is_unnamed_function(live->names, frames[i]) && strncmp(tally_names_object(live->names, frames[i]), "/memfd:", 7))
			return count_unnamed(sums, sum->comm, !i, samples);
	return 0;
}

static bool has_unnamed(const struct tally_profile *profile)
{
	for (uint32_t place = 0; place < profile->places.places.count; place++)
		if (is_unnamed(profile, place))
			return true;
	return false;
}

static const char *way_of(const char *comm)
{
	for (size_t i = 0; i < sizeof(RUNTIMES) / sizeof(*RUNTIMES); i++)
		if (!strcmp(comm, RUNTIMES[i].comm))
			return RUNTIMES[i].how;
	return "the option of its runtime that writes /tmp/perf-PID.map or a jit-PID.dump";
}

static void put(const struct tally_profile *profile, const struct sums *sums, struct tally_buffer *out)
{
	uint64_t least = sums->total / WORTH_A_LINE;
	if (sums->in_memory && sums->in_memory >= least)
		tally_buffer_printf(out, "%.0f%% of the samples are in functions without names, of %s: a file in memory, which "
				    "is gone with its process; from a file on disk they are named\n",
				    100.0 * (double)sums->in_memory / (double)sums->total, sums->memory);
	if (!sums->unnamed || sums->unnamed < least)
		return;
	const char *name = tally_strings_text(&profile->recording->tasks.strings, sums->comm);
	tally_buffer_printf(out, "%.0f%% of the samples are in code that %s made while it ran, without names%s: run it with %s\n",
			    100.0 * (double)sums->unnamed / (double)sums->total, name,
			    sums->below ? ", or in what it called" : "", way_of(name));
}

int tally_profile_jit_hint(const struct tally_profile *profile, struct tally_buffer *out)
{
	struct sums sums = { 0 };
	int result = 0;
	if (!has_unnamed(profile))
		return 0;
	for (size_t i = 0; !result && i < profile->rows.rows.count; i++)
		result = count_row(profile, i, &sums);
	if (!result)
		put(profile, &sums, out);
	tally_map_release(&sums.by_comm);
	return result;
}

int tally_live_jit_hint(const struct tally_live_sums *live, struct tally_buffer *out)
{
	struct sums sums = { 0 };
	int result = 0;
	for (size_t i = 0; !result && i < live->sums.count; i++)
		result = count_live(live, &live->sums.items[i], &sums);
	if (!result && sums.unnamed && sums.unnamed >= sums.total / WORTH_A_LINE) {
		const char *name = tally_strings_text(&live->names->tasks->strings, sums.comm);
		tally_buffer_printf(out, "code that %s made has no names: run it with %s\n", name, way_of(name));
	}
	tally_map_release(&sums.by_comm);
	return result;
}
