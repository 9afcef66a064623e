#include "base/buffer.h"
#include "base/size_text.h"
#include "base/vector.h"
#include "command/annotate_perf_options.h"
#include "command/command.h"
#include "command/filter_options.h"
#include "command/name_options.h"
#include "command/output_file.h"
#include "command/recording_path.h"
#include "command/recording_warnings.h"
#include "output/annotate_view.h"
#include "output/pager.h"
#include "output/script_values.h"
#include "profile/idle.h"
#include "task/jit.h"

#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OPTION_ALL_HOT = 256,
	OPTION_NO_SOURCE,
	OPTION_NO_ASM,
	OPTION_PERCENT,
	OPTION_STDIO,
	OPTION_HTML,
	OPTION_EVENT,
	OPTION_DSO,
	OPTION_OBJECT,
	OPTION_SYMBOL,
	OPTION_PERCENT_TYPE,
	OPTION_MANGLED
};

static const struct tally_option options[] = {
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "the recording (tally.data, else perf.data; - is standard input)", NULL, 0 },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT",
	  "this event's samples (the first)", NULL, OPTION_EVENT },
	{ 0, "all-hot", TALLY_ARGUMENT_REQUIRED, "N",
	  "the N hottest functions, one after another", NULL, OPTION_ALL_HOT },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write to FILE: HTML if its name ends in .html, otherwise text;\n"
	  "- is standard output",
	  NULL, 0 },
	{ 0, "html", TALLY_ARGUMENT_NONE, NULL,
	  "write an HTML page, whatever the file's name (annotate.html)", NULL, OPTION_HTML },
	{ 'j', "json", TALLY_ARGUMENT_NONE, NULL, "JSON (docs/annotate-json.md)", NULL, 0 },
	{ 0, "stdio", TALLY_ARGUMENT_NONE, NULL, "text without a pager", NULL, OPTION_STDIO },
	{ 's', "source", TALLY_ARGUMENT_NONE, NULL,
	  "source lines between the instructions (the default)", NULL, 0 },
	{ 0, "no-source", TALLY_ARGUMENT_NONE, NULL, "only instructions", NULL, OPTION_NO_SOURCE },
	{ 0, "no-asm", TALLY_ARGUMENT_NONE, NULL, "only source lines, each with its share", NULL,
	  OPTION_NO_ASM },
	{ 'l', "print-line", TALLY_ARGUMENT_NONE, NULL, "source lines with their file and number",
	  NULL, 0 },
	{ 'n', "samples", TALLY_ARGUMENT_NONE, NULL, "samples beside the percentages", NULL, 0 },
	{ 'M', "syntax", TALLY_ARGUMENT_REQUIRED, "SYNTAX",
	  "syntax of x86 instructions: att or intel (att)", "att intel", 0 },
	{ 0, "percent-limit", TALLY_ARGUMENT_REQUIRED, "PERCENT",
	  "instructions with at least that share, and those near them (0: all)", NULL,
	  OPTION_PERCENT },
	{ 0, "object", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "the function of this program or library, if several have that name", NULL,
	  OPTION_OBJECT },
	{ 0, "dso", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples in these programs and libraries",
	  NULL, OPTION_DSO },
	OLD_FILTER_TASK_OPTIONS("pid", "tid"),
	OLD_FILTER_OPTIONS,
	OLD_NAME_OPTIONS,
	OLD_IDLE_OPTION,
	OLD_FULL_NAMES_OPTION,
	{ 0, "no-demangle", TALLY_ARGUMENT_NONE, NULL, "mangled names, as in the file", NULL,
	  OPTION_MANGLED },
	/* perf's names */
	{ 'd', "dsos", TALLY_ARGUMENT_REQUIRED, "LIST", NULL, NULL, OPTION_DSO },
	{ 0, "symbol", TALLY_ARGUMENT_REQUIRED, "FUNCTION", NULL, NULL, OPTION_SYMBOL },
	{ 0, "disassembler-style", TALLY_ARGUMENT_REQUIRED, "SYNTAX", NULL, NULL, 'M' },
	{ 0, "show-nr-samples", TALLY_ARGUMENT_NONE, NULL, NULL, NULL, 'n' },
	{ 0, "stdio2", TALLY_ARGUMENT_NONE, NULL, NULL, NULL, OPTION_STDIO },
	{ 0, "percent-type", TALLY_ARGUMENT_REQUIRED, "local-period", NULL, NULL,
	  OPTION_PERCENT_TYPE },
