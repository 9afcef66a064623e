/* tally stat: counts events and explains them. */
#include "base/safe_file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "command/output_file.h"
#include "command/perf_mode.h"
#include "command/stat_command.h"
#include "perf/perf.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- options -------------------------------------------------------------- */

/* A plain number is ms for perf's --timeout and seconds for --duration; both accept units. */
static int take_time(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	struct stat_command *stat = taker;
	bool plain_is_ms = !strcmp(option->argument, "MS");
	char shown[32];
	double seconds;
	snprintf(shown, sizeof(shown), "--%s", option->name);
	int result = tally_option_seconds(shown, value, &seconds, err);
	if (result < 0)
		return result;
	if (plain_is_ms && !value[strspn(value, "0123456789.")])
		seconds /= 1000;
	if (seconds < 0.001 || seconds > 1e9)
		return tally_error_set(err, -EINVAL, "option %s: %s is out of range (1ms to 1e9s)",
				       shown, value);
	stat->options.timeout_ms = (unsigned long)(seconds * 1000 + 0.5);
	return 0;
}

static int take_interval(void *taker, const struct tally_option *option, const char *value,
			 struct tally_error *err)
{
	struct stat_command *stat = taker;
	unsigned long long interval_ms = 0;
	(void)option;
	int result = tally_option_u64("-I", value, 1, 1ull << 40, &interval_ms, err);
	if (!result && interval_ms > 1000ull * 3600 * 24)
		return tally_error_set(err, -EINVAL,
				       "option -I: an interval may not be longer than a day");
	stat->options.interval_ms = (unsigned)interval_ms;
	return result;
}

/* Milliseconds, or -1 to wait for --control. */
static int take_delay(void *taker, const struct tally_option *option, const char *value,
		      struct tally_error *err)
{
	struct stat_command *stat = taker;
	if (!strcmp(value, "-1"))
		stat->options.delay_ms = -1;
	else if (tally_option_store(stat, option, value, err) < 0)
		return tally_error_set(err, -EINVAL,
				       "option -D: '%s' is neither a number of milliseconds nor -1",
				       value);
	return 0;
}

/* What perf calls the target of -p, -t or -C. */
static const char *perfs_words(struct tally_arena *arena, int letter, const char *value)
{
	if (letter == 'p')
		return tally_arena_printf(arena, "process id '%s'", value);
	if (letter == 't')
		return tally_arena_printf(arena, "thread id '%s'", value);
	return tally_arena_printf(arena, "'CPU(s) %s'", value);
}

static int take_target(void *taker, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	struct stat_command *stat = taker;
	struct tally_target *target = &stat->target;
	struct tally_error why = TALLY_ERROR_NONE;
	int letter = option->letter, result;
	stat->view.perf_target = perfs_words(&stat->arena, letter, value);
	if (letter == 'p')
		result = tally_target_add_pids(target, value, &why);
	else if (letter == 't')
		result = tally_target_add_threads(target, value, &why);
	else
		result = tally_target_set_cpus(target, value, &why);
	if (result < 0)
		return tally_error_set(err, result, "option -%c: %s", letter, why.message);
	return 0;
}

static int take_container(void *taker, const struct tally_option *option, const char *value,
			  struct tally_error *err)
{
	(void)option;
	return tally_target_add_container(&((struct stat_command *)taker)->target, value, err);
}

static int take_expression(void *taker, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	struct stat_command *stat = taker;
	bool is_cgroups = option->letter == 'G';
	if (stat->expression_count == sizeof(stat->expressions) / sizeof(stat->expressions[0]))
		return tally_error_set(err, -E2BIG,
				       "too many -e: put events into one, separated by commas");
	stat->expressions[stat->expression_count++] = (struct stat_expression){
		.kind = is_cgroups ? STAT_CGROUPS : STAT_EVENTS, .text = value
	};
	stat->event_expressions += !is_cgroups;
	return 0;
}

/* Sets the filter of the last -e. */
static int take_filter(void *taker, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	struct stat_command *stat = taker;
	struct stat_expression *last = NULL;
	(void)option;
	for (size_t i = 0; i < stat->expression_count; i++)
		if (stat->expressions[i].kind == STAT_EVENTS)
			last = &stat->expressions[i];
	if (!last)
		return tally_error_set(err, -EINVAL,
				       "--filter must follow the -e that it applies to");
	return tally_event_filter_add(&stat->arena, &last->filter, value, err);
}

