/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What generated code calls, and the collection of its counts.
 *
 * Counts live in three places.  Generated code adds to the running thread's shadow registers.
 * vsim_fold() adds these to the totals at the end of each turn and before the engine sees a total.
 * The model's kinds are added to the totals as they happen.
 *
 * Exact to the instruction.  Code counts a straight run as a whole, at its beginning.  When that
 * uses up what was `left` of a kind, vsim_run_alarm() takes the run out of the totals again and
 * steps through it, one instruction at a time.  So a reader of a group's values or of the clock
 * sees them as of the sampled instruction. */
#include "valgrind/vsim_run.h"

#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "pub_tool_threadstate.h"

#include <libvex_guest_amd64.h>

enum { INSTRUCTION_BIT = 1 << VSIM_INSTRUCTIONS };

/* The model's memory.  It lies below 2 GiB, so that its addresses are short in generated code.
 * Untouched pages take no memory. */
static uint8_t model_memory[VSIM_MODEL_BYTES_MAX] __attribute__((aligned(4096)));

static const uint64_t model_kinds = ~((1ull << VSIM_STATIC_KINDS) - 1);

void vsim_cpu_start(struct vsim *sim)
{
	struct vsim_cpu *cpu = &sim->cpu;
	const struct vsim_plan *plan = sim->plan;
	cpu->wanted = INSTRUCTION_BIT; /* the clock needs them */
	for (unsigned i = 0; i < plan->shared.event_count && i < TALLY_PLAN_EVENTS; i++) {
		uint64_t kinds = vsim_pmu_kinds(&plan->shared.events[i].attr);
		cpu->wanted |= kinds;
		if (plan->shared.events[i].attr.sample_period)
			cpu->sampled |= kinds;
	}
	cpu->alarmed = cpu->sampled & ~model_kinds;
	if (cpu->sampled >> VSIM_EST_CYCLES & 1)
		cpu->alarmed |= INSTRUCTION_BIT;
	vsim_model_weights(&plan->geometry, cpu->weight);
	if (cpu->wanted & model_kinds) {
		cpu->model = vsim_model_init(model_memory, &plan->geometry);
		cpu->data_recent = *vsim_model_recent_data(cpu->model);
		cpu->code_recent = *vsim_model_recent_code(cpu->model);
		cpu->conditional = vsim_model_conditionals(cpu->model);
		cpu->returns = vsim_model_returns(cpu->model);
	}
	cpu->counting = true;
	for (unsigned kind = 0; kind < VSIM_KINDS; kind++)
		cpu->left[kind] = INT64_MAX;
}

/* --- totals and shadows --------------------------------------------------- */

static struct vsim_shadow *shadow_of(void *guest)
{
	return (struct vsim_shadow *)((UChar *)guest + 2 * sizeof(VexGuestAMD64State));
}

/* Updates est-cycles as a sum over all kinds, so that a miss, which is frequent, need not do it. */
static void estimate(struct vsim_cpu *cpu)
{
	uint64_t hundredths = 0;
	for (unsigned kind = 0; kind < VSIM_EST_CYCLES; kind++)
		hundredths += cpu->totals[kind] * cpu->weight[kind];
	cpu->hundredths = hundredths;
	cpu->totals[VSIM_EST_CYCLES] = hundredths / 100;
}

static void fold(struct vsim_cpu *cpu, struct vsim_shadow *shadow)
{
	const uint64_t low = (1ull << VSIM_PACKED_SHIFT) - 1;
	for (unsigned kind = 0; kind < VSIM_STATIC_KINDS; kind++)
		if (cpu->alarmed >> kind & 1) {
			cpu->totals[kind] += (uint64_t)cpu->given[kind] -
					     (uint64_t)shadow->left[kind];
			cpu->left[kind] = cpu->given[kind] = shadow->left[kind];
		}
	cpu->totals[VSIM_INSTRUCTIONS] += shadow->packed[0] & low;
	cpu->totals[VSIM_BRANCHES] += shadow->packed[0] >> VSIM_PACKED_SHIFT;
	cpu->totals[VSIM_LOADS] += shadow->packed[1] & low;
	cpu->totals[VSIM_STORES] += shadow->packed[1] >> VSIM_PACKED_SHIFT;
	cpu->totals[VSIM_L1I_LOADS] += shadow->packed[2];
	cpu->totals[VSIM_ITLB_LOADS] += shadow->packed[2];
	shadow->packed[0] = shadow->packed[1] = shadow->packed[2] = 0;
	estimate(cpu);
}

