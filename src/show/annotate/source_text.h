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
#ifndef TALLY_ANNOTATE_SOURCE_TEXT_H
#define TALLY_ANNOTATE_SOURCE_TEXT_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
