/* Addresses of JIT code over time, as the recording has them (docs/file-format.md).  It is
 * taken from JIT dumps (symbol/jit_dump.h), and serves to find the code that an address belongs to.
 * The names are among the packed names; the code itself is not here.
 *
 * The bytes are untrusted.  Not thread-safe.
 */
#ifndef TALLY_NAMING_PACKED_JITS_H
#define TALLY_NAMING_PACKED_JITS_H

#include "base/buffer.h"
#include "task/tasks.h"

#include <stddef.h>

struct tally_jit_dump;

/* Adds a part with the tasks' dumps to a section that was begun; nothing if there are no dumps.  A
 * failure is kept in `section`. */
void tally_packed_jits_write(const struct tally_tasks *tasks, struct tally_buffer *section);

struct tally_packed_jits;

/* Reads the dumps in tally's own section.  Returns 0; -EBADMSG, -ENOTSUP (written by a newer tally),
 * -EFBIG (above a limit, noted) or -ENOMEM. */
int tally_packed_jits_new(const void *section, size_t size, struct tally_packed_jits **out);
void tally_packed_jits_free(struct tally_packed_jits *jits); /* NULL is allowed */

/* Makes the dump for a file of the tasks, in time linear in its size.  Returns 1 (the caller frees
 * `out`), 0 if there is none, -EBADMSG, -EFBIG or -ENOMEM. */
int tally_packed_jits_find(const struct tally_packed_jits *jits, const struct tally_tasks *tasks,
			   uint32_t file, struct tally_jit_dump **out);

#endif
