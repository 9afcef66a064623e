/* Flattens nested ranges into a list: from each address on, the innermost range.  Internal to this
 * folder. */
#ifndef TALLY_SYMBOL_NESTED_RANGES_H
#define TALLY_SYMBOL_NESTED_RANGES_H

#include "base/vector.h"

#include <stdint.h>

enum { TALLY_NESTED_NONE = UINT32_MAX };

struct tally_nested_range {
	uint64_t start, end; /* start < end */
	uint32_t id;
};

/* Holds from `start` up to the next item's start. */
struct tally_nested_item {
	uint64_t start;
	uint32_t id; /* TALLY_NESTED_NONE: no range */
};

struct tally_nested {
	/* input; of equal ranges the outer one comes first */
	TALLY_VECTOR(struct tally_nested_range) ranges;
	TALLY_VECTOR(struct tally_nested_item) items;    /* output, ascending */
	TALLY_VECTOR(struct tally_nested_range) working;
};

/* Makes the items from the ranges, which it reorders.  If two ranges overlap and neither contains
 * the other, the one that begins later wins.  Returns 0 or -ENOMEM. */
int tally_nested_flatten(struct tally_nested *nested);
void tally_nested_release(struct tally_nested *nested);

#endif
