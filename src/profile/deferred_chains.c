/* The kernel may put off walking a user's stack until it goes back to user mode, once for all
 * samples since it was entered: each sample's chain ends in CONTEXT_USER_DEFERRED and a cookie, and
 * the record that comes later has the cookie and the addresses.  So such a sample is not given when
 * it is read but when its thread's next CALLCHAIN_DEFERRED record is, as perf does it: a little
 * late beside other threads' samples.  Its record is copied, for those that are read lie where they
 * will not stay.
 *
 * A thread that never goes back (it sleeps till the recording's end, or the record was lost) has
 * its samples given at the end, or when there are HELD_MAX, which bounds what a damaged recording
 * can cost.
 */
#include "profile/deferred_chains.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_MAX = 4096 };

static void release_sample(struct tally_held_sample *sample)
{
	free((void *)sample->raw.bytes);
	free(sample->chain);
}

void tally_deferred_release(struct tally_deferred_chains *deferred)
{
	for (size_t i = 0; i < deferred->held.count; i++)
		release_sample(&deferred->held.items[i]);
	for (size_t i = 0; i < deferred->ready.count; i++)
		release_sample(&deferred->ready.items[i]);
	tally_vector_release(&deferred->held);
	tally_vector_release(&deferred->ready);
}

int tally_deferred_hold(struct tally_deferred_chains *deferred, const struct tally_raw_record *raw,
			const struct tally_sample *sample)
{
	if (deferred->held.count >= HELD_MAX && tally_deferred_give_up(deferred) < 0)
		return -ENOMEM;
	struct tally_held_sample held = { .raw = *raw,
					  .tid = sample->tid,
					  .cookie = sample->chain[sample->chain_length - 1] };
	void *copy = malloc(raw->size);
	if (!copy)
		return -ENOMEM;
	held.raw.bytes = memcpy(copy, raw->bytes, raw->size);
	/* What the chain has before the marker, to be gone on from. */
	held.chain_length = sample->chain_length - 2;
	held.chain = malloc((held.chain_length + 1) * sizeof(*held.chain));
	if (held.chain && held.chain_length)
		memcpy(held.chain, sample->chain, held.chain_length * sizeof(*held.chain));
	if (!held.chain || tally_vector_push(&deferred->held, held) < 0) {
		release_sample(&held);
		return -ENOMEM;
	}
	return 0;
}

static int append(struct tally_held_sample *sample, const uint64_t *words, uint64_t count)
{
	bool has_marker = count && words[0] >= TALLY_CONTEXT_MAX;
	uint64_t *grown = realloc(sample->chain,
				  (sample->chain_length + count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	sample->chain = grown;
	if (!has_marker)
		grown[sample->chain_length++] = TALLY_CONTEXT_USER;
	if (count)
		memcpy(grown + sample->chain_length, words, count * sizeof(*words));
	sample->chain_length += count;
	return 0;
}

/* All that were given before are of no use any more. */
static void forget_given(struct tally_deferred_chains *deferred)
{
	if (deferred->given < deferred->ready.count)
		return;
	for (size_t i = 0; i < deferred->ready.count; i++)
		release_sample(&deferred->ready.items[i]);
	deferred->ready.count = deferred->given = 0;
}

int tally_deferred_complete(struct tally_deferred_chains *deferred,
			    const struct tally_record *record)
{
	size_t kept = 0;
	forget_given(deferred);
	if (tally_vector_reserve(&deferred->ready, deferred->ready.count + deferred->held.count) <
	    0)
		return -ENOMEM;
	for (size_t i = 0; i < deferred->held.count; i++) {
		struct tally_held_sample *sample = &deferred->held.items[i];
		if (sample->tid == record->sample_id.tid &&
		    sample->cookie == record->deferred.cookie &&
		    append(sample, record->deferred.chain, record->deferred.chain_length) < 0) {
			/* Those before it have their places already. */
			memmove(&deferred->held.items[kept], sample,
				(deferred->held.count - i) * sizeof(*sample));
			deferred->held.count -= i - kept;
			return -ENOMEM;
		}
		if (sample->tid == record->sample_id.tid)
			deferred->ready.items[deferred->ready.count++] = *sample;
		else
			deferred->held.items[kept++] = *sample;
	}
	deferred->held.count = kept;
	return 0;
}

int tally_deferred_give_up(struct tally_deferred_chains *deferred)
{
	forget_given(deferred);
	if (tally_vector_reserve(&deferred->ready, deferred->ready.count + deferred->held.count) <
	    0)
		return -ENOMEM;
	for (size_t i = 0; i < deferred->held.count; i++)
		deferred->ready.items[deferred->ready.count++] = deferred->held.items[i];
	deferred->held.count = 0;
	return 0;
}

const struct tally_held_sample *tally_deferred_next(struct tally_deferred_chains *deferred)
{
	return deferred->given < deferred->ready.count ? &deferred->ready.items[deferred->given++]
						       : NULL;
}
