/* What `tally record` may be asked for. */
#include "command/record_request.h"

#include "machine/sysctl.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_CALL_GRAPH = 256, OPTION_NO_CALL_GRAPH, OPTION_DURATION, OPTION_KEEP_STACKS,
       OPTION_NO_PACK, OPTION_PROVIDER, OPTION_SIM_CPU, OPTION_REGION, OPTION_TOGGLE };

const struct tally_option record_options[] = {
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENTS", "what to sample (cycles, else cpu-clock); 'tally list' has all",
	  NULL, 0 },
	{ 'F', "freq", TALLY_ARGUMENT_REQUIRED, "HZ", "samples a second (999); max: what the kernel allows", NULL, 0 },
	{ 'c', "count", TALLY_ARGUMENT_REQUIRED, "N", "a sample every N events", NULL, 0 },
	{ 'g', NULL, TALLY_ARGUMENT_NONE, NULL, "record call graphs (the default)", NULL, 0 },
	{ 0, "call-graph", TALLY_ARGUMENT_REQUIRED, "fp|dwarf[,SIZE]|none",
	  "by frame pointers, or by unwinding copies of the stack (SIZE bytes,\nelse as many as prove needed); by default what the target's executable needs", NULL,
	  OPTION_CALL_GRAPH },
	{ 0, "no-call-graph", TALLY_ARGUMENT_NONE, NULL, "addresses alone", NULL, OPTION_NO_CALL_GRAPH },
	{ 0, "keep-stacks", TALLY_ARGUMENT_NONE, NULL, "keep the stack copies in the file, unwind when reading", NULL,
	  OPTION_KEEP_STACKS },
	{ 'p', "pid", TALLY_ARGUMENT_REQUIRED, "PIDS", "record these processes", NULL, 0 },
	{ 't', "tid", TALLY_ARGUMENT_REQUIRED, "TIDS", "record these threads", NULL, 0 },
	{ 'a', "all-cpus", TALLY_ARGUMENT_NONE, NULL, "record the whole system", NULL, 0 },
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "CPUS", "record these CPUs (0-3,7)", NULL, 0 },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE", "tally.data; - is a pipe on standard output", NULL, 0 },
	{ 'm', "mmap-pages", TALLY_ARGUMENT_REQUIRED, "SIZE", "ring per CPU: bytes with K, M, G, else pages", NULL, 0 },
	{ 'D', "delay", TALLY_ARGUMENT_REQUIRED, "MS", "start sampling that many milliseconds later", NULL, 0 },
	{ 0, "duration", TALLY_ARGUMENT_REQUIRED, "TIME", "stop after so long: 5, 500ms, 2m; a command gets SIGTERM",
	  NULL, OPTION_DURATION },
	{ 'z', "compression-level", TALLY_ARGUMENT_REQUIRED, "LEVEL", "zstd's, 1 to 22 (1); 0: plain", NULL, 0 },
	{ 0, "no-pack", TALLY_ARGUMENT_NONE, NULL, "leave out the names: reports need the programs then\n(tally pack adds them)",
	  NULL, OPTION_NO_PACK },
	{ 'q', "quiet", TALLY_ARGUMENT_NONE, NULL, "say nothing but errors and losses", NULL, 0 },
	SIMULATED_OPTION_PROVIDER(OPTION_PROVIDER),
	SIMULATED_OPTION_CPU(OPTION_SIM_CPU),
	SIMULATED_OPTION_REGION(OPTION_REGION),
	SIMULATED_OPTION_TOGGLE(OPTION_TOGGLE),
	TALLY_OPTIONS_END,
};

static int parse_call_graph(const char *value, struct tally_record_options *record, struct tally_error *err)
{
	unsigned long long bytes;
	if (!strcmp(value, "fp")) {
		record->call_graph = TALLY_CALL_GRAPH_FP;
	} else if (!strcmp(value, "none") || !strcmp(value, "no")) {
		record->call_graph = TALLY_CALL_GRAPH_NONE;
	} else if (!strncmp(value, "dwarf", 5) && (!value[5] || value[5] == ',')) {
		record->call_graph = TALLY_CALL_GRAPH_STACK;
		if (value[5]) {
			int result = tally_option_size("--call-graph dwarf", value + 6, &bytes, err);
			if (result < 0)
				return result;
			if (bytes < 256 || bytes > 64512)
				return tally_error_set(err, -EINVAL,
						       "--call-graph dwarf: a stack copy has 256 to 64512 bytes, not %llu",
						       bytes);
			record->stack_bytes = (uint32_t)bytes;
		}
	} else {
		return tally_error_set(err, -EINVAL, "--call-graph: '%s' is none of fp, dwarf, dwarf,SIZE, none", value);
	}
	return 0;
}

