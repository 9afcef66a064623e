/* The options of `tally record`. */
#include "command/record_request.h"

#include "machine/limits.h"
#include "perfdata/off_cpu_event.h"
#include "session/event_filter.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
	OPTION_CALL_GRAPH = 256,
	OPTION_NO_CALL_GRAPH,
	OPTION_DURATION,
	OPTION_KEEP_STACKS,
	OPTION_NO_PACK,
	OPTION_PROVIDER,
	OPTION_SIM_CPU,
	OPTION_REGION,
	OPTION_TOGGLE,
	OPTION_FILTER,
	OPTION_EXCLUDE_PERF,
	OPTION_CONTROL,
	OPTION_OVERWRITE,
	OPTION_SWITCH_OUTPUT,
	OPTION_SWITCH_MAX_FILES,
	OPTION_TIMESTAMP_FILENAME,
	OPTION_MAX_SIZE,
	OPTION_ALL_USER,
	OPTION_ALL_KERNEL,
	OPTION_PHYS_DATA,
	OPTION_DATA_PAGE_SIZE,
	OPTION_CODE_PAGE_SIZE,
	OPTION_NAMESPACES,
	OPTION_ALL_CGROUPS,
	OPTION_SWITCH_EVENTS,
	OPTION_OFF_CPU,
	OPTION_PER_THREAD,
	OPTION_SWITCH_EVENT,
	OPTION_DRY_RUN,
	OPTION_USER_REGS,
	OPTION_TRANSACTION,
	OPTION_RUNNING_TIME,
	OPTION_KERNEL_CHAINS,
	OPTION_USER_CHAINS,
	OPTION_NO_BPF_EVENT,
	OPTION_MAX_STACK,
	OPTION_NO_DESCENDANTS,
	OPTION_NO_WAKERS
};

