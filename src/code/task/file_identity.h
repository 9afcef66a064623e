/* Tells whether a file is the one that was mapped.
 *
 * A path says little: a file may be replaced or written anew while it is recorded or afterwards,
 * another mount namespace has other files, and so has another machine.  A build-id identifies a
 * build.  A record without one has the inode, which identifies a file of one machine while the file
 * exists.  A record without either has at least the mapped range.
 */
#ifndef TALLY_TASK_FILE_IDENTITY_H
#define TALLY_TASK_FILE_IDENTITY_H

#include "object/object.h"
#include "task/tasks.h"

enum tally_file_identity {
	TALLY_FILE_SAME,
	/* Nothing tells.  The device may be another one all the same: file systems in layers and
	 * with subvolumes show programs a device of their own. */
	TALLY_FILE_UNPROVEN,
	TALLY_FILE_OTHER_BUILD,
	TALLY_FILE_OTHER_INODE,
	TALLY_FILE_OTHER_CODE,  /* its code isn't where the recorded one was */
	TALLY_FILE_WRITTEN_LATER,
};

/* When a recording was made. */
struct tally_file_times {
	uint64_t until_ns; /* CLOCK_REALTIME; 0: not known, or it is being made */
	/* CLOCK_REALTIME minus the recording's clock; 0: not known */
	uint64_t wall_offset_ns;
};

/* Returns how a file differs from the recorded one, for messages: "has another build-id". */
const char *tally_file_difference(enum tally_file_identity identity);

/* Compares a mapped file with one that was found, whose build-id is `id`. */
enum tally_file_identity tally_file_identify(const struct tally_tasks *tasks,
					     const struct tally_mapped_file *mapped,
					     const struct tally_object_file *found,
					     const struct tally_build_id *id);

/* The same for an open object; doesn't return UNPROVEN.  `is_vouched_for`:
 * the user gave the folder that has the recorded files, so inodes and times say nothing. */
enum tally_file_identity tally_file_believe(const struct tally_tasks *tasks,
					    const struct tally_mapped_file *mapped,
					    const struct tally_object *found,
					    const struct tally_file_times *times,
					    bool is_vouched_for);

#endif
