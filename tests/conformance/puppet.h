/* A task that does what another tells it, step by step. */
#ifndef TALLY_CONFORMANCE_PUPPET_H
#define TALLY_CONFORMANCE_PUPPET_H

#include "suite.h"

struct puppet {
	volatile uint32_t asked, answered; /* steps so far */
	surface_body *step;
	void *argument;
	int result;
	pid_t task;
};

/* A process or thread that waits for its first step; NULL when it can't be made. */
struct puppet *puppet_new(struct surface *surface, enum surface_task_kind kind);
/* Runs `step` in it and waits: what it returns.  `argument` is in shared() memory, or no pointer at
 * all. */
int puppet_do(struct surface *surface, struct puppet *puppet, surface_body *step, void *argument);
/* Lets it exit with `code` and waits for that. */
int puppet_end(struct surface *surface, struct puppet *puppet, int code);

/* Steps.  The argument is a number. */
int step_fault(struct surface *surface, void *count);
int step_hit(struct surface *surface, void *count);
int step_touch(struct surface *surface, void *count); /* writes the watched variable */
int step_pin(struct surface *surface, void *cpu);
int step_sleep(struct surface *surface, void *ms);
/* The puppet that does it becomes another program, which obeys on.  `step` being an address,
 * programs must all be loaded at the same one: personality(ADDR_NO_RANDOMIZE). */
int step_become(struct surface *surface, void *puppet);
int step_drop_privileges(struct surface *surface, void *unused);

#define NUMBER(n) ((void *)(uintptr_t)(n))

#endif
