/* The command `annotate`: chooses functions, has them annotated, and writes text, HTML or JSON.  It
 * reads a recording without its stacks.  If a named function has no samples, it reads the recording
 * again with stacks, to tell whether the functions that it calls have some. */
#include "command/annotate_command.h"

#include "annotate/annotate.h"
#include "base/buffer.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/vector.h"
#include "command/output_file.h"
#include "output/output.h"
#include "output/output_text.h"
#include "profile/profile.h"
#include "view/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
	struct tally_view_options view;
	const char *output;
	struct tally_function_choice choice;
	struct tally_annotation_options making;
	struct tally_annotate_view layout;
	/* number of functions to show; 0: all that the name fits, but only the hottest for
	 * "[object]" or without a name */
	size_t functions;
	const char *shared_sources; /* --source DIR; or NULL */
	bool html, json, no_pager;
};

/* ---- options ------------------------------------------------------------- */

static int take_syntax(void *taker, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	struct request *request = taker;
	bool is_intel = !strcmp(value, "intel");
	(void)option;
	request->making.is_intel = is_intel;
	if (is_intel || !strcmp(value, "att"))
		return 0;
	return tally_error_set(err, -EINVAL, "option -M: '%s' is neither att nor intel", value);
}

static int take_source(void *taker, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	struct request *request = taker;
	struct stat status;
	(void)option;
	request->layout.with_source = true;
	request->shared_sources = value;
	if (!value || (!stat(value, &status) && S_ISDIR(status.st_mode)))
		return 0;
	return tally_error_set(err, -ENOENT, "option --source: there is no folder '%s'", value);
}

static int take_percent_type(void *taker, const struct tally_option *option, const char *value,
			     struct tally_error *err)
{
	(void)taker, (void)option;
	if (!strcmp(value, "local-period"))
		return 0;
	return tally_error_set(
		err, -EINVAL,
		"option --percent-type: percentages are of the function's period (local-period), "
		"not '%s'; -j has samples and periods",
		value);
}

static const struct tally_option options[] = {
	{ TALLY_INCLUDE(tally_view_input_option, struct request, view) },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT", "this event's samples (the first)",
	  TALLY_TEXT(struct request, view.filter.event) },
	{ 0, "all-hot", TALLY_ARGUMENT_REQUIRED, "N", "the N hottest functions, one after another",
	  TALLY_NUMBER(struct request, functions, 1, 1000) },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write to FILE: HTML if its name ends in .html, otherwise text;\n"
	  "- is standard output",
	  TALLY_TEXT(struct request, output) },
	{ 0, "html", TALLY_ARGUMENT_NONE, NULL,
	  "write an HTML page, whatever the file's name (annotate.html)",
	  TALLY_SET(struct request, html) },
	{ 'j', "json", TALLY_ARGUMENT_NONE, NULL, "JSON (docs/annotate-json.md)",
	  TALLY_SET(struct request, json) },
	{ 0, "stdio", TALLY_ARGUMENT_NONE, NULL, "text without a pager",
	  TALLY_SET(struct request, no_pager) },
	{ 's', NULL, TALLY_ARGUMENT_NONE, NULL,
	  "source lines between the instructions (the default)",
	  TALLY_SET(struct request, layout.with_source) },
	{ 0, "source", TALLY_ARGUMENT_OPTIONAL, "DIR",
	  "the same; with DIR, also lines of files below DIR that\n"
	  "other users can't read",
	  TALLY_TAKE(take_source) },
	{ 0, "no-source", TALLY_ARGUMENT_NONE, NULL, "only instructions",
	  TALLY_CLEAR(struct request, layout.with_source) },
	{ 0, "no-asm", TALLY_ARGUMENT_NONE, NULL, "only source lines, each with its share",
	  TALLY_SET(struct request, making.no_code) },
	{ 'l', "print-line", TALLY_ARGUMENT_NONE, NULL, "source lines with their file and number",
	  TALLY_SET(struct request, layout.with_numbers) },
	{ 'n', "samples", TALLY_ARGUMENT_NONE, NULL, "samples beside the percentages",
	  TALLY_SET(struct request, layout.with_samples) },
	{ 'M', "syntax", TALLY_ARGUMENT_REQUIRED, "SYNTAX",
	  "syntax of x86 instructions: att or intel (att)", "att intel", TALLY_TAKE(take_syntax) },
	{ 0, "percent-limit", TALLY_ARGUMENT_REQUIRED, "PERCENT",
	  "instructions with at least that share, and those near them (0: all)",
	  TALLY_PERCENT(struct request, layout.percent_min) },
	{ 0, "object", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "the function of this program or library, if several have that name",
	  TALLY_TEXT(struct request, choice.object) },
	{ 0, "dso", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples in these programs and libraries",
	  TALLY_TEXT(struct request, view.filter.objects) },
	{ TALLY_INCLUDE(tally_view_task_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_filter_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_name_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_raw_addresses_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_idle_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_full_names_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_no_demangle_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_symbols_option, struct request, view) },
	/* perf's names */
	{ 'd', "dsos", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_TEXT(struct request, view.filter.objects) },
	{ 0, "symbol", TALLY_ARGUMENT_REQUIRED, "FUNCTION", NULL,
	  TALLY_TEXT(struct request, choice.name) },
	{ 0, "disassembler-style", TALLY_ARGUMENT_REQUIRED, "SYNTAX", NULL,
	  TALLY_TAKE(take_syntax) },
	{ 0, "show-nr-samples", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_SET(struct request, layout.with_samples) },
	{ 0, "stdio2", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_SET(struct request, no_pager) },
	{ 0, "percent-type", TALLY_ARGUMENT_REQUIRED, "local-period", NULL,
	  TALLY_TAKE(take_percent_type) },
	TALLY_OPTIONS_END,
};

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
	tally_view_say_idle(command->name, NULL, &idle, period);
}