const struct tally_option record_options[] = {
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENTS",
	  "events to sample (cycles or cpu-clock); 'tally list' lists them", NULL, 0 },
	{ 'F', "freq", TALLY_ARGUMENT_REQUIRED, "HZ",
	  "samples per second (999); max: the kernel's limit", NULL, 0 },
	{ 'c', "count", TALLY_ARGUMENT_REQUIRED, "N", "a sample every N events", NULL, 0 },
	{ 'g', NULL, TALLY_ARGUMENT_NONE, NULL, "record call graphs (the default)", NULL, 0 },
	{ 0, "call-graph", TALLY_ARGUMENT_REQUIRED, "fp|dwarf[,SIZE]|lbr|none",
	  "unwind copies of the stack (dwarf, the default; SIZE bytes, otherwise\nas many as needed), follow frame pointers (fp), or use the CPU's\nbranch records (lbr)",
	  NULL, OPTION_CALL_GRAPH },
	{ 0, "no-call-graph", TALLY_ARGUMENT_NONE, NULL, "record only addresses", NULL,
	  OPTION_NO_CALL_GRAPH },
	{ 0, "max-stack", TALLY_ARGUMENT_REQUIRED, "N",
	  "keep the innermost N frames of a call graph; with frame pointers at most\nsysctl kernel.perf_event_max_stack (127)",
	  NULL, OPTION_MAX_STACK },
	{ 0, "keep-stacks", TALLY_ARGUMENT_NONE, NULL,
	  "keep the stack copies in the file and unwind when reading", NULL, OPTION_KEEP_STACKS },
	{ 0, "filter", TALLY_ARGUMENT_REQUIRED, "EXPR",
	  "filter the hits of the last -e's tracepoints by their fields:\n"
	  "'prev_pid != 0 && next_comm ~ \"xz*\"'",
	  NULL, OPTION_FILTER },
	{ 0, "exclude-perf", TALLY_ARGUMENT_NONE, NULL,
	  "leave out hits of the last -e's tracepoints that tally causes", NULL,
	  OPTION_EXCLUDE_PERF },
	{ 0, "kernel-callchains", TALLY_ARGUMENT_NONE, NULL, "only the kernel's part of call graphs",
	  NULL, OPTION_KERNEL_CHAINS },
	{ 0, "user-callchains", TALLY_ARGUMENT_NONE, NULL, "only the program's part of call graphs", NULL,
	  OPTION_USER_CHAINS },
	{ 0, "all-user", TALLY_ARGUMENT_NONE, NULL, "all events only in user mode", NULL,
	  OPTION_ALL_USER },
	{ 0, "all-kernel", TALLY_ARGUMENT_NONE, NULL, "all events only in the kernel", NULL,
	  OPTION_ALL_KERNEL },
	{ 'p', "pid", TALLY_ARGUMENT_REQUIRED, "PIDS",
	  "record these processes and their children", NULL, 0 },
	{ 0, "no-descendants", TALLY_ARGUMENT_NONE, NULL,
	  "-p without existing child processes; with -i also without new ones", NULL,
	  OPTION_NO_DESCENDANTS },
	{ 't', "tid", TALLY_ARGUMENT_REQUIRED, "TIDS", "record these threads", NULL, 0 },
	{ 'u', "uid", TALLY_ARGUMENT_REQUIRED, "USER",
	  "record this user's processes and what they start", NULL, 0 },
	{ 'i', "no-inherit", TALLY_ARGUMENT_NONE, NULL, "leave out new children and threads",
	  NULL, 0 },
	{ 0, "per-thread", TALLY_ARGUMENT_NONE, NULL,
	  "a ring for each thread instead of each CPU; leaves out new children\nand threads", NULL,
	  OPTION_PER_THREAD },
	{ 'a', "all-cpus", TALLY_ARGUMENT_NONE, NULL, "record the whole system", NULL, 0 },
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "CPUS", "record these CPUs (0-3,7)", NULL, 0 },
	{ 'G', "cgroup", TALLY_ARGUMENT_REQUIRED, "NAMES",
	  "sample the events of the -e before only in these cgroups: one for all\n"
	  "events, or one for each; needs -a",
	  NULL, 0 },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write to FILE (tally.data); - is standard output, a pipe", NULL, 0 },
	{ 'm', "mmap-pages", TALLY_ARGUMENT_REQUIRED, "SIZE",
	  "ring size per CPU: bytes with K, M or G, otherwise pages", NULL, 0 },
	{ 'D', "delay", TALLY_ARGUMENT_REQUIRED, "MS|RANGES",
	  "start sampling after MS milliseconds; -1: when --control enables it;\n10-20,30-40: only in these ranges",
	  NULL, 0 },
	{ 0, "duration", TALLY_ARGUMENT_REQUIRED, "TIME",
	  "stop after TIME: 5, 500ms, 2m; a command gets SIGTERM", NULL, OPTION_DURATION },
	{ 0, "control", TALLY_ARGUMENT_REQUIRED, "fifo:CTL[,ACK]|fd:CTL[,ACK]",
	  "read commands from this FIFO or descriptor: enable, disable,\nsnapshot, stop, ping", NULL, OPTION_CONTROL },
	{ 0, "overwrite", TALLY_ARGUMENT_NONE, NULL,
	  "flight recorder: keep only what the rings hold; SIGUSR2 writes it to\n"
	  "a separate file, the end of the recording to the output",
	  NULL, OPTION_OVERWRITE },
	{ 0, "switch-output", TALLY_ARGUMENT_OPTIONAL, "signal|SIZE|TIME",
	  "start a new file at SIGUSR2, after SIZE (100M) or TIME (30s);\n"
	  "names end in the time",
	  NULL, OPTION_SWITCH_OUTPUT },
	{ 0, "switch-output-event", TALLY_ARGUMENT_REQUIRED, "EVENT",
	  "start a new file, or dump the flight recorder, when EVENT occurs", NULL,
	  OPTION_SWITCH_EVENT },
	{ 0, "switch-max-files", TALLY_ARGUMENT_REQUIRED, "N", "keep the last N of these files",
	  NULL, OPTION_SWITCH_MAX_FILES },
	{ 0, "timestamp-filename", TALLY_ARGUMENT_NONE, NULL, "append the time to the output's name",
	  NULL, OPTION_TIMESTAMP_FILENAME },
	{ 0, "max-size", TALLY_ARGUMENT_REQUIRED, "SIZE",
	  "stop when the output reaches SIZE (500M)", NULL, OPTION_MAX_SIZE },
	{ 'd', "data", TALLY_ARGUMENT_NONE, NULL, "record data addresses, and mappings of data",
	  NULL, 0 },
	{ 0, "phys-data", TALLY_ARGUMENT_NONE, NULL, "record physical data addresses", NULL,
	  OPTION_PHYS_DATA },
	{ 0, "data-page-size", TALLY_ARGUMENT_NONE, NULL, "record the page sizes of data addresses", NULL,
	  OPTION_DATA_PAGE_SIZE },
	{ 0, "code-page-size", TALLY_ARGUMENT_NONE, NULL, "record the page sizes of code addresses", NULL,
	  OPTION_CODE_PAGE_SIZE },
	{ 'W', "weight", TALLY_ARGUMENT_NONE, NULL, "record the weight (cost) that the PMU measures",
	  NULL, 0 },
	{ 0, "transaction", TALLY_ARGUMENT_NONE, NULL, "record the flags of memory transactions",
	  NULL, OPTION_TRANSACTION },
	{ 'I', "intr-regs", TALLY_ARGUMENT_OPTIONAL, "NAMES",
	  "record the registers at the event (all, or -Iip,sp)", NULL, 0 },
	{ 0, "user-regs", TALLY_ARGUMENT_OPTIONAL, "NAMES",
	  "record the program's registers; keeps stack copies, if there are any", NULL,
	  OPTION_USER_REGS },
	{ 0, "running-time", TALLY_ARGUMENT_NONE, NULL,
	  "record how long groups (:S) were counted", NULL, OPTION_RUNNING_TIME },
	{ 'R', "raw-samples", TALLY_ARGUMENT_NONE, NULL, "record the raw bytes of all events", NULL,
	  0 },
	{ 'b', "branch-any", TALLY_ARGUMENT_NONE, NULL, "record the branches taken before each sample",
	  NULL, 0 },
	{ 'j', "branch-filter", TALLY_ARGUMENT_REQUIRED, "KINDS",
	  "record branches of these kinds: any_call,u", NULL, 0 },
	{ 0, "off-cpu", TALLY_ARGUMENT_NONE, NULL,
	  "record where and how long tasks wait, as the event " TALLY_OFF_CPU_NAME
	  ",\nand their wakers, if tracepoints are allowed",
	  NULL, OPTION_OFF_CPU },
	{ 0, "no-wakers", TALLY_ARGUMENT_NONE, NULL, "--off-cpu without wakers", NULL,
	  OPTION_NO_WAKERS },
	{ 0, "switch-events", TALLY_ARGUMENT_NONE, NULL, "record context switches", NULL,
	  OPTION_SWITCH_EVENTS },
	{ 0, "namespaces", TALLY_ARGUMENT_NONE, NULL, "record the tasks' namespaces", NULL,
	  OPTION_NAMESPACES },
	{ 0, "all-cgroups", TALLY_ARGUMENT_NONE, NULL, "record cgroups, and each sample's cgroup",
	  NULL, OPTION_ALL_CGROUPS },
	{ 0, "no-bpf-event", TALLY_ARGUMENT_NONE, NULL, "don't record loads and unloads of BPF programs",
	  NULL, OPTION_NO_BPF_EVENT },
	{ 'z', "compression-level", TALLY_ARGUMENT_REQUIRED, "LEVEL",
	  "zstd level, 1 to 22 (1); 0: uncompressed", NULL, 0 },
	{ 0, "no-pack", TALLY_ARGUMENT_NONE, NULL,
	  "don't add names: reports then need the programs\n(tally pack adds names)", NULL,
	  OPTION_NO_PACK },
	{ 'r', "realtime", TALLY_ARGUMENT_REQUIRED, "N",
	  "the recorder's SCHED_FIFO priority, 1 to 99 (1 if permitted,\notherwise SCHED_OTHER)", NULL,
	  0 },
	{ 'k', "clockid", TALLY_ARGUMENT_REQUIRED, "mono", NULL, NULL, 0 },
	{ 0, "dry-run", TALLY_ARGUMENT_NONE, NULL, "only check the options", NULL,
	  OPTION_DRY_RUN },
	{ 'q', "quiet", TALLY_ARGUMENT_NONE, NULL, "print only errors and losses", NULL, 0 },
	SIMULATED_OPTION_PROVIDER(OPTION_PROVIDER),
	SIMULATED_OPTION_CPU(OPTION_SIM_CPU),
	SIMULATED_OPTION_REGION(OPTION_REGION),
	SIMULATED_OPTION_TOGGLE(OPTION_TOGGLE),
