/* Addresses of JIT code over time, as the recording has them (docs/file-format.md).  It is
 * taken from JIT dumps (symbol/jit_dump.h), and serves to find the code that an address belongs to.
 * The names are among the packed names; the code itself is not here.
 *
 * The bytes are untrusted.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_PACKED_JITS_H
#define TALLY_PROFILE_PACKED_JITS_H

#include "base/buffer.h"
#include "task/tasks.h"

#include <stddef.h>

struct tally_jit_dump;

/* Adds a part with the tasks' dumps to a section that was begun; nothing if there are no dumps.  A
 * failure is kept in `section`. */
void tally_packed_jits_write(const struct tally_tasks *tasks, struct tally_buffer *section);

/* Makes the dump for a file of the tasks from tally's own section.  Returns 1 (the caller frees
 * `out`), 0 if the section doesn't have it, -EBADMSG, -ENOTSUP or -ENOMEM. */
int tally_packed_jits_read(const void *section, size_t size, const struct tally_tasks *tasks,
			   uint32_t file, struct tally_jit_dump **out);

#endif
