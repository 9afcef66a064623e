/* Parsing a command's arguments by its table of options (base/option_row.h).
 * tally_options_parse() fills the command's request.  Help, completion and manual pages are made
 * from the same rows.
 */
#ifndef TALLY_COMMAND_OPTIONS_H
#define TALLY_COMMAND_OPTIONS_H

#include "base/option_row.h"

struct tally_command;

/* Returns perf's options that tally ignores or refuses for a command, ended by TALLY_OPTIONS_END;
 * NULL: there are none. */
const struct tally_option *tally_perf_options(const char *command);

/* Returns the option behind `last` (NULL: the first): the command's own and those of the tables that
 * it includes, then perf's; NULL after the last one. */
const struct tally_option *tally_option_next(const struct tally_command *command,
					     const struct tally_option *last);

/* A walk through a command's arguments.  Stops at the first argument that is not an option, so that
 * a profiled command keeps its own options. */
struct tally_options {
	const struct tally_command *command;
	int argc;
	char **argv;
	int index;  /* first argument after the options, once parse() returned true */
	int status; /* exit status, once parse() returned false; otherwise -1 */
	const struct tally_option *option; /* the last one */
	const char *value; /* its argument, or NULL */
	bool negated;      /* --no-NAME was typed, or --NAME for an option no-NAME */
	bool dashes;       /* "--" was read */
	const char *cluster; /* the rest of "-abc" */
};

#define TALLY_OPTIONS_INIT(command_, argc_, argv_) \
	{ .command = (command_), .argc = (argc_), .argv = (argv_), .index = 1, .status = -1 }

/* Takes the options before the next argument that is none, or before the end, into the request.
 * Call it again behind that argument if options may follow it.  Returns false when the command must
 * exit with `status`: the help or an error was printed.  Every command has -h and --help. */
bool tally_options_parse(struct tally_options *options, void *request);

/* Takes the next argument, the name of a file, into the first of the `most` files that is NULL.
 * Returns false when the command must exit with `status`, after an error was printed: the name is
 * empty, or all files are set; then `excess` is the message, with %s for the argument. */
bool tally_options_take_file(struct tally_options *options, const char **files, unsigned most,
			     const char *excess);

/* Parses options and at most one recording, in any order; stores the recording's name in `*input`
 * unless an option did. Returns false when the command must exit with `*status`, after the help or
 * an error was printed. */
bool tally_recording_arguments(const struct tally_command *command, int argc, char **argv,
			       void *request, const char **input, int *status);

#endif
