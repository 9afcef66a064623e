/* From parsed events to the attributes that are opened, and to those that are written. */
#include "session/recorder_state.h"

#include "abi/chain_walk.h"
#include "machine/sysctl.h"
#include "perfdata/off_cpu_event.h"
#include "session/program.h"
#include "task/user_stack.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STACK_BYTES = 16 * 1024, MAX_STACK_BYTES = 63 * 1024 };

static const uint64_t ALWAYS_SAMPLED = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
				       TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD;

/* ---- which call graph ---------------------------------------------------------------------------------- */

static bool has_off_cpu(const struct tally_event_list *events)
{
	for (size_t i = 0; i < events->count; i++)
		if (tally_is_off_cpu(&events->items[i].attr, events->items[i].name))
			return true;
	return false;
}

static void choose_call_graph(struct tally_recorder *recorder, const struct tally_event_list *events)
{
	struct tally_program_probe probe;
	const struct tally_target *target = recorder->target;
	const char *by_itself = recorder->provider->ops->call_graph;
	recorder->call_graph = recorder->options.call_graph;
	if (by_itself && recorder->call_graph != TALLY_CALL_GRAPH_NONE) {
		recorder->call_graph = TALLY_CALL_GRAPH_FP; /* as it is asked for: chains, without copies */
		snprintf(recorder->call_graph_text, sizeof(recorder->call_graph_text), "call graphs by %s", by_itself);
	}
	if (recorder->call_graph != TALLY_CALL_GRAPH_AUTO)
		return;
	recorder->call_graph = TALLY_CALL_GRAPH_FP;
	if (tally_record_follows_command(recorder))
		tally_program_probe_command(target->command[0], &probe);
	else if (target->tids.count && !target->all)
		tally_program_probe_pid(target->tids.items[0], &probe);
	else {
		snprintf(recorder->call_graph_text, sizeof(recorder->call_graph_text),
			 "call graphs by frame pointers (the whole system); --call-graph dwarf unwinds programs built "
			 "without them");
		return;
	}
	/* Tasks wait in system calls, which the C library makes: without frame pointers it hides who called it. */
	if (has_off_cpu(events)) {
		recorder->call_graph = TALLY_CALL_GRAPH_STACK;
		snprintf(recorder->call_graph_text, sizeof(recorder->call_graph_text),
			 "call graphs by unwinding stack copies: the C library, where tasks wait, keeps no frame pointers");
		return;
	}
	/* Nearly all must keep them: one function without hides its caller.  Where nothing is known, copies do for
	 * both, since what has no rules is unwound by frame pointers. */
	bool keeps = probe.functions && probe.with_frame_pointer * 10 >= probe.functions * 9;
	recorder->call_graph = keeps ? TALLY_CALL_GRAPH_FP : TALLY_CALL_GRAPH_STACK;
	snprintf(recorder->call_graph_text, sizeof(recorder->call_graph_text), "call graphs by %s: %s %s",
		 keeps ? "frame pointers" : "unwinding stack copies", probe.name,
		 keeps		   ? "keeps frame pointers" :
		 probe.functions ? "is built without frame pointers" :
				   "does not tell whether it keeps frame pointers");
}

static void describe_call_graph(struct tally_recorder *recorder)
{
	static const char *const texts[] = { "", "", "call graphs by frame pointers",
					     "call graphs by unwinding stack copies",
					     "call graphs by the CPU's branch records" };
	if (!recorder->call_graph_text[0])
		snprintf(recorder->call_graph_text, sizeof(recorder->call_graph_text), "%s",
			 texts[recorder->call_graph]);
}

static uint32_t stack_bytes(const struct tally_recorder *recorder)
{
	uint32_t wanted = recorder->options.stack_bytes ? recorder->options.stack_bytes : STACK_BYTES;
	if (wanted > MAX_STACK_BYTES)
		wanted = MAX_STACK_BYTES;
	return wanted & ~7u; /* the kernel takes multiples of 8 */
}

/* ---- attributes ---------------------------------------------------------------------------------------- */

