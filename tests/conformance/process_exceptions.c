/* The clauses that the surface "process" can't keep, with the reasons: a closed list.  A clause of
 * this list that passes fails the suite, so that the list stays true. */
#include "surface.h"

#include <stddef.h>
#include <string.h>

#define LATE_FAULTS "faults are told at the thread's next call: where they happened is not known"
#define LATE_SIGNALS "faults are told at the thread's next call: standard signals become one"
#define NO_SWITCHES "only the kernel sees when threads are switched"
#define OWN_RINGS "each thread writes only to rings of its own events"

const char *surface_process_exception(const char *clause)
{
	static const struct {
		const char *clause, *reason;
	} exceptions[] = {
		{ "A1.passed_over_socket", "an event closes with the last process that has it open" },
		{ "C2.ip", LATE_FAULTS },
		{ "C2.addr", LATE_FAULTS },
		{ "C2.regs_user", LATE_FAULTS },
		{ "C2.regs_intr", LATE_FAULTS },
		{ "C2.stack_user", LATE_FAULTS },
		{ "C2.stack_user_is_cut_to_fit", LATE_FAULTS },
		{ "C2.data_page_size", LATE_FAULTS },
		{ "C2.code_page_size", LATE_FAULTS },
		{ "D2.records_wrap", LATE_FAULTS },
		{ "C5.sigtrap", LATE_SIGNALS },
		{ "C5.sigtrap_by_period", LATE_SIGNALS },
		{ "C2.cgroup", "the engine in a program knows no control groups" },
		{ "C4.mmap_build_id", "MMAP records of a program have no build-ids" },
		{ "C2.trailer_of_switch", NO_SWITCHES },
		{ "C4.switch", NO_SWITCHES },
		{ "C4.switch_out_preempt", NO_SWITCHES },
		{ "D5.offset", NO_SWITCHES },
		{ "C2.inherited_ids", OWN_RINGS },
		{ "C2.trailer_of_read", OWN_RINGS },
		{ "C4.read", OWN_RINGS },
		{ "D3.set_output_tasks_of_one_cpu", OWN_RINGS },
		{ "D3.heirs_write_to_the_parents_ring", OWN_RINGS },
	};
	for (unsigned i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++)
		if (!strcmp(exceptions[i].clause, clause))
			return exceptions[i].reason;
	return NULL;
}
