/* Makes frames of a sample's stack: first the kernel's chain, then what is unwound from the stack
 * copy. */
#include "abi/abi.h"
#include "base/extremes.h"
#include "base/vector.h"
#include "naming/packed.h"
#include "recording/recording.h"
#include "tally/perf_event.h"
#include "task/user_stack.h"

#include <errno.h>
#include <string.h>

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

static int push(struct tally_recording *recording, uint64_t word)
{
	return tally_vector_push(&recording->chain.made, word);
}

/* True if the sample has branch records of calls. */
static bool recording_has_branch_chain(const struct tally_attr *attr,
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
	if (!recording_has_branch_chain(attr, sample))
		return 0;
	while (kernel < sample->chain_length && sample->chain[kernel] != TALLY_CONTEXT_USER)
		kernel++;
	if (kernel == sample->chain_length)
		return 0;
	recording->chain.made.count = 0;
	int failed = 0;
	for (uint64_t i = 0; i <= kernel; i++)
		failed |= push(recording, sample->chain[i]);
	failed |= push(recording, sample->branches[0].to);
	for (uint64_t i = 0; i < sample->branch_count && !failed; i++)
		failed |= push(recording, TALLY_CONTEXT_USER) |
			  push(recording, sample->branches[i].from);
	sample->chain = recording->chain.made.items;
	sample->chain_length = recording->chain.made.count;
	return failed ? -ENOMEM : 0;
}

/* Gets what the recording's own section says of the user stack of the sample given last.  Returns
 * false if it says nothing. */
static bool recording_find_packed(struct tally_recording *recording,
				  struct tally_unwound_stack *stack, struct tally_packed_need *need)
{
	if (recording->carried.section) {
		int result = tally_packed_stacks_read(recording->carried.section,
						      recording->carried.section_size,
						      &recording->carried.stacks);
		recording->carried.section = NULL;
		recording->names.gaps.packed_damaged |= result == -EBADMSG;
	}
	return recording->carried.stacks &&
	       tally_packed_stacks_at(recording->carried.stacks, recording->chain.stacks - 1,
				      stack, need);
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
	recording->chain.stacks++;
	bool is_mended = tally_user_stack_mend(&recording->tasks, &recording->names.objects, attr,
					       sample, &inner);
	*caller = 0;
	if (is_mended)
		*caller = inner.frames[1];
	*at = inner.at;
	if (!*caller && recording_find_packed(recording, &stack, &need) && stack.count == 1)
		*caller = stack.addresses[0];
	if (!*caller || !recording->carried.noted)
		return 0;
	stack = (struct tally_unwound_stack){ caller, &is_exact, 1, false, true };
	return tally_packed_stacks_note(recording->carried.noted, recording->chain.stacks - 1,
					&stack, need);
}

int tally_recording_complete_chain(struct tally_recording *recording, const struct tally_attr *attr,
				   struct tally_sample *sample)
{
	uint64_t at = UINT64_MAX, caller;
	/* On x86-64 the recorder itself completes chains. */
	enum tally_unwind_machine machine = recording->names.objects.machine;
	if (recording->options.leaves_only || !tally_unwind_return_mask(machine) ||
	    !tally_user_stack_has_inner(machine, attr))
		return 0;
	if (leaf_caller(recording, attr, sample, &at, &caller) < 0)
		return -ENOMEM;
	if (!caller)
		return 0;
	recording->chain.made.count = 0;
	int failed = 0;
	for (uint64_t i = 0; i < sample->chain_length && !failed; i++) {
		failed |= push(recording, sample->chain[i]);
		if (i == at)
			failed |= push(recording, TALLY_CONTEXT_USER) | push(recording, caller - 1);
	}
	sample->chain = recording->chain.made.items;
	sample->chain_length = recording->chain.made.count;
	return failed ? -ENOMEM : 0;
}

/* A record has at most 64 KiB, which leaves this much for a stack, the maximum of tally's
 * option. */
enum { STACK_COPY_MAX = 64512 };

static int push_frame(struct tally_recording *recording, uint64_t address, bool is_return,
		      bool kernel)
{
	if (tally_vector_reserve(&recording->chain, recording->chain.count + 1) < 0)
		return -ENOMEM;
	struct tally_chain_frame *frame = &recording->chain.items[recording->chain.count++];
	frame->address = address;
	frame->before = is_return && address;
	frame->kernel = kernel;
	return 0;
}

