/* Writing files so that their bytes are safe. */
#ifndef TALLY_BASE_SAFE_FILE_H
#define TALLY_BASE_SAFE_FILE_H

#include <stddef.h>

/* Writes all bytes at the file's position, despite short writes and signals.  Returns 0 or -errno;
 * a part may be written then. */
int tally_file_write(int fd, const void *bytes, size_t size);

/* Waits until a file's bytes are on disk.  Does nothing for what can't be synced, as a pipe.
 * Returns 0, or -errno: some bytes may be lost. */
int tally_file_sync(int fd);

/* Waits until the names in an open folder are on disk, as far as possible: an error changes
 * nothing. */
void tally_folder_sync(int folder);

#endif
