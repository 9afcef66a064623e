/* The command `flamegraph`: loads stacks and draws them.  A command given after -- is first
 * recorded into a temporary file.  With --diff, two inputs are loaded, and their frames are
 * matched. */
#include "base/environment.h"
#include "base/number_text.h"
#include "base/output_path.h"
#include "base/text.h"
#include "command/command.h"
#include "command/output_file.h"
#include "command/provider_choice.h"
#include "command/simulated_options.h"
#include "diff/diff.h"
#include "flamegraph/flamegraph.h"
#include "perfdata/perfdata.h"
#include "view/view.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct flamegraph {
	struct tally_stacks_input input;
	struct tally_flamegraph_options drawing;
	const char *old;    /* input to compare with, or NULL */
	const char *output; /* NULL: not chosen yet */
	bool is_html, has_format;
	bool off_cpu;
	const char *provider; /* of a command; NULL: chosen */
	char **command; /* command to record, or NULL */
	int status;     /* exit status of `record` */
};

/* --off-cpu, and --wakers, which implies it. */
static int take_off_cpu(void *taker, const struct tally_option *option, const char *value,
			struct tally_error *err)
{
	struct flamegraph *graph = taker;
	graph->off_cpu = true;
	graph->input.event = TALLY_OFF_CPU_NAME;
	return tally_option_store(taker, option, value, err);
}

static int take_min_width(void *taker, const struct tally_option *option, const char *value,
			  struct tally_error *err)
{
	struct flamegraph *graph = taker;
	char *end;
	double least = strtod(value, &end);
	(void)option;
	if (end == value || *end || !(least > 0 && least <= 1000))
		return tally_error_set(err, -EINVAL,
				       "option --min-width: '%s' is not a width like 0.5", value);
	graph->drawing.min_width_px = least;
	return 0;
}

#define THEMES "auto light dark" /* as enum tally_flamegraph_theme */

static const struct tally_option options[] = {
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE", "read FILE (- is standard input)",
	  TALLY_TEXT(struct flamegraph, input.view.input) },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write to FILE, .svg or .html; - is standard output\n"
	  "(flamegraph.svg; standard output if it is not a terminal)",
	  TALLY_TEXT(struct flamegraph, output) },
	{ 0, "format", TALLY_ARGUMENT_REQUIRED, "FORMAT", "svg or html, whatever FILE's name",
	  TALLY_WORD(struct flamegraph, is_html, "svg html"),
	  TALLY_ALSO(struct flamegraph, has_format) },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT", "draw this event's samples (the first)",
	  TALLY_TEXT(struct flamegraph, input.event) },
	{ 0, "off-cpu", TALLY_ARGUMENT_NONE, NULL,
	  "draw where tasks waited, as record --off-cpu recorded; a command is\n"
	  "recorded that way",
	  TALLY_TAKE(take_off_cpu) },
	TALLY_PROVIDER_OPTION(struct flamegraph, provider),
	{ TALLY_INCLUDE(tally_view_task_options, struct flamegraph, input.view) },
	{ TALLY_INCLUDE(tally_view_filter_options, struct flamegraph, input.view) },
	{ TALLY_INCLUDE(tally_view_max_stack_option, struct flamegraph, input.view) },
	{ TALLY_INCLUDE(tally_view_name_options, struct flamegraph, input.view) },
	{ TALLY_INCLUDE(tally_view_raw_addresses_option, struct flamegraph, input.view) },
	{ TALLY_INCLUDE(tally_view_full_names_option, struct flamegraph, input.view) },
	{ 0, "weight", TALLY_ARGUMENT_REQUIRED, "WHAT",
	  "widths show samples, or period: the time or events that\nsamples stand for (period, "
	  "if known)",
	  TALLY_TAKE_MEMBER(tally_take_weight, struct flamegraph, drawing.by_samples) },
	{ 0, "title", TALLY_ARGUMENT_REQUIRED, "TEXT", "the title (the input's name)",
	  TALLY_TEXT(struct flamegraph, drawing.title) },
	{ 0, "subtitle", TALLY_ARGUMENT_REQUIRED, "TEXT",
	  "the line below it (event, samples, threads)",
	  TALLY_TEXT(struct flamegraph, drawing.subtitle) },
	{ 0, "icicle", TALLY_ARGUMENT_NONE, NULL, "callers above callees",
	  TALLY_SET(struct flamegraph, drawing.icicle) },
	{ 0, "inverted", TALLY_ARGUMENT_NONE, NULL, "flamegraph.pl's name for --icicle",
	  TALLY_SET(struct flamegraph, drawing.icicle) },
	{ 0, "theme", TALLY_ARGUMENT_REQUIRED, "THEME",
	  "auto, light or dark (auto: the viewer's system setting)",
	  TALLY_WORD(struct flamegraph, drawing.theme, THEMES) },
	{ 0, "width", TALLY_ARGUMENT_REQUIRED, "PIXELS", "width of the static picture (1200)",
	  TALLY_NUMBER(struct flamegraph, drawing.width_px, 200, 20000) },
	{ 0, "min-width", TALLY_ARGUMENT_REQUIRED, "PIXELS",
	  "merge narrower frames in the static picture (0.5)", TALLY_TAKE(take_min_width) },
	{ 0, "diff", TALLY_ARGUMENT_REQUIRED, "OLD",
	  "colour by what changed since OLD, a recording or text like the input:\n"
	  "red grew, blue shrank",
	  TALLY_TEXT(struct flamegraph, old) },
	{ TALLY_INCLUDE(tally_view_idle_option, struct flamegraph, input.view) },
	{ TALLY_INCLUDE(tally_view_language_option, struct flamegraph, input.view) },
	{ TALLY_INCLUDE(tally_view_scheduler_option, struct flamegraph, input.view) },
	{ 0, "wakers", TALLY_ARGUMENT_NONE, NULL,
	  "draw waits (like --off-cpu), with the waker above each stack",
	  TALLY_SET(struct flamegraph, input.with_wakers), TALLY_TAKE(take_off_cpu) },
	{ TALLY_INCLUDE(tally_view_no_inline_option, struct flamegraph, input.view) },
	TALLY_OPTIONS_END,
};

