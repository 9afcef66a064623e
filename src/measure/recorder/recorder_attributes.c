/* Makes two attributes for each parsed event: one to open, and one to write. */
#include "recorder/recorder_events.h"

#include "abi/abi.h"
#include "machine/machine.h"
#include "perfdata/perfdata.h"
#include "task/user_stack.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	STACK_BYTES = 16 * 1024,
	MAX_STACK_BYTES = 63 * 1024,
	WAKEUP_BYTES_MAX = 4 << 20, /* of stack copies */
};

static const uint64_t ALWAYS_SAMPLED = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP |
				       TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU |
				       TALLY_SAMPLE_PERIOD;

/* ---- the kind of call graph ---------------------------------------------- */

/* Chooses one way for every target: copies of the stack, whose frames are unwound by the rules of
 * their own code.  Each function has frame pointers or not, so knowing the whole program would not
 * help to choose. */
static void choose_call_graph(struct tally_recorder_events *events)
{
	const char *by_itself = events->session->provider->ops->call_graph;
	enum tally_call_graph asked = events->session->options.call_graph;
	bool can_unwind = tally_unwind_regs_mask(TALLY_UNWIND_HOST);
	events->call_graph = asked;
	if (asked == TALLY_CALL_GRAPH_AUTO && can_unwind) {
		events->call_graph = TALLY_CALL_GRAPH_STACK;
	} else if (asked == TALLY_CALL_GRAPH_AUTO) {
		events->call_graph = TALLY_CALL_GRAPH_FP;
		snprintf(events->call_graph_text, sizeof(events->call_graph_text),
			 "call graphs by frame pointers: tally can't unwind this machine's stacks");
	}
	if (asked == TALLY_CALL_GRAPH_FP && can_unwind &&
	    tally_provider_can(events->session->provider, TALLY_PROVIDER_NO_CHAINS)) {
		events->call_graph = TALLY_CALL_GRAPH_STACK;
		snprintf(events->call_graph_text, sizeof(events->call_graph_text),
			 "call graphs by copies of the stack: the %s provider follows no frame "
			 "pointers",
			 events->session->provider->ops->name);
	}
	if (!by_itself || asked == TALLY_CALL_GRAPH_NONE)
		return;
	events->call_graph = TALLY_CALL_GRAPH_FP; /* the provider makes complete chains */
	snprintf(events->call_graph_text, sizeof(events->call_graph_text), "call graphs by %s",
		 by_itself);
}

