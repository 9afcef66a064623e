/* What to do when the kernel refuses an event. */
#ifndef TALLY_PROVIDER_ADVICE_H
#define TALLY_PROVIDER_ADVICE_H

#include "base/error.h"

#include <sys/types.h>

struct tally_event;

/* Turns the errno of a failed perf_event_open(2) (either sign) for `event` on `pid` and `cpu` into
 * a message and a hint that names the cure, from what the machine's settings and our privileges
 * are.  `command`: what the task is to run, which the user knows rather than its number; NULL: the
 * user named the task, or the library's caller did. */
void tally_provider_open_error(const struct tally_event *event, int errno_code, pid_t pid, int cpu,
			       const char *command, struct tally_error *err);

#endif