/* Text and pages show so many copies of a function at most, the heaviest ones, and none that is
 * lighter than this part of the heaviest one. */
enum { COPIES_MAX = 8, COPY_PART = 100 };

/* Copies of one function that are left out. */
struct left_out {
	size_t count;
	uint64_t samples;
};

static void say_left_out(const struct tally_command *command, const struct tally_profile *profile,
			 const struct tally_hot_function *hot, struct left_out *left_out)
{
	char name[256];
	if (!left_out->count)
		return;
	tally_terminal_clean_name(tally_names_plain_text(&profile->recording->names, hot->function),
				  name, sizeof(name));
	tally_say("tally %s: %zu more cop%s of %s, with %s sample%s, %s not shown; -j has all",
		  command->name, left_out->count, left_out->count == 1 ? "y" : "ies", name,
		  tally_number(left_out->samples), tally_plural(left_out->samples),
		  left_out->count == 1 ? "is" : "are");
	*left_out = (struct left_out){ 0 };
}

static int make_all(const struct tally_command *command, struct tally_profile *profile,
		    const struct request *request, struct annotations *out, struct tally_error *err)
{
	struct tally_hot_functions hot = { 0 };
	uint32_t event;
	int result = tally_profile_event(profile, request->view.filter.event, &event, err);
	if (result)
		return result;
	say_idle(command, profile, event);
	result = tally_hot_functions_find(profile, event, &request->choice, &hot, err);
	if (result)
		goto out;
	/* "[object]" names hundreds of places without a symbol */
	bool is_one = !request->choice.name || request->choice.name[0] == '[';
	size_t wanted = request->functions;
	if (!wanted)
		wanted = is_one ? 1 : hot.count;
	struct left_out left_out = { 0 };
	uint64_t heaviest = 0;
	for (size_t i = 0, seen = 0, copies = 0; i < hot.count; i++) {
		const struct tally_annotation_weight *weight = &hot.items[i].weight;
		struct tally_annotation one;
		bool is_next = !i || hot.items[i].number != hot.items[i - 1].number;
		copies++;
		if (is_next) {
			seen++;
			copies = 1;
			heaviest = weight->period;
		}
		if (is_next && i)
			say_left_out(command, profile, &hot.items[i - 1], &left_out);
		if (seen > wanted)
			break;
		if (!request->json &&
		    (copies > COPIES_MAX || weight->period < heaviest / COPY_PART)) {
			left_out.count++;
			left_out.samples += weight->samples;
			continue;
		}
		result = tally_annotation_make(profile, event, &hot.items[i], &request->making,
					       &one, err);
		if (!result && tally_vector_push(out, one) < 0)
			result = tally_error_set(err, -ENOMEM, "out of memory");
		if (result) {
			tally_annotation_release(&one);
			break;
		}
	}
	if (hot.count)
		say_left_out(command, profile, &hot.items[hot.count - 1], &left_out);
out:
	tally_vector_release(&hot);
	return result;
}

