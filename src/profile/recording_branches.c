/* Stacks from a CPU's branch records (LBR in its call-stack mode): what the processor has noted of calls that have not
 * returned yet, where the user's stack is without frame pointers.
 *
 * They take the place of the chain's user part, as in perf: where the last call went, then where each call was made.  These
 * are no return addresses, so a marker stands in front of each: what follows a marker is taken as it is.
 */
#include "profile/recording.h"

#include "base/vector.h"

#include "tally/perf_event.h"

#include <errno.h>

static int push(struct tally_recording *recording, uint64_t word)
{
	return tally_vector_push(&recording->branch_chain, word);
}

int tally_recording_branch_chain(struct tally_recording *recording, const struct tally_attr *attr,
				 struct tally_sample *sample)
{
	const uint64_t needed = TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_BRANCH_STACK;
	uint64_t kernel = 0;
	if (!sample->branch_count || (sample->type & needed) != needed || !(attr->branch_sample_type & TALLY_BRANCH_CALL_STACK) || !sample->branches)
		return 0;
	while (kernel < sample->chain_length && sample->chain[kernel] != TALLY_CONTEXT_USER)
		kernel++;
	if (kernel == sample->chain_length)
		return 0;
	recording->branch_chain.count = 0;
	int failed = 0;
	for (uint64_t i = 0; i <= kernel; i++)
		failed |= push(recording, sample->chain[i]);
	failed |= push(recording, sample->branches[0].to);
	for (uint64_t i = 0; i < sample->branch_count && !failed; i++)
		failed |= push(recording, TALLY_CONTEXT_USER) | push(recording, sample->branches[i].from);
	sample->chain = recording->branch_chain.items;
	sample->chain_length = recording->branch_chain.count;
	return failed ? -ENOMEM : 0;
}
