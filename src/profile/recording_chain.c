/* A sample's stack as frames: the kernel's chain, then what is unwound from the copied stack. */
#include "profile/recording.h"

#include "abi/chain_walk.h"
#include "base/vector.h"

#include <errno.h>

/* A record has 64 KiB at most: so much of it is left for a stack, as tally's option has it. */
enum { USER_FRAMES_MAX = 1024, STACK_COPY_MAX = 64512 };

static int push_frame(struct tally_recording *recording, uint32_t pid, uint64_t address, bool is_return, bool kernel)
{
	uint8_t before = is_return && address;
	struct tally_chain_frame frame = {
		.address = address,
		.place = tally_place_of(&recording->tasks, pid, kernel, address - before),
		.before = before,
		.kernel = kernel,
	};
	frame.place.before = before;
	return tally_vector_push(&recording->chain, frame);
}

static bool is_kernel_mode(uint16_t misc)
{
	unsigned mode = misc & TALLY_MISC_CPUMODE_MASK;
	return mode == TALLY_MISC_KERNEL || mode == TALLY_MISC_GUEST_KERNEL;
}

static int push_kernel_chain(struct tally_recording *recording, const struct tally_record *record)
{
	const struct tally_sample *sample = &record->sample;
	struct tally_chain_walk walk = tally_chain_walk_of(sample, is_kernel_mode(record->header.misc));
	uint64_t address;
	while (tally_chain_walk_next(&walk, &address))
		if (push_frame(recording, sample->pid, address, walk.is_return, walk.kernel) < 0)
			return -ENOMEM;
	return 0;
}

/* What the recording should have been made with.  A thread's stack ends where its whole ones did; the mapping's end,
 * with the environment above, is the second best. */
static void count_cut(struct tally_recording *recording, const struct tally_attr *attr,
		      const struct tally_sample *sample, const struct tally_unwind_extent *extent)
{
	struct tally_recording_counts *counts = &recording->counts;
	const uint64_t *top = tally_map_get(&recording->stack_tops, sample->tid);
	struct tally_user_stack_need need = tally_user_stack_needed(&recording->tasks, &recording->names.objects, attr,
								    sample, extent, top ? *top : 0);
	counts->stacks_cut++;
	counts->cut.handlers += need.bytes == 0;
	counts->cut.too_large += need.bytes > STACK_COPY_MAX;
	if (need.bytes > STACK_COPY_MAX || need.bytes == 0)
		return;
	counts->cut.is_at_least |= !need.is_at_most;
	if (need.bytes > counts->cut.bytes)
		counts->cut.bytes = need.bytes;
}

static int push_user_stack(struct tally_recording *recording, const struct tally_attr *attr,
			   const struct tally_record *record)
{
	uint64_t addresses[USER_FRAMES_MAX];
	bool is_exact[USER_FRAMES_MAX];
	enum tally_unwind_end end;
	struct tally_unwind_extent extent;
	const struct tally_sample *sample = &record->sample;
	size_t count = tally_user_stack_frames(&recording->tasks, &recording->names.objects, attr, sample,
					       addresses, is_exact, USER_FRAMES_MAX, &end, &extent);
	if (!count)
		return 0;
	recording->counts.stacks++;
	if (end == TALLY_UNWIND_TRUNCATED) {
		count_cut(recording, attr, sample, &extent);
	} else if (end == TALLY_UNWIND_COMPLETE) {
		uint64_t *top = tally_map_put(&recording->stack_tops, sample->tid, NULL);
		if (!top)
			return -ENOMEM;
		*top = extent.reached;
	}
	/* The call rather than the return, as perf shows stacks that it unwinds itself. */
	for (size_t i = 0; i < count; i++)
		if (push_frame(recording, sample->pid, addresses[i] - !is_exact[i], false, false) < 0)
			return -ENOMEM;
	struct tally_chain_frame cut = { .address = TALLY_PLACE_CUT,
					 .place = { .file = TALLY_FILE_NONE, .address = TALLY_PLACE_CUT } };
	return recording->marks_cut && end == TALLY_UNWIND_TRUNCATED ? tally_vector_push(&recording->chain, cut) : 0;
}

int tally_recording_chain(struct tally_recording *recording, const struct tally_raw_record *raw,
			  const struct tally_record *record)
{
	const struct tally_sample *sample = &record->sample;
	bool kernel = is_kernel_mode(record->header.misc);
	recording->chain.count = 0;
	if (recording->leaves_only && sample->type & TALLY_SAMPLE_IP)
		return push_frame(recording, sample->pid, sample->ip, false, kernel);
	if (push_kernel_chain(recording, record) < 0)
		return -ENOMEM;
	if (sample->stack && push_user_stack(recording, &raw->event->attr, record) < 0)
		return -ENOMEM;
	if (!recording->chain.count && sample->type & TALLY_SAMPLE_IP)
		return push_frame(recording, sample->pid, sample->ip, false, kernel);
	return 0;
}

bool tally_recording_has_stacks(const struct tally_attr *attr)
{
	return attr->sample_type & (TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_STACK_USER);
}