#define ROW(id_, letter_, name_, kind_, argument_, instead_) \
	{ letter_, name_, TALLY_ARGUMENT_##kind_, argument_, NULL, NULL, ANNOTATE_PERF_##id_ },
	ANNOTATE_PERF_OPTIONS(ROW)
#undef ROW
		TALLY_OPTIONS_END,
};

struct request {
	const char *input, *output, *event;
	struct tally_function_choice choice;
	struct tally_profile_filter filter;
	struct tally_name_sources names;
	struct tally_annotation_options making;
	struct tally_annotate_view view;
	size_t functions; /* how many are shown; 0: one, or all of the name but of "[object]" */
	bool html, json, no_pager, mangled, shows_idle;
};

/* ---- options ------------------------------------------------------------- */

static int take_syntax(const char *value, bool *is_intel, struct tally_error *err)
{
	*is_intel = !strcmp(value, "intel");
	if (*is_intel || !strcmp(value, "att"))
		return 0;
	return tally_error_set(err, -EINVAL, "option -M: '%s' is neither att nor intel", value);
}

static int take_percent_type(const char *value, struct tally_error *err)
{
	if (!strcmp(value, "local-period"))
		return 0;
	return tally_error_set(
		err, -EINVAL,
		"option --percent-type: percentages are of the function's period (local-period), not "
		"'%s'; -j has samples and periods",
		value);
}

static int take_option(struct request *request, int id, const char *value, struct tally_error *err)
{
	unsigned long long number = 0;
	int result = 0;
	switch (id) {
	case 'i': request->input = value; break;
	case 'o': request->output = value; break;
	case 'j': request->json = true; break;
	case 's': request->view.with_source = true; break;
	case 'l': request->view.with_numbers = true; break;
	case 'n': request->view.with_samples = true; break;
	case 'M': return take_syntax(value, &request->making.is_intel, err);
	case OPTION_EVENT: request->event = request->filter.event = value; break;
	case OPTION_NO_SOURCE: request->view.with_source = false; break;
	case OPTION_NO_ASM: request->making.no_code = true; break;
	case OPTION_STDIO: request->no_pager = true; break;
	case OPTION_HTML: request->html = true; break;
	case OPTION_MANGLED: request->mangled = true; break;
	case OPTION_OBJECT: request->choice.object = value; break;
	case TALLY_OPTION_IDLE: request->shows_idle = true; break;
	case OPTION_DSO: request->filter.objects = value; break;
	case OPTION_SYMBOL: request->choice.name = value; break;
	case OPTION_PERCENT_TYPE: return take_percent_type(value, err);
	case OPTION_PERCENT:
		return tally_option_percent("--percent-limit", value, &request->view.percent_min,
					    err);
	case OPTION_ALL_HOT:
		result = tally_option_u64("--all-hot", value, 1, 1000, &number, err);
		request->functions = (size_t)number;
		return result;
	default:
		result = annotate_take_perf_option(id, err);
		if (!result)
			result = tally_name_option(id, value, &request->names, err);
		return result ? result : tally_filter_option(id, value, &request->filter, err);
	}
	return 0;
}

/* ---- showing ------------------------------------------------------------- */

struct annotations {
	struct tally_annotation *items;
	size_t count, capacity;
};

static void say_idle(const struct tally_command *command, const struct tally_profile *profile,
		     uint32_t event)
{
	const struct tally_left_out idle = tally_profile_idle(profile, event);
	uint64_t samples, period;
	tally_profile_totals(profile, event, &samples, &period);
	tally_command_say_idle(command, NULL, &idle, period);
}

static int make_all(const struct tally_command *command, struct tally_profile *profile,
		    const struct request *request, struct annotations *out, struct tally_error *err)
{
	struct tally_hot_functions hot = { 0 };
	uint32_t event;
	int result = tally_profile_event(profile, request->event, &event, err);
	if (!result)
		say_idle(command, profile, event);
	if (!result)
		result = tally_hot_functions_find(profile, event, &request->choice, &hot, err);
	/* "[object]" names hundreds of places without a symbol */
	bool is_one = !request->choice.name || request->choice.name[0] == '[';
	size_t wanted = request->functions ? request->functions : is_one ? 1 : hot.count;
	for (size_t i = 0; !result && i < hot.count && i < wanted; i++) {
		struct tally_annotation one;
		result = tally_annotation_make(profile, event, &hot.items[i], &request->making,
					       &one, err);
		if (!result && tally_vector_push(out, one) < 0)
			result = tally_error_set(err, -ENOMEM, "out of memory");
		if (result)
			tally_annotation_release(&one);
	}
	tally_vector_release(&hot);
	return result;
}

