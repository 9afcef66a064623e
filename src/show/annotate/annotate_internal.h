/* The pieces of an annotated function: arrows of jumps, source lines. */
#ifndef TALLY_ANNOTATE_INTERNAL_H
#define TALLY_ANNOTATE_INTERNAL_H

#include "base/buffer.h"
#include "report/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Jumps within a function, drawn as arrows: assigns each arrow a column. For annotate_*.c.
 *
 * All jumps to one instruction share an arrow, which spans from the lowest to the highest
 * instruction involved. Short arrows are drawn next to the code, longer ones further out. If no
 * column is free, an arrow is not drawn, and the view labels its target instead.
 */

struct tally_arrow {
	uint32_t low, high; /* first and last instruction that the arrow spans */
	uint32_t to;        /* the instruction jumped to, within low … high */
	unsigned column;    /* 0: next to the code; UINT_MAX: not drawn */
};

struct tally_arrows {
	struct { struct tally_arrow *items; size_t count, capacity; } arrows;
	uint32_t *there; /* the arrow's index + 1, by column and instruction; 0: none */
	size_t rows;
	unsigned columns; /* columns in use */
};

int tally_arrows_make(const struct tally_annotation *annotation, unsigned columns_max,
		      struct tally_arrows *out);
void tally_arrows_release(struct tally_arrows *arrows);

enum { TALLY_ARROW_UP = 1, TALLY_ARROW_DOWN = 2, TALLY_ARROW_LEFT = 4, TALLY_ARROW_RIGHT = 8 };

/* Returns which parts of arrows (TALLY_ARROW_* bits) to draw in a column beside an instruction or,
 * with `above`, beside the lines shown between that instruction and the one before. */
unsigned tally_arrow_cell(const struct tally_arrows *arrows,
			  const struct tally_annotation *annotation, size_t row, unsigned column,
			  bool above);

/* True if a drawn arrow ends at an instruction (_arrives), or begins there (_leaves). */
bool tally_arrow_arrives(const struct tally_arrows *arrows, size_t row);
bool tally_arrow_leaves(const struct tally_arrows *arrows,
			const struct tally_annotation *annotation, size_t row);

/* The lines of source files, by the paths that the compiler recorded.
 *
 * Paths come from programs and recordings, which may name any file, and the output may be passed
 * on: so the lines of a file that other users can't read are left out, unless the user names a
 * folder above it (--source DIR) or the output is a terminal.  Other users can read a file if its
 * mode and the modes of all folders above it let them; folders above the working directory and above
 * --symfs are not looked at.
 *
 * Only regular files up to a size are read. A file that cannot be read is not an error. Not
 * thread-safe.
 */

struct tally_source_file {
	char *path;
	struct tally_buffer text;
	uint32_t *starts; /* offsets of lines, and of the end */
	uint32_t count;   /* lines; 0: the file could not be read */
	int error;        /* -errno, or 0 */
	int64_t time_ns;  /* modification time, ns since the Epoch */
};

struct tally_source_files {
	const char *root;   /* --symfs: searched first; NULL: none */
	const char *shared; /* --source: the user wants these files in the output; NULL: none */
	bool is_for_terminal;
	char *left_out;          /* the first file that other users can't read; owned; or NULL */
	unsigned left_out_count; /* such files */
	struct { struct tally_source_file *items; size_t count, capacity; } files;
};

/* Returns the file, which is read on first use; NULL: out of memory. Valid until the next call. */
const struct tally_source_file *tally_source_file(struct tally_source_files *files,
						  const char *path);

/* Appends a line (numbered from 1) without its newline. Expands tabs to multiples of 8 columns;
 * other control bytes become "?". `without` columns of leading blanks are removed. Returns false if
 * there is no such line. */
bool tally_source_line(const struct tally_source_file *file, uint32_t line, unsigned without,
		       struct tally_buffer *out);

/* Returns how many columns of blanks all lines of a range begin with. */
unsigned tally_source_indent(const struct tally_source_file *file, uint32_t first, uint32_t last);

void tally_source_files_release(struct tally_source_files *files);

#endif
