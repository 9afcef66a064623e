#include "command/command.h"
#include "command/filter_options.h"
#include "command/load_stacks.h"
#include "command/name_options.h"
#include "command/output_file.h"

#include "output/folded.h"
#include "perfdata/off_cpu_event.h"

#include <errno.h>
#include <stdio.h>

enum {
	OPTION_EVENT = 256,
	OPTION_PID,
	OPTION_TID,
	OPTION_WEIGHT,
	OPTION_FULL,
	OPTION_NO_INLINE,
	OPTION_WAKERS
};

static const struct tally_option options[] = {
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE", "read FILE (- is standard input)", NULL,
	  0 },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE", "write to FILE, not to standard output",
	  NULL, 0 },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT",
	  "fold this event's samples (the first)", NULL, OPTION_EVENT },
	{ 0, "event-filter", TALLY_ARGUMENT_REQUIRED, "EVENT",
	  "stackcollapse-perf's name for --event", NULL, OPTION_EVENT },
	OLD_FILTER_OPTIONS,
	OLD_FILTER_TASK_OPTIONS("pids", "tids"),
	OLD_FILTER_STACK_OPTION,
	OLD_IDLE_OPTION,
	OLD_NAME_OPTIONS_BY(0),
	{ 0, "wakers", TALLY_ARGUMENT_NONE, NULL,
	  "waits (record --off-cpu), with the waker after each stack", NULL,
	  OPTION_WAKERS },
	{ 0, "weight", TALLY_ARGUMENT_REQUIRED, "WHAT",
	  "samples, or period: the time or events that\nthey stand for (period, if known)",
	  NULL, OPTION_WEIGHT },
	{ 0, "pid", TALLY_ARGUMENT_NONE, NULL, "separate processes: comm-PID", NULL, OPTION_PID },
	{ 0, "tid", TALLY_ARGUMENT_NONE, NULL, "separate threads: comm-PID/TID", NULL,
	  OPTION_TID },
	{ 'k', "kernel-suffix", TALLY_ARGUMENT_NONE, NULL, "mark the kernel's functions with _[k]",
	  NULL, 'k' },
	{ 'j', "jit-suffix", TALLY_ARGUMENT_NONE, NULL, "mark JIT code with _[j]", NULL, 'j' },
	{ 0, "inline-suffix", TALLY_ARGUMENT_NONE, NULL, "mark inlined functions with _[i]", NULL,
	  'I' },
	{ 'a', "all", TALLY_ARGUMENT_NONE, NULL, "all three marks", NULL, 0 },
	{ 0, "kernel", TALLY_ARGUMENT_NONE, NULL, "as --kernel-suffix", NULL, 'k' },
	{ 0, "jit", TALLY_ARGUMENT_NONE, NULL, "as --jit-suffix", NULL, 'j' },
	{ 0, "full-names", TALLY_ARGUMENT_NONE, NULL,
	  "keep parameter lists, quotes and blanks in names", NULL, OPTION_FULL },
	{ 0, "no-inline", TALLY_ARGUMENT_NONE, NULL,
	  "leave out inlined functions", NULL, OPTION_NO_INLINE },
	TALLY_OPTIONS_END,
};

struct fold {
	struct tally_stacks_input input;
	struct tally_folded_options folded;
	const char *output;
};

/* Returns 0 or -EINVAL. */
static int take_option(struct fold *fold, int id, const char *value, struct tally_error *err)
{
	struct tally_folded_options *folded = &fold->folded;
	int result;
	switch (id) {
	case 'i': fold->input.path = value; break;
	case 'o': fold->output = value; break;
	case OPTION_EVENT: fold->input.event = value; break;
	case OPTION_WEIGHT: return tally_option_weight(value, &folded->by_samples, err);
	case OPTION_PID: folded->with_pid = true; break;
	case OPTION_TID: folded->with_tid = true; break;
	case OPTION_WAKERS:
		fold->input.arranges_waits = fold->input.with_wakers = true;
		fold->input.event = TALLY_OFF_CPU_NAME;
		break;
	case TALLY_OPTION_IDLE: fold->input.shows_idle = true; break;
	case OPTION_NO_INLINE: fold->input.no_inlines = true; break;
	case OPTION_FULL: folded->full_names = fold->input.names.full_names = true; break;
	case 'k': folded->suffix_kernel = true; break;
	case 'j': folded->suffix_jit = true; break;
	case 'I': folded->suffix_inlined = true; break;
	case 'a': folded->suffix_kernel = folded->suffix_jit = folded->suffix_inlined = true; break;
	default:
		result = tally_name_option(id, value, &fold->input.names, err);
		return result ? result : tally_filter_option(id, value, &fold->input.filter, err);
	}
	return 0;
}

static int fold_input(const struct tally_command *command, const struct fold *fold,
		      struct tally_error *err)
{
	struct tally_stacks stacks = { 0 };
	struct tally_buffer text = { .maximum = (size_t)1 << 36 };
	int status = tally_load_stacks(command, &fold->input, &stacks, err);
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
	int id;
	while ((id = tally_options_next(&walk)) != TALLY_OPTION_DONE ||
	       (!walk.dashes && walk.index < argc)) {
		if (id == TALLY_OPTION_DONE && fold.input.path)
			return tally_command_misuse(command, "unexpected input '%s'",
						    argv[walk.index]);
		if (id == TALLY_OPTION_DONE) { /* options may follow the input */
			fold.input.path = tally_options_file(&walk);
			if (!fold.input.path)
				return TALLY_EXIT_USAGE;
			continue;
		}
		if (id == TALLY_OPTION_HELP)
			return TALLY_EXIT_OK;
		if (id == TALLY_OPTION_ERROR)
			return TALLY_EXIT_USAGE;
		if (take_option(&fold, id, walk.value, &err) < 0)
			return tally_command_misused(command, &err);
	}
	/* after -- */
	if (walk.index < argc && !fold.input.path && !(fold.input.path = tally_options_file(&walk)))
		return TALLY_EXIT_USAGE;
	if (walk.index < argc)
		return tally_command_misuse(command, "unexpected input '%s'",
					    argv[walk.index]);
	if (fold_input(command, &fold, &err) < 0)
		return tally_command_fail(command, &err);
	return TALLY_EXIT_OK;
}

const struct tally_command tally_command_fold = {
	.name = "fold",
	.summary = "one line per distinct stack, with its weight",
	.usage = "[options] [FILE]",
	.details =
		"The input is a recording, `perf script` text or folded text: a file, standard input, or\n"
		"the last recording (tally.data) if neither is given.  The output is for flame graph tools, and for\n"
		"grep, sort and awk:\n\n"
		"  tally fold perf.data | grep ext4 | sort -nk2 -t' ' | tail\n"
		"  perf script | tally fold -k > stacks.txt",
	.options = options,
	.run = run,
};
