#include "profile/jit_hint.h"

#include "profile/name_functions.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

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

static bool is_unnamed(const struct tally_profile *profile, uint32_t place)
{
	const struct tally_names *names = &profile->recording->names;
	const struct tally_function *function = &names->functions.items[tally_profile_function(profile, place)];
	return function->kind == TALLY_FRAME_JIT && function->name == TALLY_STRING_NONE;
}

/* A file in memory, which a program can be run from: it went with its process. */
static const char *memory_file(const struct tally_profile *profile, uint32_t place)
{
	const struct tally_names *names = &profile->recording->names;
	uint32_t file = tally_names_file(names, &profile->places.places.items[place]);
	const char *path = file < names->tasks->files.count ? tally_tasks_path(names->tasks, file) : "";
	return strncmp(path, "/memfd:", 7) != 0 ? NULL : path;
}

/* Samples of unnamed code by comm; the comm that has most. */
static int count(const struct tally_profile *profile, uint64_t *unnamed, uint64_t *total, uint32_t *comm,
		 uint64_t *in_memory, const char **memory)
{
	struct tally_map by_comm = { 0 };
	uint64_t most = 0;
	*unnamed = *total = *in_memory = 0;
	for (size_t i = 0; i < profile->rows.rows.count; i++) {
		const struct tally_row *row = &profile->rows.rows.items[i];
		const uint8_t *end, *at = tally_row_stack(&profile->rows, i, &end);
		*total += row->samples;
		uint32_t place = at ? tally_stack_next_place(&at) : 0;
		if (!at || !is_unnamed(profile, place))
			continue;
		const char *path = memory_file(profile, place);
		if (path) {
			*memory = path;
			*in_memory += row->samples;
			continue;
		}
		uint32_t of = profile->classes.items[row->class].comm;
		uint64_t *samples = tally_map_put(&by_comm, of, NULL);
		if (!samples) {
			tally_map_release(&by_comm);
			return -ENOMEM;
		}
		*samples += row->samples;
		*unnamed += row->samples;
		if (*samples > most) {
			most = *samples;
			*comm = of;
		}
	}
	tally_map_release(&by_comm);
	return 0;
}

int tally_profile_jit_hint(const struct tally_profile *profile, struct tally_buffer *out)
{
	const uint64_t worth_a_line = 20; /* one of so many samples */
	uint64_t unnamed, total, in_memory;
	uint32_t comm = 0;
	const char *memory = NULL;
	const char *how = "the option of its runtime that writes /tmp/perf-PID.map or a jit-PID.dump";
	if (count(profile, &unnamed, &total, &comm, &in_memory, &memory) < 0)
		return -ENOMEM;
	if (in_memory && in_memory >= total / worth_a_line)
		tally_buffer_printf(out, "%.0f%% of the samples are in functions without names, of %s: a file in memory, which "
				    "is gone with its process; from a file on disk they are named\n",
				    100.0 * (double)in_memory / (double)total, memory);
	if (!unnamed || unnamed < total / worth_a_line)
		return 0;
	const char *name = tally_strings_text(&profile->recording->tasks.strings, comm);
	for (size_t i = 0; i < sizeof(RUNTIMES) / sizeof(*RUNTIMES); i++)
		if (!strcmp(name, RUNTIMES[i].comm))
			how = RUNTIMES[i].how;
	tally_buffer_printf(out, "%.0f%% of the samples are in code that %s made while it ran, without names: run it with %s\n",
			    100.0 * (double)unnamed / (double)total, name, how);
	return 0;
}
