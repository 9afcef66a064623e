/* tally diff: which functions' shares changed between two recordings, and which changes may be
 * chance. */
#include "command/command.h"
#include "command/report_sort.h"
#include "output/output.h"
#include "output/output_text.h"
#include "view/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS_MAX = 64, CONDITIONS_MAX = 64, NOISE_ROWS = 10 };

#define SORT_CHOICES "comm dso sym srcline"
#define MEASURES "share time samples" /* as enum tally_share_measure */

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

static int take_sort(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	struct request *request = taker;
	struct tally_diff_options *diff = &request->diff;
	const uint64_t allowed = TALLY_SORT_BIT(TALLY_SORT_COMM) |
				 TALLY_SORT_BIT(TALLY_SORT_OBJECT) |
				 TALLY_SORT_BIT(TALLY_SORT_SYMBOL) |
				 TALLY_SORT_BIT(TALLY_SORT_SOURCE_LINE);
	bool by[TALLY_SORT_KEYS];
	(void)option;
	int result = tally_sort_keys_parse(value, allowed, SORT_CHOICES, by, err);
	if (result < 0)
		return result;
	diff->by_comm = by[TALLY_SORT_COMM];
	diff->by_object = by[TALLY_SORT_OBJECT];
	request->input.view.wants_lines = by[TALLY_SORT_SOURCE_LINE];
	/* lines belong to functions */
	diff->by_symbol = by[TALLY_SORT_SYMBOL] || by[TALLY_SORT_SOURCE_LINE];
	return 0;
}

static int add_path(struct runs *runs, const char *path, struct tally_error *err)
{
	if (runs->count == RUNS_MAX)
		return tally_error_set(err, -EINVAL, "more than %d recordings on one side",
				       RUNS_MAX);
	runs->paths[runs->count++] = path;
	return 0;
}

static int take_path(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	return add_path(tally_option_member(taker, option), value, err);
}

static int take_condition(void *taker, const struct tally_option *option, const char *value,
			  struct tally_error *err)
{
	struct request *request = taker;
	(void)option;
	if (request->verdict_count == CONDITIONS_MAX)
		return tally_error_set(err, -EINVAL, "more than %d conditions", CONDITIONS_MAX);
	if (!request->verdicts &&
	    !(request->verdicts = calloc(CONDITIONS_MAX, sizeof(*request->verdicts))))
		return tally_error_set(err, -ENOMEM, "out of memory");
	return tally_condition_parse(value, &request->verdicts[request->verdict_count++].condition,
				     err);
}

static int take_computation(void *taker, const struct tally_option *option, const char *value,
			    struct tally_error *err)
{
	(void)taker, (void)option;
	if (!strcmp(value, "delta-abs"))
		return 0;
	return tally_error_set(
		err, -EINVAL,
		"option --compute: changes are differences, the largest first (delta-abs), not "
		"'%s'; -j has both sides of each row",
		value);
}

static int take_cpus(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	int result = tally_view_take_cpus(taker, option, value, err);
	if (result < 0)
		tally_error_hint(err,
				 "-C selects CPUs; perf diff's -C, for commands, is --comm %s here",
				 value);
	return result;
}

