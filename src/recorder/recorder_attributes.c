/* Makes two attributes for each parsed event: one to open, and one to write. */
#include "recorder/recorder_state.h"

#include "abi/chain_walk.h"
#include "machine/limits.h"
#include "perfdata/off_cpu_event.h"
#include "task/user_stack.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STACK_BYTES = 16 * 1024, MAX_STACK_BYTES = 63 * 1024 };

static const uint64_t ALWAYS_SAMPLED = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP |
				       TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU |
				       TALLY_SAMPLE_PERIOD;

/* ---- the kind of call graph ---------------------------------------------- */

/* Chooses one way for every target: copies of the stack, whose frames are unwound by the rules of
 * their own code.  Each function has frame pointers or not, so knowing the whole program would not
 * help to choose. */
static void choose_call_graph(struct tally_recorder *recorder)
{
	const char *by_itself = recorder->session.provider->ops->call_graph;
	enum tally_call_graph asked = recorder->session.options.call_graph;
	bool can_unwind = tally_unwind_regs_mask(TALLY_UNWIND_HOST);
	recorder->events.call_graph = asked;
	if (asked == TALLY_CALL_GRAPH_AUTO)
		recorder->events.call_graph = can_unwind ? TALLY_CALL_GRAPH_STACK : TALLY_CALL_GRAPH_FP;
	if (asked == TALLY_CALL_GRAPH_AUTO && !can_unwind)
		snprintf(recorder->events.call_graph_text, sizeof(recorder->events.call_graph_text),
			 "call graphs by frame pointers: tally can't unwind this machine's stacks");
	if (!by_itself || asked == TALLY_CALL_GRAPH_NONE)
		return;
	recorder->events.call_graph = TALLY_CALL_GRAPH_FP; /* the provider makes complete chains */
	snprintf(recorder->events.call_graph_text, sizeof(recorder->events.call_graph_text), "call graphs by %s",
		 by_itself);
}

static uint32_t stack_bytes(const struct tally_recorder *recorder)
{
	uint32_t wanted = recorder->session.options.stack_bytes ? recorder->session.options.stack_bytes
							: STACK_BYTES;
	if (wanted > MAX_STACK_BYTES)
		wanted = MAX_STACK_BYTES;
	return wanted & ~7u; /* the kernel accepts multiples of 8 */
}

/* ---- attributes ---------------------------------------------------------- */

static void set_rate(const struct tally_recorder_options *options, const struct tally_event *event,
		     struct tally_attr *attr)
{
	bool each_hit = event->kind == TALLY_EVENT_TRACEPOINT ||
			event->kind == TALLY_EVENT_BREAKPOINT;
	if (event->has_period || event->has_frequency)
		return;
	if (options->period || (each_hit && !options->rate_given)) {
		attr->sample_period = options->period ? options->period : 1;
		attr->flags &= ~TALLY_ATTR_FREQ;
	} else {
		attr->sample_period = (uint64_t)options->frequency;
		attr->flags |= TALLY_ATTR_FREQ;
	}
}

static void set_clock(struct tally_attr *attr)
{
	attr->flags |= TALLY_ATTR_USE_CLOCKID | TALLY_ATTR_SAMPLE_ID_ALL;
	attr->clockid = CLOCK_MONOTONIC;
}

static bool takes_each_hit(const struct tally_attr *attr)
{
	return !(attr->flags & TALLY_ATTR_FREQ) && attr->sample_period == 1;
}

/* False for an event that samples each hit, unless copies are requested: hits come in bursts, and
 * with copies a full ring loses most of them.  Waits and wakings come in no bursts: a CPU has no
 * more of them than switches. */
static bool may_copy(const struct tally_recorder *recorder, const char *name,
		     const struct tally_attr *attr)
{
	bool is_of_waits = tally_is_off_cpu(attr, name) ||
			   (tally_is_waking(attr, name) && tally_recorder_off_cpu(recorder));
	return recorder->session.options.call_graph != TALLY_CALL_GRAPH_AUTO || !takes_each_hit(attr) ||
	       is_of_waits;
}

