/* The simulated PMU as a provider: commands run under tally's own Valgrind tool, where tally's
 * engine counts.
 *
 * Only what was asked for by name is ever simulated: it takes several times a command's own time,
 * and its caches, TLBs and predictors are a model's.  docs/simulated.md tells what the figures
 * mean; hosts/valgrind/vsim_plan.h what tally and the tool share.
 */
#ifndef TALLY_PROVIDER_SIMULATED_H
#define TALLY_PROVIDER_SIMULATED_H

#include "provider/provider.h"

#include <stdbool.h>

struct tally_catalogue;
struct tally_event;
struct vsim_geometry;

enum { TALLY_SIMULATED_FUNCTIONS = 16, TALLY_SIMULATED_FUNCTION_NAME = 255 /* bytes */ };

struct tally_simulated_options {
	const char *cpu;     /* --sim-cpu: a preset's name or a file; NULL: as this machine */
	/* where launcher and tool are; NULL: beside the running tally, or where it was installed */
	const char *folder;
	const char *memory;  /* where plans are put; NULL: /dev/shm, or where temporary files go */
	/* --region: only between the marks of tally/roi.h, and in `functions` */
	bool region;
	unsigned function_count; /* --toggle; with any, `region` is meant too */
	const char *functions[TALLY_SIMULATED_FUNCTIONS];
};

/* `options` and its strings outlive the provider.  -ENOENT with the reason where tally was built
 * without the tool, -EINVAL for a CPU that can't be understood. */
int tally_provider_simulated_new(const struct tally_simulated_options *options,
				 struct tally_provider **out, struct tally_error *err);

/* The PMU "vsim", and the generic names: described as what they are here, with those marked that
 * are not simulated. */
int tally_simulated_catalogue(struct tally_catalogue *catalogue, struct tally_error *err);

/* "model: loads that missed the first data cache", in the arena; NULL for what is not simulated. */
const char *tally_simulated_describe(const struct tally_attr *attr, struct tally_arena *arena);

/* NULL where the simulated PMU counts the event; else why not, and the way out (may be NULL). */
const char *tally_simulated_refuses(const struct tally_attr *attr, const char **hint);

/* Generic where there is such an event: ratios and the reading of the counts know it by that. User
 * mode alone. */
void tally_simulated_make_generic(struct tally_event *event);
/* As the PMU's own, so that no reader of a recording takes it for the hardware's; `name` becomes
 * "vsim/NAME/" with its modifiers. 0 or -ENOMEM. */
int tally_simulated_make_own(struct tally_event *event, struct tally_arena *arena);

/* Where launcher and tool are: `out` gets the folder. -ENOENT with the reason. */
int tally_simulated_find(char *out, size_t size, struct tally_error *err);

/* For advice: why this tally can't simulate here, "" where it can.  Static. */
const char *tally_simulated_lack(void);

#endif