static const struct tally_option options[] = {
	{ 's', "sort", TALLY_ARGUMENT_REQUIRED, "KEYS",
	  "group rows by these of comm,dso,sym,srcline (dso,sym)", SORT_CHOICES,
	  TALLY_TAKE(take_sort) },
	{ 0, "children", TALLY_ARGUMENT_NONE, NULL,
	  "compare totals, which include called functions",
	  TALLY_SET(struct request, diff.children) },
	{ TALLY_INCLUDE(tally_view_symbols_option, struct request, input.view) },
	{ 0, "normalize", TALLY_ARGUMENT_REQUIRED, "WHAT",
	  "compare each function's share of its recording (share), its time or\n"
	  "events (time), or its samples (samples); share",
	  TALLY_WORD(struct request, diff.measure, MEASURES) },
	{ 0, "old", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "a recording of the old side; repeatable, to account for\n"
	  "variation between runs",
	  TALLY_TAKE_MEMBER(take_path, struct request, old) },
	{ 0, "new", TALLY_ARGUMENT_REQUIRED, "FILE", "a recording of the new side, likewise",
	  TALLY_TAKE_MEMBER(take_path, struct request, new) },
	{ 'n', "limit", TALLY_ARGUMENT_REQUIRED, "N", "at most N rows (all changes and 10 others)",
	  TALLY_NUMBER(struct request, diff.limit, 1, 1000000) },
	{ 0, "percent-limit", TALLY_ARGUMENT_REQUIRED, "P",
	  "leave out rows below P % on both sides (0.5)",
	  TALLY_PERCENT(struct request, diff.percent_min),
	  TALLY_ALSO(struct request, percent_given) },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT",
	  "compare this event's samples (the first)", TALLY_TEXT(struct request, input.event) },
	{ TALLY_INCLUDE(tally_view_task_options, struct request, input.view) },
	{ TALLY_INCLUDE(tally_view_comm_option, struct request, input.view) },
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples on these CPUs",
	  TALLY_TEXT(struct request, input.view.filter.cpus), TALLY_TAKE(take_cpus) },
	{ TALLY_INCLUDE(tally_view_time_option, struct request, input.view) },
	{ TALLY_INCLUDE(tally_view_leaf_options, struct request, input.view) },
	{ TALLY_INCLUDE(tally_view_idle_option, struct request, input.view) },
	{ TALLY_INCLUDE(tally_view_language_option, struct request, input.view) },
	{ TALLY_INCLUDE(tally_view_name_options, struct request, input.view) },
	{ TALLY_INCLUDE(tally_view_raw_addresses_option, struct request, input.view) },
	{ TALLY_INCLUDE(tally_view_full_names_option, struct request, input.view) },
	{ 0, "fail-if", TALLY_ARGUMENT_REQUIRED, "CONDITION",
	  "exit with 1 if it holds: 'parse > +2' (see below); repeatable",
	  TALLY_TAKE(take_condition) },
	{ 0, "past-noise", TALLY_ARGUMENT_NONE, NULL, "fail also for changes that may be chance",
	  TALLY_SET(struct request, past_noise) },
	{ 0, "markdown", TALLY_ARGUMENT_NONE, NULL, "a table for a pull request",
	  TALLY_SET(struct request, markdown) },
	{ 0, "stdio", TALLY_ARGUMENT_NONE, NULL, "no pager", TALLY_SET(struct request, no_pager) },
	{ 'j', "json", TALLY_ARGUMENT_NONE, NULL, "JSON (docs/diff.md)",
	  TALLY_SET(struct request, json) },
	/* perf's names */
	{ 0, "comms", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_TEXT(struct request, input.view.filter.comms) },
	{ 'd', "dsos", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_TEXT(struct request, input.view.filter.objects) },
	{ 'S', "symbols", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_TEXT(struct request, input.view.filter.symbols) },
	{ 'c', "compute", TALLY_ARGUMENT_REQUIRED, "delta-abs", NULL,
	  TALLY_TAKE(take_computation) },
	TALLY_OPTIONS_END,
};

static int load_runs(const struct tally_command *command, const struct request *request,
		     struct tally_input_messages *messages, struct runs *runs,
		     struct tally_error *err)
{
	runs->stacks = calloc(runs->count, sizeof(*runs->stacks));
	if (!runs->stacks)
		return tally_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < runs->count; i++) {
		struct tally_stacks_input input = request->input;
		input.view.input = runs->paths[i];
		input.messages = messages;
		input.with_full_names = true;
		int result = tally_load_stacks(command->name, &input, &runs->stacks[i], err);
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
		.ascii = !tally_terminal_is_utf8(),
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
	struct tally_input_messages messages = { 0 };
	int judged = 0, result = load_runs(command, request, &messages, &request->old, err);
	if (!result)
		result = load_runs(command, request, &messages, &request->new, err);
	tally_input_messages_print(&messages);
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
			"choose an event that both have with --event, or compare shares with "
			"--normalize share");
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

