/* Chains made from other parts of a sample.
 *
 * Branch records (LBR in its call-stack mode): the processor notes calls that have not returned
 * yet.  This gives user stacks without frame pointers.  As in perf, the records replace the chain's
 * user part: first the target of the last call, then the address of each call.  These are not
 * return addresses.  So each has a marker in front of it, because an address after a marker is
 * taken as it is.
 *
 * The leaf's caller, on machines where calls leave the return address in a register (arm64): the
 * kernel follows frame pointers, but a leaf function makes no frame, and other functions have none
 * before their first instructions ran.  So their caller is missing in the chain. perf records the
 * register, and so does tally if it keeps samples as they are.  The unwind rules at the innermost
 * address tell whether the register holds the return address. perf shows the call there rather than
 * the return address, and so does tally.
 */
#include "recording/recording.h"

#include "base/vector.h"
#include "task/user_stack.h"

#include "tally/perf_event.h"

#include <errno.h>

static int push(struct tally_recording *recording, uint64_t word)
{
	return tally_vector_push(&recording->made_chain, word);
}

bool tally_recording_has_branch_chain(const struct tally_attr *attr,
				      const struct tally_sample *sample)
{
	const uint64_t needed = TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_BRANCH_STACK;
	return sample->branch_count && sample->branches && (sample->type & needed) == needed &&
	       attr->branch_sample_type & TALLY_BRANCH_CALL_STACK;
}

int tally_recording_branch_chain(struct tally_recording *recording, const struct tally_attr *attr,
				 struct tally_sample *sample)
{
	uint64_t kernel = 0;
	if (!tally_recording_has_branch_chain(attr, sample))
		return 0;
	while (kernel < sample->chain_length && sample->chain[kernel] != TALLY_CONTEXT_USER)
		kernel++;
	if (kernel == sample->chain_length)
		return 0;
	recording->made_chain.count = 0;
	int failed = 0;
	for (uint64_t i = 0; i <= kernel; i++)
		failed |= push(recording, sample->chain[i]);
	failed |= push(recording, sample->branches[0].to);
	for (uint64_t i = 0; i < sample->branch_count && !failed; i++)
		failed |= push(recording, TALLY_CONTEXT_USER) |
			  push(recording, sample->branches[i].from);
	sample->chain = recording->made_chain.items;
	sample->chain_length = recording->made_chain.count;
	return failed ? -ENOMEM : 0;
}

/* Finds the leaf's caller by unwind rules, or in the recording's own section; notes it if stacks
 * are packed. */
static int leaf_caller(struct tally_recording *recording, const struct tally_attr *attr,
		       const struct tally_sample *sample, uint64_t *at, uint64_t *caller)
{
	struct tally_unwound_stack stack;
	struct tally_packed_need need = { 0 };
	struct tally_user_stack_inner inner;
	bool is_exact = false;
	recording->stacks.samples++;
	bool is_mended = tally_user_stack_mend(&recording->tasks, &recording->names.objects, attr,
					       sample, &inner);
	*caller = is_mended ? inner.frames[1] : 0;
	*at = inner.at;
	if (!*caller && tally_recording_find_packed(recording, &stack, &need) && stack.count == 1)
		*caller = stack.addresses[0];
	if (!*caller || !recording->stacks.noted)
		return 0;
	stack = (struct tally_unwound_stack){ caller, &is_exact, 1, false, true };
	return tally_packed_stacks_note(recording->stacks.noted, recording->stacks.samples - 1,
					&stack, need);
}

int tally_recording_complete_chain(struct tally_recording *recording, const struct tally_attr *attr,
				   struct tally_sample *sample)
{
	uint64_t at = UINT64_MAX, caller;
	/* On x86-64 the recorder itself completes chains. */
	if (recording->leaves_only || !tally_unwind_return_mask(recording->names.objects.machine) ||
	    !tally_user_stack_has_inner(recording->names.objects.machine, attr))
		return 0;
	if (leaf_caller(recording, attr, sample, &at, &caller) < 0)
		return -ENOMEM;
	if (!caller)
		return 0;
	recording->made_chain.count = 0;
	int failed = 0;
	for (uint64_t i = 0; i < sample->chain_length && !failed; i++) {
		failed |= push(recording, sample->chain[i]);
		if (i == at)
			failed |= push(recording, TALLY_CONTEXT_USER) | push(recording, caller - 1);
	}
	sample->chain = recording->made_chain.items;
	sample->chain_length = recording->made_chain.count;
	return failed ? -ENOMEM : 0;
}
