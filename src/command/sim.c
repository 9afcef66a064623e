/* tally sim: plays a scenario's imaginary machine, and measures it with tally's engine. */
#include "base/extremes.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "base/text.h"
#include "command/command.h"
#include "simulation/simulation.h"
#include "stat/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCENARIO_BYTES_MAX = 1 << 20, LINE_SHOWN_MAX = 100 };

struct sim {
	const char *path, *output;
	bool explains, was_read;
	struct tally_buffer source, text;
	struct tally_stat_view view;
};

static const struct tally_option options[] = {
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write samples to FILE, a perf.data file, and functions'\n"
	  "names to FILE.elf",
	  TALLY_TEXT(struct sim, output) },
	{ 0, "explain", TALLY_ARGUMENT_NONE, NULL,
	  "print what the engine does: rotations, refusals, new\ntasks, losses",
	  TALLY_SET(struct sim, explains) },
	TALLY_OPTIONS_END,
};

/* --- results -------------------------------------------------------------- */

static void print_step(void *context, uint64_t ns, const char *text)
{
	char clean[600];
	(void)context;
	tally_terminal_clean_name(text, clean, sizeof(clean));
	printf("%12.6f ms  %s\n", (double)ns / 1e6, clean);
}

static void show_counts(struct sim *sim, const struct tally_simulation_result *result)
{
	const struct tally_count_part whole = { .label = "" };
	struct tally_stat_report report = {
		.parts = &whole,
		.part_count = 1,
		.table = { .rows = (struct tally_event_count *)result->rows, .count = result->row_count,
			   .elapsed_ns = result->elapsed_ns },
		.runs = 1,
		.runs_wanted = 1,
		.provider = "sim",
		.exit_status = -1,
	};
	snprintf(report.target, sizeof(report.target), "%s", result->target);
	tally_buffer_clear(&sim->text);
	tally_stat_view_table.show(&sim->view, &report);
	fwrite(tally_buffer_string(&sim->text), 1, sim->text.length, stdout);
}

static void show_samples(const struct tally_simulation_result *result)
{
	const struct scenario_part *part = result->part;
	char number[3][48], read[64] = "at the end", clean[256];
	tally_terminal_clean_name(result->events, clean, sizeof(clean));
	tally_stat_number((double)result->samples, 0, number[0], sizeof(number[0]));
	tally_stat_number((double)result->lost, 0, number[1], sizeof(number[1]));
	tally_stat_number((double)(result->samples + result->lost), 0, number[2],
			  sizeof(number[2]));
	if (part->read_every_ns != UINT64_MAX)
		snprintf(read, sizeof(read), "every %g ms", (double)part->read_every_ns / 1e6);
	printf("\n Samples of %s: %s, %s %s\n\n", result->target, clean, number[0],
	       result->samples == 1 ? "sample" : "samples");
	printf("   a ring of %u page%s on each CPU, read %s\n", part->pages,
	       tally_plural(part->pages), read);
	if (result->lost)
		printf("   %s lost, as the events themselves count: %s in all\n", number[1],
		       number[2]);
	if (result->lost_reported) {
		tally_stat_number((double)result->lost_reported, 0, number[1], sizeof(number[1]));
		printf("   %s of them told by LOST records\n", number[1]);
	}
	if (result->throttled)
		printf("   throttled %s time%s: more interrupts in a tick than "
		       "perf_event_max_sample_rate allows\n",
		       tally_number(result->throttled), tally_plural(result->throttled));
	putchar('\n');
}

static void show(void *context, const struct tally_simulation_result *result)
{
	struct sim *sim = context;
	char clean[1200];
	switch (result->part->kind) {
	case SCENARIO_SAY:
		tally_terminal_clean(result->part->text, clean, sizeof(clean));
		puts(clean);
		break;
	case SCENARIO_COUNT:
		show_counts(sim, result);
		break;
	case SCENARIO_SAMPLE:
		show_samples(result);
		break;
	}
}

static void show_end(const struct sim *sim, const struct tally_simulation_summary *summary)
{
	printf("%u task%s, %.3f ms of simulated time", summary->tasks,
	       tally_plural(summary->tasks), summary->elapsed_ns / 1e6);
	if (summary->tasks_left)
		printf("; %u still ran when it was over ('stop after' sets the time)",
		       summary->tasks_left);
	if (summary->forks_refused)
		printf("; %u fork%s failed", summary->forks_refused,
		       tally_plural(summary->forks_refused));
	putchar('\n');
	if (!sim->output)
		return;
	char size[TALLY_SIZE_TEXT];
	fflush(stdout);
	tally_say("tally sim: %s samples, %s in %s, names in %s.elf; see 'tally report -i %s'",
		  tally_number(summary->samples), tally_size_text(summary->bytes, size),
		  sim->output, sim->output, sim->output);
}

/* --- the scenario --------------------------------------------------------- */

static int read_source(struct sim *sim, struct tally_error *err)
{
	const char *path = strcmp(sim->path, "-") ? sim->path : "/dev/stdin";
	int code = tally_buffer_read_file(&sim->source, AT_FDCWD, path, SCENARIO_BYTES_MAX);
	if (code == -EFBIG)
		return tally_error_set(err, code, "%s is too large: a scenario has at most 1 MiB",
				       sim->path);
	if (code < 0)
		return tally_error_set(err, code, "%s can't be read: %s", sim->path,
				       tally_errno_text(code));
	return 0;
}