static int push_kernel_chain(struct tally_recording *recording, const struct tally_record *record)
{
	const struct tally_sample *sample = &record->sample;
	struct tally_chain_walk walk = tally_chain_walk_of(sample,
							   tally_space_of(record->header.misc, 0)
								   .kernel);
	uint64_t address;
	while (tally_chain_walk_next(&walk, &address))
		if (push_frame(recording, address, walk.is_return, walk.kernel) < 0)
			return -ENOMEM;
	return 0;
}

/* Notes the stack copy size that the recording should have had. */
static void count_cut(struct tally_recording *recording, struct tally_packed_need need)
{
	struct tally_recording_counts *counts = &recording->counts;
	counts->stacks_cut++;
	counts->cut.ended += need.bytes == 0;
	if (need.bytes > STACK_COPY_MAX || need.bytes == 0)
		return;
	counts->cut.is_at_least |= !need.is_at_most;
	if (need.bytes > counts->cut.bytes)
		counts->cut.bytes = need.bytes;
}

/* Estimates how large a copy a cut stack needs.  A thread's stack ends where its whole stacks
 * ended.  Without one, the end of the mapping has to do, although the environment is above the
 * stack. */
static struct tally_packed_need needed(const struct tally_recording *recording,
				       const struct tally_attr *attr,
				       const struct tally_sample *sample,
				       const struct tally_unwind_extent *extent)
{
	const uint64_t *top = tally_map_get(&recording->chain.stack_tops, sample->tid);
	struct tally_user_stack_need need = tally_user_stack_needed(
		&recording->tasks, &recording->names.objects, attr, sample, extent, top ? *top : 0);
	return (struct tally_packed_need){ (uint32_t)tally_min_u64(need.bytes, UINT32_MAX),
					   need.is_at_most };
}

/* Memory for a stack that is unwound here. */
struct unwound {
	uint64_t addresses[TALLY_USER_FRAMES_MAX];
	bool is_exact[TALLY_USER_FRAMES_MAX];
};

static int unwind(struct tally_recording *recording, const struct tally_attr *attr,
		  const struct tally_sample *sample, uint32_t most, struct unwound *room,
		  struct tally_unwound_stack *stack, struct tally_packed_need *need)
{
	enum tally_unwind_end end;
	struct tally_unwind_extent extent;
	size_t count = tally_user_stack_frames(&recording->tasks, &recording->names.objects, attr,
					       sample, room->addresses, room->is_exact, most, &end,
					       &extent);
	*stack = (struct tally_unwound_stack){
		room->addresses,
		room->is_exact,
		(uint32_t)count,
		count && end == TALLY_UNWIND_TRUNCATED,
		count && end == TALLY_UNWIND_COMPLETE,
	};
	if (stack->is_cut) {
		*need = needed(recording, attr, sample, &extent);
	} else if (stack->is_complete) {
		uint64_t *top = tally_map_put(&recording->chain.stack_tops, sample->tid, NULL);
		if (!top)
			return -ENOMEM;
		*top = extent.reached;
	}
	return 0;
}

/* Returns 1 if the stack doesn't reach the start of its thread, 0 or -ENOMEM. */
static int push_user_stack(struct tally_recording *recording, const struct tally_attr *attr,
			   const struct tally_record *record)
{
	struct unwound room;
	struct tally_unwound_stack stack;
	struct tally_packed_need need = { 0 };
	enum tally_unwind_machine machine = recording->names.objects.machine;
	/* user frames are counted separately from the kernel's, as in perf */
	uint32_t most = TALLY_USER_FRAMES_MAX;
	if (recording->filter.frames_max && recording->filter.frames_max < most)
		most = recording->filter.frames_max;
	if (!tally_unwind_regs_mask(machine))
		recording->counts.stacks_foreign++;
	else if (record->sample.regs_user.abi &&
		 !tally_unwind_regs_mask(tally_unwind_machine_of_registers(
			 machine, record->sample.regs_user.abi)))
		recording->counts.stacks_32bit++;
	if (!recording_find_packed(recording, &stack, &need) &&
	    unwind(recording, attr, &record->sample, most, &room, &stack, &need) < 0)
		return -ENOMEM;
	if (recording->carried.noted &&
	    tally_packed_stacks_note(recording->carried.noted, recording->chain.stacks - 1, &stack,
				     need) < 0)
		return -ENOMEM;
	if (!stack.count)
		return 0;
	recording->counts.stacks++;
	bool is_cut = stack.is_cut && stack.count < most;
	bool is_lost = !stack.is_cut && !stack.is_complete && stack.count < most;
	if (is_cut)
		count_cut(recording, need);
	recording->counts.stacks_lost += is_lost;
	/* as in perf, show the call rather than the return address */
	for (size_t i = 0; i < stack.count && i < most; i++)
		if (push_frame(recording, stack.addresses[i] - !stack.is_exact[i], false, false) <
		    0)
			return -ENOMEM;
	return is_cut || is_lost;
}

