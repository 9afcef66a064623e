/* A sample that carries a copy of the user's stack → the same sample with the call chain that the copy holds.
 *
 * Fields before the chain and fields behind the copy keep their bytes and their order, so the written attribute is
 * the opened one less REGS_USER and STACK_USER (perf_event_open(2), the layout of PERF_RECORD_SAMPLE).
 */
#include "session/recorder_state.h"

#include "task/user_stack.h"

#include <errno.h>
#include <string.h>

enum { RECORD_BYTES_MAX = 65528 };

struct output {
	uint8_t *start, *at;
	bool full;
};

static void put(struct output *output, const void *bytes, size_t size)
{
	if (output->full || size > RECORD_BYTES_MAX - (size_t)(output->at - output->start)) {
		output->full = true;
		return;
	}
	memcpy(output->at, bytes, size);
	output->at += size;
}

static void put_word(struct output *output, uint64_t word)
{
	put(output, &word, sizeof(word));
}

static void put_chain(struct output *output, const struct tally_sample *sample, const uint64_t *user, size_t users)
{
	put_word(output, sample->chain_length + (users ? users + 1 : 0));
	put(output, sample->chain, sample->chain_length * 8);
	if (!users)
		return;
	put_word(output, TALLY_CONTEXT_USER);
	put(output, user, users * 8);
}

long tally_record_unwind_sample(struct tally_recorder *recorder, const struct tally_record_source *source,
				const void *bytes, size_t size, void *out)
{
	struct tally_record record;
	uint64_t user[TALLY_RECORD_FRAMES_MAX];
	enum tally_unwind_end end;
	int result = tally_record_decode(&source->attr, bytes, size, &record);
	const struct tally_sample *sample = &record.sample;
	if (result < 0)
		return result;
	size_t users = tally_user_stack_unwind(&recorder->tasks, &recorder->objects, &source->attr, sample, user,
					       TALLY_RECORD_FRAMES_MAX, &end);
	recorder->status.stacks += users > 0;
	recorder->status.stacks_cut += users && end == TALLY_UNWIND_TRUNCATED;
	recorder->status.stacks_deep += users && end == TALLY_UNWIND_LIMIT;
	/* No way to unwind (a 32-bit program): where it was is known all the same. */
	bool in_user = (record.header.misc & TALLY_MISC_CPUMODE_MASK) == TALLY_MISC_USER;
	if (!users && in_user)
		user[users++] = sample->ip;

	struct output output = { .start = out, .at = out };
	const uint8_t *chain = (const uint8_t *)sample->chain, *chain_end = chain + sample->chain_length * 8;
	put(&output, bytes, (size_t)(chain - 8 - (const uint8_t *)bytes));
	put_chain(&output, sample, user, users);
	put(&output, chain_end, (size_t)(sample->regs_user_start - chain_end));
	put(&output, sample->stack_user_end,
	    (size_t)((const uint8_t *)bytes + record.header.size - sample->stack_user_end));
	if (output.full)
		return -EBADMSG;
	size_t written = (size_t)(output.at - output.start);
	record.header.size = (uint16_t)written;
	memcpy(out, &record.header, sizeof(record.header));
	return (long)written;
}