/* Returns the attribute's max_stack.  When the machine's setting is not the default, the recording
 * has it: readers recognise a full chain by it. */
static uint16_t max_stack(const struct tally_recorder *recorder, bool copies)
{
	struct tally_attr usual = { .sample_max_stack = 0 };
	uint16_t asked = recorder->session.options.max_stack;
	if (recorder->session.provider != tally_provider_kernel())
		return asked;
	int setting = tally_sysctl_read("kernel/perf_event_max_stack");
	/* The kernel makes no longer chains.  From a copy, as many frames come as requested. */
	if (asked && (!copies || setting <= 0 || asked <= setting))
		return asked;
	return setting > 0 && setting <= UINT16_MAX &&
			       (uint32_t)setting != tally_chain_limit(&usual)
		       ? (uint16_t)setting
		       : 0;
}

/* True if samples are written as the kernel made them. */
static bool keeps_stacks(const struct tally_recorder *recorder)
{
	return recorder->session.options.keep_stacks || recorder->session.options.overwrite;
}

static void set_call_graph(const struct tally_recorder *recorder, const char *name,
			   struct tally_attr *attr)
{
	if (recorder->events.call_graph == TALLY_CALL_GRAPH_NONE)
		return;
	attr->sample_type |= TALLY_SAMPLE_CALLCHAIN;
	bool copies = recorder->events.call_graph == TALLY_CALL_GRAPH_STACK &&
		      may_copy(recorder, name, attr);
	attr->sample_max_stack = max_stack(recorder, copies);
	/* the kernel makes the user's chain from it */
	if (recorder->events.call_graph == TALLY_CALL_GRAPH_LBR) {
		attr->sample_type |= TALLY_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = TALLY_BRANCH_USER | TALLY_BRANCH_CALL_STACK |
					   TALLY_BRANCH_NO_FLAGS | TALLY_BRANCH_NO_CYCLES |
					   TALLY_BRANCH_HW_INDEX;
	}
	if (recorder->events.call_graph == TALLY_CALL_GRAPH_LBR ||
	    attr->flags & TALLY_ATTR_EXCLUDE_CALLCHAIN_USER)
		return;
	if (!copies) {
		if (recorder->session.provider == tally_provider_kernel() &&
		    !recorder->session.options.registers_user)
			tally_user_stack_ask_for_inner(TALLY_UNWIND_HOST, keeps_stacks(recorder),
						       attr);
		return;
	}
	attr->sample_type |= TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER;
	attr->sample_regs_user = tally_unwind_regs_mask(TALLY_UNWIND_HOST);
	attr->sample_stack_user = stack_bytes(recorder);
	attr->flags |= TALLY_ATTR_EXCLUDE_CALLCHAIN_USER;
}

static void set_extras(const struct tally_recorder_options *options, struct tally_attr *attr)
{
	attr->sample_type |= options->sample_type;
	if (options->branches) {
		attr->sample_type |= TALLY_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type |= options->branches;
	}
	if (options->registers_intr) {
		attr->sample_type |= TALLY_SAMPLE_REGS_INTR;
		attr->sample_regs_intr = options->registers_intr;
	}
	if (options->registers_user) {
		attr->sample_type |= TALLY_SAMPLE_REGS_USER;
		attr->sample_regs_user |= options->registers_user;
	}
	if (options->overwrite)
		attr->flags |= TALLY_ATTR_WRITE_BACKWARD;
	if (options->exclude)
		attr->flags = (attr->flags &
			       ~(TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL)) |
			      options->exclude;
}

static bool inherits(const struct tally_recorder *recorder)
{
	return !recorder->session.target->all && !recorder->session.options.no_inherit;
}

