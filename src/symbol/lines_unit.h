/* What a compile unit says of addresses, in a few flat arrays.  Of this room alone.
 *
 * Addresses are 32-bit distances from `base`.  The arrays hold no pointers, and are the same in
 * memory and in a cache; they may come from a damaged cache, so that whoever follows a number in
 * them checks it.
 */
#ifndef TALLY_SYMBOL_LINES_UNIT_H
#define TALLY_SYMBOL_LINES_UNIT_H

#include "base/arena.h"
#include "base/map.h"
#include "symbol/dwarf_companion.h"
#include "symbol/dwarf_line.h"
#include "symbol/dwarf_reader.h"
#include "symbol/nested_ranges.h"

/* Where the program has code: what is elsewhere was thrown out by the linker. */
struct tally_lines_code {
	TALLY_VECTOR(struct tally_dwarf_range) ranges; /* ascending, apart */
};

/* What all units of a program have in common; not changed while they are compiled. */
struct tally_lines_program {
	struct tally_lines_code code;
	struct tally_dwarf_package package;
	const char *path;   /* of the object */
	bool is_partial;    /* dwz's common file is missing */
};

bool tally_lines_is_code(const struct tally_lines_code *code, uint64_t address);

enum {
	TALLY_LINES_NONE = UINT32_MAX, /* no node, no name */
	TALLY_LINES_NO_FILE = UINT16_MAX,
	TALLY_LINES_GAP = UINT16_MAX - 1, /* a row's file: from here on the table says nothing */
	TALLY_LINES_FILES_MAX = UINT16_MAX - 1,
	TALLY_LINES_NAME_MAX = 1 << 16, /* bytes; what is as long or longer is no name */
};

struct tally_lines_row {
	uint32_t line;
	uint16_t column, file;
};

/* A function, or the inlined copy of one. */
struct tally_lines_node {
	uint32_t parent; /* what it is inlined into; lower than its own index */
	uint32_t name;
	uint32_t call_line;
	uint16_t call_column, call_file;
};

struct tally_lines_unit {
	uint64_t base;
	uint32_t row_count, range_count, node_count, name_count, file_count;
	const uint32_t *row_starts; /* ascending */
	const struct tally_lines_row *rows;
	const uint32_t *range_starts; /* ascending */
	const uint32_t *range_nodes;  /* the innermost from there on, or TALLY_LINES_NONE */
	const struct tally_lines_node *nodes;
	/* Of a compiled unit; one of a cache has offsets into the cache's strings instead. */
	const char *const *names, *const *files;
	const uint32_t *name_offsets, *file_offsets;
	struct tally_arena arena; /* what of the above is the unit's own */
	bool is_partial; /* a file that belongs to it wasn't found: not for keeping */
};

struct tally_lines_blob;

/* Strings of a unit, or NULL; `blob` is the cache's, where the unit may be from. */
const char *tally_lines_unit_name(const struct tally_lines_unit *unit,
				  const struct tally_lines_blob *blob, uint32_t index);
const char *tally_lines_unit_file(const struct tally_lines_unit *unit,
				  const struct tally_lines_blob *blob, uint32_t index);

/* What one thread needs while it compiles. */
struct tally_lines_scratch {
	struct tally_dwarf_scratch dwarf;
	struct tally_dwarf_abbrevs abbrevs; /* of the unit that is walked */
	struct tally_dwarf_lines lines;
	struct tally_nested nested;
	struct tally_map names_by_origin; /* address of a DIE's bytes → index into `names` */
	TALLY_VECTOR(const char *) names;
	TALLY_VECTOR(const char *) files;
	/* by index in the line table: 0, or 1 + index into `files` */
	TALLY_VECTOR(uint16_t) file_index;
	TALLY_VECTOR(struct tally_lines_node) nodes;
	TALLY_VECTOR(uint32_t) around; /* nodes around the DIE that is read, by depth */
	TALLY_VECTOR(uint32_t) row_starts;
	TALLY_VECTOR(struct tally_lines_row) rows;
	struct tally_arena *arena; /* of the unit that is made */
};

void tally_lines_scratch_release(struct tally_lines_scratch *scratch);

/* The functions of a unit: scratch->nodes, their names, and the ranges of nodes.  0 or -ENOMEM.
 * `copy_names`: the file won't outlive the unit. */
int tally_lines_walk(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit,
		     const struct tally_lines_code *code, bool copy_names);

/* The unit's index for a file of its line table, or TALLY_LINES_NO_FILE. */
uint16_t tally_lines_file(struct tally_lines_scratch *scratch,
			  const struct tally_dwarf_unit *lines_unit, uint64_t file);

/* Compiles a unit, its split part included.  0 or -ENOMEM; the unit must be released in both
 * cases. */
int tally_lines_compile(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit,
			struct tally_lines_program *program, struct tally_lines_unit *out);
void tally_lines_unit_release(struct tally_lines_unit *unit);

/* The index of the last of `count` ascending numbers that is not above `value`; TALLY_LINES_NONE
 * when there is none. */
uint32_t tally_lines_last_at(const uint32_t *ascending, uint32_t count, uint32_t value);

#endif
