/* The build-ids of mapped files, for the records of their mappings. */
#ifndef TALLY_RECORDER_BUILD_IDS_H
#define TALLY_RECORDER_BUILD_IDS_H

#include "abi/abi.h"
#include "task/task.h"

struct tally_recorder_build_id {
	struct tally_build_id id; /* size 0: none */
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	uint64_t size, written_ns; /* of the file when its build-id was read; 0: not found */
	unsigned tries;
};

/* Zero-initialised is empty. */
struct tally_recorder_build_ids {
	struct { struct tally_recorder_build_id *items; size_t count, capacity; } files;
	struct tally_map index;
};

/* Gets the build-id of a mapping's file, which is read when it is new.  Returns false when there is
 * none, or when the mapping is not of a file's code. */
bool tally_recorder_build_id(struct tally_recorder_build_ids *ids, const struct tally_tasks *tasks,
			     const struct tally_record_mmap *mmap, struct tally_build_id *id);

/* Puts the build-id into the bytes of an MMAP2 record, in the place of device and inode. */
void tally_recorder_put_build_id(void *record, const struct tally_build_id *id);

void tally_recorder_build_ids_release(struct tally_recorder_build_ids *ids);

#endif
