/* tally diff: which functions' shares changed between two recordings, and which changes may be
 * chance. */
#include "base/terminal.h"
#include "command/command.h"
#include "command/diff_perf_options.h"
#include "command/filter_options.h"
#include "command/load_stacks.h"
#include "command/name_options.h"
#include "output/diff_view.h"
#include "output/pager.h"

#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_OLD = 256,
	OPTION_NEW,
	OPTION_CHILDREN,
	OPTION_NORMALIZE,
	OPTION_PERCENT,
	OPTION_MARKDOWN,
	OPTION_STDIO,
	OPTION_FAIL_IF,
	OPTION_PAST_NOISE,
	OPTION_DSO,
	OPTION_SYMBOL,
	OPTION_COMPUTE,
	RUNS_MAX = 64,
	CONDITIONS_MAX = 64,
	NOISE_ROWS = 10
};

#define SORT_CHOICES "comm dso sym srcline"

static const struct tally_option options[] = {
	{ 's', "sort", TALLY_ARGUMENT_REQUIRED, "KEYS", "group rows by these of comm,dso,sym,srcline (dso,sym)",
	  SORT_CHOICES, 0 },
	{ 0, "children", TALLY_ARGUMENT_NONE, NULL,
	  "compare totals, which include called functions", NULL, OPTION_CHILDREN },
	{ 0, "normalize", TALLY_ARGUMENT_REQUIRED, "WHAT",
	  "compare each function's share of its recording (share), its time or\n"
	  "events (time), or its samples (samples); share",
	  NULL, OPTION_NORMALIZE },
	{ 0, "old", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "a recording of the old side; repeatable, to account for\n"
	  "variation between runs",
	  NULL, OPTION_OLD },
	{ 0, "new", TALLY_ARGUMENT_REQUIRED, "FILE", "a recording of the new side, likewise", NULL,
	  OPTION_NEW },
	{ 'n', "limit", TALLY_ARGUMENT_REQUIRED, "N",
	  "at most N rows (all changes and 10 others)", NULL, 0 },
	{ 0, "percent-limit", TALLY_ARGUMENT_REQUIRED, "P",
	  "leave out rows below P % on both sides (0.5)", NULL, OPTION_PERCENT },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT",
	  "compare this event's samples (the first)", NULL, 0 },
	OLD_FILTER_TASK_OPTIONS("pid", "tid"),
	OLD_FILTER_OPTIONS,
	{ 0, "dso", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples in these objects (libc*)", NULL,
	  OPTION_DSO },
	{ 0, "symbol", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples in these functions (std::*)",
	  NULL, OPTION_SYMBOL },
	OLD_IDLE_OPTION,
	OLD_NAME_OPTIONS,
	OLD_FULL_NAMES_OPTION,
	{ 0, "fail-if", TALLY_ARGUMENT_REQUIRED, "CONDITION",
	  "exit with 1 if it holds: 'parse > +2' (see below); repeatable",
	  NULL, OPTION_FAIL_IF },
	{ 0, "past-noise", TALLY_ARGUMENT_NONE, NULL,
	  "fail also for changes that may be chance", NULL, OPTION_PAST_NOISE },
	{ 0, "markdown", TALLY_ARGUMENT_NONE, NULL, "a table for a pull request", NULL,
	  OPTION_MARKDOWN },
	{ 0, "stdio", TALLY_ARGUMENT_NONE, NULL, "no pager", NULL, OPTION_STDIO },
	{ 'j', "json", TALLY_ARGUMENT_NONE, NULL, "JSON (docs/diff.md)", NULL, 0 },
	/* perf's names */
	{ 0, "comms", TALLY_ARGUMENT_REQUIRED, "LIST", NULL, NULL, TALLY_OPTION_COMMS },
	{ 'd', "dsos", TALLY_ARGUMENT_REQUIRED, "LIST", NULL, NULL, OPTION_DSO },
	{ 'S', "symbols", TALLY_ARGUMENT_REQUIRED, "LIST", NULL, NULL, OPTION_SYMBOL },
	{ 'c', "compute", TALLY_ARGUMENT_REQUIRED, "delta-abs", NULL, NULL, OPTION_COMPUTE },
