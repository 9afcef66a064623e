/* The options of `tally stat`. */
#include "command/stat_command.h"
#include "command/stat_perf_options.h"
#include "session/event_filter.h"

#include <errno.h>
#include <string.h>

enum {
	OPTION_APPEND = 256,
	OPTION_TIMEOUT,
	OPTION_DURATION,
	OPTION_INTERVAL_COUNT,
	OPTION_PROVIDER,
	OPTION_SIM_CPU,
	OPTION_REGION,
	OPTION_TOGGLE,
	OPTION_PER_CORE,
	OPTION_PER_DIE,
	OPTION_PER_SOCKET,
	OPTION_PER_NODE,
	OPTION_PER_THREAD,
	OPTION_EACH_CGROUP,
	OPTION_CONTROL,
	OPTION_SUMMARY,
	OPTION_CLEAR,
	OPTION_NO_BIG_NUM,
	OPTION_NO_ZERO,
	OPTION_FILTER,
	OPTION_DESCENDANTS
};

static int take_number(struct stat_command *stat, const char *option, const char *value,
		       unsigned long long minimum, unsigned long *out)
{
	struct tally_error err = TALLY_ERROR_NONE;
	unsigned long long number;
	if (tally_option_u64(option, value, minimum, 1ull << 40, &number, &err) < 0) {
		tally_command_misused(stat->command, &err);
		return -EINVAL;
	}
	*out = (unsigned long)number;
	return 0;
}

/* A plain number is ms for perf's --timeout and seconds for --duration; both accept units. */
static int take_time(struct stat_command *stat, const char *option, const char *value,
		     bool plain_is_ms)
{
	struct tally_error err = TALLY_ERROR_NONE;
	double seconds;
	if (tally_option_seconds(option, value, &seconds, &err) < 0) {
		tally_command_misused(stat->command, &err);
		return -EINVAL;
	}
	if (plain_is_ms && !value[strspn(value, "0123456789.")])
		seconds /= 1000;
	if (seconds < 0.001 || seconds > 1e9) {
		tally_command_misuse(stat->command, "option %s: %s is out of range (1ms to 1e9s)", option,
				     value);
		return -EINVAL;
	}
	stat->options.timeout_ms = (unsigned long)(seconds * 1000 + 0.5);
	return 0;
}

static int take_interval(struct stat_command *stat, const char *value)
{
	unsigned long interval_ms;
	if (take_number(stat, "-I", value, 1, &interval_ms) < 0)
		return -EINVAL;
	if (interval_ms > 1000ul * 3600 * 24) {
		tally_command_misuse(stat->command,
				     "option -I: an interval may not be longer than a day");
		return -EINVAL;
	}
	stat->options.interval_ms = (unsigned)interval_ms;
	return 0;
}

static int take_target(struct stat_command *stat, int id, const char *value)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int result = id == 'p'   ? tally_target_add_pids(&stat->target, value, &err)
		     : id == 't' ? tally_target_add_threads(&stat->target, value, &err)
				 : tally_target_set_cpus(&stat->target, value, &err);
	if (result < 0)
		tally_command_misuse(stat->command, "option -%c: %s", id, err.message);
	return result;
}

static int take_expression(struct stat_command *stat, int id, const char *value)
{
	if (stat->expression_count == sizeof(stat->expressions) / sizeof(stat->expressions[0])) {
		tally_command_misuse(stat->command,
				     "too many -e: put events into one, separated by commas");
		return -EINVAL;
	}
	struct stat_expression *e = &stat->expressions[stat->expression_count++];
	e->kind = id == 'e' ? STAT_EVENTS : STAT_CGROUPS;
	e->text = value;
	stat->event_expressions += id == 'e';
	return 0;
}

/* Sets the filter of the last -e. */
static int take_filter(struct stat_command *stat, const char *value)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct stat_expression *last = NULL;
	for (size_t i = 0; i < stat->expression_count; i++)
		if (stat->expressions[i].kind == STAT_EVENTS)
			last = &stat->expressions[i];
	if (!last)
		tally_error_set(&err, -EINVAL,
				"--filter must follow the -e that it applies to");
	else if (!tally_event_filter_add(&stat->arena, &last->filter, value, &err))
		return 0;
	tally_command_misused(stat->command, &err);
	return err.code;
}

