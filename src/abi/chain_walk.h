/* The words of PERF_SAMPLE_CALLCHAIN → addresses, leaf first: perf_event_open(2),
 * linux/perf_event.h's enum perf_callchain_context.
 *
 *     struct tally_chain_walk walk = tally_chain_walk_of(&sample, is_kernel_mode);
 *     while (tally_chain_walk_next(&walk, &address)) … walk.kernel, walk.is_return
 *
 * Inline: recordings hold hundreds of millions of them.
 */
#ifndef TALLY_ABI_CHAIN_WALK_H
#define TALLY_ABI_CHAIN_WALK_H

#include "abi/record.h"

#include "tally/perf_event.h"

struct tally_chain_walk {
	const uint64_t *at, *end;
	bool kernel;         /* the address given last is the kernel's */
	bool is_return;      /* it is one that something returns to, not where the context was */
	bool has_innermost;  /* the context's first address was given */
};

/* `kernel`: the context of what stands before the first marker, by the record's cpumode. */
static inline struct tally_chain_walk tally_chain_walk_of(const struct tally_sample *sample,
							  bool kernel)
{
	return (struct tally_chain_walk){ .at = sample->chain,
					  .kernel = kernel,
					  .end = sample->chain
							 ? sample->chain + sample->chain_length
							 : NULL };
}

/* Frame pointers that lead astray leave garbage in a chain, which may look like a marker that
 * nobody defined. */
static inline bool tally_is_context_marker(uint64_t word)
{
	return word == TALLY_CONTEXT_HV || word == TALLY_CONTEXT_KERNEL ||
	       word == TALLY_CONTEXT_USER || word == TALLY_CONTEXT_USER_DEFERRED ||
	       word == TALLY_CONTEXT_GUEST || word == TALLY_CONTEXT_GUEST_KERNEL ||
	       word == TALLY_CONTEXT_GUEST_USER;
}

/* Markers switch the context, and the first address behind one is where the context was, not where
 * something returns to.  False at the end. */
static inline bool tally_chain_walk_next(struct tally_chain_walk *walk, uint64_t *address)
{
	while (walk->at < walk->end) {
		*address = *walk->at++;
		if (__builtin_expect(*address < TALLY_CONTEXT_MAX, 1)) {
			walk->is_return = walk->has_innermost;
			walk->has_innermost = true;
			return true;
		}
		if (!tally_is_context_marker(*address))
			continue;
		walk->kernel = *address == TALLY_CONTEXT_KERNEL ||
			       *address == TALLY_CONTEXT_GUEST_KERNEL ||
			       *address == TALLY_CONTEXT_HV;
		walk->has_innermost = false;
		/* The word behind is a cookie; the stack itself comes in a record of its own. */
		if (*address == TALLY_CONTEXT_USER_DEFERRED && walk->at < walk->end)
			walk->at++;
	}
	return false;
}

/* How many frames the kernel puts into a chain: by the attribute, else as
 * kernel.perf_event_max_stack is by default. */
static inline uint32_t tally_chain_limit(const struct tally_attr *attr)
{
	enum { DEFAULT_MAX_STACK = 127 };
	return attr->sample_max_stack ? attr->sample_max_stack : DEFAULT_MAX_STACK;
}

/* How many frames a chain has; markers don't count against the limit
 * (kernel/events/callchain.c). */
static inline uint64_t tally_chain_frames(const struct tally_sample *sample)
{
	uint64_t frames = 0;
	for (uint64_t i = 0; sample->chain && i < sample->chain_length; i++)
		frames += sample->chain[i] < TALLY_CONTEXT_MAX;
	return frames;
}

#endif
