/* What this house does with attributes; their definition is the public header's.  Freestanding. */
#ifndef TALLY_ABI_ATTR_H
#define TALLY_ABI_ATTR_H

#include "tally/perf_event.h"

/* The smallest known size that holds every non-zero field: what a recording is written with, since perf 6.1
 * refuses more than 128 bytes. */
uint32_t tally_attr_size_needed(const struct tally_attr *attr);

#endif