/* Applies to all events, wherever it is on the command line; repeated lists are joined. */
static int take_each_cgroup(void *taker, const struct tally_option *option, const char *value,
			    struct tally_error *err)
{
	struct stat_command *stat = taker;
	const char *before = stat->each_cgroup;
	(void)option;
	if (before)
		value = tally_arena_printf(&stat->arena, "%s,%s", before, value);
	stat->each_cgroup = value;
	if (!value)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* Repeated lists are joined, as with -e. */
static int take_metrics(void *taker, const struct tally_option *option, const char *value,
			struct tally_error *err)
{
	struct stat_command *stat = taker;
	(void)option;
	if (stat->metric_names)
		value = tally_arena_printf(&stat->arena, "%s,%s", stat->metric_names, value);
	stat->metric_names = value;
	if (!value)
		return tally_error_set(err, -ENOMEM, "out of memory");
	if (!*value)
		return tally_error_set(err, -EINVAL, "option -M: a name is missing");
	return 0;
}

static int take_parts(void *taker, const struct tally_option *option, const char *value,
		      struct tally_error *err)
{
	const struct stat_command *stat = taker;
	enum tally_count_by by = stat->options.counting.by;
	if (by && by != option->constant)
		return tally_error_set(
			err, -EINVAL,
			"-A, --per-core, --per-die, --per-socket, --per-node and --per-thread "
			"exclude each other");
	return tally_option_store(taker, option, value, err);
}

static int take_csv(void *taker, const struct tally_option *option, const char *value,
		    struct tally_error *err)
{
	struct stat_command *stat = taker;
	(void)option, (void)err;
	stat->ops = stat->is_perf ? &tally_perf_stat_csv : &tally_stat_view_csv;
	stat->view.separator = *value ? value : ",";
	if (!strcmp(value, "\\t"))
		stat->view.separator = "\t";
	return 0;
}

static int take_json(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	struct stat_command *stat = taker;
	(void)option, (void)value, (void)err;
	stat->ops = stat->is_perf ? &tally_perf_stat_json : &tally_stat_view_json;
	return 0;
}

static int take_detail(void *taker, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	(void)option, (void)value, (void)err;
	((struct stat_command *)taker)->detail++;
	return 0;
}

static const struct tally_option options[] = {
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENTS",
	  "count these instead: cycles,instructions, {a,b} as a group,\n'sched:*'",
	  TALLY_TAKE(take_expression) },
	/* perf's name; -e accepts these events */
	{ 0, "pfm-events", TALLY_ARGUMENT_REQUIRED, "EVENTS", NULL, TALLY_TAKE(take_expression) },
	{ 0, "filter", TALLY_ARGUMENT_REQUIRED, "EXPR",
	  "filter the hits of the last -e's tracepoints by their fields:\n"
	  "'prev_pid != 0 && next_comm ~ \"xz*\"'",
	  TALLY_TAKE(take_filter) },
	{ 'd', "detailed", TALLY_ARGUMENT_NONE, NULL,
	  "add loads and misses of L1-dcache, LLC, dTLB and iTLB",
	  TALLY_TAKE(take_detail) },
	{ 'M', "metrics", TALLY_ARGUMENT_REQUIRED, "NAMES",
	  "count what these metrics or groups need, and show them:\n"
	  "ipc,llc-mpki, topdown ('tally list metrics')",
	  TALLY_TAKE(take_metrics) },
	METRIC_SOURCE_OPTIONS(struct stat_command, metric_sources),
	{ 'n', "null", TALLY_ARGUMENT_NONE, NULL, "count nothing, only measure the time",
	  TALLY_SET(struct stat_command, counts_nothing) },
	{ 'B', "big-num", TALLY_ARGUMENT_NONE, NULL,
	  "1,234,567, also off terminals and in the C locale",
	  TALLY_CONSTANT(struct stat_command, digits, STAT_DIGITS_GROUPED) },
	{ 0, "no-big-num", TALLY_ARGUMENT_NONE, NULL, "1234567, also on a terminal",
	  TALLY_CONSTANT(struct stat_command, digits, STAT_DIGITS_PLAIN) },
	{ 'p', "pid", TALLY_ARGUMENT_REQUIRED, "PIDS",
	  "count running processes, by number or name, until they\nend, the command ends, or Ctrl-C",
	  TALLY_TAKE(take_target) },
	{ 0, "no-descendants", TALLY_ARGUMENT_NONE, NULL,
	  "-p without the child processes that run already; new\nones are always counted",
	  TALLY_CLEAR(struct stat_command, target.takes_descendants) },
	{ 0, "container", TALLY_ARGUMENT_REQUIRED, "NAME",
	  "count the processes of a container or service: name, ID, or\nend of the cgroup's path",
	  TALLY_TAKE(take_container) },
	{ 't', "tid", TALLY_ARGUMENT_REQUIRED, "TIDS", "count single threads",
	  TALLY_TAKE(take_target) },
	{ 'a', "all-cpus", TALLY_ARGUMENT_NONE, NULL,
	  "count the whole system (the default without a command)",
	  TALLY_SET(struct stat_command, target.all) },
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "CPUS", "count only these CPUs: 0-3,7",
	  TALLY_TAKE(take_target) },
	{ 'A', "no-aggr", TALLY_ARGUMENT_NONE, NULL, "a row for each CPU (with -a or -C)",
	  TALLY_CONSTANT(struct stat_command, options.counting.by, TALLY_COUNT_BY_CPU),
	  TALLY_TAKE(take_parts) },
	{ 0, "per-core", TALLY_ARGUMENT_NONE, NULL,
	  "a row for each core, named like S0-D0-C1: socket, die, core",
	  TALLY_CONSTANT(struct stat_command, options.counting.by, TALLY_COUNT_BY_CORE),
	  TALLY_TAKE(take_parts) },
	{ 0, "per-die", TALLY_ARGUMENT_NONE, NULL, "for each die",
	  TALLY_CONSTANT(struct stat_command, options.counting.by, TALLY_COUNT_BY_DIE),
	  TALLY_TAKE(take_parts) },
	{ 0, "per-socket", TALLY_ARGUMENT_NONE, NULL, "for each socket",
	  TALLY_CONSTANT(struct stat_command, options.counting.by, TALLY_COUNT_BY_SOCKET),
	  TALLY_TAKE(take_parts) },
	{ 0, "per-node", TALLY_ARGUMENT_NONE, NULL, "for each NUMA node",
	  TALLY_CONSTANT(struct stat_command, options.counting.by, TALLY_COUNT_BY_NODE),
	  TALLY_TAKE(take_parts) },
	{ 0, "per-thread", TALLY_ARGUMENT_NONE, NULL,
	  "for each thread of -p, -t, or of all processes, the largest first",
	  TALLY_CONSTANT(struct stat_command, options.counting.by, TALLY_COUNT_BY_THREAD),
	  TALLY_TAKE(take_parts) },
	{ 'G', "cgroup", TALLY_ARGUMENT_REQUIRED, "NAMES",
	  "count the events before it in cgroups, one for each event\n"
	  "or one for all (with -a or -C)",
	  TALLY_TAKE(take_expression) },
	{ 0, "for-each-cgroup", TALLY_ARGUMENT_REQUIRED, "NAMES",
	  "count all events in each of these cgroups (with -a or -C)",
	  TALLY_TAKE(take_each_cgroup) },
	{ 'D', "delay", TALLY_ARGUMENT_REQUIRED, "MS",
	  "start counting after MS milliseconds; -1: when --control enables it",
	  TALLY_NUMBER(struct stat_command, options.delay_ms, 0, 1000000000),
	  TALLY_TAKE(take_delay) },
	{ 0, "control", TALLY_ARGUMENT_REQUIRED, "fifo:CTL[,ACK]|fd:CTL[,ACK]",
	  "read commands from a FIFO or a descriptor: enable [EVENT],\ndisable [EVENT], ping, "
	  "evlist, stop; each is answered with \"ack\"",
	  TALLY_TEXT(struct stat_command, control_spec) },
	{ 'r', "repeat", TALLY_ARGUMENT_REQUIRED, "N", "run the command N times; show mean ± σ",
	  TALLY_NUMBER(struct stat_command, options.runs, 1, 1ull << 40) },
	{ 'I', "interval-print", TALLY_ARGUMENT_REQUIRED, "MS", "print the counts of each interval",
	  TALLY_TAKE(take_interval) },
	{ 0, "interval-count", TALLY_ARGUMENT_REQUIRED, "N", "stop after N intervals",
	  TALLY_NUMBER(struct stat_command, options.interval_count, 1, 1ull << 40) },
	{ 0, "interval-clear", TALLY_ARGUMENT_NONE, NULL, "clear the screen before each",
	  TALLY_SET(struct stat_command, view.clears) },
	{ 0, "summary", TALLY_ARGUMENT_NONE, NULL, "print the totals after the intervals",
	  TALLY_SET(struct stat_command, options.summary) },
	{ 0, "duration", TALLY_ARGUMENT_REQUIRED, "SECONDS",
	  "stop after this time; a command gets SIGTERM", TALLY_TAKE(take_time) },
	{ 0, "timeout", TALLY_ARGUMENT_REQUIRED, "MS", "the same in milliseconds",
	  TALLY_TAKE(take_time) },
	{ 'i', "no-inherit", TALLY_ARGUMENT_NONE, NULL,
	  "leave out the command's children and new threads",
	  TALLY_SET(struct stat_command, options.counting.no_inherit) },
	{ 0, "no-zero", TALLY_ARGUMENT_NONE, NULL, "leave out rows that counted 0",
	  TALLY_SET(struct stat_command, view.hides_zero) },
	{ 0, "min-running", TALLY_ARGUMENT_REQUIRED, "PERCENT",
	  "withhold figures of events that had a counter for less of\nthe time (10)",
	  TALLY_PERCENT(struct stat_command, min_running) },
	{ 0, "no-multiplex", TALLY_ARGUMENT_NONE, NULL,
	  "run the command once for each set of events that fits the\n"
	  "counters, so that no count is scaled",
	  TALLY_SET(struct stat_command, is_unscaled) },
	{ 0, "max-difference", TALLY_ARGUMENT_REQUIRED, "PERCENT",
	  "--no-multiplex fails if the runs differ by more (5; times: 25)",
	  TALLY_PERCENT(struct stat_command, max_difference) },
	{ 0, "split-groups", TALLY_ARGUMENT_NONE, NULL,
	  "count the events of groups that don't fit the counters\nseparately",
	  TALLY_SET(struct stat_command, splits_groups) },
	{ 'x', "field-separator", TALLY_ARGUMENT_REQUIRED, "SEP",
	  "CSV with this separator (docs/stat-output.md)", TALLY_TAKE(take_csv) },
	{ 0, "header", TALLY_ARGUMENT_NONE, NULL, "begin -x with a comment that names the columns",
	  TALLY_SET(struct stat_command, view.names_columns) },
	{ 'j', "json-output", TALLY_ARGUMENT_NONE, NULL, "JSON, one document per line",
	  TALLY_TAKE(take_json) },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE", "write to FILE instead of standard error",
	  TALLY_TEXT(struct stat_command, output_path) },
	{ 0, "append", TALLY_ARGUMENT_NONE, NULL, "add to FILE",
	  TALLY_SET(struct stat_command, appends) },
	{ 0, "log-fd", TALLY_ARGUMENT_REQUIRED, "FD",
	  "write to this open descriptor instead of standard error",
	  TALLY_NUMBER(struct stat_command, log_fd, 0, INT_MAX) },
	TALLY_PROVIDER_OPTION(struct stat_command, provider_name),
	TALLY_SIMULATED_OPTIONS(struct stat_command, simulated),
	TALLY_OPTIONS_END,
};

