/* Two passes. The first reads the samples' stacks, as a report does. The second runs only if
 * samples have other addresses that scripts print by name (branches, a tracepoint's %pS), and names
 * those. */
#include "view/view.h"

#include "base/map.h"
#include "base/new_file.h"
#include "perfdata/perfdata.h"
#include "profile/profile.h"
#include "recording/recording.h"
#include "report/report.h"
#include "task/jit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True if the tracepoint's format prints functions by address.  Looks at each format once: many
 * events may be of one tracepoint. */
static bool prints_functions(const struct tally_perfdata *data,
			     const struct tally_recorded_event *event, struct tally_map *seen)
{
	const char *text, *end;
	size_t length;
	bool is_new = true;
	if (event->attr.type != TALLY_TYPE_TRACEPOINT ||
	    (tally_map_put(seen, event->attr.config, &is_new) && !is_new) ||
	    !tally_perfdata_tracepoint_format(data, event->attr.config, &text, &length))
		return false;
	for (end = text + length; (text = memmem(text, (size_t)(end - text), "%p", 2)); text += 2)
		if (end - text > 2 && strchr("sSfFB", text[2]))
			return true;
	return false;
}

static bool has_others(const struct tally_perfdata *data)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	struct tally_map seen = { 0 };
	bool has = false;
	for (size_t i = 0; i < count && !has; i++)
		has = events[i].attr.branch_sample_type ||
		      prints_functions(data, &events[i], &seen);
	tally_map_release(&seen);
	return has;
}

/* Names one end of a branch.  A branch record does not say whether an address is the kernel's; the
 * kernel has the upper half. */
static int name_end(struct tally_recording *recording, uint32_t pid, uint64_t address)
{
	struct tally_place place = tally_place_of(&recording->tasks, pid, address >> 63, address);
	if (tally_names_function(&recording->names, &place, NULL) == UINT32_MAX)
		return -ENOMEM;
	return 0;
}

static int name_branches(struct tally_recording *recording, const struct tally_sample *sample)
{
	for (uint64_t i = 0; sample->branches && i < sample->branch_count; i++)
		if (name_end(recording, sample->pid, sample->branches[i].from) < 0 ||
		    name_end(recording, sample->pid, sample->branches[i].to) < 0)
			return -ENOMEM;
	return 0;
}

/* Names the addresses that scripts print by name; `names.options.asked` collects them. */
static int name_as_scripts_do(struct tally_recording *recording, struct tally_event_text *trace,
			      struct tally_error *err)
{
	struct tally_raw_record raw;
	struct tally_record record;
	struct tally_buffer text = { 0 };
	int result;
	while ((result = tally_recording_next(recording, &raw, &record, err)) > 0) {
		size_t count;
		const struct tally_recorded_event *events = tally_perfdata_events(recording->data,
										  &count);
		if (record.header.type != TALLY_RECORD_SAMPLE)
			continue;
		tally_buffer_clear(&text);
		if (raw.event->attr.type == TALLY_TYPE_TRACEPOINT)
			tally_event_text_put(trace, raw.event, (size_t)(raw.event - events),
					     &record.sample, &text);
		if (text.failed || name_branches(recording, &record.sample) < 0) {
			result = tally_error_set(err, -ENOMEM, "out of memory");
			break;
		}
	}
	tally_buffer_release(&text);
	return result;
}

static int use_files(struct tally_recording *recording, const struct tally_objects *files)
{
	if (!files)
		return 0;
	return tally_objects_share(files, &recording->names.objects);
}

