/* What samples say besides their stacks: the branches taken before.
 *
 * Reports may tell them apart by these; nobody else asks for them, and what was not asked for is not told apart.
 */
#ifndef TALLY_PROFILE_SAMPLE_FACTS_H
#define TALLY_PROFILE_SAMPLE_FACTS_H

#include "base/map.h"

#include <stddef.h>

/* Of struct perf_branch_entry. */
enum { TALLY_BRANCH_MISPREDICTED = 1, TALLY_BRANCH_PREDICTED = 2, TALLY_BRANCH_TRANSACTION = 4, TALLY_BRANCH_ABORTED = 8,
       TALLY_BRANCH_CYCLES_SHIFT = 4, TALLY_BRANCH_KIND_SHIFT = 20 };

/* Which are asked for. */
enum tally_fact {
	TALLY_FACT_BRANCH = 1 << 0, /* rows are branches, each of period 1, their stacks where they went to */
	TALLY_FACT_FROM = 1 << 1,
	TALLY_FACT_PREDICTION = 1 << 2,
	TALLY_FACT_TRANSACTION = 1 << 3,
	TALLY_FACT_ABORT = 1 << 4,
	TALLY_FACT_CYCLES = 1 << 5,
};

struct tally_sample_facts {
	uint32_t from, to;     /* places; `from` is UINT32_MAX unless it was asked for */
	uint32_t branch_flags; /* of what was asked for; the rest is 0 */
};

struct tally_fact_table {
	struct { struct tally_sample_facts *items; size_t count, capacity; } facts; /* a class's number - 1 */
	struct tally_map index;
};

/* A number from 1; 0 when memory is out. */
uint32_t tally_facts_intern(struct tally_fact_table *table, const struct tally_sample_facts *facts);
void tally_facts_release(struct tally_fact_table *table);

/* What of a branch's flags is asked for. */
uint32_t tally_facts_branch_flags(unsigned wanted, uint64_t flags);

#endif
