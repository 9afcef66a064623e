/* Tracepoints as tracefs shows them: Documentation/trace/events.rst. */
#ifndef TALLY_MACHINE_TRACEFS_H
#define TALLY_MACHINE_TRACEFS_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdint.h>

/* A descriptor of tracefs' root directory, to be used with openat(2) and closed by the caller; or
 * -errno with what to do.  Nothing that others see is changed: where tracefs is mounted nowhere, a
 * mount of our own is made that no path leads to, and that ends with the descriptor. */
int tally_tracefs_open(struct tally_error *err);

/* The id of one tracepoint (attr.config), or -errno; -ENOENT when there is none. */
int64_t tally_tracefs_tracepoint_id(int tracefs, const char *system, const char *name);

/* Appends the text of events/SYSTEM/NAME/format: 0 or -errno. */
int tally_tracefs_format(int tracefs, const char *system, const char *name,
			 struct tally_buffer *out);

/* Calls `visit` for each tracepoint of `system` (NULL: of all), in no order, until it gives
 * non-zero, which is returned, or -errno. */
int tally_tracefs_walk(int tracefs, const char *system,
		       int (*visit)(void *context, const char *system, const char *name),
		       void *context);

#endif
