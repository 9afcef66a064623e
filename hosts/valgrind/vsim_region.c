/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A region alone.  It is a thread's: from where a function of the plan's begins until it returns (that it calls itself or
 * another of them changes nothing), and between the marks of tally/roi.h.  Outside of it events stand still, while the
 * model goes on: caches are as warm as they would be.
 *
 * The marks are known by their bytes as code is translated; functions by the first instruction of their symbol, which
 * begins a block since one comes there by a call.  That a function returns is seen at any return: the stack pointer is
 * above the one that it began with.  That holds for what a longjmp or an exception leaves, too, if a return late. */
#include "valgrind/vsim_region.h"
#include "valgrind/vsim_host.h"

#include "pub_tool_debuginfo.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "pub_tool_threadstate.h"

/* A symbol's name, or what is before a demangled one's arguments. */
static bool is_named(const char *symbol, const char *wanted)
{
	SizeT length = VG_(strlen)(wanted);
	return length && !VG_(strncmp)(symbol, wanted, length) && (!symbol[length] || symbol[length] == '(');
}

static bool is_function(const struct vsim_plan *plan, Addr address)
{
	const HChar *name;
	if (!plan->function_count || !VG_(get_fnname_if_entry)(VG_(current_DiEpoch)(), address, &name))
		return false;
	for (unsigned i = 0; i < plan->function_count; i++)
		if (is_named(name, plan->functions[i]))
			return true;
	return false;
}

enum vsim_mark vsim_region_mark(const struct vsim *sim, Addr address, unsigned length, bool begins_block)
{
	static const uint8_t mark[] = { 0x0f, 0x1f, 0x80, 'T', 'a', 'l' };
	const uint8_t *bytes = (const uint8_t *)address;
	if (!sim->plan || !sim->plan->region_only)
		return VSIM_MARK_NONE;
	if (length == sizeof(mark) + 1 && !VG_(memcmp)(bytes, mark, sizeof(mark)))
		return bytes[6] == 'B' ? VSIM_MARK_BEGIN : bytes[6] == 'E' ? VSIM_MARK_END : VSIM_MARK_NONE;
	return begins_block && is_function(sim->plan, address) ? VSIM_MARK_ENTER : VSIM_MARK_NONE;
}

bool vsim_region_sees_returns(const struct vsim *sim)
{
	return sim->plan && sim->plan->region_only && sim->plan->function_count;
}

static bool is_inside(const struct vsim_thread *thread)
{
	return thread->marks || thread->entered_sp;
}

void vsim_region_switch(struct vsim *sim, ThreadId tid)
{
	const struct vsim_thread *thread = &sim->host->threads[tid];
	if (!sim->plan->region_only)
		return;
	sim->region_sp = thread->entered_sp ? thread->entered_sp : UINT64_MAX;
	if (sim->cpu.counting != is_inside(thread))
		vsim_pmu_counting(sim, is_inside(thread));
}

VG_REGPARM(1) void vsim_region_reached(UWord mark)
{
	struct vsim *sim = vsim();
	ThreadId tid = VG_(get_running_tid)();
	struct vsim_thread *thread = &sim->host->threads[tid];
	switch (mark) {
	case VSIM_MARK_BEGIN:
		thread->marks++;
		break;
	case VSIM_MARK_END:
		thread->marks -= thread->marks != 0;
		break;
	case VSIM_MARK_ENTER:
		if (!thread->entered_sp)
			thread->entered_sp = VG_(get_SP)(tid);
		break;
	default:
		thread->entered_sp = 0;
	}
	vsim_fold(&sim->cpu);
	vsim_region_switch(sim, tid);
	vsim_resume(&sim->cpu);
}
