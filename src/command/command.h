/* Subcommands: one file each, which exports one `struct tally_command` that commands.c lists.
 *
 * Help, usage errors and completion come from the option tables.
 */
#ifndef TALLY_COMMAND_H
#define TALLY_COMMAND_H

#include "base/terminal.h"
#include "command/options.h"

struct tally_command {
	const char *name;
	const char *summary;  /* one line for `tally help` */
	const char *usage;    /* "[options] [--] command [argument…]" */
	const char *details;  /* paragraphs and examples below the options, or NULL */
	const struct tally_option *options;
	/* Libraries for programs and recordings are loaded at their first use, not at the start
	 * (late_libraries.h). */
	bool rarely_reads_files;
	/* argv[0] is the command's name.  Returns the exit status. */
	int (*run)(const struct tally_command *command, int argc, char **argv);
};

extern const struct tally_command *const tally_commands[]; /* ends with NULL */

/* Returns the command. NULL: prints an error that suggests the nearest name; exit with
 * TALLY_EXIT_USAGE. */
const struct tally_command *tally_command_find(const char *name);

/* Returns what to do instead of a command that perf has and tally lacks, or NULL. */
const char *tally_command_instead(const char *name);

enum { TALLY_EXIT_OK = 0, TALLY_EXIT_FAILURE = 1, TALLY_EXIT_USAGE = 2 };

/* Prints "tally stat: MESSAGE" and "hint: HINT" to stderr.  Returns TALLY_EXIT_FAILURE. */
int tally_command_fail(const struct tally_command *command, const struct tally_error *err);

/* Prints a usage error, with "see tally stat --help". Returns TALLY_EXIT_USAGE. */
int tally_command_misuse(const struct tally_command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints a usage error from `err`; its hint, if it has one, replaces "see …". */
int tally_command_misused(const struct tally_command *command, const struct tally_error *err);

#endif
