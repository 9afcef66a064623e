/* A mapped file's bytes, by way of a process that has it mapped.
 *
 * The path that a recording has is the one that the process sees: in a container, or after a
 * chroot, another file may lie there for us, or none; and a file that was removed has no path at
 * all.  The process, while it lives, leads to it.
 */
#ifndef TALLY_TASK_LIVE_FILE_H
#define TALLY_TASK_LIVE_FILE_H

#include "task/tasks.h"

/* What the file under a path of ours is to a mapped one. */
enum tally_live_match {
	TALLY_LIVE_SAME,      /* the same inode; or nothing is known that could tell */
	/* another, but of a task that sees the files that we see: file systems in layers have
	 * two */
	TALLY_LIVE_PLAUSIBLE,
	TALLY_LIVE_OTHER,
};
enum tally_live_match tally_live_match(const struct tally_mapped_file *file, const char *path);

/* Opens the file by /proc/PID/map_files, or by its path below /proc/PID/root.  `wanted`: only a
 * file of this build-id; without one (size 0) by map_files only the recorded inode.  *root: the
 * folder of the other root, malloc'd, where it was found in one.  New reference, or NULL. */
struct tally_object *tally_live_open(const struct tally_mapped_file *file, const char *path,
				     char **root);

#endif