/* Applies to all events, wherever it is on the command line; repeated lists are joined. */
static int take_each_cgroup(struct stat_command *stat, const char *names)
{
	const char *before = stat->each_cgroup;
	stat->each_cgroup = before ? tally_arena_printf(&stat->arena, "%s,%s", before, names)
				   : names;
	if (stat->each_cgroup)
		return 0;
	tally_command_misuse(stat->command, "out of memory");
	return -ENOMEM;
}

static int take_delay(struct stat_command *stat, const char *value)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int result = tally_option_delay(value, &stat->options.delay_ms, &err);
	if (result < 0)
		tally_command_misused(stat->command, &err);
	return result;
}

static int take_parts(struct stat_command *stat, enum tally_count_by by)
{
	if (stat->options.counting.by && stat->options.counting.by != by) {
		tally_command_misuse(
			stat->command,
			"-A, --per-core, --per-die, --per-socket, --per-node and --per-thread "
			"exclude each other");
		return -EINVAL;
	}
	stat->options.counting.by = by;
	return 0;
}

static int take_region(struct stat_command *stat, const char *function)
{
	struct tally_error err = TALLY_ERROR_NONE;
	stat->simulated.region = true;
	int result = function ? simulated_add_toggle(&stat->simulated, function, &err) : 0;
	if (result < 0)
		tally_command_misused(stat->command, &err);
	return result;
}

static int take_perf_option(struct stat_command *stat, int id)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int result = stat_take_perf_option(id, &err);
	if (result < 0)
		tally_command_misused(stat->command, &err);
	return result;
}

static int take_option(struct stat_command *stat, int id, const char *value)
{
	switch (id) {
	case 'e':
	case 'G':
		return take_expression(stat, id, value);
	case OPTION_FILTER:
		return take_filter(stat, value);
	case OPTION_EACH_CGROUP:
		return take_each_cgroup(stat, value);
	case 'A':
		return take_parts(stat, TALLY_COUNT_BY_CPU);
	case OPTION_PER_CORE:
		return take_parts(stat, TALLY_COUNT_BY_CORE);
	case OPTION_PER_DIE:
		return take_parts(stat, TALLY_COUNT_BY_DIE);
	case OPTION_PER_SOCKET:
		return take_parts(stat, TALLY_COUNT_BY_SOCKET);
	case OPTION_PER_NODE:
		return take_parts(stat, TALLY_COUNT_BY_NODE);
	case OPTION_PER_THREAD:
		return take_parts(stat, TALLY_COUNT_BY_THREAD);
	case 'D':
		return take_delay(stat, value);
	case OPTION_CONTROL:
		stat->control_spec = value;
		return 0;
	case OPTION_SUMMARY:
		stat->options.summary = true;
		return 0;
	case OPTION_CLEAR:
		stat->view.clears = true;
		return 0;
	case OPTION_NO_BIG_NUM:
		stat->view.is_plain = true;
		return 0;
	case OPTION_DESCENDANTS:
		stat->target.takes_descendants = true;
		return 0;
	case OPTION_NO_ZERO:
		stat->view.hides_zero = true;
		return 0;
	case 'd':
		stat->is_detailed = true;
		return 0;
	case 'n':
		stat->counts_nothing = true;
		return 0;
	case 'a':
		stat->target.all = true;
		return 0;
	case 'p':
	case 't':
	case 'C':
		return take_target(stat, id, value);
	case 'r':
		return take_number(stat, "-r", value, 1, &stat->options.runs);
	case 'I':
		return take_interval(stat, value);
	case 'i':
		stat->options.counting.no_inherit = true;
		return 0;
	case 'x':
		stat->ops = &tally_stat_view_csv;
		stat->view.separator = !strcmp(value, "\\t") ? "\t" : *value ? value : ",";
		return 0;
	case 'j':
		stat->ops = &tally_stat_view_json;
		return 0;
	case 'o':
		stat->output_path = value;
		return 0;
	case OPTION_APPEND:
		stat->appends = true;
		return 0;
	case OPTION_TIMEOUT:
		return take_time(stat, "--timeout", value, true);
	case OPTION_DURATION:
		return take_time(stat, "--duration", value, false);
	case OPTION_INTERVAL_COUNT:
		return take_number(stat, "--interval-count", value, 1,
				   &stat->options.interval_count);
	case OPTION_PROVIDER:
		stat->provider_name = value;
		return 0;
	case OPTION_SIM_CPU:
		stat->simulated.cpu = value;
		return 0;
	case OPTION_REGION:
	case OPTION_TOGGLE:
		return take_region(stat, id == OPTION_TOGGLE ? value : NULL);
	default:
		return take_perf_option(stat, id);
	}
}

