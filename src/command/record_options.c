/* The options of `tally record`: functions that take arguments with a syntax of their own, the
 * table, and the checks for options that exclude each other. */
#include "command/record_request.h"

#include "abi/abi.h"
#include "machine/machine.h"
#include "perfdata/perfdata.h"
#include "session/session.h"
#include "unwind/unwind.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- events and targets --------------------------------------------------- */

int record_take_event(void *taker, const struct tally_option *option, const char *value,
		      struct tally_error *err)
{
	struct record_request *request = taker;
	(void)option;
	if (request->expression_count ==
	    sizeof(request->expressions) / sizeof(request->expressions[0]))
		return tally_error_set(err, -E2BIG,
				       "too many -e: put events into one, separated by commas");
	request->expressions[request->expression_count++] = (struct record_expression){
		.text = value
	};
	return 0;
}

static struct record_expression *last_expression(struct record_request *request, const char *option,
						 struct tally_error *err)
{
	if (request->expression_count)
		return &request->expressions[request->expression_count - 1];
	tally_error_set(err, -EINVAL, "%s must follow the -e that it applies to", option);
	return NULL;
}

static int take_filter(void *taker, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	struct record_request *request = taker;
	struct record_expression *last = last_expression(request, "--filter", err);
	(void)option;
	if (!last)
		return -EINVAL;
	return tally_event_filter_add(&request->arena, &last->filter, value, err);
}

static int take_exclude_perf(void *taker, const struct tally_option *option, const char *value,
			     struct tally_error *err)
{
	struct record_request *request = taker;
	struct record_expression *last = last_expression(request, "--exclude-perf", err);
	(void)option;
	if (!last)
		return -EINVAL;
	value = tally_arena_printf(&request->arena, "common_pid != %d", (int)getpid());
	if (!value)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return tally_event_filter_add(&request->arena, &last->filter, value, err);
}

static int take_cgroups(void *taker, const struct tally_option *option, const char *value,
			struct tally_error *err)
{
	struct record_request *request = taker;
	struct record_expression *last = last_expression(request, "-G", err);
	(void)option;
	if (!last)
		return -EINVAL;
	if (last->cgroups)
		value = tally_arena_printf(&request->arena, "%s,%s", last->cgroups, value);
	last->cgroups = value;
	if (!value)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

int record_take_target(void *taker, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	struct record_request *request = taker;
	switch (option->letter) {
	case 'p':
		return tally_target_add_pids(&request->target, value, err);
	case 't':
		return tally_target_add_threads(&request->target, value, err);
	case 'u':
		return tally_target_set_user(&request->target, value, err);
	default:
		return tally_target_set_cpus(&request->target, value, err);
	}
}

int record_take_container(void *taker, const struct tally_option *option, const char *value,
			  struct tally_error *err)
{
	(void)option;
	return tally_target_add_container(&((struct record_request *)taker)->target, value, err);
}

int record_take_no_inherit(void *taker, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	struct record_request *request = taker;
	(void)option, (void)value, (void)err;
	request->record.no_inherit = true;
	request->target.takes_descendants = false;
	return 0;
}

int record_take_inherit(void *taker, const struct tally_option *option, const char *value,
			struct tally_error *err)
{
	struct record_request *request = taker;
	(void)option, (void)value, (void)err;
	request->record.no_inherit = false;
	request->target.takes_descendants = true;
	return 0;
}

/* --- how often, and for how long ------------------------------------------ */

static int take_rate(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	struct record_request *request = taker;
	unsigned long long hertz = 1000;
	(void)option;
	request->wants_max_rate = !strcmp(value, "max");
	int result = 0;
	if (!request->wants_max_rate)
		result = tally_option_u64("-F", value, 1, 1000000000, &hertz, err);
	request->record.frequency = (double)hertz;
	request->record.rate_given = true;
	return result;
}

static bool parse_ms(const char **text, double *seconds)
{
	char *end;
	unsigned long number = strtoul(*text, &end, 10);
	bool is_number = end != *text && isdigit((unsigned char)**text) && number <= 1000000000;
	*seconds = (double)number / 1000;
	*text = end;
	return is_number;
}

static int parse_ranges(const char *value, struct record_request *request, struct tally_error *err)
{
	struct tally_recorder_options *record = &request->record;
	size_t count = 1;
	for (const char *at = value; *at; at++)
		count += *at == ',';
	struct tally_recorder_range *ranges = tally_arena_array(&request->arena, count,
								sizeof(*ranges));
	const char *at = value;
	double last = -1;
	if (!ranges)
		return tally_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++) {
		bool is_range = parse_ms(&at, &ranges[i].start_s) && *at++ == '-' &&
				parse_ms(&at, &ranges[i].end_s) && *at == (i + 1 < count ? ',' : 0);
		if (!is_range || ranges[i].start_s <= last || ranges[i].end_s <= ranges[i].start_s)
			return tally_error_set(
				err, -EINVAL,
				"-D: '%s' is neither milliseconds nor ascending ranges "
				"(10-20,30-40)",
				value);
		last = ranges[i].end_s;
		at++;
	}
	record->ranges = ranges;
	record->range_count = count;
	record->delay_s = ranges[0].start_s;
	return 0;
}