#define ROW(id_, letter_, name_, kind_, argument_, instead_) \
	{ letter_, name_, TALLY_ARGUMENT_##kind_, argument_, NULL, NULL, DIFF_PERF_##id_ },
	DIFF_PERF_OPTIONS(ROW)
#undef ROW
		TALLY_OPTIONS_END,
};

struct runs {
	const char *paths[RUNS_MAX];
	struct tally_stacks *stacks;
	size_t count;
};

struct request {
	struct tally_stacks_input input;
	struct tally_diff_options diff;
	struct runs old, new;
	struct tally_diff_verdict *verdicts; /* CONDITIONS_MAX items */
	size_t verdict_count;
	bool percent_given, past_noise, json, markdown, no_pager;
};

static int parse_sort(const char *text, struct request *request, struct tally_error *err)
{
	struct tally_diff_options *diff = &request->diff;
	const struct tally_option_key keys[] = {
		{ "comm", &diff->by_comm },     { "dso", &diff->by_object },
		{ "object", &diff->by_object }, { "sym", &diff->by_symbol },
		{ "symbol", &diff->by_symbol }, { "srcline", &request->input.by_line },
	};
	if (tally_option_sort(text, keys, sizeof(keys) / sizeof(keys[0]), SORT_CHOICES,
			      "object symbol", err) < 0)
		return -EINVAL;
	/* Lines belong to functions; inlined functions have lines of their own. */
	diff->by_symbol |= request->input.by_line;
	request->input.no_inlines = !request->input.by_line;
	return 0;
}

static int parse_measure(const char *value, enum tally_share_measure *out, struct tally_error *err)
{
	static const char *const names[] = { [TALLY_MEASURE_SHARE] = "share",
					     [TALLY_MEASURE_WEIGHT] = "time",
					     [TALLY_MEASURE_SAMPLES] = "samples" };
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(value, names[i])) {
			*out = (enum tally_share_measure)i;
			return 0;
		}
	return tally_error_set(err, -EINVAL,
			       "option --normalize: '%s' is none of share, time, samples", value);
}

static int add_path(struct runs *runs, const char *path, struct tally_error *err)
{
	if (runs->count == RUNS_MAX)
		return tally_error_set(err, -EINVAL, "more than %d recordings on one side", RUNS_MAX);
	runs->paths[runs->count++] = path;
	return 0;
}

static int add_condition(struct request *request, const char *text, struct tally_error *err)
{
	if (request->verdict_count == CONDITIONS_MAX)
		return tally_error_set(err, -EINVAL, "more than %d conditions", CONDITIONS_MAX);
	if (!request->verdicts &&
	    !(request->verdicts = calloc(CONDITIONS_MAX, sizeof(*request->verdicts))))
		return tally_error_set(err, -ENOMEM, "out of memory");
	return tally_condition_parse(text, &request->verdicts[request->verdict_count++].condition,
				     err);
}

static int take_computation(const char *value, struct tally_error *err)
{
	if (!strcmp(value, "delta-abs"))
		return 0;
	return tally_error_set(
		err, -EINVAL,
		"option --compute: changes are differences, the largest first (delta-abs), not '%s'; "
		"-j has both sides of each row",
		value);
}

static int take_option(struct request *request, int id, const char *value, struct tally_error *err)
{
	unsigned long long number = 0;
	int result = 0;
	switch (id) {
	case 's': return parse_sort(value, request, err);
	case 'e': request->input.event = value; break;
	case 'j': request->json = true; break;
	case 'n':
		result = tally_option_u64("-n", value, 1, 1000000, &number, err);
		request->diff.limit = (size_t)number;
		break;
	case OPTION_CHILDREN: request->diff.children = true; break;
	case OPTION_NORMALIZE: return parse_measure(value, &request->diff.measure, err);
	case OPTION_OLD: return add_path(&request->old, value, err);
	case OPTION_NEW: return add_path(&request->new, value, err);
	case OPTION_PERCENT:
		request->percent_given = true;
		return tally_option_percent("--percent-limit", value, &request->diff.percent_min,
					    err);
	case OPTION_FAIL_IF: return add_condition(request, value, err);
	case OPTION_PAST_NOISE: request->past_noise = true; break;
	case OPTION_MARKDOWN: request->markdown = true; break;
	case OPTION_STDIO: request->no_pager = true; break;
	case TALLY_OPTION_IDLE: request->input.shows_idle = true; break;
	case OPTION_DSO: request->input.filter.objects = value; break;
	case OPTION_SYMBOL: request->input.filter.symbols = value; break;
	case OPTION_COMPUTE: return take_computation(value, err);
	default:
		result = diff_take_perf_option(id, err);
		if (!result)
			result = tally_name_option(id, value, &request->input.names, err);
		if (!result)
			result = tally_filter_option(id, value, &request->input.filter, err);
		if (result < 0 && id == TALLY_OPTION_CPUS)
			tally_error_hint(
				err,
				"-C selects CPUs; perf diff's -C, for commands, is --comm %s here",
				value);
		return result;
	}
	return result;
}

