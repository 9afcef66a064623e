/* Tables of the options that views share, and the functions that check their values when they are
 * parsed: a mistake is reported before a recording is read.  Filters are stored as text, and parsed
 * again for the recording. */
#include "view/view.h"

#include "base/vector.h"
#include "object/object.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- values -------------------------------------------------------------- */

/* Checks the syntax only: shares of the time need the recording's span, which is not known yet, so
 * any span will do. */
static int take_time(void *request, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	struct tally_ranges ranges = { 0 };
	struct tally_error why = TALLY_ERROR_NONE;
	int result = tally_time_ranges_parse(&ranges, value, 0, 1, &why);
	tally_vector_release(&ranges);
	if (result < 0)
		return tally_error_set(err, result, "option --time: %s", why.message);
	return tally_option_store(request, option, value, err);
}

/* Parses a list of numbers. */
typedef int list_parser(struct tally_ranges *numbers, const char *text, struct tally_error *err);

static int take_list(void *request, const struct tally_option *option, list_parser *parse,
		     const char *value, struct tally_error *err)
{
	struct tally_ranges numbers = { 0 };
	struct tally_error why = TALLY_ERROR_NONE;
	int result = parse(&numbers, value, &why);
	tally_vector_release(&numbers);
	if (result < 0)
		return tally_error_set(err, result, "option --%s: %s", option->name, why.message);
	return tally_option_store(request, option, value, err);
}

static int take_numbers(void *request, const struct tally_option *option, const char *value,
			struct tally_error *err)
{
	return take_list(request, option, tally_numbers_parse, value, err);
}

int tally_view_take_cpus(void *request, const struct tally_option *option, const char *value,
			 struct tally_error *err)
{
	return take_list(request, option, tally_filter_cpus_parse, value, err);
}

static int take_folder(void *request, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	struct stat status;
	if (stat(value, &status) < 0)
		return tally_error_set(err, -errno, "option --%s: %s: %s", option->name, value,
				       tally_errno_text(-errno));
	if (!S_ISDIR(status.st_mode))
		return tally_error_set(err, -ENOTDIR, "option --%s: %s is not a directory",
				       option->name, value);
	return tally_option_store(request, option, value, err);
}

/* Checks the file: /boot has compressed images, which are not usable. */
static int take_vmlinux(void *request, const struct tally_option *option, const char *value,
			struct tally_error *err)
{
	struct tally_error why = TALLY_ERROR_NONE;
	struct tally_object *object;
	int rc = tally_object_open(AT_FDCWD, value, &object, &why);
	if (rc == -ENOEXEC)
		return tally_error_set(err, rc,
				       "option --vmlinux: %s (use the uncompressed kernel; Debian: "
				       "package linux-image-RELEASE-dbg)",
				       why.message);
	if (rc < 0)
		return tally_error_set(err, rc, "option --vmlinux: %s", why.message);
	tally_object_unref(object);
	return tally_option_store(request, option, value, err);
}

static int take_file(void *request, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	if (access(value, R_OK) < 0)
		return tally_error_set(err, -errno, "option --%s: %s can't be read: %s",
				       option->name, value, tally_errno_text(-errno));
	return tally_option_store(request, option, value, err);
}

static int take_debuginfod(void *request, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	struct tally_name_sources *sources = tally_option_member(request, option);
	struct tally_debuginfod *server;
	struct tally_error why = TALLY_ERROR_NONE;
	int rc = tally_debuginfod_open(value, NULL, NULL, &server, &why);
	if (rc < 0)
		return tally_error_set(err, rc, "option --debuginfod: %s (%s)", why.message,
				       why.hint);
	tally_debuginfod_close(server);
	sources->asks_debuginfod = true;
	sources->debuginfod_urls = value;
	sources->fetching = tally_view_fetching;
	return 0;
}

/* ---- the tables ---------------------------------------------------------- */

#define VIEW struct tally_view_options

const struct tally_option tally_view_input_option[] = {
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "the recording (tally.data, else perf.data; - is standard input)",
	  TALLY_TEXT(VIEW, input) },
	TALLY_OPTIONS_END,
};

