/* A compiled unit: everything that a compile unit says of addresses, in a few flat arrays.
 * Internal to this folder.
 *
 * Addresses are 32-bit distances from `base`.  The arrays contain no pointers and are the same in
 * memory and in a cache.  A cache may be damaged, so code that uses a number in them as an index
 * checks it.
 */
#ifndef TALLY_SYMBOL_LINES_UNIT_H
#define TALLY_SYMBOL_LINES_UNIT_H

#include "base/arena.h"
#include "base/map.h"
#include "symbol/dwarf_companion.h"
#include "symbol/dwarf_line.h"
#include "symbol/dwarf_reader.h"
#include "symbol/nested_ranges.h"

/* The addresses of the program's code.  DWARF of other addresses belongs to code that the linker
 * removed. */
struct tally_lines_code {
	TALLY_VECTOR(struct tally_dwarf_range) ranges; /* ascending, disjoint */
};

/* Data that all units of a program share; it doesn't change while they are compiled. */
struct tally_lines_program {
	struct tally_lines_code code;
	struct tally_dwarf_package package;
	const char *path;   /* of the object */
	const char *missing; /* path of dwz's common file, if it was not found; NULL */
	bool is_changeable;  /* dwz's common file is not this user's or root's */
};

/* Returns how many bytes all names of a file of this size may have.  Names may overlap in a crafted
 * string table; honest ones take less than the file, whose sections may be compressed. */
static inline uint64_t tally_lines_names_max(uint64_t file_size)
{
	return (1 << 20) + 16 * file_size;
}

bool tally_lines_is_code(const struct tally_lines_code *code, uint64_t address);

enum {
	TALLY_LINES_NONE = UINT32_MAX, /* no node, no name */
	TALLY_LINES_NO_FILE = UINT16_MAX,
	TALLY_LINES_GAP = UINT16_MAX - 1, /* a row's file: the table has no line from here on */
	TALLY_LINES_FILES_MAX = UINT16_MAX - 1,
	/* functions at one address; what is inlined deeper belongs to the last of them */
	TALLY_LINES_INLINED_MAX = 128,
	TALLY_LINES_NAME_MAX = 1 << 16, /* bytes; a string of this length or more is no name */
};

struct tally_lines_row {
	uint32_t line;
	uint16_t column, file;
};

/* A function, or an inlined copy of one. */
struct tally_lines_node {
	uint32_t parent; /* node that it is inlined into; lower than its own index */
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
	const uint32_t *range_nodes;  /* the innermost node from there on, or TALLY_LINES_NONE */
	const struct tally_lines_node *nodes;
	/* Strings of a compiled unit.  A unit from a cache has offsets into the cache's strings
	 * instead. */
	const char *const *names, *const *files;
	const uint32_t *name_offsets, *file_offsets;
	/* by name: the file that declares the function, or TALLY_LINES_NO_FILE */
	const uint16_t *name_sources;
	struct tally_arena arena; /* owns the arrays of a compiled unit */
	bool is_partial; /* something that belongs to it wasn't found or read: don't cache it */
	bool is_refused; /* it was not read whole, because the file exceeds its budget */
	/* a file that belongs to it is not this user's or root's: don't cache it */
	bool is_changeable;
};

struct tally_lines_blob;

/* Return a unit's string, or NULL; `blob` is the cache's blob, which the unit may come from. */
const char *tally_lines_unit_name(const struct tally_lines_unit *unit,
				  const struct tally_lines_blob *blob, uint32_t index);
const char *tally_lines_unit_file(const struct tally_lines_unit *unit,
				  const struct tally_lines_blob *blob, uint32_t index);

/* The file tables of a unit other than the one that is being compiled. */
struct tally_lines_tables {
	const struct tally_dwarf_unit *unit; /* NULL: none */
	struct tally_dwarf_lines lines;
};

enum { TALLY_LINES_TABLES_KEPT = 64 };

/* The working memory of one compiling thread. */
struct tally_lines_scratch {
	struct tally_dwarf_scratch dwarf;
	struct tally_dwarf_abbrevs abbrevs; /* of the current unit */
	struct tally_dwarf_lines lines;
	struct tally_nested nested;
	struct tally_map names_by_origin; /* address of a DIE's bytes → index into `names` */
	TALLY_VECTOR(const char *) names;
	TALLY_VECTOR(uint16_t) name_sources;
	TALLY_VECTOR(const char *) files;
	struct tally_lines_tables tables[TALLY_LINES_TABLES_KEPT];
	/* indexed by the line table's file: 0, or 1 + index into `files` */
	TALLY_VECTOR(uint16_t) file_index;
	TALLY_VECTOR(struct tally_lines_node) nodes;
	TALLY_VECTOR(uint16_t) depths; /* by node: functions that it is inlined into */
	TALLY_VECTOR(uint32_t) around; /* by depth: the node around the current DIE */
	TALLY_VECTOR(uint32_t) row_starts;
	TALLY_VECTOR(struct tally_lines_row) rows;
	struct tally_arena *arena; /* of the unit that is being compiled */
};

void tally_lines_scratch_release(struct tally_lines_scratch *scratch);

/* Compiles a unit with its split part.  Returns 0 or -ENOMEM; the caller releases the unit in both
 * cases. */
int tally_lines_compile(struct tally_lines_scratch *scratch, const struct tally_dwarf_unit *unit,
			struct tally_lines_program *program, struct tally_lines_unit *out);
void tally_lines_unit_release(struct tally_lines_unit *unit);

/* Returns the index of the last of `count` ascending numbers that is not above `value`;
 * TALLY_LINES_NONE when there is none. */
uint32_t tally_lines_last_at(const uint32_t *ascending, uint32_t count, uint32_t value);

#endif