static int write_text(const struct annotations *all, const struct request *request,
		      struct tally_buffer *out)
{
	int result = 0;
	for (size_t i = 0; !result && i < all->count; i++) {
		if (i)
			tally_buffer_text(out, "\n\n");
		result = tally_annotate_text(&all->items[i], &request->view, out);
	}
	return result;
}

static int write_json(const struct annotations *all, const struct request *request,
		      struct tally_buffer *out)
{
	struct tally_json json = { .out = out };
	tally_json_object(&json, NULL);
	tally_json_u64(&json, "version", 1);
	tally_json_array(&json, "functions");
	for (size_t i = 0; i < all->count; i++)
		tally_annotate_json(&all->items[i], request->view.sources, &json);
	tally_json_end(&json);
	tally_json_end(&json);
	return out->failed ? -ENOMEM : 0;
}

/* A reader that closes standard output early is not an error. */
static int write_out(const char *path, const struct tally_buffer *text, struct tally_error *err)
{
	if (path && strcmp(path, "-") != 0)
		return tally_output_write(path, text, err);
	fwrite(tally_buffer_string(text), 1, text->length, stdout);
	return 0;
}

/* Returns the wall-clock time of the last sample in ns: from the recording, or its file's
 * modification time; 0: unknown. */
static int64_t recorded_until(const struct tally_recording *recording, const char *path)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct stat status;
	uint64_t offset_ns;
	if (recording->counts.last_time && !tally_script_wall_offset(recording, &offset_ns, &err))
		return (int64_t)(recording->counts.last_time + offset_ns);
	return strcmp(path, "-") && !stat(path, &status)
		       ? (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec
		       : 0;
}

static bool leaves_out_idle(const struct request *request)
{
	return !request->shows_idle && !request->choice.name &&
	       !tally_filter_means_idle(&request->filter);
}

static int read_profile(const struct request *request, bool leaves_only,
			struct tally_profile **profile, struct tally_error *err)
{
	struct tally_command_progress progress;
	struct tally_recording *recording;
	struct tally_profile_options samples = { .filter = request->filter,
						 .merge_threads = true,
						 .merge_cpus = true,
						 .leaves_out_idle = leaves_out_idle(request),
						 .progress = tally_command_progress,
						 .context = &progress };
	int result = tally_recording_open(tally_recording_path(request->input), &recording, err);
	if (result < 0)
		return result;
	tally_names_use_cache(&recording->names);
	tally_names_use_sources(&recording->names, &request->names);
	recording->names.keep_mangled = request->mangled;
	recording->leaves_only = leaves_only;
	if (recording->tasks.jits)
		recording->tasks.jits->wants_code = true;
	tally_command_progress_start(&progress);
	result = tally_profile_new(recording, &samples, profile, err);
	tally_command_progress_end(&progress);
	return result;
}

/* Explains why a function has no samples: they may be in functions that it calls. Only stacks show
 * that, so the recording is read again with them. */
static void tell_of_callees(const struct request *request, struct tally_error *err)
{
	struct tally_error ignored = TALLY_ERROR_NONE;
	struct tally_annotation_weight weight, total;
	struct tally_profile *profile;
	uint32_t event;
	if (!strcmp(tally_recording_path(request->input), "-") ||
	    read_profile(request, false, &profile, &ignored) < 0)
		return;
	if (!tally_profile_event(profile, request->event, &event, &ignored) &&
	    !tally_hot_functions_above(profile, event, &request->choice, &weight) &&
	    weight.samples) {
		tally_profile_totals(profile, event, &total.samples, &total.period);
		double share = total.period ? (double)weight.period / (double)total.period :
					      (double)weight.samples / (double)total.samples;
		tally_error_set(err, -ENOENT,
				"no samples are in '%s' itself; %.2f%% are in what it calls",
				request->choice.name, 100 * share);
		tally_error_hint(err, "'tally report -g' shows what that is");
	}
	tally_profile_free(profile);
}

