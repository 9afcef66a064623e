/* Shared by the simulated provider's files, and not for others. */
#ifndef TALLY_PROVIDER_INTERNAL_H
#define TALLY_PROVIDER_INTERNAL_H

#include "provider/planned.h"
#include "provider/simulated.h"
#include "valgrind/vsim_plan.h"

#include <stdbool.h>

struct simulated {
	struct planned planned; /* first member */
	struct tally_simulated_options options;
	struct vsim_geometry geometry;
	char machine[VSIM_GEOMETRY_TEXT + 32], caches[256];
	char folder[4096];
	/* the last command to execute; malloc'd, as are the strings in `words` */
	char **argv;
	char *words;
};

static inline struct simulated *simulated_of(struct tally_provider *provider)
{
	return (struct simulated *)provider;
}

/* Returns the plan, or NULL if there is none. */
static inline struct vsim_plan *simulated_plan_of(const struct simulated *simulated)
{
	return (struct vsim_plan *)simulated->planned.file.shared;
}

/* simulated_geometry.c: finds the CPU named `cpu`; NULL: this machine's, from sysfs at `root`
 * (NULL: the usual place).  Returns 0 or -errno. */
int simulated_geometry(const char *cpu, const char *root, struct vsim_geometry *geometry,
		       struct tally_error *err);
/* Finds this machine's geometry.  Returns how many of its caches are as sysfs describes them, or
 * -ENOMEM. */
int simulated_geometry_here(const char *root, struct vsim_geometry *geometry);
/* Write all of it in one line; and a short form, "skylake: l1d 32K 8-way, …". */
void simulated_geometry_line(const struct vsim_geometry *geometry, char *out, size_t size);
void simulated_geometry_caches(const struct vsim_geometry *geometry, char *out, size_t size);
/* Returns the reason why such a CPU can't count this config; NULL if it can. */
const char *simulated_geometry_lacks(const struct vsim_geometry *geometry, uint64_t config);

/* simulated_launch.c: implements struct tally_provider_ops.command. */
int simulated_command(struct tally_provider *provider, const char *path, char **command,
		      char ***out, struct tally_error *err);

#endif
