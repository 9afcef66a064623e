/* Watches events of the engine from outside, and tells what happened to them in words: `tally sim
 * --explain`.
 *
 * It looks after each thing that happens in the machine; what comes and goes in between is not
 * seen. */
#ifndef TALLY_SIM_WATCH_H
#define TALLY_SIM_WATCH_H

#include "sim/sim.h"

struct sim_watch;
typedef void sim_watch_tell(void *context, const char *text);

/* One watch to a machine.  NULL: out of memory. */
struct sim_watch *sim_watch_new(struct sim_machine *machine, sim_watch_tell *tell, void *context);
/* Events of one part share its name and number.  `fd` is the current task's; all strings are kept
 * by the caller. 0 or -errno. */
int sim_watch_add(struct sim_watch *watch, int fd, unsigned part, const char *event,
		  const char *target);
/* Before the events are closed. */
void sim_watch_free(struct sim_watch *watch);

#endif
