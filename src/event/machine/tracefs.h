/* Tracepoints as tracefs shows them: Documentation/trace/events.rst. */
#ifndef TALLY_MACHINE_TRACEFS_H
#define TALLY_MACHINE_TRACEFS_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdint.h>

/* Returns a descriptor of tracefs's root directory, which is for openat(2) and which the caller
 * closes; or -errno, with advice in `err`.  Changes nothing that others see: if tracefs is mounted
 * nowhere, it makes a mount that no path leads to and that ends with the descriptor. */
int tally_tracefs_open(struct tally_error *err);

/* Returns the id of one tracepoint (attr.config), or -errno: -ENOENT if there is none. */
int64_t tally_tracefs_tracepoint_id(int tracefs, const char *system, const char *name);

/* Appends the text of events/SYSTEM/NAME/format.  Returns 0 or -errno. */
int tally_tracefs_format(int tracefs, const char *system, const char *name,
			 struct tally_buffer *out);

/* Calls `visit` for each tracepoint of `system` (NULL: of all), in no particular order, until it
 * returns non-zero.  Returns that value, 0 at the end, or -errno. */
int tally_tracefs_walk(int tracefs, const char *system,
		       int (*visit)(void *context, const char *system, const char *name),
		       void *context);

#endif