/* --no-multiplex needs a command that runs again, from its start to its end. */
static const char *conflict_of_passes(const struct stat_command *stat)
{
	const struct tally_stat_options *o = &stat->options;
	const struct tally_target *target = &stat->target;
	if (stat->max_difference && !stat->is_unscaled)
		return "--max-difference needs --no-multiplex";
	if (!stat->is_unscaled)
		return NULL;
	if (!tally_fit_can_try(stat->provider_ops))
		return "--no-multiplex is not needed with this provider: it counts all events all "
		       "the time";
	if (tally_target_has_tasks(target) || !target->command)
		return "--no-multiplex runs a command several times: a running process or the "
		       "system can't be run again";
	if (target->all || target->has_cpu_list)
		return "--no-multiplex and -a or -C exclude each other: what the rest of the "
		       "system does can't be run again";
	if (o->interval_ms)
		return "--no-multiplex and -I exclude each other: intervals of different runs "
		       "don't belong together";
	if (o->timeout_ms)
		return "--no-multiplex and --duration or --timeout exclude each other: runs that "
		       "are cut short don't do the same work";
	if (stat->control_spec)
		return "--no-multiplex and --control exclude each other: commands come in one run "
		       "only";
	return NULL;
}

/* Returns a message if options exclude each other, or NULL. */
static const char *conflict_of_target(const struct stat_command *stat)
{
	const struct tally_target *target = &stat->target;
	enum tally_count_by by = stat->options.counting.by;
	bool has_tasks = tally_target_has_tasks(target);
	bool is_of_cpus = !has_tasks && (target->all || target->has_cpu_list || !target->command);
	if (by == TALLY_COUNT_BY_THREAD && !has_tasks && !target->all && target->command)
		return "--per-thread needs running tasks: -p, -t or -a";
	if (by == TALLY_COUNT_BY_THREAD && target->has_cpu_list)
		return "--per-thread and -C exclude each other";
	if (by && by != TALLY_COUNT_BY_THREAD && !is_of_cpus)
		return "-A, --per-core, --per-die, --per-socket and --per-node need CPUs: -a or -C";
	bool has_cgroups = stat->expression_count > stat->event_expressions;
	if (has_cgroups && stat->each_cgroup)
		return "-G and --for-each-cgroup exclude each other";
	if ((has_cgroups || stat->each_cgroup) && (!is_of_cpus || by == TALLY_COUNT_BY_THREAD))
		return "cgroups (-G, --for-each-cgroup) are counted on CPUs: add -a or -C";
	return NULL;
}