static int show(const struct tally_command *command, struct request *request,
		struct tally_profile *profile)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct annotations all = { 0 };
	struct tally_buffer out = { 0 }, taken = { 0 };
	char size[TALLY_SIZE_TEXT];
	struct tally_pager pager = { 0 };
	struct tally_source_files sources = { .root = request->names.search.root };
	bool is_text = !request->html && !request->json;
	request->view.sources = &sources;
	tally_filter_text(&request->filter, &taken);
	request->view.taken = taken.length ? tally_buffer_string(&taken) : NULL;
	int result = make_all(command, profile, request, &all, &err);
	if (result == -ENOENT && request->choice.name)
		tell_of_callees(request, &err);
	if (!result && is_text && !request->output) {
		tally_pager_start(&pager, !request->no_pager);
		request->view.columns = pager.columns;
		request->view.colours = pager.colours;
	}
	request->view.recorded_ns = recorded_until(profile->recording,
						   tally_recording_path(request->input));
	request->view.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	if (!result &&
	    (request->html   ? tally_annotate_html(all.items, all.count, &request->view, &out)
	     : request->json ? write_json(&all, request, &out)
			     : write_text(&all, request, &out)) < 0)
		result = tally_error_set(&err, -ENOMEM, "out of memory");
	if (!result)
		result = write_out(request->output, &out, &err);
	tally_pager_finish(&pager);
	if (!result && request->output && strcmp(request->output, "-"))
		fprintf(stderr, "tally annotate: wrote %s (%s)%s\n", request->output,
			tally_size_text(out.length, size),
			request->html ? "; open it in a browser" : "");
	tally_command_warn(command, profile->recording);
	for (size_t i = 0; i < all.count; i++)
		tally_annotation_release(&all.items[i]);
	tally_vector_release(&all);
	tally_source_files_release(&sources);
	tally_buffer_release(&out);
	tally_buffer_release(&taken);
	return result < 0 ? tally_command_fail(command, &err) : TALLY_EXIT_OK;
}

static int read_and_show(const struct tally_command *command, struct request *request)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_profile *profile;
	if (read_profile(request, true, &profile, &err) < 0)
		return tally_command_fail(command, &err);
	int status = show(command, request, profile);
	tally_profile_free(profile);
	return status;
}

static const char *const endings[] = { ".html", ".htm", NULL };

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { .view = { .with_source = true } };
	int id;
	while ((id = tally_options_next(&walk)) != TALLY_OPTION_DONE ||
	       (!walk.dashes && walk.index < argc && !request.choice.name)) {
		if (id == TALLY_OPTION_DONE) { /* options may follow the function */
			request.choice.name = argv[walk.index++];
			continue;
		}
		if (id < 0)
			return id == TALLY_OPTION_HELP ? TALLY_EXIT_OK : TALLY_EXIT_USAGE;
		if (take_option(&request, id, walk.value, &err) < 0)
			return tally_command_misused(command, &err);
	}
	if (walk.index < argc && !request.choice.name)
		request.choice.name = argv[walk.index++];
	if (walk.index < argc)
		return tally_command_misuse(
			command, "one function at a time: '%s' is too many (-i names the recording)",
			argv[walk.index]);
	request.html |= tally_output_ends_in(request.output, endings) && !request.json;
	if (!request.html && !request.json && tally_output_is_other_kind(request.output, endings))
		return tally_command_misuse(
			command, "'%s': without --json the output is .html or text (.txt)",
			request.output);
	if (request.html && request.json)
		return tally_command_misuse(command, "either --html or --json, not both");
	if (request.html && !request.output && isatty(STDOUT_FILENO))
		request.output = "annotate.html";
	return read_and_show(command, &request);
}

const struct tally_command tally_command_annotate = {
	.name = "annotate",
	.summary = "a function's lines and instructions, with their shares of samples",
	.usage = "[options] [FUNCTION]",
	.details =
		"Without FUNCTION, the hottest one is shown.  If several functions have that name, all are shown, the hottest first.\n"
		"'[libz.so.1+0x4010]', report's name for code without a symbol, is valid as well; '[libz.so.1]' is the hottest there.\n"
		"Percentages are shares of the function's samples; the value after ± is the sampling error: in 95 of 100\n"
		"recordings the true share is within it.\n"
		"Jumps within the function are drawn at the left.  A clock's samples (cpu-clock, task-clock) point to the instruction\n"
		"that was next when the interrupt came: the time may belong to the one before.\n\n"
		"libLLVM disassembles (on Debian: libllvm14 or later); without it only source lines are shown.\n\n"
		"  tally record -- ./program && tally annotate\n"
		"  tally annotate -M intel --percent-limit 1 compress_block\n"
		"  tally annotate --all-hot 10 -o hot.html\n"
		"  tally annotate --no-asm -l main",
	.options = options,
	.run = run,
};
