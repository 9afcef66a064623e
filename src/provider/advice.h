/* What to do when the kernel refuses an event. */
#ifndef TALLY_PROVIDER_ADVICE_H
#define TALLY_PROVIDER_ADVICE_H

#include "base/error.h"

#include <sys/types.h>

struct tally_event;

/* Turns the errno of a failed perf_event_open(2) (either sign) for `event` on `pid` and `cpu` into a message and a
 * hint that names the cure, from what the machine's settings and our privileges are. */
void tally_provider_open_error(const struct tally_event *event, int errno_code, pid_t pid, int cpu,
			       struct tally_error *err);

#endif