/* Gives the running thread what is left of its alarmed kinds. */
static void give(struct vsim_cpu *cpu, struct vsim_shadow *shadow)
{
	for (unsigned kind = 0; kind < VSIM_STATIC_KINDS; kind++)
		shadow->left[kind] = cpu->given[kind] = cpu->left[kind];
}

/* The counters, which are copied at the beginning and end of a turn. */
enum { COUNTERS_BYTES = offsetof(struct vsim_shadow, run_sp) };

void vsim_fold(struct vsim_cpu *cpu)
{
	struct vsim_shadow shadow;
	ThreadId tid = VG_(get_running_tid)();
	if (tid == VG_INVALID_THREADID)
		return;
	VG_(get_shadow_regs_area)(tid, (UChar *)&shadow, 2, 0, COUNTERS_BYTES);
	fold(cpu, &shadow);
	VG_(set_shadow_regs_area)(tid, 2, 0, COUNTERS_BYTES, (UChar *)&shadow);
}

static void set_counters(struct vsim_cpu *cpu, ThreadId tid)
{
	struct vsim_shadow shadow = { .packed = { 0 } };
	give(cpu, &shadow);
	VG_(set_shadow_regs_area)(tid, 2, 0, COUNTERS_BYTES, (UChar *)&shadow);
}

/* Overwrites the shadow registers, whose content may be old: a return from a signal handler
 * restores those from the signal's delivery. */
void vsim_resume(struct vsim_cpu *cpu)
{
	vsim_pmu_arm(vsim());
	set_counters(cpu, VG_(get_running_tid)());
}

/* --- telling the PMU ------------------------------------------------------ */

struct registers { ULong ip, sp, fp; };

static struct registers set_registers(VexGuestAMD64State *guest, struct registers to)
{
	struct registers was = { guest->guest_RIP, guest->guest_RSP, guest->guest_RBP };
	guest->guest_RIP = to.ip;
	guest->guest_RSP = to.sp;
	guest->guest_RBP = to.fp;
	return was;
}

/* Takes the run, which is in the totals already, out of them and counts it again by instruction. */
static void replay(struct vsim *sim, const struct vsim_run *run)
{
	struct vsim_cpu *cpu = &sim->cpu;
	for (unsigned i = 0; i < run->count; i++)
		for (unsigned kind = 0; kind < VSIM_STATIC_KINDS; kind++) {
			cpu->totals[kind] -= run->steps[i].counts[kind];
			if (cpu->alarmed >> kind & 1)
				cpu->left[kind] += run->steps[i].counts[kind];
		}
	for (unsigned i = 0; i < run->count; i++) {
		bool alarm = false;
		for (unsigned kind = 0; kind < VSIM_STATIC_KINDS; kind++) {
			cpu->totals[kind] += run->steps[i].counts[kind];
			if (cpu->alarmed >> kind & 1)
				cpu->left[kind] -= run->steps[i].counts[kind];
			alarm |= cpu->left[kind] < 0;
		}
		if (!alarm)
			continue;
		const struct vsim_place place = { .ip = run->start + run->steps[i].offset };
		estimate(cpu);
		vsim_pmu_hit(sim, &place);
		vsim_pmu_arm(sim);
	}
	estimate(cpu);
}

VG_REGPARM(2) void vsim_run_alarm(void *guest, const struct vsim_run *run)
{
	struct vsim *sim = vsim();
	VexGuestAMD64State *state = guest;
	/* At the run's beginning all pointers are valid; the ip may not have been stored. */
	struct registers was = set_registers(
		state, (struct registers){ run->start, state->guest_RSP, state->guest_RBP });
	fold(&sim->cpu, shadow_of(guest));
	replay(sim, run);
	give(&sim->cpu, shadow_of(guest));
	set_registers(state, was);
}

/* The guest's ip is the run's beginning.  If the run was discarded, the next alarm finds what is
 * overdue. */
void vsim_run_alarm_first(void)
{
	struct vsim *sim = vsim();
	ThreadId tid = VG_(get_running_tid)();
	const struct vsim_run *run = vsim_instrument_first_run(VG_(get_IP)(tid));
	if (!run)
		return;
	vsim_fold(&sim->cpu);
	replay(sim, run);
	set_counters(&sim->cpu, tid);
}

/* --- the model ------------------------------------------------------------ */

