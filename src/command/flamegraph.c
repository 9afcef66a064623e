#include "base/number_text.h"
#include "base/size_text.h"
#include "command/command.h"
#include "command/filter_options.h"
#include "command/load_stacks.h"
#include "command/name_options.h"
#include "command/output_file.h"

#include "flamegraph/flamegraph.h"
#include "perfdata/off_cpu_event.h"
#include "diff/stack_match.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OPTION_EVENT = 256,
	OPTION_WEIGHT,
	OPTION_FORMAT,
	OPTION_TITLE,
	OPTION_SUBTITLE,
	OPTION_WIDTH,
	OPTION_MIN_WIDTH,
	OPTION_THEME,
	OPTION_NO_INLINE,
	OPTION_DIFF,
	OPTION_OFF_CPU,
	OPTION_SCHEDULER,
	OPTION_WAKERS
};

static const struct tally_option options[] = {
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE", "read FILE (- is standard input)", NULL,
	  0 },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write to FILE, .svg or .html; - is standard output\n"
	  "(flamegraph.svg; standard output if it is not a terminal)",
	  NULL, 0 },
	{ 0, "format", TALLY_ARGUMENT_REQUIRED, "FORMAT", "svg or html, whatever FILE's name",
	  NULL, OPTION_FORMAT },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT",
	  "draw this event's samples (the first)", NULL, OPTION_EVENT },
	{ 0, "off-cpu", TALLY_ARGUMENT_NONE, NULL,
	  "draw where tasks waited, as record --off-cpu recorded; a command is\n"
	  "recorded that way",
	  NULL, OPTION_OFF_CPU },
	OLD_FILTER_TASK_OPTIONS("pid", "tid"),
	OLD_FILTER_OPTIONS,
	OLD_FILTER_STACK_OPTION,
	OLD_NAME_OPTIONS,
	OLD_FULL_NAMES_OPTION,
	{ 0, "weight", TALLY_ARGUMENT_REQUIRED, "WHAT",
	  "widths show samples, or period: the time or events that\nsamples stand for (period, "
	  "if known)",
	  NULL, OPTION_WEIGHT },
	{ 0, "title", TALLY_ARGUMENT_REQUIRED, "TEXT", "the title (the input's name)", NULL,
	  OPTION_TITLE },
	{ 0, "subtitle", TALLY_ARGUMENT_REQUIRED, "TEXT",
	  "the line below it (event, samples, threads)", NULL, OPTION_SUBTITLE },
	{ 0, "icicle", TALLY_ARGUMENT_NONE, NULL, "callers above callees", NULL, 'I' },
	{ 0, "inverted", TALLY_ARGUMENT_NONE, NULL, "flamegraph.pl's name for --icicle", NULL,
	  'I' },
	{ 0, "theme", TALLY_ARGUMENT_REQUIRED, "THEME",
	  "auto, light or dark (auto: the viewer's system setting)", NULL, OPTION_THEME },
	{ 0, "width", TALLY_ARGUMENT_REQUIRED, "PIXELS", "width of the static picture (1200)", NULL,
	  OPTION_WIDTH },
	{ 0, "min-width", TALLY_ARGUMENT_REQUIRED, "PIXELS",
	  "merge narrower frames in the static picture (0.5)", NULL, OPTION_MIN_WIDTH },
	{ 0, "diff", TALLY_ARGUMENT_REQUIRED, "OLD",
	  "colour by what changed since OLD, a recording or text like the input:\n"
	  "red grew, blue shrank",
	  NULL, OPTION_DIFF },
	OLD_IDLE_OPTION,
	{ 0, "scheduler", TALLY_ARGUMENT_NONE, NULL,
	  "show waits in the scheduler's own functions, not in their caller", NULL, OPTION_SCHEDULER },
	{ 0, "wakers", TALLY_ARGUMENT_NONE, NULL,
	  "draw waits (like --off-cpu), with the waker above each stack", NULL, OPTION_WAKERS },
	{ 0, "no-inline", TALLY_ARGUMENT_NONE, NULL,
	  "leave out inlined functions", NULL, OPTION_NO_INLINE },
	TALLY_OPTIONS_END,
};

