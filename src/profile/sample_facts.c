#include "profile/sample_facts.h"

#include "base/vector.h"

#include <string.h>

uint32_t tally_facts_intern(struct tally_fact_table *table, const struct tally_sample_facts *facts)
{
	uint64_t key = tally_hash64((uint64_t)facts->from << 32 | facts->to) ^
		       tally_hash64((uint64_t)facts->branch_flags + 1);
	for (unsigned value = 0; value < TALLY_VALUES; value++)
		key = facts->values[value]
			      ? tally_hash64(key ^ (uint64_t)facts->values[value] << 8 ^ value)
			      : key;
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&table->index, key, &added);
		if (!slot)
			return 0;
		if (added) {
			*slot = table->facts.count + 1;
			return table->facts.count >= UINT32_MAX - 1 ||
					       tally_vector_push(&table->facts, *facts) < 0
				       ? 0
				       : (uint32_t)*slot;
		}
		if (*slot <= table->facts.count &&
		    !memcmp(&table->facts.items[*slot - 1], facts, sizeof(*facts)))
			return (uint32_t)*slot;
	}
}

void tally_facts_release(struct tally_fact_table *table)
{
	tally_vector_release(&table->facts);
	tally_map_release(&table->index);
}

uint32_t tally_facts_branch_flags(unsigned wanted, uint64_t flags)
{
	uint32_t mask = 0;
	if (wanted & TALLY_FACT_PREDICTION)
		mask |= TALLY_BRANCH_MISPREDICTED | TALLY_BRANCH_PREDICTED;
	mask |= wanted & TALLY_FACT_TRANSACTION ? TALLY_BRANCH_TRANSACTION : 0;
	mask |= wanted & TALLY_FACT_ABORT ? TALLY_BRANCH_ABORTED : 0;
	mask |= wanted & TALLY_FACT_CYCLES ? 0xffffu << TALLY_BRANCH_CYCLES_SHIFT : 0;
	return (uint32_t)flags & mask;
}
