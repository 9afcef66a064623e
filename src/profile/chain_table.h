/* Raw call chains → rows: whether a sample's chain was seen before, without looking at its frames.
 *
 * A chain is known by 96 bits of a hash seeded anew in each run; it is not kept.  Two of ten
 * million chains share them by chance once in 10^15 runs, and nobody can make a recording in which
 * they do.  Not thread-safe.
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
	uint32_t row; /* + 1; 0: free */
};

struct tally_chain_table {
	uint64_t random[TALLY_CHAIN_BLOCK + 8];
	char apart[64]; /* who hashes in another thread does not wait for what changes here */
	struct tally_chain_slot *slots;
	size_t count, capacity; /* a power of two */
};

/* Draws the seed.  0 or -ENOMEM. */
int tally_chain_table_init(struct tally_chain_table *table);
void tally_chain_table_release(struct tally_chain_table *table);

/* The hash of a chain's words and of two that tell what they mean.  May be called while another
 * thread adds chains. */
struct tally_chain_hash tally_chain_table_hash(const struct tally_chain_table *table,
					       const uint64_t *words, size_t count,
					       uint64_t meaning, uint64_t more);

/* Asks for the memory that _find will look at. */
static inline void tally_chain_table_prefetch(const struct tally_chain_table *table,
					      struct tally_chain_hash hash)
{
	__builtin_prefetch(&table->slots[hash.key & (table->capacity - 1)]);
}

/* The row, or UINT32_MAX. */
uint32_t tally_chain_table_find(const struct tally_chain_table *table,
				struct tally_chain_hash hash);

/* Adds what _find did not find; `row` is below UINT32_MAX.  0 or -ENOMEM. */
int tally_chain_table_add(struct tally_chain_table *table, struct tally_chain_hash hash,
			  uint32_t row);

/* Whether the table has to grow for `more` chains. */
static inline bool tally_chain_table_is_full(const struct tally_chain_table *table, size_t more)
{
	return (table->count + more) * 3 > table->capacity * 2;
}

/* Makes room for so many chains in all.  0 or -ENOMEM. */
int tally_chain_table_reserve(struct tally_chain_table *table, size_t count);

/* Forgets all chains. */
void tally_chain_table_clear(struct tally_chain_table *table);

#endif
