/* An object's lines from the inside.  Of this room alone. */
#ifndef TALLY_SYMBOL_LINES_STATE_H
#define TALLY_SYMBOL_LINES_STATE_H

#include "symbol/lines.h"
#include "symbol/lines_unit.h"

enum tally_lines_unit_state { TALLY_LINES_UNREAD, TALLY_LINES_WANTED, TALLY_LINES_COMPILED };

struct tally_lines_slot {
	uint8_t state; /* enum tally_lines_unit_state */
	bool has_ranges;
	struct tally_lines_unit compiled;
};

struct tally_lines {
	struct tally_object *object, *debug;
	bool is_ready; /* all that is below is filled */
	struct tally_dwarf_file file;
	struct tally_lines_program program;
	TALLY_VECTOR(struct tally_nested_item) index; /* address → unit */
	struct tally_lines_slot *units;               /* as file.units */
	struct tally_arena frames;
};

struct tally_lines_wanted { uint32_t *items; size_t count, capacity; }; /* a vector of units */

/* Compiles units; 0 or -ENOMEM.  Starts threads where that pays. */
int tally_lines_compile_wanted(struct tally_lines *lines, struct tally_lines_wanted *wanted);

#endif
