/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The running thread's call chain, registers and stack for a sample.
 *
 * Valgrind's core unwinds call chains with the program's own call-frame information.  They begin at
 * the straight run that holds the sample: see struct vsim_place. */
#include "valgrind/vsim_host.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "pub_tool_stacktrace.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_vki.h"

#include <libvex_guest_amd64.h>

enum { ENTRY_SIZE = 64 };

/* True if `ip` is in the first bytes of _start, or of the dynamic linker's: it has no caller. */
static bool is_entry(const struct vsim_host *host, Addr ip)
{
	for (unsigned i = 0; i < host->entry_count; i++)
		if (ip - host->entries[i] < ENTRY_SIZE)
			return true;
	return false;
}

/* Converts addresses: the core gives the last byte of each call, perf_event the return address. */
static unsigned keep(const struct vsim_host *host, const Addr *ips, unsigned count,
		     uint64_t *addresses)
{
	unsigned kept = 1;
	if (is_entry(host, addresses[0]))
		return 1;
	for (; kept < count; kept++) {
		if (!VG_(am_is_valid_for_client)(ips[kept], 1, VKI_PROT_READ))
			break;
		addresses[kept] = ips[kept] + 1;
		if (is_entry(host, ips[kept]))
			return kept + 1;
	}
	return kept;
}

unsigned vsim_callchain(void *host, const struct tally_engine_regs *regs, bool user,
			uint64_t *addresses, unsigned max)
{
	const struct vsim *sim = host;
	const struct vsim_place *place = regs->host;
	ThreadId tid = VG_(get_running_tid)();
	Addr ips[VSIM_STACK_MAX];
	if (!user || !max)
		return 0;
	addresses[0] = regs->ip;
	if (!place || max == 1)
		return 1;
	max = max < VSIM_STACK_MAX ? max : VSIM_STACK_MAX;
	unsigned count = VG_(get_StackTrace)(tid, ips, max, NULL, NULL, 0);
	return keep(sim->host, ips, count, addresses);
}

/* --- registers and stack -------------------------------------------------- */

static uint64_t guest_word(PtrdiffT offset)
{
	uint64_t word = 0;
	VG_(get_shadow_regs_area)(VG_(get_running_tid)(), (UChar *)&word, 0, offset, sizeof(word));
	return word;
}

static uint64_t flags_of_guest(void)
{
	VexGuestAMD64State state;
	VG_(get_shadow_regs_area)(VG_(get_running_tid)(), (UChar *)&state, 0, 0, sizeof(state));
	return LibVEX_GuestAMD64_get_rflags(&state);
}

/* Registers are numbered as in asm/perf_regs.h. */
uint64_t vsim_user_register(void *host, const struct tally_engine_regs *regs, unsigned number,
			    uint64_t *abi)
{
#define AT(name) offsetof(VexGuestAMD64State, guest_##name)
	static const uint16_t offsets[24] = {
		AT(RAX), AT(RBX), AT(RCX), AT(RDX), AT(RSI), AT(RDI), AT(RBP), 0,
		0,       0,       0,       0,       0,       0,       0,       0,
		AT(R8),  AT(R9),  AT(R10), AT(R11), AT(R12), AT(R13), AT(R14), AT(R15),
	};
#undef AT
	enum { SP = 7, IP = 8, FLAGS = 9, CS = 10, SS = 11, USER_CS = 0x33, USER_SS = 0x2b };
	(void)host;
	*abi = 2;
	switch (number) {
	case SP: return regs->sp;
	case IP: return regs->ip;
	case FLAGS: return flags_of_guest();
	case CS: return USER_CS;
	case SS: return USER_SS;
	default: return number < 24 && offsets[number] ? guest_word(offsets[number]) : 0;
	}
}

uint64_t vsim_user_stack_pointer(void *host, const struct tally_engine_regs *regs)
{
	(void)host;
	return regs->sp;
}

size_t vsim_user_stack(void *host, const struct tally_engine_regs *regs, size_t offset, void *to,
		       size_t size)
{
	(void)host;
	Addr from = regs->sp + offset;
	size_t readable = 0;
	while (readable < size && VG_(am_is_valid_for_client)(from + readable, 1, VKI_PROT_READ)) {
		size_t page = TALLY_PLAN_PAGE - (from + readable) % TALLY_PLAN_PAGE,
		       left = size - readable;
		readable += page < left ? page : left;
	}
	VG_(memcpy)(to, (const void *)from, readable);
	return readable;
}
