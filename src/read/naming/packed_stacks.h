/* Call chains of samples with a stack copy, as the recording has them (docs/file-format.md).  They
 * were unwound where the programs were, so that a reader doesn't need the programs.
 *
 * Samples with a copy are numbered from 0 in the order of time.  The chains are collected while a
 * recording is read, or read from its section.  The bytes are untrusted.  Not thread-safe.
 */
#ifndef TALLY_NAMING_PACKED_STACKS_H
#define TALLY_NAMING_PACKED_STACKS_H

#include "base/buffer.h"
#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A user stack, leaf first. */
struct tally_unwound_stack {
	const uint64_t *addresses;
	const bool *is_exact; /* by address; false: it is a return address */
	uint32_t count;
	bool is_cut;      /* the copy ended before the stack did */
	bool is_complete; /* it was unwound to its end */
};

struct tally_packed_chain {
	size_t first;
	uint32_t count;
	bool is_cut, is_complete;
};

/* The copy size that a cut stack would have needed; see tally_user_stack_needed(). */
struct tally_packed_need {
	uint32_t bytes; /* UINT32_MAX: at least that many */
	bool is_at_most;
};

struct tally_packed_stacks {
	struct { uint64_t *items; size_t count, capacity; } addresses;
	struct { bool *items; size_t count, capacity; } is_exact;
	struct { struct tally_packed_chain *items; size_t count, capacity; } chains;
	/* by sample: chain + 1; 0: none */
	struct { uint32_t *items; size_t count, capacity; } samples;
	/* by sample; only as far as any is cut */
	struct { struct tally_packed_need *items; size_t count, capacity; } needs;
	struct tally_map index; /* hash of a chain → its number */
};

/* Reads the chains from tally's own section.  Returns 1, 0 if it has none, -EBADMSG, -ENOTSUP or
 * -ENOMEM.  If `out` isn't NULL, the caller frees it. */
int tally_packed_stacks_read(const void *section, size_t size, struct tally_packed_stacks **out);
void tally_packed_stacks_free(struct tally_packed_stacks *stacks); /* NULL is allowed */

/* Gets the stack of a sample.  Returns false if the recording doesn't have it.  `out` is valid
 * until the next _note. */
bool tally_packed_stacks_at(const struct tally_packed_stacks *stacks, uint64_t sample,
			    struct tally_unwound_stack *out, struct tally_packed_need *need);

/* Notes the stack of a sample.  Earlier samples that were not noted have none.  Returns 0 or
 * -ENOMEM. */
int tally_packed_stacks_note(struct tally_packed_stacks *stacks, uint64_t sample,
			     const struct tally_unwound_stack *stack,
			     struct tally_packed_need need);

/* Adds the chains to a section.  A failure is kept in `section`. */
void tally_packed_stacks_write(const struct tally_packed_stacks *stacks,
			       struct tally_buffer *section);

#endif