int tally_recording_addresses(struct tally_recording *recording, const struct tally_raw_record *raw,
			      const struct tally_record *record)
{
	const struct tally_sample *sample = &record->sample;
	bool kernel = tally_space_of(record->header.misc, 0).kernel;
	int is_cut = 0;
	recording->chain.count = 0;
	if (recording->options.leaves_only && sample->type & TALLY_SAMPLE_IP)
		return push_frame(recording, sample->ip, false, kernel);
	if (push_kernel_chain(recording, record) < 0)
		return -ENOMEM;
	if (sample->stack)
		is_cut = push_user_stack(recording, &raw->event->attr, record);
	else if (recording->chain.count)
		is_cut = recording->chain.is_full ||
			 (record->header.misc & TALLY_MISC_STACK_INCOMPLETE);
	if (!recording->chain.count && sample->type & TALLY_SAMPLE_IP)
		return push_frame(recording, sample->ip, false, kernel);
	return is_cut;
}

/* The frames beyond are dropped as if they had not been recorded: no frame marks the cut. */
void tally_recording_shorten(struct tally_recording *recording, struct tally_record *record)
{
	struct tally_chain_walk walk = tally_chain_walk_of(&record->sample, false);
	uint64_t address;
	uint32_t frames = 0;
	while (frames < recording->filter.frames_max && tally_chain_walk_next(&walk, &address))
		frames++;
	if (frames < recording->filter.frames_max)
		return;
	record->sample.chain_length = (uint64_t)(walk.at - record->sample.chain);
	record->header.misc &= (uint16_t)~TALLY_MISC_STACK_INCOMPLETE;
	recording->chain.is_full = false;
}

/* Events of these PMUs are told at the instruction itself. */
static bool is_exact_pmu(const struct tally_recording *recording, uint32_t type)
{
	/* the simulated PMU replaces all others */
	return tally_perfdata_has_pmu(recording->data, "kprobe", type) ||
	       tally_perfdata_has_pmu(recording->data, "uprobe", type) ||
	       tally_perfdata_has_pmu(recording->data, "vsim", UINT32_MAX);
}

bool tally_recording_has_skid(const struct tally_recording *recording,
			      const struct tally_attr *attr)
{
	if (attr->type == TALLY_TYPE_SOFTWARE)
		return tally_attr_is_clock(attr);
	return attr->type != TALLY_TYPE_TRACEPOINT && attr->type != TALLY_TYPE_BREAKPOINT &&
	       !(attr->flags & TALLY_ATTR_PRECISE_IP) && !is_exact_pmu(recording, attr->type);
}

/* A chain may begin elsewhere: in the user's code, where the kernel's part was left out.  That
 * address is a system call's, or of an instruction that faulted. */
static bool is_leaf(const struct tally_sample *sample)
{
	struct tally_chain_walk walk = tally_chain_walk_of(sample, false);
	uint64_t address;
	return !(sample->type & TALLY_SAMPLE_IP) || !tally_chain_walk_next(&walk, &address) ||
	       address == sample->ip;
}

bool tally_recording_is_late(struct tally_recording *recording, const struct tally_raw_record *raw,
			     const struct tally_record *record)
{
	const struct tally_attr *attr = &raw->event->attr;
	struct tally_recorded_skid *last = &recording->chain.skid;
	if (!last->is_known || last->type != attr->type || last->config != attr->config ||
	    last->flags != attr->flags) {
		last->is_known = true;
		last->type = attr->type;
		last->config = attr->config;
		last->flags = attr->flags;
		last->has_skid = tally_recording_has_skid(recording, attr);
	}
	return last->has_skid && !(record->header.misc & TALLY_MISC_EXACT_IP) &&
	       !recording->names.sources.raw_addresses && is_leaf(&record->sample);
}

