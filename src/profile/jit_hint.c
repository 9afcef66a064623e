#include "profile/jit_hint.h"

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

/* Samples of unnamed code by comm; the comm that has most. */
static int count(const struct tally_profile *profile, uint64_t *unnamed, uint64_t *total, uint32_t *comm)
{
	struct tally_map by_comm = { 0 };
	uint64_t most = 0;
	*unnamed = *total = 0;
	for (size_t i = 0; i < profile->rows.rows.count; i++) {
		const struct tally_row *row = &profile->rows.rows.items[i];
		const uint8_t *end, *at = tally_row_stack(&profile->rows, i, &end);
		*total += row->samples;
		if (!at || !is_unnamed(profile, tally_stack_next_place(&at)))
			continue;
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
	uint64_t unnamed, total;
	uint32_t comm = 0;
	const char *how = "the option of its runtime that writes /tmp/perf-PID.map or a jit-PID.dump";
	if (count(profile, &unnamed, &total, &comm) < 0)
		return -ENOMEM;
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
