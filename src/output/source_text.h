/* The lines of source files, as the compiler had named them.
 *
 * The paths come from programs and recordings: only regular files are read, up to a size, and
 * whatever is not to be had is no error.  Not thread-safe.
 */
#ifndef TALLY_OUTPUT_SOURCE_TEXT_H
#define TALLY_OUTPUT_SOURCE_TEXT_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_source_file {
	char *path;
	struct tally_buffer text;
	uint32_t *starts; /* of lines, and one behind the last */
	uint32_t count;   /* 0: it could not be read */
	int64_t time_ns;  /* when it was changed last, by time(2) */
};

struct tally_source_files {
	const char *root; /* --symfs: looked below first; NULL: none */
	struct { struct tally_source_file *items; size_t count, capacity; } files;
};

/* The file, read on first use; NULL when memory is out.  Valid until another is asked for. */
const struct tally_source_file *tally_source_file(struct tally_source_files *files,
						  const char *path);

/* Appends line `line` (from 1) without its end, tabs as blanks up to the next eighth column, other
 * control bytes as "?"; false when there is none.  `without`: so many columns of blanks are left
 * out at its beginning. */
bool tally_source_line(const struct tally_source_file *file, uint32_t line, unsigned without,
		       struct tally_buffer *out);

/* Columns of blanks that all lines of a range begin with. */
unsigned tally_source_indent(const struct tally_source_file *file, uint32_t first, uint32_t last);

void tally_source_files_release(struct tally_source_files *files);

#endif
