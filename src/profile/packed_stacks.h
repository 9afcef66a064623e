/* The chains of samples that carry a copy of their stack, as the recording has them
 * (docs/file-format.md): unwound where the programs were, so that they need not be there again.
 *
 * Samples with a copy are counted from 0 in the order of time.  Made while a recording is read, or
 * read from one.  The bytes are untrusted.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_PACKED_STACKS_H
#define TALLY_PROFILE_PACKED_STACKS_H

#include "base/buffer.h"
#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A user stack, leaf first. */
struct tally_unwound_stack {
	const uint64_t *addresses;
	const bool *is_exact; /* false: something returns there */
	uint32_t count;
	bool is_cut;      /* the copy ended before the stack did */
	bool is_complete; /* all of it was walked through */
};

struct tally_packed_chain {
	size_t first;
	uint32_t count;
	bool is_cut, is_complete;
};

/* What a cut stack would have needed; see tally_user_stack_needed(). */
struct tally_packed_need {
	uint32_t bytes; /* UINT32_MAX: as many or more */
	bool is_at_most;
};

struct tally_packed_stacks {
	struct { uint64_t *items; size_t count, capacity; } addresses;
	struct { bool *items; size_t count, capacity; } is_exact;
	struct { struct tally_packed_chain *items; size_t count, capacity; } chains;
	struct { uint32_t *items; size_t count, capacity; } samples; /* chain + 1; 0: none */
	/* by sample, where any is cut */
	struct { struct tally_packed_need *items; size_t count, capacity; } needs;
	struct tally_map index; /* hash of a chain → its number */
};

/* Reads them from tally's own section.  1; 0 where there are none; -EBADMSG, -ENOTSUP, -ENOMEM.
 * `out` is to be freed where it isn't NULL. */
int tally_packed_stacks_read(const void *section, size_t size, struct tally_packed_stacks **out);
void tally_packed_stacks_free(struct tally_packed_stacks *stacks); /* NULL is fine */

/* The stack of a sample; false where nothing is said of it.  Valid until another is noted. */
bool tally_packed_stacks_at(const struct tally_packed_stacks *stacks, uint64_t sample,
			    struct tally_unwound_stack *out, struct tally_packed_need *need);

/* Notes the stack of a sample; those before it that were not noted have none.  0 or -ENOMEM. */
int tally_packed_stacks_note(struct tally_packed_stacks *stacks, uint64_t sample,
			     const struct tally_unwound_stack *stack,
			     struct tally_packed_need need);

/* Adds them to a section; failure sticks in it. */
void tally_packed_stacks_write(const struct tally_packed_stacks *stacks,
			       struct tally_buffer *section);

#endif
