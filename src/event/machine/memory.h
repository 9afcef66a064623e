/* NUMA nodes and their memory: sysfs, Documentation/ABI/stable/sysfs-devices-node and
 * Documentation/ABI/testing/sysfs-devices-memory.
 *
 * Everything is in the caller's arena. */
#ifndef TALLY_MACHINE_MEMORY_H
#define TALLY_MACHINE_MEMORY_H

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

struct tally_memory_node {
	unsigned number;
	uint64_t total_kib, free_kib;
	const char *cpus;       /* "0-3"; "" for memory without CPUs */
	/* the node's blocks of memory, a bit each; NULL: unknown */
	const uint64_t *blocks;
	size_t block_count;     /* number of these bits */
};

struct tally_memory {
	uint64_t block_bytes; /* 0: unknown */
	struct tally_memory_node *nodes; /* the online nodes */
	size_t node_count;
};

/* Reads the nodes; data that sysfs lacks is left out.  `root` NULL means the machine's own
 * (/sys/devices/system).  Returns 0 or -ENOMEM. */
int tally_memory_read(const char *root, struct tally_arena *arena, struct tally_memory *out);

#endif
