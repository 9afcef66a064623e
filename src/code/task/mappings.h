/* The mappings of an address space: sorted by address, disjoint.
 *
 * Processes share their mappings after a fork until one of them changes some.
 */
#ifndef TALLY_TASK_MAPPINGS_H
#define TALLY_TASK_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_mapping {
	uint64_t start, end; /* end: first address behind */
	uint64_t file_offset;
	uint32_t file;
	bool executable;
	bool is_program; /* code of the file that the process executed */
	bool is_made;    /* executable memory of one process, without a file */
	uint8_t program; /* the process's number when it was mapped */
};

struct tally_mapping_node;

/* Zero-initialised is empty. */
struct tally_mappings {
	struct tally_mapping_node *root;
};

/* Nodes that are free, for all address spaces that may share nodes.  Zero-initialised is empty. */
struct tally_mapping_pool {
	struct tally_mapping_node *free;
	size_t free_count;
	uint32_t visits;
};

/* Returns the first mapping that ends behind an address, or NULL.  With the end of a mapping, this
 * is the next one.  Valid until the mappings change. */
const struct tally_mapping *tally_mappings_behind(const struct tally_mappings *mappings,
						  uint64_t address);

/* Returns the last mapping that ends at or before an address, or NULL.  Valid until the mappings
 * change. */
const struct tally_mapping *tally_mappings_before(const struct tally_mappings *mappings,
						  uint64_t address);

/* Adds a mapping (start < end) in place of what it covers.  Returns 0, or -ENOMEM without any
 * change. */
int tally_mappings_put(struct tally_mapping_pool *pool, struct tally_mappings *mappings,
		       const struct tally_mapping *mapping);

/* Removes what is mapped from `start` to `end` (start < end).  Returns 0, or -ENOMEM without any
 * change. */
int tally_mappings_remove(struct tally_mapping_pool *pool, struct tally_mappings *mappings,
			  uint64_t start, uint64_t end);

/* Returns another reference to the same mappings. */
struct tally_mappings tally_mappings_share(const struct tally_mappings *mappings);

/* Drops a reference. */
void tally_mappings_drop(struct tally_mapping_pool *pool, struct tally_mappings *mappings);

/* Returns the first mapping with `is_made` that ends behind an address, or NULL. */
const struct tally_mapping *tally_mappings_made_behind(const struct tally_mappings *mappings,
						       uint64_t address);

/* Begins a visit of several address spaces. */
static inline void tally_mappings_begin_visit(struct tally_mapping_pool *pool)
{
	pool->visits++;
}

/* Calls `handle` once for each mapping that this visit has not met in another address space.
 * `handle` may change the mapping's file, in all address spaces that share it. */
void tally_mappings_visit(struct tally_mapping_pool *pool, const struct tally_mappings *mappings,
			  void (*handle)(struct tally_mapping *mapping, void *context),
			  void *context);

/* Frees the free nodes. */
void tally_mapping_pool_release(struct tally_mapping_pool *pool);

#endif
