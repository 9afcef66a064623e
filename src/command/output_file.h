/* A command's output: a file, or standard output. */
#ifndef TALLY_COMMAND_OUTPUT_FILE_H
#define TALLY_COMMAND_OUTPUT_FILE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>

/* Writes the text to `path`; NULL or "-": standard output. An existing file is replaced only when
 * all the text is on disk, and is unchanged after an error. Returns 0, or -errno with a message. */
int tally_output_write(const char *path, const struct tally_buffer *text, struct tally_error *err);

/* Refuses an output that can't be opened safely (base/output_path.h) or would destroy work: a file
 * that is also one of the inputs ("-": standard input; NULL ends the list), or any recording.
 * Words of a command may stand for inputs.  Call it before the inputs are read.  Returns 0, or
 * -EEXIST or another -errno with a message. */
int tally_output_check(const char *name, const char *const *inputs, struct tally_error *err);

/* True if the name has one of these endings (".svg"; NULL ends the list), in either case. */
bool tally_output_ends_in(const char *path, const char *const *endings);
/* True if the name's ending belongs to another format (a picture, JSON …) than `known`: programs
 * that go by the name would open the file and fail. */
bool tally_output_is_other_kind(const char *path, const char *const *known);

#endif
