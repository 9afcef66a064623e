/* tally compare: compares two commands, which it runs in turns, or saved results of `tally stat`, and
 * fails a script if a condition holds. */
#include "base/arena.h"
#include "base/terminal.h"
#include "command/command.h"
#include "command/compare_runs.h"
#include "command/output_file.h"
#include "stat/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CONDITIONS_MAX = 64, FILE_MAX_BYTES = 256 << 20 };

struct compare {
	struct tally_arena arena;
	struct tally_condition conditions[CONDITIONS_MAX];
	size_t condition_count;
	bool past_noise, wants_json, wants_markdown;
	const char *output_path, *save_paths[2];
	struct compare_runs runs;
	struct compare_side sides[2]; /* the old one first */
	bool has_run_options;
	struct tally_saved_counts old, new;
	struct tally_saved_comparison comparison;
};

static int take_condition(void *taker, const struct tally_option *option, const char *value,
			  struct tally_error *err)
{
	struct compare *compare = taker;
	(void)option;
	if (compare->condition_count == CONDITIONS_MAX)
		return tally_error_set(err, -EINVAL, "more than %d conditions", CONDITIONS_MAX);
	return tally_condition_parse(value, &compare->conditions[compare->condition_count++], err);
}

/* An option of runs, which saved results alone don't have. */
static int take_run_option(void *taker, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	struct compare *compare = taker;
	struct compare_runs *runs = &compare->runs;
	unsigned long long number = 0;
	compare->has_run_options = true;
	if (option->letter == 'e') {
		if (runs->stat.expression_count ==
		    sizeof(runs->stat.expressions) / sizeof(runs->stat.expressions[0]))
			return tally_error_set(err, -E2BIG,
					       "too many -e: put events into one, separated by "
					       "commas");
		runs->stat.expressions[runs->stat.expression_count++] = (struct stat_expression){
			.kind = STAT_EVENTS, .text = value
		};
		runs->stat.event_expressions++;
		return 0;
	}
	bool is_repeat = option->letter == 'r', is_seed = !strcmp(option->name, "seed");
	int result = tally_option_u64(option->name, value, is_repeat, 1u << 20, &number, err);
	if (is_repeat)
		runs->runs = (unsigned long)number;
	else if (is_seed)
		runs->seed = number;
	else
		runs->warmups = (unsigned long)number;
	runs->has_seed |= is_seed;
	return result;
}

static const struct tally_option options[] = {
	{ 'r', "repeat", TALLY_ARGUMENT_REQUIRED, "N", "run each command N times (10)",
	  TALLY_TAKE(take_run_option) },
	{ 0, "warmup", TALLY_ARGUMENT_REQUIRED, "N", "run each N times before, uncounted (1)",
	  TALLY_TAKE(take_run_option) },
	{ 0, "prepare", TALLY_ARGUMENT_REQUIRED, "COMMAND",
	  "run this by the shell before each run, uncounted",
	  TALLY_TEXT(struct compare, runs.prepare) },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENTS", "count these events, as in stat",
	  TALLY_TAKE(take_run_option) },
	{ 'd', "detailed", TALLY_ARGUMENT_NONE, NULL,
	  "add loads and misses of L1-dcache, LLC, dTLB and iTLB",
	  TALLY_CONSTANT(struct compare, runs.stat.detail, 1) },
	{ 0, "show-output", TALLY_ARGUMENT_NONE, NULL, "show what the commands print",
	  TALLY_SET(struct compare, runs.shows_output) },
	{ 0, "ignore-failure", TALLY_ARGUMENT_NONE, NULL, "compare commands that fail, too",
	  TALLY_SET(struct compare, runs.ignores_failure) },
	{ 0, "seed", TALLY_ARGUMENT_REQUIRED, "N", "take the order of the runs from this number",
	  TALLY_TAKE(take_run_option) },
	{ 0, "save-old", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "keep the runs of OLD, to compare with them later",
	  TALLY_TEXT(struct compare, save_paths[0]) },
	{ 0, "save-new", TALLY_ARGUMENT_REQUIRED, "FILE", "keep the runs of NEW",
	  TALLY_TEXT(struct compare, save_paths[1]) },
	{ 0, "fail-if", TALLY_ARGUMENT_REQUIRED, "CONDITION",
	  "exit with 1 if it holds: 'instructions > +1%'; repeatable", TALLY_TAKE(take_condition) },
	{ 0, "past-noise", TALLY_ARGUMENT_NONE, NULL, "fail also for changes that may be chance",
	  TALLY_SET(struct compare, past_noise) },
	{ 0, "markdown", TALLY_ARGUMENT_NONE, NULL, "a table for a pull request",
	  TALLY_SET(struct compare, wants_markdown) },
	{ 'j', "json-output", TALLY_ARGUMENT_NONE, NULL, "JSON (docs/stat-output.md)",
	  TALLY_SET(struct compare, wants_json) },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write to FILE instead of standard output", TALLY_TEXT(struct compare, output_path) },
	TALLY_PROVIDER_OPTION(struct compare, runs.stat.provider_name),
	TALLY_SIMULATED_OPTIONS(struct compare, runs.stat.simulated),
	TALLY_OPTIONS_END,
};