static const char *conflict(const struct stat_command *stat)
{
	const struct tally_stat_options *o = &stat->options;
	if (o->runs > 1 && !stat->target.command)
		return "-r needs a command to repeat";
	if (o->runs > 1 && o->interval_ms)
		return "-r and -I exclude each other: intervals of several runs have no mean";
	if (o->interval_count && !o->interval_ms)
		return "--interval-count needs -I";
	if ((o->summary || stat->view.clears) && !o->interval_ms)
		return "--summary and --interval-clear need -I";
	if (stat->counts_nothing && (stat->expression_count || stat->each_cgroup ||
				     stat->detail || stat->metric_names))
		return "-n counts nothing: it excludes -e, -M and -d";
	if ((stat->metric_sources.file || stat->metric_sources.folder) && !stat->metric_names)
		return "--metrics-file and --metrics-dir need -M: they say where metrics are "
		       "defined";
	if (stat->log_fd >= 0 && stat->output_path)
		return "--log-fd and -o exclude each other";
	if (stat->view.names_columns && stat->ops != &tally_stat_view_csv)
		return "--header needs -x: it names the columns of CSV";
	if (stat->appends && !stat->output_path && stat->log_fd < 0)
		return "--append needs -o FILE";
	if (o->delay_ms < 0 && !stat->control_spec)
		return "-D -1 needs --control, which enables counting";
	if (conflict_of_passes(stat))
		return conflict_of_passes(stat);
	if (conflict_of_target(stat))
		return conflict_of_target(stat);
	return simulated_conflict(&stat->simulated, stat->provider_ops);
}

