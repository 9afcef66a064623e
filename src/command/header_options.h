/* Options that show a recording's metadata: --header, --header-only, -I. */
#ifndef TALLY_COMMAND_HEADER_OPTIONS_H
#define TALLY_COMMAND_HEADER_OPTIONS_H

#include "base/buffer.h"
#include "command/command.h"
#include "recording/recording.h"

struct tally_header_request {
	bool shown, only, full;
};

/* Rows of an option table. `member` is the request's struct tally_header_request. */
#define TALLY_HEADER_OPTIONS(type, member) \
	{ 0, "header", TALLY_ARGUMENT_NONE, NULL, \
	  "first print the metadata: machine, command line, events", \
	  TALLY_SET(type, member.shown) }, \
	{ 0, "header-only", TALLY_ARGUMENT_NONE, NULL, "print only the metadata", \
	  TALLY_SET(type, member.only), TALLY_ALSO(type, member.shown) }, \
	{ 'I', "show-info", TALLY_ARGUMENT_NONE, NULL, "print CPUs, caches and memory in full", \
	  TALLY_SET(type, member.full) }

/* Appends the header of the recording at `path` as far as it is known, with terminal escapes
 * neutralised. */
void tally_command_header(const struct tally_recording *recording, const char *path,
			  const struct tally_header_request *request, struct tally_buffer *out);

/* --header-only: prints the header of the recording at `path`; reads a pipe to its end first.
 * Returns the exit status. */
int tally_command_header_only(const struct tally_command *command, const char *path,
			      const struct tally_header_request *request);

#endif