/* Takes "250", "-1", or ranges "10-20,30-40". */
static int take_delay(void *taker, const struct tally_option *option, const char *value,
		      struct tally_error *err)
{
	struct record_request *request = taker;
	struct tally_recorder_options *record = &request->record;
	unsigned long long number = 0;
	(void)option;
	record->starts_off = !strcmp(value, "-1");
	record->delay_s = 0;
	record->range_count = 0;
	if (record->starts_off)
		return 0;
	if (strchr(value, '-') || strchr(value, ','))
		return parse_ranges(value, request, err);
	int result = tally_option_u64("-D", value, 0, 1000000000, &number, err);
	record->delay_s = (double)number / 1000;
	return result;
}

static int take_max_size(void *taker, const struct tally_option *option, const char *value,
			 struct tally_error *err)
{
	struct record_request *request = taker;
	int result = tally_option_store(request, option, value, err);
	if (!result && !request->record.max_bytes)
		return tally_error_set(err, -EINVAL, "--max-size 0 leaves no room for a recording");
	return result;
}

/* Takes "signal", a number of bytes with B, K, M or G, or a time with s, m, h, d or ms. As in perf,
 * M means bytes and m minutes. */
static int take_switch(void *taker, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	struct tally_recorder_rotation *when = &((struct record_request *)taker)->record.next_file;
	char *end;
	(void)option;
	if (!value || !strcmp(value, "signal"))
		return 0;
	double number = strtod(value, &end);
	static const struct {
		const char *unit;
		double bytes, seconds;
	} units[] = {
		{ "B", 1, 0 },       { "K", 1 << 10, 0 }, { "M", 1 << 20, 0 },
		{ "G", 1 << 30, 0 }, { "ms", 0, 1e-3 },   { "s", 0, 1 },
		{ "m", 0, 60 },      { "h", 0, 3600 },    { "d", 0, 86400 },
	};
	for (size_t i = 0; end > value && i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) != 0 || !(number > 0) || number > 1e9)
			continue;
		when->bytes = (uint64_t)(number * units[i].bytes);
		when->seconds = number * units[i].seconds;
		if (!when->bytes && when->seconds < 0.01)
			return tally_error_set(err, -EINVAL, "--switch-output: '%s' is too small",
					       value);
		return 0;
	}
	return tally_error_set(
		err, -EINVAL,
		"--switch-output: '%s' is none of signal, SIZE (500K, 10M, 2G), TIME (30s, 5m, 1h)",
		value);
}

int record_take_ring(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	struct tally_recorder_options *record = &((struct record_request *)taker)->record;
	unsigned long long bytes;
	(void)option;
	int result = tally_option_size("-m", value, &bytes, err);
	if (result < 0)
		return result;
	bool is_pages = !strpbrk(value, "KMGTkmgtBb");
	if (is_pages)
		bytes *= (unsigned long long)sysconf(_SC_PAGESIZE);
	record->ring_bytes = (size_t)bytes;
	if (!record->ring_bytes || record->ring_bytes > (size_t)1 << 31)
		return tally_error_set(err, -EINVAL, "-m: a ring has between one page and 2 GiB");
	return 0;
}

static int take_compression(void *taker, const struct tally_option *option, const char *value,
			    struct tally_error *err)
{
	struct record_request *request = taker;
	request->record.compression_level = 1;
	if (!value)
		return 0;
	return tally_option_store(request, option, value, err);
}

static int take_clock(void *taker, const struct tally_option *option, const char *value,
		      struct tally_error *err)
{
	(void)taker, (void)option;
	if (!strcasecmp(value, "mono") || !strcasecmp(value, "monotonic") ||
	    !strcasecmp(value, "CLOCK_MONOTONIC") || !strcmp(value, "1"))
		return 0;
	return tally_error_set(
		err, -EINVAL,
		"-k %s: tally always records CLOCK_MONOTONIC, which JITs' dumps use as well",
		value);
}

/* --- what is recorded of a sample ----------------------------------------- */

