/* Subcommands: one file each, exporting one `struct tally_command`, listed in commands.c.
 *
 * Help, usage errors and (later) completion and man pages come from the option tables.
 */
#ifndef TALLY_COMMAND_COMMAND_H
#define TALLY_COMMAND_COMMAND_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tally_argument_kind {
	TALLY_ARGUMENT_NONE,
	TALLY_ARGUMENT_REQUIRED,
	TALLY_ARGUMENT_OPTIONAL /* "-g", "-gcaller", and "-g caller" when `choices` has the word */
};

struct tally_option {
	int letter;            /* 'e', or 0 for a long option alone */
	const char *name;      /* "event", or NULL for a letter alone */
	enum tally_argument_kind kind;
	const char *argument;  /* "EVENTS": its name in the help */
	const char *help;      /* one or more lines; starts in lower case, no full stop */
	/* for OPTIONAL: words, separated by blanks, that may stand as the next argument */
	const char *choices;
	int id;                /* what tally_options_next returns; 0: the letter */
};

#define TALLY_OPTIONS_END { .letter = 0, .name = NULL }

struct tally_command {
	const char *name;
	const char *summary;  /* one line for `tally help` */
	const char *usage;    /* "[options] [--] command [argument…]" */
	const char *details;  /* paragraphs and examples below the options, or NULL */
	const struct tally_option *options;
	/* argv[0] is the command's name.  Returns the exit status. */
	int (*run)(const struct tally_command *command, int argc, char **argv);
};

extern const struct tally_command *const tally_commands[]; /* NULL at the end */

/* NULL after a message that names the nearest one (exit with TALLY_EXIT_USAGE). */
const struct tally_command *tally_command_find(const char *name);

enum { TALLY_EXIT_OK = 0, TALLY_EXIT_FAILURE = 1, TALLY_EXIT_USAGE = 2 };

/* A walk over the options; stops at the first argument that is none (so a profiled command keeps
 * its own). */
struct tally_options {
	const struct tally_command *command;
	int argc;
	char **argv;
	int index;         /* of the first argument behind the options, once next() gave 0 */
	const char *value; /* the argument of the option just given, or NULL */
	bool dashes;       /* "--" ended the options */
	const char *cluster; /* rest of "-abc" */
};

#define TALLY_OPTIONS_INIT(command_, argc_, argv_) \
	{ .command = (command_), .argc = (argc_), .argv = (argv_), .index = 1 }

enum { TALLY_OPTION_DONE = 0, TALLY_OPTION_ERROR = -1, TALLY_OPTION_HELP = -2 };

/* The next option's id; DONE; ERROR after the message was printed (exit with TALLY_EXIT_USAGE);
 * HELP after the help was printed (exit 0): -h and --help are every command's. */
int tally_options_next(struct tally_options *options);

/* Whether its argument is the name of a file or a folder, which may not be empty. */
bool tally_option_takes_path(const struct tally_option *option);

/* The next argument, which is a file's name; NULL after a message (exit with TALLY_EXIT_USAGE)
 * where that is empty. */
const char *tally_options_file(struct tally_options *options);

/* Numbers from options: 0, or -EINVAL with a message that names the option. */
int tally_option_u64(const char *option, const char *value, unsigned long long minimum,
		     unsigned long long maximum, unsigned long long *out, struct tally_error *err);
/* "512K", "8M", "1G": bytes. */
int tally_option_size(const char *option, const char *value, unsigned long long *out,
		      struct tally_error *err);
/* "1.5", "500ms", "2s", "3m": seconds. */
int tally_option_seconds(const char *option, const char *value, double *out,
			 struct tally_error *err);
/* A millisecond at least, and no more than a billion seconds: no time is not the same as no end. */
int tally_option_duration(const char *option, const char *value, double *out,
			  struct tally_error *err);

/* -D: milliseconds, or -1 for "not before --control says so". */
int tally_option_delay(const char *value, long *delay_ms, struct tally_error *err);

/* --max-stack: frames, as many as an attribute can say, but for the number that means "unwound"
 * there. */
int tally_option_frames(const char *value, uint32_t *out, struct tally_error *err);

/* "tally stat: MESSAGE" and "hint: HINT" on stderr, terminal escapes in names neutralised.
 * Returns TALLY_EXIT_FAILURE. */
int tally_command_fail(const struct tally_command *command, const struct tally_error *err);

/* The same for wrong use: adds "see tally stat --help".  Returns TALLY_EXIT_USAGE. */
int tally_command_misuse(const struct tally_command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* … of an option's value, with the error's own hint where it has one. */
int tally_command_misused(const struct tally_command *command, const struct tally_error *err);

#endif