#define ROW(id_, letter_, name_, kind_, argument_, instead_) \
	{ letter_, name_, TALLY_ARGUMENT_##kind_, argument_, NULL, NULL, RECORD_PERF_##id_ },
	RECORD_PERF_OPTIONS(ROW)
#undef ROW
		TALLY_OPTIONS_END,
};

static int parse_rate(const char *value, struct record_request *request, struct tally_error *err)
{
	unsigned long long hertz = 1000;
	request->wants_max_rate = !strcmp(value, "max");
	int result = request->wants_max_rate
			     ? 0
			     : tally_option_u64("-F", value, 1, 1000000000, &hertz, err);
	if (result < 0)
		return result;
	request->record.frequency = (double)hertz;
	request->record.rate_given = true;
	return 0;
}

/* The kernel limits the rate, but not that of a simulated CPU. */
static int check_rate(struct record_request *request, struct tally_error *err)
{
	/* the kernel's default limit; more would lose no samples, but fill the disk */
	enum { SIMULATED_MAX_HZ = 100000 };
	bool is_simulated = simulated_is_meant(request->provider_name);
	int allowed = is_simulated ? SIMULATED_MAX_HZ
				   : tally_sysctl_read("kernel/perf_event_max_sample_rate");
	struct tally_recorder_options *record = &request->record;
	if (allowed <= 0 || (is_simulated && !request->wants_max_rate))
		return 0;
	if (request->wants_max_rate || (!record->rate_given && allowed < (int)RECORD_DEFAULT_HZ))
		record->frequency = allowed;
	if (!record->rate_given || record->frequency <= allowed)
		return 0;
	return tally_error_set(err, -EINVAL,
			       "-F %.0f: the kernel allows %d samples a second at most "
			       "(sysctl kernel.perf_event_max_sample_rate)",
			       record->frequency, allowed);
}

