/* The events that the running kernel can count, from sysfs and tracefs, loaded on demand. */
#ifndef TALLY_PROVIDER_KERNEL_CATALOGUE_H
#define TALLY_PROVIDER_KERNEL_CATALOGUE_H

#include "abi/attr.h"
#include "base/error.h"

struct tally_catalogue;

/* Adds the machine's PMUs and tracepoints to a catalogue made by tally_catalogue_init(), or to a
 * zeroed one, which it then makes.  Reads nothing yet: each PMU and tracepoint is looked up when
 * an expression names it.  Returns 0 or -errno. */
int tally_kernel_catalogue(struct tally_catalogue *catalogue, struct tally_error *err);

/* Tries to open such an event.  Returns 0 or -errno.  Tries it on this process, then on `cpu` (-1:
 * on no CPU). */
int tally_kernel_probe_available(const struct tally_attr *attr, int cpu);

/* Returns the reason why an event that the probe refused can't be counted: "no hardware PMU on this
 * machine (ENOENT)". */
const char *tally_kernel_unavailable_text(const struct tally_attr *attr, int code);

/* Sets `unavailable` of every named event by the probe. */
void tally_kernel_probe_named(struct tally_catalogue *catalogue);

#endif
