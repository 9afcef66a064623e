/* The largest input of each kind that tally reads, in one table.
 *
 * tally reads files that others wrote.  A small file may stand for a large one: it may be
 * compressed, sparse or repeat itself.  So each reader asks this table how much it may take, and
 * refuses more.  docs/security.md lists the table; tests/unit/test_input_limits.c compares the two.
 *
 * The variable TALLY_LIMITS raises or lowers limits: "recording=8G,perf-map=2G".  They protect the
 * caller, so it counts even in an environment that is otherwise untrusted (base/environment.h).
 *
 * A reader whose file is the command's subject returns an error.  A reader of a side file (a perf
 * map, an object) goes on without it and notes the refusal here, since it is far from where
 * messages are printed.  The command prints the notes when it ends.
 */
#ifndef TALLY_BASE_INPUT_LIMITS_H
#define TALLY_BASE_INPUT_LIMITS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tally_input {
	TALLY_INPUT_RECORDING,
	TALLY_INPUT_COMPRESSED,
	TALLY_INPUT_HELD,
	TALLY_INPUT_UNPACKED,
	TALLY_INPUT_TEXT,
	TALLY_INPUT_SECTION,
	TALLY_INPUT_TABLES,
	TALLY_INPUT_OBJECT,
	TALLY_INPUT_OBJECT_SECTIONS,
	TALLY_INPUT_DWARF,
	TALLY_INPUT_MINIDEBUGINFO,
	TALLY_INPUT_MODULE,
	TALLY_INPUT_PERF_MAP,
	TALLY_INPUT_PERF_MAPS,
	TALLY_INPUT_JIT_DUMP,
	TALLY_INPUT_JIT_DUMPS,
	TALLY_INPUT_DEBUGINFOD,
	TALLY_INPUT_DEBUGINFOD_ALL,
	TALLY_INPUT_SOURCE,
	TALLY_INPUT_DEMANGLED,
	TALLY_INPUTS
};

struct tally_input_row {
	const char *name;
	uint64_t bytes;
	/* for compressed input: above `free_bytes`, at most `ratio` times the compressed bytes;
	 * ratio 0: `bytes` alone counts */
	uint64_t free_bytes;
	unsigned ratio;
	bool is_fixed; /* TALLY_LIMITS can't change it */
	const char *what;
};

extern const struct tally_input_row tally_input_rows[TALLY_INPUTS];

/* Returns the limit in bytes: that of TALLY_LIMITS, otherwise the table's. */
uint64_t tally_input_limit(enum tally_input input);

/* The same for what `stored` compressed bytes may unpack to.  A limit of TALLY_LIMITS replaces the
 * ratio, too. */
uint64_t tally_input_limit_unpacked(enum tally_input input, uint64_t stored);

enum { TALLY_INPUT_HINT = 128 };
/* Writes how to raise a limit of `limit` bytes, such as "TALLY_LIMITS=text=8G raises the limit", and
 * returns `out`. */
const char *tally_input_hint(enum tally_input input, uint64_t limit, char out[TALLY_INPUT_HINT]);

/* Sets an error for input above `limit` bytes: the formatted text with the limit behind it ("it is
 * larger than" → "it is larger than 4.0 GiB"), and the hint.  Returns -EFBIG.  `err` may be NULL. */
int tally_input_refuse(struct tally_error *err, enum tally_input input, uint64_t limit,
		       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Checks TALLY_LIMITS.  Returns 0, or -EINVAL with a message. */
int tally_input_limits_check(struct tally_error *err);

/* Notes that `name` was refused.  The first name of each kind of input is kept, and the number of
 * different names.  Thread-safe. */
void tally_input_note(enum tally_input input, const char *name);

/* Gets the next note: `*input` is where to begin, and is set to the noted kind.  Returns the number
 * of refused inputs of that kind, or 0 after the last note.  `*name` stays valid. */
size_t tally_input_noted(enum tally_input *input, const char **name);

#endif
