/* Names that a CPU's vendor gives to its events, by libpfm4: "MEM_LOAD_RETIRED:L3_MISS",
 * "inst_retired.any:u", "skl::UOPS_ISSUED:ANY:c=1".
 *
 * libpfm4 knows thousands of names, so it is loaded only for a name that nothing else knows.  The
 * result is an ordinary attribute. libpfm4's environment variables apply: LIBPFM_FORCE_PMU=skl
 * encodes for a CPU other than this one. */
#ifndef TALLY_PROVIDER_VENDOR_EVENTS_H
#define TALLY_PROVIDER_VENDOR_EVENTS_H

#include "abi/attr.h"
#include "base/arena.h"
#include "base/error.h"

/* Looks up `text`, a name with its unit masks and modifiers.  Sets type, config, config1, config2,
 * precise_ip and the exclude flags for user, kernel and hypervisor.  Returns 0; -ENOENT if libpfm
 * does not know the name or has no events for this CPU; -ELIBACC if it is not installed; otherwise
 * -errno with a message that says what is wrong with the name. */
int tally_vendor_event(const char *text, struct tally_attr *attr, struct tally_error *err);

struct tally_vendor_name {
	const char *pmu;         /* "skl" */
	const char *name;        /* "MEM_LOAD_RETIRED:L3_MISS" */
	const char *description; /* or NULL */
};

/* Lists the events of the existing (or forced) PMUs, each with each of its unit masks, in `arena`.
 * Returns 0 or -errno: -ELIBACC if the library is not installed.  No PMU is no error. */
int tally_vendor_events(struct tally_arena *arena, struct tally_vendor_name **out, size_t *count,
			struct tally_error *err);

#endif
