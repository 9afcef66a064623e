/* Samples whose user stack comes later, in a CALLCHAIN_DEFERRED record of their thread (attr.flags
 * DEFER_CALLCHAIN). */
#ifndef TALLY_PROFILE_DEFERRED_CHAINS_H
#define TALLY_PROFILE_DEFERRED_CHAINS_H

#include "perfdata/perfdata.h"
#include "tally/record.h"

#include <stdbool.h>

struct tally_held_sample {
	struct tally_raw_record raw; /* its bytes are a copy */
	uint32_t tid;
	uint64_t cookie;
	uint64_t *chain; /* with its user part, where that came */
	uint64_t chain_length;
};

struct tally_deferred_chains {
	struct { struct tally_held_sample *items; size_t count, capacity; } held, ready;
	size_t given; /* of the ready ones */
};

void tally_deferred_release(struct tally_deferred_chains *deferred);

/* Is the end of its stack still to come? */
static inline bool tally_deferred_is_due(const struct tally_sample *sample)
{
	return sample->chain_length >= 2 &&
	       sample->chain[sample->chain_length - 2] == TALLY_CONTEXT_USER_DEFERRED;
}

/* Keeps it.  0 or -ENOMEM. */
int tally_deferred_hold(struct tally_deferred_chains *deferred, const struct tally_raw_record *raw,
			const struct tally_sample *sample);

/* A CALLCHAIN_DEFERRED record: its thread's samples are ready, those of its cookie with its words.
 * 0 or -ENOMEM. */
int tally_deferred_complete(struct tally_deferred_chains *deferred,
			    const struct tally_record *record);

/* Nothing more comes: all that are held are ready, without.  0 or -ENOMEM. */
int tally_deferred_give_up(struct tally_deferred_chains *deferred);

/* The next that is ready, in the order in which they were held, or NULL.  Valid until one is held
 * or completed. */
const struct tally_held_sample *tally_deferred_next(struct tally_deferred_chains *deferred);

#endif