static int read_file(struct compare *compare, const char *path, struct tally_saved_counts *out,
		     struct tally_error *err)
{
	struct tally_buffer text = { .maximum = FILE_MAX_BYTES };
	bool is_standard = !strcmp(path, "-");
	const char *file = is_standard ? "/dev/stdin" : path;
	int result = tally_buffer_read_file(&text, AT_FDCWD, file, FILE_MAX_BYTES);
	if (result < 0)
		tally_error_set(err, result, "%s can't be read: %s", path,
				tally_errno_text(result));
	else
		result = tally_saved_counts_read(path, tally_buffer_string(&text), text.length,
						 &compare->arena, out, err);
	if (result < 0 && text.length && !strncmp(tally_buffer_string(&text), "#!", 2)) {
		result = tally_error_set(err, -ENOEXEC, "%s is a script, but it is not executable",
					 path);
		tally_error_hint(err, "make it executable, or name its interpreter: 'sh %s'", path);
	}
	tally_buffer_release(&text);
	return result;
}

/* Reads the counts of a side: from its file, or from its runs. */
static int read_side(struct compare *compare, unsigned number, const char *argument,
		     struct tally_saved_counts *out, struct tally_error *err)
{
	const struct tally_buffer *runs = &compare->sides[number].documents;
	if (!compare->sides[number].text)
		return read_file(compare, argument, out, err);
	int result = tally_saved_counts_read(argument, tally_buffer_string(runs), runs->length,
					     &compare->arena, out, err);
	out->is_measured = true;
	if (result < 0 || !compare->save_paths[number])
		return result;
	return tally_output_write(compare->save_paths[number], runs, err);
}

static int judge(struct compare *compare, struct tally_error *err)
{
	int first = 0;
	for (size_t i = 0; i < compare->condition_count; i++) {
		int result = tally_saved_compare_judge(&compare->comparison,
						       &compare->conditions[i], compare->past_noise,
						       first < 0 ? NULL : err);
		if (first >= 0)
			first = result;
	}
	return first;
}

static void show_table(const struct compare *compare, struct tally_buffer *out)
{
	bool is_terminal = !compare->output_path && isatty(STDOUT_FILENO);
	tally_comparison_table(&compare->comparison,
			       is_terminal && tally_terminal_colours(STDOUT_FILENO), out);
	if (is_terminal)
		tally_comparison_plot(&compare->comparison,
				      tally_terminal_columns(STDOUT_FILENO, 80),
				      !tally_terminal_is_utf8(), out);
}

static int show(struct compare *compare, struct tally_error *err)
{
	struct tally_buffer text = { 0 };
	if (compare->wants_json)
		tally_comparison_json(&compare->comparison, &text);
	else if (compare->wants_markdown)
		tally_comparison_markdown(&compare->comparison, &text);
	else
		show_table(compare, &text);
	int result;
	if (text.failed)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	else
		result = tally_output_write(compare->output_path, &text, err);
	tally_buffer_release(&text);
	return result;
}