static void set_rate(const struct tally_record_options *options, const struct tally_event *event,
		     struct tally_attr *attr)
{
	bool each_hit = event->kind == TALLY_EVENT_TRACEPOINT || event->kind == TALLY_EVENT_BREAKPOINT;
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

/* Where the machine's setting isn't the usual one the recording says so: who reads it knows a full chain by that. */
static uint16_t max_stack(const struct tally_recorder *recorder)
{
	struct tally_attr usual = { .sample_max_stack = 0 };
	if (recorder->options.max_stack || recorder->provider != tally_provider_kernel())
		return recorder->options.max_stack;
	int setting = tally_sysctl_read("kernel/perf_event_max_stack");
	return setting > 0 && setting <= UINT16_MAX && (uint32_t)setting != tally_chain_limit(&usual) ? (uint16_t)setting : 0;
}

static void set_call_graph(const struct tally_recorder *recorder, const char *name, struct tally_attr *attr)
{
	if (recorder->call_graph == TALLY_CALL_GRAPH_NONE)
		return;
	attr->sample_type |= TALLY_SAMPLE_CALLCHAIN;
	attr->sample_max_stack = max_stack(recorder);
	if (recorder->call_graph == TALLY_CALL_GRAPH_LBR) { /* the kernel makes the user's chain of it */
		attr->sample_type |= TALLY_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = TALLY_BRANCH_USER | TALLY_BRANCH_CALL_STACK | TALLY_BRANCH_NO_FLAGS |
					   TALLY_BRANCH_NO_CYCLES | TALLY_BRANCH_HW_INDEX;
	}
	if (recorder->call_graph == TALLY_CALL_GRAPH_LBR || attr->flags & TALLY_ATTR_EXCLUDE_CALLCHAIN_USER)
		return;
	/* Hits come in bursts: with a copy each, a full ring loses most of them.  Only who asks gets copies there: for waits,
	 * too, of which a CPU has no more than it has switches. */
	bool is_burst = recorder->options.call_graph == TALLY_CALL_GRAPH_AUTO && takes_each_hit(attr) &&
			!tally_is_off_cpu(attr, name);
	if (recorder->call_graph == TALLY_CALL_GRAPH_FP || is_burst) {
		bool may_add = recorder->provider == tally_provider_kernel() && !recorder->options.registers_user;
		attr->sample_regs_user = may_add ? tally_unwind_return_mask(TALLY_UNWIND_HOST) : 0;
		attr->sample_type |= attr->sample_regs_user ? TALLY_SAMPLE_REGS_USER : 0;
		return;
	}
	attr->sample_type |= TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER;
	attr->sample_regs_user = tally_unwind_regs_mask(TALLY_UNWIND_HOST);
	attr->sample_stack_user = stack_bytes(recorder);
	attr->flags |= TALLY_ATTR_EXCLUDE_CALLCHAIN_USER;
}

static void set_extras(const struct tally_record_options *options, struct tally_attr *attr)
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
		attr->flags = (attr->flags & ~(TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL)) | options->exclude;
}

static bool inherits(const struct tally_recorder *recorder)
{
	return !recorder->target->all && !recorder->options.no_inherit;
}

static void make_source(struct tally_recorder *recorder, const struct tally_event *event,
			struct tally_record_source *source)
{
	struct tally_attr *attr = &source->attr;
	*source = (struct tally_record_source){ .attr = event->attr, .event = event, .name = event->name, .cgroup_fd = -1 };
	attr->size = sizeof(*attr);
	attr->sample_type |= ALWAYS_SAMPLED | (event->kind == TALLY_EVENT_TRACEPOINT ? TALLY_SAMPLE_RAW : 0);
	attr->read_format = TALLY_FORMAT_ID;
	attr->flags |= TALLY_ATTR_DISABLED;
	if (inherits(recorder))
		attr->flags |= TALLY_ATTR_INHERIT;
	if (tally_record_follows_command(recorder) && !(recorder->options.delay_s > 0) && !recorder->options.starts_off)
		attr->flags |= TALLY_ATTR_ENABLE_ON_EXEC;
	set_rate(&recorder->options, event, attr);
	set_clock(attr);
	attr->flags |= recorder->options.exclude_chain;
	set_call_graph(recorder, event->name, attr);
	set_extras(&recorder->options, attr);
	tally_attr_honour_period(attr);
	if (event->precise_max && event->kind != TALLY_EVENT_SOFTWARE)
		attr->flags |= TALLY_ATTR_PRECISE_IP; /* 3; record_open.c goes down from there */

	source->written = *attr;
	/* Read at the end; samples that carry readings are not to have it among them. */
	if (!event->group_read)
		attr->read_format |= TALLY_FORMAT_LOST;
	bool keeps = recorder->options.keep_stacks || recorder->options.overwrite;
	source->unwinds = attr->sample_type & TALLY_SAMPLE_STACK_USER && !keeps;
	source->completes = tally_user_stack_has_leaf_caller(TALLY_UNWIND_HOST, attr) && !keeps &&
			    !recorder->options.registers_user;
	if (source->unwinds || source->completes) {
		source->written.sample_type &= ~(TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER);
		source->written.sample_regs_user = 0;
		source->written.sample_stack_user = 0;
		if (source->unwinds) /* the user's part is no longer the kernel's */
			source->written.sample_max_stack = UINT16_MAX;
		source->written.flags &= ~TALLY_ATTR_EXCLUDE_CALLCHAIN_USER;
	}
}

