/* Watches events of the engine from outside, and describes in words what happens to them: `tally
 * sim --explain`.
 *
 * It looks after each happening in the machine, and does not see changes in between that cancel
 * out. */
#ifndef TALLY_SIM_WATCH_H
#define TALLY_SIM_WATCH_H

#include "sim/sim.h"

struct sim_watch;
typedef void sim_watch_report(void *context, const char *text);

/* Makes a watch; one per machine.  Returns NULL if out of memory. */
struct sim_watch *sim_watch_new(struct sim_machine *machine, sim_watch_report *report,
				void *context);
/* Adds an event.  Events of one part share its name and number.  `fd` belongs to the current task;
 * the caller keeps all strings.  Returns 0 or -errno. */
int sim_watch_add(struct sim_watch *watch, int fd, unsigned part, const char *event,
		  const char *target);
/* Call it before the events are closed. */
void sim_watch_free(struct sim_watch *watch);

#endif
