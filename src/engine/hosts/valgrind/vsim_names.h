/* The events of the PMU "vsim" by name.  The tool counts by masks of kinds; tally parses and prints
 * names with these rows.  Freestanding; MIT. */
#ifndef TALLY_VALGRIND_VSIM_NAMES_H
#define TALLY_VALGRIND_VSIM_NAMES_H

#include "valgrind/vsim_plan.h"

enum vsim_quality {
	/* what the program itself does in user mode (instructions, branches, loads): the same in
	 * each run */
	VSIM_EXACT,
	VSIM_MODEL,   /* what the simulated caches, TLBs and predictors do */
	VSIM_ESTIMATE /* a sum with fixed weights, for ranking */
};

struct vsim_event_name {
	const char *name;   /* spelt as perf spells it, where perf has a name */
	/* attr.config of type VSIM_PMU_TYPE: bit (1 << kind) for each kind that it counts */
	uint64_t config;
	const char *text;   /* a description in one line, lower case, without a full stop */
};

/* Ends with a NULL name.  Names that mean the same (branches, branch-instructions) have rows of
 * their own.  When only the config is known, an event gets the first name with it. */
extern const struct vsim_event_name vsim_event_names[];

/* Returns the event of that name, or NULL.  Case matters. */
const struct vsim_event_name *vsim_event_by_name(const char *name);
/* Returns the first row with that config, or NULL. */
const struct vsim_event_name *vsim_event_by_config(uint64_t config);

/* True if the PMU counts this config: known kinds, at least one, est-cycles only by itself.
 * Several kinds are counted as their sum. */
bool vsim_config_is_valid(uint64_t config);
/* Returns the quality of a valid config: the quality of its least certain kind. */
enum vsim_quality vsim_config_quality(uint64_t config);
/* Returns "exact", "model" or "estimate". */
const char *vsim_quality_name(enum vsim_quality quality);

/* Sets *config for a generic event (attr.type HARDWARE or HW_CACHE).  Returns 0; -ENOENT (-2) for
 * an event that is not simulated (cycles: est-cycles are never passed off as cycles); -EINVAL (-22)
 * for numbers without a meaning. */
int vsim_generic_config(uint32_t type, uint64_t generic, uint64_t *config);

#endif