static const char *const endings[] = { ".svg", ".html", ".htm", NULL };

static void choose_output(struct flamegraph *graph)
{
	if (!graph->output && !isatty(STDOUT_FILENO))
		graph->output = "-";
	if (!graph->output)
		graph->output = graph->is_html ? "flamegraph.html" : "flamegraph.svg";
	if (!graph->has_format)
		graph->is_html = tally_output_ends_in(graph->output, endings + 1);
}

extern const struct tally_command tally_command_record;

/* `record -q` does not tell of a provider that takes the kernel's place; a picture's reader must
 * know. */
static void say_choice(const struct flamegraph *graph)
{
	const struct tally_target target = { .command = graph->command };
	struct provider_choice choice;
	char note[256];
	provider_choose(&choice, graph->provider, TALLY_PROVIDER_SAMPLES, &target,
			graph->off_cpu ? "--off-cpu" : NULL);
	if (provider_choice_note(&choice, "sampling", note, sizeof(note)))
		tally_say("tally: %s", note);
}

/* Records the command into the file at `path`; graph->status is what `record` returns. */
static int record_command(struct flamegraph *graph, char *path, struct tally_error *err)
{
	char *head[] = { "record", "-q", "-o", path, NULL, NULL, NULL, NULL };
	int head_count = 4, count = 0;
	if (graph->off_cpu)
		head[head_count++] = "--off-cpu";
	if (graph->provider) {
		head[head_count++] = "--provider";
		head[head_count++] = (char *)(uintptr_t)graph->provider;
	}
	head[head_count++] = "--";
	say_choice(graph);
	while (graph->command[count])
		count++;
	char **argv = calloc((size_t)(head_count + count + 1), sizeof(*argv));
	if (!argv)
		return tally_error_set(err, -ENOMEM, "out of memory");
	memcpy(argv, head, (size_t)head_count * sizeof(*argv));
	memcpy(argv + head_count, graph->command, (size_t)count * sizeof(*argv));
	graph->status = tally_command_record.run(&tally_command_record, head_count + count, argv);
	free(argv);
	struct stat recorded;
	graph->input.view.input = path;
	/* If recording failed, `record` has printed the reason, and the file is missing or
	 * empty. */
	return stat(path, &recorded) < 0 || !recorded.st_size;
}

/* Makes up a name in the folder of temporary files.  Without TMPDIR, and where /tmp can't be written
 * (a read-only root), that is the picture's folder. */
static int name_temporary(const char *picture, struct tally_output_path *path,
			  struct tally_error *err)
{
	const char *folder = tally_environment("TMPDIR");
	char text[PATH_MAX], name[NAME_MAX + 1], beside[PATH_MAX];
	tally_output_path_random("tally-", "", name);
	if (!folder || !*folder) {
		folder = "/tmp";
		if (access(folder, W_OK | X_OK) < 0 &&
		    snprintf(beside, sizeof(beside), "%s", picture) < (int)sizeof(beside))
			folder = dirname(beside);
	}
	if (snprintf(text, sizeof(text), "%s/%s", folder, name) >= (int)sizeof(text))
		return tally_error_set(err, -ENAMETOOLONG, "the path in TMPDIR is too long");
	int result = tally_output_path_open(path, text, err);
	if (result < 0)
		tally_error_hint(err, "set TMPDIR to a directory of your own");
	return result;
}

/* Returns 0, 1 when there is nothing to draw and an error was printed, or -errno. */
static int load(const struct tally_command *command, struct flamegraph *graph,
		struct tally_stacks *stacks, struct tally_error *err)
{
	graph->input.with_full_names = graph->old != NULL;
	if (!graph->command)
		return tally_load_stacks(command->name, &graph->input, stacks, err);
	struct tally_output_path path;
	int status = name_temporary(graph->output, &path, err);
	if (status < 0)
		return status;
	status = record_command(graph, path.path, err);
	if (!status)
		status = tally_load_stacks(command->name, &graph->input, stacks, err);
	unlinkat(path.folder, path.name, 0);
	tally_output_path_close(&path);
	return status;
}

