/* A pager for long output on a terminal: $TALLY_PAGER, $PAGER, or less(1). */
#ifndef TALLY_OUTPUT_PAGER_H
#define TALLY_OUTPUT_PAGER_H

#include <stdbool.h>
#include <stddef.h>

/* If `wanted` and standard output is a terminal, tally_pager_start() sends standard output through
 * a pager until tally_pager_finish(). */
struct tally_pager {
	int pid; /* the pager's; 0: none */
	bool colours;
	unsigned columns; /* terminal width; 0: standard output is not a terminal */
};

void tally_pager_start(struct tally_pager *pager, bool wanted);
/* The same in two steps, for text that is made before: measures the terminal, then starts the pager
 * so that a line is shown, counted from 0, of `lines`.  Only less(1) can do that; others begin at
 * the top, as less does if the line is on the first screen. */
void tally_pager_measure(struct tally_pager *pager);
void tally_pager_start_at(struct tally_pager *pager, bool wanted, size_t line,
			  size_t lines);
/* True if the pager is less(1) and stays until the user quits, because $LESS is set and lacks F. */
bool tally_pager_is_less(void);
/* Flushes standard output and waits until the user quits the pager. */
void tally_pager_finish(struct tally_pager *pager);

#endif
