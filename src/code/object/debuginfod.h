/* Fetches files by build-id from debuginfod servers (debuginfod_find_debuginfo(3)).  Uses
 * libdebuginfod, which is loaded on first use and caches what it fetched (in
 * ~/.cache/debuginfod_client).
 *
 * This uses the network, so call it only when the user asks for it.
 */
#ifndef TALLY_OBJECT_DEBUGINFOD_H
#define TALLY_OBJECT_DEBUGINFOD_H

#include "base/error.h"
#include "object/object.h"

struct tally_debuginfod;

/* Called several times a second with the bytes received, and the total (0: unknown).  Return false
 * to give up. */
typedef bool tally_debuginfod_progress(void *context, uint64_t bytes, uint64_t total);

/* `urls`: servers, separated by blanks; NULL: the environment's (DEBUGINFOD_URLS).  Unless the
 * environment sets other limits, a server may take 10 s for 100 KB and two minutes for a file.
 * Returns 0; -ENOPKG without the library; -EDESTADDRREQ without a server; -ENOMEM. */
int tally_debuginfod_open(const char *urls, tally_debuginfod_progress *progress, void *context,
			  struct tally_debuginfod **out, struct tally_error *err);

enum tally_debuginfod_kind { TALLY_DEBUGINFOD_DEBUG, TALLY_DEBUGINFOD_EXECUTABLE };

/* Gets a file from the servers or from libdebuginfod's cache.  Returns 0 (the caller unrefs the
 * object), -ENOENT when no server has it, -EINTR when `progress` gave up, -EFBIG when the file is
 * above the limits (base/input_limits.h; it is noted, and its beginning is removed), or another
 * -errno of the network's.  The process's RLIMIT_FSIZE is lower meanwhile. */
int tally_debuginfod_fetch(struct tally_debuginfod *server, const struct tally_build_id *id,
			   enum tally_debuginfod_kind kind, struct tally_object **out);

void tally_debuginfod_close(struct tally_debuginfod *server);

#endif
