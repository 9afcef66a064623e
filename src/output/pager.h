/* A pager for long output on a terminal: $TALLY_PAGER, $PAGER, else less. */
#ifndef TALLY_OUTPUT_PAGER_H
#define TALLY_OUTPUT_PAGER_H

#include <stdbool.h>

/* When standard output is a terminal (and `wanted`), sends it through a pager until
 * tally_pager_finish(). */
struct tally_pager {
	int pid; /* 0: none */
	bool colours;
	unsigned columns; /* of the terminal; 0: standard output is none */
};

void tally_pager_start(struct tally_pager *pager, bool wanted);
/* It stays until it is left, where $LESS has no F. */
bool tally_pager_is_less(void);
/* Flushes standard output and waits until the pager is left. */
void tally_pager_finish(struct tally_pager *pager);

#endif
