/* tally stat: counts, and what they say. */
#include "base/arena.h"
#include "base/terminal.h"
#include "command/command.h"
#include "command/simulated_options.h"
#include "event/event.h"
#include "output/stat_view.h"
#include "provider/kernel_catalogue.h"
#include "provider/provider.h"
#include "session/stat_run.h"

#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_APPEND = 256, OPTION_TIMEOUT, OPTION_DURATION, OPTION_INTERVAL_COUNT, OPTION_PROVIDER, OPTION_SIM_CPU,
       OPTION_REGION, OPTION_TOGGLE };

struct stat_command {
	const struct tally_command *command;
	struct tally_arena arena;
	struct tally_catalogue catalogue;
	bool has_catalogue;
	struct tally_event_list events;
	struct tally_target target;
	struct tally_provider *provider;
	struct tally_stat_options options;
	const char *expressions[64];
	size_t expression_count;
	bool is_detailed, counts_nothing, appends;
	const char *output_path, *provider_name;
	struct tally_simulated_options simulated;
	FILE *output;
	struct tally_buffer text;
	struct tally_stat_view view;
	const struct tally_stat_view_ops *ops;
	bool write_failed, is_misused;
};

struct preset {
	enum tally_event_kind kind;
	uint32_t type;
	uint64_t config;
	const char *name;
	int group; /* pairs whose ratio is shown are counted together; −1: software is never scaled */
};

#define CACHE(level, result) \
	TALLY_EVENT_CACHE, TALLY_TYPE_HW_CACHE, \
		(uint64_t)TALLY_CACHE_##level | (uint64_t)TALLY_CACHE_OP_READ << 8 | \
			(uint64_t)TALLY_CACHE_RESULT_##result << 16
#define HARDWARE(name) TALLY_EVENT_HARDWARE, TALLY_TYPE_HARDWARE, TALLY_HW_##name
#define SOFTWARE(name) TALLY_EVENT_SOFTWARE, TALLY_TYPE_SOFTWARE, TALLY_SW_##name

static const struct preset standard[] = {
	{ SOFTWARE(TASK_CLOCK), "task-clock", -1 },
	{ SOFTWARE(CONTEXT_SWITCHES), "context-switches", -1 },
	{ SOFTWARE(CPU_MIGRATIONS), "cpu-migrations", -1 },
	{ SOFTWARE(PAGE_FAULTS), "page-faults", -1 },
	{ HARDWARE(CPU_CYCLES), "cycles", 0 },
	{ HARDWARE(INSTRUCTIONS), "instructions", 0 },
	{ HARDWARE(BRANCH_INSTRUCTIONS), "branches", 1 },
	{ HARDWARE(BRANCH_MISSES), "branch-misses", 1 },
};

static const struct preset detailed[] = {
	{ CACHE(L1D, ACCESS), "L1-dcache-loads", 2 },    { CACHE(L1D, MISS), "L1-dcache-load-misses", 2 },
	{ CACHE(LL, ACCESS), "LLC-loads", 3 },           { CACHE(LL, MISS), "LLC-load-misses", 3 },
	{ CACHE(DTLB, ACCESS), "dTLB-loads", 4 },        { CACHE(DTLB, MISS), "dTLB-load-misses", 4 },
	{ CACHE(ITLB, ACCESS), "iTLB-loads", 5 },        { CACHE(ITLB, MISS), "iTLB-load-misses", 5 },
};

/* All are counted at once there: no groups. */
static const char simulated_standard[] = "instructions,branches,branch-misses,L1-dcache-loads,L1-dcache-load-misses,"
					 "LLC-load-misses,dTLB-load-misses,est-cycles";
static const char simulated_detailed[] = "L1-dcache-stores,L1-dcache-store-misses,L1-icache-loads,L1-icache-load-misses,"
					 "LLC-loads,LLC-stores,LLC-store-misses,dTLB-store-misses,iTLB-load-misses";