/* The names differ in commands where --pid means something else. */
#define TASK_ROWS(pid, tid) \
	{ 0, pid, TALLY_ARGUMENT_REQUIRED, "LIST", "only these processes", \
	  TALLY_TEXT(VIEW, filter.pids), TALLY_TAKE(take_numbers) }, \
	{ 0, tid, TALLY_ARGUMENT_REQUIRED, "LIST", "only these threads", \
	  TALLY_TEXT(VIEW, filter.tids), TALLY_TAKE(take_numbers) }

const struct tally_option tally_view_task_options[] = { TASK_ROWS("pid", "tid"),
							 TALLY_OPTIONS_END };
const struct tally_option tally_view_tasks_options[] = { TASK_ROWS("pids", "tids"),
							  TALLY_OPTIONS_END };

#define COMM_ROW \
	{ 0, "comm", TALLY_ARGUMENT_REQUIRED, "LIST", \
	  "only these commands; cc* matches any that begins with cc", \
	  TALLY_TEXT(VIEW, filter.comms) }
#define TIME_ROW \
	{ 0, "time", TALLY_ARGUMENT_REQUIRED, "RANGE", \
	  "only START,END in seconds as script prints them, or a share: 10%-20%, 10%/2", \
	  TALLY_TEXT(VIEW, filter.time), TALLY_TAKE(take_time) }

const struct tally_option tally_view_filter_options[] = {
	COMM_ROW,
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples on these CPUs",
	  TALLY_TEXT(VIEW, filter.cpus), TALLY_TAKE(tally_view_take_cpus) },
	TIME_ROW,
	TALLY_OPTIONS_END,
};
const struct tally_option tally_view_comm_option[] = { COMM_ROW, TALLY_OPTIONS_END };
const struct tally_option tally_view_time_option[] = { TIME_ROW, TALLY_OPTIONS_END };

const struct tally_option tally_view_leaf_options[] = {
	{ 0, "dso", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples in these objects (libc*)",
	  TALLY_TEXT(VIEW, filter.objects) },
	{ 0, "symbol", TALLY_ARGUMENT_REQUIRED, "LIST",
	  "only samples in these functions (std::*)", TALLY_TEXT(VIEW, filter.symbols) },
	TALLY_OPTIONS_END,
};

const struct tally_option tally_view_max_stack_option[] = {
	{ 0, "max-stack", TALLY_ARGUMENT_REQUIRED, "N",
	  "only the innermost N frames of each stack", TALLY_FRAMES(VIEW, filter.frames_max) },
	TALLY_OPTIONS_END,
};

#define NAME_ROWS(kernel) \
	{ 0, "symfs", TALLY_ARGUMENT_REQUIRED, "DIR", \
	  "look for programs, libraries and debug files below DIR", \
	  TALLY_TEXT(VIEW, names.search.root), TALLY_TAKE(take_folder) }, \
	{ 0, "buildid-dir", TALLY_ARGUMENT_REQUIRED, "DIR", \
	  "perf's cache of copies by build-id (~/.debug)", \
	  TALLY_TEXT(VIEW, names.search.build_ids), TALLY_TAKE(take_folder) }, \
	{ kernel, "vmlinux", TALLY_ARGUMENT_REQUIRED, "FILE", \
	  "the recorded kernel, for its functions' names and lines", \
	  TALLY_TEXT(VIEW, names.vmlinux), TALLY_TAKE(take_vmlinux) }, \
	{ 0, "kallsyms", TALLY_ARGUMENT_REQUIRED, "FILE", \
	  "a copy of the recorded kernel's /proc/kallsyms", \
	  TALLY_TEXT(VIEW, names.kallsyms), TALLY_TAKE(take_file) }, \
	{ 'm', "modules", TALLY_ARGUMENT_NONE, NULL, \
	  "name kernel modules' functions by their files, not by kallsyms", \
	  TALLY_SET(VIEW, names.modules) }, \
	{ 0, "debuginfod", TALLY_ARGUMENT_OPTIONAL, "URLS", \
	  "fetch the debug files of hot objects from these servers\n" \
	  "(DEBUGINFOD_URLS); without this option nothing is fetched", \
	  TALLY_TAKE_MEMBER(take_debuginfod, VIEW, names) }, \
	{ 'v', "verbose", TALLY_ARGUMENT_NONE, NULL, \
	  "details of warnings: each file without names, each kind of\n" \
	  "incomplete stack", \
	  TALLY_SET(VIEW, names.verbose) }

