/* Shows metadata before a command's output or instead of it.  The recording's date is its file's
 * time of modification; in a recording that is a directory, that file is `data`. */
#include "command/header_options.h"

#include "output/output.h"
#include "view/view.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct tally_option tally_header_options[] = {
	{ 0, "header", TALLY_ARGUMENT_NONE, NULL,
	  "first print the metadata: machine, command line, events",
	  TALLY_SET(struct tally_header_request, shown) },
	{ 0, "header-only", TALLY_ARGUMENT_NONE, NULL, "print only the metadata",
	  TALLY_SET(struct tally_header_request, only),
	  TALLY_ALSO(struct tally_header_request, shown) },
	{ 'I', "show-info", TALLY_ARGUMENT_NONE, NULL, "print CPUs, caches and memory in full",
	  TALLY_SET(struct tally_header_request, full) },
	TALLY_OPTIONS_END,
};

void tally_command_header(const struct tally_recording *recording, const char *path,
			  const struct tally_header_request *request, struct tally_buffer *out)
{
	struct stat status = { 0 };
	int result;
	char data[4096];
	if (!strcmp(path, "-"))
		result = fstat(STDIN_FILENO, &status);
	else
		result = stat(path, &status);
	if (!result && S_ISDIR(status.st_mode)) {
		snprintf(data, sizeof(data), "%s/data", path);
		result = stat(data, &status);
	}
	if (result < 0)
		status.st_mtime = 0;
	tally_recording_header(recording->data, status.st_mtime, request->full, out);
}

int tally_command_header_only(const struct tally_command *command, const char *path,
			      const struct tally_header_request *request)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_buffer out = { 0 };
	struct tally_recording *recording;
	struct tally_raw_record raw;
	struct tally_record record;
	int result = 0;
	if (tally_recording_open(path, &recording, &err) < 0)
		return tally_command_fail(command, &err);
	/* A pipe's metadata are in the stream; reading to the end also spares its writer
	 * SIGPIPE. */
	if (tally_perfdata_is_pipe(recording->data))
		while ((result = tally_recording_next(recording, &raw, &record, &err)) > 0)
			continue;
	tally_command_header(recording, path, request, &out);
	fputs(tally_buffer_string(&out), stdout);
	tally_buffer_release(&out);
	tally_view_warn(command->name, recording);
	tally_recording_close(recording);
	if (result < 0)
		return tally_command_fail(command, &err);
	return TALLY_EXIT_OK;
}