static int find_others(const char *path, const struct tally_pack_options *options,
		       struct tally_place_table *others, struct tally_error *err)
{
	struct tally_recording *recording;
	struct tally_event_text *trace = calloc(1, sizeof(*trace));
	if (!trace)
		return tally_error_set(err, -ENOMEM, "out of memory");
	int result = tally_recording_open(path, &recording, err);
	if (result)
		goto out;
	recording->names.options.asked = others;
	tally_names_use_perf_maps(&recording->names, options->perf_maps);
	recording->tasks.jits->files = options->jit_files;
	tally_names_use_cache(&recording->names);
	trace->recording = recording;
	if (use_files(recording, options->files) < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	else
		result = name_as_scripts_do(recording, trace, err);
	tally_event_text_release(trace);
	tally_recording_close(recording);
out:
	free(trace);
	return result;
}

static int read_profile(const char *path, const struct tally_pack_options *options,
			struct tally_profile **out, struct tally_error *err)
{
	/* Deciding which debug files are worth fetching needs whole stacks, not only places. */
	bool fetches = options->names && options->names->asks_debuginfod;
	struct tally_profile_options samples = { .merge_threads = true,
						 .merge_cpus = true,
						 .merge_unknown = true,
						 .only_places = !fetches,
						 .progress = options->progress,
						 .context = options->context };
	struct tally_recording *recording;
	int result = tally_recording_open(path, &recording, err);
	if (result < 0)
		return result;
	if (options->excerpt)
		tally_perfdata_replace_data(recording->data, options->excerpt->bytes,
					    options->excerpt->length);
	tally_names_use_perf_maps(&recording->names, options->perf_maps);
	recording->tasks.jits->files = options->jit_files;
	if (options->names)
		tally_names_use_sources(&recording->names, options->names);
	if (use_files(recording, options->files) < 0 ||
	    tally_recording_prepare_packing(recording) < 0) {
		tally_recording_close(recording);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	return tally_profile_new(recording, &samples, out, err);
}

int tally_pack_section(const char *path, const struct tally_pack_options *options,
		       struct tally_buffer *section, size_t *places, size_t *known,
		       struct tally_error *err)
{
	struct tally_place_table others = { 0 };
	struct tally_profile *profile;
	int result = read_profile(path, options, &profile, err);
	if (result < 0)
		return result;
	if (has_others(profile->recording->data))
		result = find_others(path, options, &others, err);
	if (!result && tally_make_name_section(profile, &others, section, places, known) < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	if (!result && options->hint &&
	    tally_profile_jit_hint(profile, TALLY_HINT_WITHOUT_SHARES, options->hint) < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	if (options->look)
		options->look(options->context, profile->recording);
	tally_profile_free(profile);
	tally_place_table_release(&others);
	return result;
}

int tally_pack_open_file(int fd, const char *name, const struct tally_pack_options *options,
			 struct tally_buffer *section, struct tally_error *err)
{
	char path[40];
	size_t places, known;
	/* The recording's name may belong to another file by now.  /proc may not be mounted. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!access(path, R_OK))
		name = path;
	return tally_pack_section(name, options, section, &places, &known, err);
}

/* Copies the file and adds the section. If the file can't be copied, rewrites it record by record.
 * A directory can't be rewritten: its other files belong to the unchanged `data`. */
static int write_file(const char *path, bool is_directory, const struct tally_new_file *file,
		      int from, const struct tally_buffer *section, struct tally_error *err)
{
	int result = tally_perfdata_graft(from, file->fd, section->bytes, section->length, err);
	if (result != -ENOTSUP)
		return result;
	if (is_directory)
		return tally_error_set(err, result,
				       "%s can't be packed: its data is not laid out as perf's is",
				       path);
	if (ftruncate(file->fd, 0) < 0)
		return tally_error_set(err, -errno, "%s can't be written: %s", file->path.path,
				       tally_errno_text(errno));
	return tally_perfdata_rewrite(path, file->fd, 1, section->bytes, section->length, err);
}

int tally_pack_write(const char *path, const char *output, const struct tally_buffer *section,
		     struct tally_error *err)
{
	struct tally_new_file file = TALLY_NEW_FILE_INIT;
	struct stat status;
	char data[PATH_MAX];
	bool is_directory = !stat(path, &status) && S_ISDIR(status.st_mode);
	if (is_directory && snprintf(data, sizeof(data), "%s/data", path) >= (int)sizeof(data))
		return tally_error_set(err, -ENAMETOOLONG, "%s can't be read: its name is too long",
				       path);
	const char *input = path;
	int flags = O_RDONLY | O_CLOEXEC;
	if (is_directory) {
		input = output = data;
		flags |= O_NONBLOCK; /* `data` may be a FIFO now */
	}
	int from = open(input, flags);
	if (from < 0)
		return tally_error_set(err, -errno, "%s can't be read: %s", path,
				       tally_errno_text(errno));
	int result = tally_new_file_open(&file, output, err);
	if (result)
		goto out;
	result = write_file(path, is_directory, &file, from, section, err);
	if (result)
		goto out;
	result = tally_new_file_keep(&file, from, err);
out:
	tally_new_file_release(&file);
	close(from);
	return result;
}
