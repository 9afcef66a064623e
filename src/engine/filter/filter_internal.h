/* A compiled filter: steps that produce one truth value, and jumps that skip steps which can't
 * change it. */
#ifndef TALLY_FILTER_INTERNAL_H
#define TALLY_FILTER_INTERNAL_H

#include "filter/filter.h"

enum filter_operation {
	FILTER_EQUAL,
	FILTER_UNEQUAL,
	FILTER_LESS,
	FILTER_LESS_EQUAL,
	FILTER_GREATER,
	FILTER_GREATER_EQUAL,
	FILTER_AND,
	FILTER_GLOB
};

enum filter_step_kind {
	FILTER_NUMBER,     /* compares a number with `value` */
	FILTER_TEXT,       /* compares characters with those at `data` */
	FILTER_CPU_NUMBER, /* compares the number, as a CPU, with the mask at `data` */
	FILTER_CPU_MASK,   /* compares a mask with the mask at `data` */
	FILTER_INVERT,
	FILTER_SKIP_FALSE, /* continues at step `target` if the value so far is false */
	FILTER_SKIP_TRUE
};

enum filter_source { /* place of the field's bytes */
	FILTER_IN_PLACE,
	FILTER_ELSEWHERE, /* in the record, at the offset that the field contains */
	FILTER_CPU,
	FILTER_COMM
};

struct filter_step {
	uint8_t kind, operation, source;
	bool is_signed;
	uint16_t offset, size; /* bytes of the field; size 0: empty */
	uint32_t target;       /* for skips */
	/* offset from the program's start in bytes, and length: characters, or words of a mask */
	uint32_t data, length;
	uint64_t value;
};

struct tally_filter {
	uint32_t count;
	struct filter_step steps[];
};

#endif