int record_take_call_graph(void *taker, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	struct tally_recorder_options *record = &((struct record_request *)taker)->record;
	unsigned long long bytes;
	(void)option;
	if (!strcmp(value, "fp")) {
		record->call_graph = TALLY_CALL_GRAPH_FP;
	} else if (!strcmp(value, "lbr")) {
		record->call_graph = TALLY_CALL_GRAPH_LBR;
	} else if (!strcmp(value, "none") || !strcmp(value, "no")) {
		record->call_graph = TALLY_CALL_GRAPH_NONE;
	} else if (!strncmp(value, "dwarf", 5) && (!value[5] || value[5] == ',')) {
		record->call_graph = TALLY_CALL_GRAPH_STACK;
		if (value[5]) {
			int result = tally_option_size("--call-graph dwarf", value + 6, &bytes,
						       err);
			if (result < 0)
				return result;
			if (bytes < 256 || bytes > 64512)
				return tally_error_set(
					err, -EINVAL,
					"--call-graph dwarf: a stack copy has 256 to 64512 bytes, "
					"not %llu",
					bytes);
			record->stack_bytes = (uint32_t)bytes;
		}
	} else {
		return tally_error_set(
			err, -EINVAL,
			"--call-graph: '%s' is none of fp, dwarf, dwarf,SIZE, lbr, none", value);
	}
	return 0;
}

static int take_default_graph(void *taker, const struct tally_option *option, const char *value,
			      struct tally_error *err)
{
	struct record_request *request = taker;
	(void)option, (void)value, (void)err;
	if (request->record.call_graph == TALLY_CALL_GRAPH_NONE)
		request->record.call_graph = TALLY_CALL_GRAPH_AUTO;
	return 0;
}

static int take_branches(void *taker, const struct tally_option *option, const char *value,
			 struct tally_error *err)
{
	static const struct {
		const char *name;
		uint64_t bit;
	} names[] = {
		{ "u", TALLY_BRANCH_USER },
		{ "k", TALLY_BRANCH_KERNEL },
		{ "hv", TALLY_BRANCH_HV },
		{ "any", TALLY_BRANCH_ANY },
		{ "any_call", TALLY_BRANCH_ANY_CALL },
		{ "any_ret", TALLY_BRANCH_ANY_RETURN },
		{ "ind_call", TALLY_BRANCH_IND_CALL },
		{ "abort_tx", TALLY_BRANCH_ABORT_TX },
		{ "in_tx", TALLY_BRANCH_IN_TX },
		{ "no_tx", TALLY_BRANCH_NO_TX },
		{ "cond", TALLY_BRANCH_COND },
		{ "ind_jmp", TALLY_BRANCH_IND_JUMP },
		{ "call", TALLY_BRANCH_CALL },
		{ "stack", TALLY_BRANCH_CALL_STACK },
		{ "save_type", TALLY_BRANCH_TYPE_SAVE },
		{ "hw_index", TALLY_BRANCH_HW_INDEX },
		{ "priv", TALLY_BRANCH_PRIV_SAVE },
	};
	const uint64_t whose = TALLY_BRANCH_USER | TALLY_BRANCH_KERNEL | TALLY_BRANCH_HV;
	struct record_request *request = taker;
	uint64_t bits = 0;
	(void)option;
	for (const char *word = value; *word;
	     word += strcspn(word, ",") + (word[strcspn(word, ",")] == ',')) {
		size_t length = strcspn(word, ","), i = 0, count = sizeof(names) / sizeof(names[0]);
		while (i < count && (strlen(names[i].name) != length ||
				     memcmp(names[i].name, word, length) != 0))
			i++;
		if (i == count)
			return tally_error_set(
				err, -EINVAL,
				"-j: unknown kind of branch '%.*s'; use any, any_call, any_ret, "
				"ind_call, ind_jmp, cond, call, abort_tx, in_tx, no_tx, stack, "
				"save_type, hw_index, priv, and u, k, hv",
				(int)length, word);
		bits |= names[i].bit;
	}
	if (!(bits & ~whose))
		bits |= TALLY_BRANCH_ANY;
	request->record.branches |= bits;
	return 0;
}

