/* Line number programs.  Internal to this folder. */
#ifndef TALLY_SYMBOL_DWARF_LINE_H
#define TALLY_SYMBOL_DWARF_LINE_H

#include "symbol/dwarf_reader.h"

/* Holds from `address` up to the next row of its sequence. */
struct tally_dwarf_row {
	uint64_t address;
	uint32_t file; /* index in the program's own file table */
	uint32_t line, column;
};

struct tally_dwarf_sequence {
	uint64_t start, end;
	size_t first, count; /* rows, ascending, each at another address */
};

struct tally_dwarf_source {
	const char *name;
	uint64_t directory;
};

struct tally_dwarf_lines {
	uint8_t version;
	/* from version 5 on, [0] is the compilation's directory */
	TALLY_VECTOR(const char *) directories;
	TALLY_VECTOR(struct tally_dwarf_source) sources;
	TALLY_VECTOR(struct tally_dwarf_row) rows;
	TALLY_VECTOR(struct tally_dwarf_sequence) sequences;
};

/* Runs a unit's program; `lines` may have been used before.  Damage ends the program; the rows
 * before it are kept.  Returns 0 or -ENOMEM. */
int tally_dwarf_lines_read(struct tally_dwarf_scratch *scratch, struct tally_dwarf_lines *lines,
			   const struct tally_dwarf_unit *unit);
/* Reads the tables of directories and files alone. */
int tally_dwarf_lines_read_tables(struct tally_dwarf_scratch *scratch,
				  struct tally_dwarf_lines *lines,
				  const struct tally_dwarf_unit *unit);
void tally_dwarf_lines_release(struct tally_dwarf_lines *lines);

/* Returns a file's path, joined with its directory and the unit's, in the arena; NULL when there is
 * no such file, or without memory. */
const char *tally_dwarf_source_path(const struct tally_dwarf_lines *lines,
				    const struct tally_dwarf_unit *unit, uint64_t file,
				    struct tally_arena *arena);

#endif