static void make_source(struct tally_recorder *recorder, const struct tally_event *event,
			struct tally_recorder_source *source)
{
	struct tally_attr *attr = &source->attr;
	*source = (struct tally_recorder_source){
		.attr = event->attr, .event = event, .name = event->name, .cgroup_fd = -1
	};
	attr->size = sizeof(*attr);
	attr->sample_type |= ALWAYS_SAMPLED |
			     (event->kind == TALLY_EVENT_TRACEPOINT ? TALLY_SAMPLE_RAW : 0);
	attr->read_format = TALLY_FORMAT_ID;
	attr->flags |= TALLY_ATTR_DISABLED;
	if (inherits(recorder))
		attr->flags |= TALLY_ATTR_INHERIT;
	if (tally_recorder_follows_command(recorder) && !(recorder->session.options.delay_s > 0) &&
	    !recorder->session.options.starts_off)
		attr->flags |= TALLY_ATTR_ENABLE_ON_EXEC;
	set_rate(&recorder->session.options, event, attr);
	set_clock(attr);
	attr->flags |= recorder->session.options.exclude_chain;
	set_call_graph(recorder, event->name, attr);
	set_extras(&recorder->session.options, attr);
	tally_attr_honour_period(attr);
	if (event->precise_max && event->kind != TALLY_EVENT_SOFTWARE)
		attr->flags |= TALLY_ATTR_PRECISE_IP; /* 3; the opening lowers it if necessary */

	source->written = *attr;
	/* Lost samples are read at the end; samples that contain readings must not have them. */
	if (!event->group_read)
		attr->read_format |= TALLY_FORMAT_LOST;
	bool keeps = keeps_stacks(recorder),
	     has_inner = tally_user_stack_has_inner(TALLY_UNWIND_HOST, attr);
	source->unwinds = attr->sample_type & TALLY_SAMPLE_STACK_USER && !has_inner && !keeps;
	source->completes = has_inner && !keeps && !recorder->session.options.registers_user;
	if (source->unwinds || source->completes) {
		source->written.sample_type &= ~(TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER);
		source->written.sample_regs_user = 0;
		source->written.sample_stack_user = 0;
		if (source->unwinds) /* the user part no longer comes from the kernel */
			source->written.sample_max_stack = UINT16_MAX;
		source->written.flags &= ~TALLY_ATTR_EXCLUDE_CALLCHAIN_USER;
	}
}

/* Only a group's leader is switched on and off.  With :S only the leader samples, and reads its
 * members. */
static void join_groups(struct tally_recorder *recorder)
{
	for (size_t i = 0; i + 1 < recorder->events.source_count; i++) {
		struct tally_recorder_source *source = &recorder->events.sources[i];
		int group = source->event->group;
		bool member = i && group != TALLY_EVENT_NO_GROUP &&
			      recorder->events.sources[i - 1].event->group == group;
		if (member)
			source->attr.flags &= ~(TALLY_ATTR_DISABLED | TALLY_ATTR_ENABLE_ON_EXEC);
		if (!source->event->group_read)
			continue;
		source->attr.read_format |= TALLY_FORMAT_GROUP;
		if (recorder->session.options.running_time)
			source->attr.read_format |= TALLY_FORMAT_TOTAL_TIME_ENABLED |
						    TALLY_FORMAT_TOTAL_TIME_RUNNING;
		/* the kernel can't read groups of inherited events */
		source->attr.flags &= ~TALLY_ATTR_INHERIT;
		source->attr.sample_type |= TALLY_SAMPLE_READ;
		if (member) {
			source->attr.sample_period = 0;
			source->attr.flags &= ~TALLY_ATTR_FREQ;
		}
		source->written.read_format = source->attr.read_format;
		source->written.sample_type |= TALLY_SAMPLE_READ;
		source->written.sample_period = source->attr.sample_period;
		source->written.flags = (source->written.flags &
					 ~(TALLY_ATTR_FREQ | TALLY_ATTR_INHERIT)) |
					(source->attr.flags & TALLY_ATTR_FREQ);
	}
}