/* Takes names of registers, separated by commas; NULL: all. */
static int take_registers(void *taker, const struct tally_option *option, const char *value,
			  struct tally_error *err)
{
	const char *shown = option->letter ? "-I" : "--user-regs";
	uint64_t *mask = tally_option_member(taker, option);
	enum tally_arch host = tally_arch_host();
	uint64_t all = tally_unwind_regs_mask(TALLY_UNWIND_HOST);
	char names[512] = "";
	for (unsigned bit = 0; bit < 64; bit++)
		if (all >> bit & 1)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s",
				 tally_arch_register(host, bit));
	if (!all)
		return tally_error_set(err, -ENOTSUP, "%s: registers of this machine are not known",
				       shown);
	for (const char *word = value; word && *word;
	     word += strcspn(word, ","), word += *word == ',') {
		size_t length = strcspn(word, ",");
		unsigned bit = 0;
		while (bit < 64 &&
		       (!(all >> bit & 1) || strlen(tally_arch_register(host, bit)) != length ||
			strncasecmp(tally_arch_register(host, bit), word, length) != 0))
			bit++;
		if (bit == 64)
			return tally_error_set(err, -EINVAL, "%s: '%.*s' is none of%s", shown,
					       (int)length, word, names);
		*mask |= (uint64_t)1 << bit;
	}
	if (!value || !*value)
		*mask = all;
	return 0;
}

/* --- the table ------------------------------------------------------------ */