/* Leaves out the usual events that this machine can't count on either side. */
static void leave_out_missing(struct compare *compare)
{
	struct tally_saved_comparison *comparison = &compare->comparison;
	size_t kept = 0;
	if (!compare->sides[0].text || !compare->sides[1].text ||
	    compare->runs.stat.event_expressions || compare->runs.stat.detail)
		return;
	for (size_t i = 0; i < comparison->rows.count; i++) {
		const struct tally_compared_row *row = &comparison->rows.items[i];
		if (row->old && row->new && row->old->missing && row->new->missing)
			continue;
		comparison->rows.items[kept++] = *row;
	}
	comparison->rows.count = kept;
}

/* Says in which order the commands ran. */
static int note_order(struct compare *compare)
{
	const struct compare_runs *runs = &compare->runs;
	if (!compare->sides[0].text || !compare->sides[1].text)
		return 0;
	const char *note = tally_arena_printf(
		&compare->arena, "the commands ran in turns, in random order (--seed %llu)%s",
		(unsigned long long)runs->seed,
		runs->was_interrupted ? ", until the interruption" : "");
	if (!note)
		return -ENOMEM;
	return tally_vector_push(&compare->comparison.notes, note);
}

/* Both commands are counted by the same provider: by one that takes the kernel's place only if it can
 * be used for both. */
static void choose_provider(struct compare *compare)
{
	struct stat_command *stat = &compare->runs.stat;
	char note[256];
	for (unsigned i = 0; i < 2; i++) {
		struct tally_target target = { .command = compare->sides[i].words };
		if (!target.command)
			continue;
		provider_choose(&stat->choice, stat->provider_name, 0, &target, NULL);
		if (!stat->choice.is_instead)
			break;
	}
	stat->provider_ops = stat->choice.ops;
	if (provider_choice_note(&stat->choice, "counting", note, sizeof(note)))
		tally_say("tally: %s", note);
}

/* Finds out which sides are commands, and runs them. */
static int measure(struct compare *compare, const char *const *arguments, struct tally_error *err)
{
	struct compare_runs *runs = &compare->runs;
	bool any = false;
	for (unsigned i = 0; i < 2; i++) {
		struct compare_side *side = &compare->sides[i];
		int result = compare_is_command(arguments[i], err);
		if (result < 0)
			return result;
		if (result) {
			side->text = arguments[i];
			result = compare_split(&compare->arena, side->text, &side->words, err);
			any = true;
		} else if (compare->save_paths[i]) {
			result = tally_error_set(err, -EINVAL,
						 "--save-%s: %s is a saved result already",
						 i ? "new" : "old", arguments[i]);
		}
		if (result < 0)
			return result;
	}
	bool has_options = compare->has_run_options || runs->prepare || runs->shows_output ||
			   runs->ignores_failure || runs->stat.detail ||
			   runs->stat.provider_name;
	if (!any && has_options)
		return tally_error_set(err, -EINVAL,
				       "both are saved results: options for runs don't apply");
	if (!any)
		return 0;
	choose_provider(compare);
	if (!runs->stat.provider_ops)
		return tally_provider_unknown(runs->stat.provider_name, err);
	return compare_run(runs, compare->sides, err);
}

static int compare_both(struct compare *compare, const char *const *arguments,
			struct tally_error *err)
{
	const char *const inputs[] = { arguments[0], arguments[1], NULL };
	const char *const outputs[] = { compare->output_path, compare->save_paths[0],
					compare->save_paths[1] };
	for (unsigned i = 0; i < 3; i++) {
		int result = tally_output_check(outputs[i], inputs, err);
		if (result < 0)
			return result;
	}
	int result = measure(compare, arguments, err);
	if (result < 0)
		return result;
	result = read_side(compare, 0, arguments[0], &compare->old, err);
	if (result >= 0)
		result = read_side(compare, 1, arguments[1], &compare->new, err);
	if (result < 0)
		return result;
	result = tally_saved_compare(&compare->old, &compare->new, &compare->arena,
				     &compare->comparison);
	if (result >= 0)
		result = note_order(compare);
	leave_out_missing(compare);
	if (result < 0)
		return tally_error_set(err, result, "out of memory");
	/* Prints the table before the error: it shows why a condition cannot be judged. */
	int judged = judge(compare, err);
	struct tally_error write_error = TALLY_ERROR_NONE;
	result = show(compare, judged < 0 ? &write_error : err);
	if (judged < 0)
		return judged;
	return result;
}

