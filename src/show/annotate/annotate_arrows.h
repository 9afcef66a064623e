/* Jumps within a function, drawn as arrows: assigns each arrow a column. For annotate_*.c.
 *
 * All jumps to one instruction share an arrow, which spans from the lowest to the highest
 * instruction involved. Short arrows are drawn next to the code, longer ones further out. If no
 * column is free, an arrow is not drawn, and the view labels its target instead.
 */
#ifndef TALLY_ANNOTATE_ARROWS_H
#define TALLY_ANNOTATE_ARROWS_H

#include "report/annotation.h"

struct tally_arrow {
	uint32_t low, high; /* first and last instruction that the arrow spans */
	uint32_t to;        /* the instruction jumped to, within low … high */
	unsigned column;    /* 0: next to the code; UINT_MAX: not drawn */
};

struct tally_arrows {
	struct { struct tally_arrow *items; size_t count, capacity; } arrows;
	uint32_t *there; /* the arrow's index + 1, by column and instruction; 0: none */
	size_t rows;
	unsigned columns; /* columns in use */
};

int tally_arrows_make(const struct tally_annotation *annotation, unsigned columns_max,
		      struct tally_arrows *out);
void tally_arrows_release(struct tally_arrows *arrows);

enum { TALLY_ARROW_UP = 1, TALLY_ARROW_DOWN = 2, TALLY_ARROW_LEFT = 4, TALLY_ARROW_RIGHT = 8 };

/* Returns which parts of arrows (TALLY_ARROW_* bits) to draw in a column beside an instruction or,
 * with `above`, beside the lines shown between that instruction and the one before. */
unsigned tally_arrow_cell(const struct tally_arrows *arrows,
			  const struct tally_annotation *annotation, size_t row, unsigned column,
			  bool above);

/* True if a drawn arrow ends at an instruction (_arrives), or begins there (_leaves). */
bool tally_arrow_arrives(const struct tally_arrows *arrows, size_t row);
bool tally_arrow_leaves(const struct tally_arrows *arrows,
			const struct tally_annotation *annotation, size_t row);

#endif