const struct tally_option record_options[] = {
	RECORD_EVENT_OPTION,
	{ 'F', "freq", TALLY_ARGUMENT_REQUIRED, "HZ",
	  "samples per second (999); max: the kernel's limit", TALLY_TAKE(take_rate) },
	RECORD_PERIOD_OPTION,
	{ 'g', NULL, TALLY_ARGUMENT_NONE, NULL, "record call graphs (the default)",
	  TALLY_TAKE(take_default_graph) },
	{ 0, "call-graph", TALLY_ARGUMENT_REQUIRED, "fp|dwarf[,SIZE]|lbr|none",
	  "unwind copies of the stack (dwarf, the default; SIZE bytes, otherwise\n"
	  "as many as needed), follow frame pointers (fp), or use the CPU's\nbranch records (lbr)",
	  TALLY_TAKE(record_take_call_graph) },
	{ 0, "no-call-graph", TALLY_ARGUMENT_NONE, NULL, "record only addresses",
	  TALLY_CONSTANT(struct record_request, record.call_graph, TALLY_CALL_GRAPH_NONE) },
	{ 0, "max-stack", TALLY_ARGUMENT_REQUIRED, "N",
	  "keep the innermost N frames of a call graph; with frame pointers at most\n"
	  "sysctl kernel.perf_event_max_stack (127)",
	  TALLY_FRAMES(struct record_request, record.max_stack) },
	{ 0, "keep-stacks", TALLY_ARGUMENT_NONE, NULL,
	  "keep the stack copies in the file and unwind when reading",
	  TALLY_SET(struct record_request, record.keep_stacks) },
	{ 0, "filter", TALLY_ARGUMENT_REQUIRED, "EXPR",
	  "filter the hits of the last -e's tracepoints by their fields:\n"
	  "'prev_pid != 0 && next_comm ~ \"xz*\"'",
	  TALLY_TAKE(take_filter) },
	{ 0, "exclude-perf", TALLY_ARGUMENT_NONE, NULL,
	  "leave out hits of the last -e's tracepoints that tally causes",
	  TALLY_TAKE(take_exclude_perf) },
	{ 0, "kernel-callchains", TALLY_ARGUMENT_NONE, NULL,
	  "only the kernel's part of call graphs",
	  TALLY_BITS(struct record_request, record.exclude_chain,
		     TALLY_ATTR_EXCLUDE_CALLCHAIN_USER) },
	{ 0, "user-callchains", TALLY_ARGUMENT_NONE, NULL, "only the program's part of call graphs",
	  TALLY_BITS(struct record_request, record.exclude_chain,
		     TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL) },
	{ 0, "all-user", TALLY_ARGUMENT_NONE, NULL, "all events only in user mode",
	  TALLY_BITS(struct record_request, record.exclude, TALLY_ATTR_EXCLUDE_KERNEL) },
	{ 0, "all-kernel", TALLY_ARGUMENT_NONE, NULL, "all events only in the kernel",
	  TALLY_BITS(struct record_request, record.exclude, TALLY_ATTR_EXCLUDE_USER) },
	RECORD_TASK_OPTIONS("record "),
	RECORD_INHERIT_OPTION,
	{ 0, "per-thread", TALLY_ARGUMENT_NONE, NULL,
	  "a ring for each thread instead of each CPU; leaves out new children\nand threads",
	  TALLY_SET(struct record_request, record.per_thread),
	  TALLY_ALSO(struct record_request, record.no_inherit) },
	{ 'a', "all-cpus", TALLY_ARGUMENT_NONE, NULL, "record the whole system",
	  TALLY_SET(struct record_request, target.all) },
	RECORD_CPU_OPTION("record "),
	{ 'G', "cgroup", TALLY_ARGUMENT_REQUIRED, "NAMES",
	  "sample the events of the -e before only in these cgroups: one for all\n"
	  "events, or one for each; needs -a",
	  TALLY_TAKE(take_cgroups) },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write to FILE (tally.data); - is standard output, a pipe",
	  TALLY_TEXT(struct record_request, output) },
	{ 'm', "mmap-pages", TALLY_ARGUMENT_REQUIRED, "SIZE",
	  "ring size per CPU: bytes with K, M or G, otherwise pages",
	  TALLY_TAKE(record_take_ring) },
	{ 'D', "delay", TALLY_ARGUMENT_REQUIRED, "MS|RANGES",
	  "start sampling after MS milliseconds; -1: when --control enables it;\n"
	  "10-20,30-40: only in these ranges",
	  TALLY_TAKE(take_delay) },
	{ 0, "duration", TALLY_ARGUMENT_REQUIRED, "TIME",
	  "stop after TIME: 5, 500ms, 2m; a command gets SIGTERM",
	  TALLY_DURATION(struct record_request, record.duration_s) },
	{ 0, "control", TALLY_ARGUMENT_REQUIRED, "fifo:CTL[,ACK]|fd:CTL[,ACK]",
	  "read commands from this FIFO or descriptor: enable, disable,\nsnapshot, stop, ping",
	  TALLY_TEXT(struct record_request, control) },
	{ 0, "overwrite", TALLY_ARGUMENT_NONE, NULL,
	  "flight recorder: keep only what the rings hold; SIGUSR2 writes it to\n"
	  "a separate file, the end of the recording to the output",
	  TALLY_SET(struct record_request, record.overwrite) },
	{ 0, "switch-output", TALLY_ARGUMENT_OPTIONAL, "signal|SIZE|TIME",
	  "start a new file at SIGUSR2, after SIZE (100M) or TIME (30s);\n"
	  "names end in the time",
	  TALLY_TAKE(take_switch), TALLY_ALSO(struct record_request, record.next_file.is_wanted) },
	{ 0, "switch-output-event", TALLY_ARGUMENT_REQUIRED, "EVENT",
	  "start a new file, or dump the flight recorder, when EVENT occurs",
	  TALLY_TEXT(struct record_request, switch_event),
	  TALLY_ALSO(struct record_request, record.next_file.is_wanted) },
	{ 0, "switch-max-files", TALLY_ARGUMENT_REQUIRED, "N", "keep the last N of these files",
	  TALLY_NUMBER(struct record_request, max_files, 1, 1000000) },
	{ 0, "timestamp-filename", TALLY_ARGUMENT_NONE, NULL,
	  "append the time to the output's name",
	  TALLY_SET(struct record_request, wants_time_in_name) },
	{ 0, "max-size", TALLY_ARGUMENT_REQUIRED, "SIZE",
	  "stop when the output reaches SIZE (500M)",
	  TALLY_SIZE(struct record_request, record.max_bytes), TALLY_TAKE(take_max_size) },
	{ 'd', "data", TALLY_ARGUMENT_NONE, NULL, "record data addresses, and mappings of data",
	  TALLY_BITS(struct record_request, record.sample_type,
		     TALLY_SAMPLE_ADDR | TALLY_SAMPLE_DATA_SRC) },
	{ 0, "phys-data", TALLY_ARGUMENT_NONE, NULL, "record physical data addresses",
	  TALLY_BITS(struct record_request, record.sample_type, TALLY_SAMPLE_PHYS_ADDR) },
	{ 0, "data-page-size", TALLY_ARGUMENT_NONE, NULL, "record the page sizes of data addresses",
	  TALLY_BITS(struct record_request, record.sample_type, TALLY_SAMPLE_DATA_PAGE_SIZE) },
	{ 0, "code-page-size", TALLY_ARGUMENT_NONE, NULL, "record the page sizes of code addresses",
	  TALLY_BITS(struct record_request, record.sample_type, TALLY_SAMPLE_CODE_PAGE_SIZE) },
	{ 'W', "weight", TALLY_ARGUMENT_NONE, NULL,
	  "record the weight (cost) that the PMU measures",
	  TALLY_BITS(struct record_request, record.sample_type, TALLY_SAMPLE_WEIGHT_STRUCT) },
	{ 0, "transaction", TALLY_ARGUMENT_NONE, NULL, "record the flags of memory transactions",
	  TALLY_BITS(struct record_request, record.sample_type, TALLY_SAMPLE_TRANSACTION) },
	{ 'I', "intr-regs", TALLY_ARGUMENT_OPTIONAL, "NAMES",
	  "record the registers at the event (all, or -Iip,sp)",
	  TALLY_TAKE_MEMBER(take_registers, struct record_request, record.registers_intr) },
	{ 0, "user-regs", TALLY_ARGUMENT_OPTIONAL, "NAMES",
	  "record the program's registers; keeps stack copies, if there are any",
	  TALLY_TAKE_MEMBER(take_registers, struct record_request, record.registers_user),
	  TALLY_ALSO(struct record_request, record.keep_stacks) },
	{ 0, "running-time", TALLY_ARGUMENT_NONE, NULL, "record how long groups (:S) were counted",
	  TALLY_SET(struct record_request, record.running_time) },
	{ 'R', "raw-samples", TALLY_ARGUMENT_NONE, NULL, "record the raw bytes of all events",
	  TALLY_BITS(struct record_request, record.sample_type, TALLY_SAMPLE_RAW) },
	{ 'b', "branch-any", TALLY_ARGUMENT_NONE, NULL,
	  "record the branches taken before each sample",
	  TALLY_BITS(struct record_request, record.branches, TALLY_BRANCH_ANY) },
	{ 'j', "branch-filter", TALLY_ARGUMENT_REQUIRED, "KINDS",
	  "record branches of these kinds: any_call,u", TALLY_TAKE(take_branches) },
	{ 0, "off-cpu", TALLY_ARGUMENT_NONE, NULL,
	  "record where and how long tasks wait, as the event " TALLY_OFF_CPU_NAME
	  ",\nand their wakers, if tracepoints are allowed",
	  TALLY_BITS(struct record_request, record.side_band, TALLY_ATTR_CONTEXT_SWITCH),
	  TALLY_ALSO(struct record_request, off_cpu) },
	{ 0, "no-wakers", TALLY_ARGUMENT_NONE, NULL, "--off-cpu without wakers",
	  TALLY_SET(struct record_request, no_wakers) },
	{ 0, "switch-events", TALLY_ARGUMENT_NONE, NULL, "record context switches",
	  TALLY_BITS(struct record_request, record.side_band, TALLY_ATTR_CONTEXT_SWITCH) },
	{ 0, "namespaces", TALLY_ARGUMENT_NONE, NULL, "record the tasks' namespaces",
	  TALLY_BITS(struct record_request, record.side_band, TALLY_ATTR_NAMESPACES) },
	{ 0, "all-cgroups", TALLY_ARGUMENT_NONE, NULL, "record cgroups, and each sample's cgroup",
	  TALLY_BITS(struct record_request, record.sample_type, TALLY_SAMPLE_CGROUP) },
	{ 0, "no-bpf-event", TALLY_ARGUMENT_NONE, NULL,
	  "don't record loads and unloads of BPF programs",
	  TALLY_SET(struct record_request, record.no_bpf_events) },
	{ 'z', "compression-level", TALLY_ARGUMENT_OPTIONAL, "LEVEL",
	  "zstd level, 1 to 22 (1); 0: uncompressed",
	  "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22",
	  TALLY_NUMBER(struct record_request, record.compression_level, 0, 22),
	  TALLY_TAKE(take_compression) },
	{ 0, "no-pack", TALLY_ARGUMENT_NONE, NULL,
	  "don't add names: reports then need the programs\n(tally pack adds names)",
	  TALLY_SET(struct record_request, no_pack) },
	{ 'r', "realtime", TALLY_ARGUMENT_REQUIRED, "N",
	  "the recorder's SCHED_FIFO priority, 1 to 99 (1 if permitted,\notherwise SCHED_OTHER)",
	  TALLY_NUMBER(struct record_request, realtime, 1, 99) },
	{ 'k', "clockid", TALLY_ARGUMENT_REQUIRED, "mono", NULL, TALLY_TAKE(take_clock) },
	{ 0, "dry-run", TALLY_ARGUMENT_NONE, NULL, "only check the options",
	  TALLY_SET(struct record_request, is_dry_run) },
	{ 0, "force", TALLY_ARGUMENT_NONE, NULL, "replace -o's file even if it is no recording",
	  TALLY_SET(struct record_request, forces) },
	{ 'q', "quiet", TALLY_ARGUMENT_NONE, NULL, "print only errors and losses",
	  TALLY_SET(struct record_request, quiet) },
	TALLY_PROVIDER_OPTION(struct record_request, provider_name),
	TALLY_SIMULATED_OPTIONS(struct record_request, simulated),
	{ 'v', "verbose", TALLY_ARGUMENT_NONE, NULL,
	  "also what is usual on this machine, and details",
	  TALLY_SET(struct record_request, is_verbose) },
	TALLY_OPTIONS_END,
};

