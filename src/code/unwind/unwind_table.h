/* The rules of one object.  Internal to this room (and for tests that make their own sections). */
#ifndef TALLY_UNWIND_TABLE_H
#define TALLY_UNWIND_TABLE_H

#include "unwind/code_starts.h"
#include "unwind/function_index.h"
#include "unwind/unwind_rule.h"

/* .eh_frame, then .debug_frame, of the object and of its debug file.  They are searched in this
 * order. */
enum { TALLY_UNWIND_INDEXES = 3 };

struct tally_unwind_table {
	struct tally_object *object, *debug; /* NULL for a table from bytes */
	enum tally_unwind_machine machine;
	uint64_t entry_point; /* 0: none */
	unsigned index_count;
	struct tally_function_index indexes[TALLY_UNWIND_INDEXES];
	struct tally_unwind_rules rules[TALLY_UNWIND_INDEXES]; /* compiled from each index */
	/* tally_unwind_table_use_functions() */
	enum tally_unwind_function_kind (*find_function)(void *context, uint64_t address,
							 uint64_t *start, uint64_t *end);
	void *functions;
	bool is_go; /* a Go program: its runtime switches stacks */
	bool is_ghc; /* a Haskell program: its runtime leaves pages of the stack untouched */
	struct tally_unwind_rules made; /* made from code without rules */
	/* of a segment without rules and symbols; empty: not searched, or too large */
	struct tally_code_starts starts;
	bool has_starts; /* `starts` was searched for */
	struct tally_code_starts gap; /* of the last piece without rules in a large segment */
	TALLY_VECTOR(uint64_t) code_sections; /* where sections of code begin, ascending */
	bool has_code_sections;               /* they were searched for */
};

/* Makes a table over one section's bytes, which must outlive it.  `linker` is its .eh_frame_hdr, or
 * NULL.  Returns 0 or -ENOMEM. */
int tally_unwind_table_new_from_bytes(const struct tally_cfi_section *section,
				      const struct tally_cfi_section *linker,
				      struct tally_unwind_table **out, struct tally_error *err);

enum tally_unwind_lookup { TALLY_UNWIND_FOUND, TALLY_UNWIND_NOT_FOUND, TALLY_UNWIND_MALFORMED };

/* Finds the row at an address in the object, by running the function's program.  Leaves the row in
 * program->row. */
enum tally_unwind_lookup tally_unwind_table_lookup(struct tally_unwind_table *table,
						   uint64_t address,
						   struct tally_cfi_program *program);

/* Finds the compiled rule at an address in the object, of kind TALLY_RULE_NONE, _BAD or better, and
 * the addresses that it holds for.  Compiles a function that it meets for the first time.  The rule
 * lives as long as the table.  Returns NULL when memory is out; tally_unwind_table_lookup() needs
 * none. */
const struct tally_unwind_rule *tally_unwind_table_rule(struct tally_unwind_table *table,
							uint64_t address,
							struct tally_rule_range *range);

/* True if the address is in the first function of a program or of its dynamic linker. */
bool tally_unwind_table_is_entry(const struct tally_unwind_table *table, uint64_t address);

/* Finds the frame at an address without rules and symbols, and where its function begins, from the
 * code.  The result is not quite certain: the caller checks the return address.  Returns false when
 * the code doesn't tell. */
bool tally_unwind_table_begun_frame(struct tally_unwind_table *table, uint64_t address,
				    uint64_t *start, struct tally_code_frame *frame);

/* Makes a rule from the code for an address that no index has a rule for.  Returns NULL where the
 * code doesn't tell. */
const struct tally_unwind_rule *tally_unwind_table_code_rule(struct tally_unwind_table *table,
							     uint64_t address);

#endif
