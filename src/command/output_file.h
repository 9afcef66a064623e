/* What a command leaves behind: a file, or its standard output. */
#ifndef TALLY_COMMAND_OUTPUT_FILE_H
#define TALLY_COMMAND_OUTPUT_FILE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>

/* Writes the text to `path`; NULL or "-" is standard output.  A file that is there is replaced when
 * all of the text is on the disk, and stays as it is when that fails.  0 or -errno with a
 * message. */
int tally_output_write(const char *path, const struct tally_buffer *text, struct tally_error *err);

/* Whether the name ends in one of these (".svg", NULL at the end), in either case. */
bool tally_output_ends_in(const char *path, const char *const *endings);
/* Whether the name promises another kind of file (a picture, JSON …) than the known ones: programs
 * would open it by its name, and not understand it. */
bool tally_output_is_other_kind(const char *path, const char *const *known);

#endif
