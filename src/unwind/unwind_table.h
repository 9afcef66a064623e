/* The rules of one object: inside this room (and for tests that make their own sections). */
#ifndef TALLY_UNWIND_UNWIND_TABLE_H
#define TALLY_UNWIND_UNWIND_TABLE_H

#include "unwind/code_starts.h"
#include "unwind/function_index.h"
#include "unwind/unwind_rule.h"

/* .eh_frame, then .debug_frame, of the object and of its debug file: one is asked after the
 * other. */
enum { TALLY_UNWIND_INDEXES = 3 };

struct tally_unwind_table {
	struct tally_object *object, *debug; /* NULL for a table from bytes */
	enum tally_unwind_machine machine;
	uint64_t entry_point; /* 0: none */
	unsigned index_count;
	struct tally_function_index indexes[TALLY_UNWIND_INDEXES];
	struct tally_unwind_rules rules[TALLY_UNWIND_INDEXES]; /* what of each index was compiled */
	/* tally_unwind_table_use_functions() */
	enum tally_unwind_function_kind (*find_function)(void *context, uint64_t address,
							 uint64_t *start, uint64_t *end);
	void *functions;
	bool is_go; /* its runtime switches stacks */
	struct tally_unwind_rules made; /* of code without rules */
	/* of a segment that neither rules nor symbols tell of; empty: not asked, or too large */
	struct tally_code_starts starts;
	bool has_starts; /* looked for */
};

/* A table over one section's bytes, which must outlive it; `linker` is its .eh_frame_hdr, or
 * NULL. */
int tally_unwind_table_new_from_bytes(const struct tally_cfi_section *section,
				      const struct tally_cfi_section *linker,
				      struct tally_unwind_table **out, struct tally_error *err);

/* The function that holds an address, in whichever index has it first: NULL when none does. */
struct tally_function_index *tally_unwind_table_find(struct tally_unwind_table *table,
						     uint64_t address,
						     struct tally_unwind_function *function);

enum tally_unwind_lookup { TALLY_UNWIND_FOUND, TALLY_UNWIND_NOT_FOUND, TALLY_UNWIND_MALFORMED };

/* The row at an address in the object, left in program->row: runs the function's program. */
enum tally_unwind_lookup tally_unwind_table_lookup(struct tally_unwind_table *table,
						   uint64_t address,
						   struct tally_cfi_program *program);

/* The same as a compiled rule, of kind TALLY_RULE_NONE, _BAD or better; compiles the function when
 * it is met for the first time.  Lives as long as the table.  NULL when memory is out:
 * tally_unwind_table_lookup needs none. */
const struct tally_unwind_rule *tally_unwind_table_rule(struct tally_unwind_table *table,
							uint64_t address,
							struct tally_rule_range *range);

/* Is a call under way there on another stack than the rules tell of?  The frame is that stack's
 * outermost. */
bool tally_unwind_table_switches_stack(struct tally_unwind_table *table, uint64_t address);

/* Finds the frame at an address without rules and symbols, and where its function begins, by the
 * code.  The caller checks the return address that comes out.  Returns false when the code doesn't
 * tell. */
bool tally_unwind_table_begun_frame(struct tally_unwind_table *table, uint64_t address,
				    uint64_t *start, struct tally_code_frame *frame);

/* A rule for an address that no index has one for, made from the code; NULL: the code doesn't
 * tell. */
const struct tally_unwind_rule *tally_unwind_table_code_rule(struct tally_unwind_table *table,
							     uint64_t address);

#endif