static int add_presets(struct stat_command *stat, const struct preset *presets, size_t count, int first_group,
		       struct tally_error *err)
{
	struct tally_event_list *list = &stat->events;
	struct tally_event *items = reallocarray(list->items, list->count + count, sizeof(*items));
	if (!items)
		return tally_error_set(err, -ENOMEM, "out of memory");
	list->items = items;
	list->capacity = list->count + count;
	for (size_t i = 0; i < count; i++) {
		const struct preset *p = &presets[i];
		struct tally_event event = { .kind = p->kind, .name = p->name, .unit = "", .scale = 1,
					     .attr = { .type = p->type, .config = p->config },
					     .group = p->group < 0 ? TALLY_EVENT_NO_GROUP : first_group + p->group,
					     .weak_group = p->group >= 0 };
		if (p->kind != TALLY_EVENT_SOFTWARE) /* as a parsed name has it */
			event.attr.flags = TALLY_ATTR_EXCLUDE_GUEST;
		/* A CPU runs all the time, a task does not: whole CPUs are measured by their own clock. */
		if (stat->target.all && p->type == TALLY_TYPE_SOFTWARE && p->config == TALLY_SW_TASK_CLOCK) {
			event.name = "cpu-clock";
			event.attr.config = TALLY_SW_CPU_CLOCK;
		}
		items[list->count++] = event;
		if (event.group >= list->group_count)
			list->group_count = event.group + 1;
	}
	return 0;
}

static int open_provider(struct stat_command *stat, struct tally_error *err)
{
	static const char scripted[] = "scripted:";
	const char *name = stat->provider_name;
	if (!name || !strcmp(name, "kernel"))
		stat->provider = tally_provider_kernel();
	else if (simulated_is_meant(name))
		return tally_provider_simulated_new(&stat->simulated, &stat->provider, err);
	else if (!strncmp(name, scripted, sizeof(scripted) - 1))
		return tally_provider_scripted_new(name + sizeof(scripted) - 1, &stat->provider, err);
	else {
		stat->is_misused = true;
		return tally_error_set(err, -EINVAL, "there is no provider '%s': kernel, simulated", name);
	}
	return 0;
}

static int add_presets_of_kernel(struct stat_command *stat, struct tally_error *err)
{
	int result = 0;
	if (!stat->expression_count)
		result = add_presets(stat, standard, sizeof(standard) / sizeof(standard[0]), 0, err);
	if (result >= 0 && stat->is_detailed)
		result = add_presets(stat, detailed, sizeof(detailed) / sizeof(detailed[0]), stat->events.group_count, err);
	return result;
}

static int add_presets_simulated(struct stat_command *stat, struct tally_error *err)
{
	int result = 0;
	if (!stat->expression_count)
		result = tally_event_parse(simulated_standard, &stat->catalogue, &stat->arena, &stat->events, err);
	if (result >= 0 && stat->is_detailed)
		result = tally_event_parse(simulated_detailed, &stat->catalogue, &stat->arena, &stat->events, err);
	for (size_t i = 0; i < stat->events.count; i++)
		tally_simulated_make_generic(&stat->events.items[i]);
	return result;
}

static int parse_events(struct stat_command *stat, struct tally_error *err)
{
	struct tally_catalogue *catalogue = &stat->catalogue;
	int result = 0;
	bool is_simulated = simulated_is_meant(stat->provider_name);
	if (stat->expression_count || is_simulated) {
		result = tally_catalogue_init(catalogue);
		stat->has_catalogue = result >= 0;
		if (result < 0)
			return tally_error_set(err, result, "out of memory");
		result = stat->provider->ops->catalogue ? stat->provider->ops->catalogue(stat->provider, catalogue, err)
							: tally_kernel_catalogue(catalogue, err);
	}
	bool has_names = result >= 0;
	for (size_t i = 0; i < stat->expression_count && result >= 0; i++)
		result = tally_event_parse(stat->expressions[i], catalogue, &stat->arena, &stat->events, err);
	if (result >= 0 && is_simulated)
		result = simulated_check_events(&stat->events, err);
	stat->is_misused = has_names && result < 0 && result != -ENOMEM;
	if (stat->counts_nothing || result < 0)
		return result;
	return is_simulated ? add_presets_simulated(stat, err) : add_presets_of_kernel(stat, err);
}