/* Takes the command line. Returns -1, or the exit status when the command must end: after the help
 * or an error. */
static int take_arguments(struct stat_command *stat, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(stat->command, argc, argv);
	if (!tally_options_parse(&walk, stat))
		return walk.status;
	if (walk.index < argc)
		stat->target.command = argv + walk.index;
	if (stat->target.all)
		stat->view.perf_target = "'system wide'";
	if (stat->options.counting.no_inherit)
		stat->target.takes_descendants = false;
	provider_choose(&stat->choice, stat->provider_name, 0, &stat->target, NULL);
	stat->provider_ops = stat->choice.ops;
	if (!stat->provider_ops) /* open_provider() refuses it */
		stat->provider_ops = tally_provider_kernel()->ops;
	if (stat->choice.is_instead && stat->is_unscaled) { /* it counts all events all the time */
		stat->is_unscaled = false;
		stat->max_difference = 0;
	}
	const char *message = conflict(stat);
	if (!message && stat->options.counting.by == TALLY_COUNT_BY_THREAD &&
	    !tally_target_has_tasks(&stat->target)) {
		stat->target.every_thread = stat->view.hides_zero = true;
		stat->target.all = false;
	}
	if (message)
		return tally_command_misuse(stat->command, "%s", message);
	return -1;
}