/* Returns a message if options exclude each other, or NULL. */
static const char *conflict_of_target(const struct stat_command *stat)
{
	const struct tally_target *target = &stat->target;
	enum tally_count_by by = stat->options.counting.by;
	bool has_tasks = target->pids.count || target->threads.count;
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
	if (stat->counts_nothing &&
	    (stat->expression_count || stat->each_cgroup || stat->is_detailed))
		return "-n counts nothing: it excludes -e and -d";
	if (stat->appends && !stat->output_path)
		return "--append needs -o FILE";
	if (o->delay_ms < 0 && !stat->control_spec)
		return "-D -1 needs --control, which enables counting";
	if (conflict_of_target(stat))
		return conflict_of_target(stat);
	return simulated_conflict(&stat->simulated, stat->provider_name);
}

int stat_take_arguments(struct stat_command *stat, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(stat->command, argc, argv);
	int id;
	while ((id = tally_options_next(&walk)) > 0)
		if (take_option(stat, id, walk.value) < 0)
			return TALLY_EXIT_USAGE;
	if (id == TALLY_OPTION_HELP)
		return -1;
	if (id == TALLY_OPTION_ERROR)
		return TALLY_EXIT_USAGE;
	if (walk.index < argc)
		stat->target.command = argv + walk.index;
	const char *message = conflict(stat);
	if (!message && stat->options.counting.by == TALLY_COUNT_BY_THREAD &&
	    !tally_target_has_tasks(&stat->target)) {
		stat->target.every_thread = stat->view.hides_zero = true;
		stat->target.all = false;
	}
	return message ? tally_command_misuse(stat->command, "%s", message) : 0;
}

