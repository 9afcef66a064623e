/* A task that executes single steps for another task. */
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

/* Creates a process or thread that waits for its first step.  Returns NULL if that fails. */
struct puppet *puppet_new(struct surface *surface, enum surface_task_kind kind);
/* Runs `step` in the puppet and waits for it.  Returns the step's result.  `argument` must be in
 * shared() memory, or not a pointer. */
int puppet_do(struct surface *surface, struct puppet *puppet, surface_body *step, void *argument);
/* Makes the puppet exit with `code` and waits for it. */
int puppet_end(struct surface *surface, struct puppet *puppet, int code);

/* Steps for puppet_do().  The argument is a number. */
int step_fault(struct surface *surface, void *count);
int step_hit(struct surface *surface, void *count);
int step_touch(struct surface *surface, void *count); /* writes the watched variable */
int step_pin(struct surface *surface, void *cpu);
int step_sleep(struct surface *surface, void *ms);
/* Makes the puppet execute another program, which continues to take steps.  `step` is an address,
 * so both programs must be loaded at the same place: personality(ADDR_NO_RANDOMIZE). */
int step_become(struct surface *surface, void *puppet);
int step_drop_privileges(struct surface *surface, void *unused);

#define NUMBER(n) ((void *)(uintptr_t)(n))

#endif
