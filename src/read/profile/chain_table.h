/* Raw call chains → rows: tells whether a sample's chain was seen before by its hash, without
 * comparing frames.
 *
 * A chain is known by 96 bits of a hash that is seeded anew in each run; the chain itself is not
 * kept.  Among ten million chains, two share these bits by chance once in 10^15 runs.  Since the
 * seed is random, a recording can't be crafted so that two do.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_CHAIN_TABLE_H
#define TALLY_PROFILE_CHAIN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TALLY_CHAIN_BLOCK = 64 /* words hashed at a time */ };

struct tally_chain_hash {
	uint64_t key;
	uint32_t check;
};

struct tally_chain_slot {
	uint64_t key;
	uint32_t check;
	uint32_t row; /* number of the row, + 1; 0: the slot is free */
};

struct tally_chain_table {
	uint64_t random[TALLY_CHAIN_BLOCK + 8];
	/* keeps `random`, which another thread reads to hash, off the cache lines that change
	 * here */
	char apart[64];
	struct tally_chain_slot *slots;
	size_t count, capacity; /* capacity: a power of two */
};

/* Draws the seed.  Returns 0 or -ENOMEM. */
int tally_chain_table_init(struct tally_chain_table *table);
void tally_chain_table_release(struct tally_chain_table *table);

/* Hashes a chain's words, and two more words that say what they mean (class, maps).  Another thread
 * may add chains meanwhile. */
struct tally_chain_hash tally_chain_table_hash(const struct tally_chain_table *table,
					       const uint64_t *words, size_t count,
					       uint64_t meaning, uint64_t more);

/* Prefetches the memory that _find will read. */
static inline void tally_chain_table_prefetch(const struct tally_chain_table *table,
					      struct tally_chain_hash hash)
{
	__builtin_prefetch(&table->slots[hash.key & (table->capacity - 1)]);
}

/* Returns the chain's row, or UINT32_MAX when it is new. */
uint32_t tally_chain_table_find(const struct tally_chain_table *table,
				struct tally_chain_hash hash);

/* Adds a chain that _find did not find; `row` is below UINT32_MAX.  Returns 0 or -ENOMEM. */
int tally_chain_table_add(struct tally_chain_table *table, struct tally_chain_hash hash,
			  uint32_t row);

/* True if the table has to grow before it can take `more` chains. */
static inline bool tally_chain_table_is_full(const struct tally_chain_table *table, size_t more)
{
	return (table->count + more) * 3 > table->capacity * 2;
}

/* Makes room for this many chains in all.  Returns 0 or -ENOMEM. */
int tally_chain_table_reserve(struct tally_chain_table *table, size_t count);

/* Forgets all chains. */
void tally_chain_table_clear(struct tally_chain_table *table);

#endif
