/* libtally's rings with a provider of the caller's choice, for tests of the engine. */
#ifndef TALLY_LIBRARY_EVENT_RING_H
#define TALLY_LIBRARY_EVENT_RING_H

#include "provider/provider.h"
#include "tally/ring.h"

/* Like tally_event_ring_open(), which passes NULL for `provider`: the library's own.  The provider
 * must outlive the ring. */
struct tally_event_ring *tally_event_ring_open_from(struct tally_provider *provider,
						    const char *event,
						    const struct tally_event_ring_options *options,
						    char *error, size_t error_size);

#endif
