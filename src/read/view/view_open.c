/* From a view's options to a recording or a profile.  An option that all views have takes effect
 * here.  If the user names no recording, it is chosen by the kind of standard input, then by the
 * files in the working directory. */
#include "view/view.h"

#include "base/output_path.h"
#include "base/terminal.h"
#include "task/jit.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* True for a pipe or a file. Not for sockets: remote shells give one to every command. */
static bool standard_input_is_fed(void)
{
	struct stat status;
	return !fstat(STDIN_FILENO, &status) &&
	       (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode));
}

void tally_view_choose_input(const char *command, struct tally_view_options *options)
{
	if (!options->input && standard_input_is_fed())
		options->input = "-";
	tally_view_choose_file(command, options);
}

void tally_view_choose_file(const char *command, struct tally_view_options *options)
{
	struct tally_default_file file;
	if (options->input)
		return;
	tally_view_default_file(&file);
	options->input = file.path;
	if (file.newer)
		tally_say("tally %s: reading %s, but %s is newer: -i %s reads that one", command,
			  file.path, file.newer, file.newer);
}

static bool is_later(const struct timespec *one, const struct timespec *other)
{
	if (one->tv_sec != other->tv_sec)
		return one->tv_sec > other->tv_sec;
	return one->tv_nsec > other->tv_nsec;
}

void tally_view_default_file(struct tally_default_file *file)
{
	struct stat ours, perfs;
	bool has_ours = !stat("tally.data", &ours), has_perfs = !stat("perf.data", &perfs);
	*file = (struct tally_default_file){ .path = "tally.data" };
	if (!has_ours && has_perfs)
		file->path = "perf.data";
	if (has_ours && has_perfs && is_later(&perfs.st_mtim, &ours.st_mtim))
		file->newer = "perf.data";
}

static bool has_only_leaves(const struct tally_view_options *options,
			    const struct tally_recording *recording)
{
	switch (options->stacks) {
	case TALLY_VIEW_LEAVES: return true;
	case TALLY_VIEW_LEAVES_UNLESS_WAITS: return !recording->off_cpu.is_due;
	default: return false;
	}
}

static void use_options(const struct tally_view_options *options,
			struct tally_recording *recording)
{
	struct tally_names *names = &recording->names;
	recording->options.leaves_only = has_only_leaves(options, recording);
	recording->options.keep_groups = options->keep_groups;
	recording->sums.are_signed = options->has_signed_sums;
	if (options->names_nothing)
		return;
	names->options.keep_mangled = options->keep_mangled;
	names->options.no_inlines = options->no_inlines;
	names->options.wants_lines = options->wants_lines;
	names->options.real_paths = options->real_paths;
	if (options->wants_code && recording->tasks.jits)
		recording->tasks.jits->wants_code = true;
	tally_names_use_cache(names);
	tally_names_use_sources(names, &options->names);
}

int tally_view_open(const struct tally_view_options *options, struct tally_recording **out,
		    struct tally_error *err)
{
	int result = tally_recording_open(options->input, out, err);
	if (result < 0)
		return result;
	use_options(options, *out);
	return 0;
}

int tally_view_open_memory(const struct tally_view_options *options, const void *bytes, size_t size,
			   struct tally_recording **out, struct tally_error *err)
{
	int result = tally_recording_open_memory(bytes, size, out, err);
	if (result < 0)
		return result;
	use_options(options, *out);
	return 0;
}

/* With ENABLE_ON_EXEC an event belongs to a command that its recorder started.  Tracepoints name
 * other tasks, too: those that a task wakes, or that run after it. */
static bool is_of_command(const struct tally_recording *recording)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	for (size_t i = 0; i < count; i++) {
		const struct tally_attr *attr = &events[i].attr;
		bool is_side_band = attr->type == TALLY_TYPE_SOFTWARE &&
				    attr->config == TALLY_SW_DUMMY;
		if (attr->type == TALLY_TYPE_TRACEPOINT ||
		    (!is_side_band && !(attr->flags & TALLY_ATTR_ENABLE_ON_EXEC)))
			return false;
	}
	return count;
}

void tally_view_protect(const struct tally_recording *recording)
{
	struct stat file;
	bool is_anothers = recording->path && !stat(recording->path, &file) &&
			   file.st_uid != geteuid();
	if (is_anothers || !is_of_command(recording))
		tally_output_forbid(077);
}

bool tally_view_leaves_out_idle(const struct tally_view_options *options)
{
	return !options->shows_idle && !tally_filter_means_idle(&options->filter);
}

int tally_view_check_wakers(const struct tally_recording *recording, const char *name,
			    struct tally_error *err)
{
	if (recording->off_cpu.has_wakings)
		return 0;
	tally_error_set(err, -ENOENT, "%s has no recorded wakers", name);
	tally_error_hint(err,
			 "record --off-cpu records wakers into a file, for users who may sample "
			 "tracepoints, such as root");
	return -ENOENT;
}

int tally_view_profile(const struct tally_view_options *options, struct tally_recording *recording,
		       struct tally_profile_options *samples, struct tally_profile **out,
		       struct tally_error *err)
{
	struct tally_view_progress progress;
	samples->filter = options->filter;
	samples->leaves_out_idle = tally_view_leaves_out_idle(options);
	samples->joins_runtimes = options->joins_runtimes;
	samples->shows_scheduler = options->shows_scheduler;
	samples->progress = tally_view_progress;
	samples->context = &progress;
	tally_view_protect(recording);
	tally_view_progress_start(&progress);
	int result = tally_profile_new(recording, samples, out, err);
	tally_view_progress_end(&progress);
	return result;
}
