/* `tally top`: the functions that run now, updated repeatedly: browsed on a terminal, else as
 * text. */
#include "command/filter_options.h"
#include "command/name_options.h"
#include "command/top_perf_options.h"
#include "command/top_view.h"

#include "command/record_request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	OPTION_STDIO = 256,
	OPTION_TUI,
	OPTION_DURATION,
	OPTION_LIMIT,
	OPTION_PERCENT,
	OPTION_NO_BPF_EVENT,
	OPTION_CALL_GRAPH,
	OPTION_CHILDREN,
	OPTION_NO_CHILDREN,
	OPTION_NO_DESCENDANTS
};

#define SORT_CHOICES "comm pid tid dso sym"

static const struct tally_option options[] = {
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENTS",
	  "events to sample (cycles or cpu-clock); 'tally list' lists them", NULL, 0 },
	{ 'F', "freq", TALLY_ARGUMENT_REQUIRED, "HZ", "samples per second (999)", NULL, 0 },
	{ 'c', "count", TALLY_ARGUMENT_REQUIRED, "N", "a sample every N events", NULL, 0 },
	{ 'a', "all-cpus", TALLY_ARGUMENT_NONE, NULL,
	  "the whole system (the default, where the kernel allows it)", NULL, 0 },
	{ 'p', "pid", TALLY_ARGUMENT_REQUIRED, "PIDS",
	  "these processes and their children", NULL, 0 },
	{ 0, "no-descendants", TALLY_ARGUMENT_NONE, NULL,
	  "-p without existing child processes; with -i also without new ones", NULL,
	  OPTION_NO_DESCENDANTS },
	{ 't', "tid", TALLY_ARGUMENT_REQUIRED, "TIDS", "these threads", NULL, 0 },
	{ 'u', "uid", TALLY_ARGUMENT_REQUIRED, "USER",
	  "this user's processes and what they start", NULL, 0 },
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "CPUS", "these CPUs (0-3,7)", NULL, 0 },
	/* perf's form. It precedes the one in the help, because the first of a name is used. */
	{ 0, "call-graph", TALLY_ARGUMENT_OPTIONAL, "fp|dwarf[,SIZE]|lbr|none", NULL,
	  "fp dwarf lbr none", OPTION_CALL_GRAPH },
	{ 'g', "call-graph", TALLY_ARGUMENT_NONE, NULL, "call trees and totals",
	  NULL, 0 },
	OLD_FILTER_STACK_OPTION,
	OLD_FULL_NAMES_OPTION,
	{ 0, "no-children", TALLY_ARGUMENT_NONE, NULL, "no totals, with -g", NULL,
	  OPTION_NO_CHILDREN },
	OLD_IDLE_OPTION,
	{ 'K', "hide-kernel", TALLY_ARGUMENT_NONE, NULL, "only user mode", NULL, 0 },
	{ 'U', "hide-user", TALLY_ARGUMENT_NONE, NULL, "only the kernel", NULL, 0 },
	{ 's', "sort", TALLY_ARGUMENT_REQUIRED, "KEYS",
	  "group rows by these of comm,pid,tid,dso,sym (dso,sym)", SORT_CHOICES, 0 },
	{ 'm', "mmap-pages", TALLY_ARGUMENT_REQUIRED, "SIZE",
	  "ring size per CPU: 512K, 8M, or pages", NULL, 0 },
	{ 'i', "no-inherit", TALLY_ARGUMENT_NONE, NULL, "leave out new children and threads",
	  NULL, 0 },
	{ 'd', "delay", TALLY_ARGUMENT_REQUIRED, "TIME", "time between views (2): 1, 500ms", NULL,
	  0 },
	{ 'n', "iterations", TALLY_ARGUMENT_REQUIRED, "N", "exit after N views", NULL, 0 },
	{ 0, "duration", TALLY_ARGUMENT_REQUIRED, "TIME", "exit after TIME: 5, 500ms, 2m", NULL,
	  OPTION_DURATION },
	{ 'E', "entries", TALLY_ARGUMENT_REQUIRED, "N", "at most N rows (as text: 20)", NULL,
	  OPTION_LIMIT },
	{ 'z', "zero", TALLY_ARGUMENT_NONE, NULL,
	  "start each view from zero (always so as text)", NULL, 0 },
	{ 0, "percent-limit", TALLY_ARGUMENT_REQUIRED, "P", "leave out rows below P % (0.1)", NULL,
	  OPTION_PERCENT },
	{ 0, "stdio", TALLY_ARGUMENT_NONE, NULL,
	  "print a list for each interval (the default without a terminal)", NULL,
	  OPTION_STDIO },
	{ 0, "tui", TALLY_ARGUMENT_NONE, NULL, "browse on the terminal (the default there)",
	  NULL, OPTION_TUI },
	/* perf's names */
	{ 0, "children", TALLY_ARGUMENT_NONE, NULL, NULL, NULL, OPTION_CHILDREN },
	{ 0, "hide_kernel_symbols", TALLY_ARGUMENT_NONE, NULL, NULL, NULL, 'K' },
	{ 0, "hide_user_symbols", TALLY_ARGUMENT_NONE, NULL, NULL, NULL, 'U' },
	{ 0, "no-bpf-event", TALLY_ARGUMENT_NONE, NULL, NULL, NULL, OPTION_NO_BPF_EVENT },