static void make_side_band(struct tally_recorder *recorder, struct tally_recorder_source *source)
{
	*source = (struct tally_recorder_source){ .name = "dummy:HG", .cgroup_fd = -1 };
	source->attr = (struct tally_attr){
		.type = TALLY_TYPE_SOFTWARE,
		.size = sizeof(source->attr),
		.config = TALLY_SW_DUMMY,
		.sample_period = 1,
		/* The same trailer as in samples: perf wants one layout for all. */
		.sample_type = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
			       TALLY_SAMPLE_CPU,
		.read_format = TALLY_FORMAT_ID,
		.flags = TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_COMM |
			 TALLY_ATTR_COMM_EXEC | TALLY_ATTR_TASK | TALLY_ATTR_EXCLUDE_KERNEL |
			 TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT | recorder->session.options.side_band,
	};
	if (recorder->session.options.no_bpf_events)
		source->attr.flags &= ~TALLY_ATTR_BPF_EVENT;
	/* the kernel's code is shown as it was at the time */
	if (tally_recorder_samples_kernel(recorder))
		source->attr.flags |= TALLY_ATTR_TEXT_POKE;
	if (inherits(recorder))
		source->attr.flags |= TALLY_ATTR_INHERIT;
	/* Some readers that unwind later (perf's libunwind) find .eh_frame_hdr by mappings that are
	 * not executable. */
	if (recorder->events.call_graph == TALLY_CALL_GRAPH_STACK &&
	    (recorder->session.options.keep_stacks || recorder->session.options.overwrite))
		source->attr.flags |= TALLY_ATTR_MMAP_DATA;
	set_clock(&source->attr);
	source->written = source->attr;
}

const struct tally_recorder_source *tally_recorder_off_cpu(const struct tally_recorder *recorder)
{
	for (size_t i = 0; i + 1 < recorder->events.source_count; i++)
		if (recorder->events.sources[i].event &&
		    tally_is_off_cpu(&recorder->events.sources[i].attr, recorder->events.sources[i].event->name))
			return &recorder->events.sources[i];
	return NULL;
}

/* Describes the call graphs when some or all events sample each hit, and so have no copies. */
static void describe_each_hit(struct tally_recorder *recorder)
{
	size_t copies = 0, events = recorder->events.source_count - 1;
	if (recorder->session.options.call_graph != TALLY_CALL_GRAPH_AUTO ||
	    recorder->events.call_graph != TALLY_CALL_GRAPH_STACK)
		return;
	for (size_t i = 0; i < events; i++)
		copies += !!(recorder->events.sources[i].attr.sample_type & TALLY_SAMPLE_STACK_USER) &&
			  !recorder->events.sources[i].completes;
	if (!copies)
		recorder->events.call_graph = TALLY_CALL_GRAPH_FP;
	if (copies < events)
		snprintf(
			recorder->events.call_graph_text, sizeof(recorder->events.call_graph_text),
			"call graphs by frame pointers for events that record each hit; "
			"--call-graph dwarf copies stacks for them as well");
}

int tally_recorder_make_sources(struct tally_recorder *recorder,
				const struct tally_event_list *events, struct tally_error *err)
{
	choose_call_graph(recorder);
	recorder->events.source_count = events->count + 1;
	recorder->events.sources = tally_arena_array(&recorder->session.arena, recorder->events.source_count,
					      sizeof(*recorder->events.sources));
	recorder->events.recorded = tally_arena_array(&recorder->session.arena, recorder->events.source_count,
					       sizeof(*recorder->events.recorded));
	if (!recorder->events.sources || !recorder->events.recorded) {
		recorder->events.source_count = 0;
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < events->count; i++)
		make_source(recorder, &events->items[i], &recorder->events.sources[i]);
	for (size_t i = 0; i < events->count; i++) {
		recorder->events.unwinds |= recorder->events.sources[i].unwinds;
		recorder->events.completes |= recorder->events.sources[i].completes;
	}
	join_groups(recorder);
	describe_each_hit(recorder);
	make_side_band(recorder, tally_recorder_side_band(recorder));
	return 0;
}