static int parse_rate(const char *value, struct record_request *request, struct tally_error *err)
{
	unsigned long long hertz = 1000;
	request->wants_max_rate = !strcmp(value, "max");
	int result = request->wants_max_rate ? 0 : tally_option_u64("-F", value, 1, 1000000000, &hertz, err);
	if (result < 0)
		return result;
	request->record.frequency = (double)hertz;
	request->record.rate_given = true;
	return 0;
}

/* By what the kernel allows; a simulated CPU's time is its own. */
static int check_rate(struct record_request *request, struct tally_error *err)
{
	enum { SIMULATED_MAX_HZ = 100000 }; /* what a kernel allows; nothing is lost beyond it, but for the disk's room */
	bool is_simulated = simulated_is_meant(request->provider_name);
	int allowed = is_simulated ? SIMULATED_MAX_HZ : tally_sysctl_read("kernel/perf_event_max_sample_rate");
	struct tally_record_options *record = &request->record;
	if (allowed <= 0 || (is_simulated && !request->wants_max_rate))
		return 0;
	if (request->wants_max_rate || (!record->rate_given && allowed < (int)RECORD_DEFAULT_HZ))
		record->frequency = allowed;
	if (!record->rate_given || record->frequency <= allowed)
		return 0;
	return tally_error_set(err, -EINVAL, "-F %.0f: the kernel allows %d samples a second at most "
			       "(sysctl kernel.perf_event_max_sample_rate)", record->frequency, allowed);
}

static int take_expression(struct record_request *request, const char *value, struct tally_error *err)
{
	if (request->expression_count == sizeof(request->expressions) / sizeof(request->expressions[0]))
		return tally_error_set(err, -E2BIG, "too many -e: put events into one, separated by commas");
	request->expressions[request->expression_count++] = value;
	return 0;
}

static int parse_ring(const char *value, struct tally_record_options *record, struct tally_error *err)
{
	unsigned long long bytes;
	int result = tally_option_size("-m", value, &bytes, err);
	if (result < 0)
		return result;
	bool is_pages = !strpbrk(value, "KMGTkmgtBb");
	record->ring_bytes = (size_t)(is_pages ? bytes * (unsigned long long)sysconf(_SC_PAGESIZE) : bytes);
	if (!record->ring_bytes || record->ring_bytes > (size_t)1 << 31)
		return tally_error_set(err, -EINVAL, "-m: a ring has a page to 2 GiB");
	return 0;
}

static int apply_option(int id, const char *value, struct record_request *request, struct tally_error *err)
{
	struct tally_record_options *record = &request->record;
	unsigned long long number = 0;
	int result = 0;
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
	case OPTION_CALL_GRAPH: return parse_call_graph(value, record, err);
	case OPTION_NO_CALL_GRAPH: record->call_graph = TALLY_CALL_GRAPH_NONE; break;
	case OPTION_KEEP_STACKS: record->keep_stacks = true; break;
	case 'p': return tally_target_add_pids(&request->target, value, err);
	case 't': return tally_target_add_threads(&request->target, value, err);
	case 'a': request->target.all = true; break;
	case 'C': return tally_target_set_cpus(&request->target, value, err);
	case 'o': request->output = value; break;
	case 'm': return parse_ring(value, record, err);
	case 'D':
		result = tally_option_u64("-D", value, 0, 1000000000, &number, err);
		record->delay_s = (double)number / 1000;
		break;
	case OPTION_DURATION: return tally_option_seconds("--duration", value, &record->duration_s, err);
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

int record_parse_arguments(const struct tally_command *command, int argc, char **argv, struct record_request *request)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	int id;
	while ((id = tally_options_next(&walk)) > 0)
		if (apply_option(id, walk.value, request, &err) < 0)
			return tally_command_misuse(command, "%s", err.message);
	if (id != TALLY_OPTION_DONE)
		return id == TALLY_OPTION_HELP ? -1 : TALLY_EXIT_USAGE;
	const char *conflict = simulated_conflict(&request->simulated, request->provider_name);
	if (conflict)
		return tally_command_misuse(command, "%s", conflict);
	if (check_rate(request, &err) < 0)
		return tally_command_misuse(command, "%s", err.message);
	if (walk.index < argc)
		request->target.command = argv + walk.index;
	if (!request->target.command && !request->target.all && !request->target.has_cpu_list &&
	    !tally_target_has_tasks(&request->target))
		return tally_command_misuse(command, "what to record? a command, -p PID, or -a for the whole system");
	return record_parse_events(command, request);
}
