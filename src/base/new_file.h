/* A file that appears under its name, or replaces another, only when it is complete. Other
 * processes see the old file or the new one. An interruption leaves nothing behind.
 *
 *     tally_new_file_open(&file, path, &err);
 *     write to file.fd;
 *     tally_new_file_keep(&file, -1, &err);  or nothing
 *     tally_new_file_release(&file);
 */
#ifndef TALLY_BASE_NEW_FILE_H
#define TALLY_BASE_NEW_FILE_H

#include "base/output_path.h"

struct tally_new_file {
	int fd;
	struct tally_output_path path;
	char temporary[NAME_MAX + 1]; /* its name in the path's folder; "": it has none yet */
};

#define TALLY_NEW_FILE_INIT { .fd = -1, .path = TALLY_OUTPUT_PATH_INIT }

/* Follows the user's own links and replaces the target (base/output_path.h), which must be a
 * regular file or not exist. Returns 0, or -errno with a message. */
int tally_new_file_open(struct tally_new_file *file, const char *path, struct tally_error *err);
/* Syncs the file to disk and renames it into place. `like` is the file that it replaces, or -1. The
 * new file gets its mode and, if permitted, its group; not if it belongs to another user: the file
 * stays this user's. Returns 0, or -errno with a message. */
int tally_new_file_keep(struct tally_new_file *file, int like, struct tally_error *err);
void tally_new_file_release(struct tally_new_file *file);

#endif