static uint32_t stack_bytes(const struct tally_recorder_events *events)
{
	uint32_t wanted = events->session->options.stack_bytes;
	if (!wanted)
		wanted = STACK_BYTES;
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
	attr->flags &= ~TALLY_ATTR_FREQ;
	if (options->period) {
		attr->sample_period = options->period;
	} else if (each_hit && !options->rate_given) {
		attr->sample_period = 1;
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
static bool may_copy(const struct tally_recorder_events *events, const char *name,
		     const struct tally_attr *attr)
{
	bool is_of_waits = tally_is_off_cpu(attr, name) ||
			   (tally_is_waking(attr, name) && tally_recorder_off_cpu(events));
	return events->session->options.call_graph != TALLY_CALL_GRAPH_AUTO ||
	       !takes_each_hit(attr) || is_of_waits;
}

/* Returns the attribute's max_stack.  When the machine's setting is not the default, the recording
 * has it: readers recognise a full chain by it. */
static uint16_t max_stack(const struct tally_recorder_events *events, bool copies)
{
	struct tally_attr usual = { .sample_max_stack = 0 };
	uint16_t asked = events->session->options.max_stack;
	if (!tally_provider_can(events->session->provider, TALLY_PROVIDER_THIS_MACHINE))
		return asked;
	int setting = tally_sysctl_read("kernel/perf_event_max_stack");
	/* The kernel makes no longer chains.  From a copy, as many frames come as requested. */
	if (asked && (!copies || setting <= 0 || asked <= setting))
		return asked;
	if (setting <= 0 || setting > UINT16_MAX ||
	    (uint32_t)setting == tally_chain_limit(&usual))
		return 0;
	return (uint16_t)setting;
}

/* True if samples are written as the kernel made them. */
static bool keeps_stacks(const struct tally_recorder_events *events)
{
	return events->session->options.keep_stacks || events->session->options.overwrite;
}

static void set_call_graph(const struct tally_recorder_events *events, const char *name,
			   struct tally_attr *attr)
{
	if (events->call_graph == TALLY_CALL_GRAPH_NONE)
		return;
	attr->sample_type |= TALLY_SAMPLE_CALLCHAIN;
	bool copies = events->call_graph == TALLY_CALL_GRAPH_STACK && may_copy(events, name, attr);
	attr->sample_max_stack = max_stack(events, copies);
	/* the kernel makes the user's chain from it */
	if (events->call_graph == TALLY_CALL_GRAPH_LBR) {
		attr->sample_type |= TALLY_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = TALLY_BRANCH_USER | TALLY_BRANCH_CALL_STACK |
					   TALLY_BRANCH_NO_FLAGS | TALLY_BRANCH_NO_CYCLES |
					   TALLY_BRANCH_HW_INDEX;
	}
	if (events->call_graph == TALLY_CALL_GRAPH_LBR ||
	    attr->flags & TALLY_ATTR_EXCLUDE_CALLCHAIN_USER)
		return;
	if (!copies) {
		if (tally_provider_can(events->session->provider, TALLY_PROVIDER_FRAME_POINTERS) &&
		    !events->session->options.registers_user)
			tally_user_stack_ask_for_inner(TALLY_UNWIND_HOST, keeps_stacks(events),
						       attr);
		return;
	}
	attr->sample_type |= TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER;
	attr->sample_regs_user = tally_unwind_regs_mask(TALLY_UNWIND_HOST);
	attr->sample_stack_user = stack_bytes(events);
	/* The kernel's chain continues across a switch of stacks (tally_user_stack_cross). */
	if (keeps_stacks(events))
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

static bool inherits(const struct tally_recorder_events *events)
{
	return !events->session->target->all && !events->session->options.no_inherit;
}

static void make_source(struct tally_recorder_events *events, const struct tally_event *event,
			struct tally_recorder_source *source)
{
	struct tally_attr *attr = &source->attr;
	*source = (struct tally_recorder_source){
		.attr = event->attr, .event = event, .name = event->name, .cgroup_fd = -1
	};
	attr->size = sizeof(*attr);
	attr->sample_type |= ALWAYS_SAMPLED;
	if (event->kind == TALLY_EVENT_TRACEPOINT)
		attr->sample_type |= TALLY_SAMPLE_RAW;
	attr->read_format = TALLY_FORMAT_ID;
	attr->flags |= TALLY_ATTR_DISABLED;
	if (inherits(events))
		attr->flags |= TALLY_ATTR_INHERIT;
	if (tally_recorder_follows_command(events->session) &&
	    !(events->session->options.delay_s > 0) && !events->session->options.starts_off)
		attr->flags |= TALLY_ATTR_ENABLE_ON_EXEC;
	set_rate(&events->session->options, event, attr);
	set_clock(attr);
	attr->flags |= events->session->options.exclude_chain;
	set_call_graph(events, event->name, attr);
	set_extras(&events->session->options, attr);
	tally_attr_honour_period(attr);
	if (event->precise_max && event->kind != TALLY_EVENT_SOFTWARE)
		attr->flags |= TALLY_ATTR_PRECISE_IP; /* 3; the opening lowers it if necessary */

	source->written = *attr;
	/* Lost samples are read at the end; samples that contain readings must not have them. */
	if (!event->group_read)
		attr->read_format |= TALLY_FORMAT_LOST;
	bool keeps = keeps_stacks(events),
	     has_inner = tally_user_stack_has_inner(TALLY_UNWIND_HOST, attr);
	source->unwinds = attr->sample_type & TALLY_SAMPLE_STACK_USER && !has_inner && !keeps;
	source->completes = has_inner && !keeps && !events->session->options.registers_user;
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
static void join_groups(struct tally_recorder_events *events)
{
	for (size_t i = 0; i + 1 < events->source_count; i++) {
		struct tally_recorder_source *source = &events->sources[i];
		int group = source->event->group;
		bool member = i && group != TALLY_EVENT_NO_GROUP &&
			      events->sources[i - 1].event->group == group;
		if (member)
			source->attr.flags &= ~(TALLY_ATTR_DISABLED | TALLY_ATTR_ENABLE_ON_EXEC);
		if (!source->event->group_read)
			continue;
		source->attr.read_format |= TALLY_FORMAT_GROUP;
		if (events->session->options.running_time)
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

static void make_side_band(struct tally_recorder_events *events,
			   struct tally_recorder_source *source)
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
			 TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT |
			 events->session->options.side_band,
	};
	if (events->session->options.no_bpf_events)
		source->attr.flags &= ~TALLY_ATTR_BPF_EVENT;
	/* The path of a mapping may lead to another file later, or in another container.  The
	 * recorder puts the build-ids into the records; the kernel gets no such bit. */
	if (tally_provider_can(events->session->provider, TALLY_PROVIDER_LIVE_TASKS))
		source->attr.flags |= TALLY_ATTR_BUILD_ID;
	/* the kernel's code is shown as it was at the time */
	if (tally_recorder_samples_kernel(events))
		source->attr.flags |= TALLY_ATTR_TEXT_POKE;
	if (inherits(events))
		source->attr.flags |= TALLY_ATTR_INHERIT;
	/* Some readers that unwind later (perf's libunwind) find .eh_frame_hdr by mappings that are
	 * not executable. */
	if (events->call_graph == TALLY_CALL_GRAPH_STACK &&
	    (events->session->options.keep_stacks || events->session->options.overwrite))
		source->attr.flags |= TALLY_ATTR_MMAP_DATA;
	set_clock(&source->attr);
	source->written = source->attr;
}

const struct tally_recorder_source *tally_recorder_off_cpu(
	const struct tally_recorder_events *events)
{
	for (size_t i = 0; i + 1 < events->source_count; i++)
		if (events->sources[i].event &&
		    tally_is_off_cpu(&events->sources[i].attr, events->sources[i].event->name))
			return &events->sources[i];
	return NULL;
}

bool tally_recorder_samples_kernel(const struct tally_recorder_events *events)
{
	for (size_t i = 0; i + 1 < events->source_count; i++)
		if (!(events->sources[i].attr.flags & TALLY_ATTR_EXCLUDE_KERNEL))
			return true;
	return false;
}

/* Describes the call graphs when some or all events sample each hit, and so have no copies. */
static void describe_each_hit(struct tally_recorder_events *events)
{
	size_t copies = 0, count = events->source_count - 1;
	if (events->session->options.call_graph != TALLY_CALL_GRAPH_AUTO ||
	    events->call_graph != TALLY_CALL_GRAPH_STACK)
		return;
	for (size_t i = 0; i < count; i++)
		copies += !!(events->sources[i].attr.sample_type & TALLY_SAMPLE_STACK_USER) &&
			  !events->sources[i].completes;
	if (!copies)
		events->call_graph = TALLY_CALL_GRAPH_FP;
	if (copies < count)
		snprintf(events->call_graph_text, sizeof(events->call_graph_text),
			 "events that record each hit have stacks by frame pointers; "
			 "--call-graph dwarf: by copies");
}

int tally_recorder_make_sources(struct tally_recorder_events *events,
				const struct tally_event_list *list, struct tally_error *err)
{
	struct tally_arena *arena = &events->session->arena;
	choose_call_graph(events);
	events->source_count = list->count + 1;
	events->sources = tally_arena_array(arena, events->source_count, sizeof(*events->sources));
	events->recorded = tally_arena_array(arena, events->source_count,
					     sizeof(*events->recorded));
	if (!events->sources || !events->recorded) {
		events->source_count = 0;
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < list->count; i++) {
		make_source(events, &list->items[i], &events->sources[i]);
		events->unwinds |= events->sources[i].unwinds;
		events->completes |= events->sources[i].completes;
	}
	join_groups(events);
	describe_each_hit(events);
	make_side_band(events, tally_recorder_side_band(events));
	return 0;
}

/* Sets wakeups at half of the ring; if that proves too late, recorder_waits.c looks earlier.  For
 * copies in large rings the limit is lower, so that the missing part of a stack is still in the
 * task's memory (recorder_outer.c). */
void tally_recorder_set_wakeups(struct tally_recorder_events *events,
				const struct tally_recorder_ring_sizes *sizes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), sample = sizes->sample_pages * page,
		     side = sizes->side_pages * page;
	for (size_t i = 0; i < events->source_count; i++) {
		struct tally_recorder_source *source = &events->sources[i];
		source->attr.flags |= TALLY_ATTR_WATERMARK;
		size_t wakeup_bytes = side / 2;
		if (source->event)
			wakeup_bytes = sample / 2;
		if (source->unwinds && wakeup_bytes > WAKEUP_BYTES_MAX)
			wakeup_bytes = WAKEUP_BYTES_MAX;
		source->attr.wakeup_events = (uint32_t)wakeup_bytes;
		source->written.flags |= TALLY_ATTR_WATERMARK;
		source->written.wakeup_events = source->attr.wakeup_events;
		/* In small rings, one stack copy must leave room for others. */
		uint32_t most = (uint32_t)(sample / 8) & ~7u;
		if (!events->session->options.stack_bytes &&
		    source->attr.sample_stack_user > most && most >= 1024) {
			source->attr.sample_stack_user = most;
			if (source->written.sample_stack_user)
				source->written.sample_stack_user = most;
		}
	}
}

void tally_recorder_describe_sources(struct tally_recorder_events *events)
{
	for (size_t i = 0; i < events->source_count; i++) {
		struct tally_recorder_source *source = &events->sources[i];
		events->recorded[i] = (struct tally_recorded_event){
			.attr = source->written,
			.name = source->name,
			.ids = source->ids.items,
			.id_count = source->ids.count,
		};
		events->recorded[i].attr.size = tally_attr_size_needed(&source->written);
	}
}