static int take_expression(struct record_request *request, const char *value,
			   struct tally_error *err)
{
	if (request->expression_count ==
	    sizeof(request->expressions) / sizeof(request->expressions[0]))
		return tally_error_set(err, -E2BIG,
				       "too many -e: put events into one, separated by commas");
	request->expressions[request->expression_count++] = (struct record_expression){
		.text = value
	};
	return 0;
}

static int take_filter(struct record_request *request, const char *option, const char *value,
		       struct tally_error *err)
{
	if (!request->expression_count)
		return tally_error_set(err, -EINVAL,
				       "%s must follow the -e that it applies to",
				       option);
	struct record_expression *last = &request->expressions[request->expression_count - 1];
	return tally_event_filter_add(&request->arena, &last->filter, value, err);
}

static int take_cgroups(struct record_request *request, const char *value, struct tally_error *err)
{
	if (!request->expression_count)
		return tally_error_set(err, -EINVAL,
				       "-G must follow the -e that it applies to");
	struct record_expression *last = &request->expressions[request->expression_count - 1];
	last->cgroups = last->cgroups
				? tally_arena_printf(&request->arena, "%s,%s", last->cgroups, value)
				: value;
	return last->cgroups ? 0 : tally_error_set(err, -ENOMEM, "out of memory");
}

