/* perf mode's `inject`: a recording that has its build-ids is copied as it is.  tally's readers need no
 * other change to a recording: they read JITs' dumps themselves. */
#include "command/command.h"
#include "command/perf_mode.h"
#include "perfdata/perfdata.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request {
	const char *input, *output;
	bool adds_build_ids;
};

static const struct tally_option options[] = {
	{ 'b', "build-ids", TALLY_ARGUMENT_NONE, NULL, "copy a recording with its build-ids",
	  TALLY_SET(struct request, adds_build_ids) },
	{ 0, "buildid-all", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_SET(struct request, adds_build_ids) },
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE", "the recording; without it standard input",
	  TALLY_TEXT(struct request, input) },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE", "the copy; without it standard output",
	  TALLY_TEXT(struct request, output) },
	{ 'f', "force", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 'v', "verbose", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 'j', "jit", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_INSTEAD("tally report and tally perf report read JITs' dumps themselves") },
	{ 's', "sched-stat", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_INSTEAD("tally record --off-cpu has the time of each sleep and its stack") },
	{ 0, "itrace", TALLY_ARGUMENT_OPTIONAL, "OPTIONS", NULL,
	  TALLY_INSTEAD("tally decodes no hardware traces; perf does") },
	{ 0, "strip", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_INSTEAD("tally decodes no hardware traces; perf does") },
	TALLY_OPTIONS_END,
};

/* Build-ids are in the file's list or in the records of mappings. */
static int check_build_ids(const char *path, struct tally_error *err)
{
	struct tally_perfdata *data;
	struct tally_raw_record raw;
	struct tally_record_header header;
	size_t count, mappings = 0, identified = 0;
	int result = tally_perfdata_open(path, &data, err);
	if (result < 0)
		return result;
	while ((result = tally_perfdata_next(data, &raw, err)) > 0) {
		memcpy(&header, raw.bytes, sizeof(header));
		if (header.type == TALLY_RECORD_MMAP2) {
			mappings++;
			identified += header.misc & TALLY_MISC_MMAP_BUILD_ID ? 1 : 0;
		}
	}
	tally_perfdata_build_ids(data, &count);
	tally_perfdata_close(data);
	if (result < 0 || count || identified || !mappings)
		return result;
	tally_error_set(err, -ENODATA, "%s has no build-ids, and perf inject of tally adds none", path);
	tally_error_hint(err, "tally record and perf record store them; record again without -B");
	return -ENODATA;
}

static int copy(int from, int to, const char *name, struct tally_error *err)
{
	char bytes[1 << 16];
	ssize_t length;
	while ((length = read(from, bytes, sizeof(bytes))) > 0)
		for (ssize_t done = 0, written; done < length; done += written) {
			written = write(to, bytes + done, (size_t)(length - done));
			if (written < 0)
				return tally_error_set(err, -errno, "writing %s failed: %m", name);
		}
	if (length < 0)
		return tally_error_set(err, -errno, "reading the recording failed: %m");
	return 0;
}

static bool is_pipe(const char *name)
{
	return !name || !strcmp(name, "-");
}

static int inject(const struct request *request, struct tally_error *err)
{
	int from = STDIN_FILENO, to = STDOUT_FILENO, result = 0;
	if (!is_pipe(request->input)) {
		if (request->adds_build_ids)
			result = check_build_ids(request->input, err);
		if (result < 0)
			return result;
		from = open(request->input, O_RDONLY | O_CLOEXEC);
		if (from < 0)
			return tally_error_set(err, -errno, "failed to open %s: %m", request->input);
	}
	if (!is_pipe(request->output))
		to = open(request->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (to < 0)
		result = tally_error_set(err, -errno, "%s can't be written: %m", request->output);
	else
		result = copy(from, to, is_pipe(request->output) ? "standard output" : request->output,
			      err);
	if (from != STDIN_FILENO)
		close(from);
	if (to >= 0 && to != STDOUT_FILENO && close(to) < 0 && result >= 0)
		result = tally_error_set(err, -errno, "writing %s failed: %m", request->output);
	return result;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { 0 };
	if (!tally_options_parse(&walk, &request))
		return walk.status;
	if (walk.index < argc)
		return tally_command_misuse(command, "what is '%s'? -i names the recording",
					    argv[walk.index]);
	if (!is_pipe(request.input) && !is_pipe(request.output)) {
		char *from = realpath(request.input, NULL), *to = realpath(request.output, NULL);
		bool is_same = from && to && !strcmp(from, to);
		free(from);
		free(to);
		if (is_same)
			return tally_command_misuse(command, "-o is the recording itself");
	}
	if (inject(&request, &err) < 0)
		return tally_command_fail(command, &err);
	return TALLY_EXIT_OK;
}

const struct tally_command tally_perf_inject = {
	.name = "perf inject",
	.summary = "copy a recording that has its build-ids",
	.usage = "[options]",
	.options = options,
	.rarely_reads_files = true,
	.run = run,
};