/* The leader alone is switched on and off; with :S it alone samples, and reads its members. */
static void join_groups(struct tally_recorder *recorder)
{
	for (size_t i = 0; i + 1 < recorder->source_count; i++) {
		struct tally_record_source *source = &recorder->sources[i];
		int group = source->event->group;
		bool member = i && group != TALLY_EVENT_NO_GROUP && recorder->sources[i - 1].event->group == group;
		if (member)
			source->attr.flags &= ~(TALLY_ATTR_DISABLED | TALLY_ATTR_ENABLE_ON_EXEC);
		if (!source->event->group_read)
			continue;
		source->attr.read_format |= TALLY_FORMAT_GROUP;
		if (recorder->options.running_time)
			source->attr.read_format |= TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
		source->attr.flags &= ~TALLY_ATTR_INHERIT; /* the kernel has no group reads of inherited events */
		source->attr.sample_type |= TALLY_SAMPLE_READ;
		if (member) {
			source->attr.sample_period = 0;
			source->attr.flags &= ~TALLY_ATTR_FREQ;
		}
		source->written.read_format = source->attr.read_format;
		source->written.sample_type |= TALLY_SAMPLE_READ;
		source->written.sample_period = source->attr.sample_period;
		source->written.flags = (source->written.flags & ~(TALLY_ATTR_FREQ | TALLY_ATTR_INHERIT)) |
					(source->attr.flags & TALLY_ATTR_FREQ);
	}
}

static void make_side_band(struct tally_recorder *recorder, struct tally_record_source *source)
{
	*source = (struct tally_record_source){ .name = "dummy:HG", .cgroup_fd = -1 };
	source->attr = (struct tally_attr){
		.type = TALLY_TYPE_SOFTWARE,
		.size = sizeof(source->attr),
		.config = TALLY_SW_DUMMY,
		.sample_period = 1,
		/* The trailer's fields are those of the samples': perf wants one layout for all. */
		.sample_type = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU,
		.read_format = TALLY_FORMAT_ID,
		.flags = TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_COMM | TALLY_ATTR_COMM_EXEC |
			 TALLY_ATTR_TASK | TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT |
			 recorder->options.side_band,
	};
	if (recorder->options.no_bpf_events)
		source->attr.flags &= ~TALLY_ATTR_BPF_EVENT;
	if (tally_record_samples_kernel(recorder)) /* whose code is shown as it was then */
		source->attr.flags |= TALLY_ATTR_TEXT_POKE;
	if (inherits(recorder))
		source->attr.flags |= TALLY_ATTR_INHERIT;
	/* Who unwinds later finds .eh_frame_hdr through the maps that are not executable (perf's libunwind). */
	if (recorder->call_graph == TALLY_CALL_GRAPH_STACK &&
	    (recorder->options.keep_stacks || recorder->options.overwrite))
		source->attr.flags |= TALLY_ATTR_MMAP_DATA;
	set_clock(&source->attr);
	source->written = source->attr;
}

const struct tally_record_source *tally_record_off_cpu(const struct tally_recorder *recorder)
{
	for (size_t i = 0; i + 1 < recorder->source_count; i++)
		if (recorder->sources[i].event && tally_is_off_cpu(&recorder->sources[i].attr, recorder->sources[i].event->name))
			return &recorder->sources[i];
	return NULL;
}

/* Where copies were chosen but some or all events take each hit. */
static void describe_each_hit(struct tally_recorder *recorder)
{
	size_t copies = 0, events = recorder->source_count - 1;
	if (recorder->options.call_graph != TALLY_CALL_GRAPH_AUTO || recorder->call_graph != TALLY_CALL_GRAPH_STACK)
		return;
	for (size_t i = 0; i < events; i++)
		copies += !!(recorder->sources[i].attr.sample_type & TALLY_SAMPLE_STACK_USER);
	size_t used = strlen(recorder->call_graph_text), room = sizeof(recorder->call_graph_text);
	if (!copies) {
		char chosen[sizeof(recorder->call_graph_text)];
		memcpy(chosen, recorder->call_graph_text, sizeof(chosen));
		const char *colon = strchr(chosen, ':'); /* what the program is like */
		recorder->call_graph = TALLY_CALL_GRAPH_FP;
		snprintf(recorder->call_graph_text, room, "call graphs by frame pointers, for each hit is taken;%s: "
			 "--call-graph dwarf shows its callers", colon ? colon + 1 : "");
	} else if (copies < events) {
		snprintf(recorder->call_graph_text + used, room - used, "; by frame pointers where each hit is taken");
	}
}

int tally_record_make_sources(struct tally_recorder *recorder, const struct tally_event_list *events,
			      struct tally_error *err)
{
	choose_call_graph(recorder, events);
	describe_call_graph(recorder);
	recorder->source_count = events->count + 1;
	recorder->sources = tally_arena_array(&recorder->arena, recorder->source_count, sizeof(*recorder->sources));
	recorder->recorded =
		tally_arena_array(&recorder->arena, recorder->source_count, sizeof(*recorder->recorded));
	if (!recorder->sources || !recorder->recorded) {
		recorder->source_count = 0;
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < events->count; i++)
		make_source(recorder, &events->items[i], &recorder->sources[i]);
	for (size_t i = 0; i < events->count; i++) {
		recorder->unwinds |= recorder->sources[i].unwinds;
		recorder->completes |= recorder->sources[i].completes;
	}
	join_groups(recorder);
	describe_each_hit(recorder);
	make_side_band(recorder, tally_record_side_band(recorder));
	return 0;
}