static int load_runs(const struct tally_command *command, const struct request *request,
		     struct runs *runs, struct tally_error *err)
{
	runs->stacks = calloc(runs->count, sizeof(*runs->stacks));
	if (!runs->stacks)
		return tally_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < runs->count; i++) {
		struct tally_stacks_input input = request->input;
		input.path = runs->paths[i];
		input.is_one_of_several = input.with_full_names = true;
		int result = tally_load_stacks(command, &input, &runs->stacks[i], err);
		if (result < 0)
			return result;
		if (!runs->stacks[i].total_weight) {
			tally_error_set(err, -ENODATA, "%s has no samples to compare",
					runs->paths[i]);
			return -ENODATA;
		}
	}
	return 0;
}

static void release_runs(struct runs *runs)
{
	for (size_t i = 0; runs->stacks && i < runs->count; i++)
		tally_stacks_release(&runs->stacks[i]);
	free(runs->stacks);
}

static void show(const struct request *request, const struct tally_match *match,
		 const struct tally_diff *diff, struct tally_buffer *out)
{
	struct tally_pager pager = { 0 };
	struct tally_diff_view view = {
		.match = match,
		.options = &request->diff,
		.old_paths = request->old.paths,
		.new_paths = request->new.paths,
		.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
		.verdicts = request->verdicts,
		.verdict_count = request->verdict_count,
	};
	if (request->json) {
		tally_diff_json(diff, &view, out);
	} else if (request->markdown) {
		tally_diff_markdown(diff, &view, out);
	} else {
		tally_pager_start(&pager, !request->no_pager);
		view.columns = pager.columns;
		view.colours = pager.colours;
		tally_diff_table(diff, &view, out);
	}
	if (!out->failed)
		fwrite(tally_buffer_string(out), 1, out->length, stdout);
	tally_pager_finish(&pager);
}

/* Warns on stderr before the table, so that neither a pager nor a pipe hides it. */
static void warn(const struct tally_command *command, const struct tally_diff *diff)
{
	struct tally_buffer text = { 0 };
	tally_diff_warning(diff, &text);
	if (text.length)
		fprintf(stderr, "tally %s: warning: %s", command->name, tally_buffer_string(&text));
	tally_buffer_release(&text);
}

static int compare(const struct tally_command *command, struct request *request,
		   struct tally_error *err)
{
	struct tally_match match = { 0 };
	struct tally_diff diff = { 0 };
	struct tally_buffer out = { 0 };
	int judged = 0, result = load_runs(command, request, &request->old, err);
	if (!result)
		result = load_runs(command, request, &request->new, err);
	if (result < 0)
		return result;
	result = tally_match_stacks(request->old.stacks, request->old.count, request->new.stacks,
				    request->new.count, &match);
	if (!result)
		result = tally_diff_build(&match, &request->diff, &diff);
	if (!result)
		judged = tally_diff_judge(&match, &request->diff, request->past_noise,
					  request->verdicts, request->verdict_count, err);
	if (judged == -ENOMEM)
		result = judged;
	/* Prints the table before the error: it shows why a condition cannot be judged. */
	if (!result) {
		warn(command, &diff);
		show(request, &match, &diff, &out);
	}
	if (result == -EINVAL) {
		tally_error_set(
			err, result,
			"times can't be compared: the recordings have different events or units");
		tally_error_hint(
			err,
			"choose an event that both have with --event, or compare shares with --normalize share");
	} else if (result < 0 || out.failed) {
		result = tally_error_set(err, -ENOMEM, "out of memory");
	} else {
		result = judged;
	}
	tally_buffer_release(&out);
	tally_diff_release(&diff);
	tally_match_release(&match);
	return result;
}