/* Sets `*hottest` to the offset of a single function's hottest line. */
static int write_text(const struct annotations *all, const struct request *request,
		      struct tally_buffer *out, size_t *hottest)
{
	int result = 0;
	for (size_t i = 0; !result && i < all->count; i++) {
		if (i)
			tally_buffer_text(out, "\n\n");
		result = tally_annotate_text(&all->items[i], &request->layout, out,
					     all->count == 1 ? hottest : NULL);
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
		tally_annotate_json(&all->items[i], request->layout.sources, &json);
	tally_json_end(&json);
	tally_json_end(&json);
	if (out->failed)
		return -ENOMEM;
	return 0;
}

static int write_functions(const struct annotations *all, const struct request *request,
			   struct tally_buffer *out, size_t *hottest)
{
	if (request->html)
		return tally_annotate_html(all->items, all->count, &request->layout, out);
	if (request->json)
		return write_json(all, request, out);
	return write_text(all, request, out, hottest);
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
	if (!strcmp(path, "-") || stat(path, &status) < 0)
		return 0;
	return (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
}

static int read_profile(const struct request *request, enum tally_view_stacks stacks,
			struct tally_profile **profile, struct tally_error *err)
{
	struct tally_profile_options samples = { .merge_threads = true, .merge_cpus = true };
	struct tally_view_options view = request->view;
	struct tally_recording *recording;
	view.stacks = stacks;
	view.wants_lines = view.wants_code = true;
	/* a function that was named is shown even if it is the idle task's */
	view.shows_idle |= request->choice.name != NULL;
	int result = tally_view_open(&view, &recording, err);
	if (result < 0)
		return result;
	return tally_view_profile(&view, recording, &samples, profile, err);
}

/* Explains why a function has no samples: they may be in functions that it calls. Only stacks show
 * that, so the recording is read again with them. */
static void explain_by_callees(const struct request *request, struct tally_error *err)
{
	struct tally_error ignored = TALLY_ERROR_NONE;
	struct tally_annotation_weight weight, total;
	struct tally_profile *profile;
	uint32_t event;
	if (!strcmp(request->view.input, "-") ||
	    read_profile(request, TALLY_VIEW_STACKS, &profile, &ignored) < 0)
		return;
	if (!tally_profile_event(profile, request->view.filter.event, &event, &ignored) &&
	    !tally_hot_functions_above(profile, event, &request->choice, &weight) &&
	    weight.samples) {
		tally_profile_totals(profile, event, &total.samples, &total.period);
		double share = (double)weight.samples / (double)total.samples;
		if (total.period)
			share = (double)weight.period / (double)total.period;
		tally_error_set(err, -ENOENT,
				"no samples are in '%s' itself; %.2f%% are in what it calls",
				request->choice.name, 100 * share);
		tally_error_hint(err, "'tally report -g' shows what that is");
	}
	tally_profile_free(profile);
}

/* Returns the number of the line at an offset, from 0. */
static size_t line_at(const struct tally_buffer *text, size_t offset)
{
	size_t line = 0;
	for (size_t i = 0; i < offset && i < text->length; i++)
		line += text->bytes[i] == '\n';
	return line;
}

static void warn_of_left_out(const struct tally_source_files *sources)
{
	char path[1024];
	unsigned others = sources->left_out_count - 1;
	if (!sources->left_out)
		return;
	tally_terminal_clean_name(sources->left_out, path, sizeof(path));
	fprintf(stderr, "tally annotate: other users can't read %s", path);
	if (others)
		fprintf(stderr, " and %u other file%s", others, tally_plural(others));
	fprintf(stderr, ": their lines are left out\n"
			"hint: --source DIR shows the lines of all files below DIR\n");
}

static int show(const struct tally_command *command, struct request *request,
		struct tally_profile *profile)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct annotations all = { 0 };
	struct tally_buffer out = { 0 }, taken = { 0 };
	char size[TALLY_SIZE_TEXT];
	struct tally_pager pager = { 0 };
	size_t hottest = 0;
	struct tally_source_files sources = { .root = request->view.names.search.root,
					      .shared = request->shared_sources };
	bool is_text = !request->html && !request->json;
	request->layout.sources = &sources;
	tally_filter_text(&request->view.filter, &taken);
	request->layout.taken = NULL;
	if (taken.length)
		request->layout.taken = tally_buffer_string(&taken);
	int result = make_all(command, profile, request, &all, &err);
	if (result == -ENOENT && request->choice.name)
		explain_by_callees(request, &err);
	bool is_shown = !result && is_text && !request->output;
	if (is_shown) {
		tally_pager_measure(&pager);
		request->layout.columns = pager.columns;
		sources.is_for_terminal = pager.columns;
		request->layout.colours = pager.colours;
	}
	request->layout.recorded_ns = recorded_until(profile->recording, request->view.input);
	request->layout.ascii = !tally_terminal_is_utf8();
	if (!result && write_functions(&all, request, &out, &hottest) < 0)
		result = tally_error_set(&err, -ENOMEM, "out of memory");
	if (!result && is_shown)
		tally_pager_start_at(&pager, !request->no_pager, line_at(&out, hottest),
				     line_at(&out, out.length));
	if (!result)
		result = write_out(request->output, &out, &err);
	tally_pager_finish(&pager);
	if (!result && request->output && strcmp(request->output, "-"))
		tally_say("tally annotate: wrote %s (%s)%s", request->output,
			  tally_size_text(out.length, size),
			  request->html ? "; open it in a browser" : "");
	tally_view_warn(command->name, profile->recording);
	warn_of_left_out(&sources);
	for (size_t i = 0; i < all.count; i++)
		tally_annotation_release(&all.items[i]);
	tally_vector_release(&all);
	tally_source_files_release(&sources);
	tally_buffer_release(&out);
	tally_buffer_release(&taken);
	if (result < 0)
		return tally_command_fail(command, &err);
	return TALLY_EXIT_OK;
}

static int read_and_show(const struct tally_command *command, struct request *request)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_profile *profile;
	const char *const inputs[] = { request->view.input, NULL };
	if (tally_output_check(request->output, inputs, &err) < 0 ||
	    read_profile(request, TALLY_VIEW_LEAVES, &profile, &err) < 0)
		return tally_command_fail(command, &err);
	int status = show(command, request, profile);
	tally_profile_free(profile);
	return status;
}

