/* The events of the PMU "vsim" by name: the tool counts by masks of kinds, tally parses and prints
 * by these rows.  Freestanding; MIT. */
#ifndef TALLY_VALGRIND_VSIM_NAMES_H
#define TALLY_VALGRIND_VSIM_NAMES_H

#include "valgrind/vsim_plan.h"

enum vsim_quality {
	/* what the program did on Valgrind's CPU, in user mode: the same number at each run */
	VSIM_EXACT,
	VSIM_MODEL,   /* what the simulated caches, TLBs and predictors made of it */
	VSIM_ESTIMATE /* fixed weights: for ranking */
};

struct vsim_event_name {
	const char *name;   /* as perf spells what perf has a name for */
	/* attr.config of type VSIM_PMU_TYPE: bit (1 << kind) for each kind that it counts */
	uint64_t config;
	const char *text;   /* a line for people, lower case, no full stop */
};

/* Ends with a NULL name.  Names that mean the same (branches, branch-instructions) have rows of
 * their own; the first of them is what an event is called when only its config is known. */
extern const struct vsim_event_name vsim_event_names[];

/* NULL: no such event; case matters. */
const struct vsim_event_name *vsim_event_by_name(const char *name);
/* The first row with that config; NULL: none. */
const struct vsim_event_name *vsim_event_by_config(uint64_t config);

/* Whether a config is one that the PMU counts: kinds that there are, at least one, est-cycles
 * alone.  Several kinds are counted as their sum. */
bool vsim_config_is_valid(uint64_t config);
/* Of a valid config: that of its least certain kind. */
enum vsim_quality vsim_config_quality(uint64_t config);
/* "exact", "model", "estimate". */
const char *vsim_quality_name(enum vsim_quality quality);
/* Whether counting it takes the model of caches, TLBs and predictors, and so its time. */
bool vsim_config_needs_model(uint64_t config);

/* The config that stands for a generic event (attr.type HARDWARE or HW_CACHE): 0; -ENOENT (-2) for
 * one that is not simulated (cycles: est-cycles is never passed off as them), -EINVAL (-22) for
 * numbers that mean nothing. */
int vsim_generic_config(uint32_t type, uint64_t generic, uint64_t *config);

#endif