const struct tally_option stat_options[] = {
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENTS",
	  "count these instead: cycles,instructions, {a,b} as a group,\n'sched:*'" },
	/* perf's name; -e accepts these events */
	{ 0, "pfm-events", TALLY_ARGUMENT_REQUIRED, "EVENTS", NULL, NULL, 'e' },
	{ 0, "filter", TALLY_ARGUMENT_REQUIRED, "EXPR",
	  "filter the hits of the last -e's tracepoints by their fields:\n"
	  "'prev_pid != 0 && next_comm ~ \"xz*\"'",
	  NULL, OPTION_FILTER },
	{ 'd', "detailed", TALLY_ARGUMENT_NONE, NULL,
	  "add loads and misses of L1-dcache, LLC, dTLB and iTLB" },
	{ 'n', "null", TALLY_ARGUMENT_NONE, NULL, "count nothing, only measure the time" },
	{ 'B', "big-num", TALLY_ARGUMENT_NONE, NULL, NULL }, /* perf's; the default */
	{ 0, "no-big-num", TALLY_ARGUMENT_NONE, NULL, "1234567 instead of 1,234,567", NULL,
	  OPTION_NO_BIG_NUM },
	{ 'p', "pid", TALLY_ARGUMENT_REQUIRED, "PIDS",
	  "count running processes, until they end, the command\nends, or Ctrl-C" },
	{ 0, "descendants", TALLY_ARGUMENT_NONE, NULL,
	  "-p with existing child processes; new ones are always\ncounted", NULL,
	  OPTION_DESCENDANTS },
	{ 't', "tid", TALLY_ARGUMENT_REQUIRED, "TIDS", "count single threads" },
	{ 'a', "all-cpus", TALLY_ARGUMENT_NONE, NULL,
	  "count the whole system (the default without a command)" },
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "CPUS", "count only these CPUs: 0-3,7" },
	{ 'A', "no-aggr", TALLY_ARGUMENT_NONE, NULL, "a row for each CPU (with -a or -C)", NULL,
	  0 },
	{ 0, "per-core", TALLY_ARGUMENT_NONE, NULL,
	  "a row for each core, named like S0-D0-C1: socket, die, core", NULL, OPTION_PER_CORE },
	{ 0, "per-die", TALLY_ARGUMENT_NONE, NULL, "for each die", NULL, OPTION_PER_DIE },
	{ 0, "per-socket", TALLY_ARGUMENT_NONE, NULL, "for each socket", NULL, OPTION_PER_SOCKET },
	{ 0, "per-node", TALLY_ARGUMENT_NONE, NULL, "for each NUMA node", NULL, OPTION_PER_NODE },
	{ 0, "per-thread", TALLY_ARGUMENT_NONE, NULL,
	  "for each thread of -p, -t, or of all processes, the largest first", NULL,
	  OPTION_PER_THREAD },
	{ 'G', "cgroup", TALLY_ARGUMENT_REQUIRED, "NAMES",
	  "count the events before it in cgroups, one for each event\nor one for all (with -a or -C)" },
	{ 0, "for-each-cgroup", TALLY_ARGUMENT_REQUIRED, "NAMES",
	  "count all events in each of these cgroups (with -a or -C)", NULL, OPTION_EACH_CGROUP },
	{ 'D', "delay", TALLY_ARGUMENT_REQUIRED, "MS",
	  "start counting after MS milliseconds; -1: when --control enables it" },
	{ 0, "control", TALLY_ARGUMENT_REQUIRED, "fifo:CTL[,ACK]|fd:CTL[,ACK]",
	  "read commands from a FIFO or a descriptor: enable [EVENT],\ndisable [EVENT], ping, "
	  "evlist, stop; each is answered with \"ack\"",
	  NULL, OPTION_CONTROL },
	{ 'r', "repeat", TALLY_ARGUMENT_REQUIRED, "N", "run the command N times; show mean ± σ" },
	{ 'I', "interval-print", TALLY_ARGUMENT_REQUIRED, "MS",
	  "print the counts of each interval" },
	{ 0, "interval-count", TALLY_ARGUMENT_REQUIRED, "N", "stop after N intervals", NULL,
	  OPTION_INTERVAL_COUNT },
	{ 0, "interval-clear", TALLY_ARGUMENT_NONE, NULL, "clear the screen before each", NULL,
	  OPTION_CLEAR },
	{ 0, "summary", TALLY_ARGUMENT_NONE, NULL, "print the totals after the intervals", NULL,
	  OPTION_SUMMARY },
	{ 0, "duration", TALLY_ARGUMENT_REQUIRED, "SECONDS",
	  "stop after this time; a command gets SIGTERM", NULL, OPTION_DURATION },
	{ 0, "timeout", TALLY_ARGUMENT_REQUIRED, "MS", "the same in milliseconds", NULL,
	  OPTION_TIMEOUT },
	{ 'i', "no-inherit", TALLY_ARGUMENT_NONE, NULL,
	  "leave out the command's children and new threads" },
	{ 0, "no-zero", TALLY_ARGUMENT_NONE, NULL, "leave out rows that counted 0", NULL,
	  OPTION_NO_ZERO },
	{ 'x', "field-separator", TALLY_ARGUMENT_REQUIRED, "SEP",
	  "CSV with this separator (docs/stat-output.md)" },
	{ 'j', "json-output", TALLY_ARGUMENT_NONE, NULL, "JSON, one document per line" },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write to FILE instead of standard error" },
	{ 0, "append", TALLY_ARGUMENT_NONE, NULL, "add to FILE", NULL, OPTION_APPEND },
	SIMULATED_OPTION_PROVIDER(OPTION_PROVIDER),
	SIMULATED_OPTION_CPU(OPTION_SIM_CPU),
	SIMULATED_OPTION_REGION(OPTION_REGION),
	SIMULATED_OPTION_TOGGLE(OPTION_TOGGLE),
#define ROW(id_, letter_, name_, kind_, argument_, instead_) \
	{ letter_, name_, TALLY_ARGUMENT_##kind_, argument_, NULL, NULL, STAT_PERF_##id_ },
	STAT_PERF_OPTIONS(ROW)
#undef ROW
		TALLY_OPTIONS_END,
};