/* CI must be able to tell "it got worse" (1) from "it could not be compared" (2). */
static int fail(const struct tally_command *command, const struct tally_error *err)
{
	tally_command_fail(command, err);
	return TALLY_EXIT_USAGE;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	struct compare compare = { .arena = TALLY_ARENA_INIT,
				   .runs = { .runs = 10,
					     .warmups = 1,
					     .stat = { .command = command,
						       .min_running = 10,
						       .view = { .separator = "," } } } };
	const char *arguments[2] = { NULL };
	/* Options may follow the files: compare old new --fail-if … */
	while (tally_options_parse(&walk, &compare) && walk.index < argc &&
	       tally_options_take_file(&walk, arguments, 2,
				       "unexpected '%s': two are compared (put a command and its "
				       "arguments in quotes)"))
		;
	if (walk.status >= 0)
		return walk.status;
	if (!arguments[1])
		return tally_command_misuse(
			command, "name two commands or saved results, the old one first");
	if (compare.wants_json && compare.wants_markdown)
		return tally_command_misuse(command, "choose either JSON or Markdown");
	int result = compare_both(&compare, arguments, &err);
	int status = TALLY_EXIT_OK;
	if (compare.comparison.has_failed)
		status = TALLY_EXIT_FAILURE;
	else if (compare.runs.was_interrupted)
		status = 128 + SIGINT;
	if (result < 0)
		status = fail(command, &err);
	compare_runs_release(&compare.runs);
	for (unsigned i = 0; i < 2; i++)
		tally_buffer_release(&compare.sides[i].documents);
	tally_saved_comparison_release(&compare.comparison);
	tally_saved_counts_release(&compare.old);
	tally_saved_counts_release(&compare.new);
	tally_arena_release(&compare.arena);
	return status;
}

const struct tally_command tally_command_compare = {
	.name = "compare",
	.summary = "compare two commands, or two saved results of stat",
	.usage = "[options] OLD NEW",
	.details =
		"OLD and NEW are commands in quotes, or files written by `tally stat -j -o FILE` (or "
		"`perf stat -j`).  Commands\n"
		"run in turns, in random order, and each run is counted as by stat.  An existing file "
		"that is no program is a\n"
		"saved result.  A command with the shell's characters is run by `sh -c`, which then "
		"counts, too; others are\n"
		"started directly.  The commands read /dev/null, and what they print is dropped.\n\n"
		"A change that chance alone would cause in more than one case of twenty is noise and "
		"never fails.  Counts of\n"
		"the simulated PMU repeat to the last digit.  Runs whose time is far from the others' "
		"are named, and count.\n\n"
		"A condition is an event's name, or elapsed, user, system (seconds), then > or <, "
		"then a limit:\n"
		"+1% or -1% of change, +1000 of difference, or 2.5G of the new figure itself "
		"(clocks: msec).\n\n"
		"Exit status: 0; 1 if a condition of --fail-if holds; 2 if a file can't be read, a "
		"command fails, or a\n"
		"condition can't be judged because the event was not counted; 130 after Ctrl-C, with "
		"the comparison so far.\n"
		"docs/ci.md has CI jobs to copy.\n\n"
		"  tally compare './old input' './new input'     10 turns, after one uncounted\n"
		"  tally compare -r 30 'xz -1 -k -c f' 'xz -2 -k -c f' --fail-if 'elapsed > +5%'\n"
		"  tally compare old.json ./program              a saved result with a command\n"
		"  tally stat --provider simulated -e instructions -jo new.json ./program\n"
		"  tally compare old.json new.json --fail-if 'instructions > +1%'\n"
		"  tally compare old.json new.json --markdown -o comment.md",
	.options = options,
	.rarely_reads_files = true,
	.run = run,
};
