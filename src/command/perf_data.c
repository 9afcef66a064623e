/* perf mode's `data convert --to-json FILE`: a recording as JSON, as perf writes it. */
#include "base/buffer.h"
#include "command/command.h"
#include "command/perf_mode.h"
#include "perf/perf.h"
#include "recording/recording.h"
#include "view/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
	struct tally_view_options view;
	const char *output;
	bool replaces;
};

static const struct tally_option options[] = {
	{ TALLY_INCLUDE(tally_view_input_option, struct request, view) },
	{ 0, "to-json", TALLY_ARGUMENT_REQUIRED, "FILE", "write this file",
	  TALLY_TEXT(struct request, output) },
	{ 'f', "force", TALLY_ARGUMENT_NONE, NULL, "replace a file that is there",
	  TALLY_SET(struct request, replaces) },
	{ 'v', "verbose", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 0, "all", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 0, "tod", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 0, "to-ctf", TALLY_ARGUMENT_REQUIRED, "FOLDER", NULL,
	  TALLY_INSTEAD("tally export writes other formats: 'tally export --help' lists them") },
	TALLY_OPTIONS_END,
};

enum { FLUSH_BYTES = 1 << 18 };

static int flush(struct tally_buffer *out, FILE *file, const char *name, struct tally_error *err)
{
	if (out->failed)
		return tally_error_set(err, -ENOMEM, "out of memory");
	if (fwrite(tally_buffer_string(out), 1, out->length, file) != out->length)
		return tally_error_set(err, -EIO, "writing %s failed: %m", name);
	tally_buffer_clear(out);
	return 0;
}

static int write_samples(struct tally_recording *recording, int64_t captured, FILE *file,
			 const char *name, size_t *samples, struct tally_error *err)
{
	struct tally_buffer out = { 0 };
	struct tally_raw_record raw;
	struct tally_record record;
	int result;
	tally_perf_data_json_begin(recording->data, captured, &out);
	while ((result = tally_recording_next(recording, &raw, &record, err)) > 0) {
		if (record.header.type != TALLY_RECORD_SAMPLE)
			continue;
		result = tally_perf_data_json_sample(recording, &raw, &record, !*samples, &out);
		*samples += 1;
		if (result < 0)
			tally_error_set(err, result, "out of memory");
		else if (out.length >= FLUSH_BYTES)
			result = flush(&out, file, name, err);
		if (result < 0)
			break;
	}
	tally_perf_data_json_end(&out);
	if (result >= 0)
		result = flush(&out, file, name, err);
	tally_buffer_release(&out);
	return result;
}

static int convert(const struct request *request, size_t *samples, off_t *size,
		   struct tally_error *err)
{
	const char *input = request->view.input, *name = request->output;
	struct tally_recording *recording;
	struct stat about = { 0 };
	int result = tally_view_open(&request->view, &recording, err);
	if (result < 0)
		return result;
	stat(input, &about);
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | (request->replaces ? O_TRUNC : O_EXCL),
		      0666);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		result = tally_error_set(err, -errno, "%s can't be written: %m", name);
		if (errno == EEXIST)
			tally_error_hint(err, "--force replaces it");
		tally_recording_close(recording);
		return result;
	}
	result = write_samples(recording, about.st_ctime, file, name, samples, err);
	tally_view_warn("perf data", recording);
	tally_recording_close(recording);
	if (fclose(file) && result >= 0)
		result = tally_error_set(err, -errno, "writing %s failed: %m", name);
	if (!stat(name, &about))
		*size = about.st_size;
	return result;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { 0 };
	const double bytes_per_mb = 1024 * 1024;
	size_t samples = 0;
	off_t size = 0;
	if (argc < 2 || strcmp(argv[1], "convert") != 0)
		return tally_command_misuse(command, "'convert' is what it does");
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc - 1, argv + 1);
	if (!tally_options_parse(&walk, &request))
		return walk.status;
	if (!request.output)
		return tally_command_misuse(command, "--to-json FILE is what can be written");
	request.view.input = tally_perf_input(request.view.input);
	request.view.real_paths = true;
	request.view.no_inlines = true;
	if (convert(&request, &samples, &size, &err) < 0)
		return tally_command_fail(command, &err);
	fprintf(stderr,
		"[ perf data convert: Converted '%s' into JSON data '%s' ]\n"
		"[ perf data convert: Converted and wrote %.3f MB (%zu samples) ]\n",
		request.view.input, request.output, (double)size / bytes_per_mb, samples);
	return TALLY_EXIT_OK;
}

const struct tally_command tally_perf_data = {
	.name = "perf data",
	.summary = "convert a recording to JSON: data convert --to-json FILE",
	.usage = "convert --to-json FILE [options]",
	.options = options,
	.run = run,
};
