/* tally compare: compares two saved results of `tally stat`, and fails a script if a condition
 * holds. */
#include "base/arena.h"
#include "base/terminal.h"
#include "command/command.h"
#include "command/output_file.h"
#include "stat/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CONDITIONS_MAX = 64, FILE_MAX_BYTES = 256 << 20 };

struct compare {
	struct tally_arena arena;
	struct tally_condition conditions[CONDITIONS_MAX];
	size_t condition_count;
	bool past_noise, wants_json, wants_markdown;
	const char *output_path;
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

static const struct tally_option options[] = {
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
	TALLY_OPTIONS_END,
};

static int read_side(struct compare *compare, const char *path, struct tally_saved_counts *out,
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
	tally_buffer_release(&text);
	return result;
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

static int show(struct compare *compare, struct tally_error *err)
{
	struct tally_buffer text = { 0 };
	if (compare->wants_json)
		tally_comparison_json(&compare->comparison, &text);
	else if (compare->wants_markdown)
		tally_comparison_markdown(&compare->comparison, &text);
	else
		tally_comparison_table(
			&compare->comparison,
			!compare->output_path && tally_terminal_colours(STDOUT_FILENO), &text);
	int result;
	if (text.failed)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	else
		result = tally_output_write(compare->output_path, &text, err);
	tally_buffer_release(&text);
	return result;
}

static int compare_files(struct compare *compare, const char *const *paths, struct tally_error *err)
{
	const char *const inputs[] = { paths[0], paths[1], NULL };
	int result = tally_output_check(compare->output_path, inputs, err);
	if (result >= 0)
		result = read_side(compare, paths[0], &compare->old, err);
	if (result >= 0)
		result = read_side(compare, paths[1], &compare->new, err);
	if (result < 0)
		return result;
	result = tally_saved_compare(&compare->old, &compare->new, &compare->arena,
				     &compare->comparison);
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
	struct compare compare = { .arena = TALLY_ARENA_INIT };
	const char *paths[2] = { NULL };
	/* Options may follow the files: compare old new --fail-if … */
	while (tally_options_parse(&walk, &compare) && walk.index < argc &&
	       tally_options_take_file(&walk, paths, 2, "unexpected file '%s': two are compared"))
		;
	if (walk.status >= 0)
		return walk.status;
	if (!paths[1])
		return tally_command_misuse(command, "name two files, the old one first");
	if (compare.wants_json && compare.wants_markdown)
		return tally_command_misuse(command, "choose either JSON or Markdown");
	int result = compare_files(&compare, paths, &err);
	int status = TALLY_EXIT_OK;
	if (compare.comparison.has_failed)
		status = TALLY_EXIT_FAILURE;
	if (result < 0)
		status = fail(command, &err);
	tally_saved_comparison_release(&compare.comparison);
	tally_saved_counts_release(&compare.old);
	tally_saved_counts_release(&compare.new);
	tally_arena_release(&compare.arena);
	return status;
}

const struct tally_command tally_command_compare = {
	.name = "compare",
	.summary = "compare two saved results of stat",
	.usage = "[options] OLD NEW",
	.details =
		"OLD and NEW are files written by `tally stat -j -o FILE` (or `perf stat -j`).  "
		"For several runs (stat -r, or\n"
		"--append), the spread is taken into account: a change that chance alone would "
		"cause in more than one case\n"
		"of twenty is noise and never fails.  Counts of the simulated PMU repeat to the "
		"last digit.\n\n"
		"A condition is an event's name, or elapsed, user, system (seconds), then > or <, "
		"then a limit:\n"
		"+1% or -1% of change, +1000 of difference, or 2.5G of the new figure itself "
		"(clocks: msec).\n\n"
		"Exit status: 0; 1 if a condition of --fail-if holds; 2 if a file can't be read, "
		"or a condition can't be\n"
		"judged because the event was not counted.  docs/ci.md has CI jobs to copy.\n\n"
		"  tally stat --provider simulated -e instructions -jo new.json ./program\n"
		"  tally compare old.json new.json --fail-if 'instructions > +1%'\n"
		"  tally compare old.json new.json --markdown -o comment.md",
	.options = options,
	.run = run,
};
