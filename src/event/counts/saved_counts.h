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
#include "counts/condition.h"

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

/* Compares two saved results event by event, and judges conditions on them. */

struct tally_compared_row {
	const char *name;
	/* one is NULL if only the other side has the row */
	const struct tally_saved_row *old, *new;
	bool has_change; /* both sides have a figure */
	struct tally_change change;
};

struct tally_judged_condition {
	struct tally_condition condition;
	const struct tally_compared_row *row; /* NULL: UNKNOWN, there is no such event */
	double scale; /* the row's figures times `scale` are in the limit's unit */
	enum tally_condition_result result;
};

struct tally_saved_comparison {
	const struct tally_saved_counts *old, *new;
	/* in the order of the new file, then those that only the old one has */
	TALLY_VECTOR(struct tally_compared_row) rows;
	TALLY_VECTOR(struct tally_judged_condition) conditions;
	TALLY_VECTOR(const char *) notes; /* how the two sides differ; in the arena */
	bool has_failed;                  /* a condition is TRUE */
};

/* Compares two results.  Returns 0 or -ENOMEM. */
int tally_saved_compare(const struct tally_saved_counts *old, const struct tally_saved_counts *new,
			struct tally_arena *arena, struct tally_saved_comparison *out);
/* Judges one more condition.  With `past_noise`, NOISE counts as TRUE.  Returns 0 or -ENOMEM; or
 * -ENOENT with a message, and the result UNKNOWN, if a side has no figure for it or its command was
 * killed: a condition must not pass because nothing was counted. */
int tally_saved_compare_judge(struct tally_saved_comparison *comparison,
			      const struct tally_condition *condition, bool past_noise,
			      struct tally_error *err);
void tally_saved_comparison_release(struct tally_saved_comparison *comparison);

#endif
