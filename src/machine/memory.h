/* NUMA nodes and their memory: sysfs, Documentation/ABI/stable/sysfs-devices-node and
 * Documentation/ABI/testing/sysfs-devices-memory.
 *
 * All is in the caller's arena.
 */
#ifndef TALLY_MACHINE_MEMORY_H
#define TALLY_MACHINE_MEMORY_H

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

struct tally_memory_node {
	unsigned number;
	uint64_t total_kib, free_kib;
	const char *cpus;       /* "0-3"; "" for memory without CPUs */
	/* which blocks of memory are its own, a bit each; NULL: sysfs doesn't say */
	const uint64_t *blocks;
	size_t block_count;     /* bits of that */
};

struct tally_memory {
	uint64_t block_bytes; /* 0: sysfs doesn't say */
	struct tally_memory_node *nodes; /* those that are online */
	size_t node_count;
};

/* `root` is NULL for the machine's own (/sys/devices/system).  What sysfs doesn't say is left out.
 * 0 or -ENOMEM. */
int tally_memory_read(const char *root, struct tally_arena *arena, struct tally_memory *out);

#endif