/* --- the command ---------------------------------------------------------- */

static int open_provider(struct stat_command *stat, struct tally_error *err)
{
	const char *name = stat->provider_name;
	if (!stat->choice.ops) {
		stat->is_misused = true;
		return tally_provider_unknown(name, err);
	}
	return tally_provider_make(stat->provider_ops, name, &stat->simulated, &stat->provider,
				   err);
}

/* perf begins a file with the time.  ctime(3)'s text ends with a newline. */
static void begin_perfs_file(const struct stat_command *stat)
{
	time_t now = time(NULL);
	char text[32];
	if (stat->is_perf && stat->output_path && ctime_r(&now, text))
		fprintf(stat->output, "# started on %s\n", text);
}

/* The file keeps its old counts until there are new ones. */
static void replace_old(struct stat_command *stat)
{
	struct stat file;
	int fd = fileno(stat->output);
	if (stat->has_begun || stat->output == stderr)
		return;
	stat->has_begun = true;
	if (stat->appends || stat->log_fd >= 0) {
		begin_perfs_file(stat);
		return;
	}
	if (!fstat(fd, &file) && S_ISREG(file.st_mode) && ftruncate(fd, 0) < 0)
		stat->write_error = -errno;
	begin_perfs_file(stat);
}

static void write_report(void *context, const struct tally_stat_report *report)
{
	struct stat_command *stat = context;
	tally_buffer_clear(&stat->text);
	stat->ops->show(&stat->view, report);
	replace_old(stat);
	if (stat->text.failed) {
		stat->write_error = -ENOMEM;
	} else if (fwrite(stat->text.bytes, 1, stat->text.length, stat->output) !=
			   stat->text.length ||
		   fflush(stat->output)) {
		stat->write_error = errno ? -errno : -EIO;
		/* After a long run the counts must not be lost: print them to stderr. */
		if (stat->output != stderr)
			fwrite(stat->text.bytes, 1, stat->text.length, stderr);
	}
}

static void write_message(void *context, const char *text)
{
	(void)context;
	tally_say("%s", text);
}

/* True if a program may parse -x or -j on stderr: it gets nothing else there. */
static bool is_read_on_stderr(const struct stat_command *stat)
{
	return stat->output == stderr && stat->ops != &tally_stat_view_table &&
	       !isatty(STDERR_FILENO);
}

/* Counting the whole system without a command looks like a hang: says so. */
static void say_waiting(void *context)
{
	const struct stat_command *stat = context;
	const struct tally_target *target = &stat->target;
	bool is_all = (target->all && !target->has_cpu_list) || target->every_thread;
	if (is_all && !is_read_on_stderr(stat) && !target->command && !stat->options.timeout_ms &&
	    !stat->options.interval_ms)
		fputs("counting the whole system until Ctrl-C\n", stderr);
}

/* Tells of a provider that the user did not choose, and of the obstacle to it.  The table has the
 * first on a line before it, other formats among their notes. */
static void tell_choice(struct stat_command *stat)
{
	const struct tally_error *obstacle = &stat->choice.obstacle;
	char note[256];
	if (obstacle->code)
		stat->options.note = tally_arena_printf(&stat->arena, "%s; %s", obstacle->message,
							obstacle->hint);
	if (!provider_choice_note(&stat->choice, "counting", note, sizeof(note)))
		return;
	if (!is_read_on_stderr(stat))
		tally_say("tally: %s", note);
	if (stat->ops != &tally_stat_view_table)
		stat->options.note = tally_arena_string(&stat->arena, note);
}