static int exclude_own(struct record_request *request, struct tally_error *err)
{
	const char *text = tally_arena_printf(&request->arena, "common_pid != %d", (int)getpid());
	return text ? take_filter(request, "--exclude-perf", text, err)
		    : tally_error_set(err, -ENOMEM, "out of memory");
}

/* Handles options that only set bits; returns false if `id` is another option. */
static bool apply_flag(int id, struct tally_recorder_options *record)
{
	static const struct {
		int id;
		uint64_t sample_type, side_band, exclude, branches;
	} flags[] = {
		{ 'd', TALLY_SAMPLE_ADDR | TALLY_SAMPLE_DATA_SRC, TALLY_ATTR_MMAP_DATA, 0, 0 },
		{ 'W', TALLY_SAMPLE_WEIGHT_STRUCT, 0, 0, 0 },
		{ 'R', TALLY_SAMPLE_RAW, 0, 0, 0 },
		{ 'b', 0, 0, 0, TALLY_BRANCH_ANY },
		{ OPTION_PHYS_DATA, TALLY_SAMPLE_PHYS_ADDR, 0, 0, 0 },
		{ OPTION_DATA_PAGE_SIZE, TALLY_SAMPLE_DATA_PAGE_SIZE, 0, 0, 0 },
		{ OPTION_CODE_PAGE_SIZE, TALLY_SAMPLE_CODE_PAGE_SIZE, 0, 0, 0 },
		{ OPTION_SWITCH_EVENTS, 0, TALLY_ATTR_CONTEXT_SWITCH, 0, 0 },
		{ OPTION_NAMESPACES, 0, TALLY_ATTR_NAMESPACES, 0, 0 },
		{ OPTION_ALL_CGROUPS, TALLY_SAMPLE_CGROUP, TALLY_ATTR_CGROUP, 0, 0 },
		{ OPTION_TRANSACTION, TALLY_SAMPLE_TRANSACTION, 0, 0, 0 },
		{ OPTION_ALL_USER, 0, 0, TALLY_ATTR_EXCLUDE_KERNEL, 0 },
		{ OPTION_ALL_KERNEL, 0, 0, TALLY_ATTR_EXCLUDE_USER, 0 },
	};
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (flags[i].id != id)
			continue;
		record->sample_type |= flags[i].sample_type;
		record->side_band |= flags[i].side_band;
		record->exclude |= flags[i].exclude;
		record->branches |= flags[i].branches;
		return true;
	}
	return false;
}

int record_parse_ring(const char *value, struct tally_recorder_options *record,
		      struct tally_error *err)
{
	unsigned long long bytes;
	int result = tally_option_size("-m", value, &bytes, err);
	if (result < 0)
		return result;
	bool is_pages = !strpbrk(value, "KMGTkmgtBb");
	record->ring_bytes = (size_t)(is_pages ? bytes * (unsigned long long)sysconf(_SC_PAGESIZE)
					       : bytes);
	if (!record->ring_bytes || record->ring_bytes > (size_t)1 << 31)
		return tally_error_set(err, -EINVAL, "-m: a ring has between one page and 2 GiB");
	return 0;
}

static int take_clock(const char *value, struct tally_error *err)
{
	if (!strcasecmp(value, "mono") || !strcasecmp(value, "monotonic") ||
	    !strcasecmp(value, "CLOCK_MONOTONIC"))
		return 0;
	return tally_error_set(
		err, -EINVAL,
		"-k %s: tally always records CLOCK_MONOTONIC, which JITs' dumps use as well",
		value);
}

