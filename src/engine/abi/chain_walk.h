/* Turns the words of PERF_SAMPLE_CALLCHAIN into addresses, leaf first: perf_event_open(2),
 * linux/perf_event.h's enum perf_callchain_context.
 *
 *     struct tally_chain_walk walk = tally_chain_walk_of(&sample, is_kernel_mode);
 *     while (tally_chain_walk_next(&walk, &address)) … walk.kernel, walk.is_return
 *
 * Inline, since recordings have hundreds of millions of these words. */
#ifndef TALLY_ABI_CHAIN_WALK_H
#define TALLY_ABI_CHAIN_WALK_H

#include "abi/record.h"

#include "tally/perf_event.h"

struct tally_chain_walk {
	const uint64_t *at, *end;
	bool kernel;         /* the last address is the kernel's */
	bool is_return; /* the last address is a return address, not the context's own position */
	bool has_innermost;  /* the context's first address has been given */
};

/* `kernel`: the context of addresses before the first marker, by the record's cpumode. */
static inline struct tally_chain_walk tally_chain_walk_of(const struct tally_sample *sample,
							  bool kernel)
{
	return (struct tally_chain_walk){ .at = sample->chain,
					  .kernel = kernel,
					  .end = sample->chain
							 ? sample->chain + sample->chain_length
							 : NULL };
}

/* True for a defined marker.  Wrong frame pointers leave garbage in a chain, which may look like an
 * undefined marker. */
static inline bool tally_is_context_marker(uint64_t word)
{
	return word == TALLY_CONTEXT_HV || word == TALLY_CONTEXT_KERNEL ||
	       word == TALLY_CONTEXT_USER || word == TALLY_CONTEXT_USER_DEFERRED ||
	       word == TALLY_CONTEXT_GUEST || word == TALLY_CONTEXT_GUEST_KERNEL ||
	       word == TALLY_CONTEXT_GUEST_USER;
}

/* Returns false at the end.  Markers switch the context; the first address behind one is the
 * context's position, not a return address. */
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
		/* The next word is a cookie; the stack itself is in a later record. */
		if (*address == TALLY_CONTEXT_USER_DEFERRED && walk->at < walk->end)
			walk->at++;
	}
	return false;
}

/* Returns the largest number of frames that the kernel puts into a chain: the attribute's, else the
 * default of kernel.perf_event_max_stack. */
static inline uint32_t tally_chain_limit(const struct tally_attr *attr)
{
	enum { DEFAULT_MAX_STACK = 127 };
	return attr->sample_max_stack ? attr->sample_max_stack : DEFAULT_MAX_STACK;
}

/* Returns the number of frames in a chain.  Markers don't count against the limit
 * (kernel/events/callchain.c). */
static inline uint64_t tally_chain_frames(const struct tally_sample *sample)
{
	uint64_t frames = 0;
	for (uint64_t i = 0; sample->chain && i < sample->chain_length; i++)
		frames += sample->chain[i] < TALLY_CONTEXT_MAX;
	return frames;
}

#endif