/* Which CPUs each event's PMU counts on: an uncore PMU opened on each CPU would be counted as often. */
static int find_event_cpus(struct stat_command *stat, struct tally_error *err)
{
	const char **cpus = tally_arena_array(&stat->arena, stat->events.count + 1, sizeof(*cpus));
	if (!cpus)
		return tally_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; stat->has_catalogue && i < stat->events.count; i++)
		for (size_t pmu = 0; pmu < stat->catalogue.pmu_count; pmu++)
			if (stat->catalogue.pmus[pmu].type == stat->events.items[i].attr.type)
				cpus[i] = stat->catalogue.pmus[pmu].cpus;
	stat->options.counting.event_cpus = cpus;
	return 0;
}

static void write_report(void *context, const struct tally_stat_report *report)
{
	struct stat_command *stat = context;
	tally_buffer_clear(&stat->text);
	stat->ops->show(&stat->view, report);
	if (stat->text.failed || fwrite(stat->text.bytes, 1, stat->text.length, stat->output) != stat->text.length ||
	    fflush(stat->output))
		stat->write_failed = true;
}

static int open_output(struct stat_command *stat, struct tally_error *err)
{
	stat->output = stderr;
	if (stat->output_path) {
		stat->output = fopen(stat->output_path, stat->appends ? "ae" : "we");
		if (!stat->output)
			return tally_error_set(err, -errno, "%s: %s", stat->output_path, tally_errno_text(-errno));
	}
	stat->view.out = &stat->text;
	stat->view.is_ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	if (isatty(fileno(stat->output)))
		stat->view.columns = tally_terminal_columns(fileno(stat->output), 80);
	stat->view.has_colours = tally_terminal_colours(fileno(stat->output));
	return 0;
}

static int take_number(struct stat_command *stat, const char *option, const char *value, unsigned long long minimum,
		       unsigned long *out)
{
	struct tally_error err = TALLY_ERROR_NONE;
	unsigned long long number;
	if (tally_option_u64(option, value, minimum, 1ull << 40, &number, &err) < 0) {
		tally_command_misuse(stat->command, "%s", err.message);
		return -EINVAL;
	}
	*out = (unsigned long)number;
	return 0;
}

