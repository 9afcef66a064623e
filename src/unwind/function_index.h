/* Which function of an object holds an address, and its call frame information: inside this room.
 *
 * The linker's index (.eh_frame_hdr, a sorted table of pairs: a function's start, its FDE) is used
 * where it is sound, so that an object with half a million functions costs nothing before one of
 * them is hit.  It is a second account of the same facts, and not believed: its order is checked
 * when it is taken up, each entry against the FDE when it is used, and the number of its entries
 * against the section's when an address is in none of them.  Where it fails, or is missing
 * (.debug_frame has none), every FDE's header is read, once.
 */
#ifndef TALLY_UNWIND_FUNCTION_INDEX_H
#define TALLY_UNWIND_FUNCTION_INDEX_H

#include "base/vector.h"
#include "unwind/cfi.h"

/* Everything else is read again from the section, which is smaller than a copy of it would be and
 * as near. */
struct tally_unwind_function {
	uint64_t start;
	uint32_t size;
	uint32_t entry; /* offset of the FDE in the section */
};

struct tally_function_index {
	struct tally_cfi_section section;
	/* the linker's table: pairs of 32 bits relative to its address; NULL: `functions` */
	const uint8_t *linker;
	uint64_t linker_address;
	bool linker_is_complete; /* was counted */
	size_t count;
	TALLY_VECTOR(struct tally_unwind_function) functions; /* sorted by start */
};

/* Over a section, with the bytes of its .eh_frame_hdr (NULL: none).  0 or -ENOMEM. */
int tally_function_index_init(struct tally_function_index *index,
			      const struct tally_cfi_section *section,
			      const struct tally_cfi_section *linker);
void tally_function_index_release(struct tally_function_index *index);

/* The function of a position (below `count`); false when the linker's table is wrong about it. */
bool tally_function_index_at(const struct tally_function_index *index, size_t position,
			     struct tally_unwind_function *function);

/* Where the last function stands that starts at or below an address, and that start; false: none
 * does.  Whether it reaches so far is not asked. */
bool tally_function_index_below(const struct tally_function_index *index, uint64_t address,
				size_t *position, uint64_t *start);

/* Where the function behind that one begins; UINT64_MAX when it is the last. */
uint64_t tally_function_index_next(const struct tally_function_index *index, size_t position);

/* The function that holds an address.  May find that the linker's table is wrong and read the
 * section anew, which changes `count` and what positions mean; *is_anew says so. */
bool tally_function_index_find(struct tally_function_index *index, uint64_t address,
			       size_t *position, struct tally_unwind_function *function,
			       bool *is_anew);

/* Forgets the linker's table and reads the section.  0 or -ENOMEM. */
int tally_function_index_read(struct tally_function_index *index);

/* Starts the program of a function of the index; false when its rules are bad. */
bool tally_function_index_start(const struct tally_function_index *index,
				const struct tally_unwind_function *function,
				struct tally_cfi_program *program);

#endif
