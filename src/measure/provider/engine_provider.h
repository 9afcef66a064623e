/* One of tally's own engines as a provider.  Handles are descriptors of the engine, in the process
 * whose task is current in the host. */
#ifndef TALLY_PROVIDER_ENGINE_PROVIDER_H
#define TALLY_PROVIDER_ENGINE_PROVIDER_H

#include "base/error.h"
#include "provider/provider.h"
#include "tally/engine.h"

/* Makes the provider.  `name` ("sim") is printed beside figures; `page_bytes` is the host's
 * page_size.  Its wait() polls once and never waits, since time passes only in the host.  Returns
 * NULL if out of memory. */
struct tally_provider *tally_provider_engine_new(struct tally_engine *engine, const char *name,
						 size_t page_bytes);

/* The events of one of tally's own engines: its PMUs with their format terms and named events, and
 * its tracepoints. */

struct tally_catalogue;

/* Adds them to a catalogue made by tally_catalogue_init(), or to a zeroed one, which it then makes.
 * Everything is copied, so PMUs and tracepoints registered later are missing.  Returns 0 or
 * -errno. */
int tally_engine_catalogue(struct tally_catalogue *catalogue, struct tally_engine *engine,
			   struct tally_error *err);

#endif