/* perf's -z: LEVEL is optional. */
/* Rows of `perf record` that differ from those above, which follow. */
const struct tally_option record_perf_options[] = {
	{ 'F', "freq", TALLY_ARGUMENT_REQUIRED, "HZ",
	  "samples per second (4000); max: the kernel's limit", TALLY_TAKE(take_rate) },
	{ 'g', NULL, TALLY_ARGUMENT_NONE, NULL, "record call graphs",
	  TALLY_TAKE(take_default_graph) },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write to FILE (perf.data); - is standard output, a pipe",
	  TALLY_TEXT(struct record_request, output) },
	{ 'z', "compression-level", TALLY_ARGUMENT_OPTIONAL, "LEVEL",
	  "compress by zstd, level 1 to 22 (1)",
	  TALLY_NUMBER(struct record_request, record.compression_level, 0, 22),
	  TALLY_TAKE(take_compression) },
	{ 0, "strict-freq", TALLY_ARGUMENT_NONE, NULL, "refuse a rate above the kernel's limit",
	  TALLY_SET(struct record_request, is_strict) },
	/* tally tunes these itself */
	{ 0, "affinity", TALLY_ARGUMENT_REQUIRED, "NODE|CPU", NULL, TALLY_IGNORED },
	{ 0, "aio", TALLY_ARGUMENT_OPTIONAL, "N", NULL, TALLY_IGNORED },
	{ 0, "buildid-mmap", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 0, "debuginfod", TALLY_ARGUMENT_OPTIONAL, "URLS", NULL, TALLY_IGNORED },
	{ 0, "threads", TALLY_ARGUMENT_OPTIONAL, "SPEC", NULL, TALLY_IGNORED },
	{ .included = record_options },
	TALLY_OPTIONS_END,
};