/* Takes the default recording, and the one that it replaced. */
static int take_defaults(const struct tally_command *command, struct request *request)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_default_file file;
	tally_view_default_file(&file);
	const char *old = "tally.data.old";
	if (!strcmp(file.path, "perf.data"))
		old = "perf.data.old";
	if (access(file.path, F_OK) || access(old, F_OK)) {
		const char *missing = old;
		if (access(file.path, F_OK))
			missing = file.path;
		tally_error_set(&err, -ENOENT,
				"name two recordings, the old one first: there is no %s here",
				missing);
		tally_error_hint(&err,
				 "tally diff OLD NEW; a second 'tally record' keeps the first "
				 "recording as tally.data.old");
		return tally_command_misused(command, &err);
	}
	if (file.newer)
		tally_say("tally %s: comparing %s with %s, but %s is newer: 'tally %s OLD %s' "
			  "compares that one",
			  command->name, old, file.path, file.newer, command->name, file.newer);
	if (add_path(&request->old, old, &err) < 0 ||
	    add_path(&request->new, file.path, &err) < 0)
		return tally_command_misused(command, &err);
	return -1;
}

/* Returns -1, or an exit status after the help or an error. */
static int take_arguments(const struct tally_command *command, int argc, char **argv,
			  struct request *request)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	const char *paths[2] = { NULL };
	/* Options may follow the files: diff old new --sort sym */
	while (tally_options_parse(&walk, request) && walk.index < argc &&
	       tally_options_take_file(
		       &walk, paths, 2,
		       "unexpected file '%s': --old and --new add recordings to a side"))
		;
	if (walk.status >= 0)
		return walk.status;
	if (paths[0] && !paths[1])
		return tally_command_misuse(command, "name two recordings, the old one first");
	if (paths[0] && (add_path(&request->old, paths[0], &err) < 0 ||
			 add_path(&request->new, paths[1], &err) < 0))
		return tally_command_misused(command, &err);
	int status = -1;
	if (!request->old.count && !request->new.count)
		status = take_defaults(command, request);
	if (status >= 0)
		return status;
	if (!request->old.count || !request->new.count)
		return tally_command_misuse(command, "name two recordings, the old one first");
	if (request->json && request->markdown)
		return tally_command_misuse(command, "choose either JSON or Markdown");
	return -1;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = {
		.diff = { .by_object = true,
			  .by_symbol = true,
			  .percent_min = 0.5,
			  .noise_limit = NOISE_ROWS },
	};
	int status = take_arguments(command, argc, argv, &request);
	if (status >= 0) {
		free(request.verdicts);
		return status;
	}
	if (request.json) { /* programs get all rows */
		if (!request.percent_given)
			request.diff.percent_min = 0;
		request.diff.noise_limit = SIZE_MAX;
	}
	int result = compare(command, &request, &err);
	release_runs(&request.old);
	release_runs(&request.new);
	status = TALLY_EXIT_OK;
	if (result < 0)
		status = tally_command_fail(command, &err);
	/* CI must be able to tell "it got worse" (1) from "it could not be compared" (2). */
	if (request.verdict_count && result < 0)
		status = TALLY_EXIT_USAGE;
	for (size_t i = 0; result >= 0 && i < request.verdict_count; i++)
		if (request.verdicts[i].result == TALLY_CONDITION_TRUE)
			status = TALLY_EXIT_FAILURE;
	free(request.verdicts);
	return status;
}

const struct tally_command tally_command_diff = {
	.name = "diff",
	.summary = "what changed between two recordings, function by function",
	.usage = "[options] [OLD NEW]",
	.details =
		"OLD and NEW are recordings, folded text or `perf script` text.  Without them, "
		"tally.data.old, which the last\n"
		"recording replaced, is compared with tally.data (or perf.data.old with perf.data, "
		"if there is no tally.data).\n"
		"CHANGE is the change of a function's own share of\n"
		"the samples, in percentage points; in 95 of 100 comparisons the interval contains "
		"the true change.\n"
		"Rows marked noise changed by no more than chance would change one of so many "
		"functions.\n"
		"Functions are matched by their names and their objects' names; a renamed function "
		"or object is\n"
		"reported as such.  --sort srcline compares each function's source "
		"lines.\n\n"
		"A condition of --fail-if is a function's name, or * for any, then > or <, then a "
		"limit: +2 or -2 points of change,\n"
		"+10% of change relative to the old share, or 30 for 30 % of the new side.  With "
		"--normalize time or samples,\n"
		"limits are of those.  Changes that may be chance never fail.\n\n"
		"Exit status: 0; 1 when a recording can't be read; with --fail-if 1 when a "
		"condition holds, and 2 when it can't be\n"
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
