/* Counts that `stat` has saved: tally's JSON (docs/stat-output.md), and perf's (`perf stat -j`).
 *
 * A file may hold several documents one after another, as `--append` writes them: they are runs of
 * one series.  No I/O; the text is untrusted. */
#ifndef TALLY_COUNTS_SAVED_COUNTS_H
#define TALLY_COUNTS_SAVED_COUNTS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vector.h"
#include "counts/comparison.h"

#include <stdbool.h>
#include <stddef.h>

struct tally_saved_row {
	const char *name, *unit; /* "" if there is none */
	const char *missing; /* why there is no figure: "not-supported", …; NULL: there is one */
	const char *source;      /* "kernel", "simulated", …; "": unknown */
	struct tally_figure figure;
	bool is_scaled, is_substitute, is_user_only;
};

struct tally_saved_counts {
	const char *path;     /* the caller's */
	const char *command;  /* as one line; "": unknown */
	const char *provider; /* "": unknown */
	const char *machine;  /* the simulated machine; "" if none */
	/* how an unfinished command ended: "signal 6", "an interruption"; "" otherwise */
	const char *ended;
	TALLY_VECTOR(const char *) notes; /* as saved, in the arena */
	unsigned long runs;   /* 0: unknown */
	/* Events in the file's order, then "elapsed", "user", "system" in seconds, as far as they
	 * are known. */
	TALLY_VECTOR(struct tally_saved_row) rows;
};

/* Reads `length` bytes.  Strings are in the arena.  Returns 0, or -errno with a message that names
 * `path`. */
int tally_saved_counts_read(const char *path, const char *text, size_t length,
			    struct tally_arena *arena, struct tally_saved_counts *out,
			    struct tally_error *err);
void tally_saved_counts_release(struct tally_saved_counts *counts);

/* Finds a row by name: the one with exactly that name, or else the only one that is the same event
 * without its modifiers or its PMU ("instructions" finds "instructions:u" and
 * "vsim/instructions/").  Returns NULL if there is none. */
const struct tally_saved_row *tally_saved_counts_find(const struct tally_saved_counts *counts,
						      const char *name);

#endif
