/* Advice for events that the kernel refuses. */
#ifndef TALLY_PROVIDER_ADVICE_H
#define TALLY_PROVIDER_ADVICE_H

#include "base/error.h"

#include <sys/types.h>

struct tally_event;

/* Turns the errno of a failed perf_event_open(2) (either sign) for `event` on `pid` and `cpu` into
 * a message, and a hint that names the cure.  Considers the machine's settings and this process's
 * privileges.  `command` is the command that the task will run, which the user knows rather than
 * its pid; NULL if the user, or the library's caller, named the task. */
void tally_provider_open_error(const struct tally_event *event, int errno_code, pid_t pid, int cpu,
			       const char *command, struct tally_error *err);

#endif