int tally_recording_chain(struct tally_recording *recording, const struct tally_raw_record *raw,
			  const struct tally_record *record)
{
	int is_cut = tally_recording_addresses(recording, raw, record);
	if (is_cut < 0)
		return -ENOMEM;
	uint32_t pid = tally_space_of(record->header.misc, record->sample.pid).pid;
	for (size_t i = 0; i < recording->chain.count; i++) {
		struct tally_chain_frame *frame = &recording->chain.items[i];
		frame->place = tally_place_of(&recording->tasks, pid, frame->kernel,
					      frame->address - frame->before);
		frame->place.before = frame->before;
	}
	if (recording->chain.count)
		recording->chain.items[0].place.is_late = tally_recording_is_late(recording, raw,
										  record);
	if (!recording->options.marks_cut || !is_cut)
		return 0;
	struct tally_chain_frame cut = { .address = TALLY_PLACE_CUT,
					 .place = { .file = TALLY_FILE_NONE,
						    .address = TALLY_PLACE_CUT } };
	return tally_vector_push(&recording->chain, cut);
}

/* ---- chains as long as the kernel makes any ------------------------------ */

bool tally_is_start(const char *name)
{
	static const char *const starts[] = {
		"_start",
		"_start_c",
		"__libc_start_call_main",
		"__libc_start_main",
		"__libc_start_main_impl",
		"start_thread",
		"thread_start",
		"clone",
		"__clone",
		"clone3",
		"__clone3",
		"runtime.goexit",
		"runtime.goexit.abi0",
		"runtime.mstart",
		"runtime.mstart.abi0",
		"runtime.rt0_go",
		"runtime.rt0_go.abi0",
		"__start_context",
		"ret_from_fork",
		"ret_from_fork_asm",
		"secondary_startup_64",
		"secondary_startup_64_no_verify",
	};
	for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (!strcmp(name, starts[i]))
			return true;
	return false;
}

/* A stack may be exactly as deep as the limit: then its outermost function is the start of a
 * thread.  Names come later for recordings from a pipe and for debug files to fetch, and are not
 * shown when places are only collected.  Returns 1, 0 or -ENOMEM. */
static int is_whole(struct tally_recording *recording, const struct tally_record *record)
{
	struct tally_names *names = &recording->names;
	struct tally_chain_walk walk = tally_chain_walk_of(&record->sample,
							   tally_space_of(record->header.misc, 0)
								   .kernel);
	uint64_t address, outermost = 0;
	if (tally_perfdata_is_pipe(recording->data) || names->sources.asks_debuginfod ||
	    names->options.asked)
		return 0;
	while (tally_chain_walk_next(&walk, &address))
		outermost = address - walk.is_return;
	if (walk.kernel)
		return 0;
	struct tally_place place = tally_place_of(&recording->tasks, record->sample.pid, false,
						  outermost);
	place.before = walk.is_return;
	uint32_t function = tally_names_function(names, &place, NULL);
	if (function == UINT32_MAX)
		return -ENOMEM;
	return tally_is_start(tally_names_plain_text(names, function));
}

/* A chain that goes on in a stack copy, or in branch records of calls, doesn't end at the limit.
 * tally's recorder may have added the leaf's caller, so one more frame is possible. */
int tally_recording_ends_at_limit(struct tally_recording *recording, const struct tally_attr *attr,
				  const struct tally_record *record)
{
	const struct tally_sample *sample = &record->sample;
	uint32_t limit = tally_chain_limit(attr);
	if (sample->stack || recording_has_branch_chain(attr, sample))
		return 0;
	uint64_t frames = tally_chain_frames(sample);
	if (frames != limit && frames != limit + 1ull) {
		recording->chain.has_longer |= frames > limit && !attr->sample_max_stack;
		return 0;
	}
	if (recording->chain.has_longer && !attr->sample_max_stack)
		return 0; /* another limit */
	int whole = is_whole(recording, record);
	if (whole < 0)
		return whole;
	if (whole)
		return 0;
	recording->counts.chain_limit = limit;
	return 1;
}

bool tally_recording_has_stacks(const struct tally_attr *attr)
{
	return attr->sample_type & (TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_STACK_USER);
}
