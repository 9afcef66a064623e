/* Finds out that a process copied a file's code to other memory, at the same addresses, before it
 * was recorded.  /proc/PID/maps then shows memory without a file where the ELF file has code. */
#ifndef TALLY_RECORDER_IMAGE_H
#define TALLY_RECORDER_IMAGE_H

#include "machine/machine.h"

/* The mappings of one ELF file, from its beginning on; end 0: none. */
struct tally_recorder_image {
	uint64_t start, end, inode;
	uint32_t major, minor;
	char path[TALLY_PROC_PATH_MAX];
};

/* Takes each mapping of a process, in order of address.  Returns true if the mapping is a copy of
 * the image's code, and sets `offset`, that of the code in the file. */
bool tally_recorder_image_add_map(struct tally_recorder_image *image, pid_t pid,
				  const struct tally_proc_map *map, uint64_t *offset);

#endif
