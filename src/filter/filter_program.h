/* A compiled filter: steps that leave one truth behind, and jumps that skip what no longer
 * matters. */
#ifndef TALLY_FILTER_FILTER_PROGRAM_H
#define TALLY_FILTER_FILTER_PROGRAM_H

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
	FILTER_NUMBER,     /* operation on `value` */
	FILTER_TEXT,       /* operation on the characters at `data` */
	FILTER_CPU_NUMBER, /* the number as a CPU, in the mask at `data` */
	FILTER_CPU_MASK,   /* a mask and the mask at `data` */
	FILTER_INVERT,
	FILTER_SKIP_FALSE, /* goes on at step `target` if the truth so far is false */
	FILTER_SKIP_TRUE
};

enum filter_source { /* where the field's bytes are */
	FILTER_IN_PLACE,
	FILTER_ELSEWHERE, /* where the word in place points */
	FILTER_CPU,
	FILTER_COMM
};

struct filter_step {
	uint8_t kind, operation, source;
	bool is_signed;
	uint16_t offset, size; /* of the field; size 0: empty */
	uint32_t target;       /* of a skip */
	/* bytes from the program's start: characters, or `length` words of a mask */
	uint32_t data, length;
	uint64_t value;
};

struct tally_filter {
	uint32_t count;
	struct filter_step steps[];
};

/* Reads "0-3,7" up to `end` into `words` (64 CPUs each; NULL: only checks).  False: not a list, or
 * beyond `cpus`; *end_of_good is where it shows. */
bool tally_filter_cpus(const char *text, const char *end, unsigned cpus, uint64_t *words,
		       const char **bad);

#endif
