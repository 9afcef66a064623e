/* The command `pack`: checks its arguments and reports the result.  view/pack_section.c makes
 * and writes the section of names. */
#include "base/buffer.h"
#include "base/number_text.h"
#include "base/text.h"
#include "command/command.h"
#include "command/output_file.h"
#include "view/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
	struct tally_view_options view;
	const char *output;
	bool quiet;
};

static const struct tally_option options[] = {
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "the recording (tally.data, else perf.data)", TALLY_TEXT(struct request, view.input) },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write a copy and leave the recording unchanged", TALLY_TEXT(struct request, output) },
	{ TALLY_INCLUDE(tally_view_name_options, struct request, view) },
	{ 'q', "quiet", TALLY_ARGUMENT_NONE, NULL, "print only warnings and errors",
	  TALLY_SET(struct request, quiet) },
	TALLY_OPTIONS_END,
};

struct reading {
	const struct tally_command *command;
	struct tally_view_progress progress;
};

static void show_progress(void *context, double share)
{
	tally_view_progress(&((struct reading *)context)->progress, share);
}

static void warn(void *context, const struct tally_recording *recording)
{
	struct reading *reading = context;
	tally_view_progress_end(&reading->progress);
	tally_view_warn(reading->command->name, recording);
}

/* Makes the section's bytes. Returns 0 or -errno. */
static int make_section(const struct tally_command *command, const struct request *request,
			struct tally_buffer *section, size_t *places, size_t *known,
			struct tally_error *err)
{
	const char *path = request->view.input;
	struct reading reading = { .command = command };
	const struct tally_pack_options reads = { .progress = show_progress,
						  .look = warn,
						  .context = &reading,
						  .names = &request->view.names };
	tally_view_progress_start(&reading.progress);
	int result = tally_pack_section(path, &reads, section, places, known, err);
	tally_view_progress_end(&reading.progress);
	if (result < 0 || section->length)
		return result;
	if (*places)
		tally_error_set(err, -ENOENT, "%s: no sampled place can be named here", path);
	else
		tally_error_set(err, -ENOENT, "%s: there is nothing to name", path);
	tally_error_hint(
		err,
		"the recorded programs must be here, unchanged; 'tally report' shows which are");
	return -ENOENT;
}

static int pack(const struct tally_command *command, const struct request *request,
		struct tally_error *err)
{
	struct tally_buffer section = { 0 };
	const char *output = tally_text_or(request->output, request->view.input);
	size_t places = 0, known = 0;
	char size[TALLY_SIZE_TEXT];
	int result = make_section(command, request, &section, &places, &known, err);
	if (!result)
		result = tally_pack_write(request->view.input, output, &section, err);
	if (!result && !request->quiet)
		tally_say("tally: %s has the names of %s of %s sampled places, in %s", output,
			  tally_number(known), tally_number(places),
			  tally_size_text(section.length, size));
	tally_buffer_release(&section);
	return result;
}

static int check(const struct request *request, struct tally_error *err)
{
	struct stat file;
	if (!strcmp(request->view.input, "-"))
		return tally_error_set(
			err, -EINVAL,
			"a recording from a pipe can't be packed: name a file");
	if (request->output && !strcmp(request->output, "-"))
		return tally_error_set(err, -EINVAL,
				       "-o -: a packed recording must go to a file, not a pipe");
	const char *const inputs[] = { request->view.input, NULL };
	if (stat(request->view.input, &file) < 0 || S_ISREG(file.st_mode))
		return tally_output_check(request->output, inputs, err);
	if (!S_ISDIR(file.st_mode))
		return tally_error_set(err, -EINVAL, "%s is not a file", request->view.input);
	if (request->output)
		return tally_error_set(
			err, -EINVAL,
			"-o: a directory is packed in place: cp -r %s %s, then tally pack %s",
			request->view.input, request->output, request->output);
	return 0;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { 0 };
	int status;
	if (!tally_recording_arguments(command, argc, argv, &request, &request.view.input, &status))
		return status;
	tally_view_choose_file(command->name, &request.view);
	if (check(&request, &err) < 0)
		return tally_command_misused(command, &err);
	if (pack(command, &request, &err) < 0)
		return tally_command_fail(command, &err);
	return TALLY_EXIT_OK;
}

const struct tally_command tally_command_pack = {
	.name = "pack",
	.summary = "put names into a recording, to read it on any machine",
	.usage = "[options] [FILE]",
	.details =
		"Adds functions, inlined frames, source lines and build-ids of all sampled "
		"addresses to the file, and the\n"
		"code of the hottest functions, for annotate.  The file is replaced once the new "
		"one is complete.  `tally record`\n"
		"packs by itself; pack recordings of perf, or from a pipe, where the programs "
		"are:\n\n"
		"  perf record -g ./program && tally pack perf.data\n"
		"  tally pack stream.data -o tally.data\n"
		"  tally pack --debuginfod=https://debuginfod.debian.net perf.data\n\n"
		"perf reads the file as before.  In a recording that is a directory (perf record "
		"--threads), it is the file 'data'.",
	.options = options,
	.run = run,
};
