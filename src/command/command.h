/* Subcommands: one file each, which exports one `struct tally_command` that commands.c lists.
 *
 * Help, usage errors and completion come from the option tables.
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
	TALLY_ARGUMENT_OPTIONAL /* "-g", "-gcaller"; also "-g caller" if `choices` has the word */
};

struct tally_option {
	int letter;            /* 'e', or 0: long option only */
	const char *name;      /* "event", or NULL: letter only */
	enum tally_argument_kind kind;
	const char *argument;  /* "EVENTS": the argument's name in the help */
	/* one or more lines, lower case, no full stop; NULL: not in the help */
	const char *help;
	/* for OPTIONAL: blank-separated words that may be the next argument */
	const char *choices;
	int id;                /* value from tally_options_next(); 0: the letter */
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

extern const struct tally_command *const tally_commands[]; /* ends with NULL */

/* Returns the command. NULL: prints an error that suggests the nearest name; exit with
 * TALLY_EXIT_USAGE. */
const struct tally_command *tally_command_find(const char *name);

enum { TALLY_EXIT_OK = 0, TALLY_EXIT_FAILURE = 1, TALLY_EXIT_USAGE = 2 };

/* Iterates over a command's options. Stops at the first argument that is not an option, so that a
 * profiled command keeps its own options. */
struct tally_options {
	const struct tally_command *command;
	int argc;
	char **argv;
	int index;         /* first argument after the options, once next() returned 0 */
	const char *value; /* the last option's argument, or NULL */
	bool dashes;       /* "--" was read */
	const char *cluster; /* the rest of "-abc" */
};

#define TALLY_OPTIONS_INIT(command_, argc_, argv_) \
	{ .command = (command_), .argc = (argc_), .argv = (argv_), .index = 1 }

enum { TALLY_OPTION_DONE = 0, TALLY_OPTION_ERROR = -1, TALLY_OPTION_HELP = -2 };

/* Returns the next option's id; DONE; ERROR after printing an error (exit with TALLY_EXIT_USAGE);
 * or HELP after printing the help (exit with 0). Every command has -h and --help. */
int tally_options_next(struct tally_options *options);

/* True if the option's argument names a file or a directory, which must not be empty. */
bool tally_option_takes_path(const struct tally_option *option);

/* Returns the next argument, the name of a file. NULL: it is empty; an error was printed, exit with
 * TALLY_EXIT_USAGE. */
const char *tally_options_file(struct tally_options *options);

/* Parses a number. Returns 0, or -EINVAL with a message that names the option. */
int tally_option_u64(const char *option, const char *value, unsigned long long minimum,
		     unsigned long long maximum, unsigned long long *out, struct tally_error *err);
/* Parses a size, "512K", "8M", "1G", to bytes. */
int tally_option_size(const char *option, const char *value, unsigned long long *out,
		      struct tally_error *err);
/* Parses a time, "1.5", "500ms", "2s", "3m", to seconds. */
int tally_option_seconds(const char *option, const char *value, double *out,
			 struct tally_error *err);
/* Like tally_option_seconds(), from 1 ms to 1e9 s: 0 must not be taken for "no limit". */
int tally_option_duration(const char *option, const char *value, double *out,
			  struct tally_error *err);

/* Parses a percentage, 0 to 100. */
int tally_option_percent(const char *option, const char *value, double *out,
			 struct tally_error *err);

struct tally_option_key {
	const char *name;
	bool *is_chosen;
};
/* Parses --sort's list of keys "a,b": sets what the listed keys point to and clears the rest.
 * `choices` and `others`, separated by blanks, are the names for suggestions. */
int tally_option_sort(const char *value, const struct tally_option_key *keys, size_t count,
		      const char *choices, const char *others, struct tally_error *err);

/* Parses -D: milliseconds, or -1 to wait for --control. */
int tally_option_delay(const char *value, long *delay_ms, struct tally_error *err);

/* Parses --max-stack: a number of frames, up to the maximum of an attribute. The attribute's value
 * for "unwound" is excluded. */
int tally_option_frames(const char *value, uint32_t *out, struct tally_error *err);

/* Prints "tally stat: MESSAGE" and "hint: HINT" to stderr, with terminal escapes neutralised.
 * Returns TALLY_EXIT_FAILURE. */
int tally_command_fail(const struct tally_command *command, const struct tally_error *err);

/* Prints a usage error, with "see tally stat --help". Returns TALLY_EXIT_USAGE. */
int tally_command_misuse(const struct tally_command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints a usage error from `err`; its hint, if it has one, replaces "see …". */
int tally_command_misused(const struct tally_command *command, const struct tally_error *err);

#endif
