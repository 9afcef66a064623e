/* Code that processes made at run time, read from their memory while they are recorded.
 *
 * Code without a file has no unwind rules, but its instructions tell enough (unwind/code_frame.h).
 * Pages are kept until the next pass over the rings, and replaced code is read again after that.
 * Not thread-safe.
 */
#ifndef TALLY_TASK_MADE_CODE_H
#define TALLY_TASK_MADE_CODE_H

#include <stddef.h>
#include <stdint.h>

struct tally_code_memo;
struct tally_made_code;

/* `read` works like process_vm_readv(2) for one piece: it returns the bytes read from `address` on,
 * possibly fewer than `size`, or -errno.  Returns NULL without memory. */
struct tally_made_code *tally_made_code_new(long (*read)(void *context, uint32_t pid,
							 uint64_t address, void *out, size_t size),
					    void *context);
void tally_made_code_free(struct tally_made_code *code); /* accepts NULL */

/* Returns a memo of the frames found in code, or NULL: it is optional.  It is cleared from time to
 * time. */
struct tally_code_memo *tally_made_code_memo(struct tally_made_code *code);

/* Forgets the pages. */
void tally_made_code_pass(struct tally_made_code *code);

/* Copies bytes of a process's memory.  Returns how many, from `address` on. */
size_t tally_made_code_read(struct tally_made_code *code, uint32_t pid, uint64_t address, void *out,
			    size_t size);

#endif