/* perf's --timeout takes ms; with a unit either option takes any. */
static int take_time(struct stat_command *stat, const char *option, const char *value, bool plain_is_ms)
{
	struct tally_error err = TALLY_ERROR_NONE;
	double seconds;
	if (tally_option_seconds(option, value, &seconds, &err) < 0) {
		tally_command_misuse(stat->command, "%s", err.message);
		return -EINVAL;
	}
	if (plain_is_ms && !value[strspn(value, "0123456789.")])
		seconds /= 1000;
	if (seconds < 0.001 || seconds > 1e9) {
		tally_command_misuse(stat->command, "option %s: %s is no time to count for", option, value);
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
		tally_command_misuse(stat->command, "option -I: an interval may not be longer than a day");
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

static int take_expression(struct stat_command *stat, const char *value)
{
	if (stat->expression_count == sizeof(stat->expressions) / sizeof(stat->expressions[0])) {
		tally_command_misuse(stat->command, "too many -e: put events into one, separated by commas");
		return -EINVAL;
	}
	stat->expressions[stat->expression_count++] = value;
	return 0;
}

static int take_region(struct stat_command *stat, const char *function)
{
	struct tally_error err = TALLY_ERROR_NONE;
	stat->simulated.region = true;
	int result = function ? simulated_add_toggle(&stat->simulated, function, &err) : 0;
	if (result < 0)
		tally_command_misuse(stat->command, "%s", err.message);
	return result;
}

static int take_option(struct stat_command *stat, int id, const char *value)
{
	switch (id) {
	case 'e':
		return take_expression(stat, value);
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
		return take_number(stat, "--interval-count", value, 1, &stat->options.interval_count);
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
		return 0;
	}
}

/* Options that don't go together: a message, or NULL. */
static const char *conflict(const struct stat_command *stat)
{
	const struct tally_stat_options *o = &stat->options;
	if (o->runs > 1 && !stat->target.command)
		return "-r repeats a command; there is none";
	if (o->runs > 1 && o->interval_ms)
		return "-r and -I don't go together: intervals of several runs have no mean";
	if (o->interval_count && !o->interval_ms)
		return "--interval-count needs -I";
	if (stat->counts_nothing && (stat->expression_count || stat->is_detailed))
		return "-n counts nothing: it doesn't go with -e or -d";
	if (stat->appends && !stat->output_path)
		return "--append needs -o FILE";
	return simulated_conflict(&stat->simulated, stat->provider_name);
}

/* 0, or what to exit with (−1: all is well but nothing is to be done). */
static int take_arguments(struct stat_command *stat, int argc, char **argv)
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
	return message ? tally_command_misuse(stat->command, "%s", message) : 0;
}

static int prepare(struct stat_command *stat, struct tally_error *err)
{
	bool is_simulated = simulated_is_meant(stat->provider_name);
	int result = is_simulated ? simulated_check_target(&stat->target, err) : 0;
	stat->is_misused = result < 0;
	if (result >= 0)
		result = open_provider(stat, err);
	if (result >= 0)
		result = tally_target_resolve(&stat->target, err);
	if (result >= 0)
		result = parse_events(stat, err);
	if (result >= 0)
		result = find_event_cpus(stat, err);
	if (result >= 0)
		result = open_output(stat, err);
	if (result < 0)
		return result;
	stat->options.counting.provider = stat->provider;
	stat->options.counting.events = stat->events.items;
	stat->options.counting.event_count = stat->events.count;
	stat->options.counting.target = &stat->target;
	stat->options.target = &stat->target;
	stat->options.on_report = write_report;
	stat->options.context = stat;
	return 0;
}

/* What looks like a hang to one who forgot the command. */
static void say_waiting(const struct stat_command *stat)
{
	const struct tally_target *target = &stat->target;
	if (target->all && !target->has_cpu_list && !target->command && !stat->options.timeout_ms &&
	    !stat->options.interval_ms && isatty(STDERR_FILENO))
		fputs("counting the whole system until Ctrl-C\n", stderr);
}

static int count(struct stat_command *stat)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int status = TALLY_EXIT_FAILURE;
	int result = prepare(stat, &err);
	if (result >= 0)
		say_waiting(stat);
	if (result >= 0)
		result = tally_stat_run(&stat->options, &status, &err);
	if (result < 0)
		tally_command_fail(stat->command, &err);
	if (stat->is_misused)
		status = TALLY_EXIT_USAGE;
	if (result >= 0 && stat->write_failed) {
		tally_error_set(&err, -EIO, "writing the counts failed");
		status = tally_command_fail(stat->command, &err);
	}
	return status;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct stat_command stat = { .command = command, .target = TALLY_TARGET_INIT, .options = { .runs = 1 },
				     .view = { .separator = "," }, .ops = &tally_stat_view_table };
	int status = take_arguments(&stat, argc, argv);
	if (!status)
		status = count(&stat);
	if (stat.output && stat.output != stderr && fclose(stat.output)) {
		struct tally_error err = TALLY_ERROR_NONE;
		tally_error_set(&err, -errno, "%s: %s", stat.output_path, tally_errno_text(-errno));
		status = tally_command_fail(command, &err);
	}
	if (stat.provider)
		stat.provider->ops->release(stat.provider);
	if (stat.has_catalogue)
		tally_catalogue_release(&stat.catalogue);
	tally_event_list_release(&stat.events);
	tally_target_release(&stat.target);
	tally_buffer_release(&stat.text);
	tally_arena_release(&stat.arena);
	return status < 0 ? TALLY_EXIT_OK : status;
}

