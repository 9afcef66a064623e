/* Opens a mapped file while its process lives.
 *
 * A recording has the path that the process sees.  In a container, or after a chroot, we may see
 * another file at that path, or none; a removed file has no path at all.  While the process lives,
 * /proc leads to the file.
 */
#ifndef TALLY_TASK_LIVE_FILE_H
#define TALLY_TASK_LIVE_FILE_H

#include "task/tasks.h"

struct tally_live_file {
	int fd;
	char *path; /* leads to the file from here, as far as known; malloc'd */
	/* the folder of the other root in which it was found, malloc'd; NULL: our root, or it could
	 * not be kept, so debug files are searched only below our own root */
	char *root;
};

/* Opens the file by `path`, by /proc/PID/map_files, by its path below /proc/PID/root, or by
 * /proc/PID/exe.  Accepts only the mapped file, and only ELF files.  Returns true; the caller
 * releases it. */
bool tally_live_find(const struct tally_tasks *tasks, const struct tally_mapped_file *file,
		     const char *path, struct tally_live_file *out);

void tally_live_file_release(struct tally_live_file *file);

#endif
