/* The place of an output: a folder that is held open, and a name in it.
 *
 * tally may run as root, and write to folders in which other users may write.  There, a name may be
 * another user's link, file or FIFO, or become one at any time.  So tally never opens an output by
 * its path:
 *
 * - Each folder of the path is opened in the one before.  A symbolic link is followed if it belongs
 *   to this user or to root.
 * - The last name is looked at, opened, renamed and removed in the held folder, without following
 *   links.
 * - A file of another user in a sticky folder (/tmp) is neither written nor replaced.
 * - Where others may write in the folder, a FIFO, device or socket of another user is not opened,
 *   and a file that another user owns, or that has other names (hard links), is not written in
 *   place: a new file replaces it.
 *
 * The kernel's fs.protected_symlinks, protected_regular, protected_fifos and protected_hardlinks
 * refuse less, and may be off.
 */
#ifndef TALLY_BASE_OUTPUT_PATH_H
#define TALLY_BASE_OUTPUT_PATH_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct tally_output_path {
	int folder; /* O_PATH; -1: not open */
	uid_t folder_owner;
	bool is_shared; /* other users may write in the folder */
	bool is_sticky; /* they may not remove each other's files there */
	/* /dev/stdout, /proc/self/fd/3: the kernel alone can follow it, to an open file */
	bool is_open_file;
	char name[NAME_MAX + 1];
	char path[PATH_MAX]; /* the given path; if that is a link, its target's path */
};

#define TALLY_OUTPUT_PATH_INIT { .folder = -1 }

/* Opens the folder of a path.  The file itself need not exist.  Returns 0 (the caller closes it),
 * or -errno with a message, a hint about -o, and nothing to close. */
int tally_output_path_open(struct tally_output_path *path, const char *text,
			   struct tally_error *err);
void tally_output_path_close(struct tally_output_path *path);

/* Looks at a name in the folder; NULL: the path's own.  Returns 1 and sets *there; 0 if there is no
 * file; or -EACCES with a message if the file must not be replaced. */
int tally_output_path_look(const struct tally_output_path *path, const char *name,
			   struct stat *there, struct tally_error *err);

/* Opens the file itself, to be written in place, or a new one.  `flags`: O_WRONLY or O_RDWR, with
 * O_APPEND or O_TRUNC.  `mode` is that of a new file.  Waits for a FIFO's reader.  Returns a
 * descriptor, or -errno with a message. */
int tally_output_path_write(const struct tally_output_path *path, int flags, mode_t mode,
			    struct tally_error *err);

/* Makes up a name: prefix, 16 random digits, suffix. */
void tally_output_path_random(const char *prefix, const char *suffix, char name[NAME_MAX + 1]);

/* Makes an empty file with such a name in an open folder (as in openat(2)), with mode 0600.
 * Returns a descriptor for reading and writing, or -errno. */
int tally_output_path_temporary(int folder, const char *prefix, const char *suffix,
				char name[NAME_MAX + 1]);

/* From now on, the files that this process creates lack these mode bits.  If that keeps others from
 * reading them, a file that replaces another does not get that one's mode. */
void tally_output_forbid(mode_t bits);
/* The same for users who may not read `input`, a descriptor. */
void tally_output_protect_like(int input);
/* True if others may not read what this process writes, not even where it replaces a file that they
 * could. */
bool tally_output_is_private(void);

#endif
