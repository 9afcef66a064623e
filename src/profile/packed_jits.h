/* Where JITs' code lay from when on, as the recording has it (docs/file-format.md): what is needed
 * of dumps (symbol/jit_dump.h) to tell which code an address is.  Its names are among the packed
 * names; the code itself is not there.
 *
 * The bytes are untrusted.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_PACKED_JITS_H
#define TALLY_PROFILE_PACKED_JITS_H

#include "base/buffer.h"
#include "task/tasks.h"

#include <stddef.h>

struct tally_jit_dump;

/* Adds what the tasks' dumps say to a section, which has been begun; nothing where there are none.
 * Failure sticks in it. */
void tally_packed_jits_write(const struct tally_tasks *tasks, struct tally_buffer *section);

/* Does the tasks' recording tell of any dump? */
bool tally_packed_jits_has(const struct tally_tasks *tasks);

/* The dump that a file of the tasks was, made from tally's own section: 1 and `out` the caller's to
 * free; 0 where nothing is said of it; -EBADMSG, -ENOTSUP, -ENOMEM. */
int tally_packed_jits_read(const void *section, size_t size, const struct tally_tasks *tasks,
			   uint32_t file, struct tally_jit_dump **out);

#endif
