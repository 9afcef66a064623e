/* The events of one of tally's own engines: its PMUs with their format terms and named events, and
 * its tracepoints. */
#ifndef TALLY_PROVIDER_ENGINE_CATALOGUE_H
#define TALLY_PROVIDER_ENGINE_CATALOGUE_H

#include "base/error.h"
#include "tally/engine.h"

struct tally_catalogue;

/* Adds them to a catalogue made by tally_catalogue_init(), or to a zeroed one, which it then makes.
 * Everything is copied, so PMUs and tracepoints registered later are missing.  Returns 0 or
 * -errno. */
int tally_engine_catalogue(struct tally_catalogue *catalogue, struct tally_engine *engine,
			   struct tally_error *err);

#endif
