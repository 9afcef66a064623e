/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Counts only inside a region.  A region belongs to a thread.  It lasts from the beginning of one
 * of the plan's functions until that returns; calls of the same or another such function inside it
 * change nothing.  It also lasts from the begin mark to the end mark of tally/roi.h.  Outside,
 * events stand still but the model runs on, so that the caches are as warm as in a full run.
 *
 * Marks are recognized by their bytes when code is translated.  Functions are recognized by the
 * first instruction of their symbol; it begins a block, since it is reached by a call.  A name
 * matches the symbol, mangled or not, with or without the suffix of a compiler's copy
 * (.constprop.0), the arguments, the return type and the last template arguments.
 *
 * A function has returned when, at any return or indirect jump, the stack pointer is above its
 * value at the function's beginning.  longjmp and exceptions are covered, since both set the stack
 * pointer and end in a return or an indirect jump.  A change to another stack (coroutines, a signal
 * handler on a stack that lies higher) is mistaken for a return. */
#include "valgrind/vsim_host.h"
#include "valgrind/vsim_run.h"

#include "pub_tool_debuginfo.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "pub_tool_threadstate.h"

/* It is in the core's library, but in none of its public headers. */
extern Bool VG_(get_fnname_raw)(DiEpoch epoch, Addr address, const HChar **name);

/* --- names ---------------------------------------------------------------- */

/* If `text` has '(' or '<' at `at`, returns the position behind the matching bracket. */
static SizeT behind_bracket(const char *text, SizeT at)
{
	unsigned depth = 0;
	for (; text[at]; at++) {
		depth += text[at] == '(' || text[at] == '<';
		if ((text[at] == ')' || text[at] == '>') && !--depth)
			return at + 1;
	}
	return at;
}

/* Returns the end of the name at `operator<`, `operator()`, `operator long`.  Brackets and blanks
 * in it do not end it. */
static SizeT behind_operator(const char *text, SizeT at)
{
	at += sizeof("operator") - 1;
	if (text[at] == '(' && text[at + 1] == ')')
		return at + 2;
	while (text[at] && text[at] != '(')
		at++;
	return at;
}

static bool is_operator(const char *text, SizeT at)
{
	static const char word[] = "operator";
	char before = at ? text[at - 1] : ' ', behind;
	if (VG_(strncmp)(text + at, word, sizeof(word) - 1) || (before != ' ' && before != ':'))
		return false;
	behind = text[at + sizeof(word) - 1];
	return behind != '_' && !(behind >= '0' && behind <= '9') &&
	       !(behind >= 'a' && behind <= 'z') && !(behind >= 'A' && behind <= 'Z');
}

/* Finds the name in a demangled symbol such as "long ns::work<long>(long) [clone .constprop.0]":
 * [*from, return value).  It ends where the arguments begin.  The last blank before that and
 * outside of brackets ends the return type. */
static SizeT name_of(const char *text, SizeT *from)
{
	static const char anonymous[] = "(anonymous namespace)";
	SizeT at = 0;
	*from = 0;
	while (text[at]) {
		if (is_operator(text, at))
			return behind_operator(text, at);
		if (text[at] == '<' || !VG_(strncmp)(text + at, anonymous, sizeof(anonymous) - 1)) {
			at = behind_bracket(text, at);
			continue;
		}
		if (text[at] == '(' || (text[at] == ' ' && text[at + 1] == '['))
			return at;
		if (text[at] == ' ')
			*from = at + 1;
		at++;
	}
	return at;
}

/* True if the name, which may end in template arguments, is `wanted` with or without the last of
 * them. */
static bool is_name(const char *name, SizeT length, const char *wanted)
{
	SizeT asked = VG_(strlen)(wanted);
	if (asked > length || VG_(strncmp)(name, wanted, asked))
		return false;
	return asked == length || (name[asked] == '<' && behind_bracket(name, asked) >= length);
}

