/* Python scripts that were written for perf (perf_python.c). */
#ifndef TALLY_COMMAND_PERF_PYTHON_H
#define TALLY_COMMAND_PERF_PYTHON_H

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* A script that runs. */
struct perf_python {
	pid_t pid;     /* 0: none */
	FILE *samples; /* its input: lines of tally_script_python_sample() */
};

/* Starts the script of `perf script -s`: a file, "py:FILE", or the name of one of perf's.  Returns 0 or
 * -errno with a message. */
int perf_python_start(struct perf_python *python, const char *name, char **arguments,
		      struct tally_error *err);
/* Ends its input and waits for it.  Returns its exit status. */
int perf_python_finish(struct perf_python *python);

/* True if perf brought a script of this name. */
bool perf_python_knows(const char *name);
/* Prints the names of these scripts, and what they do.  Returns 0, or 1 if there is none. */
int perf_python_list(void);
/* Runs a part of one: "record", "report", or "" for both at once, with the arguments for the first part.
 * Returns its exit status, or -errno with a message. */
int perf_python_run(const char *name, const char *part, char **arguments, struct tally_error *err);

#endif