struct flamegraph {
	struct tally_stacks_input input;
	struct tally_flamegraph_options drawing;
	const char *old;    /* input to compare with, or NULL */
	const char *output; /* NULL: not chosen yet */
	bool is_html, has_format;
	bool off_cpu;
	char **command; /* command to record, or NULL */
	int status;     /* exit status of `record` */
};

static int choose_word(const char *option, const char *value, const char *const *words,
		       struct tally_error *err)
{
	char list[128] = "";
	for (int i = 0; words[i]; i++) {
		if (!strcmp(value, words[i]))
			return i;
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "",
			 words[i]);
	}
	return tally_error_set(err, -EINVAL, "option %s: '%s' is none of %s", option, value, list);
}

static int take_width(struct flamegraph *graph, int id, const char *value, struct tally_error *err)
{
	unsigned long long width = 0;
	if (id == OPTION_WIDTH) {
		int status = tally_option_u64("--width", value, 200, 20000, &width, err);
		graph->drawing.width_px = (unsigned)width;
		return status;
	}
	char *end;
	double least = strtod(value, &end);
	if (end == value || *end || !(least > 0 && least <= 1000))
		return tally_error_set(err, -EINVAL,
				       "option --min-width: '%s' is not a width like 0.5", value);
	graph->drawing.min_width_px = least;
	return 0;
}

/* Returns 0 or -EINVAL. */
static int take_option(struct flamegraph *graph, int id, const char *value, struct tally_error *err)
{
	static const char *const formats[] = { "svg", "html", NULL }, *const themes[] = {
		"auto", "light", "dark", NULL
	};
	int chosen = 0;
	switch (id) {
	case 'i': graph->input.path = value; break;
	case 'o': graph->output = value; break;
	case 'I': graph->drawing.icicle = true; break;
	case OPTION_EVENT: graph->input.event = value; break;
	case OPTION_OFF_CPU:
		graph->off_cpu = true;
		graph->input.event = TALLY_OFF_CPU_NAME;
		break;
	case OPTION_WEIGHT: return tally_option_weight(value, &graph->drawing.by_samples, err);
	case OPTION_DIFF: graph->old = value; break;
	case TALLY_OPTION_IDLE: graph->input.shows_idle = true; break;
	case OPTION_SCHEDULER: graph->input.shows_scheduler = true; break;
	case OPTION_WAKERS:
		graph->input.with_wakers = graph->off_cpu = true;
		graph->input.event = TALLY_OFF_CPU_NAME;
		break;
	case OPTION_NO_INLINE: graph->input.no_inlines = true; break;
	case OPTION_TITLE: graph->drawing.title = value; break;
	case OPTION_SUBTITLE: graph->drawing.subtitle = value; break;
	case OPTION_WIDTH:
	case OPTION_MIN_WIDTH: return take_width(graph, id, value, err);
	case OPTION_FORMAT:
		chosen = choose_word("--format", value, formats, err);
		graph->is_html = chosen == 1;
		graph->has_format = true;
		break;
	case OPTION_THEME:
		chosen = choose_word("--theme", value, themes, err);
		graph->drawing.theme = chosen < 0 ? TALLY_THEME_AUTO
						  : (enum tally_flamegraph_theme)chosen;
		break;
	default:
		chosen = tally_name_option(id, value, &graph->input.names, err);
		return chosen ? chosen : tally_filter_option(id, value, &graph->input.filter, err);
	}
	return chosen < 0 ? chosen : 0;
}

static const char *const endings[] = { ".svg", ".html", ".htm", NULL };

static void choose_output(struct flamegraph *graph)
{
	if (!graph->output)
		graph->output = isatty(STDOUT_FILENO)
					? graph->is_html ? "flamegraph.html" : "flamegraph.svg"
					: "-";
	if (!graph->has_format)
		graph->is_html = tally_output_ends_in(graph->output, endings + 1);
}

extern const struct tally_command tally_command_record;

