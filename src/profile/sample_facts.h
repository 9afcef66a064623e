/* Facts that samples have besides their stacks: the branches that were taken before, the cost of an
 * access, and the source of its data.
 *
 * Reports may keep samples apart by these facts.  Facts that a report does not use are not read,
 * and don't keep samples apart.
 */
#ifndef TALLY_PROFILE_SAMPLE_FACTS_H
#define TALLY_PROFILE_SAMPLE_FACTS_H

#include "base/map.h"

#include <stddef.h>

/* Flags of a branch, as in struct perf_branch_entry. */
enum {
	TALLY_BRANCH_MISPREDICTED = 1,
	TALLY_BRANCH_PREDICTED = 2,
	TALLY_BRANCH_TRANSACTION = 4,
	TALLY_BRANCH_ABORTED = 8,
	TALLY_BRANCH_CYCLES_SHIFT = 4,
	TALLY_BRANCH_KIND_SHIFT = 20
};

/* Bits for the facts that a report uses. */
enum tally_fact {
	/* rows are branches with period 1; their stacks are the targets */
	TALLY_FACT_BRANCH = 1 << 0,
	TALLY_FACT_FROM = 1 << 1,
	TALLY_FACT_PREDICTION = 1 << 2,
	TALLY_FACT_TRANSACTION = 1 << 3,
	TALLY_FACT_ABORT = 1 << 4,
	TALLY_FACT_CYCLES = 1 << 5,
	/* Values, one bit each, from here on. */
	TALLY_FACT_VALUES_SHIFT = 6,
};

/* Values that are shown as texts (sample_values.h). */
enum tally_sample_value {
	TALLY_VALUE_WEIGHT,
	TALLY_VALUE_LATENCY,
	TALLY_VALUE_STAGE,
	TALLY_VALUE_TRANSACTION,
	TALLY_VALUE_TRACE, /* a tracepoint's text */
	TALLY_VALUE_SOCKET,
	TALLY_VALUE_TIME,
	TALLY_VALUE_ADDRESS, /* of the code */
	TALLY_VALUE_CODE_PAGE,
	TALLY_VALUE_DATA_SYMBOL,
	TALLY_VALUE_DATA_OBJECT,
	TALLY_VALUE_CACHELINE,
	TALLY_VALUE_PHYSICAL,
	TALLY_VALUE_DATA_PAGE,
	TALLY_VALUE_LEVEL, /* level at which the data was found */
	TALLY_VALUE_SNOOP,
	TALLY_VALUE_TLB,
	TALLY_VALUE_LOCK,
	TALLY_VALUE_BLOCK,
	TALLY_VALUE_ADDRESS_FROM, /* of a branch */
	TALLY_VALUE_ADDRESS_TO,
	TALLY_VALUES
};

#define TALLY_FACT_VALUE(value) (1u << (TALLY_FACT_VALUES_SHIFT + (unsigned)(value)))

/* Returns the values in a set of facts, from bit 0. */
static inline unsigned tally_fact_values(unsigned facts)
{
	return facts >> TALLY_FACT_VALUES_SHIFT;
}

struct tally_sample_facts {
	/* places; UINT32_MAX: rows are not branches, or `from` is not used */
	uint32_t from, to;
	uint32_t branch_flags; /* only the bits that are used */
	uint32_t values[TALLY_VALUES]; /* string ids of the names; 0: not used */
};

struct tally_fact_table {
	/* by a class's number of facts - 1 */
	struct { struct tally_sample_facts *items; size_t count, capacity; } facts;
	struct tally_map index;
};

/* Returns the number of the facts, from 1; 0 when memory is out. */
uint32_t tally_facts_intern(struct tally_fact_table *table, const struct tally_sample_facts *facts);
void tally_facts_release(struct tally_fact_table *table);

/* Returns the bits of a branch's flags that `wanted` facts use. */
uint32_t tally_facts_branch_flags(unsigned wanted, uint64_t flags);

#endif