static const struct tally_option options[] = {
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENTS", "count these instead: cycles,instructions or {a,b} as a group" },
	{ 'd', "detailed", TALLY_ARGUMENT_NONE, NULL, "add loads and misses of L1-dcache, LLC, dTLB and iTLB" },
	{ 'n', "null", TALLY_ARGUMENT_NONE, NULL, "count nothing, only take the time" },
	{ 'B', "big-num", TALLY_ARGUMENT_NONE, NULL, NULL }, /* perf's; always on */
	{ 'p', "pid", TALLY_ARGUMENT_REQUIRED, "PIDS", "count running processes, until they end, the command\nends, or Ctrl-C" },
	{ 't', "tid", TALLY_ARGUMENT_REQUIRED, "TIDS", "count single threads" },
	{ 'a', "all-cpus", TALLY_ARGUMENT_NONE, NULL, "count the whole system (the default without a command)" },
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "CPUS", "count these CPUs alone: 0-3,7" },
	{ 'r', "repeat", TALLY_ARGUMENT_REQUIRED, "N", "run the command N times; show mean ± σ" },
	{ 'I', "interval-print", TALLY_ARGUMENT_REQUIRED, "MS", "print what was counted in each interval" },
	{ 0, "interval-count", TALLY_ARGUMENT_REQUIRED, "N", "stop after N intervals", NULL, OPTION_INTERVAL_COUNT },
	{ 0, "duration", TALLY_ARGUMENT_REQUIRED, "SECONDS", "stop after this time; a command gets SIGTERM", NULL, OPTION_DURATION },
	{ 0, "timeout", TALLY_ARGUMENT_REQUIRED, "MS", "the same in milliseconds", NULL, OPTION_TIMEOUT },
	{ 'i', "no-inherit", TALLY_ARGUMENT_NONE, NULL, "leave out the command's children and new threads" },
	{ 'x', "field-separator", TALLY_ARGUMENT_REQUIRED, "SEP", "CSV with this separator (docs/stat-output.md)" },
	{ 'j', "json-output", TALLY_ARGUMENT_NONE, NULL, "JSON, one document per line" },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE", "write to FILE instead of standard error" },
	{ 0, "append", TALLY_ARGUMENT_NONE, NULL, "add to FILE", NULL, OPTION_APPEND },
	SIMULATED_OPTION_PROVIDER(OPTION_PROVIDER),
	SIMULATED_OPTION_CPU(OPTION_SIM_CPU),
	SIMULATED_OPTION_REGION(OPTION_REGION),
	SIMULATED_OPTION_TOGGLE(OPTION_TOGGLE),
	TALLY_OPTIONS_END,
};

const struct tally_command tally_command_stat = {
	.name = "stat",
	.summary = "count events while a command runs, and say what the counts mean",
	.usage = "[options] [--] [command [argument…]]",
	.options = options,
	.details =
		"Without a command, -p or -t, the whole system is counted until Ctrl-C.  The counts go to standard\n"
		"error, so that the command's own output stays clean; the exit status is the command's (128 + n when\n"
		"signal n ended it, 127 when it was not found, 126 when it can't be executed).  A command that tally\n"
		"stops at --duration, --timeout or --interval-count, as asked, gives 0; a wrong event gives 2.\n"
		"\n"
		"  tally stat -d ./program                  counts, cache and TLB misses, and a reading of them\n"
		"  tally stat -r 10 -- make -s              mean and spread of ten runs\n"
		"  tally stat -e page-faults -I 1000 -p 42  page faults of a running process, each second\n"
		"  tally stat -a --duration 5               the whole system for five seconds\n"
		"  tally stat --provider simulated ./program\n"
		"                                           hardware events without hardware: slower, and the same each time\n",
	.run = run,
};