#define ROW(id_, letter_, name_, kind_, argument_, instead_) \
	{ letter_, name_, TALLY_ARGUMENT_##kind_, argument_, NULL, NULL, TOP_PERF_##id_ },
	TOP_PERF_OPTIONS(ROW)
#undef ROW
		TALLY_OPTIONS_END,
};

/* Parses the keys of live sums. */
static int parse_sort(const char *text, struct top_request *top, struct tally_error *err)
{
	bool *by = top->by;
	const struct tally_option_key keys[] = {
		{ "comm", &by[TALLY_SORT_COMM] },  { "pid", &by[TALLY_SORT_PID] },
		{ "tid", &by[TALLY_SORT_TID] },    { "dso", &by[TALLY_SORT_OBJECT] },
		{ "sym", &by[TALLY_SORT_SYMBOL] }, { "symbol", &by[TALLY_SORT_SYMBOL] },
	};
	return tally_option_sort(text, keys, sizeof(keys) / sizeof(keys[0]), SORT_CHOICES, "symbol",
				 err);
}

static int apply_option(int id, const char *value, struct record_request *request,
			struct top_request *top, struct tally_error *err)
{
	struct tally_recorder_options *record = &request->record;
	unsigned long long number = 0;
	int result = 0;
	switch (id) {
	case 'e':
		if (request->expression_count ==
		    sizeof(request->expressions) / sizeof(request->expressions[0]))
			return tally_error_set(err, -E2BIG, "too many -e");
		request->expressions[request->expression_count++].text = value;
		break;
	case 'F':
		result = tally_option_u64("-F", value, 1, 1000000, &number, err);
		record->frequency = (double)number;
		record->rate_given = true;
		break;
	case 'c':
		result = tally_option_u64("-c", value, 1, 1ull << 62, &number, err);
		record->period = number;
		record->rate_given = true;
		break;
	case 'a': request->target.all = true; break;
	case 'p': return tally_target_add_pids(&request->target, value, err);
	case 't': return tally_target_add_threads(&request->target, value, err);
	case 'u': return tally_target_set_user(&request->target, value, err);
	case 'C': return tally_target_set_cpus(&request->target, value, err);
	case OPTION_CALL_GRAPH:
		/* perf has the view's settings after "fp,"; they are ignored. */
		if (value && *value)
			result = record_take_call_graph(
				request, NULL, strncmp(value, "fp,", 3) ? value : "fp", err);
		else
			record->call_graph = TALLY_CALL_GRAPH_AUTO;
		top->stacks = record->call_graph != TALLY_CALL_GRAPH_NONE;
		break;
	case 'g':
		record->call_graph = TALLY_CALL_GRAPH_AUTO;
		top->stacks = true;
		break;
	case TALLY_OPTION_IDLE: top->shows_idle = true; break;
	case OPTION_CHILDREN: top->no_totals = false; break;
	case OPTION_NO_CHILDREN: top->no_totals = true; break;
	case TALLY_OPTION_MAX_STACK: return tally_option_frames(value, &top->frames_max, err);
	case 'K': record->exclude |= TALLY_ATTR_EXCLUDE_KERNEL; break;
	case 'U': record->exclude |= TALLY_ATTR_EXCLUDE_USER; break;
	case 'd': return tally_option_seconds("-d", value, &top->delay_s, err);
	case 'n':
		result = tally_option_u64("-n", value, 1, 1000000000, &number, err);
		top->iterations = number;
		if (result < 0)
			tally_error_hint(
				err,
				"-n limits the views; for samples, which perf's -n shows: " TOP_PERF_COUNTS);
		break;
	case OPTION_DURATION:
		return tally_option_duration("--duration", value, &top->duration_s, err);
	case OPTION_LIMIT:
		result = tally_option_u64("-E", value, 1, 1000000, &number, err);
		top->limit = (size_t)number;
		break;
	case OPTION_PERCENT:
		return tally_option_percent("--percent-limit", value, &top->percent_min, err);
	case OPTION_STDIO: top->stdio = true; top->tui = false; break;
	case OPTION_TUI: top->tui = true; top->stdio = false; break;
	case 's': return parse_sort(value, top, err);
	case 'm':
		return record_take_ring(request, NULL, value, err);
	case OPTION_NO_DESCENDANTS: request->target.takes_descendants = false; break;
	case 'i':
		record->no_inherit = true;
		request->target.takes_descendants = false;
		break;
	case 'z': top->forgets = true; break;
	case TALLY_OPTION_FULL_NAMES: top->full_names = true; break;
	case OPTION_NO_BPF_EVENT: record->no_bpf_events = true; break;
	default: return top_take_perf_option(id, err);
	}
	return result;
}