static int apply_option(int id, const char *value, struct record_request *request,
			struct tally_error *err)
{
	struct tally_recorder_options *record = &request->record;
	unsigned long long number = 0;
	uint32_t frames = 0;
	int result = 0;
	if (apply_flag(id, record) || (result = record_take_perf_option(id, err)))
		return result;
	switch (id) {
	case 'e': return take_expression(request, value, err);
	case 'F': return parse_rate(value, request, err);
	case 'c':
		result = tally_option_u64("-c", value, 1, 1ull << 62, &number, err);
		record->period = number;
		record->rate_given = true;
		break;
	case 'g':
		if (record->call_graph == TALLY_CALL_GRAPH_NONE)
			record->call_graph = TALLY_CALL_GRAPH_AUTO;
		break;
	case OPTION_OFF_CPU:
		request->off_cpu = true;
		record->side_band |= TALLY_ATTR_CONTEXT_SWITCH;
		break;
	case OPTION_NO_WAKERS: request->no_wakers = true; break;
	case OPTION_CALL_GRAPH: return record_parse_call_graph(value, record, err);
	case OPTION_NO_CALL_GRAPH: record->call_graph = TALLY_CALL_GRAPH_NONE; break;
	case OPTION_MAX_STACK:
		result = tally_option_frames(value, &frames, err);
		record->max_stack = (uint16_t)frames;
		break;
	case OPTION_KEEP_STACKS: record->keep_stacks = true; break;
	case 'p': return tally_target_add_pids(&request->target, value, err);
	case 't': return tally_target_add_threads(&request->target, value, err);
	case 'a': request->target.all = true; break;
	case 'C': return tally_target_set_cpus(&request->target, value, err);
	case 'o': request->output = value; break;
	case 'm': return record_parse_ring(value, record, err);
	case 'D': return record_parse_delay(value, request, err);
	case 'I': return record_parse_registers("-I", value, &record->registers_intr, err);
	case OPTION_USER_REGS:
		record->keep_stacks = true;
		return record_parse_registers("--user-regs", value, &record->registers_user, err);
	case 'k': return take_clock(value, err);
	case 'r':
		result = tally_option_u64("-r", value, 1, 99, &number, err);
		request->realtime = (int)number;
		break;
	case OPTION_DRY_RUN: request->is_dry_run = true; break;
	case OPTION_RUNNING_TIME: record->running_time = true; break;
	case OPTION_KERNEL_CHAINS:
		record->exclude_chain |= TALLY_ATTR_EXCLUDE_CALLCHAIN_USER;
		break;
	case OPTION_USER_CHAINS:
		record->exclude_chain |= TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL;
		break;
	case OPTION_NO_BPF_EVENT: record->no_bpf_events = true; break;
	case OPTION_PER_THREAD: record->per_thread = record->no_inherit = true; break;
	case OPTION_SWITCH_EVENT:
		record->next_file.is_wanted = true;
		request->switch_event = value;
		break;
	case 'u': return tally_target_set_user(&request->target, value, err);
	case 'G': return take_cgroups(request, value, err);
	case OPTION_NO_DESCENDANTS: request->target.takes_descendants = false; break;
	case 'i':
		record->no_inherit = true;
		request->target.takes_descendants = false;
		break;
	case 'j': return record_parse_branches(value, record, err);
	case OPTION_FILTER: return take_filter(request, "--filter", value, err);
	case OPTION_EXCLUDE_PERF: return exclude_own(request, err);
	case OPTION_CONTROL: request->control = value; break;
	case OPTION_OVERWRITE: record->overwrite = true; break;
	case OPTION_SWITCH_OUTPUT: return record_parse_switch(value, &record->next_file, err);
	case OPTION_SWITCH_MAX_FILES:
		result = tally_option_u64("--switch-max-files", value, 1, 1000000, &number, err);
		request->max_files = (size_t)number;
		break;
	case OPTION_TIMESTAMP_FILENAME: request->wants_time_in_name = true; break;
	case OPTION_MAX_SIZE:
		result = tally_option_size("--max-size", value, &number, err);
		record->max_bytes = number;
		if (!result && !number)
			result = tally_error_set(err, -EINVAL,
						 "--max-size 0 leaves no room for a recording");
		break;
	case OPTION_DURATION:
		return tally_option_duration("--duration", value, &record->duration_s, err);
	case 'z':
		result = tally_option_u64("-z", value, 0, 22, &number, err);
		record->compression_level = (int)number;
		break;
	case 'q': request->quiet = true; break;
	case OPTION_NO_PACK: request->no_pack = true; break;
	case OPTION_PROVIDER: request->provider_name = value; break;
	case OPTION_SIM_CPU: request->simulated.cpu = value; break;
	case OPTION_REGION: request->simulated.region = true; break;
	case OPTION_TOGGLE: result = simulated_add_toggle(&request->simulated, value, err); break;
	}
	return result;
}

