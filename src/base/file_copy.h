/* Copies of files in memory.
 *
 * A mapped file is shared with whoever may write to it.  If another user truncates it, an access
 * raises SIGBUS; if the user changes it, what was checked no longer holds.  So tally reads files of
 * other users into memory of its own.
 *
 * Holes of sparse files stay holes: they are zeros that take no memory.
 */
#ifndef TALLY_BASE_FILE_COPY_H
#define TALLY_BASE_FILE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* True if only root and this user can change the file's content: it may be mapped. */
bool tally_file_is_ours(const struct stat *status);

/* Reads the first `size` bytes of a file into memory.  *data is set to the bytes in it that are no
 * holes.  Returns 0 (free the copy by tally_file_copy_free()); -EFBIG if *data would exceed
 * `data_max`; -ENODATA if the file ends before; -ENOMEM; or read(2)'s error. */
int tally_file_copy(int fd, size_t size, uint64_t data_max, uint8_t **out, uint64_t *data);

/* `size` as above; accepts NULL. */
void tally_file_copy_free(uint8_t *copy, size_t size);

#endif