/* Returns the length without the suffix that compilers append to a function's copy.  ".cold" is not
 * such a suffix: code jumps to that part and does not call it. */
static SizeT without_suffix(const char *symbol)
{
	static const char *const suffixes[] = { ".constprop.", ".isra.", ".part.", ".lto_priv." };
	SizeT length = VG_(strlen)(symbol);
	if (VG_(strstr)(symbol, ".cold"))
		return length;
	for (unsigned i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const char *suffix = VG_(strstr)(symbol, suffixes[i]);
		if (suffix && suffix > symbol && (SizeT)(suffix - symbol) < length)
			length = (SizeT)(suffix - symbol);
	}
	return length;
}

static bool is_symbol(const char *symbol, const char *wanted)
{
	SizeT asked = VG_(strlen)(wanted);
	return !VG_(strncmp)(symbol, wanted, asked) &&
	       (!symbol[asked] || asked == without_suffix(symbol));
}

static bool is_whole(const char *text, const char *wanted)
{
	SizeT asked = VG_(strlen)(wanted);
	return !VG_(strncmp)(text, wanted, asked) &&
	       (!text[asked] || !VG_(strncmp)(text + asked, " [clone", 7));
}

/* Compares a demangled symbol's name, with and without return type and arguments. */
static bool is_demangled(const char *text, const char *wanted)
{
	SizeT from, end = name_of(text, &from), asked = VG_(strlen)(wanted);
	if (VG_(strstr)(text, ".cold"))
		return false;
	return is_name(text + from, end - from, wanted) || is_whole(text + from, wanted) ||
	       is_whole(text, wanted) || (asked == end && !VG_(strncmp)(text, wanted, asked));
}

/* Returns the plan's functions that begin at `address`: a bit for each. */
static uint32_t functions_at(const struct vsim_plan *plan, Addr address)
{
	const HChar *name;
	uint32_t found = 0;
	if (!plan->function_count ||
	    !VG_(get_fnname_if_entry)(VG_(current_DiEpoch)(), address, &name))
		return 0;
	for (unsigned i = 0; i < plan->function_count; i++)
		if (plan->functions[i][0] && is_demangled(name, plan->functions[i]))
			found |= 1u << i;
	if (!VG_(get_fnname_raw)(VG_(current_DiEpoch)(), address, &name))
		return found;
	for (unsigned i = 0; i < plan->function_count; i++)
		if (plan->functions[i][0] && is_symbol(name, plan->functions[i]))
			found |= 1u << i;
	return found;
}

static void note_began(struct vsim_plan *plan, uint32_t regions)
{
	if (regions & ~__atomic_load_n(&plan->regions, __ATOMIC_RELAXED))
		__atomic_fetch_or(&plan->regions, regions, __ATOMIC_SEQ_CST);
}

/* --- marks ---------------------------------------------------------------- */

enum vsim_mark vsim_region_mark(const struct vsim *sim, Addr address, unsigned length,
				bool begins_block)
{
	static const uint8_t mark[] = { 0x0f, 0x1f, 0x80, 'T', 'a', 'l' };
	const uint8_t *bytes = (const uint8_t *)address;
	if (!sim->plan || !sim->plan->region_only)
		return VSIM_MARK_NONE;
	if (length == sizeof(mark) + 1 && !VG_(memcmp)(bytes, mark, sizeof(mark))) {
		if (bytes[6] == 'B')
			return VSIM_MARK_BEGIN;
		if (bytes[6] == 'E')
			return VSIM_MARK_END;
		return VSIM_MARK_NONE;
	}
	uint32_t functions = begins_block ? functions_at(sim->plan, address) : 0;
	/* code is translated just before it runs for the first time */
	note_began(sim->plan, functions);
	if (functions)
		return VSIM_MARK_ENTER;
	return VSIM_MARK_NONE;
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
		note_began(sim->plan, VSIM_REGION_MARKED);
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
