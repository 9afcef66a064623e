/* A file that takes a name, or another's place, only when it is whole: whoever looks sees the old
 * one or the new one, and what is interrupted leaves nothing behind.
 *
 *     tally_new_file_open(&file, path, &err);
 *     write to file.fd;
 *     tally_new_file_keep(&file, &err);      or nothing
 *     tally_new_file_release(&file);
 */
#ifndef TALLY_COMMAND_NEW_FILE_H
#define TALLY_COMMAND_NEW_FILE_H

#include "base/error.h"

#include <stdbool.h>

struct tally_new_file {
	int fd;
	char path[4096], folder[4096];
	char temporary[4096 + 32]; /* "": it has no name yet */
};

/* A link is followed: what it points to is replaced, if it is a regular file or nothing yet.
 * -errno with a message. */
int tally_new_file_open(struct tally_new_file *file, const char *path, struct tally_error *err);
/* To the disk, with mode and, where we may, owner of the file that it replaces (`like`; -1: none),
 * and in its place. */
int tally_new_file_keep(struct tally_new_file *file, int like, struct tally_error *err);
void tally_new_file_release(struct tally_new_file *file);

#endif
