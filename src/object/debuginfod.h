/* Files by build-id from debuginfod servers (debuginfod_find_debuginfo(3)), through libdebuginfod,
 * which is loaded when it is asked for and keeps what it fetched (in ~/.cache/debuginfod_client).
 *
 * Nothing here is called unless the user has asked for it: the network is not used for less.
 */
#ifndef TALLY_OBJECT_DEBUGINFOD_H
#define TALLY_OBJECT_DEBUGINFOD_H

#include "base/error.h"
#include "object/object.h"

struct tally_debuginfod;

/* Bytes that have come, and how many there will be (0: not known); several times a second.  False:
 * enough, give up. */
typedef bool tally_debuginfod_progress(void *context, uint64_t bytes, uint64_t total);

/* `urls`: servers, separated by blanks; NULL: those of the environment (DEBUGINFOD_URLS).  Unless
 * the environment says otherwise a server may take 10 s for 100 KB and two minutes for a file.
 * -ENOPKG: there is no library; -EDESTADDRREQ: no server is named; -ENOMEM. */
int tally_debuginfod_open(const char *urls, tally_debuginfod_progress *progress, void *context,
			  struct tally_debuginfod **out, struct tally_error *err);

enum tally_debuginfod_kind { TALLY_DEBUGINFOD_DEBUG, TALLY_DEBUGINFOD_EXECUTABLE };

/* A file, from the servers or from what was fetched before: 0 (unref it), -ENOENT where no server
 * has it, -EINTR where `progress` gave up, or another -errno of the network's. */
int tally_debuginfod_fetch(struct tally_debuginfod *server, const struct tally_build_id *id,
			   enum tally_debuginfod_kind kind, struct tally_object **out);

void tally_debuginfod_close(struct tally_debuginfod *server);

#endif
