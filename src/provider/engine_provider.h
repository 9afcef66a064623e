/* An engine of tally's own as a provider: handles are descriptors of the engine's, of the process
 * whose task is current in the host. */
#ifndef TALLY_PROVIDER_ENGINE_PROVIDER_H
#define TALLY_PROVIDER_ENGINE_PROVIDER_H

#include "provider/provider.h"
#include "tally/engine.h"

/* `name` ("sim") is printed beside the figures; `page_bytes` is the host's page_size.  Its wait()
 * asks once and never waits: time passes in the host alone.  NULL: out of memory. */
struct tally_provider *tally_provider_engine_new(struct tally_engine *engine, const char *name,
						 size_t page_bytes);

#endif
