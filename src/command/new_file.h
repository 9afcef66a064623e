/* A file that appears under its name, or replaces another, only when it is complete. Other
 * processes see the old file or the new one. An interruption leaves nothing behind.
 *
 *     tally_new_file_open(&file, path, &err);
 *     write to file.fd;
 *     tally_new_file_keep(&file, &err);      or nothing
 *     tally_new_file_release(&file);
 */
#ifndef TALLY_COMMAND_NEW_FILE_H
#define TALLY_COMMAND_NEW_FILE_H

#include "base/error.h"

struct tally_new_file {
	int fd;
	char path[4096], folder[4096];
	char temporary[4096 + 32]; /* "": it has no name yet */
};

/* Follows a link and replaces its target, which must be a regular file or not exist. Returns 0, or
 * -errno with a message. */
int tally_new_file_open(struct tally_new_file *file, const char *path, struct tally_error *err);
/* Syncs the file to disk and renames it into place. `like` is the file that it replaces, or -1: the
 * new file gets its mode and, if permitted, its owner. Returns 0, or -errno with a message. */
int tally_new_file_keep(struct tally_new_file *file, int like, struct tally_error *err);
void tally_new_file_release(struct tally_new_file *file);

#endif
