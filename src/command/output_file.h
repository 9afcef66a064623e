/* What a command leaves behind: a file, or its standard output. */
#ifndef TALLY_COMMAND_OUTPUT_FILE_H
#define TALLY_COMMAND_OUTPUT_FILE_H

#include "base/buffer.h"
#include "base/error.h"

/* Writes the text to `path`, which is replaced; NULL or "-" is standard output.  0 or -errno with a message. */
int tally_output_write(const char *path, const struct tally_buffer *text, struct tally_error *err);

#endif
