/* Line number programs.  Of this room alone. */
#ifndef TALLY_SYMBOL_DWARF_LINE_H
#define TALLY_SYMBOL_DWARF_LINE_H

#include "symbol/dwarf_reader.h"

/* From `address` up to the next row of its sequence. */
struct tally_dwarf_row {
	uint64_t address;
	uint32_t file; /* index of the program's file table, as the program has it */
	uint32_t line, column;
};

struct tally_dwarf_sequence {
	uint64_t start, end;
	size_t first, count; /* rows, ascending, of different addresses */
};

struct tally_dwarf_source {
	const char *name;
	uint64_t directory;
};

struct tally_dwarf_lines {
	uint8_t version;
	TALLY_VECTOR(const char *) directories; /* [0] is the compilation's, from version 5 on */
	TALLY_VECTOR(struct tally_dwarf_source) sources;
	TALLY_VECTOR(struct tally_dwarf_row) rows;
	TALLY_VECTOR(struct tally_dwarf_sequence) sequences;
};

/* Runs the program of a unit; the lines may have been filled before.  What is damaged ends it:
 * there are the rows up to there.  0 or -ENOMEM. */
int tally_dwarf_lines_read(struct tally_dwarf_lines *lines, const struct tally_dwarf_unit *unit);
void tally_dwarf_lines_release(struct tally_dwarf_lines *lines);

/* A file's path, joined with its directory and the unit's, in the arena; NULL when there is no such
 * file, or when memory is out. */
const char *tally_dwarf_source_path(const struct tally_dwarf_lines *lines,
				    const struct tally_dwarf_unit *unit, uint64_t file,
				    struct tally_arena *arena);

#endif
