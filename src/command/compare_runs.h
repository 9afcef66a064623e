/* The runs that `tally compare` makes of commands. */
#ifndef TALLY_COMMAND_COMPARE_RUNS_H
#define TALLY_COMMAND_COMPARE_RUNS_H

#include "base/buffer.h"
#include "base/error.h"
#include "command/stat_command.h"

struct compare_runs {
	struct stat_command stat; /* events and provider of all runs */
	const char *prepare;      /* a command before each run, outside of the counts; NULL: none */
	unsigned long runs, warmups;
	uint64_t seed; /* of the order of the runs */
	bool has_seed, shows_output, ignores_failure;
	/* Results: */
	unsigned long done; /* whole turns */
	bool was_interrupted;
};

/* One side's command, and its counts. */
struct compare_side {
	const char *text;              /* as given; NULL: this side is a saved result */
	char **words;                  /* the arguments to start; the caller's */
	struct tally_buffer documents; /* the counts of each run, as `stat -j` writes them */
};

/* True if the argument is a command, false if it is a saved result: "-", or an existing file that is
 * no program.  Returns -errno with a message if it is neither. */
int compare_is_command(const char *argument, struct tally_error *err);

/* Splits a command into words, or, if it uses the shell's characters, makes words that start
 * `sh -c`.  Strings are in the arena.  Returns 0 or -errno. */
int compare_split(struct tally_arena *arena, const char *text, char ***words,
		  struct tally_error *err);

/* Runs the commands of both sides in turns, in random order within a turn.  Each of the two may have
 * none.  After Ctrl-C, the results are those of the whole turns so far.  Returns 0 or -errno. */
int compare_run(struct compare_runs *runs, struct compare_side sides[2], struct tally_error *err);

/* Releases what the runs opened. */
void compare_runs_release(struct compare_runs *runs);

#endif
