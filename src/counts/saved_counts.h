/* Counts that `stat` saved: tally's JSON (docs/stat-output.md), and perf's (`perf stat -j`).
 *
 * A file may hold several documents, one behind the other, as `--append` makes them: they are runs
 * of one series.  Sans I/O; nothing in the text is believed. */
#ifndef TALLY_COUNTS_SAVED_COUNTS_H
#define TALLY_COUNTS_SAVED_COUNTS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vector.h"
#include "counts/comparison.h"

#include <stdbool.h>
#include <stddef.h>

struct tally_saved_row {
	const char *name, *unit; /* "" where there is none */
	const char *missing; /* why there is no figure: "not-supported", …; NULL: there is one */
	const char *source;      /* "kernel", "simulated", …; "" unknown */
	struct tally_figure figure;
	bool is_scaled, is_substitute, is_user_only;
};

struct tally_saved_counts {
	const char *path;     /* the caller's */
	const char *command;  /* as one line; "" unknown */
	const char *provider; /* "" unknown */
	const char *machine;  /* what was simulated; "" otherwise */
	const char *
		ended; /* how a command ended that did not finish: "signal 6", "an interruption"; "" otherwise */
	TALLY_VECTOR(const char *) notes; /* as they were saved, the arena's */
	unsigned long runs;   /* 0: unknown */
	/* Events in the file's order, then "elapsed", "user", "system" in seconds, as far as they
	 * are known. */
	TALLY_VECTOR(struct tally_saved_row) rows;
};

/* Reads `length` bytes.  Strings are the arena's.  0, or -errno with words that name `path`. */
int tally_saved_counts_read(const char *path, const char *text, size_t length,
			    struct tally_arena *arena, struct tally_saved_counts *out,
			    struct tally_error *err);
void tally_saved_counts_release(struct tally_saved_counts *counts);

/* The row of that name: written alike, or else the only one that is the same event without its
 * modifiers or its PMU ("instructions" finds "instructions:u", "vsim/instructions/").  NULL. */
const struct tally_saved_row *tally_saved_counts_find(const struct tally_saved_counts *counts,
						      const char *name);

#endif
