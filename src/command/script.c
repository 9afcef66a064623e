/* The command `script`: prints records while it reads them, so its output does not grow in memory.
 * With --debuginfod, a first pass finds the objects whose names are worth fetching. */
#include "base/buffer.h"
#include "command/command.h"
#include "command/header_options.h"
#include "command/perf_mode.h"
#include "command/perf_python.h"
#include "output/output.h"
#include "output/output_text.h"
#include "perf/perf.h"
#include "profile/profile.h"
#include "view/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLUSH_BYTES = 1 << 18, FIELD_LISTS_MAX = 64 };

struct request {
	struct tally_view_options view;
	struct tally_header_request header;
	enum tally_script_layout layout;
	/* parsed later: the layout may be chosen after them */
	const char *field_lists[FIELD_LISTS_MAX];
	size_t field_list_count;
	struct tally_script_fields fields;
	struct tally_script_clock clock;
	unsigned shown;    /* bits of enum tally_script_events */
	uint64_t left_out; /* samples left out by --dso and --symbol */
	bool records, no_stacks, no_pager;
	bool is_perf; /* `perf script` */
	const char *script;        /* perf's -s, or NULL */
	char **script_arguments;
	bool lists_scripts;
	struct perf_python python;
};

static int take_field_list(void *taker, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	struct request *request = taker;
	(void)option;
	if (request->field_list_count == FIELD_LISTS_MAX)
		return tally_error_set(err, -EINVAL, "more than %d options -F", FIELD_LISTS_MAX);
	request->field_lists[request->field_list_count++] = value;
	return 0;
}

#define SHOW_OPTION(kind, bit, help) \
	{ \
		0, "show-" kind "-events", TALLY_ARGUMENT_NONE, NULL, help, \
			TALLY_BITS(struct request, shown, bit) \
	}

static const struct tally_option options[] = {
	{ TALLY_INCLUDE(tally_view_input_option, struct request, view) },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT", "only this event, by name or number",
	  TALLY_TEXT(struct request, view.filter.event) },
	{ TALLY_INCLUDE(tally_view_task_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_filter_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_leaf_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_name_options, struct request, view) },
	{ 0, "records", TALLY_ARGUMENT_NONE, NULL,
	  "every record with all its fields, not only samples",
	  TALLY_SET(struct request, records) },
	{ 'F', "fields", TALLY_ARGUMENT_REQUIRED, "LIST",
	  "fields to show: comm,tid,pid,time,cpu,event,period,misc,trace,\n"
	  "ip,sym,symoff,dso,srcline,addr,weight,\niregs, uregs, brstack, brstacksym …;\n"
	  "+FIELD,-FIELD change the defaults; sw:, trace:, hw: only for such events",
	  TALLY_TAKE(take_field_list) },
	{ 0, "ns", TALLY_ARGUMENT_NONE, NULL, "times to the nanosecond",
	  TALLY_SET(struct request, clock.nanoseconds) },
	{ 0, "reltime", TALLY_ARGUMENT_NONE, NULL,
	  "times since the first one shown; --time counts from the first sample",
	  TALLY_SET(struct request, clock.since_first),
	  TALLY_ALSO(struct request, view.filter.time_since_first) },
	{ 0, "deltatime", TALLY_ARGUMENT_NONE, NULL, "times since the previous line",
	  TALLY_SET(struct request, clock.since_last) },
	{ 'j', "json", TALLY_ARGUMENT_NONE, NULL, "samples as JSON Lines (docs/script-json.md)",
	  TALLY_CONSTANT(struct request, layout, TALLY_SCRIPT_JSON) },
	{ 0, "csv", TALLY_ARGUMENT_NONE, NULL, "samples as CSV",
	  TALLY_CONSTANT(struct request, layout, TALLY_SCRIPT_CSV) },
	SHOW_OPTION("task", TALLY_SCRIPT_TASK, "also names, forks and exits of tasks"),
	SHOW_OPTION("mmap", TALLY_SCRIPT_MMAP, "also mappings"),
	SHOW_OPTION("switch", TALLY_SCRIPT_SWITCH,
		    "also context switches (recorded with --switch-events)"),
	SHOW_OPTION("namespace", TALLY_SCRIPT_NAMESPACE, "also tasks' namespaces"),
	SHOW_OPTION("cgroup", TALLY_SCRIPT_CGROUP, "also cgroups by number"),
	SHOW_OPTION("bpf", TALLY_SCRIPT_BPF,
		    "also loads and unloads of BPF programs and other generated kernel code"),
	SHOW_OPTION("text-poke", TALLY_SCRIPT_TEXT_POKE, "also changes of the kernel's code"),
	SHOW_OPTION("lost", TALLY_SCRIPT_LOST, "also lost records"),
	SHOW_OPTION("round", TALLY_SCRIPT_ROUND, "also ends of the recorder's rounds"),
	{ TALLY_INCLUDE(tally_header_options, struct request, header) },
	{ 'G', "hide-call-graph", TALLY_ARGUMENT_NONE, NULL,
	  "only the sampled address of each stack", TALLY_SET(struct request, no_stacks) },
	{ TALLY_INCLUDE(tally_view_max_stack_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_no_demangle_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_no_inline_option, struct request, view) },
	{ 0, "stdio", TALLY_ARGUMENT_NONE, NULL, "no pager", TALLY_SET(struct request, no_pager) },
	/* perf's names */
	{ 'c', "comms", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_TEXT(struct request, view.filter.comms) },
	{ 0, "dsos", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_TEXT(struct request, view.filter.objects) },
	{ 'S', "symbols", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_TEXT(struct request, view.filter.symbols) },
	{ 'D', "dump-raw-trace", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_SET(struct request, records) },
	TALLY_OPTIONS_END,
};