/* Both sides' stacks, which have the same frames and commands. */
struct sides {
	struct tally_stacks old, new;
};

static int load_sides(const struct tally_command *command, const struct flamegraph *graph,
		      const struct tally_stacks *new, struct sides *sides, struct tally_error *err)
{
	struct tally_stacks old = { 0 };
	struct tally_stacks_input input = graph->input;
	struct tally_match match = { 0 };
	input.view.input = graph->old;
	int status = tally_load_stacks(command->name, &input, &old, err);
	if (!status) {
		status = tally_match_stacks(&old, 1, new, 1, &match);
		if (!status)
			status = tally_match_side(&match, false, &sides->old);
		if (!status)
			status = tally_match_side(&match, true, &sides->new);
		if (status < 0)
			tally_error_set(err, status, "out of memory while comparing");
	}
	tally_match_release(&match);
	tally_stacks_release(&old);
	return status;
}

static int draw(const struct tally_command *command, struct flamegraph *graph,
		struct tally_error *err)
{
	struct tally_stacks stacks = { 0 };
	struct sides sides = { 0 };
	struct tally_buffer file = { 0 };
	char size[TALLY_SIZE_TEXT];
	struct tally_input_messages messages = { 0 };
	const char *const files[] = { graph->input.view.input, graph->old, NULL };
	const char *const *inputs = files;
	graph->input.messages = graph->old ? &messages : NULL;
	if (graph->command)
		inputs = (const char *const *)graph->command;
	int status = tally_output_check(graph->output, inputs, err);
	if (!status)
		status = load(command, graph, &stacks, err);
	if (!status && graph->old)
		status = load_sides(command, graph, &stacks, &sides, err);
	tally_input_messages_print(&messages);
	if (status)
		goto out;
	const struct tally_stacks *drawn = &stacks;
	if (graph->old) {
		graph->drawing.old = &sides.old;
		drawn = &sides.new;
	}
	if (graph->is_html)
		status = tally_flamegraph_html(drawn, &graph->drawing, &file, err);
	else
		status = tally_flamegraph_svg(drawn, &graph->drawing, &file, err);
	if (status)
		goto out;
	status = tally_output_write(graph->output, &file, err);
	if (!status && strcmp(graph->output, "-"))
		tally_say("tally flamegraph: wrote %s (%s stack%s, %s); open it in a browser",
			  graph->output, tally_number(stacks.rows.rows.count),
			  tally_plural(stacks.rows.rows.count), tally_size_text(file.length, size));
out:
	tally_buffer_release(&file);
	tally_stacks_release(&stacks);
	tally_stacks_release(&sides.old);
	tally_stacks_release(&sides.new);
	return status;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	struct flamegraph graph = { .input = { .arranges_waits = true } };
	/* options may follow the input; behind -- a command begins */
	while (tally_options_parse(&walk, &graph) && !walk.dashes && walk.index < argc &&
	       tally_options_take_file(&walk, &graph.input.view.input, 1,
				       "unexpected input '%s'; a command to record follows --"))
		;
	if (walk.status >= 0)
		return walk.status;
	if (walk.dashes && walk.index == argc)
		return tally_command_misuse(command, "no command after --");
	if (walk.dashes && graph.input.view.input)
		return tally_command_misuse(command,
					    "either an input or a command to record, not both");
	if (walk.dashes)
		graph.command = argv + walk.index;
	if (!walk.dashes)
		tally_view_choose_input(command->name, &graph.input.view);
	choose_output(&graph);
	if (tally_output_is_other_kind(graph.output, endings))
		return tally_command_misuse(
			command, "'%s': a flame graph is an .svg or an .html file", graph.output);
	if (draw(command, &graph, &err) < 0)
		return tally_command_fail(command, &err);
	return graph.status;
}

const struct tally_command tally_command_flamegraph = {
	.name = "flamegraph",
	.summary = "draw stacks as a flame graph, in one SVG or HTML file",
	.usage = "[options] [FILE | -- command [argument…]]",
	.details =
		"The input is a recording, `perf script` text or folded text: a file, standard "
		"input, or\n"
		"the last recording (tally.data) if neither is given.  The output is one "
		"self-contained file: open it in a\n"
		"browser to zoom, search and filter; without scripts it is a still picture.\n\n"
		"  tally flamegraph -o out.svg\n"
		"  tally flamegraph -o out.html -- make -j8\n"
		"  tally flamegraph --diff old.data -o diff.html new.data\n"
		"  perf script | tally flamegraph --title 'after the fix' -o after.svg\n\n"
		"Keys: / searches, arrows and Enter move and zoom, Esc undoes, I turns the graph "
		"upside down,\n"
		"D switches between light and dark.",
	.options = options,
	.run = run,
};