/* Takes a copy of --log-fd's descriptor: closing it leaves the caller's open. */
static int open_log(struct stat_command *stat, struct tally_error *err)
{
	int fd = fcntl(stat->log_fd, F_DUPFD_CLOEXEC, 3), code = errno;
	if (fd >= 0)
		stat->output = fdopen(fd, "a");
	if (fd >= 0 && stat->output)
		return 0;
	if (fd >= 0)
		close(fd);
	stat->output = stderr;
	tally_error_set(err, -code, "--log-fd %d: %s", stat->log_fd, tally_errno_text(code));
	tally_error_hint(err, "open it in the shell: %d>FILE", stat->log_fd);
	return -code;
}

static int open_output(struct stat_command *stat, struct tally_error *err)
{
	stat->output = stderr;
	if (stat->log_fd >= 0) {
		int result = open_log(stat, err);
		if (result < 0)
			return result;
	}
	if (stat->output_path) {
		const char *const none[] = { NULL };
		char *const *words = stat->target.command;
		/* The rows of threads have names, which may be of other users' threads. */
		mode_t mode = stat->options.counting.by == TALLY_COUNT_BY_THREAD ? 0600 : 0666;
		int result = tally_output_check(stat->output_path,
						words ? (const char *const *)words : none, err);
		if (!result)
			result = tally_output_path_open(&stat->place, stat->output_path, err);
		if (!result)
			result = tally_output_path_write(
				&stat->place, O_WRONLY | (stat->appends ? O_APPEND : 0), mode,
				err);
		if (result < 0)
			return result;
		stat->output = fdopen(result, stat->appends ? "a" : "w");
		if (!stat->output) {
			close(result);
			return tally_error_set(err, -ENOMEM, "out of memory");
		}
	}
	stat->view.interval_ms = stat->options.interval_ms;
	stat->view.out = &stat->text;
	stat->view.is_utf8 = tally_terminal_is_utf8;
	if (isatty(fileno(stat->output)))
		stat->view.columns = tally_terminal_columns(fileno(stat->output), 80);
	stat->view.is_plain = stat->digits == STAT_DIGITS_PLAIN ||
			      (stat->digits == STAT_DIGITS_FOR_READERS && !stat->is_perf &&
			       !tally_terminal_groups_digits(fileno(stat->output)));
	stat->view.clears &= tally_terminal_knows_escapes(fileno(stat->output));
	stat->view.has_colours = tally_terminal_colours(fileno(stat->output));
	return 0;
}

static int prepare(struct stat_command *stat, struct tally_error *err)
{
	int result = provider_check_target(stat->provider_ops, &stat->target, err);
	stat->is_misused = result < 0;
	if (result < 0)
		return result;
	result = open_provider(stat, err);
	if (result < 0)
		return result;
	result = tally_target_resolve(&stat->target, err);
	if (result < 0)
		return result;
	result = stat_parse_events(stat, err);
	if (result < 0)
		return result;
	result = stat_find_event_cpus(stat, err);
	if (result < 0)
		return result;
	result = stat_fit_events(stat, err);
	if (result < 0)
		return result;
	if (stat->control_spec) {
		result = tally_control_open(&stat->control, stat->control_spec, err);
		stat->is_misused = result == -EINVAL;
		stat->options.control = &stat->control;
		if (result < 0)
			return result;
	}
	result = open_output(stat, err);
	if (result < 0)
		return result;
	tell_choice(stat);
	stat->options.counting.provider = stat->provider;
	stat->options.counting.events = stat->events.items;
	stat->options.counting.event_count = stat->events.count;
	stat->options.counting.target = &stat->target;
	if (stat->is_unscaled)
		stat->options.counting.passes = &stat->passes;
	stat->options.max_difference = stat->max_difference / 100;
	stat->options.counting.share_min = stat->min_running / 100;
	stat->options.target = &stat->target;
	stat->options.on_start = say_waiting;
	stat->options.on_report = write_report;
	stat->options.on_message = write_message;
	stat->options.context = stat;
	return 0;
}

static int count(struct stat_command *stat)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int status = TALLY_EXIT_FAILURE;
	int result = prepare(stat, &err);
	if (result >= 0)
		result = tally_stat_run(&stat->options, &status, &err);
	if (result < 0)
		tally_command_fail(stat->command, &err);
	if (stat->is_misused)
		status = TALLY_EXIT_USAGE;
	if (result >= 0 && stat->write_error) {
		tally_error_set(&err, stat->write_error, "writing the counts to %s failed: %s",
				tally_text_or(stat->output_path, "stderr"),
				tally_errno_text(stat->write_error));
		status = tally_command_fail(stat->command, &err);
	}
	return status;
}

