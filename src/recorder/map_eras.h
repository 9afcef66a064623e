/* Eras of mappings: the mappings of a process, and those of the kernel, each have an era.  It ends
 * with any record that changes them for a reader (task/tasks.h).  Within an era, an address keeps
 * its meaning.  Not thread-safe. */
#ifndef TALLY_SESSION_MAP_ERAS_H
#define TALLY_SESSION_MAP_ERAS_H

#include "abi/record.h"
#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_map_era {
	uint64_t number;
	uint64_t since_ns; /* time of its last change; 0: no change, or one without a time */
};

/* Zero-initialised is the initial state. */
struct tally_map_eras {
	struct tally_map processes; /* pid → index in `items` */
	struct { struct tally_map_era *items; size_t count, capacity; } items;
	struct tally_map_era kernel;
	uint64_t changes; /* of all eras */
};

/* Applies a record.  Returns 1 if it is about tasks and their mappings, otherwise 0; -ENOMEM;
 * -ENOTSUP for a record with unknown effects. */
int tally_map_eras_see(struct tally_map_eras *eras, const struct tally_record *record);

struct tally_map_era tally_map_eras_of(const struct tally_map_eras *eras, uint32_t pid);

void tally_map_eras_release(struct tally_map_eras *eras);

#endif
