/* The rules of one object: inside this room (and for tests that make their own sections). */
#ifndef TALLY_UNWIND_UNWIND_TABLE_H
#define TALLY_UNWIND_UNWIND_TABLE_H

#include "base/vector.h"
#include "unwind/cfi.h"

/* One function of the index.  Everything else is read again from the section, which is smaller than a copy of it
 * would be and as near. */
struct tally_unwind_function {
	uint64_t start;
	uint32_t size;
	uint32_t entry; /* offset of the FDE in the section */
};

/* One section's functions sorted by start, its CIEs by offset. */
struct tally_unwind_index {
	struct tally_cfi_section section;
	TALLY_VECTOR(struct tally_cfi_cie) cies;
	TALLY_VECTOR(struct tally_unwind_function) functions;
};

/* .eh_frame, then .debug_frame, of the object and of its debug file: one is asked after the other. */
enum { TALLY_UNWIND_INDEXES = 3 };

struct tally_unwind_table {
	struct tally_object *object, *debug; /* NULL for a table from bytes */
	uint64_t entry_point;                /* 0: none */
	unsigned index_count;
	struct tally_unwind_index indexes[TALLY_UNWIND_INDEXES];
};

/* A table over one section's bytes, which must outlive it. */
int tally_unwind_table_new_from_bytes(const struct tally_cfi_section *section, struct tally_unwind_table **out,
				      struct tally_error *err);

const struct tally_unwind_function *tally_unwind_index_find(const struct tally_unwind_index *index,
							    uint64_t address);

/* Starts the program of a function of the index; false when its rules are bad. */
bool tally_unwind_index_start(const struct tally_unwind_index *index,
			      const struct tally_unwind_function *function, struct tally_cfi_program *program);

enum tally_unwind_lookup { TALLY_UNWIND_FOUND, TALLY_UNWIND_NOT_FOUND, TALLY_UNWIND_MALFORMED };

/* The rules at an address in the object, left in program->row.  A rule cache would go here: what is
 * found is plain data, and depends on nothing but the table and the address. */
enum tally_unwind_lookup tally_unwind_table_lookup(const struct tally_unwind_table *table, uint64_t address,
						   struct tally_cfi_program *program);

#endif
