/* What addresses mean, told apart by when: the maps of a process, and those of the kernel, each
 * have an era, which ends with any record that changes them for a reader (task/tasks.h).  Not
 * thread-safe. */
#ifndef TALLY_SESSION_MAP_ERAS_H
#define TALLY_SESSION_MAP_ERAS_H

#include "abi/record.h"
#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_map_era {
	uint64_t number;
	uint64_t since_ns; /* of its youngest change; 0: there was none, or it tells no time */
};

/* Zero-initialised is the beginning. */
struct tally_map_eras {
	struct tally_map processes; /* pid → its place in `items` */
	struct { struct tally_map_era *items; size_t count, capacity; } items;
	struct tally_map_era kernel;
	uint64_t changes; /* of all */
};

/* Does a record tell of tasks and their maps?  -ENOMEM; -ENOTSUP: nobody knows what such a record
 * changes. */
int tally_map_eras_see(struct tally_map_eras *eras, const struct tally_record *record);

struct tally_map_era tally_map_eras_of(const struct tally_map_eras *eras, uint32_t pid);

void tally_map_eras_release(struct tally_map_eras *eras);

#endif