/* Rows of `perf script` that differ from those above, which follow. */
static const struct tally_option perf_options[] = {
	{ 's', "script", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "run this Python script that was written for perf; arguments\nbehind are the script's",
	  TALLY_TEXT(struct request, script) },
	{ 'l', "list", TALLY_ARGUMENT_NONE, NULL, "list the scripts that came with perf",
	  TALLY_SET(struct request, lists_scripts) },
	{ 0, "show-kernel-path", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ .included = options },
	TALLY_OPTIONS_END,
};

static int flush(struct tally_buffer *out, FILE *file)
{
	bool is_gone = fwrite(tally_buffer_string(out), 1, out->length, file) != out->length;
	tally_buffer_clear(out);
	if (is_gone)
		return -1;
	return 0;
}

/* Writes metadata that a pipe has in its stream. */
static void put_feature(const struct tally_recording *recording, const struct tally_raw_record *raw,
			bool full, struct tally_buffer *out)
{
	uint64_t feature;
	if (raw->size < sizeof(struct tally_record_header) + sizeof(feature))
		return;
	memcpy(&feature, (const char *)raw->bytes + sizeof(struct tally_record_header),
	       sizeof(feature));
	if (feature < TALLY_FEATURE_MAX)
		tally_recording_header_feature(recording->data, (unsigned)feature, full, out);
}

static bool leaf_passes(struct tally_recording *recording, const struct tally_record *record,
			const struct tally_profile_filter *filter)
{
	const struct tally_sample *sample = &record->sample;
	const struct tally_space space = tally_space_of(record->header.misc, sample->pid);
	if (!filter->objects && !filter->symbols)
		return true;
	if (!(sample->type & TALLY_SAMPLE_IP))
		return false;
	struct tally_place place = tally_place_of(&recording->tasks, space.pid, space.kernel,
						  sample->ip);
	uint32_t function;
	if (filter->symbols)
		function = tally_names_source_function(&recording->names, &place);
	else
		function = tally_names_function(&recording->names, &place, NULL);
	return tally_function_passes(filter, &recording->names, function);
}

