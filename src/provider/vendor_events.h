/* The names that a CPU's vendor gives its events, by libpfm4: "MEM_LOAD_RETIRED:L3_MISS",
 * "inst_retired.any:u", "skl::UOPS_ISSUED:ANY:c=1".
 *
 * The library is loaded when the first name is looked up that nothing else knows, since it knows
 * thousands.  What it finds is an attribute like any other.  Its environment holds:
 * LIBPFM_FORCE_PMU=skl encodes for a CPU that this one is not.
 */
#ifndef TALLY_PROVIDER_VENDOR_EVENTS_H
#define TALLY_PROVIDER_VENDOR_EVENTS_H

#include "abi/attr.h"
#include "base/arena.h"
#include "base/error.h"

/* `text`: a name with what belongs to it, modifiers too.  Fills type, config, config1, config2,
 * precise_ip and the exclude flags for user, kernel and hypervisor.  -ENOENT: libpfm knows no such
 * name, or has no events for this CPU; -ELIBACC: it is not installed; else what is wrong with the
 * name, with a message. */
int tally_vendor_event(const char *text, struct tally_attr *attr, struct tally_error *err);

struct tally_vendor_name {
	const char *pmu;         /* "skl" */
	const char *name;        /* "MEM_LOAD_RETIRED:L3_MISS" */
	const char *description; /* or NULL */
};

/* The events of the PMUs that are there (or forced), each with each of its unit masks, in `arena`.
 * 0 or -errno: -ELIBACC where the library is not installed.  No PMU is no error. */
int tally_vendor_events(struct tally_arena *arena, struct tally_vendor_name **out, size_t *count,
			struct tally_error *err);

#endif