/* Counts down the sampled kinds of the model, and overflows events whose period is over. */
static __attribute__((noinline)) void take_from_left(struct vsim *sim, void *guest,
						     const struct vsim_batch *batch, unsigned kinds,
						     const struct vsim_place *place)
{
	struct vsim_cpu *cpu = &sim->cpu;
	struct vsim_shadow *shadow = shadow_of(guest);
	bool alarm = false;
	for (; kinds; kinds &= kinds - 1) {
		unsigned kind = (unsigned)__builtin_ctz(kinds);
		cpu->left[VSIM_EST_CYCLES] -= cpu->weight[kind];
		alarm |= --cpu->left[kind] < 0;
	}
	if (!alarm && cpu->left[VSIM_EST_CYCLES] >= 0)
		return;
	struct registers was = set_registers(
		guest, (struct registers){ batch->start, shadow->run_sp, shadow->run_fp });
	fold(cpu, shadow);
	vsim_pmu_hit(sim, place);
	vsim_pmu_arm(sim);
	give(cpu, shadow);
	set_registers(guest, was);
}

/* Counts `kinds` at the run's instruction at `offset`. */
static inline void happened(struct vsim *sim, void *guest, const struct vsim_batch *batch,
			    unsigned kinds, unsigned offset, uint64_t address)
{
	for (unsigned rest = kinds; rest; rest &= rest - 1)
		sim->cpu.totals[__builtin_ctz(rest)]++;
	if (UNLIKELY(sim->cpu.sampled >> VSIM_STATIC_KINDS)) {
		const struct vsim_place place = { .ip = batch->start + offset, .address = address };
		take_from_left(sim, guest, batch, kinds, &place);
	}
}

static unsigned branch_kinds(struct vsim_cpu *cpu, const struct vsim_batch *batch, uint64_t outcome)
{
	uint64_t ip = batch->start + batch->branch_offset;
	switch (batch->flow) {
	case VSIM_FLOW_CONDITIONAL: { /* the history has been updated already */
		uint64_t index = (cpu->conditional->history & cpu->conditional->history_mask) ^
				 batch->branch;
		if (cpu->conditional->counters[index])
			return vsim_model_unsure(cpu->model, ip, outcome != 0);
		return 0;
	}
	case VSIM_FLOW_INDIRECT_JUMP: case VSIM_FLOW_INDIRECT_CALL:
		return vsim_model_indirect(cpu->model, ip, outcome);
	case VSIM_FLOW_RETURN: /* the entry was popped already */
		if (cpu->returns->entry[cpu->returns->top] == outcome)
			return 0;
		return 1u << VSIM_RETURN_MISSES;
	}
	return 0;
}

/* True if the access changes nothing, so that the run's call had another reason.  Asking the model
 * would cost more than this comparison. */
static inline bool passes(const struct vsim_recent *recent, uint64_t first, uint64_t last)
{
	return recent->recent[(first >> recent->line_shift) & recent->mask] ==
	       last >> recent->line_shift;
}

static inline void fetch_lines(struct vsim *sim, void *guest, const struct vsim_batch *batch)
{
	unsigned counted = 0;
	if (batch->count_lines)
		counted = 1u << VSIM_L1I_LOADS | 1u << VSIM_ITLB_LOADS;
	const struct vsim_recent *recent = &sim->cpu.code_recent;
	for (unsigned i = 0; i < batch->lines; i++) {
		uint64_t address = batch->line_address + ((uint64_t)i << recent->line_shift);
		unsigned kinds = counted;
		if (!passes(recent, address, address))
			kinds |= vsim_model_fetch(sim->cpu.model, address);
		if (UNLIKELY(kinds != 0))
			happened(sim, guest, batch, kinds, batch->accesses[i].offset, address);
	}
}

VG_REGPARM(3) void vsim_run_batch(void *guest, const struct vsim_batch *batch, uint64_t outcome)
{
	struct vsim *sim = batch->sim;
	struct vsim_cpu *cpu = &sim->cpu;
	const struct vsim_shadow *shadow = shadow_of(guest);
	const struct vsim_recent *recent = &cpu->data_recent;
	unsigned kinds;
	fetch_lines(sim, guest, batch);
	for (unsigned i = batch->lines; i < batch->count; i++) {
		const struct vsim_access *access = &batch->accesses[i];
		uint64_t address = shadow->address[access->slot];
		if (UNLIKELY(address == VSIM_NO_ADDRESS))
			continue;
		address += (uint64_t)access->delta;
		if (access->size <= recent->size_max &&
		    passes(recent, address, address + access->size - 1))
			continue;
		if ((kinds = vsim_model_data(cpu->model, address, access->size, access->store)) !=
		    0)
			happened(sim, guest, batch, kinds, access->offset, address);
	}
	if (batch->flow != VSIM_FLOW_ON && (kinds = branch_kinds(cpu, batch, outcome)) != 0)
		happened(sim, guest, batch, kinds, batch->branch_offset,
			 batch->flow == VSIM_FLOW_CONDITIONAL ? 0 : outcome);
}