static int print_all(struct tally_recording *recording, struct request *request, bool terminal,
		     struct tally_error *err)
{
	struct tally_script *script = NULL;
	struct tally_script_json *json = NULL;
	struct tally_script_python *python = NULL;
	FILE *file = request->script ? request->python.samples : stdout;
	struct tally_buffer out = { 0 };
	struct tally_raw_record raw;
	struct tally_record record;
	struct tally_view_progress progress;
	int result;
	if (request->script)
		result = tally_script_python_new(recording, &python, err);
	else if (request->layout == TALLY_SCRIPT_TEXT)
		result = tally_script_new(recording, &request->fields, &script, err);
	else
		result = tally_script_json_new(recording, &request->fields, &json, err);
	if (result < 0)
		return result;
	if (json)
		tally_script_json_start(json, &out);
	else if (request->header.shown && !python)
		tally_command_header(recording, request->view.input, &request->header, &out);
	tally_view_progress_start(&progress);
	while ((result = tally_recording_next(recording, &raw, &record, err)) > 0) {
		if (!terminal)
			tally_view_progress_record(&progress, recording, &raw);
		if (request->header.shown && !json &&
		    record.header.type == TALLY_RECORD_HEADER_FEATURE)
			put_feature(recording, &raw, request->header.full, &out);
		if (request->records && request->is_perf)
			tally_perf_dump(recording, &raw, &record, request->view.input, &out);
		if (request->records && !request->is_perf)
			tally_record_dump(recording, &raw, &record, &out);
		else if (python && record.header.type != TALLY_RECORD_SAMPLE)
			continue;
		else if (record.header.type != TALLY_RECORD_SAMPLE)
			result = tally_script_event(recording, script, &raw, &record,
						    json ? 0 : request->shown, &out, err);
		else if (!leaf_passes(recording, &record, &request->view.filter))
			request->left_out++;
		else if (python)
			result = tally_script_python_sample(python, &raw, &record, &out, err);
		else if (json)
			result = tally_script_json_sample(json, &raw, &record, &out, err);
		else
			result = tally_script_sample(script, &raw, &record, &out, err);
		if (result >= 0 && out.failed)
			result = tally_error_set(err, -ENOMEM, "out of memory");
		if (result < 0 || (out.length >= FLUSH_BYTES && flush(&out, file) < 0))
			break; /* the reader has gone, which is not an error */
	}
	tally_view_progress_end(&progress);
	if (result <= 0)
		flush(&out, file);
	tally_script_free(script);
	tally_script_json_free(json);
	tally_script_python_free(python);
	tally_buffer_release(&out);
	if (result < 0)
		return result;
	return 0;
}

static int check_clock(const struct request *request, struct tally_error *err)
{
	if (request->clock.since_first && request->clock.since_last)
		return tally_error_set(
			err, -EINVAL,
			"--reltime and --deltatime exclude each other");
	if ((request->clock.since_first || request->clock.since_last) &&
	    (request->records || request->layout != TALLY_SCRIPT_TEXT))
		return tally_error_set(
			err, -EINVAL,
			"--%s is for text: %s the recording's clock in nanoseconds",
			request->clock.since_first ? "reltime" : "deltatime",
			request->records ? "--records has" : "-j and --csv have");
	return 0;
}

static int take_fields(struct request *request, struct tally_error *err)
{
	tally_script_fields_init(&request->fields, request->layout);
	request->fields.no_stacks = request->no_stacks;
	request->fields.clock = &request->clock;
	for (size_t i = 0; i < request->field_list_count; i++) {
		int result = tally_script_fields_parse(&request->fields, request->field_lists[i],
						       err);
		if (result)
			return result;
	}
	return 0;
}

/* Lines are printed while reading, so hot objects must be found in a pass before. */
static int fetch_names(struct tally_recording *recording, const struct request *request,
		       struct tally_error *err)
{
	struct tally_view_progress progress;
	const struct tally_profile_options samples = { .filter = request->view.filter,
						       .progress = tally_view_progress,
						       .context = &progress };
	tally_view_progress_start(&progress);
	int result = tally_recording_fetch_names(recording, &samples, err);
	tally_view_progress_end(&progress);
	return result;
}

/* The arguments of `perf script`: options, and behind them those of a script, or the name of one of
 * perf's scripts with its arguments.  Returns -1, or the exit status if the command ends here. */
static int take_perf_arguments(const struct tally_command *command, int argc, char **argv,
			       struct request *request)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	if (!tally_options_parse(&walk, request))
		return walk.status;
	if (request->lists_scripts)
		return perf_python_list();
	request->script_arguments = argv + walk.index;
	if (request->script || walk.index == argc)
		return -1;
	const char *part = argv[walk.index];
	bool is_part = !strcmp(part, "record") || !strcmp(part, "report");
	if (is_part && walk.index + 1 < argc)
		walk.index++;
	const char *name = argv[walk.index];
	if (!is_part && !perf_python_knows(name) && !access(name, R_OK)) {
		const char *suffix = strrchr(name, '.');
		if (!suffix || strcmp(suffix, ".py") != 0)
			return tally_command_misuse(command, "-i %s reads that recording", name);
		request->script = name; /* perf takes a script's file so, too */
		request->script_arguments++;
		return -1;
	}
	int status = perf_python_run(name, is_part ? part : "", argv + walk.index + 1, &err);
	if (status < 0)
		return tally_command_fail(command, &err);
	return status;
}

