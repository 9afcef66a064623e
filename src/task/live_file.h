/* Opens a mapped file through a process that has it mapped.
 *
 * A recording has the path that the process sees.  In a container, or after a chroot, we may see
 * another file at that path, or none; a removed file has no path at all.  While the process lives,
 * /proc leads to the file.
 */
#ifndef TALLY_TASK_LIVE_FILE_H
#define TALLY_TASK_LIVE_FILE_H

#include "task/tasks.h"

/* How the file at one of our paths relates to a mapped file. */
enum tally_live_match {
	TALLY_LIVE_SAME,      /* has the same inode, or the recording has none */
	/* Has another inode, but the task sees the same files as we do.  File systems in layers
	 * have two inodes for a file. */
	TALLY_LIVE_PLAUSIBLE,
	TALLY_LIVE_OTHER,
};
enum tally_live_match tally_live_match(const struct tally_mapped_file *file, const char *path);

/* Opens the file by /proc/PID/map_files, or by its path below /proc/PID/root.  Accepts only a file
 * of the recorded build-id; without one (size 0) only the recorded inode, when opened by map_files.
 * *root: the folder of the other root, malloc'd, if the file was found there.  Returns a new
 * reference, or NULL. */
struct tally_object *tally_live_open(const struct tally_mapped_file *file, const char *path,
				     char **root);

#endif
