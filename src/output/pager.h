/* A pager for long output on a terminal: $TALLY_PAGER, $PAGER, or less(1). */
#ifndef TALLY_OUTPUT_PAGER_H
#define TALLY_OUTPUT_PAGER_H

#include <stdbool.h>

/* If `wanted` and standard output is a terminal, tally_pager_start() sends standard output through
 * a pager until tally_pager_finish(). */
struct tally_pager {
	int pid; /* the pager's; 0: none */
	bool colours;
	unsigned columns; /* terminal width; 0: standard output is not a terminal */
};

void tally_pager_start(struct tally_pager *pager, bool wanted);
/* True if the pager is less(1) and stays until the user quits, because $LESS is set and lacks F. */
bool tally_pager_is_less(void);
/* Flushes standard output and waits until the user quits the pager. */
void tally_pager_finish(struct tally_pager *pager);

#endif
