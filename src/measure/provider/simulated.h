/* The simulated PMU as a provider: commands run under tally's own Valgrind tool, in which tally's
 * engine counts.
 *
 * Simulation is used only on request: it takes several times a command's own time, and its caches,
 * TLBs and predictors are models. docs/simulated.md explains the figures;
 * hosts/valgrind/vsim_plan.h is what tally and the tool share. */
#ifndef TALLY_PROVIDER_SIMULATED_H
#define TALLY_PROVIDER_SIMULATED_H

#include "provider/provider.h"

#include <stdbool.h>

struct tally_catalogue;
struct tally_event;
struct vsim_geometry;

enum { TALLY_SIMULATED_FUNCTIONS = 16, TALLY_SIMULATED_FUNCTION_NAME = 255 /* bytes */ };

struct tally_simulated_options {
	const char *cpu;     /* --sim-cpu: a preset's name or a file; NULL: like this machine */
	/* folder of launcher and tool; NULL: beside the running tally, or where it was installed */
	const char *folder;
	const char *memory;  /* folder for plans; NULL: /dev/shm, or the one for temporary files */
	/* --region: count only between the marks of tally/roi.h, and in `functions` */
	bool region;
	unsigned function_count; /* --toggle; any function implies `region` */
	const char *functions[TALLY_SIMULATED_FUNCTIONS];
};

/* Makes the provider.  `options` and its strings must outlive it.  Returns 0; -ENOENT with the
 * reason if tally was built without the tool; -EINVAL for an invalid CPU; or another -errno. */
int tally_provider_simulated_new(const struct tally_simulated_options *options,
				 struct tally_provider **out, struct tally_error *err);

/* Adds the PMU "vsim", and the generic names: with the descriptions of their simulation, or marked
 * as not simulated. */
int tally_simulated_catalogue(struct tally_catalogue *catalogue, struct tally_error *err);

/* Returns "model: loads that missed the first data cache", in the arena; NULL if the event is not
 * simulated. */
const char *tally_simulated_describe(const struct tally_attr *attr, struct tally_arena *arena);

/* Returns NULL if the simulated PMU counts the event; otherwise the reason why not, and the way out
 * in *hint (may be NULL). */
const char *tally_simulated_refuses(const struct tally_attr *attr, const char **hint);

/* Makes the event generic if a generic one exists, since ratios and verdicts look for those.
 * Restricts it to user mode. */
void tally_simulated_make_generic(struct tally_event *event);
/* Makes the event one of the PMU's own, so that readers of a recording don't take it for the
 * hardware's.  `name` becomes "vsim/NAME/" with its modifiers.  Returns 0 or -ENOMEM. */
int tally_simulated_make_own(struct tally_event *event, struct tally_arena *arena);

/* Finds the folder of launcher and tool.  Returns 0, or -ENOENT with the reason. */
int tally_simulated_find(char *out, size_t size, struct tally_error *err);

/* For advice: returns the reason why this tally can't simulate here, or "" if it can.  Static. */
const char *tally_simulated_lack(void);

#endif