/* --- options that exclude each other -------------------------------------- */

/* The kernel limits the rate.  A provider's own maximum is only the meaning of -F max. */
static int check_rate(struct record_request *request, struct tally_error *err)
{
	int own = (int)request->provider_ops->max_rate_hz, allowed = own;
	struct tally_recorder_options *record = &request->record;
	if (own && !request->wants_max_rate)
		return 0;
	if (!own)
		allowed = tally_sysctl_read("kernel/perf_event_max_sample_rate");
	if (allowed <= 0)
		return 0;
	if (request->wants_max_rate || (!record->rate_given && allowed < (int)record->frequency))
		record->frequency = allowed;
	if (request->is_perf && request->wants_max_rate && !request->quiet)
		fprintf(stderr, "info: Using a maximum frequency rate of %d Hz\n", allowed);
	if (!record->rate_given || record->frequency <= allowed)
		return 0;
	if (request->is_perf && !request->is_strict) {
		fprintf(stderr,
			"warning: Maximum frequency rate (%d Hz) exceeded, throttling from %.0f Hz "
			"to %d Hz.\n"
			"         The limit can be raised via "
			"/proc/sys/kernel/perf_event_max_sample_rate.\n"
			"         The kernel will lower it when perf's interrupts take too long.\n"
			"         Use --strict-freq to disable this throttling, refusing to record.\n",
			allowed, record->frequency, allowed);
		record->frequency = allowed;
		return 0;
	}
	return tally_error_set(err, -EINVAL,
			       "-F %.0f: the kernel allows %d samples a second at most "
			       "(sysctl kernel.perf_event_max_sample_rate)",
			       record->frequency, allowed);
}

/* Returns an option that was given and that needs samples by the kernel, or NULL. */
static const char *sample_option(const struct record_request *request)
{
	const struct tally_recorder_options *record = &request->record;
	const struct {
		bool is_given;
		const char *name;
	} options[] = {
		{ request->off_cpu, "--off-cpu" },
		{ record->overwrite, "--overwrite" },
		{ record->branches, "a branch stack (-b, -j, --call-graph lbr)" },
		{ record->registers_intr || record->registers_user, "sampling registers" },
		{ record->sample_type, "data in samples (-d, -W, …)" },
		{ record->per_thread, "--per-thread" },
		{ request->switch_event, "--switch-output-event" },
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].is_given)
			return options[i].name;
	return NULL;
}

/* The same, also of options for the kernel's code. */
static const char *kernel_option(const struct record_request *request)
{
	const struct tally_recorder_options *record = &request->record;
	if (record->exclude & TALLY_ATTR_EXCLUDE_USER)
		return "--all-kernel";
	if (record->exclude_chain & TALLY_ATTR_EXCLUDE_CALLCHAIN_USER)
		return "--kernel-callchains";
	return sample_option(request);
}