/* Records the command into a file of its own; graph->status is what `record` returns. */
static int record_command(struct flamegraph *graph, char path[], struct tally_error *err)
{
	char *cpu[] = { "record", "-q", "-o", path, "--" },
	     *off_cpu[] = { "record", "-q", "-o", path, "--off-cpu", "--" };
	char **head = graph->off_cpu ? off_cpu : cpu;
	int head_count = graph->off_cpu ? sizeof(off_cpu) / sizeof(*off_cpu)
					: sizeof(cpu) / sizeof(*cpu),
	    count = 0, fd = mkstemp(path);
	if (fd < 0)
		return tally_error_set(err, -errno, "creating %s failed: %s", path,
				       tally_errno_text(errno));
	close(fd);
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
	graph->input.path = path;
	/* `record` has printed its errors; then there is no recording. */
	return stat(path, &recorded) < 0 || !recorded.st_size ? 1 : 0;
}

/* Returns 0, 1 when there is nothing to draw and an error was printed, or -errno. */
static int load(const struct tally_command *command, struct flamegraph *graph,
		struct tally_stacks *stacks, struct tally_error *err)
{
	char path[4096];
	const char *folder = getenv("TMPDIR");
	graph->input.is_one_of_several = graph->input.with_full_names = graph->old != NULL;
	if (!graph->command)
		return tally_load_stacks(command, &graph->input, stacks, err);
	if (snprintf(path, sizeof(path), "%s/tally-XXXXXX", folder && *folder ? folder : "/tmp") >=
	    (int)sizeof(path))
		return tally_error_set(err, -ENAMETOOLONG, "the path in TMPDIR is too long");
	int status = record_command(graph, path, err);
	if (!status)
		status = tally_load_stacks(command, &graph->input, stacks, err);
	unlink(path);
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
	input.path = graph->old;
	int status = tally_load_stacks(command, &input, &old, err);
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
	int status = load(command, graph, &stacks, err);
	if (!status && graph->old)
		status = load_sides(command, graph, &stacks, &sides, err);
	if (!status && graph->old)
		graph->drawing.old = &sides.old;
	if (!status)
		status = (graph->is_html ? tally_flamegraph_html : tally_flamegraph_svg)(
			graph->old ? &sides.new : &stacks, &graph->drawing, &file, err);
	if (!status)
		status = tally_output_write(graph->output, &file, err);
	if (!status && strcmp(graph->output, "-"))
		fprintf(stderr,
			"tally flamegraph: wrote %s (%s stack%s, %s); open it in a browser\n",
			graph->output, tally_number(stacks.rows.rows.count),
			stacks.rows.rows.count == 1 ? "" : "s", tally_size_text(file.length, size));
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
	int id;
	while ((id = tally_options_next(&walk)) != TALLY_OPTION_DONE ||
	       (!walk.dashes && walk.index < argc)) {
		if (id == TALLY_OPTION_DONE && graph.input.path)
			return tally_command_misuse(
				command,
				"unexpected input '%s'; a command to record follows --",
				argv[walk.index]);
		if (id == TALLY_OPTION_DONE) { /* options may follow the input */
			graph.input.path = tally_options_file(&walk);
			if (!graph.input.path)
				return TALLY_EXIT_USAGE;
			continue;
		}
		if (id == TALLY_OPTION_HELP)
			return TALLY_EXIT_OK;
		if (id == TALLY_OPTION_ERROR)
			return TALLY_EXIT_USAGE;
		if (take_option(&graph, id, walk.value, &err) < 0)
			return tally_command_misused(command, &err);
	}
	if (walk.dashes && walk.index == argc)
		return tally_command_misuse(command, "no command after --");
	if (walk.dashes && graph.input.path)
		return tally_command_misuse(command,
					    "either an input or a command to record, not both");
	if (walk.dashes)
		graph.command = argv + walk.index;
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
		"The input is a recording, `perf script` text or folded text: a file, standard input, or\n"
		"the last recording (tally.data) if neither is given.  The output is one self-contained file: open it in a\n"
		"browser to zoom, search and filter; without scripts it is a still picture.\n\n"
		"  tally flamegraph -o out.svg\n"
		"  tally flamegraph -o out.html -- make -j8\n"
		"  tally flamegraph --diff old.data -o diff.html new.data\n"
		"  perf script | tally flamegraph --title 'after the fix' -o after.svg\n\n"
		"Keys: / searches, arrows and Enter move and zoom, Esc undoes, I turns the graph upside down,\n"
		"D switches between light and dark.",
	.options = options,
	.run = run,
};
