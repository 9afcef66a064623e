/* What an engine of tally's own can count: its PMUs with their format terms and named events, and
 * its tracepoints. */
#ifndef TALLY_PROVIDER_ENGINE_CATALOGUE_H
#define TALLY_PROVIDER_ENGINE_CATALOGUE_H

#include "base/error.h"
#include "tally/engine.h"

struct tally_catalogue;

/* Adds them to a catalogue that tally_catalogue_init has made (or a zeroed one, which it then
 * makes).  All is copied: what is registered later is not in it. */
int tally_engine_catalogue(struct tally_catalogue *catalogue, struct tally_engine *engine,
			   struct tally_error *err);

#endif
