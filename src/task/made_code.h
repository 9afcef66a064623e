/* Code that processes made at run time, read from their memory while they are recorded.
 *
 * Code without a file has no rules to unwind it by, but its instructions tell enough
 * (unwind/code_frame.h).  Pages are kept until the next pass over the rings: code that is replaced
 * is read anew then.  Not thread-safe.
 */
#ifndef TALLY_TASK_MADE_CODE_H
#define TALLY_TASK_MADE_CODE_H

#include <stddef.h>
#include <stdint.h>

struct tally_code_memo;
struct tally_made_code;

/* `read` is process_vm_readv(2) for one piece: bytes read from `address` on, which may be fewer, or
 * -errno.  NULL: no memory. */
struct tally_made_code *tally_made_code_new(long (*read)(void *context, uint32_t pid,
							 uint64_t address, void *out, size_t size),
					    void *context);
void tally_made_code_free(struct tally_made_code *code); /* NULL is fine */

/* Optional: what remembers the frames that the code tells.  It forgets them now and then. */
struct tally_code_memo *tally_made_code_memo(struct tally_made_code *code);

/* Forgets the pages. */
void tally_made_code_pass(struct tally_made_code *code);

/* Copies bytes of a process's memory.  Returns how many there are, from `address` on. */
size_t tally_made_code_read(struct tally_made_code *code, uint32_t pid, uint64_t address, void *out,
			    size_t size);

#endif