/* A full disk leaves an empty file. */
static void drop_if_empty(const struct stat_command *stat)
{
	struct stat file;
	if (!stat->appends && !stat->place.is_open_file &&
	    !fstat(fileno(stat->output), &file) && S_ISREG(file.st_mode) && !file.st_size)
		unlinkat(stat->place.folder, stat->place.name, 0);
}

/* Closes the file when its bytes are on disk.  Returns 0 or -errno. */
static int close_output(FILE *output)
{
	int result;
	if (fflush(output))
		result = -errno;
	else
		result = tally_file_sync(fileno(output));
	if (fclose(output) && !result)
		return -errno;
	return result;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct stat_command stat = { .command = command,
				     .target = { .takes_descendants = true },
				     .options = { .runs = 1 },
				     .min_running = 10,
				     .control = TALLY_CONTROL_INIT,
				     .place = TALLY_OUTPUT_PATH_INIT,
				     .view = { .separator = "," },
				     .is_perf = command == &tally_perf_stat,
				     .log_fd = -1,
				     .ops = &tally_stat_view_table };
	if (stat.is_perf)
		stat.ops = &tally_perf_stat_text;
	int status = take_arguments(&stat, argc, argv);
	if (status < 0)
		status = count(&stat);
	if (stat.write_error && stat.output != stderr)
		drop_if_empty(&stat);
	int closed = 0;
	if (stat.output && stat.output != stderr)
		closed = close_output(stat.output);
	if (closed < 0 && !stat.write_error) {
		struct tally_error err = TALLY_ERROR_NONE;
		tally_error_set(&err, closed, "%s: %s", stat.output_path, tally_errno_text(closed));
		status = tally_command_fail(command, &err);
	}
	if (stat.provider)
		stat.provider->ops->release(stat.provider);
	if (stat.has_catalogue)
		tally_catalogue_release(&stat.catalogue);
	stat_release_metrics(&stat);
	tally_event_list_release(&stat.events);
	tally_count_passes_release(&stat.passes);
	tally_control_release(&stat.control);
	tally_output_path_close(&stat.place);
	tally_target_release(&stat.target);
	tally_buffer_release(&stat.text);
	tally_arena_release(&stat.arena);
	return status;
}

const struct tally_command tally_command_stat = {
	.name = "stat",
	.summary = "count events while a command runs, and explain the counts",
	.usage = "[options] [--] [command [argument…]]",
	.options = options,
	.details =
		"Without a command, -p or -t, the whole system is counted until Ctrl-C.  The "
		"counts go to standard\n"
		"error, so that the command's own output stays clean; the exit status is the "
		"command's (128 + n when\n"
		"signal n ended it, 127 when it was not found, 126 when it can't be executed).  A "
		"command that tally\n"
		"stops at --duration, --timeout or --interval-count gives 0; a wrong event gives "
		"2.\n\n"
		"  tally stat -d ./program                  with cache and TLB misses\n"
		"  tally stat -M ipc,branch-mpki ./program  metrics by name\n"
		"  tally stat -r 10 -- make -s              mean and spread of ten runs\n"
		"  tally stat -e page-faults -I 1000 -p 42  a process, each second\n"
		"  tally stat -a --duration 5               the whole system for 5 seconds\n"
		"  tally stat -a --per-core -I 1000         each core, each second\n"
		"  tally stat --per-thread -p 42 sleep 5    each thread of a process\n"
		"  tally stat -e 'syscalls:*' --no-zero ls  the system calls of a command\n"
		"  tally stat -a -e cpu-clock -G user.slice -I 1000\n"
		"                                           what a cgroup uses\n"
		"  tally stat --provider simulated ./program\n"
		"                                           without hardware counters",
	.rarely_reads_files = true,
	.run = run,
};

const struct tally_command tally_perf_stat = {
	.name = "perf stat",
	.summary = "count events while a command runs",
	.usage = "[options] [--] [command [argument…]]",
	.options = options,
	.details = "The options and events are tally stat's; the texts are perf's.",
	.rarely_reads_files = true,
	.run = run,
};
