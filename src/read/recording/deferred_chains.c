/* The kernel may put off walking a user stack until the task returns to user mode, and walk it once
 * for all samples since the task entered the kernel.  Then the chains of these samples end in
 * CONTEXT_USER_DEFERRED and a cookie, and a later record has the cookie and the addresses.  The
 * samples are given when their thread's next CALLCHAIN_DEFERRED record is read, as in perf.  This
 * makes them a little late relative to other threads' samples.  Their records are copied, because
 * the reader's bytes are not valid that long.
 *
 * A thread may never return to user mode: it sleeps until the recording ends, or the record was
 * lost.  Its samples are given at the end, or when HELD_MAX samples are held.  This limit also
 * bounds what a damaged recording can cost.
 */
#include "recording/recording_internal.h"

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
	/* the part of the chain before the marker, to be continued by the user part */
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

/* Frees the ready samples once all of them were given. */
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
			/* the samples before this one have moved already */
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
	if (deferred->given == deferred->ready.count)
		return NULL;
	return &deferred->ready.items[deferred->given++];
}