const struct tally_option tally_view_name_options[] = { NAME_ROWS('k'), TALLY_OPTIONS_END };
const struct tally_option tally_view_name_options_without_k[] = { NAME_ROWS(0),
								   TALLY_OPTIONS_END };

const struct tally_option tally_view_raw_addresses_option[] = {
	{ 0, "raw-addresses", TALLY_ARGUMENT_NONE, NULL,
	  "lines of the recorded addresses, not of the instructions before them",
	  TALLY_SET(VIEW, names.raw_addresses) },
	TALLY_OPTIONS_END,
};

const struct tally_option tally_view_full_names_option[] = {
	{ 0, "full-names", TALLY_ARGUMENT_NONE, NULL,
	  "show functions' parameters even if the name is unique",
	  TALLY_SET(VIEW, names.full_names) },
	TALLY_OPTIONS_END,
};

const struct tally_option tally_view_idle_option[] = {
	{ 0, "idle", TALLY_ARGUMENT_NONE, NULL, "include the samples of idle CPUs",
	  TALLY_SET(VIEW, shows_idle) },
	TALLY_OPTIONS_END,
};

const struct tally_option tally_view_language_option[] = {
	{ 0, "language-frames", TALLY_ARGUMENT_NONE, NULL,
	  "an interpreter's samples count for the function that it runs\n"
	  "(Python, JavaScript …, if the recording names their functions)",
	  TALLY_SET(VIEW, joins_runtimes) },
	TALLY_OPTIONS_END,
};

const struct tally_option tally_view_scheduler_option[] = {
	{ 0, "scheduler", TALLY_ARGUMENT_NONE, NULL,
	  "show waits in the scheduler's own functions, not in their caller",
	  TALLY_SET(VIEW, shows_scheduler) },
	TALLY_OPTIONS_END,
};

const struct tally_option tally_view_no_demangle_option[] = {
	{ 0, "no-demangle", TALLY_ARGUMENT_NONE, NULL, "mangled names, as in the file",
	  TALLY_SET(VIEW, keep_mangled) },
	TALLY_OPTIONS_END,
};

const struct tally_option tally_view_no_inline_option[] = {
	{ 0, "no-inline", TALLY_ARGUMENT_NONE, NULL, "leave out inlined functions",
	  TALLY_SET(VIEW, no_inlines) },
	TALLY_OPTIONS_END,
};

const struct tally_option tally_view_symbols_option[] = {
	{ 0, "no-inline", TALLY_ARGUMENT_NONE, NULL,
	  "count inlined functions for the symbols that contain them",
	  TALLY_SET(VIEW, no_inlines) },
	TALLY_OPTIONS_END,
};

/* ---- filters ------------------------------------------------------------- */

void tally_filter_text(const struct tally_profile_filter *filter, struct tally_buffer *out)
{
	const struct { const char *option, *value;
	} lists[] = {
		{ "comm", filter->comms }, { "dso", filter->objects }, { "pid", filter->pids },
		{ "tid", filter->tids },   { "cpu", filter->cpus },    { "time", filter->time },
	};
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i].value)
			tally_buffer_printf(out, "%s--%s %s", out->length ? " " : "",
					    lists[i].option, lists[i].value);
}

bool tally_filter_is_set(const struct tally_profile_filter *filter)
{
	return filter->comms || filter->pids || filter->tids || filter->cpus || filter->time ||
	       filter->objects || filter->symbols;
}

bool tally_filter_means_idle(const struct tally_profile_filter *filter)
{
	return filter->comms || filter->pids || filter->tids || filter->symbols;
}
