/* The namespaces of tasks, from NAMESPACES records: for each kind the device and inode of its file
 * below /proc/PID/ns (namespaces(7)).  Each set is stored once, however many tasks are in it.
 *
 * Zero-initialised is empty.  Not thread-safe.
 */
#ifndef TALLY_TASK_NAMESPACES_H
#define TALLY_TASK_NAMESPACES_H

#include "abi/record.h"
#include "base/map.h"

#define TALLY_NAMESPACES_NONE UINT32_MAX /* no record seen */

enum tally_namespace_kind { /* in the order of the records */
	TALLY_NAMESPACE_NET,
	TALLY_NAMESPACE_UTS,
	TALLY_NAMESPACE_IPC,
	TALLY_NAMESPACE_PID,
	TALLY_NAMESPACE_USER,
	TALLY_NAMESPACE_MOUNT,
	TALLY_NAMESPACE_CGROUP,
	TALLY_NAMESPACE_KINDS
};

/* 0, 0: unknown. */
struct tally_namespace {
	uint64_t device, inode;
};

struct tally_namespace_set {
	struct tally_namespace of[TALLY_NAMESPACE_KINDS];
};

struct tally_namespaces {
	struct { struct tally_namespace_set *items; size_t count, capacity; } sets;
	struct tally_map index; /* hash → set */
};

/* Returns the number of a record's set; TALLY_NAMESPACES_NONE without memory. */
uint32_t tally_namespaces_intern(struct tally_namespaces *namespaces,
				 const struct tally_record_namespaces *record);

void tally_namespaces_release(struct tally_namespaces *namespaces);

#endif