/* True for a word that is no file's name, as perf's scripts have them: "failed-syscalls". */
static bool is_of_script(const char *word)
{
	return !strpbrk(word, "./") && strcmp(word, "-") != 0 && access(word, F_OK) != 0;
}

static int refuse_script(const struct tally_command *command, const char *name)
{
	struct tally_error err = TALLY_ERROR_NONE;
	tally_error_set(&err, -EINVAL, "there is no recording '%s'", name);
	tally_error_hint(&err,
			 "if it is a script of perf's: 'tally perf script report %s -i tally.data' "
			 "runs it on a recording",
			 name);
	return tally_command_misused(command, &err);
}

/* Takes the options and a recording's name; refuses names of perf's scripts, which may follow "record"
 * or "report".  Returns -1, or an exit status. */
static int take_arguments(const struct tally_command *command, int argc, char **argv,
			  struct request *request)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	while (tally_options_parse(&walk, request) && walk.index < argc) {
		const char *word = argv[walk.index], *next = argv[walk.index + 1];
		bool is_verb = !strcmp(word, "record") || !strcmp(word, "report");
		if (!request->view.input && is_of_script(word))
			return refuse_script(command, is_verb && next ? next : word);
		if (!tally_options_take_file(&walk, &request->view.input, 1,
					     "one recording at a time: '%s' is too many"))
			break;
	}
	return walk.status;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { .is_perf = command == &tally_perf_script };
	struct tally_recording *recording;
	struct tally_pager pager;
	int status;
	if (request.is_perf)
		status = take_perf_arguments(command, argc, argv, &request);
	else
		status = take_arguments(command, argc, argv, &request);
	if (status >= 0)
		return status;
	if (check_clock(&request, &err) < 0 || take_fields(&request, &err) < 0)
		return tally_command_misused(command, &err);
	if (request.is_perf)
		request.view.input = tally_perf_input(request.view.input);
	tally_view_choose_input(command->name, &request.view);
	if (request.header.only)
		return tally_command_header_only(command, request.view.input, &request.header);
	request.view.real_paths = true;
	request.view.keep_groups = request.records;
	if (request.no_stacks)
		request.view.stacks = TALLY_VIEW_LEAVES;
	if (tally_view_open(&request.view, &recording, &err) < 0)
		return tally_command_fail(command, &err);
	int result = tally_recording_filter(recording, &request.view.filter, &err);
	if (!result)
		result = fetch_names(recording, &request, &err);
	if (!result && request.script)
		result = perf_python_start(&request.python, request.script,
					   request.script_arguments, &err);
	if (!result) {
		tally_pager_start(&pager, !request.no_pager && !request.script);
		result = print_all(recording, &request, pager.columns > 0, &err);
		tally_pager_finish(&pager);
	}
	status = perf_python_finish(&request.python);
	tally_view_warn(command->name, recording);
	if (!result && recording->counts.records &&
	    recording->counts.samples == recording->counts.filtered + request.left_out &&
	    !request.records && !request.shown) {
		tally_recording_is_empty(recording, request.left_out, &err);
		tally_say("tally script: warning: %s", err.message);
		if (err.hint[0])
			tally_say("hint: %s", err.hint);
	}
	/* Damage is a failure only if nothing could be printed. */
	if (!result && !recording->counts.records && tally_perfdata_damage(recording->data)) {
		result = tally_error_set(&err, -EBADMSG, "%s: no usable data", request.view.input);
		tally_error_hint(&err, "record again with tally record");
	}
	tally_recording_close(recording);
	if (result < 0)
		return tally_command_fail(command, &err);
	return status;
}

const struct tally_command tally_command_script = {
	.name = "script",
	.summary = "every sample of a recording, in perf script's layout",
	.usage = "[options] [FILE]",
	.details =
		"A sample is a line \"command tid [cpu] time: period event:\", its address or its "
		"call chain, and\n"
		"a tracepoint's text.  Addresses of user code are offsets in their file.\n\n"
		"  tally script | less\n"
		"  tally script --records | grep MMAP2\n"
		"  tally record -o - -e sched:sched_switch -a -- sleep 1 | tally script -",
	.options = options,
	.run = run,
};

const struct tally_command tally_perf_script = {
	.name = "perf script",
	.summary = "print each sample of a recording",
	.usage = "[options] [script [argument…]]",
	.details = "The options and texts are tally script's; it reads perf.data.  A script is one "
		   "that came with perf\n(-l lists them), or a Python file.",
	.options = perf_options,
	.run = run,
};
