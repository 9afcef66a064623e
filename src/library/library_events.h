/* What every function of libtally that opens events begins with. */
#ifndef TALLY_LIBRARY_LIBRARY_EVENTS_H
#define TALLY_LIBRARY_LIBRARY_EVENTS_H

#include "base/arena.h"
#include "event/event.h"
#include "provider/provider.h"

struct tally_library_events {
	struct tally_provider *provider;
	struct tally_catalogue catalogue;
	struct tally_arena arena;
	struct tally_event_list list;
};

/* Parses an expression into `list`, over what the kernel can count.  0 or -errno; to be released in
 * any case. */
int tally_library_events_parse(struct tally_library_events *events, const char *expression,
			       struct tally_error *err);

/* Opens an event of the list for a thread (0: the calling one): a handle, or -errno with what to
 * do. */
int tally_library_events_open(struct tally_library_events *events, size_t index, int pid, int group,
			      struct tally_error *err);
void tally_library_events_release(struct tally_library_events *events);

/* As libc: -errno becomes errno and -1, anything else 0. */
int tally_library_result(int result);
/* Writes message and hint into a caller's buffer (NULL is fine), and sets errno. */
void tally_library_fail(int result, const struct tally_error *err, char *error, size_t error_size);

#endif
