/* Samples whose user stack comes in a later record of their thread, CALLCHAIN_DEFERRED (attr.flags
 * DEFER_CALLCHAIN). */
#ifndef TALLY_RECORDING_DEFERRED_CHAINS_H
#define TALLY_RECORDING_DEFERRED_CHAINS_H

#include "perfdata/perfdata.h"
#include "tally/record.h"

#include <stdbool.h>

struct tally_held_sample {
	struct tally_raw_record raw; /* `bytes` is a copy */
	uint32_t tid;
	uint64_t cookie;
	uint64_t *chain; /* the kernel part, then the user part once it came */
	uint64_t chain_length;
};

struct tally_deferred_chains {
	struct { struct tally_held_sample *items; size_t count, capacity; } held, ready;
	size_t given; /* number of `ready` samples that were given */
};

void tally_deferred_release(struct tally_deferred_chains *deferred);

/* True if the user part of the sample's chain is still to come. */
static inline bool tally_deferred_is_due(const struct tally_sample *sample)
{
	return sample->chain_length >= 2 &&
	       sample->chain[sample->chain_length - 2] == TALLY_CONTEXT_USER_DEFERRED;
}

/* Keeps a copy of the sample until its user stack comes.  Returns 0 or -ENOMEM. */
int tally_deferred_hold(struct tally_deferred_chains *deferred, const struct tally_raw_record *raw,
			const struct tally_sample *sample);

/* Takes a CALLCHAIN_DEFERRED record: all held samples of its thread become ready, and those with
 * its cookie get its addresses.  Returns 0 or -ENOMEM. */
int tally_deferred_complete(struct tally_deferred_chains *deferred,
			    const struct tally_record *record);

/* No more records will come: all held samples become ready without their user stacks.  Returns 0 or
 * -ENOMEM. */
int tally_deferred_give_up(struct tally_deferred_chains *deferred);

/* Returns the next ready sample, in the order in which they were held, or NULL.  It is valid until
 * the next call of _hold, _complete or _give_up. */
const struct tally_held_sample *tally_deferred_next(struct tally_deferred_chains *deferred);

#endif
