/* Which events the CPU's counters count at the same time, found by trial before a command runs.
 *
 * No table says how many counters are free: some count only certain events, and the NMI watchdog
 * and other users hold some.  So the events are opened on the calling thread, and the kernel
 * answers.  See counter_fit.c. */
#ifndef TALLY_COUNTING_COUNTER_FIT_H
#define TALLY_COUNTING_COUNTER_FIT_H

#include "base/arena.h"
#include "base/error.h"
#include "event/event.h"
#include "provider/provider.h"

#include <stdbool.h>
#include <stddef.h>

/* A group whose events the counters can't count at the same time. */
struct tally_unfit_group {
	size_t first, count; /* its events */
	size_t fitting;      /* how many of its first countable events fit together */
	bool is_accepted;    /* the kernel opens it, and yet never counts it */
	bool was_split; /* its events are counted separately now */
};

/* True if the provider's events can be tried, because they may have to share counters. */
bool tally_fit_can_try(const struct tally_provider_ops *provider);

/* Finds the next group at or after event `from` that doesn't fit, and describes it in `out`.  If
 * it is weak, or `splits`, takes it apart: each of its events gets no group.  Returns 1; 0 if all
 * groups fit, or -ENOMEM.  Groups in cgroups are left out. */
int tally_fit_check_group(struct tally_provider *provider, struct tally_event *events, size_t count,
			  size_t from, bool splits, struct tally_unfit_group *out);

/* Returns a line for the user about the group, in `arena`; NULL without memory.
 * `nmi_watchdog` is kernel.nmi_watchdog, negative if unknown or of another machine. */
const char *tally_fit_group_text(const struct tally_unfit_group *group,
				 const struct tally_event *events, int nmi_watchdog,
				 struct tally_arena *arena);

/* Passes: runs of one command, each of which counts some of the events all the time. */

enum { TALLY_IN_EVERY_PASS = -1 };

struct tally_count_passes {
	int *pass_of; /* by event: its pass, or TALLY_IN_EVERY_PASS; malloc'd */
	int count;    /* at least 1 */
};

/* Spreads the events over as few passes as the first fit finds, groups undivided.  Events that
 * need no counter or can't be opened are in every pass; so is the first group or event that counts
 * instructions, if the rest of each pass has room beside it.  A group that fits into no pass gets
 * its own.  Returns 0 or -ENOMEM; tally_count_passes_release() frees the result. */
int tally_count_passes_find(struct tally_provider *provider, const struct tally_event *events,
			    size_t count, struct tally_count_passes *out, struct tally_error *err);
void tally_count_passes_release(struct tally_count_passes *passes);

#endif
