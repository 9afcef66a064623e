/* What the running kernel can count, by sysfs and tracefs.  Loaded as it is asked for. */
#ifndef TALLY_PROVIDER_KERNEL_CATALOGUE_H
#define TALLY_PROVIDER_KERNEL_CATALOGUE_H

#include "abi/attr.h"
#include "base/error.h"

struct tally_catalogue;

/* Adds the machine's PMUs and tracepoints to a catalogue that tally_catalogue_init has made (or a
 * zeroed one, which it then makes).  Reads nothing: PMUs and tracepoints are looked up when an
 * expression names them. */
int tally_kernel_catalogue(struct tally_catalogue *catalogue, struct tally_error *err);

/* Reads all PMUs and walks all tracepoints: for `list`.  Where tracepoints can't be had,
 * tracepoints_unavailable says why and this is no failure. */
int tally_kernel_catalogue_load(struct tally_catalogue *catalogue, struct tally_error *err);

/* Whether the kernel opens such an event: 0 or -errno.  Tries on this process, else on `cpu` (-1:
 * on no CPU). */
int tally_kernel_probe_available(const struct tally_attr *attr, int cpu);

/* Why an event that the probe refused can't be counted: "no hardware PMU on this machine
 * (ENOENT)". */
const char *tally_kernel_unavailable_text(const struct tally_attr *attr, int code);

/* Fills `unavailable` of every named event by the probe. */
void tally_kernel_probe_named(struct tally_catalogue *catalogue);

#endif
