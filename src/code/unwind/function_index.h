/* Finds the function of an object that holds an address, and its call frame information.  Internal
 * to src/unwind.
 *
 * The linker writes an index into .eh_frame_hdr: a sorted table of pairs (a function's start, its
 * FDE).  It saves reading the whole section: an object with half a million functions costs nothing
 * until one of them is hit.  The table repeats what the section says, and may be wrong.  So its
 * order is checked when the index is made; each entry is checked against its FDE when it is used;
 * and the number of entries is checked against the section's FDEs when an address is in none of
 * them.  If a check fails, or there is no table (.debug_frame has none), the header of every FDE is
 * read, once.
 */
#ifndef TALLY_UNWIND_FUNCTION_INDEX_H
#define TALLY_UNWIND_FUNCTION_INDEX_H

#include "base/vector.h"
#include "unwind/cfi.h"

/* A function keeps only this.  Everything else is read from the section again: a copy would be
 * larger, and no faster to reach. */
struct tally_unwind_function {
	uint64_t start;
	uint32_t size;
	uint32_t entry; /* offset of the FDE in the section */
};

struct tally_function_index {
	struct tally_cfi_section section;
	/* the linker's table: pairs of 32-bit offsets from its address; NULL: `functions` is
	 * used */
	const uint8_t *linker;
	uint64_t linker_address;
	bool linker_is_complete; /* the section is known to have no more FDEs than the table */
	size_t count;
	TALLY_VECTOR(struct tally_unwind_function) functions; /* sorted by start */
};

/* Makes an index over a section, with the bytes of its .eh_frame_hdr (NULL: none).  The bytes of
 * both must outlive it.  Returns 0 or -ENOMEM. */
int tally_function_index_init(struct tally_function_index *index,
			      const struct tally_cfi_section *section,
			      const struct tally_cfi_section *linker);
void tally_function_index_release(struct tally_function_index *index);

/* Reads the function at a position (below `count`).  Returns false when the linker's table is wrong
 * about it. */
bool tally_function_index_at(const struct tally_function_index *index, size_t position,
			     struct tally_unwind_function *function);

/* Finds the last function that starts at or below an address: its position and its start.  Returns
 * false when there is none.  Does not check that the function reaches up to the address. */
bool tally_function_index_below(const struct tally_function_index *index, uint64_t address,
				size_t *position, uint64_t *start);

/* Returns the start of the next function behind a position, or UINT64_MAX behind the last one. */
uint64_t tally_function_index_next(const struct tally_function_index *index, size_t position);

/* Finds the function that holds an address.  If it finds that the linker's table is wrong, it reads
 * the section instead and sets *is_anew: `count` and the meaning of positions have changed. */
bool tally_function_index_find(struct tally_function_index *index, uint64_t address,
			       size_t *position, struct tally_unwind_function *function,
			       bool *is_anew);

/* Starts the program of a function in the index.  Returns false when its rules are malformed. */
bool tally_function_index_start(const struct tally_function_index *index,
				const struct tally_unwind_function *function,
				struct tally_cfi_program *program);

#endif