/* Writes the line, with a caret below the column. A tab becomes one blank. */
static void point_at(const char *text, struct scenario_place place, char *out, size_t size)
{
	const char *line = text;
	for (unsigned i = 1; i < place.line && line; i++) {
		line = strchr(line, '\n');
		line += line != NULL;
	}
	size_t column = tally_saturating_sub_u64(place.column, 1);
	size_t from = tally_saturating_sub_u64(column, LINE_SHOWN_MAX / 2), length = 0;
	const char *shown = "";
	if (line) {
		size_t whole = tally_min_u64(strcspn(line, "\n"), from + LINE_SHOWN_MAX);
		length = tally_saturating_sub_u64(whole, from);
		shown = line + from;
	}
	int used = snprintf(out, size, "\n    %.*s\n    %*s^", (int)length, shown,
			    (int)(column - from), "");
	for (int i = 1; i < used && (size_t)i < size; i++)
		if (out[i] == '\t' || out[i] == '\r')
			out[i] = ' ';
}

static int parse(struct sim *sim, struct scenario **scenario, struct tally_error *err)
{
	struct scenario_error wrong = { 0 };
	char excerpt[2 * LINE_SHOWN_MAX + 64] = "";
	int code = scenario_parse(tally_buffer_string(&sim->source), sim->source.length, scenario,
				  &wrong);
	if (code == -ENOMEM)
		return tally_error_set(err, code, "out of memory");
	if (code < 0) {
		point_at(tally_buffer_string(&sim->source), wrong.place, excerpt, sizeof(excerpt));
		tally_error_set(err, code, "%.200s, line %u: %s%s", sim->path, wrong.place.line,
				wrong.message, excerpt);
		tally_error_hint(err, "docs/sim.md describes the language");
	}
	return code;
}

static int play(struct sim *sim, int argc, char **argv, struct tally_error *err)
{
	struct scenario *scenario = NULL;
	struct tally_simulation_summary summary;
	int code = read_source(sim, err);
	sim->was_read = !code;
	if (!code)
		code = parse(sim, &scenario, err);
	if (!code) {
		const struct tally_simulation_options simulation = {
			.scenario = scenario,
			.scenario_name = sim->path,
			.output_path = sim->output,
			.argc = argc,
			.argv = argv,
			.on_message = sim->explains ? print_step : NULL,
			.result = show,
			.context = sim,
		};
		code = tally_simulation_run(&simulation, &summary, err);
	}
	if (!code)
		show_end(sim, &summary);
	scenario_free(scenario);
	return code;
}

/* True for standard output and error: tables and messages go there, and FILE.elf needs a real
 * name. */
static bool is_standard_stream(const char *path)
{
	struct stat there, stream;
	bool is_one = !strcmp(path, "-");
	if (!is_one && !stat(path, &there) && S_ISREG(there.st_mode))
		for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
			is_one |= !fstat(fd, &stream) && stream.st_dev == there.st_dev &&
				  stream.st_ino == there.st_ino;
	return is_one;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	struct sim sim = { .view = { .separator = "," } };
	/* options may follow the scenario */
	while (tally_options_parse(&walk, &sim) && !walk.dashes && walk.index < argc &&
	       tally_options_take_file(&walk, &sim.path, 1, "unexpected scenario '%s'"))
		;
	/* after -- */
	if (walk.status < 0 && walk.index < argc && !sim.path)
		tally_options_take_file(&walk, &sim.path, 1, "");
	if (walk.status >= 0)
		return walk.status;
	if (!sim.path)
		return tally_command_misuse(command,
					    "name a scenario, such as examples/tour.sim");
	if (walk.index < argc)
		return tally_command_misuse(command, "only one scenario can be played");
	if (sim.output && is_standard_stream(sim.output))
		return tally_command_misuse(
			command, "-o %s: other output goes there; name another file",
			sim.output);
	sim.view.out = &sim.text;
	sim.view.is_utf8 = tally_terminal_is_utf8;
	sim.view.has_colours = tally_terminal_colours(STDOUT_FILENO);
	int code = play(&sim, argc, argv, &err);
	tally_buffer_release(&sim.source);
	tally_buffer_release(&sim.text);
	if (code < 0)
		tally_command_fail(command, &err);
	if (!code)
		return TALLY_EXIT_OK;
	if (sim.was_read && (code == -EINVAL || code == -ENOENT))
		return TALLY_EXIT_USAGE;
	return TALLY_EXIT_FAILURE;
}

const struct tally_command tally_command_sim = {
	.name = "sim",
	.summary = "play a scenario on a simulated machine, and measure it",
	.usage = "[options] SCENARIO",
	.details =
		"A scenario describes a machine, what its tasks do, and what is to be counted and "
		"sampled\n"
		"(docs/sim.md).  The machine is measured by tally's own perf_event subsystem, and "
		"is the same\n"
		"to the last digit each time.\n\n"
		"  tally sim examples/tour.sim              the engine in six steps\n"
		"  tally sim --explain examples/tour.sim    with each rotation and loss\n"
		"  tally sim -o a.data examples/stacks.sim  then: tally report -i a.data",
	.options = options,
	.rarely_reads_files = true,
	.run = run,
};
