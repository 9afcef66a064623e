/* Options that show a recording's metadata: --header, --header-only, -I. */
#ifndef TALLY_COMMAND_HEADER_OPTIONS_H
#define TALLY_COMMAND_HEADER_OPTIONS_H

#include "base/buffer.h"
#include "command/command.h"
#include "recording/recording.h"

struct tally_header_request {
	bool shown, only, full;
};

/* For TALLY_INCLUDE(); its request is a struct tally_header_request. */
extern const struct tally_option tally_header_options[];

/* Appends the header of the recording at `path` as far as it is known, with terminal escapes
 * neutralised. */
void tally_command_header(const struct tally_recording *recording, const char *path,
			  const struct tally_header_request *request, struct tally_buffer *out);

/* --header-only: prints the header of the recording at `path`; reads a pipe to its end first.
 * Returns the exit status. */
int tally_command_header_only(const struct tally_command *command, const char *path,
			      const struct tally_header_request *request);

#endif