/* Returns 0, 1 after printing the help, or -1 after printing an error. */
static int take_arguments(const struct tally_command *command, int argc, char **argv,
			  struct request *request)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	const char *paths[2] = { NULL };
	unsigned path_count = 0;
	/* Options may follow the files: diff old new --sort sym */
	for (;;) {
		int id = tally_options_next(&walk);
		if (id < 0)
			return id == TALLY_OPTION_HELP ? 1 : -1;
		if (id != TALLY_OPTION_DONE) {
			if (take_option(request, id, walk.value, &err) < 0)
				return tally_command_misused(command, &err), -1;
			continue;
		}
		if (walk.index >= argc)
			break;
		if (path_count == 2)
			return tally_command_misuse(
				       command,
				       "unexpected file '%s': --old and --new add recordings to a side",
				       argv[walk.index]),
			       -1;
		paths[path_count] = tally_options_file(&walk);
		if (!paths[path_count++])
			return -1;
	}
	if (path_count == 1)
		return tally_command_misuse(command,
					    "name two recordings, the old one first"),
		       -1;
	if (path_count && (add_path(&request->old, paths[0], &err) < 0 ||
			   add_path(&request->new, paths[1], &err) < 0))
		return tally_command_misused(command, &err), -1;
	if (!request->old.count || !request->new.count)
		return tally_command_misuse(command,
					    "name two recordings, the old one first"),
		       -1;
	if (request->json && request->markdown)
		return tally_command_misuse(command, "choose either JSON or Markdown"), -1;
	return 0;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = {
		.input.no_inlines = true, /* rows are symbols, as in a report */
		.diff = { .by_object = true,
			  .by_symbol = true,
			  .percent_min = 0.5,
			  .noise_limit = NOISE_ROWS },
	};
	int status = take_arguments(command, argc, argv, &request);
	if (status) {
		free(request.verdicts);
		return status > 0 ? TALLY_EXIT_OK : TALLY_EXIT_USAGE;
	}
	if (request.json) { /* programs get all rows */
		request.diff.percent_min = request.percent_given ? request.diff.percent_min : 0;
		request.diff.noise_limit = SIZE_MAX;
	}
	int result = compare(command, &request, &err);
	release_runs(&request.old);
	release_runs(&request.new);
	status = result < 0 ? tally_command_fail(command, &err) : TALLY_EXIT_OK;
	/* CI must be able to tell "it got worse" (1) from "it could not be compared" (2). */
	if (request.verdict_count && result < 0)
		status = TALLY_EXIT_USAGE;
	for (size_t i = 0; result >= 0 && i < request.verdict_count; i++)
		status = request.verdicts[i].result == TALLY_CONDITION_TRUE ? TALLY_EXIT_FAILURE
									    : status;
	free(request.verdicts);
	return status;
}

const struct tally_command tally_command_diff = {
	.name = "diff",
	.summary = "what changed between two recordings, function by function",
	.usage = "[options] OLD NEW",
	.details =
		"OLD and NEW are recordings, folded text or `perf script` text.  CHANGE is the change of a function's own share of\n"
		"the samples, in percentage points; in 95 of 100 comparisons the interval contains the true change.\n"
		"Rows marked noise changed by no more than chance would change one of so many functions.\n"
		"Functions are matched by their names and their objects' names; a renamed function or object is\n"
		"reported as such.  --sort srcline compares each function's source lines, including inlined ones.\n\n"
		"A condition of --fail-if is a function's name, or * for any, then > or <, then a limit: +2 or -2 points of change,\n"
		"+10% of change relative to the old share, or 30 for 30 % of the new side.  With --normalize time or samples,\n"
		"limits are of those.  Changes that may be chance never fail.\n\n"
		"Exit status: 0; 1 when a recording can't be read; with --fail-if 1 when a condition holds, and 2 when it can't be\n"
		"judged.\n\n"
		"  tally record -o old.data -- ./program     before the change\n"
		"  tally record -o new.data -- ./program     and after it\n"
		"  tally diff old.data new.data\n"
		"  tally diff --old a1.data --old a2.data --new b1.data --new b2.data\n"
		"  tally diff old.data new.data --normalize time -n 20\n"
		"  tally diff old.data new.data --sort srcline\n"
		"  tally diff old.data new.data --fail-if 'parse > +2' --fail-if '* > +5'\n"
		"  tally diff old.data new.data --markdown >comment.md",
	.options = options,
	.run = run,
};