int tally_annotate_function(const struct tally_view_options *view,
			    const struct tally_function_choice *choice)
{
	struct request request = { .view = *view,
				   .choice = *choice,
				   .layout = { .with_source = true } };
	return read_and_show(&tally_command_annotate, &request);
}

static const char *const endings[] = { ".html", ".htm", NULL };

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct request request = { .layout = { .with_source = true } };
	/* options may follow the function */
	while (tally_options_parse(&walk, &request) && walk.index < argc) {
		if (request.choice.name)
			return tally_command_misuse(
				command,
				"one function at a time: '%s' is too many (-i names the recording)",
				argv[walk.index]);
		request.choice.name = argv[walk.index++];
	}
	if (walk.status >= 0)
		return walk.status;
	request.html |= tally_output_ends_in(request.output, endings) && !request.json;
	if (!request.html && !request.json && tally_output_is_other_kind(request.output, endings))
		return tally_command_misuse(
			command, "'%s': without --json the output is .html or text (.txt)",
			request.output);
	if (request.html && request.json)
		return tally_command_misuse(command, "either --html or --json, not both");
	if (request.html && !request.output && isatty(STDOUT_FILENO))
		request.output = "annotate.html";
	tally_view_choose_input(command->name, &request.view);
	return read_and_show(command, &request);
}

const struct tally_command tally_command_annotate = {
	.name = "annotate",
	.summary = "a function's lines and instructions, with their shares of samples",
	.usage = "[options] [FUNCTION]",
	.details =
		"Without FUNCTION, the hottest one is shown.  If several functions have that name, "
		"all are shown, the hottest first.\n"
		"Of a function that was inlined, each copy is shown, in the code that it was "
		"inlined into.\n"
		"'[libz.so.1+0x4010]', report's name for code without a symbol, is valid as well; "
		"'[libz.so.1]' is the hottest there.\n"
		"Percentages are shares of the function's samples; the value after ± is the "
		"sampling error: in 95 of 100\n"
		"recordings the true share is within it.\n"
		"Jumps within the function are drawn at the left.\n\n"
		"An interrupt comes between two instructions, so a sample of a clock or of a "
		"hardware event has the address of the\n"
		"next one.  It counts for the one before, which took the time; "
		"--raw-addresses shows what was recorded.\n\n"
		"libLLVM disassembles (on Debian: libllvm14 or later); without it only source "
		"lines are shown.\n\n"
		"  tally record -- ./program && tally annotate\n"
		"  tally annotate -M intel --percent-limit 1 compress_block\n"
		"  tally annotate --all-hot 10 -o hot.html\n"
		"  tally annotate --no-asm -l main",
	.options = options,
	.run = run,
};
