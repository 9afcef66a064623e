/* Jumps within a function as arrows: which column each is drawn in.  For annotate_*.c.
 *
 * All jumps to one instruction share a line, which reaches from the first of them to the last.
 * Short ones come next to the code, longer ones outside of them.  What finds no column is not
 * drawn: labels tell of it.
 */
#ifndef TALLY_OUTPUT_ANNOTATE_ARROWS_H
#define TALLY_OUTPUT_ANNOTATE_ARROWS_H

#include "report/annotation.h"

struct tally_arrow {
	uint32_t low, high; /* instructions, the first and the last */
	uint32_t to;        /* one of them */
	unsigned column;    /* 0: next to the code; UINT_MAX: not drawn */
};

struct tally_arrows {
	struct { struct tally_arrow *items; size_t count, capacity; } arrows;
	uint32_t *there; /* by column and instruction: the arrow + 1; 0: none */
	size_t rows;
	unsigned columns; /* that are used */
};

int tally_arrows_make(const struct tally_annotation *annotation, unsigned columns_max,
		      struct tally_arrows *out);
void tally_arrows_release(struct tally_arrows *arrows);

enum { TALLY_ARROW_UP = 1, TALLY_ARROW_DOWN = 2, TALLY_ARROW_LEFT = 4, TALLY_ARROW_RIGHT = 8 };

/* What is drawn in a column beside an instruction, or (`above`) beside what is shown between it and
 * the one before. */
unsigned tally_arrow_cell(const struct tally_arrows *arrows,
			  const struct tally_annotation *annotation, size_t row, unsigned column,
			  bool above);

/* Whether an arrow that is drawn ends at an instruction, or begins there. */
bool tally_arrow_arrives(const struct tally_arrows *arrows, size_t row);
bool tally_arrow_leaves(const struct tally_arrows *arrows,
			const struct tally_annotation *annotation, size_t row);

#endif
