/* perf mode's commands that print a recording's lists: evlist (its events) and buildid-list (the
 * build-ids of its files). */
#include "base/arena.h"
#include "base/buffer.h"
#include "command/command.h"
#include "command/perf_mode.h"
#include "object/object.h"
#include "perf/perf.h"
#include "perfdata/perfdata.h"
#include "recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct request {
	const char *input;
	struct tally_perf_evlist evlist;
	bool with_hits;
};

static const struct tally_option evlist_options[] = {
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE", "the recording (perf.data)",
	  TALLY_TEXT(struct request, input) },
	{ 'F', "freq", TALLY_ARGUMENT_NONE, NULL, "show the sample frequency",
	  TALLY_SET(struct request, evlist.frequency) },
	{ 'v', "verbose", TALLY_ARGUMENT_NONE, NULL, "show all of each event's attribute",
	  TALLY_SET(struct request, evlist.verbose) },
	{ 'g', "group", TALLY_ARGUMENT_NONE, NULL, "show groups",
	  TALLY_SET(struct request, evlist.groups) },
	{ 0, "trace-fields", TALLY_ARGUMENT_NONE, NULL, "show the fields of tracepoints",
	  TALLY_SET(struct request, evlist.trace_fields) },
	{ 'f', "force", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	TALLY_OPTIONS_END,
};

static const struct tally_option build_id_options[] = {
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "the recording (perf.data), or an ELF file", TALLY_TEXT(struct request, input) },
	{ 'H', "with-hits", TALLY_ARGUMENT_NONE, NULL, "only files that have samples",
	  TALLY_SET(struct request, with_hits) },
	{ 'f', "force", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 'v', "verbose", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	TALLY_OPTIONS_END,
};

static int print(const struct tally_command *command, struct tally_buffer *out)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int status = TALLY_EXIT_OK;
	if (out->failed) {
		tally_error_set(&err, -ENOMEM, "out of memory");
		status = tally_command_fail(command, &err);
	} else {
		fputs(tally_buffer_string(out), stdout);
	}
	tally_buffer_release(out);
	return status;
}

/* Opens the recording.  Events and build-ids of a pipe are in its records, so these are read. */
static int open_recording(const char *input, struct tally_perfdata **out, struct tally_error *err)
{
	struct tally_raw_record raw;
	int result = tally_perfdata_open(tally_perf_input(input), out, err);
	if (result < 0 || !tally_perfdata_is_pipe(*out))
		return result;
	while ((result = tally_perfdata_next(*out, &raw, err)) > 0)
		continue;
	if (result < 0)
		tally_perfdata_close(*out);
	return result;
}

static int run_evlist(const struct tally_command *command, int argc, char **argv)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { 0 };
	struct tally_perfdata *data;
	struct tally_buffer out = { 0 };
	int status;
	if (!tally_recording_arguments(command, argc, argv, &request, &request.input, &status))
		return status;
	if (open_recording(request.input, &data, &err) < 0)
		return tally_command_fail(command, &err);
	tally_perf_evlist_text(data, &request.evlist, &out);
	tally_perfdata_close(data);
	return print(command, &out);
}

/* Puts the build-id of an ELF file.  Returns false where the file is none. */
static bool put_file(const char *path, struct tally_buffer *out)
{
	struct tally_object_file file;
	struct tally_build_id id = { 0 };
	char text[2 * TALLY_BUILD_ID_MAX + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	bool has_id = !tally_object_look(fd, &file, &id) && id.size;
	close(fd);
	if (!has_id)
		return false;
	tally_build_id_format(&id, text);
	tally_buffer_printf(out, "%s\n", text);
	return true;
}

/* Marks the file in which a sample is. */
static void note_hit(struct tally_recording *recording, const struct tally_record *record,
		     const struct tally_recorded_build_id *ids, size_t count, bool *hits)
{
	const struct tally_sample *sample = &record->sample;
	const struct tally_space space = tally_space_of(record->header.misc, sample->pid);
	struct tally_place place = tally_place_of(&recording->tasks, space.pid, space.kernel,
						  sample->ip);
	uint32_t function = tally_names_function(&recording->names, &place, NULL);
	if (function == UINT32_MAX)
		return;
	const char *object = tally_names_object(&recording->names, function);
	for (size_t i = 0; i < count; i++)
		hits[i] |= !strcmp(ids[i].filename, object);
}

/* Prints the build-ids of the files in which samples are. */
static int print_hit(const struct tally_command *command, const char *input)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_recording *recording;
	struct tally_raw_record raw;
	struct tally_record record;
	struct tally_buffer out = { 0 };
	struct tally_arena arena = TALLY_ARENA_INIT;
	size_t count;
	int result = tally_recording_open(tally_perf_input(input), &recording, &err);
	if (result < 0)
		return tally_command_fail(command, &err);
	const struct tally_recorded_build_id *ids = tally_perfdata_build_ids(recording->data,
									     &count);
	bool *hits = tally_arena_array(&arena, count + 1, sizeof(*hits));
	if (!hits)
		result = tally_error_set(&err, -ENOMEM, "out of memory");
	while (result >= 0 && (result = tally_recording_next(recording, &raw, &record, &err)) > 0)
		if (record.header.type == TALLY_RECORD_SAMPLE)
			note_hit(recording, &record, ids, count, hits);
	if (result >= 0)
		tally_perf_build_ids_text(recording->data, hits, &out);
	tally_arena_release(&arena);
	tally_recording_close(recording);
	if (result < 0)
		return tally_command_fail(command, &err);
	return print(command, &out);
}

static int run_build_ids(const struct tally_command *command, int argc, char **argv)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { 0 };
	struct tally_perfdata *data;
	struct tally_buffer out = { 0 };
	int status;
	if (!tally_recording_arguments(command, argc, argv, &request, &request.input, &status))
		return status;
	if (request.input && put_file(request.input, &out))
		return print(command, &out);
	if (request.with_hits)
		return print_hit(command, request.input);
	if (open_recording(request.input, &data, &err) < 0)
		return tally_command_fail(command, &err);
	tally_perf_build_ids_text(data, NULL, &out);
	tally_perfdata_close(data);
	return print(command, &out);
}

const struct tally_command tally_perf_evlist = {
	.name = "perf evlist",
	.summary = "print the events of a recording",
	.usage = "[options]",
	.options = evlist_options,
	.rarely_reads_files = true,
	.run = run_evlist,
};

const struct tally_command tally_perf_buildid_list = {
	.name = "perf buildid-list",
	.summary = "print the build-ids in a recording, or that of an ELF file",
	.usage = "[options]",
	.options = build_id_options,
	.run = run_build_ids,
};
