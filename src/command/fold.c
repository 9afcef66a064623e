/* The command `fold`: a table of options between view/view_stacks.c, which reads any input, and
 * output/folded.c, which writes the lines. */
#include "command/command.h"
#include "command/output_file.h"
#include "output/output.h"
#include "perfdata/perfdata.h"
#include "view/view.h"

#include <errno.h>
#include <stdio.h>

struct fold {
	struct tally_stacks_input input;
	struct tally_folded_options folded;
	const char *output;
};

static int take_wakers(void *taker, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	((struct fold *)taker)->input.event = TALLY_OFF_CPU_NAME;
	return tally_option_store(taker, option, value, err);
}

static int take_all(void *taker, const struct tally_option *option, const char *value,
		    struct tally_error *err)
{
	struct tally_folded_options *folded = &((struct fold *)taker)->folded;
	(void)option, (void)value, (void)err;
	folded->suffix_kernel = folded->suffix_jit = folded->suffix_inlined = true;
	return 0;
}

static const struct tally_option options[] = {
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE", "read FILE (- is standard input)",
	  TALLY_TEXT(struct fold, input.view.input) },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE", "write to FILE, not to standard output",
	  TALLY_TEXT(struct fold, output) },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT", "fold this event's samples (the first)",
	  TALLY_TEXT(struct fold, input.event) },
	{ 0, "event-filter", TALLY_ARGUMENT_REQUIRED, "EVENT",
	  "stackcollapse-perf's name for --event", TALLY_TEXT(struct fold, input.event) },
	{ TALLY_INCLUDE(tally_view_filter_options, struct fold, input.view) },
	{ TALLY_INCLUDE(tally_view_tasks_options, struct fold, input.view) },
	{ TALLY_INCLUDE(tally_view_max_stack_option, struct fold, input.view) },
	{ TALLY_INCLUDE(tally_view_idle_option, struct fold, input.view) },
	{ TALLY_INCLUDE(tally_view_language_option, struct fold, input.view) },
	{ TALLY_INCLUDE(tally_view_name_options_without_k, struct fold, input.view) },
	{ TALLY_INCLUDE(tally_view_raw_addresses_option, struct fold, input.view) },
	{ 0, "wakers", TALLY_ARGUMENT_NONE, NULL,
	  "waits (record --off-cpu), with the waker after each stack",
	  TALLY_SET(struct fold, input.with_wakers), TALLY_ALSO(struct fold, input.arranges_waits),
	  TALLY_TAKE(take_wakers) },
	{ 0, "weight", TALLY_ARGUMENT_REQUIRED, "WHAT",
	  "samples, or period: the time or events that\nthey stand for (period, if known)",
	  TALLY_TAKE_MEMBER(tally_take_weight, struct fold, folded.by_samples) },
	{ 0, "pid", TALLY_ARGUMENT_NONE, NULL, "separate processes: comm-PID",
	  TALLY_SET(struct fold, folded.with_pid) },
	{ 0, "tid", TALLY_ARGUMENT_NONE, NULL, "separate threads: comm-PID/TID",
	  TALLY_SET(struct fold, folded.with_tid) },
	{ 'k', "kernel-suffix", TALLY_ARGUMENT_NONE, NULL, "mark the kernel's functions with _[k]",
	  TALLY_SET(struct fold, folded.suffix_kernel) },
	{ 'j', "jit-suffix", TALLY_ARGUMENT_NONE, NULL, "mark JIT code with _[j]",
	  TALLY_SET(struct fold, folded.suffix_jit) },
	{ 0, "inline-suffix", TALLY_ARGUMENT_NONE, NULL, "mark inlined functions with _[i]",
	  TALLY_SET(struct fold, folded.suffix_inlined) },
	{ 'a', "all", TALLY_ARGUMENT_NONE, NULL, "all three marks", TALLY_TAKE(take_all) },
	{ 0, "kernel", TALLY_ARGUMENT_NONE, NULL, "as --kernel-suffix",
	  TALLY_SET(struct fold, folded.suffix_kernel) },
	{ 0, "jit", TALLY_ARGUMENT_NONE, NULL, "as --jit-suffix",
	  TALLY_SET(struct fold, folded.suffix_jit) },
	{ 0, "full-names", TALLY_ARGUMENT_NONE, NULL,
	  "keep parameter lists, quotes and blanks in names",
	  TALLY_SET(struct fold, folded.full_names),
	  TALLY_ALSO(struct fold, input.view.names.full_names) },
	{ TALLY_INCLUDE(tally_view_no_inline_option, struct fold, input.view) },
	TALLY_OPTIONS_END,
};

static int fold_input(const struct tally_command *command, const struct fold *fold,
		      struct tally_error *err)
{
	struct tally_stacks stacks = { 0 };
	struct tally_buffer text = { .maximum = (size_t)1 << 36 };
	const char *const inputs[] = { fold->input.view.input, NULL };
	int status = tally_output_check(fold->output, inputs, err);
	if (!status)
		status = tally_load_stacks(command->name, &fold->input, &stacks, err);
	if (!status)
		status = tally_folded_write(&stacks, &fold->folded, &text, err);
	if (!status)
		status = tally_output_write(fold->output, &text, err);
	tally_buffer_release(&text);
	tally_stacks_release(&stacks);
	return status;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	struct fold fold = { 0 };
	/* options may follow the input */
	while (tally_options_parse(&walk, &fold) && walk.index < argc &&
	       tally_options_take_file(&walk, &fold.input.view.input, 1, "unexpected input '%s'"))
		;
	if (walk.status >= 0)
		return walk.status;
	tally_view_choose_input(command->name, &fold.input.view);
	if (fold_input(command, &fold, &err) < 0)
		return tally_command_fail(command, &err);
	return TALLY_EXIT_OK;
}

const struct tally_command tally_command_fold = {
	.name = "fold",
	.summary = "one line per distinct stack, with its weight",
	.usage = "[options] [FILE]",
	.details =
		"The input is a recording, `perf script` text or folded text: a file, standard "
		"input, or\n"
		"the last recording (tally.data) if neither is given.  The output is for flame "
		"graph tools, and for\n"
		"grep, sort and awk:\n\n"
		"  tally fold perf.data | grep ext4 | sort -nk2 -t' ' | tail\n"
		"  perf script | tally fold -k > stacks.txt",
	.options = options,
	.run = run,
};