int record_parse_arguments(const struct tally_command *command, int argc, char **argv,
			   struct record_request *request)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	int id;
	while ((id = tally_options_next(&walk)) > 0)
		if (apply_option(id, walk.value, request, &err) < 0)
			return tally_command_misused(command, &err);
	if (id != TALLY_OPTION_DONE)
		return id == TALLY_OPTION_HELP ? -1 : TALLY_EXIT_USAGE;
	const char *conflict = simulated_conflict(&request->simulated, request->provider_name);
	if (conflict)
		return tally_command_misuse(command, "%s", conflict);
	if (check_rate(request, &err) < 0)
		return tally_command_misused(command, &err);
	if (walk.index < argc)
		request->target.command = argv + walk.index;
	if (!request->target.command && !request->target.all && !request->target.has_cpu_list &&
	    !tally_target_has_tasks(&request->target))
		return tally_command_misuse(
			command, "nothing to record: give a command, -p PID, or -a for the whole system");
	const struct tally_target *target = &request->target;
	bool is_whole = target->all || target->has_cpu_list;
	for (size_t i = 0; i < request->expression_count; i++)
		if (request->expressions[i].cgroups && !is_whole)
			return tally_command_misuse(
				command,
				"-G %s: cgroups are recorded CPU by CPU: add -a, or -C CPUS",
				request->expressions[i].cgroups);
	struct tally_recorder_options *record = &request->record;
	request->wants_time_in_name |= record->next_file.is_wanted;
	bool wants_kernel = record->overwrite || record->branches || record->sample_type ||
			    record->registers_intr || record->registers_user ||
			    record->per_thread || request->switch_event || request->off_cpu;
	if (simulated_is_meant(request->provider_name) && wants_kernel)
		return tally_command_misuse(
			command,
			"the simulated CPU does not support --overwrite, branch stacks, "
			"registers, -d, -W, -R, --per-thread, --off-cpu, --switch-output-event "
			"and similar options");
	if (request->off_cpu && record->exclude & TALLY_ATTR_EXCLUDE_KERNEL)
		return tally_command_misuse(
			command,
			"--off-cpu and --all-user exclude each other: tasks leave a CPU in the kernel");
	if (record->per_thread && is_whole)
		return tally_command_misuse(
			command,
			"--per-thread excludes -a and -C: it records threads on any CPU");
	const uint64_t no_chain = TALLY_ATTR_EXCLUDE_CALLCHAIN_USER |
				  TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL;
	if (record->exclude_chain == no_chain)
		return tally_command_misuse(
			command,
			"--kernel-callchains and --user-callchains leave nothing: use --no-call-graph");
	if (record->starts_off && !request->control)
		return tally_command_misuse(
			command,
			"-D -1 needs --control, which switches the events on");
	const uint64_t both = TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL;
	if (request->record.exclude == both)
		return tally_command_misuse(command,
					    "--all-user and --all-kernel leave nothing to record");
	return record_parse_events(command, request);
}