/* Returns -1, or the exit status when the command must end: after the help or an error. */
static int parse(const struct tally_command *command, int argc, char **argv,
		 struct record_request *request, struct top_request *top)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	const uint64_t both = TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL;
	int id;
	while ((id = tally_options_next(&walk)) > 0)
		if (apply_option(id, walk.value, request, top, &err) < 0)
			return tally_command_misused(command, &err);
	if (id != TALLY_OPTION_DONE)
		return id == TALLY_OPTION_HELP ? TALLY_EXIT_OK : TALLY_EXIT_USAGE;
	if (walk.index < argc)
		return tally_command_misuse(
			command,
			"top shows running programs: it can't start '%s' ('tally record' starts commands)",
			argv[walk.index]);
	if (request->record.exclude == both)
		return tally_command_misuse(command, "-K and -U leave nothing to show");
	if (!(top->delay_s >= 0.05))
		return tally_command_misuse(command, "-d: the minimum is 50ms");
	if (top->tui && !tally_screen_possible())
		return tally_command_misuse(command,
					    "--tui needs a terminal, for input and output");
	return record_parse_events(command, request);
}

/* Opens the recorder for the target. If no target was given and the kernel refuses the whole
 * system, opens it for the user's own processes. */
static int open_recorder(struct record_request *request, struct top_request *top, int fd,
			 struct tally_error *err)
{
	struct tally_target *target = &request->target;
	struct tally_buffer notes = { 0 };
	bool chosen = tally_target_has_tasks(target) || target->has_cpu_list || target->all;
	char user[24];
	target->all |= !chosen;
	int result = tally_target_resolve(target, err);
	if (!result)
		result = tally_recorder_new(request->provider, &request->events, target,
					    &request->record, fd, false, NULL, &notes,
					    &top->recorder, err);
	if ((result == -EACCES || result == -EPERM) && !chosen) {
		tally_target_release(target);
		*target = (struct tally_target)TALLY_TARGET_INIT;
		*err = (struct tally_error)TALLY_ERROR_NONE;
		snprintf(user, sizeof(user), "%u", (unsigned)getuid());
		result = tally_target_set_user(target, user, err);
		if (!result)
			result = tally_target_resolve(target, err);
		if (!result)
			result = tally_recorder_new(request->provider, &request->events, target,
						    &request->record, fd, false, NULL, &notes,
						    &top->recorder, err);
		top->is_narrowed = !(result < 0);
		if (result < 0)
			tally_error_hint(
				err,
				"the kernel does not allow the whole system: 'tally doctor' shows how to allow it");
	}
	if (!result && top->stdio)
		record_say_notes(request, top->recorder, &notes);
	tally_buffer_release(&notes);
	return result < 0 ? result : 0;
}

static int show(const struct tally_command *command, struct record_request *request,
		struct top_request *top)
{
	struct tally_error err = TALLY_ERROR_NONE;
	/* The records of tasks, which a recording would contain, are discarded. */
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), result;
	top->events = &request->events;
	top->target = &request->target;
	request->record.take_sample = top_take_sample;
	request->record.say = top_say;
	request->record.context = top;
	if (fd < 0 || tally_signals_open(&top->signals, &err) < 0) {
		if (fd < 0)
			tally_error_set(&err, -errno, "/dev/null: %s", strerror(errno));
		return tally_command_fail(command, &err);
	}
	result = open_recorder(request, top, fd, &err);
	if (!result)
		result = top_run(top, &err);
	tally_recorder_free(top->recorder);
	tally_signals_release(&top->signals);
	close(fd);
	return result < 0 ? tally_command_fail(command, &err) : TALLY_EXIT_OK;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct record_request request = {
		/* The rings are not drained while a view is drawn: with small copies of stacks, a
		 * ring holds half a second. */
		.record = { .frequency = RECORD_DEFAULT_HZ,
			    .call_graph = TALLY_CALL_GRAPH_NONE,
			    .stack_bytes = 16 << 10,
			    .argv = argv,
			    .argc = argc },
		.target = { .takes_descendants = true },
		.output_fd = -1,
	};
	struct top_request top = {
		.delay_s = 2,
		.percent_min = 0.1,
		.by = { [TALLY_SORT_OBJECT] = true, [TALLY_SORT_SYMBOL] = true }
	};
	struct tally_error err = TALLY_ERROR_NONE;
	if (tally_catalogue_init(&request.catalogue) < 0) {
		tally_error_set(&err, -ENOMEM, "out of memory");
		return tally_command_fail(command, &err);
	}
	int status = parse(command, argc, argv, &request, &top);
	if (status < 0) {
		top.stdio |= !top.tui && !tally_screen_possible();
		status = show(command, &request, &top);
	}
	record_request_release(&request);
	return status;
}

const struct tally_command tally_command_top = {
	.name = "top",
	.summary = "what runs now, by function",
	.usage = "[options]",
	.details =
		"On a terminal: recent samples, whose weight halves with each view; / searches, f filters, s selects\n"
		"columns, p pauses, h lists all keys, q quits.  As text: the samples of each interval.\n\n"
		"  tally top                            the whole system\n"
		"  tally top -p 1234 -d 500ms\n"
		"  tally top -g                         who called what\n"
		"  tally top -e minor-faults -c 1 --stdio -n 5",
	.options = options,
	.run = run,
};