/* Returns a message if options exclude each other, or NULL. */
static const char *conflict(const struct record_request *request)
{
	const struct tally_recorder_options *record = &request->record;
	const struct tally_target *target = &request->target;
	const uint64_t no_mode = TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL;
	const uint64_t no_chain = TALLY_ATTR_EXCLUDE_CALLCHAIN_USER |
				  TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL;
	if (request->provider_ops->no_kernel_samples && sample_option(request))
		return request->provider_ops->no_kernel_samples;
	if (record->exclude_chain & TALLY_ATTR_EXCLUDE_CALLCHAIN_USER &&
	    !(request->provider_ops->capabilities & TALLY_PROVIDER_KERNEL_MODE))
		return "--kernel-callchains needs the kernel's perf events: other providers see no "
		       "kernel";
	if (request->off_cpu && record->exclude & TALLY_ATTR_EXCLUDE_KERNEL)
		return "--off-cpu and --all-user exclude each other: tasks leave a CPU in the "
		       "kernel";
	if (record->per_thread && (target->all || target->has_cpu_list))
		return "--per-thread excludes -a and -C: it records threads on any CPU";
	if (record->exclude_chain == no_chain)
		return "--kernel-callchains and --user-callchains leave nothing: use "
		       "--no-call-graph";
	if (record->starts_off && !request->control)
		return "-D -1 needs --control, which switches the events on";
	if (record->exclude == no_mode)
		return "--all-user and --all-kernel leave nothing to record";
	return NULL;
}

/* Completes the request: options that imply others. */
static void complete(struct record_request *request)
{
	struct tally_recorder_options *record = &request->record;
	request->wants_time_in_name |= record->next_file.is_wanted;
	if (record->sample_type & TALLY_SAMPLE_ADDR)
		record->side_band |= TALLY_ATTR_MMAP_DATA;
	if (record->sample_type & TALLY_SAMPLE_CGROUP)
		record->side_band |= TALLY_ATTR_CGROUP;
}

/* perf samples the whole system where nothing is named, and ignores -a beside -p. */
static void take_perfs_target(struct record_request *request)
{
	struct tally_target *target = &request->target;
	struct stat there;
	if (target->all && tally_target_has_tasks(target)) {
		fputs("Warning:\nPID/TID switch overriding SYSTEM\n", stderr);
		target->all = false;
	}
	if (!target->command && !target->has_cpu_list && !tally_target_has_tasks(target))
		target->all = true;
	if (!request->output && !fstat(STDOUT_FILENO, &there) && S_ISFIFO(there.st_mode))
		request->output = "-";
	if (!request->output)
		request->output = "perf.data";
}

int record_parse_arguments(const struct tally_command *command, int argc, char **argv,
			   struct record_request *request)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	const struct tally_target *target = &request->target;
	if (!tally_options_parse(&walk, request))
		return walk.status;
	if (walk.index < argc)
		request->target.command = argv + walk.index;
	if (request->is_perf)
		take_perfs_target(request);
	provider_choose(&request->choice, request->provider_name, TALLY_PROVIDER_SAMPLES, target,
			kernel_option(request));
	request->provider_ops = request->choice.ops;
	if (!request->provider_ops) /* choose_provider() refuses it */
		request->provider_ops = tally_provider_kernel()->ops;
	const char *message = simulated_conflict(&request->simulated, request->provider_ops);
	if (message)
		return tally_command_misuse(command, "%s", message);
	if (check_rate(request, &err) < 0)
		return tally_command_misused(command, &err);
	if (!target->command && !target->all && !target->has_cpu_list &&
	    !tally_target_has_tasks(target))
		return tally_command_misuse(
			command,
			"nothing to record: give a command, -p PID, or -a for the whole system");
	for (size_t i = 0; i < request->expression_count; i++)
		if (request->expressions[i].cgroups && !target->all && !target->has_cpu_list)
			return tally_command_misuse(
				command,
				"-G %s: cgroups are recorded CPU by CPU: add -a, or -C CPUS",
				request->expressions[i].cgroups);
	complete(request);
	message = conflict(request);
	if (message)
		return tally_command_misuse(command, "%s", message);
	if (provider_choice_check(&request->choice, &err) < 0) {
		tally_command_fail(command, &err);
		return err.code == -ENOEXEC ? TALLY_EXIT_NOT_EXECUTABLE : TALLY_EXIT_FAILURE;
	}
	return record_parse_events(command, request);
}
